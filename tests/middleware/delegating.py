"""Scripted parents and sub-agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sagents_nb as sa
from sagents_nb.events import Event, SubagentEvent
from tests.talking import agent_of, call


def task(id: str = "t1", kind: str = "helper", instructions: str = "Do it.", **more: Any) -> Any:
    """A parent's wish to delegate."""
    return call("task", id, instructions=instructions, subagent_type=kind, **more)


@sa.tool
def look(what: str = "") -> str:
    """Look."""
    return f"saw {what}"


def helper(*turns: Any, name: str = "helper", **options: Any) -> sa.SubAgentConfig:
    """A configured sub-agent whose model says these turns."""
    given = {
        "description": f"The {name}.",
        "system_prompt": f"You are the {name}.",
        "tools": [look],
        "model": sa.ScriptedModel(turns, chunk=1000),
    }
    return sa.SubAgentConfig(name=name, **{**given, **options})


def parent_of(*turns: Any, subagents: Iterable[Any] = (), **options: Any) -> sa.Agent:
    """A bare agent with these sub-agents, whose model says these turns.

    General-purpose sub-agents share its model, so their turns stand among its own.
    """
    known = ("block_middleware", "max_parallel", "max_depth", "include_task_list")
    delegating = {name: options.pop(name) for name in known if name in options}
    middleware = [sa.SubAgents(subagents, **delegating), *options.pop("middleware", ())]
    return agent_of(*turns, middleware=middleware, **options)


def requests_of(agent: Any) -> list[Any]:
    """What the scripted model of an agent or a configuration was asked."""
    requests: list[Any] = agent.model.requests
    return requests


def wrapped(events: Iterable[Event], id: str | None = None) -> list[Any]:
    """The events of sub-agents, as they happened there."""
    return [
        event.event
        for event in events
        if isinstance(event, SubagentEvent) and id in (None, event.sub_agent_id)
    ]
