"""Documents cut into passages: pieces that a model can read, each with where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST = 2_400
"""Characters of a passage. With half as many what belongs together is found less well."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Piece(NamedTuple):
    """Some lines of a text, from ``line`` to ``last_line``, and the ``headings`` above them."""

    text: str
    line: int
    last_line: int
    headings: tuple[str, ...]


class Headings:
    """The headings that one is below, the outermost first."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        """Go below another one."""
        self._open = [one for one in self._open if one[0] < level] + [(level, title)]

    @property
    def titles(self) -> tuple[str, ...]:
        """What they say."""
        return tuple(title for _, title in self._open)


def pieces(text: str, headings: Headings | None = None) -> Iterator[Piece]:
    r"""The pieces of a text, whose lines are as they stand in it.

    Each is of at most ``MOST`` characters, and ends where a paragraph does, if it can: a longer
    paragraph is cut between lines, a longer line between words. With ``headings``, those above it,
    it is Markdown: a heading begins a piece, and is kept among them.

    >>> [(p.line, p.text) for p in pieces("# Tides\n\nAt 6.\n\n# Cities\nOslo.", Headings())]
    [(1, '# Tides\n\nAt 6.'), (5, '# Cities\nOslo.')]
    """
    lines = text.split("\n")
    start = size = gap = 0  # of the piece that is being made; the gap is behind its last empty line
    says = False  # whether there is more than headings in it
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif headings is not None and (opens := _FENCE.match(line)):
            fence = opens[1]
        elif headings is not None and (heading := _HEADING.match(line)):
            if says:
                yield from _piece(lines, start, number, headings)
                start, size, says = number, 0, False
            headings.enter(len(heading[1]), heading[2])
            size += len(line) + 1
            continue
        if size + len(line) > MOST and says:
            cut = gap if gap > start else number
            yield from _piece(lines, start, cut, headings)
            start, size = cut, sum(len(lines[n]) + 1 for n in range(cut, number))
        size += len(line) + 1
        says = says or bool(line.strip())
        if not line.strip():
            gap = number + 1
    yield from _piece(lines, start, len(lines), headings)


def _piece(lines: list[str], start: int, end: int, headings: Headings | None) -> Iterator[Piece]:
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    if start == end:
        return
    titles = () if headings is None else headings.titles
    said = "\n".join(lines[start:end])
    if len(said) <= MOST:
        yield Piece(said, start + 1, end, titles)
        return
    for number in range(start, end):  # there is a line in it that is longer
        for part in _parts(lines[number]):
            yield Piece(part, number + 1, number + 1, titles)


def _parts(line: str) -> Iterator[str]:
    """A long line, between words where there are some."""
    while len(line) > MOST:
        cut = line.rfind(" ", MOST // 2, MOST) + 1 or MOST
        if line[:cut].strip():
            yield line[:cut]
        line = line[cut:]
    if line.strip():
        yield line
