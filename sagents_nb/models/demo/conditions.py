"""What a question says that rows have to be: over a number or an average, or not of a value.

Values that they have to be of are read in :mod:`reading`, and times in :mod:`dates`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from .data_words import EXCLUDING, LESS, MORE, ORDINALS, SCALES, STATISTICS, UNITS
from .queries import Condition, Operator
from .reading import Reading, parts_of
from .words import adjective, word_set

_NUMBER = re.compile(r"\d+(\.\d*)?")  # no date, and no "9am"
_PEOPLE = word_set(
    "women men woman man girls boys females males female male patients people persons passengers "
    "adults smokers employees customers students participants members players"
)
_BEFORE_VALUE = word_set(
    "a an the in from of to with is are was were be those that who which have has any by at on for "
    "and or nor come came live lives belong"
)


def mark_conditions(reading: Reading) -> None:
    """Put what rows have to be to the conditions of a question, and mark the words that say so."""
    _mark_comparisons(reading)
    _mark_averages(reading)
    _mark_equalities(reading)
    _mark_exclusions(reading)


def _mark_comparisons(reading: Reading) -> None:
    """Numbers that a column is to be over or under."""
    for index, token in enumerate(reading.tokens):
        if token.role or not _NUMBER.fullmatch(token.word):
            continue
        operator, start = _operator(reading, index)
        if operator is None:
            continue
        column = _compared(reading, start, index)
        if column is None:
            reading.reason = reading.reason or f"I cannot tell which column “{token.text}” is about"
            continue
        after = index + 1
        token.role, token.columns = "compared", (column,)
        reading.conditions.append(Condition(column, operator, _number(reading, index)))
        for i in range(start, index):
            if not reading.tokens[i].role:
                reading.tokens[i].role = "operator"
        if reading.word(start) == "between" and reading.word(index + 1) == "and":
            following = index + 2
            if reading.is_free(following) and _NUMBER.fullmatch(reading.word(following)):
                reading.tokens[following].role = "compared"
                high = _number(reading, following)
                reading.conditions.append(Condition(column, "<=", high))
                after = following + 1
        if reading.word(index + 1) == "or" and start == index:
            reading.tokens[index + 1].role = reading.tokens[index + 2].role = "operator"
        while reading.word(after) in UNITS | SCALES.keys() and reading.is_free(after):
            reading.tokens[after].role = "unit"
            after += 1


def _number(reading: Reading, index: int) -> int | float:
    """The number there: "1.5 million" is 1500000."""
    text, scale = reading.word(index), SCALES.get(reading.word(index + 1), 1)
    number = float(text) if "." in text else int(text)
    scaled = number * scale
    return int(scaled) if scale > 1 and scaled == int(scaled) else scaled


def _mark_averages(reading: Reading) -> None:
    """An average that rows are compared with: "above average", "more than the median fare"."""
    for index, token in enumerate(reading.tokens):
        statistic = STATISTICS.get(token.word)
        before = index - 1 if reading.word(index - 1) in ("the", "its", "their") else index
        operator, start = _operator(reading, before)
        if token.role or statistic not in ("mean", "median") or operator is None:
            continue
        if reading.word(start) == "between":
            continue  # two averages
        column = _of_average(reading, index) or _compared(reading, start, index)
        others = [t for t in reading.tokens if not t.role and t.word in STATISTICS]
        if column is None:
            reading.reason = reading.reason or f"I cannot tell which column “{token.text}” is about"
        elif len(others) > 1 or any(t.role == "value" for t in reading.tokens[index:]):
            reading.reason = reading.reason or "I compare rows with an average, and no two averages"
        else:
            token.role, token.columns = "compared", (column,)
            condition = Condition(column, operator, None, statistic=statistic)
            reading.conditions.append(condition)
            for i in range(start, index):
                reading.tokens[i].role = reading.tokens[i].role or "operator"


def _of_average(reading: Reading, index: int) -> str:
    """The column of numbers that follows an average: "average fare", "average in age"."""
    following = index + 1
    while reading.word(following) in ("in", "for", "of", "the", "by") and reading.is_free(
        following
    ):
        following += 1
    token = reading.tokens[following] if following < len(reading.tokens) else None
    if token is None or token.role != "column":
        return ""
    name = token.columns[0]
    if not reading.frame.column(name).numeric:
        return ""
    token.role = "condition"
    return name


def _operator(reading: Reading, index: int) -> tuple[Operator | None, int]:
    """The comparison before a number, and where it begins."""
    one, two = reading.word(index - 1), reading.word(index - 2)
    if reading.word(index + 1) == "or" and reading.word(index + 2) in MORE | LESS:
        return (">=" if reading.word(index + 2) in MORE else "<="), index
    if one in ("<", "<=", ">", ">="):
        return cast(Operator, one), index - 1
    if one == "than" and two:
        known = adjective(two)
        if two in LESS or (known and not known[0]):
            return "<", index - 2
        if two in MORE or known:
            return ">", index - 2
    if (two, one) in (("at", "least"), ("at", "most"), ("up", "to")):
        return (">=" if one == "least" else "<="), index - 2
    if one == "between":
        return ">=", index - 1
    if one in ("over", "above", "exceeding", "exceeds"):
        return ">", index - 1
    if one in ("under", "below"):
        return "<", index - 1
    if one in ("exactly", "equals", "="):
        return "==", index - 1
    return None, index


def _compared(reading: Reading, start: int, index: int) -> str | None:
    for i in range(start, index):
        known = adjective(reading.word(i))
        named = reading.measured(known[1]) if known else ()
        if named:
            return _nearest(reading, named, index)
    if measured := _of_unit(reading, start, index):
        return measured
    people = reading.named_like("age") if _ends_there(reading, index) else ()
    if people and reading.word(start - 1) in _PEOPLE:  # "the weight of women over 50"
        return people[0]
    near = [*range(start - 1, -1, -1), *range(index + 1, len(reading.tokens))]
    for i in near:
        token = reading.tokens[i]
        name: str = token.columns[0] if token.role == "column" else ""
        numbered = "id" in parts_of(name) and "id" not in parts_of(token.text)  # "rentals over 5"
        if name and _is_number(reading, name) and not numbered:
            token.role = "condition"
            return name
    meant = reading.meant_by_verb()
    return next(iter(meant or people), None)


def _of_unit(reading: Reading, start: int, index: int) -> str:
    """The column that a number is of which it stands before, or whose unit it has; "" without.

    "Below 10 m depth", "over 3 rooms", "over 70 kg"; but of "age over 70 weight" it is the age.
    """
    if reading.word(index - 1) == "between" and reading.word(index + 1) == "and":
        index += 2
    units = index + 1
    while reading.word(units) in UNITS | SCALES.keys() and reading.is_free(units):
        units += 1
    plain = units == index + 1
    if plain and start and reading.tokens[start - 1].role in ("column", "part"):
        return ""
    after = units + (reading.word(units) in ("of", "in"))
    token = reading.tokens[after] if after < len(reading.tokens) else None
    named = token.columns if token and token.role == "column" else ()
    if token and len(named) == 1 and _is_number(reading, named[0]):
        token.role = "condition"
        return named[0]
    if plain:
        return ""
    unit = reading.word(index + 1)
    fitting = [
        column.name
        for column in reading.frame.columns
        if _is_number(reading, column.name) and unit in re.findall("[a-z]+", column.name.lower())
    ]
    if len(fitting) != 1:
        return ""
    for token in reading.tokens:
        if token.role == "column" and token.columns == (fitting[0],):
            token.role = "condition"
            break
    return fitting[0]


def _is_number(reading: Reading, name: str) -> bool:
    """Whether a column holds numbers to compare with."""
    column = reading.frame.column(name)
    return column.numeric and not column.binary


def _nearest(reading: Reading, named: Sequence[str], index: int) -> str | None:
    """Of the columns of a quantity the one that is named: "flippers longer than 200"."""
    for token in sorted(reading.tokens, key=lambda t: abs(reading.tokens.index(t) - index)):
        fitting = [c for c in token.columns if c in named and token.role == "column"]
        if fitting:
            token.role = "condition"
            return fitting[0]
    # "Older than 5" tells nothing of a year.
    return named[0] if len(named) == 1 and not reading.is_year(named[0]) else None


def _ends_there(reading: Reading, index: int) -> bool:
    """Whether nothing is counted by a number: "patients under 30", and not "over 3 visits"."""
    if reading.word(index + 1) == "and" and reading.word(index + 2).isdecimal():
        index += 2
    following = reading.tokens[index + 1] if index + 1 < len(reading.tokens) else None
    framed = following is not None and following.role == "frame"
    if following and following.role == "column":  # "under 18 survived"
        return reading.frame.column(following.columns[0]).binary
    return framed or reading.word(index + 1) in _BEFORE_VALUE | {"", "there", "years", "old"}


def _mark_equalities(reading: Reading) -> None:
    """A class or the like that is a number: "class 3", "third class"."""
    for index, token in enumerate(reading.tokens):
        word = token.word
        number = ORDINALS.get(word) or (int(word) if word.isdecimal() else None)
        if token.role or number is None:
            continue
        for near in (index - 1, index + 1):
            if not 0 <= near < len(reading.tokens) or reading.tokens[near].role != "column":
                continue
            column = reading.frame.column(reading.tokens[near].columns[0])
            if column.numeric and str(number) in column.values:
                token.role, reading.tokens[near].role = "value", "condition"
                token.columns, token.value = (column.name,), number
                break


def _mark_exclusions(reading: Reading) -> None:
    """Values that rows are not to have: "excluding Berlin and Bonn", "is not ok"."""
    excluded = -1  # where the last one is
    for index, token in enumerate(reading.tokens):
        if token.role != "value":
            continue
        start = index - 1
        while start > excluded and _leads_to_value(reading, start, token.columns[0]):
            start -= 1
        joined = excluded >= 0 and start == excluded
        says = reading.word(start) in EXCLUDING and reading.is_free(start)
        if reading.word(start) == "than" and reading.word(start - 1) == "other":
            says = True
            reading.tokens[start - 1].role = "negation"
        if says:
            reading.tokens[start].role = "negation"
        if not (says or (joined and set(reading.words[start + 1 : index]) & {"and", "or", "nor"})):
            continue
        excluded = index
        while excluded + 1 < len(reading.tokens) and reading.tokens[excluded + 1].role == "part":
            excluded += 1
        if ends := reading.frame.column(token.columns[0]).yes_and_no:
            token.value = ends[token.value == ends[0]]
            continue
        token.role = "excluded"
        reading.conditions.append(Condition(token.columns[0], "!=", token.value))


def _leads_to_value(reading: Reading, index: int, column: str) -> bool:
    """Whether a word may stand between a negation and a value: "except those of"."""
    token = reading.tokens[index]
    if token.word in EXCLUDING:
        return False
    if token.role in ("column", "condition"):
        return column in token.columns
    named = token.role in ("frame", "part")
    return named or (not token.role and (token.word in _BEFORE_VALUE or reading.is_entity(index)))
