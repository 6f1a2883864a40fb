"""A model that says what a test tells it to say."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Sized
from itertools import islice
from typing import Any

import msgspec

from .. import kinds
from ..errors import ModelError
from ..messages import (
    Delta,
    Message,
    Part,
    TextPart,
    ToolCall,
    Usage,
)
from .base import ChatModel, ModelRequest
from .replay import deltas_of

_TURNS = kinds.either("a list, or a series of a frame", kinds.LIST, kinds.having("", "to_list"))


class ScriptedModel(ChatModel):
    """Streams one of the ``turns`` after the other, ``chunk`` characters at a time.

    Between these pieces it waits ``delay`` seconds.

    A turn is a str, a Message, a ToolCall, a list of str and ToolCall, an Exception (raised),
    or a function of the request that gives a turn. An iterator, which may be endless, is read as it
    is asked. ``requests`` holds what was asked, ``turns`` what is known of the script. Raises
    :class:`~sagents_nb.errors.ModelError` when asked once more than there are turns.

    >>> from itertools import repeat
    >>> from sagents_nb import Agent, ScriptedModel
    >>> model = ScriptedModel(["Hello!"])
    >>> Agent(model).run("hi").text, len(model.requests)
    ('Hello!', 1)
    >>> agent = Agent(ScriptedModel(repeat("hello")))
    >>> [agent.run("hi").text for _ in range(3)]
    ['hello', 'hello', 'hello']
    """

    name = "scripted"
    is_offline = True

    @kinds.checked(turns=_TURNS, delay=kinds.number(0, "seconds"), chunk=kinds.whole(1))
    def __init__(self, turns: Iterable[Any], delay: float = 0.0, chunk: int = 4) -> None:
        self._unread = iter(turns)
        self.turns = list(self._unread) if isinstance(turns, Sized) else []
        self.delay = delay
        self.chunk = chunk
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | str | Message]:
        """Stream the next turn."""
        position = len(self.requests)
        self.requests.append(request)
        self.turns += islice(self._unread, max(0, position + 1 - len(self.turns)))
        if position >= len(self.turns):
            raise ModelError(
                f"The script has {len(self.turns)} turns, but the model was asked for turn "
                f"{position + 1}; add a turn to ScriptedModel([…]).",
                kind="scripted",
            )
        turn = self.turns[position]
        while callable(turn):
            turn = turn(request)
            if inspect.isawaitable(turn):
                turn = await turn
        if isinstance(turn, BaseException):
            raise turn
        message = _message(turn)
        for delta in deltas_of(message, self._pieces):
            if self.delay:
                await asyncio.sleep(self.delay)
            yield delta
        yield message

    def _pieces(self, text: str) -> list[str]:
        return [text[i : i + self.chunk] for i in range(0, len(text), self.chunk)]


def _message(turn: Any) -> Message:
    if isinstance(turn, Message):
        return turn
    items = turn if isinstance(turn, list | tuple) else [turn]
    parts: list[Part] = []
    for item in items:
        if isinstance(item, str):
            parts.append(TextPart(item))
        elif isinstance(item, msgspec.Struct):
            parts.append(item)  # type: ignore[arg-type]
        else:
            raise ModelError(
                f"A scripted turn cannot be made of {type(item).__name__}; use str, ToolCall, "
                "Message, an exception or a function of the request.",
                kind="scripted",
            )
    calls = [part for part in parts if isinstance(part, ToolCall)]
    for call in calls:
        if not isinstance(call.name, str):
            raise ModelError(
                "A ToolCall is ToolCall(id, name, arguments); one of the script has "
                f"{call.id!r:.40} for its id and no name.",
                kind="scripted",
            )
    return Message(
        "assistant", tuple(parts), Usage(), stop_reason="tool_use" if calls else "end_turn"
    )
