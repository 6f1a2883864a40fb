"""Reading the chunks of chat completions, of OpenAI and of servers that are nearly like it."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from ..messages import (
    Delta,
    Message,
    Part,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCallDelta,
)
from .arguments import read_call
from .failures import Where, from_report
from .openai_reader import usage_of

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None  # text; some servers send the object itself


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: Any = None  # text; some servers send a list of parts
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Streamed:
    """A call that is being streamed."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class ChatReader:
    """See :class:`~sagents_nb.models.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field = ""
        self._refusal: list[str] = []
        self._calls: list[_Streamed] = []
        self._by_index: dict[int, int] = {}
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {"provider": "openai-chat"}

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one chunk."""
        if data.startswith(b"[DONE]"):
            self.ended = True
            return []
        if event not in ("", "message", "error"):
            return []
        chunk = _decode(data)
        if chunk.error or event == "error":
            raise from_report(chunk.error or msgspec.json.decode(data), self._where)
        if chunk.usage:
            self._usage = chunk.usage
        if chunk.model and "model" not in self._metadata:
            self._metadata["model"] = chunk.model
        if chunk.id and "response_id" not in self._metadata:
            self._metadata["response_id"] = chunk.id
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.index == 0:
                if choice.delta is not None:
                    self._delta(choice.delta, deltas)
                if choice.finish_reason:
                    self._finish = choice.finish_reason
                    self.complete = True
        return deltas

    def _delta(self, delta: _Delta, deltas: list[Delta]) -> None:
        for field in ("reasoning_content", "reasoning"):
            if thought := getattr(delta, field):
                self._thinking.append(thought)
                self._thinking_field = field
                deltas.append(ThinkingDelta(thought))
                break
        text = delta.content if isinstance(delta.content, str) else _text_of(delta.content)
        if text:
            self._text.append(text)
            deltas.append(TextDelta(text))
        if delta.refusal:
            self._refusal.append(delta.refusal)
            deltas.append(TextDelta(delta.refusal))
        for call in delta.tool_calls or ():
            self._call(call, deltas)

    def _call(self, call: _Call, deltas: list[Delta]) -> None:
        # Some servers leave the index out, or give every call of a turn the index 0.
        index = call.index if call.index is not None else (-1 if call.id else None)
        position = len(self._calls) - 1 if index is None else self._by_index.get(index, -1)
        known = self._calls[position] if position >= 0 else None
        if known is None or (call.id and known.id and call.id != known.id):
            known = _Streamed()
            self._calls.append(known)
            position = len(self._calls) - 1
        if index is not None:
            self._by_index[index] = position
        function = call.function or _Function()
        first = not known.name
        if first:  # some servers repeat the name in every piece
            known.id = call.id or known.id or f"call_{uuid.uuid4().hex[:24]}"
            known.name = function.name or ""
        text = function.arguments
        if text is not None and not isinstance(text, str):
            text = msgspec.json.encode(text).decode()
        if text:
            known.arguments.append(text)
        if first or text:
            id, name = (known.id, known.name) if first else (None, None)
            deltas.append(ToolCallDelta(position, text or "", id, name))

    def message(self) -> Message:
        """The whole message."""
        parts: list[Part] = []
        if self._thinking:
            thought = "".join(self._thinking)
            parts.append(
                ThinkingPart(thought, None, "openai-chat", {self._thinking_field: thought})
            )
        if text := "".join(self._text) + "".join(self._refusal):
            parts.append(TextPart(text))
        calls = [read_call(c.id, c.name, "".join(c.arguments)) for c in self._calls]
        parts += calls
        metadata = self._metadata
        stop = _STOP_REASONS.get(self._finish, "end_turn")
        if self._finish not in _STOP_REASONS:
            metadata["provider_stop_reason"] = self._finish
        if self._refusal:
            stop = "refusal"
            metadata["stop_details"] = {
                "type": "refusal",
                "explanation": "".join(self._refusal),
            }
        elif self._finish == "stop" and calls:
            # With a forced tool_choice OpenAI itself says "stop", and so do some servers always.
            # It is a normal end, announced as such: what came before it is whole.
            stop = "tool_use"
        elif stop == "tool_use" and not calls:
            stop = "end_turn"
        usage = usage_of(self._usage, "prompt", "completion")
        return Message("assistant", tuple(parts), usage, stop, None, metadata)


def _text_of(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    return "".join(
        str(part.get("text") or "")
        for part in content
        if isinstance(part, dict) and part.get("type") == "text"
    )
