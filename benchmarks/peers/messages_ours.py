"""A message that is stored, beside its row by sqlite3 alone, in files of the same mode.

With an SQLite whose WAL is safe the mode is WAL, and openai-agents' SQLiteSession is a third, if
it is there; with any other, it is that of a journal for rollback. They take turns in one process,
with one SQLite, and each commits with synchronous=FULL. Times are in seconds, of a message among
ten; both they and the ratios are medians of a hundred rounds, since a disk is quick or slow for
all of a round. Prints one JSON line per figure.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from _journal import AT_ONCE, Conversation
from journal_ours import Journaled

from sagents_nb.sql import driver_of

ROUNDS, BEFORE = 100, 100


class ByHand:
    """The row that the journal writes, into a table with the same columns and keys."""

    def __init__(self, path: Path, mode: str, journal: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        with sqlite3.connect(journal) as other:
            for table in ("sagents_conversations", "sagents_journal"):
                made = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL"
                for (text,) in other.execute(made, (table,)):
                    self.connection.execute(text)
                rows = other.execute(f"SELECT * FROM {table}").fetchall()
                marks = ", ".join("?" * len(rows[0]))
                self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        for pragma in (f"journal_mode={mode}", "synchronous=FULL", "foreign_keys=ON"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.row = rows[-1]
        self.insert = f"INSERT INTO sagents_journal VALUES ({marks})"

    def add(self, number: int) -> None:
        """One row in a transaction of its own."""
        conversation, _, *rest = self.row
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(self.insert, (conversation, number, *rest))
        self.connection.execute("COMMIT")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Journaled(folder / "ours.db", BEFORE)
        ask = "PRAGMA journal_mode"  # of its own connection: a file does not tell all modes
        (mode,) = ours.journal.database.run(lambda c: driver_of(c).execute(ask).fetchone())
        by_hand = ByHand(folder / "raw.db", mode, folder / "ours.db")
        contestants: dict[str, Conversation] = {"ours": ours, "by hand": by_hand}
        if mode == "wal" and importlib.util.find_spec("agents"):
            from journal_openai_agents import Remembered

            contestants["openai-agents"] = Remembered(folder / "remembered.db", BEFORE)
            with sqlite3.connect(folder / "remembered.db") as connection:  # as its own are
                assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        numbers = itertools.count(10**6)
        times: dict[str, list[float]] = {who: [] for who in contestants}
        for _ in range(ROUNDS):
            for who, conversation in contestants.items():
                taken = []
                for _ in range(AT_ONCE):
                    number = next(numbers)
                    began = time.perf_counter()
                    conversation.add(number)
                    taken.append(time.perf_counter() - began)
                times[who].append(statistics.median(taken))
    say: dict[str, float | str] = {"mode": mode, "sqlite": sqlite3.sqlite_version}
    for who, taken in times.items():
        say[who] = statistics.median(taken)
        if who != "ours":
            ratios = [one / other for one, other in zip(times["ours"], taken, strict=True)]
            say[f"ours to {who}"] = statistics.median(ratios)
    for item, value in say.items():
        print(json.dumps({"name": "ours", "item": item, "value": value}))


if __name__ == "__main__":
    main()
