"""Why there is no recording: the one that is nearest, and where the request first differs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from .recording import Asked, Recording

_ORDER = ("model", "options", "system", "tools", "messages")
_SECONDS = 0.5  # spent on the search; a miss is to be told within a second
_AROUND = 60  # characters shown of a text that differs
_COMPARED = 2_000  # characters of a message that are compared with each recording's


class Difference(NamedTuple):
    """The first field that differs, such as ``messages[2].parts[0].text``.

    ``asked`` and ``recorded`` are excerpts of its two values; "nothing" where there is none.
    """

    path: str
    asked: str
    recorded: str


class Nearest(NamedTuple):
    """The recording that is most like a request, and how it differs."""

    recording: Recording
    difference: Difference


def nearest(asked: Asked, recordings: Iterable[Recording]) -> Nearest | None:
    """The nearest of ``recordings``, or None if there is none; within about half a second."""
    form: dict[str, Any] = msgspec.json.decode(asked.text)
    until = time.monotonic() + _SECONDS
    best: tuple[tuple[float, ...], Recording, dict[str, Any]] | None = None
    for recording in recordings:
        try:
            other = msgspec.json.decode(recording.request)
            alike = likeness(form, other)
        except Exception:  # a file that somebody edited
            continue
        if best is None or alike > best[0]:
            best = (alike, recording, other)
        if time.monotonic() > until:
            break
    if best is None:
        return None
    difference = first_difference(form, best[2])
    return Nearest(best[1], difference) if difference is not None else None


def likeness(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, ...]:
    """How alike they are: equal messages from the start, equal fields, and then the words."""
    mine, theirs = one.get("messages", []), other.get("messages", [])
    same = 0
    for a, b in zip(mine, theirs, strict=False):
        if a != b:
            break
        same += 1
    fields = sum(one.get(name) == other.get(name) for name in _ORDER[:-1])
    words = 1.0
    if same < len(mine) and same < len(theirs):
        a, b = _text(mine[same]), _text(theirs[same])
        words = SequenceMatcher(None, a, b, autojunk=False).quick_ratio()
    length = -abs(len(mine) - len(theirs))
    return (float(same + fields), words, float(length))


def _text(message: Any) -> str:
    return msgspec.json.encode(message).decode()[:_COMPARED]


def first_difference(asked: Any, recorded: Any) -> Difference | None:
    """The first field that differs between two canonical forms, or None.

    >>> first_difference({"options": {"seed": 1}}, {"options": {"seed": 2}})
    Difference(path='options.seed', asked='1', recorded='2')
    """
    return next(_differences("", asked, recorded), None)


def _differences(path: str, one: Any, other: Any) -> Iterator[Difference]:
    if one == other and type(one) is type(other):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in _names(one, other):
            below = f"{path}.{name}" if path else name
            yield from _differences(below, one.get(name, _NONE), other.get(name, _NONE))
    elif isinstance(one, list) and isinstance(other, list):
        for i in range(max(len(one), len(other))):
            a = one[i] if i < len(one) else _NONE
            b = other[i] if i < len(other) else _NONE
            yield from _differences(f"{path}[{_label(a, b, i)}]", a, b)
    else:
        yield Difference(path, *_excerpts(one, other))


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NONE = _Nothing()


def _names(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    order = {name: i for i, name in enumerate((*_ORDER, "role"))}
    return sorted({*one, *other}, key=lambda name: (order.get(name, len(order)), name))


def _label(one: Any, other: Any, index: int) -> str:
    """Tools by their name, all else by its place."""
    tool = one if isinstance(one, dict) else other
    if isinstance(tool, dict) and "schema" in tool and isinstance(tool.get("name"), str):
        return repr(tool["name"])
    return str(index)


def _excerpts(one: Any, other: Any) -> tuple[str, str]:
    if not (isinstance(one, str) and isinstance(other, str)):
        return _short(_shown(one)), _short(_shown(other))
    start = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        start += 1
    start = max(0, start - _AROUND // 3)
    return _short(one[start:], start > 0), _short(other[start:], start > 0)


def _shown(value: Any) -> str:
    return repr(value) if value is _NONE else msgspec.json.encode(value).decode()


def _short(text: str, cut: bool = False) -> str:
    text = " ".join(text.split())
    shown = text if len(text) <= _AROUND else f"{text[:_AROUND]}…"
    return f"…{shown}" if cut else shown
