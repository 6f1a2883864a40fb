"""The events and the text of a run are read by ``for`` in any thread, as by ``async for``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import run

Readable = Any
STARTS: list[Callable[[sa.Agent], Readable]] = [
    lambda agent: agent.stream("go"),
    lambda agent: sa.Session(agent).send("go"),
]
EACH = pytest.mark.parametrize("start", STARTS, ids=["agent.stream", "session.send"])


def kinds_of(events: Iterable[Any]) -> list[str]:
    # A session that is joined late has the pieces of an answer only as the whole.
    return [event.type for event in events if event.type != "message_update"]


def agent(*turns: Any) -> sa.Agent:
    return sa.Agent(sa.ScriptedModel(list(turns)), replace_default_middleware=True)


@EACH
def test_for_reads_what_async_for_reads(start: Callable[[sa.Agent], Readable]) -> None:
    async def awaited() -> list[Any]:
        return [event async for event in start(agent("A long answer."))]

    in_thread = kinds_of(start(agent("A long answer.")))
    assert in_thread == kinds_of(run(awaited()))
    assert in_thread[0] == "agent_start"
    assert in_thread[-1] == "agent_end"


@EACH
def test_the_text_comes_whole_in_pieces_of_all_turns(start: Callable[[sa.Agent], Readable]) -> None:
    @sa.tool
    def look() -> str:
        """Look."""
        return "seen"

    looking = sa.Agent(
        sa.ScriptedModel([["Let me look. ", sa.ToolCall("c1", "look", {})], "Done."]),
        tools=[look],
        replace_default_middleware=True,
    )
    assert "".join(start(looking).text_stream()) == "Let me look. Done."

    async def awaited() -> str:
        return "".join([text async for text in start(agent("Hello there!")).text_stream()])

    assert run(awaited()) == "Hello there!"


def test_a_run_that_is_read_from_its_beginning_comes_piece_by_piece() -> None:
    assert list(agent("abcdefgh").stream("go").text_stream()) == ["abcd", "efgh"]


def test_a_failed_run_raises_after_its_last_event() -> None:
    stream = agent(sa.ModelError("no such model")).stream("go")
    seen = []
    with pytest.raises(sa.ModelError, match="no such model"):
        seen.extend(event.type for event in stream)
    assert seen[-1] == "agent_end"


def test_the_result_is_there_once_all_was_read() -> None:
    stream = agent("Hello!").stream("go")
    with pytest.raises(sa.NotRunning):
        _ = stream.result
    assert kinds_of(stream)
    assert stream.result.text == "Hello!"


def test_who_leaves_the_loop_and_lets_go_stops_the_run() -> None:
    began, ended = threading.Event(), threading.Event()

    class Endless(sa.ChatModel):
        name = "endless"

        async def stream(self, request: Any) -> Any:
            try:
                while True:
                    yield "word "
                    began.set()
                    await asyncio.sleep(0)
            finally:
                ended.set()

    for event in sa.Agent(Endless(), replace_default_middleware=True).stream("go"):
        if event.type == "message_update":
            break
    assert began.wait(40)
    assert ended.wait(40)


def test_a_hook_of_the_run_cannot_wait_for_its_events() -> None:
    class Watcher(sa.Middleware):
        def after_model(self, state: sa.State, ctx: Any) -> None:
            list(stream)

    stream = sa.Agent(
        sa.ScriptedModel(["x"]), middleware=[Watcher()], replace_default_middleware=True
    ).stream("go")
    with pytest.raises(sa.Busy, match="async for"):
        list(stream)


def test_events_can_be_read_where_an_event_loop_turns() -> None:
    async def in_a_cell() -> list[str]:
        return kinds_of(agent("x").stream("go"))

    assert run(in_a_cell())[-1] == "agent_end"


def test_what_agent_loop_gives_is_read_by_async_for_and_says_so() -> None:
    config = sa.AgentLoopConfig(model=sa.ScriptedModel(["x"]))
    events = sa.agent_loop([sa.Message.user("x")], sa.AgentContext(), config)
    with pytest.raises(sa.ConfigurationError, match="async for"):
        list(events)
