"""``{name}`` in a prompt: the notebook's variables as text for a model."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .. import kinds
from ..messages import Field, ImagePart, image_of, names_in
from ..redaction import KEY, Secrets, hides, masked_start, may_hide, secrets_of_names
from ..transcript import checked_image

_SHOWN = 4000
_BRIEF = 60
# pandas 2 and 3 name the module of the class differently.
_FRAMES = ("pandas.DataFrame", "pandas.core.frame.DataFrame")
_SERIES = ("pandas.Series", "pandas.core.series.Series")
_LABELS = 1000  # of a series that are read
# Code and formulas of a prompt, in which braces mean something else.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
_AS_WORD = re.compile(r"(?<![^\s(,;])\{([^{}\s]+)\}(?![^\s).,;:!?'’])")
_ROWS = 20  # of a column, by whose looks it holds secrets where its name alone does not say it


def images_in(prompt: str, names: Mapping[str, Any]) -> dict[str, ImagePart]:
    """The images that known names in braces stand for, by them: what a notebook shows as one.

    That is a figure or axes of matplotlib, an image of PIL, and what has ``_repr_png_``.
    """
    found: dict[str, ImagePart] = {}
    for path in names_in(prompt):
        first, *attributes = path.split(".")
        value, lacking = _followed(names.get(first), attributes)
        if not lacking and not hides(path.rpartition(".")[2], value):
            image = _image_of(value)
            if image is not None:
                found[path] = image
    return found


def _image_of(value: Any) -> ImagePart | None:
    if value is None or isinstance(value, type | ImagePart):
        return value if isinstance(value, ImagePart) and value.data else None
    try:
        # Of numpy a pandas plot may be, an array of axes; its own arrays are numbers.
        if type(value).__module__.partition(".")[0] in ("PIL", "matplotlib", "numpy"):
            image = image_of(value)
            if image is not None:
                return image
        png = value._repr_png_() if callable(getattr(value, "_repr_png_", None)) else None
        png = png[0] if isinstance(png, tuple) and png else png  # with its metadata
        if isinstance(png, str):  # as IPython allows: in base64
            return checked_image(png)
        return image_of(png) if isinstance(png, bytes) else None
    except Exception:  # of what cannot be drawn; it is text
        return None


def fields_in(
    prompt: str, names: Mapping[str, Any], images: Collection[str] = ()
) -> dict[str, Field]:
    """What the known names in braces stand for, by them.

    A data frame, a series or an array is named where it stands, so that a model can compute with
    it, and described after the prompt. What a value holds of
    secrets is masked: see :func:`sagents_nb.redaction.secrets_of_names`. Of a variable or an
    attribute with the name of a secret only that is said. An attribute that begins with ``__``
    stands for nothing. Of what is in ``images``, which are attached in that order, it is said so.

    >>> [field.text for field in fields_in("{n} of {{all}}, {unknown}", {"n": 3}).values()]
    ['3']
    """
    secrets: Secrets | None = None
    fields: dict[str, Field] = {}
    for path in names_in(prompt):
        first, *attributes = path.split(".")
        if first not in names:
            continue
        value, lacking = _followed(names[first], attributes)
        if path in images:
            place = list(images).index(path) + 1
            fields[path] = Field(path, "image", f"attached image {place} ({path})")
        elif not lacking:
            secrets = secrets_of_names(names) if secrets is None else secrets
            hidden = hides(path.rpartition(".")[2], value)
            text = KEY if hidden else describe(value, secrets=secrets)
            frame = is_frame(value) and not hidden
            brief = _brief(value, text, frame)
            if values := "" if hidden else _values_of(value):
                brief, text = values, f"{values}:\n{text}"
            fields[path] = Field(path, brief, text, bool(frame or values))
    return fields


def _followed(value: Any, attributes: Iterable[str]) -> tuple[Any, str]:
    """What the attributes lead to, and "", or the first that does not.

    Those of Python itself are none: by ``__globals__`` a prompt that somebody else wrote would
    come to all that there is.
    """
    for attribute in attributes:
        if attribute.startswith("__"):
            return value, attribute
        try:
            value = getattr(value, attribute)
        except Exception:  # of somebody's own, which may raise anything
            return value, attribute
    return value, ""


def _values_of(value: Any) -> str:
    """What a series of pandas or an array of NumPy is, in a few words; "" for another value."""
    if _is_one_of(value, _SERIES):
        return f"Series of {len(value):,} value{'' if len(value) == 1 else 's'}"
    if _is_one_of(value, ("numpy.ndarray",)) and value.ndim:
        return f"NumPy array of {' × '.join(f'{n:,}' for n in value.shape)} values"
    return ""


def _brief(value: Any, text: str, frame: bool) -> str:
    if frame:
        return _shape(value)
    line = " ".join(text.split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"


def _shape(frame: Any) -> str:
    rows, width = frame.shape
    return f"{rows:,} row{'' if rows == 1 else 's'} × {width:,} column{'' if width == 1 else 's'}"


def unknown_names(prompt: str, names: Mapping[str, Any], hidden: Collection[str] = ()) -> list[str]:
    """What is said of the names in braces that stand for nothing, a sentence each.

    A name that is nearly a variable's is one wherever it stands. Any other is only where it stands
    as a word does: in code, a path or a formula it is none, nor is a single letter or two.
    ``hidden`` are the names that nobody gave to anything, such as ``open`` in IPython.

    >>> for sentence in unknown_names("Plot {slaes} by {x}, not {budget}.", {"sales": [1, 2]}):
    ...     print(sentence)
    {slaes} was sent as it stands; did you mean {sales}?
    {budget} was sent as it stands; no variable has that name.
    """
    own = [name for name in names if not name.startswith("_") and name not in hidden]
    words = _AS_WORD.findall(_CODE.sub("", prompt))
    said = []
    for path in names_in(prompt):
        first, *attributes = path.split(".")
        sent = f"{{{path}}} was sent as it stands;"
        if first in names:
            _, lacking = _followed(names[first], attributes)
            if lacking.startswith("__"):
                said.append(f"{sent} attributes that begin with __ are not looked up.")
            elif lacking:
                said.append(f"{sent} {first} has no attribute {lacking}.")
        elif len(first) > 2:
            if near := kinds.nearest(first, own):
                said.append(f"{sent} did you mean {{{'.'.join([near, *attributes])}}}?")
            elif path in words:
                said.append(f"{sent} no variable has that name.")
    return said


def describe(value: Any, limit: int = _SHOWN, secrets: Iterable[str] = ()) -> str:
    """A value as text that a model can use: text as it is, a frame as its columns and head.

    At most ``limit`` characters, and it says when there is more; masked before it is cut.
    """
    if isinstance(value, str):
        text, more = value, ""
    else:
        try:
            if is_frame(value):
                text, more = describe_frame(value), ""
            else:
                text, more = _repr(without_secret_entries(value), limit)
        except Exception as error:  # a repr of the user's, say
            text, more = f"<{type(value).__name__} that cannot be shown: {error!r}>", ""
    shown = masked_start(text, limit, secrets)
    if len(text) <= limit and not more:
        return shown
    return f"{shown}… ({more or f'{len(text):,} characters'} in all)"


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
    return _is_one_of(value, _FRAMES)


def _is_one_of(value: Any, names: Iterable[str]) -> bool:
    return any(f"{kind.__module__}.{kind.__qualname__}" in names for kind in type(value).__mro__)


def without_secret_entries(value: Any) -> Any:
    """A frame or a series of pandas, masked where a column, a level or an entry is a secret's.

    Whatever else it is, as it is.
    """
    if is_frame(value):
        return _masked_frame(value)
    if not _is_one_of(value, _SERIES):
        return value
    masked = value.copy(deep=False)
    masked.index = _masked_index(value)
    if may_hide(value.name) and _holds_secrets(value.name, value):
        places: Any = slice(None)
    else:
        labels = value.index[:_LABELS].tolist() if value.index.dtype.kind == "O" else []
        places = [i for i, label in enumerate(labels) if hides(label, value.iloc[i])]
    if places:
        masked = masked.astype(object)
        masked.iloc[places] = KEY
    return masked


def _masked_frame(frame: Any) -> Any:
    masked = frame.copy(deep=False)
    for place in _secret_columns(frame):
        masked.isetitem(place, KEY)
    masked.index = _masked_index(frame)
    return masked


def _masked_index(rows: Any) -> Any:
    """The index of a frame or a series, nothing of whose levels is shown that are a secret's."""
    index = rows.index
    levels = [
        may_hide(name) and _holds_secrets(name, index.get_level_values(i))
        for i, name in enumerate(index.names)
    ]
    if not any(levels):
        return index
    if index.nlevels == 1:
        return index.map(lambda _: KEY)
    return index.map(lambda row: tuple(KEY if h else v for h, v in zip(levels, row, strict=True)))


def _secret_columns(frame: Any) -> list[int]:
    """The places of those that hold secrets."""
    return [
        i
        for i, column in enumerate(frame.columns)
        if may_hide(column) and _holds_secrets(column, frame.iloc[:, i])
    ]


def _holds_secrets(name: Any, values: Any) -> bool:
    """Whether a column or a level of that name does; when a password was changed is none."""
    if values.dtype.kind in "bmM":
        return False
    present = values.dropna()
    return hides(name, getattr(present, "iloc", present)[:_ROWS].tolist())


def describe_frame(frame: Any) -> str:
    """A data frame's shape, columns with types and missing values, and first rows."""
    width = frame.shape[1]
    lines = [f"DataFrame, {_shape(frame)}"]
    if named := _named_levels(frame):
        lines[0] += f", indexed by {', '.join(map(str, named))}"
        frame = with_index(frame)
    secret = _secret_columns(frame)
    for i, column in enumerate(frame.columns[:50]):  # by place: names may be there twice
        if i in secret:
            lines.append(f"- {column}: {KEY}")
            continue
        missing = int(frame.iloc[:, i].isna().sum())
        line = f"- {column}: {frame.dtypes.iloc[i]}"
        line += ", named by a number" if isinstance(column, int) else ""
        lines.append(line + (f", {missing} missing" if missing else ""))
    if width > 50:
        lines.append(f"- and {width - 50} more columns")
    lines += ["First rows:", _masked_frame(frame.head(5)).to_csv(index=False).rstrip()]
    return "\n".join(lines)


def describe_at_length(frame: Any, rows: int, limit: int, secrets: Iterable[str] = ()) -> str:
    """A data frame as :func:`describe` does, its statistics, its values, and as many rows.

    Of columns of secrets there are none of these.
    """
    table = with_index(frame)
    secret = _secret_columns(table)
    others = [i for i in range(table.shape[1]) if i not in secret]
    open_columns = table.iloc[:, others] if secret else table
    statistics = "none\n"
    if open_columns.shape[1]:
        statistics = open_columns.describe(include="all").to_csv()
    parts = [f"{describe(frame, limit, secrets)}\n", f"Statistics:\n{statistics}"]
    if values := describe_values(open_columns):
        parts.append(f"Values, and how often each is there:\n{values}\n")
    shown = _masked_frame(table.head(rows)).to_csv(index=False)
    return "\n".join([*parts, f"Rows:\n{shown}"])


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
