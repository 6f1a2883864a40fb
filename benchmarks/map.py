"""What agent.map costs beside the model: 1,000 rows, 50 at a time, an answer after 20 ms.

The same model is asked by a plain asyncio.gather with a semaphore, without any agent. Then one
that answers at once, for the processor's time of a row, and 10,000 rows that were kept, beside
json.loads of their lines. Last a study of 100 rows and two models is run twice: once to record it,
once from what was kept.

Usage: python benchmarks/map.py
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
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
ROW_GOAL, KEPT_GOAL = 5.0, 1.5


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


class Quick(sa.ChatModel):
    """Answers at once."""

    name = "quick"

    async def stream(self, request: sa.ModelRequest) -> AsyncIterator[Any]:
        """Answer."""
        yield sa.Message.assistant("Yes.", usage=sa.Usage(100, 5, cost_usd=0.001))


def processor(*works: Callable[[], Any]) -> list[float]:
    """Seconds of the processor for each, the least of some rounds in which they take turns."""

    def spent(work: Callable[[], Any]) -> float:
        gc.collect()
        began = time.process_time()
        work()
        return time.process_time() - began

    rounds = [[spent(work) for work in works] for _ in range(ROUNDS + 2)]
    return [min(times) for times in zip(*rounds, strict=True)]


def median(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gathered(model: sa.ChatModel, prompts: list[str]) -> None:
    """The floor: no agent, no state, no frame."""

    async def all_of_them() -> list[str]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(prompt: str) -> str:
            async with room:
                request = sa.ModelRequest([sa.Message.user(prompt)])
                return "".join([item.text async for item in model.stream(request)])

        return await asyncio.gather(*(one(prompt) for prompt in prompts))

    asyncio.run(all_of_them())


def measure_rows(folder: str) -> None:
    """Print what the processor has to do for a row, and for one that was kept."""
    prompts = [f"Is {n} prime?" for n in range(2 * ROWS)]
    model = Quick()
    agent = sa.Agent(model)
    files = (f"{folder}/{n}.jsonl" for n in itertools.count())
    floor, ours, kept = processor(
        lambda: gathered(model, prompts),
        lambda: agent.map(prompts, concurrency=AT_ONCE, progress=False),
        lambda: agent.map(prompts, concurrency=AT_ONCE, progress=False, cache=next(files)),
    )
    for name, seconds in (("gather", floor), ("agent.map", ours), ("agent.map, kept", kept)):
        micros = seconds / len(prompts) * 1e6
        print(f"{'a row of ' + name:34}{micros:8.1f} µs of the processor")
    verdict = "met" if ours <= ROW_GOAL * floor else "MISSED"
    print(f"{verdict:>6}  ≤ {ROW_GOAL:g} × gather: {ours / floor:.1f}")
    prompts = [f"Is {n} prime?" for n in range(10 * ROWS)]
    path = Path(folder) / "many.jsonl"
    agent.map(prompts, concurrency=AT_ONCE, progress=False, cache=path)
    floor, ours = processor(
        lambda: [json.loads(line) for line in path.read_bytes().splitlines()],
        lambda: agent.map(prompts, progress=False, cache=path),
    )
    print(f"{'json.loads of 10,000 rows':34}{floor:8.3f} s of the processor")
    print(f"{'agent.map, 10,000 rows kept':34}{ours:8.3f} s of the processor")
    verdict = "met" if ours <= KEPT_GOAL * floor else "MISSED"
    print(f"{verdict:>6}  ≤ {KEPT_GOAL:g} × json.loads: {ours / floor:.2f}")


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
        measure_rows(folder)
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
