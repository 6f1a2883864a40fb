"""How files look to a model: numbered lines, previews, search hits."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..files import Expression, FileEntry, split_lines
from ..messages import ImagePart

MAX_LINE = 2000
MAX_SHOWN = 200_000
# Anthropic refuses images of over 5 MB of base64, and with them the whole conversation.
MAX_IMAGE = 3_750_000
_CUT = "… [line cut]"
# All providers take these. The name of a file may be anything, so it is the bytes that count.
_IMAGES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def default_entry_to_map(entry: FileEntry) -> dict[str, Any]:
    """What ``ls`` and ``write_file`` tell of an entry."""
    described = {
        "path": entry.path,
        "title": entry.title,
        "type": "directory" if entry.is_directory else "file",
        "file_type": entry.file_type,
        "persistence": entry.persistence,
        "size": None if entry.is_directory else entry.size,
    }
    return {key: value for key, value in described.items() if value is not None}


def image_of(entry: FileEntry) -> ImagePart | None:
    """The image in a file, of a kind and size that providers take, told by its first bytes."""
    data = entry.content
    if not isinstance(data, bytes) or len(data) > MAX_IMAGE:
        return None
    for mime_type, beginning in _IMAGES.items():
        if beginning.match(data):
            return ImagePart(base64.b64encode(data).decode(), mime_type)
    return None


def as_json(value: Any) -> str:
    """JSON text of plain data, readable in any language."""
    return json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)


def numbered(number: int, line: str, mark: str = "\t") -> str:
    r"""One line with its number in six columns.

    >>> numbered(3, "x")
    '     3\tx'
    """
    line = line.removesuffix("\r")
    shown = line if len(line) <= MAX_LINE else line[:MAX_LINE] + _CUT
    return f"{number:>6}{mark}{shown}"


def view(lines: Sequence[str], first: int, limit: int) -> str:
    """Up to ``limit`` numbered lines from line ``first`` on, with a header unless it is all.

    An empty file is one empty line.
    """
    if not lines:
        return numbered(1, "")
    shown: list[str] = []
    size = 0
    for number in range(first, min(len(lines), first + limit - 1) + 1):
        text = numbered(number, lines[number - 1])
        size += len(text) + 1
        if shown and size > MAX_SHOWN:
            break
        shown.append(text)
    if len(shown) == len(lines):
        return "\n".join(shown)
    return f"Lines {first}–{first + len(shown) - 1} of {len(lines)}:\n" + "\n".join(shown)


def preview(text: str, first: int, last: int, context: int = 3, limit: int = 40) -> str:
    """Lines ``first`` to ``last`` as they are now, with some around them."""
    lines = split_lines(text)
    start = max(1, min(first, len(lines)) - context)
    end = min(len(lines), last + context)
    return view(lines, start, max(1, min(end - start + 1, limit)))


def hits(lines: Sequence[str], found: Iterable[int], context: int) -> list[str]:
    """The lines with those numbers, and ``context`` lines around each, marked with "|"."""
    chosen = set(found)
    around = {
        number
        for hit in chosen
        for number in range(max(1, hit - context), min(len(lines), hit + context) + 1)
    }
    shown: list[str] = []
    previous = 0
    for number in sorted(around):
        if context and previous and number > previous + 1:
            shown.append("    --")
        previous = number
        shown.append(numbered(number, lines[number - 1], "\t" if number in chosen else "|\t"))
    return shown


def search(
    entries: Iterable[FileEntry], expression: Expression, *, context: int, limit: int, named: bool
) -> str:
    """The hits in the text files among ``entries``, at most ``limit`` over all of them.

    ``named`` puts the path over each file's block. "" without a hit.
    """
    blocks: list[str] = []
    total = 0
    for entry in entries:
        text = entry.text
        if text is None or not expression.may_be_in(text):
            continue
        lines = split_lines(text)
        shown = [line.removesuffix("\r") for line in lines] if "\r" in text else lines
        found = expression.lines_found(shown)
        full = total + len(found) > limit
        found = found[: limit - total]
        total += len(found)
        if found:
            block = "\n".join(hits(lines, found, context))
            blocks.append(f"{entry.path}:\n{block}" if named else block)
        if full:
            blocks.append(f"Only the first {limit} hits are shown; make the pattern narrower.")
            break
    return "\n\n".join(blocks)
