"""Running a function on the process's main thread, for plots and the user's own namespace.

The main thread takes work in two situations: while it waits for a run in this package, and
while an event loop that was attached to it (a kernel's) is turning.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class MainThread:
    """A queue of functions that only the main thread takes from."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forget()

    def _forget(self) -> None:
        self._work: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._waiting = 0

    def after_fork(self) -> None:
        """Begin anew in a forked child: its main thread is the one that forked."""
        self._loop = None
        self._forget()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let that loop, which turns on the main thread, take work."""
        self._loop = loop

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Queue a function, in a copy of the caller's context; from any thread.

        Raises RuntimeError if the main thread neither waits here nor has a loop attached.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        with self._changed:
            self._check()
            self._work.append((lambda: context.run(function, *args), future))
            self._changed.notify_all()
            if not self._waiting and self._loop is not None:
                self._loop.call_soon_threadsafe(self._drain)
        return future

    def _check(self) -> None:
        if not self._waiting and (self._loop is None or not self._loop.is_running()):
            raise RuntimeError(
                "This tool needs the main thread, which is busy elsewhere; "
                "await the run in a notebook cell, or wait for it with run.result()."
            )

    def wait(self, future: Future[T], timeout: float | None = None) -> T:
        """``future.result(timeout)``, taking work meanwhile if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return future.result(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        future.add_done_callback(self._wake)
        with self._changed:
            self._waiting += 1
        try:
            while not future.done():
                with self._changed:
                    left = None if end is None else end - time.monotonic()
                    if not self._changed.wait_for(lambda: self._work or future.done(), left):
                        break
                self._drain()
        finally:
            self._leave()
        return future.result(timeout=0)

    def _leave(self) -> None:
        with self._changed:
            self._waiting -= 1
            try:
                self._check()
            except RuntimeError as error:  # what came at the last moment is told so
                while self._work:
                    _, future = self._work.popleft()
                    if future.set_running_or_notify_cancel():
                        future.set_exception(error)
            else:
                if self._work and not self._waiting and self._loop is not None:
                    self._loop.call_soon_threadsafe(self._drain)

    def _wake(self, _: Future[Any]) -> None:
        with self._changed:
            self._changed.notify_all()

    def _drain(self) -> None:
        while True:
            with self._changed:
                if not self._work:
                    return
                work, future = self._work.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)


main_thread = MainThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=main_thread.after_fork)
