"""Globs over paths and regular expressions over lines, which cannot hang the process."""

from __future__ import annotations

import itertools
import math
import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from .. import kinds
from .errors import FileError, InvalidPath

MAX_PATTERN = 1000
# Of what a compiled expression consists, half a kilobyte each; groups in groups; and characters of
# a line in which a repeated group has a hundred bytes for each.
MAX_PIECES = 50_000
MAX_NESTED = 100
MAX_REPEATED_IN = 1_000_000
# What is quick on a line may be slow on a text, which should take a tenth of this.
WHOLE_SECONDS = 0.05
WHOLE_SECONDS_PER_CHARACTER = 1e-7
# What matches in a line matches in the whole text with these: no look around, no end or
# beginning of all, no piece that takes what it can and gives nothing back.
_PLAIN_ESCAPE = re.compile(r"\\[wWdDsSbBt.^$*+?()\[\]{}|\\/\-'\"#@!%&=<>,:;~` _1-9]")
_NOT_PLAIN = re.compile(r"\\|\(\?|[*+?}]\+|\{(?![0-9,])")
# What most people look for: a text, or one with something simple after it, which takes no more than
# one look at each character for each of its own, since only its last piece may be repeated.
_LITERAL = r"[^\\.^$*+?{}\[\]|()\r\n]"
_TEXT = re.compile(rf"{_LITERAL}+")
_LINEAR = re.compile(rf"{_LITERAL}{{2}}(?:{_LITERAL}|\\[dw]|\.)*[*+?]?")
# What an expression is made of, as ``regex`` reads it; any other character stands for itself. A set
# with "[:" in it may hold a class or not, so its "[" is left alone.
_REPEATS = r"[*+?]|\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\}"
_UNBOUNDED = r"\(\?(?:[A-Za-z0-9]*[xV]|R|[0-9]|[+-][0-9]|&|P[>&])"
_PARTS = re.compile(
    rf"""
    (?P<unbounded> {_UNBOUNDED} )
    | (?P<nothing> \(\?\#(?:\\.|[^)\\])*+\) | \(\?[a-z]*(?:-[a-z]+)?\) )
    | (?P<opens> \( )
    | (?P<closes> \) )
    | (?P<set> \[\^?+(?:\\.|\[(?!:)|[^\\[])(?:\\.|\[(?!:)|[^]\\[])*+\] )
    | (?P<repeats> {_REPEATS} )[?+]?
    | (?P<one> \\. | . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Expression:
    """A regular expression with ``seconds`` for all its searching, not for what is between.

    Patterns come from models. Python's own ``re`` holds up every thread while it backtracks
    and cannot be stopped; ``regex`` lets them run and stops when told. It writes repeats out
    while it compiles, which nothing stops, so what would be too large is refused. Raises
    FileError for that and for text that is no regular expression.
    """

    @kinds.checked(seconds=kinds.number(0, "seconds"))
    def __init__(self, source: str, *, ignore_case: bool = False, seconds: float = 5.0) -> None:
        # Imported here, like wcmatch below, so that `import sagents_nb` stays light.
        import regex  # type: ignore[import-untyped,unused-ignore]

        self._shown = repr(source if len(source) <= 200 else source[:200] + "…")
        pieces, nested, self._repeats_group = self._size(source)
        if pieces > MAX_PIECES or nested > MAX_NESTED:
            raise FileError(
                f"{self._shown} is too large with all its repeats written out; repeat less often, "
                "and nothing that repeats already."
            )
        flags = regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0)
        try:
            compiled = _compiled(source, flags)
        except regex.error as error:
            raise FileError(
                f"{self._shown} is no regular expression ({error}); put a backslash before "
                "characters that stand for themselves."
            ) from None
        self._seconds = self._left = seconds
        self._search = compiled.search
        self._whole = self._text = self._linear = None
        self._whole_left = WHOLE_SECONDS
        self._joins = True
        if _searches_whole(source):
            self._whole = _compiled(source, compiled.flags | regex.MULTILINE).search
        if not ignore_case and _TEXT.fullmatch(source):
            self._text = source
        elif not ignore_case and _LINEAR.fullmatch(source):
            self._linear = re.compile(source).search

    def _size(self, source: str) -> tuple[int, int, bool]:
        """How many pieces it has at most, how deep its groups are, and whether one is repeated.

        What is repeated at least n times is compiled n times, and once more for the rest: each
        "+" around another doubles what is in it.
        """
        above: list[int] = []
        before = last = deepest = 0  # the sizes of what stands before the last item, and its own
        group = repeats_group = False  # whether the last item is a group
        for part in _PARTS.finditer(source):
            kind = part.lastgroup
            if kind == "unbounded":
                raise self._unbounded(part[0])
            if part[0] == "[":
                return self._most(source)
            if kind == "opens":
                above.append(before + last)
                deepest = max(deepest, len(above))
                before = last = 0
            elif kind == "closes":
                last += before + 2
                before = above.pop() if above else 0
            elif kind == "repeats":
                last = last * (1 + _least(part["repeats"])) + 2
                repeats_group |= group and part["repeats"] != "?"
            elif kind != "nothing":
                before += last
                last = len(part[0]) if kind == "set" else 1
            group = kind == "closes" or (group and kind == "nothing")
        return before + last, deepest, repeats_group

    def _most(self, source: str) -> tuple[int, int, bool]:
        """The same where nobody knows what is in what: all of it in each repeat."""
        if found := re.search(_UNBOUNDED, source):
            raise self._unbounded(found[0])
        times = math.prod(1 + _least(repeat) for repeat in re.findall(_REPEATS, source))
        return len(source) * times, source.count("("), True

    def _unbounded(self, part: str) -> FileError:
        return FileError(
            f"{self._shown} has {part!r}, and nobody can tell how much memory that takes; write it "
            "without."
        )

    def may_be_in(self, text: str) -> bool:
        """False if no line of ``text`` matches; looking at lines one by one takes much longer."""
        if self._whole is None or (self._repeats_group and len(text) > MAX_REPEATED_IN):
            return True
        try:
            return bool(self._found_in([text]))
        except (TimeoutError, MemoryError):
            self._whole = None
            return True

    def may_be_in_each(self, texts: Sequence[str]) -> list[int]:
        """The positions of those of which :meth:`may_be_in` is true: as one, if they are short.

        To start a search that may be stopped takes as long as to search two thousand characters.
        """
        as_one = self._joins and 0 < sum(map(len, texts)) <= MAX_REPEATED_IN
        if self._whole is not None and as_one:
            try:
                return self._found_in(texts)
            except (TimeoutError, MemoryError):  # it may be quick on each of them
                self._joins = False
                self._whole_left = WHOLE_SECONDS
        return [position for position, text in enumerate(texts) if self.may_be_in(text)]

    def _found_in(self, texts: Sequence[str]) -> list[int]:
        """The positions of texts in which a match begins; raises what a search does."""
        assert self._whole is not None
        joined = "\n".join(texts)
        if "\r" in joined:
            texts = [_without_returns(text) for text in texts]
            joined = "\n".join(texts)
        ends: list[int] = []  # known once something is found, which is seldom
        self._whole_left += len(joined) * WHOLE_SECONDS_PER_CHARACTER
        began = time.monotonic()
        found: list[int] = []
        start = 0
        while start <= len(joined):
            left = self._whole_left - (time.monotonic() - began)
            begin = self._first(joined, start, max(0.001, left))
            if begin < 0:
                break
            ends = ends or list(itertools.accumulate(len(text) + 1 for text in texts))
            found.append(bisect_right(ends, begin))
            start = ends[found[-1]]
        self._whole_left -= time.monotonic() - began
        return found

    def _first(self, text: str, start: int, seconds: float) -> int:
        """Where the first match from ``start`` on begins, -1 for none; raises what a search does.

        What cannot take long is left to Python, which is quicker. The two read what is ASCII alike;
        of the rest they know different versions of Unicode.
        """
        assert self._whole is not None
        if self._text is not None:
            return text.find(self._text, start)
        if self._linear is not None and text.isascii():
            match = self._linear(text, start)
        else:
            match = self._whole(text, start, timeout=seconds)
        return -1 if match is None else int(match.start())

    def lines_found(self, lines: Sequence[str]) -> list[int]:
        """The numbers of the lines, from 1, in which it matches; FileError when time is up."""
        if self._repeats_group and max(map(len, lines), default=0) > MAX_REPEATED_IN:
            raise FileError(
                f"{self._shown} repeats a group, which takes too much memory in a line of over "
                f"{MAX_REPEATED_IN:,} characters; use a pattern that repeats none."
            )
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
                f"Matching {self._shown} took over {self._seconds:g} s; use a simpler pattern."
            ) from None
        except MemoryError:
            raise FileError(
                f"Matching {self._shown} took too much memory; use a simpler pattern."
            ) from None
        self._left = end - now()
        return found


def _without_returns(text: str) -> str:
    """With line ends as lines have them: a carriage return is no part of a line that it ends."""
    return text.replace("\r\n", "\n").removesuffix("\r")


@lru_cache(maxsize=16)
def _compiled(source: str, flags: int) -> Any:
    import regex  # type: ignore[import-untyped,unused-ignore]

    # Its own cache keeps five hundred, of any size.
    return regex.compile(source, flags, cache_pattern=False)


def _least(repeat: str) -> int:
    """How often something is repeated at least."""
    if repeat[:1] != "{":
        return int(repeat == "+")
    digits = repeat[1:-1].partition(",")[0].lstrip("0")
    return int(digits[:9] or 0)


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


def names(pattern: str) -> list[str]:
    """The names in a glob: one for each directory on the way, up to one that has "**" in it.

    >>> names("/a/*/b.md"), names("a/**/b.md"), names("a//b")
    (['a', '*', 'b.md'], ['a', '**'], ['**'])
    """
    found = pattern.removeprefix("/").split("/")
    if not {"", ".", ".."}.isdisjoint(found):  # nothing is known of what it means
        return ["**"]
    any_depth = next((place for place, name in enumerate(found) if "**" in name), None)
    return found if any_depth is None else [*found[:any_depth], "**"]


def is_literal(name: str) -> bool:
    """Whether a name in a glob stands for itself."""
    return "*" not in name and "?" not in name


def reach(pattern: str) -> tuple[str, int | None]:
    """A directory in which all lies that a glob can mean, and how many levels down; None: any.

    >>> reach("/a/*.md"), reach("/a/*/c"), reach("a/**"), reach("/a.md")
    (('/a', 1), ('/a', 2), ('/a', None), ('/', 1))
    """
    found = names(pattern)
    literal = list(itertools.takewhile(is_literal, found[:-1]))
    levels = None if found[-1] == "**" else len(found) - len(literal)
    return "/" + "/".join(literal), levels


@lru_cache(maxsize=256)
def _translated(pattern: str) -> str:
    from wcmatch import glob

    anchored = "/" + pattern.removeprefix("/")
    # "\[" and not "[": only the three wildcards are special, file names may hold the rest.
    literal = re.sub(r"([\\\[\]])", r"\\\1", anchored)
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    ((source,), _) = glob.translate(literal, flags=flags)
    return str(source)
