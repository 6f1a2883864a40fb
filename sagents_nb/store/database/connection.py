"""The one connection of a store: to which URL, its transactions, and what its failures mean.

And how its file is copied, which needs another one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ...drives import sync_names
from ...errors import ConfigurationError, StoreError
from ...sql import (
    LOCK_SECONDS,
    POSTGRESQL,
    SQLITE,
    connect,
    create_engine,
    driver_of,
    forget_frames,
    is_sqlite,
    is_text_damage,
    masked,
    path_of,
    read_url,
    set_patience,
)
from . import versions
from .schema import Tables

Work = Callable[[sql.Connection], Any]
Outcome = tuple[Any, BaseException | None]
"""What came of a piece of work: its value, or its error."""

# PostgreSQL's words for a row that stays locked, and for one of several transactions that were in
# each other's way.
_LOCKED = "55P03"
_IN_THE_WAY = (_LOCKED, "40001", "40P01")

# How long a server is asked, in seconds, what became of a commit whose connection was lost: it may
# be starting again.
DOUBT_SECONDS = 30.0


# In the info of a connection: a row that its transaction added, and that is there if it was
# committed: an entry by conversation, number and checksum, or a row of a transcript by its id.
PROOF, ENTRY, ROW = "sagents_proof", "entry", "row"
Proof = Mapping[str, tuple[Any, ...]]

# In the same info: the journals of which this transaction has looked whether they are what they
# were after the last.
LOOKED_AT = "sagents_looked_at"


class Contended(Exception):
    """Somebody else is in the way of some work: it is undone, and may be done again.

    ``told`` is what to tell where it is not.
    """

    def __init__(self, told: BaseException) -> None:
        super().__init__(str(told))
        self.told = told


def is_passing(error: BaseException) -> bool:
    """Whether what raised it is done again: it lost its connection, or somebody was in the way."""
    return isinstance(error, DBAPIError) and (error.connection_invalidated or _is_contended(error))


def _is_contended(error: BaseException) -> bool:
    orig = error.orig if isinstance(error, DBAPIError) else None
    return getattr(orig, "sqlstate", None) in _IN_THE_WAY


def url_of(url: str | sql.URL) -> sql.URL:
    """``url``, read and checked, with the driver that is used.

    Raises :class:`~sagents_nb.errors.ConfigurationError`, which never shows the URL itself.
    """
    parsed = read_url(
        url,
        "The store's URL cannot be read; write 'sqlite:///agents.db' or "
        "'postgresql://user@host/database', and in a password %40 for @, %2F for / and %3A for :.",
    )
    if parsed.drivername not in (SQLITE, POSTGRESQL):
        raise ConfigurationError(
            f"A store cannot be kept in {parsed.drivername!r}; use sqlite:/// or postgresql://."
        )
    if is_sqlite(parsed) and (parsed.database or "").startswith("file:"):
        raise ConfigurationError(
            "A store's SQLite file is named by its path, as in 'sqlite:///agents.db', not by a "
            "'file:' URI."
        )
    return parsed


def name_of(url: sql.URL) -> str:
    """What errors and people call it: the file, or server and database. Never a password."""
    if is_sqlite(url):
        return str(path_of(url) or "in memory")
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{url.host or ''}{port}/{url.database or ''}"


class _Savepoint:
    """One of SQLite's, by the driver: SQLAlchemy's takes longer than what is done in it."""

    def __init__(self, connection: sql.Connection) -> None:
        self._do = driver_of(connection).execute
        self._do("SAVEPOINT work")

    def commit(self) -> None:
        self._do("RELEASE work")

    def rollback(self) -> None:
        self._do("ROLLBACK TO work")
        self._do("RELEASE work")


def attempt(connection: sql.Connection, work: Work) -> Outcome:
    """What came of it; if it raises, it is undone alone. Raises if the transaction is lost."""
    url = connection.engine.url
    # SQLite gives up a whole transaction by itself when the disk fails, and the driver takes a
    # commit of nothing for a success; but then there is no savepoint either.
    savepoint = _Savepoint(connection) if is_sqlite(url) else connection.begin_nested()
    try:
        value = work(connection)
        savepoint.commit()
    except BaseException as error:
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise
        try:
            savepoint.rollback()
        except Exception:  # the database has given up the whole transaction, for this
            raise error from None
        return None, _told(url, error)
    return value, None


def _told(url: sql.URL, error: BaseException) -> BaseException:
    told = failure(url, error)
    return Contended(told) if _is_contended(error) else told


class InTurn:
    """Several works for one transaction: ``done`` one after the other, until one has an ``error``.

    Which is undone alone; those behind it are not begun. It is ``contended`` if only somebody else
    is in the way.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self.works = works
        self.done: list[Any] = []
        self.error: BaseException | None = None
        self.contended = False

    def __call__(self, connection: sql.Connection) -> None:
        """Do them; also a second time, when the first transaction was lost."""
        self.done, self.error, self.contended = [], None, False
        for work in self.works:
            value, self.error = attempt(connection, work)
            if isinstance(self.error, Contended):
                self.error, self.contended = self.error.told, True
            if self.error is not None:
                return
            self.done.append(value)


class StoreConnection:
    """A connection that is made when it is needed, and anew when it failed. For one thread."""

    def __init__(self, url: sql.URL, tables: Tables) -> None:
        self._url = url
        self._tables = tables
        self._path = path_of(url)
        # The driver's own BEGINs come too late, or not at all; ours are explicit.
        own: dict[str, Any] = {"isolation_level": None} if is_sqlite(url) else {}
        self.engine = create_engine(url, "The store", poolclass=NullPool, connect_args=own)
        if not is_sqlite(url):
            # Each statement sees what was committed before it, whatever is usual on that server:
            # else who waited for a row is told of a failure.
            self.engine = self.engine.execution_options(isolation_level="READ COMMITTED")
        self._connection: sql.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._prepared = False
        self._inherited: list[Any] = []

    def commit(self, groups: Sequence[Sequence[Work]], patience: float) -> list[list[Outcome]]:
        """What came of each work, done in one transaction that is committed; never raises.

        One that raises is undone alone. If the transaction fails, so do all. What is locked on a
        server is waited for so many seconds; then the error is :class:`Contended`, also of the
        works behind it in the same group, which are not begun.
        """
        for again in (False, True):
            try:
                return self._transaction(groups, patience)
            except BaseException as error:
                self.disconnect()
                # Nothing was committed, so it may be done again, on a new connection.
                if isinstance(error, _Lost) and not again:
                    continue
                cause = (isinstance(error, _Lost) and error.__cause__) or error
                told = failure(self._url, cause)
                return [[(None, told) for _ in works] for works in groups]
        raise AssertionError

    def _transaction(
        self, groups: Sequence[Sequence[Work]], patience: float
    ) -> list[list[Outcome]]:
        connection = self._connected()
        try:
            if not self._prepared:
                versions.bring_up_to_date(connection, self._tables)
                self._prepared = True
            transaction = connection.begin()
            if is_sqlite(self._url):
                # At once the lock to write: a transaction that reads first and then cannot get
                # it fails without waiting.
                driver_of(connection).execute("BEGIN IMMEDIATE")
            else:
                set_patience(connection, patience)
            outcomes = self._done(connection, groups)
            mark = self._mark(connection)
            proof: Proof = connection.info.get(PROOF, {})
        except DBAPIError as error:
            if is_passing(error):
                raise _Lost from error
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            if mark:
                self._ask_for(mark, proof, error)
        return outcomes

    def _done(
        self, connection: sql.Connection, groups: Sequence[Sequence[Work]]
    ) -> list[list[Outcome]]:
        """What came of each work, in a transaction that has just begun.

        In SQLite few works fail that have changed something: only then the others are done again,
        each within a savepoint, which is two statements more for each.
        """
        _forget_notes(connection)
        if not is_sqlite(self._url):
            return [_in_order(connection, works) for works in groups]
        works = [work for group in groups for work in group]
        outcomes, to_undo = _at_once(connection, works)
        if to_undo:
            do = driver_of(connection).execute
            do("ROLLBACK")
            do("BEGIN IMMEDIATE")
            _forget_notes(connection)
            # Who failed has dealt with it, and is not asked again.
            for number, (_, error) in enumerate(outcomes):
                if error is not None:
                    works[number] = _raising(error)
            rest = iter(works)
            return [_in_order(connection, list(itertools.islice(rest, len(g)))) for g in groups]
        done = iter(outcomes)
        return [list(itertools.islice(done, len(group))) for group in groups]

    def _mark(self, connection: sql.Connection) -> str | None:
        """By what PostgreSQL knows this transaction, once it has written something."""
        mark: str | None = None if is_sqlite(self._url) else connection.scalar(_MARK)
        return mark

    def _ask_for(self, mark: str, proof: Proof, lost: DBAPIError) -> None:
        """Return if a transaction was committed of which the connection was lost meanwhile.

        Raises :class:`_Lost` if it was not, and :class:`CommitInDoubt` if nobody says so in time.
        """
        deadline = time.monotonic() + DOUBT_SECONDS
        while time.monotonic() < deadline:
            self.disconnect()
            try:
                with self._connected().begin() as transaction:
                    fate = transaction.connection.scalar(_STATUS, {"mark": mark})
                    # A server that crashed may have given the number to somebody else since.
                    if fate == "committed" and proof:
                        fate = self._is_there(transaction.connection, proof)
            except Exception as error:  # the server may be starting again
                orig = getattr(error, "orig", None)
                fate = "aborted" if getattr(orig, "sqlstate", None) == _NO_SUCH_NUMBER else None
            if fate is True:
                return
            if fate in (False, "aborted"):
                raise _Lost from lost
            if fate == "committed":
                break
            time.sleep(0.05)
        raise CommitInDoubt(
            f"The store {name_of(self._url)} lost its connection while it saved, and nobody said "
            "whether it was saved; see that the server runs, then try again: nothing is saved "
            "twice."
        ) from lost

    def _is_there(self, connection: sql.Connection, proof: Proof) -> bool:
        journal, rows = self._tables.journal.c, self._tables.display_messages.c
        by_kind: dict[str, tuple[sql.Column[Any], ...]] = {
            ENTRY: (journal.conversation_id, journal.seq, journal.checksum),
            ROW: (rows.id,),
        }
        ((kind, values),) = proof.items()
        where = [c == value for c, value in zip(by_kind[kind], values, strict=True)]
        return connection.execute(sql.select(by_kind[kind][0]).where(*where)).first() is not None

    def _connected(self) -> sql.Connection:
        if self._path and self._file and _file_id(self._path) != self._file:
            # No other is made in its place, also later: what is open here is in none but that.
            self.disconnect()
            raise StoreError(
                f"The store's file {self._path} was moved or deleted while it was open; put it "
                "back, or make a new ConversationStore for what is there now."
            )
        if self._connection is None:
            if self._path:
                make_file(self._path)
                versions.look_at(self._path, self._tables)
            self._connection = connect(self.engine)
            if self._path:
                self._file = _file_id(self._path)
        return self._connection

    def disconnect(self) -> None:
        """Undo what is not committed, and close."""
        connection, self._connection = self._connection, None
        self._prepared = False  # there may be another file, or server, next time
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close for good."""
        self.disconnect()
        self.engine.dispose()

    def after_fork(self) -> None:
        """In a forked child: never touch the parent's connection again.

        Nor close it, not even at the end of the process: that would undo the parent's
        transaction, or say goodbye to its server.
        """
        connection, self._connection = self._connection, None
        self._inherited.append(connection)
        # One that was just lost would be made anew by being asked for.
        if connection is not None and not (connection.closed or connection.invalidated):
            for kept in (connection, driver_of(connection)):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


class _Lost(Exception):
    """The transaction was lost before its commit, and can be done again."""


class CommitInDoubt(StoreError):
    """Nobody knows whether it was committed."""


def _forget_notes(connection: sql.Connection) -> None:
    """Of what works say of a transaction in its info: another one begins."""
    connection.info.pop(PROOF, None)
    connection.info[LOOKED_AT] = set()


def _at_once(connection: sql.Connection, works: Sequence[Work]) -> tuple[list[Outcome], bool]:
    """What came of each, without savepoints, and whether the last of these is to be undone.

    Behind one that is to be undone nothing is begun. Raises if SQLite has given the transaction up.
    """
    driver, outcomes = driver_of(connection), list[Outcome]()
    url = connection.engine.url
    for work in works:
        before = driver.total_changes
        try:
            outcomes.append((work(connection), None))
        except BaseException as error:
            if not driver.in_transaction:
                raise
            outcomes.append((None, told := _told(url, error)))
            if driver.total_changes != before or isinstance(told, Contended):
                return outcomes, True
        if not driver.in_transaction:  # and somebody hid it
            raise StoreError(f"The store {name_of(url)} lost what was not saved yet; try again.")
    return outcomes, False


def _raising(error: BaseException) -> Work:
    def work(connection: sql.Connection) -> None:
        raise error

    return work


def _in_order(connection: sql.Connection, works: Sequence[Work]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for work in works:
        outcomes.append(attempt(connection, work))
        if isinstance(outcomes[-1][1], Contended):
            return outcomes + [outcomes[-1]] * (len(works) - len(outcomes))
    return outcomes


# PostgreSQL's word for a number that no transaction has, which a crash may have taken back.
_NO_SUCH_NUMBER = "22023"

# Without a number as long as nothing was written.
_MARK = sql.text("SELECT CAST(pg_current_xact_id_if_assigned() AS text)")
_STATUS = sql.text("SELECT pg_xact_status(CAST(:mark AS xid8))")


def _file_id(path: os.PathLike[str]) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_file(path: Path) -> None:
    """Make the file and its directory, for this user only, where they are not there.

    An existing file is not opened: closing it would drop the locks that this process has on it.
    """
    if path.is_dir():
        raise StoreError(f"The store {path} is a directory; name a file in it.")
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in missing:
        # Its name is to outlive a power cut, too. SQLite sees to the file's, with its journal's.
        sync_names(folder.parent)
    with contextlib.suppress(FileExistsError):
        _make_new(path)


def _make_new(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def backup(path: Path, to: Path) -> None:
    """Copy a store's file as it is at one moment, whoever writes to it, into one new file.

    In the copy nobody has any conversation open.
    The copy is whole, and on the disk, before it has its name. The store is not changed, and may
    be of any version. Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no store's
    file and for a name that is taken, :class:`~sagents_nb.errors.StoreError` for what the disks
    and SQLite refuse, and for a store that is damaged.
    """
    path, to = path.absolute(), to.absolute()
    try:
        if not path.is_file():
            raise ConfigurationError(
                f"There is no plain file {str(path)!r:.300}; name the store's."
            )
        if not to.parent.is_dir():
            raise ConfigurationError(
                f"There is no directory {str(to.parent)!r:.300}; make it, or choose another place."
            )
        # To be written as well: what a crash has left unfinished has to be undone first.
        address = f"{path.as_uri()}?mode=rw"
        with contextlib.closing(
            sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
        ) as source:
            source.execute("BEGIN")  # from here on nothing of it changes
            names = {name for (name,) in source.execute("SELECT name FROM sqlite_master")}
            prefixes = [name.removesuffix("version") for name in names if name.endswith("version")]
            if not any({f"{p}conversations", f"{p}journal"} <= names for p in prefixes):
                raise ConfigurationError(f"{path} is an SQLite database, but no store.")
            try:
                _make_new(to)
            except FileExistsError:
                raise ConfigurationError(
                    f"{to} is there already; choose a name that is not taken."
                ) from None
            try:
                _copy(source, path, to)
            except BaseException:
                to.unlink()
                raise
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        url = sql.URL.create(SQLITE, database=str(path))
        raise failure(url, error, f"be copied to {to}") from error


def _copy(source: sqlite3.Connection, path: Path, to: Path) -> None:
    """Put a whole copy in the place of the empty file ``to``, or raise."""
    handle, name = tempfile.mkstemp(prefix=f"{to.name}.", dir=to.parent)
    os.close(handle)
    copy = Path(name)
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as target:
            target.execute("PRAGMA journal_mode=OFF")  # if it fails, all of it goes
            target.execute("PRAGMA synchronous=FULL")
            target.execute("PRAGMA fullfsync=ON")
            source.backup(target)
            source.execute("COMMIT")  # nobody waits for the rest
            _belongs_to_nobody(target)
        # So that SQLite puts no other file beside it, as it would for one with WAL.
        address = f"{copy.as_uri()}?immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as reading:
            (found,) = reading.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise StoreError(
                f"The store {path} is damaged ({found.splitlines()[-1]}) and was not copied; keep "
                "its files, and recover it with sqlite3's .recover."
            )
        copy.replace(to)
    except BaseException:
        copy.unlink()
        raise
    sync_names(to.parent)


def _belongs_to_nobody(copy: sqlite3.Connection) -> None:
    """Who has the store's conversations has not those of its copy, and is not asked for them.

    That somebody had them stays known: a hub goes on with what they were at.
    """
    names = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    for name in names:
        if name.endswith("leases"):
            copy.execute(
                f"UPDATE \"{name}\" SET owner = 'the store that this is a copy of', "
                "heartbeat_at = '1970-01-01 00:00:00.000000' WHERE owner <> ''"
            )
        elif name.endswith("hub_doors"):
            copy.execute(f'DELETE FROM "{name}"')


# By SQLite's primary result code: what is wrong, and what to do.
_SQLITE = {
    sqlite3.SQLITE_BUSY: (
        f"another program has had it locked for {LOCK_SECONDS:g} s",
        "close that program or wait for it, then try again",
    ),
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space, then try again"),
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "make the file and its directory writable, or choose another path",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened or made",
        "make the file and its directory writable, or choose another path",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "keep a copy of it, then move it away or recover it with sqlite3's .recover; if it was "
        "copied while it was in use, copy it again with sagents-nb backup",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is no SQLite database, or is damaged",
        "choose another path, or move it away",
    ),
    sqlite3.SQLITE_IOERR: ("the disk failed to read or write", "check the disk, then try again"),
}
_SQLITE[sqlite3.SQLITE_LOCKED] = _SQLITE[sqlite3.SQLITE_BUSY]
_SQLITE[sqlite3.SQLITE_PERM] = _SQLITE[sqlite3.SQLITE_READONLY]


_GONE = "a part of it is gone ({})", "restore it from a backup, or choose another table_prefix"

# By PostgreSQL's SQLSTATE, or the class that its first two characters are: what is wrong, with what
# the server says of it, and what to do. https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    _LOCKED: _SQLITE[sqlite3.SQLITE_BUSY],
    "40": ("others were in its way ({})", "try again"),
    "53100": ("the disk of the server is full", "free some space there, then try again"),
    "53300": (
        "the server takes no more connections ({})",
        "close some, raise its max_connections, or put a pool before it",
    ),
    "53": ("the server lacks what it needs ({})", "look after the server, then try again"),
    "42501": ("its user lacks a right ({})", "have the owner of the tables grant it"),
    "42704": _GONE,
    "42P01": _GONE,
    "42703": _GONE,
    "3F": ("there is no such schema ({})", "make it, or set the user's search_path to one"),
    "3D": ("there is no such database ({})", "make it, or correct the URL"),
    "28": ("the server lets this user not in ({})", "correct the user and the password of the URL"),
    "25P03": ("this process stood still in a transaction ({})", "try again"),
    "25006": (
        "the server takes no writes ({})",
        "connect to one that does, or switch default_transaction_read_only off",
    ),
    "57014": (
        "the server ended what took too long ({})",
        "raise its statement_timeout, then try again",
    ),
    "57": ("the server ended the connection ({})", "see that the server runs, then try again"),
}


def _told_by_server(state: str | None) -> tuple[str, str] | None:
    return _POSTGRESQL.get(state or "") or _POSTGRESQL.get((state or "")[:2])


def failure(url: sql.URL, error: BaseException, what_not: str = "be used") -> BaseException:
    """``error`` as people can act on it: a StoreError for what the database or the disk says.

    ``what_not`` says what the store cannot do then. Errors that are no fault of the database are
    given back as they are.
    """
    damaged = is_sqlite(url) and is_text_damage(error)
    if isinstance(error, DBAPIError):
        cause: BaseException = error.orig or error
    elif damaged or isinstance(error, OSError | sql.exc.SQLAlchemyError | sqlite3.Error):
        cause = error
    else:
        return error
    what, step = f"{type(cause).__name__}: {_first_line(url, cause)}", "try again"
    code = sqlite3.SQLITE_CORRUPT if damaged else getattr(cause, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _SQLITE:
        what, step = _SQLITE[code & 0xFF]
    elif told := _told_by_server(getattr(cause, "sqlstate", None)):
        reason, step = told
        what = reason.format(what)
    elif isinstance(cause, OSError):
        full = cause.errno == errno.ENOSPC
        what, step = _SQLITE[sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_CANTOPEN]
        what += f" ({cause.strerror})"
    elif not is_sqlite(url) and getattr(error, "connection_invalidated", False):
        what, step = f"the connection was lost ({what})", "see that the server runs, then try again"
    elif not is_sqlite(url) and getattr(cause, "sqlstate", None):
        step = "see that the server is well, then try again"
    elif not is_sqlite(url) and isinstance(error, sql.exc.ProgrammingError):
        step = "correct the URL"  # it names what the driver does not know
    elif not is_sqlite(url):
        step = "see that the server runs and lets you in, then try again"
    made = StoreError(f"The store {name_of(url)} cannot {what_not}: {what}; {step}.")
    made.__cause__ = error
    if not is_sqlite(url):
        forget_frames(error)
    return made


def _first_line(url: sql.URL, error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return masked(url, lines[0]).rstrip(".")
