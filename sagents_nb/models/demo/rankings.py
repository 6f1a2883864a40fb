"""What is first, or in which order: "the three deepest lakes", "the wettest year", "sort by"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from .asked import Asked, order_of
from .counts import are_rows_after, rows_counted, things_counted
from .data_words import (
    CONSUMING,
    COUNT,
    DOWN,
    EXTREMES,
    HAVING,
    ORDERS,
    PERIODS,
    SHARE,
    SINGLE,
    SORT,
    STOCKS,
    UNITS,
    UP,
)
from .queries import Condition, Key, Order, Query, Statistic, Wants
from .reading import fit_of, parts_of
from .words import adjective, word_set

_RANKED = word_set("rank ranked ranking")
_GENERAL = word_set("largest biggest smallest greatest best worst")
_WHICH = word_set("which what who whose when where top bottom")


def ranking_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str:
    """What a superlative asks for: rows, groups by what they come to, or the value alone."""
    frame, order, word, by = asked.frame, asked.order, asked.superlative, asked.by
    says = asked.reading.says
    # "The widest sepals": of the columns of sepals the one of a width.
    both = tuple(name for name in asked.numbers if name in asked.ranked)
    own = own_measure(asked)
    measures = both or own or asked.numbers or asked.ranked or asked.reading.meant_by_verb()
    measures = asked.one_of(measures, order)
    if isinstance(told := told_of(asked, measures, bool(both or own)), str):
        return told
    if told:
        return _telling(asked, where, measures, told)
    if asked.counted and not measures:
        first: Wants = "first" if asked.top is None else ""
        return things_counted(asked, by, where, order, first)
    held = {condition.column for condition in where}
    labels = [c for c in asked.named if not frame.column(c).numeric]
    labels = [c for c in labels if c not in held and c not in measures]
    if not by and asked.row_key:
        by = (Key(asked.row_key),)
    if not by:
        by = tuple(Key(c) for c in labels if not frame.column(c).dated)[:1] or _ranked(asked)
    if not by and asked.top and asked.statistic:
        by = _counted_off(asked)
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
    if not asked.statistic and frame.column(by[0].column).dated and asked.one_each(by, where):
        return rows  # "on which day was that of the barn highest": there is nothing to average
    adds = _counts_things(asked, measures[0]) or says(CONSUMING)
    totals: Statistic = "sum" if adds else asked.default(measures)
    statistic = asked.statistic or totals
    return Query("aggregate", measures, statistic, by, where, order, asked.top, "first", word=word)


def own_measure(asked: Asked) -> tuple[str, ...]:
    """The column that a superlative is about, where others are asked of the rows that have it.

    That is the one of its quantity, "how old is the heaviest", or that it stands before, "the age
    of the patient with the highest weight".
    """
    place = _place(asked)
    after = asked.tokens[place + 1] if place + 1 < len(asked.tokens) else None
    direct = tuple(c for c in after.columns if c in asked.numbers) if after else ()
    if direct and asked.superlative in UP | DOWN and _rows_before(asked, place):
        return direct
    ordered_by = [t for i, t in enumerate(asked.tokens) if asked.reading.word(i - 1) == "by"]
    other = any(set(t.columns) & set(asked.numbers) for t in ordered_by)
    return () if direct or other else asked.ranked


def told_of(asked: Asked, measures: Sequence[str], own: bool) -> tuple[str, ...] | str:
    """What is asked of rows in an order, beside the column of that order; else why it cannot be."""
    known = adjective(asked.superlative.split()[-1]) if asked.superlative else None
    quantity = [word for word in known[1] if word != "count"] if known else []
    if quantity and not own and asked.numbers and asked.superlative not in UP | DOWN:
        by = asked.reading.says({"by"}) or not asked.ranked
        place = _place(asked)
        after = asked.tokens[place + 1].columns if place + 1 < len(asked.tokens) else ()
        if not by or not (set(after) & set(asked.numbers) or asked.reading.says({"by"})):
            return f"I cannot tell which column “{asked.superlative}” is about"
    general = asked.superlative in _GENERAL and asked.reading.is_row(_place(asked) + 1)
    if general and asked.numbers and not own and not asked.reading.says({"by"}):
        return f"I cannot tell which column “{asked.superlative}” is about"
    if not own:
        return ()
    either = {c for t in asked.tokens if set(t.columns) & set(measures) for c in t.columns}
    numbers = [n for n in asked.numbers if n not in either and n != asked.row_key]
    if not numbers and not asked.numbers and _asks_by_verb(asked):
        numbers = [n for n in asked.reading.meant_by_verb() if n not in measures]
    rows = _names_rows(asked)
    grouped = {key.column for key in asked.by}
    labels = [n for n in asked.named if n not in (*asked.numbers, *asked.ranked, asked.row_key)]
    labels = [n for n in labels if n not in grouped]
    each = any(_is_each(asked, key) for key in asked.by)
    each = each or (asked.reading.word(_place(asked) + 1).endswith("s") and not asked.top)
    several = [key.column for key in asked.by] if rows and not each else []
    if asked.statistic and asked.top and rows and not numbers and not labels and not several:
        return tuple(measures)
    if not numbers and not (rows and (labels or several)):
        return ()
    return (*several, *labels, *numbers)


def _telling(
    asked: Asked, where: tuple[Condition, ...], measures: tuple[str, ...], told: tuple[str, ...]
) -> Query | str:
    """Rows in the order of one column, and what others say of them: "how old is the heaviest"."""
    rows, after = _names_rows(asked), _place(asked) + 1
    groups = bool(asked.reading.thing(after)) or any(_is_each(asked, key) for key in asked.by)
    if not rows and after < len(asked.tokens):
        beside = asked.tokens[after].columns
        groups = groups or any(not asked.is_measure(name) for name in beside)
    if groups or (asked.by and not rows):
        return f"I tell what else the {asked.superlative} row has, and not of groups"
    said = next((t.value for t in asked.tokens if t.role == "number" and t.value), 0)
    if asked.statistic and (not asked.top or said != asked.top):
        return f"I cannot tell of how many rows the {asked.statistic} is meant"
    numeric = all(asked.frame.column(name).numeric for name in told)
    if asked.statistic and not numeric:
        return "I compute only of columns of numbers"
    wants: Wants = "computed" if asked.statistic else "" if asked.top else "first"
    told = tuple(dict.fromkeys(told))
    return Query(
        "rows",
        measures,
        asked.statistic or "mean",
        where=where,
        order=asked.order,
        top=asked.top,
        wants=wants,
        word=asked.superlative,
        told=told,
    )


def _place(asked: Asked) -> int:
    """Where the last word of a superlative stands: -1 without one."""
    places = [i for i, token in enumerate(asked.tokens) if token.role == "superlative"]
    return places[-1] if places else -1


def _names_rows(asked: Asked) -> bool:
    """Whether rows are said to be first: "the warmest sample", "the 5 samples with the highest"."""
    place = _place(asked)
    after = place + 1
    while asked.reading.word(after) in SINGLE:
        after += 1
    return asked.reading.is_row(after) or bool(asked.row_key) or _rows_before(asked, place)


def _rows_before(asked: Asked, place: int) -> bool:
    """Whether it says of rows that they have the most: "the patient with the highest"."""
    start = place - 1
    while asked.reading.word(start) in HAVING:
        start -= 1
    having = {asked.reading.word(i) for i in range(start + 1, place)}
    return bool(having & {"with", "has", "have", "had"}) and asked.reading.is_row(start)


def _asks_by_verb(asked: Asked) -> bool:
    """Whether a verb says what is asked: "how much does the oldest weigh"."""
    did = asked.reading.word(0) == "what" and asked.reading.word(1) in ("did", "does", "do")
    return did or asked.reading.says({"much"})


def _ranked(asked: Asked) -> tuple[Key, ...]:
    """The things of which some are the first: "the three deepest lakes", "which is deepest"."""
    things = asked.reading.things
    places = [i for i, token in enumerate(asked.tokens) if token.role == "superlative"]
    after = [asked.reading.thing(i + 1) for i in places]
    which = asked.reading.says({"which"}) and "is" in asked.reading.words
    return (Key(things),) if things and (things in after or which) else ()


def _counted_off(asked: Asked) -> tuple[Key, ...]:
    """What so many are asked of: "the top 3 days by total sales", whose column is `day`."""
    for token, following in pairwise(asked.tokens):
        if token.role == "number" and following.role in ("", "column"):
            named = [c.name for c in asked.frame.columns if fit_of(c.name, following.word) == 3]
            return tuple(Key(name) for name in named)[:1]
    return ()


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
    if asked.ranked and measures[0] not in asked.ranked:
        return f"I sort by one column, and not the {asked.superlative} by another"
    extreme = EXTREMES.get(asked.superlative)
    order: Order = (not extreme and asked.order) or order_of(asked.reading.says(_RANKED))
    for token in asked.tokens:
        if token.word in ORDERS:
            token.role = "order"
            order = ORDERS[token.word]
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
