"""What is told of a thread, for one reader on the server's loop, who may be slow."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable

from ...errors import NotFound
from ...runtime.thread import runtime
from ..event_log import ThreadEvent
from ..threads import Thread
from ..vocabulary import DELTA

MOST_WAITING = 256
"""Events that wait for a reader; who is further behind is given what is kept, without deltas."""


class Feed:
    """The events of ``thread`` after number ``since``, each once and in order, then what follows.

    ``read`` gives those that are kept after a number. It is made in a thread, since the runtime's
    loop may have to wait for a tool, and iterated on ``loop``; :meth:`end` lets go of it.
    """

    def __init__(
        self,
        thread: Thread,
        since: int,
        read: Callable[[int], list[ThreadEvent]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._thread = thread
        self._last = since
        self._read = read
        self._loop = loop
        self._woken = asyncio.Event()
        self._waiting: deque[ThreadEvent | None] = deque()
        self._behind = True  # of what is kept nothing has been read
        self._unwatch = thread.session.watch(f"feed-{uuid.uuid4().hex[:12]}")  # it does not rest
        runtime.call(self._listen)

    def _listen(self) -> None:
        """On the runtime's loop: what was told till now is read, what follows is heard."""
        self._until = self._heard = self._thread.log.last
        self._thread.log.listen(self._hear)

    def end(self) -> None:
        """Hear of nothing any more."""
        runtime.post(self._thread.log.leave, self._hear)
        self._unwatch()

    def _hear(self, event: ThreadEvent | None) -> None:
        """On the runtime's loop."""
        self._loop.call_soon_threadsafe(self._take, event)

    def _take(self, event: ThreadEvent | None) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self._behind = True
            self._until = self._heard
        if event is not None:
            self._heard = event.seq
        self._waiting.append(event)
        self._woken.set()

    async def __aiter__(self) -> AsyncIterator[ThreadEvent]:
        while True:
            if self._behind:
                self._behind = False
                try:
                    while kept := await self._read_on():
                        for event in kept:
                            self._last = event.seq
                            yield event
                except NotFound:  # it was deleted meanwhile
                    return
            while self._waiting and not self._behind:
                next_ = self._waiting.popleft()
                if next_ is None:
                    return
                if next_.type == DELTA:
                    if next_.seq == self._last:
                        yield next_
                elif next_.seq > self._last:  # none is missing: it was kept before it was told
                    self._last = next_.seq
                    yield next_
            if not self._behind:
                self._woken.clear()
                await self._woken.wait()

    async def _read_on(self) -> list[ThreadEvent]:
        """More of what is not waiting: what is would be read without the deltas before it."""
        kept = await asyncio.to_thread(self._read, self._last)
        return [event for event in kept if event.seq <= self._until]
