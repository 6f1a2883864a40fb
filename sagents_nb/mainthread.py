"""Running a function on the process's main thread, for plots and the user's own namespace.

The main thread takes work in two situations: while it waits for a run in this package, and
while an event loop that was attached to it (a kernel's) is turning.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class MainThread:
    """A queue of functions that only the main thread takes from."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._waiting = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let that loop, which turns on the main thread, take work."""
        self._loop = loop

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Queue a function, in a copy of the caller's context; from any thread.

        Raises RuntimeError if the main thread neither waits here nor has a loop attached.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(context.run(function, *args))
            except BaseException as error:
                future.set_exception(error)

        with self._changed:
            if not self._waiting and (self._loop is None or not self._loop.is_running()):
                raise RuntimeError(
                    "This tool needs the main thread, which is busy elsewhere; "
                    "await the run in a notebook cell, or wait for it with run.result()."
                )
            self._work.append(work)
            self._changed.notify_all()
            if not self._waiting and self._loop is not None:
                self._loop.call_soon_threadsafe(self._drain)
        return future

    def wait(self, future: Future[T], timeout: float | None = None) -> T:
        """``future.result(timeout)``, taking work meanwhile if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return future.result(timeout)
        future.add_done_callback(self._wake)
        with self._changed:
            self._waiting += 1
        try:
            while True:
                with self._changed:
                    in_time = self._changed.wait_for(lambda: self._work or future.done(), timeout)
                if not in_time or (future.done() and not self._work):
                    return future.result(timeout=0)
                self._drain()
        finally:
            with self._changed:
                self._waiting -= 1

    def _wake(self, _: Future[Any]) -> None:
        with self._changed:
            self._changed.notify_all()

    def _drain(self) -> None:
        while True:
            with self._changed:
                if not self._work:
                    return
                work = self._work.popleft()
            work()


main_thread = MainThread()
