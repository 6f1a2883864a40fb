"""Asking a model again when that may help: visibly, and never for longer than was allowed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from .. import kinds
from ..errors import ModelError
from .base import ChatModel, ModelRequest, RetryNotice, StreamItem, stream_of

WORTH_IT = frozenset({"connection", "timeout", "rate_limit", "overloaded", "server"})
"""Kinds of :class:`~sagents_nb.errors.ModelError` that may be gone on the next attempt."""

_FIRST_WAIT = 1.0  # seconds; doubled for each further attempt
_LONGEST_WAIT = 30.0  # seconds, where the provider names no time itself


class RetryingModel(ChatModel):
    """``model``, asked up to ``attempts`` times while it fails in a way that may pass.

    Between attempts it waits 1, 2, 4 … seconds, less up to half of it by chance, or as long as
    the provider's Retry-After says, and first yields a
    :class:`~sagents_nb.models.base.RetryNotice`. All waits of one call together stay within
    ``max_wait`` seconds: a longer one is not begun, the error says so instead. Once a piece of
    the answer was given on, nothing is tried again, since it would come twice.

    ``inner`` is ``model``. ``sleep`` and ``chance`` (a number from 0 to 1) are for tests.

    >>> from sagents_nb import ScriptedModel
    >>> RetryingModel(ScriptedModel(["hi"]))
    ScriptedModel('scripted')
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
        self.inner = model
        self.attempts = attempts
        self.max_wait = max_wait
        self.name = model.name
        self.chosen_because = model.chosen_because
        self.reads_images = model.reads_images
        self._sleep = sleep
        self._chance = chance

    def __repr__(self) -> str:
        return repr(self.inner)  # whose errors people read

    def identity(self) -> dict[str, Any]:
        """As the model itself."""
        return self.inner.identity()

    def preload(self) -> None:
        """As the model itself."""
        self.inner.preload()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the first attempt that says anything; raises the last attempt's error."""
        waited = 0.0
        for attempt in range(1, self.attempts + 1):
            begun = False
            try:
                stream = stream_of(self.inner, request)
                try:
                    async for item in stream:
                        begun = begun or type(item) is not RetryNotice
                        yield item
                finally:
                    await stream.aclose()
                return
            except ModelError as error:
                if begun or error.kind not in WORTH_IT:
                    raise
                if attempt == self.attempts:
                    if attempt == 1:
                        raise
                    raise _with_sentence(error, f"It was asked {attempt} times.") from error
                failure = error
            wait = self._wait(attempt, failure)
            if not waited + wait <= self.max_wait:  # also for a wait that is not a number
                raise _with_sentence(failure, self._too_long(wait, waited)) from failure
            waited += wait
            yield RetryNotice(attempt + 1, wait, str(failure))
            await self._sleep(wait)

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


def retried(model: ChatModel) -> ChatModel:
    """``model``, asked again when that may help; as it is if it does so already."""
    return model if model.asks_again else RetryingModel(model)


def _with_sentence(error: ModelError, sentence: str) -> ModelError:
    """``error`` with one more sentence."""
    return ModelError(
        f"{error} {sentence}",
        kind=error.kind,
        status=error.status,
        retry_after=error.retry_after,
        result=error.result,
    )
