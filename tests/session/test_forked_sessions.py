"""A conversation of its own that goes on from what was said in another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import FileSystem
from sagents_nb.store import ConversationStore
from tests.panel.pages import held_session, plan, session_of, write


def texts(session: Any) -> list[str]:
    return [message.text for message in session.messages if message.role != "tool"]


def talk(*said: str, **options: Any) -> Any:
    """A session in which "1", "2" … were answered so."""
    session = session_of(*said, "Next.", **options)
    for number in range(len(said)):
        session.send(str(number + 1)).result()
    return session


def test_a_fork_has_what_was_said_before_and_the_two_go_on_apart() -> None:
    session = talk("One.", "Two.")
    fork = session.fork(before=2)
    assert texts(fork) == ["1", "One."]
    assert fork.send("3").result().text == "Next."
    assert texts(session) == ["1", "One.", "2", "Two."]
    assert texts(fork) == ["1", "One.", "3", "Next."]
    assert fork.id != session.id


def test_without_a_place_all_is_there_and_the_todos_too() -> None:
    session = session_of(plan("Look", "Write"), "Planned.")
    session.send("Plan.").result()
    assert [todo.content for todo in session.fork().todos] == ["Look", "Write"]
    assert texts(session.fork()) == texts(session)


def test_the_todos_are_those_that_there_were_at_that_place() -> None:
    session = session_of(plan("Look"), "Planned.", plan("Write", id="t2"), "Anew.")
    session.send("Plan.").result()
    session.send("Plan anew.").result()
    assert [todo.content for todo in session.todos] == ["Write"]
    assert [todo.content for todo in session.fork(before=4).todos] == ["Look"]
    assert session.fork(before=0).todos == []


def test_branches_of_what_it_has_come_along_and_no_others() -> None:
    session = session_of("A.", "B.", "C.", "D.")
    session.send("a").result()
    session.send("b", instead_of=0).result()
    session.send("c").result()
    session.send("secret", instead_of=2).result()
    fork = session.fork(before=2)
    assert [(point.position, point.count) for point in fork.branches] == [(0, 2)]
    assert "secret" not in str(fork.export_state())
    fork.switch_branch(0, 0)
    assert texts(fork) == ["a", "A."]


def test_files_are_copied_and_then_each_has_its_own() -> None:
    session = talk("One.")
    session.files.write("/a.txt", "before", title="A", mime_type="text/plain")
    session.files.write("/b.bin", b"\0\1")
    fork = session.fork()
    session.files.write("/a.txt", "after")
    copied = fork.files.read("/a.txt")
    assert (copied.text, copied.title, copied.mime_type) == ("before", "A", "text/plain")
    assert fork.files.read("/b.bin").content == b"\0\1"


def test_files_that_are_shared_stay_shared() -> None:
    files = FileSystem(("team", 1))
    session = talk("One.", filesystem=files)
    assert session.fork().files is files


def test_a_fork_of_a_stored_conversation_is_stored(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "agents.db")
    session = talk("One.", "Two.", store=store, id="first")
    fork = session.fork("second", before=2)
    with pytest.raises(sa.ConfigurationError, match="'second' is in the store already"):
        session.fork("second")
    fork.close()
    again = sa.Session.open("second", agent=session.agent, store=store)
    assert texts(again) == ["1", "One."]
    for each in (again, session, store):
        each.close()


@pytest.mark.parametrize("before", [1, 4, 99])
def test_where_no_message_of_a_person_is_nothing_is_made(before: int) -> None:
    session = talk("One.", "Two.")
    with pytest.raises(sa.ConfigurationError, match=f"no message of a person at {before}"):
        session.fork(before=before)


def test_while_a_run_is_active_only_what_came_before_it_is_taken() -> None:
    session, run, release = held_session("Done.")
    with pytest.raises(sa.Busy, match="is running; stop the run first"):
        session.fork()
    assert session.fork(before=0).messages == []
    release.set()
    run.result()


def test_what_waits_for_approval_is_not_asked_in_a_fork_from_before() -> None:
    session = session_of("Hello.", write(), "Done.", gate=True)
    session.send("Hi").result()
    assert session.send("Write.").result().status == "interrupted"
    fork = session.fork(before=2)
    assert (fork.status, fork.interrupt) == ("idle", None)
    assert session.status == "interrupted"
