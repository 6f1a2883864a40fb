"""Changes of a text: a piece replaced by another, lines replaced by others."""

from __future__ import annotations

from .. import kinds
from .entry import FileEntry
from .errors import FileError, LimitExceeded, WrongKind


@kinds.checked
def split_lines(text: str) -> list[str]:
    r"""The lines of a text: a newline ends a line and does not begin another.

    >>> split_lines("a\nb\n"), split_lines("a\n\n"), split_lines("")
    (['a', 'b'], ['a', ''], [])
    """
    # Not str.splitlines: form feeds and the like would count as line ends.
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def lines_from(text: str, first: int, limit: int) -> tuple[list[str], int]:
    r"""Up to ``limit`` lines from line ``first`` (from 1) on, and how many there are in all.

    >>> lines_from("a\nb\nc\n", 2, 9), lines_from("a\nb", 1, 1), lines_from("", 1, 1)
    ((['b', 'c'], 3), (['a'], 2), ([], 0))
    """
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    last = min(total, first + limit - 1)
    return text.split("\n", last)[first - 1 : last], total


@kinds.checked
def replace_text(
    entry: FileEntry,
    old: str,
    new: str,
    *,
    everywhere: bool = False,
    longest: int | None = None,
) -> tuple[str, int, int]:
    """The text of a file with ``old`` replaced: ``(text, occurrences, first line)``.

    Raises FileError if ``old`` is not there, or more than once and not ``everywhere``, and
    LimitExceeded, before it is made, for a text of over ``longest`` characters.
    """
    text = _text_of(entry)
    if "\r\n" in text and "\r\n" not in old + new:
        # A model is shown the lines without their ends, so it cannot know these.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old or old == new:
        raise FileError("old_string must be some text, and new_string another.", entry.path)
    count = text.count(old)
    if not count:
        raise FileError(
            f"old_string is not in {entry.path}; read the file and copy the text exactly.",
            entry.path,
        )
    if count > 1 and not everywhere:
        raise FileError(
            f"old_string occurs {count} times in {entry.path}; add text around it to make it "
            "unique, or set replace_all=true.",
            entry.path,
        )
    length = len(text) + count * (len(new) - len(old))
    if longest is not None and length > longest:
        raise LimitExceeded(
            f"{entry.path} would have {length:,} characters, over the limit of {longest:,} for one "
            "file; replace less.",
            entry.path,
        )
    return text.replace(old, new), count, text[: text.index(old)].count("\n") + 1


@kinds.checked
def replace_lines(entry: FileEntry, start: int, end: int, new: list[str]) -> str:
    """The text of a file with the lines ``start`` to ``end`` (from 1, inclusive) replaced.

    Raises FileError for a range that is not in the file.
    """
    path, text = entry.path, _text_of(entry)
    lines = split_lines(text)
    first, last = kinds.shown(start), kinds.shown(end)
    if start < 1:
        raise FileError(f"start_line is {first}, but lines are counted from 1.", path)
    if end < start:
        raise FileError(f"end_line ({last}) is before start_line ({first}); swap them.", path)
    if start > len(lines):
        raise FileError(f"start_line is {first}, but {path} has only {len(lines)} lines.", path)
    if end > len(lines):
        raise FileError(f"end_line is {last}, but {path} has only {len(lines)} lines.", path)
    if "\r\n" in text:
        new = [line.removesuffix("\r") + "\r" for line in new]
    lines[start - 1 : end] = new
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def _text_of(entry: FileEntry) -> str:
    if entry.text is None:
        raise WrongKind(
            f"{entry.path} is a binary file and has no text to edit; write it anew.", entry.path
        )
    return entry.text
