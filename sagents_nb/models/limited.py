"""A model that is asked only so often and by so many at once, by all who share it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from .. import kinds
from ..budget import DRAWN_ON, CountedCall
from ..errors import ConfigurationError
from .base import ChatModel, ModelAround, ModelRequest, StreamItem, Vectors, stream_of
from .resolve import resolve_model

_MINUTE = 60.0


class Limited(ModelAround):
    """``model``, asked by at most ``concurrent`` at once and ``per_minute`` times in any minute.

    All agents that are given this object share its limits, also their sub-agents and the rows of
    a map; whoever comes later waits for a place, in the order of asking. Each attempt of a retry
    counts. Waiting counts as time of the run: ``Budget(seconds=…)`` ends it. Whoever gets a place
    looks once more whether the budget is used up by now, as one that is shared may be; of a call
    that was refused or cancelled until then the budget's ``model_calls`` know nothing. ``inner`` is
    the model; ``sleep`` and ``clock`` (seconds) are for tests.

    Raises :class:`~sagents_nb.errors.ConfigurationError` without any limit.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> shared = Limited(ScriptedModel(["one", "two"]), concurrent=1, per_minute=60)
    >>> [Agent(shared).run("go").text for _ in range(2)]
    ['one', 'two']

    >>> shared.inner.name
    'scripted'
    """

    @kinds.checked(
        concurrent=kinds.or_none(kinds.whole(1), "for no limit"),
        per_minute=kinds.or_none(kinds.whole(1), "for no limit"),
    )
    def __init__(
        self,
        model: ChatModel | str,
        *,
        concurrent: int | None = None,
        per_minute: int | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if concurrent is None and per_minute is None:
            raise ConfigurationError(
                "Limited(…) without a limit limits nothing; give it concurrent=… or per_minute=…."
            )
        super().__init__(resolve_model(model))
        self.asks_again = self.inner.asks_again
        self.retries = self.inner.retries
        self._free = None if concurrent is None else asyncio.Semaphore(concurrent)
        self.per_minute = per_minute
        self._begun: deque[float] = deque()  # when the latest were
        self._turn = asyncio.Lock()  # of who waits for the minute: in the order of asking
        self._sleep = sleep
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the answer once there is a place."""
        async with self._place(), aclosing(stream_of(self.asked, request)) as stream:
            async for item in stream:
                yield item

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Those of the model once there is a place."""
        async with self._place():
            return await self.asked.vectors(texts, dimensions)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        counted = DRAWN_ON.get()
        has_place = False
        try:
            try:
                if self._free is not None:
                    has_place = await self._free.acquire()
                await self._wait_for_turn(counted)
            except BaseException:  # who was refused or gave up has asked nobody
                if counted is not None:
                    counted.give_back()
                raise
            yield
        finally:
            if self._free is not None and has_place:
                self._free.release()

    async def _wait_for_turn(self, counted: CountedCall | None) -> None:
        if self.per_minute is None:
            self._check(counted)
            return
        async with self._turn:  # which whoever gives up here leaves to the next
            if is_full := len(self._begun) >= self.per_minute:
                left = self._begun[0] + _MINUTE - self._clock()
                if left > 0:
                    await self._sleep(left)
            self._check(counted)
            if is_full:
                self._begun.popleft()
            self._begun.append(self._clock())

    def _check(self, counted: CountedCall | None) -> None:
        if counted is not None:  # others may have used the rest meanwhile
            counted.check_again()
