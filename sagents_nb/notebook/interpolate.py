"""``{name}`` in a prompt: the notebook's variables as text for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ..messages import Field, names_in
from ..redaction import Secrets, masked, secrets_of_names

_SHOWN = 4000
_BRIEF = 60
# pandas 2 and 3 name the module of the class differently.
_FRAMES = ("pandas.DataFrame", "pandas.core.frame.DataFrame")


def fields_in(prompt: str, names: Mapping[str, Any]) -> dict[str, Field]:
    """What the known names in braces stand for, by them.

    A data frame is named where it stands, and described after the prompt. What a value holds of
    secrets is masked: see :func:`sagents_nb.redaction.secrets_of_names`.

    >>> [field.text for field in fields_in("{n} of {{all}}, {unknown}", {"n": 3}).values()]
    ['3']
    """
    secrets: Secrets | None = None
    fields: dict[str, Field] = {}
    for path in names_in(prompt):
        first, *attributes = path.split(".")
        if first not in names:
            continue
        value = names[first]
        for attribute in attributes:
            if not hasattr(value, attribute):
                break
            value = getattr(value, attribute)
        else:
            secrets = secrets_of_names(names) if secrets is None else secrets
            text, frame = masked(describe(value), secrets), is_frame(value)
            fields[path] = Field(path, _brief(value, text, frame), text, frame)
    return fields


def _brief(value: Any, text: str, frame: bool) -> str:
    if frame:
        return _shape(value)
    line = " ".join(text.split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"


def _shape(frame: Any) -> str:
    rows, width = frame.shape
    return f"{rows:,} row{'' if rows == 1 else 's'} × {width:,} column{'' if width == 1 else 's'}"


def misspelt(prompt: str, names: Mapping[str, Any]) -> dict[str, str]:
    """The unknown names in braces that are nearly one of the variables, and which.

    Others are no mistakes, but code, JSON or a formula.

    >>> misspelt("Plot {slaes} by {x}.", {"sales": [1, 2], "y": 1})
    {'slaes': 'sales'}
    """
    words = [path.partition(".")[0] for path in names_in(prompt)]
    own = [name for name in names if not name.startswith("_")]
    unknown = [word for word in words if word not in names and len(word) > 2]
    near = {word: get_close_matches(word, own, 1, 0.75) for word in unknown}
    return {word: found[0] for word, found in near.items() if found}


def describe(value: Any, limit: int = _SHOWN) -> str:
    """A value as text that a model can use: text as it is, a frame as its columns and head.

    At most ``limit`` characters, and it says when there is more.
    """
    if isinstance(value, str):
        text, more = value, ""
    else:
        try:
            text, more = (describe_frame(value), "") if is_frame(value) else _repr(value, limit)
        except Exception as error:  # a repr of the user's, say
            text, more = f"<{type(value).__name__} that cannot be shown: {error!r}>", ""
    if len(text) <= limit and not more:
        return text
    return f"{text[:limit]}… ({more or f'{len(text):,} characters'} in all)"


def _repr(value: Any, limit: int) -> tuple[str, str]:
    """``repr(value)``, or the beginning of one that is far over the limit, and what is said of it.

    Of a list of millions nobody waits for all the text.
    """
    pieces: list[str] = []
    left = 10 * limit + 1000
    for piece in _pieces(value, left, ()):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            return "".join(pieces), f"over {10 * limit + 1000:,} characters"
    return "".join(pieces), ""


_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}


def _pieces(value: Any, most: int, within: tuple[int, ...]) -> Iterator[str]:
    """``repr(value)`` in pieces; of texts and bytes in it the beginning is enough."""
    kind = type(value)
    if kind in (str, bytes, bytearray):
        yield repr(value[: most + 1])
        return
    if kind not in _BRACKETS or not value:
        yield repr(value)
        return
    opening, closing = _BRACKETS[kind]
    if id(value) in within:  # a list that is in itself
        yield f"{opening}...{closing}"
        return
    yield opening
    for number, item in enumerate(value):
        if number:
            yield ", "
        yield from _pieces(item, most, (*within, id(value)))
        if kind is dict:
            yield ": "
            yield from _pieces(value[item], most, (*within, id(value)))
    yield ",)" if kind is tuple and len(value) == 1 else closing


def is_frame(value: Any) -> bool:
    """Whether it is a data frame of pandas; pandas need not be installed to ask."""
    return any(f"{kind.__module__}.{kind.__qualname__}" in _FRAMES for kind in type(value).__mro__)


def describe_frame(frame: Any) -> str:
    """A data frame's shape, columns with types and missing values, and first rows."""
    rows, width = frame.shape
    lines = [f"DataFrame, {rows:,} rows × {width} columns"]
    if named := _named_levels(frame):
        lines[0] += f", indexed by {', '.join(map(str, named))}"
        frame = with_index(frame)
    for i, column in enumerate(frame.columns[:50]):  # by place: names may be there twice
        missing = int(frame.iloc[:, i].isna().sum())
        line = f"- {column}: {frame.dtypes.iloc[i]}"
        line += ", named by a number" if isinstance(column, int) else ""
        lines.append(line + (f", {missing} missing" if missing else ""))
    if width > 50:
        lines.append(f"- and {width - 50} more columns")
    lines += ["First rows:", frame.head(5).to_csv(index=False).rstrip()]
    return "\n".join(lines)


def describe_at_length(frame: Any, rows: int, limit: int) -> str:
    """A data frame as :func:`describe` does, its statistics, its values, and as many rows."""
    table = with_index(frame)
    statistics = table.describe(include="all").to_csv() if table.shape[1] else "none\n"
    parts = [f"{describe(frame, limit)}\n", f"Statistics:\n{statistics}"]
    if values := describe_values(table):
        parts.append(f"Values, and how often each is there:\n{values}\n")
    return "\n".join([*parts, f"Rows:\n{table.head(rows).to_csv(index=False)}"])


def with_index(frame: Any) -> Any:
    """The frame with what names its rows, such as dates, as columns before the others."""
    return frame.reset_index() if _named_levels(frame) else frame


def describe_values(frame: Any) -> str:
    """Which values each column has, or how many different ones; "" where nothing can be counted.

    A line is ``- column: {"value": how often, …}``, the most frequent first, for at most twenty
    values, else ``- column: 891 different``. Numbers with fractions are left out.
    """
    lines = []
    for i, column in enumerate(frame.columns[:50]):
        values = frame.iloc[:, i]
        if values.dtype.kind in "fc":
            continue
        try:
            counts = values.value_counts()
        except TypeError:  # lists, say, which cannot be counted
            continue
        found = {str(value): int(count) for value, count in counts[:21].items() if count}
        few = len(found) <= 20
        told = json.dumps(found, ensure_ascii=False) if few else f"{len(counts):,} different"
        lines.append(f"- {column}: {told}")
    return "\n".join(lines)


def _named_levels(frame: Any) -> list[Any]:
    """The names of its index, [] for rows that are only numbered.

    A name that is a column's too cannot stand beside it, and is left out.
    """
    names = [name for name in frame.index.names if name is not None]
    free = len(names) == frame.index.nlevels and not set(names) & set(frame.columns)
    return names if free and frame.columns.nlevels == 1 else []
