"""Tools: plain functions that a model may call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import msgspec

from .errors import ConfigurationError
from .schema import Arguments, short_description

RunOn = Literal["pool", "loop", "main"]

# Both providers refuse other names (Messages and Responses API references, 2026).
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolOutput:
    """What a tool gives back when text alone does not say it.

    ``content`` goes to the model. ``artifact`` stays in the process, for people and code.
    ``update`` is a partial update of the state: ``{"todos": [...]}`` replaces the todos,
    ``{"metadata": {...}}`` merges. ``is_error`` marks content as an error. If all calls of a
    turn give ``terminate``, the run ends there and the model is not asked again.
    """

    __slots__ = ("artifact", "content", "is_error", "metadata", "terminate", "update")

    def __init__(
        self,
        content: Any = "",
        *,
        artifact: Any = None,
        update: Mapping[str, Any] | None = None,
        is_error: bool = False,
        metadata: Mapping[str, Any] | None = None,
        terminate: bool = False,
    ) -> None:
        self.content = content
        self.artifact = artifact
        self.update = dict(update or {})
        self.is_error = is_error
        self.metadata = dict(metadata or {})
        self.terminate = terminate


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told of a tool. ``schema`` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Tool:
    """A function with a name, a description and a JSON Schema; made by :func:`tool`.

    It stays callable as the function it wraps. ``run_on`` says where it runs: "loop" for
    async functions, "pool" (a worker thread) for sync ones, "main" for the process's main
    thread. ``timeout`` is in seconds. ``idempotent`` means that running it again with the
    same arguments is harmless. A turn with a ``sequential`` tool runs its calls one after the
    other. ``display_text`` is what people read while it runs: text, or
    a function of the arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        schema: dict[str, Any] | None = None,
        idempotent: bool = False,
        run_on: RunOn | None = None,
        timeout: float | None = None,
        sequential: bool = False,
        display_text: str | Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{self.name!r} is no tool name: use 1 to 64 letters, digits, '_' or '-'; "
                "give one with @tool(name=…)."
            )
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        if run_on is not None and run_on not in ("pool", "loop", "main"):
            raise ConfigurationError(
                f"Tool {self.name!r}: run_on is 'pool', 'loop' or 'main', not {run_on!r}."
            )
        if self.is_async and run_on == "main":
            raise ConfigurationError(
                f"Tool {self.name!r} is async and would not run on the main thread; "
                "make it a plain function, or leave out run_on."
            )
        self.run_on: RunOn = run_on or ("loop" if self.is_async else "pool")
        self.arguments = Arguments(self.name, function)
        self.description = description or short_description(function)
        self.schema = schema or self.arguments.schema
        self.idempotent = idempotent
        self.timeout = timeout
        self.sequential = sequential
        self.display_text = display_text
        self.spec = ToolSpec(self.name, self.description, self.schema)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without a run."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def display(self, arguments: dict[str, Any]) -> str | None:
        """What people read for a call with these arguments; they may be any a model sent."""
        if not callable(self.display_text):
            return self.display_text
        try:
            return self.display_text(arguments)
        except Exception:
            return None


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    schema: dict[str, Any] | None = None,
    idempotent: bool = False,
    run_on: RunOn | None = None,
    timeout: float | None = None,
    sequential: bool = False,
    display_text: str | Callable[[dict[str, Any]], str] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function; with or without options.

    The description is the docstring, the schema comes from the annotations, parameter
    descriptions from ``msgspec.Meta`` or the docstring's Args section. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a function without annotations.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add(2, 3), add.name, add.schema["required"]
    (5, 'add', ['a'])
    """
    if function is None:
        return lambda f: Tool(f, **options)
    return Tool(function, **options)


def as_tool(value: Any) -> Tool:
    """``value`` if it is a tool, a tool of it if it is a function."""
    if isinstance(value, Tool):
        return value
    if callable(value):
        return Tool(value)
    raise ConfigurationError(f"{value!r} is no tool; decorate a function with @tool.")
