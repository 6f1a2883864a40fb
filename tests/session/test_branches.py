"""A message that is said anew: what is kept of the other ways in which the conversation went on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import sagents_nb as sa
from sagents_nb.messages import BRANCH
from sagents_nb.session.branches import (
    BranchPoint,
    branch_points,
    branched,
    branches_of,
    switched,
)
from tests.panel.pages import held_session, session_of, write
from tests.talking import PATIENCE

Texts = list[str]


def texts(state: sa.State) -> Texts:
    return [message.text for message in state.messages]


def conversation(*said: str) -> sa.State:
    """A state in which people and the model take turns."""
    roles = ("user", "assistant")
    return sa.State(messages=[sa.Message(roles[n % 2], text) for n, text in enumerate(said)])


def anew(state: sa.State, position: int, *said: str) -> sa.State:
    before, branch = branched(state, position)
    first, *rest = conversation(*said).messages
    first = sa.Message("user", first.parts, metadata={BRANCH: branch})
    return before.add_messages([first, *rest])


def test_what_is_said_anew_stands_in_the_place_of_the_former_and_the_former_is_kept() -> None:
    state = anew(conversation("Hi", "Hello!", "Bye", "See you."), 2, "How are you?", "Fine.")
    assert texts(state) == ["Hi", "Hello!", "How are you?", "Fine."]
    assert branch_points(state) == [BranchPoint(position=2, current=1, count=2)]
    assert texts(switched(state, 2, 0)) == ["Hi", "Hello!", "Bye", "See you."]
    assert branch_points(switched(state, 2, 0)) == [BranchPoint(position=2, current=0, count=2)]


def test_branches_of_a_branch_go_and_come_back_with_it() -> None:
    state = anew(conversation("a", "A", "b", "B"), 2, "c", "C")
    state = anew(state, 0, "x", "X")
    assert branch_points(state) == [BranchPoint(0, 1, 2)]
    state = switched(state, 0, 0)
    assert texts(state) == ["a", "A", "c", "C"]
    assert branch_points(state) == [BranchPoint(0, 0, 2), BranchPoint(2, 1, 2)]
    assert texts(switched(state, 2, 0)) == ["a", "A", "b", "B"]


def test_each_branch_has_the_todos_that_it_was_left_with() -> None:
    state = conversation("a", "A").put_todo(sa.Todo("first", "in_progress"))
    state = anew(state, 0, "b", "B").set_todos([sa.Todo("second", id="own")])
    back = switched(state, 0, 0)
    assert [(t.content, t.status, t.id) for t in back.todos] == [("first", "in_progress", 1)]
    forth = switched(back, 0, 1)
    assert [(t.content, t.status, t.id) for t in forth.todos] == [("second", "pending", "own")]


def test_a_state_that_was_saved_has_its_branches() -> None:
    state = anew(conversation("a", "A"), 0, "b", "B")
    again = sa.State.restore(state.export())
    assert branch_points(again) == [BranchPoint(0, 1, 2)]
    assert texts(switched(again, 0, 0)) == ["a", "A"]


@pytest.mark.parametrize(("position", "branch"), [(0, 2), (0, -1), (1, 0), (9, 0), (-1, 0)])
def test_a_branch_that_is_not_there_is_said_to_be_none(position: int, branch: int) -> None:
    state = anew(conversation("a", "A"), 0, "b", "B")
    with pytest.raises(sa.ConfigurationError, match="no branch"):
        switched(state, position, branch)


@pytest.mark.parametrize(
    "kept",
    [
        None,
        3,
        {},
        {"current": "x", "count": 2},
        {"current": 0},
        {"current": 7, "count": 2},
        {"current": -1, "count": 2},
        {"current": float("inf"), "count": 2},
        {"current": 10**400, "count": 10**401},
        "\ud800",
        {"current": "\ud800", "count": 2},
    ],
)
def test_metadata_of_others_with_such_a_name_are_no_branches(kept: Any) -> None:
    message = sa.Message.user("a", branch="mine")
    state = sa.State(messages=[message], metadata={"branches:mine": kept})
    assert branch_points(state) == []
    assert branches_of(state.metadata) == {}
    with pytest.raises(sa.ConfigurationError, match="no branch"):
        switched(state, 0, 0)


@pytest.mark.parametrize(
    "kept", [None, {"messages": [], "todos": []}, {"messages": [{"role": "user"}], "todos": []}]
)
def test_a_branch_from_which_nobody_could_come_back_is_none(kept: Any) -> None:
    message = sa.Message.user("a", branch="mine")
    known = {"branches:mine": {"current": 1, "count": 2}, "branch:mine:0": kept}
    state = sa.State(messages=[message], metadata=known)
    with pytest.raises(sa.ConfigurationError, match="no branch 0"):
        switched(state, 0, 0)


def test_an_edit_and_a_switch_write_what_they_take_away_and_no_other_branch() -> None:
    state = conversation("a", "A")
    for n in range(5):
        before = state.metadata
        state = anew(state, 0, f"b{n}", "B")
        changed = {k for k, v in state.metadata.items() if before.get(k) is not v}
        assert len(changed) == 2, "the point, and the branch that was left"
    before, state = state.metadata, switched(state, 0, 2)
    changed = {k for k in {*before, *state.metadata} if before.get(k) is not state.metadata.get(k)}
    assert len(changed) == 3, "the point, the branch that was left, and the one that is current"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_whatever_is_edited_and_switched_each_way_is_kept_as_it_was(
    steps: list[tuple[bool, int, int]],
) -> None:
    state = conversation("q0", "a0", "q1", "a1", "q2", "a2")
    known = {tuple(texts(state))}
    for number, (edits, where, which) in enumerate(steps):
        if edits:
            position = 2 * (where % (len(state.messages) // 2))
            state = anew(state, position, f"q{number}'", f"a{number}'", "and", "so on")
            known.add(tuple(texts(state)))
        elif points := branch_points(state):
            point = points[where % len(points)]
            state = switched(state, point.position, which % point.count)
            assert tuple(texts(state)) in known
    assert reachable(state) == known


def reachable(state: sa.State) -> set[tuple[str, ...]]:
    """The texts of all ways, found by going them."""
    found: set[tuple[str, ...]] = set()
    left = [state]
    while left:
        state = left.pop()
        if (way := tuple(texts(state))) not in found:
            found.add(way)
            for point in branch_points(state):
                left += [switched(state, point.position, n) for n in range(point.count)]
    return found


# In a session


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


@pytest.mark.parametrize("position", [1, 2, 99, -2, "0", 0.5])
def test_only_a_message_of_a_person_is_said_anew(position: Any) -> None:
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
    assert run.result(PATIENCE).status == "cancelled"
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


def test_what_a_summary_asked_is_no_message_of_a_person() -> None:
    asked = sa.Message.user("Summarize our conversation.", summary_request=True)
    said = sa.Message("assistant", "We talked.", metadata={"summary": True})
    session = session_of("One.", state=sa.State(messages=[asked, said]))
    with pytest.raises(sa.ConfigurationError, match="no message of a person at 0"):
        session.send("Better", instead_of=0)


# What is known of how it came about


def known_of_calls(session: sa.Session) -> list[Any]:
    frame = session.to_frame("tool_calls")
    return list(frame[["tool_call_id", "duration", "run_id", "time"]].itertuples(index=False))


def test_what_is_known_of_calls_goes_and_comes_back_with_their_messages() -> None:
    # The models of both branches begin to count their calls anew.
    answers = [[write("/a.md", "A", "c1")], "a", [write("/b.md", "B", "c2")], "b"]
    session = session_of(*answers, [write("/c.md", "C", "c2")], "c")
    session.send("A").result()
    session.send("B").result()
    before = known_of_calls(session)
    times = list(session.to_frame("messages")["time"])
    session.send("C", instead_of=4).result()
    after = known_of_calls(session)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert len(session.to_frame("usage")) == 4
    session.switch_branch(4, 0)
    assert known_of_calls(session) == before
    assert list(session.to_frame("messages")["time"]) == times
    session.switch_branch(4, 1)
    assert known_of_calls(session) == after
    session.reset()
    assert session.to_frame("usage").empty
