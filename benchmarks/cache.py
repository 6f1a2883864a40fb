"""What a recorded answer costs: finding it, streaming it, the key of a request, and its place.

The budget of a hit is 1 ms, for a conversation of 100 messages; beside it the same with a
history that is ten times as long. A ratio compares with the least that it could cost, its floor,
measured beside it: to encode a request, to hash it, and to get a row from the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import diskcache
import msgspec

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.models.cache import Asked, Cassette, Recording, asked
from sagents_nb.models.cache.disk import StrictDisk
from sagents_nb.models.cache.recording import recording_of

BUDGET_RATIO = 3.0  # of key and hit to their floor, at 1,000 messages
BUDGET_MB = 2.0  # of 200 turns of a kilobyte
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
    """The least of its times in milliseconds: a machine that is busy makes it no less."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        spent.append((time.perf_counter() - began) * 1000)
    return min(spent)


def measure(folder: Path, messages: int) -> None:
    """Print the costs for a history of that length."""
    model = sa.ScriptedModel([ANSWER], chunk=20)
    what = request(messages)
    cache = sa.ResponseCache(folder / f"cache-{messages}")
    tape = folder / f"{messages}.json"

    async def replays(place: Any, times: int = 200) -> float:
        recorded = sa.RecordedModel(sa.ScriptedModel([]), place, "replay")
        began = time.perf_counter()
        for _ in range(times):
            await streamed(recorded, what)
        return (time.perf_counter() - began) * 1000 / times

    began = time.perf_counter()
    key = asked(model, what).key
    first = (time.perf_counter() - began) * 1000
    for place in (cache, tape):
        asyncio.run(streamed(sa.RecordedModel(sa.ScriptedModel([ANSWER], chunk=20), place), what))
    rows = diskcache.Cache(str(folder / f"rows-{messages}"), disk=StrictDisk)
    rows["key"] = ANSWER
    floor = least(what) + best(lambda: rows["key"])
    costs = best(lambda: asked(model, what)) + best(lambda: cache.get(key))
    print(f"history of {messages} messages")
    print(
        f"  key of the request   {best(lambda: asked(model, what)):7.3f} ms, {first:.3f} at first"
    )
    print(f"  hit of the cache     {best(lambda: cache.get(key)):7.3f} ms")
    print(f"  key and hit          {costs / floor:7.1f} × their floor of {floor:.3f} ms")
    if messages == 1_000:
        told = f"× the floor, key and hit at 1,000 messages: {costs / floor:.1f}"
        print(f"{'met' if costs <= BUDGET_RATIO * floor else 'MISSED':>6}  ≤ {BUDGET_RATIO} {told}")
    for name, place in (("cache", cache), ("cassette", tape)):
        took = asyncio.run(replays(place))
        print(f"  replay from a {name:8} {took:6.3f} ms, key, thread and 52 pieces included")


async def streamed(recorded: sa.RecordedModel, what: ModelRequest) -> None:
    """Take an answer in."""
    items: Any = recorded.stream(what)
    async with aclosing(items):
        async for _ in items:
            pass


def least(what: ModelRequest) -> float:
    """The milliseconds to encode a request and to hash that."""
    text = msgspec.json.encode(what, order="sorted")
    encode = best(lambda: msgspec.json.encode(what, order="sorted"))
    return encode + best(lambda: hashlib.sha256(text).hexdigest())


def conversation(turns: int) -> Iterator[tuple[ModelRequest, Asked, Recording]]:
    """Each request of a conversation of a kilobyte a turn, with its answer."""
    model = sa.ScriptedModel([])
    history: list[sa.Message] = []
    for turn in range(100, 100 + turns):
        history.append(sa.Message.user(f"{turn} " + "A question. " * 40))
        answer = sa.Message.assistant(f"{turn} " + "An answer. " * 45)
        what = ModelRequest(list(history), "You answer.", (), {"max_tokens": 1000}, "scripted")
        key = asked(model, what)
        yield what, key, recording_of(key, answer, "t20*25")
        history.append(answer)


def measure_conversation(folder: Path, turns: int) -> None:
    """Print what a conversation of that many turns takes, and what its replay costs a turn."""
    cache = sa.ResponseCache(folder / f"turns-{turns}")
    tape = Cassette(folder / f"turns-{turns}.json")
    requests: list[ModelRequest] = []
    sizes = [0]
    for what, _, recording in conversation(turns):
        cache.put(recording)
        tape.put(recording)
        requests.append(what)
        sizes.append(tape.path.stat().st_size)
    kept = sum(file.stat().st_size for file in cache.path.iterdir()) / 1e6
    added = [after - before for before, after in itertools.pairwise(sizes)]

    async def replay() -> float:
        recorded = sa.RecordedModel(sa.ScriptedModel([]), tape, "replay")
        began = time.perf_counter()
        for what in requests:
            await streamed(recorded, what)
        return (time.perf_counter() - began) * 1000 / turns

    took = min(asyncio.run(replay()) for _ in range(5))
    floor = sum(map(least, requests[:: turns // 10])) / 10
    model = sa.ScriptedModel([])
    keys = [asked(model, what).key for what in requests]
    key = best(lambda: [asked(model, what) for what in requests], 5) / turns
    found = best(lambda: [tape.get(key) for key in keys], 20) / turns
    print(f"conversation of {turns} turns of a kilobyte")
    print(f"  place in a cache     {kept:7.2f} MB, SQLite's log included")
    if turns == 200:
        told = f"MB in a cache, 200 turns of a kilobyte: {kept:.2f} MB"
        print(f"{'met' if kept <= BUDGET_MB else 'MISSED':>6}  ≤ {BUDGET_MB} {told}")
    print(
        f"  added to a cassette  {added[1]:7} bytes for the second answer, {added[-1]} for the last"
    )
    print(f"  hit of a cassette    {found:7.3f} ms")
    ratio = f"{took / floor:.1f} × a floor of {floor:.3f} ms"
    print(f"  replay of a cassette {took:7.3f} ms a turn, {ratio}")
    print(f"    of it for the key  {key:7.3f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for count in (10, 100, 1_000):
            measure(Path(folder), count)
        for count in (50, 200):
            measure_conversation(Path(folder), count)
