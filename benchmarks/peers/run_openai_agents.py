"""openai-agents, with a model of our own that gives real objects of the Responses API.

Its tracing is off: on, it would send every span to OpenAI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import _measure
from _measure import CALLS, DELTAS, SLEEP, Call, exchanges, next_step
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

set_tracing_disabled(True)


def call_item(id: str, n: int) -> ResponseFunctionToolCall:
    arguments = f'{{"a": {n}, "b": 1}}'
    return ResponseFunctionToolCall(
        id=f"f{id}", call_id=id, type="function_call", name="add", arguments=arguments
    )


def text_item(id: str) -> ResponseOutputMessage:
    text = ResponseOutputText(text="done", type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=id, type="message", role="assistant", status="completed", content=[text]
    )


class Scripted(Model):
    """Calls the tool some times, then answers."""

    def __init__(self, turns: int = 0, sleep: float = 0.0) -> None:
        self.turns, self.sleep = turns, sleep

    def _output(self, input: Any) -> list[Any]:
        last = {} if isinstance(input, str) else input[-1]
        step = next_step(last.get("call_id"))
        return [call_item(f"c{step}", step) if step < self.turns else text_item("m")]

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """The whole answer."""
        if self.sleep:
            await asyncio.sleep(self.sleep)
        usage = Usage(requests=1, input_tokens=1, output_tokens=1, total_tokens=2)
        return ModelResponse(output=self._output(input), usage=usage, response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """The pieces, then the whole answer."""
        where = {"content_index": 0, "item_id": "m", "output_index": 0, "logprobs": []}
        for n in range(DELTAS):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", delta="abcd", sequence_number=n, **where
            )
        whole = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=self._output(input),
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=DELTAS, response=whole
        )


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def item(kind: str, n: int) -> Any:
    if kind == "user":
        return {"role": "user", "content": f"turn number {n}"}
    if kind == "call":
        return call_item(f"h{n}", n).model_dump(exclude_unset=True)
    if kind == "result":
        return {"type": "function_call_output", "call_id": f"h{n}", "output": str(n + 1)}
    return text_item(f"m{n}").model_dump(exclude_unset=True)


def agent(model: Scripted) -> Agent:
    return Agent(name="t", instructions="Be brief.", model=model, tools=[add])


class OpenAIAgents:
    """See `Contestant`."""

    def turns(self, turns: int) -> Call:
        """`Runner.run`."""
        return self.grown(turns, 0)

    def grown(self, turns: int, history: int) -> Call:
        """`Runner.run`, which is given the whole history each time."""
        prior = [item(*kind) for kind in exchanges(history)]
        made = agent(Scripted(turns))
        asked = [*prior, {"role": "user", "content": "go"}]

        async def call() -> None:
            result = await Runner.run(made, asked, max_turns=turns + 1)
            assert result.final_output == "done"
            assert len(result.raw_responses) == turns + 1

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """`Runner.run_streamed`."""
        made = agent(Scripted())

        async def call() -> None:
            result = Runner.run_streamed(made, "go")
            async for event in result.stream_events():
                data = event.data if event.type == "raw_response_event" else None
                if data is not None and data.type == "response.output_text.delta":
                    heard(data.delta)

        return call

    def together(self) -> Call:
        """`Runner.run`."""
        made = agent(Scripted(CALLS - 1, SLEEP))

        async def call() -> None:
            assert (await Runner.run(made, "go")).final_output == "done"

        return call

    def idle(self) -> Any:
        """An agent, without a conversation."""
        return agent(MODEL)


MODEL = Scripted(1)

if __name__ == "__main__":
    _measure.main("openai-agents", OpenAIAgents(), "openai-agents")
