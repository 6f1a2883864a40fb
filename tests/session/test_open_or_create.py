"""One cell opens a conversation, makes it, or finds it live, however often it is run."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.session import session as session_module
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, in_threads


def opened(store: Any, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session.open("c1", agent=agent_of(*turns), store=store, create=True, **options)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "chats.db")


def test_what_is_not_there_is_made_and_what_was_closed_goes_on(path: str) -> None:
    with opened(path, "one") as session:
        session.send("first").result()
    assert session.status == "closed"
    with opened(path, "two") as again:
        assert again.send("second").result().text == "two"
        assert [m.text for m in again.messages] == ["first", "one", "second", "two"]


def test_without_create_what_is_not_there_is_still_an_error(path: str) -> None:
    with pytest.raises(sa.NotFound):
        sa.Session.open("c1", agent=agent_of("x"), store=path)


def test_the_live_session_is_given_back_with_the_new_agent(path: str) -> None:
    session = opened(path, "one")
    session.send("first").result()
    again = opened(path, "two")
    assert again is session
    assert again.send("second").result().text == "two"


def test_a_session_at_work_is_given_back_as_it_is_and_says_so(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    busy = agent_of(call("hold"), "slow", tools=[gate.tool])
    session = sa.Session.open("c1", agent=busy, store=path, create=True)
    run = session.send("go")
    gate.wait()
    with caplog.at_level(logging.WARNING):
        assert opened(path, "other") is session
    assert "keeps its agent" in caplog.text
    gate.open()
    assert run.result().text == "slow"


def test_many_who_open_at_once_get_one_session(path: str) -> None:
    sessions = in_threads(8, lambda _: opened(path, "x"))
    assert len({id(session) for session in sessions}) == 1


def test_one_that_is_being_opened_is_waited_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path, "x").close()
    actor = session_module.Actor

    def slow(*args: Any) -> Any:
        time.sleep(0.2)  # it has the lease, and nobody knows of its session
        return actor(*args)

    monkeypatch.setattr(session_module, "Actor", slow)
    sessions = in_threads(3, lambda _: opened(path, "x"))
    assert len({id(session) for session in sessions}) == 1, sessions


def test_sessions_at_one_path_share_its_store(path: str, tmp_path: Path) -> None:
    first = sa.Session(agent_of("x"), store=path)
    second = sa.Session(agent_of("x"), store=Path(path))
    assert first.options.store is second.options.store
    with sa.ConversationStore(path) as store:
        assert {c.id for c in store.list_conversations()} == {first.id, second.id}
    assert sa.Session(agent_of("x"), store=tmp_path / "other.db").options.store.database.name != (
        first.options.store.database.name
    )


def test_a_file_that_was_deleted_is_made_anew(path: str) -> None:
    old = opened(path, "x")
    old.send("lost").result()
    old.close()
    Path(path).unlink()
    with opened(path, "x") as session:
        assert session.messages == []
    assert Path(path).exists()


def test_the_registry_takes_a_path_too(path: str) -> None:
    session = sa.sessions.start(agent_of("one"), "c1", store=path)
    session.send("hi").result()
    sa.sessions.stop("c1")
    again = sa.sessions.start(agent_of("two"), "c1", store=path)
    assert [m.text for m in again.messages] == ["hi", "one"]
    sa.sessions.stop("c1")


def test_what_another_process_has_is_not_given_back(path: str) -> None:
    holding = (
        "import sagents_nb as sa, sys; "
        f"s = sa.Session.open('c1', agent=sa.Agent('demo'), store={path!r}, create=True); "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "open"
        with pytest.raises(sa.Owned):
            opened(path, "x")
        other.communicate("")


def test_a_store_is_closed_at_the_end_of_its_block(path: str) -> None:
    with sa.ConversationStore(path) as store:
        store.create_conversation(id="c1")
    with pytest.raises(sa.StoreError):
        store.get_conversation("c1")


def test_what_is_no_store_is_refused_by_name() -> None:
    with pytest.raises(sa.ConfigurationError, match=r"Session.open\(store=…\) is a sa"):
        opened(5)
    with pytest.raises(sa.ConfigurationError):
        opened("postgres:/me:secret@host/x")


def test_files_in_a_folder_are_there_again_when_the_conversation_is(tmp_path: Path) -> None:
    kept = {"store": tmp_path / "chats.db", "filesystem": tmp_path / "trip"}
    writes = call("write_file", file_path="/notes/plan.md", content="# Oslo")
    agent = sa.Agent(sa.ScriptedModel([writes, "Written.", "Again."]))
    with sa.Session(agent, "trip", **kept) as session:
        session.send("Write the plan.").result(PATIENCE)
        assert (tmp_path / "trip/notes/plan.md").read_text() == "# Oslo"
        fork = session.fork("other")
        fork.files.write("/notes/plan.md", "# Bergen")
    with sa.Session.open("trip", agent=agent, **kept) as again:
        assert again.files.read("/notes/plan.md").content == "# Oslo"
    with sa.Session.open("new", agent=agent, create=True, store=kept["store"]) as other:
        assert other.files.list() == []


@pytest.mark.parametrize("wrong", [3, b"folder", ["folder"], "", "s3://key:secret@bucket/x"])
def test_what_is_neither_a_filesystem_nor_a_folder_is_refused(wrong: Any, tmp_path: Path) -> None:
    with sa.ConversationStore(tmp_path / "chats.db") as store:
        with pytest.raises(sa.ConfigurationError, match=r"folder|path") as told:
            sa.Session(agent_of("x"), filesystem=wrong, store=store)
        assert "secret" not in str(told.value)
        assert store.list_conversations() == []
