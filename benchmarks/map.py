"""What agent.map costs beside the model: 1,000 rows, 50 at a time, an answer after 20 ms.

The same model is asked by a plain asyncio.gather with a semaphore, without any agent. Then a
study of 100 rows and two models is run twice: once to record it, once from what was kept.

Usage: python benchmarks/map.py
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import sagents_nb as sa

ROWS, AT_ONCE, ANSWER = 1000, 50, 0.020
IDEAL = ROWS / AT_ONCE * ANSWER
GOAL, ROUNDS = 1.5, 5
REPLAY_GOAL = 10.0


class Slow(sa.ChatModel):
    """Answers after 20 ms."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0

    async def stream(self, request: sa.ModelRequest) -> AsyncIterator[Any]:
        """Wait, then answer."""
        self.asked += 1
        await asyncio.sleep(ANSWER)
        yield sa.Message.assistant("Yes.", usage=sa.Usage(100, 5, cost_usd=0.001))


def median(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gathered(model: Slow, prompts: list[str]) -> None:
    """The floor: no agent, no state, no frame."""

    async def all_of_them() -> list[str]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(prompt: str) -> str:
            async with room:
                request = sa.ModelRequest([sa.Message.user(prompt)])
                return "".join([item.text async for item in model.stream(request)])

        return await asyncio.gather(*(one(prompt) for prompt in prompts))

    asyncio.run(all_of_them())


def no_socket(*args: Any, **options: Any) -> Any:
    raise AssertionError("a socket was opened")


def study(folder: str, models: list[Slow]) -> None:
    for model in models:
        agent = sa.Agent(model)
        prompts = [f"Is {n} prime?" for n in range(100)]
        frame = agent.map(prompts, cache=f"{folder}/rows.jsonl", progress=False)
        assert (frame.status == "completed").all()


def main() -> None:
    """Measure and print."""
    prompts = [f"Is {n} prime?" for n in range(ROWS)]
    model = Slow("slow")
    agent = sa.Agent(model)
    agent.map(prompts[:5], progress=False)  # pandas is loaded
    floor = median(lambda: gathered(model, prompts))
    ours = median(lambda: agent.map(prompts, concurrency=AT_ONCE, progress=False))
    with tempfile.TemporaryDirectory() as folder:
        kept = f"{folder}/kept.jsonl"
        agent.map(prompts, concurrency=AT_ONCE, progress=False, cache=kept)
        again = median(lambda: agent.map(prompts, progress=False, cache=kept))
        models = [Slow("small"), Slow("large")]
        study(folder, models)
        for model in models:
            model.asked = 0
        real, socket.socket.connect = socket.socket.connect, no_socket
        start = time.perf_counter()
        study(folder, models)
        replayed = time.perf_counter() - start
        socket.socket.connect = real
        assert not any(model.asked for model in models)
    print(f"{'ideal':34}{IDEAL:8.3f} s")
    print(f"{'asyncio.gather with a semaphore':34}{floor:8.3f} s")
    print(f"{'agent.map':34}{ours:8.3f} s")
    print(f"{'agent.map, all rows kept':34}{again:8.3f} s")
    print(f"{'100 rows × 2 models, all kept':34}{replayed:8.3f} s")
    verdict = "met" if ours <= GOAL * IDEAL else "MISSED"
    print(f"{verdict:>6}  ≤ {GOAL} × the ideal: {ours / IDEAL:.2f}")
    verdict = "met" if replayed <= REPLAY_GOAL else "MISSED"
    print(f"{verdict:>6}  ≤ {REPLAY_GOAL:g} s for the study again, with no socket: {replayed:.3f}")


if __name__ == "__main__":
    main()
