"""The one background thread with the one event loop on which all runs live.

Callers are on other threads or other loops; nothing here patches asyncio. ``submit`` hands a
coroutine over, ``call`` runs a function on the loop and waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from ..errors import Busy
from ..text import logger_of
from .caller import caller_loop, running_loop

logger = logger_of(__name__)

T = TypeVar("T")


class Runtime:
    """A daemon thread that runs an asyncio loop; started on first use."""

    def __init__(self) -> None:
        self._inherited: list[Any] = []
        self._forget()

    def _forget(self) -> None:
        self.lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.tasks: set[asyncio.Task[Any]] = set()

    def after_fork(self) -> None:
        """Begin anew in a forked child, which has the parent's memory but not its threads.

        What belongs to the parent is kept, never closed: its loop shares the parent's sockets.
        """
        self._inherited.append((self._loop, self.tasks))
        self._forget()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started if need be."""
        if self._loop is None:
            self._start()
        assert self._loop is not None
        return self._loop

    def _start(self) -> None:
        with self.lock:
            if self._loop is not None:
                return
            loop = asyncio.new_event_loop()
            ready = threading.Event()

            def serve() -> None:
                asyncio.set_event_loop(loop)
                loop.call_soon(ready.set)
                while True:
                    try:
                        loop.run_forever()
                    except BaseException:  # asyncio lets SystemExit and KeyboardInterrupt through
                        logger.exception("Something tried to end the thread of all sessions")

            thread = threading.Thread(target=serve, name="sagents-runtime", daemon=True)
            thread.start()
            ready.wait()
            self._loop, self._thread = loop, thread

    def here(self) -> bool:
        """Whether the caller is on the runtime thread."""
        return threading.current_thread() is self._thread

    def spawn(
        self, coroutine: Coroutine[Any, Any, T], context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Start a task; on the runtime thread only. The task is kept alive until it ends."""
        task = self.loop.create_task(coroutine, context=context)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop, in a copy of the caller's context; from any thread.

        Cancelling the future cancels the task.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()
        if (loop := running_loop()) is not None and not self.here():
            context.run(caller_loop.set, loop)

        def start() -> None:
            if not future.set_running_or_notify_cancel():
                coroutine.close()
                return
            task = self.spawn(coroutine, context)
            task.add_done_callback(lambda done: _copy_outcome(done, future))

        self.loop.call_soon_threadsafe(start)
        return future

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function on the loop and return what it returns or raises; from any thread."""
        if self.here():
            return function(*args)
        # No Future: Ctrl-C may come while the caller takes the lock of one, which would then hold
        # up this thread for ever.
        outcomes: SimpleQueue[tuple[list[T], BaseException | None]] = SimpleQueue()
        loop = running_loop()

        def run() -> None:
            if loop is not None:
                caller_loop.set(loop)
            try:
                outcomes.put(([function(*args)], None))
            except BaseException as error:
                outcomes.put(([], error))

        self.loop.call_soon_threadsafe(run)
        given, error = outcomes.get()
        if error is not None:
            raise error
        return given[0]

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """Run a function on the loop, soon, without waiting; from any thread."""
        if self.here():
            function(*args)
        else:
            self.loop.call_soon_threadsafe(function, *args)

    def refuse_here(self, what: str, instead: str) -> None:
        """Raise for a blocking call from the runtime thread, which would wait for itself."""
        if self.here():
            raise Busy(f"{what} would wait for itself inside an async tool or hook; {instead}.")


def _copy_outcome(task: asyncio.Task[T], future: Future[T]) -> None:
    if task.cancelled():
        future.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


runtime = Runtime()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=runtime.after_fork)
