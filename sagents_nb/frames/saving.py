"""Frames in files: Parquet and JSON, which give back the same frame, CSV and Excel."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import kinds
from ..errors import ConfigurationError
from ..text import REPLACEMENT, whole
from .columns import columns_of, conformed, pandas_module

if TYPE_CHECKING:
    import pandas

# What a spreadsheet takes for a formula when a cell begins with it, also after blanks; the
# wide forms are the same to some of them (OWASP, CSV injection).
_FORMULA = re.compile(r"['\s]*[=+\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile(r"'['\s]*[=+\-@\t\r\n＝＋－＠]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CELL = 32_767  # characters of an Excel cell


@kinds.checked(path=kinds.PATH)
def save_frame(frame: pandas.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame to a file; its ending says how: .parquet, .json, .csv or .xlsx.

    :func:`load_frame` gives the same frame back from Parquet and JSON. In CSV and Excel a text
    that a spreadsheet would take for a formula (it begins with = + - @, a tab or a line
    break) has an apostrophe before it, which :func:`load_frame` takes away again; there, empty
    text and missing text are the same, control characters become U+FFFD, and Excel cells end
    after 32,767 characters and know only one kind of line break. Lists and dicts are written as
    JSON. The index is not written: ``reset_index()`` first if it says something. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for another ending.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> frame = pandas_module().DataFrame({"text": ["=1+1", "fine"]})
    >>> print(save_frame(frame, f"{folder.name}/a.csv").read_text())
    text
    '=1+1
    fine
    >>> folder.cleanup()
    """
    path = Path(path)
    _by_ending(path, _WRITERS)(_plain(frame), path)
    return path


@kinds.checked(path=kinds.PATH)
def load_frame(kind: str, path: str | os.PathLike[str]) -> pandas.DataFrame:
    """Read what :func:`save_frame` wrote, with the columns and dtypes of that kind.

    Columns of your own follow as the file has them. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for another ending and for a file that lacks
    a column of the kind.
    """
    path = Path(path)
    return conformed(columns_of(kind), _by_ending(path, _READERS)(path))


def _by_ending(path: Path, formats: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    ending = path.suffix.lower()
    if ending not in formats:
        raise ConfigurationError(
            f"Frames are files that end in {', '.join(formats)}, not {ending or 'nothing'!r}."
        )
    return formats[ending]


def _needed(package: str) -> None:
    try:
        __import__(package)
    except ImportError as error:
        raise ConfigurationError(
            f"Such a file needs {package}, which is not installed; pip install {package}."
        ) from error


def _plain(frame: pandas.DataFrame) -> pandas.DataFrame:
    """``frame`` with lists and dicts as JSON text."""
    odd = [name for name in frame.columns if frame[name].dtype == object]
    return frame.assign(**{name: frame[name].map(_json_text) for name in odd})


def _json_text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _to_parquet(frame: pandas.DataFrame, path: Path) -> None:
    _needed("pyarrow")
    frame.to_parquet(path, index=False)


def _from_parquet(path: Path) -> pandas.DataFrame:
    _needed("pyarrow")
    return pandas_module().read_parquet(path)


def _to_json(frame: pandas.DataFrame, path: Path) -> None:
    """A list of rows; pandas' own writer would round the numbers."""
    columns = {str(name): [_json_value(v) for v in frame[name]] for name in frame.columns}
    rows = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, allow_nan=False)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text(whole("[" + ",\n ".join(rows) + "]\n", REPLACEMENT), encoding="utf-8")


def _json_value(value: Any) -> Any:
    if value is None or value is pandas_module().NA:
        return None
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return None if text == "NaT" else text
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _from_json(path: Path) -> pandas.DataFrame:
    rows = json.loads(path.read_text(encoding="utf-8"))
    names = list(dict.fromkeys(name for row in rows for name in row))
    pandas = pandas_module()
    return pandas.DataFrame(
        {name: pandas.Series([row.get(name) for row in rows], dtype=object) for name in names}
    )


def _to_csv(frame: pandas.DataFrame, path: Path) -> None:
    _guarded(frame).to_csv(path, index=False, lineterminator="\r\n")  # RFC 4180


def _from_csv(path: Path) -> pandas.DataFrame:
    read = pandas_module().read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    return _unguarded(read)


def _to_excel(frame: pandas.DataFrame, path: Path) -> None:
    _needed("openpyxl")
    pandas = pandas_module()
    zoned = [n for n in frame.columns if isinstance(frame[n].dtype, pandas.DatetimeTZDtype)]
    plain = frame.assign(**{name: frame[name].map(_iso) for name in zoned})
    _guarded(plain, _CELL).to_excel(path, index=False)


def _from_excel(path: Path) -> pandas.DataFrame:
    _needed("openpyxl")
    read = pandas_module().read_excel(path, dtype=str, keep_default_na=False, na_values=[""])
    return _unguarded(read)


def _iso(time: Any) -> str | None:
    """Excel's own times have no zone."""
    return None if time != time else time.isoformat()


def _guarded(frame: pandas.DataFrame, longest: int | None = None) -> pandas.DataFrame:
    def guard(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = _CONTROL.sub(REPLACEMENT, value)
        return f"'{value}"[:longest] if _FORMULA.match(value) else value[:longest]

    return _texts_mapped(frame, guard)


def _unguarded(frame: pandas.DataFrame) -> pandas.DataFrame:
    def take_away(value: Any) -> Any:
        return value[1:] if isinstance(value, str) and _GUARDED.match(value) else value

    return _texts_mapped(frame, take_away)


def _texts_mapped(frame: pandas.DataFrame, change: Callable[[Any], Any]) -> pandas.DataFrame:
    """``frame`` with every text changed, in cells and in the head."""
    pandas = pandas_module()
    numbers = pandas.api.types.is_numeric_dtype
    columns = {
        change(name): frame[name]
        if numbers(frame[name].dtype)
        else frame[name].astype(object).map(change)
        for name in frame.columns
    }
    return pandas.DataFrame(columns)


_WRITERS = {".parquet": _to_parquet, ".json": _to_json, ".csv": _to_csv, ".xlsx": _to_excel}
_READERS = {
    ".parquet": _from_parquet,
    ".json": _from_json,
    ".csv": _from_csv,
    ".xlsx": _from_excel,
}
