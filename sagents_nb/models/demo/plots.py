"""Which plot a question asks for: its chart, what goes along the axis, and the lines of groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from .asked import Asked
from .data_words import CHARTS
from .frames import Frame
from .queries import Key, Query, Statistic

_PANELS = 12  # histograms beside each other
_DRAWS_THAT = re.compile(
    r"(?:(?:please|now|and|then|can you|could you)\W+)*"
    r"(?:(?:(?P<draws>plot|draw|chart|graph|visuali[sz]e)|show|make|turn)\W+(?:me\W+)?"
    r"(?:that|it|this|them|these|those)\b\W*)?"
    r"(?:(?:as|into|in|with)\W+(?:an?\W+)?(?P<chart>\w+)(?:\W+(?:chart|plot|graph|diagram))?\W*)?"
    r"(?:(?:please|now|too|instead)\W*)*",
    re.IGNORECASE,
)
_DRAWS_BY = re.compile(
    r"(?:(?:please|now|and|then)\W+)*(?:plot|draw|chart|graph|visuali[sz]e)\W+"
    r"(?:that|it|this|them|these|those)\W+(?P<change>(?:by|per|for|over|of|in)\b.*)",
    re.IGNORECASE | re.DOTALL,
)


def plot_of(asked: Asked) -> Query | str:
    """The plot by the chart that is named, else by what there is to draw."""
    frame, numbers, by = asked.frame, asked.numbers, asked.by
    said = {t.word for t in asked.tokens if not t.role}
    chart = next((chart for chart, words in CHARTS.items() if said & words), "")
    where = asked.where(asked.values)
    others = [name for name in asked.named if name not in (*numbers, asked.counted)]
    over = said & {"over", "time", "trend"}
    when = frame.date.name if frame.date else asked.year
    if over and when and not any(k.column == when for k in by):
        by = (Key(when), *by)
    by = by or tuple(Key(name) for name in others[:1])
    against = said & {"against", "vs", "versus"}
    for token in asked.tokens:
        if not token.role and token.word in ("against", "trend"):
            token.role = "operator"
    if len(numbers) == 2 and (against or chart == "scatter"):
        pair = numbers[::-1] if against else numbers
        return Query("plot", pair, where=where, chart="scatter")
    if chart == "hist" and numbers and not by:
        return Query("plot", numbers[:1], where=where, chart="hist")
    if chart == "hist" and by and not numbers:
        chart = "bar"
    if chart == "hist" and by and (why := _why_no_histograms(asked, by)):
        return why
    if chart == "box" and numbers:
        return Query("plot", numbers[:1], by=by, where=where, chart="box")
    label = next((c for c in frame.columns if not c.numeric and frame.is_key(c.name)), None)
    if not by and label is None:
        if not numbers:
            return "I cannot tell which columns to plot"
        return Query("plot", numbers[:1], where=where, chart="hist")
    if not by and label is not None:
        by = (Key(label.name),)
        numbers = numbers or tuple(c.name for c in frame.columns if c.numeric)[:6]
        if not numbers:
            return "there is no column of numbers to plot"
    # The time goes along the axis, and groups are lines of their own.
    by = tuple(sorted(by, key=lambda key: key.column != when))[:2]
    if chart == "pie" and len(by) == 2:
        return "I draw the pieces of one column in a pie"
    if len(by) == 2 and numbers and asked.default(numbers) == "sum":
        by = (_by_month(asked, by[0]), by[1])
    statistic: Statistic = "count"
    if numbers:
        one_each = by[0].period == "" and frame.is_key(by[0].column)
        plain = one_each or (len(by) == 2 and not any(key.period for key in by))
        statistic = asked.statistic or ("mean" if plain else asked.default(numbers))
    elif asked.counted and (Key(asked.counted) not in by):
        numbers, statistic = (asked.counted,), "nunique"
    chart = "" if chart == "line" else chart or ("" if by[0].column == when else "bar")
    return Query("plot", numbers, statistic, by, where, chart=chart)


def change_of_drawn(step: str) -> str:
    """How what is to be drawn differs from what was asked before, "" where it does not say so.

    >>> change_of_drawn("plot that by month")
    'by month'
    """
    match = _DRAWS_BY.fullmatch(step.strip())
    return match["change"] if match else ""


def chart_of_that(step: str) -> str | None:
    """The chart that what was asked before is to be drawn as, "" for any; None if none is asked.

    >>> chart_of_that("plot that"), chart_of_that("now as a pie"), chart_of_that("plot the age")
    ('', 'pie', None)
    """
    match = _DRAWS_THAT.fullmatch(step.strip())
    if match is None:
        return None
    if match["chart"]:
        said = match["chart"].lower()
        named = next((chart for chart, words in CHARTS.items() if said in words), None)
        return named if named or said not in ("chart", "plot", "graph", "diagram") else ""
    return "" if match["draws"] else None


def drawn(query: Query | str, chart: str, frame: Frame) -> Query | str:
    """What a query before has told, as a plot."""
    if isinstance(query, str):
        return "I cannot tell what is to be drawn"
    if query.kind == "plot":
        made = replace(query, chart="" if chart == "line" else chart or query.chart)
    elif query.kind == "aggregate" and query.by and chart in ("", "bar", "line", "pie"):
        dated = query.by[0].period or frame.column(query.by[0].column).dated
        plain = "" if dated or chart == "line" else "bar"
        made = Query(
            "plot",
            query.measures,
            query.statistic,
            query.by[:2],
            query.where,
            chart=plain if chart in ("", "line") else chart,
        )
    else:
        return "I draw what groups come to, and that is none"
    if made.chart == "pie" and (len(made.by) != 1 or len(made.measures) > 1):
        return "I draw the pieces of one column in a pie"
    return made


def _why_no_histograms(asked: Asked, by: Sequence[Key]) -> str:
    """Why there is not one histogram for each group, "" if there is."""
    if len(asked.numbers) > 1 or len(by) > 1 or by[0].period:
        return "I draw one histogram, or one for each value of one column"
    column = asked.frame.column(by[0].column)
    many = column.different or len(column.values)
    if not many or many > _PANELS:
        return f"`{column.name}` has more values than {_PANELS} histograms show"
    return ""


def _by_month(asked: Asked, key: Key) -> Key:
    """The key by months where a line of each group would have gaps on most days."""
    column = asked.frame.column(key.column)
    many = column.dated and (column.different or 0) > 60
    return Key(key.column, "month") if many and not key.period else key
