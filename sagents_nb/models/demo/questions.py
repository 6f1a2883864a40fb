"""How the demo model understands a question about a data frame: what is asked, as a query.

:mod:`reading` says what each word is. Here the subjects are asked in turn, the most particular
first, whether the question is theirs: plots, missing values, shares, growth, rankings and so on.
Each has a file, which makes the query; what no query may leave out is seen to here.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ...kinds import nearest
from .aggregates import aggregate_of
from .asked import Asked, neglected_word
from .comparisons import comparison_of
from .conditions import mark_conditions
from .counts import count_of
from .data_words import (
    ASKING,
    CHANGES,
    COUNT,
    DISTINCT,
    FILLERS,
    GROWTH,
    LATEST,
    MISSING,
    PLOT,
    RELATION,
    SHAPE,
    SHARE,
    SHOW,
    SHRINK,
    STATISTICS,
    STOCKS,
    SUMMARY,
    YES_NO,
)
from .dates import latest_of, mark_dates, mark_span, range_of, span_of
from .frames import Frame
from .growth import asks_for_growth, growth_of
from .history import listed
from .missing_values import missing_of, says_without
from .plots import plot_of
from .queries import Condition, Query, Statistic
from .rankings import ranking_of, sorting_of
from .reading import Reading, parts_of
from .shares import share_of
from .words import word_set

ABLE = (
    "I count, average, add up, rank, group, compare, correlate, sort and plot the columns of a "
    "data frame, and tell its shares, growth, different and missing values"
)
# Words that change nothing beside a column, and are what is asked for without one.
_AMOUNTS = word_set("amount amounts pay pays paid earn earns earned spend spends spent")


def read(question: str, frame: Frame) -> Query | str:
    """The query of a question; else why there is none, as the end of a sentence."""
    if frame.ambiguous:
        return f"two columns of `{frame.name}` have the same name"
    if len(question) > 1000:
        return "it is too long for me"
    reading = Reading(question, frame)
    mark_dates(reading)  # before the conditions: a year is no number to compare with
    mark_conditions(reading)
    mark_span(reading)
    return _Question(reading).query()


def statistic_of(text: str) -> Statistic | None:
    """The statistic that a text names, None without one."""
    found = (STATISTICS.get(word) for word in re.findall(r"[a-z]+", text.lower()))
    return next((statistic for statistic in found if statistic), None)


def names_frame(text: str, name: str) -> bool:
    """Whether a text names that frame, in backticks or as a word."""
    if name.lower() in FILLERS:  # such as "data" is more often a word than a name
        return f"`{name}`" in text
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", text))


class _Question(Asked):
    """What one question asks, as a query."""

    def query(self) -> Query | str:
        """The query, else the reason why there is none."""
        averages = [c for c in self.reading.conditions if c.statistic]
        groups = tuple(key for key in self.by if not self.frame.column(key.column).numeric)
        of_groups = groups and not self.one_each(groups, self.reading.conditions)
        if averages and (of_groups or self.reading.word(0) in YES_NO):
            return "I compare single rows with an average, and no groups"
        if self.reading.word(0) in CHANGES and not self.reading.says(PLOT | GROWTH):
            return "I only look at data and change none"
        found = self._query()
        kind = found.kind if isinstance(found, Query) else None
        if unknown := self.reading.unknown(kind):
            names = listed([f"“{word}”" for word in unknown[:3]])
            means = "means" if len(unknown) == 1 else "mean"
            near = self._near(unknown[0]) if len(unknown) == 1 else ""
            asks = f" (is {near} meant?)" if near else ""
            return f"I cannot tell what {names} {means} in `{self.frame.name}`{asks}"
        if self.reading.reason or isinstance(found, str):
            return self.reading.reason or str(found)
        measured = found.kind in ("rows", "summary", "change", "plot") or found.measures
        counts = found.statistic in ("count", "nunique") and found.kind == "aggregate"
        lacking = measured and not counts and not self.reading.meant_by_verb()
        if lacking and (word := self.lacking(_AMOUNTS)):
            return f"`{self.frame.name}` has no column “{word}”"
        if found.wants == "first" and found.order and found.kind in ("rows", "aggregate"):
            found = replace(found, rank=self.rank)
        if unadded := self._unadded(found):
            return f"`{unadded}` of several years does not add up: name one"
        if unused := self._unused(found):
            return f"I cannot tell what `{unused}` has to do with it"
        if neglected := neglected_word(self, found):
            return f"I cannot tell what “{neglected}” asks for here"
        assumed = self.reading.assumed
        counts = found.kind == "plot" and found.statistic == "count" and not found.measures
        if assumed and found.kind in ("summary", "show", "shape", "plot") and not counts:
            return f"I cannot tell what “{assumed[0]}” means in `{self.frame.name}`"
        yes_no = self.reading.word(0) in YES_NO and not self._chooses()
        return replace(found, yes_no=yes_no, assumed=assumed, things=self._rowwise(found))

    def _near(self, word: str) -> str:
        """What somebody may have meant who wrote that: a column, or a word that asks."""
        if word in LATEST:
            return ""
        if column := nearest(word, (c.name for c in self.frame.columns)):
            return f"`{column}`"
        asking = nearest(word, (known for known in ASKING - {word} if len(known) > 4), 0.8)
        return f"“{asking}”" if asking else ""

    def _query(self) -> Query | str:
        says, where = self.reading.says, self.where(self.values)
        if not (says(GROWTH | SHRINK) and len(self.years) > 1):
            self.by = tuple(dict.fromkeys([*self.by, *self.compared]))
        if self.reading.words.count("many") > 1 and not self.compared:
            return "it asks for two counts at once"
        without = says_without(self)
        over_time = "over time" in " ".join(self.reading.words)
        if says(PLOT) or (says(SHOW) and over_time):
            return plot_of(self)
        if span := span_of(self, where):
            return span
        if without or says(MISSING):
            return missing_of(self, where)
        if says(RELATION):
            named = [c for t in self.tokens if t.role == "column" for c in t.columns]
            numbers = tuple(dict.fromkeys(c for c in named if self.is_measure(c)))
            self.by = tuple(key for key in self.by if key.column not in numbers)
            if len(numbers) != 2:
                return "a correlation needs two columns of numbers"
            return Query("correlation", numbers, where=where)
        if says(SUMMARY):
            if self.by:
                return Query("aggregate", self.numbers or self.only(), "mean", self.by, where)
            return "I only describe a frame as a whole" if where else Query("summary", self.named)
        if asks_for_growth(self):
            return growth_of(self)
        if says(SHARE):
            return share_of(self)
        if compared := comparison_of(self):
            return compared
        if says(DISTINCT) and not self.by:
            if len(self.named) != 1:
                return "I cannot tell of which column the different values are meant"
            return self._distinct(where)
        if latest := latest_of(self, where):
            return latest
        if ends := range_of(self, where):
            return ends
        if sorting := sorting_of(self, where):
            return sorting
        if says(COUNT):
            return count_of(self, where)
        return self._computed(where)

    def _computed(self, where: tuple[Condition, ...]) -> Query | str:
        """A ranking or a statistic, else rows or the frame itself."""
        says = self.reading.says
        # "The average age of survivors": a column of yes and no says which rows are meant.
        yes = [n for n in self.numbers if self.frame.column(n).binary]
        if len({*self.numbers, *self.ranked}) > len(yes) > 0:
            self.numbers = tuple(n for n in self.numbers if n not in yes)
            where = (*where, *(self.is_true(n) for n in yes))
        if self.order:
            return ranking_of(self, where)
        if self.statistic and not self.numbers:
            if self.named and not self.by:
                return f"`{self.named[0]}` holds no numbers"
            bounds = tuple(c.column for c in where if c.operator in (">", ">=", "<", "<="))
            asked = bounds[:1] if self.reading.word(0) in YES_NO else ()
            self.numbers = asked or self.reading.meant_by_verb() or self.only()
            if not self.numbers:
                return "I cannot tell which column is meant"
        if self.numbers or self.by:
            return aggregate_of(self, where)
        told = {condition.column for condition in where}
        wanted = tuple(name for name in self.named if name not in told)
        if self.reading.word(0) == "list" and len(wanted) == 1:
            return Query("values", wanted, where=where)
        if where:
            return Query("rows", (), where=where, top=10)
        if says(SHAPE):
            return Query("shape")
        if says(SHOW) or len(self.tokens) == 1 or (self.top and says({"row", "rows"})):
            if says({"last", "bottom"}):
                return "I show rows from the first one on"
            return Query("show", top=self.top)
        if not self.named:
            return Query("summary")
        return self._distinct(where)

    def _unadded(self, query: Query) -> str:
        """A column that is added up over times that each have all of it, "" without one."""
        times = {self.year, self.frame.date.name if self.frame.date else ""} - {""}
        told = {key.column for key in query.by} | {
            c.column for c in query.where if c.operator == "=="
        }
        if query.kind not in ("aggregate", "plot") or query.statistic != "sum" or times <= told:
            return ""
        return next((m for m in query.measures if STOCKS & set(parts_of(m))), "")

    def _unused(self, query: Query) -> str:
        """A column or value that was named and is not in the query, "" if there is none."""
        said = query.conditions
        used = {
            *query.measures,
            *query.told,
            *(k.column for k in query.by),
            *(c.column for c in said),
        }
        held = {(c.column, c.value) for c in said if c.operator != "in"}
        held |= {(c.column, v) for c in said if c.operator == "in" for v in c.value}
        for token in self.tokens:
            if token.role == "column" and not used & set(token.columns) and query.kind != "shape":
                column = token.columns[0]
                if token.word != column.lower() and self.frame.is_key(column):
                    continue  # "students" are the rows, each of which is another student
                return column
            unheld = token.role == "value" and (token.columns[0], token.value) not in held
            if unheld and str(token.value) not in query.subjects:
                return str(token.value)
        return ""

    def _rowwise(self, query: Query) -> str:
        """The column of the things that it asks of, where the query takes each row by itself."""
        counts = not query.measures and query.statistic in ("count", "mean")
        averages = query.measures and query.statistic in ("mean", "median")
        rows = query.kind == "rows" and query.measures
        if not rows and (query.kind not in ("aggregate", "plot") or not (counts or averages)):
            return ""
        things = self.reading.things
        told = {key.column for key in query.by} | {c.column for c in query.conditions}
        return "" if things in told or things in query.measures else things

    def _chooses(self) -> bool:
        """Whether one of two is asked for: "Did A or B have more?", which is no yes and no no."""
        return "or" in self.reading.words and "than" not in self.reading.words

    def _distinct(self, where: tuple[Condition, ...]) -> Query:
        if self.reading.says(COUNT):
            return Query("aggregate", self.named[:1], "nunique", where=where)
        return Query("values", self.named[:1], where=where)
