"""What each script of this folder measures, in the same way for all; only the standard library.

A script gives `main` an object with the methods of `Contestant`, and prints one JSON line per
figure: {"name", "item", "value"}. Each figure is the shortest of some rounds after one to warm up.
The scripted model answers at once; it numbers its calls, so that it knows where it is by the
last message alone and costs the same at any length of the history.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any, Protocol

TURNS = 50
DELTAS = 5_000
GROWN = (10, 5_000)  # messages of history before the first turn
GROWN_TURNS = 20
TOGETHER, CALLS, SLEEP = 100, 10, 0.020
ROUNDS = 40
MOST_SECONDS = 3.0  # what is so slow needs no more rounds

# Nothing may be sent to anybody, nor a key be asked for.
os.environ |= {"LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1"}

Call = Callable[[], Any]


class Contestant(Protocol):
    """One library. A call it gives is one fresh conversation, to be awaited if it is async."""

    def turns(self, turns: int) -> Call:
        """So many turns with one call of a trivial tool each, then an answer."""

    def grown(self, turns: int, history: int) -> Call:
        """The same, once, in a conversation that holds so many messages and is under way."""

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """An answer in `DELTAS` pieces, each given to `heard`."""

    def together(self) -> Call:
        """`CALLS` calls of a model that takes `SLEEP` seconds; async."""

    def idle(self) -> Any:
        """A new agent with one tool that has not run."""


def next_step(last_call_id: str | None) -> int:
    """The number of the call that comes; `last_call_id` is that of the last result, if any."""
    return int(last_call_id[1:]) + 1 if last_call_id else 0


def exchanges(size: int) -> Iterator[tuple[str, int]]:
    """The kinds of the messages of a history of that size, each with its exchange's number."""
    if size % 4:
        yield from (("user", 0), ("answer", 0))
    for n in range(1, size // 4 + 1):
        yield from (("user", n), ("call", n), ("result", n), ("answer", n))


def best(call: Call, rounds: int = ROUNDS) -> float:
    """The shortest of some rounds, in seconds, after one to warm up."""
    return best_of(lambda: call, rounds)


def best_of(prepare: Callable[[], Call], rounds: int = ROUNDS) -> float:
    """The same, of calls that are prepared each time; that is not timed."""
    times: list[float] = []
    with asyncio.Runner() as runner:
        while len(times) <= rounds and sum(times) < MOST_SECONDS:
            call = prepare()
            gc.collect()
            start = time.perf_counter()
            if inspect.iscoroutinefunction(call):
                runner.run(call())
            else:
                call()
            times.append(time.perf_counter() - start)
    return min(times[1:] or times)


def memory(make: Call, count: int = 200) -> float:
    """Bytes of one more of what `make` gives."""
    warm = [make() for _ in range(5)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [make() for _ in range(count)]
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del warm
    return (after - before) / len(kept)


def counted_deltas(contestant: Contestant) -> float:
    """Seconds for `DELTAS` deltas; fails if one was not heard."""
    heard = 0

    def hear(text: str) -> None:
        nonlocal heard
        heard += len(text)

    call = contestant.deltas(hear)
    seconds = best(call)
    heard = 0
    asyncio.run(call()) if inspect.iscoroutinefunction(call) else call()
    # Some tell the end of a text with another newline.
    assert 4 * DELTAS <= heard <= 4 * DELTAS + 2, heard
    return seconds


def main(name: str, contestant: Contestant, package: str | None = None) -> None:
    """Measure everything and print it."""

    def say(item: str, value: float | str) -> None:
        print(json.dumps({"name": name, "item": item, "value": value}), flush=True)

    async def crowd() -> None:
        await asyncio.gather(*[one() for _ in range(TOGETHER)])

    if package:
        say("version", version(package))
    say("turn", best(contestant.turns(TURNS)) / TURNS)
    say("delta", counted_deltas(contestant) / DELTAS)
    for size in GROWN:
        seconds = best_of(partial(contestant.grown, GROWN_TURNS, size))
        say(f"turn at {size}", seconds / GROWN_TURNS)
    one = contestant.together()
    say("together", best(crowd, rounds=5))
    say("idle", memory(contestant.idle))
    for item, value in getattr(contestant, "more", dict)().items():
        say(item, value)
