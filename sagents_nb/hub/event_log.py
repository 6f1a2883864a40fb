"""What is told of one thread: kept in the order in which it happened, then told."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql

from ..errors import StaleOwner, StoreError
from ..runtime.thread import runtime
from ..sql import Prepared
from ..store.database import leases
from ..store.database.schema import Tables
from ..store.database.thread import Database
from ..text import logger_of
from . import standings
from .vocabulary import (
    DELTA,
    FORGOTTEN,
    REPORTED,
    REQUEST_ACCEPTED,
    RUN_TICK,
    SPAWNED,
    STATUSES,
    Told,
)

logger = logger_of(__name__)

MOST_READ = 10_000
"""Events that one answer has; who wants more asks for those after the last of them."""

EVENTS_KEPT = 10_000
"""Of one thread, the newest."""

# They say which requests were done, and which children there are: these stay, and are not told.
_NEVER_FORGOTTEN = (REQUEST_ACCEPTED, SPAWNED, REPORTED)

# The number after which no database has any.
_HIGHEST = 2**63 - 1


class ThreadEvent(msgspec.Struct, frozen=True, rename={"thread_id": "threadId"}):
    """One event; ``seq`` counts those that are kept, from 1, and a delta has that of the last."""

    thread_id: str
    ts: str
    seq: int
    type: str
    data: dict[str, Any]


Listener = Callable[[ThreadEvent | None], None]
"""Takes an event; None is the last, of a thread that is closed."""

WhenKept = Callable[[Callable[[BaseException | None], object]], object]
"""Has something called once what happened so far is safe: Session.when_kept."""


class EventLog:
    """The events of thread ``thread_id``: what was told, and who is told what follows.

    ``last`` is the number of the last that was told, ``status`` the type of the last of
    :data:`~sagents_nb.hub.vocabulary.STATUSES`, ``run_id`` the last run, ``ticks`` how many turns
    there were, ``accepted`` has the keys of all requests, and ``unreported`` the children of which
    no report was told, by the calls that began them. All is kept, and told, once ``when_kept`` says
    that the thread keeps what it tells of: nobody hears of a result that the next process would not
    know. Nothing is, any more, once another process has had the thread. The newest ``events_kept``
    stay. Its methods are for the runtime loop, where listeners are called, too, but for
    :meth:`wait`.
    """

    def __init__(
        self,
        database: Database,
        thread_id: str,
        when_kept: WhenKept = lambda tell: tell(None),
        events_kept: int = EVENTS_KEPT,
    ) -> None:
        self.thread_id = thread_id
        self._database = database
        self._when_kept = when_kept
        self._events_kept = events_kept
        self._listeners: list[Listener] = []
        self._due: list[Told] = []
        self._soon = False  # what is due is about to be written
        self._writing: Future[None] | None = None  # one batch after the other, so none overtakes
        self._ended = False
        self.last = self.ticks = 0
        self.status: str | None = None
        self.run_id = ""
        self.accepted: set[str] = set()
        self.unreported: dict[str, str] = {}
        self._epoch = 0  # in which the thread is this process's, or was last
        database.run(self._begin, about=thread_id)

    def _begin(self, connection: sql.Connection) -> None:
        self.check(connection)
        t = self._database.tables.hub_events
        mine = t.c.conversation_id == self.thread_id
        self.last = connection.scalar(sql.select(sql.func.max(t.c.seq)).where(mine)) or 0
        known = last_run(connection, self._database.tables, self.thread_id)
        self.status, self.run_id, self.ticks = known
        accepted = sql.select(t.c.data).where(mine, t.c.type == REQUEST_ACCEPTED)
        self.accepted = {data["idempotencyKey"] for data in connection.scalars(accepted)}
        of_children = sql.select(t.c.type, t.c.data).where(mine, t.c.type.in_((SPAWNED, REPORTED)))
        told = connection.execute(of_children).all()
        reported = {row.data["childThreadId"] for row in told if row.type == REPORTED}
        self.unreported = {
            row.data["toolCallId"]: row.data["childThreadId"]
            for row in told
            if row.type == SPAWNED and row.data["childThreadId"] not in reported
        }

    def check(self, connection: sql.Connection) -> None:
        """Raise StaleOwner where another process has the thread, or had it since.

        For whoever keeps something of it: in a transaction, within which nobody takes it then.
        """
        database = self._database
        self._epoch = leases.check_untaken(
            connection, database.tables, database.owner, self.thread_id, self._epoch
        )

    def listen(self, listener: Listener) -> None:
        """Tell it what follows."""
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Tell it no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def end(self) -> None:
        """Say that nothing follows, once all that was told is kept."""
        self._ended = True
        self._write()

    def append(self, told: Sequence[Told]) -> None:
        """Keep these, and tell them once they are safe; those of one moment in one transaction."""
        if told and not self._soon:
            self._soon = True
            runtime.loop.call_soon(self._write)
        self._due += told
        for type, _ in told:
            if type in STATUSES:
                self.status = type

    def wait(self) -> None:
        """Return once all that was told so far is kept, or cannot be; from any other thread."""
        while (writing := runtime.call(self._write)) is not None:
            if writing.exception() is not None:
                return

    def _write(self) -> Future[None] | None:
        """Write what is due, after what is written now; a future for that, None if all is kept."""
        self._soon = False
        if self._writing is None and not self._due:
            self._tell_end()
        elif self._writing is None:
            due, self._due = self._due, []
            written: Future[None] = Future()
            self._writing = written
            self._when_kept(lambda _: self._insert(due, written))
        return self._writing

    def _insert(self, due: list[Told], written: Future[None]) -> None:
        kept = [each for each in due if each[0] != DELTA]
        at = datetime.now(UTC)
        if not kept:
            self._writing = None
            self._tell(due, at, self.last)
            written.set_result(None)
            self._write()
            return
        rows = [
            {"conversation_id": self.thread_id, "type": type, "data": data, "at": at}
            for type, data in kept
        ]
        inserting = self._database.submit(
            lambda connection: self._keep(connection, rows), about=self.thread_id
        )
        inserting.add_done_callback(
            lambda _: runtime.post(self._inserted, inserting, due, at, written)
        )

    def _keep(self, connection: sql.Connection, rows: list[dict[str, Any]]) -> int:
        self.check(connection)
        return _insert(connection, self._database.tables, rows, self._events_kept)

    def _inserted(
        self, inserting: Future[int], due: list[Told], at: datetime, written: Future[None]
    ) -> None:
        self._writing = None
        if (error := inserting.exception()) is None:
            self._tell(due, at, inserting.result() - 1)
            written.set_result(None)
            self._write()
        else:
            # One that another process has, or that is deleted, is nobody's to look after here.
            level = logging.INFO if isinstance(error, StaleOwner) else logging.ERROR
            logger.log(level, "Events of thread %s could not be kept: %s", self.thread_id, error)
            if isinstance(error, StoreError):  # else they never can be
                self._due = [each for each in due if each[0] != DELTA] + self._due
            written.set_exception(error)
            self._tell_end()

    def _tell(self, told: Sequence[Told], at: datetime, number: int) -> None:
        ts = at.isoformat()
        for type, data in told:
            number += type != DELTA
            event = ThreadEvent(self.thread_id, ts, number, type, data)
            self.last = number
            for listener in tuple(self._listeners):
                _call(listener, event)

    def _tell_end(self) -> None:
        if self._ended:
            for listener in tuple(self._listeners):
                _call(listener, None)
            self._listeners.clear()

    def read_types(self, types: Sequence[str]) -> list[ThreadEvent]:
        """All of these ``types`` that were told so far; not on the runtime thread."""
        self.wait()
        t = self._database.tables.hub_events
        mine = sql.and_(t.c.conversation_id == self.thread_id, t.c.type.in_(types))
        return self._database.run(
            lambda connection: _read(connection, t, self.thread_id, mine), about=self.thread_id
        )


class LastRun(NamedTuple):
    """The last run of a thread: the type of the event that says what it is, its id, its turns."""

    status: str | None
    id: str
    ticks: int


def last_run(connection: sql.Connection, tables: Tables, thread_id: str) -> LastRun:
    """What was told of the last run of a thread, whoever has it."""
    t = tables.hub_events
    mine = sql.and_(t.c.conversation_id == thread_id, t.c.type == RUN_TICK)
    tick = connection.scalar(sql.select(t.c.data).where(mine).order_by(t.c.seq.desc()).limit(1))
    id, ticks = ("", 0) if tick is None else (tick["runId"], tick["step"] + 1)
    return LastRun(standings.last_type(connection, tables, thread_id), id, ticks)


def read(
    connection: sql.Connection, tables: Tables, thread_id: str, since: int
) -> list[ThreadEvent]:
    """What was told of a thread after number ``since``, the first :data:`MOST_READ` of it.

    Instead of what is forgotten of it there is one event that says so.
    """
    t, s = tables.hub_events, tables.hub_standings
    known = sql.select(s.c.forgotten).where(s.c.conversation_id == thread_id)
    until = connection.scalar(known) or 0
    after = sql.and_(t.c.conversation_id == thread_id, t.c.seq > max(until, min(since, _HIGHEST)))
    told = _read(connection, t, thread_id, after)
    if since >= until:
        return told
    ts = told[0].ts if told else datetime.now(UTC).isoformat()
    return [ThreadEvent(thread_id, ts, until, FORGOTTEN, {"until": until}), *told]


def _read(
    connection: sql.Connection, t: sql.Table, thread_id: str, which: sql.ColumnElement[bool]
) -> list[ThreadEvent]:
    rows = connection.execute(sql.select(t).where(which).order_by(t.c.seq).limit(MOST_READ))
    return [ThreadEvent(thread_id, r.at.isoformat(), r.seq, r.type, r.data) for r in rows]


def _insert(
    connection: sql.Connection, tables: Tables, rows: list[dict[str, Any]], events_kept: int
) -> int:
    thread_id, adding = rows[0]["conversation_id"], _adding(tables)
    newest = 0
    for row in rows:
        # One by one: a server does not end the transaction of who stands still among many.
        ((newest,),) = adding(connection, {**row, "thread": thread_id}).rows
    standings.note(connection, tables, thread_id, rows)
    last, step = newest - len(rows), max(1, events_kept // 10)  # some at once, and not each alone
    if newest > events_kept and newest // step > last // step:
        _forget(connection, tables, thread_id, newest - events_kept)
    return last + 1


@functools.cache
def _adding(tables: Tables) -> Prepared:
    """Adds an event behind those of its thread, and gives its number."""
    t = tables.hub_events
    told = t.alias()
    of_it = told.c.conversation_id == sql.bindparam("thread")
    following = sql.select(sql.func.coalesce(sql.func.max(told.c.seq), 0) + 1).where(of_it)
    return Prepared(t.insert().values(seq=following.scalar_subquery()).returning(t.c.seq))


def _forget(connection: sql.Connection, tables: Tables, thread_id: str, until: int) -> None:
    """Keep none up to that number, but what says how the thread goes on."""
    t, s = tables.hub_events, tables.hub_standings
    mine, of_it = t.c.conversation_id == thread_id, s.c.conversation_id == thread_id
    ticks = sql.select(t.c.seq).where(mine, t.c.type == RUN_TICK).order_by(t.c.seq.desc())
    tick = connection.scalar(ticks.limit(1))  # which run it was, and which of its turns
    until = until if tick is None else min(until, tick - 1)
    before = connection.scalar(sql.select(s.c.forgotten).where(of_it)) or 0
    if until <= before:
        return
    gone = t.c.seq.between(before + 1, until)
    connection.execute(t.delete().where(mine, gone, t.c.type.not_in(_NEVER_FORGOTTEN)))
    if not connection.execute(s.update().where(of_it).values(forgotten=until)).rowcount:
        connection.execute(s.insert().values(conversation_id=thread_id, asks=[], forgotten=until))


def _call(listener: Listener, event: ThreadEvent | None) -> None:
    try:
        listener(event)
    except Exception:  # the others hear of it all the same
        logger.exception("A listener of a thread raised")
