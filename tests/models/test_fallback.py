from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.messages import TextDelta
from sagents_nb.models import (
    ChatModel,
    DemoModel,
    FallbackModel,
    ModelRequest,
    RetryingModel,
    ScriptedModel,
)
from sagents_nb.models.base import RetryNotice
from sagents_nb.models.fallback import resilient

REQUEST = ModelRequest([sa.Message.user("hi")], system="be kind", model="first")


def failed(kind: str = "authentication", text: str = "It failed.") -> sa.ModelError:
    return sa.ModelError(text, kind=kind)


def scripted(name: str, *turns: Any) -> ScriptedModel:
    model = ScriptedModel(turns)
    model.name = name
    return model


def answer(model: ChatModel, request: ModelRequest = REQUEST) -> list[Any]:
    async def collect() -> list[Any]:
        return [item async for item in model.stream(request)]

    return asyncio.run(collect())


@pytest.mark.spec("S1.2.8")
@pytest.mark.parametrize(
    "error",
    [failed("authentication"), failed("context_window"), failed("unknown"), ZeroDivisionError("x")],
)
def test_a_model_that_fails_makes_it_the_next_ones_turn_with_the_same_messages(
    error: Exception,
) -> None:
    a, b = scripted("a", error), scripted("b", "from b")
    items = answer(FallbackModel([a, b]))
    assert items[-1].text == "from b"
    (asked,) = b.requests
    assert (asked.messages, asked.system) == (REQUEST.messages, REQUEST.system)
    assert [a.requests[0].model, asked.model] == ["a", "b"]


def test_moving_on_is_visible_and_names_the_reason() -> None:
    model = FallbackModel([scripted("a", failed()), scripted("b", "x")])
    notice = answer(model)[0]
    assert notice == RetryNotice(
        2,
        0.0,
        "ScriptedModel('a'): It failed. ScriptedModel('b') is asked instead.",
        model="b",
    )


def test_a_model_that_answers_is_the_only_one_asked() -> None:
    b = scripted("b", "x")
    items = answer(FallbackModel([scripted("a", "fine"), b]))
    assert not any(isinstance(item, RetryNotice) for item in items)
    assert b.requests == []


@pytest.mark.spec("S1.2.8")
def test_before_fallback_is_called_before_every_model_the_first_included() -> None:
    order: list[Any] = []
    a, b = scripted("a", failed()), scripted("b", lambda request: order.append("asked b") or "x")

    def hook(model: ChatModel, request: ModelRequest) -> None:
        order.append((model, request.model, request.messages))

    answer(FallbackModel([RetryingModel(a), b], hook))
    assert order == [(a, "a", REQUEST.messages), (b, "b", REQUEST.messages), "asked b"]
    assert order[0][0] is a, "people see the model that they passed"


def test_before_fallback_may_be_async_and_change_what_is_sent() -> None:
    async def hook(model: ChatModel, request: ModelRequest) -> ModelRequest:
        await asyncio.sleep(0)
        return ModelRequest(request.messages, system=f"for {model.name}")

    a, b = scripted("a", failed()), scripted("b", "x")
    answer(FallbackModel([a, b], hook))
    assert [a.requests[0].system, b.requests[0].system] == ["for a", "for b"]


def test_a_broken_before_fallback_ends_the_call_and_is_named() -> None:
    a = scripted("a", "x")
    with pytest.raises(sa.ModelError, match=r"before_fallback failed .*ZeroDivisionError"):
        answer(FallbackModel([a, a], lambda model, request: 1 // 0))
    assert a.requests == []


def test_when_all_fail_the_error_names_what_each_said_and_is_like_the_last() -> None:
    last = sa.ModelError("Busy!", kind="overloaded", status=529, retry_after=3)
    model = FallbackModel([scripted("a", failed()), scripted("b", OSError("no")), DemoLast(last)])
    with pytest.raises(sa.ModelError) as caught:
        answer(model)
    assert str(caught.value) == (
        "None of 3 models answered. ScriptedModel('a'): It failed. "
        "ScriptedModel('b'): OSError: no. DemoLast('last'): Busy!"
    )
    assert (caught.value.kind, caught.value.status, caught.value.retry_after) == (
        "overloaded",
        529,
        3,
    )
    assert caught.value.__cause__ is last


class DemoLast(ChatModel):
    """Raises before it is a stream at all."""

    name = "last"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        raise self.error


def test_a_single_models_error_stays_as_it_is() -> None:
    error = failed()
    with pytest.raises(sa.ModelError) as caught:
        answer(FallbackModel([scripted("a", error)]))
    assert caught.value is error


class Yielding(ChatModel):
    """Yields what it is given, and raises what is an exception."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield item


def test_nobody_else_is_asked_once_a_piece_was_given_on() -> None:
    b = scripted("b", "x")
    error = failed("connection")
    with pytest.raises(sa.ModelError) as caught:
        answer(FallbackModel([Yielding(TextDelta("Once"), error), b]))
    assert caught.value is error
    assert b.requests == []


@pytest.mark.parametrize(
    "items", [(), (sa.Message("assistant", stop_reason="error", error="broken"),)]
)
def test_an_answer_that_is_none_counts_as_a_failure(items: Any) -> None:
    assert answer(FallbackModel([Yielding(*items), scripted("b", "from b")]))[-1].text == "from b"


def test_cancelling_asks_nobody_else_and_a_cancellation_of_its_own_is_a_failure() -> None:
    class Waiting(ChatModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            await asyncio.sleep(3600)
            yield "never"

    async def cancelled(model: ChatModel) -> None:
        async def read() -> None:
            async for _ in model.stream(REQUEST):
                pass

        task = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    b = scripted("b", "x")
    asyncio.run(cancelled(FallbackModel([Waiting(), b])))
    assert b.requests == []
    items = answer(FallbackModel([Yielding(asyncio.CancelledError()), b]))
    assert items[-1].text == "x"


def test_each_model_is_retried_before_the_next_one_is_asked() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    a = scripted("a", *[failed("overloaded")] * 2)
    b = scripted("b", failed("timeout"), "done")
    model = FallbackModel([RetryingModel(m, attempts=2, sleep=sleep) for m in (a, b)])
    items = answer(model)
    assert [len(a.requests), len(b.requests), len(waits)] == [2, 2, 2]
    notices = [item for item in items if isinstance(item, RetryNotice)]
    assert [(n.attempt, n.wait > 0, n.model) for n in notices] == [
        (2, True, ""),
        (2, False, "b"),
        (2, True, ""),
    ]


def test_it_needs_a_model_and_is_called_like_the_first() -> None:
    with pytest.raises(sa.ConfigurationError):
        FallbackModel([])
    model = sa.FallbackModel([scripted("a"), RetryingModel(scripted("b"))])
    assert model.name == "a"
    assert repr(model) == "FallbackModel([ScriptedModel('a'), ScriptedModel('b')])"


def test_an_agents_model_is_retried_and_falls_back_in_that_order() -> None:
    mine = scripted("a")
    alone = resilient(mine)
    assert isinstance(alone, RetryingModel)
    assert (alone.inner, alone.name, repr(alone)) == (mine, "a", repr(mine))
    several = resilient(mine, ["demo", scripted("b")])
    assert isinstance(several, FallbackModel)
    inner = [model.inner for model in several.models if isinstance(model, RetryingModel)]
    assert inner[0] is mine
    assert isinstance(inner[1], DemoModel)
    assert inner[2].name == "b"


def test_what_people_wrapped_themselves_is_taken_as_it_is() -> None:
    own = RetryingModel(scripted("a"), attempts=1)
    both = FallbackModel([own])
    assert resilient(own) is own
    assert resilient(both) is both


def test_a_hook_alone_is_called_too() -> None:
    seen: list[ChatModel] = []
    a = scripted("a", "x")
    answer(resilient(a, before_fallback=lambda model, request: seen.append(model)))
    assert seen == [a]


def look(what: str = "") -> str:
    """Look."""
    return "seen"


def turns(count: int) -> list[Any]:
    return [*(sa.ToolCall(f"c{n}", "look", {}) for n in range(count)), "Done."]


def test_a_run_goes_on_with_the_model_that_answered_and_the_next_one_begins_anew() -> None:
    down, works = scripted("down", *[failed()] * 9), scripted("works", *turns(3), *turns(1))
    agent = sa.Agent(FallbackModel([down, works]), tools=[look])
    session = sa.Session(agent)
    assert session.send("go").result().text == "Done."
    assert (len(down.requests), len(works.requests)) == (1, 4)
    assert set(session.to_frame("usage")["model"]) == {"works"}
    retries = session.to_frame("events").query("type == 'model_retry'")
    assert len(retries) == 4  # whose answer it is, is told each time
    assert session.send("again").result().text == "Done."
    assert (len(down.requests), len(works.requests)) == (2, 6)


def test_the_first_has_its_turn_again_where_the_others_fail_later() -> None:
    first = scripted("first", failed(), "Here again.")
    second = scripted("second", *turns(1)[:1], failed())
    agent = sa.Agent(FallbackModel([first, second]), tools=[look])
    assert agent.run("go").text == "Here again."
    assert (len(first.requests), len(second.requests)) == (2, 2)


def test_each_run_remembers_for_itself() -> None:
    first = scripted("first", failed(), *[turn for _ in range(4) for turn in turns(1)])
    second = scripted("second", *[turn for _ in range(4) for turn in turns(1)])
    agent = sa.Agent(FallbackModel([first, second]), tools=[look])

    async def both() -> list[Any]:
        return [(await each).text for each in [agent.arun("a"), agent.arun("b")]]

    assert asyncio.run(both()) == ["Done.", "Done."]
    assert (len(first.requests), len(second.requests)) == (3, 2)


def test_what_a_hook_sends_to_the_first_server_goes_to_no_other() -> None:
    class Signs(sa.Middleware):
        def before_model_request(self, request: Any, ctx: Any) -> Any:
            options = {**request.options, "extra_headers": {"authorization": "s"}, "timeout": 9}
            return replace(request, options=options)

    down, works = scripted("down", failed()), scripted("works", "Done.")
    agent = sa.Agent(down, fallback_models=[works], middleware=[Signs()], options={"top_p": 1})
    assert agent.run("go").text == "Done."
    (first,), (second,) = down.requests, works.requests
    assert first.options == {"top_p": 1, "extra_headers": {"authorization": "s"}, "timeout": 9}
    assert second.options == {"top_p": 1, "timeout": 9}
