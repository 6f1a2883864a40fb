"""Search by words: SQLite's FTS5, ranked by BM25."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..errors import ConfigurationError
from .words import query_words


class Hit(NamedTuple):
    """What was found: its ``id``, and a ``score`` that says how well it fits, the best first."""

    id: str
    score: float


# By rank alone FTS5 sorts by itself; of equals the first row comes first.
_SEARCH = "SELECT id, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"


class LexicalIndex:
    """Texts by ids, in fields that count more or less: ``weights``, by their names.

    Words are compared by their English stems. In memory; any thread may ask. Raises
    :class:`~sagents_nb.errors.ConfigurationError` where Python's SQLite has no FTS5.

    >>> index = LexicalIndex({"name": 2, "description": 1})
    >>> tides = {"name": "tides", "description": "When the tide is high in a port."}
    >>> cities = {"name": "cities", "description": "Cities and who lives there."}
    >>> index.put({"tides": tides, "cities": cities})
    >>> [hit.id for hit in index.search("high tides tomorrow", limit=5)]
    ['tides']
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._fields = tuple(weights)
        marks = ", ".join("?" * (len(weights) + 2))
        self._replace = f"REPLACE INTO texts (rowid, id, {', '.join(weights)}) VALUES ({marks})"
        self._numbers: dict[str, int] = {}  # of the rows: an id itself has no index
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )
        try:
            self._connection.execute(
                f"CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, {', '.join(weights)}, "
                "tokenize='porter unicode61')"
            )
            rank = f"bm25({', '.join(map(str, [0.0, *map(float, weights.values())]))})"
            self._connection.execute("INSERT INTO texts (texts, rank) VALUES ('rank', ?)", (rank,))
        except sqlite3.OperationalError as error:
            raise ConfigurationError(
                f"Searching needs SQLite with FTS5, which this Python has not ({error}); use a "
                "Python of python.org, conda or uv."
            ) from None

    def put(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        """Keep the texts of each id, by their fields, in the place of those it had."""
        with self._lock:
            self._connection.execute("BEGIN")  # else each is a piece of its own to be searched
            for id, said in texts.items():
                number = self._numbers.setdefault(id, len(self._numbers) + 1)
                row = [said.get(field, "") for field in self._fields]
                self._connection.execute(self._replace, (number, id, *row))
            self._connection.execute("COMMIT")

    def search(self, query: str, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """What fits the words of ``query`` best, at most so many; of equals the first put."""
        words = query_words(query)
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._connection.execute(_SEARCH, (match, limit + len(without))).fetchall()
        hits = [Hit(*row) for row in rows if row[0] not in without]
        return hits[:limit]
