"""Whether secrets still open what is asked with them: one question for all that show the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import SagentsError
from ...text import logger_of

logger = logger_of(__name__)

RECHECKED_AFTER = 5.0
"""Seconds after which a secret is looked at again, while a request is not over that showed it."""


class SecretWatch:
    """Looks at secrets, by their digests, as long as requests go on that showed them.

    ``opens`` says whether one opens anything; it is called in a thread. The rest is for one loop.
    """

    def __init__(self, opens: Callable[[str], bool]) -> None:
        self._opens = opens
        self._ends: dict[str, set[Callable[[], object]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._asking: set[asyncio.Task[None]] = set()

    @contextmanager
    def watched(self, digest: str, end: Callable[[], object]) -> Iterator[None]:
        """Have ``end`` called once that secret opens nothing any more, until this is left."""
        ends = self._ends.setdefault(digest, set())
        ends.add(end)
        if len(ends) == 1:
            self._look_later(digest)
        try:
            yield
        finally:
            ends.discard(end)
            if not ends and self._ends.get(digest) is ends:
                del self._ends[digest]
                self._timers.pop(digest).cancel()

    def _look_later(self, digest: str) -> None:
        loop = asyncio.get_running_loop()
        self._timers[digest] = loop.call_later(RECHECKED_AFTER, self._look, digest)

    def _look(self, digest: str) -> None:
        asking = asyncio.get_running_loop().create_task(self._ask(digest, self._ends[digest]))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _ask(self, digest: str, ends: set[Callable[[], object]]) -> None:
        try:
            opens = await asyncio.to_thread(self._opens, digest)
        except SagentsError as error:  # nobody knows: it is asked again
            logger.info("A secret could not be looked at: %s", error)
            opens = True
        if self._ends.get(digest) is not ends:
            return  # nobody shows it any more, or others do, who have a timer of their own
        if opens:
            self._look_later(digest)
            return
        for end in tuple(ends):
            end()
        self._look_later(digest)  # for those that are not gone by then
