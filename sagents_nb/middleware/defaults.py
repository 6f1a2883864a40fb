"""What an agent has unless it says otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ConfigurationError
from ..tools import Tool
from .base import Middleware, middleware_id
from .filesystem import FileSystem
from .human_in_the_loop import UNSAID, HumanInTheLoop, said_of
from .patch_tool_calls import PatchToolCalls
from .sub_agents import SubAgents
from .summarization import Summarization
from .todo_list import TodoList


def default_middleware(
    todos: Mapping[str, Any] | None,
    files: Mapping[str, Any] | None,
    sub_agents: Mapping[str, Any] | None,
    summarization: Mapping[str, Any] | None,
    named: Sequence[Any] = (),
) -> list[Middleware]:
    """The default stack, in its order, each with its options.

    ``named`` are further sub-agents.
    """
    if named:
        sub_agents = {**(sub_agents or {})}
        sub_agents["subagents"] = [*sub_agents.get("subagents", ()), *named]
    return [
        _made(TodoList, "todo_options", todos),
        _made(FileSystem, "filesystem_options", files),
        _made(SubAgents, "subagent_options", sub_agents),
        _made(Summarization, "summarization_options", summarization),
        _shared(PatchToolCalls),
    ]


@functools.cache
def _shared(kind: Callable[..., Middleware]) -> Middleware:
    """The one without options, with its tools: it holds nothing of an agent or a conversation."""
    return kind()


def _made(
    kind: Callable[..., Middleware], option: str, given: Mapping[str, Any] | None
) -> Middleware:
    if not given:
        return _shared(kind)
    try:
        return kind(**given)
    except TypeError as error:
        names = ", ".join(given)
        raise ConfigurationError(
            f"{option} ({names}) do not fit {kind.__name__}: {str(error).rstrip('.')}."
        ) from error


def with_gates(
    stack: list[Middleware], tools: Sequence[Tool], interrupt_on: Mapping[str, Any]
) -> list[Middleware]:
    """``stack`` with a gate, always last, over the tools of ``interrupt_on``.

    And over those that need approval and that neither it nor a gate in ``stack`` speaks of.
    """
    there = [item for item in stack if isinstance(item, HumanInTheLoop)]
    every = [interrupt_on, *(item.interrupt_on for item in there)]
    missing = {
        tool.name: True
        for tool in tools
        if tool.needs_approval and all(said_of(gates, tool.name) is UNSAID for gates in every)
    }
    if there and missing:
        if interrupt_on or len(there) > 1 or type(there[0]) is not HumanInTheLoop:
            raise ConfigurationError(
                f"{', '.join(missing)} must not run unasked; name it in the interrupt_on of "
                f"{middleware_id(there[0])}, or say False there."
            )
        whole = HumanInTheLoop({**there[0].interrupt_on, **missing})
        return [whole if item is there[0] else item for item in stack]
    if interrupt_on or missing:
        return [*stack, HumanInTheLoop({**missing, **interrupt_on})]
    return stack
