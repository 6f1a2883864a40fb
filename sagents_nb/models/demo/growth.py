"""How much something grew or shrank: over time, between two years, or from column to column."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .asked import Asked, order_of
from .data_words import COUNT, GROWTH, PERIODS, SHAPE, SHRINK
from .dates import YEAR
from .frames import Frame
from .queries import Condition, Key, Order, Part, Period, Query, Statistic, Wants
from .words import QUANTITIES, word_set

_BOUNDS = word_set("below under above over past")
_MEASURED = QUANTITIES - COUNT - SHAPE - PERIODS.keys()


def asks_for_growth(asked: Asked) -> bool:
    """Whether a change is asked for, or how far apart two columns are."""
    apart = asked.reading.says({"difference"}) and len(asked.numbers) == 2 and not asked.by
    words = asked.reading.words
    passes = any(
        word in GROWTH | SHRINK and bound in _BOUNDS and number[:1].isdigit()
        for word, bound, number in zip(words, words[1:], words[2:], strict=False)
    )  # "when does it fall below 50" asks where it passes that
    return apart or (asked.reading.says(GROWTH | SHRINK) and not passes)


def growth_of(asked: Asked) -> Query | str:
    """The growth of a column over time, or of each group, or from one column to another."""
    frame, by, order = asked.frame, asked.by, asked.order
    says = asked.reading.says
    binary = [name for name in asked.numbers if frame.column(name).binary]
    if binary and (len(asked.years) < 2 or len(asked.numbers) == len(binary)):
        return "I cannot tell which column has grown"  # "revenue lost to returned orders"
    where = (*asked.where(asked.values), *(asked.is_true(name) for name in binary))
    asked.numbers = tuple(name for name in asked.numbers if name not in binary)
    wants: Wants = "first" if order or (by and says({"which"})) else "growth"
    direction = order_of(says(SHRINK) == (order == "ascending"))
    years = tuple(sorted(c.name for c in frame.columns if c.numeric and YEAR.fullmatch(c.name)))
    pair = asked.numbers if len(asked.numbers) == 2 else () if asked.numbers else years
    between = says({"from", "to", "between", "than", "versus", "vs", "difference"})
    if pair and pair != years and not between and (frame.date or asked.year):
        return "I tell the growth of one column at a time"
    if len(pair) >= 2:
        labels = by or tuple(Key(c.name) for c in frame.columns if not c.numeric)[:1]
        if not by and labels and not frame.is_key(labels[0].column):
            labels = ()
        default: Statistic = "sum" if pair == years else asked.default(pair)
        return Query(
            "growth",
            (pair[0], pair[-1]),
            asked.statistic or default,
            labels[:1],
            where,
            direction,
            wants=wants,
            word=asked.superlative,
        )
    year = asked.year
    if frame.date is None and not year:
        return f"`{frame.name}` has no dates to tell a growth by"
    if lacking := asked.lacking(_MEASURED):
        return f"`{frame.name}` has no column “{lacking}”"
    if says(COUNT) and not asked.numbers:
        return _counts_over_time(asked, where, direction)
    usual = ("close", "price", "value", "revenue", "sales", "amount", "total")
    measures = (asked.numbers or asked.reading.named_like(*usual) or asked.only())[:1]
    if not measures or (not asked.numbers and len(asked.reading.named_like(*usual)) > 1):
        return "I cannot tell which column has grown"
    groups = tuple(
        k
        for k in by
        if not k.period
        and not frame.column(k.column).dated
        and k.column != year
        and k not in asked.steps
    )[:1]
    if groups and any(key.column != year for key in asked.steps):
        return "I tell the growth of groups from first to last, and not between years"
    if groups and year and not frame.date:
        return _grown_by_year(asked, groups, measures[0], where, direction, wants)
    if groups and asked.default(measures) == "sum":
        return "I tell the growth of groups from first value to last, and of no totals"
    once = frame.date is None or _once_each(asked, (*groups, Key(frame.date.name)))
    if groups and frame.date and not asked.years and not once:
        several = f"`{frame.name}` has several rows of one `{groups[0].column}` and time"
        return f"{several}, so that none is the first or the last"
    if groups and frame.date and not asked.years:
        return Query(
            "change",
            measures,
            by=groups,
            where=where,
            order=direction,
            wants=wants,
            word=asked.superlative,
        )
    if groups:
        return "I tell the growth of groups from first to last, and not between years"
    statistic = asked.statistic or asked.default(measures)
    periods = tuple(key for key in by if key.period or key in asked.steps)
    first_to_last = len(asked.years) < 2 and not periods and statistic != "sum"
    if first_to_last and frame.date and not _once_each(asked, (Key(frame.date.name),)):
        # No row is the first one: of each time it is what they come to together.
        first_to_last, periods = False, (Key(frame.date.name, _length_of_time(asked)),)
    if first_to_last and frame.date:
        return Query("change", measures, where=where, order=direction, wants="growth")
    if asked.reading.of_part and frame.date and not periods:
        periods = (Key(frame.date.name, asked.reading.of_part),)
    key = Key(year) if year else Key(frame.date.name, "year") if frame.date else Key("")
    if len(asked.years) > 1:
        part: Part = "year" if key.period else ""
        low, high = min(asked.years), max(asked.years)
        kept = [c for c in where if c.column != key.column or c.part != part]
        ends_of = (
            Condition(key.column, ">=", low, part),
            Condition(key.column, "<=", high, part),
        )
        where = (*kept, *ends_of)
    return Query(
        "aggregate", measures, statistic, periods or (key,), where, direction, wants="growth"
    )


def _grown_by_year(
    asked: Asked,
    groups: tuple[Key, ...],
    measure: str,
    where: tuple[Condition, ...],
    order: Order,
    wants: Wants,
) -> Query | str:
    """The growth of groups from the first year to the last one, or between two."""
    year = asked.year
    ends = tuple(sorted(set(asked.years)))[:: max(1, len(set(asked.years)) - 1)]
    if len(ends) == 2:
        where = (
            *(c for c in where if c.column != year),
            Condition(year, "in", ends),
        )
    elif asked.frame.column(year).different == 1 or any(
        c.column == year and c.operator == "==" for c in where
    ):
        return "a growth needs two years"
    return Query(
        "change",
        (measure,),
        asked.statistic or asked.default((measure,)),
        (*groups, Key(year)),
        where,
        order,
        wants=wants,
        word=asked.superlative,
    )


def _counts_over_time(asked: Asked, where: tuple[Condition, ...], order: Order) -> Query | str:
    """How many rows or things there were in the first year, and in the last."""
    if [name for name in asked.named if name != asked.counted] or asked.by or len(asked.years) > 1:
        return "I tell the growth of all counts from the first time to the last"
    date = asked.frame.date
    key = Key(asked.year) if asked.year else Key(date.name if date else "", "year")
    if not asked.year:
        key = Key(key.column, _length_of_time(asked))
    measures = (asked.counted,) if asked.counted else ()
    statistic: Statistic = "nunique" if asked.counted else "count"
    return Query("aggregate", measures, statistic, (key,), where, order, wants="growth")


def _once_each(asked: Asked, keys: Sequence[Key]) -> bool:
    """Whether no two rows share a time, and what they are of, as far as that is known."""
    if len(keys) == 1 and asked.frame.is_key(keys[0].column):
        return True
    if asked.frame.whole:
        held = {tuple(row[key.column] for key in keys) for row in asked.frame.rows}
        return len(held) == asked.frame.size
    counts = [asked.frame.column(key.column).different for key in keys]
    return None in counts or prod(n or 0 for n in counts) >= asked.frame.size


def _length_of_time(asked: Asked) -> Period:
    """The years of several, else the months of one, else the days."""
    date = asked.frame.date
    told = date.statistics if date else {}
    ends = [str(told[end]) for end in ("min", "max") if end in told]
    if asked.frame.whole and date:
        held = sorted(str(row[date.name]) for row in asked.frame.rows if row[date.name])
        ends = [held[0], held[-1]] if held and date.iso else []
    if len(ends) < 2 or ends[0][:4] != ends[1][:4]:
        return "year"
    return "month" if ends[0][:7] != ends[1][:7] else "day"


def growth_of_years(frame: Frame) -> Query | None:
    """The query for the growth of a frame with a column for each year, if it is one."""
    years = [c for c in frame.columns if c.numeric and c.name.isdigit() and len(c.name) == 4]
    if len(years) < 2:
        return None
    labels = tuple(Key(c.name) for c in frame.columns if not c.numeric)[:1]
    names = sorted(c.name for c in years)
    return Query("growth", (names[0], names[-1]), "sum", labels, wants="growth")
