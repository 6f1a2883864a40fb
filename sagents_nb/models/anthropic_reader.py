"""Reading the events of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import msgspec

from ..messages import (
    Delta,
    Message,
    Part,
    ProviderPart,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from .arguments import read_call
from .failures import Where, cut_stream, from_report

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "compaction": "pause_turn",  # to be sent back unchanged, like a pause
    "model_context_window_exceeded": "context_window",
}


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class _Event(msgspec.Struct):
    """A content_block_delta: the one event that comes by the thousand."""

    index: int = 0
    delta: _Delta | None = None


_KNOWN = frozenset(
    {"content_block_start", "content_block_stop", "message_start", "message_delta"}
    | {"message_stop", "error"}
)
_decode_delta = msgspec.json.Decoder(_Event).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


class _Block:
    """A block that is being streamed."""

    __slots__ = ("call", "closed", "json", "signature", "start", "text")

    def __init__(self, start: dict[str, Any], call: int) -> None:
        self.start = start
        self.call = call
        self.text: list[str] = [str(start.get("text") or start.get("thinking") or "")]
        self.signature: list[str] = [str(start.get("signature") or "")]
        self.json: list[str] = []
        self.closed = False


class AnthropicReader:
    """See :class:`~sagents_nb.models.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one event."""
        if event == "content_block_delta":
            return self._delta(data)
        if event and event not in _KNOWN:
            return []  # "ping", and what is added later
        body = _decode_any(data)
        kind = event or body.get("type")
        if kind == "content_block_delta":
            return self._delta(data)
        if kind == "content_block_start":
            return self._start(int(body.get("index") or 0), body.get("content_block") or {})
        if kind == "content_block_stop":
            block = self._blocks.get(int(body.get("index") or 0))
            if block is not None:
                block.closed = True
        elif kind == "message_start":
            self._head = body.get("message") or {}
            self._count(self._head.get("usage"))
        elif kind == "message_delta":
            self._end |= {k: v for k, v in (body.get("delta") or {}).items() if v is not None}
            self._count(body.get("usage"))
        elif kind == "message_stop":
            if not self._end.get("stop_reason"):
                raise cut_stream(self._where, "it ended without a reason to stop")
            self.complete = self.ended = True
        elif kind == "error":
            raise from_report(body, self._where)
        return []

    def _start(self, index: int, start: dict[str, Any]) -> list[Delta]:
        block = self._blocks[index] = _Block(start, self._calls)
        if start.get("type") == "tool_use":
            self._calls += 1
            name = str(start.get("name") or "")
            return [ToolCallDelta(block.call, "", str(start.get("id") or ""), name)]
        if block.text[0] and start.get("type") == "text":
            return [TextDelta(block.text[0])]
        return []

    def _delta(self, data: bytes) -> list[Delta]:
        try:
            event = _decode_delta(data)
        except msgspec.ValidationError:  # well-formed, but a delta of a shape we do not know
            return []
        block, delta = self._blocks.get(event.index), event.delta
        if block is None or delta is None:
            return []
        if delta.type == "text_delta":
            text = delta.text or ""
            block.text.append(text)
            return [TextDelta(text)] if text else []
        if delta.type == "input_json_delta":
            text = delta.partial_json or ""
            block.json.append(text)
            known = text and block.start.get("type") == "tool_use"
            return [ToolCallDelta(block.call, text)] if known else []
        if delta.type == "thinking_delta":
            text = delta.thinking or ""
            block.text.append(text)
            return [ThinkingDelta(text)] if text else []
        if delta.type == "signature_delta":
            block.signature.append(delta.signature or "")
        else:
            _merge(block.start, _decode_any(data).get("delta") or {})
        return []

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):  # cumulative: the last word counts
            self._usage |= {k: v for k, v in usage.items() if v is not None}

    def message(self) -> Message:
        """The whole message."""
        raw = str(self._end.get("stop_reason"))
        metadata: dict[str, Any] = {"provider": "anthropic"}
        for key, value in (("model", "model"), ("response_id", "id")):
            if self._head.get(value):
                metadata[key] = self._head[value]
        for key in ("stop_details", "stop_sequence", "container"):
            if self._end.get(key) is not None:
                metadata[key] = self._end[key]
        if raw not in _STOP_REASONS or raw == "compaction":
            metadata["provider_stop_reason"] = raw
        parts: list[Part] = []
        more: dict[str, Any] = {}
        for index in sorted(self._blocks):
            part, extra = _finished(self._blocks[index])
            if extra:
                more[str(len(parts))] = extra
            parts.append(part)
        if more:
            metadata["extras"] = {"parts": len(parts), **more}
        return Message(
            "assistant",
            tuple(parts),
            usage_of(self._usage),
            _STOP_REASONS.get(raw, "end_turn"),
            None,
            metadata,
        )


def usage_of(usage: dict[str, Any]) -> Usage:
    """Our usage of theirs, which already counts cached input apart."""
    return Usage(
        usage.get("input_tokens") or 0,
        usage.get("output_tokens") or 0,
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
    )


def _finished(block: _Block) -> tuple[Part, dict[str, Any]]:
    """The part of a block, and the fields that the part has no place for."""
    start, kind = block.start, block.start.get("type")
    if kind == "text":
        extra = _other(start, "type", "text")
        return TextPart("".join(block.text)), extra
    if kind == "thinking":
        text, signature = "".join(block.text), "".join(block.signature)
        raw = {**start, "thinking": text, "signature": signature}
        odd = bool(_other(start, "type", "thinking", "signature"))
        return ThinkingPart(text, signature or None, "anthropic", raw if odd else None), {}
    if kind == "tool_use":
        return _call(block), _other(start, "type", "id", "name", "input")
    if block.json:
        call = read_call("", "", "".join(block.json))
        start = {**start, "input": call.arguments}
    return ProviderPart("anthropic", start), {}


def _call(block: _Block) -> ToolCall:
    start, text = block.start, "".join(block.json)
    if not text and isinstance(start.get("input"), dict):
        text = msgspec.json.encode(start["input"]).decode()  # no arguments: no deltas
    id, name = str(start.get("id") or ""), str(start.get("name") or "")
    return read_call(id, name, text, cut=not block.closed)


def _other(start: dict[str, Any], *known: str) -> dict[str, Any]:
    return {k: v for k, v in start.items() if k not in known and v not in (None, [], {})}


def _merge(start: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta of an unknown kind to its block: text grows, the rest is set."""
    if isinstance(delta.get("citation"), dict):
        start["citations"] = [*(start.get("citations") or []), delta["citation"]]
        return
    for key, value in delta.items():
        if key == "type":
            continue
        old = start.get(key)
        start[key] = old + value if isinstance(old, str) and isinstance(value, str) else value
