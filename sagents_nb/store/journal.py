"""A conversation's journal: what is appended is kept, and what is damaged is set aside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sql
from msgspec.structs import replace

from ..errors import StaleOwner, StoreError
from ..serialization import escaped
from ..sql import Prepared
from ..text import logger_of
from .database import leases
from .database.connection import ENTRY, LOOKED_AT, PROOF, CommitInDoubt, is_passing
from .database.schema import Tables
from .database.thread import Database
from .entries import (
    BEHIND,
    KINDS,
    LAST_SEQ,
    UNKNOWN,
    Damaged,
    Entry,
    StoredRow,
    Tally,
    encoded,
    ends_run,
    entry_of,
    is_newer,
    is_number,
    row_checksum,
)

logger = logger_of(__name__)

T = TypeVar("T")

_AT_ONCE = 500  # how many rows one statement deletes


class _Written(msgspec.Struct, frozen=True):
    """What is there of a journal: its tally, or None, and its newest row, if it is known."""

    tally: Tally | None = None
    seq: int = 0
    checksum: int | None = None

    def is_there(self, tally: Tally | None, checksum: Any) -> bool:
        """Whether it is, by what was found; a tally that is lost is told at the next opening."""
        is_older = None not in (tally, self.tally) and tally != self.tally
        return not is_older and self.checksum in (None, checksum)

    def without(self, seqs: Collection[int]) -> _Written:
        """What there is of it once these rows are deleted."""
        return _Written(self.tally) if self.seq in seqs else self


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
        self._make: Callable[[sql.Connection], Any] | None = None  # the conversation, if it is new
        self._is_ours = True  # else it was not made, and may be another session's of this store
        # The numbers of rows of which nobody knows whether they were committed: who appended them
        # was told that they were not, and appends them again.
        self._doubtful: list[int] = []
        # The checksums of the rows that were written since the tally with that number; None where
        # it is not known which were. Numbers of those that were not are a gap, and no loss.
        self._since = -1
        self._behind: list[int] | None = None
        # What is committed, and what is there within a transaction: who puts an older copy in the
        # place of the database undoes what was acknowledged.
        self._committed = self._written = _Written()
        self._undone = False
        self._had: Tally | None = None  # before it was undone

    @classmethod
    def of_new(
        cls, database: Database, conversation_id: str, make: Callable[[sql.Connection], Any]
    ) -> Journal:
        """That of a conversation which ``make`` makes, in the transaction of the first entries.

        What ``make`` raises is what their future raises; then there is neither.
        """
        journal = cls(database, conversation_id, 1)

        def begin(connection: sql.Connection) -> None:
            journal.last_seq = 0  # of a transaction that was lost nothing is left, nor a gap
            make(connection)
            leases.begin_owned(connection, database.tables, database.owner, conversation_id)
            database.held.add((conversation_id, journal.epoch))
            journal._since, journal._behind = 0, []
            journal._is_ours = True

        journal._make, journal._is_ours = begin, False
        return journal

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

        def begin(connection: sql.Connection) -> tuple[int, Tally | None, list[StoredRow]]:
            epoch, tally = leases.take(connection, tables, owner, conversation_id, take_over)
            epochs.append(epoch)
            database.held.add((conversation_id, epoch))
            used = connection.scalar(_statements(tables).aside, {"conversation": conversation_id})
            return used or 0, tally, _rows(connection, tables, conversation_id)

        def give_up(connection: sql.Connection) -> None:
            for epoch in epochs:
                database.held.discard((conversation_id, epoch))
                leases.release(connection, tables, owner, conversation_id, epoch)

        try:
            used, tally, rows = database.run(begin, about=conversation_id)
            journal = cls(database, conversation_id, epochs[-1])
            return journal, *journal._read(rows, used, tally)
        except BaseException:  # also where somebody interrupts the waiting
            database.submit(give_up, about=conversation_id)
            raise

    def _read(
        self, rows: Sequence[StoredRow], used: int, tally: Tally | None
    ) -> tuple[list[Entry], list[str]]:
        """The entries that the rows hold; the others are moved to where they harm nobody."""
        read = _Read.of(self.conversation_id, rows, tally)
        entries, damaged = read.entries, read.damaged
        # The number of a row that was lost or set aside is not used again: it would be a second.
        numbers = [problem.seq for problem in damaged if is_number(problem.seq)]
        numbers += [entry.seq for entry in entries[-1:]]
        self.last_seq = max([used, tally.last_seq if tally else 0, *numbers])
        if tally is not None and tally.last_seq == self.last_seq:
            self._since, self._behind = tally.last_seq, []
        self._committed = _Written(tally, *read.newest)
        # What a newer version wrote may be no damage, and is refused where it is read.
        if (read.problems or read.without) and not any(map(is_newer, entries)):
            self._mend(read).result()
        return entries, read.problems

    def _mend(self, read: _Read) -> Future[None]:
        """Have the table hold what was read, and nothing else, with all checksums."""
        journal = self.database.tables.journal
        tally = read.whole.plus((), self.last_seq)

        def mend(connection: sql.Connection) -> None:
            self._check(connection)
            for problem in read.damaged:
                self._move(connection, _place(connection, journal) == problem.place, problem.reason)
            if read.without:
                here = self._is_of_it, _place(connection, journal) == sql.bindparam("here")
                change = journal.update().where(*here).values(checksum=sql.bindparam("found"))
                rows = [{"here": place, "found": found} for place, found in read.without.items()]
                connection.execute(change, rows)
            self._keep(connection, tally)

        return self._submit(mend)

    def append(
        self, entries: Sequence[Entry], along: Callable[[sql.Connection], Any] | None = None
    ) -> Future[int]:
        """Write ``entries``; once the future is done they are committed. Its value is the last seq.

        ``along`` is done in the same transaction, after them; what it raises fails both.
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
        make, self._make = self._make, None
        before: int | None = None

        def write(connection: sql.Connection) -> int:
            nonlocal before
            if before is not None:  # the database lost the first transaction
                self._behind = None
            before = self.last_seq
            if failures != self._failures:
                raise StoreError(
                    f"Entries of conversation {self.conversation_id!r} were not written because "
                    "those before them were not; append them again."
                )
            try:
                if make is not None:
                    make(connection)
                if self._doubtful:
                    self._delete(connection, self._doubtful)
                last_seq = self._add(connection, entries, at)
                if along is not None:
                    along(connection)
                return last_seq
            except BaseException as error:
                if not is_passing(error):  # else it is done again
                    self._failed()
                raise

        def failed(error: BaseException) -> None:
            if isinstance(error, CommitInDoubt) and before is not None:
                self._doubtful += range(before + 1, self.last_seq + 1)
            elif make is not None and self._is_ours:
                self._is_ours = False
                self.database.held.discard((self.conversation_id, self.epoch))
            self._failed()

        future: Future[int] = self._submit(write, failed)
        if doubtful := tuple(self._doubtful):

            def gone(written: Future[int]) -> None:
                if written.exception() is None:
                    self._doubtful = [seq for seq in self._doubtful if seq not in doubtful]

            future.add_done_callback(gone)
        return future

    def _failed(self) -> None:
        self._failures += 1
        self._behind = None

    def _submit(
        self,
        work: Callable[[sql.Connection], T],
        failed: Callable[[BaseException], None] | None = None,
    ) -> Future[T]:
        after = self._committed

        def do(connection: sql.Connection) -> T:
            nonlocal after
            looked_at = connection.info[LOOKED_AT]
            if self not in looked_at:  # the last transaction has ended, one way or the other
                self._written = self._committed
            before = self._written
            try:
                value = work(connection)
            except BaseException:
                self._written = before
                raise
            after = self._written
            return value

        def done(worked: Future[T]) -> None:
            error = worked.exception()
            if error is None:
                self._committed = after
            elif isinstance(error, CommitInDoubt) or after.checksum is None:
                self._committed = _Written()
            else:  # a disk that fails may have it all the same
                self._committed = replace(self._committed, tally=None)

        future = self.database.submit(do, failed, about=self.conversation_id)
        future.add_done_callback(done)
        return future

    def compact(self, superseded: Iterable[int]) -> Future[None]:
        """Delete the entries with these seqs; those that are gone already do no harm."""
        seqs = list(superseded)

        return self._submit(lambda connection: self._delete(connection, seqs))

    def _delete(self, connection: sql.Connection, seqs: Sequence[int]) -> None:
        tally = self._settled(connection, self._check(connection))
        self._written = self._written.without(seqs)
        of_them = _statements(self.database.tables)
        for first in range(0, len(seqs), _AT_ONCE):
            some = {"conversation": self.conversation_id, "numbers": seqs[first : first + _AT_ONCE]}
            gone = connection.execute(of_them.checksums, some).scalars().all()
            connection.execute(of_them.delete, some)
            tally = tally and tally.minus([c for c in gone if c is not None])
        self._keep(connection, tally)

    def release(self) -> Future[None]:
        """Give the conversation up, after all that was appended; what comes then is refused."""

        def give_up(connection: sql.Connection) -> None:
            if not self._is_ours:
                return
            self.database.held.discard((self.conversation_id, self.epoch))
            with suppress(StaleOwner):
                tally = self._check(connection)
                if tally is not None and tally.last_seq != self.last_seq:
                    self._keep(connection, self._settled(connection, tally))
            if self._undone:
                self._tell_undone(connection)
            leases.release(connection, *self._lease)

        return self._submit(give_up)

    def _tell_undone(self, connection: sql.Connection) -> None:
        """Have the next opening tell of the rows that were lost."""
        with suppress(StaleOwner):  # somebody has what is there now
            leases.check(connection, *self._lease, 0)
            leases.keep_tally(connection, self.database.tables, self.conversation_id, self._had)

    @property
    def _lease(self) -> tuple[Tables, leases.Owner, str, int]:
        return self.database.tables, self.database.owner, self.conversation_id, self.epoch

    def _check(self, connection: sql.Connection) -> Tally | None:
        """What the journal has; raises StaleOwner if it is somebody else's, or was put back."""
        tally, checksum = leases.check(connection, *self._lease, self._written.seq)
        looked_at = connection.info[LOOKED_AT]
        is_there = self in looked_at or self._written.is_there(tally, checksum)
        if not is_there and not self._undone:
            self._undone, self._had = True, self._committed.tally
            if self._had is not None and self._behind and self._since == self._had.last_seq:
                self._had = self._had.plus(self._behind, self.last_seq)
        if self._undone:
            raise StaleOwner(
                f"What was written last of conversation {self.conversation_id!r} is not in the "
                f"store {self.database.name} any more, as after an older copy was put in its "
                "place, so nothing of this session is kept any more; put the newer one back if "
                "there is one, then open the conversation again."
            )
        looked_at.add(self)
        self._written = replace(self._written, tally=tally)
        return tally

    def _keep(self, connection: sql.Connection, tally: Tally | None) -> None:
        """What the journal has now; where that was not known, it is told at the next opening."""
        self._behind = None
        if tally is not None:
            leases.keep_tally(connection, self.database.tables, self.conversation_id, tally)
            self._since, self._behind = tally.last_seq, []
            self._written = replace(self._written, tally=tally)

    def _add(self, connection: sql.Connection, entries: Sequence[Entry], at: datetime) -> int:
        """Add entries in the transaction of ``connection``; returns the number of the last one."""
        tally = self._check(connection)
        # A number that was used is not used again, though its row may be compacted away.
        first = max(tally.last_seq if tally else 0, self.last_seq) + 1
        insert = _statements(self.database.tables).insert
        checksums: list[int] = []
        for seq, entry in enumerate(entries, first):
            text, escaped = encoded(entry.data)
            stored = entry.kind.encode(), text.encode(), escaped
            checksums.append(row_checksum(self.conversation_id, seq, *stored))
            row = {
                "conversation_id": self.conversation_id,
                "seq": seq,
                "kind": entry.kind,
                "checksum": checksums[-1],
                "data": text,
                "escaped": escaped,
                "at": at,
            }
            insert(connection, row)
        if checksums:
            self.last_seq = first + len(checksums) - 1
            self._written = replace(self._written, seq=self.last_seq, checksum=checksums[-1])
            connection.info[PROOF] = {ENTRY: (self.conversation_id, self.last_seq, checksums[-1])}
            if self._behind is not None:
                self._behind += checksums
            known = self._behind
            if known is None or len(known) >= BEHIND or any(map(ends_run, entries)):
                self._keep(connection, self._settled(connection, tally))
        return self.last_seq

    def _settled(self, connection: sql.Connection, tally: Tally | None) -> Tally | None:
        """With the rows that it lacks."""
        if tally is None or tally.last_seq == self.last_seq:
            return tally
        if self._behind is not None and self._since == tally.last_seq:
            return tally.plus(self._behind, self.last_seq)
        behind = {"conversation": self.conversation_id, "seq": tally.last_seq}
        found = _statements(self.database.tables).behind(connection, behind).rows
        return tally.plus([c for (c,) in found if c is not None], self.last_seq)

    def set_aside(self, reasons: Mapping[int, str]) -> Future[None]:
        """Put entries that make no sense, by their seqs, where they harm nobody."""
        journal = self.database.tables.journal

        def move(connection: sql.Connection) -> None:
            tally = self._settled(connection, self._check(connection))
            self._written = self._written.without(reasons)
            for seq, reason in reasons.items():
                gone = self._move(connection, journal.c.seq == seq, reason)
                tally = tally and tally.minus(gone)
            self._keep(connection, tally)

        return self._submit(move)

    @property
    def _is_of_it(self) -> sql.ColumnElement[bool]:
        return self.database.tables.journal.c.conversation_id == self.conversation_id

    def _move(
        self, connection: sql.Connection, which: sql.ColumnElement[bool], reason: str
    ) -> list[int]:
        """Put a row, as it is, where it harms nobody; its checksum, if it has one."""
        journal, aside = self.database.tables.journal, self.database.tables.journal_damaged
        here = self._is_of_it, which
        columns = ("conversation_id", "seq", "kind", "data", "escaped")
        gone = connection.execute(sql.select(journal.c.checksum).where(*here)).scalars().all()
        seq = sql.select(journal.c.seq).where(*here).scalar_subquery()
        connection.execute(
            aside.delete().where(
                aside.c.conversation_id == self.conversation_id, aside.c.seq == seq
            )
        )
        row = sql.select(
            *(journal.c[name] for name in columns),
            sql.literal(reason, aside.c.reason.type),
            sql.literal(datetime.now(UTC), aside.c.at.type),
        ).where(*here)
        connection.execute(aside.insert().from_select([*columns, "reason", "at"], row))
        connection.execute(journal.delete().where(*here))
        return [checksum for checksum in gone if checksum is not None]


class _Statements(msgspec.Struct, frozen=True):
    """What is executed often, made once."""

    aside: Any
    insert: Prepared
    behind: Prepared
    checksums: Any
    delete: Any


@functools.cache
def _statements(tables: Tables) -> _Statements:
    journal, aside = tables.journal, tables.journal_damaged
    of_it = journal.c.conversation_id == sql.bindparam("conversation")
    among = journal.c.seq.in_(sql.bindparam("numbers", expanding=True))
    set_aside = aside.c.conversation_id == sql.bindparam("conversation")
    return _Statements(
        sql.select(sql.func.max(aside.c.seq)).where(set_aside, aside.c.seq.between(1, LAST_SEQ)),
        Prepared(journal.insert()),
        Prepared(sql.select(journal.c.checksum).where(of_it, journal.c.seq > sql.bindparam("seq"))),
        sql.select(journal.c.checksum).where(of_it, among),
        journal.delete().where(of_it, among),
    )


class _Read(msgspec.Struct, frozen=True):
    """What the rows of a journal hold.

    ``whole`` is the tally of the entries, ``without`` the checksums, by place, of those that
    have none yet, as an older version wrote them, and ``newest`` the number and the checksum of
    the last one.
    """

    entries: list[Entry]
    damaged: list[Damaged]
    problems: list[str]
    whole: Tally
    without: dict[Any, int]
    newest: tuple[int, int | None]

    @classmethod
    def of(cls, conversation_id: str, rows: Iterable[StoredRow], tally: Tally | None) -> _Read:
        """``tally`` is that of the rows that were written, as far as they have checksums."""
        entries: dict[int, Entry] = {}
        damaged: list[Damaged] = []
        without: dict[Any, int] = {}
        places: set[Any] = set()
        whole: list[int] = []
        found: list[int] = []
        later: list[int] = []  # the numbers of rows that the tally lacks
        odd: list[int] = []  # checksums of damaged rows that may be of these or not
        newest: tuple[int, int | None] = 0, None
        for row in rows:
            place, number, _, _, _, kept, _ = row
            if place in places:  # an index that is damaged may lead to a row twice
                continue
            places.add(place)
            is_later = tally is not None and not (is_number(number) and number <= tally.last_seq)
            if kept is not None and not is_later:
                found.append(kept)
            try:
                entry, checksum = entry_of(conversation_id, row)
                if number in entries:
                    raise Damaged(place, number, "there is another one of its number")
            except Damaged as problem:
                damaged.append(problem)
                if kept is not None and is_later:
                    odd.append(kept)
                continue
            entries[number] = entry
            whole.append(checksum)
            newest = number, kept
            if kept is None:
                without[place] = checksum
            elif is_later:
                later.append(number)
        differs = UNKNOWN if tally is None else tally.differs(found, later, odd)
        return cls(
            [entries[seq] for seq in sorted(entries)],
            damaged,
            [*map(str, damaged), *([differs] if differs else [])],
            Tally().plus(whole),
            without,
            newest,
        )


class StoredJournal(NamedTuple):
    """The rows of a conversation as they are in the database: all, or those of some ``kinds``.

    ``begun`` is whether there are any, of whatever kind.
    """

    conversation_id: str
    begun: bool
    rows: list[StoredRow]
    tally: Tally | None
    kinds: Sequence[str]

    def entries(self) -> list[Entry]:
        """Those that can be read, for whoever does not own the conversation.

        What is damaged is logged only: the next owner sets it aside, and tells it.
        """
        read = _Read.of(self.conversation_id, self.rows, self.tally)
        for problem in map(str, read.damaged) if self.kinds else read.problems:
            logger.warning("Conversation %r: %s", self.conversation_id, problem)
        return read.entries


def journals_of(
    connection: sql.Connection, tables: Tables, ids: Sequence[str], kinds: Sequence[str] = ()
) -> dict[str, StoredJournal]:
    """The journals of these conversations, by their ids, with all entries or those of ``kinds``."""
    c = tables.journal.c
    of_them = c.conversation_id.in_(ids)
    query = _reading(connection, tables).add_columns(c.conversation_id).where(of_them)
    if kinds:
        query = query.where(c.kind.in_(kinds))
    rows: dict[str, list[StoredRow]] = {}
    for *row, stored_id in _fetched(connection, query.order_by(c.conversation_id, c.seq)):
        rows.setdefault(stored_id, []).append(_row(row))
    begun = set(rows)
    if kinds:
        written = sql.select(c.conversation_id).distinct().where(of_them)
        begun = {stored_id for (stored_id,) in _fetched(connection, written)}
    tallies = leases.tallies(connection, tables, ids)
    found = {}
    for id in ids:
        stored_id = escaped(id)
        found[id] = StoredJournal(
            id, stored_id in begun, rows.get(stored_id, []), tallies.get(id), kinds
        )
    return found


def _place(connection: sql.Connection, journal: sql.Table) -> sql.ColumnElement[Any]:
    """What tells the rows of a journal apart: in SQLite, a seq may be anything."""
    if connection.dialect.name == "sqlite":
        return sql.literal_column(f'"{journal.name}".rowid')
    return journal.c.seq


def _rows(connection: sql.Connection, tables: Tables, conversation_id: str) -> list[StoredRow]:
    """Each row of a journal; in SQLite, any value may be of another type than its column."""
    c = tables.journal.c
    query = _reading(connection, tables).where(c.conversation_id == conversation_id).order_by(c.seq)
    return [_row(row) for row in _fetched(connection, query)]


def _fetched(connection: sql.Connection, query: sql.Select[Any]) -> list[tuple[Any, ...]]:
    """The rows as the driver has them: for many, SQLAlchemy takes longer than the database."""
    found = connection.execute(query)
    assert found.cursor is not None
    rows = found.cursor.fetchall()
    found.close()
    return list(rows)


def _reading(connection: sql.Connection, tables: Tables) -> sql.Select[Any]:
    journal = tables.journal
    c = journal.c
    columns: list[Any] = [c.seq, c.kind, c.data, c.escaped, c.checksum, c.at]
    if connection.dialect.name == "sqlite":
        columns = [_if_type(c.seq, "integer", sql.BigInteger)]
        columns += [_if_type(column, "text", sql.LargeBinary) for column in (c.kind, c.data)]
        columns += [_if_type(c.escaped, "integer", sql.Integer)]
        columns += [_if_type(c.checksum, "integer", sql.BigInteger)]
        columns += [_if_type(c.at, "text", sql.String)]
    return sql.select(_place(connection, journal).label("place"), *columns)


def _row(values: Sequence[Any]) -> StoredRow:
    place, seq, kind, data, escaped, checksum, at = values
    if isinstance(kind, str):  # a server's are of their types
        kind, data = kind.encode(), data.encode()
    return place, seq, kind, data, escaped, checksum, at


def _if_type(column: sql.Column[Any], name: str, kind: Any) -> sql.ColumnElement[Any]:
    value = sql.cast(column, kind)
    return sql.case((sql.func.typeof(column) == name, value), else_=None)
