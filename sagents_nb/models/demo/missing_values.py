"""Values that are missing: how many there are, and which rows or groups lack them."""

from __future__ import annotations

from .asked import Asked
from .data_words import COUNT, MISSING, PERIODS, SHARE
from .queries import Condition, Query
from .words import word_set

_CELLS = word_set(
    "value values row rows column columns cell cells entry entries record records data"
)


def missing_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """How many rows have no value of some columns, or of any, and how many each column lacks."""
    says, date = asked.reading.says, asked.frame.date
    in_time = {"time", "times", "date", "dates", "between", "timestamps", "series"}
    if says({"gaps"}) and date and (date.name in asked.named or says(in_time)):
        return "I find missing values, and no gaps in time"
    if _asks_for_absent(asked):
        return "I find values that are missing, and no rows that are not there"
    if asked.counted and set(asked.named) - {asked.counted}:
        return f"I tell how many rows lack a value, and not how many `{asked.counted}` do"
    columns = asked.named or tuple(c.name for c in asked.frame.columns)
    rows = asked.named or where or says({"row", "rows"})
    if asked.by:
        return _missing_of_groups(asked, where)
    if says(SHARE) and (where or (len(asked.named) != 1 and not says({"row", "rows"}))):
        return "I tell which share of all the rows lacks a value of one column, or any"
    return Query("missing", columns, "count" if rows else "sum", where=where)


def _missing_of_groups(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """How many rows of each group have no value of a column, or which share of them."""
    if len(asked.named) != 1 or asked.named[0] in {key.column for key in asked.by}:
        return "I tell of groups how many of their rows lack a value of one column"
    that = (Condition(asked.named[0], "missing", None),)
    if asked.order or asked.compared:
        return "I tell missing values of all groups, and rank none by them"
    for token in asked.tokens:
        if not token.role and token.word in MISSING:
            token.role = "condition"
    if asked.reading.says(SHARE):
        return Query("aggregate", (), "mean", asked.by, where, wants="share", that=that)
    return Query("aggregate", (), "count", asked.by, where, "descending", that=that)


def _asks_for_absent(asked: Asked) -> bool:
    """Whether rows are meant that are not there: "which lakes are missing in some year"."""
    if asked.reading.says(_CELLS):
        return False
    if asked.reading.says({"combination", "combinations", "pair", "pairs"}):
        return True
    named = {*asked.named, *(key.column for key in asked.by)}
    times = {asked.year, asked.frame.date.name if asked.frame.date else ""}
    things = {asked.counted, asked.reading.things, *asked.reading.identities} - {""}
    others = [asked.frame.column(name) for name in named - times - things]
    if any(column.missing or asked.is_measure(column.name) for column in others):
        return False
    periods = any(token.word in PERIODS and not token.role for token in asked.tokens)
    whole = any(not asked.frame.column(name).missing for name in named & times)
    return bool(things or periods or whole)


def says_without(asked: Asked) -> bool:
    """Whether rows are counted that "have no age" or are "without age"."""
    for index, token in enumerate(asked.tokens):
        if token.role or token.word not in ("no", "without"):
            continue
        following = asked.tokens[index + 1 : index + 3]
        counts = asked.reading.says(COUNT | SHARE)
        if counts and any(t.role == "column" for t in following):
            token.role = "negation"
            return True
    return False
