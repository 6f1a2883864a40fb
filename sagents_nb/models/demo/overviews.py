"""What the demo model says of a whole frame: its size, its columns, its first rows."""

from __future__ import annotations

from collections.abc import Sequence

from .frames import Column, Frame, Row
from .history import listed, markdown_table
from .history import number as _number
from .phrases import count_of, gaps_of, value_of
from .reading import is_label

_SHOWN = 10  # rows of a frame that are all shown


def shape(frame: Frame) -> str:
    """How large a frame is and what its columns are."""
    names = listed([f"`{c.name}` ({c.dtype})" for c in frame.columns])
    return f"{_size(frame)}: {names}."


def _size(frame: Frame) -> str:
    return f"`{frame.name}` has {count_of(frame.size, 'row')} and {count_of(frame.width, 'column')}"


def overview(frame: Frame, names: Sequence[str] = ()) -> str:
    """What a frame holds: its size, a line for each column, what is missing."""
    columns = [c for c in frame.columns if not names or c.name in names]
    said = []
    if not names:
        said.append(f"{_size(frame)}. {gaps_of(columns)}")
    table = [row for column in columns if (row := _line(column, frame))]
    if table:
        said.append(markdown_table(table, 30))
    return "\n\n".join(said)


def head(frame: Frame, top: int | None) -> str:
    """The first rows of a frame."""
    count = min(top or (frame.size if frame.size <= _SHOWN else 5), len(frame.rows))
    if not count:
        return f"{_size(frame)}."
    of = "" if count == frame.size else f" The first {count} of them:"
    return f"{_size(frame)}.{of}\n\n{markdown_table(list(frame.rows[:count]), 50)}"


def _line(column: Column, frame: Frame) -> Row | None:
    """A column in a table of all."""
    told = column.statistics
    if column.counted and 0 < len(column.values) <= 5:
        parts = [", ".join(f"{value} ({n:,})" for value, n in column.values.items())]
    elif column.numeric and "min" in told and is_label(column.name):
        parts = [f"{float(told['min']):.0f} to {float(told['max']):.0f}"]
    elif column.numeric and "mean" in told and not column.binary:
        ends = f"{value_of(told['min'])} to {value_of(told['max'])}"
        parts = [ends, f"mean {value_of(told['mean'])}", f"median {value_of(told['50%'])}"]
    elif column.numeric and frame.whole and not column.binary:
        numbers = [row[column.name] for row in frame.rows if row[column.name] is not None]
        if not numbers:
            return None
        mean = sum(numbers) / len(numbers)
        parts = [f"{_number(min(numbers))} to {_number(max(numbers))}", f"mean {_number(mean)}"]
    elif column.is_time and "min" in told:
        parts = [f"{value_of(told['min'])} to {value_of(told['max'])}"]
    elif column.values and len(column.values) <= 5:
        parts = [", ".join(f"{value} ({n:,})" for value, n in column.values.items())]
    elif column.different:
        parts = [f"{column.different:,} different"]
    else:
        parts = []
    return {
        "column": column.name,
        "type": column.dtype,
        "missing": column.missing,
        "values": "; ".join(parts),
    }
