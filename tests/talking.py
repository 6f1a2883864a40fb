"""Scripted agents, and what is said about their runs."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from sagents_nb import Agent, Interrupt, Message, ScriptedModel, Session, State, ToolCall
from sagents_nb.events import Event

T = TypeVar("T")

PATIENCE = 40.0
"""Seconds after which what a test waits for hangs: no measure of how fast it should be."""


def agent_of(*turns: Any, **options: Any) -> Agent:
    """A bare agent whose model says these turns, one after the other."""
    return Agent(ScriptedModel(turns, chunk=1000), replace_default_middleware=True, **options)


def session_of(*turns: Any, **options: Any) -> Session:
    """A session with :func:`agent_of`."""
    return Session(agent_of(*turns, **options))


def call(name: str, id: str = "c1", **arguments: Any) -> ToolCall:
    """A model's wish to run a tool."""
    return ToolCall(id, name, arguments)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own, and not for ever."""

    async def limited() -> T:
        async with asyncio.timeout(PATIENCE):
            return await coroutine

    return asyncio.run(limited())


def all_of(items: AsyncIterable[T]) -> list[T]:
    """What an async iterator gives until it ends."""

    async def collect() -> list[T]:
        return [item async for item in items]

    return run(collect())


def streamed(agent: Agent, prompt: Any = "go", **options: Any) -> list[Event]:
    """The events of a whole run."""
    return all_of(agent.stream(prompt, **options))


def ctrl_c() -> None:
    """A person's interrupt of the main thread, from any thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def until(condition: Callable[[], Any]) -> None:
    """Wait until that holds, where nothing tells when it does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.005)


def types(events: Iterable[Event], *without: str) -> list[str]:
    """Their types, in order, but for those that do not matter here."""
    return [event.type for event in events if event.type not in without]


def of(kind: type[T], events: Iterable[Any]) -> list[T]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def roles(messages: Iterable[Message]) -> list[str]:
    """Who spoke, in order."""
    return [message.role for message in messages]


def results(state: State) -> list[str]:
    """The texts of all tool results, in order."""
    return [result.text for message in state.messages for result in message.tool_results]


def unanswered(messages: Iterable[Message]) -> list[str]:
    """What is wrong with the pairing of calls and results; nothing, if any provider takes it."""
    problems, open_ids = [], list[str]()
    for message in messages:
        if message.role == "tool":
            answered = [result.tool_call_id for result in message.tool_results]
            if answered != open_ids:
                problems.append(f"calls {open_ids} are answered by {answered}")
            open_ids = []
        elif open_ids:
            problems.append(f"a {message.role} message comes before the results of {open_ids}")
            open_ids = []
        if message.role == "assistant":
            open_ids = [tool_call.id for tool_call in message.tool_calls]
    return problems + ([f"{open_ids} have no result"] if open_ids else [])


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """What ``work(0..count-1)`` return, all started at the same moment in threads of their own.

    An exception is returned in the place of the value.
    """
    start = threading.Barrier(count)
    outcomes: list[Any] = [None] * count

    def body(index: int) -> None:
        start.wait()
        try:
            outcomes[index] = work(index)
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=body, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread waits for ever"
    return outcomes


def unbound(interrupt: Interrupt | None) -> Interrupt:
    """What waits, without what binds it to one session and run."""
    assert interrupt is not None
    return replace(
        interrupt,
        id="",
        action_requests=tuple(replace(r, digest="") for r in interrupt.action_requests),
        parts=tuple(map(unbound, interrupt.parts)),
    )


def calls_of(function: Callable[[], Any]) -> int:
    """How many functions are called meanwhile, by it and by each other."""
    number = 0

    def count(frame: Any, what: str, arg: Any) -> None:
        nonlocal number
        number += what in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # which calls whoever asked to be called, at any moment
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return number
