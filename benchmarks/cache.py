"""What a recorded answer costs: finding it, streaming it, and the key of a request.

The budget of a hit is 1 ms, for a conversation of 100 messages; beside it the same with a
history that is ten times as long.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.models.cache import asked

BUDGET_MS = 1.0
ANSWER = "A sentence of the answer. " * 40  # 1 kB


def request(messages: int) -> ModelRequest:
    """A conversation of that many messages of half a kilobyte each."""
    history = [
        sa.Message.user("A question. " * 40)
        if i % 2 == 0
        else sa.Message.assistant("An answer. " * 45)
        for i in range(messages)
    ]
    return ModelRequest(history, "You answer.", (), {"max_tokens": 1000}, "scripted")


def best(action: Callable[[], Any], times: int = 200) -> float:
    """The median of its times in milliseconds."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        spent.append((time.perf_counter() - began) * 1000)
    return sorted(spent)[times // 2]


def measure(folder: Path, messages: int) -> None:
    """Print the costs for a history of that length."""
    model = sa.ScriptedModel([ANSWER], chunk=20)
    what = request(messages)
    cache = sa.ResponseCache(folder / f"cache-{messages}")
    tape = folder / f"{messages}.json"

    async def stream(recorded: sa.RecordedModel) -> None:
        items: Any = recorded.stream(what)
        async with aclosing(items):
            async for _ in items:
                pass

    async def replays(place: Any, times: int = 200) -> float:
        recorded = sa.RecordedModel(sa.ScriptedModel([]), place, "replay")
        began = time.perf_counter()
        for _ in range(times):
            await stream(recorded)
        return (time.perf_counter() - began) * 1000 / times

    for place in (cache, tape):
        asyncio.run(stream(sa.RecordedModel(sa.ScriptedModel([ANSWER], chunk=20), place)))
    key = asked(model, what).key
    print(f"history of {messages} messages")
    print(f"  key of the request   {best(lambda: asked(model, what)):7.3f} ms")
    print(f"  hit of the cache     {best(lambda: cache.get(key)):7.3f} ms")
    for name, place in (("cache", cache), ("cassette", tape)):
        took = asyncio.run(replays(place))
        print(f"  replay from a {name:8} {took:6.3f} ms, key, thread and 52 pieces included")


if __name__ == "__main__":
    print(f"A hit may cost {BUDGET_MS} ms.")
    with tempfile.TemporaryDirectory() as folder:
        for count in (10, 100, 1_000):
            measure(Path(folder), count)
