"""What the demo model knows of a data frame of the notebook, from what tools and prompts say of it.

It sees no frame, only text: the description that stands after a prompt with ``{name}``, the
list of ``inspect_variables``, and what ``show_frame`` gives.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from .words import stem, words

Row = dict[str, Any]

WHOLE = 50  # rows that show_frame shows at most

# Where what a prompt names is described after it.
_BEGINS = r"\n\n`[A-Za-z_][\w.]*` is a (?:DataFrame, |Series of |NumPy array of )"
_DESCRIPTION = re.compile(
    rf"^`([A-Za-z_][\w.]*)` is a (DataFrame, .*?)(?={_BEGINS}|\Z)", re.DOTALL | re.MULTILINE
)
_ATTRIBUTE = re.compile(r"^`(\w+)\.(\w+)` is a Series of ", re.MULTILINE)
_DESCRIBED = re.compile(_BEGINS)
_LISTED = re.compile(r"^([A-Za-z_]\w*): \w+ (DataFrame, [\d,]+ rows? × \d+ columns?)", re.MULTILINE)
# What inspect_variables says of those that it is asked for by name.
_INSPECTED = re.compile(
    r"^([A-Za-z_]\w*): (DataFrame, .*?)(?=\n\n[A-Za-z_]\w*: |\Z)", re.DOTALL | re.MULTILINE
)
_SHAPE = re.compile(r"DataFrame, ([\d,]+) rows? × (\d+) columns?(?:, indexed by ([^\n]*))?")
_COLUMN = re.compile(r"^- (.*): (\S.*?)(, named by a number)?(?:, (\d+) missing)?$")
_VALUES = re.compile(r"^- (.*?): (\{.*\}|[\d,]+ different)$")
_VALUES_OF = "\nValues, and how often each is there:\n"
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?:[T ].*)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")
_YES_OR_NO = {"1", "1.0", "0", "0.0"}


class Column(msgspec.Struct, frozen=True):
    """A column: its type as pandas names it, and what is known of its values.

    ``numbered`` says that its name is a number and no text.
    ``values`` says how often each is there, {} where there are many; ``different`` how many
    there are, None if that is not known; ``statistics`` is what ``describe`` says; ``examples``
    are values of the first rows.
    """

    name: str
    dtype: str
    missing: int = 0
    numbered: bool = False
    values: Mapping[str, int] = {}
    different: int | None = None
    statistics: Mapping[str, str] = {}
    examples: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers, which truth values are not."""
        return self.dtype.lower().startswith(("int", "float", "uint", "decimal"))

    @property
    def is_time(self) -> bool:
        """Whether pandas knows that it holds times."""
        return self.dtype.startswith(("datetime", "period"))

    @property
    def dated(self) -> bool:
        """Whether it holds dates, be it as text."""
        texts = self.examples if not self.numeric else ()
        if self.is_time:
            return True
        return bool(texts) and all(_DATE.fullmatch(text) for text in texts)

    @property
    def timed(self) -> bool:
        """Whether it holds times of the day, as far as that is seen."""
        clock = any(not t.endswith("00:00:00") and len(t) > 10 for t in self.examples)
        return self.dated and clock

    @property
    def iso(self) -> bool:
        """Whether its dates are seen as ``2025-03-31``."""
        return bool(self.examples) and all(_ISO.fullmatch(text) for text in self.examples)

    @property
    def binary(self) -> bool:
        """Whether it says yes or no, as 1 and 0 or True and False."""
        if self.dtype in ("bool", "boolean"):
            return True
        return self.numeric and len(self.values) == 2 and set(self.values) <= _YES_OR_NO

    @property
    def yes_and_no(self) -> tuple[str, ...]:
        """What stands for yes and for no where these words are all that it holds, else ()."""
        held = {value.lower(): value for value in self.values}
        for pair in (("yes", "no"), ("y", "n"), ("true", "false")):
            if set(held) == set(pair) and not self.binary:
                return tuple(held[said] for said in pair)
        return ()

    @property
    def counted(self) -> bool:
        """Whether it sorts rows into groups, as a class or a year does that is a number."""
        if not self.values or self.binary or self.dated:
            return False
        repeated = sum(self.values.values()) >= 3 * len(self.values)
        return not self.numeric or (repeated and not self.dtype.lower().startswith("float"))

    def typed(self, text: str) -> Any:
        """A value of it as it stands in a CSV."""
        if not text:
            return None
        if self.numeric:
            return as_number(text)
        return text == "True" if self.dtype in ("bool", "boolean") else text


class Frame(msgspec.Struct, frozen=True):
    """A data frame: its name, its columns, how many it has of rows and columns, the rows seen.

    ``index`` are those columns that are levels of its index; ``shown`` says that ``show_frame``
    showed it, so that statistics and values are known. What was ``recalled`` of an earlier turn may
    have changed since.
    """

    name: str
    size: int
    width: int
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    index: tuple[str, ...] = ()
    shown: bool = False
    recalled: bool = False

    @property
    def whole(self) -> bool:
        """Whether every row was seen."""
        seen = len(self.rows) == self.size and not self.recalled
        return bool(self.columns) and seen and not self.ambiguous

    @property
    def ambiguous(self) -> bool:
        """Whether two columns have one name."""
        return len({column.name for column in self.columns}) < len(self.columns)

    def column(self, name: str) -> Column:
        """The column of that name; raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def is_key(self, name: str) -> bool:
        """Whether each row has a value of its own in that column."""
        column = self.column(name)
        return column.different is not None and column.different == self.size - column.missing

    def numbers_rows(self, name: str) -> bool:
        """Whether a column holds the numbers of the rows, without a gap."""
        column = self.column(name)
        if not column.dtype.lower().startswith(("int", "uint")) or not self.is_key(name):
            return False
        numbers = [row[name] for row in self.rows] if self.whole else []
        if {"min", "max"} <= set(column.statistics):
            numbers = [float(column.statistics[end]) for end in ("min", "max")]
        return len(numbers) > 1 and max(numbers) - min(numbers) + 1 == self.size

    @property
    def date(self) -> Column | None:
        """The column that says when; the first of several."""
        return next((column for column in self.columns if column.dated), None)


def frames_in(text: str) -> list[Frame]:
    """The frames that a prompt describes or a list of variables names."""
    described = [_frame(match[1], match[2]) for match in _DESCRIPTION.finditer(text)]
    listed = [_frame(match[1], match[2]) for match in _LISTED.finditer(text)]
    inspected = [_frame(match[1], match[2]) for match in _INSPECTED.finditer(text)]
    return [frame for frame in [*described, *listed, *inspected] if frame]


def same_columns(one: Frame, other: Frame) -> bool:
    """Whether two descriptions are of a frame with the same columns."""
    return [(c.name, c.dtype) for c in one.columns] == [(c.name, c.dtype) for c in other.columns]


def described_apart(text: str) -> tuple[str, str]:
    r"""A prompt, and what a notebook put after it to describe the frames that it names.

    >>> described_apart(
    ...     "The mean of `tips.size`?\n\n`tips.size` is a Series of 3 values:\n0  2"
    ... )[0]
    'The mean of `size` of `tips`?'
    """
    match = _DESCRIBED.search(text)
    if match is None:
        return text, ""
    asked, described = text[: match.start()], text[match.start() :]
    for frame, column in _ATTRIBUTE.findall(described):
        asked = asked.replace(f"`{frame}.{column}`", f"`{column}` of `{frame}`")
    return asked, described


def shown_frame(name: str, text: str) -> Frame | None:
    """The frame that ``show_frame`` showed; None if the text is none of its."""
    described, found, rest = text.partition("\n\nStatistics:\n")
    frame = _frame(name, described)
    if frame is None or not found:
        return None
    told, _, rows = rest.partition("\nRows:\n")
    statistics, _, values = told.partition(_VALUES_OF)
    counts = {m[1]: m[2] for line in values.splitlines() if (m := _VALUES.match(line))}
    by_column: dict[str, dict[str, str]] = {}
    for record in csv.DictReader(io.StringIO(statistics)):
        label = record.pop("", "")
        for column, value in record.items():
            if value:
                by_column.setdefault(column, {})[label] = value
    columns = tuple(
        _counted(
            msgspec.structs.replace(column, statistics=by_column.get(column.name, {})),
            counts.get(column.name, ""),
        )
        for column in frame.columns
    )
    return _with_rows(msgspec.structs.replace(frame, columns=columns, shown=True), rows)


def _frame(name: str, text: str) -> Frame | None:
    shape = _SHAPE.match(text)
    if shape is None:
        return None
    lines, _, rows = text.partition("\nFirst rows:\n")
    columns = [
        Column(m[1], m[2], int(m[4] or 0), bool(m[3]))
        for line in lines.splitlines()
        if (m := _COLUMN.match(line))
    ]
    index = tuple(shape[3].split(", ")) if shape[3] else ()
    size, width = int(shape[1].replace(",", "")), int(shape[2])
    frame = Frame(name, size, width, tuple(columns), index=index)
    return _with_rows(frame, rows)


def _with_rows(frame: Frame, text: str) -> Frame:
    records = list(csv.reader(io.StringIO(text)))
    names = [column.name for column in frame.columns]
    width = len(names)
    whole = bool(records) and records[0] == names
    cells = [r for r in records[1:] if len(r) == width] if whole else []
    if len(cells) < len(records) - 1:
        cells = []  # cut off
    columns = tuple(
        msgspec.structs.replace(column, examples=tuple(r[i] for r in cells[:5] if r[i]))
        for i, column in enumerate(frame.columns)
    )
    rows = tuple({c.name: c.typed(cell) for c, cell in zip(columns, r, strict=True)} for r in cells)
    frame = msgspec.structs.replace(frame, columns=columns, rows=rows)
    if not frame.whole or frame.shown:
        return frame
    # All of it is known, so what show_frame would say of the values is, too.
    counted = []
    for i, column in enumerate(columns):
        values = Counter(r[i] for r in cells if r[i])
        counted.append(msgspec.structs.replace(column, values=dict(values), different=len(values)))
    return msgspec.structs.replace(frame, columns=tuple(counted))


def _counted(column: Column, text: str) -> Column:
    """The column with what ``show_frame`` says of its values."""
    if text.endswith(" different"):
        number = int(text.removesuffix(" different").replace(",", ""))
        return msgspec.structs.replace(column, different=number)
    try:
        values = json.loads(text)
    except ValueError:
        return column
    return msgspec.structs.replace(column, values=values, different=len(values))


def words_of(frame: Frame) -> frozenset[str]:
    """The stems of the words that a frame knows: its name, its columns and their values."""
    texts = [frame.name, *(column.name for column in frame.columns)]
    for column in frame.columns:
        texts += [*column.values, *column.examples] if not column.numeric else []
    return frozenset(stem(word) for text in texts for word in words(text.replace("_", " ")))


def as_number(text: str) -> Any:
    """The text as a number, as it is if it is none.

    >>> as_number("3"), as_number("2.50"), as_number("x")
    (3, 2.5, 'x')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
