"""How many: the rows that a question means, the things that rows are of, or what was sold."""

from __future__ import annotations

from .aggregates import aggregate_of
from .asked import Asked
from .data_words import PERIODS
from .queries import Condition, Key, Order, Query, Wants
from .reading import fit_of, parts_of
from .words import word_set

_UNITS = word_set("units unit quantity qty sold bought")


def count_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """What "how many" and "number of" ask for: rows, values of a column, things, or amounts."""
    frame, by, numbers, order = asked.frame, asked.by, asked.numbers, asked.order
    says = asked.reading.says
    if says({"columns", "column", "variables", "fields", "features"}):
        return Query("shape")
    if asked.statistic in ("mean", "median"):
        return aggregate_of(asked, where) if numbers else "I cannot tell which column is meant"
    if order and asked.ranked and not set(numbers) & set(asked.ranked):
        return f"I tell how many there are, or what is {asked.superlative}, and not both at once"
    wants: Wants = "first" if order else ""
    chosen: Order = order or asked.arranged or ("descending" if by and not by[0].period else "")
    many = _after_many(asked)
    numbers = numbers or units_sold(asked)
    binary = [name for name in numbers if frame.column(name).binary]
    if binary:
        where = (*where, *(asked.is_true(name) for name in binary))
    elif numbers and asked.default(numbers) == "sum":
        return Query("aggregate", numbers[:1], "sum", by, where, chosen, wants=wants)
    elif len(asked.named) == 1:
        column = frame.column(asked.named[0])
        grouping = not column.dated and (column.counted or not column.numeric)
        is_named = any(fit_of(part, many) >= 2 for part in parts_of(column.name))
        is_named = is_named and not are_rows_after(asked, column.name)
        bounds = {c.column for c in where if c.operator in (">", ">=", "<", "<=")}
        amounts = any(asked.default((name,)) == "sum" for name in bounds)
        if is_named and amounts and not asked.one_each((Key(column.name),), where):
            return f"I count no `{column.name}` by the amounts that its rows come to"
        if grouping and is_named:
            return Query("aggregate", asked.named, "nunique", by, where, chosen, wants=wants)
        if grouping and not by and column.name not in {c.column for c in where}:
            by, chosen = (Key(column.name),), "descending"
    if asked.counted:
        return things_counted(asked, by, where, chosen, wants)
    days = many in ("day", "days", "date", "dates")
    if many in ("year", "years") and asked.year and not frame.date and not by:
        return Query("aggregate", (asked.year,), "nunique", (), where)
    timeless = many in PERIODS and not frame.date and not asked.reading.names_rows(many)
    if timeless and not asked.named:
        return f"I count rows and values, and no {many}"
    if many in PERIODS and frame.date and not by and (not days or frame.date.timed):
        return f"I count rows and values, and no {many}"
    if days and frame.date and not frame.is_key(frame.date.name) and not by:
        return Query("aggregate", (frame.date.name,), "nunique", (), where)
    return rows_counted(asked, by, where, chosen, wants)


def rows_counted(
    asked: Asked, by: tuple[Key, ...], where: tuple[Condition, ...], order: Order, wants: Wants
) -> Query:
    """How many rows there are; a group that has none of those that are meant has 0 of them."""
    columns = {key.column for key in by}
    kept = tuple(c for c in where if not by or c.column in columns)
    that = tuple(c for c in where if c not in kept)
    word = asked.superlative
    return Query("aggregate", (), "count", by, kept, order, asked.top, wants, word=word, that=that)


def things_counted(
    asked: Asked, by: tuple[Key, ...], where: tuple[Condition, ...], order: Order, wants: Wants
) -> Query | str:
    """How many different things there are, of which several rows may be."""
    by = tuple(key for key in by if key.column != asked.counted)
    if wants == "first" and not by:
        return f"I cannot tell by what to count `{asked.counted}`"
    others = {c.column for c in where} - {key.column for key in by}
    if order == "ascending" and others:
        return f"I rank no groups by a `{asked.counted}` that some may have none of"
    word = asked.superlative
    return Query(
        "aggregate",
        (asked.counted,),
        "nunique",
        by,
        where,
        order,
        asked.top,
        wants,
        word=word,
    )


def units_sold(asked: Asked) -> tuple[str, ...]:
    """The units that "how many lamps were sold" asks for, where there are any."""
    if asked.named or not asked.values or asked.reading.names_rows(_after_many(asked)):
        return ()
    return tuple(n for n in asked.reading.meant_by_verb() if set(parts_of(n)) & _UNITS)


def are_rows_after(asked: Asked, name: str) -> bool:
    """Whether rows are named after a column: "how many sunny days", of a column "sunny"."""
    place = next(i for i, t in enumerate(asked.tokens) if name in t.columns)
    word = asked.reading.word(place + 1)
    return word in ("rows", "row", "entries", "records") or (
        asked.reading.names_rows(word) and not word.endswith("ed")
    )


def _after_many(asked: Asked) -> str:
    """What is counted: the word after "how many" or "number of"."""
    words = asked.reading.words
    skipped = ("of", "the", "different", "distinct", "trading", "unique")
    for index, word in enumerate(words):
        if word in ("many", "number"):
            return next((w for w in words[index + 1 : index + 4] if w not in skipped), "")
    return ""
