"""What people see of a conversation: one message as rows, and what a row may hold.

A transcript is kept apart from the agent's own history, which summaries cut. One message can
be several rows: its thinking, its text, an image, the calls of tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from .. import kinds
from ..errors import ConfigurationError
from ..messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from ..serialization import to_data


class Row(msgspec.Struct, frozen=True):
    """A row before it is stored; see :class:`DisplayMessage`."""

    message_type: str
    content_type: str
    content: dict[str, Any]
    status: str = "completed"
    metadata: dict[str, Any] = {}

    @property
    def tool_call_id(self) -> str | None:
        """The call that the row is, or is the result of."""
        return self.content.get({"tool_call": "call_id"}.get(self.content_type, "tool_call_id"))


class DisplayMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a transcript.

    ``message_type`` is the role of its message; ``content_type`` is one of
    :data:`CONTENT_TYPES` and says what ``content`` holds. ``status`` is "completed" but for a
    tool call, which also is "pending", "executing", "interrupted", "failed" or "cancelled".
    The rows of one message have one ``inserted_at`` (UTC) and a ``sequence`` from 0 on.

    >>> from sagents_nb import ConversationStore
    >>> store = ConversationStore("sqlite://")  # in memory
    >>> row = store.append_text_message(store.create_conversation().id, "user", "To Oslo, please.")
    >>> row.message_type, row.content_type, row.text
    ('user', 'text', 'To Oslo, please.')
    >>> store.close()
    """

    id: int
    conversation_id: str
    message_type: str
    content_type: str
    content: dict[str, Any]
    status: str
    metadata: dict[str, Any]
    inserted_at: datetime
    sequence: int

    @property
    def text(self) -> str:
        """What was said, thought, told or given back by a tool; "" for what has no text."""
        text = self.content.get("content" if self.content_type == "tool_result" else "text")
        return text if isinstance(text, str) else ""


CONTENT_TYPES: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"text": str},
    "image": {},  # see _problem
    "file_reference": {"name": str},
    "structured_data": {"data": object},
    "notification": {"text": str},
    "error": {"text": str},
    "tool_call": {"call_id": str, "name": str, "arguments": dict},
    "tool_result": {"tool_call_id": str, "name": str, "content": str},
    "todo_snapshot": {"todos": list},
}
"""Per type of content: the fields that it must have. More are kept as they are."""

STATUSES: dict[str, tuple[str, ...]] = {
    "executing": ("pending",),
    "completed": ("pending", "executing", "interrupted"),
    "failed": ("pending", "executing", "interrupted"),
    "cancelled": ("pending", "executing", "interrupted"),
    "interrupted": ("pending", "executing"),
}
"""Per status of a tool call: those from which it is reached."""


def checked(row: Row) -> Row:
    """``row``, if it can be stored.

    Raises :class:`~sagents_nb.errors.ConfigurationError`, which names the field that is wrong.
    """
    problem = _problem(row)
    if problem:
        raise ConfigurationError(f"This row cannot be stored: {problem}.")
    return row


def _problem(row: Row) -> str | None:
    kind, content = row.content_type, row.content
    for name in ("message_type", "content_type", "status"):
        value = getattr(row, name)
        if not isinstance(value, str) or not 1 <= len(value) <= 40:
            return f"its {name} must be text of 1 to 40 characters, not {kinds.shown(value)}"
    if kind not in CONTENT_TYPES:
        return f"there is no content_type {kind!r}; types are {', '.join(CONTENT_TYPES)}"
    if row.status not in ("completed", "pending", *STATUSES):
        return f"there is no status {row.status!r}"
    for name in ("content", "metadata"):
        if not isinstance(getattr(row, name), Mapping):
            return f"its {name} must be a dict, not {type(getattr(row, name)).__name__}"
    for field, wanted in CONTENT_TYPES[kind].items():
        if field not in content:
            return f"content of type {kind!r} needs {field!r}"
        if not isinstance(content[field], wanted):
            was = type(content[field]).__name__
            return f"{field!r} of type {kind!r} must be {wanted.__name__}, not {was}"
    if kind == "image" and not any(isinstance(content.get(f), str) for f in ("url", "data")):
        return "content of type 'image' needs 'url' or base64 'data', as text"
    return None


def rows_of(message: Message) -> list[Row]:
    """The rows of one message, in order; none if there is nothing to see in it.

    First its texts, thinking, images, files and data as they come (empty texts left out),
    then its tool calls, then its tool results. What a provider alone understands is no row. A call
    with the id of one before it is never run, so it is "failed" from the beginning.

    Only the last row of a message that did not end says why, in its content: "stop_reason" is
    "length", "content_filtered", "cancelled" or "stream_error", "stop_details" is what the
    provider said about it, if it did, and "error" the sentence of the failure, if there is one.
    """
    message = message.shown
    shown = [row for part in message.parts if (row := _content_row(message.role, part))]
    ids: set[str] = set()
    for call in message.tool_calls:
        shown.append(_call_row(message.role, call, "failed" if call.id in ids else "pending"))
        ids.add(call.id)
    shown += [_result_row(message.role, result) for result in message.tool_results]
    if shown and (reason := _UNFINISHED.get(message.stop_reason or "")):
        why = {
            "stop_reason": reason,
            "stop_details": to_data(message.metadata.get("stop_details")),
            "error": message.error,
        }
        content = shown[-1].content | {name: value for name, value in why.items() if value}
        shown[-1] = msgspec.structs.replace(shown[-1], content=content)
    return shown


_UNFINISHED = {
    "max_tokens": "length",
    "context_window": "length",
    "refusal": "content_filtered",
    "aborted": "cancelled",
    "error": "stream_error",
}


@kinds.checked
def cancelled_row(text: str = "Cancelled.") -> Row:
    """What tells people that they, or somebody, cancelled a run."""
    return Row("system", "notification", {"text": text, "stop_reason": "cancelled"})


@kinds.checked
def error_row(text: str, error_type: str) -> Row:
    """What tells people that a run failed; ``error_type`` such as "overloaded"."""
    return Row("system", "error", {"text": text, "error_type": error_type})


def _content_row(role: str, part: Part) -> Row | None:
    if isinstance(part, TextPart | ThinkingPart):
        kind = "text" if isinstance(part, TextPart) else "thinking"
        return Row(role, kind, {"text": part.text}) if part.text else None
    if isinstance(part, ImagePart):
        where = {"url": part.url} if part.url else {"data": part.data or ""}
        return Row(role, "image", {**where, "mime_type": part.mime_type})
    if isinstance(part, FilePart):
        about = {"name": part.name or part.url or "file", "mime_type": part.mime_type}
        return Row(role, "file_reference", about | ({"url": part.url} if part.url else {}))
    if isinstance(part, JsonPart):
        return Row(role, "structured_data", {"data": to_data(part.data)})
    return None


def _call_row(role: str, call: ToolCall, status: str) -> Row:
    content = {"call_id": call.id, "name": call.name, "arguments": to_data(call.arguments)}
    if call.error:
        content["error"] = call.error
    return Row(role, "tool_call", content, status)


def _result_row(role: str, result: ToolResult) -> Row:
    content: dict[str, Any] = {
        "tool_call_id": result.tool_call_id,
        "name": result.name,
        "content": result.text,
        "is_error": result.is_error,
    }
    if result.is_interrupt:
        content["is_interrupt"] = True
    if not isinstance(result.content, str):
        others = [part for part in result.content if not isinstance(part, TextPart | JsonPart)]
        attached = [row for part in others if (row := _content_row(role, part))]
        if attached:  # a plot, say
            content["attachments"] = [
                {"content_type": row.content_type, "content": row.content} for row in attached
            ]
    return Row(role, "tool_result", content, metadata=to_data(result.metadata))
