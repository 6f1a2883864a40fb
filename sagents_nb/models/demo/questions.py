"""How the demo model reads a question about a data frame: words become columns, values, a query.

Every word has to be accounted for: as a column, a value, a number, as what is to be done, or as
one that changes nothing. A question with a word that means something else is not answered, since
the answer would be to another question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from .frames import Column, Frame
from .queries import MONTHS, Condition, Key, Period, Query, Statistic
from .words import adjective, stem, word_set

ABLE = (
    "I count, average, add up, rank, group, compare, correlate, sort and plot the columns of a "
    "data frame, and tell its shares, growth, different and missing values"
)

_TOKEN = re.compile(
    r"`[^`\n]+`|\d{4}-\d\d-\d\d|[A-Za-z_][\w]*(?:['’][a-z]+)?|\d[\d,]*(?:\.\d+)?|[<>]=?|[%@#&=]"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_YEAR = re.compile(r"(?:19|20)\d\d")

# Words that say what to do. Each is only read as a column's where nothing else is left.
_STATISTICS: dict[str, Statistic] = {
    **dict.fromkeys(
        ("average", "averages", "mean", "means", "avg", "typical", "typically"), "mean"
    ),
    **dict.fromkeys(("median", "medians"), "median"),
    **dict.fromkeys(("total", "totals", "sum", "altogether", "combined"), "sum"),
    **dict.fromkeys(("std", "deviation", "spread", "variation", "varies"), "std"),
}
_UP = word_set("highest maximum max largest biggest greatest most top peak best record")
_DOWN = word_set("lowest minimum min smallest least fewest bottom worst")
_PLOT = word_set(
    "plot plots graph chart draw visualise visualize histogram hist scatter scatterplot bar bars "
    "barplot line boxplot box pie distribution distributed lineplot"
)
_CHARTS = {
    "hist": "hist histogram distribution distributed",
    "scatter": "scatter scatterplot",
    "bar": "bar bars barplot",
    "line": "line lineplot",
    "box": "boxplot box",
    "pie": "pie",
}
_MISSING = word_set("missing null nulls nan nans na empty blank incomplete gaps")
_DISTINCT = word_set("unique distinct different")
_SHARE = word_set(
    "percentage percentages percent share shares proportion proportions fraction rate rates %"
)
_RELATION = word_set(
    "correlation correlate correlated correlates related relation relationship relate association "
    "associated depend depends linked"
)
_GROWTH = word_set(
    "grow grew grown growth grows growing increase increased increases rise rose risen gain gained "
    "gains improve improved change changed changes rises trend went go goes going return returns developed"
)
_SHRINK = word_set(
    "decrease decreased fall fell fallen drop dropped decline declined shrink lost lose down"
)
_SORT = word_set("sort sorted order ordered rank ranked ranking")
_SUMMARY = word_set(
    "summarise summarize summary summaries describe overview analyse analyze explore"
)
_SHOW = word_set("show display print see look view head preview open peek")
_RANGE = word_set("range cover covers covered span spans spanning period earliest latest start end")
_SHAPE = word_set("shape size big large columns column variables fields features dimensions long")
_COUNT = word_set("count counts number many frequency")
_EACH = word_set("by per each every across within")
_THAN = word_set("than vs versus compared or between difference")
_MORE = word_set(
    "more greater higher larger bigger longer over above exceeding exceeds after since"
)
_LESS = word_set("less fewer lower smaller shorter under below before")
_AFTER_VERB = word_set("often likely frequently")
_YES_NO = word_set("did do does has have is are was were")
_LATEST = word_set("latest last newest recent current earliest oldest first")
_NEGATIONS = word_set(
    "not never without except excluding no nobody none neither didn't doesn't don't"
)

_PERIODS: dict[str, Period] = {
    **dict.fromkeys(("day", "days", "daily", "date", "dates", "when"), "day"),
    **dict.fromkeys(("week", "weeks", "weekly"), "week"),
    **dict.fromkeys(("month", "months", "monthly"), "month"),
    **dict.fromkeys(("quarter", "quarters", "quarterly"), "quarter"),
    **dict.fromkeys(("year", "years", "yearly", "annual", "annually"), "year"),
    **dict.fromkeys(("weekday", "weekdays"), "weekday"),
    **dict.fromkeys(("hour", "hours", "hourly"), "hour"),
}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3}
_NUMBERS = {w: n for n, w in enumerate("two three four five six seven eight nine ten".split(), 2)}
_UNITS = word_set(
    "mm cm m km g kg lb lbs usd eur gbp pct percent c f mph kmh s sec ms hours hour years year "
    "euros dollars degrees grams meters metres old"
)
# They change nothing of what is asked.
_FILLERS = word_set(
    "a an the of in for is are was were be been being do does did has have had having get got i me "
    "my we our us you your it its it's this that that's these those them they their there here "
    "what whats what's which who whose how much please tell give find list all any some and or to "
    "from on at as with into over during through with across between than then so if whether can could "
    "would will should let want need know like just only also about out up again short quick small "
    "nice brief simple good data dataset frame dataframe table row rows record records entry "
    "entries observation observations value values item items one ones on average overall whole "
    "entire full time period where when while many number amount amounts level levels figure figures "
    "calculate compute compare compared comparison work say answer question results result using "
    "use make create column columns variable field type types kind kinds group groups grouped "
    "per each every by both two most often likely more less same paid pay pays made sold sell "
    "sells occur occurred happen happened happens appear appears come comes belong live lives "
    "lived living recorded measured observed seen day days trading more's people there's there're "
    "contain contains include includes exist statistics stats numbers breakdown break down split "
    "difference differ differs vs versus standard board aboard old first last total altogether report together fit"
)
# Words that mean the same where a column is looked for.
_SAME = [
    set(words.split())
    for words in (
        "price cost fare close",
        "mass weight",
        "revenue sales turnover income earnings amount",
        "sales units quantity",
        "sex gender",
        "symbol ticker stock stocks share company",
        "quantity units qty",
        "precipitation rain rainfall precip",
        "date day time timestamp datetime",
        "temperature temp",
        "survived survival survivors",
        "customer client buyer",
        "country nation",
        "profit margin",
        "employee staff worker",
        "salary wage pay income",
        "department dept team",
        "score rating grade mark",
    )
]
_SYNONYMS: dict[str, set[int]] = {}
for _index, _words in enumerate(_SAME):
    for _word in _words:
        _SYNONYMS.setdefault(stem(_word), set()).add(_index)
_ALIASES = {
    "max": {"maximum", "max", "high"},
    "min": {"minimum", "min", "low"},
    "avg": {"average", "mean"},
}
_VALUES_SAME = {
    **dict.fromkeys(("women", "woman", "female", "females", "girls"), {"female", "f", "woman"}),
    **dict.fromkeys(("men", "man", "male", "males", "boys"), {"male", "m", "man"}),
}
_MEANT_BY = {
    **dict.fromkeys(("paid", "pay", "pays", "cost", "costs"), "fare price amount cost total"),
    **dict.fromkeys(("weigh", "weighs", "weighed"), "mass weight"),
    **dict.fromkeys(("sell", "sells", "sold"), "units quantity sold sales revenue"),
    **dict.fromkeys(("earn", "earns", "earned"), "salary income wage revenue"),
    **dict.fromkeys(("spent", "spend", "spends"), "spend spending amount cost total"),
}
# What is added up rather than averaged where nothing is said.
_ADDED = word_set(
    "revenue sales amount units quantity qty cost costs profit income turnover spend spending "
    "precipitation rain rainfall snow snowfall population budget orders visits clicks goals points "
    "volume passengers expenses earnings sold count downloads views cases deaths births"
)
_NAMES = word_set("name title product item player city country region team customer model")


class _Token(msgspec.Struct):
    """A word of a question and what it was read as."""

    text: str
    word: str
    role: str = ""
    columns: tuple[str, ...] = ()  # that it names; several if it is not clear which
    value: Any = None


def read(question: str, frame: Frame, before: Query | None = None) -> Query | str:
    """The query of a question; else why there is none, as the end of a sentence.

    ``before`` is the query that a follow-up question changes: "and by island?".
    """
    if frame.ambiguous:
        return f"two columns of `{frame.name}` have the same name"
    if len(question) > 1000:
        return "it is too long for me"
    return _Reading(question, frame, before).query()


def statistic_of(text: str) -> Statistic | None:
    """The statistic that a text names, None without one."""
    found = (_STATISTICS.get(word) for word in re.findall(r"[a-z]+", text.lower()))
    return next((statistic for statistic in found if statistic), None)


def names_frame(text: str, name: str) -> bool:
    """Whether a text names that frame, in backticks or as a word."""
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", text))


def _parts(column: str) -> list[str]:
    """The words of a column's name without units."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", column)
    words = [w.lower() for w in re.findall(r"[A-Za-z]+|\d+", spaced)]
    return [w for w in words if w not in _UNITS] or words


def _fits(part: str, word: str) -> int:
    """How well a word names a part of a column: 3 by its stem, 2 as a part of it, 1 as another."""
    if part == word or stem(part) == stem(word):
        return 3
    if word in _ALIASES.get(part, ()):
        return 3
    if len(part) >= 4 and word.startswith(part) or len(word) >= 4 and part.endswith(word):
        return 2
    if len(word) >= 4 and part.startswith(word):
        return 2
    shared = _SYNONYMS.get(stem(part), set()) & _SYNONYMS.get(stem(word), set())
    return 1 if shared else 0


class _Reading:
    """One question, word by word."""

    def __init__(self, question: str, frame: Frame, before: Query | None) -> None:
        self.frame = frame
        self.before = before
        self.tokens = [_token(text) for text in _TOKEN.findall(question)]
        self.words = [token.word for token in self.tokens]
        self.conditions: list[Condition] = []
        self.reason = ""
        self.question = question
        self._mark_frame()
        self._mark_columns()
        self._mark_values()
        self._mark_dates()
        self._mark_comparisons()
        self._mark_equalities()

    # What words are

    def _free(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and not self.tokens[index].role

    def _word(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else ""

    def _says(self, words: Iterable[str]) -> bool:
        """Whether one of these words is there that is not a column or a value."""
        wanted = set(words)
        return any(t.word in wanted and t.role in ("", "number") for t in self.tokens)

    def _mark_frame(self) -> None:
        names = [c.name for c in self.frame.columns]
        for index, token in enumerate(self.tokens):
            if token.text in (f"`{self.frame.name}`", self.frame.name):
                token.role = "frame"
            elif token.text.startswith("`") and token.text.strip("`") in names:
                token.role, token.columns = "column", (token.text.strip("`"),)
            elif token.text in ("{", "}"):
                token.role = "frame"
            elif index and token.word == "s" and self.tokens[index - 1].role == "frame":
                token.role = "frame"

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
        for one, other in zip(refs, refs[1:], strict=False):
            a, b = self.tokens[one], self.tokens[other]
            both = tuple(c for c in a.columns if c in b.columns)
            if both and other - one <= 3 and (len(a.columns) > 1 or len(b.columns) > 1):
                a.columns, b.role, b.columns = both, "part", ()

    def _columns_of(self, words: Sequence[str], start: int) -> tuple[str, ...]:
        """The columns that words name together."""
        single = len(words) == 1
        if any(w in _FILLERS or w in _EACH for w in (words[0], words[-1])):
            exact = [c.name for c in self.frame.columns if c.name.lower() == words[0]]
            after = self._word(start - 1)
            if not (single and exact and words[0] in ("total", "amount", "number", "type", "day")):
                return ()
            return tuple(exact) if after in _EACH or words[0] in ("type", "day", "amount") else ()
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
        parts = _parts(column.name)
        if len(words) == 1:
            word = words[0]
            if word == column.name.lower():
                return 0 if word in _UP | _DOWN and word.endswith("est") else 100
            reserved = word in _STATISTICS or word in _UP | _DOWN | _COUNT | _PLOT | _SHARE
            if reserved or word in _PERIODS or word in _SHAPE | _MISSING | _RANGE | _SHOW:
                return 0
            if adjective(word) or word in _MORE | _LESS or word in _GROWTH | _SHRINK:
                return 0
        if "id" in parts and "id" not in words:
            return 0  # the number of a passenger is not the passenger
        scores = []
        left = list(parts)
        for word in words:
            fit, part = max(((_fits(p, word), p) for p in left), default=(0, ""))
            if not fit or (len(word) < 3 and word != part):
                return 0
            scores.append(fit)
            left.remove(part)
        return 20 * (not left) + 4 * min(scores)

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

    def _value_of(self, window: Sequence[_Token]) -> tuple[str, Any] | None:
        said = " ".join(token.text.strip("`") for token in window)
        single = len(window) == 1
        if single and (window[0].word in _FILLERS or said.isdigit()) and not said.isupper():
            return None
        exact = said.isupper() or len(said) > 2
        for column in self.frame.columns:
            if column.numeric or column.binary or column.dated:
                continue
            for value in [*column.values, *(() if column.values else column.examples)]:
                same = value.lower() in _VALUES_SAME.get(window[0].word, ()) and single
                if same or (exact and value == said) or (len(said) > 2 and _alike(value, said)):
                    return column.name, column.typed(value)
        return None

    def _mark_dates(self) -> None:
        """Years, months and days, of the column that says when."""
        date = self.frame.date
        for index, token in enumerate(self.tokens):
            if token.role:
                continue
            month = token.word.capitalize() in MONTHS and token.text != "may"
            if _DATE.fullmatch(token.text) and date:
                before = self._word(index - 1)
                operator = {"after": ">", "since": ">=", "before": "<", "until": "<="}.get(before)
                self.conditions.append(Condition(date.name, operator or "==", token.text))  # type: ignore[arg-type]
                token.role = "date"
            elif month and date and token.text[0].isupper():
                number = MONTHS.index(token.word.capitalize()) + 1
                self.conditions.append(Condition(date.name, "==", number, "month"))
                token.role = "date"
            elif _YEAR.fullmatch(token.text):
                self._mark_year(index, token, date)

    def _mark_year(self, index: int, token: _Token, date: Column | None) -> None:
        names = {c.name for c in self.frame.columns}
        year = next((c for c in self.frame.columns if "year" in _parts(c.name)), None)
        if token.text in names:
            token.role, token.columns = "column", (token.text,)
            return
        if year is None and date is None:
            return
        before = self._word(index - 1)
        operator = {"after": ">", "since": ">=", "before": "<", "until": "<="}.get(before, "==")
        column, part = (year.name, "") if year else (cast(Column, date).name, "year")
        token.role, token.value = "year", int(token.text)
        self.conditions.append(Condition(column, operator, int(token.text), part))  # type: ignore[arg-type]

    def _mark_comparisons(self) -> None:
        """Numbers that a column is to be over or under."""
        for index, token in enumerate(self.tokens):
            if token.role or not token.text[0].isdigit():
                continue
            operator, start = self._operator(index)
            if operator is None:
                continue
            column = self._compared(start, index)
            if column is None:
                self.reason = self.reason or f"I cannot tell which column “{token.text}” is about"
                continue
            value = float(token.word) if "." in token.word else int(token.word)
            token.role, token.columns = "compared", (column,)
            self.conditions.append(Condition(column, operator, value))  # type: ignore[arg-type]
            for i in range(start, index):
                if not self.tokens[i].role:
                    self.tokens[i].role = "operator"
            if self._word(start) == "between" and self._word(index + 1) == "and":
                following = index + 2
                if self._free(following) and self.tokens[following].text[0].isdigit():
                    upper = self.tokens[following]
                    upper.role = "compared"
                    high = float(upper.word) if "." in upper.word else int(upper.word)
                    self.conditions.append(Condition(column, "<=", high))
            after = index + 1
            while self._word(after) in _UNITS and self._free(after):
                self.tokens[after].role = "unit"
                after += 1

    def _operator(self, index: int) -> tuple[str | None, int]:
        """The comparison before a number, and where it begins."""
        one, two = self._word(index - 1), self._word(index - 2)
        if one in ("<", "<=", ">", ">="):
            return one, index - 1
        if one == "than" and two:
            known = adjective(two)
            if two in _LESS or (known and not known[0]):
                return "<", index - 2
            if two in _MORE or known:
                return ">", index - 2
        if (two, one) in (("at", "least"), ("at", "most"), ("up", "to")):
            return (">=" if one == "least" else "<="), index - 2
        if one == "between":
            return ">=", index - 1
        if one in ("over", "above", "exceeding", "exceeds"):
            return ">", index - 1
        if one in ("under", "below"):
            return "<", index - 1
        return None, index

    def _compared(self, start: int, index: int) -> str | None:
        for i in range(start, index):
            if (known := adjective(self._word(i))) and (named := self._measured(known[1])):
                return named[0]
        near = [*range(start - 1, -1, -1), *range(index + 1, len(self.tokens))]
        for i in near:
            token = self.tokens[i]
            if token.role == "column" and self.frame.column(token.columns[0]).numeric:
                token.role = "condition"
                return token.columns[0]
        return next(iter(self._meant_by_verb()), None)

    def _mark_equalities(self) -> None:
        """A class or the like that is a number: "class 3", "third class"."""
        for index, token in enumerate(self.tokens):
            word = token.word
            number = _ORDINALS.get(word) or (int(word) if word.isdigit() else None)
            if token.role or number is None:
                continue
            for near in (index - 1, index + 1):
                if not 0 <= near < len(self.tokens) or self.tokens[near].role != "column":
                    continue
                column = self.frame.column(self.tokens[near].columns[0])
                if column.numeric and str(number) in column.values:
                    token.role, self.tokens[near].role = "value", "condition"
                    token.columns, token.value = (column.name,), number
                    break

    # What is asked

    def _measured(self, quantity: Sequence[str]) -> tuple[str, ...]:
        """The numeric columns of a quantity such as "mass"."""
        found = [
            column.name
            for column in self.frame.columns
            if column.numeric
            and any(_fits(p, q) >= 2 for p in _parts(column.name) for q in quantity)
        ]
        return tuple(found)

    def _refs(self) -> list[tuple[int, _Token]]:
        return [(i, t) for i, t in enumerate(self.tokens) if t.role == "column"]

    def _keys(self) -> list[tuple[int, Key]]:
        """What the question groups by, and where it says so."""
        found: list[tuple[int, Key]] = []
        for index, token in enumerate(self.tokens):
            near = {self._word(index - 1), self._word(index - 2)}
            asked = self._word(index - 1) in ("which", "what")
            if token.role == "column" and len(token.columns) == 1:
                column = self.frame.column(token.columns[0])
                grouping = column.counted or not column.numeric
                joined = self._joined(index, found)
                if column.binary and not near & {"by", "per", "each", "every"}:
                    grouping = False
                period = self._granularity(column)
                if grouping and (
                    asked or joined or near & (_EACH | {"between", "across", "which"})
                ):
                    found.append((index, Key(column.name, period)))
            elif not token.role and token.word in _PERIODS and self.frame.date is not None:
                period = _PERIODS[token.word]
                said = near & (_EACH | {"which"}) or asked or token.word.endswith("ly")
                said = said or token.word in ("annual", "when") or self._is_superlative(index - 1)
                if said or (token.word in ("date", "day") and self._word(index - 1) == "on"):
                    if token.word == "day" and self._word(index + 1) == "of":
                        period = "weekday"
                        self.tokens[index + 1].role = "part"
                        if self._word(index + 3) == "week":
                            self.tokens[index + 3].role = "part"
                    if period == "day":
                        period = self._granularity(self.frame.date)
                    token.role = "period"
                    found.append((index, Key(self.frame.date.name, period)))
        return found

    def _is_superlative(self, index: int) -> bool:
        word = self._word(index)
        return word in _UP | _DOWN or (word.endswith("est") and adjective(word) is not None)

    def _joined(self, index: int, found: Sequence[tuple[int, Key]]) -> bool:
        """Whether a column goes on from one that is grouped by: "by sex and class"."""
        between = self.words[found[-1][0] + 1 : index] if found else []
        return bool(between) and set(between) <= {"and", "the", "then"}

    def _granularity(self, column: Column) -> Period:
        """ "day" for times of the day, "" where dates are days already."""  # noqa: D300
        clock = any(not t.endswith("00:00:00") and len(t) > 10 for t in column.examples)
        return "day" if column.dated and clock else ""

    def _top(self) -> int | None:
        """The number of "top 3", "five largest" or "first 10 rows"."""
        for index, token in enumerate(self.tokens):
            number = _NUMBERS.get(token.word) or (int(token.word) if token.word.isdigit() else None)
            if token.role or number is None:
                continue
            before, after = self._word(index - 1), self._word(index + 1)
            ranked = adjective(after) is not None or after in _UP | _DOWN | {"most"}
            if (
                before in _UP | _DOWN | {"first", "last", "the"}
                or ranked
                or after in ("rows", "row")
            ):
                token.role = "number"
                return max(1, min(number, 50))
        return None

    def _direction(self) -> tuple[str, str, tuple[str, ...]]:
        """The order that a superlative asks for, the word, and the columns that it is about."""
        for index, token in enumerate(self.tokens):
            word = token.word
            if token.role or word in ("many", "much"):
                continue
            if word in ("most", "least") and (known := adjective(self._word(index + 1))):
                up = known[0] if word == "most" else not known[0]
                self.tokens[index + 1].role = token.role = "superlative"
                said = f"{word} {self._word(index + 1)}"
                return _order(up), said, self._measured(known[1])
            if word in ("top", "most") or word in _UP:
                token.role = "superlative"
                return "descending", word, ()
            if word in _DOWN:
                token.role = "superlative"
                return "ascending", word, ()
            # "Which year was wetter?" asks for the wettest.
            which = word.endswith("er") and "than" not in self.words and self._says({"which"})
            known = adjective(word) if word.endswith("est") or which else None
            if known:
                token.role = "superlative"
                return _order(known[0]), word, self._measured(known[1])
        return "", "", ()

    def _comparative(self) -> tuple[bool, str, tuple[str, ...]] | None:
        """Whether more is said to be there, the word, and the columns that it is about."""
        for index, token in enumerate(self.tokens):
            if token.role:
                continue
            word = token.word
            if word in ("more", "less") and (known := adjective(self._word(index + 1))):
                self.tokens[index + 1].role = token.role = "comparative"
                up = known[0] == (word == "more")
                return up, f"{word} {self._word(index + 1)}", self._measured(known[1])
            if word in _MORE - {"over", "after", "since"} or word in _LESS - {"before", "under"}:
                token.role = "comparative"
                known = adjective(word)
                return word in _MORE, word, self._measured(known[1]) if known else ()
            if word.endswith("er") and (known := adjective(word)):
                token.role = "comparative"
                return known[0], word, self._measured(known[1])
        return None

    def query(self) -> Query | str:
        """The query, else the reason why there is none."""
        found = self._query()
        if unknown := self._unknown():
            names = ", ".join(f"“{word}”" for word in unknown[:3])
            return f"I cannot tell what {names} means in `{self.frame.name}`"
        if self.reason:
            return self.reason
        if isinstance(found, str):
            return found
        if unused := self._unused(found):
            return f"I cannot tell what `{unused}` has to do with it"
        return msgspec.structs.replace(found, yes_no=self._word(0) in _YES_NO)

    def _unused(self, query: Query) -> str:
        """A column or value that was named and is not in the query, "" if there is none."""
        if query.kind in ("summary", "shape"):
            return ""
        used = {*query.measures, *(k.column for k in query.by), *(c.column for c in query.where)}
        for token in self.tokens:
            if token.role == "column" and not used & set(token.columns):
                return token.columns[0]
            if token.role == "value" and not any(
                c.column == token.columns[0] and c.value == token.value for c in query.where
            ):
                if str(token.value) not in query.subjects:
                    return str(token.value)
        return ""

    def _unknown(self) -> list[str]:
        operators = (
            _UP | _DOWN | _PLOT | _MISSING | _DISTINCT | _SHARE | _RELATION | _GROWTH | _SHRINK
        ) | (_SORT | _SUMMARY | _SHOW | _RANGE | _SHAPE | _COUNT | _THAN | _AFTER_VERB | _EACH)
        negated = [t.word for t in self.tokens if not t.role and t.word in _NEGATIONS]
        left = []
        for index, token in enumerate(self.tokens):
            word = token.word
            if token.role or word in _FILLERS or word in operators or word in _STATISTICS:
                continue
            if word in _PERIODS and self._word(index - 1) not in (
                "last",
                "this",
                "next",
                "previous",
            ):
                continue
            if self._entity(index) or (word in _MEANT_BY and self._meant_by_verb()):
                continue
            left.append(token.text)
        return [*negated, *(word for word in left if word not in negated)]

    def _entity(self, index: int) -> bool:
        """Whether a word says what the rows are: "how many passengers", "share of the birds"."""
        word = self._word(index)
        if not word.isalpha():
            return False
        singular = stem(word)
        if singular == stem(self.frame.name):
            return True
        before = [w for w in self.words[max(0, index - 4) : index] if w not in ("the", "all", "a")]
        if self.tokens[index - 1].role == "superlative":
            return True
        plural = word.endswith("s") and not word.endswith("ss")
        if not plural:
            return False
        last = [t for t in self.tokens[max(0, index - 2) : index]]
        after_value = bool(last) and last[-1].role in ("value", "part", "condition")
        return bool(before) and (
            before[-1] in ("many", "of", "rows", "which", "for") or after_value
        )

    def _meant_by_verb(self) -> tuple[str, ...]:
        """The column that a verb such as "paid" is about."""
        for token in self.tokens:
            if not token.role and token.word in _MEANT_BY:
                return self._named_like(*_MEANT_BY[token.word].split())
        return ()

    def _default(self, measures: Sequence[str]) -> Statistic:
        added = any(part in _ADDED for measure in measures for part in _parts(measure))
        return "sum" if added else "mean"

    def _query(self) -> Query | str:
        frame = self.frame
        negative = self._negated_missing()
        keys = self._keys()
        top = self._top()
        order, word, ranked = self._direction()
        key_places = {index for index, _ in keys}
        refs = [(i, t) for i, t in self._refs() if i not in key_places]
        statistic = next(
            (_STATISTICS[t.word] for t in self.tokens if not t.role and t.word in _STATISTICS), None
        )
        named = tuple(dict.fromkeys(c for _, t in refs for c in t.columns))
        by = tuple(dict.fromkeys(key for _, key in keys))
        values = [t for t in self.tokens if t.role == "value"]
        years = [t.value for t in self.tokens if t.role == "year"]
        numbers = tuple(c for c in named if self._is_measure(c))

        if self._says(_PLOT):
            return self._plotted(by, refs, numbers, statistic)
        if negative or self._says(_MISSING):
            others = self._conditions(values)
            columns = named or tuple(c.name for c in frame.columns)
            counts: Statistic = "count" if named or others or self._says({"row", "rows"}) else "sum"
            return Query("missing", columns, counts, where=others)
        if self._says(_RELATION):
            if len(numbers) != 2:
                return "a correlation needs two columns of numbers"
            return Query("correlation", numbers, where=self._conditions(values))
        if self._says(_SUMMARY):
            if by:
                return Query("aggregate", numbers or self._only(), "mean", by)
            return Query("summary", named, where=self._conditions(values))
        if self._says(_GROWTH | _SHRINK) and not self._says(_SHOW & {"head"}):
            return self._grown(by, numbers, years, order, word)
        if self._says(_SHARE):
            return self._shared(by, numbers, values, order, word)
        compared = self._compares(values) or self._compares_years(years)
        if compared is not None:
            return compared
        if self._says(_DISTINCT) and not by:
            if len(named) != 1:
                return "I cannot tell of which column the different values are meant"
            return self._distinct(named[0], values)
        conditions = self._conditions(values)
        if not by and (latest := self._latest(numbers, conditions)):
            return latest
        if self._is_range(named):
            column = next((c for c in named), frame.date.name if frame.date else "")
            return Query("range", (column,), where=conditions) if column else "there are no dates"
        if self._says(_SORT) and not by and named:
            order = order or "ascending"
            down = word_set("descending decreasing desc")
            for token in self.tokens:
                if token.word in down | word_set("ascending increasing asc"):
                    token.role = "order"
                    order = "descending" if token.word in down else "ascending"
            if named and len(named) == 1:
                count = top or self._last_number() or 10
                return Query("rows", named, where=conditions, order=_of(order), top=count)
        if self._says(_COUNT):
            return self._count(by, named, numbers, statistic, conditions, order, word)
        # "The average age of survivors": a column of yes and no says which rows are meant.
        yes = [n for n in numbers if frame.column(n).binary]
        if len(numbers) > len(yes) > 0:
            numbers = tuple(n for n in numbers if n not in yes)
            conditions = (*conditions, *(self._is_true(n) for n in yes))
        if order:
            return self._ranking(by, numbers or ranked, statistic, conditions, order, word, top)
        if statistic and not numbers and named and not by:
            return f"`{named[0]}` holds no numbers"
        if statistic and not numbers:
            numbers = self._meant_by_verb() or self._only()
            if not numbers:
                return "I cannot tell which column is meant"
        if numbers or by:
            return self._aggregate(by, numbers, named, statistic, conditions, values)
        if conditions:
            return Query("rows", (), where=conditions, top=10)
        if self._says(_SHAPE):
            return Query("shape")
        if self._says(_SHOW) or len(self.tokens) == 1:
            return Query("show", top=top)
        if not named and all(t.role == "frame" or t.word in _FILLERS for t in self.tokens):
            return Query("summary")
        if named and self._says(word_set("list what which")):
            return self._distinct(named[0], values)
        return "I cannot tell what is asked of which column"

    def _negated_missing(self) -> bool:
        """Whether rows "have no age" or are "without age"."""
        for index, token in enumerate(self.tokens):
            if token.role or token.word not in ("no", "without"):
                continue
            if self._says(_COUNT) and any(
                self.tokens[i].role == "column"
                for i in (index + 1, index + 2)
                if i < len(self.tokens)
            ):
                token.role = "negation"
                return True
        return False

    def _is_measure(self, name: str) -> bool:
        column = self.frame.column(name)
        return column.numeric or column.binary

    def _only(self) -> tuple[str, ...]:
        """The one column of numbers, if there is but one."""
        found = [c.name for c in self.frame.columns if c.numeric and not c.counted and not c.binary]
        return tuple(found) if len(found) == 1 else ()

    def _conditions(self, values: Sequence[_Token]) -> tuple[Condition, ...]:
        """What rows have to be, of all that was said."""
        said = [Condition(t.columns[0], "==", t.value) for t in values]
        return tuple(dict.fromkeys([*said, *self.conditions]))

    def _is_range(self, named: Sequence[str]) -> bool:
        dates = self.frame.date is not None and self._says(
            {"date", "dates", "time", "period", "days"}
        )
        if self._says({"range"}) and (named or dates):
            return True
        if self._says({"cover", "covers", "covered", "span", "spans"}):
            return self.frame.date is not None
        return (
            self._says({"earliest", "latest", "start", "end"})
            and dates
            and not self._says({"which"})
        )

    def _last_number(self) -> int | None:
        numbers = [t for t in self.tokens if not t.role and t.word.isdigit()]
        if not numbers:
            return None
        numbers[-1].role = "number"
        return max(1, min(int(numbers[-1].word), 50))

    def _one_of(self, measures: Sequence[str], order: str) -> tuple[str, ...]:
        """One measure: of temp_max and temp_min the one that an order is about."""
        if len(measures) < 2 or not order:
            return tuple(measures)
        wanted = "max" if order == "descending" else "min"
        fitting = [m for m in measures if any(wanted == p for p in _parts(m))]
        return tuple(fitting[:1] or measures[:1])

    def _plotted(
        self,
        by: tuple[Key, ...],
        refs: Sequence[tuple[int, _Token]],
        numbers: tuple[str, ...],
        statistic: Statistic | None,
    ) -> Query | str:
        frame = self.frame
        said = {t.word for t in self.tokens if not t.role}
        chart = next((c for c, words in _CHARTS.items() if said & set(words.split())), "")
        where = self._conditions([t for t in self.tokens if t.role == "value"])
        others = [c for _, t in refs for c in t.columns if c not in numbers]
        over = "over" in said or "time" in said or "trend" in said
        if over and frame.date and not any(k.column == frame.date.name for k in by):
            by = (Key(frame.date.name), *by)
        by = by or tuple(Key(c) for c in others[:1])
        against = said & {"against", "vs", "versus"} or (chart == "scatter")
        for token in self.tokens:
            if token.word == "against" and not token.role:
                token.role = "operator"
        if len(numbers) >= 2 and against:
            x, y = (numbers[1], numbers[0]) if said & {"against", "vs", "versus"} else numbers[:2]
            return Query("plot", (x, y), where=where, chart="scatter")
        if chart == "hist" and numbers and not by:
            return Query("plot", numbers[:1], where=where, chart="hist")
        if chart == "hist" and by and not numbers:
            chart = "bar"
        if chart == "box" and numbers:
            return Query("plot", numbers[:1], by=by, where=where, chart="box")
        if not numbers and not by:
            labels = [c.name for c in frame.columns if not c.numeric]
            measures = tuple(c.name for c in frame.columns if c.numeric)[:6]
            if not measures:
                return "there is no column of numbers to plot"
            if labels and frame.is_key(labels[0]):
                dated = frame.column(labels[0]).dated
                return Query(
                    "plot", measures, by=(Key(labels[0]),), chart=chart or ("" if dated else "bar")
                )
            return "I cannot tell which columns to plot"
        if numbers and not by:
            if frame.date and frame.is_key(frame.date.name):
                by = (Key(frame.date.name),)
            elif labels := [
                c.name for c in frame.columns if not c.numeric and frame.is_key(c.name)
            ]:
                by = (Key(labels[0]),)
            else:
                return Query("plot", numbers[:1], where=where, chart="hist")
        # The time goes along the axis, and groups are lines of their own.
        by = tuple(sorted(by, key=lambda key: not frame.column(key.column).dated))[:2]
        timed = frame.column(by[0].column).dated
        chart = chart if chart != "line" else ""
        statistic = statistic or (self._default(numbers) if numbers else "count")
        if not numbers:
            statistic = "count"
        unique = len(by) == 1 and not by[0].period and frame.is_key(by[0].column)
        if unique or (len(by) == 2 and not any(k.period for k in by)):
            statistic = statistic if self._says(_STATISTICS) else "mean"
        return Query("plot", numbers, statistic, by, where, chart=chart or ("" if timed else "bar"))

    def _grown(
        self,
        by: tuple[Key, ...],
        numbers: tuple[str, ...],
        years: Sequence[int],
        order: str,
        word: str,
    ) -> Query | str:
        frame = self.frame
        down = self._says(_SHRINK)
        first = (
            "first" if order or any(k.period == "" for k in by) and self._says({"which"}) else ""
        )
        direction = "ascending" if down != (order == "ascending") else "descending"
        wide = [c.name for c in frame.columns if c.numeric and _YEAR.fullmatch(c.name)]
        pair = numbers if len(numbers) == 2 else tuple(sorted(wide))
        if len(pair) >= 2 and (len(numbers) == 2 or not numbers):
            labels = by or tuple(Key(c.name) for c in frame.columns if not c.numeric)[:1]
            return Query(
                "growth",
                (pair[0], pair[-1]),
                by=labels,
                order=_of(direction),
                wants="first" if first else "growth",
                word=word,
            )
        if frame.date is None and not any("year" in _parts(c.name) for c in frame.columns):
            return f"`{frame.name}` has no dates to tell a growth by"
        year = next((c.name for c in frame.columns if "year" in _parts(c.name)), "")
        measures = numbers or self._guessed()
        if not measures:
            return "I cannot tell which column has grown"
        groups = tuple(k for k in by if not k.period and not frame.column(k.column).dated)
        where = tuple(c for c in self._conditions([t for t in self.tokens if t.role == "value"]))
        if groups and frame.date and not years:
            return Query(
                "change", measures[:1], by=groups[:1], where=where, order=_of(direction),
                wants="first" if first else "growth", word=word,
            )  # fmt: skip
        periods = tuple(k for k in by if k.period)
        added = self._default(measures) == "sum"
        where = tuple(c for c in where if not (c.value in years and len(years) > 1))
        if len(years) > 1 or (added and (frame.date or year)) or periods:
            date = Key(year) if year else Key(cast(Column, frame.date).name, "year")
            if len(years) > 1:
                low, high = min(years), max(years)
                part = "" if year else "year"
                where = (
                    *where,
                    Condition(date.column, ">=", low, part),  # type: ignore[arg-type]
                    Condition(date.column, "<=", high, part),  # type: ignore[arg-type]
                )
            statistic = self._default(measures)
            return Query(
                "aggregate", measures[:1], statistic, periods or (date,), where,
                "ascending" if down else "", wants="growth",
            )  # fmt: skip
        return Query("change", measures[:1], where=where, order=_of(direction), wants="growth")

    def _guessed(self) -> tuple[str, ...]:
        """What is meant where a growth names no column: a price, sales, or the only number."""
        usual = ("close", "price", "value", "revenue", "sales", "amount", "total")
        return self._named_like(*usual) or self._only()

    def _named_like(self, *names: str) -> tuple[str, ...]:
        """The first column of numbers that has one of these words in its name."""
        for name in names:
            for column in self.frame.columns:
                if column.numeric and name in _parts(column.name):
                    return (column.name,)
        return ()

    def _shared(
        self,
        by: tuple[Key, ...],
        numbers: tuple[str, ...],
        values: Sequence[_Token],
        order: str,
        word: str,
    ) -> Query | str:
        binary = [n for n in numbers if self.frame.column(n).binary]
        if binary:
            where = self._conditions(values)
            if order and by:
                return Query(
                    "aggregate", (binary[0],), "mean", by, where, _of(order),
                    wants="first", word=word,
                )  # fmt: skip
            return Query("aggregate", (binary[0],), "mean", by, where, wants="share")
        if numbers and (by or values):
            if not by:
                by = (Key(values[-1].columns[0]),)
                subjects = (str(values[-1].value),)
                values = values[:-1]
            else:
                subjects = ()
            where = self._conditions(values)
            return Query(
                "aggregate", numbers[:1], "sum", by, where, "descending",
                wants="share", subjects=subjects,
            )  # fmt: skip
        if by:
            where = self._conditions(values)
            return Query("aggregate", (), "count", by, where, "descending", wants="share")
        if values and not numbers:
            *others, subject = values
            where = self._conditions(others)
            return Query(
                "aggregate", (), "count", (Key(subject.columns[0]),), where, "descending",
                wants="share", subjects=(str(subject.value),),
            )  # fmt: skip
        return "I cannot tell of what the share is meant"

    def _compares(self, values: Sequence[_Token]) -> Query | str | None:
        """A question whether one group is more than another, None if it is none."""
        columns = {t.columns[0] for t in values}
        if len(values) != 2 or len(columns) != 1:
            return None
        if not self._says(_THAN | {"compare", "comparison", "and"}):
            return None
        (column,) = columns
        more = self._comparative()
        numbers = [n for n in dict.fromkeys(c for _, t in self._refs() for c in t.columns)]
        numbers = [n for n in numbers if self._is_measure(n)]
        measures = tuple(numbers) or (more[2] if more else ())
        subjects = tuple(str(t.value) for t in values)
        statistic = next(
            (_STATISTICS[t.word] for t in self.tokens if not t.role and t.word in _STATISTICS), None
        )
        binary = bool(measures) and self.frame.column(measures[0]).binary
        counting = not measures
        if counting and not self._says(_COUNT | {"many"}) and not (more and more[1] == "more"):
            return "I cannot tell by which column to compare"
        return Query(
            "aggregate",
            measures[:1],
            "count" if counting else "mean" if binary else statistic or self._default(measures),
            (Key(column),),
            self._conditions([]),
            "descending" if more is None or more[0] else "ascending",
            wants="compare" if more else "",
            subjects=subjects,
            word=more[1] if more else "",
        )

    def _compares_years(self, years: Sequence[int]) -> Query | str | None:
        """A question whether one year is more than another, None if it is none."""
        if len(years) != 2 or not self._says({"than"}):
            return None
        more = self._comparative()
        numbers = [c for _, t in self._refs() for c in t.columns if self._is_measure(c)]
        measures = tuple(numbers) or (more[2] if more else ())
        year = next(c for c in self.conditions if c.value in years)
        if more is None or not measures:
            return "I cannot tell by which column to compare"
        return Query(
            "aggregate",
            self._one_of(measures, _order(more[0]))[:1],
            self._default(measures),
            (Key(year.column, cast(Period, year.part)),),
            order=_of(_order(more[0])),
            wants="compare",
            subjects=(str(years[0]), str(years[1])),
            word=more[1],
        )

    def _latest(self, numbers: Sequence[str], conditions: tuple[Condition, ...]) -> Query | None:
        """A question for the last or the first in time, None if it is none."""
        date = self.frame.date
        for index, token in enumerate(self.tokens):
            if token.role or token.word not in _LATEST or date is None or not numbers:
                continue
            if self._word(index + 1) in _PERIODS or self._word(index + 1).isdigit():
                continue
            token.role = "order"
            if self._word(index - 1) == "most":
                self.tokens[index - 1].role = "order"
            order = "ascending" if token.word in ("earliest", "oldest", "first") else "descending"
            return Query(
                "rows", (date.name,), where=conditions, order=_of(order), top=1, wants="first"
            )
        return None

    def _distinct(self, name: str, values: Sequence[_Token]) -> Query:
        where = self._conditions(values)
        if self._says(_COUNT):
            return Query("aggregate", (name,), "nunique", where=where)
        return Query("values", (name,), where=where)

    def _count(
        self,
        by: tuple[Key, ...],
        named: tuple[str, ...],
        numbers: tuple[str, ...],
        statistic: Statistic | None,
        conditions: tuple[Condition, ...],
        order: str,
        word: str,
    ) -> Query | str:
        frame = self.frame
        if self._says({"columns", "column", "variables", "fields", "features"}):
            return Query("shape")
        if statistic in ("mean", "median"):
            if numbers:
                return self._aggregate(by, numbers, named, statistic, conditions, [])
            return "I cannot tell which column is meant"
        binary = [n for n in numbers if frame.column(n).binary]
        wants: Any = "first" if order else ""
        if binary:
            conditions = (*conditions, self._is_true(binary[0]))
        elif numbers and self._default(numbers) == "sum":
            return Query("aggregate", numbers[:1], "sum", by, conditions, _of(order), wants=wants)
        elif len(named) == 1 and not (by and order):
            column = frame.column(named[0])
            listed = f"how many {self._asked_after_many()}"
            about = not column.numeric or column.counted
            if about and listed != "how many " and not frame.is_key(named[0]):
                if by or conditions or self._counted_first(named[0]):
                    return Query("aggregate", named, "nunique", by, conditions)
            if about and not by:
                return Query(
                    "aggregate",
                    (),
                    "count",
                    (Key(named[0]),),
                    conditions,
                    "descending",
                    wants=wants,
                )
        days = self._asked_after_many() in ("days", "dates", "day")
        if days and frame.date and not frame.is_key(frame.date.name) and not by:
            return Query("aggregate", (frame.date.name,), "nunique", (), conditions)
        chosen = _of(order) if order else ("descending" if by and not by[0].period else "")
        return Query("aggregate", (), "count", by, conditions, _of(chosen), wants=wants, word=word)

    def _is_true(self, name: str) -> Condition:
        """That a column of yes and no says yes, or no where the question has a "not"."""
        negated = [t for t in self.tokens if not t.role and t.word in _NEGATIONS]
        for token in negated:
            token.role = "negation"
        value: Any = not negated
        return Condition(name, "==", int(value) if self.frame.column(name).numeric else value)

    def _asked_after_many(self) -> str:
        for index, token in enumerate(self.words):
            if token in ("many", "number"):
                for i in range(index + 1, min(index + 4, len(self.words))):
                    if self.words[i] not in ("of", "the", "different", "trading", "unique"):
                        return self.words[i]
        return ""

    def _counted_first(self, name: str) -> bool:
        """Whether "how many" is said of that column: "how many species are there"."""
        word = self._asked_after_many()
        return any(_fits(part, word) >= 2 for part in _parts(name))

    def _ranking(
        self,
        by: tuple[Key, ...],
        measures: tuple[str, ...],
        statistic: Statistic | None,
        conditions: tuple[Condition, ...],
        order: str,
        word: str,
        top: int | None,
    ) -> Query | str:
        frame = self.frame
        counts = word in ("most", "least", "fewest") or (adjective(word.split()[-1]) or (0, []))[1]
        measures = measures or self._meant_by_verb()
        measures = self._one_of(measures, order)
        others = [
            Key(c) for _, t in self._refs() for c in t.columns[:1] if not frame.column(c).numeric
        ]
        asked = bool(
            self._says({"which", "what", "who", "top", "bottom", "whose", "when", "where"}) or top
        )
        if not by and (asked or others):
            by = tuple(k for k in others if not frame.column(k.column).dated)[:1]
        superlatives = [k for k in by if self._after_each(k)]
        if not measures:
            common = isinstance(counts, list) and "count" in counts or word in ("most", "fewest")
            if by and common:
                return Query(
                    "aggregate",
                    (),
                    "count",
                    by[:1],
                    conditions,
                    _of(order),
                    top,
                    "first",
                    word=word,
                )
            return f"I cannot tell which column “{word}” is about"
        if not by:
            if top is None and not self._says({"who", "whose", "which", "when", "where", "row"}):
                extreme: Statistic = "max" if order == "descending" else "min"
                if statistic is None:
                    if not any(not c.numeric and frame.is_key(c.name) for c in frame.columns):
                        return Query("aggregate", measures, extreme, (), conditions)
                    return Query(
                        "rows", measures, where=conditions, order=_of(order), top=1,
                        wants="first", word=word,
                    )  # fmt: skip
            return Query(
                "rows", measures, where=conditions, order=_of(order), top=top,
                wants="first" if top is None else "", word=word,
            )  # fmt: skip
        if superlatives and not top and not self._says({"which", "who"}):
            extreme = "max" if order == "descending" else "min"
            return Query("aggregate", measures, extreme, by, conditions)
        if (
            len(by) == 1
            and not by[0].period
            and (frame.is_key(by[0].column) or (frame.column(by[0].column).dated and conditions))
        ):
            return Query(
                "rows", measures, where=conditions, order=_of(order), top=top,
                wants="first" if top is None else "", word=word, by=by,
            )  # fmt: skip
        statistic = statistic or self._default(measures)
        return Query(
            "aggregate", measures, statistic, by, conditions, _of(order), top, "first", word=word
        )

    def _after_each(self, key: Key) -> bool:
        """Whether the question says "of each" of a key: a superlative is then one for each."""
        for index, token in enumerate(self.tokens):
            named = token.role == "period" or (
                token.role == "column" and key.column in token.columns
            )
            if named and {self._word(index - 1), self._word(index - 2)} & {
                "each",
                "every",
                "per",
                "by",
            }:
                return True
        return False

    def _aggregate(
        self,
        by: tuple[Key, ...],
        numbers: tuple[str, ...],
        named: tuple[str, ...],
        statistic: Statistic | None,
        conditions: tuple[Condition, ...],
        values: Sequence[_Token],
    ) -> Query | str:
        if (
            not numbers
            and by
            and self._says(_COUNT | _SHOW | {"list", "rows", "breakdown", "split"})
        ):
            return Query("aggregate", (), "count", by, conditions, "descending")
        if not numbers and len(by) == 1 and not by[0].period and not named:
            return Query("values", (by[0].column,), where=conditions)
        if not numbers:
            return "I cannot tell what is to be computed"
        # "Is the average over 40?": the average itself is the answer.
        if statistic:
            conditions = tuple(
                c for c in conditions if c.column not in numbers or c.operator == "=="
            )
        elif not by and not self._says({"much"}) and self._default(numbers) == "mean":
            if not conditions:
                return Query("summary", numbers)
            return Query("rows", numbers, where=conditions, top=10)
        statistic = statistic or self._default(numbers)
        order = "descending" if by and not any(self._timed(key) for key in by) else ""
        return Query("aggregate", numbers[:4], statistic, by, conditions, _of(order))

    def _timed(self, key: Key) -> bool:
        column = self.frame.column(key.column)
        return bool(key.period) or column.dated or column.numeric


def _token(text: str) -> _Token:
    word = text.lower().replace("’", "'")
    if word.endswith("'s") and word not in ("it's", "what's", "that's", "there's"):
        word = word[:-2]
    if word[0].isdigit() and not _DATE.fullmatch(word):
        word = word.replace(",", "")
    return _Token(text, word.strip("`"))


def _alike(value: str, said: str) -> bool:
    """Whether a word names a value: in another form, or as rainy names rain."""
    value, said = value.lower(), said.lower()
    if value == said or (value.isalpha() and stem(value) == stem(said)):
        return True
    root = said.removesuffix("y")
    doubled = root[:-1] if root[-1:] == root[-2:-1] else root
    return said.endswith("y") and len(value) >= 3 and value in (root, doubled)


def _order(up: bool) -> str:
    return "descending" if up else "ascending"


def _of(order: str) -> Any:
    return order
