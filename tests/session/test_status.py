from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import AgentShutdown
from tests.session.gates import Gate
from tests.talking import agent_of, all_of, call, of, session_of, unanswered

GATED: dict[str, Any] = {"interrupt_on": {"hold": True}}


def in_status(status: str, gate: Gate) -> sa.Session:
    """A session in that status, whose agent still has an answer."""
    if status == "running":
        session = session_of(call("hold"), "next", "next", tools=[gate.tool])
        session.send("go")
        gate.wait()
    elif status == "interrupted":
        session = session_of(call("hold"), "next", "next", tools=[gate.tool], **GATED)
        session.send("go").result()
    elif status == "cancelled":
        session = session_of(call("hold"), "next", "next", tools=[gate.tool], **GATED)
        session.send("go").result()
        session.cancel()
    elif status == "error":
        session = session_of(ConnectionError("cable"), "next")
        with pytest.raises(sa.ModelError):
            session.send("go").result()
    else:
        session = session_of("next")
    if status == "closed":
        session.close()
    assert session.status == status
    return session


OPEN = ["idle", "running", "interrupted", "cancelled", "error"]


@pytest.mark.spec("S1.11.1")
@pytest.mark.parametrize("status", OPEN)
def test_a_message_is_welcome_in_every_status_and_none_is_lost(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    run = session.send("a word")
    gate.open()
    assert run.result().status == "completed"
    assert "a word" in [m.text for m in session.messages]
    assert not unanswered(session.messages)


@pytest.mark.spec("S1.11.1")
@pytest.mark.parametrize("status", [*OPEN, "closed"])
def test_only_what_waits_can_be_answered(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    if status == "interrupted":
        gate.open()
        assert session.resume(sa.Approve()).result().text == "next"
        return
    for answer in (
        lambda: session.resume(sa.Approve()),
        session.approve,
        session.reject,
    ):
        with pytest.raises(sa.NotRunning):
            answer()
    assert session.status == status


@pytest.mark.spec("S1.11.1")
@pytest.mark.parametrize("status", [*OPEN, "closed"])
def test_cancelling_ends_what_runs_or_waits_and_nothing_else(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    run = session.current_run
    session.cancel()
    if status == "running":
        assert run is not None
        assert run.result().status == "cancelled"
    active = ("running", "interrupted")
    assert session.status == ("cancelled" if status in active else status)


@pytest.mark.spec("P12", "S1.11.1")
@pytest.mark.parametrize("status", OPEN)
def test_reset_stops_what_runs_and_forgets_everything_but_the_identity(
    status: str, gate: Gate
) -> None:
    session = in_status(status, gate)
    run, agent, id = session.current_run, session.agent, session.id
    session.reset()
    assert (session.status, session.state, session.interrupt) == ("idle", sa.State(), None)
    assert (session.agent, session.id) == (agent, id)
    if status == "running":
        assert run is not None
        assert run.result().status == "cancelled"
    gate.open()
    # A late result of the stopped run changes nothing.
    assert session.send("fresh").result().text == "next"
    assert [m.text for m in session.messages] == ["fresh", "next"]


@pytest.mark.spec("S1.11.1")
@pytest.mark.parametrize("status", OPEN)
def test_state_and_agent_can_be_replaced_unless_a_run_is_active(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    other = agent_of("from the other")
    state = sa.State(messages=[sa.Message.user("old"), sa.Message.assistant("times")])
    if status == "running":
        with pytest.raises(sa.Busy):
            session.replace(agent=other, state=state)
        return
    session.replace(agent=other, state=state)
    assert (session.status, session.interrupt) == ("idle", None)
    assert session.send("new").result().text == "from the other"
    assert [m.text for m in session.messages] == ["old", "times", "new", "from the other"]


def test_a_replaced_state_that_waits_is_waiting() -> None:
    gate = Gate()
    waiting = in_status("interrupted", gate)
    session = sa.Session(waiting.agent)
    session.replace(state=waiting.state)
    assert session.status == "interrupted"
    gate.open()
    assert session.approve().result().text == "next"  # type: ignore[union-attr]


@pytest.mark.spec("S1.11.1")
@pytest.mark.parametrize("status", [*OPEN, "closed"])
def test_reading_works_in_every_status(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    info = session.info()
    assert (info["id"], info["status"], info["messages"]) == (
        session.id,
        status,
        len(session.messages),
    )
    assert session.export_state()["version"] == 1
    assert session.todos == []
    assert status in repr(session)


# closing


@pytest.mark.parametrize("status", OPEN)
def test_a_closed_session_refuses_work_and_tells_why_it_closed(status: str, gate: Gate) -> None:
    session = in_status(status, gate)
    heard: list[Any] = []
    session.subscribe(heard.append)
    run = session.current_run
    session.close("out of patience")
    session.close()
    (shutdown,) = of(AgentShutdown, heard)
    assert shutdown.reason == "out of patience"
    assert shutdown.last_activity_at <= shutdown.shutdown_at
    assert heard[-1].status == "closed"
    if status == "running":
        assert run is not None
        assert run.result().status == "cancelled"
    for work in (
        lambda: session.send("x"),
        lambda: session.steer("x"),
        lambda: session.follow_up("x"),
        session.retry,
        session.reset,
        session.replace,
    ):
        with pytest.raises(sa.NotRunning):
            work()


def test_what_is_closed_in_the_middle_of_a_run_leaves_a_valid_history(gate: Gate) -> None:
    session = in_status("running", gate)
    queued = session.send("too late")
    session.close()
    assert not unanswered(session.messages)
    assert "session was closed" in session.messages[-1].tool_results[0].text
    assert queued.result().status == "cancelled"
    again = sa.Session.restore(session.export_state(), agent=agent_of("welcome back"))
    assert again.send("hello").result().text == "welcome back"


def test_what_waits_when_a_session_closes_still_waits_when_it_is_restored(gate: Gate) -> None:
    session = in_status("interrupted", gate)
    session.close()
    again = sa.Session.restore(session.export_state(), agent=session.agent)
    gate.open()
    assert again.approve().result().text == "next"  # type: ignore[union-attr]


def test_streams_end_when_the_session_closes_and_at_once_when_it_is_closed() -> None:
    session = session_of("a")
    session.send("go").result()
    stream = session.events()
    session.close()
    first, second = all_of(stream), all_of(session.events())
    assert [e.type for e in first] == [e.type for e in second]
    assert first[-1].type == "status_changed"


def test_a_listener_may_close_the_session_and_the_others_still_hear_of_it() -> None:
    session = session_of("a")
    heard: list[str] = []
    session.subscribe(lambda event: session.close() if event.type == "turn_start" else None)
    session.subscribe(lambda event: heard.append(event.type))
    assert session.send("go").result().status == "cancelled"
    assert heard[-2:] == ["agent_shutdown", "status_changed"]


def test_a_session_needs_an_agent() -> None:
    with pytest.raises(sa.ConfigurationError, match="is an Agent"):
        sa.Session("demo")  # type: ignore[arg-type]
