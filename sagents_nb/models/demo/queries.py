"""What a question asks of a data frame, as data; its result from rows, and the pandas code for it.

A result is rows, whichever way it was found: by :func:`evaluate` where every row was seen, and
from what the code of :func:`code` prints where people let it run.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Literal

import msgspec

from .frames import Frame, Row, as_number

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

_FREQUENCY = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}
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


# The result from rows that were seen


def evaluate(query: Query, frame: Frame) -> list[Row] | None:
    """The result; None where it takes rows that were not seen, or more than is known here."""
    if not frame.columns:
        return None
    if told := _from_statistics(query, frame):
        return told
    if not frame.whole or query.kind == "plot":
        return None
    columns = {c.name: c for c in frame.columns}
    parts = {c.column for c in query.conditions if c.part}
    dates = {*(k.column for k in query.by if k.period), *parts}
    if not all(columns[name].iso for name in dates):
        return None
    if any(k.period in ("week", "hour") for k in query.by):
        return None
    query = _with_numbers(query, frame)
    rows = [row for row in frame.rows if all(_holds(c, row) for c in query.where)]
    match query.kind:
        case "aggregate" | "growth" | "change":
            return _grouped(query, rows, frame)
        case "rows":
            return _sorted(rows, query)[: query.most]
        case "missing":
            gaps = [r for r in rows if any(r[m] is None for m in query.measures)]
            return [{"rows": len(gaps)}]
        case "values":
            return _counted(rows, query.measures[0])
        case "range" if query.by:
            return _spans(query, rows) if columns[query.measures[0]].iso else None
        case "range" if not columns[query.measures[0]].dated or columns[query.measures[0]].iso:
            held = [r[query.measures[0]] for r in rows if r[query.measures[0]] is not None]
            ends = [{"first": min(held), "last": max(held)}] if held else []
            return [{**end, **_count_of(query, rows)} for end in ends]
        case "correlation" if len(query.measures) == 2:
            return [{"correlation": _correlation(rows, *query.measures)}]
    return None


def times_of(conditions: Sequence[Condition], frame: Frame) -> list[Condition]:
    """The conditions that say when."""
    return [
        c
        for c in conditions
        if not c.statistic
        and (c.part or frame.column(c.column).dated or c.column.lower() == "year")
    ]


def _with_numbers(query: Query, frame: Frame) -> Query:
    """The query with the number in the place of each statistic that rows are compared with."""
    times = times_of(query.where, frame)
    rows = [row for row in frame.rows if all(_holds(c, row) for c in times)]

    def settled(condition: Condition) -> Condition:
        if not condition.statistic:
            return condition
        number = computed(condition.statistic, [row[condition.column] for row in rows])
        return msgspec.structs.replace(condition, value=number, statistic="")

    where, that = (tuple(map(settled, said)) for said in (query.where, query.that))
    return msgspec.structs.replace(query, where=where, that=that)


def _from_statistics(query: Query, frame: Frame) -> list[Row] | None:
    """The result where ``show_frame`` told it of the whole frame."""
    if query.where:
        return _counted_value(query, frame)
    if query.kind == "missing" and query.statistic == "sum":
        return [{"rows": sum(frame.column(m).missing for m in query.measures)}]
    if query.kind == "missing" and (len(query.measures) == 1 or not _gaps(frame)):
        missing = frame.column(query.measures[0]).missing if len(query.measures) == 1 else 0
        return [{"rows": missing}]
    if query.kind == "aggregate" and query.statistic == "count" and not query.by:
        return [{"count": frame.size}] if not query.measures else None
    named = query.kind == "values" and len(query.measures) == 1 and query.measures[0]
    if query.kind == "aggregate" and query.statistic == "count" and len(query.by) == 1:
        if query.that:
            return None
        named = not query.by[0].period and not query.measures and query.by[0].column
    if named and (values := frame.column(named).values):
        column = frame.column(named)
        rows: list[Row] = [{named: column.typed(v), "count": n} for v, n in values.items()]
        return _ordered(rows, "count", query) if query.kind == "aggregate" else rows
    if query.kind == "range" and query.by:
        return None
    if query.kind == "range":
        ends = [_statistic(end, query.measures[0], frame) for end in ("min", "max")]
        counted = {"count": frame.size} if query.statistic == "count" else {}
        return None if None in ends else [{"first": ends[0], "last": ends[1], **counted}]
    if query.kind != "aggregate" or query.by or not query.measures:
        return None
    row = {m: _statistic(query.statistic, m, frame) for m in query.measures}
    return None if None in row.values() else [row]


def _counted_value(query: Query, frame: Frame) -> list[Row] | None:
    """How many rows have one value, where it is known how often each is there."""
    counts = query.kind == "aggregate" and query.statistic == "count" and not query.by
    if not counts or query.measures or len(query.where) > 1:
        return None
    (condition,) = query.where
    column = frame.column(condition.column)
    if condition.operator != "==" or condition.part or not column.values or column.dated:
        return None
    found = [n for value, n in column.values.items() if column.typed(value) == condition.value]
    return [{"count": sum(found)}]


def _gaps(frame: Frame) -> bool:
    return any(column.missing for column in frame.columns)


def _statistic(statistic: str, name: str, frame: Frame) -> Any:
    column = frame.column(name)
    told = column.statistics
    if statistic == "nunique":
        return len(column.values) or (int(float(told["unique"])) if "unique" in told else None)
    if statistic in ("min", "max") and column.is_time:
        return told.get(statistic)
    if not column.numeric or not {"mean", "count"} <= set(told):
        return None
    numbers = {label: as_number(text) for label, text in told.items()}
    if statistic == "sum":
        total = numbers["mean"] * numbers["count"]
        return round(total) if column.dtype.startswith("int") else total
    return numbers.get("50%" if statistic == "median" else statistic)


def _period(value: Any, period: str) -> Any:
    """The period of a date that is written as 2025-03-31."""
    text = str(value)
    match period:
        case "year":
            return int(text[:4])
        case "month":
            return text[:7]
        case "quarter":
            return f"{text[:4]}Q{(int(text[5:7]) + 2) // 3}"
        case "weekday":
            return date.fromisoformat(text[:10]).strftime("%A")
    return text[:10]


def _holds(condition: Condition, row: Row) -> bool:
    value = row[condition.column]
    if condition.operator == "missing":
        return value is None
    if value is None:
        return condition.operator == "!="
    match condition.part:
        case "day":
            value = str(value)[:10]
        case "year":
            value = int(str(value)[:4])
        case "month":
            value = int(str(value)[5:7])
        case "quarter":
            value = (int(str(value)[5:7]) + 2) // 3
    wanted = condition.value
    if wanted is None:
        return False
    if condition.operator == "in":
        return value in wanted
    if isinstance(value, str) != isinstance(wanted, str):
        return False
    match condition.operator:
        case "==":
            return bool(value == wanted)
        case "!=":
            return bool(value != wanted)
        case ">":
            return bool(value > wanted)
        case ">=":
            return bool(value >= wanted)
        case "<":
            return bool(value < wanted)
    return bool(value <= wanted)


_COMPUTE: dict[str, Callable[[list[Any]], Any]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": sum,
    "min": min,
    "max": max,
    "std": lambda v: statistics.stdev(v) if len(v) > 1 else None,
    "count": len,
    "nunique": lambda v: len(set(v)),
}


def computed(statistic: str, values: Sequence[Any]) -> Any:
    """A statistic of values, of which None is none; of nothing there is no total, and not 0."""
    known = [value for value in values if value is not None]
    if not known:
        return 0 if statistic in ("count", "nunique") else None
    return _COMPUTE[statistic](known)


def _groups(keys: Sequence[Key], rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        values = [row[key.column] for key in keys]
        if None not in values:
            held = tuple(
                _period(v, k.period) if k.period else v for k, v in zip(keys, values, strict=True)
            )
            groups.setdefault(held, []).append(row)
    return dict(sorted(groups.items(), key=lambda item: tuple(map(_rank, item[0]))))


def _rank(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _grouped(query: Query, rows: Sequence[Row], frame: Frame) -> list[Row]:
    if query.kind == "growth":
        rows = [row for row in rows if all(row[m] is not None for m in query.measures)]
        if not joined(query, frame):
            names = [*(key.column for key in query.by), *query.measures]
            return [{name: row[name] for name in names} for row in rows]
    if query.kind == "change" and len(query.by) == 2:
        return _ends(query, rows)
    found: list[Row] = []
    for held, members in _groups(query.by, rows).items() if query.by else [((), list(rows))]:
        row: Row = {key.label: v for key, v in zip(query.by, held, strict=True)}
        if query.kind == "change":
            measure, when = query.measures[0], frame.date
            members = sorted(members, key=lambda r: str(r[when.name]) if when else "")
            values = [r[measure] for r in members if r[measure] is not None]
            row |= {"first": values[0], "last": values[-1]} if values else {}
        elif not query.measures:
            count = sum(all(_holds(c, r) for c in query.that) for r in members)
            share = count / len(members) if members else None
            row[query.value] = share if query.shares_rows else count
        else:
            row |= {m: computed(query.statistic, [r[m] for r in members]) for m in query.measures}
        found.append(row)
    return _ordered(found, query.value, query) if query.kind == "aggregate" else found


def years_of(query: Query) -> tuple[int, ...]:
    """The first and the last year of a change of groups that are named, () for those there are."""
    year = query.by[-1].column
    named = (c.value for c in query.where if c.column == year and c.operator == "in")
    return tuple(next(named, ()))


def _ends(query: Query, rows: Sequence[Row]) -> list[Row]:
    """Of each group what it has in the first year and in the last, where it has both."""
    (measure,), (group, _) = query.measures, query.by
    values = {
        held: computed(query.statistic, [row[measure] for row in members])
        for held, members in _groups(query.by, rows).items()
    }
    years = sorted({held[1] for held in values})
    first, last = years_of(query) or (years[0], years[-1]) if years else (0, 0)
    found = [
        {group.label: name, "first": values.get((name, first)), "last": values.get((name, last))}
        for name in dict.fromkeys(held[0] for held in values)
    ]
    return [row for row in found if None not in row.values()] if first != last else []


def _count_of(query: Query, rows: Sequence[Row]) -> Row:
    """How many rows there are, where a range is to tell it."""
    return {"count": len(rows)} if query.statistic == "count" else {}


def _spans(query: Query, rows: Sequence[Row]) -> list[Row]:
    """Of each group how many rows it has, and the first and the last value of them."""
    found: list[Row] = []
    for held, members in _groups(query.by, rows).items():
        values = [row[query.measures[0]] for row in members if row[query.measures[0]] is not None]
        ends = {"first": min(values), "last": max(values)} if values else {}
        labels = {key.label: v for key, v in zip(query.by, held, strict=True)}
        found.append({**labels, "count": len(members), **ends})
    return found


def joined(query: Query, frame: Frame) -> bool:
    """Whether a growth is told of groups of several rows, and not row by row."""
    return bool(query.by) and not frame.is_key(query.by[0].column)


def _ordered(rows: list[Row], column: str, query: Query) -> list[Row]:
    if not query.order:
        return rows
    known = [row for row in rows if row[column] is not None]
    known.sort(key=lambda r: r[column], reverse=query.order == "descending")
    return [*known, *(row for row in rows if row[column] is None)]


def _sorted(rows: list[Row], query: Query) -> list[Row]:
    return _ordered(rows, query.measures[0], query) if query.measures else rows


def _counted(rows: Sequence[Row], column: str) -> list[Row]:
    counts: dict[Any, int] = {}
    for row in rows:
        if row[column] is not None:
            counts[row[column]] = counts.get(row[column], 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [{column: value, "count": n} for value, n in ranked]


def _correlation(rows: Sequence[Row], one: str, other: str) -> float | None:
    pairs = [(r[one], r[other]) for r in rows if r[one] is not None and r[other] is not None]
    try:
        return statistics.correlation([a for a, _ in pairs], [b for _, b in pairs])
    except statistics.StatisticsError:  # fewer than two, or one of them never changes
        return None


# The code for it


def code(query: Query, frame: Frame) -> str:
    """Python for the notebook that prints the result, or shows the plot."""
    text = _plot(query, frame) if query.kind == "plot" else _Code(query, frame).printed()
    for column in frame.columns:
        if column.numbered:
            text = text.replace(repr(column.name), column.name)
    return text


class _Code:
    """Pieces of pandas for one query."""

    def __init__(self, query: Query, frame: Frame) -> None:
        self.query = query
        self.frame = frame
        self.base = frame.name + (".reset_index()" if frame.index else "")
        self.imports: list[str] = []

    def dates(self, column: str) -> str:
        """A column of dates as such."""
        text = f"{self.base}[{column!r}]"
        found = self.frame.column(column)
        if found.is_time:  # periods have no time zone
            return f"{text}.dt.tz_localize(None)" if "," in found.dtype else text
        if "import pandas as pd" not in self.imports:
            self.imports.append("import pandas as pd")
        return f"pd.to_datetime({text})"

    def condition(self, condition: Condition) -> str:
        """A condition on rows."""
        column, value = f"{self.base}[{condition.column!r}]", repr(condition.value)
        if condition.statistic:
            times = self.all_of(times_of(self.query.where, self.frame))
            value = f"{column}{f'[{times}]' if times else ''}.{condition.statistic}()"
        if condition.part == "day":
            column = f"{self.dates(condition.column)}.dt.normalize()"
        elif condition.part:
            column = f"{self.dates(condition.column)}.dt.{condition.part}"
        elif self.frame.column(condition.column).dated:
            column = self.dates(condition.column)
        if condition.operator == "missing":
            return f"{column}.isna()"
        if condition.operator == "in":
            return f"{column}.isin({list(condition.value)!r})"
        return f"{column} {condition.operator} {value}"

    def rows(self) -> str:
        """The rows that are meant."""
        where = self.all_of(self.query.where)
        if not where:
            return self.base
        # What rows are grouped by is chosen with them: labels of an index may be there twice.
        made = {key.label: self.period(key) for key in self.query.by if key.period}
        if self.query.that:
            made[self.query.value] = self.all_of(self.query.that)
        assigned = ", ".join(f"{name}={text}" for name, text in made.items())
        return f"{self.base}.assign({assigned})[{where}]" if made else f"{self.base}[{where}]"

    def all_of(self, conditions: Sequence[Condition]) -> str:
        """Conditions that hold together, "" without any."""
        found = [self.condition(c) for c in conditions]
        return found[0] if len(found) == 1 else " & ".join(f"({c})" for c in found)

    def key(self, key: Key) -> str:
        """What rows are grouped by."""
        if self.query.where:
            return repr(key.label)
        if not key.period:
            return f"{self.base}[{key.column!r}]" if self.query.that else repr(key.column)
        return f"{self.period(key)}.rename({key.label!r})"

    def period(self, key: Key) -> str:
        """The period of each row."""
        dates = self.dates(key.column)
        match key.period:
            case "weekday":
                return f"{dates}.dt.day_name()"
            case "year" | "hour":
                return f"{dates}.dt.{key.period}"
        return f"{dates}.dt.to_period({_FREQUENCY[key.period]!r})"

    def grouped(self) -> list[str]:
        """The groups and what is made of their measures, as steps of a chain."""
        query = self.query
        keys = [self.key(key) for key in query.by]
        by = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
        if query.that:
            how = "mean" if query.shares_rows else "sum"
            if query.where:
                return [f".groupby({by})[{query.value!r}].{how}()"]
            return [f".groupby({by}).{how}().rename({query.value!r})"]
        if query.statistic == "count" and not query.measures:
            return [f".groupby({by}).size().rename('count')"]
        return [f".groupby({by})[{self.measures()}].{self.statistic()}"]

    def statistic(self) -> str:
        """What is made of the measures; where nothing is there, a total is missing and not 0."""
        gaps = any(self.frame.column(m).missing for m in self.query.measures)
        if self.query.statistic == "sum" and (gaps or (self.query.where and not self.query.by)):
            return "sum(min_count=1)"
        return f"{self.query.statistic}()"

    def measures(self) -> str:
        """The measures as what a frame is asked for."""
        names = self.query.measures
        return repr(names[0]) if len(names) == 1 else repr(list(names))

    def steps(self) -> list[str]:
        """What is done with the rows, one after another, up to text."""
        query, up = self.query, self.query.order == "ascending"
        first = query.measures[0] if query.measures else ""
        match query.kind:
            case "rows":
                steps = [f".sort_values({first!r}, ascending={up})"] if first else []
                return [*steps, f".head({query.most})", ".to_csv(index=False)"]
            case "missing":
                return [f"[{list(query.measures)!r}]", ".isna().any(axis=1).sum()"]
            case "values":
                return [f"[{first!r}].value_counts()", f".head({10 * SHOWN})", ".to_csv()"]
            case "range" if query.by:
                keys = [repr(key.label) for key in query.by]
                by = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
                ends = ".agg(count='size', first='min', last='max')"
                return [f".groupby({by})[{first!r}]", ends, ".to_csv()"]
            case "range" if self.frame.column(first).dated:
                ends = "['min', 'max', 'size']" if query.statistic == "count" else "['min', 'max']"
                return [f".agg({ends})", ".to_csv(header=False)"]
            case "range":
                return [f"[{first!r}].agg(['min', 'max'])", ".to_csv(header=False)"]
            case "growth":
                names = [*(key.column for key in query.by), *query.measures]
                if joined(query, self.frame):
                    return [f"[{names!r}]", ".dropna()", *self.grouped(), ".to_csv()"]
                return [f"[{names!r}]", ".to_csv(index=False)"]
            case "change" if len(query.by) == 2:
                years = [*years_of(query)]
                picked = f".reindex(columns={years})" if years else ".iloc[:, [0, -1]]"
                named = ".set_axis(['first', 'last'], axis=1)"
                return [*self.grouped(), ".unstack()", picked, named, ".dropna()", ".to_csv()"]
            case "change":
                date = self.frame.date
                steps = [f".sort_values({date.name!r})"] if date else []
                if not query.by:
                    return [*steps, f"[{first!r}].dropna().iloc[[0, -1]]", ".to_csv(index=False)"]
                by = self.key(query.by[0])
                ends = f".groupby({by})[{first!r}].agg(['first', 'last'])"
                return [*steps, ends, ".to_csv()"]
        if query.by:
            ordered = []
            if query.order and query.wants != "growth":
                by = "" if len(query.measures) < 2 else f"{first!r}, "
                ordered = [f".sort_values({by}ascending={up})"]
                if query.wants != "share":
                    ordered.append(f".head({query.most})")
            return [*self.grouped(), *ordered, ".to_csv()"]
        if query.shares_rows:
            return [".mean()"]
        if len(query.measures) == 1:
            return [f"[{first!r}].{self.statistic()}"]
        return [f"[{list(query.measures)!r}].{self.statistic()}", ".to_csv(header=False)"]

    def printed(self) -> str:
        """The whole code."""
        rows, query = self.rows(), self.query
        if query.that and not (query.by and query.where):
            where = self.all_of(query.where)
            counted = f"({self.all_of(query.that)})"
            inner = [f"{counted}[{where}]" if where else counted, *self.steps()]
        elif query.kind == "aggregate" and query.statistic == "count" and not query.by:
            inner = [f"len({rows})"]
        elif query.kind == "correlation":
            one, other = query.measures
            inner = [f"{rows}[{list(query.measures)!r}].corr().loc[{one!r}, {other!r}]"]
        elif query.kind == "range" and query.by:
            first = query.measures[0]
            if not self.frame.column(first).is_time:
                rows += f".assign(**{{{first!r}: {self.dates(first)}}})"
            inner = [rows, *self.steps()]
        elif query.kind == "range" and self.frame.column(query.measures[0]).dated:
            text = f"{rows}[{query.measures[0]!r}]"
            if not self.frame.column(query.measures[0]).is_time:
                self.imports.append("import pandas as pd")
                text = f"pd.to_datetime({text})"
            inner = [text, *self.steps()]
        else:
            inner = [rows, *self.steps()]
        line = "".join(inner)
        if len(line) > 80 and len(inner) > 1:
            line = "\n    " + "\n    ".join(inner) + "\n"
        return "\n".join([*self.imports, f"print({line})"])


_LEGEND = ".legend(loc='upper left', bbox_to_anchor=(1, 1))"  # beside the lines, not over them


def _plot(query: Query, frame: Frame) -> str:
    pieces = _Code(query, frame)
    rows, first = pieces.rows(), query.measures[0] if query.measures else ""
    title = title_of(query, frame)
    options = f"title={title!r}, ax=plt.subplots(figsize=(8, 4))[1]"
    # A line alone shows no point with a gap on both sides.
    kind = "marker='.', " if query.chart in ("", "line") else f"kind={query.chart!r}, "
    if query.chart == "hist" and query.by:
        told = f"column={first!r}, by={query.by[0].column!r}, bins=20, sharex=True"
        steps = [rows, f".hist({told}, figsize=(8, 6))"]
    elif query.chart == "hist":
        steps = [rows, f"[{first!r}]", f".plot(kind='hist', bins=20, xlabel={first!r}, {options})"]
    elif query.chart == "scatter":
        x, y = query.measures[:2]
        steps = [rows, f".plot(kind='scatter', x={x!r}, y={y!r}, {options})"]
    elif query.chart == "box":
        made = {key.label: pieces.period(key) for key in query.by if key.period}
        if made and not query.where:  # else they are chosen with the rows
            rows += f".assign({', '.join(f'{name}={text}' for name, text in made.items())})"
        labels = [key.label for key in query.by]
        by = f"by={(labels if labels[1:] else labels[0])!r}, " if labels else ""
        drawn = f"{rows}.boxplot(column={first!r}, {by}ax=ax)"
        # Over the title of its axes pandas puts one of its own.
        lines = ["ax = plt.subplots(figsize=(8, 4))[1]", drawn, f"ax.set_title({title!r})"]
        imports = ["import matplotlib.pyplot as plt", *dict.fromkeys(pieces.imports)]
        return "\n".join([*imports, "", *lines, "_ = ax.figure.suptitle('')"])
    elif len(query.by) == 2 and not any(key.period for key in query.by):
        x, group = (key.column for key in query.by)
        how = "" if query.statistic == "mean" else f", aggfunc={query.statistic!r}"
        pivot = f".pivot_table(index={x!r}, columns={group!r}, values={first!r}{how})"
        steps = [rows, pivot, f".plot({kind}ylabel={first!r}, {options})", _LEGEND]
    elif len(query.by) == 2:
        drawn = f".plot({kind}ylabel={first!r}, {options})"
        steps = [rows, *pieces.grouped(), ".unstack()", drawn, _LEGEND]
    elif query.by and query.statistic == "mean" and _unique(query.by[0], frame):
        x = query.by[0].column
        dated = frame.column(x).dated
        index = pieces.dates(x) if dated and not frame.column(x).is_time else repr(x)
        steps = [rows, f".set_index({index})", f"[{pieces.measures()}]"]
        steps += [".sort_index()" if dated else "", f".plot({kind}{options})"]
        steps += [_LEGEND] if query.measures[1:] else []
    else:
        ylabel = repr(first or "count")
        steps = [rows, *pieces.grouped(), f".plot({kind}ylabel={ylabel}, {options})"]
        steps += [_LEGEND] if query.measures[1:] else []
    steps = [step for step in steps if step]
    chain = "".join(steps)
    if len(chain) > 80:
        chain = "(\n    " + "\n    ".join(steps) + "\n)"
    imports = ["import matplotlib.pyplot as plt", *dict.fromkeys(pieces.imports)]
    return "\n".join([*imports, "", chain])


def _unique(key: Key, frame: Frame) -> bool:
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
        or (query.statistic == "mean" and _unique(query.by[0], frame))
    ):
        text = f"{', '.join(query.measures)}{f' by {by}' if by else ''}"
    else:
        text = f"{said(query, '')} by {by}"
    return text[:1].upper() + text[1:]


def result(query: Query, text: str, frame: Frame) -> list[Row]:
    """The rows that the code printed, [] if there are none; warnings before them are skipped."""
    lines = text.strip().splitlines()
    if not query.by and query.kind in ("aggregate", "missing", "correlation"):
        return _single(query, lines)
    if query.kind == "range" and not query.by:
        pairs = dict(pair for pair in csv.reader(lines) if len(pair) == 2)
        named = {"first": "min", "last": "max", "count": "size"}
        ends = {name: as_number(pairs[told]) for name, told in named.items() if told in pairs}
        return [ends] if {"first", "last"} <= set(ends) else []
    names = {*(c.name for c in frame.columns), *(key.label for key in query.by)}
    while lines and next(csv.reader(lines[:1]))[0] not in names:
        lines = lines[1:]
    labels = {key.label for key in query.by}
    rows = [
        {name: _cell(value, name in labels) for name, value in record.items() if name is not None}
        for record in csv.DictReader(io.StringIO("\n".join(lines)))
    ]
    if query.kind == "change" and not query.by and len(rows) == 2:
        (a,), (b,) = (list(row.values()) for row in rows)
        return [{"first": a, "last": b}]
    return rows


def _single(query: Query, lines: Sequence[str]) -> list[Row]:
    """One value, or one for each measure."""
    if len(query.measures) > 1 and query.kind == "aggregate":
        pairs = csv.reader(lines[-len(query.measures) :])
        return [{pair[0]: as_number(pair[1]) for pair in pairs if len(pair) == 2}]
    name = {"missing": "rows", "correlation": "correlation"}.get(query.kind)
    name = name or query.value
    value = as_number(lines[-1].strip()) if lines else None
    return [{name: None if value != value else value}]


def _cell(text: Any, label: bool) -> Any:
    if not text or not isinstance(text, str):
        return None
    if label and not text.isdigit():
        return text
    return as_number(text)
