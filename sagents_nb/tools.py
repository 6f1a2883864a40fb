"""Tools: functions that a model may call, their schemas, and the check of what a model sent.

Type hints become JSON Schema, and what a model sent values of them. msgspec reads what it knows,
the rest is read by pydantic where that is installed (openai and anthropic bring it): its
``Field`` and validators, ``Path``, unions of models or of dataclasses.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)
from weakref import WeakKeyDictionary

import msgspec

from . import kinds
from .context import ToolContext
from .errors import ConfigurationError, pass_on
from .serialization import read_as
from .text import said_by, text_or_why


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
        texts = _docstring_parameters(_underlying(function))
        self.context_parameter: str | None = None
        self._fields: dict[str, Any] = {}  # the parameters that pydantic's Field is the default of
        fields: list[Any] = []
        defaults: dict[str, Any] = {}
        for parameter in _parameters(function):
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
            if _is_field(parameter.default):
                self._fields[parameter.name] = parameter.default
            annotation, required, default = _with_default(annotation, parameter)
            text = description_of(annotation) or texts.get(parameter.name)
            try:
                annotation = readable(annotation)
            except (TypeError, ImportError) as error:
                reason = str(error).strip().splitlines()[-1].rstrip(".")
                if type_name(annotation).endswith("Context"):
                    reason += "; what a tool knows of its run is a ToolContext"
                raise ConfigurationError(
                    f"Tool {name!r}: {parameter.name!r} cannot be described ({reason}); use plain "
                    "types, a dataclass, a TypedDict, a msgspec.Struct or a pydantic model."
                ) from error
            field = msgspec.NODEFAULT
            if not required:
                with contextlib.suppress(Exception):  # of what JSON cannot hold, or shows itself
                    defaults[parameter.name] = plain(default, annotation)
                field = msgspec.field(default_factory=partial(_anew, default))
            if text:
                annotation = Annotated[annotation, msgspec.Meta(description=text)]
            fields.append((parameter.name, annotation, field))
        self._struct = msgspec.defstruct(
            f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
        self.schema = described(self._struct)
        self.schema.pop("title", None)
        properties = self.schema.setdefault("properties", {})
        for parameter_name, default in defaults.items():
            properties[parameter_name]["default"] = default

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments`` converted to the annotated types.

        Numbers and booleans may come as text ("10", "true"), lists and objects as JSON text, as
        models often send them. Raises ValueError with a sentence for the model.
        """
        checked = read_arguments(arguments, self._struct)
        return msgspec.structs.asdict(checked)

    def defaults(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What a call by hand leaves out and ``= Field(…)`` says; raises TypeError as Python does.

        Python itself would give the function the Field.
        """
        if not self._fields:
            return {}
        given = inspect.signature(function).bind(*args, **kwargs).arguments
        left = {name: field for name, field in self._fields.items() if name not in given}
        for name, field in left.items():
            if field.is_required():
                raise TypeError(f"missing a required argument: {name!r}")
        return {n: field.get_default(call_default_factory=True) for n, field in left.items()}


_MADE = 512  # of so many functions at most, so that none is kept for good by what it takes
# By code, since a function that others make anew each time has the same one.
_made: WeakKeyDictionary[types.CodeType, tuple[Any, FunctionArguments]] = WeakKeyDictionary()


def _arguments_of(name: str, function: Callable[..., Any]) -> FunctionArguments:
    """The arguments of a function, made once for as long as it says the same.

    To make them takes longer than all else of making an agent.
    """
    inner = inspect.unwrap(function, stop=lambda wrapper: hasattr(wrapper, "__signature__"))
    plain = inner.__func__ if isinstance(inner, types.MethodType) else inner
    if not isinstance(plain, types.FunctionType) or hasattr(plain, "__signature__"):
        return FunctionArguments(name, function)
    given = [*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values()]
    if any(isinstance(default, list | dict | set) for default in given):  # it may change
        return FunctionArguments(name, function)
    defaults = [(type(default), default) for default in given]
    # As text, an annotation means what its name stands for now.
    bound = isinstance(function, types.MethodType), inner is plain, plain.__qualname__
    said = (name, bound, _hints(name, function), function.__doc__, defaults)
    before = _made.get(plain.__code__)
    if before is not None and _is_same(before[0], said):
        return before[1]
    if len(_made) >= _MADE:
        _made.clear()
    arguments = FunctionArguments(name, function)
    _made[plain.__code__] = said, arguments
    return arguments


def _is_same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # what is in an Annotated may not like to be compared
        return False


def read_arguments(arguments: Mapping[str, Any], annotation: Any) -> Any:
    """What a model sent as a value of the type; raises ValueError with a sentence for it."""
    given = arguments
    first: msgspec.ValidationError | None = None
    while True:
        try:
            return converted(given, annotation)
        except msgspec.ValidationError as error:
            first = first or error
            place = _ARGUMENT.search(str(error))
            text = given.get(place[1]) if place else None
            if place is None or not isinstance(text, str) or (said := _decoded(text)) == text:
                raise ValueError(f"Invalid arguments: {first}") from None
            given = {**given, place[1]: said}  # and no other, which may be meant as text


def _underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a :func:`functools.partial`, else what was given."""
    while isinstance(function, partial):
        function = function.func
    return function


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    function = _underlying(function)
    if not inspect.isroutine(function):  # an object that can be called
        function = type(function).__call__
    try:
        return get_type_hints(function, include_extras=True, localns=_names_around(function))
    except NameError as error:
        raise ConfigurationError(
            f"Tool {name!r}: an annotation names something that is not there ({error}); "
            "define or import it before the tool."
        ) from error
    except BaseException as error:  # of an expression, or an object, of somebody's own
        pass_on(error)
        raise ConfigurationError(
            f"Tool {name!r}: an annotation cannot be read ({said_by(error)}); use plain types, a "
            "dataclass, a TypedDict, a msgspec.Struct or a pydantic model."
        ) from error


def _names_around(function: Callable[..., Any]) -> dict[str, Any] | None:
    """The local names of the function that is just defining this one.

    An annotation that is a text, as all are under ``from __future__ import annotations``, may
    name what is defined there; Python itself looks among a module's names alone.
    """
    outer, inside, _ = getattr(function, "__qualname__", "").rpartition(".<locals>.")
    frame = inspect.currentframe() if inside else None
    while frame is not None:
        if frame.f_code.co_qualname == outer:
            return {**getattr(function, "__globals__", {}), **frame.f_locals}
        frame = frame.f_back
    return None


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a function is defined in a class, and wants an object of it first."""
    where, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if not inspect.isfunction(function) or not where or where.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.name in ("self", "cls") and first.annotation is first.empty


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    # A partial that was dressed as its function still takes fewer arguments.
    dressed = not isinstance(function, partial)
    try:
        signature = inspect.signature(function, follow_wrapped=dressed)
    except ValueError as error:  # of C code
        raise ConfigurationError(f"{function!r} does not tell its parameters ({error}).") from None
    parameters = list(signature.parameters.values())
    return parameters[1:] if is_method(function) else parameters


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    # By identity: a class of somebody's own may compare as it likes.
    return any(part is ToolContext for part in (annotation, *get_args(annotation)))


def _with_default(annotation: Any, parameter: inspect.Parameter) -> tuple[Any, bool, Any]:
    """The type, whether it is required, and its default; ``= Field(…)`` says more than one."""
    default = parameter.default
    if _is_field(default):
        annotation = Annotated[annotation, default]
        if default.is_required():
            return annotation, True, None
        return annotation, False, default.get_default(call_default_factory=True)
    return annotation, default is parameter.empty, default


def _is_field(default: Any) -> bool:
    return type(default).__name__ == "FieldInfo" and hasattr(default, "is_required")


def _anew(default: Any) -> Any:
    """A call gets a list of its own."""
    return copy.copy(default) if isinstance(default, list | dict | set) else default


class JSONArguments:
    """An object of a JSON Schema, for a handler that takes its properties by name.

    What a model sent is checked by all that the schema says, but for its ``format``.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], handler: Callable[..., Any]) -> None:
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            raise ConfigurationError(
                f"Tool {name!r}: a tool's schema is that of an object, such as "
                '{"type": "object", "properties": {"city": {"type": "string"}}}.'
            )
        from .json_schema import JSONSchema  # seldom, and it imports more

        self.schema = {"properties": {}, **schema}
        self._check = JSONSchema(self.schema, f"Tool {name!r}")
        hints = _hints(name, handler)
        self.context_parameter = next((n for n, hint in hints.items() if _is_context(hint)), None)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments`` as the schema wants them; raises ValueError with a sentence for the model.

        As with :class:`FunctionArguments`, what is no text may come as one.
        """
        for name in self.schema.get("required", ()):
            if name not in arguments:
                raise ValueError(f"Invalid arguments: Object missing required field `{name}`")
        closed = self.schema.get("additionalProperties") is False
        known = self.schema["properties"]
        for name in arguments:
            if closed and name not in known and "patternProperties" not in self.schema:
                raise ValueError(f"Invalid arguments: Object contains unknown field `{name}`")
        try:
            return self._check.checked(arguments)
        except ValueError as error:
            raise ValueError(f"Invalid arguments: {error}") from None


def _docstring_parameters(function: Callable[..., Any]) -> dict[str, str]:
    return _docstring(inspect.getdoc(function) or "")[1]


def short_description(function: Callable[..., Any]) -> str:
    """The docstring up to its Args section; "" without one."""
    return _docstring(inspect.getdoc(function) or "")[0]


@functools.lru_cache(256)  # a tool asks twice, and of the same function there are many
def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the Args section, and what is said of each parameter."""
    if "\n" not in text:
        return text, {}
    # 25 ms to import, so only for docstrings that can have an Args section.
    import docstring_parser

    parsed = docstring_parser.parse(text)
    about = {each.arg_name: (each.description or "").strip() for each in parsed.params}
    return (parsed.description or "").strip(), {k: text for k, text in about.items() if text}


# What msgspec passes over in silence, and pydantic reads.
_OF_PYDANTIC = ("pydantic", "pydantic_core", "annotated_types")


class _ReadByPydantic(type):
    """A type for msgspec that stands for one which only pydantic can read."""

    adapter: Any

    def __instancecheck__(cls, value: Any) -> bool:
        return True  # what the adapter made is right


def readable(annotation: Any) -> Any:
    """``annotation``, or what stands for it where only pydantic can read it.

    Raises TypeError for a type that neither can read.
    """
    try:
        return _readable(annotation)
    except (TypeError, ImportError):
        raise
    except BaseException as error:  # of a class of somebody's own, that is asked what it is
        pass_on(error)
        raise TypeError(f"it cannot be looked at: {said_by(error)}") from error


def type_name(annotation: Any) -> str:
    """What a type is called in a sentence; of what will not say it, that of its class.

    >>> type_name(int), type_name(list[str] | None)
    ('int', 'list[str] | None')
    """
    try:
        return getattr(annotation, "__name__", None) or f"{text_or_why(annotation):.100}"
    except BaseException as error:
        pass_on(error)
        return type(annotation).__name__


def _readable(annotation: Any) -> Any:
    found = list(_metadata(annotation, set()))
    if any(_of_pydantic(extra) for extra in found):
        return _stand_in(annotation)
    try:
        described(annotation)
        with contextlib.suppress(msgspec.ValidationError):  # only that this is none
            converted({}, annotation)
    except NameError as error:  # of a class that is defined in a function, as its module's are not
        raise TypeError(
            f"{error}, of what a class in a function names; define both in the module"
        ) from None
    except TypeError as error:
        try:
            return _stand_in(annotation)
        except (TypeError, ImportError):
            raise error from None
    return _with_formats(annotation)


# msgspec names no format for a time that may be without a zone, and models then guess one.
_DATETIME = Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})]


def _with_formats(annotation: Any) -> Any:
    """The type with what its JSON Schema should say besides."""
    if annotation is datetime:
        return _DATETIME
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(map(_with_formats, get_args(annotation)))]  # noqa: UP007
    if get_origin(annotation) is Annotated:
        base, *extras = get_args(annotation)
        return Annotated[(_with_formats(base), *extras)]
    return annotation


def _stand_in(annotation: Any) -> Any:
    import pydantic

    base, *extras = _parts(annotation)
    if inspect.isroutine(base):
        raise TypeError(f"{base!r} is a function and no type")
    known = [_as_field(extra) if isinstance(extra, msgspec.Meta) else extra for extra in extras]
    if any(isinstance(extra, msgspec.Meta) for extra in _metadata(base, set())):
        raise TypeError(f"{annotation} mixes msgspec.Meta and what only pydantic reads")
    for extra in known:
        base = Annotated[base, extra]
    try:
        adapter = pydantic.TypeAdapter(base)
        says_something = adapter.json_schema()
    except pydantic.PydanticUserError as error:
        raise TypeError(str(error)) from None
    if not says_something:
        raise TypeError(f"{base} does not say what it is")
    return _ReadByPydantic("ReadByPydantic", (), {"adapter": adapter})


def _as_field(meta: msgspec.Meta) -> Any:
    from pydantic import Field

    names = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")
    given = {name: getattr(meta, name) for name in (*names, "title", "description")}
    return Field(**{name: value for name, value in given.items() if value is not None})


def _parts(annotation: Any) -> tuple[Any, ...]:
    """The type itself, and what ``Annotated`` says of it."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)
    return (annotation,)


def _metadata(annotation: Any, seen: set[int]) -> Iterator[Any]:
    """What ``Annotated`` says anywhere in a type, but in models of pydantic."""
    base, *extras = _parts(annotation)
    yield from extras
    if id(base) in seen:
        return
    seen.add(id(base))
    inner = get_args(base)
    if dataclasses.is_dataclass(base) or is_typeddict(base) or hasattr(base, "__struct_fields__"):
        with contextlib.suppress(NameError, TypeError):  # said by whoever reads the type
            inner = tuple(get_type_hints(base, include_extras=True).values())
    for item in inner:
        yield from _metadata(item, seen)


def _of_pydantic(extra: Any) -> bool:
    module = type(extra).__module__.partition(".")[0]
    return module in _OF_PYDANTIC or hasattr(extra, "__get_pydantic_core_schema__")


def description_of(annotation: Any) -> str | None:
    """What ``Annotated`` says of the type in words: a text, a ``Meta``, ``Field`` or ``Doc``."""
    for extra in _parts(annotation)[1:]:
        if isinstance(extra, str):
            return extra
        for name in ("description", "documentation"):
            with contextlib.suppress(Exception):  # of a class of somebody's own
                if isinstance(text := getattr(extra, name, None), str):
                    return text
    return None


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
    if isinstance(annotation, _ReadByPydantic):
        return dict(annotation.adapter.json_schema())
    if hasattr(annotation, "model_json_schema"):
        return dict(annotation.model_json_schema())
    raise NotImplementedError


def converted(value: Any, annotation: Any) -> Any:
    """Plain data as a value of the type.

    Numbers and booleans may come as text ("10", "true"), as models often send them. Raises
    msgspec.ValidationError with what is wrong and where.
    """
    return read_as(value, annotation, strict=False, dec_hook=_convert_pydantic)


def _convert_pydantic(annotation: Any, value: Any) -> Any:
    if isinstance(annotation, _ReadByPydantic):
        validate = annotation.adapter.validate_json
    elif hasattr(annotation, "model_validate_json"):
        validate = annotation.model_validate_json
    else:
        raise NotImplementedError
    from pydantic import ValidationError
    from pydantic_core import to_json

    try:  # as JSON, in which a date is a text even for a strict model, and `date | str` a date
        return validate(to_json(value))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [_said(fault["msg"], fault["loc"]) for fault in faults]
        raise ValueError("; ".join(texts)) from None


def _said(text: str, place: tuple[Any, ...]) -> str:
    return f"{text} (at {'.'.join(map(str, place))})" if place else text


def plain(value: Any, annotation: Any) -> Any:
    """A value of the type as JSON-ready data, with all its fields, by the names they have in it."""
    if isinstance(annotation, _ReadByPydantic):
        return annotation.adapter.dump_python(value, mode="json", by_alias=False)
    return msgspec.to_builtins(_opened(value), str_keys=True)


def _opened(value: Any) -> Any:
    """The value with dicts for objects: of dataclasses msgspec itself leaves out defaults."""
    if isinstance(value, Mapping):
        return {key: _opened(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_opened(item) for item in value]
    if hasattr(value, "model_dump"):
        return _opened_model(value)
    tag: dict[str, Any] = {}
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        config = value.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field else {}
    elif dataclasses.is_dataclass(value):
        names = tuple(field.name for field in dataclasses.fields(value))
    else:
        names = tuple(field.name for field in getattr(type(value), "__attrs_attrs__", ()))
        if not names:
            return value
    fields = {name: getattr(value, name, msgspec.UNSET) for name in names}
    return tag | {n: _opened(item) for n, item in fields.items() if item is not msgspec.UNSET}


def _opened_model(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    dumped = value.model_dump(mode="json", by_alias=False)
    names = type(value).model_fields
    if "root" in names:
        return dumped
    dumped = dumped if isinstance(dumped, dict) else {}
    left_out = {name: getattr(value, name) for name in names if name not in dumped}
    return dumped | to_jsonable_python(left_out, by_alias=False, serialize_unknown=True)


def own_names(annotation: Any) -> dict[str, str]:
    """What the fields of a type are called in its values, by their arguments: aliases differ."""
    base = _parts(annotation)[0]
    base = get_origin(base) or base
    if isinstance(base, _ReadByPydantic):
        schema_of = base.adapter.json_schema
    elif hasattr(base, "model_json_schema"):
        schema_of = base.model_json_schema
    else:
        encoded = getattr(base, "__struct_encode_fields__", ())
        return dict(zip(encoded, getattr(base, "__struct_fields__", ()), strict=True))
    arguments = _properties(schema_of(by_alias=True))
    names = _properties(schema_of(by_alias=False))
    return dict(zip(arguments, names, strict=True)) if len(arguments) == len(names) else {}


def _properties(schema: Mapping[str, Any]) -> list[str]:
    definitions = schema.get("$defs", {})
    while "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    return list(schema.get("properties", ()))


_ARGUMENT = re.compile(r"at `\$\.(\w+)")  # which one a ValidationError is about


def _decoded(text: str) -> Any:
    """What a model meant by a text that did not fit: JSON as such, a time as RFC 3339 has it."""
    with contextlib.suppress(ValueError):
        if text.lstrip()[:1] in ("[", "{"):
            return json.loads(text)
        return datetime.fromisoformat(text).isoformat()
    return text


RunOn = Literal["pool", "loop", "main", "caller"]

# Both providers refuse other names (Messages and Responses API references, 2026).
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolOutput:
    """What a tool gives back when text alone does not say it.

    ``content`` goes to the model. ``artifact`` stays in the process, for people and code.
    ``update`` is a partial update of the state: ``{"todos": [...]}`` replaces the todos,
    ``{"metadata": {...}}`` merges. ``is_error`` marks content as an error. If all calls of a
    turn give ``terminate``, the run ends there and the model is not asked again. ``metadata``
    is kept with the result, and no model sees it. What raises is the tool itself: an exception
    in it becomes an error that the model reads.

    >>> from sagents_nb import Agent, ScriptedModel, ToolCall
    >>> def load(year: int) -> ToolOutput:
    ...     "Load the sales of a year."
    ...     return ToolOutput("3 rows are loaded.", artifact=[310, 290, 402])
    >>> model = ScriptedModel([ToolCall("c1", "load", {"year": 2025}), "They are there."])
    >>> Agent(model, tools=[load]).run("Load 2025.").artifacts
    {'c1': [310, 290, 402]}
    """

    __slots__ = ("artifact", "content", "is_error", "metadata", "terminate", "update")

    @kinds.checked
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


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model is told of a tool. ``schema`` is the JSON Schema of its arguments.

    One with ``defer_loading`` is for the model's provider to find; one that cannot sends all.
    """

    name: str
    description: str
    schema: dict[str, Any]
    defer_loading: bool = False


class Tool:
    """A ``function`` with a name, a description and a JSON Schema; made by :func:`tool`.

    ``name``, ``description`` and ``schema`` are those of the function unless given. It stays
    callable as the function it wraps. ``run_on`` says where it runs: "loop" for async functions,
    "pool" (a thread of its own while it runs) for sync ones, "main" for the process's main thread,
    "caller" for an async function that uses what belongs to the loop on which the run was started:
    a database pool, an HTTP session. ``timeout`` is in seconds. ``idempotent`` means that running
    it again with the same arguments is harmless. With ``needs_approval`` people are asked before it
    runs, unless ``interrupt_on`` of the agent says otherwise. With ``defer_loading`` the model is
    not told of it before a :class:`~sagents_nb.ToolSearch` finds it. A turn with a ``sequential``
    tool runs its calls one after the other. ``display_text`` is what people read while it runs:
    text, or a function of the arguments. ``arguments`` says how those of a call are read; by
    default as the function's annotations are.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a name that no provider takes, a
    parameter without a type that JSON can say, and a ``run_on`` that does not fit.

    >>> from sagents_nb import Agent, ScriptedModel, Tool, ToolCall
    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> sums = Tool(add, name="sum_of", timeout=5)
    >>> model = ScriptedModel([ToolCall("c1", "sum_of", {"a": 2, "b": 3}), "It is 5."])
    >>> Agent(model, tools=[sums]).run("What is 2 + 3?").messages[2].tool_results[0].text
    '5'
    """

    @kinds.checked(timeout=kinds.or_none(kinds.number(0, "seconds", over=True)))
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
        needs_approval: bool = False,
        defer_loading: bool = False,
        display_text: str | Callable[[dict[str, Any]], str] | None = None,
        arguments: Arguments | None = None,
    ) -> None:
        named = _underlying(function)
        self.name: str = name or str(getattr(named, "__name__", type(named).__name__))
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{self.name!r} is no tool name: use 1 to 64 letters, digits, '_' or '-'; "
                "give one with @tool(name=…)."
            )
        self.function = function
        # Defined in a class, and of no object yet.
        self.is_method = arguments is None and is_method(function)
        self.is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(
            function
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
        self.arguments: Arguments = arguments or _arguments_of(self.name, function)
        self.description = description or short_description(named)
        self.schema = schema or self.arguments.schema
        self.idempotent = idempotent
        self.timeout = timeout
        self.sequential = sequential
        self.needs_approval = needs_approval
        self.defer_loading = defer_loading
        self.display_text = display_text
        self.spec = ToolSpec(self.name, self.description, self.schema)
        functools.update_wrapper(self, function, updated=())

    @classmethod
    @kinds.checked
    def from_schema(
        cls,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        handler: Callable[..., Any],
        **options: Any,
    ) -> Tool:
        """A tool of a JSON Schema that is there already: of a service, an MCP server, a file.

        ``handler``, a function or an async one, is given the schema's properties by name; a
        parameter annotated with :class:`ToolContext` is given that. ``options`` are those of
        :func:`tool`. What a model sends is checked by the schema, but for each ``format``. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for a schema that is none, or not of an
        object.

        >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        >>> weather = Tool.from_schema("weather", "Get it.", schema, lambda city: f"Sun in {city}")
        >>> weather(city="Rome"), weather.schema == schema
        ('Sun in Rome', True)
        """
        arguments = JSONArguments(name, schema, handler)
        return cls(handler, name=name, description=description, arguments=arguments, **options)

    def __get__(self, instance: Any, owner: type | None = None) -> Tool:
        """The tool of a method, for one object: ``agent = Agent(model, tools=[shop.price])``."""
        if not self.is_method or instance is None:
            return self
        bound: Tool = copy.copy(self)
        bound.function = self.function.__get__(instance, owner)
        bound.is_method = False
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without a run."""
        if isinstance(self.arguments, FunctionArguments):
            kwargs |= self.arguments.defaults(self.function, *args, **kwargs)
        return self.function(*args, **kwargs)

    @kinds.checked
    async def refusal(self, arguments: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
        """What a call would be refused with, as far as is known before it runs; None if it is not.

        It is asked before people are, with the checked ``arguments`` and the ``ctx`` of the call.
        Nobody is asked about a call that is refused: it is answered so, as an error, and not run.
        A class of tools that can say it overrides this; of others it is not known. It has the
        tool's ``timeout``, and is not asked where a call before it in the same message may change
        what it finds: of a tool that is not ``idempotent``.

        >>> from sagents_nb import Agent, ScriptedModel, Tool, ToolCall, ToolContext, ToolOutput
        >>> class Purchase(Tool):
        ...     async def refusal(self, arguments: dict, ctx: ToolContext) -> ToolOutput | None:
        ...         too_many = ToolOutput("There are only 3.", is_error=True)
        ...         return too_many if arguments["count"] > 3 else None
        >>> def buy(count: int) -> str:
        ...     "Buy boxes."
        ...     return f"Bought {count}."
        >>> model = ScriptedModel([ToolCall("c1", "buy", {"count": 9}), "There are not enough."])
        >>> agent = Agent(model, tools=[Purchase(buy)], interrupt_on=["buy"])
        >>> agent.run("Buy 9 boxes.").text
        'There are not enough.'
        """
        return None

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @kinds.checked
    def display(self, arguments: dict[str, Any]) -> str | None:
        """What people read for a call with these arguments; they may be any a model sent.

        >>> from sagents_nb import tool
        >>> @tool(display_text=lambda arguments: f"Adding {arguments['a']} and {arguments['b']}")
        ... def add(a: int, b: int) -> int:
        ...     "Add two numbers."
        ...     return a + b
        >>> add.display({"a": 2, "b": 3})
        'Adding 2 and 3'
        """
        if not callable(self.display_text):
            return self.display_text
        try:
            return self.display_text(arguments)
        except BaseException as error:
            pass_on(error)
            return None


P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:

    class FunctionTool(Tool, Generic[P, R]):
        """A tool as editors see it: called by hand it takes and gives what its function does."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
            """What the function gives."""


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
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
    needs_approval: bool = False,
    defer_loading: bool = False,
    display_text: str | Callable[[dict[str, Any]], str] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a ``function``; with or without ``options``.

    The description is the docstring, the schema comes from the annotations, parameter
    descriptions from ``Annotated[int, "how many"]``, ``pydantic.Field``, ``msgspec.Meta`` or the
    docstring's Args section. A method is a tool of its object: ``tools=[shop.price]``. Options are
    those of :class:`Tool`: ``name``, ``description``, ``schema``, ``idempotent``, ``run_on``,
    ``timeout``, ``sequential``, ``needs_approval``, ``defer_loading`` and ``display_text``. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a function without annotations, and as
    :class:`Tool` does.

    >>> from sagents_nb import tool
    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> add(2, 3), add.name, add.schema["required"]
    (5, 'add', ['a'])
    >>> @tool(needs_approval=True, timeout=30)
    ... def remove(path: str) -> str:
    ...     "Remove a file."
    ...     return f"{path} is gone."
    >>> remove.needs_approval
    True
    """
    if function is None:
        return lambda f: Tool(f, **options)
    return Tool(function, **options)


def as_tool(value: Any) -> Tool:
    """``value`` if it is a tool, a tool of it if it is a function."""
    if not isinstance(value, Tool) and not callable(value):
        raise ConfigurationError(
            f"This {type(value).__name__} is no tool; decorate a function with @tool."
        )
    made = value if isinstance(value, Tool) else Tool(value)
    if made.is_method:
        where = made.function.__qualname__.rpartition(".")[0]
        raise ConfigurationError(
            f"Tool {made.name!r} is a method of {where}; give the one of an object: "
            f"{where}(…).{made.function.__name__}."
        )
    return made
