"""Search by words: SQLite's FTS5, ranked by BM25."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import kinds
from ..errors import ConfigurationError
from .words import query_words


class Hit(NamedTuple):
    """What was found: its ``id``, and a ``score`` that says how well it fits, the best first."""

    id: str
    score: float


class WordTable:
    """Texts by numbers, in fields that count more or less, in the table "texts" of a database.

    ``weights`` are those of the fields, by their names. Words are compared by their English stems.
    It is made where it is not there yet; transactions and locks are those of whoever has the
    ``connection``. Raises :class:`~sagents_nb.errors.ConfigurationError` where Python's SQLite has
    no FTS5.
    """

    def __init__(self, connection: sqlite3.Connection, weights: Mapping[str, float]) -> None:
        self._connection = connection
        self._fields = tuple(weights)
        names = ", ".join(weights)
        marks = ", ".join("?" * (len(weights) + 1))
        self._replace = f"REPLACE INTO texts (rowid, {names}) VALUES ({marks})"
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone():
            return
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE texts USING fts5({names}, tokenize='porter unicode61')"
            )
            rank = f"bm25({', '.join(str(float(weight)) for weight in weights.values())})"
            connection.execute("INSERT INTO texts (texts, rank) VALUES ('rank', ?)", (rank,))
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):
                raise
            raise ConfigurationError(
                f"Searching needs SQLite with FTS5, which this Python has not ({error}); use a "
                "Python of python.org, conda or uv."
            ) from None

    def put(self, texts: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Keep the texts of each number, by their fields, in the place of those it had."""
        rows = ((number, *(said.get(f, "") for f in self._fields)) for number, said in texts)
        self._connection.executemany(self._replace, rows)

    def search(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """What fits these ``words`` best, with scores; of equals the lowest number."""
        if not words:
            return []
        match = " OR ".join(map(_quoted, words))
        # By rank alone FTS5 sorts by itself; of equals the first row comes first.
        rows = self._connection.execute(
            "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?",
            (match, min(limit, kinds.MOST_ROWS)),
        )
        return rows.fetchall()

    def search_among(
        self, words: Sequence[str], limit: int, among: str, values: Sequence[Any]
    ) -> list[tuple[int, float]]:
        """:meth:`search` where words that many texts have count, too, as they do in Lucene.

        FTS5's own ranking is quicker, and counts nothing for what more than half of the texts have:
        of tools those are no words that tell one from another, of a few long texts they are.
        ``among`` is a condition of SQL on ``found.number``, with ``values`` for its marks.
        """
        execute = self._connection.execute
        [texts] = execute("SELECT count(*) FROM texts_docsize").fetchone()
        of_words: list[Any] = []
        for word in map(_quoted, words):
            [having] = execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (word,)).fetchone()
            if having:
                rarity = (texts - having + 0.5) / (having + 0.5)
                counted = math.log(rarity) if rarity > 1 else 0.0
                of_words += [math.log(1 + rarity) / (counted or 1e-6), word]
        # With a limit, since FTS5 ranks only where it is asked by itself.
        of_word = "SELECT * FROM (SELECT rowid AS number, -rank * ? AS score FROM texts "
        of_word += "WHERE texts MATCH ? LIMIT -1)"
        if not of_words:
            return []
        rows = execute(
            f"SELECT number, sum(score) AS score FROM "
            f"({' UNION ALL '.join([of_word] * (len(of_words) // 2))}) AS found WHERE {among} "
            "GROUP BY number ORDER BY score DESC, number LIMIT ?",
            (*of_words, *values, min(limit, kinds.MOST_ROWS)),
        )
        return rows.fetchall()


def _quoted(word: str) -> str:
    return f'"{word}"'


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
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []  # of the numbers from 1
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )
        self._table = WordTable(self._connection, weights)

    def put(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        """Keep the texts of each id, by their fields, in the place of those it had."""
        with self._lock:
            self._connection.execute("BEGIN")  # else each is a piece of its own to be searched
            for id in texts:
                if id not in self._numbers:
                    self._ids.append(id)
                    self._numbers[id] = len(self._ids)
            self._table.put((self._numbers[id], said) for id, said in texts.items())
            self._connection.execute("COMMIT")

    def search(self, query: str, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """What fits the words of ``query`` best, at most so many; of equals the first put."""
        with self._lock:
            rows = self._table.search(query_words(query), limit + len(without))
        hits = [Hit(self._ids[number - 1], score) for number, score in rows]
        return [hit for hit in hits if hit.id not in without][:limit]
