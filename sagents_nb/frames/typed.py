"""From plain values to columns whose dtypes do not depend on the values."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from .columns import COLUMNS, TIME, Column

if TYPE_CHECKING:
    import pandas

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # which no UTF-8 and no Arrow can hold
_LARGEST = 2**63 - 1


def pandas_module() -> Any:
    """pandas; raises ConfigurationError with what to install if it is not there."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise ConfigurationError(
            'Frames need pandas, which is not installed; pip install "sagents-nb[pandas]".'
        ) from error


def columns_of(kind: str) -> dict[str, Column]:
    """The columns of that kind; raises ConfigurationError for one that does not exist."""
    if kind not in COLUMNS:
        raise ConfigurationError(f"There is no frame {kind!r}; kinds are {', '.join(COLUMNS)}.")
    return COLUMNS[kind]


def framed(columns: Mapping[str, Column], values: dict[str, Iterable[Any]]) -> pandas.DataFrame:
    """A frame of these columns; the values of one are taken out before the next are made."""
    pandas = pandas_module()
    made = {name: series(column, list(values.pop(name))) for name, column in columns.items()}
    return pandas.DataFrame(made, columns=list(columns))


def series(column: Column, values: Sequence[Any]) -> pandas.Series:
    """Values, None for the missing ones, as a column.

    What the dtype cannot hold is changed as little as it can be: half characters (lone
    surrogates) become U+FFFD, a whole number beyond 64 bits is missing.
    """
    pandas = pandas_module()
    if column.dtype == "string":
        return pandas.Series(_texts(values), dtype="string")
    if column.dtype == "category":
        texts = {value: _text(value) for value in set(values)}
        known = list(column.categories) or sorted({t for t in texts.values() if t is not None})
        places = {text: place for place, text in enumerate(known)}
        codes = {value: places.get(text, -1) for value, text in texts.items()}  # type: ignore[arg-type]
        categories = pandas.Index(known, dtype=object).infer_objects()
        made = pandas.Categorical.from_codes([codes[v] for v in values], categories=categories)
        return pandas.Series(made)
    if column.dtype == "Int64":
        return pandas.Series(_wholes(values))
    if column.dtype == TIME:
        return pandas.Series(_times(values)).dt.tz_localize("UTC")
    return pandas.Series(values, dtype=column.dtype)


def _texts(values: Sequence[Any]) -> list[str | None]:
    try:  # nearly always: no call for each
        return [v if v is None or v.isascii() else _text(v) for v in values]
    except AttributeError:  # one is no text
        return [_text(v) for v in values]


def _text(value: Any) -> str | None:
    if value is None or not isinstance(value, str):
        return None if value is None else str(value)
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return HALF_CHARACTER.sub("\ufffd", value)
    return value


def _wholes(values: Sequence[Any]) -> Any:
    import numpy

    pandas, count = pandas_module(), len(values)
    missing = numpy.fromiter((v is None for v in values), "bool", count)
    try:
        plain = numpy.fromiter((0 if v is None else v for v in values), "int64", count)
    except OverflowError:
        small = [v if v is not None and -_LARGEST <= v <= _LARGEST else None for v in values]
        return _wholes(small)
    return pandas.arrays.IntegerArray(plain, missing)


def _times(values: Sequence[Any]) -> Any:
    """Seconds since the epoch, or datetimes with zone; 0 is no time at all."""
    import numpy

    missing = numpy.iinfo("int64").min
    made = numpy.full(len(values), missing, dtype="int64")
    for index, value in enumerate(values):
        seconds = value.timestamp() if isinstance(value, datetime) else value
        if seconds and math.isfinite(seconds):
            made[index] = round(seconds * 1e6)
    return made.view("datetime64[us]")


def conformed(columns: Mapping[str, Column], frame: pandas.DataFrame) -> pandas.DataFrame:
    """``frame`` with exactly these columns and their dtypes first, and any others after them.

    Raises ConfigurationError if one is missing.
    """
    pandas = pandas_module()
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise ConfigurationError(f"The frame has no column {', '.join(lacking)}.")
    made = {name: _cast(column, frame[name]) for name, column in columns.items()}
    rest = {name: frame[name] for name in frame.columns if name not in columns}
    return pandas.DataFrame({**made, **rest}, index=frame.index)


def _cast(column: Column, given: pandas.Series) -> pandas.Series:
    pandas = pandas_module()
    if column.dtype == TIME:
        return pandas.to_datetime(given, utc=True, format="ISO8601").astype(TIME)
    if column.dtype in ("string", "category"):
        values = [None if v is None or v is pandas.NA or v != v else v for v in given]
        made = series(column, values)
    elif column.dtype == "boolean":
        words = {"true": True, "false": False, "1": True, "0": False}
        made = series(column, [words.get(str(v).lower()) for v in given])
    else:
        whole = column.dtype in ("Int64", "int64")
        numbers = given if given.dtype != object else given.astype("string")
        if pandas.api.types.is_string_dtype(numbers):
            numbers = pandas.to_numeric(numbers, dtype_backend="numpy_nullable")
        if whole:
            made = numbers.astype("Int64").astype(column.dtype)
        else:
            made = pandas.Series(numbers.astype("Float64").to_numpy("float64", na_value=math.nan))
    made.index = given.index
    return made
