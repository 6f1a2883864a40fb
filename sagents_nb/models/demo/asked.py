"""What the parts of a question about a data frame are: its measures, groups, conditions and order.

:mod:`reading` says what each word is; files such as :mod:`shares` and :mod:`rankings` make a query
of the parts. What each word means has to be in that query, too: see :func:`neglected_word`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from msgspec.structs import replace

from .data_words import (
    ADDED,
    COUNT,
    DISTINCT,
    DOWN,
    EACH,
    EXTREMES,
    FILLERS,
    GROWTH,
    HAVING,
    LATEST,
    NEGATIONS,
    NUMBERS,
    ORDERS,
    ORDINALS,
    PERIODS,
    SHARE,
    SHRINK,
    SORT,
    STATISTICS,
    UNITS,
    UP,
)
from .frames import Column
from .queries import Condition, Key, Order, Period, Query, Statistic
from .reading import Reading, Token, fit_of, is_of_quantity, parts_of
from .words import adjective, word_set


class Asked:
    """The parts of one question.

    ``by`` are the groups, ``named`` all columns beside them, ``numbers`` those that hold numbers
    or say yes and no; ``order``, ``superlative`` and ``ranked`` are of the superlative: its
    order, its word, and the columns of its quantity. ``compared`` are the groups that are meant
    where several values of one column are named; ``contrasted`` is of these the column of yes and
    no of which both are: "members and non-members". ``steps`` are the times of "from year to year".
    ``arranged`` is the order of the groups, where it is said: "by month, highest first".
    ``counted`` is the column of the things that are counted, "" where rows are; ``row_key`` is the
    column that numbers what a superlative is said of, "" without one.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.frame = reading.frame
        self.tokens = reading.tokens
        contrast = self._contrast()
        steps = self._steps()
        self.steps = tuple(key for _, key in steps)
        keys = [*self._keys(), *steps, *contrast]
        self.contrasted = tuple(dict.fromkeys(key for _, key in contrast))
        self.arranged: Order = self._arranged(any(k.period for _, k in keys)) if keys else ""
        self.top = self._limit()
        self.order, self.superlative, self.ranked = self._direction()
        self.row_key = self._row_key()
        self.rank = self._place()
        places = {index for index, _ in keys}
        self.by = tuple(dict.fromkeys(key for _, key in keys))
        named = [t for i, t in enumerate(self.tokens) if t.role == "column" and i not in places]
        self.named = tuple(dict.fromkeys(c for t in named for c in t.columns))
        self.counted = self.reading.counted
        things = self.reading.identities
        self.numbers = tuple(c for c in self.named if self.is_measure(c) and c not in things)
        self.values = [t for t in self.tokens if t.role == "value"]
        self.years: list[int] = [t.value for t in self.tokens if t.role == "year"]
        statistics = (STATISTICS.get(t.word) for t in self.tokens if not t.role)
        self.statistic = next((statistic for statistic in statistics if statistic), None)
        several = [c for c in self.where(self.values) if c.operator == "in"]
        self.compared = tuple(Key(c.column, c.part) for c in several)
        self.compared += self.contrasted
        if self.reading.says({"or"}):
            self.compared = ()

    def where(self, values: Sequence[Token]) -> tuple[Condition, ...]:
        """What rows have to be: these values, and what dates and comparisons say.

        No row has two values of one column: where several are named, each of them is allowed.
        """
        said = [Condition(t.columns[0], "==", t.value) for t in values]
        equal: dict[tuple[str, str], list[Condition]] = {}
        for condition in dict.fromkeys([*said, *self.reading.conditions]):
            place = (condition.column, condition.part) if condition.operator == "==" else None
            equal.setdefault(place or (repr(condition), ""), []).append(condition)
        return tuple(
            replace(same[0], operator="in", value=tuple(c.value for c in same))
            if len(same) > 1
            else same[0]
            for same in equal.values()
        )

    def is_measure(self, name: str) -> bool:
        """Whether a column holds what can be added up or averaged."""
        column = self.frame.column(name)
        return column.numeric or column.binary

    @property
    def year(self) -> str:
        """The column of years, "" without one."""
        return next((c.name for c in self.frame.columns if "year" in parts_of(c.name)), "")

    def one_each(self, by: Sequence[Key], where: Sequence[Condition]) -> bool:
        """Whether a group has one of the rows that are meant, as a country has in a year."""
        said = [key.column for key in by if not key.period]
        if len(said) == 1 and self.frame.is_key(said[0]):
            return True
        said += [c.column for c in where if c.operator == "==" and not c.part]
        counts = [self.frame.column(name).different or 0 for name in dict.fromkeys(said)]
        return bool(by) and prod(counts) == self.frame.size

    def only(self) -> tuple[str, ...]:
        """The one column of numbers, if there is but one."""
        found = [c.name for c in self.frame.columns if c.numeric and not c.counted and not c.binary]
        return tuple(found) if len(found) == 1 else ()

    def default(self, measures: Sequence[str]) -> Statistic:
        """What is made of columns where nothing is said: amounts are added up."""
        added = any(part in ADDED for measure in measures for part in parts_of(measure))
        return "sum" if added else "mean"

    def lacking(self, quantities: Collection[str]) -> str:
        """A quantity that is asked for and that no column is named after, "" if none is.

        The one column of a frame `rain` may hold the rain, if its name says nothing else.
        """
        plain = any(set(parts_of(name)) <= UNITS | FILLERS for name in self.only())
        if plain or any(self.is_measure(name) for name in self.named):
            return ""
        parts = [part for name in self.only() for part in parts_of(name)]
        for token in self.tokens:
            fits = any(fit_of(part, token.word) for part in parts)
            if not token.role and token.word in quantities and not fits:
                return token.text
        return ""

    def near(self, index: int) -> set[str]:
        """The two words before one."""
        return {self.reading.word(index - 1), self.reading.word(index - 2)}

    def _contrast(self) -> list[tuple[int, Key]]:
        """Where a column of yes and no is named with a negation and without one."""
        places: dict[str, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token.role == "column" and len(token.columns) == 1:
                places.setdefault(token.columns[0], []).append(index)
        for name, (one, *others) in places.items():
            if not self.frame.column(name).binary or len(others) != 1:
                continue
            negated = [i - 1 for i in (one, *others) if i and self.tokens[i - 1].word in NEGATIONS]
            if len(negated) == 1 and self.reading.is_free(negated[0]):
                self.tokens[negated[0]].role = "negation"
                return [(one, Key(name)), (others[0], Key(name))]
        return []

    def _keys(self) -> list[tuple[int, Key]]:
        """What the question groups by, and where it says so."""
        found: list[tuple[int, Key]] = []
        for index, token in enumerate(self.tokens):
            if token.role == "column" and len(token.columns) == 1:
                column = self.frame.column(token.columns[0])
                if self._groups(index, column) or (
                    self._joined(index, found)
                    and (column.counted or column.binary or not column.numeric)
                ):
                    found.append((index, Key(column.name, self._granularity(column))))
            elif not token.role and (period := self._period(index, found)) is not None:
                date = self.frame.date
                if date is not None:
                    period = self._granularity(date) if period == "day" else period
                    token.role = "period"
                    found.append((index, Key(date.name, period)))
        return found

    def _steps(self) -> list[tuple[int, Key]]:
        """The times of "from year to year": those of a column of that name, or of dates."""
        found: list[tuple[int, Key]] = []
        for index, period in self.reading.steps.items():
            columns = [c for c in self.frame.columns if c.name.lower() == period and c.numeric]
            name = columns[0].name if columns else self.year if period == "year" else ""
            if name:
                found.append((index, Key(name)))
            elif date := self.frame.date:
                stepped = self._granularity(date) if period == "day" else period
                found.append((index, Key(date.name, stepped)))
            else:
                why = f"`{self.frame.name}` does not say of which {period} its rows are"
                self.reading.reason = self.reading.reason or why
        return found

    def _groups(self, index: int, column: Column) -> bool:
        """Whether what is said before a column makes it one to group by."""
        near = self.near(index)
        if self.is_measure(column.name) and self.reading.word(index - 1) == "by":
            ranks = word_set("top bottom rank ranked") & set(self.reading.words[:index])
            if ranks and not any(part in PERIODS for part in parts_of(column.name)):
                return False  # the top 3 products by price
        if column.binary:
            return bool(near & {"by", "per", "each", "every"})
        asked = self.reading.word(index - 1) in ("which", "what")
        if asked and self.frame.numbers_rows(column.name):
            return True
        said = near & (EACH | {"between", "across", "which"})
        return (column.counted or not column.numeric) and bool(asked or said)

    def _joined(self, index: int, found: Sequence[tuple[int, Key]]) -> bool:
        """Whether a column goes on from one that is grouped by: "by sex and class"."""
        return bool(found) and self.reading.joins(found[-1][0], index)

    def _period(self, index: int, found: Sequence[tuple[int, Key]]) -> Period | None:
        """The period that a word groups by, None if it does not."""
        word, before, after = (self.reading.word(i) for i in (index, index - 1, index + 1))
        if word == "when" and self._is_condition(index):
            self.tokens[index].role = "operator"
            return None
        if word not in PERIODS or self.frame.date is None:
            return None
        asked = before in ("which", "what") or word in ("annual", "when") or word.endswith("ly")
        most = before in UP | DOWN or (before.endswith("est") and adjective(before) is not None)
        said = self.near(index) & (EACH | {"which"}) or self._joined(index, found)
        said = said or (bool(found) and found[-1][0] == index - 1)  # "by station, month"
        if not (asked or most or said or (word in ("date", "day") and before == "on")):
            return None
        if word == "day" and after == "of":
            for i in (index + 1, index + 2, index + 3):
                if self.reading.word(i) in ("of", "the", "week"):
                    self.tokens[i].role = "part"
            return "weekday"
        return PERIODS[word]

    def _is_condition(self, index: int) -> bool:
        """Whether "when" says which rows are meant: "the temperature when the status is not ok"."""
        said = index > 0 and self.tokens[index - 1].role in ("column", "part", "value")
        conditions = ("value", "excluded", "compared")
        return said and any(token.role in conditions for token in self.tokens[index + 1 :])

    def _granularity(self, column: Column) -> Period:
        """The period "day" where a column has times of the day, "" where it has days already."""
        return "day" if column.timed else ""

    def _limit(self) -> int | None:
        """The number of "top 3", "five largest" or "first 10 rows"."""
        for index, token in enumerate(self.tokens):
            number = NUMBERS.get(token.word) or (int(token.word) if token.word.isdigit() else None)
            if token.role or number is None:
                continue
            before, after = self.reading.word(index - 1), self.reading.word(index + 1)
            ranked = adjective(after) is not None or after in UP | DOWN | {"rows", "row"}
            if before == "which":
                ranked = any(_is_superlative(t.word) for t in self.tokens[index:])
            if ranked or before in UP | DOWN | {"first", "last", "the"}:
                token.role, token.value = "number", number
                return max(1, min(number, 50))
        return None

    def _arranged(self, timed: bool) -> Order:
        """The order of groups that "highest first", at the end, or "descending" asks for.

        Those that are ``timed`` begin with the oldest, where no other order is said.
        """
        if self.reading.says(SORT):
            return ""
        for index, token in enumerate(self.tokens):
            if token.role:
                continue
            if token.word in ORDERS:
                token.role = "order"
                return ORDERS[token.word]
            follows = self.reading.word(index + 1) == "first" and self.reading.is_free(index + 1)
            rest = self.tokens[index + 2 :]
            if not follows or any(not t.role and t.word not in FILLERS for t in rest):
                continue
            if token.word in UP | DOWN or (timed and token.word in LATEST):
                token.role = self.tokens[index + 1].role = "order"
            if token.word in UP | DOWN:
                return order_of(token.word in UP)
            if token.role and token.word not in ("oldest", "earliest"):
                self.reading.reason = "I tell times from the first one on"
        return ""

    def _direction(self) -> tuple[Order, str, tuple[str, ...]]:
        """The order that a superlative asks for, its word, and the columns that it is about."""
        # "Which year was wetter?" asks for the wettest.
        wetter = "than" not in self.reading.words and self.reading.says({"which"})
        for index, token in enumerate(self.tokens):
            word, after = token.word, self.reading.word(index + 1)
            if token.role:
                continue
            free = self.reading.is_free(index + 1)
            if word in ("most", "least") and free and (known := adjective(after)):
                self.tokens[index + 1].role = token.role = "superlative"
                up = known[0] == (word == "most")
                return order_of(up), f"{word} {after}", self.reading.measured(known[1])
            if word in UP | DOWN:
                token.role = "superlative"
                return order_of(word in UP), word, ()
            if wetter and word in ("more", "fewer"):
                token.role = "superlative"
                return order_of(word == "more"), "most" if word == "more" else "fewest", ()
            ends = word.endswith("est") or (wetter and word.endswith("er"))
            if ends and (known := adjective(word)):
                token.role = "superlative"
                measured = self.reading.measured(known[1])
                ages = tuple(name for name in measured if not self.reading.is_year(name))
                older = "year" in known[1] and measured and not ages
                return order_of(known[0] != bool(older)), word, ages or measured
        return "", "", ()

    def _row_key(self) -> str:
        """The column that numbers what "the oldest patient" names: it is then no measure."""
        found = ""
        for index, token in enumerate(self.tokens):
            name = token.columns[0] if token.role == "column" and len(token.columns) == 1 else ""
            if not name or not self.frame.is_key(name) or token.text[0] == "`":
                continue
            if self.reading.word(index - 1) in ("which", "what"):
                continue  # it asks for the one that is first
            start, end = index - 1, index + 1
            while start > 0 and self.tokens[start].role in ("value", "part"):
                start -= 1  # "the oldest female patient"
            while self.reading.word(end) in HAVING:
                end += 1
            word = self.reading.word(start) if self.tokens[start].role == "superlative" else ""
            most = end > index + 1 and end < len(self.tokens)
            most = most and self.tokens[end].role == "superlative"
            if (most or (word and word not in UP | DOWN)) and name not in self.ranked:
                token.role, token.columns, found = "", (), name
        return found

    def _place(self) -> int:
        """The place in a ranking: of "the second highest" it is 2."""
        roles = [token.role for token in self.tokens]
        before = roles.index("superlative") - 1 if "superlative" in roles else -1
        place = ORDINALS.get(self.reading.word(before), 1)
        if place > 1 and self.reading.is_free(before):
            self.tokens[before].role = "number"
            return place
        return 1

    def is_true(self, name: str) -> Condition:
        """That a column of yes and no says yes, or no where the question has a "not"."""
        negated = [t for t in self.tokens if not t.role and t.word in NEGATIONS]
        for token in negated:
            token.role = "negation"
        value = not negated
        return Condition(name, "==", int(value) if self.frame.column(name).numeric else value)

    def one_of(self, measures: Sequence[str], order: Order) -> tuple[str, ...]:
        """One measure: of temp_max and temp_min the one that an order is about."""
        if len(measures) < 2 or not order:
            return tuple(measures)
        wanted = "max" if order == "descending" else "min"
        fitting = [m for m in measures if wanted in parts_of(m)]
        return tuple(fitting[:1] or measures[:1])


def _is_superlative(word: str) -> bool:
    return word in UP | DOWN or is_of_quantity(word)


def order_of(descending: bool) -> Order:
    """The order by that name."""
    return "descending" if descending else "ascending"


# what a query leaves out


_COLUMNS = word_set("column columns variable variables field fields feature features")
_EACH = word_set("per each every")
_EVERY = word_set("per each every by across within")
_FEW = word_set("some one once few in two")
_EXTREMES = word_set("maximum minimum max min")


def neglected_word(asked: Asked, query: Query) -> str:
    """The first word that asks for something which the query does not hold, "" if all is in it."""
    for index, token in enumerate(asked.tokens):
        word, after = token.word, asked.reading.word(index + 1)
        of_each = word in PERIODS and word.endswith("ly") and after in _EXTREMES
        if of_each and query.statistic not in ("max", "min"):
            return token.text  # "daily maximum" is that of each day
        if word == "variable" and asked.reading.word(index - 1) in ("most", "least"):
            return token.text
        if token.role == "superlative" and not _ranks(query):
            return token.text
        each = token.role == "column" and asked.reading.word(index - 1) in _EACH
        if each and not {key.column for key in query.by} & set(token.columns):
            return token.text  # "wins per game" would divide one column by another
        if token.role in ("", "number") and not _holds(asked, query, index):
            return token.text
    used = {*query.by, *(c.column for c in query.conditions)}
    grouped = {key.column for key in query.by} | {*query.measures, *query.told}
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
        return query.top is not None or query.rank == ORDINALS.get(word)
    if word in STATISTICS:
        return _computes(query, STATISTICS[word])
    if query.kind == "aggregate" and word in EXTREMES:
        return query.statistic == EXTREMES[word]
    if query.kind == "aggregate" and word in DISTINCT:
        return query.statistic == "nunique" or bool(query.by)
    if query.kind == "aggregate" and word in SHARE:
        binary = bool(query.measures) and asked.frame.column(query.measures[0]).binary
        of_all = query.statistic == "count" and not query.by and bool(query.where)
        return query.wants == "share" or binary or of_all or query.shares_rows
    if query.kind == "aggregate" and word in GROWTH | SHRINK:
        return query.wants == "growth" or word in ("down", "record")
    if word in ("than", "more", "less", "fewer"):
        return query.wants == "compare" or (word == "more" and reading.word(index + 1) == "often")
    if word in ("vs", "versus", "compared", "comparison", "difference", "differ", "differs"):
        several = query.kind not in ("aggregate", "summary", "show", "rows")
        return several or bool(query.by) or query.wants in ("growth", "compare")
    if word == "or":
        allowed = any(c.operator == "in" for c in query.conditions)
        return allowed or bool(query.subjects or query.by) or len(query.measures) > 1
    if word in _COLUMNS:
        beside = {t.role for t in asked.tokens[max(0, index - 1) : index + 2]}
        each = before in _EACH or before == "by"
        counted = query.kind == "missing" and reading.says(COUNT) and not each
        told = query.kind in ("shape", "summary", "show", "missing", "correlation", "plot")
        return bool(beside & {"column", "part"}) or (told and not counted)
    if word in LATEST - {"recent", "current"}:
        return query.kind in ("show", "range", "growth", "change") or query.top is not None
    if word == "time" and before == "over":
        dated = any(asked.frame.column(key.column).dated for key in query.by)
        return query.kind in ("plot", "change") or query.wants == "growth" or dated
    if before in _EACH and reading.names_rows(word):
        return query.kind == "rows" or query.statistic in ("mean", "median", "min", "max")
    if word in PERIODS and before in ("all", "some") and query.kind in ("values", "rows"):
        return False  # the lakes that were measured in all of the years
    if word == "only" and query.kind == "values" and reading.word(index + 1) in _FEW:
        return False
    if word == "weekdays" and before in ("on", "during", "only"):
        return False  # the days from Monday to Friday, and not each of the seven
    if word == "both":
        shares = query.wants == "share" or query.shares_rows
        return query.kind != "missing" and (not shares or len(query.that) > 1)
    if word == "together":
        return not query.by
    if word in PERIODS and (word == "when" or word.endswith("ly") or before in _EVERY):
        return bool(query.by) or (word == "when" and query.kind in ("rows", "range"))
    if word == "standard":
        return query.statistic == "std"
    return True


def _computes(query: Query, statistic: str) -> bool:
    """Whether a statistic is what the query computes."""
    if statistic == "sum" and (query.statistic in ("count", "nunique") or query.wants == "share"):
        return True
    if query.wants == "computed":
        return query.statistic == statistic
    if query.kind == "rows":  # of one row each, all statistics are the same
        return bool(query.by) or statistic == "sum"
    if query.kind in ("aggregate", "growth") or (query.kind == "plot" and query.by):
        return query.statistic == statistic
    return query.kind == "summary" and statistic in ("mean", "median")
