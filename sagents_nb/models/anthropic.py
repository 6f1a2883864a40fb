"""Claude, over Anthropic's Messages API (version 2026-10-21, which the SDK sends)."""

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
from ..tools import ToolSpec
from . import clients
from .anthropic_reader import AnthropicReader
from .base import ModelRequest
from .failures import Where
from .history import (
    Turn,
    cannot_show,
    extras,
    sendable,
    system_text,
    text_of,
    text_of_file,
    wire_id,
    wire_name,
)
from .streaming import ProviderModel, Reader

Block = dict[str, Any]

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MAX_TOKENS = 8_192
_MAX_TOKENS_THINKING = 32_000
# Tokens, for models that take a budget; the others take the word as their effort.
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}


class AnthropicModel(ProviderModel):
    """A Claude model: ``AnthropicModel("claude-sonnet-5-5")``.

    ``api_key`` is by default what the SDK finds (``ANTHROPIC_API_KEY`` first), ``base_url``
    ``ANTHROPIC_BASE_URL`` or the official API. Options: ``max_tokens`` (8,192, or 32,000 with
    thinking), ``thinking``, and any parameter of the Messages API. The prompt is cached unless
    ``cache_control=None``. Raises :class:`~sagents_nb.errors.ModelError`.
    """

    reads_images = True
    sdk = clients.ANTHROPIC
    path = "/v1/messages"

    def body(self, request: ModelRequest, options: dict[str, Any]) -> dict[str, Any]:
        """The body of a Messages request."""
        body: dict[str, Any] = {"model": self.name, "stream": True}
        body |= _thinking(self.name, options)
        if system := system_text(request):
            body["system"] = system
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
        body["messages"] = _messages(request)
        # On the request as a whole it caches up to the last block, and moves on with each turn.
        body["cache_control"] = {"type": "ephemeral"}
        choice = options.get("tool_choice")
        if isinstance(choice, str):
            options["tool_choice"] = {"type": {"required": "any"}.get(choice, choice)}
        return {**body, **options}

    def reader(self, where: Where) -> Reader:
        """A reader of Messages events."""
        return AnthropicReader(where)


def _tool(spec: ToolSpec) -> Block:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _thinking(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """``max_tokens``, and ``thinking`` and effort in the form that the model takes.

    Adaptive thinking came with Claude 4.6, and the Claude 5 family refuses budgets; 4.5 and
    older know only budgets. Fable and Mythos cannot be told not to think.
    """
    level = options.get("thinking")
    given = options.pop("max_tokens", None)
    if not isinstance(level, str):
        return {"max_tokens": given or _MAX_TOKENS}
    del options["thinking"]
    if level == "off" and not re.search("fable|mythos", name):
        return {"max_tokens": given or _MAX_TOKENS, "thinking": {"type": "disabled"}}
    limit = given or _MAX_TOKENS_THINKING
    if takes_budget(name):
        budget = max(1_024, min(_BUDGETS.get(level, 8_192), limit // 2))
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
    version = re.search(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    if version is None or "mythos" in name:
        return False
    return (int(version[1]), int(version[2] or 0)) < (4, 6)


def _messages(request: ModelRequest) -> list[Block]:
    """Turns of user and assistant in strict alternation, tool results before other content."""
    messages: list[Block] = []
    results: list[Block] = []
    others: list[Block] = []

    def flush() -> None:
        if results or others:
            messages.append({"role": "user", "content": results + others})
            results.clear()
            others.clear()

    for turn in sendable(request.messages):
        if turn.role == "assistant":
            if not (blocks := _assistant(turn)):
                continue
            flush()
            if messages and messages[-1]["role"] == "assistant":
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": "assistant", "content": blocks})
            continue
        for part in turn.parts:
            if isinstance(part, ToolResult):
                results.append(_result(part))
            elif (block := _content(part)) is not None:
                others.append(block)
    flush()
    return messages


def _assistant(turn: Turn) -> list[Block]:
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
                "input": part.arguments,
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
    return blocks


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
