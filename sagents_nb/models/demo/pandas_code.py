"""The pandas code that finds the result of a query, and the rows that it printed.

They are rows as :func:`~.evaluation.evaluate` gives them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from .frames import Frame, Row, as_number
from .queries import SHOWN, Condition, Key, Query, is_unique, joined, times_of, title_of, years_of

_FREQUENCY = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}


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
            return [f".groupby({by}).size().rename('count')", *self.in_turn()]
        return [f".groupby({by})[{self.measures()}].{self.statistic()}", *self.in_turn()]

    def in_turn(self) -> list[str]:
        """Weekdays from Monday on, which else come in the order of their names."""
        if self.query.by[0].period != "weekday" or self.query.order:
            return []
        self.imports.append("import calendar")
        first = "level=0, sort_remaining=False, " if len(self.query.by) > 1 else ""
        return [f".sort_index({first}key=lambda days: days.map(list(calendar.day_name).index))"]

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
                steps = [f".sort_values({first!r}, ascending={up})"] if query.order else []
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
    elif query.by and query.statistic == "mean" and is_unique(query.by[0], frame):
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
