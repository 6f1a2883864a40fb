from __future__ import annotations

from collections.abc import Iterator

import pytest

import sagents_nb as sa
from sagents_nb.session import Sessions
from tests.talking import agent_of, in_threads


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
