"""Chat completions: the API that OpenAI and every compatible server speak."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from ... import kinds
from ...messages import (
    Delta,
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    Part,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    told_usage,
)
from ..base import ModelRequest, Vectors
from ..response_format import read_format
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
    json_text,
    sendable,
    text_of,
    text_of_file,
    wire_id,
    wire_name,
)
from .openai import cache_key, effort, usage_of
from .streaming import ProviderModel, Reader, merged

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
    annotations: Any = None  # a list


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None  # of "content" and "refusal", where they were asked for


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None  # counts by their names; a server may send anything
    error: Any = None


_DOLLARS = kinds.number(0, finite=True)

_decode = msgspec.json.Decoder(_Chunk).decode


class _StreamedCall:
    """A call that is being streamed."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class ChatReader:
    """See :class:`~sagents_nb.models.providers.streaming.Reader`."""

    def __init__(self, where: Where) -> None:
        self.complete = False
        self.ended = False
        self._where = where
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field = ""
        self._refusal: list[str] = []
        self._calls: list[_StreamedCall] = []
        self._by_index: dict[int, int] = {}
        self._finish = ""
        self._usage: Any = None
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
                if isinstance(choice.logprobs, dict):
                    self._keep("logprobs", choice.logprobs.get("content"))
                if choice.finish_reason:
                    self._finish = choice.finish_reason
                    self.complete = True
        return deltas

    def _delta(self, delta: _Delta, deltas: list[Delta]) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            self._thinking.append(thought)
            self._thinking_field = "reasoning_content" if delta.reasoning_content else "reasoning"
            deltas.append(ThinkingDelta(thought))
        text = delta.content if isinstance(delta.content, str) else _text_of(delta.content)
        if text:
            self._text.append(text)
            deltas.append(TextDelta(text))
        if delta.refusal:
            self._refusal.append(delta.refusal)
            deltas.append(TextDelta(delta.refusal))
        for call in delta.tool_calls or ():
            self._call(call, deltas)
        if delta.annotations:
            self._keep("citations", delta.annotations)

    def _keep(self, name: str, more: Any) -> None:
        if more and isinstance(more, list):
            self._metadata.setdefault(name, []).extend(more)

    def _call(self, call: _Call, deltas: list[Delta]) -> None:
        # Some servers leave the index out, or give every call of a turn the index 0.
        index = call.index if call.index is not None else (-1 if call.id else None)
        position = len(self._calls) - 1 if index is None else self._by_index.get(index, -1)
        streamed = self._calls[position] if position >= 0 else None
        if streamed is None or (call.id and streamed.id and call.id != streamed.id):
            streamed = _StreamedCall()
            self._calls.append(streamed)
            position = len(self._calls) - 1
        if index is not None:
            self._by_index[index] = position
        function = call.function or _Function()
        first = not streamed.name
        if first:  # some servers repeat the name in every piece
            streamed.id = call.id or streamed.id or f"call_{uuid.uuid4().hex[:24]}"
            streamed.name = function.name or ""
        text = function.arguments
        if text is not None and not isinstance(text, str):
            text = msgspec.json.encode(text).decode()
        if text:
            streamed.arguments.append(text)
        if first or text:
            id, name = (streamed.id, streamed.name) if first else (None, None)
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
        model = self._where.model
        usage = usage_of(self._usage, "prompt", "completion", model)
        if usage is not None and isinstance(self._usage, dict):
            usage = told_usage(replace(usage, cost_usd=_cost(self._usage)), model)
        return Message("assistant", tuple(parts), usage, stop, None, metadata)


def _cost(usage: dict[str, Any]) -> Any:
    """Dollars, where a server says them as OpenRouter does; None where it does not."""
    cost: Any = usage.get("cost")
    if usage.get("is_byok") is True and _DOLLARS.fits(cost):  # the owner of the key pays the rest
        details = usage.get("cost_details")
        upstream: Any = isinstance(details, dict) and details.get("upstream_inference_cost")
        cost += upstream if _DOLLARS.fits(upstream) else 0.0
    return cost


def _text_of(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    return "".join(
        str(part.get("text") or "")
        for part in content
        if isinstance(part, dict) and part.get("type") == "text"
    )


# The request

Item = dict[str, Any]

# What the API takes, beside what is ours of every request.
_PARAMETERS = (
    # OpenAI's own,
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "metadata modalities moderation n parallel_tool_calls prediction presence_penalty "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort "
    "response_format safety_identifier seed service_tier stop store stream_options temperature "
    "tools top_logprobs top_p user verbosity web_search_options "
    # those of vLLM, SGLang, llama.cpp, Ollama, LM Studio and OpenRouter,
    "add_generation_prompt allowed_token_ids bad_words cache_prompt chat_template "
    "chat_template_kwargs documents dry_allowed_length dry_base dry_multiplier "
    "dry_penalty_last_n dry_sequence_breakers dynatemp_exponent dynatemp_range format grammar "
    "guided_choice guided_grammar guided_json guided_regex id_slot ignore_eos include_reasoning "
    "include_stop_str_in_output json_schema keep_alive length_penalty min_keep min_p "
    "min_tokens mirostat mirostat_eta mirostat_tau mm_processor_kwargs models n_keep n_predict "
    "n_probs no_stop_trim num_ctx plugins priority prompt_logprobs provider reasoning "
    "reasoning_format regex repeat_last_n repeat_penalty repetition_penalty route "
    "samplers separate_reasoning skip_special_tokens spaces_between_special_tokens "
    "stop_token_ids structured_outputs think top_a top_k top_n_sigma transforms "
    "truncate_prompt_tokens ttl typical_p usage use_beam_search xtc_probability xtc_threshold "
    # and ours.
    "send_thinking"
)


class OpenAIChatModel(ProviderModel):
    """A model behind any chat-completions server, by its ``name``.

    ``OpenAIChatModel("gemma", base_url="http://127.0.0.1:8080/v1")`` needs no ``api_key``; without
    ``base_url`` it is OpenAI's own. ``headers``, ``timeout``, ``retries``, ``context_window`` and
    the ``options`` are those of :class:`~sagents_nb.models.providers.streaming.ProviderModel`:
    ``max_tokens``, ``thinking`` (sent as ``reasoning_effort``), and the ``parameters`` of OpenAI's
    and compatible servers'. ``send_thinking=True`` sends reasoning back in the field it came in,
    for servers that want it. ``reads_images`` says whether tools may give it images: by default
    OpenAI's own models only. Raises :class:`~sagents_nb.errors.ModelError`, and
    :class:`~sagents_nb.errors.ConfigurationError` for an option that it does not know.

    >>> OpenAIChatModel("gemma", base_url="http://127.0.0.1:8080/v1", timeout=30, retries=2)
    OpenAIChatModel('gemma')
    """

    sdk = OPENAI
    path = "/chat/completions"
    parameters = frozenset(_PARAMETERS.split())

    @kinds.checked(timeout=kinds.ANYTHING, retries=kinds.ANYTHING)
    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        context_window: int | None = None,
        reads_images: bool | None = None,
        options: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(
            *(name, api_key, base_url),
            headers=headers,
            timeout=timeout,
            retries=retries,
            context_window=context_window,
            options=options,
            **parameters,
        )
        self.tells_cost = not self.is_official
        own = not (base_url or os.environ.get(self.sdk.url_variable))
        self.reads_images = own if reads_images is None else reads_images

    def encoded_body(
        self, request: ModelRequest, options: dict[str, Any], names: ParameterNames
    ) -> dict[str, Any]:
        """The body of a chat-completions request."""
        body: dict[str, Any] = {"model": self.name, "stream": True}
        body["stream_options"] = {"include_usage": True}
        body |= cache_key(self, request)
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": spec.name,
                        "description": spec.description,
                        "parameters": spec.schema,
                    },
                }
                for spec in request.tools
            ]
        dialect = Dialect(_turn, bool(options.pop("send_thinking", False)))
        history = encoded(request.messages, dialect)
        system = history.instructions(request.system)
        before = [{"role": "system", "content": system}] if system else []
        body["messages"] = history.items(dialect, *before)
        if (limit := options.pop("max_tokens", None)) is not None:
            body[self._limit_name()] = limit
        options.pop("thinking_budgets", None)
        if (level := options.pop("thinking", None)) is not None:
            body["reasoning_effort"] = effort(self.name, level)
        if options.get("response_format") is not None:
            read_format(options["response_format"])  # which is sent as it is
        if options.get("tool_choice") == "any":
            options["tool_choice"] = "required"
        if "stop_sequences" in options:
            options["stop"] = options.pop("stop_sequences")
        return merged(body, options)

    def _limit_name(self) -> str:
        # OpenAI's reasoning models refuse max_tokens, most other servers know nothing else.
        return "max_completion_tokens" if self.is_official else "max_tokens"

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Those of the server's embeddings endpoint."""
        return await embedded(self, texts, dimensions)

    def reader(self, where: Where) -> Reader:
        """A reader of chat-completion chunks."""
        return ChatReader(where)


def chat_messages(messages: Iterable[Message]) -> list[Item]:
    """Messages of a chat completion, without thoughts, as JSON-ready dicts."""
    items: list[Item] = []
    for is_system, some in groupby(messages, lambda message: message.role == "system"):
        if is_system:
            items += ({"role": "system", "content": message.text} for message in some)
        else:
            items += (item for turn in sendable(some) for item in _items(turn, False))
    return items


def _turn(turn: SentTurn, thinking: bool) -> Piece:
    return Piece(encode_items([*_items(turn, thinking)]))


def _items(turn: SentTurn, thinking: bool) -> Iterable[Item]:
    return _assistant(turn, thinking) if turn.role == "assistant" else _user(turn)


def _assistant(turn: SentTurn, thinking: bool) -> list[Item]:
    text = "".join(text_of(part) for part in turn.parts if isinstance(part, TextPart | JsonPart))
    calls = [
        {
            "id": wire_id(part.id),
            "type": "function",
            "function": {"name": wire_name(part.name), "arguments": json_text(part.arguments)},
        }
        for part in turn.parts
        if isinstance(part, ToolCall)
    ]
    if not text and not calls:
        return []
    message: Item = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    if thinking:
        for part in turn.parts:
            if isinstance(part, ThinkingPart) and part.provider == "openai-chat" and part.raw:
                message |= part.raw
    return [message]


def _user(turn: SentTurn) -> Iterable[Item]:
    """One message per tool result, then what no tool message may hold, then the person's."""
    content: list[Item] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            text, files = _output(part)
            yield {"role": "tool", "tool_call_id": wire_id(part.tool_call_id), "content": text}
            if files:
                content.append({"type": "text", "text": f"What {part.name} gave back:"})
                content += files
        elif (item := _content(part)) is not None:
            content.append(item)
    if len(content) == 1 and content[0]["type"] == "text":
        yield {"role": "user", "content": content[0]["text"]}
    elif content:
        yield {"role": "user", "content": content}


def _output(result: ToolResult) -> tuple[str, list[Item]]:
    if isinstance(result.content, str):
        return result.content, []
    items = [item for part in result.content if (item := _content(part)) is not None]
    text = "\n".join(item["text"] for item in items if item["type"] == "text")
    files = [item for item in items if item["type"] != "text"]
    if files and not text:
        text = "The result follows these tool messages."
    return text, files


def _content(part: Part) -> Item | None:
    """An item of user content, or None for what is empty or a provider's own."""
    if isinstance(part, TextPart | JsonPart):
        text = text_of(part)
        return {"type": "text", "text": text} if text else None
    if isinstance(part, ImagePart) or (
        isinstance(part, FilePart) and part.mime_type.startswith("image/")
    ):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    if isinstance(part, FilePart):
        if (text_file := text_of_file(part)) is not None:
            head = f"{part.name}:\n" if part.name else ""
            return {"type": "text", "text": head + text_file}
        if part.data is None:
            return {"type": "text", "text": cannot_show(part)}
        file = {"filename": part.name or "file", "file_data": data_url(part)}
        return {"type": "file", "file": file}
    return None
