"""A finished message as the stream it would have been."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from ..messages import (
    Delta,
    Message,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
)
from .providers.history import json_text


async def deltas_of(
    message: Message,
    split: Callable[[str], Iterable[str]],
    pause: Callable[[], Awaitable[None]],
) -> AsyncIterator[Delta]:
    """The deltas of ``message`` in the order of its parts, without the message itself.

    ``split`` cuts a text into pieces; ``pause`` is awaited before each piece.
    """
    calls = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield ToolCallDelta(calls, id=part.id, name=part.name)
            for piece in split(json_text(part.arguments)):
                await pause()
                yield ToolCallDelta(calls, piece)
            calls += 1
        elif isinstance(part, TextPart):
            for piece in split(part.text):
                await pause()
                yield TextDelta(piece)
        elif isinstance(part, ThinkingPart):
            for piece in split(part.text):
                await pause()
                yield ThinkingDelta(piece)
