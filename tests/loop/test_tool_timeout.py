"""A time limit for all tools of an agent."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.loop import invoke as invoking
from tests.middleware.delegating import helper, parent_of, task
from tests.talking import PATIENCE, agent_of, call, results, until


async def never() -> str:
    """Never answers."""
    await asyncio.Event().wait()
    return ""


def test_tools_without_a_limit_of_their_own_have_the_agents() -> None:
    own = sa.tool(name="own", timeout=0.02)(never)
    agent = agent_of(
        call("never"), call("own", "c2"), "done", tools=[never, own], tool_timeout=0.01
    )
    assert results(agent.run("go").state) == [
        "Timed out after 0.01 seconds.",
        "Timed out after 0.02 seconds.",
    ]


def test_who_waits_for_a_sub_agent_waits_as_long_as_it_works() -> None:
    worker = helper(call("never"), "done", tools=[never])
    parent = parent_of(task(), "done", subagents=[worker], tool_timeout=0.05)
    state = parent.run("go").state
    assert results(state) == ["done"]
    assert results(sa.State(messages=worker.model.requests[1].messages)) == [  # type: ignore[union-attr]
        "Timed out after 0.05 seconds."
    ]


@pytest.mark.parametrize("limit", [0, -1, True, "5", float("nan")])
def test_a_limit_is_a_number_of_seconds(limit: Any) -> None:
    with pytest.raises(
        sa.ConfigurationError, match=r"tool_timeout=….* is a number of seconds over 0"
    ):
        agent_of(tool_timeout=limit)


def test_a_tool_that_takes_no_notice_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoking, "GRACE", 0.02)
    told: list[Any] = []
    ends = threading.Event()

    async def stubborn() -> str:
        while not ends.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                told.append("cancelled")
        return "at last"

    agent = agent_of(call("stubborn"), "done", tools=[stubborn], tool_timeout=0.01)
    session = sa.Session(agent)
    result = session.send("go").result(PATIENCE)
    assert results(result.state) == [
        "Timed out after 0.01 seconds. It may still be working in the background."
    ]
    assert (result.text, told) == ("done", ["cancelled"])
    assert session.info()["abandoned_tools"] == ["stubborn"]
    ends.set()
    until(lambda: not session.info()["abandoned_tools"])


@pytest.mark.parametrize("error", [SystemExit("bye"), ValueError("bye"), TimeoutError("bye")])
def test_what_a_tool_with_a_limit_raises_is_its_answer(error: BaseException) -> None:
    async def fails() -> str:
        raise error

    agent = agent_of(call("fails"), "done", tools=[fails], tool_timeout=PATIENCE)
    assert results(agent.run("go").state) == [f"{type(error).__name__}: bye"]


def test_what_a_tool_gives_that_ends_when_its_time_is_over_is_taken() -> None:
    async def patient() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as far as I came"
        return ""

    agent = agent_of(call("patient"), "done", tools=[patient], tool_timeout=0.01)
    assert results(agent.run("go").state) == ["as far as I came"]


def test_a_stopped_run_stops_a_tool_with_a_limit() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def long() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    session = sa.Session(agent_of(call("long"), tools=[long], tool_timeout=PATIENCE))
    run = session.send("go")
    assert begun.wait(PATIENCE)
    session.cancel()
    assert run.result(PATIENCE).status == "cancelled"
    assert ended.wait(PATIENCE)
