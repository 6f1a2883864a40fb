"""Which share of the rows is as the question says, or which share of a total each group has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .asked import Asked
from .data_words import SHARE
from .queries import Condition, Key, Query, Wants, times_of
from .reading import parts_of
from .words import word_set

_COPULAS = word_set("is are was were has have had")
_JOINING = word_set("and but")
_PREPOSITIONS = word_set("in from of with at on for by")


def share_of(asked: Asked) -> Query | str:
    """The share of the rows that are so, be it in each group, or of each group in a total."""
    values, by, numbers = asked.values, asked.by, asked.numbers
    binary = tuple(n for n in numbers if asked.frame.column(n).binary)[:1]
    if numbers and not binary and _counts_rows_of(asked, numbers[0]):
        asked.numbers = numbers = ()
    told = _told(asked)
    if binary and asked.where(values) and told != [binary[0]]:
        said = (*asked.where(values), asked.is_true(binary[0]))
        return _share_told(asked, told, said) or Query("aggregate", (), "count", (), said)
    if binary:
        where = asked.where(values)
        if asked.order and by:
            return Query(
                "aggregate", binary, "mean", by, where, asked.order, wants="first",
                word=asked.superlative,
            )  # fmt: skip
        return Query("aggregate", binary, "mean", by, where, wants="share")
    if not numbers and (found := _share_of_rows(asked)):
        return found
    if asked.compared:
        return "I tell the share of one group, or of all of them"
    if numbers and not _is_share_of(asked, numbers[0]):
        return f"no column says a rate of `{numbers[0]}`, and I divide no columns"
    subjects: tuple[str, ...] = ()
    if values and not by:
        *values, subject = values
        by, subjects = (Key(subject.columns[0]),), (str(subject.value),)
    if not by:
        return "I cannot tell of what the share is meant"
    return Query(
        "aggregate",
        numbers[:1],
        "sum" if numbers else "count",
        by,
        asked.where(values),
        asked.order or "descending",
        wants="share",
        subjects=subjects,
    )


def _counts_rows_of(asked: Asked, name: str) -> bool:
    """Whether its plural stands for rows: "which share of the bills are from dinner"."""
    last = parts_of(name)[-1]
    said = [t for t in asked.tokens if t.word == f"{last}s" and name in t.columns]
    counts = not last.endswith("s") and said and asked.reading.says({"are", "were"})
    for token in said if counts else ():
        token.role = "part"
    return bool(counts)


def _share_of_rows(asked: Asked) -> Query | str | None:
    """The share of the rows that have a value: of those in each group, else of all."""
    said = asked.where(asked.values)
    either = asked.reading.says({"or"})
    subjects = [c for c in said if not c.part and (c.operator != "in" or either)]
    if not subjects or asked.compared or _tells_shares_of_all(asked):
        return None
    return _share_told(asked, _told(asked), said)


def _share_told(
    asked: Asked, told: Sequence[str | Condition], said: Sequence[Condition]
) -> Query | str | None:
    """The share of the rows for which some of the conditions hold, of those of the others."""
    that = tuple(c for c in said if c in told or (c.column in told and c.operator == "=="))
    where = tuple(c for c in said if c not in that)
    if not that:
        return "I cannot tell of which rows the share is meant"
    wants: Wants = "first" if asked.by and asked.order else "share"
    if asked.by:
        return Query(
            "aggregate",
            (),
            "mean",
            asked.by,
            where,
            asked.order,
            asked.top,
            wants,
            word=asked.superlative,
            that=that,
        )
    if where:
        return Query("aggregate", (), "mean", (), where, wants=wants, that=that)
    if len(that) == 1 and asked.values and that[0].operator != "in":
        return None
    return Query("aggregate", (), "count", (), that)


def _told(asked: Asked) -> list[str | Condition]:
    """What is told of rows: its conditions, and its columns of yes and no.

    That is the first after "are", and what "and" puts with it: "are green and from Lapland".
    Without such a verb it is a column of yes and no, which is named by its own verb, else the
    last value, or the first of "women in first class"; none where that cannot be told.
    """
    places = [(i, found) for i in range(len(asked.tokens)) if (found := _tellable(asked, i))]
    verbs = [
        i
        for i, word in enumerate(asked.reading.words)
        if word in _COPULAS and i > 1 and asked.reading.word(i - 1) not in _JOINING
    ]
    after = [i for i, _ in places if verbs and i > verbs[-1]]
    binary = [i for i, found in places if isinstance(found[0], str)]
    if not places:
        return []
    last, begin = places[-1][0], places[0][0]
    if after or binary:
        begin = after[0] if after else binary[0]
    elif _restricts(asked, last) and _restricts(asked, begin) and not _all_joined(asked, places):
        return []
    elif not _restricts(asked, last) and not _all_joined(asked, places):
        begin = last
    told: list[str | Condition] = []
    before = begin
    for index, found in places:
        again = index > begin and found[0] in told  # "lamps or chairs" is one condition
        if index == begin or again or (index > begin and _puts_together(asked, before, index)):
            told += found
            before = index
        elif index > begin:
            break
    return told


def _tellable(asked: Asked, index: int) -> list[str | Condition]:
    """The conditions of a word, or the column of yes and no that it names."""
    token = asked.tokens[index]
    if token.role == "column" and len(token.columns) == 1:
        return [c for c in token.columns if asked.frame.column(c).binary]
    said, others = asked.where(asked.values), asked.reading.conditions
    match token.role:
        case "value" | "excluded":
            same = [c for c in said if c.column == token.columns[0]]
            several = [c for c in same if c.operator == "in" and token.value in c.value]
            return [*several, *(c for c in same if c.value == token.value)]
        case "compared":
            return [c for c in others if c.column in token.columns and c.operator != "!="]
        case "year" | "date":
            times = times_of(said, asked.frame)
            return [*times]
    return []


def _puts_together(asked: Asked, one: int, other: int) -> bool:
    """Whether an "and" stands between two words."""
    between = asked.tokens[one + 1 : other]
    return any(token.word in _JOINING and not token.role for token in between)


def _all_joined(asked: Asked, places: Sequence[tuple[int, Any]]) -> bool:
    return all(_puts_together(asked, a, b) for (a, _), (b, _) in pairwise(places))


def _restricts(asked: Asked, index: int) -> bool:
    """Whether a word says of which rows something is told: "in Lapland", "with state green"."""
    start = index - 1
    while start > 0 and asked.tokens[start].role in ("condition", "column", "operator"):
        start -= 1
    while asked.reading.word(start) in ("the", "a", "an"):
        start -= 1
    before = asked.reading.word(start)
    return before in _PREPOSITIONS and asked.reading.word(start - 1) not in SHARE


def _tells_shares_of_all(asked: Asked) -> bool:
    """Whether "of each" asks which part of all the rows a group has, and not of its own."""
    for index, token in enumerate(asked.tokens):
        if token.word == "each" and asked.reading.word(index - 1) in (
            "of",
            "from",
            "does",
            "do",
        ):
            return True
    return False


def _is_share_of(asked: Asked, name: str) -> bool:
    """Whether it says "share of" a column: "win rate" and "margin percentage" are others."""
    places = [i for i, t in enumerate(asked.tokens) if t.role == "column" and name in t.columns]
    said = [i for i, t in enumerate(asked.tokens) if not t.role and t.word in SHARE]
    return any("of" in asked.reading.words[i + 1 : place] for i in said for place in places)
