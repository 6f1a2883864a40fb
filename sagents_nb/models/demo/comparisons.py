"""Whether one group, or one year, is more than another: "did more women than men recover"."""

from __future__ import annotations

from itertools import pairwise

from .asked import Asked, order_of
from .counts import units_sold
from .data_words import COMPARE, COUNT, LESS, MORE, THAN
from .queries import Condition, Key, Query, Statistic
from .words import adjective


def comparison_of(asked: Asked) -> Query | str | None:
    """A question whether one group or year is more than another, None if it is none."""
    return _groups_compared(asked) or _years_compared(asked)


def _groups_compared(asked: Asked) -> Query | str | None:
    """A question whether one group is more than another, None if it is none."""
    held = [token.columns[0] for token in asked.values]
    columns = {name for name in held if held.count(name) == 2}
    pair = [token for token in asked.values if token.columns[0] in columns]
    others = asked.where([token for token in asked.values if token not in pair])
    subjects = tuple(str(token.value) for token in pair)
    joined = asked.reading.says(THAN | {"compare", "comparison", "and"})
    if asked.reading.says({"or"}) and asked.reading.says(COUNT):
        return None  # either of them counts
    if asked.contrasted and not pair:
        ends = [asked.is_true(key.column).value for key in asked.contrasted]
        columns = {key.column for key in asked.contrasted}
        subjects = tuple(str(end) for v in ends for end in (v, type(v)(not v)))
    if len(subjects) != 2 or not joined or (len(held) > 2 and not asked.reading.says({"than"})):
        return None
    if any(key.column not in columns for key in asked.by):
        return None
    more = _comparative(asked)
    if more is None and asked.contrasted:
        return None
    measures = (asked.numbers or (more[2] if more else ()) or units_sold(asked))[:1]
    counts = asked.reading.says(COUNT) or (more and more[1] in ("more", "fewer", "less"))
    if not measures and not counts:
        return "I cannot tell by which column to compare"
    binary = bool(measures) and asked.frame.column(measures[0]).binary
    that: tuple[Condition, ...] = ()
    if binary and (asked.reading.says(COUNT) or _more_of_a_value(asked)):
        that, measures, binary = (asked.is_true(measures[0]),), (), False
    statistic: Statistic = "mean" if binary else asked.statistic or asked.default(measures)
    if not measures and asked.counted:
        measures, statistic = (asked.counted,), "nunique"
    elif not measures:
        others, that = (), (*others, *that)
    return Query(
        "aggregate",
        measures,
        statistic if measures else "count",
        tuple(Key(column) for column in columns),
        others,
        order_of(more is None or more[0]),
        wants="compare" if more else "difference" if asked.reading.says(COMPARE) else "",
        subjects=subjects,
        word=more[1] if more else "",
        that=that,
    )


def _more_of_a_value(asked: Asked) -> bool:
    """Whether more rows of a value are asked for: "more women than men"; not "more often"."""
    return any(
        token.word in ("more", "fewer", "less") and following.role == "value"
        for token, following in pairwise(asked.tokens)
    )


def _years_compared(asked: Asked) -> Query | str | None:
    """A question whether one year is more than another, None if it is none."""
    if len(asked.years) != 2 or not asked.reading.says({"than"}):
        return None
    more = _comparative(asked)
    measures = asked.numbers or (more[2] if more else ())
    if more is None or not measures:
        return "I cannot tell by which column to compare"
    year = next(c for c in asked.reading.conditions if c.value in asked.years)
    order = order_of(more[0])
    measures = asked.one_of(measures, order)[:1]
    return Query(
        "aggregate",
        measures,
        asked.statistic or asked.default(measures),
        (Key(year.column, "year" if year.part else ""),),
        asked.where(asked.values)[: len(asked.values)],
        order,
        wants="compare",
        subjects=(str(asked.years[0]), str(asked.years[1])),
        word=more[1],
    )


def _comparative(asked: Asked) -> tuple[bool, str, tuple[str, ...]] | None:
    """Whether more is said to be there, the word, and the columns that it is about."""
    for index, token in enumerate(asked.tokens):
        word, after = token.word, asked.reading.word(index + 1)
        if token.role:
            continue
        if word in ("more", "less") and (known := adjective(after)):
            asked.tokens[index + 1].role = token.role = "comparative"
            up = known[0] == (word == "more")
            return up, f"{word} {after}", asked.reading.measured(known[1])
        known = adjective(word) if word.endswith("er") or word in MORE | LESS else None
        if known or word in ("more", "less", "fewer", "greater", "higher", "lower"):
            token.role = "comparative"
            up = word in MORE or (word not in LESS and known is not None and known[0])
            return up, word, asked.reading.measured(known[1]) if known else ()
    return None
