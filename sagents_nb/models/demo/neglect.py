"""Which word of a question its query leaves out, so that the question is not answered as another.

:mod:`reading` knows what each word may mean. What it means must then be in the query, too.
"""

from __future__ import annotations

from .asked import Asked
from .data_words import COUNT, DISTINCT, GROWTH, LATEST, PERIODS, SHARE, SHRINK, STATISTICS
from .queries import Query
from .words import word_set

_COLUMNS = word_set("column columns variable variables field fields feature features")
_EACH = word_set("per each every")
_EVERY = word_set("per each every by across within")


def neglected_word(asked: Asked, query: Query) -> str:
    """The first word that asks for something which the query does not hold, "" if all is in it."""
    for index, token in enumerate(asked.tokens):
        if token.role == "superlative" and not _ranks(query):
            return token.text
        each = token.role == "column" and asked.reading.word(index - 1) in _EACH
        if each and not {key.column for key in query.by} & set(token.columns):
            return token.text  # "wins per game" would divide one column by another
        if token.role in ("", "number") and not _holds(asked, query, index):
            return token.text
    used = {*query.by, *(c.column for c in query.where)}
    grouped = {key.column for key in query.by} | set(query.measures)
    for key in asked.by:
        if query.kind in ("rows", "range") and asked.frame.column(key.column).dated:
            continue  # each row says when it was
        if key not in used and key.column not in grouped:
            return key.column
    return ""


def _ranks(query: Query) -> bool:
    return bool(query.order) or query.statistic in ("max", "min") or query.kind == "range"


def _holds(asked: Asked, query: Query, index: int) -> bool:
    """Whether what one word asks for is in the query; most words ask for nothing."""
    token, reading = asked.tokens[index], asked.reading
    word, before = token.word, reading.word(index - 1)
    if token.role == "number":
        return query.top is not None
    if word in STATISTICS:
        return _computes(query, STATISTICS[word])
    if query.kind == "aggregate" and word in DISTINCT:
        return query.statistic == "nunique" or bool(query.by)
    if query.kind == "aggregate" and word in SHARE:
        binary = bool(query.measures) and asked.frame.column(query.measures[0]).binary
        return query.wants == "share" or binary
    if query.kind == "aggregate" and word in GROWTH | SHRINK:
        return query.wants == "growth" or word in ("down", "record")
    if word in ("than", "more", "less", "fewer"):
        return query.wants == "compare" or (word == "more" and reading.word(index + 1) == "often")
    if word in ("vs", "versus", "compared", "comparison", "difference", "differ", "differs"):
        several = query.kind not in ("aggregate", "summary", "show", "rows")
        return several or bool(query.by) or query.wants in ("growth", "compare")
    if word == "or":
        allowed = any(c.operator == "in" for c in query.where)
        return allowed or bool(query.subjects or query.by) or len(query.measures) > 1
    if word in _COLUMNS:
        beside = {t.role for t in asked.tokens[max(0, index - 1) : index + 2]}
        counted = query.kind == "missing" and reading.says(COUNT)
        told = query.kind in ("shape", "summary", "show", "missing", "correlation", "plot")
        return bool(beside & {"column", "part"}) or (told and not counted)
    if word in LATEST - {"recent", "current"}:
        return query.kind in ("show", "range", "growth", "change") or query.top is not None
    if word == "time" and before == "over":
        dated = any(asked.frame.column(key.column).dated for key in query.by)
        return query.kind in ("plot", "change") or query.wants == "growth" or dated
    if before in _EACH and reading.names_rows(word):
        return query.kind == "rows" or query.statistic in ("mean", "median", "min", "max")
    if word in PERIODS and (word == "when" or word.endswith("ly") or before in _EVERY):
        return bool(query.by) or (word == "when" and query.kind in ("rows", "range"))
    if word == "standard":
        return query.statistic == "std"
    return True


def _computes(query: Query, statistic: str) -> bool:
    """Whether a statistic is what the query computes."""
    if statistic == "sum" and (query.statistic in ("count", "nunique") or query.wants == "share"):
        return True
    if query.kind == "rows":  # of one row each, all statistics are the same
        return bool(query.by) or statistic == "sum"
    if query.kind in ("aggregate", "growth") or (query.kind == "plot" and query.by):
        return query.statistic == statistic
    return query.kind == "summary" and statistic in ("mean", "median")
