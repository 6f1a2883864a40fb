"""The form that an answer is to have: any text, JSON, or JSON of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import ConfigurationError

_KINDS = ("text", "json_object", "json_schema")


class ResponseFormat(NamedTuple):
    """``kind`` is "text", "json_object" or "json_schema"; the last has a ``schema``.

    ``strict`` has the provider hold the model to it, and is None where nobody said so.
    """

    kind: str
    name: str = "answer"
    schema: Mapping[str, Any] | None = None
    strict: bool | None = None
    description: str = ""

    def details(self) -> dict[str, Any]:
        """What OpenAI takes of a schema beside its kind."""
        told = {"name": self.name, "schema": self.schema, "strict": self.strict}
        told["description"] = self.description or None
        return {name: value for name, value in told.items() if value is not None}


def read_format(given: Any) -> ResponseFormat:
    """The form that ``given`` says, as chat completions have it.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for an unknown kind, and for
    "json_schema" without a schema.

    >>> read_format({"type": "json_object"}).kind
    'json_object'
    """
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind not in _KINDS:
        raise ConfigurationError(
            'response_format is {"type": "text"}, {"type": "json_object"}, or {"type": '
            '"json_schema", "json_schema": {"name": …, "schema": …}}.'
        )
    if kind != "json_schema":
        return ResponseFormat(kind)
    details = given.get("json_schema")
    schema = details.get("schema") if isinstance(details, Mapping) else None
    if not isinstance(details, Mapping) or not isinstance(schema, Mapping):
        raise ConfigurationError(
            'response_format "json_schema" has no schema; put it into {"type": "json_schema", '
            '"json_schema": {"name": "answer", "schema": {…}}}.'
        )
    return ResponseFormat(
        kind,
        str(details.get("name") or "answer"),
        schema,
        details.get("strict"),
        str(details.get("description") or ""),
    )


def take_format(options: dict[str, Any]) -> ResponseFormat | None:
    """Take ``response_format`` out of the ``options`` of a request; None for none."""
    given = options.pop("response_format", None)
    return None if given is None else read_format(given)


def closed(schema: Any) -> Any:
    """``schema`` whose objects have no other properties than it names, as providers want it.

    >>> closed({"type": "object", "properties": {"a": {}}})["additionalProperties"]
    False
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _OF_NAMES and isinstance(value, Mapping):
            made[name] = {inner: closed(each) for inner, each in value.items()}
        else:
            made[name] = value if name in _VALUES else closed(value)
    if isinstance(made.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made


def requires_all(schema: Any) -> bool:
    """Whether each object of a :func:`closed` ``schema`` requires all that it names.

    Of others OpenAI takes no strict schema.

    >>> requires_all({"properties": {"a": {}}, "additionalProperties": False})
    False
    """
    if isinstance(schema, list):
        return all(map(requires_all, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False:
            return False
        if set(names) != set(schema.get("required", ())):
            return False
    for name, value in schema.items():
        inner = list(value.values()) if name in _OF_NAMES and isinstance(value, Mapping) else value
        if name not in _VALUES and not requires_all(inner):
            return False
    return True


_OF_NAMES = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_VALUES = ("default", "const", "enum", "examples", "required")


def without_limits(schema: Any) -> Any:
    """``schema`` without limits of numbers, lengths and counts, of which Claude's API takes none.

    >>> without_limits({"properties": {"minimum": {"type": "integer", "minimum": 0}}})
    {'properties': {'minimum': {'type': 'integer'}}}
    """
    if isinstance(schema, list):
        return [without_limits(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _OF_NAMES and isinstance(value, Mapping):
            made[name] = {inner: without_limits(each) for inner, each in value.items()}
        elif name not in _LIMITS:
            made[name] = value if name in _VALUES else without_limits(value)
    return made


_LIMITS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties"),
}
