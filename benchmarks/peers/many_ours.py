"""What it takes to make an agent and a session, to open a long conversation, and to have many.

Each beside what it cannot do without: the same rows by Python's sqlite3, JSON, a plain loop. Times
are the processor's, in seconds, the least of rounds that take turns; but those of two hundred
sessions at once, which wait for the disk. Prints one JSON line per figure.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _measure

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa
from sagents_nb.events import TurnStart
from sagents_nb.session.event_log import EventLog
from sagents_nb.sql import driver_of
from sagents_nb.store import ConversationStore

LONG = 20_000  # messages
LISTENERS = 1_000
SESSIONS = 200
ROUNDS = 8
ROWS = "SELECT seq, kind, data, checksum FROM sagents_journal WHERE conversation_id = ?"


def look(where: str) -> str:
    """Look there."""
    return "nothing"


def agent() -> sa.Agent:
    numbers = itertools.count()

    def turn(request: sa.ModelRequest) -> Any:
        if request.messages[-1].role == "user":
            return sa.ToolCall(f"c{next(numbers)}", "look", {"where": "there"})
        return "It is fine."

    return sa.Agent(sa.ScriptedModel([turn] * 100_000, chunk=1000), tools=[look])


def least(works: dict[str, Callable[[], Any]], times: int) -> dict[str, float]:
    """The processor's seconds for each."""
    taken: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, work in works.items():
            gc.collect()
            began = time.process_time()
            for _ in range(times):
                work()
            taken[name] = min((time.process_time() - began) / times, taken.get(name, float("inf")))
    return taken


def raw(path: Path, store: ConversationStore) -> sqlite3.Connection:
    """A file with the tables of the store, and its pragmas."""
    connection = sqlite3.connect(path, isolation_level=None)
    with sqlite3.connect(store.database.name) as original:
        names = ("sagents_conversations", "sagents_leases", "sagents_journal")
        marks = ", ".join("?" * len(names))
        made = f"SELECT sql FROM sqlite_master WHERE tbl_name IN ({marks}) AND sql IS NOT NULL"
        for (text,) in original.execute(made, names):
            connection.execute(text)
    ask = "PRAGMA journal_mode"  # of its own connection: a file does not tell all modes
    (mode,) = store.database.run(lambda c: driver_of(c).execute(ask).fetchone())
    for pragma in (f"journal_mode={mode}", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def made(folder: Path) -> Iterator[tuple[str, float]]:
    """A stored session, and its rows by hand."""
    whose = agent()
    with contextlib.closing(ConversationStore(folder / "made.db")) as store:
        kept = [sa.Session(whose, store=store)]
        connection = raw(folder / "raw.db", store)
        rows: dict[str, Any] = {}
        with sqlite3.connect(store.database.name) as original:
            for table in ("conversations", "leases", "journal"):
                (rows[table],) = original.execute(f"SELECT * FROM sagents_{table}").fetchall()
        numbers = itertools.count()

        def by_hand() -> None:
            id = f"session-{next(numbers)}"
            connection.execute("BEGIN IMMEDIATE")
            for table, row in rows.items():
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO sagents_{table} VALUES ({marks})", (id, *row[1:]))
            connection.execute("COMMIT")

        def one() -> None:
            kept.append(sa.Session(whose, store=store))

        yield from least({"made": one, "made raw": by_hand}, 25).items()


def opened(folder: Path) -> Iterator[tuple[str, float]]:
    """A long conversation, and its rows selected and read as JSON."""
    whose = agent()
    turn = [
        sa.Message.user("what I would like to know " * 8),
        sa.Message.assistant("is this " * 25),
    ]
    state = sa.State().add_messages(turn * (LONG // 2))
    with contextlib.closing(ConversationStore(folder / "long.db")) as store:
        sa.Session(whose, store=store, id="long", state=state).close()

        def reopen() -> None:
            sa.Session.open("long", agent=whose, store=store).close()

        def read() -> None:
            with contextlib.closing(sqlite3.connect(store.database.name)) as connection:
                rows = connection.execute(ROWS, ("long",)).fetchall()
            [json.loads(data) for _, _, data, _ in rows]

        yield from least({"opened": reopen, "opened raw": read}, 1).items()


def told() -> Iterator[tuple[str, float]]:
    """An event to listeners, and a loop that calls them."""
    log = EventLog()
    listeners = [lambda event: None for _ in range(LISTENERS)]
    for listener in listeners:
        log.subscribe(listener)
    event = TurnStart(seq=1)

    def loop() -> None:
        for listener in listeners:
            listener(event)

    yield from least({"told": lambda: log.push(event), "told raw": loop}, 50).items()


def agents() -> Iterator[tuple[str, float]]:
    """Another agent with a tool."""
    model = sa.ScriptedModel([])

    def make() -> sa.Agent:
        return sa.Agent(model, tools=[look])

    yield from least({"agent": make}, 100).items()
    yield "bytes of an agent", _measure.memory(make)


def together(folder: Path) -> Iterator[tuple[str, float]]:
    """Two hundred sessions with a turn and a tool at once."""
    whose = agent()
    with contextlib.closing(ConversationStore(folder / "many.db")) as store:
        sessions = [sa.Session(whose, store=store) for _ in range(SESSIONS)]
        alone = least({"turn": lambda: sessions[0].send("go").result()}, 25)["turn"]

        async def wait(session: sa.Session) -> float:
            began = time.perf_counter()
            await session.send("go")
            return time.perf_counter() - began

        async def all_of_them() -> tuple[float, float]:
            began = time.perf_counter()
            waits = await asyncio.gather(*map(wait, sessions))
            rate = SESSIONS / (time.perf_counter() - began)
            return rate * alone, max(waits) / statistics.mean(waits)

        found = [asyncio.run(all_of_them()) for _ in range(ROUNDS)]
        yield "turns at once", max(rate for rate, _ in found)
        yield "longest wait", min(longest for _, longest in found)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = (agents(), told(), made(folder), opened(folder), together(folder))
        for item, value in itertools.chain(*parts):
            print(json.dumps({"name": "ours", "item": item, "value": value}), flush=True)


if __name__ == "__main__":
    main()
