"""Messages and their parts: plain immutable data.

A message is a role and an ordered sequence of parts. Tool calls and tool results are parts
too, because providers care about the order of thinking, text and calls within one turn and
want thinking back exactly as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "context_window",
    "error",
    "aborted",
]
"""Why a model stopped. Only "tool_use" lets tools run; "error" and "aborted" are ours."""


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Text that a person or a model wrote."""

    text: str


class ThinkingPart(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True):
    """A model's reasoning. ``signature`` and ``raw`` go back to ``provider`` unchanged."""

    text: str
    signature: str | None = None
    provider: str | None = None
    raw: dict[str, Any] | None = None


class ImagePart(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """An image: either base64 ``data`` with its ``mime_type``, or a ``url``."""

    data: str | None = None
    mime_type: str = "image/png"
    url: str | None = None


class FilePart(msgspec.Struct, frozen=True, tag="file", omit_defaults=True):
    """A document: base64 ``data`` with its ``mime_type`` and a ``name``, or a ``url``."""

    data: str | None = None
    mime_type: str = "application/octet-stream"
    name: str | None = None
    url: str | None = None


class JsonPart(msgspec.Struct, frozen=True, tag="json"):
    """Structured data; a model that only reads text is given it as JSON text."""

    data: Any


class ProviderPart(msgspec.Struct, frozen=True, tag="provider"):
    """A block only ``provider`` understands, kept and sent back verbatim."""

    provider: str
    data: dict[str, Any]


ContentPart = TextPart | ThinkingPart | ImagePart | FilePart | JsonPart | ProviderPart


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A model's wish to run a tool.

    ``error`` says why the arguments could not be read (cut stream, bad JSON); such a call
    is answered with that error and never run.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    error: str | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What a tool call came to; ``content`` is text or parts for the model."""

    tool_call_id: str
    name: str
    content: str | list[ContentPart]
    is_error: bool = False
    is_interrupt: bool = False
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The text of the content, parts joined by newlines; JSON parts as JSON text."""
        return self.content if isinstance(self.content, str) else parts_text(self.content)


Part = ContentPart | ToolCall | ToolResult


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and money of one or more model calls.

    ``input_tokens`` counts only what was neither read from nor written to the provider's
    cache, so the three input figures add up and can be priced apart. ``cost_usd`` is None
    where no price is known.

    >>> Usage(3, 4) + Usage(1, 1, cost_usd=0.5)
    Usage(input_tokens=4, output_tokens=5, cache_read_tokens=0, cache_write_tokens=0, cost_usd=0.5)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        if self.cost_usd is None and other.cost_usd is None:
            cost = None
        else:
            cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            cost,
        )

    @property
    def total_tokens(self) -> int:
        """All tokens, cached ones included."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


Content = str | Part | Iterable[Part]


def as_parts(content: Content) -> tuple[Part, ...]:
    """``content`` as a tuple of parts; "" is no part at all."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    if isinstance(content, msgspec.Struct):
        return (content,)
    return tuple(content)


def parts_text(parts: Iterable[Part]) -> str:
    """The readable text of parts, joined by newlines."""
    texts = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, JsonPart):
            texts.append(msgspec.json.encode(part.data).decode())
    return "\n".join(texts)


# In the metadata of a message: what people see instead of it, as data.
DISPLAY = "display"


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a conversation.

    ``role`` is "user", "assistant", "system", "tool", or a name of your own: messages of
    unknown roles are kept in the transcript and never sent to a model.

    >>> m = Message.assistant("Let me look.", tool_calls=[ToolCall("c1", "ls", {})])
    >>> m.role, m.text, m.tool_calls[0].name
    ('assistant', 'Let me look.', 'ls')
    """

    role: str
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    error: str | None = None
    metadata: dict[str, Any] = {}

    @classmethod
    def user(cls, content: Content, **metadata: Any) -> Message:
        """A person's message: text, a part, or several parts."""
        return cls("user", as_parts(content), metadata=metadata)

    @classmethod
    def system(cls, content: Content, **metadata: Any) -> Message:
        """Instructions for the model."""
        return cls("system", as_parts(content), metadata=metadata)

    @classmethod
    def assistant(
        cls,
        content: Content = "",
        tool_calls: Iterable[ToolCall] = (),
        *,
        usage: Usage | None = None,
        stop_reason: StopReason | None = None,
        **metadata: Any,
    ) -> Message:
        """A model's message; ``stop_reason`` follows from ``tool_calls`` unless given."""
        calls = tuple(tool_calls)
        reason = stop_reason or ("tool_use" if calls else "end_turn")
        return cls("assistant", as_parts(content) + calls, usage, reason, None, metadata)

    @classmethod
    def tool(cls, results: Iterable[ToolResult], **metadata: Any) -> Message:
        """The results of one turn's tool calls, in the order of the calls."""
        return cls("tool", tuple(results), metadata=metadata)

    @property
    def shown(self) -> Message:
        """What people see of it: itself, unless a message preprocessor said otherwise."""
        display = self.metadata.get(DISPLAY)
        if display is None:
            return self
        try:
            return msgspec.convert(display, Message)
        except msgspec.ValidationError:  # somebody else's key of that name
            return self

    @property
    def text(self) -> str:
        """The text parts, joined; thinking, calls and results are not text."""
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))

    @property
    def thinking(self) -> str:
        """The thinking parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, ThinkingPart))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls, in order."""
        return [p for p in self.parts if isinstance(p, ToolCall)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The tool results, in order."""
        return [p for p in self.parts if isinstance(p, ToolResult)]


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the answer."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of reasoning."""

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A piece of a tool call: ``id`` and ``name`` come first, then JSON text of arguments."""

    index: int
    text: str = ""
    id: str | None = None
    name: str | None = None


Delta = TextDelta | ThinkingDelta | ToolCallDelta
