"""Reading the events of OpenAI's Responses API."""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import ModelError
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
from .failures import Where, from_report

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "refusal",
}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")


class _Event(msgspec.Struct):
    """A delta of any kind: the events that come by the thousand."""

    output_index: int | None = None
    item_id: str | None = None
    delta: str = ""


_decode_delta = msgspec.json.Decoder(_Event).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


class _Item:
    """An output item that is being streamed."""

    __slots__ = ("arguments", "call", "done", "item", "text")

    def __init__(self, item: dict[str, Any], call: int) -> None:
        self.item = item
        self.call = call
        self.done = False
        self.text: list[str] = []
        self.arguments: list[str] = []


class ResponsesReader:
    """See :class:`~sagents_nb.models.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._items: dict[int, _Item] = {}
        self._places: dict[str, int] = {}
        self._calls = 0
        self._response: dict[str, Any] = {}

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one event."""
        if event.endswith(".delta"):
            return self._delta(event, data)
        if event and event not in _KNOWN:
            return []
        if data == b"[DONE]":  # compatible servers end so
            return []
        body = _decode_any(data)
        kind = event or str(body.get("type") or "")
        if kind.endswith(".delta"):
            return self._delta(kind, data)
        if kind == "response.output_item.added":
            item = body.get("item") or {}
            return self._added(self._place(body.get("output_index"), *_ids(item)), item)
        if kind == "response.output_item.done":
            item = body.get("item") or {}
            return self._done(self._place(body.get("output_index"), *_ids(item)), item)
        if kind == "response.reasoning_summary_part.added":
            return [ThinkingDelta("\n\n")] if body.get("summary_index") else []
        if kind in _TERMINAL:
            return self._end(kind, body.get("response") or {})
        if kind == "error":
            raise from_report(body, self._where)
        return []

    def _delta(self, event: str, data: bytes) -> list[Delta]:
        try:
            body = _decode_delta(data)
        except msgspec.ValidationError:  # well-formed, but a delta that is no text
            return []
        if not (text := body.delta):
            return []
        index = body.output_index
        if index is None:
            index = self._places.get(body.item_id or "", len(self._items) - 1)
        item = self._items.get(index)
        if event in ("response.output_text.delta", "response.refusal.delta"):
            if item is not None:
                item.text.append(text)
            return [TextDelta(text)]
        if event == "response.function_call_arguments.delta":
            if item is None:
                return []
            item.arguments.append(text)
            return [ToolCallDelta(item.call, text)]
        if event in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return [ThinkingDelta(text)]
        return []

    def _place(self, index: int | None, *ids: str) -> int:
        """Which item is meant; llama.cpp gives no index, so there it is told by its ids."""
        if index is not None:
            return index
        return next((self._places[id] for id in ids if id in self._places), len(self._items))

    def _added(self, index: int, item: dict[str, Any]) -> list[Delta]:
        self._items[index] = added = _Item(item, self._calls)
        for id in _ids(item):
            self._places[id] = index
        if item.get("type") != "function_call":
            return []
        self._calls += 1
        return [ToolCallDelta(added.call, "", _id(item), str(item.get("name") or ""))]

    def _done(self, index: int, item: dict[str, Any]) -> list[Delta]:
        deltas = [] if index in self._items else self._added(index, item)
        known = self._items[index]
        if item.get("type") == "function_call" and not known.arguments:
            # Compatible servers may send the arguments only here.
            deltas.append(ToolCallDelta(known.call, str(item.get("arguments") or "")))
        known.item, known.done = item, True
        return deltas

    def _end(self, kind: str, response: dict[str, Any]) -> list[Delta]:
        self._response = response
        if kind == "response.failed" or response.get("status") in ("failed", "cancelled"):
            raise _failed(response, self._where)
        deltas: list[Delta] = []
        for index, item in enumerate(response.get("output") or []):
            if isinstance(item, dict) and not (index in self._items and self._items[index].done):
                deltas += self._done(index, item)
        self.complete = self.ended = True
        return deltas

    def message(self) -> Message:
        """The whole message."""
        response = self._response
        metadata: dict[str, Any] = {"provider": "openai"}
        for key, value in (("model", "model"), ("response_id", "id")):
            if response.get(value):
                metadata[key] = response[value]
        parts: list[Part] = []
        more: dict[str, Any] = {}
        refusals: list[str] = []
        for index in sorted(self._items):
            for part, extra in _parts(self._items[index], refusals):
                if extra:
                    more[str(len(parts))] = extra
                parts.append(part)
        if more:
            metadata["extras"] = {"parts": len(parts), **more}
        stop: StopReason = "end_turn"
        if response.get("status") == "incomplete":
            reason = str((response.get("incomplete_details") or {}).get("reason") or "")
            stop = _INCOMPLETE.get(reason, "max_tokens")
            metadata["provider_stop_reason"] = reason
            if stop == "refusal":
                metadata["stop_details"] = {"type": "refusal", "category": reason}
        elif refusals:
            stop = "refusal"
            metadata["stop_details"] = {"type": "refusal", "explanation": "".join(refusals)}
        elif any(isinstance(part, ToolCall) for part in parts):
            stop = "tool_use"
        usage = usage_of(response.get("usage") or {}, "input", "output")
        return Message("assistant", tuple(parts), usage, stop, None, metadata)


_KNOWN = frozenset(
    {
        "response.output_item.added",
        "response.output_item.done",
        "response.reasoning_summary_part.added",
        "error",
        *_TERMINAL,
    }
)


def usage_of(usage: dict[str, Any], input: str, output: str) -> Usage:
    """Our usage of theirs, whose input includes what was read from and written to the cache.

    ``input`` and ``output`` are "input" and "output", or in chat "prompt" and "completion".
    """
    details = usage.get(f"{input}_tokens_details") or {}
    read = details.get("cached_tokens") or 0
    written = details.get("cache_write_tokens") or 0
    total = usage.get(f"{input}_tokens") or 0
    return Usage(max(0, total - read - written), usage.get(f"{output}_tokens") or 0, read, written)


def _ids(item: dict[str, Any]) -> list[str]:
    return [id for key in ("id", "call_id") if isinstance(id := item.get(key), str) and id]


def _id(item: dict[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _failed(response: dict[str, Any], where: Where) -> ModelError:
    error = response.get("error") or {}
    if not error:
        error = {"type": "server_error", "message": f"the response was {response.get('status')}"}
    return from_report(error, where)


def _parts(streamed: _Item, refusals: list[str]) -> list[tuple[Part, dict[str, Any]]]:
    """The parts of an item, each with the fields that the part has no place for."""
    item, kind = streamed.item, streamed.item.get("type")
    if kind == "message":
        text = _text(item, refusals) if streamed.done else "".join(streamed.text)
        extra = _other(item, "type", "role", "content")
        return [(TextPart(text), extra)] if text else []
    if kind == "function_call":
        text = str(item.get("arguments") or "") or "".join(streamed.arguments)
        cut = not streamed.done or item.get("status") == "incomplete"
        call = read_call(_id(item), str(item.get("name") or ""), text, cut=cut)
        return [(call, _other(item, "type", "call_id", "name", "arguments"))]
    if not streamed.done:
        return []  # a piece of a reasoning item, or of one we do not know, is of no use
    if kind == "reasoning":
        return [(ThinkingPart(_reasoning(item), None, "openai", item), {})]
    return [(ProviderPart("openai", item), {})]


def _text(item: dict[str, Any], refusals: list[str]) -> str:
    texts = []
    for content in item.get("content") or []:
        if content.get("type") == "refusal":
            refusals.append(str(content.get("refusal") or ""))
            texts.append(refusals[-1])
        elif isinstance(content.get("text"), str):
            texts.append(content["text"])
    return "".join(texts)


def _reasoning(item: dict[str, Any]) -> str:
    pieces = item.get("summary") or item.get("content") or []
    return "\n\n".join(str(piece.get("text") or "") for piece in pieces)


def _other(item: dict[str, Any], *known: str) -> dict[str, Any]:
    return {k: v for k, v in item.items() if k not in known and v is not None}
