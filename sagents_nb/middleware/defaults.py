"""What an agent has unless it says otherwise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConfigurationError
from .base import Middleware
from .filesystem import FileSystem
from .human_in_the_loop import HumanInTheLoop
from .patch_tool_calls import PatchToolCalls
from .sub_agents import SubAgents
from .summarization import Summarization
from .todo_list import TodoList


def default_middleware(
    todos: Mapping[str, Any] | None,
    files: Mapping[str, Any] | None,
    sub_agents: Mapping[str, Any] | None,
    summarization: Mapping[str, Any] | None,
) -> list[Middleware]:
    """The default stack, in its order, each with its options."""
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


def human_in_the_loop(interrupt_on: Mapping[str, Any]) -> Middleware:
    """The gate over these tools, always last."""
    return HumanInTheLoop(interrupt_on)
