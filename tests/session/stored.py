"""Sessions in a store, and the store as a crash at this moment would leave it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from sagents_nb.store.folding import Folded, JournalRow, fold
from tests.talking import PATIENCE, agent_of

ID = "c1"


class Disk:
    """A directory of databases; ``stores`` are closed at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stores: list[ConversationStore] = []
        self._numbers = itertools.count(1)

    def store(self, path: Path | None = None) -> ConversationStore:
        """A store of its own, or on that file."""
        store = ConversationStore(path or self.directory / f"{next(self._numbers)}.db")
        self.stores.append(store)
        return store

    def snapshot(self, store: ConversationStore) -> Path:
        """A copy of what is committed in it now."""
        path = self.directory / f"{next(self._numbers)}.db"
        with (
            contextlib.closing(sqlite3.connect(store.database.name, timeout=PATIENCE)) as source,
            contextlib.closing(sqlite3.connect(path)) as copy,
        ):
            source.backup(copy)
        return path

    def crashed(self, session: sa.Session, *turns: Any, **options: Any) -> sa.Session:
        """The session as it is opened after its process died at this moment.

        ``turns`` and ``options`` are those of the new agent, unless ``agent`` is given.
        """
        store = self.store(self.snapshot(self.stores[0]))
        agent = options.pop("agent", None) or agent_of(*turns, **options)
        return sa.Session.open(session.id, agent=agent, store=store, take_over=True)


@contextlib.contextmanager
def disk() -> Iterator[Disk]:
    """In memory where the system has such files: a disk would take most of the time."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sagents-", dir=place) as directory:
        made = Disk(Path(directory))
        try:
            yield made
        finally:
            for store in made.stores:
                store.close()


def rows_of(path: str | Path) -> list[JournalRow]:
    """The rows of the only journal in that file."""
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as database:
        found = database.execute("SELECT seq, kind, data FROM sagents_journal ORDER BY seq")
        return [(seq, kind, json.loads(data)) for seq, kind, data in found]


def folded(store: ConversationStore) -> Folded:
    """What is in it by now."""
    return fold(rows_of(store.database.name))
