"""What the demo model says of the result of a query: a sentence with the figures, a small table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from .data_words import ORDINAL_NAMES
from .evaluation import computed
from .frames import Frame, Row
from .history import listed, markdown_table, rounded
from .history import number as _number
from .phrases import (
    are,
    conditions_of,
    count_of,
    gaps_of,
    label_of,
    name_of,
    percent,
    value_of,
    where_of,
)
from .queries import Query, joined, said, title_of, years_of
from .reading import is_label, parts_of

_SHOWN = 10  # rows of a table
_INLINE = 4  # groups that stand in a sentence
_NAMES = 10  # names of what has the same value
_COMMON = ("most", "least", "fewest", "highest", "lowest", "best", "worst", "top", "maximum")


def reply(query: Query, rows: Sequence[Row], frame: Frame) -> str:
    """The answer, in Markdown, and which words of the question were taken for the rows."""
    said = _placed(query, list(rows), frame) if query.rank > 1 else _reply(query, list(rows), frame)
    said += _gaps_of_totals(query, frame) + _gaps_of_groups(query, frame)
    said += _gaps_of_others(query, frame)
    return said + _taken(query, frame) + _rowwise(query, frame)


def _rowwise(query: Query, frame: Frame) -> str:
    """That rows were taken, where several of them are of one of the things that were asked for."""
    if not query.things:
        return ""
    different = frame.column(query.things).different or 0
    rows = count_of(frame.size, "row")
    return (
        f"\n\nThat is of rows: `{frame.name}` has {rows}, and {different:,} different "
        f"`{query.things}`."
    )


def _taken(query: Query, frame: Frame) -> str:
    """Which words of the question were taken for the rows, "" without any."""
    names = listed([f"“{word}”" for word in dict.fromkeys(query.assumed)])
    return f"\n\nI took {names} for the rows of `{frame.name}`." if names else ""


def _placed(query: Query, rows: list[Row], frame: Frame) -> str:
    """The answer for a later place of a ranking, and which values are before it."""
    column = query.value
    ahead: list[tuple[Any, int]] = []
    known = [row for row in rows if row.get(column) is not None]
    while known and len(ahead) < query.rank - 1:
        same = [row for row in known if _same(row, known[0], column)]
        ahead.append((known[0][column], len(same)))
        known = known[len(same) :]
    place = ORDINAL_NAMES[query.rank - 1]
    if not known:
        few = "the rows that I looked at have" if len(rows) == query.most else "there are"
        return f"I cannot tell the {place} of `{column}`{where_of(query)}: {few} no more values."
    noun = "groups" if query.by and query.kind == "aggregate" else "rows"
    shares = query.shares_rows or (bool(query.measures) and frame.column(column).binary)
    number = percent if shares and query.statistic == "mean" else _number
    before = listed([number(v) + (f" ({n} {noun})" if n > 1 else "") for v, n in ahead])
    are = "is" if len(ahead) == 1 else "are"
    return f"{_reply(query, known, frame)}\n\nBefore it {are} {before}."


def _lead(query: Query) -> str:
    """The place of a ranking that is told: "highest", "second lowest"."""
    place = f"{ORDINAL_NAMES[query.rank - 1]} " if query.rank > 1 else ""
    return place + ("highest" if query.order == "descending" else "lowest")


def _reply(query: Query, rows: list[Row], frame: Frame) -> str:
    if not rows or all(value is None for row in rows for value in row.values()):
        # Rows that are so may lack what is asked for.
        lacking = any(frame.column(measure).missing for measure in query.measures)
        if (query.kind == "rows" and not rows) or (query.kind == "values" and not lacking):
            return f"There is no row of `{frame.name}`{where_of(query)}."
        return _no_value(query, frame)
    ranks = query.kind == "aggregate" or (query.kind == "rows" and bool(query.order))
    if ranks and query.measures and all(row.get(query.value) is None for row in rows):
        return _no_value(query, frame)  # the names of groups and rows are there
    match query.kind:
        case "missing":
            return _missing(query, rows, frame)
        case "values":
            return _values(query, rows, frame)
        case "range" if query.by:
            return _spans(query, rows)
        case "range":
            first, last = (value_of(rows[0][end]) for end in ("first", "last"))
            counted = f", in {count_of(rows[0]['count'], 'row')}" if "count" in rows[0] else ""
            return f"`{query.measures[0]}`{where_of(query)} goes from {first} to {last}{counted}."
        case "correlation":
            return _correlation(query, rows[0], frame)
        case "rows":
            return _rows(query, rows, frame)
        case "growth" | "change":
            return _grown(query, rows, frame)
    if query.wants == "growth":
        return _over_time(query, rows)
    if query.wants == "share":
        return _shares(query, rows, frame)
    if query.wants == "compare":
        return _compared(query, rows, frame)
    return _grouped(query, rows, frame) if query.by else _single(query, rows[0], frame)


def _no_value(query: Query, frame: Frame) -> str:
    return f"No row of `{frame.name}`{where_of(query)} has a value there."


def _spans(query: Query, rows: Sequence[Row]) -> str:
    """Of each group how many rows it has and from when to when, as a table."""
    by = " and ".join(f"`{key.label}`" for key in query.by)
    names = [key.label for key in query.by]
    cells: list[Row] = [
        {
            **{name: label_of(row[name]) for name in names},
            "rows": row["count"],
            **{end: value_of(row[end]) if row.get(end) else "" for end in ("first", "last")},
        }
        for row in rows
    ]
    lead = f"The number of rows by {by}{where_of(query)}, and their first and last"
    return f"{lead} `{query.measures[0]}`:\n\n{markdown_table(cells, 50)}"


def plotted(query: Query, frame: Frame) -> str:
    """What a plot shows."""
    kind = {"": "line plot", "hist": "histogram", "scatter": "scatter plot", "bar": "bar chart"}
    title = title_of(query, frame)
    name = kind.get(query.chart, f"{query.chart} plot")
    several = query.chart == "hist" and query.by
    shows = f"{name}s show" if several else f"{name} shows"
    said = f"The {shows}: {title[:1].lower() + title[1:]}{where_of(query)}."
    return said + _taken(query, frame)


def _gaps_of_totals(query: Query, frame: Frame) -> str:
    """That totals lack the rows without a value, where there are any and groups are shown."""
    what = _OF_ALL.get(query.statistic or "") if query.kind == "aggregate" and query.by else None
    gaps = frame.column(query.measures[0]).missing if what and query.measures else 0
    if not gaps or gaps == frame.size:
        return ""
    return f"\n\n{_rows_without(query.measures[0], query, frame)} left out of the {what}."


_OF_ALL = {"sum": "totals", "mean": "averages", "median": "medians"}


def _gaps_of_groups(query: Query, frame: Frame) -> str:
    """That rows without a group are in none of them, where there are any."""
    if query.kind != "aggregate" or query.subjects:
        return ""
    gaps = [key.column for key in query.by if frame.column(key.column).missing]
    return "".join(f"\n\n{_rows_without(name, query, frame)} in no group." for name in gaps)


def _gaps_of_others(query: Query, frame: Frame) -> str:
    """That rows without a value are among those that have another one than is left out."""
    left = dict.fromkeys(c.column for c in query.conditions if c.operator == "!=")
    gaps = [name for name in left if frame.column(name).missing]
    return "".join(f"\n\nRows without a `{name}` are among them." for name in gaps)


def _rows_without(name: str, query: Query, frame: Frame) -> str:
    """How many rows have no value of a column: "2 rows without a `city` are"."""
    if query.conditions:  # nobody has counted those of a part
        return f"Rows without a `{name}` are"
    gaps = frame.column(name).missing
    return f"{count_of(gaps, 'row')} without a `{name}` {are(gaps)}"


def _single(query: Query, row: Row, frame: Frame) -> str:
    where = where_of(query)
    if query.statistic == "count" and not query.measures:
        count = row["count"]
        if not query.where:
            return f"`{frame.name}` has {count_of(count, 'row')}."
        share = f" ({percent(count / frame.size)})" if frame.size else ""
        return f"{_of_all(count, frame)}{where}{share}."
    if query.shares_rows:
        that = conditions_of(query.that, query)
        return f"Of the rows{where}, {percent(row[query.value])} are those{that}."
    if query.wants == "share":
        rows = f"of the rows{where}" if where else f"of {count_of(frame.size, 'row')}"
        return f"{percent(row[query.measures[0]])} {rows} have `{query.measures[0]}`."
    if query.statistic == "nunique":
        many = count_of(row[query.measures[0]], "different value")
        rows = "" if where else f", in {count_of(frame.size, 'row')}"
        bounds = any(c.operator in (">", ">=", "<", "<=") and not c.part for c in query.where)
        one = " Each has at least one such row." if bounds else ""
        return f"`{query.measures[0]}`{where} has {many}{rows}.{one}"
    parts = [
        f"{said(Query('aggregate', (name,), query.statistic))}{where} is {value_of(row[name])}"
        for name in query.measures
    ]
    gaps = frame.column(query.measures[0]).missing
    note = ""
    if gaps and not where:
        note = f" ({count_of(gaps, 'row')} without a value {are(gaps)} left out)"
    return f"The {', and the '.join(parts)}{note}."


def _of_all(count: int, frame: Frame) -> str:
    """How many of all rows: "15 of 500 rows"."""
    return f"{count:,} of {count_of(frame.size, 'row')}"


def _labels(query: Query, row: Row) -> str:
    return ", ".join(name_of(row[key.label]) for key in query.by)


def _grouped(query: Query, rows: list[Row], frame: Frame) -> str:
    where, column = where_of(query), query.value
    binary = bool(query.measures) and frame.column(column).binary
    shares = query.shares_rows or (binary and query.statistic == "mean")
    number = percent if shares else _number
    if query.subjects:
        rows = [row for row in rows if label_of(row[query.by[0].label]) in query.subjects]
    empty = [_labels(query, row) for row in rows if row.get(column) is None]
    rows = [row for row in rows if row.get(column) is not None]
    if not rows:
        return "There is no such row."
    if empty:
        names = listed([*empty[:5], *(["others"] if len(empty) > 5 else [])])
        known = msgspec.structs.replace(query, subjects=())
        has = "has" if len(empty) == 1 else "have"
        return f"{_grouped(known, rows, frame)}\n\n{names} {has} no value of `{column}`{where}."
    by = " and ".join(f"`{key.label}`" for key in query.by)
    what = _share(query) if shares else said(query) if query.measures else "number of rows"
    shown = rows[: query.top] if query.top else rows
    cut = bool(query.order) and len(rows) == query.most  # the code gives no more
    cells = [{**row, column: percent(row[column])} for row in rows] if shares else rows
    single = len(query.measures) <= 1 and query.wants != "difference" and not cut
    if (
        single
        and query.rank == 1
        and len(rows) > max(query.top or 1, 1)
        and all(_same(row, rows[0], column) for row in rows)
    ):
        all_of = "Both" if len(rows) == 2 else f"All {len(rows)}"
        value = number(rows[0][column])
        names = f" ({_names(query, rows)})" if len(rows) <= _NAMES else ""
        return f"{all_of} {by} have the same {what}{where}: {value}{names}."
    if query.wants == "first" and query.top is None:
        first, rest = rows[0], rows[1:]
        ties = [row for row in rest if _same(row, first, column)]
        names = _names(query, [first, *ties], cut and len(ties) == len(rest))
        plain = query.word in ("", *_COMMON)
        if plain and len(query.by) == 1 and not isinstance(first[query.by[0].label], str):
            names = f"`{query.by[0].label}` {names}"
        ahead = listed(
            [f"{_labels(query, r)} ({number(r[column])})" for r in rest[len(ties) :][:2]]
        )
        word = query.word if query.word not in _COMMON and query.rank == 1 else ""
        lead = _lead(query)
        against = f", before {ahead}" if ahead else ""
        value = f"{number(first[column])}{against}"
        sentence = f"{names} {'have' if ties else 'has'} the {lead} {what}{where}: {value}."
        if word:
            are = "are" if ties else "is"
            sentence = f"The {word} {by}{where} {are} {names}, by {what}: {value}."
        return f"{sentence}\n\n{_table(query, cells[:5])}" if len(rows) > 3 else sentence
    ends = "highest" if query.order == "descending" else "lowest"
    lead = f"{what[:1].upper()}{what[1:]} by {by}{where}"
    goes, also = "goes", ""
    if query.top and query.order:
        end = "top" if query.order == "descending" else "lowest"
        lead = f"The {end} {len(shown)} of {by} by {what}{where}"
        ties = [row for row in rows[len(shown) :] if _same(row, shown[-1], column)]
        more = cut and len(ties) == len(rows) - len(shown)
        value = number(shown[-1][column])
        also = f"also {_names(query, ties, more)}, with the same {value}" if ties else ""
    elif cut:
        lead, goes = f"The {len(rows)} {ends} of {by} by {what}{where}", "go"
    inline = listed([f"{_labels(query, row)} ({number(row[column])})" for row in shown])
    if len(shown) <= _INLINE and len(query.measures) <= 1:
        apart = f"; {also}" if also else ""
        if query.wants == "difference" and len(shown) == 2:
            apart = f"; the difference is {number(abs(shown[0][column] - shown[1][column]))}"
        return f"{lead}: {inline}{apart}."
    table = _table(query, cells[: len(shown)])
    if len(query.measures) > 1 or (query.top and query.order):
        return f"{lead}:\n\n{table}" + (f"\n\n{also[:1].upper()}{also[1:]}." if also else "")
    ranked = sorted(rows, key=lambda row: row[column])
    low, high = ranked[0], ranked[-1]
    return (
        f"{lead} {goes} from {number(low[column])} ({_labels(query, low)}) to "
        f"{number(high[column])} ({_labels(query, high)}).\n\n{table}"
    )


def _share(query: Query) -> str:
    """Of what a share is told, in words."""
    if query.measures:
        return f"share of `{query.measures[0]}`"
    return f"share of rows{conditions_of(query.that, query)}"


def _same(one: Row, other: Row, column: str) -> bool:
    """Whether two rows have the same value: as people see it, and not to the last bit."""
    a, b = one[column], other[column]
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def _names(query: Query, rows: Sequence[Row], more: bool = False) -> str:
    """The names of groups: some of many."""
    return _some([_labels(query, row) for row in rows], more)


def _some(names: Sequence[str], more: bool = False) -> str:
    """Names, of which the last may be others; ``more`` says that nobody knows how many."""
    rest = len(names) - _NAMES
    others = "others" if more else f"{rest} {'other' if rest == 1 else 'others'}"
    return listed([*names[:_NAMES], *([others] if more or rest > 0 else [])])


def _table(query: Query, rows: Sequence[Row], limit: int = 25) -> str:
    labels = [key.label for key in query.by]
    different = query.statistic == "nunique" and query.kind == "aggregate"
    cells = [
        {
            f"different {k}" if different and k not in labels else k: label_of(v)
            if k in labels
            else v
            for k, v in row.items()
        }
        for row in rows
    ]
    return markdown_table(_rounded(cells), limit)


def _rounded(rows: Sequence[Row]) -> list[Row]:
    """The rows with as many decimals in all of a column."""
    places: dict[str, int] = {}
    for name in rows[0] if rows else ():
        sizes = [abs(row[name]) for row in rows if isinstance(row[name], float)]
        if sizes and max(sizes) >= 10:
            places[name] = 1
    return [
        {
            # Of thousands none is shown, and what is rounded twice is another number.
            k: float(rounded(v, places[k]))
            if k in places and isinstance(v, float) and abs(v) < 1000
            else v
            for k, v in r.items()
        }
        for r in rows
    ]


def _shares(query: Query, rows: list[Row], frame: Frame) -> str:
    where, column = where_of(query), query.value
    if not query.by:
        return _single(query, rows[0], frame)
    by = query.by[0].label
    if query.statistic == "mean":
        shares = [(row, row[column]) for row in rows if row[column] is not None]
        that = conditions_of(query.that, query) if query.that else f" with `{column}`"
        what = f"Share of rows{that}{where}"
    else:
        known = [row for row in rows if row[column] is not None]
        total = sum(row[column] for row in known)
        if query.statistic == "count" and not query.where:
            total = frame.size
        if not total:
            return f"The total{where} is 0, so there are no shares."
        shares = [(row, row[column] / total) for row in known]
        what = f"Share of the rows{where}" if query.statistic == "count" else (
            f"Share of the total `{column}`{where}, which is {_number(total)}"
        )  # fmt: skip
    if query.subjects:
        share = next((s for row, s in shares if label_of(row[by]) == query.subjects[0]), 0)
        counts = [row[column] for row in rows if label_of(row[by]) == query.subjects[0]]
        of = f" ({_number(counts[0])} of {_number(total)})" if counts else ""
        all_of = "the rows" if query.statistic == "count" else f"`{column}`"
        return f"`{by}` is {name_of(query.subjects[0])} in {percent(share)} of {all_of}{where}{of}."
    inline = listed([f"{_labels(query, row)} ({percent(s)})" for row, s in shares])
    if len(shares) <= _INLINE:
        return f"{what}: {inline}."
    return f"{what}:\n\n" + markdown_table(
        [
            {**{key.label: label_of(row[key.label]) for key in query.by}, "share": percent(s)}
            for row, s in shares
        ]
    )


def _compared(query: Query, rows: list[Row], frame: Frame) -> str:
    column, label = query.value, query.by[0].label
    found = {label_of(row[label]): row[column] for row in rows}
    one, other = query.subjects
    if found.get(one) is None or found.get(other) is None:
        return f"`{label}` has no value for {name_of(one if found.get(one) is None else other)}."
    more = found[one] > found[other]
    yes = more == (query.order == "descending") and found[one] != found[other]
    binary = query.statistic == "mean" and frame.column(column).binary
    shown = {s: percent(found[s]) if binary else _number(found[s]) for s in (one, other)}
    what = f"share of `{column}`" if binary else said(query) if query.measures else "number of rows"
    about = f"`{label}` " if frame.column(query.by[0].column).binary else ""
    name = {s: f"{about}{name_of(s)}" for s in (one, other)}
    if query.yes_no:
        values = f"{shown[one]} for {name[one]} and {shown[other]} for {name[other]}"
        return f"{'Yes' if yes else 'No'}: the {what} is {values}{where_of(query)}."
    if found[one] == found[other]:
        both = f"{name[one]} and {name[other]}"
        return f"{both} have the same {what}{where_of(query)}: {shown[one]}."
    ahead, behind = (one, other) if yes else (other, one)
    degree = "higher" if query.order == "descending" else "lower"
    values = f"{shown[ahead]}, and {name[behind]} {shown[behind]}"
    return f"{name[ahead]} has the {degree} {what}{where_of(query)}: {values}."


def _change(first: Any, last: Any) -> str:
    """How much more there is in per cent, with its sign."""
    if not first:
        return f"{last - first:+,.6g}"
    return f"{100 * (last - first) / abs(first):+.1f} %"


def _grown(query: Query, rows: list[Row], frame: Frame) -> str:
    """The growth of each group from one value to another, and of all."""
    names = ("first", "last") if query.kind == "change" else query.measures[:2]
    rows = [row for row in rows if row.get(names[0]) is not None and row.get(names[1]) is not None]
    if not rows:
        return "There are no two values to compare."
    label, where = query.by[0].label if query.by else "", where_of(query)
    measure = "" if query.kind == "growth" else f" `{query.measures[0]}`"
    if query.kind == "change" and len(query.by) == 2:
        ends = years_of(query)
        measure = f" {said(query)}"
        where += f" from {ends[0]} to {ends[1]}" if ends else " from the first year to the last"
    falling = query.order == "ascending"

    def ratio(row: Row) -> float:
        return float((row[names[1]] - row[names[0]]) / abs(row[names[0]])) if row[names[0]] else 0.0

    ranked = sorted(rows, key=ratio, reverse=not falling)
    averages = query.kind == "growth" and query.statistic != "sum"

    def step(row: Row) -> str:
        ends = f"{_number(row[names[0]])} → {_number(row[names[1]])}"
        return f"{ends}, by {row[names[1]] - row[names[0]]:+,.4g}" if averages else ends

    lines = [
        f"{name_of(row[label]) if label else 'It'} {_change(row[names[0]], row[names[1]])} "
        f"({step(row)})"
        for row in ranked
    ]
    table = [
        {label: label_of(r[label]), names[0]: r[names[0]], names[1]: r[names[1]],
         "change": _change(r[names[0]], r[names[1]])}
        for r in ranked
    ] if label else []  # fmt: skip
    if query.wants == "first" and label:
        least = query.word in ("least", "fewest", "lowest", "smallest", "worst")
        verb = "fell" if falling != least else "grew"
        moved = [
            (row, line)
            for row, line in zip(ranked, lines, strict=True)
            if (ratio(row) < 0 if verb == "fell" else ratio(row) > 0)
        ]
        if not query.word or not moved:
            number = f"{len(moved)} of {len(rows)}" if moved else f"None of {len(rows)}"
            told = f": {listed([line for _, line in moved])}" if 0 < len(moved) <= _SHOWN else ""
            sentence = f"{number} `{label}` {verb}{measure and ' in' + measure}{where}{told}."
            return sentence if told else f"{sentence}\n\n{markdown_table(table, _SHOWN)}"
        if verb == "grew" and least:
            moved = list(zip(ranked, lines, strict=True))  # what fell has grown least
        (best, change), *others = moved
        rest = f"; then {listed([line for _, line in others[:3]])}" if others else ""
        steps = sorted(moved, key=lambda m: m[0][names[1]] - m[0][names[0]], reverse=not falling)
        by_amount = steps[0][0]
        amount = f" By amount it is {name_of(by_amount[label])}." if by_amount is not best else ""
        name, most = name_of(best[label]), "least" if least else "most"
        change = change.removeprefix(name).strip()
        sentence = (
            f"{name} {verb} {most}{measure and ' in' + measure}{where}: {change}{rest}.{amount}"
        )
        return f"{sentence}\n\n{markdown_table(table, _SHOWN)}" if len(rows) > 4 else sentence
    if query.kind == "change" and not label:
        first, last = rows[0]["first"], rows[0]["last"]
        went = f"from {_number(first)} to {_number(last)} ({_change(first, last)})"
        told = ", its first and its last value" if query.yes_no else ""  # else all count, it seems
        return f"{_yes(query, first, last)}{measure.strip()} went {went}{where_of(query)}{told}."
    if averages and joined(query, frame):
        what = said(Query("aggregate", (), query.statistic))
        lead = f"From `{names[0]}` to `{names[1]}`, the {what} by `{label}` of rows that have both"
        tail = f": {listed(lines)}." if len(lines) <= 6 else f":\n\n{markdown_table(table, _SHOWN)}"
        return lead + tail
    if query.kind == "growth":
        totals = [[row[name] for row in rows] for name in names]
        first, last = (computed(query.statistic, values) for values in totals)
        sentence = (
            f"{_yes(query, first, last)}from {names[0]} to {names[1]} the "
            f"{said(Query('aggregate', (), query.statistic))} went from "
            f"{_number(first)} to {_number(last)} ({_change(first, last)})"
        )
        sentence = sentence[:1].upper() + sentence[1:]
        each = f": {listed(lines[:6])}" if label and len(rows) > 1 else ""
        return (
            f"{sentence}{each}."
            if len(lines) <= 6 or not label
            else f"{sentence}.\n\n{markdown_table(table, _SHOWN)}"
        )
    when = where if len(query.by) == 2 else " from first to last"
    lead = f"Change of{measure}{when}"
    if len(lines) > 12:
        return f"{lead}:\n\n{markdown_table(table, _SHOWN)}"
    return f"{lead}: {listed(lines)}."


def _yes(query: Query, first: Any, last: Any) -> str:
    """The yes or no to a question for a growth or a fall, "" where none was asked for."""
    if not query.yes_no:
        return ""
    return "Yes: " if (last < first if query.order == "ascending" else last > first) else "No: "


def _over_time(query: Query, rows: list[Row]) -> str:
    """How a measure changed from the first period to the last."""
    column, label = query.value, query.by[0].label
    rows = sorted((r for r in rows if r[column] is not None), key=lambda r: label_of(r[label]))
    if not rows:
        return f"There is no {label} to compare."
    first, last = rows[0], rows[-1]
    parts = {c.part for c in query.where}
    years = {label_of(row[label])[:4] for row in rows}
    for part in ("month", "quarter"):
        if part in parts and "year" not in parts and len(years) > 1:
            return f"I cannot tell of which year these {part}s are: name it with them."
    if len(rows) == 1:  # "How much rain fell in 2024" may ask for no change at all
        sentence = f"{said(query)} was {_number(first[column])} in {name_of(first[label])}"
        return f"{sentence[:1].upper()}{sentence[1:]}; there is only one {label}, so no change."
    sentence = (
        f"{_yes(query, first[column], last[column])}{said(query)} went from "
        f"{_number(first[column])} in {name_of(first[label])} to {_number(last[column])} in "
        f"{name_of(last[label])} ({_change(first[column], last[column])})."
    )
    sentence = sentence[:1].upper() + sentence[1:]
    return sentence if len(rows) == 2 else f"{sentence}\n\n{_table(query, rows)}"


def _missing(query: Query, rows: list[Row], frame: Frame) -> str:
    count = int(rows[0]["rows"])
    where = where_of(query)
    share = f" ({percent(count / frame.size)})" if frame.size and not where else ""
    if len(query.measures) == 1:
        has = "has" if count == 1 else "have"
        told = count_of(count, "row") if where else _of_all(count, frame)
        return f"{told}{where} {has} no value of `{query.measures[0]}`{share}."
    columns = [frame.column(m) for m in query.measures]
    if count and query.statistic == "sum":
        return f"{count_of(count, 'value')} {are(count)} missing: {gaps_of(columns)[9:]}"
    if not count:
        return f"No value is missing in `{frame.name}`{where}."
    gaps = "" if where else f" {gaps_of(columns)}"
    return f"{_of_all(count, frame)}{where} lack a value{share}.{gaps}"


def _values(query: Query, rows: list[Row], frame: Frame) -> str:
    column = query.measures[0]
    names = [name_of(row[column]) for row in rows if row[column] is not None]
    more = ", …" if len(names) > 20 else ""
    count = frame.column(column).different if not query.where else None
    count = max(count or 0, len(names))
    shown = ", ".join(names[:20]) if more else listed(names)
    return f"`{column}`{where_of(query)} has {count_of(count, 'different value')}: {shown}{more}."


def _correlation(query: Query, row: Row, frame: Frame) -> str:
    value, (one, other) = row["correlation"], query.measures[:2]
    if not isinstance(value, int | float):
        return f"There is no correlation of `{one}` and `{other}`: one of them does not change."
    size = abs(value)
    strength = "hardly any" if size < 0.1 else "a weak" if size < 0.4 else (
        "a moderate" if size < 0.7 else "a strong"
    )  # fmt: skip
    sign = "" if size < 0.1 else " positive" if value > 0 else " negative"
    return (
        f"There is {strength}{sign} correlation between `{one}` and `{other}`"
        f"{where_of(query)}: r = {value:.3f}."
    )


def _rows(query: Query, rows: list[Row], frame: Frame) -> str:
    where = where_of(query)
    if not query.measures:
        most = query.top or _SHOWN
        cut = len(rows) >= most  # the code gives the first rows only
        which = f"The first {count_of(most, 'row')}" if cut else "Rows"
        also = "; there may be more" if cut else ""
        return f"{which} of `{frame.name}`{where}{also}:\n\n{markdown_table(rows, most)}"
    column = query.measures[0]
    if query.wants == "computed":
        return _of_top_rows(query, rows, frame)
    if query.wants != "first":
        return _top_rows(query, rows, frame)
    keep, first = _kept(query, frame), _telling(query, frame)
    best = [row for row in rows if row[column] is not None and _same(row, rows[0], column)]
    cut = len(best) == query.most  # the code gives no more
    if query.told:
        return _told_of_first(query, best, cut, frame)
    if frame.column(column).dated:
        end = "last" if query.order == "descending" else "first"
        known = {k: v for k, v in rows[0].items() if k != column and v is not None}
        held = [f"`{k}` {(label_of if is_label(k) else value_of)(v)}" for k, v in known.items()]
        one_of = f", one of {len(best)} of that time" if len(best) > 1 else ""
        which = f"The {end} row{where} is of {name_of(rows[0][column])}{one_of}"
        return f"{which}: {', '.join(held[:8])}."
    label = query.by[0].column if query.by else first
    labels = dict.fromkeys(name_of(row[label]) for row in best) if label else {}
    names = _some([*labels], cut) if labels else ""
    if query.by and frame.column(label).numeric:
        names = f"`{label}` {names}"
    lead = _lead(query)
    told = {
        k: dict.fromkeys(name_of(_cell(row[k])) for row in best if row[k] is not None) for k in keep
    }
    others = ", ".join(
        f"`{k}` {listed([*values])}"
        for k, values in told.items()
        if k not in (label, column)
        and (len(values) == 1 or (frame.column(k).dated and len(values) <= _NAMES))
    )
    years = "year" in parts_of(column)
    value = str(rows[0][column]) if years else _number(rows[0][column])
    also = f" ({others})" if others else ""
    if not names:
        many = f", in {'at least ' if cut else ''}{len(best)} rows" if len(best) > 1 else ""
        return f"The {lead} `{column}`{where} is {value}{many}{also}."
    has = "has" if len(labels) == 1 and not cut else "have"
    return f"{names} {has} the {lead} `{column}`{where}: {value}{also}."


def _told_of_first(query: Query, best: Sequence[Row], cut: bool, frame: Frame) -> str:
    """What is asked of the first row of an order, or of those that share its place."""
    column, where = query.measures[0], where_of(query)
    lead = f"the {_lead(query)} `{column}`{where} ({_number(best[0][column])})"
    if len(best) > 1:
        many = count_of(len(best), "row")
        names = dict.fromkeys(n for n in (_telling(query, frame), *query.told) if n)
        cells = [{n: _cell(row[n]) for n in names} for row in best]
        least = "At least " if cut else ""
        return f"{least}{many} have {lead}:\n\n{markdown_table(cells, 50)}"
    row = best[0]
    held = [f"`{n}` {value_of(row[n])}" if row[n] is not None else f"no `{n}`" for n in query.told]
    first = _telling(query, frame)
    name = f" It is {name_of(row[first])}." if first and first not in query.told else ""
    return f"The row with {lead} has {listed(held)}.{name}"


def _of_top_rows(query: Query, rows: Sequence[Row], frame: Frame) -> str:
    """A statistic of the first rows of an order; of which they are only some, that is said."""
    column, where = query.measures[0], where_of(query)
    known = [row for row in rows if row[column] is not None]
    shown, rest = known[: query.top], known[query.top or 0 :]
    ties = [row for row in rest if _same(row, shown[-1], column)]
    lead = f"the {count_of(len(shown), 'row')} with the {_lead(query)} `{column}`{where}"
    parts = []
    for name in query.told:
        values = [row[name] for row in shown]
        value = computed(query.statistic, values)
        what = said(Query("aggregate", (name,), query.statistic))
        gaps = sum(v is None for v in values)
        lack = f" ({count_of(gaps, 'row')} without a value {are(gaps)} left out)" if gaps else ""
        is_value = "not there" if value is None else value_of(value)
        parts.append(f"{what} of {lead} is {is_value}{lack}")
    sentence = f"The {', and the '.join(parts)}."
    if len(shown) < (query.top or 0):
        sentence += f" There are only {len(shown)} of them."
    if ties and {*query.told} - {column}:
        least = "at least " if len(ties) == len(rest) and len(rows) == query.most else ""
        share = "has" if len(ties) == 1 else "have"
        more = f"{least}{count_of(len(ties), 'more row')} {share}"
        sentence += f" Which rows are the last of them is chance: {more} the same `{column}`."
    return sentence


def _top_rows(query: Query, rows: Sequence[Row], frame: Frame) -> str:
    """The rows of a table in an order, and those that only fall short of it by chance."""
    where, column = where_of(query), query.measures[0]
    up = "ascending" if query.order == "ascending" else "descending"
    order = f" by `{column}`, {up}" if query.order else ""
    known = [row for row in rows if row[column] is not None] if query.order else rows
    shown, rest = known[: query.top or 5], known[query.top or 5 :]
    ties = [row for row in rest if query.order and _same(row, shown[-1], column)]
    also = ""
    if ties:
        least = "at least " if len(rows) == query.most and len(ties) == len(rest) else ""
        first = _telling(query, frame)
        named = _some([name_of(row[first]) for row in ties], bool(least)) if first else ""
        value = f"with the same `{column}`: {value_of(ties[0][column])}"
        also = f"\n\nAlso {named or least + count_of(len(ties), 'row')}, {value}."
    elif not query.order and len(rows) == query.most:
        order = "; there may be more"
    told = dict.fromkeys(n for n in (_telling(query, frame), *query.told, column) if n)
    names = told if query.told else rows[0]
    cells = [{name: _cell(row[name]) for name in names} for row in shown]
    lead = f"The first {count_of(len(shown), 'row')}{where}{order}"
    return f"{lead}:\n\n{markdown_table(cells, 50)}{also}"


def _telling(query: Query, frame: Frame) -> str:
    """The column that names a row, "" without one."""
    first = next(iter(_kept(query, frame)), "")
    tells = first and ("name" in first.lower() or frame.is_key(first) or frame.column(first).dated)
    return first if tells else ""


def _kept(query: Query, frame: Frame) -> list[str]:
    """The columns that tell a row from others: what names it, and some more."""
    fixed = {c.column for c in query.where if c.operator == "==" and c.part in ("", "day")}
    years = [c for c in frame.columns if c.numeric and "year" in parts_of(c.name)]
    others = [c for c in frame.columns if not c.numeric or c in years]
    others = [c for c in others if c.name not in fixed]
    named = [c for c in others if "name" in c.name.lower()]
    keys = [c for c in others if frame.is_key(c.name)]
    dates = [c for c in others if c.dated]
    found = [c.name for c in [*named, *keys, *dates, *years, *others] if c in others]
    return list(dict.fromkeys(found))[:4]


def _cell(value: Any) -> Any:
    return value.removesuffix(" 00:00:00") if isinstance(value, str) else value
