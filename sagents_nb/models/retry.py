"""Asking a model again when that may help: visibly, and never for longer than was allowed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from .. import kinds
from ..budget import was_asked
from ..errors import ModelError
from .base import ChatModel, ModelAround, ModelRequest, RetryNotice, StreamItem, Vectors, stream_of

WORTH_IT = frozenset({"connection", "timeout", "rate_limit", "overloaded", "server"})
"""Kinds of :class:`~sagents_nb.errors.ModelError` that may be gone on the next attempt."""

_FIRST_WAIT = 1.0  # seconds; doubled for each further attempt
_LONGEST_WAIT = 30.0  # seconds, where the provider names no time itself


class RetryingModel(ModelAround):
    """``model``, asked up to ``attempts`` times while it fails in a way that may pass.

    Between attempts it waits 1, 2, 4 … seconds, less up to half of it by chance, or as long as the
    provider's Retry-After says, and first yields a :class:`~sagents_nb.models.base.RetryNotice`.
    All waits of one call together stay within ``max_wait`` seconds: a longer one is not begun, the
    error says so instead. Once a piece of the answer was given on, nothing is tried again, since it
    would come twice. An agent does so with each model; wrap one to have it otherwise.

    ``inner`` is ``model``. ``sleep`` and ``chance`` (a number from 0 to 1) are for tests. Raises
    the :class:`~sagents_nb.errors.ModelError` of the last attempt.

    >>> from sagents_nb import Agent, ModelError, RetryingModel, ScriptedModel
    >>> busy = ModelError("It is overloaded.", kind="overloaded", retry_after=0)
    >>> async def at_once(seconds):
    ...     pass
    >>> model = RetryingModel(ScriptedModel([busy, "Hello!"]), attempts=2, sleep=at_once)
    >>> Agent(model).run("hi").text
    'Hello!'
    """

    asks_again = True

    @kinds.checked(attempts=kinds.whole(1), max_wait=kinds.number(0, "seconds"))
    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 5,
        max_wait: float = 120.0,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._once = model.asked_once()  # its own attempts would be multiplied by these
        self.attempts = attempts
        self.max_wait = max_wait
        self._sleep = sleep
        self._chance = chance

    def asked_once(self) -> ChatModel:
        """The model itself."""
        return self._once

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the first attempt that says anything; raises the last attempt's error."""
        return _Attempts(self, request)

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Those of the first attempt that gives them; raises the last attempt's error."""
        attempt, waited = 1, 0.0
        while True:
            try:
                return await self._once.vectors(texts, dimensions)
            except ModelError as error:
                notice = self._next(attempt, waited, error)
            await self._pause(notice)
            attempt, waited = notice.attempt, waited + notice.wait

    def _next(self, attempt: int, waited: float, failure: ModelError) -> RetryNotice:
        """The next attempt after one that failed; raises the failure if there is none."""
        if failure.kind not in WORTH_IT or attempt == self.attempts == 1:
            raise failure
        if attempt == self.attempts:
            raise _with_sentence(failure, f"It was asked {attempt} times.") from failure
        wait = self._wait(attempt, failure)
        if not waited + wait <= self.max_wait:  # also for a wait that is not a number
            raise _with_sentence(failure, self._too_long(wait, waited)) from failure
        return RetryNotice(attempt + 1, wait, str(failure))

    async def _pause(self, notice: RetryNotice) -> None:
        """Wait as long as that says."""
        await self._sleep(notice.wait)

    def _wait(self, attempt: int, failure: ModelError) -> float:
        backoff = min(_FIRST_WAIT * 2.0 ** (attempt - 1), _LONGEST_WAIT)
        backoff *= 1 - self._chance() / 2  # many kernels that failed at once come back apart
        asked = failure.retry_after
        return backoff if asked is None else max(asked, backoff)

    def _too_long(self, wait: float, waited: float) -> str:
        before = f" after {waited:.0f} s" if waited else ""
        return (
            f"The next attempt would have to wait {wait:.0f} s{before}, longer than the "
            f"{self.max_wait:.0f} s that are waited for a model; try again later."
        )


class _Attempts:
    """One call of a model: attempts until one says something, and then the rest of that one.

    No generator around the model's own, which each piece would have to pass through as well.
    """

    __slots__ = ("_asked", "_notice", "_number", "_request", "_rest", "_stream", "_waited")

    def __init__(self, asked: RetryingModel, request: ModelRequest) -> None:
        self._asked = asked
        self._request = request
        self._stream: AsyncGenerator[StreamItem, None] | None = None  # of the attempt
        self._number = 0
        # What gives the next piece, once one came: nothing is tried again, or it would come twice.
        self._rest: Callable[[], Awaitable[StreamItem]] | None = None
        self._notice: RetryNotice | None = None  # given on, and not waited for yet
        self._waited = 0.0

    def __aiter__(self) -> _Attempts:
        return self

    def __anext__(self) -> Awaitable[StreamItem]:
        return self._first() if self._rest is None else self._rest()

    async def _first(self) -> StreamItem:
        if self._notice is not None:
            await self._asked._pause(self._notice)
            self._waited += self._notice.wait
        try:
            if self._stream is None or self._notice is not None:
                self._notice = None
                self._number += 1
                self._stream = stream_of(self._asked._once, self._request)
            item = await self._stream.__anext__()
        except ModelError as error:
            await self.aclose()
            was_asked()
            self._notice = self._asked._next(self._number, self._waited, error)
            return self._notice
        if type(item) is not RetryNotice:
            self._rest = self._stream.__anext__
        return item

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


def retried(model: ChatModel) -> ChatModel:
    """``model``, asked again up to ``model.retries`` times; as it is if it does so already."""
    return model if model.asks_again else RetryingModel(model, attempts=1 + model.retries)


def _with_sentence(error: ModelError, sentence: str) -> ModelError:
    """``error`` with one more sentence."""
    return ModelError(
        f"{error} {sentence}",
        kind=error.kind,
        status=error.status,
        retry_after=error.retry_after,
        result=error.result,
    )
