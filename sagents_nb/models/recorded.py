"""A model whose answers are recorded, and replayed when the same is asked again.

This is also where the environment can ask for it, as a notebook's test does: where
``$SAGENTS_REPLAY`` is a mode, every model that is not offline, whoever names it, is recorded
in that mode in the cassette (or directory) ``$SAGENTS_CASSETTE``, and a RecordedModel of the
notebook's own with the mode "auto" has that mode. Offline are the demo, the scripted model and
whatever else needs no network, such as a function that works as an agent.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, cast, get_args

from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, ReplayMiss
from ..messages import Message
from ..runtime.workers import workers
from ..text import logger_of
from .base import (
    ChatModel,
    ModelAround,
    ModelRequest,
    RetryNotice,
    StreamItem,
    Vectors,
    asked_by,
    stream_of,
)
from .cache import Asked, Cassette, Recording, ResponseCache, asked
from .cache.nearest import nearest
from .cache.recording import recording_of
from .embedding import message_of, request_for, vector_in
from .named import named_model
from .replay import Shape, streamed
from .retry import retried

_log = logger_of("sagents_nb.cache")

Mode = Literal["auto", "record", "replay", "off"]
DEFAULT_CACHE = ".sagents/cache"
REPLAY = "SAGENTS_REPLAY"
CASSETTE = "SAGENTS_CASSETTE"

# Not whole, or not the model's own words. A model's refusal is its answer, and is kept.
_NOT_RECORDED = (None, "error", "aborted")


class RecordedModel(ModelAround):
    """``model``, a ChatModel or a name for one, with its answers in ``cache``.

    ``cache`` is a :class:`~sagents_nb.ResponseCache`, the path of its directory, or, ending
    in ``.json``, the path of a cassette: one readable file for a repository.

    ``mode`` is "auto": answer from the cache, else ask the model and record what it says;
    "record": ask the model anew, once for each request; "replay": never ask the model, which
    then needs no key, no network and no SDK, and raise :class:`~sagents_nb.ReplayMiss` for
    what was not recorded; "off": only the model.

    The same request has the same answer, also twice in one run. Everything that changes an
    answer makes another request: model, address, system prompt, options, tools and each part
    of each message, also the ids of calls and what tools returned. Keys, session ids and
    time-outs do not. Only whole answers are kept: no errors and no cut streams. A replayed
    message has the usage it was recorded with, at no cost (``cost_usd`` is 0), and
    ``metadata["replayed"]`` is True. It streams in the pieces in which it once came, at
    once, or with the pauses of then if ``pacing`` is "original".

    Failures are retried inside, so that each turn is one recording; in ``fallback_models``
    wrap each model.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> import tempfile
    >>> cassette = f"{tempfile.mkdtemp()}/hello.json"
    >>> Agent(RecordedModel(ScriptedModel(["Hello!"]), cassette)).run("hi").text
    'Hello!'
    >>> Agent(RecordedModel(ScriptedModel([]), cassette, "replay")).run("hi").text
    'Hello!'
    """

    asks_again = True

    @kinds.checked(
        cache=kinds.either(
            f"{kinds.PATH.what}, or a ResponseCache(…)",
            kinds.PATH,
            kinds.having("", "get", "put", "recordings"),
        )
    )
    def __init__(
        self,
        model: ChatModel | str,
        cache: ResponseCache | Cassette | str | os.PathLike[str] = DEFAULT_CACHE,
        mode: Mode = "auto",
        *,
        pacing: Literal["none", "original"] = "none",
    ) -> None:
        super().__init__(named_model(model))
        self.cache = recordings_at(cache)
        self.mode = mode
        if mode == "auto" and os.environ.get(REPLAY) and not is_offline(self.inner):
            self.mode = _checked(os.environ[REPLAY])
        self.pacing = pacing
        self.tells_cost = True  # what is replayed costs nothing
        self.asked = retried(self.inner)
        self._recorded: set[str] = set()  # keys that were asked anew in mode "record"

    def preload(self) -> None:
        """As the model itself, unless it is never asked."""
        if self.mode != "replay":
            self.inner.preload()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the recorded answer, or the model's own; raises ReplayMiss, ModelError."""
        if self.mode == "off":
            source: Any = stream_of(self.asked, request)
        else:
            source = self._stream(request, asked(self.inner, request))
        async with aclosing(source):
            async for item in source:
                yield item

    async def _stream(self, request: ModelRequest, what: Asked) -> AsyncIterator[StreamItem]:
        if self.mode == "replay":
            recording = await workers.run(self.cache.get, what.key)
            if recording is None:
                raise await workers.run(self._miss, what)
            source: Any = self._replayed(recording)
            async with aclosing(source):
                async for item in source:
                    yield item
            return
        async with self.cache.ask_once.of(
            what.key
        ):  # asked twice at once, the second has the first's
            recording = None
            if self.mode == "auto" or what.key in self._recorded:
                recording = await workers.run(self.cache.get, what.key)
            source = self._replayed(recording) if recording else self._live(request, what)
            async with aclosing(source):
                async for item in source:
                    yield item

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """The recorded vectors, and the model's own of other texts.

        Raises ReplayMiss, ModelError.
        """
        if self.mode == "off":
            return await self.asked.vectors(texts, dimensions)
        requests = [request_for(self.inner, text, dimensions) for text in texts]
        whats = [asked(self.inner, request) for request in requests]
        known = await workers.run(self._known_vectors, whats)
        new = [text for text, vector in zip(texts, known, strict=True) if vector is None]
        if not new:
            return [vector for vector in known if vector is not None]
        if self.mode == "replay":
            raise await workers.run(self._miss, whats[known.index(None)])
        made = iter(await self.asked.vectors(new, dimensions))
        vectors = [next(made) if vector is None else vector for vector in known]
        fresh = [
            (what, vector)
            for what, vector, old in zip(whats, vectors, known, strict=True)
            if old is None
        ]
        await workers.run(self._keep_vectors, fresh)
        return vectors

    def _keep_vectors(self, fresh: Sequence[tuple[Asked, Sequence[float]]]) -> None:
        for what, vector in fresh:
            self._keep(what, message_of(vector), "")

    def _known_vectors(self, whats: Sequence[Asked]) -> list[Sequence[float] | None]:
        known: list[Sequence[float] | None] = []
        for what in whats:
            recording = None
            if self.mode != "record" or what.key in self._recorded:
                recording = self.cache.get(what.key)
            known.append(None if recording is None else vector_in(recording.message))
        return known

    async def _replayed(self, recording: Recording) -> AsyncIterator[StreamItem]:
        message = recording.message
        deltas: Any = streamed(message, recording.shape, paced=self.pacing == "original")
        async with aclosing(deltas):
            async for delta in deltas:
                yield delta
        usage = message.usage
        yield replace(
            message,
            usage=None if usage is None else replace(usage, cost_usd=0.0),
            metadata={**message.metadata, "replayed": True},
        )

    async def _live(self, request: ModelRequest, what: Asked) -> AsyncIterator[StreamItem]:
        shape = Shape()
        message: Message | None = None
        stream: Any = stream_of(self.asked, request)
        async with aclosing(stream):
            async for item in stream:
                if type(item) is Message:
                    message = item
                    continue  # until it is known that nothing failed after it
                if type(item) is RetryNotice:
                    shape = Shape()
                else:
                    shape.add(item)
                yield item
        if message is None:
            return
        if message.stop_reason not in _NOT_RECORDED and not message.error:
            await workers.run(self._keep, what, message, shape.text())
        yield message

    def _keep(self, what: Asked, message: Message, shape: str) -> None:
        try:
            recording = recording_of(what, message, shape)
        except Exception as error:  # half a surrogate pair, an object in its metadata
            _log.warning("An answer of %r is not recorded: JSON cannot carry it (%s).", self, error)
            return
        try:
            self.cache.put(recording)
        except (OSError, ConfigurationError) as error:  # a cassette where nothing can be written
            _log.warning("An answer of %r is not recorded: %s", self, error)
            return
        self._recorded.add(what.key)

    def _miss(self, what: Asked) -> ReplayMiss:
        again = "; record it with mode='record', or sagents-nb test-notebook --record."
        start = f"{self.cache!r} has no recording of this request to {self.inner!r}"
        near = nearest(what, self.cache.recordings())
        if near is None:
            return ReplayMiss(f"{start}: nothing like it is recorded{again}")
        path, new, old = near.difference
        return ReplayMiss(
            f"{start}: the nearest, {near.recording.key[:12]}, differs first in {path}, which was "
            f"recorded as «{old}» and is «{new}» now{again}",
            nearest=near.recording.key,
            path=path,
        )


def with_mode(model: ChatModel, mode: str) -> ChatModel:
    """``model``, recorded in that mode where it was recorded before; with "off", itself."""
    checked = _checked(mode)
    recorded = model if isinstance(model, RecordedModel) else None
    inner = recorded.inner if recorded else model
    if checked == "off":
        return inner
    return RecordedModel(inner, recorded.cache if recorded else default_place(), checked)


def default_place() -> ResponseCache | Cassette:
    """Where answers are recorded unless somebody says otherwise."""
    return recordings_at(os.environ.get(CASSETTE) or DEFAULT_CACHE)


def _checked(mode: str) -> Mode:
    if mode not in get_args(Mode):
        modes = ", ".join(map(repr, get_args(Mode)))
        raise ConfigurationError(f"mode (or ${REPLAY}) is one of {modes}, not {mode!r}.")
    return cast(Mode, mode)


def is_offline(model: ChatModel) -> bool:
    """Whether it needs neither key nor network, so that there is nothing to record."""
    if isinstance(model, RecordedModel):
        return True
    inner = asked_by(model)
    return all(map(is_offline, inner)) if inner else model.is_offline


# What was asked in mode "record" by any of the models that the environment had recorded.
_recorded_by_environment: set[str] = set()


def recorded_by_environment(model: ChatModel) -> ChatModel:
    """``model``, recorded as the environment says; as it is if it is offline."""
    if is_offline(model):
        return model
    recorded = RecordedModel(model, default_place(), _checked(os.environ[REPLAY]))
    recorded._recorded = _recorded_by_environment
    return recorded


def recordings_at(
    place: ResponseCache | Cassette | str | os.PathLike[str],
) -> ResponseCache | Cassette:
    """A cassette for a path that ends in ``.json``, a ResponseCache for any other."""
    if isinstance(place, ResponseCache | Cassette):
        return place
    path = Path(place)
    return Cassette.at(path) if path.suffix == ".json" else ResponseCache(path)
