"""chatlas, with a provider of our own. Its sync `chat` without a stream is its fastest way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import _measure
from _measure import CALLS, DELTAS, SLEEP, Call, exchanges, next_step
from chatlas import Chat
from chatlas._content import ContentText, ContentToolRequest, ContentToolResult
from chatlas._provider import Provider
from chatlas._turn import AssistantTurn, UserTurn


class Scripted(Provider):
    """Calls the tool some times, then answers."""

    def __init__(self, turns: int = 0, deltas: int = 0, sleep: float = 0.0) -> None:
        super().__init__(name="scripted", model="scripted")
        self.turns, self.pieces, self.sleep = turns, ["abcd"] * deltas, sleep

    def _step(self, turns: Any) -> int:
        last = turns[-1].contents[0]
        return next_step(last.request.id if isinstance(last, ContentToolResult) else None)

    def chat_perform(self, *, stream: bool, turns: Any, **_: Any) -> Any:
        """The number of the step; in a stream, after the pieces."""
        return iter([*self.pieces, self._step(turns)]) if stream else self._step(turns)

    async def chat_perform_async(self, *, stream: bool, turns: Any, **_: Any) -> Any:
        """The same, once it has slept."""
        if self.sleep:
            await asyncio.sleep(self.sleep)
        if not stream:
            return self._step(turns)

        async def pieces() -> Any:
            for piece in [*self.pieces, self._step(turns)]:
                yield piece

        return pieces()

    def stream_content(self, chunk: Any, completion: Any, turns: Any = ()) -> Any:
        """The text of a piece."""
        return [ContentText.model_construct(text=chunk)] if isinstance(chunk, str) else []

    def stream_merge_chunks(self, completion: Any, chunk: Any) -> Any:
        """The last piece is the step."""
        return chunk

    def value_turn(self, completion: Any, has_data_model: bool, turns: Any = ()) -> Any:
        """The turn of a step."""
        if completion < self.turns:
            return AssistantTurn([request(f"c{completion}", completion)], tokens=(1, 1, 0))
        return AssistantTurn([ContentText(text="done")], tokens=(1, 1, 0))

    stream_turn = value_turn

    def value_tokens(self, completion: Any) -> Any:
        """They are in the turn."""

    def token_count(self, *args: Any, **kwargs: Any) -> int:
        """Never asked."""
        return 0

    async def token_count_async(self, *args: Any, **kwargs: Any) -> int:
        """Never asked."""
        return 0

    def list_models(self) -> Any:
        """None."""
        return []

    def translate_model_params(self, params: Any) -> Any:
        """None."""
        return {}

    def supported_model_params(self) -> Any:
        """None."""
        return set()


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def async_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def request(id: str, n: int) -> ContentToolRequest:
    return ContentToolRequest(id=id, name="add", arguments={"a": n, "b": 1})


def turn(kind: str, n: int) -> Any:
    if kind == "user":
        return UserTurn(f"turn number {n}")
    if kind == "call":
        return AssistantTurn([request(f"h{n}", n)])
    if kind == "result":
        return UserTurn([ContentToolResult(value=n + 1, request=request(f"h{n}", n))])
    return AssistantTurn("done")


def chat(provider: Scripted, tool: Callable[..., Any] = add) -> Chat:
    made = Chat(provider=provider, system_prompt="Be brief.")
    made.register_tool(tool, name="add")
    return made


class Chatlas:
    """See `Contestant`."""

    def turns(self, turns: int) -> Call:
        """`Chat.chat`; a chat is a conversation, so it is made anew."""
        provider = Scripted(turns)

        def call() -> None:
            made = chat(provider)
            made.chat("go", echo="none", stream=False)
            assert len(made.get_turns()) == 2 * turns + 2

        return call

    def grown(self, turns: int, history: int) -> Call:
        """The same in a chat that is there."""
        made = chat(Scripted(turns))
        made.set_turns([turn(*item) for item in exchanges(history)])

        def call() -> None:
            made.chat("go", echo="none", stream=False)
            assert len(made.get_turns()) == history + 2 * turns + 2

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """`Chat.stream`."""
        provider = Scripted(deltas=DELTAS)

        def call() -> None:
            for text in chat(provider).stream("go"):
                heard(text)

        return call

    def together(self) -> Call:
        """`Chat.chat_async`."""
        provider = Scripted(CALLS - 1, sleep=SLEEP)

        async def call() -> None:
            reply = await chat(provider, async_add).chat_async("go", echo="none", stream=False)
            assert "done" in await reply.get_content()

        return call

    def idle(self) -> Any:
        """A chat."""
        return chat(PROVIDER)


PROVIDER = Scripted(1)

if __name__ == "__main__":
    _measure.main("chatlas", Chatlas(), "chatlas")
