"""Values checked by a JSON Schema that somebody else wrote: a service, an MCP server, a file."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ConfigurationError

_SECONDS = 0.5  # for one pattern on one text: patterns are somebody's, texts a model's
_SHOWN = 300  # characters of what is wrong


class JSONSchema:
    """What a ``schema`` allows; ``what`` it is of, for errors.

    Any draft that says its ``$schema``, by default 2020-12. References lead to places within it:
    nothing is fetched. Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no JSON
    Schema.
    """

    def __init__(self, schema: Mapping[str, Any], what: str) -> None:
        # 60 ms to import, for those who have such a schema.
        import referencing
        from jsonschema import SchemaError

        self._schema = dict(schema)
        kind = _kind_for(self._schema)
        try:
            kind.check_schema(self._schema)
        except SchemaError as error:
            raise ConfigurationError(
                f"{what}: its schema is no JSON Schema ({error.message[:_SHOWN]}{_at(error)})."
            ) from None
        self._validator = kind(self._schema, registry=referencing.Registry())

    def checked(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """``value`` as the schema wants it; raises ValueError with a sentence for the model.

        A number or a boolean may come as text ("10"), a list or an object as JSON text, where a
        text is not allowed.
        """
        given = dict(value)
        tried: set[tuple[Any, ...]] = set()
        first: Any = None
        while (error := self._error(given)) is not None:
            first = first or error
            place = tuple(error.absolute_path)
            read = _as_json(error) if place and place not in tried else None
            if read is None:
                raise ValueError(f"{first.message[:_SHOWN]}{_at(first)}")
            tried.add(place)
            given = copy.deepcopy(given)
            inner: Any = given
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = read
        return given

    def _error(self, value: Any) -> Any:
        from jsonschema import exceptions
        from referencing.exceptions import Unresolvable

        try:
            return exceptions.best_match(self._validator.iter_errors(value))
        except RecursionError:
            raise ValueError("they are nested too deeply") from None
        except Unresolvable as error:
            raise ValueError(f"the tool's schema refers to what is not in it: {error}") from None


def _as_json(error: Any) -> Any:
    """What a text says that stands where the schema wants no text; None if it says nothing."""
    if error.validator != "type" or not isinstance(error.instance, str):
        return None
    try:
        return json.loads(error.instance)
    except (ValueError, RecursionError):
        return None


def _at(error: Any) -> str:
    return "" if error.json_path == "$" else f" - at `{error.json_path}`"


def _kind_for(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return _bounded(validator_for(schema, default=Draft202012Validator))


@functools.cache
def _bounded(kind: Any) -> Any:
    """The validator with patterns that cannot hang: Python's ``re`` holds up every thread."""
    from jsonschema.validators import extend

    ours = {"pattern": _pattern, "patternProperties": _pattern_properties}
    return extend(kind, {name: rule for name, rule in ours.items() if name in kind.VALIDATORS})


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _found(pattern: str, text: str) -> bool:
    import regex  # type: ignore[import-untyped,unused-ignore]

    try:
        return regex.search(pattern, text, timeout=_SECONDS) is not None
    except (regex.error, TimeoutError, MemoryError):
        return False
