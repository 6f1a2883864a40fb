"""JSON Schema and validation from a function's annotations."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from .context import ToolContext
from .errors import ConfigurationError


class Arguments:
    """What a tool takes: its JSON Schema, and the check of what a model sent."""

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
