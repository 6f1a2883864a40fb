"""What it costs to write down one message of a conversation; only the standard library.

The time is the median of ten messages, in the best of twenty rounds.

A script gives `main` an object with the methods of `Contestant`, and prints one JSON line per
figure: {"name", "item", "value"}. A message is 200 characters of a person. It is on the disk, as
far as the library sees to that, when `add` has returned.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

SIZES = (10, 100, 1_000, 10_000)  # messages that are there before
ROUNDS, AT_ONCE = 20, 10

os.environ |= {"LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1"}


class Conversation(Protocol):
    """One that holds some messages, in a file of its own."""

    def add(self, number: int) -> None:
        """Write down one message more."""


class Contestant(Protocol):
    """One way to keep conversations."""

    def begin(self, path: Path, messages: int) -> Conversation:
        """A conversation of so many messages, kept in the file."""


def text(number: int) -> str:
    return f"{number:06d} " + "what I would like to know is " * 6 + "this, please?...."


def written() -> int:
    """Bytes that this process has given to the system to write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def kept(path: Path) -> int:
    """Bytes of the file, with what is still in its write-ahead log."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def main(name: str, contestant: Contestant, package: str | None = None) -> None:
    """Measure everything and print it."""

    def say(item: str, value: float | str) -> None:
        print(json.dumps({"name": name, "item": item, "value": value}), flush=True)

    if package:
        say("version", version(package))
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder) / f"{size}.db" for size in SIZES}
        conversations = {size: contestant.begin(paths[size], size) for size in SIZES}
        times = dict.fromkeys(SIZES, float("inf"))
        bytes_written = dict.fromkeys(SIZES, 0)
        before = {}
        # The sizes take turns, so that a slow moment of the disk is one for all.
        for round in range(ROUNDS + 1):
            if round == 1:
                before = {size: kept(paths[size]) for size in SIZES}
            for size, conversation in conversations.items():
                taken = []
                for n in range(AT_ONCE):
                    number = size + round * AT_ONCE + n
                    begun, start = written(), time.perf_counter()
                    conversation.add(number)
                    taken.append(time.perf_counter() - start)
                    if round:
                        bytes_written[size] += written() - begun
                times[size] = min(times[size], statistics.median(taken))
        for size in SIZES:
            count = ROUNDS * AT_ONCE
            say(f"time at {size}", times[size])
            say(f"written at {size}", bytes_written[size] / count)
            say(f"kept at {size}", (kept(paths[size]) - before[size]) / count)
        for item, value in getattr(contestant, "more", lambda folder: {})(Path(folder)).items():
            say(item, value)
