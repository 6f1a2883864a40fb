"""Values and conditions of a query in the words of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...transcript import spanned
from .frames import Column
from .history import listed
from .history import number as _number
from .queries import MONTHS, Condition, Query

_SIGNS = {">": "over", ">=": "at least", "<": "under", "<=": "at most", "!=": "other than"}


def count_of(count: int, noun: str) -> str:
    """A number of things: "1 row", "2 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def are(count: int) -> str:
    """The verb for so many of them."""
    return "is" if count == 1 else "are"


def value_of(value: Any) -> str:
    """A value as people write it; a date without midnight."""
    if isinstance(value, str):
        try:
            return _number(float(value))
        except ValueError:
            return spanned(value.removesuffix(" 00:00:00"))
    return _number(value)


def name_of(value: Any) -> str:
    """The name of a group in a sentence, as it is."""
    return spanned(label_of(value))


def label_of(value: Any) -> str:
    """The name of a group: a year is no number with a comma."""
    text = (
        value
        if isinstance(value, str)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
    return text.removesuffix(" 00:00:00")


def percent(value: Any) -> str:
    """A share as "12.5 %"."""
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "unknown"


def where_of(query: Query) -> str:
    """Which rows are meant, with a blank before it; "" for all."""
    return conditions_of(query.where if query.shares_rows else query.conditions, query)


def conditions_of(conditions: Sequence[Condition], query: Query) -> str:
    """What rows have to be, with a blank before it."""
    dates = {c.part: c.value for c in conditions if c.part and c.operator == "=="}
    said = []
    groups = {key.column for key in query.by}
    for several in (c for c in conditions if c.operator == "in" and c.column not in groups):
        names = [_part(v, several.part) for v in several.value]
        either = f"{', '.join(names[:-1])} or {names[-1]}"
        on = "on" if several.part == "day" else "in"
        said.append(f"{on} {either}" if several.part else f"with `{several.column}` {either}")
    if "month" in dates:
        said.append(f"in {MONTHS[dates['month'] - 1]} {dates.get('year', '')}".strip())
    elif "quarter" in dates:
        said.append(f"in Q{dates['quarter']} {dates.get('year', '')}".strip())
    elif "year" in dates:
        said.append(f"in {dates['year']}")
    if "day" in dates:
        said.append(f"on {dates['day']}")
    when = {">": "after", ">=": "from", "<": "before", "<=": "up to", "!=": "not in"}
    for ends in (c for c in conditions if c.part and c.operator in when):
        said.append(f"{when[ends.operator]} {_part(ends.value, ends.part)}")
    timed = any(c.part or c.column.lower() == "year" for c in query.where)
    if others := [_condition(c, timed) for c in conditions if not c.part and c.operator != "in"]:
        said.append(f"with {listed(others)}")
    return "".join(f" {text}" for text in said)


def _part(value: Any, part: str) -> str:
    """A month, a quarter or another part of a date as people name it."""
    if part == "month":
        return str(MONTHS[value - 1])
    return f"Q{value}" if part == "quarter" else name_of(value)


def _condition(condition: Condition, timed: bool) -> str:
    """What a row has to be; ``timed`` says that an average is one of the time that is said."""
    if condition.operator == "missing":
        return f"no `{condition.column}`"
    sign = _SIGNS.get(condition.operator, "")
    if condition.statistic:
        name = "average" if condition.statistic == "mean" else condition.statistic
        return f"`{condition.column}` {sign} the {name} of {'that time' if timed else 'all rows'}"
    return f"`{condition.column}` {sign} {name_of(condition.value)}".replace("  ", " ")


def gaps_of(columns: Sequence[Column]) -> str:
    """What is missing in which columns, as a sentence."""
    gaps = [f"`{c.name}` in {count_of(c.missing, 'row')}" for c in columns if c.missing]
    return f"Missing: {listed(gaps)}." if gaps else "No value is missing."
