"""Claude, over Anthropic's Messages API (version 2026-10-21, which the SDK sends)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...messages import (
    Delta,
    FilePart,
    ImagePart,
    JsonPart,
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
    ToolResult,
    Usage,
    told_usage,
)
from ...tools import ToolSpec
from ..base import ModelRequest
from ..response_format import closed, take_format, without_limits
from . import ANTHROPIC
from .arguments import ParameterNames, read_call
from .errors import Where, cut_stream, from_report
from .history import (
    Dialect,
    Piece,
    SentTurn,
    cannot_show,
    encode_items,
    encoded,
    extras,
    text_of,
    text_of_file,
    wire_id,
    wire_name,
)
from .streaming import ProviderModel, Reader, merged

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


_EVENTS = frozenset(
    {"content_block_start", "content_block_stop", "message_start", "message_delta"}
    | {"message_stop", "error"}
)
_decode_delta = msgspec.json.Decoder(_Event).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


class _StreamedBlock:
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
    """See :class:`~sagents_nb.models.providers.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._blocks: dict[int, _StreamedBlock] = {}
        self._calls = 0
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one event."""
        if event == "content_block_delta":
            return self._delta(data)
        if event and event not in _EVENTS:
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
        block = self._blocks[index] = _StreamedBlock(start, self._calls)
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
            is_call = text and block.start.get("type") == "tool_use"
            return [ToolCallDelta(block.call, text)] if is_call else []
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
        if citations := [c for extra in more.values() for c in extra.get("citations", ())]:
            metadata["citations"] = citations
        return Message(
            "assistant",
            tuple(parts),
            usage_of(self._usage, self._where.model),
            _STOP_REASONS.get(raw, "end_turn"),
            None,
            metadata,
        )


def usage_of(usage: dict[str, Any], model: str) -> Usage | None:
    """Our usage of theirs, which already counts cached input apart."""
    said = Usage(
        usage.get("input_tokens") or 0,
        usage.get("output_tokens") or 0,
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
    )
    return told_usage(said, model)


def _finished(block: _StreamedBlock) -> tuple[Part, dict[str, Any]]:
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


def _call(block: _StreamedBlock) -> ToolCall:
    start, text = block.start, "".join(block.json)
    if not text and isinstance(start.get("input"), dict):
        text = msgspec.json.encode(start["input"]).decode()  # no arguments: no deltas
    id, name = str(start.get("id") or ""), str(start.get("name") or "")
    return read_call(id, name, text, cut=not block.closed)


def _other(start: dict[str, Any], *placed: str) -> dict[str, Any]:
    return {k: v for k, v in start.items() if k not in placed and v not in (None, [], {})}


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


# The request

Block = dict[str, Any]

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MAX_TOKENS = 8_192
_MAX_TOKENS_THINKING = 32_000
# Tokens, for models that take a budget; the others take the word as their effort.
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}

# What the API takes, beside what is ours of every request.
_PARAMETERS = (
    "billing_policy cache_control compaction container context_management diagnostics "
    "fallback_credit_token fallbacks inference_geo mcp_servers metadata output_config "
    "service_tier speed temperature thread tools top_k top_p user_profile_id "
    "workspace_id"
)


class AnthropicModel(ProviderModel):
    """A Claude model by its ``name``: ``AnthropicModel("claude-sonnet-5-5")``.

    ``api_key`` is by default what the SDK finds (``ANTHROPIC_API_KEY`` first), ``base_url``
    ``ANTHROPIC_BASE_URL`` or the official API. ``headers``, ``timeout``, ``retries``,
    ``context_window`` and the ``options`` are those of
    :class:`~sagents_nb.models.providers.streaming.ProviderModel`: ``max_tokens`` (8,192, or 32,000
    with thinking), ``thinking``, and the ``parameters`` of the Messages API. The prompt is cached
    unless ``cache_control=None``. Raises :class:`~sagents_nb.errors.ModelError`, and
    :class:`~sagents_nb.errors.ConfigurationError` for an option that it does not know.

    >>> AnthropicModel("claude-sonnet-5-5", timeout=30, max_tokens=4000)
    AnthropicModel('claude-sonnet-5-5')
    """

    reads_images = True
    plain_parameters = True
    sdk = ANTHROPIC
    path = "/v1/messages"
    parameters = frozenset(_PARAMETERS.split())

    @staticmethod
    def finds_tools(name: str) -> bool:
        """Claude 4.5 and later do, and Haiku from 5 on."""
        return (_version(name) or (0, 0)) >= ((5, 0) if "haiku" in name else (4, 5))

    def encoded_body(
        self, request: ModelRequest, options: dict[str, Any], names: ParameterNames
    ) -> dict[str, Any]:
        """The body of a Messages request."""
        dialect = _DIALECT if names == _DIALECT.variant else _DIALECT._replace(variant=names)
        history = encoded(request.messages, dialect)
        body: dict[str, Any] = {"model": self.name, "stream": True}
        form = take_format(options)
        if form is not None and form.schema is not None:  # of JSON without one it knows nothing
            wanted = {"type": "json_schema", "schema": closed(without_limits(form.schema))}
            options["output_config"] = {"format": wanted, **(options.get("output_config") or {})}
        body |= _thinking(self.name, options)
        if system := history.instructions(request.system):
            body["system"] = system
        if request.tools:
            body["tools"] = _tools(names.tools(request.tools), self.defers_tools)
        body["messages"] = history.items(dialect)
        # On the request as a whole it caches up to the last block, and moves on with each turn.
        body["cache_control"] = {"type": "ephemeral"}
        choice = options.get("tool_choice")
        if isinstance(choice, str):
            options["tool_choice"] = {"type": {"required": "any"}.get(choice, choice)}
        return merged(body, options)

    def reader(self, where: Where) -> Reader:
        """A reader of Messages events."""
        return AnthropicReader(where)


# Anthropic's own search, by words: it looks for tools that are deferred.
_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


def _tools(tools: Iterable[ToolSpec], defers: bool) -> list[Block]:
    sent: list[Block] = []
    for spec in tools:
        sent.append(
            {"name": spec.name, "description": spec.description, "input_schema": spec.schema}
        )
        if defers and spec.defer_loading:
            sent[-1]["defer_loading"] = True
    if any("defer_loading" in tool for tool in sent):
        sent.append(dict(_SEARCH))
    return sent


def _thinking(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """``max_tokens``, and ``thinking`` and effort in the form that the model takes.

    Adaptive thinking came with Claude 4.6, and the Claude 5 family refuses budgets; 4.5 and
    older know only budgets. Fable and Mythos cannot be told not to think.
    """
    level = options.get("thinking")
    budgets = {**_BUDGETS, **(options.pop("thinking_budgets", None) or {})}
    wanted = options.pop("max_tokens", None)
    if not isinstance(level, str):
        return {"max_tokens": wanted or _MAX_TOKENS}
    del options["thinking"]
    if level == "off" and not re.search("fable|mythos", name):
        return {"max_tokens": wanted or _MAX_TOKENS, "thinking": {"type": "disabled"}}
    limit = wanted or _MAX_TOKENS_THINKING
    if takes_budget(name):
        budget = max(1_024, min(budgets.get(level, 8_192), limit // 2))
        thinking: dict[str, Any] = {"type": "enabled", "budget_tokens": budget}
        return {"max_tokens": max(limit, budget + 1_024), "thinking": thinking}
    effort = {"effort": _EFFORTS.get(level, "low" if level == "off" else level)}
    # Shown, because people watch it: by default newer models send back only a signature.
    thinking = {"type": "adaptive", "display": "summarized"}
    if isinstance(more := options.pop("output_config", None), dict):
        effort |= more
    return {"max_tokens": limit, "thinking": thinking, "output_config": effort}


def takes_budget(name: str) -> bool:
    """Whether the model knows only thinking with a budget of tokens.

    >>> takes_budget("claude-haiku-4-5-20251001"), takes_budget("claude-sonnet-5-5")
    (True, False)
    """
    return "mythos" not in name and (_version(name) or (4, 6)) < (4, 6)


def _version(name: str) -> tuple[int, int] | None:
    version = re.search(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    return None if version is None else (int(version[1]), int(version[2] or 0))


# Turns of user and assistant are in strict alternation, tool results before other content.
_HEADS = {role: b'{"role":"%b","content":[' % role.encode() for role in ("user", "assistant")}
_END = b"]}"


def _turn(turn: SentTurn, names: ParameterNames) -> Piece:
    """A turn with all its blocks; its results end at ``first``."""
    if turn.role == "assistant":
        return _piece("assistant", b"", encode_items(_assistant(turn, names)))
    results: list[Block] = []
    others: list[Block] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            results.append(_result(part))
        elif (block := _content(part)) is not None:
            others.append(block)
    return _piece("user", encode_items(results), encode_items(others))


def _piece(role: str, results: bytes, others: bytes) -> Piece:
    if not (results or others):
        return Piece(b"")
    head = _HEADS[role]
    comma = b"," if results and others else b""
    return Piece(head + results + comma + others + _END, role, len(head) + len(results))


def _merged(pieces: Sequence[Piece]) -> bytes:
    role, start = pieces[0].role, len(_HEADS[pieces[0].role])
    results = [piece.data[start : piece.first] for piece in pieces]
    others = [piece.data[piece.first : -len(_END)].removeprefix(b",") for piece in pieces]
    return _piece(role, b",".join(filter(None, results)), b",".join(filter(None, others))).data


_DIALECT = Dialect(_turn, ParameterNames(), _merged)
_THOUGHTS = ("thinking", "redacted_thinking")


def _assistant(turn: SentTurn, names: ParameterNames) -> list[Block]:
    more = extras(turn, "anthropic")
    blocks: list[Block] = []
    for index, part in enumerate(turn.parts):
        if isinstance(part, TextPart | JsonPart):
            text = text_of(part)
            if text.strip():  # "text content blocks must contain non-whitespace text"
                blocks.append({"type": "text", "text": text, **more.get(str(index), {})})
        elif isinstance(part, ToolCall):
            block = {
                "type": "tool_use",
                "id": wire_id(part.id),
                "name": wire_name(part.name),
                "input": names.arguments(part),
            }
            blocks.append({**block, **more.get(str(index), {})})
        elif isinstance(part, ThinkingPart):
            if part.provider != "anthropic":
                continue
            if part.raw is not None:
                blocks.append(part.raw)
            elif part.signature:
                blocks.append(
                    {"type": "thinking", "thinking": part.text, "signature": part.signature}
                )
        elif isinstance(part, ProviderPart) and part.provider == "anthropic":
            blocks.append(part.data)
    # "The final block in an assistant message cannot be `thinking`": no blank answer is sent.
    return [] if all(block.get("type") in _THOUGHTS for block in blocks) else blocks


def _result(result: ToolResult) -> Block:
    content = result.content if isinstance(result.content, str) else _contents(result.content)
    block: Block = {
        "type": "tool_result",
        "tool_use_id": wire_id(result.tool_call_id),
        "content": content,
    }
    if result.is_error:
        block["is_error"] = True
    return block


def _contents(parts: Iterable[Part]) -> list[Block]:
    return [block for part in parts if (block := _content(part)) is not None]


def _content(part: Part) -> Block | None:
    """A block of user content, or None for what is empty or somebody else's."""
    if isinstance(part, TextPart | JsonPart):
        text = text_of(part)
        return {"type": "text", "text": text} if text.strip() else None
    if isinstance(part, ImagePart):
        return _image(part)
    if isinstance(part, FilePart):
        return _file(part)
    if isinstance(part, ProviderPart) and part.provider == "anthropic":
        return part.data
    return None


def _image(part: ImagePart | FilePart) -> Block:
    source: Block
    if part.url:
        source = {"type": "url", "url": part.url}
    elif part.mime_type in _IMAGES:
        source = {"type": "base64", "media_type": part.mime_type, "data": part.data or ""}
    else:
        return {"type": "text", "text": cannot_show(part)}
    return {"type": "image", "source": source}


def _file(part: FilePart) -> Block:
    source: Block
    if part.mime_type.startswith("image/"):
        return _image(part)
    if part.url:
        source = {"type": "url", "url": part.url}
    elif part.mime_type == "application/pdf":
        source = {"type": "base64", "media_type": "application/pdf", "data": part.data or ""}
    elif (text := text_of_file(part)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return {"type": "text", "text": cannot_show(part)}
    block: Block = {"type": "document", "source": source}
    return {**block, "title": part.name} if part.name else block
