"""smolagents, which has no store: each turn's steps are written by hand, as JSON.

It answers by a call of its final_answer, so an exchange is a task and a step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from smolagents import ToolCallingAgent, tool
from smolagents.memory import ActionStep, TaskStep, ToolCall
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)
from smolagents.monitoring import LogLevel, Timing, TokenUsage


class Scripted(Model):
    """Answers."""

    def __init__(self) -> None:
        super().__init__(model_id="scripted")

    def generate(self, messages: Any, **kwargs: Any) -> ChatMessage:
        """The whole answer."""
        function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": "done"})
        call = ChatMessageToolCall(id="c", type="function", function=function)
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=None,
            token_usage=TokenUsage(1, 1),
            tool_calls=[call],
        )


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


def step(kind: str, n: int) -> Any:
    """A call comes with its result."""
    if kind == "user":
        return TaskStep(f"turn number {n}")
    if kind == "call":
        call, seen = ToolCall("add", {"a": n, "b": 1}, f"h{n}"), str(n + 1)
    else:
        call, seen = ToolCall("final_answer", {"answer": "done"}, f"f{n}"), "done"
    return ActionStep(n, Timing(0.0, 0.0), tool_calls=[call], observations=seen)


def encoded(steps: Iterable[Any]) -> str:
    """As `AgentMemory.get_succinct_steps` gives them."""
    dumped = [step.dict() for step in steps]
    for each in dumped:
        each.pop("model_input_messages", None)
    return json.dumps(dumped, default=str)


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.agent = ToolCallingAgent(
            tools=[add], model=Scripted(), verbosity_level=LogLevel.OFF, max_steps=2
        )
        steps = [step(*item) for item in exchanges(messages) if item[0] != "result"]
        self.agent.memory.steps += steps
        self.rows = _stored.Rows(path.with_suffix(".db"), (encoded([step]) for step in steps))

    def turn(self) -> None:
        """`run` that goes on."""
        known = len(self.agent.memory.steps)
        assert self.agent.run("go", reset=False) == "done"
        self.rows.add(encoded(self.agent.memory.steps[known:]))

    def close(self) -> None:
        """The file."""
        self.rows.close()


class Smolagents:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(Smolagents(), "smolagents")
