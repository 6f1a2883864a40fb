"""A recorder that writes into a list, and runs that are recorded by it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from sagents_nb import Agent, Message, State, ToolCall, ToolResult
from sagents_nb.events import Emitter, Event
from sagents_nb.interrupts import Decision
from sagents_nb.loop.config import Outcome, Unfinished
from sagents_nb.loop.loop import Loop
from sagents_nb.runtime.thread import runtime
from tests.talking import PATIENCE


class Book:
    """Keeps what it is given; ``happened`` tells it in one line with the events of the run.

    Its ``fails_at``-th commit, counted from 1, and all after it fail with ``failure``.
    """

    def __init__(self, fails_at: int = 0, failure: Exception | None = None) -> None:
        self.fails_at = fails_at
        self.failure = failure or OSError("the disk is full")
        self.calls = 0
        self.happened: list[str] = []
        self.events: list[Event] = []
        self.safe = State()
        self.ended_at: list[int] = []
        self.results: dict[str, ToolResult] = {}
        self.gate: asyncio.Event | None = None
        self.waits = 0

    async def _commit(self, what: str) -> None:
        self.calls += 1
        if self.fails_at and self.calls >= self.fails_at:
            self.happened.append(f"no {what}")
            raise self.failure
        self.happened.append(f"begin {what}")
        if self.gate is not None:
            self.waits += 1
            await self.gate.wait()
        self.happened.append(what)

    def keep(
        self, state: State, *, begins: Sequence[ToolCall] = (), ends: bool = False
    ) -> Future[None]:
        async def commit() -> None:
            await self._commit(" and ".join(["keep", *(f"starting {call.id}" for call in begins)]))
            self.safe = state
            if ends:
                self.ended_at.append(len(state.messages))

        return asyncio.run_coroutine_threadsafe(commit(), asyncio.get_running_loop())

    def starting(self, call: ToolCall) -> Future[None] | None:
        commit = self._commit(f"starting {call.id}")
        return asyncio.run_coroutine_threadsafe(commit, asyncio.get_running_loop())

    def finished(self, call: ToolCall, result: ToolResult) -> None:
        self.happened.append(f"finished {call.id}")
        self.results[call.id] = result

    def sink(self, event: Event) -> None:
        self.events.append(event)
        self.happened.append(event.type)

    @property
    def order(self) -> list[str]:
        """What happened, without the beginnings of commits."""
        return [line for line in self.happened if not line.startswith("begin ")]


def loop_of(agent: Agent, book: Book, state: State | None = None, **config: Any) -> Loop:
    """A run that ``book`` records and listens to."""
    return agent.new_run(state or State(), Emitter(book.sink, "s1", "r1"), recorder=book, **config)


def recorded(
    agent: Agent,
    book: Book,
    messages: Iterable[Message] = (),
    state: State | None = None,
    decisions: Mapping[str, Decision] | None = None,
    recovered: Unfinished | None = None,
    **config: Any,
) -> Outcome:
    """Run it to its end."""
    loop = loop_of(agent, book, state, **config)
    return runtime.submit(loop.run(messages, decisions, recovered)).result(PATIENCE)
