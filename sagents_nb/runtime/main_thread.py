"""Running a function on the process's main thread, for plots and the user's own namespace.

The main thread takes work in two situations: while it waits for a run in this package, and
while an event loop that was attached to it (a kernel's) is turning.
"""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import math
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from .caller import running_loop
from .insistence import PACKAGE, Insistence, package_of
from .thread import runtime

T = TypeVar("T")

# Seconds after which code that went on in spite of its interrupt is interrupted again.
_AGAIN = 0.3
_SOON = 0.01  # the same for code that was in this package just then
# What is not interrupted here: it may hold a lock, or have begun what nobody knows of yet.
_GUARDED = {"agent", "loop", "models", "registry", "runtime", "session", "store"}
# What interrupts work here, so that SIGINT is a person's alone: two of one kind that come while C
# computes are one. Go's runtime says why SIGURG (src/runtime/signal_unix.go, sigPreempt): libraries
# do not use it, debuggers pass it on, and where nobody handles it, it does nothing.
_ASKED = signal.Signals["SIGURG" if hasattr(signal, "SIGURG") else "SIGBREAK"]
_LONGEST = threading.TIMEOUT_MAX / 2
TURNS = 8
"""Turns of a kernel's loop from the interrupt of a cell to what that does with it.

ipykernel's handler, its future, the cell's task, and what that awaits, each a turn or two.
"""


def _signal() -> None:
    """Send the main thread the signal that asks; from any thread."""
    if hasattr(signal, "pthread_kill"):  # which ends what waits, too: time.sleep, say
        signal.pthread_kill(threading.main_thread().ident or 0, _ASKED)
    else:
        _thread.interrupt_main(_ASKED)


def _in_turns(
    loop: asyncio.AbstractEventLoop, turns: int, function: Callable[..., object], *args: Any
) -> None:
    """Call it once the loop, which calls this, has done what it has to for that many turns."""
    if turns:
        loop.call_soon(_in_turns, loop, turns - 1, function, *args)
    else:
        function(*args)


def _post(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # it was closed meanwhile
        loop.call_soon_threadsafe(function)


class Work(Future[T]):
    """A function for the main thread, and what comes of it."""

    def __init__(
        self,
        function: Callable[[], T],
        *,
        is_call: bool = False,
        part_of: Work[Any] | None = None,
    ) -> None:
        super().__init__()
        self.part_of = part_of
        """What it is interrupted with."""
        self.interrupted = False
        """Whether it was interrupted, so that it gives what it has done until then."""
        self.by_person = False
        """Whether that was Ctrl-C or the kernel's interrupt, which is meant for its whole run."""
        self.runs = False
        """Whether its code runs: nothing else of this is interrupted.

        To set it takes no call and no jump, so no interrupt comes between that and what is next.
        """
        self.missed = False
        """Whether it was interrupted meanwhile."""
        self.is_deferred = False
        """Whether it is interrupted once it is out of this package, or waits in it."""
        self.is_call = is_call
        """Whether it is a tool's call, which may take long and can wait for a moment."""
        self.is_asked = False
        """Whether a signal is under way that is meant for it."""
        self.is_reminded = False
        """Whether it will be interrupted again if it goes on."""
        self._insistence = Insistence(lambda: self.runs)
        self._is_told = False
        self._function = function

    def outcome(self) -> tuple[T | None, BaseException | None]:
        """Run it: what it gives, and what it raises."""
        given: list[T] = []

        def run() -> None:
            self.runs = True
            if self.interrupted:  # just before
                raise KeyboardInterrupt
            given.append(self._function())
            self.runs = False

        self._insistence.prepare()
        try:
            run()
        except BaseException as error:
            self.runs = False
            if not given:  # else it was interrupted just as it was over
                return None, error
        finally:
            self._insistence.end()
        return given[0], None

    def resume(self) -> None:
        """Its code runs from now on; raises KeyboardInterrupt if it was interrupted meanwhile."""
        self.runs = True
        if self.missed:
            self.missed = False
            self.tell()

    def interrupt(self, frame: FrameType | None) -> None:
        """End its code, which is in ``frame``, by what this raises; in a signal's handler only.

        Code of this package goes on: a lock that is taken as it is interrupted is never let go.
        """
        self.interrupted = True
        if not self.runs:
            self.missed = True
        elif _is_guarded(frame):
            self.is_deferred = True
        elif self._is_told:
            raise self._insistence.begin(frame)
        else:
            self.tell()

    def tell(self) -> None:
        """Raise KeyboardInterrupt in its code, which is where it may be ended."""
        self.is_deferred, self._is_told = False, True
        raise KeyboardInterrupt

    def end(self, given: T | None, error: BaseException | None) -> None:
        """Have those who wait for it go on with that."""
        if error is None:
            self.set_result(given)  # type: ignore[arg-type]
        else:
            self.set_exception(error)


def _is_guarded(frame: FrameType | None) -> bool:
    """Whether that is code of this package, which the code of a work has called."""
    while frame is not None and package_of(frame) in sys.stdlib_module_names:
        frame = frame.f_back
    if frame is None or package_of(frame) != PACKAGE:
        return False
    if _GUARDED.isdisjoint(frame.f_globals["__name__"].split(".")[1:2]):
        return False
    while frame is not None and frame.f_code is not Work.outcome.__code__:
        if package_of(frame) != PACKAGE and package_of(frame) not in sys.stdlib_module_names:
            return True
        frame = frame.f_back
    return False  # it is what calls that code


class MainThread:
    """A queue of functions that only the main thread takes from."""

    def __init__(self) -> None:
        # A run can be quicker than its caller's way from send() to result().
        self.grace = 1.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forget()

    def _forget(self) -> None:
        self._queue: deque[Work[Any]] = deque()
        self.lock = threading.RLock()
        self._wakes: SimpleQueue[None] = SimpleQueue()  # for who waits; a Condition's lock may stay
        self._waited: list[Future[Any]] = []  # what somebody waits for here, the innermost last
        self._at_work: list[Work[Any]] = []  # what it runs now, the innermost last
        self._released: set[Future[Any]] = set()
        self._settles: asyncio.AbstractEventLoop | None = None  # was interrupted; no calls for now

    def after_fork(self) -> None:
        """Begin anew in a forked child: its main thread is the one that forked."""
        self._loop = None
        self._forget()

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Let that loop, which turns on the main thread, take work; None for no loop."""
        self._loop = loop

    def submit(self, function: Callable[..., T], *args: Any) -> Work[T]:
        """Queue a function, in a copy of the caller's context; from any thread.

        It fails with a RuntimeError if within ``grace`` seconds the main thread neither waits here
        nor has a loop attached.
        """
        return self._submit(False, function, *args)

    def submit_call(self, function: Callable[..., T], *args: Any) -> Work[T]:
        """The same for a call of a tool."""
        return self._submit(True, function, *args)

    def _submit(self, is_call: bool, function: Callable[..., T], *args: Any) -> Work[T]:
        work = Work(partial(contextvars.copy_context().run, function, *args), is_call=is_call)
        with self.lock:
            self._queue.append(work)
            self._wake()
            self._call_for([work])
        return work

    @property
    def _loop_turns(self) -> bool:
        return self._loop is not None and self._loop.is_running()

    def in_cell(self) -> bool:
        """Whether the caller is on the attached loop, where only interrupts cancel what awaits."""
        return self._loop is not None and running_loop() is self._loop

    def _call_for(self, works: list[Work[Any]]) -> None:
        """Have somebody take these; with the lock held."""
        if self._waited:
            return
        if self._loop is not None and self._loop_turns:
            # What is quick goes at once: a cell that is ending shows it, still.
            turns = TURNS if all(work.is_call for work in works) else 0
            self._loop.call_soon_threadsafe(_in_turns, self._loop, turns, self._drain)
            return
        timer = threading.Timer(self.grace, self._give_up, [works])
        timer.daemon = True
        timer.start()

    def _give_up(self, works: list[Work[Any]]) -> None:
        with self.lock:
            left = [work for work in works if work in self._queue]
            if left and (self._waited or self._loop_turns):
                self._call_for(left)
                return
            for work in left:
                self._queue.remove(work)
        for work in left:
            if work.set_running_or_notify_cancel():
                work.set_exception(
                    RuntimeError(
                        "This tool needs the main thread, which is busy elsewhere; "
                        "await the run in a notebook cell, or wait for it with run.result()."
                    )
                )

    def wait(self, future: Future[T], timeout: float | None = None) -> T:
        """``future.result(timeout)``, taking work meanwhile if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            # Any number, which a lock does not take.
            return future.result(timeout if timeout is None else min(timeout, _LONGEST))
        end = math.inf if timeout is None else time.monotonic() + timeout
        work, is_done = self.innermost(), False

        def wake(_: object) -> None:
            nonlocal is_done
            is_done = True
            self._wake()

        try:
            with self.lock:
                self._waited.append(future)
            future.add_done_callback(wake)
            while not is_done and future not in self._released:
                if work.is_deferred:
                    work.tell()
                self._drain()
                if is_done or (left := end - time.monotonic()) <= 0:
                    break
                with suppress(Empty):
                    self._wakes.get(timeout=min(left, _LONGEST))
            if future in self._released:
                raise KeyboardInterrupt("The run was stopped.")
        finally:
            self._leave(future)
        return future.result(timeout=0)

    def _leave(self, future: Future[Any]) -> None:
        with self.lock:
            if future in self._waited:
                self._waited.remove(future)
            self._released.discard(future)
            if self._queue:  # it came at the last moment
                self._call_for(list(self._queue))

    def release(self, future: Future[Any]) -> None:
        """End :meth:`wait` for ``future`` by a KeyboardInterrupt, as Ctrl-C would; harmless else.

        From any thread.
        """
        with self.lock:
            if future in self._waited:
                self._released.add(future)
                self._wake()

    def _wake(self) -> None:
        """Have who waits look again; from any thread, also in a signal's handler."""
        if self._wakes.empty():
            self._wakes.put(None)

    def interrupt(self, work: Work[Any]) -> None:
        """End that by a KeyboardInterrupt, if it runs now; if it has not begun, it never does.

        From any thread. Code in C sees it when it returns, but for what a signal wakes. Code that
        goes on is interrupted again, until it ends.
        """
        with self.lock:
            if work not in self._at_work:  # it is over, or just about to begin, which it does not
                work.interrupted |= not work.done()
                return
            work.is_asked = True
            _signal()
        self._interrupt_later(work)

    def _drain(self) -> None:
        while (work := self._taken()) is not None:
            if work.set_running_or_notify_cancel():
                self.perform(work)
                if work.by_person:
                    self._settle()

    def _taken(self) -> Work[Any] | None:
        """The next in the queue, which leaves it."""
        with self.lock:
            held = self._settles is not None and self._settles is self._loop and not self._waited
            for work in self._queue:
                if not (held and work.is_call):
                    self._queue.remove(work)
                    return work
            return None

    def _settle(self) -> None:
        """Begin no call until what awaits on the loop has heard of the interrupt, and its runs."""
        loop = self._loop
        if loop is None or not loop.is_running():
            return

        def settled() -> None:
            self._settles = None
            self._drain()

        # What these have posted to the runtime thread by then is done there before this.
        self._settles = loop
        _in_turns(loop, TURNS, runtime.post, _post, loop, settled)

    def perform(self, work: Work[Any]) -> None:
        """Run that here, in the caller's thread; on the main one it can be interrupted.

        By Ctrl-C or the kernel's interrupt, which ends what runs here and whoever waits for it.
        While a cell awaits, the kernel's own handler only asks the loop to cancel the cell; but
        the loop is not turning while this work blocks it, for ever perhaps. So the work is
        interrupted first, whatever it makes of that, and the handler hears of it afterwards: what
        the work gives then is its result. Of what :meth:`interrupt` sends it hears nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            work.end(*work.outcome())
            return

        def interrupted(number: int, frame: FrameType | None) -> None:
            work.by_person = True
            self._interrupt_later(work)
            self._interrupt(work, frame)

        before = signal.signal(_ASKED, self._asked)
        outer = signal.signal(signal.SIGINT, interrupted)
        with self.lock:
            self._at_work.append(work)
        given, error = work.outcome()  # nothing is raised here from now on
        work.end(given, error)
        with self.lock:
            self._at_work.remove(work)
        signal.signal(signal.SIGINT, outer or signal.default_int_handler)
        try:
            if work.by_person and callable(outer):
                outer(signal.SIGINT, None)
            self._asked(_ASKED, None)  # what waits for this
        finally:
            signal.signal(_ASKED, before or signal.SIG_DFL)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        """Interrupt what runs here, if that was meant, or what it is part of.

        What is around it else is interrupted when it has ended: who stops that ends what works for
        it, and something of somebody else goes on.
        """
        innermost = asked = self._at_work[-1] if self._at_work else None
        while asked is not None and not asked.is_asked:
            asked = asked.part_of
        if innermost is not None and asked is not None:  # else what was meant has ended
            innermost.is_asked = False
            self._interrupt(innermost, frame)

    def _interrupt(self, work: Work[Any], frame: FrameType | None) -> None:
        work.interrupt(frame)
        if work.is_deferred:
            self._wake()

    def _interrupt_later(self, work: Work[Any]) -> None:
        def wait() -> None:
            end = time.monotonic() + _AGAIN
            while time.monotonic() < end:
                time.sleep(_SOON)
                if any(other.is_deferred for other in self._at_work):
                    break
            work.is_reminded = False
            self.interrupt(work)

        if not work.is_reminded:
            work.is_reminded = True
            # Not threading's: a signal's handler may find its lock held by the code that it stops.
            _thread.start_new_thread(wait, ())

    def is_interrupted(self) -> bool:
        """Whether the caller is code on the main thread that was interrupted, and goes on."""
        here = threading.current_thread() is threading.main_thread()
        return here and any(work.interrupted for work in self._at_work)

    def innermost(self) -> Work[Any]:
        """What runs here; where nothing does, some that stands for it."""
        here = threading.current_thread() is threading.main_thread()
        return self._at_work[-1] if here and self._at_work else Work(lambda: None)


main_thread = MainThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=main_thread.after_fork)
