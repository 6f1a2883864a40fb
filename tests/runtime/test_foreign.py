"""What holds up the loop of all sessions is named, once."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime import foreign
from sagents_nb.runtime.foreign import stepwise
from tests.talking import agent_of, call, run, session_of


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings so far."""
    caplog.set_level(logging.WARNING, foreign.__name__)
    return lambda: [r.getMessage() for r in caplog.records if r.name == foreign.__name__]


def named(function: Any) -> Any:
    """The function under a name that no test has warned of."""
    function.__qualname__ = f"{function.__name__}_{uuid.uuid4().hex[:6]}"
    return function


def test_only_what_a_step_takes_counts_not_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    now = [0.0]
    monkeypatch.setattr(foreign, "clock", lambda: now[0])

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    @named
    async def waits() -> str:
        for _ in range(3):
            asyncio.get_running_loop().call_soon(pass_by, 10.0)
            await asyncio.sleep(0)
            pass_by(0.15)
        return "waited"

    @named
    async def works() -> str:
        pass_by(0.25)
        await asyncio.sleep(0)
        pass_by(5.0)
        return "worked"

    async def both() -> tuple[str, str]:
        first = await stepwise(waits(), "The tool", waits)
        assert warnings() == []
        return first, await stepwise(works(), "The tool", works)

    assert run(both()) == ("waited", "worked")
    assert warnings() == [
        f"The tool {works.__qualname__} held up every session for 250 ms: nothing else runs on "
        "their loop meanwhile. Await what waits, and leave what computes to a thread."
    ]


def test_a_coroutine_that_is_watched_is_cancelled_and_fails_as_any_other() -> None:
    ended: list[str] = []

    async def careful() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        finally:
            ended.append("cleaned up")
        return "never"

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def cancelled() -> None:
        task = asyncio.ensure_future(_awaited(stepwise(careful(), "The tool", careful)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ZeroDivisionError):
            await stepwise(failing(), "The tool", failing)

    run(cancelled())
    assert ended == ["cancelled", "cleaned up"]


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def in_a_tool(function: Any) -> None:
    @named
    async def tool() -> str:
        return str(function())

    agent_of([call("t"), call("t", "c2")], call("t"), "done", tools=[sa.tool(name="t")(tool)]).run(
        "x"
    )


def in_a_tool_on_the_loop(function: Any) -> None:
    tool = sa.tool(name="t", run_on="loop")(function)
    agent_of(call("t"), call("t"), "done", tools=[tool]).run("x")


def in_a_hook(function: Any) -> None:
    before = named(lambda self, state, ctx: function() and None)
    bad = type("Bad", (sa.Middleware,), {"before_model": before})()
    agent = agent_of("one", "two", middleware=[bad])
    agent.run("x")
    agent.run("x")


def in_an_event_hook(function: Any) -> None:
    bad = type("Bad", (sa.Middleware,), {"on_event": named(lambda self, event, ctx: function())})()
    session_of("one", middleware=[bad]).send("x").result()


def in_a_subscriber(function: Any) -> None:
    session = session_of("one")
    session.subscribe(named(lambda event: function()))
    session.send("x").result()


def in_an_async_subscriber(function: Any) -> None:
    @named
    async def listen(event: Any) -> None:
        function()

    session = session_of("one")
    session.subscribe(listen)
    session.send("x").result()
    session.close()


@pytest.mark.parametrize(
    ("place", "what"),
    [
        (in_a_tool, "The tool"),
        (in_a_tool_on_the_loop, "The tool"),
        (in_a_hook, "The hook"),
        (in_an_event_hook, "The hook"),
        (in_a_subscriber, "The subscriber"),
        (in_an_async_subscriber, "The subscriber"),
    ],
)
def test_what_blocks_is_named_once_with_its_milliseconds(
    place: Any, what: str, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(foreign, "HELD", 0.01)
    others = set(warnings())

    @named
    def block() -> str:
        time.sleep(0.02)
        return "slept"

    place(block)
    time.sleep(0)
    mine = [text for text in warnings() if text.startswith(what) and text not in others]
    held = [text for text in mine if float(text.split(" for ")[1].split()[0]) >= 20]
    assert len(held) == 1, mine


def test_a_sync_tool_may_take_its_time(
    monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(foreign, "HELD", 0.5)

    @named
    def slow() -> str:
        time.sleep(0.6)
        return "slept"

    agent_of(call("slow"), "done", tools=[sa.tool(name="slow")(slow)]).run("x")
    assert [text for text in warnings() if slow.__qualname__ in text] == []
