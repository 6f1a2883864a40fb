from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar
from types import FrameType
from typing import Any
from weakref import WeakSet

import pytest

import sagents_nb as sa
from sagents_nb.events import ToolExecutionEnd
from tests.talking import PATIENCE, agent_of, call, of, results, streamed, types


def meeting(size: int) -> sa.Tool:
    """A sync tool that returns once ``size`` calls of it run at the same time."""
    together = threading.Barrier(size)

    @sa.tool(name="meet")
    def meet(who: str) -> str:
        together.wait(PATIENCE)
        return who

    return meet


def test_the_calls_of_a_turn_run_at_the_same_time() -> None:
    turn = [call("meet", f"c{n}", who=str(n)) for n in range(4)]
    agent = agent_of(turn, "done", tools=[meeting(4)], max_parallel_tools=4)
    assert results(agent.run("go").state) == ["0", "1", "2", "3"]


def test_no_more_run_at_once_than_are_allowed() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1

    turn = [call("work", f"c{n}") for n in range(9)]
    agent_of(turn, "done", tools=[work], max_parallel_tools=3).run("go")
    assert most == 3


@pytest.mark.spec("P14", "S1.2.15")
def test_results_come_in_the_order_of_the_calls_and_ends_as_they_happen() -> None:
    released = [asyncio.Event() for _ in range(4)]
    released[3].set()

    async def work(n: int) -> int:
        await released[n].wait()
        if n:
            released[n - 1].set()
        return n

    turn = [call("work", f"c{n}", n=n) for n in range(4)]
    events = streamed(agent_of(turn, "done", tools=[work]))
    ends = [e.tool_call_id for e in of(ToolExecutionEnd, events)]
    assert ends == ["c3", "c2", "c1", "c0"]
    end = next(e for e in events if e.type == "turn_end")
    assert [r.tool_call_id for r in end.tool_results] == ["c0", "c1", "c2", "c3"]  # type: ignore[attr-defined]


@pytest.mark.spec("S1.2.15", "P14")
def test_async_sync_failing_and_unknown_calls_share_one_message_in_call_order() -> None:
    async def later() -> str:
        await asyncio.sleep(0.005)
        return "later"

    def now() -> str:
        return "now"

    def fail() -> str:
        raise ValueError("no")

    names = ["now", "later", "nowhere", "fail", "later", "now"]
    turn = [call(name, f"c{n}") for n, name in enumerate(names)]
    state = agent_of(turn, "done", tools=[later, now, fail]).run("go").state
    assert len([m for m in state.messages if m.role == "tool"]) == 1
    shown = [(r.name, r.is_error) for r in state.messages[2].tool_results]
    assert shown == [(name, name in ("nowhere", "fail")) for name in names]


def test_every_call_starts_before_any_waits_for_another() -> None:
    turn = [call("meet", f"c{n}", who=str(n)) for n in range(2)]
    events = streamed(agent_of(turn, "done", tools=[meeting(2)]))
    tools = [t for t in types(events) if t.startswith("tool_execution")]
    assert tools == ["tool_execution_start"] * 2 + ["tool_execution_end"] * 2


@pytest.mark.spec("P15")
def test_changes_of_the_state_are_applied_in_the_order_of_the_calls() -> None:
    last = asyncio.Event()

    async def put(value: int) -> Any:
        if value == 1:
            await last.wait()
        last.set()
        return sa.ToolOutput("", update={"metadata": {"value": value, str(value): True}})

    turn = [call("put", "c1", value=1), call("put", "c2", value=2)]
    state = agent_of(turn, "done", tools=[put]).run("go").state
    assert state.metadata == {"value": 2, "1": True, "2": True}


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_call_sees_what_those_that_have_ended_changed(at_once: int) -> None:
    """With two at once the first goes on until the third has begun."""
    third = asyncio.Event()
    seen: dict[int, Any] = {}

    async def put(n: int, ctx: sa.ToolContext) -> Any:
        seen[n] = dict(ctx.state.metadata)
        if n == 3:
            third.set()
        elif n == 1 and at_once == 2:
            await third.wait()
        return sa.ToolOutput("", update={"metadata": {str(n): True, "last": n}})

    turn = [call("put", f"c{n}", n=n) for n in (1, 2, 3, 4)]
    result = agent_of(turn, "done", tools=[put], max_parallel_tools=at_once).run("go")
    assert seen[1] == {}
    assert seen[3] == (
        {"1": True, "2": True, "last": 2} if at_once == 1 else {"2": True, "last": 2}
    )
    assert result.state.metadata == {"1": True, "2": True, "3": True, "4": True, "last": 4}


def test_many_runs_at_once_share_the_workers_without_mixing_anything_up() -> None:
    def double(n: int) -> int:
        return 2 * n

    async def all_at_once() -> list[Any]:
        def agent(k: int) -> sa.Agent:
            turn = [call("double", f"c{i}", n=10 * k + i) for i in range(3)]
            return agent_of(turn, "ok", tools=[double])

        return await asyncio.gather(*(agent(k).arun("go") for k in range(40)))

    for k, result in enumerate(asyncio.run(all_at_once())):
        assert results(result.state) == [str(2 * (10 * k + i)) for i in range(3)]


def test_a_quick_tool_has_ended_before_anything_else_has_its_turn() -> None:
    heard: list[str] = []

    async def quick() -> str:
        heard.append("the tool")
        return "done"

    class Hears(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            asyncio.get_running_loop().call_soon(heard.append, "something else")

        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: sa.RunContext) -> None:
            heard.append("its end")

    agent_of(call("quick"), "done", tools=[quick], middleware=[Hears()]).run("go")
    assert heard[:2] == ["the tool", "its end"]


def test_a_tool_is_in_one_task_of_its_own_from_its_beginning_to_its_end() -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def work() -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        return "done"

    class Looks(sa.Middleware):
        def after_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            tasks.append(asyncio.current_task())

    agent_of(call("work"), "done", tools=[work], middleware=[Looks()]).run("go")
    run, begun, ended, run_again = tasks
    assert begun is ended is not None
    assert run is run_again is not begun


def test_a_tool_may_limit_its_time_before_it_waits_for_the_first_time() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "too late"
        return "in time"

    result = agent_of(call("work"), "done", tools=[work]).run("go")
    assert results(result.state) == ["too late"]
    assert result.status == "completed"


def test_what_a_tool_sets_in_its_context_is_its_own() -> None:
    said = ContextVar("said", default="nothing")
    seen: list[str] = []

    async def work(what: str) -> str:
        seen.append(said.get())
        said.set(what)
        return said.get()

    turn = [call("work", f"c{n}", what=str(n)) for n in range(2)]
    agent = agent_of(turn, call("work", "c2", what="2"), "done", tools=[work])
    assert results(agent.run("go").state) == ["0", "1", "2"]
    assert seen == ["nothing"] * 3


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there tasks begin at once by themselves")
def test_what_the_loop_is_to_call_while_a_tool_is_being_begun_is_called() -> None:
    wanted: list[int] = []
    called: list[int] = []

    def step(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is WeakSet.add.__code__:  # as in the middle of making a task
            wanted.append(len(wanted))
            asyncio.get_running_loop().call_soon(called.append, wanted[-1])

    class Looks(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            sys.setprofile(step)

    async def work() -> str:
        sys.setprofile(None)
        await asyncio.sleep(0)
        return "done"

    result = agent_of(call("work"), "done", tools=[work], middleware=[Looks()]).run("go")
    assert results(result.state) == ["done"]
    assert called == wanted != []
