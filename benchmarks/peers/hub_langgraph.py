"""The graph that langgraph's development server serves, with a scripted model."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph

sys.path.insert(0, str(Path(__file__).parent))

from _hub import pieces


class Scripted(BaseChatModel):
    """Says what `_hub` has it say."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        text = "".join(pieces(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _astream(
        self, messages: Any, *args: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in pieces(messages[-1].content):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))


async def speak(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await Scripted().ainvoke(state["messages"])]}


graph = (
    StateGraph(MessagesState)
    .add_node("speak", speak)
    .add_edge(START, "speak")
    .add_edge("speak", END)
    .compile()
)
