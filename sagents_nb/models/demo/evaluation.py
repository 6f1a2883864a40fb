"""The result of a query from rows that were seen, where all of them were."""

from __future__ import annotations

import calendar
import statistics
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import msgspec

from .frames import Frame, Row, as_number
from .queries import Condition, Key, Query, joined, times_of, years_of

_DAYS = list(calendar.day_name)


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
    periods = [key.period for key in keys]

    def order(item: tuple[tuple[Any, ...], list[Row]]) -> tuple[Any, ...]:
        return tuple(map(_rank, item[0], periods))

    return dict(sorted(groups.items(), key=order))


def _rank(value: Any, period: str) -> tuple[bool, Any]:
    return isinstance(value, str), _DAYS.index(value) if period == "weekday" else value


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
