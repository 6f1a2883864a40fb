"""How the demo model understands a question about a data frame: what is asked, as a query.

:mod:`reading` says what each word is. Here a plot, a share, a growth, a ranking and so on are
told apart, the most particular first, and get their measures, groups and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from .data_words import (
    ADDED,
    CHARTS,
    COUNT,
    DISTINCT,
    DOWN,
    EACH,
    GROWTH,
    LATEST,
    LESS,
    MISSING,
    MORE,
    NEGATIONS,
    NUMBERS,
    PERIODS,
    PLOT,
    RELATION,
    SHAPE,
    SHARE,
    SHOW,
    SHRINK,
    SORT,
    STATISTICS,
    SUMMARY,
    THAN,
    UP,
    YES_NO,
)
from .frames import Column, Frame
from .history import listed
from .queries import Condition, Key, Order, Part, Period, Query, Statistic, Wants
from .reading import Reading, Token, fit_of, parts_of
from .words import adjective, word_set

ABLE = (
    "I count, average, add up, rank, group, compare, correlate, sort and plot the columns of a "
    "data frame, and tell its shares, growth, different and missing values"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_WHICH = word_set("which what who whose when where top bottom")


def read(question: str, frame: Frame) -> Query | str:
    """The query of a question; else why there is none, as the end of a sentence."""
    if frame.ambiguous:
        return f"two columns of `{frame.name}` have the same name"
    if len(question) > 1000:
        return "it is too long for me"
    return _Question(Reading(question, frame)).query()


def statistic_of(text: str) -> Statistic | None:
    """The statistic that a text names, None without one."""
    found = (STATISTICS.get(word) for word in re.findall(r"[a-z]+", text.lower()))
    return next((statistic for statistic in found if statistic), None)


def names_frame(text: str, name: str) -> bool:
    """Whether a text names that frame, in backticks or as a word."""
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", text))


class _Question:
    """What one question asks.

    ``by`` are the groups, ``named`` all columns beside them, ``numbers`` those that hold numbers
    or say yes and no; ``order``, ``superlative`` and ``ranked`` are of the superlative: its
    order, its word, and the columns of its quantity.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.frame = reading.frame
        self.tokens = reading.tokens
        keys = self._keys()
        self.top = self._top()
        self.order, self.superlative, self.ranked = self._direction()
        places = {index for index, _ in keys}
        self.by = tuple(dict.fromkeys(key for _, key in keys))
        named = [t for i, t in enumerate(self.tokens) if t.role == "column" and i not in places]
        self.named = tuple(dict.fromkeys(c for t in named for c in t.columns))
        self.numbers = tuple(c for c in self.named if self._is_measure(c))
        self.values = [t for t in self.tokens if t.role == "value"]
        self.years: list[int] = [t.value for t in self.tokens if t.role == "year"]
        statistics = (STATISTICS.get(t.word) for t in self.tokens if not t.role)
        self.statistic = next((statistic for statistic in statistics if statistic), None)

    def query(self) -> Query | str:
        """The query, else the reason why there is none."""
        found = self._query()
        kind = found.kind if isinstance(found, Query) else None
        if unknown := self.reading.unknown(kind):
            names = listed([f"“{word}”" for word in unknown[:3]])
            means = "means" if len(unknown) == 1 else "mean"
            return f"I cannot tell what {names} {means} in `{self.frame.name}`"
        if self.reading.reason or isinstance(found, str):
            return self.reading.reason or str(found)
        if unused := self._unused(found):
            return f"I cannot tell what `{unused}` has to do with it"
        return msgspec.structs.replace(found, yes_no=self.reading.word(0) in YES_NO)

    def _query(self) -> Query | str:
        says, where = self.reading.says, self._where(self.values)
        without = self._without()
        if says(PLOT):
            return self._plotted()
        if without or says(MISSING):
            columns = self.named or tuple(c.name for c in self.frame.columns)
            rows = self.named or where or says({"row", "rows"})
            return Query("missing", columns, "count" if rows else "sum", where=where)
        if says(RELATION):
            if len(self.numbers) != 2:
                return "a correlation needs two columns of numbers"
            return Query("correlation", self.numbers, where=where)
        if says(SUMMARY):
            if self.by:
                return Query("aggregate", self.numbers or self._only(), "mean", self.by, where)
            return "I only describe a frame as a whole" if where else Query("summary", self.named)
        if says(GROWTH | SHRINK):
            return self._grown()
        if says(SHARE):
            return self._shared()
        if compared := self._compares() or self._compares_years():
            return compared
        if says(DISTINCT) and not self.by:
            if len(self.named) != 1:
                return "I cannot tell of which column the different values are meant"
            return self._distinct(where)
        if not self.by and (latest := self._latest(where)):
            return latest
        if self._is_range():
            date = self.frame.date.name if self.frame.date else ""
            return Query("range", (next(iter(self.named), date),), where=where)
        if says(SORT) and not self.by and len(self.named) == 1:
            return self._sorted(where)
        if says(COUNT):
            return self._count(where)
        return self._computed(where)

    def _computed(self, where: tuple[Condition, ...]) -> Query | str:
        """A ranking or a statistic, else rows or the frame itself."""
        says = self.reading.says
        # "The average age of survivors": a column of yes and no says which rows are meant.
        yes = [n for n in self.numbers if self.frame.column(n).binary]
        if len(self.numbers) > len(yes) > 0:
            self.numbers = tuple(n for n in self.numbers if n not in yes)
            where = (*where, *(self._is_true(n) for n in yes))
        if self.order:
            return self._ranking(where)
        if self.statistic and not self.numbers:
            if self.named and not self.by:
                return f"`{self.named[0]}` holds no numbers"
            self.numbers = self.reading.meant_by_verb() or self._only()
            if not self.numbers:
                return "I cannot tell which column is meant"
        if self.numbers or self.by:
            return self._aggregate(where)
        if where:
            return Query("rows", (), where=where, top=10)
        if says(SHAPE):
            return Query("shape")
        if says(SHOW) or len(self.tokens) == 1:
            return Query("show", top=self.top)
        if not self.named:
            return Query("summary")
        return self._distinct(where)

    def _unused(self, query: Query) -> str:
        """A column or value that was named and is not in the query, "" if there is none."""
        used = {*query.measures, *(k.column for k in query.by), *(c.column for c in query.where)}
        held = {(c.column, c.value) for c in query.where}
        for token in self.tokens:
            if token.role == "column" and not used & set(token.columns) and query.kind != "shape":
                return token.columns[0]
            unheld = token.role == "value" and (token.columns[0], token.value) not in held
            if unheld and str(token.value) not in query.subjects:
                return str(token.value)
        return ""

    # Its parts

    def _where(self, values: Sequence[Token]) -> tuple[Condition, ...]:
        """What rows have to be: these values, and what dates and comparisons say."""
        said = [Condition(t.columns[0], "==", t.value) for t in values]
        return tuple(dict.fromkeys([*said, *self.reading.conditions]))

    def _is_measure(self, name: str) -> bool:
        column = self.frame.column(name)
        return column.numeric or column.binary

    def _only(self) -> tuple[str, ...]:
        """The one column of numbers, if there is but one."""
        found = [c.name for c in self.frame.columns if c.numeric and not c.counted and not c.binary]
        return tuple(found) if len(found) == 1 else ()

    def _default(self, measures: Sequence[str]) -> Statistic:
        """What is made of columns where nothing is said: amounts are added up."""
        added = any(part in ADDED for measure in measures for part in parts_of(measure))
        return "sum" if added else "mean"

    def _near(self, index: int) -> set[str]:
        """The two words before one."""
        return {self.reading.word(index - 1), self.reading.word(index - 2)}

    def _keys(self) -> list[tuple[int, Key]]:
        """What the question groups by, and where it says so."""
        found: list[tuple[int, Key]] = []
        for index, token in enumerate(self.tokens):
            if token.role == "column" and len(token.columns) == 1:
                column = self.frame.column(token.columns[0])
                if self._groups(index, column) or (
                    self._joined(index, found) and (column.counted or not column.numeric)
                ):
                    found.append((index, Key(column.name, self._granularity(column))))
            elif not token.role and (period := self._period(index)) is not None:
                date = self.frame.date
                if date is not None:
                    period = self._granularity(date) if period == "day" else period
                    token.role = "period"
                    found.append((index, Key(date.name, period)))
        return found

    def _groups(self, index: int, column: Column) -> bool:
        """Whether what is said before a column makes it one to group by."""
        near = self._near(index)
        if column.binary:
            return bool(near & {"by", "per", "each", "every"})
        asked = self.reading.word(index - 1) in ("which", "what")
        said = near & (EACH | {"between", "across", "which"})
        return (column.counted or not column.numeric) and bool(asked or said)

    def _joined(self, index: int, found: Sequence[tuple[int, Key]]) -> bool:
        """Whether a column goes on from one that is grouped by: "by sex and class"."""
        between = self.reading.words[found[-1][0] + 1 : index] if found else []
        return bool(between) and set(between) <= {"and", "the", "then"}

    def _period(self, index: int) -> Period | None:
        """The period that a word groups by, None if it does not."""
        word, before, after = (self.reading.word(i) for i in (index, index - 1, index + 1))
        if word not in PERIODS or self.frame.date is None:
            return None
        asked = before in ("which", "what") or word in ("annual", "when") or word.endswith("ly")
        most = before in UP | DOWN or (before.endswith("est") and adjective(before) is not None)
        said = self._near(index) & (EACH | {"which"})
        if not (asked or most or said or (word in ("date", "day") and before == "on")):
            return None
        if word == "day" and after == "of":
            for i in (index + 1, index + 2, index + 3):
                if self.reading.word(i) in ("of", "the", "week"):
                    self.tokens[i].role = "part"
            return "weekday"
        return PERIODS[word]

    def _granularity(self, column: Column) -> Period:
        """The period "day" where a column has times of the day, "" where it has days already."""
        clock = any(not t.endswith("00:00:00") and len(t) > 10 for t in column.examples)
        return "day" if column.dated and clock else ""

    def _top(self) -> int | None:
        """The number of "top 3", "five largest" or "first 10 rows"."""
        for index, token in enumerate(self.tokens):
            number = NUMBERS.get(token.word) or (int(token.word) if token.word.isdigit() else None)
            if token.role or number is None:
                continue
            before, after = self.reading.word(index - 1), self.reading.word(index + 1)
            ranked = adjective(after) is not None or after in UP | DOWN | {"rows", "row"}
            if ranked or before in UP | DOWN | {"first", "last", "the"}:
                token.role = "number"
                return max(1, min(number, 50))
        return None

    def _last_number(self) -> int | None:
        numbers = [t for t in self.tokens if not t.role and t.word.isdigit()]
        if not numbers:
            return None
        numbers[-1].role = "number"
        return max(1, min(int(numbers[-1].word), 50))

    def _direction(self) -> tuple[Order, str, tuple[str, ...]]:
        """The order that a superlative asks for, its word, and the columns that it is about."""
        # "Which year was wetter?" asks for the wettest.
        wetter = "than" not in self.reading.words and self.reading.says({"which"})
        for index, token in enumerate(self.tokens):
            word, after = token.word, self.reading.word(index + 1)
            if token.role:
                continue
            if word in ("most", "least") and (known := adjective(after)):
                self.tokens[index + 1].role = token.role = "superlative"
                up = known[0] == (word == "most")
                return _order(up), f"{word} {after}", self.reading.measured(known[1])
            if word in UP | DOWN:
                token.role = "superlative"
                return _order(word in UP), word, ()
            ends = word.endswith("est") or (wetter and word.endswith("er"))
            if ends and (known := adjective(word)):
                token.role = "superlative"
                return _order(known[0]), word, self.reading.measured(known[1])
        return "", "", ()

    def _comparative(self) -> tuple[bool, str, tuple[str, ...]] | None:
        """Whether more is said to be there, the word, and the columns that it is about."""
        for index, token in enumerate(self.tokens):
            word, after = token.word, self.reading.word(index + 1)
            if token.role:
                continue
            if word in ("more", "less") and (known := adjective(after)):
                self.tokens[index + 1].role = token.role = "comparative"
                up = known[0] == (word == "more")
                return up, f"{word} {after}", self.reading.measured(known[1])
            known = adjective(word) if word.endswith("er") or word in MORE | LESS else None
            if known or word in ("more", "less", "fewer", "greater", "higher", "lower"):
                token.role = "comparative"
                up = word in MORE or (word not in LESS and known is not None and known[0])
                return up, word, self.reading.measured(known[1]) if known else ()
        return None

    def _is_true(self, name: str) -> Condition:
        """That a column of yes and no says yes, or no where the question has a "not"."""
        negated = [t for t in self.tokens if not t.role and t.word in NEGATIONS]
        for token in negated:
            token.role = "negation"
        value = not negated
        return Condition(name, "==", int(value) if self.frame.column(name).numeric else value)

    def _one_of(self, measures: Sequence[str], order: Order) -> tuple[str, ...]:
        """One measure: of temp_max and temp_min the one that an order is about."""
        if len(measures) < 2 or not order:
            return tuple(measures)
        wanted = "max" if order == "descending" else "min"
        fitting = [m for m in measures if wanted in parts_of(m)]
        return tuple(fitting[:1] or measures[:1])

    # What is asked

    def _without(self) -> bool:
        """Whether rows are counted that "have no age" or are "without age"."""
        for index, token in enumerate(self.tokens):
            if token.role or token.word not in ("no", "without"):
                continue
            following = self.tokens[index + 1 : index + 3]
            if self.reading.says(COUNT) and any(t.role == "column" for t in following):
                token.role = "negation"
                return True
        return False

    def _is_range(self) -> bool:
        says = self.reading.says
        timed = self.frame.date is not None
        dates = timed and says({"date", "dates", "time", "period", "days"})
        if says({"range"}) and (self.named or dates):
            return True
        if says({"cover", "covers", "covered", "span", "spans"}):
            return timed
        return dates and says({"earliest", "latest", "start", "end"}) and not says({"which"})

    def _latest(self, where: tuple[Condition, ...]) -> Query | None:
        """A question for the last or the first in time, None if it is none."""
        date = self.frame.date
        for index, token in enumerate(self.tokens):
            if token.role or token.word not in LATEST or date is None or not self.numbers:
                continue
            after = self.reading.word(index + 1)
            if after in PERIODS or after.isdigit():
                continue
            token.role = "order"
            if self.reading.word(index - 1) == "most":
                self.tokens[index - 1].role = "order"
            first = token.word in ("earliest", "oldest", "first")
            return Query(
                "rows",
                (date.name, *self.numbers),
                where=where,
                order=_order(not first),
                top=1,
                wants="first",
            )
        return None

    def _distinct(self, where: tuple[Condition, ...]) -> Query:
        if self.reading.says(COUNT):
            return Query("aggregate", self.named[:1], "nunique", where=where)
        return Query("values", self.named[:1], where=where)

    def _sorted(self, where: tuple[Condition, ...]) -> Query:
        order: Order = self.order or "ascending"
        down = word_set("descending decreasing desc")
        for token in self.tokens:
            if token.word in down | word_set("ascending increasing asc"):
                token.role = "order"
                order = _order(token.word in down)
        count = self.top or self._last_number() or 10
        return Query("rows", self.named, where=where, order=order, top=count)

    def _plotted(self) -> Query | str:
        frame, numbers, by = self.frame, self.numbers, self.by
        said = {t.word for t in self.tokens if not t.role}
        chart = next((chart for chart, words in CHARTS.items() if said & words), "")
        where = self._where(self.values)
        others = [name for name in self.named if name not in numbers]
        over = said & {"over", "time", "trend"}
        if over and frame.date and not any(k.column == frame.date.name for k in by):
            by = (Key(frame.date.name), *by)
        by = by or tuple(Key(name) for name in others[:1])
        against = said & {"against", "vs", "versus"}
        for token in self.tokens:
            if not token.role and token.word in ("against", "trend"):
                token.role = "operator"
        if len(numbers) == 2 and (against or chart == "scatter"):
            pair = numbers[::-1] if against else numbers
            return Query("plot", pair, where=where, chart="scatter")
        if chart == "hist" and numbers and not by:
            return Query("plot", numbers[:1], where=where, chart="hist")
        if chart == "hist" and by and not numbers:
            chart = "bar"
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
        by = tuple(sorted(by, key=lambda key: not frame.column(key.column).dated))[:2]
        if len(by) == 2 and numbers and self._default(numbers) == "sum":
            by = (self._by_month(by[0]), by[1])
        statistic: Statistic = "count"
        if numbers:
            one_each = by[0].period == "" and frame.is_key(by[0].column)
            plain = one_each or (len(by) == 2 and not any(key.period for key in by))
            statistic = self.statistic or ("mean" if plain else self._default(numbers))
        chart = "" if chart == "line" else chart or (
            "" if frame.column(by[0].column).dated else "bar"
        )  # fmt: skip
        return Query("plot", numbers, statistic, by, where, chart=chart)

    def _by_month(self, key: Key) -> Key:
        """The key by months where a line of each group would have gaps on most days."""
        column = self.frame.column(key.column)
        many = column.dated and (column.different or 0) > 60
        return Key(key.column, "month") if many and not key.period else key

    def _grown(self) -> Query | str:
        frame, by, order = self.frame, self.by, self.order
        says = self.reading.says
        wants: Wants = "first" if order or (by and says({"which"})) else "growth"
        direction = _order(says(SHRINK) == (order == "ascending"))
        years = tuple(sorted(c.name for c in frame.columns if c.numeric and _year(c.name)))
        pair = self.numbers if len(self.numbers) == 2 else () if self.numbers else years
        where = self._where(self.values)
        if len(pair) >= 2:
            labels = by or tuple(Key(c.name) for c in frame.columns if not c.numeric)[:1]
            ends = (pair[0], pair[-1])
            return Query("growth", ends, by=labels, where=where, order=direction, wants=wants)
        year = next((c.name for c in frame.columns if "year" in parts_of(c.name)), "")
        if frame.date is None and not year:
            return f"`{frame.name}` has no dates to tell a growth by"
        usual = ("close", "price", "value", "revenue", "sales", "amount", "total")
        measures = (self.numbers or self.reading.named_like(*usual) or self._only())[:1]
        if not measures:
            return "I cannot tell which column has grown"
        groups = tuple(k for k in by if not k.period and not frame.column(k.column).dated)[:1]
        if groups and frame.date and not self.years:
            return Query("change", measures, by=groups, where=where, order=direction, wants=wants)
        if groups:
            return "I tell the growth of groups from first to last, and not between years"
        statistic = self.statistic or self._default(measures)
        periods = tuple(key for key in by if key.period)
        if len(self.years) < 2 and not periods and statistic != "sum" and frame.date:
            return Query("change", measures, where=where, order=direction, wants="growth")
        key = Key(year) if year else Key(frame.date.name, "year") if frame.date else Key("")
        if len(self.years) > 1:
            part: Part = "year" if key.period else ""
            low, high = min(self.years), max(self.years)
            kept = [c for c in where if c.value not in self.years]
            ends_of = (
                Condition(key.column, ">=", low, part),
                Condition(key.column, "<=", high, part),
            )
            where = (*kept, *ends_of)
        return Query(
            "aggregate", measures, statistic, periods or (key,), where, direction, wants="growth"
        )

    def _shared(self) -> Query | str:
        values, by, numbers = self.values, self.by, self.numbers
        binary = tuple(n for n in numbers if self.frame.column(n).binary)[:1]
        if binary:
            where = self._where(values)
            if self.order and by:
                return Query(
                    "aggregate", binary, "mean", by, where, self.order, wants="first",
                    word=self.superlative,
                )  # fmt: skip
            return Query("aggregate", binary, "mean", by, where, wants="share")
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
            self._where(values),
            "descending",
            wants="share",
            subjects=subjects,
        )

    def _compares(self) -> Query | str | None:
        """A question whether one group is more than another, None if it is none."""
        columns = {token.columns[0] for token in self.values}
        joined = self.reading.says(THAN | {"compare", "comparison", "and"})
        if len(self.values) != 2 or len(columns) != 1 or not joined:
            return None
        more = self._comparative()
        measures = (self.numbers or (more[2] if more else ()))[:1]
        if not measures and not self.reading.says(COUNT) and not (more and more[1] == "more"):
            return "I cannot tell by which column to compare"
        binary = bool(measures) and self.frame.column(measures[0]).binary
        statistic: Statistic = "mean" if binary else self.statistic or self._default(measures)
        return Query(
            "aggregate",
            measures,
            statistic if measures else "count",
            tuple(Key(column) for column in columns),
            self._where([]),
            _order(more is None or more[0]),
            wants="compare" if more else "",
            subjects=tuple(str(token.value) for token in self.values),
            word=more[1] if more else "",
        )

    def _compares_years(self) -> Query | str | None:
        """A question whether one year is more than another, None if it is none."""
        if len(self.years) != 2 or not self.reading.says({"than"}):
            return None
        more = self._comparative()
        measures = self.numbers or (more[2] if more else ())
        if more is None or not measures:
            return "I cannot tell by which column to compare"
        year = next(c for c in self.reading.conditions if c.value in self.years)
        order = _order(more[0])
        measures = self._one_of(measures, order)[:1]
        return Query(
            "aggregate",
            measures,
            self.statistic or self._default(measures),
            (Key(year.column, "year" if year.part else ""),),
            self._where(self.values)[: len(self.values)],
            order,
            wants="compare",
            subjects=(str(self.years[0]), str(self.years[1])),
            word=more[1],
        )

    def _count(self, where: tuple[Condition, ...]) -> Query | str:
        frame, by, numbers, order = self.frame, self.by, self.numbers, self.order
        says = self.reading.says
        if says({"columns", "column", "variables", "fields", "features"}):
            return Query("shape")
        if self.statistic in ("mean", "median"):
            return self._aggregate(where) if numbers else "I cannot tell which column is meant"
        wants: Wants = "first" if order else ""
        chosen: Order = order or ("descending" if by and not by[0].period else "")
        many = self._after_many()
        binary = [name for name in numbers if frame.column(name).binary]
        if binary:
            where = (*where, *(self._is_true(name) for name in binary))
        elif numbers and self._default(numbers) == "sum":
            return Query("aggregate", numbers[:1], "sum", by, where, chosen, wants=wants)
        elif len(self.named) == 1:
            column = frame.column(self.named[0])
            grouping = column.counted or not column.numeric
            is_named = any(fit_of(part, many) >= 2 for part in parts_of(column.name))
            if grouping and is_named:
                return Query("aggregate", self.named, "nunique", by, where, chosen, wants=wants)
            if grouping and not by:
                by, chosen = (Key(column.name),), "descending"
        days = many in ("day", "days", "date", "dates")
        if days and frame.date and not frame.is_key(frame.date.name) and not by:
            return Query("aggregate", (frame.date.name,), "nunique", (), where)
        return Query(
            "aggregate", (), "count", by, where, chosen, self.top, wants, word=self.superlative
        )

    def _after_many(self) -> str:
        """What is counted: the word after "how many" or "number of"."""
        words = self.reading.words
        skipped = ("of", "the", "different", "distinct", "trading", "unique")
        for index, word in enumerate(words):
            if word in ("many", "number"):
                return next((w for w in words[index + 1 : index + 4] if w not in skipped), "")
        return ""

    def _ranking(self, where: tuple[Condition, ...]) -> Query | str:
        frame, order, word, by = self.frame, self.order, self.superlative, self.by
        says = self.reading.says
        measures = self.numbers or self.ranked or self.reading.meant_by_verb()
        measures = self._one_of(measures, order)
        labels = [c for c in self.named if not frame.column(c).numeric]
        if not by:
            by = tuple(Key(c) for c in labels if not frame.column(c).dated)[:1]
        if not measures:
            known = adjective(word.split()[-1])
            common = (known is not None and "count" in known[1]) or word in ("most", "fewest")
            if by and common:
                return Query(
                    "aggregate", (), "count", by[:1], where, order, self.top, "first", word=word
                )
            return f"I cannot tell which column “{word}” is about"
        extreme: Statistic = "max" if order == "descending" else "min"
        first: Wants = "first" if self.top is None else ""
        rows = Query(
            "rows", measures, by=by, where=where, order=order, top=self.top, wants=first, word=word
        )
        if self._asks_when(measures):
            others = tuple(key for key in by if not frame.column(key.column).dated)
            return msgspec.structs.replace(rows, by=others)
        if not by:
            asked = self.top or says(_WHICH - {"what"} | {"row"}) or self.statistic
            keyed = any(not c.numeric and frame.is_key(c.name) for c in frame.columns)
            plain = Query("aggregate", measures, extreme, (), where)
            return rows if asked or keyed else plain
        each = any(self._is_each(key) for key in by)
        if each and not self.top and not says({"which", "who"}):
            return Query("aggregate", measures, extreme, by, where)
        if len(by) == 1 and not by[0].period and frame.is_key(by[0].column):
            return rows
        statistic = self.statistic or self._default(measures)
        return Query(
            "aggregate", measures, statistic, by, where, order, self.top, "first", word=word
        )

    def _asks_when(self, measures: Sequence[str]) -> bool:
        """Whether "when" asks at what time a row was, and not for the day that has most in all."""
        words, periods = self.reading.words, {t.word for t in self.tokens if t.role == "period"}
        if periods != {"when"} or self.statistic:
            return False
        beside = self.reading.word(words.index("when") - 1) == "and"
        return beside or self._default(measures) == "mean"

    def _is_each(self, key: Key) -> bool:
        """Whether the question says "of each" of a key: a superlative is then one for each."""
        for index, token in enumerate(self.tokens):
            named = token.role == "column" and key.column in token.columns
            each = self._near(index) & {"each", "every", "per", "by"}
            if each and (named or token.role == "period"):
                return True
        return False

    def _aggregate(self, where: tuple[Condition, ...]) -> Query | str:
        says, by, numbers = self.reading.says, self.by, self.numbers
        if not numbers and by and says(COUNT | SHOW | {"list", "rows", "breakdown", "split"}):
            return Query("aggregate", (), "count", by, where, "descending")
        if not numbers and len(by) == 1 and not by[0].period and not self.named:
            return Query("values", (by[0].column,), where=where)
        if not numbers:
            return "I cannot tell what is to be computed"
        # "Is the average over 40?": the average itself is the answer.
        if self.statistic:
            where = tuple(c for c in where if c.column not in numbers or c.operator == "==")
        elif not by and not says({"much"}) and self._default(numbers) == "mean":
            if not where:
                return Query("summary", numbers)
            return Query("rows", numbers, where=where, top=10)
        statistic = self.statistic or self._default(numbers)
        timed = any(key.period or self._in_order(key.column) for key in by)
        order: Order = "descending" if by and not timed else ""
        return Query("aggregate", numbers[:4], statistic, by, where, order)

    def _in_order(self, name: str) -> bool:
        """Whether a column has an order of its own, so that its groups are shown in it."""
        column = self.frame.column(name)
        return column.dated or column.numeric


def _year(name: str) -> bool:
    return _YEAR.fullmatch(name) is not None


def _order(descending: bool) -> Order:
    return "descending" if descending else "ascending"
