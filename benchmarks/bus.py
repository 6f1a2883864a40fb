"""What a message on the bus of a process takes, from publishing to the handler.

Time of the processor: one who publishes, one handler on the same loop, and messages of 200 bytes.
Beside it stands an asyncio.Queue with the same two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import sagents_nb as sa
from sagents_nb.bus import BusMessage

MESSAGES, ROUNDS, MOST = 50_000, 5, 12.0  # of a round; microseconds a message
DATA = b"x" * 200


async def by_bus() -> None:
    """All messages through the bus."""
    bus, heard, done = sa.LocalBus(), 0, asyncio.Event()

    def hear(message: BusMessage) -> None:
        nonlocal heard
        heard += 1
        if heard == MESSAGES:
            done.set()

    await bus.subscribe("tides.*", hear)
    for number in range(MESSAGES):
        await bus.publish("tides.bergen", DATA)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await done.wait()
    await bus.close()


async def by_queue() -> None:
    """The same through a queue."""
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear() -> None:
        for _ in range(MESSAGES):
            await queue.get()

    task = asyncio.create_task(hear())
    for number in range(MESSAGES):
        await queue.put(DATA)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await task


def least(work: Callable[[], Awaitable[None]]) -> float:
    """Microseconds a message, the least of some rounds."""
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        asyncio.run(work())  # type: ignore[arg-type]
        took.append(time.process_time() - began)
    return min(took) / MESSAGES * 1e6


def main() -> None:
    """Measure, and compare."""
    bus, queue = least(by_bus), least(by_queue)
    print(f"A message takes {bus:.1f} µs on LocalBus, and {queue:.1f} through an asyncio.Queue.\n")
    verdict = "met" if bus <= MOST else "MISSED"
    print(f"{verdict:>6}  ≤ {MOST:.0f} µs a message on LocalBus: {bus:.1f}")


if __name__ == "__main__":
    main()
