from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.messages import Message, TextDelta
from sagents_nb.models import ChatModel, ModelRequest, RetryingModel, ScriptedModel
from sagents_nb.models.base import RetryNotice
from sagents_nb.models.retry import WORTH_IT

REQUEST = ModelRequest([sa.Message.user("hi")])
FINAL = ("authentication", "invalid_request", "context_window", "missing_key", "missing_package")


def failed(kind: str = "overloaded", **fields: Any) -> sa.ModelError:
    return sa.ModelError("The provider failed.", kind=kind, **fields)


class Retried:
    """What a RetryingModel over a script yields and raises, and how long it would wait."""

    def __init__(self, turns: list[Any], chance: float = 0.0, **options: Any) -> None:
        self.model = ScriptedModel(turns)
        self.waits: list[float] = []
        self.items: list[Any] = []
        self.error: sa.ModelError | None = None
        retrying = RetryingModel(self.model, sleep=self._sleep, chance=lambda: chance, **options)
        try:
            asyncio.run(self._collect(retrying))
        except sa.ModelError as error:
            self.error = error

    async def _collect(self, model: ChatModel) -> None:
        async for item in model.stream(REQUEST):
            self.items.append(item)

    async def _sleep(self, seconds: float) -> None:
        assert isinstance(self.items[-1], RetryNotice), "it waited without saying so"
        self.waits.append(seconds)

    @property
    def calls(self) -> int:
        return len(self.model.requests)

    @property
    def notices(self) -> list[RetryNotice]:
        return [item for item in self.items if isinstance(item, RetryNotice)]


@pytest.mark.parametrize("kind", sorted(WORTH_IT))
def test_what_may_pass_is_tried_again_after_saying_so(kind: str) -> None:
    tried = Retried([failed(kind), failed(kind), "hello"])
    assert tried.error is None
    assert tried.items[-1].text == "hello"
    assert tried.notices == [
        RetryNotice(2, 1.0, "The provider failed."),
        RetryNotice(3, 2.0, "The provider failed."),
    ]
    assert tried.waits == [1.0, 2.0]


@pytest.mark.parametrize("kind", [*FINAL, "cut_stream", "scripted", "unknown"])
def test_what_will_not_pass_is_told_at_once(kind: str) -> None:
    error = failed(kind)
    tried = Retried([error, "never"])
    assert (tried.error, tried.items, tried.waits) == (error, [], [])


def test_a_script_that_ran_out_is_not_waited_for() -> None:
    tried = Retried([])
    assert tried.error is not None
    assert tried.error.kind == "scripted"
    assert tried.waits == []


def test_another_exception_than_a_model_error_is_not_retried() -> None:
    with pytest.raises(ZeroDivisionError):
        Retried([ZeroDivisionError()])


def test_waits_double_and_chance_makes_them_up_to_half_shorter() -> None:
    errors = [failed() for _ in range(5)]
    assert Retried(errors).waits == [1.0, 2.0, 4.0, 8.0]
    assert Retried(errors, chance=1.0).waits == [0.5, 1.0, 2.0, 4.0]
    many = Retried([failed() for _ in range(10)], attempts=9, max_wait=1000)
    assert many.waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_the_last_attempts_error_says_how_often_it_was_asked() -> None:
    tried = Retried([failed("server", status=500) for _ in range(5)])
    assert tried.calls == 5
    assert str(tried.error) == "The provider failed. It was asked 5 times."
    assert tried.error is not None
    assert (tried.error.kind, tried.error.status) == ("server", 500)
    assert tried.error.__cause__ is not None


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        (0, [1.0]),  # at once would be a storm
        (0.2, [1.0]),
        (60, [60]),
        (120, [120]),
        (-5, [1.0]),
        (None, [1.0]),
    ],
)
def test_retry_after_is_honoured_up_to_the_cap(asked: float | None, waits: list[float]) -> None:
    tried = Retried([failed("rate_limit", retry_after=asked), "hello"])
    assert tried.error is None
    assert tried.waits == waits


@pytest.mark.parametrize("asked", [120.5, 3600, 4_294_967, math.inf, math.nan])
def test_a_longer_retry_after_is_told_and_not_slept(asked: float) -> None:
    tried = Retried([failed("rate_limit", retry_after=asked, status=429), "never"])
    assert (tried.calls, tried.waits, tried.items) == (1, [], [])
    assert tried.error is not None
    assert f"would have to wait {asked:.0f} s, longer than the 120 s" in str(tried.error)
    assert (tried.error.kind, tried.error.status) == ("rate_limit", 429)


def test_all_waits_together_stay_within_the_cap() -> None:
    tried = Retried([failed(retry_after=50) for _ in range(5)])
    assert (tried.calls, tried.waits) == (3, [50, 50])
    assert "wait 50 s after 100 s" in str(tried.error)
    short = Retried([failed() for _ in range(5)], max_wait=3.5)
    assert short.waits == [1.0, 2.0]
    assert Retried([failed(), "x"], max_wait=0).calls == 1


class Stuttering(ChatModel):
    """Fails after a first piece."""

    name = "stuttering"
    calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta]:
        self.calls += 1
        yield TextDelta("Once upon")
        raise failed("connection")


def test_nothing_is_tried_again_once_a_piece_was_given_on() -> None:
    model = Stuttering()
    items: list[Any] = []

    async def collect() -> None:
        async for item in RetryingModel(model).stream(REQUEST):
            items.append(item)

    with pytest.raises(sa.ModelError, match=r"^The provider failed\.$"):
        asyncio.run(collect())
    assert (model.calls, items) == (1, [TextDelta("Once upon")])


class Noticing(ChatModel):
    """Yields a notice of its own before it fails, as a retrying model inside would."""

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.calls += 1
        yield RetryNotice(2, 0.0, "own")
        if self.calls == 1:
            raise failed()
        yield sa.Message.assistant("done")


def test_a_notice_is_no_piece_of_the_answer() -> None:
    model = Noticing()

    async def none(seconds: float) -> None: ...

    async def collect() -> list[Any]:
        return [item async for item in RetryingModel(model, sleep=none).stream(REQUEST)]

    assert asyncio.run(collect())[-1].text == "done"
    assert model.calls == 2


def test_a_wait_can_be_cancelled() -> None:
    async def scenario() -> None:
        model = RetryingModel(ScriptedModel([failed(retry_after=100), "never"]))  # really sleeps
        stream = model.stream(REQUEST)
        assert isinstance(await anext(stream), RetryNotice)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())


def test_leaving_early_closes_the_models_stream() -> None:
    closed: list[bool] = []

    class Endless(ChatModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
            try:
                while True:
                    yield "more"
            finally:
                closed.append(True)

    async def scenario() -> None:
        stream = RetryingModel(Endless()).stream(REQUEST)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(scenario())
    assert closed == [True]


def test_it_looks_like_the_model_inside() -> None:
    class Named(ChatModel):
        name = "n"
        chosen_because = "b"
        loaded = 0

        def preload(self) -> None:
            self.loaded += 1

    model = Named()
    retrying = sa.RetryingModel(model)
    retrying.preload()
    assert (retrying.name, retrying.chosen_because, repr(retrying)) == ("n", "b", repr(model))
    assert retrying.inner is model
    assert model.loaded == 1


def test_less_than_one_attempt_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="attempts"):
        RetryingModel(ScriptedModel([]), attempts=0)


def test_retries_around_a_recorded_model_are_not_multiplied(tmp_path: Path) -> None:
    async def none(seconds: float) -> None: ...

    async def collect(model: ChatModel) -> Message:
        return [item async for item in model.stream(REQUEST)][-1]

    failing = ScriptedModel([failed() for _ in range(30)])
    recorded = sa.RecordedModel(failing, tmp_path)
    with pytest.raises(sa.ModelError):
        asyncio.run(collect(RetryingModel(recorded, attempts=2, sleep=none)))
    assert len(failing.requests) == 2
    healed = sa.RecordedModel(ScriptedModel([failed(), "hi"]), tmp_path)
    assert asyncio.run(collect(RetryingModel(healed, sleep=none))).text == "hi"
    again = sa.RecordedModel(ScriptedModel([]), tmp_path, "replay")
    assert asyncio.run(collect(again)).text == "hi"
