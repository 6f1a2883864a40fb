"""What a question asks of a data frame, as data, and what it is called in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from .frames import Frame

Kind = Literal[
    "show",
    "summary",
    "shape",
    "missing",
    "range",
    "values",
    "aggregate",
    "change",
    "growth",
    "rows",
    "correlation",
    "plot",
]
Statistic = Literal["mean", "median", "sum", "min", "max", "std", "count", "nunique"]
Period = Literal["", "year", "quarter", "month", "week", "day", "weekday", "hour"]

Order = Literal["", "descending", "ascending"]
Wants = Literal["", "first", "share", "growth", "compare", "difference", "computed"]
Part = Literal["", "year", "month", "quarter", "day"]
Operator = Literal["==", "!=", ">", ">=", "<", "<=", "in", "missing"]

SHOWN = 20  # rows of a result that are asked for

_MONTHS = "January February March April May June July August September October November December"
MONTHS = tuple(_MONTHS.split())


class Key(msgspec.Struct, frozen=True):
    """What rows are grouped by: a column, or a period of a column of dates."""

    column: str
    period: Period = ""

    @property
    def label(self) -> str:
        """The name of its column in a result."""
        return self.period or self.column


class Condition(msgspec.Struct, frozen=True):
    """What rows have to be: ``part`` is what counts of a date, "" for all of it.

    The value of "in" is a tuple of those that are allowed; "missing" has none. One with a
    statistic is compared with that of its column, of all rows or of those of the time that is
    said; its value is None.
    """

    column: str
    operator: Operator
    value: Any
    part: Part = ""
    statistic: Literal["", "mean", "median"] = ""


class Query(msgspec.Struct, frozen=True):
    """What a question asks of a frame.

    ``measures`` are columns; ``statistic`` is what is made of them, for each group of ``by``.
    ``order`` sorts the result, of which ``top`` rows are wanted. ``wants`` is what the answer is
    to be about: the first of a ranking, shares, a change, whether one is more than the other.
    ``that`` is what rows of a group have to be to count in it: a group without any has 0.
    ``told`` is what is asked of rows in an order beside the column of that order; the answer wants
    "computed" is their statistic.
    """

    kind: Kind
    measures: tuple[str, ...] = ()
    statistic: Statistic = "mean"
    by: tuple[Key, ...] = ()
    where: tuple[Condition, ...] = ()
    order: Order = ""
    top: int | None = None
    wants: Wants = ""
    subjects: tuple[str, ...] = ()  # values that are compared, the first is said to be more
    chart: str = ""
    word: str = ""  # the superlative or comparative, as it was said
    yes_no: bool = False  # whether it is answered by yes or no
    # Words that were taken for the rows, without a sign that they are.
    assumed: tuple[str, ...] = ()
    that: tuple[Condition, ...] = ()
    things: str = ""  # the column of what was asked for, where rows were taken instead
    told: tuple[str, ...] = ()
    rank: int = 1  # which place of a ranking is wanted: 2 for the second highest value

    @property
    def value(self) -> str:
        """The name of the column of a result that has its values."""
        return self.measures[0] if self.measures else "share" if self.shares_rows else "count"

    @property
    def shares_rows(self) -> bool:
        """Whether it asks for the share of the rows of a group that are as ``that`` says."""
        return self.statistic == "mean" and bool(self.that)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that rows have to be, be it to count or to be there at all."""
        return (*self.where, *self.that)

    @property
    def most(self) -> int:
        """How many of the rows in an order are looked at: some more, as they may be ties."""
        if self.kind == "rows":
            return max(self.top or 1, 5, self.rank) + (SHOWN if self.order else 0)
        return (self.top or 0) + SHOWN


def times_of(conditions: Sequence[Condition], frame: Frame) -> list[Condition]:
    """The conditions that say when."""
    return [
        c
        for c in conditions
        if not c.statistic
        and (c.part or frame.column(c.column).dated or c.column.lower() == "year")
    ]


def joined(query: Query, frame: Frame) -> bool:
    """Whether a growth is told of groups of several rows, and not row by row."""
    return bool(query.by) and not frame.is_key(query.by[0].column)


def years_of(query: Query) -> tuple[int, ...]:
    """The first and the last year of a change of groups that are named, () for those there are."""
    year = query.by[-1].column
    named = (c.value for c in query.where if c.column == year and c.operator == "in")
    return tuple(next(named, ()))


def is_unique(key: Key, frame: Frame) -> bool:
    """Whether each row has a value of its own there."""
    return not key.period and frame.is_key(key.column)


_SAID = {
    "mean": "average",
    "median": "median",
    "sum": "total",
    "min": "lowest",
    "max": "highest",
    "std": "standard deviation of",
    "count": "number of rows",
    "nunique": "number of different",
}


def said(query: Query, marked: str = "`") -> str:
    """What is made of the measures, in words: "average `fare`"."""
    names = " and ".join(f"{marked}{m}{marked}" for m in query.measures)
    return f"{_SAID[query.statistic]} {names}".strip()


def title_of(query: Query, frame: Frame) -> str:
    """What a plot is about."""
    by = " and ".join(key.label for key in query.by)
    if query.chart == "hist":
        text = f"{query.measures[0]} of {frame.name}{f' by {by}' if by else ''}"
    elif query.chart == "scatter":
        text = f"{query.measures[1]} against {query.measures[0]}"
    elif (
        query.chart == "box"
        or not query.by
        or (query.statistic == "mean" and is_unique(query.by[0], frame))
    ):
        text = f"{', '.join(query.measures)}{f' by {by}' if by else ''}"
    else:
        text = f"{said(query, '')} by {by}"
    return text[:1].upper() + text[1:]
