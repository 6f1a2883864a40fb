"""Another model when the first one fails."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from .. import kinds
from ..budget import was_asked
from ..errors import BudgetExceeded, ConfigurationError, ModelError, pass_on
from ..messages import Message
from ..text import said_by
from .base import (
    ChatModel,
    ModelRequest,
    RetryNotice,
    StreamItem,
    Vectors,
    for_another_server,
    stream_of,
)
from .resolve import resolve_model
from .retry import RetryingModel, retried

BeforeFallback = Callable[[ChatModel, ModelRequest], Any]


class FallbackModel(ChatModel):
    """The first of ``models`` that answers; each is asked with the same messages.

    Which one that was is remembered for the run: its next call begins there, and nobody waits in
    each turn for a model that is down. The next run begins with the first again.

    Whatever a model raises before a piece of its answer was given on makes it the next one's
    turn, and a :class:`~sagents_nb.models.base.RetryNotice` says so. If all fail, the
    :class:`~sagents_nb.errors.ModelError` names what each of them said and has the kind of
    the last. Without any model, :class:`~sagents_nb.errors.ConfigurationError` is raised.

    ``before_fallback(model, request)``, sync or async, is called before each model is asked,
    the first included; a ModelRequest that it returns is sent instead. To retry as well, wrap
    each model: ``FallbackModel([RetryingModel(a), RetryingModel(b)])``.

    >>> from sagents_nb import Agent, ModelError, ScriptedModel
    >>> broken = ScriptedModel([ModelError("It is down.")])
    >>> Agent(FallbackModel([broken, ScriptedModel(["Hello!"])])).run("hi").text
    'Hello!'
    """

    asks_again = True

    @kinds.checked
    def __init__(
        self, models: Sequence[ChatModel], before_fallback: BeforeFallback | None = None
    ) -> None:
        self.models = tuple(models)
        if not all(isinstance(model, ChatModel) for model in self.models) or not self.models:
            raise ConfigurationError("A FallbackModel needs at least one model, and models only.")
        self.before_fallback = before_fallback
        # By the task of a run: which one has answered in it.
        self._answered: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self.name = self.models[0].name
        self.chosen_because = self.models[0].chosen_because
        self.reads_images = all(model.reads_images for model in self.models)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"FallbackModel({list(self.models)!r})"

    def identity(self) -> dict[str, Any]:
        """That of each model; what ``before_fallback`` does is not known."""
        return {**super().identity(), "models": [model.identity() for model in self.models]}

    def preload(self) -> None:
        """As the first model: most often it is the only one that is asked."""
        self.models[0].preload()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the answer of the first model that gives one."""
        failures: list[str] = []
        run = asyncio.current_task()
        first = 0 if run is None else self._answered.get(run, 0)
        places = [*range(first, len(self.models)), *range(first)]
        if first:
            asked = self.models[first]
            reason = f"{self.models[0]!r} failed before in this run. {asked!r} is asked instead."
            yield RetryNotice(2, 0.0, reason, asked.name)
        for number, place in enumerate(places, start=1):
            model = self.models[place]
            sent = request if place == 0 else _for_another(request)
            sent = await self._prepared(model, replace(sent, model=model.name))
            begun = given = False
            try:
                stream = stream_of(model, sent)
                async with aclosing(stream):
                    async for item in stream:
                        if not begun and type(item) is Message and item.stop_reason == "error":
                            raise ModelError(item.error or "It ended with an error.")
                        begun = begun or type(item) is not RetryNotice
                        given = True
                        yield item
                        given = False
                if begun:
                    if run is not None and place != first:
                        self._answered[run] = place
                    return
                raise ModelError("It ended its stream without a final Message.", kind="cut_stream")
            except BudgetExceeded:  # which no other model would be within
                raise
            except BaseException as error:
                pass_on(error)
                if given:  # whoever reads this has enough
                    raise
                if begun or len(self.models) == 1:
                    raise
                failure = error
            was_asked()
            failures.append(f"{model!r}: {_sentence(failure)}")
            if number == len(self.models):
                raise _all_failed(failures, failure) from failure
            following = self.models[places[number]]
            reason = f"{failures[-1]} {following!r} is asked instead."
            yield RetryNotice(number + 1, 0.0, reason, following.name)

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Those of the first model alone: another one's cannot be compared with them."""
        return await self.models[0].vectors(texts, dimensions)

    async def _prepared(self, model: ChatModel, request: ModelRequest) -> ModelRequest:
        if self.before_fallback is None:
            return request
        own = model.inner if isinstance(model, RetryingModel) else model  # what people passed
        try:
            changed = self.before_fallback(own, request)
            if inspect.isawaitable(changed):
                changed = await changed
        except BaseException as error:
            pass_on(error)
            raise ModelError(
                f"before_fallback failed before {model!r} was asked: {said_by(error)}"
            ) from error
        return changed if isinstance(changed, ModelRequest) else request


@kinds.checked
def resilient(
    model: ChatModel,
    fallback_models: Sequence[ChatModel | str] = (),
    before_fallback: BeforeFallback | None = None,
) -> ChatModel:
    """``model`` as an agent asks it: retried, and with others to take its place.

    ``fallback_models`` are models or names for :func:`~sagents_nb.models.resolve_model`. A
    model that somebody wrapped in a RetryingModel, FallbackModel or RecordedModel is taken as
    it is.
    """
    models = [retried(model), *(retried(resolve_model(other)) for other in fallback_models)]
    if len(models) == 1 and before_fallback is None:
        return models[0]
    return FallbackModel(models, before_fallback)


def _for_another(request: ModelRequest) -> ModelRequest:
    """``request`` without what was meant for the first model, and no other server may see."""
    return replace(request, api_key=None, options=for_another_server(request.options))


def _sentence(error: BaseException) -> str:
    text = str(error) if issubclass(type(error), ModelError) else said_by(error)
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _all_failed(failures: Sequence[str], last: BaseException) -> ModelError:
    cause = last if isinstance(last, ModelError) else ModelError("")
    return ModelError(
        f"None of {len(failures)} models answered. {' '.join(failures)}",
        kind=cause.kind,
        status=cause.status,
        retry_after=cause.retry_after,
    )
