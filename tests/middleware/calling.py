"""Call a tool of a middleware as the loop does: checked arguments, and a context."""

from __future__ import annotations

from typing import Any

from sagents_nb.context import RunContext, ToolContext
from sagents_nb.events import Emitter
from sagents_nb.middleware.base import Middleware
from sagents_nb.state import State
from sagents_nb.tools import Tool, ToolOutput


def tool_of(middleware: Middleware, name: str) -> Tool:
    return next(t for t in middleware.tools() if isinstance(t, Tool) and t.name == name)


def call(
    tool: Tool, arguments: dict[str, Any], *, files: Any = None, state: State | None = None
) -> ToolOutput:
    run = RunContext(emitter=Emitter(lambda event: None), files=files)
    context = ToolContext(run, state or State(), "c1", lambda text, fraction: None)
    checked = tool.arguments.check(arguments)
    assert tool.arguments.context_parameter is not None
    checked[tool.arguments.context_parameter] = context
    output = tool(**checked)
    assert isinstance(output, ToolOutput)
    return output
