"""What a question computes of columns: a statistic of all rows, or one of each group."""

from __future__ import annotations

from .asked import Asked
from .data_words import COMPARE, COUNT, SHOW
from .queries import Condition, Order, Query, Wants


def aggregate_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """A statistic of columns, of each group if there are any; without one the rows themselves."""
    says, by, numbers = asked.reading.says, asked.by, asked.numbers
    if not numbers and by and says(COUNT | SHOW | {"list", "rows", "breakdown", "split"}):
        return Query("aggregate", (), "count", by, where, asked.arranged or "descending")
    if not numbers and len(by) == 1 and not by[0].period and not asked.named:
        return Query("values", (by[0].column,), where=where)
    if not numbers:
        return "I cannot tell what is to be computed"
    # "Is the average over 40?": the average itself is the answer.
    if asked.statistic:
        where = tuple(c for c in where if c.column not in numbers or c.operator == "==")
    elif not by and not says({"much"}) and asked.default(numbers) == "mean":
        if not where:
            return Query("summary", numbers)
        if all(asked.frame.column(name).binary for name in numbers):  # "which survivors"
            return Query("rows", (), where=(*where, *map(asked.is_true, numbers)), top=10)
        return Query("rows", numbers, where=where, top=10)
    statistic = asked.statistic or asked.default(numbers)
    timed = any(key.period or _in_order(asked, key.column) for key in by)
    order: Order = asked.arranged or ("descending" if by and not timed else "")
    compared = by == asked.compared and len(numbers) == 1 and says(COMPARE)
    wants: Wants = "difference" if compared else ""
    return Query("aggregate", numbers[:4], statistic, by, where, order, wants=wants)


def _in_order(asked: Asked, name: str) -> bool:
    """Whether a column has an order of its own, so that its groups are shown in it."""
    column = asked.frame.column(name)
    return column.dated or column.numeric
