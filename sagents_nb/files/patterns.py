"""Globs over paths and regular expressions over lines, which cannot hang the process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from functools import lru_cache

from .errors import FileError, InvalidPath

MAX_PATTERN = 1000


class Expression:
    """A regular expression with ``seconds`` for all that it searches.

    Patterns come from models. Python's own ``re`` holds up every thread while it backtracks
    and cannot be stopped; ``regex`` lets them run and stops when told. Raises FileError for
    text that is no regular expression.
    """

    def __init__(self, source: str, *, ignore_case: bool = False, seconds: float = 5.0) -> None:
        # Imported here, like wcmatch below, so that `import sagents_nb` stays light.
        import regex  # type: ignore[import-untyped,unused-ignore]

        try:
            self._compiled = regex.compile(source, regex.IGNORECASE if ignore_case else 0)
        except regex.error as error:
            raise FileError(
                f"{source!r} is no regular expression ({error}); put a backslash before "
                "characters that stand for themselves."
            ) from None
        self._source = source
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def found_in(self, text: str) -> bool:
        """Whether it matches somewhere in ``text``; FileError when the time is up."""
        left = max(0.001, self._deadline - time.monotonic())
        try:
            return self._compiled.search(text, timeout=left) is not None
        except TimeoutError:
            raise FileError(
                f"Matching {self._source!r} took over {self._seconds:g} s; use a simpler pattern."
            ) from None


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
    expression = Expression(_translated(pattern), seconds=2.0)
    return [path for path in paths if expression.found_in(path)]


@lru_cache(maxsize=256)
def _translated(pattern: str) -> str:
    from wcmatch import glob

    anchored = "/" + pattern.removeprefix("/")
    # "\[" and not "[": only the three wildcards are special, file names may hold the rest.
    literal = re.sub(r"([\\\[\]])", r"\\\1", anchored)
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    ((source,), _) = glob.translate(literal, flags=flags)
    return str(source)
