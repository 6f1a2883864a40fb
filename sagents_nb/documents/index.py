"""An index of documents: what is in them is found by words, and by meaning if one wants."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from .. import kinds
from ..citations import Location
from ..errors import ConfigurationError, DocumentError, NotFound, StoreError, pass_on
from ..files import VirtualFilesystem
from ..scope import owner_of
from ..search.lexical import Hit, WordTable
from ..search.vectors import Embedder, embedded, fused, nearest
from ..search.words import FUNCTION_WORDS, query_words
from ..serialization import escaped, to_data
from ..text import logger_of, said_by, whole
from .loading import MOST_TEXT, Chunk, Document, plain
from .sources import documents_of

logger = logger_of(__name__)

VERSION = 1  # of the file; another one's is made anew from the documents

_TABLES = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (owner, id)
);
CREATE TABLE attributes (
    document INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (document, name)
) WITHOUT ROWID;
CREATE TABLE passages (
    number INTEGER PRIMARY KEY, document INTEGER NOT NULL, location TEXT NOT NULL, vector BLOB
);
CREATE INDEX passages_of_document ON passages (document);
CREATE INDEX passages_without_vector ON passages (number) WHERE vector IS NULL;
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB);
"""
# Headings say what a passage is about, and so count for more than its own words.
_WEIGHTS = {"heading": 1.5, "text": 1}
_AT_ONCE = 200  # documents that are written, and texts that are embedded, together
_FURTHER = 50  # of each ranking, where two are made one
_PROBE = "The tide is high at six in the morning, and again in the evening."
_ALIKE = 1e-2  # how far two vectors of the probe may be apart that one embedder gave


class Passage(msgspec.Struct, metaclass=kinds.Record, frozen=True):
    """A passage that was found: its ``text`` as it stands at ``location``.

    ``heading`` is what it stands below, ``metadata`` that of its document, and ``score`` how well
    it fits: 1 is the best that was found.

    >>> from sagents_nb import DocumentIndex
    >>> index = DocumentIndex()
    >>> _ = index.add({"tides": "High tide in Bergen is at six."})
    >>> str(index.search("When is high tide?")[0].location)
    'tides:1'
    """

    text: str
    location: Location
    heading: str = ""
    score: float = 1.0
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    def __str__(self) -> str:
        return f"{self.location}\n{self.text}"


class Added(msgspec.Struct, frozen=True):
    """What became of documents: how many were ``added``, ``replaced``, or are ``unchanged``.

    ``refused`` says, by its name, why a file that fits a pattern is none.

    >>> from sagents_nb import DocumentIndex
    >>> DocumentIndex().add({"tides": "High tide in Bergen is at six."})
    1 added, 0 replaced, 0 unchanged
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    refused: dict[str, str] = {}

    def __repr__(self) -> str:
        told = f"{self.added:,} added, {self.replaced:,} replaced, {self.unchanged:,} unchanged"
        if not self.refused:
            return told
        return "\n".join([f"{told}, {len(self.refused):,} refused:", *self.refused.values()])


class DocumentIndex:
    r"""Documents to be searched: text, Markdown, notebooks, PDF, tables, data frames.

    It is kept in the SQLite file ``path``, or in memory without one. Words are compared by their
    English stems; ``embedder``, a function that gives a vector for each of some texts, finds what
    says it in other words or in another language. An index with the vectors of another embedder
    has them made anew where they are next needed, and says so in the log. Any thread may use it.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a file that is no such index, and all
    of it :class:`~sagents_nb.errors.StoreError` once it is closed, and where the file cannot be
    read or written.

    >>> from sagents_nb import DocumentIndex
    >>> index = DocumentIndex()
    >>> index.add({"notes/bergen": "# Bergen\n\nHigh tide is at six.\n\n# Oslo\n\nNo tide."})
    1 added, 0 replaced, 0 unchanged
    >>> [str(passage.location) for passage in index.search("tide in Bergen")]
    ['notes/bergen:1-3', 'notes/bergen:5-7']
    """

    @kinds.checked(
        path=kinds.or_none(kinds.PATH, "for one in memory"),
        embedder=kinds.or_none(kinds.Kind("a function of texts", callable)),
    )
    def __init__(
        self, path: str | os.PathLike[str] | None = None, embedder: Embedder | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self.embedder = embedder
        self._lock = threading.RLock()
        self._closed = False
        self._probe: Any = None  # what the embedder makes of one text
        self._vectors: tuple[Any, Sequence[int], Any] | None = None  # since when; of which; they
        self._changes = 0
        where = ":memory:" if self.path is None else str(self.path)
        try:
            self._connection = sqlite3.connect(
                where, timeout=60, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA foreign_keys = OFF")
            with self._transaction():
                self._words = self._prepared()
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"{where} cannot be used as an index of documents ({error}); name a new file."
            ) from None

    def _prepared(self) -> WordTable:
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        [tables] = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version != VERSION and tables:
            raise ConfigurationError(
                f"{self.path} is no index of documents of this version; delete it, if it was one, "
                "and add the documents again."
            )
        if not tables:
            for statement in filter(str.strip, _TABLES.split(";")):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        return WordTable(self._connection, _WEIGHTS)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._changes += 1

    def close(self) -> None:
        """Let go of the file.

        >>> from sagents_nb import DocumentIndex
        >>> DocumentIndex().close()
        """
        with self._lock:
            self._closed = True
            self._connection.close()

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<DocumentIndex {self.path or 'in memory'}>"

    # documents

    @kinds.checked(
        source=kinds.ANYTHING,
        text=kinds.or_none(kinds.of(str)),
        id=kinds.or_none(kinds.of(str)),
        metadata=kinds.ANYTHING,
        scope=kinds.ANYTHING,
    )
    def add(
        self,
        source: Any,
        *,
        text: str | None = None,
        id: str | None = None,
        metadata: Mapping[str, Any] | Sequence[str] = (),
        files: VirtualFilesystem | None = None,
        scope: Any = None,
    ) -> Added:
        """Take documents in; one that is there already is replaced, if it has changed.

        ``source`` is the path of a file, of a folder, or a pattern such as ``"notes/**/*.md"``,
        on the disk or in ``files``; texts by their names, as a dict; or a data frame, of which
        ``text`` and ``id`` name columns. A document is called by its path, its name, or the value
        of ``id``. By the ending of its name a file is Markdown, a notebook (its cells and what
        they have put out), a PDF (with the extra ``documents``), a table (.csv, .tsv) or other
        text. ``metadata`` is a dict for all of them, or a list of columns of the frame; its values
        are kept as text. Those of a ``scope`` are found for that one alone, those without for
        everybody.

        What cannot be read, is larger than 50 MB or has no text raises
        :class:`~sagents_nb.errors.DocumentError` and changes nothing; of several files such ones
        are left out, and named in the result and in the log.

        >>> import pandas
        >>> from sagents_nb import DocumentIndex
        >>> papers = pandas.DataFrame({"doi": ["10.1/a"], "abstract": ["Drag."], "year": [2024]})
        >>> index = DocumentIndex()
        >>> index.add(papers, text="abstract", id="doi", metadata=["year"])
        1 added, 0 replaced, 0 unchanged
        >>> [str(found.location) for found in index.search("drag", filter={"year": 2024})]
        ['10.1/a, row 0']
        """
        owner = _owner(scope)
        refused: dict[str, str] = {}
        documents, several = documents_of(source, text, id, metadata, files, refused)
        with self._kept():
            added = self._taken(owner, documents, refused, several)
        if refused:
            named = " ".join(islice(refused.values(), 5))
            logger.warning("%s documents were left out: %s", f"{len(refused):,}", named)
        if self.embedder is not None:
            self._embed_added()
        return added

    def _taken(
        self, owner: str, documents: Iterable[Document], refused: dict[str, str], several: bool
    ) -> Added:
        """Write those that have changed: all together, or ``several`` at a time."""
        added = replaced = unchanged = size = 0
        changed: list[tuple[Document, list[Chunk]]] = []
        for document in documents:
            with self._lock:
                before = self._connection.execute(
                    "SELECT digest FROM documents WHERE owner = ? AND id = ?", (owner, document.id)
                ).fetchone()
            if before == (document.digest,):
                unchanged += 1
                continue
            try:
                changed.append((document, document.read()))
            except DocumentError as error:
                if not several:
                    raise
                refused[document.id] = str(error)
                continue
            added, replaced = added + (before is None), replaced + (before is not None)
            size += sum(len(chunk.text) for chunk in changed[-1][1])
            if several and (size > MOST_TEXT or len(changed) == _AT_ONCE):
                self._write_all(owner, changed)
                changed, size = [], 0
        self._write_all(owner, changed)
        return Added(added, replaced, unchanged, refused)

    def _write_all(self, owner: str, changed: list[tuple[Document, list[Chunk]]]) -> None:
        if changed:
            with self._transaction():
                for document, chunks in changed:
                    self._write(owner, document, chunks)

    def _write(self, owner: str, document: Document, chunks: list[Chunk]) -> None:
        vectors = self._delete(owner, document.id)
        execute = self._connection.execute
        number = execute(
            "INSERT INTO documents (owner, id, digest) VALUES (?, ?, ?)",
            (owner, document.id, document.digest),
        ).lastrowid
        self._connection.executemany(
            "INSERT INTO attributes VALUES (?, ?, ?)",
            [(number, name, value) for name, value in document.metadata.items()],
        )
        texts = []
        for chunk in chunks:
            place = json.dumps(to_data(chunk.location), ensure_ascii=False)
            vector = vectors.get((chunk.heading, chunk.text))
            row = execute(
                "INSERT INTO passages (document, location, vector) VALUES (?, ?, ?)",
                (number, place, vector),
            )
            texts.append((int(row.lastrowid or 0), {"heading": chunk.heading, "text": chunk.text}))
        self._words.put(texts)

    def _delete(self, owner: str, id: str) -> dict[tuple[str, str], bytes]:
        """Forget a document; the vectors of what it said, which it may say again."""
        execute = self._connection.execute
        found = execute(
            "SELECT number FROM documents WHERE owner = ? AND id = ?", (owner, id)
        ).fetchone()
        if found is None:
            return {}
        rows = execute(
            "SELECT number, heading, text, vector FROM passages JOIN texts ON texts.rowid = number "
            "WHERE document = ?",
            found,
        ).fetchall()
        self._connection.executemany("DELETE FROM texts WHERE rowid = ?", [row[:1] for row in rows])
        for table, column in (("passages", "document"), ("attributes", "document")):
            execute(f"DELETE FROM {table} WHERE {column} = ?", found)
        execute("DELETE FROM documents WHERE number = ?", found)
        return {(heading, text): vector for _, heading, text, vector in rows if vector}

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Around all that is asked of the file: what it cannot do is told in a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            if self._closed:
                raise StoreError(f"{self!r} is closed; make another DocumentIndex.") from None
            raise StoreError(f"{self!r} could not be read or written: {error}.") from error

    @kinds.checked(scope=kinds.ANYTHING)
    def remove(self, document: str, *, scope: Any = None) -> None:
        """Forget the ``document`` of that name, of that ``scope``.

        Raises :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import DocumentIndex
        >>> index = DocumentIndex()
        >>> _ = index.add({"tides": "High tide is at six."})
        >>> index.remove("tides")
        >>> index.documents()
        []
        """
        with self._kept(), self._transaction() as connection:
            before = connection.total_changes
            self._delete(_owner(scope), whole(document))
            if connection.total_changes == before:
                raise NotFound(f"There is no document {document!r}; documents() has their names.")

    @kinds.checked(scope=kinds.ANYTHING)
    def documents(self, *, scope: Any = None) -> list[str]:
        """The names of all documents that are found for that ``scope``, sorted.

        >>> from sagents_nb import DocumentIndex
        >>> index = DocumentIndex()
        >>> _ = index.add({"tides": "High tide is at six.", "lamps": "They are red."})
        >>> index.documents()
        ['lamps', 'tides']
        """
        with self._kept(), self._lock:
            rows = self._connection.execute(
                "SELECT DISTINCT id FROM documents WHERE owner IN ('', ?) ORDER BY id",
                (_owner(scope),),
            )
            return [id for (id,) in rows]

    # searching

    @kinds.checked(
        limit=kinds.whole(1),
        min_score=kinds.Kind(
            "a number from 0 to 1", lambda value: kinds.number(0).fits(value) and value <= 1
        ),
        scope=kinds.ANYTHING,
    )
    def search(
        self,
        query: str,
        *,
        limit: int = 8,
        min_score: float = 0,
        filter: Mapping[str, Any] | None = None,
        scope: Any = None,
    ) -> list[Passage]:
        """The passages that fit ``query`` best, at most ``limit``, the best first.

        Scores are shares of the best one's; those below ``min_score`` are left out. ``filter`` says
        which metadata their documents have: all of these, compared as text. Found is what was
        added for ``scope`` and what was added for everybody. Where the embedder fails, they are
        found by their words, and the log says why.

        >>> from sagents_nb import DocumentIndex, Scope
        >>> index = DocumentIndex()
        >>> _ = index.add({"diary": "The tide came late."}, scope=Scope("ada"))
        >>> len(index.search("tide", scope=Scope("ada"))), len(index.search("tide"))
        (1, 0)
        """
        condition, values = _condition("found.number", _owner(scope), filter or {})
        with self._kept():
            hits = self._by_meaning(query, limit, condition, values) if self.embedder else None
            if hits is None:
                hits = self._by_words(query, limit, condition, values)
            best = hits[0][1] if hits else 0.0
            shares = {n: score / best if best > 0 else 0.0 for n, score in hits}
            chosen = [n for n, share in shares.items() if share >= min_score]
            return [*self._passages(chosen, shares, condition, values)]

    def _by_words(
        self, query: str, limit: int, condition: str, values: Sequence[Any]
    ) -> list[tuple[int, float]]:
        words = query_words(query, FUNCTION_WORDS)
        with self._lock:
            return self._words.search_among(words, limit, condition, values)

    def _by_meaning(
        self, query: str, limit: int, condition: str, values: Sequence[Any]
    ) -> list[tuple[int, float]] | None:
        """By words and meaning; None where the embedder fails."""
        try:
            vector = self._embedded([query])[0]
            self._embed_missing()
        except BaseException as error:
            pass_on(error)
            logger.warning("An embedder failed, so passages are found by words: %s", said_by(error))
            return None
        with self._lock:
            allowed = self._connection.execute(
                f"SELECT number FROM passages AS found WHERE {condition}", values
            ).fetchall()
            numbers, vectors = self._matrix()
        if not numbers:
            return []
        import numpy

        chosen = numpy.isin(numbers, numpy.array([n for (n,) in allowed], dtype=numpy.int64))
        of = numpy.asarray(numbers)[chosen]
        found = islice(nearest(vectors[chosen], vector), max(_FURTHER, limit))
        near = [Hit(str(of[place]), score) for place, score in found]
        words = self._by_words(query, max(_FURTHER, limit), condition, values)
        both = fused([Hit(str(number), score) for number, score in words], near)
        return [(int(hit.id), hit.score) for hit in both[:limit]]

    def _passages(
        self, numbers: Sequence[int], scores: Mapping[int, float], condition: str, values: Any
    ) -> Iterator[Passage]:
        """These, as they are now: of what another process has changed meanwhile, nothing."""
        marks = ", ".join("?" * len(numbers))
        with self._lock:
            rows = self._connection.execute(
                "SELECT found.number, found.document, location, heading, text "
                "FROM passages AS found JOIN texts ON texts.rowid = found.number "
                f"WHERE found.number IN ({marks}) AND {condition}",
                (*numbers, *values),
            ).fetchall()
            documents = {row[1] for row in rows}
            marks = ", ".join("?" * len(documents))
            attributes = self._connection.execute(
                f"SELECT * FROM attributes WHERE document IN ({marks})", (*documents,)
            ).fetchall()
        about: dict[int, dict[str, str]] = {}
        for document, name, value in attributes:
            about.setdefault(document, {})[name] = value
        found = {row[0]: row[1:] for row in rows}
        for number in numbers:
            if number in found:
                document, place, heading, text = found[number]
                location = msgspec.json.decode(place, type=Location)
                metadata = about.get(document, {})
                yield Passage(text, location, heading, scores[number], metadata)

    # vectors

    def _embedded(self, texts: Sequence[str]) -> Any:
        """Their vectors; those of another embedder are forgotten before any is compared.

        By what it makes of one text it is told whether it is another: functions have no names.
        """
        import numpy

        assert self.embedder is not None
        if self._probe is None:
            self._probe, *made = embedded(self.embedder, [_PROBE, *texts])
            vectors = numpy.stack(made)
        else:
            vectors = embedded(self.embedder, texts)
        with self._transaction() as connection:
            kept = connection.execute("SELECT value FROM settings WHERE name = 'probe'").fetchone()
            before = self._probe if kept is None else numpy.frombuffer(kept[0], numpy.float32)
            alike = before.shape == self._probe.shape
            if kept is None or not alike or not numpy.allclose(before, self._probe, atol=_ALIKE):
                value = self._probe.tobytes()
                connection.execute("REPLACE INTO settings VALUES ('probe', ?)", (value,))
            if not alike or not numpy.allclose(before, self._probe, atol=_ALIKE):
                connection.execute("UPDATE passages SET vector = NULL")
                logger.warning("%r has another embedder's vectors: all are made anew.", self)
        return vectors

    def _embed_added(self) -> None:
        try:
            self._embed_missing()
        except ConfigurationError:
            raise
        except BaseException as error:
            pass_on(error)
            raise DocumentError(
                f"The documents were added and are found by their words, but the embedder failed: "
                f"{said_by(error)}; what it has not seen is given to it with the next add(…)."
            ) from error

    def _embed_missing(self) -> None:
        """Have a vector for each passage."""
        while True:
            with self._lock:
                rows = self._connection.execute(
                    "SELECT number, heading, text FROM passages JOIN texts ON texts.rowid = number "
                    "WHERE vector IS NULL LIMIT ?",
                    (_AT_ONCE,),
                ).fetchall()
            if not rows:
                return
            vectors = self._embedded([f"{heading}\n{text}".lstrip() for _, heading, text in rows])
            with self._transaction() as connection:
                connection.executemany(
                    "UPDATE passages SET vector = ? WHERE number = ?",
                    [(vector.tobytes(), row[0]) for vector, row in zip(vectors, rows, strict=True)],
                )

    def _matrix(self) -> tuple[Sequence[int], Any]:
        """All vectors, and of which passages; they are read again when something has changed."""
        import numpy

        [elsewhere] = self._connection.execute("PRAGMA data_version").fetchone()
        now = self._changes, elsewhere
        if self._vectors is None or self._vectors[0] != now:
            rows = self._connection.execute(
                "SELECT number, vector FROM passages WHERE vector IS NOT NULL ORDER BY number"
            ).fetchall()
            numbers = [number for number, _ in rows]
            data = b"".join(vector for _, vector in rows)
            vectors = numpy.frombuffer(data, dtype=numpy.float32)
            self._vectors = now, numbers, vectors.reshape(len(rows), -1) if rows else vectors
        return self._vectors[1:]


def _owner(scope: Any) -> str:
    """Whose they are, as the file can have it."""
    owner: str = escaped(owner_of(scope))
    return owner


def _condition(number: str, owner: str, filter: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """What the passage of a ``number`` must be, as a condition of SQL, and its values."""
    condition = (
        "EXISTS (SELECT 1 FROM passages p JOIN documents d ON d.number = p.document "
        f"WHERE p.number = {number} AND d.owner IN ('', ?)"
    )
    values: list[Any] = [owner]
    for name, value in filter.items():
        condition += (
            " AND EXISTS (SELECT 1 FROM attributes a "
            "WHERE a.document = d.number AND a.name = ? AND a.value = ?)"
        )
        values += [plain(name), plain(value)]
    return f"{condition})", values
