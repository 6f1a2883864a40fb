from __future__ import annotations

import asyncio
import threading
from typing import Any

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


@pytest.mark.spec("R4.1.7")
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


@pytest.mark.spec("P14", "S1.2.15", "R4.1.7")
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


@pytest.mark.spec("S1.2.15", "P14", "R4.1.7")
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
