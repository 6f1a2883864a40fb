"""Tools: functions that a model may call, their schemas, and the check of what a model sent."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin, get_type_hints, overload

import msgspec

from .context import ToolContext
from .errors import ConfigurationError, pass_on


class Arguments(Protocol):
    """What a tool takes: its JSON ``schema``, and the check of what a model sent.

    ``context_parameter`` names the parameter that is given the :class:`ToolContext`.
    """

    schema: dict[str, Any]
    context_parameter: str | None

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments`` as they are given; raises ValueError with a sentence for the model."""


class FunctionArguments:
    """The arguments of a function, by its type hints and docstring."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        hints = _hints(name, function)
        described = _docstring_parameters(function)
        self.context_parameter: str | None = None
        fields: list[Any] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ConfigurationError(
                    f"Tool {name!r} takes *{parameter.name}; a model needs named parameters, "
                    "so list them one by one."
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ConfigurationError(
                    f"Tool {name!r}: a model names every parameter, so {parameter.name!r} cannot "
                    "stand before '/'; remove the slash."
                )
            if parameter.name not in hints:
                raise ConfigurationError(
                    f"Tool {name!r}: parameter {parameter.name!r} has no annotation; "
                    f"write for example '{parameter.name}: str'."
                )
            annotation = hints[parameter.name]
            if _is_context(annotation):
                self.context_parameter = parameter.name
                continue
            text = described.get(parameter.name)
            if text and not _has_description(annotation):
                annotation = Annotated[annotation, msgspec.Meta(description=text)]
            if parameter.default is parameter.empty:
                fields.append((parameter.name, annotation))
            else:
                fields.append((parameter.name, annotation, _default(parameter.default)))
        self._struct = msgspec.defstruct(
            f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        try:
            self.schema = _schema_of(self._struct)
            msgspec.convert({}, self._struct, dec_hook=_convert_pydantic)
        except msgspec.ValidationError:
            pass  # only that {} lacks what is required
        except TypeError as error:
            reason = str(error).strip().splitlines()[-1].rstrip(".")
            raise ConfigurationError(
                f"Tool {name!r} cannot be described ({reason}); use plain types, a dataclass, a "
                "TypedDict, a msgspec.Struct or a pydantic model."
            ) from error

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments`` converted to the annotated types.

        Numbers and booleans may come as text ("10", "true"), as models often send them.
        Raises ValueError with a sentence for the model.
        """
        try:
            checked = converted(dict(arguments), self._struct)
        except msgspec.ValidationError as error:
            raise ValueError(f"Invalid arguments: {error}") from None
        return {name: getattr(checked, name) for name in self._struct.__struct_fields__}


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    if not inspect.isroutine(function):  # a functools.partial, or an object that can be called
        function = getattr(function, "func", type(function).__call__)
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"Tool {name!r}: an annotation names something that is not there ({error}); "
            "define or import it before the tool."
        ) from error


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation is ToolContext or ToolContext in get_args(annotation)


def _has_description(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and any(
        isinstance(extra, msgspec.Meta) and extra.description for extra in get_args(annotation)[1:]
    )


def _default(value: Any) -> Any:
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return msgspec.field(default=value)


def _docstring_parameters(function: Callable[..., Any]) -> dict[str, str]:
    text = inspect.getdoc(function)
    if not text or "\n" not in text:
        return {}
    # 25 ms to import, so only for functions whose docstring can have an Args section.
    import docstring_parser

    return {
        parameter.arg_name: parameter.description.strip()
        for parameter in docstring_parser.parse(text).params
        if parameter.description
    }


def short_description(function: Callable[..., Any]) -> str:
    """The docstring up to its Args section; "" without one."""
    text = inspect.getdoc(function) or ""
    if "\n" not in text:
        return text
    import docstring_parser

    return (docstring_parser.parse(text).description or "").strip()


def _schema_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    top = described(struct)
    top.pop("title", None)
    top.setdefault("properties", {})
    return top


def described(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of a type: an object's is not a reference, others' are in ``$defs``.

    Raises TypeError for a type that has none.
    """
    (top,), components = msgspec.json.schema_components(
        [annotation], schema_hook=_pydantic_schema, ref_template="#/$defs/{name}"
    )
    found = json.loads(json.dumps([top, components]))  # plain data, no tuples, nothing shared
    top, defs = found
    _hoist(found, defs)
    if "$ref" in top:
        top = defs[top["$ref"].removeprefix("#/$defs/")]
    used = _references(top, defs, set())
    if defs := {name: schema for name, schema in defs.items() if name in used}:
        top = {**top, "$defs": defs}
    return dict(top)


def _hoist(schema: Any, defs: dict[str, Any]) -> None:
    """Move the ``$defs`` of pydantic models to the top, where their references point."""
    inner = list(schema.values()) if isinstance(schema, dict) else schema
    for item in inner if isinstance(inner, list) else ():
        _hoist(item, defs)
    if isinstance(schema, dict) and schema is not defs:
        defs.update(schema.pop("$defs", {}))


def _references(schema: Any, defs: dict[str, Any], found: set[str]) -> set[str]:
    items = schema.items() if isinstance(schema, dict) else enumerate(schema)
    for key, value in items:
        if key == "$ref" and isinstance(value, str):
            name = value.removeprefix("#/$defs/")
            if name in defs and name not in found:
                found.add(name)
                _references(defs[name], defs, found)
        elif isinstance(value, dict | list):
            _references(value, defs, found)
    return found


def _pydantic_schema(annotation: Any) -> dict[str, Any]:
    if hasattr(annotation, "model_json_schema"):
        return dict(annotation.model_json_schema())
    raise NotImplementedError


def converted(value: Any, annotation: Any) -> Any:
    """Plain data as a value of the type.

    Numbers and booleans may come as text ("10", "true"), as models often send them. Raises
    msgspec.ValidationError with what is wrong and where.
    """
    return msgspec.convert(value, annotation, strict=False, dec_hook=_convert_pydantic)


def _convert_pydantic(annotation: Any, value: Any) -> Any:
    if hasattr(annotation, "model_validate"):
        try:
            return annotation.model_validate(value)
        except ValueError as error:  # pydantic's ValidationError is one
            raise msgspec.ValidationError(str(error)) from None
    raise NotImplementedError


RunOn = Literal["pool", "loop", "main", "caller"]

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
    async functions, "pool" (a thread of its own while it runs) for sync ones, "main" for the
    process's main thread, "caller" for an async function that uses what belongs to the loop
    on which the run was started: a database pool, an HTTP session. ``timeout`` is in seconds.
    ``idempotent`` means that running it again with the same arguments is harmless. A turn with a
    ``sequential`` tool runs its calls one after the other. ``display_text`` is what people read
    while it runs: text, or a function of the arguments.
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
        self.is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(
            function
        )
        if run_on is not None and run_on not in get_args(RunOn):
            raise ConfigurationError(
                f"Tool {self.name!r}: run_on is 'pool', 'loop', 'main' or 'caller', not {run_on!r}."
            )
        if run_on == "caller" and not self.is_async:
            raise ConfigurationError(
                f"Tool {self.name!r} is no async function, so it cannot run on the caller's loop; "
                "write 'async def', or leave out run_on."
            )
        if self.is_async and run_on == "main":
            raise ConfigurationError(
                f"Tool {self.name!r} is async and would not run on the main thread; "
                "make it a plain function, or leave out run_on."
            )
        self.run_on: RunOn = run_on or ("loop" if self.is_async else "pool")
        self.arguments: Arguments = FunctionArguments(self.name, function)
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
        except BaseException as error:
            pass_on(error)
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
