from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import AgentEnd, ToolExecutionEnd, TurnEnd
from tests.grammar import ungrammatical
from tests.session.gates import Gate
from tests.talking import (
    PATIENCE,
    all_of,
    call,
    of,
    results,
    roles,
    run,
    session_of,
    streamed,
    types,
    unanswered,
)

SKIPPED = "Skipped: a message came from the user instead."


class Two:
    """Two tools; ``look`` steers a message in while it runs."""

    def __init__(self, sequential: bool) -> None:
        self.ran: list[str] = []
        self.steer: Callable[[], None] = lambda: None

        @sa.tool(sequential=sequential)
        async def look(n: int) -> str:
            """Look."""
            self.ran.append(f"look {n}")
            if n == 0:
                self.steer()
            await asyncio.sleep(0)
            return f"saw {n}"

        self.look = look


def steered(rule: str, sequential: bool) -> tuple[Two, sa.Session, list[Any]]:
    """A session whose first of three calls makes a message wait."""
    two = Two(sequential)
    turn = [call("look", f"c{n}", n=n) for n in range(3)]
    session = session_of(turn, "as you wish", tools=[two.look])
    session.steering_batch = rule
    two.steer = lambda: session.steer("stop that")
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    return two, session, heard


# what a steered message does to the calls of a turn


@pytest.mark.spec("A2.2.2", "A2.2.3", "P6")
def test_by_default_the_calls_that_have_not_started_are_skipped() -> None:
    two, session, heard = steered("skip", sequential=True)
    assert two.ran == ["look 0"]
    assert results(session.state) == ["saw 0", SKIPPED, SKIPPED]
    assert [r.is_error for r in session.messages[2].tool_results] == [False, True, True]
    assert [e.status for e in of(ToolExecutionEnd, heard)] == ["completed", "skipped", "skipped"]
    assert types(heard).count("tool_execution_start") == 3
    assert [m.text for m in session.messages if m.role == "user"] == ["go", "stop that"]
    assert roles(session.messages) == ["user", "assistant", "tool", "user", "assistant"]
    assert not unanswered(session.messages)
    assert not ungrammatical(heard)


@pytest.mark.spec("A2.2.2")
def test_the_steered_message_comes_right_after_the_next_turn_start() -> None:
    _, _, heard = steered("skip", sequential=True)
    kinds = types(heard, "message_queued")
    turn = [position for position, kind in enumerate(kinds) if kind == "turn_start"][1]
    told = [e for e in heard if e.type != "message_queued"]
    assert kinds[turn - 1] == "turn_end"
    assert [e.message.text for e in told[turn + 1 : turn + 3]] == ["stop that"] * 2


@pytest.mark.spec("A2.2.3", "P6")
@pytest.mark.parametrize("sequential", [False, True])
def test_with_the_other_rule_the_batch_is_finished_first(sequential: bool) -> None:
    two, session, heard = steered("wait", sequential)
    assert two.ran == ["look 0", "look 1", "look 2"]
    assert results(session.state) == ["saw 0", "saw 1", "saw 2"]
    assert roles(session.messages) == ["user", "assistant", "tool", "user", "assistant"]
    assert not ungrammatical(heard)


def test_there_are_two_rules() -> None:
    session = session_of("x")
    assert session.steering_batch == "skip"
    with pytest.raises(sa.ConfigurationError, match="'skip' or 'wait'"):
        session.steering_batch = "some"


@pytest.mark.spec("A2.2.4")
def test_calls_that_run_together_all_finish_and_what_waits_for_a_place_is_skipped() -> None:
    gate = Gate()
    turn = [call("hold", f"c{n}") for n in range(3)]
    session = session_of(turn, "ok", tools=[gate.tool], max_parallel_tools=2)
    running = session.send("go")
    gate.wait()
    session.steer("stop that")
    gate.open()
    running.result()
    assert results(session.state) == ["held", "held", SKIPPED]
    assert not unanswered(session.messages)


@pytest.mark.spec("A2.2.4")
def test_one_sequential_tool_makes_the_whole_turn_sequential() -> None:
    running, most, order = 0, 0, []

    async def work(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(n)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return n

    tools = [sa.tool(name="many")(work), sa.tool(name="one", sequential=True)(work)]
    turn = [call("many", "a", n=0), call("many", "b", n=1), call("one", "c", n=2)]
    events = streamed(session_of(turn, "ok", tools=tools).agent)
    assert (most, order) == (1, [0, 1, 2])
    kinds = [t for t in types(events) if t.startswith("tool_execution")]
    assert kinds == ["tool_execution_start", "tool_execution_end"] * 3
    assert [r.text for r in of(TurnEnd, events)[0].tool_results] == ["0", "1", "2"]


# the queues


@pytest.mark.spec("A2.2.1")
def test_steering_before_a_run_is_one_message_a_turn_or_all_in_one() -> None:
    session = session_of("1", "2")
    session.steer("a")
    session.steer("b")
    session.send("go").result()
    assert [m.text for m in session.messages] == ["go", "a", "1", "b", "2"]
    session = session_of("1")
    session.steering_mode = "all"
    session.steer("a")
    session.steer("b")
    session.send("go").result()
    assert [m.text for m in session.messages] == ["go", "a", "b", "1"]


@pytest.mark.spec("A2.2.6")
def test_queues_survive_a_cancellation_and_are_emptied_by_a_reset() -> None:
    def held() -> tuple[sa.Session, Gate]:
        gate = Gate()
        session = session_of(call("hold"), "1", "2", "3", tools=[gate.tool])
        first = session.send("go")
        gate.wait()
        session.steer("steered")
        session.follow_up("followed")
        first.cancel()
        first.result()
        gate.open()
        return session, gate

    session, _ = held()
    assert session.info()["queued"] == 2
    session.send("again").result()
    texts = [m.text for m in session.messages if m.role == "user"]
    assert texts == ["go", "again", "steered", "followed"]
    session, _ = held()
    session.reset()
    assert session.info()["queued"] == 0


@pytest.mark.spec("A2.3.1")
@pytest.mark.parametrize("queue", ["steer", "follow_up"])
def test_after_an_answer_a_retry_goes_on_with_what_is_queued(queue: str) -> None:
    session = session_of("first", "1", "2")
    session.send("go").result()
    getattr(session, queue)("one")
    getattr(session, queue)("two")
    session.retry().result()
    assert roles(session.messages)[2:] == ["user", "assistant"] * 2
    assert [m.text for m in session.messages][2:] == ["one", "1", "two", "2"]
    with pytest.raises(sa.NotRunning):
        session.retry()


@pytest.mark.spec("A2.3.1")
def test_a_session_without_messages_has_nothing_to_go_on_with() -> None:
    session = session_of("x")
    session.steer("waits")
    with pytest.raises(sa.NotRunning):
        session.retry()
    assert session.send("go").result().text == "x"


@pytest.mark.spec("A2.3.1")
def test_what_insists_on_an_idle_session_is_told_how_to_talk_to_a_busy_one() -> None:
    gate = Gate()
    session = session_of(call("hold"), "ok", tools=[gate.tool])
    running = session.send("go")
    gate.wait()
    with pytest.raises(sa.Busy, match=r"'queue'.*'steer'"):
        session.send("now", when="raise")
    with pytest.raises(sa.Busy):
        session.retry()
    gate.open()
    running.result()


@pytest.mark.spec("A2.3.5")
def test_who_waits_for_a_run_comes_after_those_who_listen_to_its_end() -> None:
    session = session_of("ok")
    heard: list[str] = []
    over: list[bool] = []

    def listen(event: Any) -> None:
        heard.append(event.type)
        if session.current_run is not None:
            over.append(session.current_run.done)

    session.subscribe(listen)
    assert session.send("go").result().text == "ok"
    assert heard[-2:] == ["agent_end", "status_changed"]
    assert set(over) == {False}


@pytest.mark.spec("A2.3.5")
def test_who_waits_for_a_run_that_is_over_goes_on_at_once() -> None:
    running = session_of("ok").send("go")
    running.result()
    assert running.result(0).text == "ok"

    async def again() -> str:
        return (await running).text

    assert run(again()) == "ok"


@pytest.mark.spec("A2.3.5")
def test_a_reset_forgets_messages_queues_and_the_error() -> None:
    session = session_of(ConnectionError("cable"), "ok")
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    session.steer("waits")
    session.follow_up("waits too")
    session.reset()
    assert (session.messages, session.error, session.info()["queued"]) == ([], None, 0)
    assert session.send("again").result().text == "ok"
    assert [m.text for m in session.messages] == ["again", "ok"]


@pytest.mark.spec("A2.3.5")
def test_a_reset_during_a_run_stops_it_and_forgets_the_calls_at_work() -> None:
    """Where the original refuses: here a running run is stopped first (P12)."""
    gate = Gate()
    session = session_of(call("hold"), "ok", tools=[gate.tool])
    running = session.send("go")
    gate.wait()
    behind = session.send("behind")
    assert session.pending_tool_calls == ["c1"]
    session.reset()
    assert (session.pending_tool_calls, session.stream_message) == ([], None)
    assert (session.messages, session.status, session.info()["queued"]) == ([], "idle", 0)
    gate.open()
    assert running.result().status == behind.result().status == "cancelled"
    assert session.send("again").result().text == "ok"
    assert [m.text for m in session.messages] == ["again", "ok"]


@pytest.mark.spec("A2.1.6")
def test_a_new_subscriber_hears_how_it_stands_and_nothing_of_settings() -> None:
    session = session_of("one", "two")
    session.send("go").result()
    heard: list[Any] = []
    unsubscribe = session.subscribe(heard.append)
    session.steering_mode = session.follow_up_mode = "all"
    session.steering_batch = "wait"
    assert [(event.type, event.reason) for event in heard] == [("status_changed", "snapshot")]
    heard.clear()
    unsubscribe()
    session.send("more").result()
    assert heard == []


@pytest.mark.spec("A2.4.2", "A2.3.7")
def test_a_subscriber_may_be_async_and_hears_one_event_after_the_other() -> None:
    done = threading.Event()
    heard: list[str] = []
    inside = most = 0

    async def listen(event: Any) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        heard.append(event.type)
        inside -= 1
        if event.type == "agent_end":
            done.set()
        if event.type == "turn_start":
            raise ValueError("and nobody is hurt")

    told: list[str] = []
    session = session_of("ok")
    session.subscribe(lambda event: told.append(event.type))
    session.subscribe(listen)
    session.send("go").result()
    assert done.wait(PATIENCE)
    assert most == 1
    assert heard == told[: len(heard)]
    assert "agent_end" in heard


# without a session


@pytest.mark.spec("A2.2.2", "A2.2.3", "A2.4.1")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("rule", ["skip", "wait"])
def test_the_low_level_loop_has_both_rules(rule: Any, is_async: bool) -> None:
    two = Two(sequential=True)
    waiting: list[sa.Message] = []
    two.steer = lambda: waiting.extend([sa.Message.user("stop that"), sa.Message.user("and that")])

    def take() -> list[sa.Message]:
        return [waiting.pop(0)] if waiting else []

    async def take_later() -> list[sa.Message]:
        await asyncio.sleep(0)
        return take()

    turn = [call("look", f"c{n}", n=n) for n in range(3)]
    config = sa.AgentLoopConfig(
        sa.ScriptedModel([turn, "one", "two"]),
        get_steering_messages=take_later if is_async else take,
        steering_batch=rule,
    )
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[two.look]), config))
    messages = of(AgentEnd, events)[0].messages
    skipped = [r.text for m in messages for r in m.tool_results].count(SKIPPED)
    assert (skipped, len(two.ran)) == ((2, 1) if rule == "skip" else (0, 3))
    texts = [m.text for m in messages if m.role != "tool"][2:]
    assert texts == ["stop that", "one", "and that", "two"]
    assert not ungrammatical(events)


@pytest.mark.spec("A2.2.5")
def test_the_low_level_loop_asks_for_follow_ups_only_when_it_would_end() -> None:
    waiting = [sa.Message.user("then"), sa.Message.user("and then")]
    two = Two(sequential=False)
    model = sa.ScriptedModel([call("look", n=1), "1", "2", "3"])
    asked_at: list[int] = []

    def take() -> Any:
        asked_at.append(len(model.requests))
        return waiting.pop(0) if waiting else None

    config = sa.AgentLoopConfig(model, get_follow_up_messages=take)
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[two.look]), config))
    assert asked_at == [2, 3, 4]
    texts = [m.text for m in of(AgentEnd, events)[0].messages][3:]
    assert texts == ["1", "then", "2", "and then", "3"]
    assert types(events).count("agent_end") == 1
