"""The event loop of whoever started a run, for async tools that use what belongs to it.

A database pool or an HTTP session made in a cell works on the kernel's loop only, and runs are
on a loop of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

LOOKED_AT_EVERY = 1.0
"""After how many seconds it is asked again whether the caller's loop still runs."""

caller_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar(
    "sagents_caller_loop", default=None
)
"""The loop that turned where the run was started, or None."""

_lock = threading.Lock()
_blocked: list[asyncio.AbstractEventLoop] = []  # as often as somebody blocks it
_at_work: dict[Future[Any], asyncio.AbstractEventLoop] = {}


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that turns on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def run_on_caller(function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """What the coroutine function gives, on the caller's loop.

    Raises RuntimeError if there is none, or if it does not turn: it waits for the run, or stopped.
    """
    loop = caller_loop.get()
    if loop is None:
        raise RuntimeError(
            "no event loop was running where the run was started; start it with 'await', from "
            "the loop that the tool is to run on"
        )
    with _lock:
        if loop in _blocked:
            raise _Stuck
        future = asyncio.run_coroutine_threadsafe(function(*args), loop)
        _at_work[future] = loop
    waiting = asyncio.wrap_future(future)
    try:
        while not waiting.done() and loop.is_running():
            await asyncio.wait([waiting], timeout=LOOKED_AT_EVERY)
        if not waiting.done():
            raise _STOPPED
        return waiting.result()
    except asyncio.CancelledError:
        with _lock:
            stuck = loop in _blocked
        if stuck:
            raise _Stuck from None
        raise
    finally:
        waiting.cancel()
        with _lock:
            del _at_work[future]


@contextmanager
def blocking() -> Iterator[None]:
    """Whoever waits here keeps the loop of this thread from turning: nothing can run on it."""
    loop = running_loop()
    if loop is None:
        yield
        return
    with _lock:
        _blocked.append(loop)
        stuck = [future for future, whose in _at_work.items() if whose is loop]
    for future in stuck:
        future.cancel()
    try:
        yield
    finally:
        with _lock:
            _blocked.remove(loop)


_STOPPED = RuntimeError(
    "the loop that started the run does not run any more; keep it running until the run has ended"
)
_Stuck = RuntimeError(
    "the loop that started the run waits for it, so nothing else can run there; await the run "
    "instead of calling result()"
)
