"""How a cassette reads: a file that people review, line by line.

A text of several lines is ``{"lines": [...]}``. System prompts and lists of tools stand once,
at the top. A request that goes on from a recorded one ``continues`` it, and shows only the
messages that came after its answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from ...messages import Message
from .recording import Recording

VERSION = 1
_LINES = "lines"
_WIDTH = 100  # characters of a line of a shape

_FIRST = ("role", "type", "id", "tool_call_id", "name")

Entry = dict[str, Any]


def to_text(header: dict[str, Any], recordings: Iterable[Recording]) -> bytes:
    """The file; the same recordings always give the same bytes."""
    systems: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    entries: list[Entry] = []
    ended: dict[str, str] = {}  # by digest of a history: the key of the recording that ends so
    for recording in recordings:
        request = msgspec.json.decode(recording.request)
        messages = request["messages"]
        entry: Entry = {"key": recording.key, "model": request["model"]}
        if request["options"]:
            entry["options"] = request["options"]
        if request["system"]:
            entry["system"] = _kept(systems, request["system"])
        if request["tools"]:
            entry["tools"] = _kept(tools, request["tools"])
        start = _continued(ended, messages)
        if start:
            entry["continues"] = ended[_digest(messages[:start])]
        entry["messages"] = [_readable(message) for message in messages[start:]]
        entry["answer"] = msgspec.json.decode(msgspec.json.encode(recording.message))
        if recording.shape:
            entry["shape"] = _wrapped(recording.shape)
        entries.append(entry)
        ended.setdefault(_digest([*messages, _as_asked(recording.message)]), recording.key)
    data = {"version": VERSION, **header, "systems": systems, "tools": tools}
    text = json.dumps(_lined({**data, "recordings": entries}), ensure_ascii=False, indent=1)
    return text.encode() + b"\n"


def from_text(text: bytes) -> tuple[dict[str, Any], dict[str, Recording]]:
    """The header and the recordings by key; raises ValueError, KeyError or TypeError."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError(f"its version is not {VERSION}")
    data = _unlined(data)
    histories: dict[str, list[Any]] = {}
    found: dict[str, Recording] = {}
    for entry in data["recordings"]:
        messages = [*histories.get(entry.get("continues", ""), ()), *entry["messages"]]
        request = {
            "model": entry["model"],
            "options": entry.get("options", {}),
            "system": data["systems"][entry["system"]] if "system" in entry else "",
            "tools": data["tools"][entry["tools"]] if "tools" in entry else [],
            "messages": messages,
        }
        message = msgspec.convert(entry["answer"], Message)
        key = str(entry["key"])
        shape = "".join(entry.get("shape", ())).strip()
        raw = msgspec.Raw(msgspec.json.encode(request, order="sorted"))
        found[key] = Recording(key, raw, message, shape)
        histories[key] = [*messages, _as_asked(message)]
    header = {k: v for k, v in data.items() if k not in _OWN}
    return header, found


_OWN = frozenset({"version", "systems", "tools", "recordings"})


def _kept(table: dict[str, Any], value: Any) -> str:
    name = _digest(value)[:12]
    table[name] = value
    return name


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def _as_asked(message: Message) -> Any:
    """An answer as it stands in the request that follows it."""
    from .keys import message_form

    return msgspec.json.decode(msgspec.json.encode(message_form(message), order="sorted"))


def _continued(ended: dict[str, str], messages: list[Any]) -> int:
    """How many of ``messages`` some recording's history already holds."""
    for end in range(len(messages), 0, -1):
        if messages[end - 1].get("role") == "assistant" and _digest(messages[:end]) in ended:
            return end
    return 0


def _readable(value: Any) -> Any:
    """With what says what it is before what it holds; the canonical form is sorted by name."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: (name not in _FIRST, name))
    return {name: _readable(value[name]) for name in names}


def _wrapped(shape: str) -> list[str]:
    """A shape in lines that joined give it back."""
    lines = [""]
    for word in shape.split():
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += f"{word} "
    return [*lines[:-1], lines[-1].rstrip()]


# A text of lines, and the dict that only looks like one, which is wrapped once more.


def _lined(value: Any) -> Any:
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, dict):
        plain = {key: _lined(item) for key, item in value.items()}
        return {_LINES: plain} if set(value) == {_LINES} else plain
    return [_lined(item) for item in value] if isinstance(value, list) else value


def _unlined(value: Any) -> Any:
    if isinstance(value, list):
        return [_unlined(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {_LINES}:
        inside = value[_LINES]
        if isinstance(inside, list):
            return "\n".join(inside)
        return {key: _unlined(item) for key, item in inside.items()}
    return {key: _unlined(item) for key, item in value.items()}
