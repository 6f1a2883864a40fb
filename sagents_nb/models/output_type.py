"""A type as a model answers with it: its JSON Schema, and how to read what was sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from .. import kinds
from ..errors import ConfigurationError
from ..tools import described, own_names, plain, read_arguments, readable, type_name

# What a type without fields is called as an argument, and as a column.
VALUE = "value"


class Output:
    """What is asked for: a type, its JSON Schema, and how to read what a model sent.

    A dataclass, TypedDict, msgspec.Struct or pydantic model has ``fields``; any other type,
    such as ``list[str]`` or ``Literal["yes", "no"]``, is the one field "value". Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a type that no JSON can hold.
    """

    def __init__(self, annotation: Any) -> None:
        kind = type(annotation)  # of which a class of somebody's own is not asked
        is_value = issubclass(kind, str | bytes | Mapping | int | float | list)
        if is_value or kinds.is_array(annotation):
            raise ConfigurationError(
                f"An answer is of a type, and {kind.__name__} is none; give plain "
                "types, a dataclass, a TypedDict, a msgspec.Struct or a pydantic model."
            )
        self.annotation = annotation
        self.name = type_name(annotation)
        try:
            self._read_as = readable(annotation)
        except (TypeError, ImportError) as error:
            reason = str(error).strip().splitlines()[-1].rstrip(".")
            raise ConfigurationError(
                f"No answer can be a {self.name} ({reason}); use plain types, a dataclass, a "
                "TypedDict, a msgspec.Struct or a pydantic model."
            ) from error
        schema = described(self._read_as)
        self.flat = schema.get("type") == "object" and "properties" in schema
        self.schema = schema if self.flat else _wrapped(schema)
        wrapper = msgspec.defstruct(f"{VALUE}_of_answer", [(VALUE, self._read_as)])
        self._arguments = self._read_as if self.flat else wrapper
        self._own = own_names(self._read_as) if self.flat else {}

    @property
    def fields(self) -> list[str]:
        """The names of the arguments, in order."""
        return list(self.schema["properties"])

    @property
    def types(self) -> dict[str, Any]:
        """The annotation of each field, as far as it can be told."""
        if not self.flat:
            return {VALUE: self.annotation}
        try:
            return get_type_hints(self._type)
        except (NameError, TypeError):
            return {}

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """The schema of each field, by its name in a value of the type."""
        return {self._own.get(n, n): schema for n, schema in self.schema["properties"].items()}

    @property
    def _type(self) -> Any:
        """The class itself, without what Annotated says or what it is generic in."""
        base = self.annotation
        base = get_args(base)[0] if get_origin(base) is Annotated else base
        return get_origin(base) or base

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """A value of the type; raises ValueError with a sentence for the model."""
        unknown = sorted(set(arguments) - set(self.fields))
        if unknown and not self.schema.get("additionalProperties"):
            raise ValueError(
                f"Invalid arguments: Object contains unknown field {unknown[0]!r}; the fields are "
                f"{', '.join(self.fields)}"
            )
        answer = read_arguments(arguments, self._arguments)
        return answer if self.flat else getattr(answer, VALUE)

    def data(self, value: Any) -> dict[str, Any]:
        """A value of the type as JSON-ready arguments; the reverse of :meth:`read`."""
        data = plain(value, self._read_as)
        if not self.flat:
            return {VALUE: data}
        arguments = {own: argument for argument, own in self._own.items()}
        return {arguments.get(name, name): item for name, item in data.items()}

    def row(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What :meth:`data` gave, by the names of :attr:`columns`.

        Older caches have the own names of a pydantic model, and no defaults of a dataclass or
        Struct.
        """
        defaults = {}
        if dataclasses.is_dataclass(self._type) or hasattr(self._type, "__struct_fields__"):
            defaults = {n: s["default"] for n, s in self.columns.items() if "default" in s}
        if any(name in data for name in set(self._own.values()) - self._own.keys()):
            return defaults | dict(data)
        return defaults | {self._own.get(name, name): item for name, item in data.items()}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = dict(schema)
    defs = inner.pop("$defs", None)
    whole = {"type": "object", "properties": {VALUE: inner}, "required": [VALUE]}
    return {**whole, "$defs": defs} if defs else whole
