"""What is others each time and says the same, and what only a page shows, is made equal.

A notebook that was saved from a browser has live panels where the test shows a transcript. Of
the panel of one run the transcripts are compared. That of a whole session showed what the
conversation had come to when the notebook was saved, also by later cells: it is not compared.

Spans of time in our own frames, such as ``duration``, are others in each run. A name does not
tell whose a column is: a user's own frame may have a ``duration`` too, and is compared. So the
kernel of a test says of each frame that it shows which columns we have measured (see
``frames/columns.py``), and the numbers there are made equal, here and in the notebook. Whether
there is a number at all is still compared.

A frame is compared by its HTML, which says all that its text does: the text has columns as wide
as what is in them, and a time of whole milliseconds is shorter than others.

Images are compared nowhere, as by nbval: each version of what draws them has other bytes. So they
are not in a transcript either, but that there is one is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...frames.columns import MEASURED

_OF_A_RUN = re.compile(r"<Panel 'run' of session ")
_OF_A_SESSION = re.compile(r"<(Session|Panel) '")

TELL = f"__import__({__name__!r}, fromlist=['tell']).tell()"
"""What a kernel is told to run before the first cell."""

_TYPES = [
    *(("pandas", name) for name in ("DataFrame", "Series")),
    *(("pandas.core.frame", "DataFrame"), ("pandas.core.series", "Series")),  # before pandas 3
]
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?")
_LAST = re.compile(rf" +({_NUMBER.pattern}|NaN)$", re.MULTILINE)  # of a line, as wide as it is
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"(<t[hd]\b([^>]*)>)(.*?)(</t[hd]>)", re.DOTALL)
_SPANNED = re.compile(r'colspan="(\d+)"')
_MEASURED = "MEASURED"
_IMAGE = re.compile(r"^(?P<before> *!\[image\]\(data:image/)[^)]*\)$", re.MULTILINE)

Compare = Callable[..., bool]


def comparing(compare: Compare) -> Compare:
    """The ``compare`` of nbval, with what only a page shows, and spans of time, made equal."""
    return partial(_compared, compare)


def _compared(
    compare: Compare, test: Sequence[Any], reference: Sequence[Any], *others: Any, **named: Any
) -> bool:
    return compare(*_made_equal(test, reference), *others, **named)


def _made_equal(test: Sequence[Any], reference: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    test, reference = ([_without_images(o) for o in outputs] for outputs in (test, reference))
    shown = [o for o in test if "data" in o]
    saved = [o for o in reference if "data" in o]
    if len(shown) != len(saved):
        return test, reference
    instead: dict[int, list[Any]] = {}
    for now, then in zip(shown, saved, strict=True):
        if _OF_A_SESSION.match(_plain(now)) and "text/html" not in then["data"]:
            instead[id(now)] = instead[id(then)] = []
        elif _OF_A_RUN.match(_plain(then)):
            instead[id(now)] = [_without_plain(now)]
            instead[id(then)] = [_without_plain(then)]
        elif (names := _measured_of(now)) is not None:
            instead[id(now)] = [without_measured(now, names)]
            instead[id(then)] = [without_measured(then, names)]
    return (
        [kept for output in test for kept in instead.get(id(output), [output])],
        [kept for output in reference for kept in instead.get(id(output), [output])],
    )


def _plain(output: Any) -> str:
    return str(output["data"].get("text/plain", ""))


def _without_plain(output: Any) -> Any:
    data = {mime: value for mime, value in output["data"].items() if mime != "text/plain"}
    return type(output)({**output, "data": data})


def _without_images(output: Any) -> Any:
    data = output.get("data")
    if data is None:
        return output
    shown = {
        mime: _IMAGE.sub(r"\g<before>…)", value)
        if mime == "text/markdown" and isinstance(value, str)
        else value
        for mime, value in data.items()
    }
    return type(output)({**output, "data": shown})


def tell() -> None:
    """Have this kernel say, in the metadata of a frame's output, what was measured."""
    from IPython.core.getipython import get_ipython

    formatter: Any = get_ipython().display_formatter.mimebundle_formatter  # type: ignore[union-attr]
    for module, name in _TYPES:
        formatter.for_type_by_name(module, name, _told)


def _told(shown: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """No other output than without, but with what is there of measured columns."""
    names = [str(name) for name in shown.attrs.get(MEASURED, ())]
    if not hasattr(shown, "columns"):
        names = [name for name in names if name == shown.name]
        return {}, {MEASURED: names} if names else {}
    return {}, {MEASURED: names}


def without_measured(output: Any, names: list[str]) -> Any:
    """The output of a frame, or of one column, without the numbers of the columns ``names``."""
    data = dict(output["data"])
    if "text/html" in data:  # which says the same as the text, whose lines break by widths
        data["text/html"] = _table(str(data["text/html"]), set(names))
        data.pop("text/plain", None)
    elif "text/plain" in data:
        data["text/plain"] = _LAST.sub(
            lambda last: " NaN" if last[1] == "NaN" else f" {_MEASURED}", str(data["text/plain"])
        )
    return type(output)({**output, "data": data})


def _measured_of(output: Any) -> list[str] | None:
    """What the kernel of a test has told of that output, None where it is no frame."""
    return output.get("metadata", {}).get(MEASURED)  # type: ignore[no-any-return]


def _table(text: str, names: set[str]) -> str:
    """An HTML table of pandas. Columns are counted from the right: rows may share their index."""
    head, found, body = text.partition("</thead>")
    places = {
        place
        for row in _ROW.findall(head)
        for place, label in enumerate(reversed(_labels(row)), 1)
        if label in names
    }

    def without(row: re.Match[str]) -> str:
        cells = list(_CELL.finditer(row[0]))
        text = row[0]
        for place, cell in enumerate(reversed(cells), 1):  # so that those before stay in place
            if place in places and cell[1].startswith("<td") and _NUMBER.fullmatch(cell[3]):
                text = text[: cell.start(3)] + _MEASURED + text[cell.end(3) :]
        return text

    return head + found + _ROW.sub(without, body)


def _labels(row: str) -> list[str]:
    labels: list[str] = []
    for cell in _CELL.finditer(row):
        span = _SPANNED.search(cell[2])
        labels += [html.unescape(cell[3])] * (int(span[1]) if span else 1)
    return labels
