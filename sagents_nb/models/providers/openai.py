"""OpenAI's models, over the Responses API; nothing is stored there (``store=False``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ...errors import ModelError
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
from ...text import digest
from ...tools import ToolSpec
from ..base import ModelRequest, Vectors
from ..response_format import take_format
from . import OPENAI
from .arguments import ParameterNames, read_call
from .embeddings import embedded
from .errors import Where, from_report
from .history import (
    Dialect,
    Piece,
    SentTurn,
    cannot_show,
    data_url,
    encode_items,
    encoded,
    extras,
    json_text,
    text_of,
    wire_id,
    wire_name,
)
from .streaming import ProviderModel, Reader, merged

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "refusal",
}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")
_EVENTS = frozenset(
    {
        "response.output_item.added",
        "response.output_item.done",
        "response.reasoning_summary_part.added",
        "error",
        *_TERMINAL,
    }
)


class _Event(msgspec.Struct):
    """A delta of any kind: the events that come by the thousand."""

    output_index: int | None = None
    item_id: str | None = None
    delta: str = ""


_decode_delta = msgspec.json.Decoder(_Event).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


class _StreamedItem:
    """An output item that is being streamed."""

    __slots__ = ("arguments", "call", "done", "item", "text")

    def __init__(self, item: dict[str, Any], call: int) -> None:
        self.item = item
        self.call = call
        self.done = False
        self.text: list[str] = []
        self.arguments: list[str] = []


class ResponsesReader:
    """See :class:`~sagents_nb.models.providers.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._items: dict[int, _StreamedItem] = {}
        self._places: dict[str, int] = {}
        self._calls = 0
        self._response: dict[str, Any] = {}

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one event."""
        if event.endswith(".delta"):
            return self._delta(event, data)
        if event and event not in _EVENTS:
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
        self._items[index] = added = _StreamedItem(item, self._calls)
        for id in _ids(item):
            self._places[id] = index
        if item.get("type") != "function_call":
            return []
        self._calls += 1
        return [ToolCallDelta(added.call, "", _id(item), str(item.get("name") or ""))]

    def _done(self, index: int, item: dict[str, Any]) -> list[Delta]:
        deltas = [] if index in self._items else self._added(index, item)
        streamed = self._items[index]
        if item.get("type") == "function_call" and not streamed.arguments:
            # Compatible servers may send the arguments only here.
            deltas.append(ToolCallDelta(streamed.call, str(item.get("arguments") or "")))
        streamed.item, streamed.done = item, True
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
        for name, key in (("citations", "annotations"), ("logprobs", "logprobs")):
            if found := [each for item in self._items.values() for each in _listed(item, key)]:
                metadata[name] = found
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
        usage = usage_of(response.get("usage"), "input", "output", self._where.model)
        return Message("assistant", tuple(parts), usage, stop, None, metadata)


def usage_of(usage: Any, input: str, output: str, model: str) -> Usage | None:
    """Our usage of theirs, whose input includes what was read from and written to the cache.

    ``input`` and ``output`` are "input" and "output", or in chat "prompt" and "completion".
    """
    if not isinstance(usage, dict):
        return Usage() if usage is None else told_usage(usage, model)
    details = usage.get(f"{input}_tokens_details")
    if not isinstance(details, dict):
        details = {}
    told = told_usage(
        Usage(
            usage.get(f"{input}_tokens") or 0,
            usage.get(f"{output}_tokens") or 0,
            details.get("cached_tokens") or 0,
            details.get("cache_write_tokens") or 0,
        ),
        model,
    )
    if told is None:
        return None
    cached = told.cache_read_tokens + told.cache_write_tokens
    return replace(told, input_tokens=max(0, told.input_tokens - cached))


def _ids(item: dict[str, Any]) -> list[str]:
    return [id for key in ("id", "call_id") if isinstance(id := item.get(key), str) and id]


def _id(item: dict[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _failed(response: dict[str, Any], where: Where) -> ModelError:
    error = response.get("error") or {}
    if not error:
        error = {"type": "server_error", "message": f"the response was {response.get('status')}"}
    return from_report(error, where)


def _parts(streamed: _StreamedItem, refusals: list[str]) -> list[tuple[Part, dict[str, Any]]]:
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


def _listed(streamed: _StreamedItem, key: str) -> list[Any]:
    """What the texts of a message list under that name, in order."""
    if streamed.item.get("type") != "message":
        return []
    contents = streamed.item.get("content") or []
    return [each for content in contents for each in content.get(key) or ()]


def _reasoning(item: dict[str, Any]) -> str:
    pieces = item.get("summary") or item.get("content") or []
    return "\n\n".join(str(piece.get("text") or "") for piece in pieces)


def _other(item: dict[str, Any], *placed: str) -> dict[str, Any]:
    return {k: v for k, v in item.items() if k not in placed and v is not None}


# The request

Item = dict[str, Any]

# These answer "Encrypted content is not supported with this model" to the include below.
_NO_REASONING = re.compile(r"gpt-[34]|chatgpt-4|.*-chat-latest")

# What the API takes, beside what is ours of every request.
_PARAMETERS = (
    "access_programs background background_options context_management conversation image "
    "include max_output_tokens max_tool_calls metadata moderation parallel_tool_calls "
    "previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning safety_identifier service_tier store stream_options temperature text tools "
    "top_logprobs top_p truncation user"
)


class OpenAIModel(ProviderModel):
    """A model of OpenAI by its ``name``: ``OpenAIModel("gpt-6.1-sol")``.

    ``api_key`` is by default ``OPENAI_API_KEY``, ``base_url`` ``OPENAI_BASE_URL`` or the
    official API. ``headers``, ``timeout``, ``retries``, ``context_window`` and the ``options`` are
    those of :class:`~sagents_nb.models.providers.streaming.ProviderModel`: ``max_tokens`` (sent as
    ``max_output_tokens``), ``thinking`` (as ``reasoning.effort``), and the ``parameters`` of the
    Responses API. Reasoning comes back encrypted and is sent again with the next request. Raises
    :class:`~sagents_nb.errors.ModelError`, and :class:`~sagents_nb.errors.ConfigurationError` for
    an option that it does not know.

    >>> OpenAIModel("gpt-6.1-sol", timeout=30, max_tokens=4000)
    OpenAIModel('gpt-6.1-sol')
    """

    reads_images = True
    sdk = OPENAI
    path = "/responses"
    parameters = frozenset(_PARAMETERS.split())

    @staticmethod
    def finds_tools(name: str) -> bool:
        """GPT-5.4 and later do."""
        version = re.match(r"gpt-(\d+)(?:\.(\d+))?", name)
        return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 4)

    def encoded_body(
        self, request: ModelRequest, options: dict[str, Any], names: ParameterNames
    ) -> dict[str, Any]:
        """The body of a Responses request."""
        body: dict[str, Any] = {"model": self.name, "stream": True, "store": False}
        body |= cache_key(self, request)
        if not _NO_REASONING.match(self.name):
            body["include"] = ["reasoning.encrypted_content"]
        history = encoded(request.messages, _DIALECT)
        if system := history.instructions(request.system):
            body["instructions"] = system
        if request.tools:
            body["tools"] = _tools(request.tools, self.defers_tools)
        body["input"] = history.items(_DIALECT)
        if (limit := options.pop("max_tokens", None)) is not None:
            body["max_output_tokens"] = limit
        options.pop("thinking_budgets", None)
        if (level := options.pop("thinking", None)) is not None:
            reasoning = options.pop("reasoning", None) or {}
            body["reasoning"] = {"effort": effort(self.name, level), **reasoning}
        if (form := take_format(options)) is not None:
            details = form.details() if form.schema is not None else {}
            options["text"] = {
                "format": {"type": form.kind, **details},
                **(options.get("text") or {}),
            }
        if options.get("tool_choice") == "any":
            options["tool_choice"] = "required"
        return merged(body, options)

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Those of the server's embeddings endpoint."""
        return await embedded(self, texts, dimensions)

    def reader(self, where: Where) -> Reader:
        """A reader of Responses events."""
        return ResponsesReader(where)


def _tools(tools: Iterable[ToolSpec], defers: bool) -> list[Item]:
    sent: list[Item] = []
    for spec in tools:
        sent.append(
            {
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.schema,
                "strict": False,
            }
        )
        if defers and spec.defer_loading:
            sent[-1]["defer_loading"] = True
    if any("defer_loading" in tool for tool in sent):
        sent.append({"type": "tool_search"})
    return sent


def cache_key(model: ProviderModel, request: ModelRequest) -> dict[str, Any]:
    """Which requests begin alike: those of a session. OpenAI alone is sure to take it.

    It is a digest, since an id of yours may name a person (and has 64 characters at most there).
    """
    if not (request.session_id and model.is_official):
        return {}
    return {"prompt_cache_key": digest(request.session_id)[:32]}


def effort(name: str, level: str) -> str:
    """The reasoning effort for a level of ours: the nearest one that the model knows.

    >>> effort("gpt-5.6-terra", "off"), effort("gpt-6.1-sol", "off"), effort("gpt-5", "minimal")
    ('none', 'low', 'minimal')
    """
    if level == "off":  # GPT-6 Astra and Sol always reason
        return "low" if re.match(r"gpt-6[^-]*-(astra|sol)", name) else "none"
    if level == "minimal":  # only the first GPT-5 knows it
        return "minimal" if re.match(r"gpt-5(?![.\d])", name) else "low"
    return level


def _turn(turn: SentTurn, _: None) -> Piece:
    return Piece(encode_items([*_items(turn)]))


_DIALECT = Dialect(_turn)


def _items(turn: SentTurn) -> Iterable[Item]:
    if turn.role == "assistant":
        yield from _assistant(turn)
        return
    content: list[Item] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            yield {
                "type": "function_call_output",
                "call_id": wire_id(part.tool_call_id),
                "output": _output(part),
            }
        elif (item := _content(part)) is not None:
            content.append(item)
    if content:
        yield {"role": "user", "content": content}


def _assistant(turn: SentTurn) -> Iterable[Item]:
    more = extras(turn, "openai")
    for index, part in enumerate(turn.parts):
        extra = more.get(str(index), {})
        if isinstance(part, TextPart | JsonPart):
            if text := text_of(part):
                content = [{"type": "output_text", "text": text, "annotations": []}]
                yield {"type": "message", "role": "assistant", "content": content, **extra}
        elif isinstance(part, ToolCall):
            yield {
                "type": "function_call",
                "call_id": wire_id(part.id),
                "name": wire_name(part.name),
                "arguments": json_text(part.arguments),
                **extra,
            }
        elif isinstance(part, ThinkingPart):
            raw = part.raw if part.provider == "openai" else None
            # Nothing is stored there, so a bare id of reasoning would be "not found".
            if raw is not None and (raw.get("encrypted_content") or raw.get("content")):
                yield raw
        elif isinstance(part, ProviderPart) and part.provider == "openai":
            yield part.data


def _output(result: ToolResult) -> str | list[Item]:
    if isinstance(result.content, str):
        return result.content
    items = [item for part in result.content if (item := _content(part)) is not None]
    if all(item["type"] == "input_text" for item in items):
        return "\n".join(item["text"] for item in items)
    return items


def _content(part: Part) -> Item | None:
    """An item of user content, or None for what is empty or somebody else's."""
    if isinstance(part, TextPart | JsonPart):
        text = text_of(part)
        return {"type": "input_text", "text": text} if text else None
    if isinstance(part, ImagePart) or (
        isinstance(part, FilePart) and part.mime_type.startswith("image/")
    ):
        return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}
    if isinstance(part, FilePart):
        if part.url:
            return {"type": "input_file", "file_url": part.url}
        if part.data is None:
            return {"type": "input_text", "text": cannot_show(part)}
        name = part.name or "file"
        return {"type": "input_file", "filename": name, "file_data": data_url(part)}
    if isinstance(part, ProviderPart) and part.provider == "openai":
        return part.data
    return None
