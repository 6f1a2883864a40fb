"""Reading a model's tool arguments: strictly, and never repaired.

A stream that was cut in the middle of ``{"paths": ["/data/old", "/da`` must not turn into a
call with one path. The SDKs' parsers close what is open, take the last of duplicate keys and
accept NaN; this one accepts a complete JSON object (RFC 8259) with unique keys, or nothing.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ...messages import ToolCall

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
