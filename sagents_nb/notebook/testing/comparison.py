"""What a page had below its cells is not what an unattended run shows, and says the same.

A notebook that was saved from a browser has live panels where the test shows a transcript. Of
the panel of one run the transcripts are compared. That of a whole session showed what the
conversation had come to when the notebook was saved, also by later cells: it is not compared.
Of spans of time in our frames: see ``measured.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .measured import measured_of, without_measured

_OF_A_RUN = re.compile(r"<Panel 'run' of session ")
_OF_A_SESSION = re.compile(r"<(Session|Panel) '")

Compare = Callable[..., bool]


def comparing(compare: Compare) -> Compare:
    """The ``compare`` of nbval, with what only a page shows, and spans of time, made equal."""
    return partial(_compared, compare)


def _compared(
    compare: Compare, test: Sequence[Any], reference: Sequence[Any], *others: Any, **named: Any
) -> bool:
    return compare(*_made_equal(test, reference), *others, **named)


def _made_equal(test: Sequence[Any], reference: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    shown = [o for o in test if "data" in o]
    saved = [o for o in reference if "data" in o]
    if len(shown) != len(saved):
        return list(test), list(reference)
    instead: dict[int, list[Any]] = {}
    for now, then in zip(shown, saved, strict=True):
        if _OF_A_SESSION.match(_plain(now)) and "text/html" not in then["data"]:
            instead[id(now)] = instead[id(then)] = []
        elif _OF_A_RUN.match(_plain(then)):
            instead[id(now)] = [_without_plain(now)]
            instead[id(then)] = [_without_plain(then)]
        elif names := measured_of(now):
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
