"""OpenAI's models, over the Responses API; nothing is stored there (``store=False``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Part,
    ProviderPart,
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
    extras,
    json_text,
    sendable,
    system_text,
    text_of,
    wire_id,
    wire_name,
)
from .openai_reader import ResponsesReader
from .streaming import ProviderModel, Reader

Item = dict[str, Any]

# These answer "Encrypted content is not supported with this model" to the include below.
_NO_REASONING = re.compile(r"gpt-[34]|chatgpt-4|.*-chat-latest")


class OpenAIModel(ProviderModel):
    """A model of OpenAI: ``OpenAIModel("gpt-6.1-sol")``.

    ``api_key`` is by default ``OPENAI_API_KEY``, ``base_url`` ``OPENAI_BASE_URL`` or the
    official API. Options: ``max_tokens`` (sent as ``max_output_tokens``), ``thinking`` (as
    ``reasoning.effort``), and any parameter of the Responses API. Reasoning comes back
    encrypted and is sent again with the next request. Raises
    :class:`~sagents_nb.errors.ModelError`.
    """

    reads_images = True
    sdk = clients.OPENAI
    path = "/responses"

    def body(self, request: ModelRequest, options: dict[str, Any]) -> dict[str, Any]:
        """The body of a Responses request."""
        body: dict[str, Any] = {"model": self.name, "stream": True, "store": False}
        if not _NO_REASONING.match(self.name):
            body["include"] = ["reasoning.encrypted_content"]
        if system := system_text(request):
            body["instructions"] = system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.schema,
                    "strict": False,
                }
                for spec in request.tools
            ]
        body["input"] = [item for turn in sendable(request.messages) for item in _items(turn)]
        if (limit := options.pop("max_tokens", None)) is not None:
            body["max_output_tokens"] = limit
        if (level := options.pop("thinking", None)) is not None:
            given = options.pop("reasoning", None) or {}
            body["reasoning"] = {"effort": effort(self.name, level), **given}
        if options.get("tool_choice") == "any":
            options["tool_choice"] = "required"
        return {**body, **options}

    def reader(self, where: Where) -> Reader:
        """A reader of Responses events."""
        return ResponsesReader(where)


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


def _items(turn: Turn) -> Iterable[Item]:
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


def _assistant(turn: Turn) -> Iterable[Item]:
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
