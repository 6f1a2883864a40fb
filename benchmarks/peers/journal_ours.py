"""sagents_nb's journal; with the argument "whole", the whole state at each message instead."""

from __future__ import annotations

import sys
import time
from concurrent.futures import wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import _journal

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa
from sagents_nb.serialization import to_data
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal

TOGETHER = 100


def begin(path: Path, *names: str) -> Database:
    database = Database(f"sqlite:///{path}")
    table, now = database.tables.conversations, datetime.now(UTC)
    row = {"owner": "", "metadata": {}, "created_at": now, "updated_at": now}
    rows = [{"id": name, **row} for name in names or ("c",)]
    database.run(lambda connection: connection.execute(table.insert(), rows))
    return database


def entry(number: int) -> Entry:
    message = sa.Message.user(_journal.text(number))
    return Entry("message", {**to_data(message), "n": number})


class Journaled:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.journal, _, _ = Journal.open(begin(path), "c")
        self.journal.append([entry(n) for n in range(messages)]).result()

    def add(self, number: int) -> None:
        """One row."""
        self.journal.append([entry(number)]).result()


class Whole:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.database = begin(path)
        said = [sa.Message.user(_journal.text(n)) for n in range(messages)]
        self.state = sa.State(messages=said)
        table = self.database.tables.agent_states
        row = {"conversation_id": "c", "data": {}, "updated_at": datetime.now(UTC)}
        self.database.run(lambda connection: connection.execute(table.insert(), row))

    def add(self, number: int) -> None:
        """The state as it is now, in the place of the one before."""
        self.state = self.state.add_message(sa.Message.user(_journal.text(number)))
        table = self.database.tables.agent_states
        row: dict[str, Any] = {"data": self.state.export(), "updated_at": datetime.now(UTC)}
        self.database.run(lambda connection: connection.execute(table.update().values(**row)))


class Journals:
    """See `Contestant`."""

    begin = Journaled

    def more(self, folder: Path) -> dict[str, float]:
        """A hundred conversations that write at once, or one after the other, and the caller."""
        names = [f"c{n}" for n in range(TOGETHER)]
        database = begin(folder / "together.db", *names)
        journals = [Journal.open(database, name)[0] for name in names]
        at_once, in_turn, calls = [], [], []
        for _ in range(10):
            start = time.perf_counter()
            futures = [journal.append([entry(0)]) for journal in journals]
            calls.append((time.perf_counter() - start) / TOGETHER)
            wait(futures)
            at_once.append(time.perf_counter() - start)
            start = time.perf_counter()
            for journal in journals:
                journal.append([entry(0)]).result()
            in_turn.append(time.perf_counter() - start)
        return {"at once": min(at_once), "in turn": min(in_turn), "call": min(calls)}


class Wholes:
    """See `Contestant`."""

    begin = Whole


if __name__ == "__main__":
    if "whole" in sys.argv:
        _journal.main("whole state", Wholes())
    else:
        _journal.main("ours", Journals())
