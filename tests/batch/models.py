"""Models that tests of maps ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import sagents_nb as sa


class Replying(sa.ChatModel):
    """Answers with what ``reply`` makes of the last message: text, a Message or an exception.

    ``asked`` holds the prompts, ``most`` how many were asked at the same time.
    """

    def __init__(
        self, reply: Callable[[str], Any] = str.upper, delay: float = 0.0, name: str = "replying"
    ) -> None:
        self.reply, self.delay, self.name = reply, delay, name
        self.asked: list[str] = []
        self.cancelled = 0
        self.most = self._now = 0

    async def stream(self, request: sa.ModelRequest) -> AsyncIterator[Any]:
        text = request.messages[-1].text
        self.asked.append(text)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(self.delay)
            reply = self.reply(text)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self._now -= 1
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            reply = sa.Message.assistant(reply, usage=sa.Usage(10, 5, cost_usd=0.01))
        yield reply


def replying(*args: Any, tools: Any = (), **options: Any) -> sa.Agent:
    """A bare agent with such a model."""
    return sa.Agent(Replying(*args, **options), tools=tools, replace_default_middleware=True)
