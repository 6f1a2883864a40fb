"""Waiting for a run: by several at once, inside of its own tools, and on the caller's loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.futures import CancelScope
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, run, session_of, until

# several who wait


def test_one_of_two_tasks_that_await_a_run_may_be_cancelled() -> None:
    gate = Gate()

    async def both() -> str:
        session = session_of(call("hold"), "done", tools=[gate.tool])
        waited = session.send("go")

        async def wait() -> sa.RunResult:
            return await waited

        one, other = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await asyncio.to_thread(gate.wait)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert session.status == "running"
        gate.open()
        return (await other).text

    assert run(both()) == "done"


@pytest.mark.parametrize("waits_in_a_thread", [False, True])
def test_the_last_of_them_stops_it(waits_in_a_thread: bool) -> None:
    gate = Gate()

    async def both() -> str:
        session = session_of(call("hold"), "done", tools=[gate.tool])
        waited = session.send("go")

        async def wait() -> sa.RunResult:
            return await waited

        tasks = [asyncio.ensure_future(wait()) for _ in range(2)]
        await asyncio.to_thread(gate.wait)
        if waits_in_a_thread:
            with pytest.raises(TimeoutError):
                await asyncio.to_thread(waited.result, 0.001)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        status = (await asyncio.to_thread(waited.result)).status
        gate.open()
        return status

    assert run(both()) == "cancelled"


def test_who_awaits_a_run_in_a_program_has_its_result_when_a_person_stops_it() -> None:
    """In a cell they are interrupted; a server's requests are to be answered."""
    gate = Gate()

    async def wait() -> str:
        waited = session_of(call("hold"), "done", tools=[gate.tool]).send("go")
        task = asyncio.ensure_future(asyncio.wait_for(waited, PATIENCE))
        await asyncio.to_thread(gate.wait)
        waited.stop()
        gate.open()
        return (await task).status

    assert run(wait()) == "cancelled"


def test_a_cancelled_scope_takes_along_the_runs_that_nobody_else_waits_for() -> None:
    scope, slow = CancelScope(), sa.ScriptedModel(["Hello! " * 99] * 2, delay=60)
    alone, shared = (sa.Session(sa.Agent(slow)).send("go") for _ in range(2))
    context = copy_context()
    context.run(scope.enter)
    threads = [
        threading.Thread(target=context.copy().run, args=[waited.result])
        for waited in (alone, shared)
    ]
    for thread in threads:
        thread.start()
    until(lambda: {alone, shared} == set(scope.waited_for))
    with shared.waited():
        scope.cancel()
        until(lambda: alone.status == "cancelled")
        assert shared.status == "running"
    shared.cancel()
    for thread in threads:
        thread.join(PATIENCE)


def test_who_waits_in_a_thread_keeps_a_run_from_being_stopped_by_a_task() -> None:
    gate = Gate()

    async def both() -> str:
        agent = agent_of(call("hold"), "done", tools=[gate.tool])
        session = sa.Session(agent)
        waited = session.send("go")
        threaded = asyncio.get_running_loop().run_in_executor(None, waited.result)

        async def wait() -> sa.RunResult:
            return await waited

        task = asyncio.ensure_future(wait())
        await asyncio.to_thread(gate.wait)
        task.cancel()
        await asyncio.wait([task])
        gate.open()
        return (await threaded).text

    assert run(both()) == "done"


# a session inside of its own tool


def said_inside(use: Any) -> str:
    """What comes of using a session inside a sync tool of a run of its own."""
    said: list[str] = []

    def inside() -> str:
        try:
            use(session)
        except sa.Busy as error:
            said.append(str(error))
            raise
        return "fine"

    session = session_of(call("inside"), "done", "again", tools=[inside])
    result = session.send("go").result(PATIENCE)
    assert result.messages[2].tool_results[0].is_error is bool(said)
    return said[0] if said else "fine"


def test_waiting_for_the_run_that_waits_for_the_tool_is_refused_at_once() -> None:
    told = said_inside(lambda session: session.current_run.result())
    assert "inside one of its own tools" in told
    told = said_inside(lambda session: session.send("and then").result())
    assert "inside one of its own tools" in told


def test_waiting_for_a_run_that_was_cancelled_inside_its_own_tool_ends() -> None:
    """It is told so, unless the run has ended already: it does not wait for this tool."""
    said: list[str] = []

    def inside() -> str:
        running = session.current_run
        session.cancel()
        try:
            assert running is not None
            said.append(running.result(PATIENCE).status)
        except sa.Busy:
            said.append("busy")
        return "fine"

    session = session_of(call("inside"), "done", tools=[inside])
    assert session.send("go").result(PATIENCE).status == "cancelled"
    until(lambda: said)
    assert said[0] in ("busy", "cancelled")


@pytest.mark.parametrize("name", ["close", "reset", "transfer"])
def test_a_session_is_not_ended_inside_its_own_tool(name: str) -> None:
    told = said_inside(lambda session: getattr(session, name)())
    assert "inside one of its own tools" in told
    assert "once the run has ended" in told


def test_a_tool_may_send_steer_and_cancel_without_waiting() -> None:
    assert said_inside(lambda session: session.send("and then")) == "fine"
    assert said_inside(lambda session: session.follow_up("and then")) == "fine"
    assert said_inside(lambda session: session.send("now", when="steer")) == "fine"


def test_an_async_tool_is_refused_the_same() -> None:
    said: list[str] = []

    async def inside() -> str:
        try:
            await session.send("and then")
        except sa.Busy as error:
            said.append(str(error))
        return "fine"

    session = session_of(call("inside"), "done", "again", tools=[inside])
    session.send("go").result(PATIENCE)
    assert "inside one of its own tools" in said[0]


def test_two_sessions_that_would_wait_for_each_other_are_refused() -> None:
    said: list[str] = []

    def asked(session: sa.Session) -> str:
        try:
            return session.send("from the other").result(PATIENCE).text
        except sa.Busy as error:  # whichever waits last
            said.append(str(error))
            return "not now"

    def ask_second() -> str:
        return asked(second)

    def ask_first() -> str:
        return asked(first)

    first = session_of(call("ask_second"), "done", "later", tools=[ask_second])
    second = session_of(call("ask_first"), "second", tools=[ask_first])
    assert first.send("go").result(PATIENCE).text == "done"
    assert len(said) == 1


def test_an_agent_between_them_hides_nothing() -> None:
    said: list[str] = []

    def asked(wait: Callable[[], sa.RunResult]) -> str:
        try:
            return wait().text
        except sa.Busy as error:  # whichever waits last
            said.append(str(error))
            return "not now"

    def back() -> str:
        return asked(lambda: session.send("from inside").result(PATIENCE))

    def between() -> str:
        return asked(lambda: agent_of(call("back"), "asked", tools=[back]).run("go"))

    session = session_of(call("between"), "done", "later", tools=[between])
    assert session.send("go").result(PATIENCE).text == "done"
    assert len(said) == 1


def test_a_tool_may_wait_for_another_session_and_what_it_left_behind_for_its_own() -> None:
    """Once the run has ended, nothing that it started is inside of it any more."""
    other = session_of("from the other")
    answers: list[str] = []
    ended = threading.Event()

    def work() -> str:
        def later() -> None:
            assert ended.wait(PATIENCE)
            answers.append(session.send("again").result(PATIENCE).text)

        threads.append(threading.Thread(target=copy_context().run, args=(later,)))
        threads[0].start()
        return other.send("?").result(PATIENCE).text

    threads: list[threading.Thread] = []
    session = session_of(call("work"), "done", "later", tools=[work])
    result = session.send("go").result(PATIENCE)
    assert result.messages[2].tool_results[0].text == "from the other"
    ended.set()
    threads[0].join()
    assert answers == ["later"]


# the caller's loop


class Pool:
    """Works on the loop it was made on, as a database's does."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.free = asyncio.Semaphore(1)
        self.waiting: asyncio.Future[str] = self.loop.create_future()

    async def ask(self) -> str:
        assert asyncio.get_running_loop() is self.loop
        self.loop.call_soon(self.waiting.set_result, "from the pool")
        return await self.waiting


def test_an_async_tool_on_the_callers_loop_uses_what_was_made_there() -> None:
    async def main() -> list[str]:
        pool = Pool()

        @sa.tool(run_on="caller")
        async def query(ctx: sa.ToolContext) -> str:
            assert not ctx.cancelled
            return await pool.ask()

        session = session_of(call("query"), "done", tools=[query])
        result = await session.send("go")
        other = Pool()
        pool = other
        second = await agent_of(call("query"), "done", tools=[query]).arun("go")
        return [r.messages[2].tool_results[0].text for r in (result, second)]

    assert run(main()) == ["from the pool", "from the pool"]


def test_a_queued_run_and_one_that_is_approved_run_there_too() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        seen: list[bool] = []

        @sa.tool(run_on="caller")
        async def where() -> str:
            seen.append(asyncio.get_running_loop() is loop)
            return "here"

        session = session_of(
            call("where"), "one", call("where"), "two", tools=[where], interrupt_on={"where": True}
        )
        first = session.send("go")
        await first
        await session.approve()  # type: ignore[misc]
        session.send("go again")
        await session.current_run  # type: ignore[misc]
        await session.approve()  # type: ignore[misc]
        return [str(value) for value in seen]

    assert run(main()) == ["True", "True"]


def test_where_no_loop_ran_the_tool_says_so() -> None:
    @sa.tool(run_on="caller")
    async def query() -> str:
        return "never"

    result = agent_of(call("query"), "done", tools=[query]).run("go")
    (answer,) = result.messages[2].tool_results
    assert answer.is_error
    assert "no event loop was running where the run was started" in answer.text


@pytest.mark.parametrize("late", [False, True])
def test_a_loop_that_waits_for_the_run_is_said_to_be_stuck(late: bool) -> None:
    """Also where it began to wait after the tool had begun."""

    async def main() -> sa.RunResult:
        begun = threading.Event()

        def before() -> str:
            begun.set()
            return "before"

        @sa.tool(run_on="caller")
        async def query() -> str:
            await asyncio.sleep(3600)
            return "never"

        session = session_of([call("before", "b"), call("query")], "done", tools=[before, query])
        running = session.send("go")
        if late:
            await asyncio.to_thread(begun.wait, PATIENCE)
            for _ in range(10):
                await asyncio.sleep(0.001)
        return running.result(PATIENCE)

    (_, answer) = run(main()).messages[2].tool_results
    assert answer.is_error
    assert "await the run instead of calling result()" in answer.text


@pytest.mark.parametrize("late", [False, True])
def test_a_loop_that_stopped_is_said_to_have_stopped(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it stopped after the tool had begun."""
    monkeypatch.setattr("sagents_nb.runtime.caller.LOOKED_AT_EVERY", 0.01)
    begun, stopped = threading.Event(), threading.Event()

    def before() -> str:
        stopped.wait(PATIENCE)
        return "before"

    @sa.tool(run_on="caller")
    async def query() -> str:
        begun.set()
        await asyncio.sleep(3600)
        return "never"

    first = [] if late else [call("before", "b")]
    session = session_of(*first, call("query"), "done", tools=[before, query])

    async def main() -> sa.Run:
        running = session.send("go")
        if late:
            await asyncio.to_thread(begun.wait, PATIENCE)
        return running

    loop = asyncio.new_event_loop()
    try:
        running = loop.run_until_complete(main())
        stopped.set()
        answer = running.result(PATIENCE).messages[-2].tool_results[0]
        assert answer.is_error
        assert "does not run any more; keep it running until the run has ended" in answer.text
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_a_tool_on_the_callers_loop_is_cancelled_with_its_run() -> None:
    async def main() -> tuple[str, list[str]]:
        ended: list[str] = []
        begun = asyncio.Event()

        @sa.tool(run_on="caller")
        async def query() -> str:
            begun.set()
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("ended")
            return "never"

        session = session_of(call("query"), "done", tools=[query])
        running = session.send("go")
        await begun.wait()
        session.cancel()
        status = (await running).status
        for _ in range(1000):
            if ended:
                break
            await asyncio.sleep(0.001)
        return status, ended

    assert run(main()) == ("cancelled", ["ended"])


def test_a_tool_that_uses_another_loops_object_is_told_of_run_on() -> None:
    async def main() -> str:
        lock = asyncio.Lock()
        await lock.acquire()
        waiting = asyncio.get_running_loop().create_future()

        async def query() -> str:
            return str(await waiting)

        result = await agent_of(call("query"), "done", tools=[query]).arun("go")
        waiting.cancel()
        return result.messages[2].tool_results[0].text

    assert "@tool(run_on='caller') runs it on the one that started the run" in run(main())


def test_only_an_async_function_can_run_on_the_callers_loop() -> None:
    with pytest.raises(sa.ConfigurationError, match="write 'async def'"):

        @sa.tool(run_on="caller")
        def plain() -> str:
            return "x"
