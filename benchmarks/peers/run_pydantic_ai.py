"""pydantic-ai, with its own FunctionModel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import _measure
from _measure import CALLS, DELTAS, SLEEP, Call, exchanges, next_step
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

NO_LIMIT = UsageLimits(request_limit=None)


def model(turns: int = 0, sleep: float = 0.0) -> FunctionModel:
    async def function(messages: Any, info: Any) -> ModelResponse:
        if sleep:
            await asyncio.sleep(sleep)
        last = messages[-1].parts[0]
        step = next_step(last.tool_call_id if isinstance(last, ToolReturnPart) else None)
        part: Any = TextPart("done")
        if step < turns:
            part = ToolCallPart("add", {"a": step, "b": 1}, tool_call_id=f"c{step}")
        # Without a usage, FunctionModel would estimate that of the whole history.
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=1, output_tokens=1))

    async def pieces(messages: Any, info: Any) -> Any:
        for _ in range(DELTAS):
            yield "abcd"

    return FunctionModel(function, stream_function=pieces)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def message(kind: str, n: int) -> Any:
    if kind == "user":
        return ModelRequest(parts=[UserPromptPart(f"turn number {n}")])
    if kind == "call":
        return ModelResponse(parts=[ToolCallPart("add", {"a": n, "b": 1}, tool_call_id=f"h{n}")])
    if kind == "result":
        return ModelRequest(parts=[ToolReturnPart("add", n + 1, tool_call_id=f"h{n}")])
    return ModelResponse(parts=[TextPart("done")])


def agent(scripted: FunctionModel) -> Agent:
    made = Agent(scripted, instructions="Be brief.")
    made.tool_plain(add)
    return made


class PydanticAI:
    """See `Contestant`."""

    def turns(self, turns: int) -> Call:
        """`Agent.run`."""
        return self.grown(turns, 0)

    def grown(self, turns: int, history: int) -> Call:
        """`Agent.run`, which is given the whole history each time."""
        prior = [message(*item) for item in exchanges(history)]
        made = agent(model(turns))

        async def call() -> None:
            result = await made.run("go", message_history=prior, usage_limits=NO_LIMIT)
            assert result.output == "done"
            assert len(result.all_messages()) == len(prior) + 2 * turns + 2

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """`Agent.run_stream_events`."""
        made = agent(model())

        async def call() -> None:
            async with made.run_stream_events("go") as events:
                async for event in events:
                    if isinstance(event, PartDeltaEvent):
                        if isinstance(event.delta, TextPartDelta):
                            heard(event.delta.content_delta)
                    elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                        heard(event.part.content)

        return call

    def together(self) -> Call:
        """`Agent.run`."""
        made = agent(model(CALLS - 1, SLEEP))

        async def call() -> None:
            assert (await made.run("go")).output == "done"

        return call

    def idle(self) -> Any:
        """An agent."""
        return agent(MODEL)


MODEL = model(1)

if __name__ == "__main__":
    _measure.main("pydantic-ai", PydanticAI(), "pydantic-ai-slim")
