"""Running a function on the process's main thread, for plots and the user's own namespace.

The main thread takes work in two situations: while it waits for a run in this package, and
while an event loop that was attached to it (a kernel's) is turning.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_Item = tuple[Callable[[], Any], "Future[Any]"]


class MainThread:
    """A queue of functions that only the main thread takes from."""

    def __init__(self) -> None:
        # A run can be quicker than its caller's way from send() to result().
        self.grace = 1.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forget()

    def _forget(self) -> None:
        self._work: deque[_Item] = deque()
        self.changed = threading.Condition()
        self._waiting = 0

    def after_fork(self) -> None:
        """Begin anew in a forked child: its main thread is the one that forked."""
        self._loop = None
        self._forget()

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Let that loop, which turns on the main thread, take work; None for no loop."""
        self._loop = loop

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Queue a function, in a copy of the caller's context; from any thread.

        The future fails with a RuntimeError if within ``grace`` seconds the main thread neither
        waits here nor has a loop attached.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        item: _Item = (lambda: context.run(function, *args), future)
        with self.changed:
            self._work.append(item)
            self.changed.notify_all()
            self._call_for([item])
        return future

    @property
    def _loop_turns(self) -> bool:
        return self._loop is not None and self._loop.is_running()

    def _call_for(self, items: list[_Item]) -> None:
        """Have somebody take these items; with the lock held."""
        if self._waiting:
            return
        if self._loop is not None and self._loop_turns:
            self._loop.call_soon_threadsafe(self._drain)
            return
        timer = threading.Timer(self.grace, self._give_up, [items])
        timer.daemon = True
        timer.start()

    def _give_up(self, items: list[_Item]) -> None:
        with self.changed:
            left = [item for item in items if item in self._work]
            if left and (self._waiting or self._loop_turns):
                self._call_for(left)
                return
            for item in left:
                self._work.remove(item)
        for _, future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(
                    RuntimeError(
                        "This tool needs the main thread, which is busy elsewhere; "
                        "await the run in a notebook cell, or wait for it with run.result()."
                    )
                )

    def wait(self, future: Future[T], timeout: float | None = None) -> T:
        """``future.result(timeout)``, taking work meanwhile if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return future.result(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        future.add_done_callback(self._wake)
        with self.changed:
            self._waiting += 1
        try:
            while not future.done():
                with self.changed:
                    left = None if end is None else end - time.monotonic()
                    if not self.changed.wait_for(lambda: self._work or future.done(), left):
                        break
                self._drain()
        finally:
            self._leave()
        return future.result(timeout=0)

    def _leave(self) -> None:
        with self.changed:
            self._waiting -= 1
            if self._work:  # it came at the last moment
                self._call_for(list(self._work))

    def _wake(self, _: Future[Any]) -> None:
        with self.changed:
            self.changed.notify_all()

    def _drain(self) -> None:
        while True:
            with self.changed:
                if not self._work:
                    return
                work, future = self._work.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                with _interruptible():
                    result = work()
            except BaseException as error:
                future.set_exception(error)
                if isinstance(error, KeyboardInterrupt) and self._waiting:
                    raise  # whoever waits here is meant too
            else:
                future.set_result(result)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C, or the kernel's interrupt, end what runs here and whoever waits for it.

    While a cell awaits, the kernel's own handler only asks the loop to cancel the cell; but
    the loop is not turning while this work blocks it, for ever perhaps. So the work is
    interrupted first, whatever it makes of that, and the handler hears of it afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    outer = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outer or signal.default_int_handler)
        if interrupted and callable(outer):
            outer(signal.SIGINT, None)


main_thread = MainThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=main_thread.after_fork)
