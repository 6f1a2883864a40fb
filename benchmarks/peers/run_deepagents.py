"""deepagents, with a chat model of our own. Its sync `invoke` is its fastest way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import _measure
from _measure import CALLS, DELTAS, SLEEP, Call, exchanges, next_step
from deepagents import create_deep_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
LIMIT = {"recursion_limit": 10_000}


class Scripted(BaseChatModel):
    """Calls the tool some times, then answers."""

    turns: int = 0
    sleep: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Nothing to tell it."""
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        step = next_step(last.tool_call_id if isinstance(last, ToolMessage) else None)
        if step < self.turns:
            message = ai(f"c{step}", step)
        else:
            message = AIMessage(content="done", usage_metadata=USAGE)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if self.sleep:
            await asyncio.sleep(self.sleep)
        return self._generate(messages)


class Streaming(Scripted):
    """Answers in pieces."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        for _n in range(DELTAS):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content="abcd"))
            if run_manager:
                run_manager.on_llm_new_token("abcd", chunk=chunk)
            yield chunk


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ai(id: str, n: int) -> AIMessage:
    call = {"name": "add", "args": {"a": n, "b": 1}, "id": id, "type": "tool_call"}
    return AIMessage(content="", usage_metadata=USAGE, tool_calls=[call])


def message(kind: str, n: int) -> Any:
    if kind == "user":
        return HumanMessage(f"turn number {n}")
    if kind == "call":
        return ai(f"h{n}", n)
    if kind == "result":
        return ToolMessage(str(n + 1), name="add", tool_call_id=f"h{n}")
    return AIMessage("done")


def agent(model: Scripted) -> Any:
    return create_deep_agent(model=model, tools=[add], system_prompt="Be brief.")


class DeepAgents:
    """See `Contestant`."""

    def turns(self, turns: int) -> Call:
        """`invoke`."""
        return self.grown(turns, 0)

    def grown(self, turns: int, history: int) -> Call:
        """`invoke`, which is given the whole history each time."""
        prior = [message(*item) for item in exchanges(history)]
        made = agent(Scripted(turns=turns))

        def call() -> None:
            state = made.invoke({"messages": [*prior, HumanMessage("go")]}, LIMIT)
            assert state["messages"][-1].content == "done"
            assert len(state["messages"]) == len(prior) + 2 * turns + 2

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """`stream` of messages."""
        made = agent(Streaming())

        def call() -> None:
            asked = {"messages": [HumanMessage("go")]}
            for piece, _ in made.stream(asked, LIMIT, stream_mode="messages"):
                if piece.content:
                    heard(piece.content)

        return call

    def together(self) -> Call:
        """`ainvoke`."""
        made = agent(Scripted(turns=CALLS - 1, sleep=SLEEP))

        async def call() -> None:
            state = await made.ainvoke({"messages": [HumanMessage("go")]}, LIMIT)
            assert state["messages"][-1].content == "done"

        return call

    def idle(self) -> Any:
        """An agent."""
        return agent(MODEL)


MODEL = Scripted(turns=1)

if __name__ == "__main__":
    _measure.main("deepagents", DeepAgents(), "deepagents")
