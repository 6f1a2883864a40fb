"""How many tokens a message takes, about."""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import (
    ImagePart,
    JsonPart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)

_SPOKEN = (TextPart, ThinkingPart)


def estimated_tokens(message: Message) -> int:
    """About how many tokens a model needs for ``message``, from words and characters.

    >>> estimated_tokens(Message.user("one two three"))
    8
    """
    return 4 + _tokens_of(message.parts)


def _tokens_of(parts: Iterable[Part]) -> int:
    tokens = 0
    for part in parts:
        if isinstance(part, _SPOKEN):
            tokens += _text_tokens(part.text)
        elif isinstance(part, ToolCall):  # repr is about as long as JSON, and never fails
            tokens += 10 + _text_tokens(f"{part.name} {part.arguments!r}")
        elif isinstance(part, ToolResult):
            content = part.content
            tokens += 10
            tokens += _text_tokens(content) if isinstance(content, str) else _tokens_of(content)
        elif isinstance(part, JsonPart):
            tokens += _text_tokens(repr(part.data))
        else:
            tokens += 1_000 if isinstance(part, ImagePart) else 10
    return tokens


def _text_tokens(text: str) -> int:
    words, characters = (13 * len(text.split()) + 9) // 10, (len(text) + 3) // 4  # 1.3 and 1/4
    return (words + characters + 1) // 2  # their mean; all of them rounded up
