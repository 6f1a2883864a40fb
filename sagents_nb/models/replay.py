"""A finished message as a stream: as it would have been, or in the shape it once had.

A shape is text such as ``t4@120 t7*2 c``: what each piece was (text, thinking, call,
arguments), its length in characters, the milliseconds before it, and how often in a row.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import groupby

import msgspec

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

_PIECE = re.compile(r"([tkca])(\d{0,9})(?:@(\d{1,9}))?(?:\*(\d{1,6}))?")
_LETTERS: dict[type, str] = {TextDelta: "t", ThinkingDelta: "k", ToolCallDelta: "a"}
_LONGEST_WAIT = 60.0  # seconds between two pieces; a file may claim anything
_MOST = 500_000  # pieces of one answer, for the same reason
_BREATH = 64  # pieces after which others on the loop have their turn

Pieces = list[tuple[str, int, float]]
"""Letter, length in characters, and seconds before it."""


def whole(text: str) -> Iterable[str]:
    """The text in one piece, if it says anything."""
    return (text,) if text else ()


def deltas_of(message: Message, split: Callable[[str], Iterable[str]] = whole) -> Iterator[Delta]:
    """The deltas of ``message`` in the order of its parts; ``split`` cuts a text into pieces.

    >>> [delta.text for delta in deltas_of(Message.assistant("Hello!"))]
    ['Hello!']
    """
    calls = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield ToolCallDelta(calls, id=part.id, name=part.name)
            for piece in split(json_text(part.arguments)):
                yield ToolCallDelta(calls, piece)
            calls += 1
        elif isinstance(part, TextPart):
            yield from map(TextDelta, split(part.text))
        elif isinstance(part, ThinkingPart):
            yield from map(ThinkingDelta, split(part.text))


class Shape:
    """Takes note of the deltas of a stream as they come."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._last = time.monotonic()

    def add(self, delta: Delta | str) -> None:
        """Note one delta."""
        now = time.monotonic()
        wait = round((now - self._last) * 100) * 10  # to 10 ms
        self._last = now
        text, letter = (delta, "t") if isinstance(delta, str) else (delta.text, "")
        letter = letter or _LETTERS[type(delta)]
        if isinstance(delta, ToolCallDelta) and delta.name is not None:
            self._pieces.append(_written("c", 0, wait))
            wait = 0
            if not text:
                return
        self._pieces.append(_written(letter, len(text), wait))

    def text(self) -> str:
        """The shape so far; equal neighbours are counted."""
        counted = [(piece, len(list(same))) for piece, same in groupby(self._pieces)]
        return " ".join(piece if n == 1 else f"{piece}*{n}" for piece, n in counted)


def _written(letter: str, length: int, wait: int) -> str:
    return f"{letter}{length or ''}" + (f"@{wait}" if wait else "")


def pieces(shape: str) -> Pieces:
    """The pieces of ``shape``; what cannot be read ends it.

    >>> pieces("t4@120 t7*2 c")
    [('t', 4, 0.12), ('t', 7, 0.0), ('t', 7, 0.0), ('c', 0, 0.0)]
    """
    found: Pieces = []
    for word in shape.split():
        match = _PIECE.fullmatch(word)
        if match is None:
            break
        letter, length, wait, times = match.groups()
        seconds = min(int(wait or 0) / 1000, _LONGEST_WAIT)
        more = min(int(times or 1), _MOST - len(found))
        found += [(letter, int(length or 0), seconds)] * more
    return found


async def streamed(message: Message, shape: str, *, paced: bool) -> AsyncIterator[Delta]:
    """The deltas of ``message`` in the pieces of ``shape``, with its pauses if ``paced``.

    The texts are those of the message, whatever the shape says: what it leaves over of a
    part comes as one more piece.
    """
    left = pieces(shape)[::-1]
    calls = 0
    count = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            await _wait(_taken(left, "c"), paced)
            yield ToolCallDelta(calls, id=part.id, name=part.name)
            letter, text = "a", msgspec.json.encode(part.arguments).decode()
        elif isinstance(part, TextPart):
            letter, text = "t", part.text
        elif isinstance(part, ThinkingPart):
            letter, text = "k", part.text
        else:
            continue
        start = 0
        while start < len(text):
            piece = _taken(left, letter)
            end = start + piece[1] if piece is not None and piece[1] else len(text)
            if letter == "a" and left and left[-1][0] != "a":
                end = len(text)  # arguments are written anew, perhaps with fewer spaces
            await _wait(piece, paced)
            cut = text[start:end]
            start = end
            if letter == "a":
                yield ToolCallDelta(calls, cut)
            else:
                yield TextDelta(cut) if letter == "t" else ThinkingDelta(cut)
            count += 1
            if count % _BREATH == 0:
                await asyncio.sleep(0)
        while letter == "a" and left and left[-1][0] == "a":
            left.pop()
        calls += letter == "a"


def _taken(left: Pieces, letter: str) -> tuple[str, int, float] | None:
    return left.pop() if left and left[-1][0] == letter else None


async def _wait(piece: tuple[str, int, float] | None, paced: bool) -> None:
    if paced and piece is not None and piece[2]:
        await asyncio.sleep(piece[2])
