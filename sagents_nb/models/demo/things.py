"""What the rows of a data frame are of: a lake that is measured each year has several rows.

"How many lakes" then asks for the different lakes, and not for the rows.
"""

from __future__ import annotations

import re

from .frames import Column, Frame
from .words import stem, word_set

# The words of a column's name that only say how it tells things apart.
_LABELS = word_set("id name number no nr code key title")


def thing_of(noun: str, frame: Frame) -> str:
    """The column that tells apart what a noun names, "" if each row is another or none does.

    A column ``lake``, ``lake_id`` or ``lake_name`` tells lakes apart. So does a plain ``name`` in a
    frame ``lakes``, if most names are there more than once: else two may only be called the same.
    """
    own = [c for c in frame.columns if _tells(c, noun)]
    plain = [c for c in frame.columns if not _subject(c)] if _is_of(frame, noun) else []
    for columns, least in ((own, 1), (plain, 2)):
        if any(frame.is_key(c.name) for c in columns):
            return ""
        repeated = [c.name for c in columns if _repeats(c, frame, least)]
        if repeated:
            return repeated[0]
    return ""


def named_thing(noun: str, frame: Frame) -> str:
    """The column that tells apart what a noun names, be it one row each; "" without one."""
    own = [column for column in frame.columns if _tells(column, noun)]
    plain = [column for column in frame.columns if not _subject(column) and not column.numeric]
    found = [*own, *(plain if _is_of(frame, noun) else [])]
    return found[0].name if found else ""


def unsure_thing_of(noun: str, frame: Frame) -> str:
    """The column that may tell apart what a noun names, as some of its names are there twice."""
    if thing_of(noun, frame) or not _is_of(frame, noun):
        return ""
    plain = [c for c in frame.columns if not _subject(c) or _tells(c, noun)]
    if any(frame.is_key(c.name) for c in plain):
        return ""
    return next((c.name for c in plain if _repeats(c, frame, 1)), "")


def _is_of(frame: Frame, noun: str) -> bool:
    return stem(noun) == stem(frame.name)


def _words(column: Column) -> list[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", column.name)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", spaced)]


def _subject(column: Column) -> list[str]:
    """What a column is about, [] where it only numbers or names the rows."""
    return [word for word in _words(column) if word not in _LABELS]


def _tells(column: Column, noun: str) -> bool:
    if (
        column.dated
        or column.binary
        or column.yes_and_no
        or column.dtype.lower().startswith("float")
    ):
        return False
    if column.numeric and not set(_words(column)) & _LABELS:
        return False  # so many of them
    return [stem(word) for word in _subject(column)] == [stem(noun)]


def _repeats(column: Column, frame: Frame, least: int) -> bool:
    """Whether its values are there more than once, each ``least`` times on average."""
    there = frame.size - column.missing
    return bool(column.different) and least * (column.different or 0) <= there > (
        column.different or 0
    )
