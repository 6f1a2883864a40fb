"""Reading a model's tool arguments: strictly, and never repaired.

A stream that was cut in the middle of ``{"paths": ["/data/old", "/da`` must not turn into a
call with one path. The SDKs' parsers close what is open, take the last of duplicate keys and
accept NaN; this one accepts a complete JSON object (RFC 8259) with unique keys, or nothing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NoReturn

from msgspec.structs import replace

from ...messages import Message, Part, ToolCall
from ...tools import ToolSpec

# Deeper arguments are no tool's schema, and would overflow the stacks of those who read them.
MAX_DEPTH = 100


class BadArguments(ValueError):
    """Arguments that cannot be used; the message is one sentence for the model."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object in ``text``.

    Raises :class:`BadArguments` for anything else: text that is empty, cut or followed by
    more, arrays and scalars, NaN and Infinity, numbers too large for a float, duplicate keys,
    nesting deeper than 100.

    >>> parse_arguments('{"city": "Oslo"}')
    {'city': 'Oslo'}
    """
    if not text.strip():
        raise BadArguments("The arguments were empty; send one JSON object, {} if there are none.")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except BadArguments:
        raise
    except RecursionError:
        raise BadArguments(_too_deep()) from None
    except ValueError as error:  # JSONDecodeError, and integers of more than 4,300 digits
        raise BadArguments(
            f"The arguments were not valid JSON ({error}); send one complete JSON object."
        ) from None
    if not isinstance(value, dict):
        raise BadArguments(
            f"The arguments were a JSON {_kind(value)}, not an object; send one JSON object."
        )
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise BadArguments(_too_deep())
    return value


def read_call(id: str, name: str, text: str, *, cut: bool = False) -> ToolCall:
    """The call with the arguments in ``text``, or with an ``error`` that says what is wrong.

    ``cut`` says that the provider itself reported the call as unfinished, so that even
    well-formed arguments are not to be trusted.
    """
    if cut:
        return ToolCall(
            id, name, {}, error="The call was cut off before it was complete; send it again."
        )
    try:
        return ToolCall(id, name, parse_arguments(text))
    except BadArguments as error:
        return ToolCall(id, name, {}, error=str(error))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadArguments(f"The arguments held the key {twice!r} twice; send each key once.")
    return value


def _no_constant(name: str) -> NoReturn:
    raise BadArguments(f"The arguments held {name}, which is not JSON; send a number or null.")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadArguments(f"The arguments held {text[:40]}, which is too large for a number.")
    return value


def _too_deep() -> str:
    return f"The arguments were nested deeper than {MAX_DEPTH} levels; send flatter ones."


def _kind(value: Any) -> str:
    names: dict[type, str] = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        deepest += any(isinstance(item, dict | list) for item in level)
        level = inner
    return deepest


# The names of parameters. Claude's API refuses a tool with others.
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class ParameterNames:
    """The names of tools' parameters as a provider takes them, and back: ``größe`` is ``grosse``.

    Tools whose names every provider takes are left as they are. Those of other tools with the
    same names for the same are equal, so that a call has one form for as long as they are.
    """

    def __init__(self, tools: Iterable[ToolSpec] = ()) -> None:
        self._tools = {spec.name: _wire_names(spec.schema) for spec in tools}
        self._tools = {name: names for name, names in self._tools.items() if names}
        self._key = tuple((name, *names.items()) for name, names in self._tools.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParameterNames) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def tools(self, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools with the provider's names."""
        if not self._tools:
            return tools
        return tuple(
            replace(spec, schema=_renamed_schema(spec.schema, self._tools[spec.name]))
            if spec.name in self._tools
            else spec
            for spec in tools
        )

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of an earlier turn's call with the provider's names."""
        names = self._tools.get(call.name)
        return _renamed(call.arguments, names) if names else call.arguments

    def received(self, message: Message) -> Message:
        """The answer with our names in its calls."""

        def renamed(part: Part) -> Part:
            if isinstance(part, ToolCall) and part.name in self._tools:
                names = {wire: name for name, wire in self._tools[part.name].items()}
                return replace(part, arguments=_renamed(part.arguments, names))
            return part

        if not self._tools or message.role != "assistant":
            return message
        return replace(message, parts=tuple(renamed(part) for part in message.parts))


def _wire_names(schema: Any) -> dict[str, str]:
    """The names in a schema that the provider refuses, with those it is given for them."""
    names = dict.fromkeys(_property_names(schema))
    taken = set(filter(_NAME.fullmatch, names))
    found: dict[str, str] = {}
    for name in names:
        if name in taken:
            continue
        # "ß" folds to "ss", and an accent parts from its letter.
        letters = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", letters)[:60] or "parameter"
        numbered = (plain, *(f"{plain}_{n}" for n in range(2, len(names) + 2)))
        found[name] = next(each for each in numbered if each not in taken)
        taken.add(found[name])
    return found


def _property_names(schema: Any) -> list[str]:
    names: list[str] = []
    left = [schema]
    for value in left:  # which grows: a generator for each level took a tenth of a call
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, dict):
                    if key == "properties":
                        names += inner
                    left += inner.values() if _holds_schemas(key, inner) else (inner,)
                elif isinstance(inner, list):
                    left.append(inner)
    return names


def _holds_schemas(key: str, value: Any) -> bool:
    return key in ("properties", "$defs", "definitions") and isinstance(value, dict)


def _renamed_schema(schema: Any, names: dict[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed_schema(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "required" and isinstance(value, list):
            found[key] = [names.get(name, name) for name in value]
        elif _holds_schemas(key, value):
            own = names if key == "properties" else {}
            inner = {own.get(n, n): _renamed_schema(each, names) for n, each in value.items()}
            found[key] = inner
        elif key in ("default", "enum", "const", "examples"):
            found[key] = value
        else:
            found[key] = _renamed_schema(value, names)
    return found


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value
