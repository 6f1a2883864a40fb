"""sagents_nb, with the middleware an agent has unless it says otherwise."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import _measure
from _measure import (
    CALLS,
    DELTAS,
    GROWN,
    SLEEP,
    TURNS,
    Call,
    best,
    exchanges,
    memory,
    next_step,
)

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa
from sagents_nb.events import MessageUpdate

USAGE = sa.Usage(1, 1)


class Scripted(sa.ChatModel):
    """Calls the tool some times, then answers."""

    name = "scripted"

    def __init__(self, turns: int = 0, deltas: int = 0, sleep: float = 0.0) -> None:
        self.turns, self.deltas, self.sleep = turns, deltas, sleep

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Say it."""
        if self.sleep:
            await asyncio.sleep(self.sleep)
        for _ in range(self.deltas):
            yield "abcd"
        results = request.messages[-1].tool_results
        step = next_step(results[0].tool_call_id if results else None)
        if step < self.turns:
            call = sa.ToolCall(f"c{step}", "add", {"a": step, "b": 1})
            yield sa.Message.assistant("", [call], usage=USAGE)
        else:
            yield sa.Message.assistant("abcd" * self.deltas or "done", usage=USAGE)


@sa.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@sa.tool(name="add")
def plain_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def message(kind: str, n: int) -> sa.Message:
    if kind == "user":
        return sa.Message.user(f"turn number {n}")
    if kind == "call":
        return sa.Message.assistant("", [sa.ToolCall(f"h{n}", "add", {"a": n, "b": 1})])
    if kind == "result":
        return sa.Message.tool([sa.ToolResult(f"h{n}", "add", str(n + 1))])
    return sa.Message.assistant("done")


def agent(model: Scripted, tool: sa.Tool = add) -> sa.Agent:
    return sa.Agent(model, "Be brief.", [tool], max_runs=TURNS + 1)


class Ours:
    """See `Contestant`."""

    def turns(self, turns: int, tool: sa.Tool = add, history: int = 0) -> Call:
        """`Agent.run`, with a tool that is async as those of the async peers."""
        state = sa.State(messages=[message(*item) for item in exchanges(history)])
        runner = agent(Scripted(turns), tool)

        def call() -> None:
            result = runner.run("go", state)
            assert result.text == "done"
            assert len(result.messages) == 2 * turns + 2

        return call

    def grown(self, turns: int, history: int) -> Call:
        """`Session.send`, after a first message: the first run reads the history once."""
        model = Scripted(0)
        state = sa.State(messages=[message(*item) for item in exchanges(history)])
        session = sa.Session(agent(model), state=state)
        session.send("go").result()
        model.turns = turns

        def call() -> None:
            assert session.send("go").result().text == "done"
            assert len(session.messages) == history + 2 * turns + 4
            session.close()

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """`Session.subscribe`."""
        talker = agent(Scripted(deltas=DELTAS))

        def hear(event: sa.Event) -> None:
            if type(event) is MessageUpdate:
                heard(event.delta.text)

        def call() -> None:
            session = sa.Session(talker)
            session.subscribe(hear)
            session.send("go").result()
            session.close()

        return call

    def together(self) -> Call:
        """`Agent.arun`."""
        shared = agent(Scripted(CALLS - 1, sleep=SLEEP))

        async def call() -> None:
            assert (await shared.arun("go")).text == "done"

        return call

    def idle(self) -> Any:
        """An agent."""
        return agent(MODEL)

    def more(self) -> dict[str, float]:
        """What the peers have no like of."""
        return {
            "plain turn": best(self.turns(TURNS, plain_add)) / TURNS,
            "first run": best(self.turns(0, history=max(GROWN))),
            "idle session": memory(lambda: sa.Session(agent(MODEL))),
        }


MODEL = Scripted(1)

if __name__ == "__main__":
    _measure.main("ours", Ours())
