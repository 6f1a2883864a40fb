"""The one thread through which a store does everything with its one connection."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sql

from ...errors import Busy, StoreError
from ...runtime.thread import runtime
from . import leases
from .connection import Outcome, StoreConnection, name_of, url_of
from .schema import tables

T = TypeVar("T")
Work = Callable[[sql.Connection], T]

MOST_AT_ONCE = 256
"""How much waiting work one transaction takes."""

_EXIT_SECONDS = 10.0  # how long a process that ends waits for what is queued


class _Job(NamedTuple):
    future: Future[Any]
    work: Work[Any]
    failed: Callable[[BaseException], None] | None = None


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
        # Conversations and the epochs in which they are ours; for the store's thread alone.
        self.held: set[tuple[str, int]] = set()
        self.connection = StoreConnection(self.url, self.tables)
        self.renewed_at = time.monotonic()
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

    def submit(
        self, work: Work[T], failed: Callable[[BaseException], None] | None = None
    ) -> Future[T]:
        """Have ``work`` done in a transaction; from any thread, never blocks.

        The future is done once it is committed. If ``work`` raises, its part of the transaction
        is undone and the future has the error; if the commit fails, the future has a
        :class:`~sagents_nb.errors.StoreError`. ``work`` may be called a second time if the
        database lost the first transaction. It cannot be cancelled. ``failed`` is told the error
        before anybody who waits for the future.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            why = self._closed or self._unstarted()
            if not why:
                self._queue.put(_Job(future, work, failed))
                return future
        _settle([_Job(future, work, failed)], [(None, StoreError(f"The store {self.name} {why}."))])
        return future

    def _unstarted(self) -> str:
        """Have a thread; why there is none, or ""."""
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="sagents-store", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # there may be no more
                return f"cannot work now ({error}); try again"
            self._thread = thread
        return ""

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

    def _serve(self) -> None:
        """The store's thread."""
        is_open = True
        while is_open:
            jobs, is_open = self._take()
            let_go_of_forgotten()
            if self.held and (not is_open or self._until_beat() <= 0):
                jobs.append(self._beat(leases.renew_all if is_open else leases.release_all))
            if jobs:
                _settle(jobs, self.connection.commit([job.work for job in jobs]))
            del jobs  # nothing is kept alive while it waits
        self.connection.close()

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
        return self.renewed_at + leases.RENEWED_EVERY - time.monotonic()

    def _beat(self, do: Callable[..., None]) -> _Job:
        self.renewed_at = time.monotonic()
        return _Job(Future(), lambda connection: do(connection, self.tables, self.owner))

    def after_fork(self) -> None:
        """In a forked child, which must never write through its parent's connection."""
        self.connection.after_fork()
        self._inherited.append((self._queue, self._thread))
        self._begin_anew()
        self._closed = "was opened before this process was forked; open it again in this one"


def _settle(jobs: list[_Job], outcomes: list[Outcome]) -> None:
    for job, (value, error) in zip(jobs, outcomes, strict=True):
        if error is None:
            job.future.set_result(value)
        else:
            if job.failed is not None:
                job.failed(error)
            job.future.set_exception(error)


_databases: weakref.WeakSet[Database] = weakref.WeakSet()

# How to let go of what nobody has any more. A finalizer only adds to it, since it may run at any
# depth of any thread's stack.
forgotten: deque[Callable[[], Any]] = deque()


def let_go_of_forgotten() -> None:
    """Let go of what nobody has any more."""
    with contextlib.suppress(IndexError):
        while True:
            forgotten.popleft()()


def database_of(owner: str) -> Database | None:
    """The one of this process whose leases have that owner, or None."""
    return next((each for each in list(_databases) if each.owner.text == owner), None)


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
    inherited = list(_databases)
    _databases.clear()  # their leases are the parent's
    for database in inherited:
        database.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
