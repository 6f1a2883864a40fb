from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime
from sagents_nb.session import Sessions
from sagents_nb.store import ConversationStore
from tests.session.gates import Gate
from tests.session.hours import Hours
from tests.talking import PATIENCE, agent_of, all_of, call, in_threads


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    sessions = Sessions()
    yield sessions
    for id in sessions.list():
        sessions.stop(id)


@pytest.mark.spec("S1.11.17")
def test_starting_twice_gives_the_running_one(sessions: Sessions) -> None:
    agent = agent_of("hi")
    first = sessions.start(agent, id="conversation-1")
    assert sessions.start(agent, id="conversation-1") is first
    assert sessions.get("conversation-1") is first
    assert first.send("?").result().text == "hi"


@pytest.mark.spec("S1.11.17")
def test_starting_from_many_threads_at_once_makes_one(sessions: Sessions) -> None:
    agent = agent_of()
    started = in_threads(16, lambda index: sessions.start(agent, id=f"c-{index % 2}"))
    assert len(set(map(id, started))) == 2
    assert sessions.count() == 2


@pytest.mark.spec("S1.11.17")
def test_one_that_runs_or_asks_is_live_and_goes_on_with_the_agent_it_has(
    sessions: Sessions, gate: Gate
) -> None:
    turns = [call("hold"), call("look", "c2"), "done"]
    tools = [gate.tool, sa.Tool(lambda: "", name="look")]
    agent = agent_of(*turns, tools=tools, interrupt_on={"look": True})
    session = sessions.start(agent, id="a")
    run = session.send("go")
    gate.wait()
    assert sessions.start(agent_of("another's"), id="a") is session
    assert session.status == "running"
    gate.open()
    run.result()
    assert sessions.start(agent_of("another's"), id="a") is session
    assert (session.status, session.agent) == ("interrupted", agent)
    assert session.approve().result().text == "done"  # type: ignore[union-attr]


@pytest.mark.spec("S1.11.17")
def test_a_stored_one_is_opened_once_by_many_threads(
    sessions: Sessions, store: ConversationStore
) -> None:
    before = sa.Session(agent_of("hi"), "a", store=store)
    before.send("go").result()
    before.close()
    started = in_threads(8, lambda index: sessions.start(agent_of("on"), id="a", store=store))
    assert {id(session) for session in started} == {id(sessions.get("a"))}
    assert sessions.get("a").send("again").result().text == "on"
    assert [m.text for m in sessions.get("a").messages] == ["go", "hi", "again", "on"]


@pytest.mark.spec("S1.11.15")
def test_sessions_are_listed_by_pattern_and_counted(sessions: Sessions) -> None:
    for name in ("conversation-2", "conversation-1", "job-1"):
        sessions.start(agent_of(), id=name)
    assert sessions.list("conversation-*") == ["conversation-1", "conversation-2"]
    assert sessions.list() == ["conversation-1", "conversation-2", "job-1"]
    assert sessions.count() == 3


@pytest.mark.spec("S1.11.15")
def test_what_is_not_there_is_not_found(sessions: Sessions) -> None:
    assert sessions.info("nobody") is None
    for attempt in (sessions.get, sessions.stop):
        with pytest.raises(sa.NotFound, match="nobody"):
            attempt("nobody")


@pytest.mark.spec("S1.11.17")
def test_a_stopped_or_closed_session_is_gone_and_can_be_started_anew(sessions: Sessions) -> None:
    first = sessions.start(agent_of(), id="a")
    sessions.stop("a")
    assert first.status == "closed"
    assert sessions.count() == 0
    second = sessions.start(agent_of(), id="a")
    assert second is not first
    second.close()
    assert sessions.list() == []
    with pytest.raises(sa.NotFound):
        sessions.get("a")


def test_options_of_a_session_can_be_given_when_it_starts(sessions: Sessions) -> None:
    state = sa.State(messages=[sa.Message.user("before")])
    session = sessions.start(agent_of(), id="a", state=state, scope="alice")
    assert (session.messages, session.scope) == (list(state.messages), "alice")
    assert sessions.info("a")["messages"] == 1  # type: ignore[index]


def test_the_public_registry_is_one_for_the_process() -> None:
    session = sa.sessions.start(agent_of(), id="test-registry-public")
    try:
        assert sa.sessions.get("test-registry-public") is session
    finally:
        sa.sessions.stop("test-registry-public")


def test_a_new_session_of_an_old_name_has_files_of_its_own() -> None:
    agent = sa.Agent(sa.ScriptedModel([]))
    first = sa.Session(agent, id="again")
    first.files.write("/a.md", "old")
    first.close()
    assert sa.Session(agent, id="again").files.list() == []
    assert first.files.read("/a.md").content == "old"


# those that rest


class Resting:
    """A session that rests, because nobody used it; who listens heard of it."""

    def __init__(self, session: sa.Session, hours: Hours) -> None:
        self._rests = threading.Event()
        session.subscribe(self._hear)
        session.send("go").result()
        hours.pass_by(60)
        assert self._rests.wait(PATIENCE)

    def _hear(self, event: Any) -> None:
        if event.type == "status_changed" and event.status == "closed":
            self._rests.set()


@pytest.mark.spec("S1.11.15", "S1.11.17")
def test_a_session_that_rests_is_found_and_wakes_when_it_is_needed(
    sessions: Sessions, hours: Hours
) -> None:
    session = sessions.start(agent_of("a", "b"), id="a", inactivity_timeout=60)
    Resting(session, hours)
    assert session.status == "closed"
    assert (sessions.list(), sessions.count()) == (["a"], 1)
    assert sessions.info("a")["status"] == "closed"  # type: ignore[index]
    assert sessions.get("a") is session
    assert sessions.start(agent_of(), id="a") is session
    assert sessions.get("a").send("again").result().text == "b"
    assert [m.text for m in session.messages] == ["go", "a", "again", "b"]


def test_a_stored_session_is_needed_again_the_moment_it_rests(store: ConversationStore) -> None:
    """Its conversation is let go first, then taken again."""
    session = sa.Session(agent_of(*"abc"), id="a", store=store, inactivity_timeout=None)
    session.send("go").result()
    for text in "bc":
        runtime.call(session.actor.rest, "inactivity")
        assert session.send("again").result().text == text
    assert session.status == "idle"


def test_a_session_that_is_stopped_while_it_rests_is_gone_and_its_streams_end(
    sessions: Sessions, hours: Hours
) -> None:
    session = sessions.start(agent_of("a"), id="a", inactivity_timeout=60)
    stream = session.events()
    Resting(session, hours)
    sessions.stop("a")
    assert all_of(stream)[-1].type == "status_changed"
    assert sessions.info("a") is None
    with pytest.raises(sa.NotRunning, match="closed"):
        session.send("too late")


def test_a_session_that_was_closed_is_let_go(sessions: Sessions) -> None:
    gone = weakref.ref(sessions.start(agent_of(), id="a"))
    sessions.get("a").close()
    assert sessions.count() == 0
    runtime.call(lambda: None)
    gc.collect()
    assert gone() is None


# crashes


class Crash(BaseException):
    """What no hook may raise."""


class Broken(sa.Middleware):
    """Crashes, once."""

    def __init__(self) -> None:
        self.times = 1

    def before_model(self, state: sa.State, ctx: Any) -> None:
        if self.times:
            self.times -= 1
            raise Crash("boom")


@pytest.mark.spec("S1.11.7")
@pytest.mark.parametrize("kept", [False, True])
def test_a_session_whose_run_crashed_is_there_and_begins_clean(
    sessions: Sessions, store: ConversationStore, kept: bool
) -> None:
    agent = agent_of("b", middleware=[Broken()])
    around: dict[str, Any] = {"store": store} if kept else {}
    session = sessions.start(agent, id="a", **around)
    run = session.send("go")
    with pytest.raises(sa.SagentsError):
        run.result(PATIENCE)
    assert session.status == "error"
    again = sessions.start(agent, id="a", **around)
    assert again is session
    assert again.send("on").result().text == "b"
    assert (again.status, again.error) == ("idle", None)


def test_a_session_that_was_made_otherwise_is_taken_in_and_none_is_pushed_out(
    sessions: Sessions,
) -> None:
    made, other = sa.Session(agent_of(), "c"), sa.Session(agent_of(), "c")
    sessions.add(made)
    sessions.add(made)
    assert sessions.get("c") is made
    with pytest.raises(sa.ConfigurationError, match="'c' is live here already"):
        sessions.add(other)
    made.close()
    sessions.add(other)
    assert sessions.get("c") is other
