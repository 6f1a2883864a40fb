"""What is first, or in which order: "the three deepest lakes", "the wettest year", "sort by"."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .asked import Asked, order_of
from .counts import are_rows_after, rows_counted, things_counted
from .data_words import COUNT, EXTREMES, PERIODS, SHARE, SORT, STOCKS, UNITS
from .queries import Condition, Key, Order, Query, Statistic, Wants
from .reading import parts_of
from .words import adjective, word_set

_RANKED = word_set("rank ranked ranking")
_WHICH = word_set("which what who whose when where top bottom")


def ranking_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """What a superlative asks for: rows, groups by what they come to, or the value alone."""
    frame, order, word, by = asked.frame, asked.order, asked.superlative, asked.by
    says = asked.reading.says
    # "The widest sepals": of the columns of sepals the one of a width.
    both = tuple(name for name in asked.numbers if name in asked.ranked)
    measures = both or asked.numbers or asked.ranked or asked.reading.meant_by_verb()
    measures = asked.one_of(measures, order)
    if asked.counted and not measures:
        first: Wants = "first" if asked.top is None else ""
        return things_counted(asked, by, where, order, first)
    held = {condition.column for condition in where}
    labels = [c for c in asked.named if not frame.column(c).numeric]
    labels = [c for c in labels if c not in held and c not in measures]
    if not by:
        by = tuple(Key(c) for c in labels if not frame.column(c).dated)[:1] or _ranked(asked)
    if not measures:
        known = adjective(word.split()[-1])
        common = (known is not None and "count" in known[1]) or word in ("most", "fewest")
        if by and common and asked.frame.is_key(by[0].column):
            measures = asked.reading.measured(known[1]) if known else ()
        elif by and common:
            return rows_counted(asked, by[:1], where, order, "first")
        if len(measures) != 1:
            return f"I cannot tell which column “{word}” is about"
    extreme: Statistic = "max" if order == "descending" else "min"
    first = "first" if asked.top is None else ""
    rows = Query(
        "rows", measures, by=by, where=where, order=order, top=asked.top, wants=first, word=word
    )
    if by and by[0].column != measures[0] and _counts_true(asked, measures[0]):
        return rows_counted(asked, by[:1], (*where, asked.is_true(measures[0])), order, "first")
    if _asks_also(asked, by):
        return rows
    if _asks_when(asked, measures):
        others = tuple(key for key in by if not frame.column(key.column).dated)
        return replace(rows, by=others)
    if not by:
        which = says(_WHICH - {"what"} | {"row"}) or _ranks_rows(asked)
        which = which or asked.rank > 1 or bool(asked.statistic)
        keyed = any(not c.numeric and frame.is_key(c.name) for c in frame.columns)
        plain = Query("aggregate", measures, extreme, (), where)
        return rows if which or keyed else plain
    each = any(_is_each(asked, key) for key in by)
    if each and not asked.top and not says({"which", "who"}):
        return Query("aggregate", measures, extreme, by, where)
    if len(by) == 1 and not by[0].period and frame.is_key(by[0].column):
        return rows
    stock = STOCKS & set(parts_of(measures[0])) and not asked.statistic
    if stock and asked.year and asked.one_each((*by, Key(asked.year)), ()):
        return rows  # the most in any year
    totals: Statistic = "sum" if _counts_things(asked, measures[0]) else asked.default(measures)
    statistic = asked.statistic or totals
    return Query("aggregate", measures, statistic, by, where, order, asked.top, "first", word=word)


def _ranked(asked: Asked) -> tuple[Key, ...]:
    """The things of which some are the first: "the three deepest lakes", "which is deepest"."""
    things = asked.reading.things
    places = [i for i, token in enumerate(asked.tokens) if token.role == "superlative"]
    after = [asked.reading.thing(i + 1) for i in places]
    which = asked.reading.says({"which"}) and "is" in asked.reading.words
    return (Key(things),) if things and (things in after or which) else ()


def _ranks_rows(asked: Asked) -> bool:
    """Whether rows are asked for: so many of them, or "the warmest sample"."""
    nouns = [i + 1 for i, token in enumerate(asked.tokens) if token.role == "superlative"]
    named = any(asked.reading.names_rows(asked.reading.word(i)) for i in nouns)
    return asked.top is not None or (named and asked.tokens[nouns[-1]].role == "")


def _counts_things(asked: Asked, name: str) -> bool:
    """Whether the superlative is one of how many: "the most rides" are so in all."""
    last = parts_of(name)[-1]
    plural = last.endswith("s") and not last.endswith("ss") and last not in UNITS
    return plural and asked.superlative in ("most", "fewest")


def _counts_true(asked: Asked, name: str) -> bool:
    """Whether a superlative is about how many rows say yes, and not about their share."""
    shared = asked.reading.says(SHARE | {"likely"}) or asked.statistic
    if shared or not asked.frame.column(name).binary:
        return False
    return asked.superlative in ("most", "fewest", "least") or are_rows_after(asked, name)


def _asks_when(asked: Asked, measures: Sequence[str]) -> bool:
    """Whether "when" asks at what time a row was, and not for the day that has most in all."""
    words, periods = asked.reading.words, {t.word for t in asked.tokens if t.role == "period"}
    if periods != {"when"} or asked.statistic:
        return False
    beside = asked.reading.word(words.index("when") - 1) == "and"
    return beside or asked.default(measures) == "mean"


def _asks_also(asked: Asked, by: Sequence[Key]) -> bool:
    """Whether it asks what else a row says: "the biggest tip, and on which day was it"."""
    names = {key.column for key in by if not key.period}
    for index, token in enumerate(asked.tokens):
        if token.word not in ("which", "what") or not names & set(
            asked.tokens[index + 1].columns if index + 1 < len(asked.tokens) else ()
        ):
            continue
        said = [t.role for t in asked.tokens[:index]]
        lead = {asked.reading.word(index - 1), asked.reading.word(index - 2)}
        return "superlative" in said and "and" in lead
    return False


def _is_each(asked: Asked, key: Key) -> bool:
    """Whether the question says "of each" of a key: a superlative is then one for each."""
    for index, token in enumerate(asked.tokens):
        named = token.role == "column" and key.column in token.columns
        each = asked.near(index) & {"each", "every", "per", "by"}
        if each and (named or token.role == "period"):
            return True
    return False


def sorting_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str | None:
    """Rows in the order of a column, or the things that several rows are of; None of neither.

    What is ranked begins with the most, and what is sorted with the least.
    """
    sorts = {word for word in SORT if not asked.reading.names_rows(word)}
    if not asked.reading.says(sorts):
        return None
    things = _sorted_things(asked)
    begins = asked.reading.word(0) in SORT and not asked.reading.says(COUNT)
    said = (*(key.column for key in asked.by if begins), *asked.named)
    measures = tuple(c for c in said if c not in {key.column for key in things})
    if begins and len(measures) > 1:
        return "I sort by one column at a time"
    if len(measures) != 1 or (set(asked.by) - set(things) and not begins):
        return None
    extreme = EXTREMES.get(asked.superlative)
    order: Order = (not extreme and asked.order) or order_of(asked.reading.says(_RANKED))
    down = word_set("descending decreasing desc")
    for token in asked.tokens:
        if token.word in down | word_set("ascending increasing asc"):
            token.role = "order"
            order = order_of(token.word in down)
    several = [k for k in things if k.period or not asked.frame.is_key(k.column)]
    count = asked.top or _last_number(asked)
    if not several:
        return Query("rows", measures, where=where, order=order, top=count or 10)
    if not asked.is_measure(measures[0]):
        return f"`{measures[0]}` holds no numbers"
    statistic = extreme or asked.statistic or asked.default(measures)
    return Query("aggregate", measures, statistic, (several[0],), where, order, count)


def _sorted_things(asked: Asked) -> tuple[Key, ...]:
    """What is to be put in order, as a key: "rank the lakes by depth", "the years by rain"."""
    start = asked.reading.words.index("by") if asked.reading.says({"by"}) else len(asked.tokens)
    said = asked.tokens[:start]
    for index, token in enumerate(said):
        ticked = token.text.startswith("`")
        # "Sort orders by revenue" may mean the frame of that name.
        bare = token.role == "frame" and asked.reading.word(index - 1) in SORT - _RANKED
        if ticked or bare or not token.word.endswith("s"):
            continue
        if thing := asked.reading.thing(index):
            return (Key(thing),)
        if token.role == "column" and not asked.frame.column(token.columns[0]).numeric:
            return (Key(token.columns[0]),)
        times = token.role == "" and token.word in PERIODS
        if times and not asked.reading.names_rows(token.word):
            period = PERIODS[token.word]
            if period == "year" and asked.year:
                return (Key(asked.year),)
            return (Key(asked.frame.date.name, period),) if asked.frame.date else ()
    return ()


def _last_number(asked: Asked) -> int | None:
    """The last number that is nothing else, as that of the rows that are wanted."""
    numbers = [t for t in asked.tokens if not t.role and t.word.isdecimal()]
    if not numbers:
        return None
    numbers[-1].role = "number"
    return max(1, min(int(numbers[-1].word), 50))
