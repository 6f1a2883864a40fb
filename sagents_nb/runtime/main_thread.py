"""Running a function on the process's main thread, for plots and the user's own namespace.

The main thread takes work in two situations: while it waits for a run in this package, and
while an event loop that was attached to it (a kernel's) is turning.
"""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import opcode
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_Item = tuple[Callable[[], Any], "Future[Any]"]
# A signal is on its way for less than this, in seconds, unless the thread has it blocked.
_DELIVERY = 1.0
AGAIN = 0.5
"""Seconds after which code that went on in spite of its interrupt is interrupted again."""
_LONGEST = threading.TIMEOUT_MAX / 2
_PACKAGE = __name__.partition(".")[0]
_HANDLER = opcode.opmap["PUSH_EXC_INFO"]


def interrupt_main() -> None:
    """Send the main thread the signal of Ctrl-C; from any thread."""
    if hasattr(signal, "pthread_kill"):  # which ends what waits, too: time.sleep, say
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def insist(frame: FrameType | None, error: Callable[[], BaseException]) -> None:
    """Have code that is interrupted in ``frame`` not go on by catching what is raised there now.

    Loops with a bare ``except:`` catch every interrupt, and so are never ended by one. The code
    is traced from here on, and the next line that it comes to raises as well, be it the one that
    catches; Python ends the tracing with that. Frames of this package tidy up undisturbed. Whoever
    calls this sets the trace function that there was, :func:`sys.gettrace`, again at the end.
    """

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        # Not where a handler begins: Python would take what it handles for handled ever after.
        if event == "line" and frame.f_code.co_code[frame.f_lasti] != _HANDLER:
            raise error()
        return trace

    sys.settrace(lambda *_: None)  # what is called from now on is not traced
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            frame.f_trace = trace
        frame = frame.f_back


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
        self._waited: list[Future[Any]] = []  # what somebody waits for here, the innermost last
        self._at_work: list[Future[Any]] = []  # what it runs now, the innermost last
        self._signalled: Future[Any] | None = None  # which of them a signal under way is meant for
        self._interrupted: set[Future[Any]] = set()
        self._released: set[Future[Any]] = set()

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
        if self._waited:
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
            if left and (self._waited or self._loop_turns):
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
        if timeout is not None:  # any number, which a lock does not take
            timeout = min(timeout, _LONGEST)
        if threading.current_thread() is not threading.main_thread():
            return future.result(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        future.add_done_callback(self._wake)
        with self.changed:
            self._waited.append(future)
        try:
            while not (future.done() or future in self._released):
                with self.changed:
                    left = None if end is None else end - time.monotonic()
                    if not self.changed.wait_for(
                        lambda: self._work or future.done() or future in self._released, left
                    ):
                        break
                self._drain()
            if future in self._released:
                raise KeyboardInterrupt("The run was stopped.")
        finally:
            self._leave(future)
        return future.result(timeout=0)

    def _leave(self, future: Future[Any]) -> None:
        with self.changed:
            self._waited.remove(future)
            self._released.discard(future)
            if self._work:  # it came at the last moment
                self._call_for(list(self._work))

    def release(self, future: Future[Any]) -> None:
        """End :meth:`wait` for ``future`` by a KeyboardInterrupt, as Ctrl-C would; harmless else.

        From any thread.
        """
        with self.changed:
            if future in self._waited:
                self._released.add(future)
                self.changed.notify_all()

    def interrupt(self, future: Future[Any]) -> None:
        """End what was submitted as ``future`` by a KeyboardInterrupt, if it runs now.

        From any thread. Code in C sees it when it returns, but for what a signal wakes. Code that
        goes on is interrupted again, until it ends.
        """
        with self.changed:
            if future not in self._at_work:
                return
            again = threading.Timer(AGAIN, self.interrupt, [future])
            again.daemon = True
            again.start()
            # One that nobody took is sent again: while os.system waits, C ignores them.
            if self._signalled in (None, future):
                self._signalled = future
                interrupt_main()

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
                result = self._run(work, future)
            except BaseException as error:
                future.set_exception(error)
                on_order = future in self._interrupted
                self._interrupted.discard(future)
                if isinstance(error, KeyboardInterrupt) and self._waited and not on_order:
                    raise  # whoever waits here is meant too
            else:
                self._interrupted.discard(future)
                future.set_result(result)

    def _run(self, work: Callable[[], T], future: Future[T]) -> T:
        """Let Ctrl-C, or the kernel's interrupt, end what runs here and whoever waits for it.

        While a cell awaits, the kernel's own handler only asks the loop to cancel the cell; but
        the loop is not turning while this work blocks it, for ever perhaps. So the work is
        interrupted first, whatever it makes of that, and the handler hears of it afterwards. Of
        what :meth:`interrupt` sends it hears nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        ending = by_keyboard = for_outer = False
        trace = sys.gettrace()

        def interrupt(number: int, frame: FrameType | None) -> None:
            nonlocal by_keyboard, for_outer
            meant, self._signalled = self._signalled, None
            if meant is None:
                by_keyboard = True
            elif meant in self._at_work:
                if meant in self._interrupted and not ending:
                    insist(frame, KeyboardInterrupt)
                self._interrupted.add(meant)
                for_outer = meant is not future
            else:
                return  # it has ended meanwhile
            if not ending:
                raise KeyboardInterrupt

        outer = signal.signal(signal.SIGINT, interrupt)
        self._at_work.append(future)
        try:
            return work()
        finally:
            ending = True
            sys.settrace(trace)
            with self.changed:
                self._at_work.remove(future)
            until = time.monotonic() + _DELIVERY
            while self._signalled is future and time.monotonic() < until:
                time.sleep(0)  # the signal is under way, and must not find another handler
            if self._signalled is future:  # it was lost
                self._signalled = None
            signal.signal(signal.SIGINT, outer or signal.default_int_handler)
            if by_keyboard and callable(outer):
                outer(signal.SIGINT, None)
            if for_outer:
                raise KeyboardInterrupt  # what waits for this is to end, whatever this made of it


main_thread = MainThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=main_thread.after_fork)
