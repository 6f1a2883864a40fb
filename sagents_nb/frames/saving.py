"""Frames in files: Parquet and JSON, which give back the same frame, CSV and Excel."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import kinds
from ..drives import replace_file, unwritten
from ..errors import ConfigurationError
from ..text import REPLACEMENT, whole
from .columns import LARGEST_INTEGER, columns_of, conformed, framed, pandas_module

if TYPE_CHECKING:
    import pandas

# What a spreadsheet takes for a formula when a cell begins with it, also after blanks; the
# wide forms are the same to some of them (OWASP, CSV injection).
_FORMULA = re.compile(r"['\s]*[=+\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile(r"'['\s]*[=+\-@\t\r\n＝＋－＠]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CELL = 32_767  # characters of an Excel cell
_OF_JSON = {str, int, float, bool, list, dict}
_FIELDS = "fields"  # of a frame, in the metadata of a Parquet file


@kinds.checked(path=kinds.PATH)
def save_frame(frame: pandas.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame to a file; its ending says how: .parquet, .json, .csv or .xlsx.

    :func:`load_frame` gives the same frame back from Parquet and JSON, with columns of your own
    where they were and with their dtypes; JSON, a Table Schema and its rows that pandas reads too
    (``read_json(path, orient="table")``), knows no infinity, which is missing then. In CSV and
    Excel a text that a spreadsheet would take for a formula (it begins with = + - @, a tab or a
    line break) has an apostrophe before it, which :func:`load_frame` takes away again; there,
    columns of your own are text, lists and dicts JSON, empty text and missing text are the same,
    control characters become U+FFFD, and Excel cells end after 32,767 characters and know only
    one kind of line break. The index is not written: ``reset_index()`` first if it says
    something. A file that was there is replaced at once: whoever looks finds a whole one. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for another ending, and where the file cannot
    be written; what was there is as it was then.

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
    write = _by_ending(path, _WRITERS)
    try:
        replace_file(path, write(frame))
    except OSError as error:
        raise unwritten("The frame", path, error) from error
    return path


@kinds.checked(path=kinds.PATH)
def load_frame(kind: str, path: str | os.PathLike[str]) -> pandas.DataFrame:
    """Read the frame of that ``kind`` that :func:`save_frame` wrote to ``path``.

    It has the columns and dtypes of that kind.
    Columns stand in the order of the file. Those of your own have from Parquet and JSON the
    dtypes that they were saved with, lists and dicts are such again, and from CSV and Excel they
    are text. A list of rows as JSON, as earlier versions wrote it, is read too, with columns of
    your own as ``object``. Raises :class:`~sagents_nb.errors.ConfigurationError` for another
    ending, a file that holds no frame and one that lacks a column of the kind.

    >>> import tempfile
    >>> from sagents_nb import Agent, ScriptedModel, Session, load_frame, save_frame
    >>> session = Session(Agent(ScriptedModel(["Hello!"])))
    >>> _ = session.send("hi").result()
    >>> path = save_frame(session.to_frame(), f"{tempfile.mkdtemp()}/messages.json")
    >>> load_frame("messages", path)["text"].tolist()
    ['hi', 'Hello!']
    """
    path, columns = Path(path), columns_of(kind)
    read = _by_ending(path, _READERS)(path)
    if not read.size and not len(read.columns):  # a list of no rows
        read = framed(columns, dict.fromkeys(columns, ()))
    if kind == "map" and "prompt" not in read:  # written before such frames had it
        read.insert(0, "prompt", None)
    return conformed(columns, read)


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


def _fields(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """The fields of a Table Schema, each also with its dtype and that of its words."""
    from pandas.io.json import build_table_schema

    fields = build_table_schema(frame, index=False)["fields"]
    for field, dtype in zip(fields, frame.dtypes, strict=True):
        field["dtype"] = str(dtype)
        if dtype == "category":
            field["words"] = str(dtype.categories.dtype)
    return list(map(_json_value, fields))


def _categories(field: Mapping[str, Any]) -> Any:
    """The dtype of a column of words; raises ValueError or TypeError for one that pandas lacks."""
    pandas = pandas_module()
    words = pandas.Index(field["constraints"]["enum"], dtype=field["words"])
    return pandas.CategoricalDtype(words, field["ordered"])


def _to_parquet(frame: pandas.DataFrame) -> bytes:
    """With the fields in the metadata: Arrow loses what objects are, and words without rows."""
    _needed("pyarrow")
    mixed = [n for n in frame.columns if frame[n].dtype == object and _is_mixed(frame[n])]
    texts = frame.assign(**{n: frame[n].map(_json_text, na_action="ignore") for n in mixed})
    texts.attrs[_FIELDS] = [{**f, "json": f["name"] in mixed} for f in _fields(frame)]
    content: bytes = texts.to_parquet(index=False)
    return content


def _is_mixed(objects: pandas.Series) -> bool:
    """Whether Arrow has no type for these objects, or one that does not give them back."""
    present = objects[objects.notna()]
    types = {type(value) for value in present}
    return types <= _OF_JSON and (
        len(types) > 1
        or bool(types & {list, dict})
        or (types == {int} and max(map(abs, present)) > LARGEST_INTEGER)
    )


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _from_parquet(path: Path) -> pandas.DataFrame:
    _needed("pyarrow")
    read: pandas.DataFrame = pandas_module().read_parquet(path)
    for field in read.attrs.pop(_FIELDS, ()):
        name = field["name"]
        if field["dtype"] == "object":
            values = read[name].astype(object).where(read[name].notna(), None)
            if field["json"]:
                values = [None if text is None else json.loads(text) for text in values]
            read[name] = pandas_module().Series(values, dtype=object)
        elif field["dtype"] == "category":
            with suppress(ValueError, TypeError):
                read[name] = read[name].astype(_categories(field))
    return read


def _to_json(frame: pandas.DataFrame) -> bytes:
    """A Table Schema and a list of rows; pandas' own writer would round the numbers."""
    frame = frame.set_axis(list(map(str, frame.columns)), axis="columns")
    columns = {name: [_json_value(v) for v in frame[name]] for name in frame.columns}
    rows = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, allow_nan=False)
        for row in zip(*columns.values(), strict=True)
    ]
    schema = json.dumps({"fields": _fields(frame)}, ensure_ascii=False)
    text = f'{{"schema": {schema},\n"data": [' + ",\n ".join(rows) + "]}\n"
    return whole(text, REPLACEMENT).encode()


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _json_value(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(inside) for inside in value]
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return None if text == "NaT" else text
    if hasattr(value, "tolist"):  # of numpy
        return _json_value(value.tolist())
    return None if value is pandas_module().NA else str(value)


def _from_json(path: Path) -> pandas.DataFrame:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        rows = read if isinstance(read, list) else read["data"]
        fields = [] if rows is read else read["schema"]["fields"]
        own = {field["name"]: field for field in fields}
        names = list(dict.fromkeys([*own, *(name for row in rows for name in row)]))
        columns = {n: _series(own.get(n, {}), [row.get(n) for row in rows]) for n in names}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise ConfigurationError(
            f"The file {str(path)!r} holds no frame; save_frame writes such that can be loaded."
        ) from None
    return pandas_module().DataFrame(columns)


def _series(field: Mapping[str, Any], values: list[Any]) -> pandas.Series:
    """A column with the dtype that its field tells, where pandas still has it."""
    pandas = pandas_module()
    dtype = field.get("dtype", "object")
    try:
        if dtype != "category":
            return pandas.Series(values, dtype=dtype)
        places = {word: place for place, word in enumerate(field["constraints"]["enum"])}
        codes = [places.get(value, -1) for value in values]
        return pandas.Series(pandas.Categorical.from_codes(codes, dtype=_categories(field)))
    except (ValueError, TypeError):  # of another version, or of a package that is not here
        return pandas.Series(values, dtype=object)


def _flat(frame: pandas.DataFrame) -> pandas.DataFrame:
    """``frame`` with lists and dicts as JSON text."""
    odd = [name for name in frame.columns if frame[name].dtype == object]
    return frame.assign(**{name: frame[name].map(_cell) for name in odd})


def _cell(value: Any) -> Any:
    return _json_text(value) if isinstance(value, dict | list) else value


def _to_csv(frame: pandas.DataFrame) -> bytes:
    content = io.BytesIO()
    _guarded(_flat(frame)).to_csv(content, index=False, lineterminator="\r\n")  # RFC 4180
    return content.getvalue()


def _from_csv(path: Path) -> pandas.DataFrame:
    read = pandas_module().read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    return _unguarded(read)


def _to_excel(frame: pandas.DataFrame) -> bytes:
    _needed("openpyxl")
    pandas = pandas_module()
    zoned = [n for n in frame.columns if isinstance(frame[n].dtype, pandas.DatetimeTZDtype)]
    plain = frame.assign(**{name: frame[name].map(_iso) for name in zoned})
    content = io.BytesIO()
    _guarded(_flat(plain), _CELL).to_excel(content, index=False)
    return content.getvalue()


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

    return _texts_mapped(frame, take_away).astype("string")


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
