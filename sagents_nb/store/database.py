"""The one thread and the one connection through which a store does everything."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from ..errors import Busy, StoreError
from ..runtime import runtime
from . import leases, versions
from .engine import failure, is_sqlite, make_engine, make_file, name_of, path_of, url_of
from .schema import tables

T = TypeVar("T")
Work = Callable[[sql.Connection], T]

MOST_AT_ONCE = 256
"""How much waiting work one transaction takes."""

_EXIT_SECONDS = 10.0  # how long a process that ends waits for what is queued

# PostgreSQL gave up one of several transactions that were in each other's way.
_LOST_A_RACE = ("40001", "40P01")


class _Job(NamedTuple):
    future: Future[Any]
    work: Work[Any]


class Database:
    """SQLite or PostgreSQL behind one daemon thread, which starts with the first work.

    What waits when a transaction begins is committed with it. ``url`` is SQLAlchemy's;
    ``table_prefix`` begins the names of all tables. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a URL or a place that cannot work.
    """

    def __init__(self, url: str | sql.URL, *, table_prefix: str = "sagents_") -> None:
        self.url = url_of(url)
        self.name = name_of(self.url)
        self.tables = tables(table_prefix)
        self.owner = leases.Owner.new()
        self.held: set[str] = set()  # conversations; the store's thread alone looks at it
        self._path = path_of(self.url)
        self._engine = make_engine(self.url)
        self._connection: sql.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._prepared = False
        self._renewed = time.monotonic()
        self._inherited: list[Any] = []
        self._begin_anew()
        _databases.add(self)

    def _begin_anew(self) -> None:
        # Reentrant: a finalizer may submit work while its own thread is submitting some.
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = ""

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    def submit(self, work: Work[T]) -> Future[T]:
        """Have ``work`` done in a transaction; from any thread, never blocks.

        The future is done once it is committed. If ``work`` raises, its part of the transaction
        is undone and the future has the error; if the commit fails, the future has a
        :class:`~sagents_nb.errors.StoreError`. ``work`` may be called a second time if the
        database lost the first transaction. It cannot be cancelled.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if not self._closed:
                self._queue.put(_Job(future, work))
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._serve, name="sagents-store", daemon=True
                    )
                    self._thread.start()
                return future
        future.set_exception(StoreError(f"The store {self.name} {self._closed}."))
        return future

    def run(self, work: Work[T]) -> T:
        """:meth:`submit`, and wait for it.

        Raises :class:`~sagents_nb.errors.Busy` on the runtime's and on the store's thread.
        """
        runtime.refuse_here("Waiting for the store", "await what submit() returns")
        if threading.current_thread() is self._thread:
            raise Busy("Work of the store would wait for itself; use the connection it was given.")
        return self.submit(work).result()

    def close(self) -> None:
        """Commit what is queued, give up all leases and close; nothing can be submitted after."""
        runtime.refuse_here("Closing the store", "close it from another thread")
        self._end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _end(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = "is closed; open it again with a new ConversationStore"
                self._queue.put(None)

    # From here on everything runs on the store's thread.

    def _serve(self) -> None:
        open_ = True
        while open_:
            jobs, open_ = self._take()
            if not open_ or (self.held and self._until_beat() <= 0):
                jobs.append(self._beat(leases.renew_all if open_ else leases.release_all))
            for job, (value, error) in zip(jobs, self._commit_all(jobs), strict=True):
                if error is None:
                    job.future.set_result(value)
                else:
                    job.future.set_exception(error)
            del jobs
        self._disconnect()
        self._engine.dispose()

    def _take(self) -> tuple[list[_Job], bool]:
        """What waits, and whether more may come; waits until there is some or a beat is due."""
        jobs: list[_Job] = []
        timeout = max(0.0, self._until_beat()) if self.held else None
        with contextlib.suppress(queue.Empty):
            job = self._queue.get(timeout=timeout)
            while job is not None:
                jobs.append(job)
                if len(jobs) == MOST_AT_ONCE:
                    return jobs, True
                job = self._queue.get_nowait()
            return jobs, False
        return jobs, True

    def _until_beat(self) -> float:
        return self._renewed + leases.RENEWED_EVERY - time.monotonic()

    def _beat(self, do: Callable[..., None]) -> _Job:
        self._renewed = time.monotonic()
        return _Job(Future(), lambda connection: do(connection, self.tables, self.owner))

    def _commit_all(self, jobs: Sequence[_Job]) -> list[tuple[Any, BaseException | None]]:
        """One transaction: what came of each job, committed."""
        if not jobs:
            return []
        for again in (False, True):
            try:
                return self._transaction(jobs)
            except BaseException as error:
                self._disconnect()
                # Nothing was committed, so it may be done again, on a new connection.
                if isinstance(error, _Lost) and not again:
                    continue
                cause = error.__cause__ if isinstance(error, _Lost) else error
                return [(None, failure(self.url, cause or error)) for _ in jobs]
        raise AssertionError

    def _transaction(self, jobs: Sequence[_Job]) -> list[tuple[Any, BaseException | None]]:
        connection = self._connected()
        try:
            transaction = connection.begin()
            self._begin(connection)
            outcomes = [self._attempt(connection, job.work) for job in jobs]
        except DBAPIError as error:
            if _is_lost(error):
                raise _Lost from error
            raise
        self._assert_in_transaction(connection)
        transaction.commit()
        return outcomes

    def _begin(self, connection: sql.Connection) -> None:
        if is_sqlite(self.url):
            # At once the lock to write: a transaction that reads first and then cannot get it
            # fails without waiting.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        if not self._prepared:
            versions.bring_up_to_date(connection, self.tables)
            self._prepared = True

    def _attempt(
        self, connection: sql.Connection, work: Work[Any]
    ) -> tuple[Any, BaseException | None]:
        """What came of one job: undone, alone, if it failed."""
        savepoint = connection.begin_nested()
        try:
            value = work(connection)
            savepoint.commit()
        except BaseException as error:
            if isinstance(error, DBAPIError) and _is_lost(error):
                raise
            try:
                savepoint.rollback()
                self._assert_in_transaction(connection)
            except Exception:  # the database has given up the whole transaction, for this
                raise error from None
            return None, failure(self.url, error)
        return value, None

    def _assert_in_transaction(self, connection: sql.Connection) -> None:
        # SQLite ends a transaction by itself when the disk is full or fails, and the driver
        # takes a commit of nothing for a success.
        raw: Any = connection.connection.driver_connection
        if is_sqlite(self.url) and not raw.in_transaction:
            raise StoreError(f"The store {self.name} lost a transaction; try again.")

    def _connected(self) -> sql.Connection:
        if self._connection is not None and self._path and _file_id(self._path) != self._file:
            self._disconnect()
            raise StoreError(
                f"The store's file {self.name} was moved or deleted while it was open; put it "
                "back, or open the conversation again to begin a new one."
            )
        if self._connection is None:
            if self._path:
                make_file(self._path)
                versions.look_at(self._path, self.tables)
            self._connection = self._engine.connect()
            if self._path:
                self._file = _file_id(self._path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
        self._prepared = False  # there may be another file, or server, next time

    def after_fork(self) -> None:
        """In a forked child, which must never write through its parent's connection."""
        if self._connection is not None:
            # Not even when it ends: a connection that is closed undoes its transaction, which
            # is the parent's.
            kept = (self._connection, self._connection.connection.driver_connection)
            for one in kept:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
        self._inherited.append((self._connection, self._queue, self._thread))
        self._connection = None
        self._begin_anew()
        self._closed = "was opened before this process was forked; open it again in this one"


class _Lost(Exception):
    """The transaction was lost before its commit, and can be done again."""


def _is_lost(error: DBAPIError) -> bool:
    lost_a_race = getattr(error.orig, "sqlstate", None) in _LOST_A_RACE
    return lost_a_race or error.connection_invalidated


def _file_id(path: os.PathLike[str]) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """Commit what is queued; for a bounded time, since the process has to end."""
    deadline = time.monotonic() + _EXIT_SECONDS
    threads = []
    for database in list(_databases):
        database._end()
        threads.append(database._thread)
    for thread in filter(None, threads):
        thread.join(max(0.0, deadline - time.monotonic()))


def _after_fork() -> None:
    for database in list(_databases):
        database.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
