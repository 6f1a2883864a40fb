"""What a turn of a user costs whose conversation is kept; only the standard library.

A script gives `main` an object with the methods of `Contestant`, and then does what it reads: after
"begin 12 PATH" it has a conversation of twelve messages, the last two of which were a turn already,
in files that begin with that path; after "turns 12 3" it has made three turns in it and prints
what each took, in seconds: {"wall": [...], "cpu": [...]}. A turn is a message and the answer of a
scripted model, which comes at once, and has ended when both are kept as the library keeps them.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import sqlite3
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from _syncs import told


class Conversation(Protocol):
    """One that is kept."""

    def turn(self) -> Any:
        """A message and its answer; may be async."""

    def close(self) -> Any:
        """Let go of its files."""


class Contestant(Protocol):
    """One way to keep conversations."""

    def begin(self, path: Path, messages: int) -> Any:
        """A `Conversation` of so many messages; may be async."""


class Rows:
    """What users of a library without a store write: a row of JSON per turn, on the disk.

    A transaction each, in the mode that takes a disk the least.
    """

    def __init__(self, path: Path, messages: Iterable[str]) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE TABLE turns (id INTEGER PRIMARY KEY, messages TEXT)")
        self.connection.execute("BEGIN")
        for message in messages:
            self.add(message)
        self.connection.execute("COMMIT")

    def add(self, messages: str) -> None:
        """One row."""
        self.connection.execute("INSERT INTO turns (messages) VALUES (?)", (messages,))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


async def turns(conversation: Conversation, times: int) -> dict[str, list[float]]:
    """What each of some turns takes."""
    taken: dict[str, list[float]] = {"wall": [], "cpu": []}
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        ended = conversation.turn()
        if inspect.isawaitable(ended):
            await ended
        taken["cpu"].append(time.process_time() - cpu)
        taken["wall"].append(time.perf_counter() - wall)
    return taken


async def begun(contestant: Contestant, path: Path, messages: int) -> Conversation:
    """A conversation of so many messages that is under way."""
    made = contestant.begin(path, messages - 2)
    conversation: Conversation = await made if inspect.isawaitable(made) else made
    await turns(conversation, 1)
    return conversation


def main(contestant: Contestant, package: str | None = None) -> None:
    """Do what is asked, until nothing more is."""

    def say(told: Any) -> None:
        print(json.dumps(told), flush=True)

    conversations: dict[int, Conversation] = {}
    with asyncio.Runner() as runner:
        say({"version": version(package) if package else ""})
        for line in sys.stdin:
            what, size, value = line.rstrip("\n").split(" ", 2)
            messages = int(size)
            gc.collect()
            if what == "begin":
                if messages in conversations:
                    conversations.pop(messages).close()
                conversations[messages] = runner.run(begun(contestant, Path(value), messages))
                say({})
            else:
                with told(what):
                    taken = runner.run(turns(conversations[messages], int(value)))
                say(taken)
        for conversation in conversations.values():
            conversation.close()
