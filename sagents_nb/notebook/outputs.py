"""Which output of a cell its page shows: that of the request which it has sent last.

JupyterLab drops what stands below a cell at the moment when that is run again. But the kernel gets
to the new request once the one before has ended, and that may wait for a click in the panel which
was dropped. So pages tell at once of each cell that they run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from IPython import get_ipython

from ..runtime.main_thread import main_thread


class Place(NamedTuple):
    """An output: the id of its cell, "" where the front end does not say it, and its request."""

    cell: str
    request: str


Move = Callable[[Place], None]

# Requests of a cell that are remembered: those behind which more than that wait are rare.
_MOST = 100

_lock = threading.Lock()
# By the id of the cell.
_sent: dict[str, tuple[str, ...]] = {}
_awaited: dict[str, tuple[Move, ...]] = {}


def here() -> Place:
    """Where the page shows what the kernel shows now."""
    cell, request = cell_id(), _request()
    sent = _sent.get(cell, ())
    # Of other pages, and before its first panel, nobody tells: then what was told is of the past.
    return Place(cell, sent[-1] if request in sent else request)


def run_again() -> int:
    """How often the page has run the cell again since it sent the request that the kernel is at."""
    request, sent = _request(), _sent.get(cell_id(), ())
    return len(sent) - 1 - sent.index(request) if request in sent else 0


def _request() -> str:
    return str((_parent().get("header") or {}).get("msg_id") or "")


def cell_id() -> str:
    """The id of the cell that is run, "" where the front end does not say it."""
    return str((_parent().get("metadata") or {}).get("cellId") or "")


def page() -> str:
    """The id of the page that asked for what the kernel does: another each time it is loaded."""
    return str((_parent().get("header") or {}).get("session") or "")


def _parent() -> dict[str, Any]:
    """The message that asked for what the kernel does, {} outside of one."""
    kernel = getattr(get_ipython(), "kernel", None)
    return {} if kernel is None else kernel.get_parent() or {}


def note(cell: Any, request: Any) -> None:
    """Take what a page tells: it has sent that request to run the cell. From any thread."""
    if not (isinstance(cell, str) and cell and isinstance(request, str) and request):
        return
    with _lock:
        _sent[cell] = (*_sent.get(cell, ()), request)[-_MOST:]
        moves = _awaited.get(cell, ())
    for move in moves:
        main_thread.submit(move, Place(cell, request))


@contextmanager
def awaited(place: Place, move: Move) -> Iterator[None]:
    """Have ``move`` called, on the main thread, when the page shows another output of the cell.

    The cell waits meanwhile for what stands in ``place``.
    """

    def move_if_awaited(to: Place) -> None:
        if move_if_awaited in _awaited.get(place.cell, ()):
            move(to)

    with _lock:
        _awaited[place.cell] = (*_awaited.get(place.cell, ()), move_if_awaited)
    try:
        if (now := here()) != place:  # since it was shown
            move(now)
        yield
    finally:
        with _lock:
            left = tuple(m for m in _awaited.pop(place.cell) if m is not move_if_awaited)
            if left:
                _awaited[place.cell] = left


@contextmanager
def shown_in(place: Place) -> Iterator[None]:
    """Have what this thread displays stand in that output."""
    shell = get_ipython()
    if not place.cell or shell.display_pub.parent_header.get("msg_id") == place.request:
        yield
        return
    before = shell.display_pub.set_thread_parent({"header": {"msg_id": place.request}})
    try:
        yield
    finally:
        shell.display_pub.reset_thread_parent(before)
