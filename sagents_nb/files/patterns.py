"""Globs over paths and regular expressions over lines, which cannot hang the process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache

from .errors import FileError, InvalidPath

MAX_PATTERN = 1000
# What is quick on a line may be slow on a text, which should take a tenth of this.
WHOLE_SECONDS = 0.05
WHOLE_SECONDS_PER_CHARACTER = 1e-7
# What matches in a line matches in the whole text with these: no look around, no end or
# beginning of all, no piece that takes what it can and gives nothing back.
_PLAIN_ESCAPE = re.compile(r"\\[wWdDsSbBt.^$*+?()\[\]{}|\\/\-'\"#@!%&=<>,:;~` _1-9]")
_NOT_PLAIN = re.compile(r"\\|\(\?|[*+?}]\+|\{(?![0-9,])")


class Expression:
    """A regular expression with ``seconds`` for all its searching, not for what is between.

    Patterns come from models. Python's own ``re`` holds up every thread while it backtracks
    and cannot be stopped; ``regex`` lets them run and stops when told. Raises FileError for
    text that is no regular expression.
    """

    def __init__(self, source: str, *, ignore_case: bool = False, seconds: float = 5.0) -> None:
        # Imported here, like wcmatch below, so that `import sagents_nb` stays light.
        import regex  # type: ignore[import-untyped,unused-ignore]

        try:
            compiled = regex.compile(source, regex.IGNORECASE if ignore_case else 0)
        except regex.error as error:
            raise FileError(
                f"{source!r} is no regular expression ({error}); put a backslash before "
                "characters that stand for themselves."
            ) from None
        self._source = source
        self._seconds = self._left = seconds
        self._search = compiled.search
        self._whole = None
        self._whole_left = WHOLE_SECONDS
        if _searches_whole(source):
            self._whole = regex.compile(source, compiled.flags | regex.MULTILINE).search

    def may_be_in(self, text: str) -> bool:
        """False if no line of ``text`` matches; looking at lines one by one takes much longer."""
        if self._whole is None:
            return True
        if "\r" in text:  # is no part of a line, if it ends one
            text = text.replace("\r\n", "\n").removesuffix("\r")
        self._whole_left += len(text) * WHOLE_SECONDS_PER_CHARACTER
        began = time.monotonic()
        try:
            found = self._whole(text, timeout=max(0.001, self._whole_left)) is not None
        except TimeoutError:
            self._whole = None
            return True
        self._whole_left -= time.monotonic() - began
        return found

    def lines_found(self, lines: Sequence[str]) -> list[int]:
        """The numbers of the lines, from 1, in which it matches; FileError when time is up."""
        search, now = self._search, time.monotonic
        end = now() + self._left
        try:
            found = [
                number
                for number, line in enumerate(lines, start=1)
                if search(line, timeout=max(0.001, end - now()))
            ]
        except TimeoutError:
            raise FileError(
                f"Matching {self._source!r} took over {self._seconds:g} s; use a simpler pattern."
            ) from None
        self._left = end - now()
        return found


def _searches_whole(source: str) -> bool:
    """Whether a text without a match as a whole has no line that matches."""
    plain = _PLAIN_ESCAPE.sub("_", source.removeprefix("(?i)"))
    return _NOT_PLAIN.search(plain) is None


def matching(paths: Iterable[str], pattern: str) -> list[str]:
    """The ``paths`` that match a glob, which is anchored at "/".

    "*" is any text within one name, "**" any directories, "?" one character; everything
    else stands for itself. Raises FileError for a pattern that is too long or takes too
    long.

    >>> matching(["/a.md", "/x/b.md", "/x/b.txt"], "**/*.md")
    ['/a.md', '/x/b.md']
    """
    if len(pattern) > MAX_PATTERN:
        raise InvalidPath(f"The pattern is over {MAX_PATTERN} characters long; shorten it.")
    paths = tuple(paths)
    expression = Expression(_translated(pattern), seconds=2.0)
    return [paths[number - 1] for number in expression.lines_found(paths)]


@lru_cache(maxsize=256)
def _translated(pattern: str) -> str:
    from wcmatch import glob

    anchored = "/" + pattern.removeprefix("/")
    # "\[" and not "[": only the three wildcards are special, file names may hold the rest.
    literal = re.sub(r"([\\\[\]])", r"\\\1", anchored)
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    ((source,), _) = glob.translate(literal, flags=flags)
    return str(source)
