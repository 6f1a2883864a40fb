"""Other people's code on the runtime loop: what holds it up, and so all sessions, is said.

What such code raises ends nothing but itself: see :func:`~sagents_nb.errors.pass_on`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from types import CoroutineType, coroutine
from typing import Any

from ..text import logger_of

logger = logger_of(__name__)

HELD = 0.2
"""For how many seconds the loop may be held before that is said."""

TURN = 0.01
"""Seconds of the loop that one may take before others have their turn."""

clock: Callable[[], float] = time.perf_counter

_told: set[str] = set()


def took(began: float, what: str, *functions: Callable[..., Any]) -> None:
    """Say once that a function held the loop, if it did since ``began``, a time of :data:`clock`.

    ``what`` is what it is here, such as "The hook". Of several ``functions`` it was one, or all.
    """
    seconds = clock() - began
    if seconds <= HELD:
        return
    key = f"{what} {' or '.join(dict.fromkeys(map(name_of, functions)))}"
    if key not in _told:
        _told.add(key)
        logger.warning(
            "%s held up every session for %.0f ms: nothing else runs on their loop meanwhile. "
            "Await what waits, and leave what computes to a thread.",
            *(key, seconds * 1000),
        )


@coroutine
def stepwise(
    awaitable: Awaitable[Any], what: str, function: Callable[..., Any]
) -> Generator[Any, Any, Any]:
    """What ``awaitable`` gives; each of its steps is one that :func:`took` looks at."""
    steps = awaitable if type(awaitable) is CoroutineType else awaitable.__await__()
    error: BaseException | None = None
    while True:
        began = clock()
        try:
            waits_for = steps.send(None) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        finally:
            if clock() - began > HELD:  # asked here, since calling took() costs as much again
                took(began, what, function)
        error = None
        try:
            yield waits_for
        except BaseException as thrown:
            error = thrown


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called, for messages."""
    while hasattr(function, "func"):  # a functools.partial
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))
