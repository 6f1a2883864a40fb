"""The one thread through which a store does everything with its one connection."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sql

from ... import sql as ours
from ...errors import Busy, StoreError
from ...runtime.thread import runtime
from ...sql import is_sqlite
from . import leases
from .connection import Contended, Outcome, StoreConnection, name_of, url_of
from .schema import tables

T = TypeVar("T")
Work = Callable[[sql.Connection], T]

MOST_AT_ONCE = 256
"""How much waiting work one transaction takes."""

_EXIT_SECONDS = 10.0  # how long a process that ends waits for what is queued

# Seconds that a locked row is waited for, during which everybody else waits too: at first, and at
# most once what needs it is tried again alone. In between it is left alone for as long.
_LOCKED_FIRST, _LOCKED_MOST = 0.05, 0.4


# Whether it is of no certain conversation, and the conversation, or a number of its own.
_About = tuple[bool, str]


class _Job(msgspec.Struct, eq=False):
    future: Future[Any]
    work: Work[Any]
    failed: Callable[[BaseException], None] | None
    about: _About
    until: float | None = None  # when nobody waits any longer for what is in its way


class _Pause(NamedTuple):
    """Something of a conversation is locked: when it is tried again, and how patiently."""

    until: float
    patience: float


class Database:
    """SQLite or PostgreSQL behind one daemon thread, which starts with the first work.

    What waits when a transaction begins is committed with it. What finds a row locked, or is in the
    way of somebody who waits for one of its own, is undone and tried again alone; with it waits
    only what is about the same conversation.

    ``url`` is SQLAlchemy's; ``table_prefix`` begins the names of all tables. Raises
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
        self._stalls = 0
        self._inherited: list[Any] = []
        self._numbers = itertools.count()
        self._begin_anew()
        _databases.add(self)

    def _begin_anew(self) -> None:
        # Reentrant: a finalizer may submit work while its own thread is submitting some.
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        # For the thread alone, as what is taken from the queue.
        self._waiting: deque[_Job] = deque()
        self._paused: dict[_About, _Pause] = {}
        self._thread: threading.Thread | None = None
        self._heart: threading.Thread | None = None
        self._ended = threading.Event()
        self._closed = ""

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    def submit(
        self,
        work: Work[T],
        failed: Callable[[BaseException], None] | None = None,
        *,
        about: str | None = None,
    ) -> Future[T]:
        """Have ``work`` done in a transaction; from any thread, never blocks.

        What is ``about`` the same conversation is done in the order of the calls; what is about no
        certain one after all that was submitted before it and waits for no lock.

        The future is done once it is committed. If ``work`` raises, its part of the transaction
        is undone and the future has the error; if the commit fails, the future has a
        :class:`~sagents_nb.errors.StoreError`. ``work`` may be called again if the database lost
        the transaction, or something that it needs was locked. It cannot be cancelled. ``failed``
        is told the error before anybody who waits for the future.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            why = self._closed or self._unstarted()
            if not why:
                key = about is None, about or f"{next(self._numbers):020}"
                self._queue.put(_Job(future, work, failed, key))
                return future
        _settle(future, failed, (None, StoreError(f"The store {self.name} {why}.")))
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

    def run(self, work: Work[T], *, about: str | None = None) -> T:
        """:meth:`submit`, and wait for it.

        Raises :class:`~sagents_nb.errors.Busy` on the runtime's and on the store's thread.
        """
        runtime.refuse_here("Waiting for the store", "await what submit() returns")
        if threading.current_thread() is self._thread:
            raise Busy("Work of the store would wait for itself; use the connection it was given.")
        return self.submit(work, about=about).result()

    def query(self, query: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """:meth:`run` what takes a connection and the tables, and then these arguments."""
        return self.run(lambda connection: query(connection, self.tables, *args, **kwargs))

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
        while is_open or self._waiting:
            is_open = self._listen(is_open)
            let_go_of_forgotten()
            if self.held and self._until_beat() <= 0:
                self._beat(leases.renew_all, self.connection)
            self._do(self._next())
            if self.held and self._heart is None and not is_sqlite(self.url):
                self._start_heart()
        self._ended.set()
        if self.held:
            self._beat(leases.release_all, self.connection)
        self.connection.close()

    def _listen(self, is_open: bool) -> bool:
        """Take what was submitted; wait if nothing can be done yet. Whether more may come."""
        wait = 0.0 if self._ready() else self._until_something()
        if not is_open:
            time.sleep(wait or 0.0)
            return False
        with contextlib.suppress(queue.Empty):
            job = self._queue.get(wait != 0.0, wait)
            while job is not None:
                self._waiting.append(job)
                if len(self._waiting) >= MOST_AT_ONCE:
                    return True
                job = self._queue.get_nowait()
            return False
        return True

    def _ready(self) -> bool:
        return any(job.about not in self._paused for job in self._waiting)

    def _until_something(self) -> float | None:
        """Seconds until a beat is due, or something may be tried again; None if nothing is."""
        moments = [pause.until - time.monotonic() for pause in self._paused.values()]
        if self.held:
            moments.append(self._until_beat())
        return max(0.0, min(moments)) if moments else None

    def _until_beat(self) -> float:
        return self.renewed_at + leases.RENEWED_EVERY - time.monotonic()

    @property
    def stalls(self) -> int:
        """How often a heartbeat was so late that others may have taken what this process has.

        So it is where the process was stopped, and then goes on as if nothing had happened.
        """
        return self._stalls + (time.monotonic() - self.renewed_at > leases.STALE_AFTER)

    def _beat(self, do: Callable[..., None], connection: StoreConnection) -> None:
        self._stalls, self.renewed_at = self.stalls, time.monotonic()
        work = partial(do, tables=self.tables, owner=self.owner)
        connection.commit([[work]], _LOCKED_MOST)

    def _start_heart(self) -> None:
        heart = threading.Thread(target=self._watch, name="sagents-heart", daemon=True)
        with contextlib.suppress(RuntimeError):  # there may be no more threads
            heart.start()
            self._heart = heart

    def _watch(self) -> None:
        """The heart's thread: beats while the store's is at some work for too long.

        Else nobody's connection is needed for it. An SQLite that is at work lets nobody else write,
        but its owners know of each other whether they live.
        """
        late = leases.RENEWED_EVERY / 2
        while not self._ended.wait(max(0.0, self._until_beat()) + late):
            if self.held and self._until_beat() <= -late:
                connection = StoreConnection(self.url, self.tables)
                self._beat(leases.renew_all, connection)
                connection.close()

    def _next(self) -> list[list[_Job]]:
        """What the next transaction is for, by conversation and in their order.

        All that lock rows in the same order wait for each other and for nobody in a circle.
        """
        now = time.monotonic()
        chosen: dict[_About, list[_Job]] = {}
        left: deque[_Job] = deque()
        alone = False
        for job in self._waiting:
            pause = self._paused.get(job.about)
            if job.about in chosen:
                chosen[job.about].append(job)
            elif alone or (pause and (chosen or pause.until > now)):
                left.append(job)
            else:
                chosen[job.about] = [job]
                alone = pause is not None
        self._waiting = left
        return [chosen[about] for about in sorted(chosen)]

    def _do(self, groups: list[list[_Job]]) -> None:
        """Do it in one transaction; what somebody else is in the way of waits for another."""
        if not groups:
            return
        pause = self._paused.get(groups[0][0].about)  # then it is alone
        patience = _LOCKED_FIRST if pause is None else pause.patience
        outcomes = self.connection.commit([[job.work for job in jobs] for jobs in groups], patience)
        again: list[_Job] = []
        for jobs, found in zip(groups, outcomes, strict=True):
            again += self._settled(jobs, found, patience)
        self._waiting.extendleft(reversed(again))

    def _settled(self, jobs: list[_Job], outcomes: list[Outcome], patience: float) -> list[_Job]:
        """Tell what came of the work of one conversation; gives what has to be done again."""
        self._paused.pop(jobs[0].about, None)
        for number, (job, (value, error)) in enumerate(zip(jobs, outcomes, strict=True)):
            if isinstance(error, Contended):
                now = time.monotonic()
                job.until = job.until or now + ours.LOCK_SECONDS - patience
                if now < job.until:
                    until = now + patience * random.uniform(1, 2)
                    self._paused[job.about] = _Pause(until, min(_LOCKED_MOST, 2 * patience))
                    return jobs[number:]
                error = error.told
            _settle(job.future, job.failed, (value, error))
        return []

    def check_process(self) -> None:
        """Raise StoreError in a forked child, where nothing that its parent began is ever done."""
        if self._inherited:
            raise StoreError(f"The store {self.name} {self._closed}.")

    def after_fork(self) -> None:
        """In a forked child, which must never write through its parent's connection."""
        self.connection.after_fork()
        self._inherited.append((self._queue, self._thread))
        self._begin_anew()
        self._closed = "was opened before this process was forked; open it again in this one"


def _settle(
    future: Future[Any], failed: Callable[[BaseException], None] | None, outcome: Outcome
) -> None:
    value, error = outcome
    if error is None:
        future.set_result(value)
    else:
        if failed is not None:
            failed(error)
        future.set_exception(error)


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
