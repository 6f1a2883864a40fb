"""From our history to what a provider may be sent: what all providers have in common.

Nothing here changes a message. What is left out or replaced follows from the message alone,
so that each request extends the one before it: the providers' caches, and Claude's checks of
preserved thinking, depend on that.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ...messages import FilePart, ImagePart, JsonPart, Message, Part, TextPart, ToolCall, ToolResult
from ...text import REPLACEMENT, digest, whole
from ..base import ModelRequest

_ROLES = frozenset({"user", "assistant", "tool"})
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SentTurn(NamedTuple):
    """One message as it is to be sent. ``whole`` is False for what is left of a broken one."""

    role: str
    parts: tuple[Part, ...]
    message: Message
    whole: bool = True


def sendable(messages: Iterable[Message]) -> Iterator[SentTurn]:
    """The turns to send.

    Left out: roles no provider knows; of an assistant message that ended in an error or was
    aborted, all but its text, and so the results of its calls.
    """
    dropped: set[str] = set()
    for message in messages:
        if message.role not in _ROLES:
            continue
        parts = message.parts
        whole = True
        if message.role == "assistant":
            if dropped:
                dropped = set()
            if message.stop_reason in ("error", "aborted"):
                whole = False
                dropped = {part.id for part in parts if isinstance(part, ToolCall)}
                parts = tuple(p for p in parts if isinstance(p, TextPart) and p.text.strip())
        elif dropped:
            parts = tuple(
                p for p in parts if not (isinstance(p, ToolResult) and p.tool_call_id in dropped)
            )
        if parts:
            yield SentTurn(message.role, parts, message, whole)


def system_text(request: ModelRequest) -> str:
    """The system prompt, with the system messages that somebody put into the history."""
    texts = [request.system, *(m.text for m in request.messages if m.role == "system")]
    return "\n\n".join(text for text in texts if text)


def extras(turn: SentTurn, provider: str) -> Mapping[str, Any]:
    """By index of the part, the fields of its block that our parts have no place for.

    Readers put them into ``metadata["extras"]``. They are void when the provider is another
    one, or when somebody has changed the parts.
    """
    metadata = turn.message.metadata
    if not turn.whole or metadata.get("provider") != provider:
        return {}
    stored = metadata.get("extras")
    if not isinstance(stored, Mapping) or stored.get("parts") != len(turn.parts):
        return {}
    return stored


def wire_id(id: str) -> str:
    """``id``, or for an id that not every provider takes, one of its own that all take."""
    if _ID.fullmatch(id):
        return id
    return "call_" + digest(id)[:32]


def wire_name(name: str) -> str:
    """``name`` of a tool with what no provider takes replaced: models make names up."""
    return name if _ID.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


# Files and images


def data_url(part: ImagePart | FilePart) -> str:
    """The part's URL, or its data as one."""
    return part.url or f"data:{part.mime_type};base64,{part.data or ''}"


def text_of_file(part: FilePart) -> str | None:
    """The text of a text file, else None."""
    if part.data is None or not part.mime_type.startswith(("text/", "application/json")):
        return None
    try:
        return base64.b64decode(part.data).decode("utf-8")
    except ValueError:
        return None


def cannot_show(part: ImagePart | FilePart) -> str:
    """What a model is told of a file that its provider does not take."""
    name = getattr(part, "name", None) or part.url or "a file"
    return f"[{name} ({part.mime_type}) cannot be shown to this model]"


# JSON


def json_text(value: Any) -> str:
    """``value`` as JSON text; what JSON cannot carry is replaced."""
    return encode_body(value).decode()


def text_of(part: TextPart | JsonPart) -> str:
    """The text a model reads for the part."""
    return part.text if isinstance(part, TextPart) else json_text(part.data)


def encode_body(body: Any) -> bytes:
    """``body`` as JSON in UTF-8.

    Halves of surrogate pairs, which come from cut text and which UTF-8 cannot carry, become
    U+FFFD; NaN and infinities become null, unknown objects their repr. NUL is kept: JSON
    carries it.
    """
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        text = json.dumps(_plain(body), ensure_ascii=False, separators=(",", ":"))
        return whole(text, REPLACEMENT).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    try:
        return _plain(msgspec.to_builtins(value))
    except (TypeError, ValueError):
        return repr(value)
