"""What the words of a question about a data frame are: its columns, its values, or others.

Every word has to be accounted for: as one of these, as what is to be done, or as one that changes
nothing. A question with a word that means something else is not answered, since the answer would
be to another question.
"""

from __future__ import annotations

import re
from calendar import day_name
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from .data_words import (
    AFTER_VERB,
    ALIASES,
    CONSUMING,
    COUNT,
    DISTINCT,
    DOWN,
    EACH,
    FILLERS,
    GROWTH,
    LESS,
    MEANT_BY,
    MISSING,
    MORE,
    NEGATIONS,
    NUMBERS,
    ORDINAL_NAMES,
    PERIODS,
    PLOT,
    RANGE,
    RELATION,
    ROWS,
    SHAPE,
    SHARE,
    SHOW,
    SHRINK,
    SINGLE,
    SORT,
    STATISTICS,
    STEPS,
    SUMMARY,
    SYNONYMS,
    THAN,
    UNITS,
    UP,
    VALUES_SAME,
)
from .frames import Column, Frame
from .queries import Condition, Period
from .things import named_thing, thing_of, unsure_thing_of
from .words import QUANTITIES, adjective, stem, word_set

_TOKEN = re.compile(
    r"`[^`\n]+`|\d{4}-\d\d-\d\d|per[ -]capita\b|"
    r"[1-8](?:st|nd|rd|th)\b|[A-Za-z_][\w]*(?:['’][a-z]+)?|\d+(?:,\d+)*(?:\.\d+)?|[<>]=?|[%@#&=]"
)
_MIXED = re.compile(r"\d+[A-Za-z]\w*")
_SIGNED = re.compile(r"\w+[%#&/.-][\w%#&/.-]*")
_POSSESSIVE = re.compile(r"['’]s$")
_ORDINAL = re.compile(r"[1-8](?:st|nd|rd|th)")
# What stands before a thing that is counted, or listed, and what may stand between.
_COUNTS_IT = word_set("many most fewest least more fewer number count")
_LISTS_IT = word_set("which what list")
_BETWEEN = word_set("the all of total individual separate") | DISTINCT
_ROWS = word_set("row rows record records entry entries")
_STEPPED = word_set("day week month quarter year")
_WEEKDAYS = {name.lower() for name in day_name}
# Words that say what to do and change nothing where something else is done, by kind of query.
_ALWAYS = SHOW | COUNT | EACH | AFTER_VERB
_DOES: dict[str, frozenset[str]] = {
    "plot": PLOT | THAN,
    "missing": MISSING | SHARE,
    "values": DISTINCT,
    "correlation": RELATION | THAN,
    "growth": GROWTH | SHRINK,
    "change": GROWTH | SHRINK,
    "rows": SORT,
    "range": RANGE,
    "shape": SHAPE,
    "summary": SUMMARY,
    "show": SHOW,
    "aggregate": DISTINCT | SHARE | THAN | SUMMARY | SORT | GROWTH | SHRINK,
}
_AMOUNT_AFTER = word_set("the most least more less fewest fewer")


class Token(msgspec.Struct):
    """A word of a question and what it was read as: its role, "" as long as it is free.

    ``columns`` are those that it may name, several where that is not clear; ``value`` is the
    value of one or a year.
    """

    text: str
    word: str
    role: str = ""
    columns: tuple[str, ...] = ()
    value: Any = None


def is_label(name: str) -> bool:
    """Whether the numbers of a column of that name are names: years and ids, and no amounts."""
    return bool({"year", "id"} & set(parts_of(name)))


def parts_of(column: str) -> list[str]:
    """The words of a column's name without units."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", column)
    words = [w.lower() for w in re.findall(r"[A-Za-z]+|\d+", spaced)]
    return [w for w in words if w not in UNITS] or words


def fit_of(part: str, word: str) -> int:
    """How well a word names a part of a column: 3 by its stem, 2 as a part of it, 1 as another."""
    if stem(part) == stem(word) or word in ALIASES.get(part, ()):
        return 3
    begins = len(part) >= 4 and word.startswith(part)
    begins = begins or (len(stem(part)) >= 5 and word.startswith(stem(part)))  # of recovered
    if begins or (len(word) >= 4 and (part.startswith(word) or part.endswith(word))):
        return 2
    shared = SYNONYMS.get(stem(part), set()) & SYNONYMS.get(stem(word), set())
    return 1 if shared else 0


class Reading:
    """A question about a frame, word by word.

    What its times and its comparisons say is read after it, by :mod:`dates` and
    :mod:`conditions`: they put to ``conditions`` what rows have to be, and to ``of_part`` what it
    says from which to which, be it months or quarters; ``spans`` says that it asks from when to
    when. ``steps`` is where it says "from year to year", and of which periods; ``reason`` is what
    could not be read, "" if all could. ``counted`` is the column of the things that are counted,
    of which several rows may be, "" if rows are.
    """

    def __init__(self, question: str, frame: Frame) -> None:
        self.frame = frame
        self.tokens = _numbered([_token(text) for text in _splitter(frame).findall(question)])
        self.words = [token.word for token in self.tokens]
        self.conditions: list[Condition] = []
        self.reason = ""
        self.of_part: Literal["", "month", "quarter"] = ""
        self.spans = False
        for index, token in enumerate(self.tokens):
            if token.word == "often" and self.word(index - 1) == "how":
                token.word = self.words[index] = "count"
            if token.word == "gap" and self.word(index + 1) in ("in", "between"):
                token.word = self.words[index] = "difference"
        self._mark_frame()
        self.identities: list[str] = []  # the columns of the things that are named, not measures
        self.counted = self._mark_things()
        self._mark_quantities()
        self.steps = self._mark_steps()
        self._mark_columns()
        self._mark_values()
        self._mark_yes()

    def is_free(self, index: int) -> bool:
        """Whether there is a word and it was not read as anything yet."""
        return 0 <= index < len(self.tokens) and not self.tokens[index].role

    def word(self, index: int) -> str:
        """The word there, "" before the first and after the last."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def joins(self, one: int, other: int) -> bool:
        """Whether the words between two only put them together: "sex and class"."""
        between = [t.word for t in self.tokens[one + 1 : other] if t.role != "part"]
        return bool(between) and set(between) <= {"and", "the", "then"}

    def says(self, words: Iterable[str]) -> bool:
        """Whether one of these words is there that is not a column or a value."""
        wanted = set(words)
        return any(t.word in wanted and t.role in ("", "number") for t in self.tokens)

    def _mark_frame(self) -> None:
        names = [c.name for c in self.frame.columns]
        ticked = any(token.text == f"`{self.frame.name}`" for token in self.tokens)
        for index, token in enumerate(self.tokens):
            if token.text == f"`{self.frame.name}`":
                token.role = "frame"
            elif token.text == self.frame.name:
                # "Which cities" in a frame of that name asks for its column of cities.
                before = self.word(index - 1)
                column = before == "which" and any(stem(n) == stem(token.word) for n in names)
                lead = self.word(index - 2) if before.isdigit() or before in NUMBERS else before
                measured = lead in STATISTICS or lead in UP | DOWN  # "total tips", "top 3 tips"
                told = ticked or measured or before in EACH  # "average temperature per sensor"
                column = column or (told and token.word in names)
                alike = any(stem(n) == stem(token.word) for n in names)
                column = column or (measured and lead not in ("most", "fewest") and alike)
                token.role = "" if column else "frame"
            elif token.text.startswith("`") and token.text.strip("`") in names:
                token.role, token.columns = "column", (token.text.strip("`"),)
            elif index and token.word == "s" and self.tokens[index - 1].role == "frame":
                token.role = "frame"

    def _mark_things(self) -> str:
        """The things that are counted or listed, as a column where several rows are of one."""
        counted = ""
        for index, token in enumerate(self.tokens):
            if token.role not in ("", "frame") or self.word(index + 1) in _ROWS:
                continue
            start = index - 1
            while self.word(start) in _BETWEEN or self._is_value(start):
                start -= 1  # "how many female patients"
            lead = self.word(start)
            different = bool(set(self.words[start + 1 : index]) & DISTINCT)
            if lead == "what" and start + 1 < index:
                continue  # "what is"
            if not (different or lead in _COUNTS_IT | _LISTS_IT):
                continue
            named = named_thing(token.word, self.frame) if lead == "list" else ""
            if thing := thing_of(token.word, self.frame) or named:
                token.role, token.columns = "column", (thing,)
                self.identities.append(thing)
                counted = counted or (thing if lead in _COUNTS_IT else "")
        return counted

    def _is_value(self, index: int) -> bool:
        """Whether a word is a value of a column that holds text."""
        return self.is_free(index) and self._value_of([self.tokens[index]]) is not None

    def _mark_quantities(self) -> None:
        """The column of a quantity that is asked for by its adjective: "how deep is Inari"."""
        for index, token in enumerate(self.tokens):
            if token.role or self.word(index - 1) != "how" or token.word in COUNT | SHAPE:
                continue
            known = adjective(token.word)
            named = self.measured(known[1]) if known and known[1] else ()
            named = tuple(name for name in named if not self.is_year(name))
            if len(named) == 1:
                token.role, token.columns = "column", named
            elif token.word == "old":
                self.reason = f"`{self.frame.name}` has no column of an age"

    @property
    def things(self) -> str:
        """The column of the things that are named and not counted, though rows are of them."""
        for index in range(len(self.tokens)):
            if self.word(index - 1) not in ("in", "from") and (found := self.thing(index)):
                return found
        return ""

    def thing(self, index: int) -> str:
        """The column of the things that a word names, of which several rows are; "" without."""
        token = self.tokens[index] if 0 <= index < len(self.tokens) else None
        if token is None or token.text.startswith("`"):
            return ""
        if token.role != "frame" and (token.role or token.word in FILLERS):
            return ""
        return thing_of(token.word, self.frame) or unsure_thing_of(token.word, self.frame)

    def _mark_steps(self) -> dict[int, Period]:
        """Where it says "from year to year" or "year over year": one time, and no two columns."""
        found: dict[int, Period] = {}
        for index, token in enumerate(self.tokens):
            again = self.word(index + 1) in STEPS and self.word(index + 2) == token.word
            if token.role or token.word not in _STEPPED or not again:
                continue
            for part in self.tokens[index : index + 3]:
                part.role = "period"
            found[index] = PERIODS[token.word]
        return found

    def _mark_columns(self) -> None:
        for length in (4, 3, 2, 1):
            for start in range(len(self.tokens) - length + 1):
                window = self.tokens[start : start + length]
                if any(token.role for token in window):
                    continue
                found = self._columns_of([token.word for token in window], start)
                if found:
                    for token in window:
                        token.role = "part"
                    window[0].role, window[0].columns = "column", found
        # "the length of the bill" names two columns twice, and one of them both times.
        refs = [i for i, t in enumerate(self.tokens) if t.role == "column"]
        for one, other in pairwise(refs):
            a, b = self.tokens[one], self.tokens[other]
            both = tuple(c for c in a.columns if c in b.columns)
            if both and other - one <= 3 and (len(a.columns) > 1 or len(b.columns) > 1):
                a.columns, b.role, b.columns = both, "part", ()

    def _columns_of(self, words: Sequence[str], start: int) -> tuple[str, ...]:
        """The columns that words name together."""
        single = len(words) == 1
        # "The average total bill" is one of a column of that name.
        lead = self.word(start - 1) in STATISTICS or self.word(start - 1) in UP | DOWN
        if not single and lead and words[0] in STATISTICS:
            named = [c.name for c in self.frame.columns if parts_of(c.name) == list(words)]
            return tuple(named)
        if any(w in FILLERS or w in EACH for w in (words[0], words[-1])):
            before = self.word(start - 1)
            asked = before in EACH or before in ("which", "what")
            beside = before == "and" and start > 1 and self.tokens[start - 2].role == "column"
            asked = asked or beside  # "by day and time"
            exact = [
                c.name
                for c in self.frame.columns
                if c.name.lower() == words[0] or (asked and stem(c.name) == stem(words[0]))
            ]
            plain = words[0] in ("type", "day", "amount")
            if words[0] in ("value", "level") and exact:  # and none of another column
                other = self.word(start + 2) if self.word(start + 1) == "of" else ""
                plain = not other or not self._columns_of([other], start + 2)
            return tuple(exact) if single and (asked or plain) else ()
        best = 0
        found: list[str] = []
        for column in self.frame.columns:
            score = self._fit(column, words)
            if score > best:
                best, found = score, []
            if score and score == best:
                found.append(column.name)
        return tuple(found)

    def _fit(self, column: Column, words: Sequence[str]) -> int:
        parts = parts_of(column.name)
        if len(words) == 1:
            word = words[0]
            if word == column.name.lower():
                return 0 if word in UP | DOWN and word.endswith("est") else 100
            reserved = word in STATISTICS or word in UP | DOWN | COUNT | PLOT | SHARE
            if reserved or word in PERIODS or word in SHAPE | MISSING | RANGE | SHOW:
                return 0
            noun = word in parts and word in QUANTITIES  # "rain" names the column of rain
            if (adjective(word) and not noun) or word in MORE | LESS:
                return 0
            if word in GROWTH | SHRINK and not (column.binary and stem(word) in map(stem, parts)):
                return 0  # the returns of orders are those that were returned
        plural = len(words) == 1 and words[0] != column.name.lower()
        if plural and self.frame.numbers_rows(column.name):
            return 0  # "how many runs" counts the rows that a column numbers
        if len(words) == 1 and _is_done(column, words[0]):
            return 0  # samples are rows, of which a column says when they were sampled
        if len(words) == 1 and self._begins_only(column, words[0]):
            return 12
        if "id" in parts and "id" not in words:
            return 0  # the number of a passenger is not the passenger
        if len(words) == 1 and stem(words[0]) == stem(self.frame.name) and len(parts) > 1:
            return 0  # the date of an order is not the order
        scores = []
        left = list(parts)
        for word in words:
            fit, part = max(((fit_of(p, word), p) for p in left), default=(0, ""))
            if not fit or (len(word) < 3 and word != part):
                return 0
            scores.append(fit)
            left.remove(part)
        return 20 * (not left) + 4 * min(scores)

    def _begins_only(self, column: Column, word: str) -> bool:
        """Whether a word of letters and digits begins that name only: "co2" of co2_ppm."""
        if word.isalpha() or word.isdigit():
            return False
        begins = re.compile(rf"{re.escape(word)}[\W_]", re.IGNORECASE)
        return [c for c in self.frame.columns if begins.match(c.name)] == [column]

    def _mark_values(self) -> None:
        for length in (3, 2, 1):
            for start in range(len(self.tokens) - length + 1):
                window = self.tokens[start : start + length]
                if any(token.role for token in window):
                    continue
                if found := self._value_of(window):
                    for token in window:
                        token.role = "part"
                    window[0].role, window[0].columns = "value", (found[0],)
                    window[0].value = found[1]

    def _mark_yes(self) -> None:
        """A column of "yes" and "no" that stands for those that say yes: "how many smokers"."""
        if self.says(PLOT | DISTINCT | MISSING | SUMMARY):
            return
        related = self.says(RELATION)
        said = {t.columns[0] for t in self.tokens if t.role == "value"}
        grouped = -1  # where the last column is that it groups by
        for index, token in enumerate(self.tokens):
            if token.role != "column" or len(token.columns) != 1 or token.columns[0] in said:
                continue
            near = {self.word(index - 1), self.word(index - 2)}
            asked = near & (EACH | {"between"}) or self.word(index - 1) in ("which", "what")
            asked = asked or (grouped >= 0 and self.joins(grouped, index))  # "by sex and smoker"
            grouped = index if asked else grouped
            asked = asked or (related and self.word(index - 1) not in ("among", "for", "of", "in"))
            if (ends := self.frame.column(token.columns[0]).yes_and_no) and not asked:
                token.role, token.value = "value", ends[0]

    def _value_of(self, window: Sequence[Token]) -> tuple[str, Any] | None:
        said = _POSSESSIVE.sub("", " ".join(token.text.strip("`") for token in window))
        single = len(window) == 1
        if single and (window[0].word in FILLERS or said.isdigit()) and not said.isupper():
            return None
        if single and window[0].word.endswith("est") and adjective(window[0].word):
            return None  # the highest is none of those that are high
        name = len(said) == 2 and said[0].isupper()
        exact = said.isupper() or len(said) > 2 or name or _MIXED.fullmatch(said) is not None
        named = {c for t in self.tokens if t.role == "column" for c in t.columns}
        short = len(said) == 2 and window[0].word not in NEGATIONS
        for column in self.frame.columns:
            if column.numeric or column.binary or column.dated:
                continue
            for value in [*column.values, *(() if column.values else column.examples)]:
                same = value.lower() in VALUES_SAME.get(window[0].word, ()) and single
                if (
                    same
                    or ((exact or (short and column.name in named)) and value == said)
                    or (len(said) > 2 and _alike(value, said))
                ):
                    return column.name, column.typed(value)
        return None

    def measured(self, quantity: Sequence[str]) -> tuple[str, ...]:
        """The numeric columns of a quantity such as "mass"; a count is one of rows."""
        named = [word for word in quantity if word != "count"]
        found = [
            column.name
            for column in self.frame.columns
            if column.numeric
            and any(fit_of(p, q) >= 2 for p in parts_of(column.name) for q in named)
        ]
        return tuple(found)

    def is_year(self, name: str) -> bool:
        """Whether a column says in which year, so that what is older has less of it."""
        return "year" in parts_of(name) and "age" not in parts_of(name)

    def named_like(self, *names: str) -> tuple[str, ...]:
        """The columns of numbers that have one of these words in their names, by these words."""
        columns = [column for column in self.frame.columns if column.numeric]
        found = [c.name for name in names for c in columns if name in parts_of(c.name)]
        return tuple(dict.fromkeys(found))

    def meant_by_verb(self) -> tuple[str, ...]:
        """The column that a verb such as "paid" is about."""
        for token in self.tokens:
            if not token.role and token.word in MEANT_BY:
                return self.named_like(*MEANT_BY[token.word].split())[:1]
        return ()

    def unknown(self, kind: str | None) -> list[str]:
        """The words that mean something, but not for a query of that kind, or for none."""
        does = _ALWAYS | (frozenset().union(*_DOES.values()) if kind is None else _DOES[kind])
        relative = ("last", "this", "next", "previous")
        left = [token.text for token in self.tokens if not token.role and token.word in NEGATIONS]
        for index, token in enumerate(self.tokens):
            word = token.word
            if token.role or word in FILLERS or word in does or word in STATISTICS:
                continue
            if word in PERIODS and self.word(index - 1) not in relative:
                continue
            if word in SINGLE and self.tokens[index - 1].role == "superlative":
                continue
            if self.is_entity(index) or (word in MEANT_BY and self.meant_by_verb()):
                continue
            if word in CONSUMING and self.word(index + 1) in _AMOUNT_AFTER:
                continue
            left.append(token.text)
        return list(dict.fromkeys(left))

    @property
    def assumed(self) -> tuple[str, ...]:
        """The words that are taken for the rows, though neither frame nor columns are named so."""
        return tuple(
            token.text
            for index, token in enumerate(self.tokens)
            if not token.role
            and token.word not in FILLERS
            and self.is_entity(index)
            and not self.names_rows(token.word)
        )

    def names_rows(self, word: str) -> bool:
        """Whether the frame, or a column with a value of its own in each row, is named so."""
        parts = parts_of(self.frame.name)
        for column in self.frame.columns:
            named = parts_of(column.name)
            if "id" in named or self.frame.is_key(column.name):
                parts += named
            if _is_done(column, word):
                return True
        return any(fit_of(part, word) for part in parts if len(part) > 2)

    def is_row(self, index: int) -> bool:
        """Whether a word names the rows, and no things of which several rows are."""
        token = self.tokens[index] if 0 <= index < len(self.tokens) else None
        if token is None or token.text.startswith("`") or self.thing(index):
            return False
        if token.role not in ("", "frame"):
            return False
        return self.word(index) in ROWS or self.names_rows(self.word(index))

    def _in_order(self, index: int) -> bool:
        """Whether a word is said of rows in an order: "the warmest sample", "the 5 samples"."""
        before = self.tokens[index - 1] if index else None
        if before and before.word in SINGLE:
            before = self.tokens[index - 2]
        with_most = self.word(index + 1) == "with" and self.says_superlative
        return bool(before and before.role in ("superlative", "number")) or with_most

    @property
    def says_superlative(self) -> bool:
        """Whether a superlative is said."""
        return any(token.role == "superlative" for token in self.tokens)

    def is_entity(self, index: int) -> bool:
        """Whether a word says what the rows are: "how many passengers", "the oldest patient"."""
        word = self.word(index)
        if not word.isalpha() or word in SINGLE or word in GROWTH | SHRINK | SHARE | PERIODS.keys():
            return False
        if self.names_rows(word):
            return True
        before = [w for w in self.words[max(0, index - 4) : index] if w not in ("the", "all", "a")]
        if word in ROWS and self._in_order(index):
            return True
        if self.tokens[index - 1].role == "superlative":
            known = adjective(self.word(index - 1))
            return known is not None and bool(self.measured(known[1]))
        plural = word.endswith("s") and not word.endswith("ss")
        if not plural:
            return False
        heads = [t.role for t in self.tokens[:index] if t.role != "part"]
        after_value = bool(heads) and heads[-1] in ("value", "condition")
        shared = before[-1:] == ["of"] and before[-2:-1] and before[-2] in SHARE | {"number"}
        return bool(before) and (before[-1] in ("many", "which") or after_value or bool(shared))


def _is_done(column: Column, word: str) -> bool:
    """Whether a column says of what a noun names that it was done: "sampled" of samples."""
    part = column.name.lower()
    if not column.dated or not part.endswith("ed"):
        return False
    return word.removesuffix("s") in (part[:-1], part[:-2])


def _splitter(frame: Frame) -> re.Pattern[str]:
    """What finds the words of a question: a value such as 9a is one, and 9kg are two.

    A column's name such as "recovery_%" is one, too.
    """
    values = {v for c in frame.columns if not c.numeric for v in c.values if _MIXED.fullmatch(v)}
    names = {c.name for c in frame.columns if _SIGNED.fullmatch(c.name)}
    if not values | names:
        return _TOKEN
    either = "|".join(map(re.escape, sorted(values | names, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)|{_TOKEN.pattern}")


def _numbered(tokens: list[Token]) -> list[Token]:
    """With "the warmest 10" and "top 10 warmest" as "10 warmest"."""
    words = [token.word for token in tokens]
    for index in range(len(words) - 1):
        lead, number = words[index : index + 2]
        if not (number.isdigit() and int(number) < 1_000) and number not in NUMBERS:
            continue
        if is_of_quantity(lead):
            tokens[index : index + 2] = tokens[index + 1], tokens[index]
        elif lead == "top" and index + 2 < len(words) and is_of_quantity(words[index + 2]):
            return [*tokens[:index], *tokens[index + 1 :]]
    return tokens


def is_of_quantity(word: str) -> bool:
    """Whether a superlative says itself of which quantity, as "warmest" does."""
    return word.endswith("est") and adjective(word) is not None


def _token(text: str) -> Token:
    word = text.lower().replace("’", "'")
    word = word.removeprefix("per ").removeprefix("per-")  # of "per capita", which groups nothing
    if word.endswith("'s") and word not in ("it's", "what's", "that's", "there's"):
        word = word[:-2]
    if word[0].isdigit():
        word = word.replace(",", "")
    if _ORDINAL.fullmatch(word):
        word = text = ORDINAL_NAMES[int(word[0]) - 1]
    return Token(text, word.strip("`"))


def _alike(value: str, said: str) -> bool:
    """Whether a word names a value: in another form, or as rainy names rain."""
    value, said = value.lower(), said.lower()
    if value == said or (value.isalpha() and stem(value) == stem(said)):
        return True
    if len(value) >= 3 and said.removesuffix("s") in _WEEKDAYS and said.startswith(value):
        return True  # "Thur"
    root = said.removesuffix("y")
    doubled = root[:-1] if root[-1:] == root[-2:-1] else root
    return said.endswith("y") and len(value) >= 3 and value in (root, doubled)
