"""Waiting for what happens on the runtime thread: from any thread, on any loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

from .. import kinds
from ..errors import Busy
from ..events import AnyEvent
from ..result import RunResult
from .caller import blocking
from .event_stream import EventStream
from .main_thread import TURNS, main_thread
from .thread import runtime

_lock = threading.Lock()

# How long whoever is interrupted waits for the run that is cancelled with that, in seconds.
ENDING = 0.5


class CancelScope:
    """Code that may wait for runs: that of one call of a tool, or of all tools and hooks of a run.

    ``waited_for`` are the runs that it waits for now. Once it is cancelled they are, too, unless
    others wait for them; and code that was entered, which may go on, begins no run.
    """

    def __init__(self) -> None:
        self.is_cancelled = False
        self.waited_for: tuple[RunHandle, ...] = ()
        self._around: CancelScope | None = None

    def enter(self) -> None:
        """What is called from here on, in this context and in copies of it, is of this code."""
        self._around = _call.get()
        _call.set(self)

    def chain(self) -> Iterator[CancelScope]:
        """It, and those around it."""
        scope: CancelScope | None = self
        while scope is not None:
            yield scope
            scope = scope._around

    def cancel(self) -> None:
        """Cancel the runs that nobody else waits for; from any thread."""
        with _lock:
            self.is_cancelled = True
            alone = [run for run in self.waited_for if self.takes_along(run)]
        for run in alone:
            run.cancel()

    def add(self, run: RunHandle) -> None:
        """It waits for ``run``; with the lock held."""
        self.waited_for = (*self.waited_for, run)

    def remove(self, run: RunHandle) -> None:
        """It does not wait for ``run`` any more; with the lock held."""
        place = self.waited_for.index(run)
        self.waited_for = self.waited_for[:place] + self.waited_for[place + 1 :]

    def takes_along(self, run: RunHandle) -> bool:
        """Whether ``run``, which it waits for, is cancelled with it; with the lock held."""
        return self.is_cancelled and run.waiting <= self.waited_for.count(run)


class RunHandle:
    """A future result: wait for it in any thread, await it on any loop.

    When all who wait for it are interrupted, by Ctrl-C or by being cancelled, the run is
    cancelled. Waiting for a run inside one of its own tools or hooks, also by way of other runs,
    raises :class:`~sagents_nb.errors.Busy`.

    ``owner_id`` names the session it is of, "" without one. ``inside`` is the code of its tools and
    hooks, ``waiting`` how many wait for it now.
    """

    owner_id = ""

    def __init__(self) -> None:
        self.future: Future[RunResult] = Future()
        self.inside = CancelScope()
        self.waiting = 0
        self._waiters: list[RunHandle] = []  # in whose tools and hooks somebody waits for it
        self._is_cancelled = False  # since those who waited for it were interrupted
        self._interrupts = 0  # by a person, of it or of one of its tools on the main thread
        self._readers: set[Future[None]] = set()  # what those wait for who read its events

    def ahead(self) -> Sequence[RunHandle]:
        """The runs that have to end before this one can begin."""
        return ()

    def awaited(self) -> Future[RunResult]:
        """What those who wait for it wait for now: its end, or word that it cannot begin."""
        return self.future

    def received(self, result: RunResult) -> None:
        """Whoever waited has its result now."""

    def cancel(self) -> None:
        """Stop the run; from any thread, and harmless once it has ended."""
        raise NotImplementedError

    def interrupt_all(self) -> None:
        """A person interrupted one of its tools on the main thread: cancel it, and what waits.

        Those who await it in a cell are cancelled, too, as they would be by the interrupt itself,
        which may come to the loop after the run's end.
        """
        self._interrupts += 1
        self._is_cancelled = True
        self.cancel()
        for waiter in tuple(self._waiters):
            waiter.interrupt_all()

    def stop(self) -> None:
        """Cancel it as Ctrl-C would: the main thread, if it waits for it, is interrupted too.

        What awaits it in a cell ends with CancelledError. From any thread, and harmless once it
        has ended.

        >>> from sagents_nb import Agent, ScriptedModel, Session
        >>> run = Session(Agent(ScriptedModel(["Hello! " * 99], delay=60))).send("hi")
        >>> run.stop()
        >>> run.result().status
        'cancelled'
        """
        self._interrupts += not self.future.done()
        self._is_cancelled = True
        main_thread.release(self.awaited())
        for arrival in tuple(self._readers):
            main_thread.release(arrival)
        self.cancel()

    @kinds.checked
    def result(self, timeout: float | None = None) -> RunResult:
        """Wait up to ``timeout`` seconds; raises AgentError for a failed run, or TimeoutError.

        A KeyboardInterrupt while waiting cancels the run, and is raised once that has ended, half
        a second later at most. Raises
        :class:`~sagents_nb.errors.Busy` on the runtime thread, which would wait for itself, and
        :class:`~sagents_nb.errors.NotRunning` for one in the queue of a session that stopped.
        """
        runtime.refuse_here("Waiting for a run", "use 'await run' or 'await agent.arun(…)' there")
        try:
            with self._ending(), self.waited(), blocking():
                result: RunResult = main_thread.wait(self.awaited(), timeout)
        except TimeoutError as error:
            if timeout is None or error.args:  # a run that failed with one
                raise
            raise TimeoutError(
                f"The run has not ended within {timeout:g} s; it goes on: wait again or cancel it."
            ) from None
        self.received(result)
        return result

    def read(self, events: EventStream) -> Iterator[AnyEvent]:
        """Its events, for a thread that waits for each; a KeyboardInterrupt meanwhile cancels it.

        Raises :class:`~sagents_nb.errors.Busy` as :meth:`result` does.
        """
        runtime.refuse_here("Waiting for the events of a run", "use 'async for' there")

        before = self._interrupts

        def wait_for(arrival: Future[None]) -> None:
            self._readers.add(arrival)
            try:
                with self._ending(), self.waited(), blocking():
                    main_thread.wait(arrival)
            finally:
                self._readers.discard(arrival)

        def read() -> Iterator[AnyEvent]:
            yield from events.blocking(wait_for)
            here = threading.current_thread() is threading.main_thread()
            if here and self._interrupts > before:  # while nobody waited for the next one
                raise KeyboardInterrupt("The run was stopped.")

        return read()

    def awaited_in_cell(self) -> AbstractContextManager[None]:
        """Around waiting for one of its events: whoever is interrupted in a cell ends it."""
        return self.waited() if main_thread.in_cell() else nullcontext()

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._end().__await__()

    async def _end(self) -> RunResult:
        check = self.interrupt_check()
        with self.waited():
            result = await asyncio.wrap_future(self.awaited())
        await check()
        self.received(result)
        return result

    def interrupt_check(self) -> Callable[[], Awaitable[None]]:
        """To call at its end: raises CancelledError where a person has interrupted it since.

        In a cell alone, where an interrupt ends whoever awaits it.
        """
        before = self._interrupts

        async def check() -> None:
            if self._interrupts > before and main_thread.in_cell():
                for _ in range(TURNS):  # that of the kernel, if it comes: not one after the other
                    await asyncio.sleep(0)
                raise asyncio.CancelledError("The run was stopped.")

        return check

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Whoever is interrupted has the run's end, if that comes soon."""
        try:
            yield
        except KeyboardInterrupt:
            if self._is_cancelled:
                wait([self.future], ENDING)
            raise

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Count one who waits; the last of them who is interrupted takes the run along."""
        around, call = executing.get(), _call.get()
        scopes = [] if call is None else list(call.chain())
        if around is not None:
            scopes.append(around.inside)
        with _lock:  # of two who would wait for each other the second one sees the first
            self.refuse_inside("Waiting for this run", "leave that to whoever started it")
            self.waiting += 1
            for scope in scopes:
                scope.add(self)
            too_late = any(scope.takes_along(self) for scope in scopes)
            if around is not None:
                self._waiters.append(around)
        last = False
        try:
            if too_late:
                self.cancel()
            yield
        except (KeyboardInterrupt, asyncio.CancelledError):
            last = not self.future.done()
            raise
        finally:
            with _lock:
                self.waiting -= 1
                last = last and not self.waiting
                for scope in scopes:
                    scope.remove(self)
                if around is not None:
                    self._waiters.remove(around)
            if last:
                self._is_cancelled = True
                self.cancel()

    def refuse_inside(self, what: str, instead: str) -> None:
        """Raise Busy where the caller is a tool or hook that this run has to wait for.

        ``what`` would wait for ever, and ``instead`` says what to do.
        """
        inside = executing.get()
        if inside is None or inside.future.done():
            return
        todo: list[RunHandle] = [self]
        seen: set[RunHandle] = set()
        while todo:
            handle = todo.pop()
            if handle is inside:
                raise Busy(f"{what} inside one of its own tools or hooks cannot end; {instead}.")
            if handle not in seen and not handle.future.done():
                seen.add(handle)
                todo += (*handle.ahead(), *handle.inside.waited_for)


def refuse_stopped() -> None:
    """Raise where the caller is code of a call that was stopped, and goes on: it begins no run.

    KeyboardInterrupt in what runs on the main thread, CancelledError elsewhere, also in tasks of
    the caller's loop, which the other one would end; on the runtime's own nothing, where tasks are
    cancelled.
    """
    if main_thread.is_interrupted():
        raise KeyboardInterrupt(_STOPPED)
    call = _call.get()
    cancelled = call is not None and any(scope.is_cancelled for scope in call.chain())
    if cancelled and not runtime.here():
        raise asyncio.CancelledError(_STOPPED)


_STOPPED = "This call was stopped, so it begins no run any more."

_call: ContextVar[CancelScope | None] = ContextVar("sagents_call", default=None)

executing: ContextVar[RunHandle | None] = ContextVar("sagents_run", default=None)
"""The run in whose tool or hook the caller is; it may have ended since."""


def enter(run: RunHandle) -> None:
    """What is called from here on, in this context, is of ``run``."""
    executing.set(run)
    _call.set(None)


in_tool: ContextVar[RunHandle | None] = ContextVar("sagents_tool", default=None)
"""The run in whose async tool the caller is, on the runtime loop."""


def woken_by(future: Future[Any]) -> asyncio.Future[None]:
    """Done once ``future`` is, whatever came of it; to cancel it leaves that alone.

    On the runtime loop only.
    """
    woken = runtime.loop.create_future()
    future.add_done_callback(partial(runtime.post, _wake, woken))
    return woken


def _wake(woken: asyncio.Future[None], done: object) -> None:
    if not woken.done():
        woken.set_result(None)


async def wait_uncancelled(work: asyncio.Future[Any]) -> None:
    """Return once ``work`` is done, also when whoever waits for it is cancelled meanwhile.

    The cancellation ends here: whoever stops a run has told its loop so. What ``work`` raises
    is left in it.
    """
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            if task := asyncio.current_task():
                task.uncancel()
