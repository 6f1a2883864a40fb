from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import MessageUpdate, ToolExecutionEnd
from sagents_nb.loop import tool_calls as calls
from tests.grammar import ungrammatical
from tests.talking import (
    PATIENCE,
    agent_of,
    call,
    ctrl_c,
    of,
    results,
    roles,
    run,
    session_of,
    unanswered,
    until,
)


def cancel_on(session: sa.Session, kind: str, count: int = 1) -> list[Any]:
    """Cancel at the first event of that type; what is heard meanwhile."""
    heard: list[Any] = []

    def listen(event: Any) -> None:
        heard.append(event)
        if event.type == kind and len([e for e in heard if e.type == kind]) <= count:
            session.cancel()

    session.subscribe(listen)
    return heard


@pytest.mark.spec("A2.3.2", "P13", "P18")
def test_cancelling_while_the_model_speaks_keeps_what_it_said_and_marks_it() -> None:
    model = sa.ScriptedModel(["one two three four", "again"], delay=0.001)
    session = sa.Session(sa.Agent(model, replace_default_middleware=True))
    heard = cancel_on(session, "message_update")
    result = session.send("go").result()
    assert (result.status, session.status) == ("cancelled", "cancelled")
    said = session.messages[-1]
    assert said.stop_reason == "aborted"
    assert said.error
    assert said.text == of(MessageUpdate, heard)[0].delta.text
    assert not ungrammatical(heard)
    assert session.send("and again").result().text == "again"


@pytest.mark.spec("P13", "S1.11.8")
def test_cancelling_a_tool_stops_it_and_keeps_the_finished_messages() -> None:
    begun, stopped = threading.Semaphore(0), threading.Event()

    async def forever() -> None:
        begun.release()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    def quick() -> str:
        return "quick"

    turns = [call("quick"), [call("forever", "c2"), call("forever", "c3")], "next"]
    session = session_of(*turns, tools=[forever, quick])
    heard: list[Any] = []
    session.subscribe(heard.append)
    running = session.send("go")
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE)
    session.cancel()
    assert running.result().status == "cancelled"
    assert stopped.wait(PATIENCE)
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant", "tool"]
    assert results(session.state)[0] == "quick"
    assert [e.status for e in of(ToolExecutionEnd, heard)] == ["completed", *["cancelled"] * 2]
    assert not unanswered(session.messages)
    assert not ungrammatical(heard)
    assert session.send("next").result().text == "next"


def test_a_sync_tool_sees_that_it_is_cancelled_and_its_late_result_is_ignored() -> None:
    began, saw, left = threading.Event(), threading.Event(), threading.Event()

    def work(ctx: sa.ToolContext) -> str:
        began.set()
        while not ctx.cancelled:
            time.sleep(0.001)
        saw.set()
        ctx.progress("too late")
        left.set()
        return "too late"

    session = session_of(call("work"), tools=[work])
    heard: list[Any] = []
    session.subscribe(heard.append)
    running = session.send("go")
    assert began.wait(PATIENCE)
    running.cancel()
    assert running.result().status == "cancelled"
    assert saw.wait(PATIENCE)
    assert left.wait(PATIENCE)
    assert "too late" not in results(session.state)
    assert all(event.type != "tool_execution_update" for event in heard)


@pytest.mark.spec("S1.11.8", "P13")
def test_a_tool_that_will_not_stop_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "GRACE", 0.02)
    go_home = asyncio.Event()

    async def stubborn(ctx: sa.ToolContext) -> str:
        while not go_home.is_set():
            try:
                await go_home.wait()
            except asyncio.CancelledError:
                continue
        return "finally"

    session = session_of(call("stubborn"), "next", tools=[stubborn])
    heard = cancel_on(session, "tool_execution_start")
    assert session.send("go").result().status == "cancelled"
    told = len(heard)
    release = sa.tool(name="release", run_on="loop")(lambda: go_home.set())
    agent_of(call("release"), "ok", tools=[release]).run("let it go")
    assert session.send("next").result().text == "next"
    assert not ungrammatical(heard[:told])
    assert not ungrammatical(heard[told:])
    assert "finally" not in results(session.state)


def test_cancelling_twice_does_not_wait_for_slow_cleaning_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "GRACE", 3600)
    working, cleaning = threading.Semaphore(0), threading.Event()
    done = asyncio.Event()

    async def slow() -> None:
        working.release()
        try:
            await asyncio.sleep(3600)
        finally:
            cleaning.set()
            await done.wait()

    session = session_of([call("slow"), call("slow", "c2")], tools=[slow])
    heard: list[Any] = []
    session.subscribe(heard.append)
    running = session.send("go")
    assert all(working.acquire(timeout=PATIENCE) for _ in range(2))
    session.cancel()
    assert cleaning.wait(PATIENCE)
    session.cancel()
    assert running.result().status == "cancelled"
    assert not ungrammatical(heard)
    assert not unanswered(session.messages)


def test_cancelling_at_once_keeps_what_was_said() -> None:
    session = session_of("never")
    running = session.send("precious words")
    running.cancel()
    assert running.result().status in ("cancelled", "completed")
    assert session.messages[0].text == "precious words"


def test_a_run_that_is_cancelled_before_its_first_step_ends_too() -> None:
    session = session_of("never")

    async def at_once() -> None:  # before the runtime loop turns again
        session.send("precious words")
        session.cancel()

    agent_of(call("at_once"), "ok", tools=[at_once]).run("go")
    assert session.current_run is not None
    assert session.current_run.result().status == "cancelled"
    assert (session.status, session.messages[0].text) == ("cancelled", "precious words")


@pytest.mark.spec("A2.3.2")
def test_cancelling_what_is_idle_does_nothing() -> None:
    session = session_of("hi")
    session.cancel()
    assert session.status == "idle"
    finished = session.send("go")
    finished.result()
    finished.cancel()
    session.cancel()
    assert (session.status, finished.status) == ("idle", "completed")


def test_cancelling_an_awaiting_task_cancels_the_run() -> None:
    started = threading.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(3600)

    session = session_of(call("forever"), tools=[forever])

    async def give_up() -> None:
        running = session.send("go")
        waiting = asyncio.ensure_future(running)
        await asyncio.sleep(0)  # a task that was never begun could not cancel anything
        while not started.is_set():
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await asyncio.wrap_future(running.future)).status == "cancelled"

    run(give_up())
    assert not unanswered(session.messages)


@pytest.mark.parametrize("how", ["agent", "run"])
def test_an_interrupt_of_the_kernel_while_waiting_cancels_the_run(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    started = threading.Event()

    async def forever() -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    from sagents_nb.runtime.main_thread import main_thread

    def interrupted(future: Any, timeout: float | None = None) -> Any:
        started.wait(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(main_thread, "wait", interrupted)
    agent = agent_of(call("forever"), tools=[forever])
    session = sa.Session(agent)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go") if how == "agent" else session.send("go").result()
    assert stopped.wait(PATIENCE)


def test_something_cancelled_inside_a_tool_does_not_look_like_a_cancelled_run() -> None:
    async def confused() -> None:
        task = asyncio.ensure_future(asyncio.sleep(3600))
        task.cancel()
        await task

    result = agent_of(call("confused"), "I see", tools=[confused]).run("go")
    assert (result.status, result.text) == ("completed", "I see")
    assert "CancelledError" in results(result.state)[0]


def test_a_call_in_a_thread_that_nobody_can_end_says_that_its_function_may_go_on() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        go_on.wait(PATIENCE)

    async def wait() -> None:
        begun.release()
        await asyncio.sleep(3600)

    session = session_of([call("hold"), call("wait", "c2")], tools=[hold, wait])
    running = session.send("go")
    assert begun.acquire(timeout=PATIENCE)
    assert begun.acquire(timeout=PATIENCE)
    session.cancel()
    running.result()
    go_on.set()
    assert results(session.state) == [
        "Cancelled: the run was cancelled; its function may go on in its thread.",
        "Cancelled: the run was cancelled.",
    ]


BEGINNINGS: dict[str, Callable[[sa.Agent], Any]] = {
    "agent.run": lambda agent: agent.run("go"),
    "agent.stream": lambda agent: list(agent.stream("go")),
    "agent.map": lambda agent: agent.map(["go"], progress=False),
    "session.send": lambda agent: sa.Session(agent).send("go"),
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("timeout", [None, 0.01], ids=["cancelled", "out of time"])
@pytest.mark.parametrize("awaits", [False, True], ids=["a function", "of an async tool"])
def test_a_thread_of_a_tool_begins_no_run_once_its_call_was_stopped(
    awaits: bool, timeout: float | None, begin: Callable[[sa.Agent], Any]
) -> None:
    inner = agent_of("Never.")
    begun, stopped, ended = threading.Event(), threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def work() -> None:
        begun.set()
        assert stopped.wait(PATIENCE)
        try:
            begin(inner)
        except BaseException as error:
            raised.append(error)
        ended.set()

    async def outer() -> None:
        await asyncio.to_thread(work)

    if awaits:
        tool = sa.tool(outer, timeout=timeout)
    else:
        tool = sa.tool(work, name="outer", run_on="pool", timeout=timeout)
    session = session_of(call("outer"), "done", tools=[tool])
    running = session.send("go")
    assert begun.wait(PATIENCE)
    if timeout is None:
        session.cancel()
    assert running.result().status == ("cancelled" if timeout is None else "completed")
    stopped.set()
    assert ended.wait(PATIENCE)
    assert [str(error) for error in raised] == [
        "This call was stopped, so it begins no run any more."
    ]
    assert isinstance(raised[0], asyncio.CancelledError)
    assert inner.model.requests == []  # type: ignore[union-attr]


def write() -> str:
    """Write it."""
    return "written"


def test_nor_does_it_approve_what_waits() -> None:
    other = session_of(call("write"), "done", tools=[write], interrupt_on={"write": True})
    assert other.send("go").result().status == "interrupted"
    stopped, ended = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @sa.tool(run_on="pool", timeout=0.01)
    def outer() -> None:
        assert stopped.wait(PATIENCE)
        try:
            other.approve()
        except BaseException as error:
            raised.append(error)
        ended.set()

    agent_of(call("outer"), "done", tools=[outer]).run("go")
    stopped.set()
    assert ended.wait(PATIENCE)
    assert isinstance(raised[0], asyncio.CancelledError)
    assert other.status == "interrupted"


def send_interrupted(session: sa.Session, patch: pytest.MonkeyPatch, when: str) -> None:
    """Send it a message, and be interrupted before ``send`` is through."""
    send, interrupted = session.actor.send, threading.Event()

    def sent(*args: Any) -> Any:
        run = send(*args)
        ctrl_c()
        assert interrupted.wait(PATIENCE)
        return run

    patch.setattr(session.actor, "send", sent)
    with pytest.raises(KeyboardInterrupt):
        session.send("more", when=when)
    interrupted.set()
    patch.undo()


def test_a_run_that_nobody_gets_since_its_sender_was_interrupted_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99], delay=60)))
    send_interrupted(session, monkeypatch, "queue")
    until(lambda: session.status == "cancelled")


def test_one_that_others_began_goes_on_when_whoever_steers_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99] * 2, delay=60)))
    active = session.send("go")
    send_interrupted(session, monkeypatch, "steer")
    assert [each.message.text for each in session.queued] == ["more"]
    assert active.status == "running"
    active.cancel()
    assert active.result().status == "cancelled"


def test_a_task_that_it_left_on_the_callers_loop_is_refused_and_the_loop_goes_on() -> None:
    inner, tasks = agent_of("Never."), list[asyncio.Task[Any]]()

    async def main() -> str:
        may_go_on = asyncio.Event()

        async def later() -> None:
            await may_go_on.wait()
            await inner.arun("go")

        @sa.tool(run_on="caller", timeout=0.01)
        async def outer() -> None:
            tasks.append(asyncio.ensure_future(later()))
            await asyncio.Event().wait()

        text = (await agent_of(call("outer"), "done", tools=[outer]).arun("go")).text
        may_go_on.set()
        await asyncio.wait(tasks)
        return text

    assert run(main()) == "done"
    assert tasks[0].cancelled()
    assert inner.model.requests == []  # type: ignore[union-attr]
