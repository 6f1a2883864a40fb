"""A model that needs no key and no network: it plans by rules, and really uses the tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import msgspec

from ...messages import (
    Delta,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    Usage,
)
from ..base import ChatModel, ModelRequest
from ..replay import deltas_of
from .plan import decide

_PIECE = re.compile(r"\S+\s*|\s+")


class DemoModel(ChatModel):
    """Understands simple English instructions and the tools it is given; offline, no key.

    It is no language model. What it does next is a pure function of the request: it splits
    the instructions into steps, keeps a to-do list if it may, calls the tools whose words
    fit and fills in their arguments, and writes what the results say. The same request
    always gives the same message. It says so when it cannot do something.

    It streams word by word, ``delay`` seconds apart. Token counts are estimates: a quarter
    of the characters.

    >>> DemoModel()
    DemoModel('demo')
    """

    name = "demo"

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | str | Message]:
        """Stream the next turn."""
        turn = decide(request)
        parts: list[Part] = []
        if turn.thinking:
            parts.append(ThinkingPart(turn.thinking))
        if turn.text:
            parts.append(TextPart(turn.text))
        calls = [
            ToolCall(f"call_{turn.number}_{n}", name, arguments)
            for n, (name, arguments) in enumerate(turn.calls, start=1)
        ]
        usage = Usage(_tokens(request), _size([*parts, *calls]) // 4)
        message = Message.assistant(parts, calls, usage=usage)
        async for delta in deltas_of(message, _PIECE.findall, self._pause):
            yield delta
        yield message

    async def _pause(self) -> None:
        await asyncio.sleep(self.delay)


def _tokens(request: ModelRequest) -> int:
    size = len(request.system) + sum(_size(m.parts) for m in request.messages)
    return (size + _size([msgspec.to_builtins(tool) for tool in request.tools])) // 4


def _size(values: object) -> int:
    return len(msgspec.json.encode(values, enc_hook=repr))
