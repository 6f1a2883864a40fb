"""Chat completions: the API that OpenAI and every compatible server speak."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from ..messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from . import clients
from .base import ModelRequest
from .failures import Where
from .history import (
    Turn,
    cannot_show,
    data_url,
    json_text,
    sendable,
    system_text,
    text_of,
    text_of_file,
    wire_id,
    wire_name,
)
from .openai import effort
from .openai_chat_reader import ChatReader
from .streaming import ProviderModel, Reader

Item = dict[str, Any]


class OpenAIChatModel(ProviderModel):
    """A model behind any chat-completions server.

    ``OpenAIChatModel("gemma", base_url="http://127.0.0.1:8080/v1")`` needs no key; without
    ``base_url`` it is OpenAI's own. Options: ``max_tokens``, ``thinking`` (sent as
    ``reasoning_effort``), and any parameter of the server. ``send_thinking=True`` sends
    reasoning back in the field it came in, for servers that want it. ``reads_images`` says
    whether tools may give it images: by default OpenAI's own models only. Raises
    :class:`~sagents_nb.errors.ModelError`.
    """

    sdk = clients.OPENAI
    path = "/chat/completions"

    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        reads_images: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, api_key, base_url, **options)
        own = not (base_url or os.environ.get(self.sdk.url_variable))
        self.reads_images = own if reads_images is None else reads_images

    def body(self, request: ModelRequest, options: dict[str, Any]) -> dict[str, Any]:
        """The body of a chat-completions request."""
        body: dict[str, Any] = {"model": self.name, "stream": True}
        body["stream_options"] = {"include_usage": True}
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
        messages: list[Item] = []
        if system := system_text(request):
            messages.append({"role": "system", "content": system})
        thinking = bool(options.pop("send_thinking", False))
        for turn in sendable(request.messages):
            messages += _assistant(turn, thinking) if turn.role == "assistant" else _user(turn)
        body["messages"] = messages
        if (limit := options.pop("max_tokens", None)) is not None:
            body[self._limit_name()] = limit
        if (level := options.pop("thinking", None)) is not None:
            body["reasoning_effort"] = effort(self.name, level)
        if options.get("tool_choice") == "any":
            options["tool_choice"] = "required"
        if "stop_sequences" in options:
            options["stop"] = options.pop("stop_sequences")
        return {**body, **options}

    def _limit_name(self) -> str:
        # OpenAI's reasoning models refuse max_tokens, most other servers know nothing else.
        host = urlsplit(self.base_url or self.sdk.default_url).hostname or ""
        return "max_completion_tokens" if host.endswith("openai.com") else "max_tokens"

    def reader(self, where: Where) -> Reader:
        """A reader of chat-completion chunks."""
        return ChatReader(where)


def _assistant(turn: Turn, thinking: bool) -> list[Item]:
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


def _user(turn: Turn) -> Iterable[Item]:
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
