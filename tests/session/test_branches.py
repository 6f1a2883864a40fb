"""A conversation that goes on from an earlier message of a person, in more than one way."""

from __future__ import annotations

from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.branches import BranchPoint
from tests.panel.pages import held_session, session_of, write


def test_a_session_says_a_message_anew_and_goes_back() -> None:
    session = session_of("One.", "Two.", "Three.", "Four.")
    session.send("First").result()
    session.send("Second").result()
    assert session.send("Better", instead_of=2).result().text == "Three."
    assert [m.text for m in session.messages] == ["First", "One.", "Better", "Three."]
    assert session.branches == [BranchPoint(2, 1, 2)]
    session.switch_branch(2, 0)
    assert session.send("Third").result().text == "Four."
    assert [m.text for m in session.messages][2:] == ["Second", "Two.", "Third", "Four."]
    session.switch_branch(2, 1)
    assert [m.text for m in session.messages][2:] == ["Better", "Three."]


def test_branches_are_there_when_a_stored_conversation_is_opened_again(tmp_path: Path) -> None:
    store = sa.ConversationStore(tmp_path / "agents.db")
    session = session_of("One.", "Two.", store=store, id="c1")
    session.send("First").result()
    session.send("Better", instead_of=0).result()
    session.close()
    opened = sa.Session.open("c1", agent=session.agent, store=store)
    assert opened.branches == [BranchPoint(0, 1, 2)]
    opened.switch_branch(0, 0)
    opened.close()
    again = sa.Session.open("c1", agent=session.agent, store=store)
    assert [m.text for m in again.messages] == ["First", "One."]
    assert again.branches == [BranchPoint(0, 0, 2)]
    again.close()
    store.close()


@pytest.mark.parametrize("position", [1, 2, 99])
def test_only_a_message_of_a_person_is_said_anew(position: int) -> None:
    session = session_of("One.", "Two.")
    session.send("First").result()
    with pytest.raises(sa.ConfigurationError, match="no message of a person"):
        session.send("Better", instead_of=position)
    assert [m.text for m in session.messages] == ["First", "One."]
    assert session.branches == []


def test_while_something_runs_or_waits_no_branch_is_begun_or_left() -> None:
    session, run, release = held_session("Done.")
    with pytest.raises(sa.Busy):
        session.send("Better", instead_of=0)
    with pytest.raises(sa.Busy):
        session.switch_branch(0, 0)
    release.set()
    run.result()
    waiting = session_of(write(), gate=True)
    waiting.send("Write.").result()
    with pytest.raises(sa.Busy):
        waiting.send("Better", instead_of=0)
    assert waiting.status == "interrupted"


def test_behind_messages_that_wait_nothing_is_said_anew() -> None:
    session, run, release = held_session("Done.")
    session.send("Then this.")
    session.stop(run.id)
    release.set()
    with pytest.raises(sa.Busy, match="wait"):
        session.send("Better", instead_of=0)


def test_what_cannot_be_sent_anew_leaves_all_as_it_is() -> None:
    def refuse(message: sa.Message, ctx: object) -> tuple[sa.Message, sa.Message]:
        if message.text == "Better":
            raise ValueError("Not that.")
        return message, message

    session = session_of("One.", "Two.", message_preprocessor=refuse)
    session.send("First").result()
    with pytest.raises(sa.AgentError, match="Not that"):
        session.send("Better", instead_of=0)
    assert [m.text for m in session.messages] == ["First", "One."]
    assert session.branches == []
