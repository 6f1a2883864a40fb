"""From any value to data that every JSON parser and database takes, and back.

Also how a state of an older version is brought up to date. What it consists of is in
``state.py``.
"""

from __future__ import annotations

import copy
import enum
import functools
import itertools
import json
import math
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from .errors import ConfigurationError, pass_on
from .frozenlist import FrozenList
from .text import said_by, whole_data

VERSION = 1

Migration = Callable[[dict[str, Any]], dict[str, Any]]
StateSchema = Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]
"""Per key of the metadata: what serializes its value and what reads it back."""

_DEEPEST = 100  # levels; Python's own JSON encoder gives up at about 300 in a deep stack


def to_data(value: Any) -> Any:
    """``value`` as JSON-ready data; never raises.

    Structs and dataclasses become dicts, enums their value, numbers of numpy plain ones,
    functions null and unknown objects their repr. A key that is no text becomes text.
    """
    try:
        return msgspec.to_builtins(value, enc_hook=_unknown, str_keys=True)
    except Exception:  # odd keys, an enum of objects, a circle, a repr that raises
        return _walk(value, ())


def encoded(data: Any) -> bytes:
    """``data`` as JSON; what JSON cannot say is said another way.

    A lone surrogate, as in the name of a file that is not UTF-8, would otherwise end whatever
    tells of it for good.
    """
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        return msgspec.json.encode(whole_data(msgspec.to_builtins(data, str_keys=True)))


def read_as(value: Any, kind: Any, **how: Any) -> Any:
    """``value`` as that ``kind``; how is as for ``msgspec.convert``.

    Raises msgspec.ValidationError also where what does not fit has half a character in it, which
    msgspec cannot quote.
    """
    try:
        return msgspec.convert(value, kind, **how)
    except UnicodeEncodeError:
        msgspec.convert(whole_data(value), kind, **how)
        raise msgspec.ValidationError("A text has half a character in it") from None


def unreadable(value: Any, kind: Any) -> str:
    """Why nobody could read ``value`` as that ``kind`` again from its data; "" if it can be.

    msgspec checks the types of what it reads, not of what is made by hand. Nor is a text what
    only its data are one of: of a path or a date, say.
    """
    try:
        if msgspec.convert(msgspec.to_builtins(value), kind) == value:
            return ""  # as nearly always
    except RecursionError:
        return "its data are nested too deep"
    except Exception:  # it is odd; how is found below
        pass
    try:
        read_as(to_data(value), kind)
    except (msgspec.ValidationError, ConfigurationError) as error:
        return str(error)
    return _untrue(value, "$")


def _untrue(value: Any, place: str) -> str:
    """Where a field of a struct, or of one in it, is what has to be written to be its type."""
    if isinstance(value, msgspec.Struct):
        fields = ((f.name, f.encode_name) for f in structs.fields(value) if f.type is not Any)
        inside = ((getattr(value, name), f"{place}.{written}") for name, written in fields)
    elif isinstance(value, list | tuple | FrozenList):
        inside = ((item, f"{place}[{number}]") for number, item in enumerate(value))
    elif value is None or isinstance(value, str | Mapping | numbers.Real):
        return ""
    else:
        return f"Expected no `{type(value).__name__}` - at `{place}`"
    return next(filter(None, itertools.starmap(_untrue, inside)), "")


def _walk(value: Any, above: tuple[int, ...]) -> Any:
    """:func:`to_data` one level at a time; ``above`` holds the ids of what ``value`` is in."""
    if id(value) in above or len(above) > _DEEPEST:
        return _described(value)
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {_key(key): _walk(item, inside) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | FrozenList):
        return [_walk(item, inside) for item in value]
    if isinstance(value, enum.Enum):
        return _walk(value.value, inside)
    try:
        if isinstance(value, msgspec.Struct):
            names = value.__struct_fields__
            value = replace(value, **{name: _walk(getattr(value, name), inside) for name in names})
        return msgspec.to_builtins(value, enc_hook=_unknown, str_keys=True)
    except Exception:
        return _described(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, enum.Enum):
        return _key(key.value)
    return str(key) if isinstance(key, int | float) else _described(key)


def _unknown(value: Any) -> Any:
    if isinstance(value, FrozenList):
        return value[:]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):  # a subclass; msgspec takes only str itself
        return str.__str__(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return None if callable(value) else _described(value)


def _described(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # somebody else's __repr__, or one that is too deep
        return f"<{type(value).__name__}>"


# PostgreSQL refuses NUL, SQLite and UTF-8 refuse lone surrogates, json.loads joins a pair of
# them, and only Python knows NaN. U+FFFE is no character, so text practically never holds it.
# Runs of them are matched: a call for each of a million would take seconds.
_ODD = re.compile("[\0\ud800-\udfff\ufffe]+")
_ESCAPED = re.compile("(?:\ufffe[0-9a-f]{4})+")
_NUMBERS = {"\ufffenan": math.nan, "\ufffeinf": math.inf, "\ufffe-inf": -math.inf}


def portable(data: Any) -> tuple[Any, bool]:
    """JSON-ready ``data`` as every parser and database takes it, and whether it is escaped.

    Odd characters and numbers are written as U+FFFE and what they are; :func:`unescaped`
    reads them. Ordinary data stays as it is.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, default=_unknown)
        text.encode()
    except RecursionError:
        return escaped(_walk(data, ())), True
    except ValueError:
        return escaped(data), True
    if "\ufffe" in text or "\\u0000" in text:
        return escaped(data), True
    return json.loads(text), False


def escaped(data: Any) -> Any:
    """``data`` with what :func:`portable` calls odd written in plain characters."""
    if isinstance(data, str):
        return _ODD.sub(_escaped_run, data)
    if isinstance(data, float) and not math.isfinite(data):
        return f"\ufffe{data}"
    return _mapped(escaped, data)


def unescaped(data: Any) -> Any:
    """What :func:`escaped` was given."""
    if isinstance(data, str):
        if "\ufffe" not in data:
            return data
        if data in _NUMBERS:
            return _NUMBERS[data]
        return _ESCAPED.sub(_unescaped_run, data)
    return _mapped(unescaped, data)


def _escaped_run(found: re.Match[str]) -> str:
    return "".join(map(_code, found[0]))


def _unescaped_run(found: re.Match[str]) -> str:
    return "".join(map(_character, found[0].split("\ufffe")[1:]))


@functools.cache
def _code(character: str) -> str:
    return f"\ufffe{ord(character):04x}"


@functools.cache
def _character(digits: str) -> str:
    return chr(int(digits, 16))


def _mapped(change: Callable[[Any], Any], data: Any) -> Any:
    if isinstance(data, dict):
        return {change(key): change(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [change(item) for item in data]
    return data if data is None or isinstance(data, int | float) else change(_unknown(data))


def _from_version_0(data: dict[str, Any]) -> dict[str, Any]:
    """Version 0 called the parts of a message "content", and one text was enough."""
    for message in data.get("messages") or []:
        if "content" in message:
            content = message.pop("content")
            text = isinstance(content, str)
            message["parts"] = [{"type": "text", "text": content}] if text else content
    return data


MIGRATIONS: dict[int, Migration] = {0: _from_version_0}
"""What brings the "state" of version n to version n + 1. Raise VERSION when you add one."""


def migrated(data: Mapping[str, Any], version: Any) -> dict[str, Any]:
    """A copy of a "state", brought step by step from ``version`` to :data:`VERSION`.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a version that is newer, or
    that no migration knows, and for data that a migration cannot read.
    """
    if type(version) is not int or version > VERSION:
        raise ConfigurationError(
            f"This state has version {version!r}, but {VERSION} is the newest that this "
            "sagents_nb reads; upgrade sagents_nb."
        )
    if version == VERSION:
        return dict(data)
    current = copy.deepcopy(dict(data))  # a migration may write into what it is given
    for step in range(version, VERSION):
        if step not in MIGRATIONS:
            raise ConfigurationError(
                f"This state has version {version}, and nothing reads version {step} any more; "
                "restore it with the sagents_nb that wrote it."
            )
        try:
            current = MIGRATIONS[step](current)
        except BaseException as error:
            pass_on(error)
            raise ConfigurationError(
                f"This state of version {version} cannot be brought to version {step + 1} "
                f"({said_by(error)}); it may be damaged."
            ) from error
    return current


def serialized(metadata: Mapping[str, Any], schema: StateSchema) -> dict[str, Any]:
    """``metadata`` with the values that ``schema`` names as its functions write them."""
    return _by_schema(metadata, schema, 0, "written")


def deserialized(metadata: Mapping[str, Any], schema: StateSchema) -> dict[str, Any]:
    """``metadata`` with the values that ``schema`` names as its functions read them."""
    return _by_schema(metadata, schema, 1, "read")


def _by_schema(
    metadata: Mapping[str, Any], schema: StateSchema, which: int, verb: str
) -> dict[str, Any]:
    changed = dict(metadata)
    for key, functions in schema.items():
        if key not in changed:
            continue
        try:
            changed[key] = functions[which](changed[key])
        except BaseException as error:
            pass_on(error)
            raise ConfigurationError(
                f"metadata[{key!r}] cannot be {verb} by its state_schema ({said_by(error)})."
            ) from error
    return changed
