"""The columns of every frame, and plain values as such columns, whatever the values.

docs/frames.md is the table of columns.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from .. import kinds
from ..errors import ConfigurationError
from ..state import TODO_STATUSES
from ..tasks import STATES
from ..text import REPLACEMENT, whole

if TYPE_CHECKING:
    import pandas


TIME = "datetime64[us, UTC]"

TOOL_STATUSES = ("completed", "failed", "rejected", "cancelled", "skipped", "interrupted")
OF_TASKS = ("tasks", "artifacts")
"""The kinds that a store makes of its tasks, not of conversations."""

ROW_STATUSES = ("completed", "failed", "interrupted", "not_run")
DECISIONS = ("approve", "edit", "reject", "respond")


class Column(msgspec.Struct, frozen=True):
    """What a column holds. ``categories`` are all there can be, where that is known.

    A "category" without them has the words that occur, sorted. ``measured`` are spans of time,
    in seconds, that are others in each run.
    """

    dtype: str
    about: str
    categories: tuple[str, ...] = ()
    measured: bool = False


def _text(about: str) -> Column:
    return Column("string", about)


def _word(about: str, categories: tuple[str, ...] = ()) -> Column:
    return Column("category", about, categories)


def _count(about: str) -> Column:
    return Column("Int64", about)


def _span(about: str) -> Column:
    return Column("float64", about, measured=True)


_SESSION = _word("the id of the conversation")
_SUB_AGENT = _word("the id of the sub-agent that it happened in; missing for the agent itself")
_RUN = _text("the id of the run")
_USAGE = {
    "input_tokens": _count("tokens read that were neither read from nor written to a cache"),
    "output_tokens": _count("tokens written"),
    "cache_read_tokens": _count("tokens read from the provider's cache"),
    "cache_write_tokens": _count("tokens written to it"),
    "cost_usd": Column("float64", "US dollars; missing where no price is known"),
}

COLUMNS: dict[str, dict[str, Column]] = {
    "messages": {
        "session_id": _SESSION,
        "position": Column("int64", "the place in the conversation, or in the sub-agent's, from 0"),
        "role": _word("user, assistant, system, tool, or a role of your own"),
        "text": _text("what was said; of tool results, all of them, a line each"),
        "thinking": _text("the model's reasoning, where it is told"),
        "tool_calls": Column("int64", "how many tools it asked for"),
        "stop_reason": _word("why the model stopped"),
        **_USAGE,
        "error": _text("why the message is incomplete"),
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it was complete"),
    },
    "tool_calls": {
        "session_id": _SESSION,
        "tool_call_id": _text("the id of the call, as the model gave it"),
        "name": _word("the tool"),
        "arguments": _text("what it was run with, as JSON; what is left out had its default"),
        "asked": _text("what the model had asked for, where a person changed it, as JSON"),
        "status": _word("how it ended", TOOL_STATUSES),
        "result": _text("what the model was told"),
        "is_error": Column("boolean", "whether that was an error"),
        "duration": _span("seconds"),
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it ended"),
    },
    "todos": {
        "session_id": _SESSION,
        "id": _text("the id of the item"),
        "content": _text("what is to be done"),
        "status": _word("how far it is", TODO_STATUSES),
    },
    "usage": {
        "session_id": _SESSION,
        "model": _word("the model that answered; a row is one call of it"),
        **_USAGE,
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it had answered"),
    },
    "events": {
        "session_id": _SESSION,
        "seq": Column("int64", "the number of the event; a sub-agent's has its own numbers"),
        "type": _word("the event, such as tool_execution_end"),
        "name": _text("the tool, role, model or path that it is about"),
        "tool_call_id": _text("the call that it is about"),
        "status": _word("what ended how"),
        "duration": _span("seconds since what ends here began; see below"),
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it happened"),
    },
    "files": {
        "session_id": _SESSION,
        "path": _text("the absolute, virtual path"),
        "title": _text("its title, where it has one"),
        "size": Column("int64", "bytes"),
        "mime_type": _word("such as text/markdown"),
        "sha256": _text("the digest of the content, hexadecimal"),
        "modified": Column(TIME, "when it was last written"),
    },
    "decisions": {
        "session_id": _SESSION,
        "tool_call_id": _text("the call that was decided about"),
        "name": _word("its tool"),
        "decision": _word("what was decided", DECISIONS),
        "message": _text("the reason, the answer or the new arguments; JSON if no text"),
        "by": _word("who decided"),
        "waited": _span("seconds that the run waited for it"),
        "run_id": _text("the id of the run that waited"),
        "time": Column(TIME, "when it was decided"),
    },
    "tasks": {
        "task_id": _text("the id of the task, and of its conversation"),
        "agent": _word("who works on it"),
        "caller": _word("the agent that asked for it; empty for a person"),
        "context": _text("the conversation in which it began"),
        "state": _word("how far it is", STATES),
        "chain": _text("the agents through which it came, itself last"),
        "input": _text("what is to be done"),
        "output": _text("what came of it"),
        "message": _text("what it asks, or why it failed"),
        "background": Column("boolean", "whether its caller went on meanwhile"),
        "seconds": _span("seconds of work"),
        "tokens": _count("tokens that it used"),
        "cost_usd": Column("float64", "US dollars; missing where no price is known"),
        "created": Column(TIME, "when it was made"),
        "updated": Column(TIME, "when its state last changed"),
        "completed": Column(TIME, "when it ended"),
    },
    "artifacts": {
        "task_id": _text("the task that made it"),
        "index": Column("int64", "its number there, from 0"),
        "name": _text("its name"),
        "description": _text("what it is"),
        "content": _text("its text; other parts as JSON"),
        "time": Column(TIME, "when it was made"),
    },
    "map": {
        "prompt": _text("what was asked: the text of the row's last message"),
        "text": _text("the answer's text"),
        "status": _word("how the row ended", ROW_STATUSES),
        "error": _text("why there is no answer"),
        "error_type": _word("the name of the exception"),
        "model": _word("the model that answered"),
        "model_calls": _count("how often it was asked"),
        "tool_calls": _count("how many tools were called"),
        **_USAGE,
        "duration": _span("seconds, of the run that gave the answer"),
        "time": Column(TIME, "when the row was done"),
        "kept": Column("boolean", "whether the answer is of an earlier time"),
    },
}
"""Per kind of frame its columns in order. "map" is what :meth:`Agent.map` gives, where the
fields of a structured output stand between ``text`` and ``status``."""


MEASURED = "sagents_nb.measured"
"""In the ``attrs`` of a frame of ours: the names of its columns that are spans of time. pandas
keeps it in what is made of the frame, so a notebook knows our frames, and its test such a column,
from the user's own."""

LARGEST_INTEGER = 2**63 - 1  # of an Int64
_ENDLESS = LARGEST_INTEGER / 1e6  # seconds, as microseconds beyond it


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
        raise ConfigurationError(f"There is no frame {kind!r:.40}; kinds are {', '.join(COLUMNS)}.")
    return COLUMNS[kind]


@kinds.checked
def framed(columns: Mapping[str, Column], values: dict[str, Iterable[Any]]) -> pandas.DataFrame:
    """A frame of these columns; the values of one are taken out before the next are made."""
    pandas = pandas_module()
    data = {name: series(column, list(values.pop(name))) for name, column in columns.items()}
    return marked(columns, pandas.DataFrame(data, columns=list(columns)))


def marked(columns: Mapping[str, Column], frame: pandas.DataFrame) -> pandas.DataFrame:
    """``frame``, which says in its ``attrs`` which of these columns are measured."""
    frame.attrs[MEASURED] = [name for name, column in columns.items() if column.measured]
    return frame


def series(column: Column, values: Sequence[Any]) -> pandas.Series:
    """Values, None for the missing ones, as a column.

    What the dtype cannot hold is changed as little as it can be: half characters (lone
    surrogates) become U+FFFD, a whole number beyond 64 bits is missing.
    """
    pandas = pandas_module()
    if column.dtype == "string":
        return pandas.Series(_texts(values), dtype="string")
    if column.dtype == "category":
        texts = {value: _whole(value) for value in set(values)}
        words = list(column.categories) or sorted({t for t in texts.values() if t is not None})
        places = {text: place for place, text in enumerate(words)}
        codes = {value: places.get(text, -1) for value, text in texts.items()}  # type: ignore[arg-type]
        categories = pandas.Index(words, dtype=object).infer_objects()
        categorical = pandas.Categorical.from_codes(
            [codes[v] for v in values], categories=categories
        )
        return pandas.Series(categorical)
    if column.dtype == "Int64":
        return pandas.Series(_wholes(values))
    if column.dtype == TIME:
        return pandas.Series(_times(values)).dt.tz_localize("UTC")
    return pandas.Series(values, dtype=column.dtype)


def _texts(values: Sequence[Any]) -> list[str | None]:
    try:  # nearly always: no call for each
        return [v if v is None or v.isascii() else _whole(v) for v in values]
    except AttributeError:  # one is no text
        return [_whole(v) for v in values]


def _whole(value: Any) -> str | None:
    if value is None or not isinstance(value, str):
        return None if value is None else str(value)
    return value if value.isascii() else whole(value, REPLACEMENT)  # as Arrow wants it too


def _wholes(values: Sequence[Any]) -> Any:
    import numpy

    pandas, count = pandas_module(), len(values)
    with suppress(TypeError, OverflowError):  # most often none is missing
        return pandas.arrays.IntegerArray(
            numpy.fromiter(values, "int64", count), numpy.zeros(count, "bool")
        )
    missing = numpy.fromiter((v is None for v in values), "bool", count)
    try:
        plain = numpy.fromiter((0 if v is None else v for v in values), "int64", count)
    except OverflowError:
        small = [
            v if v is not None and -LARGEST_INTEGER <= v <= LARGEST_INTEGER else None
            for v in values
        ]
        return _wholes(small)
    return pandas.arrays.IntegerArray(plain, missing)


def _times(values: Sequence[Any]) -> Any:
    """Seconds since the epoch, or datetimes with zone; 0 is no time at all."""
    import numpy

    missing = numpy.iinfo("int64").min
    with suppress(TypeError, OverflowError):  # most often all are seconds
        plain = numpy.fromiter(values, "float64", len(values))
        if ((plain != 0) & (abs(plain) < _ENDLESS)).all():
            return (plain * 1e6).round().astype("int64").view("datetime64[us]")
    microseconds = numpy.full(len(values), missing, dtype="int64")
    for index, value in enumerate(values):
        seconds = value.timestamp() if isinstance(value, datetime) else value
        if seconds and math.isfinite(seconds):
            microseconds[index] = round(seconds * 1e6)
    return microseconds.view("datetime64[us]")


@kinds.checked
def conformed(columns: Mapping[str, Column], frame: pandas.DataFrame) -> pandas.DataFrame:
    """``frame`` with the dtypes of these columns; others stay as they are, all where they were.

    Raises ConfigurationError if one is missing.
    """
    pandas = pandas_module()
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise ConfigurationError(f"The frame has no column {', '.join(lacking)}.")
    cast = {n: _cast(columns[n], frame[n]) if n in columns else frame[n] for n in frame.columns}
    return pandas.DataFrame(cast, index=frame.index)


def _cast(column: Column, values: pandas.Series) -> pandas.Series:
    pandas = pandas_module()
    if column.dtype == TIME:
        return pandas.to_datetime(values, utc=True, format="ISO8601").astype(TIME)
    if column.dtype in ("string", "category"):
        plain = [None if v is None or v is pandas.NA or v != v else v for v in values]
        cast = series(column, plain)
    elif column.dtype == "boolean":
        words = {"true": True, "false": False, "1": True, "0": False}
        cast = series(column, [words.get(str(v).lower()) for v in values])
    else:
        whole = column.dtype in ("Int64", "int64")
        numbers = values if values.dtype != object else values.astype("string")
        if pandas.api.types.is_string_dtype(numbers):
            numbers = pandas.to_numeric(numbers, dtype_backend="numpy_nullable")
        if whole:
            cast = numbers.astype("Int64").astype(column.dtype)
        else:
            cast = pandas.Series(numbers.astype("Float64").to_numpy("float64", na_value=math.nan))
    cast.index = values.index
    return cast
