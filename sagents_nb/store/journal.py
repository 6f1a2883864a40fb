"""A conversation's journal: what is appended is kept, and what is damaged is set aside."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sql

from ..errors import StoreError
from .database import leases
from .database.schema import Tables
from .database.thread import Database
from .entries import KINDS, LAST_SEQ, Damaged, Entry, encoded, entry_of, is_newer, is_number


class Journal:
    """The entries of one conversation, and the only one who writes them.

    ``epoch`` grows with each owner; ``last_seq`` is that of the newest entry, 0 if there is
    none. Every method may be called from any thread. What is appended is written in the order
    of the calls; when it fails, so does what was appended before its future was done.
    """

    def __init__(self, database: Database, conversation_id: str, epoch: int) -> None:
        self.database = database
        self.conversation_id = conversation_id
        self.epoch = epoch
        self.last_seq = 0
        self._failures = 0

    @classmethod
    def open(
        cls, database: Database, conversation_id: str, *, take_over: bool = False
    ) -> tuple[Journal, list[Entry], list[str]]:
        """Become the owner: the journal, its entries, and a sentence per row that was set aside.

        Raises :class:`~sagents_nb.errors.Owned` if somebody who lives has it, unless
        ``take_over``, and :class:`~sagents_nb.errors.NotFound` if there is no such conversation.
        """
        tables, owner = database.tables, database.owner
        epochs: list[int] = []

        def begin(connection: sql.Connection) -> tuple[int, list[Any]]:
            epochs.append(leases.take(connection, tables, owner, conversation_id, take_over))
            database.held.add((conversation_id, epochs[-1]))
            used = connection.scalar(_statements(tables).aside, {"conversation": conversation_id})
            return used or 0, _rows(connection, tables, conversation_id)

        def give_up(connection: sql.Connection) -> None:
            for epoch in epochs:
                database.held.discard((conversation_id, epoch))
                leases.release(connection, tables, owner, conversation_id, epoch)

        try:
            used, rows = database.run(begin)
            journal = cls(database, conversation_id, epochs[-1])
            return journal, *journal._read(rows, used)
        except BaseException:  # also where somebody interrupts the waiting
            database.submit(give_up)
            raise

    def _read(self, rows: Iterable[Any], used: int) -> tuple[list[Entry], list[str]]:
        """The entries that the rows hold; the others are moved to where they harm nobody."""
        entries: list[Entry] = []
        damaged: list[Damaged] = []
        for row in rows:
            try:
                entries.append(entry_of(*row))
            except Damaged as problem:
                damaged.append(problem)
        # The number of a row that was set aside is not used again: it would be a second one.
        numbers = [problem.seq for problem in damaged if is_number(problem.seq)]
        self.last_seq = max([used, *numbers, *(entry.seq for entry in entries[-1:])])
        # What a newer version wrote may be no damage, and is refused where it is read.
        if damaged and not any(map(is_newer, entries)):
            self._move({problem.place: problem.reason for problem in damaged}, _place).result()
        return entries, [str(problem) for problem in damaged]

    def append(self, entries: Sequence[Entry]) -> Future[int]:
        """Write ``entries``; once the future is done they are committed. Its value is the last seq.

        ``data`` must not be changed afterwards; ``seq`` and ``at`` are given here. The future
        raises :class:`~sagents_nb.errors.StaleOwner` if somebody else owns the conversation by
        now, and :class:`~sagents_nb.errors.StoreError` if it cannot be written: nothing is then.
        """
        entries = tuple(entries)
        for entry in entries:
            if entry.kind not in KINDS:
                raise ValueError(
                    f"{entry.kind!r} is no kind of entry; use one of {', '.join(KINDS)}."
                )
        at = datetime.now(UTC)
        failures = self._failures

        def write(connection: sql.Connection) -> int:
            if failures != self._failures:
                raise StoreError(
                    f"Entries of conversation {self.conversation_id!r} were not written because "
                    "those before them were not; append them again."
                )
            try:
                return self.write(connection, entries, at)
            except BaseException:
                self._failures += 1
                raise

        outer: Future[int] = Future()
        outer.set_running_or_notify_cancel()

        def settle(inner: Future[int]) -> None:
            if error := inner.exception():
                self._failures += 1  # before anybody hears of it
                outer.set_exception(error)
            else:
                outer.set_result(inner.result())

        self.database.submit(write).add_done_callback(settle)
        return outer

    def compact(self, superseded: Iterable[int]) -> Future[None]:
        """Delete the entries with these seqs; those that are gone already do no harm."""
        seqs = list(superseded)

        def delete(connection: sql.Connection) -> None:
            self._check(connection)
            if seqs:
                statement = _statements(self.database.tables).delete
                connection.execute(statement, [self._key(seq) for seq in seqs])

        return self.database.submit(delete)

    def release(self) -> Future[None]:
        """Give the conversation up, after all that was appended; what comes then is refused."""

        def give_up(connection: sql.Connection) -> None:
            self.database.held.discard((self.conversation_id, self.epoch))
            leases.release(connection, *self._lease)

        return self.database.submit(give_up)

    @property
    def _lease(self) -> tuple[Tables, leases.Owner, str, int]:
        return self.database.tables, self.database.owner, self.conversation_id, self.epoch

    def _check(self, connection: sql.Connection) -> None:
        leases.check(connection, *self._lease)

    def _key(self, seq: int) -> dict[str, Any]:
        return {"conversation": self.conversation_id, "number": seq}

    def write(self, connection: sql.Connection, entries: Sequence[Entry], at: datetime) -> int:
        """Add entries in the transaction of ``connection``; returns the number of the last one."""
        self._check(connection)
        tables = self.database.tables
        newest = connection.scalar(
            _statements(tables).newest, {"conversation": self.conversation_id}
        )
        # A number that was used is not used again, though its row may be compacted away.
        first = max(newest or 0, self.last_seq) + 1
        rows = []
        for seq, entry in enumerate(entries, first):
            text, escaped = encoded(entry.data)
            rows.append(
                {
                    "conversation_id": self.conversation_id,
                    "seq": seq,
                    "kind": entry.kind,
                    "data": text,
                    "escaped": escaped,
                    "at": at,
                }
            )
        if rows:
            connection.execute(_statements(tables).insert, rows)
            self.last_seq = first + len(rows) - 1
        return self.last_seq

    def set_aside(self, reasons: Mapping[int, str]) -> Future[None]:
        """Put entries that make no sense, by their seqs, where they harm nobody."""
        return self._move(reasons, lambda connection, journal: journal.c.seq)

    def _move(
        self,
        reasons: Mapping[Any, str],
        place_of: Callable[[sql.Connection, sql.Table], sql.ColumnElement[Any]],
    ) -> Future[None]:
        """Put rows, by their places, as they are where they harm nobody."""
        journal, aside = self.database.tables.journal, self.database.tables.journal_damaged
        of_it = journal.c.conversation_id == self.conversation_id
        columns = ("conversation_id", "seq", "kind", "data", "escaped")

        def move(connection: sql.Connection) -> None:
            self._check(connection)
            now = datetime.now(UTC)
            for place, reason in reasons.items():
                here = (of_it, place_of(connection, journal) == place)
                seq = sql.select(journal.c.seq).where(*here).scalar_subquery()
                connection.execute(
                    aside.delete().where(
                        aside.c.conversation_id == self.conversation_id, aside.c.seq == seq
                    )
                )
                row = sql.select(
                    *(journal.c[name] for name in columns),
                    sql.literal(reason, aside.c.reason.type),
                    sql.literal(now, aside.c.at.type),
                ).where(*here)
                connection.execute(aside.insert().from_select([*columns, "reason", "at"], row))
                connection.execute(journal.delete().where(*here))

        return self.database.submit(move)


class _Statements(msgspec.Struct, frozen=True):
    """What is executed often, made once."""

    newest: Any
    aside: Any
    insert: Any
    delete: Any


@functools.cache
def _statements(tables: Tables) -> _Statements:
    journal, aside = tables.journal, tables.journal_damaged
    of_it = journal.c.conversation_id == sql.bindparam("conversation")
    set_aside = aside.c.conversation_id == sql.bindparam("conversation")
    return _Statements(
        sql.select(sql.func.max(journal.c.seq)).where(of_it),
        sql.select(sql.func.max(aside.c.seq)).where(set_aside, aside.c.seq.between(1, LAST_SEQ)),
        journal.insert(),
        journal.delete().where(of_it, journal.c.seq == sql.bindparam("number")),
    )


def entries_of(
    connection: sql.Connection, tables: Tables, conversation_id: str, kinds: Sequence[str] = ()
) -> list[Entry]:
    """The entries that can be read, for whoever does not own the conversation.

    Those of all kinds, or of the ones that are given.
    """
    entries = []
    which = tables.journal.c.kind.in_(kinds) if kinds else None
    for row in _rows(connection, tables, conversation_id, which):
        with contextlib.suppress(Damaged):
            entries.append(entry_of(*row))
    return entries


def _place(connection: sql.Connection, journal: sql.Table) -> sql.ColumnElement[Any]:
    """What tells the rows of a journal apart: in SQLite, a seq may be anything."""
    if connection.dialect.name == "sqlite":
        return sql.literal_column(f'"{journal.name}".rowid')
    return journal.c.seq


def _rows(
    connection: sql.Connection,
    tables: Tables,
    conversation_id: str,
    which: sql.ColumnElement[bool] | None = None,
) -> list[Any]:
    """Place, seq, kind, data, escaped and time of each row; text as bytes.

    What is not of its column's type, as any value in SQLite may be, is None.
    """
    journal = tables.journal
    c = journal.c
    columns: list[Any] = [c.seq, c.kind, c.data, c.escaped, c.at]
    if connection.dialect.name == "sqlite":
        columns = [_if_type(c.seq, "integer", sql.BigInteger)]
        columns += [_if_type(column, "text", sql.LargeBinary) for column in (c.kind, c.data)]
        columns += [_if_type(c.escaped, "integer", sql.Integer), _if_type(c.at, "text", sql.String)]
    query = sql.select(_place(connection, journal).label("place"), *columns)
    if which is not None:
        query = query.where(which)
    found = connection.execute(query.where(c.conversation_id == conversation_id).order_by(c.seq))
    if connection.dialect.name == "sqlite":
        return [tuple(row) for row in found]
    return [
        (place, seq, kind.encode(), data.encode(), escaped, at)
        for place, seq, kind, data, escaped, at in found
    ]


def _if_type(column: sql.Column[Any], name: str, kind: Any) -> sql.ColumnElement[Any]:
    value = sql.cast(column, kind)
    return sql.case((sql.func.typeof(column) == name, value), else_=None)
