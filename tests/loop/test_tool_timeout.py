"""A time limit for all tools of an agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import sagents_nb as sa
from tests.middleware.delegating import helper, parent_of, task
from tests.talking import agent_of, call, results


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
    with pytest.raises(sa.ConfigurationError, match="tool_timeout is a number of seconds over 0"):
        agent_of(tool_timeout=limit)
