"""Events from the runtime loop to an ``async for`` on any other loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from ..events import Event

logger = logging.getLogger(__name__)

LONGEST = 100_000
"""How many events wait for a reader, who misses the oldest of more: some 20 MB."""


class EventStream:
    """A queue with one writer and one reader, who may be on different loops.

    The reader's loop is woken once per batch, not once per event: waking another loop costs
    some 30 µs, far more than an event.
    """

    def __init__(
        self, events: Iterable[Event] = (), on_read: Callable[[Event], None] = lambda event: None
    ) -> None:
        self._events = deque(events, maxlen=LONGEST)
        self._missed = 0
        self._on_read = on_read  # called where an event is read
        self._lock = threading.Lock()  # without it a wake-up can be lost between two threads
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self.closed = False

    def push(self, event: Event) -> None:
        """Add an event."""
        with self._lock:
            self._missed += len(self._events) == LONGEST
            self._events.append(event)
            waiter, self._waiter = self._waiter, None
        _wake(waiter)

    def close(self) -> None:
        """No more events: the reader ends after those that are there."""
        with self._lock:
            self.closed = True
            waiter, self._waiter = self._waiter, None
        _wake(waiter)

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while True:
            with self._lock:
                if self._events:
                    event = self._events.popleft()
                    missed, self._missed = self._missed, 0
                    break
                if self.closed:
                    raise StopAsyncIteration
                loop = asyncio.get_running_loop()
                future = loop.create_future()
                self._waiter = (loop, future)
            await future
        if missed:
            logger.warning(
                "The reader of events missed %d, the oldest of those that were not read yet; "
                "let it take less time for each.",
                missed,
            )
        self._on_read(event)
        return event


def _wake(waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None) -> None:
    if waiter is not None:
        loop, future = waiter
        with suppress(RuntimeError):  # the reader's loop was closed: nobody reads
            loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
