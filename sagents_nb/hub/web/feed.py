"""What is told of a thread, for readers on the server's loop, who may be slow."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from ...errors import NotFound
from ...runtime.thread import runtime
from ...serialization import encoded
from ..event_log import ThreadEvent
from ..threads import Thread
from ..vocabulary import DELTA
from .patience import MOST_WAITING


class Told(NamedTuple):
    """An event, and the JSON of it, which all readers share."""

    event: ThreadEvent
    json: str


def _told(event: ThreadEvent) -> Told:
    return Told(event, encoded(event).decode())


class Channel:
    """What is told of ``thread``, brought to ``loop`` once for all who read it there.

    ``begun`` is set once it is heard, and from then on nothing is missed. It ends with its last
    reader; until then the thread does not rest. All of it is for that loop, which never waits: the
    runtime's loop may have to wait for a tool.
    """

    def __init__(self, thread: Thread, loop: asyncio.AbstractEventLoop) -> None:
        self._thread = thread
        self._loop = loop
        self._ended = False
        self._unwatch: Callable[[], None] | None = None
        self.heard = 0  # the number of the last event that came here
        self.readers: dict[Feed, None] = {}  # in the order they came
        self.begun = asyncio.Event()
        runtime.post(self._listen)

    def _listen(self) -> None:
        """On the runtime's loop: what was told till now is read, what follows is heard."""
        self._unwatch = self._thread.session.watch(f"channel-{uuid.uuid4().hex[:12]}")
        self._thread.log.listen(self._hear)
        self._loop.call_soon_threadsafe(self._begin, self._thread.log.last)

    def _begin(self, last: int) -> None:
        self.heard = last
        for reader in self.readers:
            reader.until = last
        self.begun.set()

    def _leave(self) -> None:
        self._thread.log.leave(self._hear)
        if self._unwatch is not None:
            self._unwatch()

    def _hear(self, event: ThreadEvent | None) -> None:
        """On the runtime's loop."""
        self._loop.call_soon_threadsafe(self._take, event)

    def _take(self, event: ThreadEvent | None) -> None:
        told = None if event is None else _told(event)
        for reader in self.readers:
            reader.take(told)
        if event is None:
            self._ended = True
        else:
            self.heard = event.seq

    def join(self, reader: Feed) -> None:
        """Tell it what follows."""
        self.readers[reader] = None
        reader.until = self.heard
        if self._ended:
            reader.take(None)

    def leave(self, reader: Feed) -> None:
        """Tell it no more; nothing more is heard where it was the last."""
        if self.readers.pop(reader, self) is None and not self.readers:
            runtime.post(self._leave)


class Feed:
    """The events of a thread after number ``since``, each once and in order, then what follows.

    What follows comes by ``channel``, and ``read`` gives those that are kept after a number, up to
    ``until`` that is where what waits begins. Who is so far behind that more would wait for it than
    may is given what is kept, without deltas. :meth:`end` lets go of it.
    """

    def __init__(
        self, channel: Channel, since: int, read: Callable[[int], list[ThreadEvent]]
    ) -> None:
        self._channel = channel
        self._last = since
        self._read = read
        self._woken = asyncio.Event()
        self._waiting: deque[Told | None] = deque()
        self._behind = True  # of what is kept nothing has been read
        self.until = 0
        channel.join(self)

    def end(self) -> None:
        """Hear of nothing any more."""
        self._channel.leave(self)

    def take(self, told: Told | None) -> None:
        """Have this wait for the reader; None is the end."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self._behind = True
            self.until = self._channel.heard
        self._waiting.append(told)
        self._woken.set()

    @classmethod
    async def alone(
        cls, thread: Thread, since: int, read: Callable[[int], list[ThreadEvent]]
    ) -> Feed:
        """One that has a channel by itself, from which nothing is missed."""
        channel = Channel(thread, asyncio.get_running_loop())
        feed = cls(channel, since, read)
        await channel.begun.wait()
        return feed

    async def __aiter__(self) -> AsyncIterator[Told]:
        while True:
            if self._behind:
                self._behind = False
                try:
                    while self._last < self.until and (kept := await self._read_on()):
                        for event in kept:
                            self._last = event.seq
                            yield _told(event)
                except NotFound:  # it was deleted meanwhile
                    return
            while self._waiting and not self._behind:
                next_ = self._waiting.popleft()
                if next_ is None:
                    return
                seq = next_.event.seq
                if next_.event.type == DELTA:
                    if seq == self._last:
                        yield next_
                elif seq > self._last:  # none is missing: it was kept before it was told
                    self._last = seq
                    yield next_
            if not self._behind:
                self._woken.clear()
                await self._woken.wait()

    async def _read_on(self) -> list[ThreadEvent]:
        """More of what is not waiting: what is would be read without the deltas before it."""
        kept = await asyncio.to_thread(self._read, self._last)
        return [event for event in kept if event.seq <= self.until]
