"""What a tool gives back, as content for the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import GeneratorType
from typing import Any

import msgspec

from ..interrupts import Interrupt
from ..messages import ContentPart, TextPart, image_of
from ..text import text_or_why, whole
from ..tools import ToolOutput

MANY = 1000
"""Arrays with more values than this are shown as numpy prints them."""

PLAIN = frozenset((str, int, float, bool, dict, type(None)))
"""What most tools give: nothing has to be made of it before it is written as JSON."""

NO_OUTPUT = "(no output)"
"""What the model reads of a tool that gave None: it did its work, and has nothing to say."""

_PIECES = (GeneratorType, map, filter, zip)

Tell = Callable[[str], Any]

ROWS = 50
"""How many rows of a frame the model is shown."""


def content_of(value: Any) -> str | list[ContentPart]:
    """A tool's value as content: parts and images stay what they are, the rest becomes text.

    A list of texts, parts and images is several parts.
    """
    if value is None:
        return NO_OUTPUT
    if type(value) in PLAIN:
        return text_of(value)
    if isinstance(value, bytes | bytearray) and image_of(value) is None:
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return f"<{len(value):,} bytes that are no text>"
    if (part := _part(value)) is not None:
        return [part]
    if isinstance(value, list | tuple) and value:
        parts = [TextPart(v) if isinstance(v, str) else _part(v) for v in value]
        if all(p is not None for p in parts) and not all(isinstance(v, str) for v in value):
            return [part for part in parts if part is not None]
    return text_of(value)


def _part(value: Any) -> ContentPart | None:
    if isinstance(value, ContentPart):
        return value
    return None if isinstance(value, Path) else image_of(value)  # a path is no wish to show it


def text_of(value: Any) -> str:
    """Text as it is, other values as JSON, and what JSON cannot say as ``str``.

    Half characters (lone surrogates, as in some file names) become "?": no provider and no
    store takes them.
    """
    if isinstance(value, str):
        return str(whole(value))  # exactly a str, also of numpy's
    if type(value) in PLAIN:
        try:
            return msgspec.json.encode(value).decode()
        except Exception:  # said below, with what is inside of it
            pass
    elif (frame := _frame(value)) is not None:
        return whole(frame)

    def plain(inner: Any) -> Any:
        try:
            return _data(inner)
        except NotImplementedError:
            if inner is value:
                raise
            return text_or_why(inner)

    try:
        text = msgspec.json.encode(value, enc_hook=plain).decode()
    except Exception:
        text = text_or_why(value)
    return whole(text)


def _data(value: Any) -> Any:
    """What JSON has no word for as something that it has one for."""
    if hasattr(value, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return str(value) if getattr(value, "size", 1) > MANY else value.tolist()
    if (frame := _frame(value)) is not None:
        return frame
    raise NotImplementedError


def _frame(value: Any) -> str | None:
    """A data frame or series as CSV, all its columns named and its first rows; None for others."""
    if type(value).__module__.partition(".")[0] not in ("pandas", "polars"):
        return None
    if not hasattr(value, "head") or not hasattr(value, "shape"):
        return None
    rows, *columns = value.shape
    size = f"{rows:,} rows" + "".join(f" × {number} columns" for number in columns)
    shown = f", the first {ROWS}" if rows > ROWS else ""
    head = value.head(ROWS)
    text = head.to_csv() if hasattr(head, "to_csv") else head.write_csv()
    return f"{size}{shown}:\n{text}"


def drained(function: Callable[[], Any], tell: Tell) -> Any:
    """What the function gives; a generator is run, its pieces told as they come."""
    value = function()
    if not isinstance(value, _PIECES):
        return value
    pieces = _Pieces(tell)
    while True:
        try:
            pieces.add(next(value))
        except StopIteration as end:
            return pieces.joined() if end.value is None else end.value


async def drained_async(pieces: AsyncIterator[Any], tell: Tell) -> Any:
    """The same for an async generator, which cannot return a value."""
    kept = _Pieces(tell)
    async for piece in pieces:
        kept.add(piece)
    return kept.joined()


class _Pieces:
    """What a generator yields."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._kept: list[Any] = []
        self._whole: ToolOutput | Interrupt | None = None

    def add(self, piece: Any) -> None:
        if isinstance(piece, ToolOutput | Interrupt):  # says what the call comes to
            self._whole = piece
        else:
            self._tell(text_of(piece))
            self._kept.append(piece)

    def joined(self) -> Any:
        """Texts as one text, one piece as it is, several as a list."""
        if self._whole is not None:
            return self._whole
        if len(self._kept) == 1:
            return self._kept[0]
        texts = all(isinstance(piece, str) for piece in self._kept)
        return "".join(self._kept) if texts else self._kept
