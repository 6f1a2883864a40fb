"""Events from the runtime loop to whoever reads them: on any other loop, or in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Protocol

from ..events import AnyEvent, Event, MessageEnd, MessageUpdate
from ..messages import TextDelta
from ..text import logger_of

logger = logger_of(__name__)

LONGEST = 100_000
"""How many events wait for a reader, who misses the oldest of more: some 20 MB."""


class EventStream:
    """A queue with one writer and one reader, who may be on different loops.

    More readers share the events. A reader's loop is woken once per batch, not once per event:
    waking another loop costs some 30 µs, far more than an event.
    """

    def __init__(
        self,
        events: Iterable[Event] = (),
        on_read: Callable[[Event], None] = lambda event: None,
        on_end: Callable[[], Awaitable[None]] | None = None,
        awaited: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._events = deque(events, maxlen=LONGEST)
        self._missed = 0
        self._on_read = on_read  # called where an event is read
        self._on_end = on_end  # called where somebody who awaits them comes to their end
        self._awaited = awaited  # entered while somebody awaits the next one
        self._lock = threading.Lock()  # without it a wake-up can be lost between two threads
        self._wakes: tuple[Callable[[], None], ...] = ()  # of those who wait
        self.closed = False

    def push(self, event: Event) -> None:
        """Add an event."""
        with self._lock:
            self._missed += len(self._events) == LONGEST
            self._events.append(event)
            wakes, self._wakes = self._wakes, ()
        for wake in wakes:
            wake()

    def close(self) -> None:
        """No more events: the reader ends after those that are there."""
        with self._lock:
            self.closed = True
            wakes, self._wakes = self._wakes, ()
        for wake in wakes:
            wake()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> AnyEvent:
        while True:
            with self._lock:
                if self._events or self.closed:
                    taken = self._take()
                    break
                loop = asyncio.get_running_loop()
                future = loop.create_future()
                self._wakes += (partial(_wake_on, loop, future),)
            with self._awaited():
                await future
        if taken is None:
            if self._on_end is not None:
                await self._on_end()
            raise StopAsyncIteration
        return self._read(*taken)

    def blocking(self, wait: Callable[[Future[None]], object]) -> Iterator[AnyEvent]:
        """The events for a thread; ``wait`` returns once the future that it is given is done."""
        while True:
            arrival: Future[None] | None = None
            with self._lock:
                if self._events or self.closed:
                    taken = self._take()
                else:
                    arrival = Future()
                    self._wakes += (partial(arrival.set_result, None),)
            if arrival is not None:
                wait(arrival)
            elif taken is None:
                return
            else:
                yield self._read(*taken)

    def _take(self) -> tuple[Event, int] | None:
        """The next event and how many were missed before it, None at the end; with the lock."""
        if not self._events:
            return None
        missed, self._missed = self._missed, 0
        return self._events.popleft(), missed

    def _read(self, event: Event, missed: int) -> AnyEvent:
        if missed:
            logger.warning(
                "The reader of events missed %d, the oldest of those that were not read yet; "
                "let it take less time for each.",
                missed,
            )
        self._on_read(event)
        return event  # type: ignore[return-value]  # or of a class of somebody's own


class Events(Protocol):
    """What can be read in both ways, each time anew or once."""

    def __iter__(self) -> Iterator[Event]: ...

    def __aiter__(self) -> AsyncIterator[Event]: ...


class TextStream:
    """The answer of a run, piece by piece: for ``for`` and for ``async for``.

    What sub-agents say, thoughts and calls of tools are not of it. Texts of several turns follow
    each other as they come.
    """

    def __init__(self, events: Events) -> None:
        self._events = events

    def __iter__(self) -> Iterator[str]:
        said = _Said()
        return (text for event in self._events if (text := said.more(event)))

    def __aiter__(self) -> AsyncIterator[str]:
        return _Texts(aiter(self._events))


class _Texts:
    """The pieces for one ``async for``; whoever lets go of it lets go of the events at once."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self._more = _Said().more

    def __aiter__(self) -> _Texts:
        return self

    async def __anext__(self) -> str:
        while not (text := self._more(await anext(self._events))):
            pass
        return text


class _Said:
    """What came of the message that is under way: who begins late has its pieces missed."""

    def __init__(self) -> None:
        self._text = ""

    def more(self, event: Event) -> str:
        text = ""
        if isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta):
            text = event.delta.text
            self._text += text
        elif isinstance(event, MessageEnd) and event.message.role == "assistant":
            if event.message.text.startswith(self._text):
                text = event.message.text[len(self._text) :]
            self._text = ""
        return text


def _wake_on(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the reader's loop was closed: nobody reads
        loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
