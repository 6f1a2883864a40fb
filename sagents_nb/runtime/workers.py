"""Threads for functions that block: one for each while it runs, used again after it.

There is no greatest number of them for the process: tools call agents whose tools call agents,
and with a number they would wait for each other. What bounds them is how many calls a run makes
at once (``max_parallel_tools``), and memory. They are daemons, so that one which never ends
keeps nobody from leaving.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

KEPT = 32
"""How many threads wait for more work; others end."""


class Workers:
    """Daemon threads, started when there is work and none is free; they begin it in order."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._free = 0  # threads that nothing in the queue is meant for
        self._left: dict[Future[Any] | asyncio.Future[Any], tuple[str, str]] = {}

    def after_fork(self) -> None:
        """Begin anew in a forked child, which has none of the threads."""
        self._forget()

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Run a function in a thread, in a copy of the caller's context; from any thread.

        The future cannot be cancelled. Raises RuntimeError where no thread can be started.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:  # each piece of work in the queue has a thread that will take it
            if self._free:
                self._free -= 1
            else:
                threading.Thread(
                    target=self._serve, args=[self._work], name="sagents-tool", daemon=True
                ).start()
            self._work.put((future, contextvars.copy_context(), function, args))
        return future

    def _serve(self, work: SimpleQueue[Any]) -> None:
        stays = True
        while stays:
            stays = self._do(*work.get())

    def _do(
        self,
        future: Future[Any],
        context: contextvars.Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> bool:
        """Do one piece of work; whether there may be another."""
        value, error = context.run(outcome_of, function, *args)
        with self._lock:  # before its end is told: whoever waits for it has the next work already
            stays = self._free < KEPT
            self._free += stays
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
        return stays

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """What the function returns or raises, in a thread; it goes on if nobody waits any more."""
        value, error = await asyncio.wrap_future(self.submit(outcome_of, function, *args))
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # there is one where there is no error

    def abandon(self, future: Future[Any] | asyncio.Future[Any], owner: str, name: str) -> None:
        """Remember that nobody waits for it any more, until it ends."""
        self._left[future] = owner, name
        future.add_done_callback(lambda done: self._left.pop(done, None))

    def abandoned(self, owner: str) -> list[str]:
        """The names of what ``owner`` has abandoned and what is still at work."""
        return [name for whose, name in list(self._left.values()) if whose == owner]


def outcome_of(function: Callable[..., T], *args: Any) -> tuple[T | None, BaseException | None]:
    """What the function returns, and what it raises.

    As a value, since a future cannot carry every exception: with StopIteration, who awaits it
    waits for ever.
    """
    try:
        return function(*args), None
    except BaseException as error:
        return None, error


workers = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.after_fork)
