"""What a turn in a store takes of the processor, beside what it cannot do without.

That is the same turn in memory, and the rows that it writes, given to SQLite by hand in as many
transactions. Prints one JSON line per figure.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa
from sagents_nb.store import ConversationStore

TURNS, ROUNDS = 100, 5


@sa.tool
def look(where: str) -> str:
    """Look there."""
    return "nothing"


def agent(with_tool: bool) -> sa.Agent:
    numbers = itertools.count()

    def turn(request: sa.ModelRequest) -> Any:
        if with_tool and request.messages[-1].role == "user":
            return sa.ToolCall(f"c{next(numbers)}", "look", {"where": "there"})
        return "It is fine."

    script = [turn] * ((TURNS + 1) * (ROUNDS + 1) * 2)
    return sa.Agent(sa.ScriptedModel(script, chunk=1000), tools=[look])


def least(work: Callable[[], Any]) -> float:
    """The processor's seconds for one of `TURNS` turns."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(TURNS):
            work()
        times.append((time.process_time() - began) / TURNS)
    return min(times)


def rows_of_one_turn(path: Path, turn: Callable[[], Any]) -> list[tuple[list[Any], list[Any]]]:
    """What one turn writes: the rows of the journal and of the transcript, by transaction."""

    def newest(table: str, at: str) -> list[Any]:
        with sqlite3.connect(path) as connection:
            found = connection.execute(f"SELECT * FROM {table} WHERE rowid > ?", (known[table],))
            times = [column[0] for column in found.description].index(at)
            groups = itertools.groupby(found.fetchall(), lambda row: row[times])
            return [list(rows) for _, rows in groups]

    known = {}
    with sqlite3.connect(path) as connection:
        for table in ("sagents_journal", "sagents_display_messages"):
            known[table] = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
    turn()
    time.sleep(1.5)  # what rides along later is there too
    journal = newest("sagents_journal", "at")
    shown = newest("sagents_display_messages", "inserted_at")
    return list(itertools.zip_longest(journal, shown, fillvalue=[]))


def by_hand(path: Path, transactions: list[tuple[list[Any], list[Any]]]) -> Callable[[], None]:
    """A turn that writes such rows, and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=PERSIST")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    numbers = itertools.count(10**6)
    went_on = "UPDATE sagents_conversations SET updated_at = ?"

    def turn() -> None:
        for journal, shown in transactions:
            connection.execute("BEGIN IMMEDIATE")
            for table, rows, number in (
                ("sagents_journal", journal, 1),
                ("sagents_display_messages", shown, 0),
            ):
                places = ", ".join("?" * len(rows[0])) if rows else ""
                for row in rows:
                    new = [*row[:number], next(numbers), *row[number + 1 :]]
                    connection.execute(f"INSERT INTO {table} VALUES ({places})", new)
            connection.execute(went_on, (f"2026-01-01 00:00:00.{next(numbers)}",))
            connection.execute("COMMIT")

    return turn


def turns_of(session: sa.Session) -> Callable[[], Any]:
    """A turn of the session, which has had one."""
    session.send("go").result()
    return lambda: session.send("go").result()


def main() -> None:
    """Measure and print."""
    for kind in ("plain", "tool"):
        turn = turns_of(sa.Session(agent(kind == "tool")))
        memory = least(turn)
        with tempfile.TemporaryDirectory() as folder:
            path, copy = Path(folder, "store.db"), Path(folder, "copy.db")
            with contextlib.closing(ConversationStore(path)) as store:
                turn = turns_of(sa.Session(agent(kind == "tool"), store=store))
                rows = rows_of_one_turn(path, turn)
                shutil.copy(path, copy)
                stored = least(turn)
            raw = least(by_hand(copy, rows))
        for item, value in (("stored", stored), ("memory", memory), ("by hand", raw)):
            print(json.dumps({"name": "ours", "item": f"{kind} {item}", "value": value}))
        number = len(rows)
        print(json.dumps({"name": "ours", "item": f"{kind} transactions", "value": number}))


if __name__ == "__main__":
    main()
