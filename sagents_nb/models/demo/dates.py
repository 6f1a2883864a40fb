"""Times in a question about a data frame: those that rows have to be of, and those it asks for.

It asks from when to when there are rows, for the range of a column, or for the first or the last.
"""

from __future__ import annotations

import re
from calendar import monthrange
from typing import cast

import msgspec
from msgspec.structs import replace

from .asked import Asked, order_of
from .data_words import COMPARE, COUNT, ENDS, LATEST, ORDINALS, PERIODS
from .frames import Column
from .queries import MONTHS, Condition, Operator, Part, Query, Statistic
from .reading import Reading, Token, parts_of
from .words import word_set

YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_QUARTER = re.compile(r"q[1-4]")
_MONTHS = {name.lower()[:n]: i for i, name in enumerate(MONTHS, 1) for n in (3, len(name))}
_WHEN: dict[str, Operator] = {"after": ">", "since": ">=", "before": "<", "until": "<="}
_JOINS = {"from": ("to", "until", "through", "till"), "between": ("and",)}
# "The newest film": they say by themselves that the rows are taken in time.
_ENDS_OF_TIME = word_set("newest latest earliest")
# What stands before a month, however it is written.
_BEFORE = word_set("in during from to and since until till before after of for")
_TIMES = r"(?:dates?|days?|months?|years?|time)"
# Each asks for the first and the last time.
_SPANS = (
    rf"(?:between|over|across) (?:which|what) (?:two )?{_TIMES}",
    rf"from (?:when|(?:which|what) {_TIMES}) (?:to|until|till) "
    rf"(?:when|(?:which|what)(?: {_TIMES})?)",
    r"between when and when",
    rf"(?:the )?(?:first|earliest) and (?:the )?(?:last|latest) {_TIMES}",
)


class _Moment(msgspec.Struct, frozen=True):
    """A day or a month that is named, and where; ``year`` is 0 where it is not said with it."""

    start: int
    last: int
    day: str = ""
    month: int = 0
    year: int = 0


def mark_dates(reading: Reading) -> None:
    """Years, months and days, of the column that says when."""
    date = reading.frame.date
    moments = _moments(reading) if date else []
    for number, moment in enumerate(moments):
        following = moments[number + 1] if number + 1 < len(moments) else None
        if reading.is_free(moment.start):
            _mark_moment(reading, moment, following, cast(Column, date))
    if date:
        _mark_quarters(reading, date)
    for index, token in enumerate(reading.tokens):
        if not token.role and YEAR.fullmatch(token.text):
            _mark_year(reading, index, token, date)


def _mark_quarters(reading: Reading, date: Column) -> None:
    """Quarters such as "Q1" and "the first quarter", be it as the ends of a time."""
    found: list[tuple[int, int]] = []  # where one ends, and which it is
    for index, token in enumerate(reading.tokens):
        if token.role:
            continue
        number = int(token.word[1]) if _QUARTER.fullmatch(token.word) else 0
        place = ORDINALS.get(reading.word(index - 1), 0)
        if token.word == "quarter" and place <= 4 and reading.is_free(index - 1):
            number = place
            reading.tokens[index - 1].role = "date" if place else ""
        if number:
            token.role = "date"
            found.append((index, number))
    numbers = [number for _, number in found]
    joins = set(reading.words[found[0][0] : found[1][0]]) if len(found) == 2 else set()
    if joins & {"to", "until", "through", "till"} and numbers == sorted(numbers):
        reading.of_part = "quarter"
        reading.conditions.append(Condition(date.name, ">=", numbers[0], "quarter"))
        reading.conditions.append(Condition(date.name, "<=", numbers[1], "quarter"))
        return
    reading.conditions += [Condition(date.name, "==", number, "quarter") for number in numbers]


def _moments(reading: Reading) -> list[_Moment]:
    """The days and months that are named, in their order."""
    found = []
    for index, token in enumerate(reading.tokens):
        if token.role:
            continue
        if _DATE.fullmatch(token.text):
            found.append(_Moment(index, index, day=token.text))
        elif (month := _MONTHS.get(token.word)) and _is_month(reading, index):
            year = reading.word(index + 1) if reading.is_free(index + 1) else ""
            dated = YEAR.fullmatch(year) is not None
            last = index + 1 if dated else index
            found.append(_Moment(index, last, month=month, year=int(year) if dated else 0))
    return found


def _is_month(reading: Reading, index: int) -> bool:
    """Whether such a word is a month there: "may" and "mar" are something else, too."""
    token = reading.tokens[index]
    return token.text[0].isupper() or len(token.word) > 3 or reading.word(index - 1) in _BEFORE


def _mark_moment(
    reading: Reading, moment: _Moment, following: _Moment | None, date: Column
) -> None:
    """What a day or a month says of rows, be it with another one as the ends of a time."""
    begins, ends = reading.word(moment.start - 1), following and following.start - 2
    joins = _JOINS.get(begins, ())
    joined = following and ends == moment.last and reading.word(moment.last + 1) in joins
    if following and joined and not reading.says(COMPARE):
        return _mark_range(reading, moment, following, date)
    operator = _WHEN.get(begins, "==")
    if begins == "to" and reading.word(moment.start - 2) == "up":
        operator = "<="
    if operator != "==":
        reading.tokens[moment.start - 1].role = "operator"
        early = operator in ("<", ">=")
        return _mark_end(reading, moment, operator, early, date)
    reading.tokens[moment.start].role = "date"
    if moment.day:
        reading.conditions.append(Condition(date.name, "==", moment.day, _day(date)))
    else:  # a year after it is read by itself
        reading.conditions.append(Condition(date.name, "==", moment.month, "month"))
    return None


def _mark_range(reading: Reading, first: _Moment, last: _Moment, date: Column) -> None:
    """The time from one day or month to another one; its year may only be said once."""
    if first.month and not first.year and last.year:
        first = replace(first, year=last.year - (first.month > last.month))
    if first.month and last.month and not last.year and first.month > last.month:
        reading.reason = reading.reason or "I cannot tell of which years these months are"
    reading.of_part = "month" if first.month and last.month else ""
    _mark_end(reading, first, ">=", True, date)
    _mark_end(reading, last, "<=", False, date)
    reading.tokens[first.start - 1].role = reading.tokens[last.start - 1].role = "operator"


def _mark_end(
    reading: Reading, moment: _Moment, operator: Operator, early: bool, date: Column
) -> None:
    for token in reading.tokens[moment.start : moment.last + 1]:
        token.role = "date"
    if moment.month and not moment.year:
        reading.conditions.append(Condition(date.name, operator, moment.month, "month"))
        return
    day = moment.day or f"{moment.year}-{moment.month:02}-01"
    if moment.month and not early:
        day = f"{day[:8]}{monthrange(moment.year, moment.month)[1]:02}"
    reading.conditions.append(Condition(date.name, operator, day, _day(date)))


def _mark_year(reading: Reading, index: int, token: Token, date: Column | None) -> None:
    names = {c.name for c in reading.frame.columns}
    year = next((c for c in reading.frame.columns if "year" in parts_of(c.name)), None)
    if token.text in names:
        token.role, token.columns = "column", (token.text,)
        return
    if year is None and date is None:
        return
    operator = _end_of_range(reading, index) or _WHEN.get(reading.word(index - 1), "==")
    if reading.word(index - 1) in _WHEN:
        reading.tokens[index - 1].role = "operator"
    token.role, token.value = "year", int(token.text)
    if year is not None:
        reading.conditions.append(Condition(year.name, operator, token.value))
    else:
        name = cast(Column, date).name
        reading.conditions.append(Condition(name, operator, token.value, "year"))


def _end_of_range(reading: Reading, index: int) -> Operator | None:
    """Of "from 2023 to 2025" or "between 2023 and 2025" what the year there says."""
    if reading.says(COMPARE):
        return None
    for first, operator in ((index, ">="), (index - 2, "<=")):
        said = reading.word(first + 1) in _JOINS.get(reading.word(first - 1), ())
        if said and YEAR.fullmatch(reading.word(first)) and YEAR.fullmatch(reading.word(first + 2)):
            return cast(Operator, operator)
    return None


def _day(date: Column) -> Part:
    """What is compared of a column with a day: its days, as it may have times of the day."""
    return "" if date.dtype.startswith("period") else "day"


def mark_span(reading: Reading) -> None:
    """The words that ask from when to when there are rows: "between which dates"."""
    words = " ".join(reading.words)
    for phrase in _SPANS if reading.frame.date else ():
        match = re.search(rf"(?<!\S){phrase}(?!\S)", words)
        if match is None:
            continue
        start = words[: match.start()].count(" ")
        for token in reading.tokens[start : start + match[0].count(" ") + 1]:
            token.role, token.columns = "span", ()
        reading.spans = True
        return


def span_of(asked: Asked, where: tuple[Condition, ...]) -> Query | str | None:
    """The first and the last date and how many rows there are, be it of each group.

    None where the question does not ask from when to when.
    """
    if not asked.reading.spans:
        return None
    date, counts = asked.frame.date, asked.reading.says(COUNT)
    others = [name for name in asked.named if date is None or name != date.name]
    by = tuple(key for key in asked.by if date is None or key.column != date.name)
    if date is None or others or len(by) < len(asked.by) or asked.order or asked.statistic:
        return "I tell how many rows there are and between which dates, and nothing beside"
    statistic: Statistic = "count" if counts or by else "mean"
    return Query("range", (date.name,), statistic, by, where)


def range_of(asked: Asked, where: tuple[Condition, ...]) -> Query | None:
    """The least and the most of a column, by itself of the dates; None if it does not ask so."""
    if not _is_range(asked):
        return None
    date = asked.frame.date.name if asked.frame.date else ""
    return Query("range", (next(iter(asked.named), date),), where=where)


def _is_range(asked: Asked) -> bool:
    says = asked.reading.says
    timed = asked.frame.date is not None
    dates = timed and says({"date", "dates", "time", "period", "days"})
    both = all(says(ends) or asked.superlative in ends for ends in ENDS)
    if (says({"range"}) or both) and (asked.named or dates) and not asked.by:
        return True
    if says({"cover", "covers", "covered", "span", "spans"}):
        return timed
    return dates and says({"earliest", "latest", "start", "end"}) and not says({"which"})


def latest_of(asked: Asked, where: tuple[Condition, ...]) -> Query | None:
    """A question for the last or the first in time, None if it is none."""
    date = asked.frame.date
    if date is None or any(key.column != date.name for key in asked.by):
        return None
    yes = [name for name in asked.numbers if asked.frame.column(name).binary]
    for index, token in enumerate(asked.tokens):
        if token.role or token.word not in LATEST:
            continue
        of_row = token.word in _ENDS_OF_TIME and asked.reading.is_row(index + 1)
        timed = asked.numbers or "when" in asked.reading.words or date.name in asked.named
        if not (timed or of_row):
            continue
        after = asked.reading.word(index + 1)
        if after in PERIODS or after.isdigit() or after == "first":
            continue  # "newest first" is an order
        token.role = "order"
        if asked.reading.word(index - 1) == "most":
            asked.tokens[index - 1].role = "order"
        first = token.word in ("earliest", "oldest", "first")
        return Query(
            "rows",
            (date.name, *(name for name in asked.numbers if name not in yes)),
            where=(*where, *(asked.is_true(name) for name in yes)),
            order=order_of(not first),
            top=1,
            wants="first",
        )
    return None
