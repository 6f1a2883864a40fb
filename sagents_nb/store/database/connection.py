"""The one connection of a store: its transactions, and what is done when it fails."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from ...errors import StoreError
from . import versions
from .engine import connect, failure, is_sqlite, make_engine, make_file, path_of
from .schema import Tables

Outcome = tuple[Any, BaseException | None]
"""What came of a piece of work: its value, or its error."""

# PostgreSQL gave up one of several transactions that were in each other's way.
_LOST_A_RACE = ("40001", "40P01")

_DOUBT_SECONDS = 5.0  # how long a commit may go on whose connection was lost


class Link:
    """A connection that is made when it is needed, and anew when it failed. For one thread."""

    def __init__(self, url: sql.URL, tables: Tables) -> None:
        self._url = url
        self._tables = tables
        self._path = path_of(url)
        self._engine = make_engine(url)
        self._connection: sql.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._prepared = False
        self._inherited: list[Any] = []

    def commit(self, works: Sequence[Callable[[sql.Connection], Any]]) -> list[Outcome]:
        """What came of each work, done in one transaction that is committed; never raises.

        One that raises is undone alone. If the transaction fails, so do all.
        """
        for again in (False, True):
            try:
                return self._transaction(works)
            except BaseException as error:
                self.disconnect()
                # Nothing was committed, so it may be done again, on a new connection.
                if isinstance(error, _Lost) and not again:
                    continue
                cause = (isinstance(error, _Lost) and error.__cause__) or error
                return [(None, failure(self._url, cause)) for _ in works]
        raise AssertionError

    def _transaction(self, works: Sequence[Callable[[sql.Connection], Any]]) -> list[Outcome]:
        connection = self._connected()
        try:
            if not self._prepared:
                versions.bring_up_to_date(connection, self._tables)
                self._prepared = True
            transaction = connection.begin()
            if is_sqlite(self._url):
                # At once the lock to write: a transaction that reads first and then cannot get
                # it fails without waiting.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            outcomes = [self._attempt(connection, work) for work in works]
            mark = self._mark(connection)
        except DBAPIError as error:
            if _is_lost(error):
                raise _Lost from error
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            if not (error.connection_invalidated and mark and self._was_committed(mark)):
                raise
        return outcomes

    def _attempt(
        self, connection: sql.Connection, work: Callable[[sql.Connection], Any]
    ) -> Outcome:
        # SQLite gives up a whole transaction by itself when the disk fails, and the driver takes a
        # commit of nothing for a success; but then there is no savepoint either.
        savepoint = connection.begin_nested()
        try:
            value = work(connection)
            savepoint.commit()
        except BaseException as error:
            if isinstance(error, DBAPIError) and _is_lost(error):
                raise
            try:
                savepoint.rollback()
            except Exception:  # the database has given up the whole transaction, for this
                raise error from None
            return None, failure(self._url, error)
        return value, None

    def _mark(self, connection: sql.Connection) -> str | None:
        """By what PostgreSQL knows this transaction, once it has written something."""
        mark: str | None = None if is_sqlite(self._url) else connection.scalar(_MARK)
        return mark

    def _was_committed(self, mark: str) -> bool:
        """Whether a transaction was, of which the connection was lost while it committed."""
        deadline = time.monotonic() + _DOUBT_SECONDS
        self.disconnect()
        with contextlib.suppress(Exception):  # no answer: the first error is the one to tell
            with self._connected().begin() as transaction:
                connection = transaction.connection
                while (status := connection.scalar(_STATUS, {"mark": mark})) == "in progress":
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.05)
            return bool(status == "committed")
        return False

    def _connected(self) -> sql.Connection:
        if self._connection is not None and self._path and _file_id(self._path) != self._file:
            self.disconnect()
            raise StoreError(
                f"The store's file {self._path} was moved or deleted while it was open; put it "
                "back, or open the conversation again to begin a new one."
            )
        if self._connection is None:
            if self._path:
                make_file(self._path)
                versions.look_at(self._path, self._tables)
            self._connection = connect(self._engine)
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
        self._engine.dispose()

    def after_fork(self) -> None:
        """In a forked child: never touch the parent's connection again.

        Nor close it, not even at the end of the process: that would undo the parent's
        transaction, or say goodbye to its server.
        """
        if self._connection is not None:
            for kept in (self._connection, self._connection.connection.driver_connection):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        self._inherited.append(self._connection)
        self._connection = None


class _Lost(Exception):
    """The transaction was lost before its commit, and can be done again."""


# Without a number as long as nothing was written.
_MARK = sql.text("SELECT CAST(pg_current_xact_id_if_assigned() AS text)")
_STATUS = sql.text("SELECT pg_xact_status(CAST(:mark AS xid8))")


def _is_lost(error: DBAPIError) -> bool:
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _LOST_A_RACE


def _file_id(path: os.PathLike[str]) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
