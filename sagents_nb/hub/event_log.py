"""What is told of one thread: kept in the order in which it happened, then told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sql
from msgspec.structs import replace

from ..errors import StoreError
from ..runtime.thread import runtime
from ..store.database import leases
from ..store.database.schema import Tables
from ..store.database.thread import Database
from ..store.scope import owner_of
from ..text import logger_of
from .agencies import Agency
from .vocabulary import (
    ASKED,
    DELTA,
    MODEL_COMPLETED,
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


# The number after which no database has any.
_HIGHEST = 2**63 - 1


class ThreadEvent(msgspec.Struct, frozen=True, rename={"thread_id": "threadId"}):
    """One event; ``seq`` counts those that are kept, from 1, and a delta has that of the last."""

    thread_id: str
    ts: str
    seq: int
    type: str
    data: dict[str, Any]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread is, without opening it: its ``status`` since the moment ``at``.

    ``reason`` says why it waits or failed, and ``asks`` are the tools whose calls wait for people.
    """

    status: str = "registered"
    at: datetime | None = None
    reason: str | None = None
    asks: tuple[str, ...] = ()


class Spent(msgspec.Struct, kw_only=True):
    """What threads have used: how many they are, the answers of models, and tokens.

    ``cost_usd`` is of those answers that say it, None where none does.
    """

    threads: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


Listener = Callable[[ThreadEvent | None], None]
"""Takes an event; None is the last, of a thread that is closed."""


class EventLog:
    """The events of thread ``thread_id``: what was told, and who is told what follows.

    ``last`` is the number of the last that was told, ``status`` the type of the last of
    :data:`~sagents_nb.hub.vocabulary.STATUSES`, ``run_id`` the last run, ``ticks`` how many turns
    there were, ``accepted`` has the keys of all requests, and ``unreported`` the children of which
    no report was told, by the calls that began them. Nothing is kept, or told, any more
    once another process has had the thread. Its methods are for the runtime loop, where listeners
    are called, too, but for :meth:`wait`.
    """

    def __init__(self, database: Database, thread_id: str) -> None:
        self.thread_id = thread_id
        self._database = database
        self._listeners: list[Listener] = []
        self._due: list[Told] = []
        self._soon = False  # what is due is about to be written
        self._writing: Future[int] | None = None  # one batch after the other, so none overtakes
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
        newest = sql.select(t.c.type).where(mine, t.c.type.in_(STATUSES)).order_by(t.c.seq.desc())
        self.status = connection.scalar(newest.limit(1))
        tick = sql.select(t.c.data).where(mine, t.c.type == RUN_TICK).order_by(t.c.seq.desc())
        if data := connection.scalar(tick.limit(1)):
            self.run_id, self.ticks = data["runId"], data["step"] + 1
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

    def _write(self) -> Future[int] | None:
        """Write what is due, after what is written now; a future for that, None if all is kept."""
        self._soon = False
        if self._writing is not None:
            return self._writing
        due, self._due = self._due, []
        kept = [each for each in due if each[0] != DELTA]
        at = datetime.now(UTC)
        if not kept:
            self._tell(due, at, self.last)
            self._tell_end()
            return None
        rows = [
            {"conversation_id": self.thread_id, "type": type, "data": data, "at": at}
            for type, data in kept
        ]
        self._writing = writing = self._database.submit(
            lambda connection: self._insert(connection, rows), about=self.thread_id
        )
        writing.add_done_callback(lambda _: runtime.post(self._written, writing, due, at))
        return writing

    def _insert(self, connection: sql.Connection, rows: list[dict[str, Any]]) -> int:
        self.check(connection)
        return _insert(connection, self._database.tables.hub_events, rows)

    def _written(self, writing: Future[int], due: list[Told], at: datetime) -> None:
        self._writing = None
        if (error := writing.exception()) is None:
            self._tell(due, at, writing.result() - 1)
            self._write()
        else:
            logger.error("Events of thread %s could not be kept: %s", self.thread_id, error)
            if isinstance(error, StoreError):  # else they never can be
                self._due = [each for each in due if each[0] != DELTA] + self._due
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


def read(
    connection: sql.Connection, tables: Tables, thread_id: str, since: int
) -> list[ThreadEvent]:
    """What was told of a thread after number ``since``, the first :data:`MOST_READ` of it."""
    t = tables.hub_events
    after = sql.and_(t.c.conversation_id == thread_id, t.c.seq > min(since, _HIGHEST))
    return _read(connection, t, thread_id, after)


def _read(
    connection: sql.Connection, t: sql.Table, thread_id: str, which: sql.ColumnElement[bool]
) -> list[ThreadEvent]:
    rows = connection.execute(sql.select(t).where(which).order_by(t.c.seq).limit(MOST_READ))
    return [ThreadEvent(thread_id, r.at.isoformat(), r.seq, r.type, r.data) for r in rows]


def standings(connection: sql.Connection, tables: Tables, agency: Agency) -> dict[str, Standing]:
    """What each thread of an agency is of which anything was told, by its id."""
    found = {
        event.thread_id: Standing(
            status=STATUSES[event.type],
            at=datetime.fromisoformat(event.ts),
            reason=event.data.get("reason") or event.data.get("error"),
        )
        for event in _last_of(connection, tables, agency, tuple(STATUSES))
    }
    waiting = [id for id, standing in found.items() if standing.reason == "hitl"]
    if waiting:
        for event in _last_of(connection, tables, agency, (ASKED,)):
            if event.thread_id in waiting:
                asks = tuple(call["toolName"] for call in event.data["proposedToolCalls"])
                found[event.thread_id] = replace(found[event.thread_id], asks=asks)
    return found


def _last_of(
    connection: sql.Connection, tables: Tables, agency: Agency, types: Sequence[str]
) -> list[ThreadEvent]:
    """Of each thread the last event of these types: found from the end, since it is near there."""
    t, c = tables.hub_events, tables.conversations
    of_it = t.alias()
    newest = (
        sql.select(of_it.c.seq)
        .where(of_it.c.conversation_id == c.c.id, of_it.c.type.in_(types))
        .order_by(of_it.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    mine = sql.and_(c.c.owner == owner_of(agency), t.c.seq == newest)
    rows = connection.execute(sql.select(t).join(c, c.c.id == t.c.conversation_id).where(mine))
    return [ThreadEvent(r.conversation_id, r.at.isoformat(), r.seq, r.type, r.data) for r in rows]


def spent(connection: sql.Connection, tables: Tables, agency: Agency) -> Spent:
    """What the threads have used that an agency has now."""
    t, c = tables.hub_events, tables.conversations
    mine = c.c.owner == owner_of(agency)
    total = Spent(threads=connection.scalar(sql.select(sql.func.count()).where(mine)) or 0)
    answers = sql.select(t.c.data).join(c, c.c.id == t.c.conversation_id)
    for data in connection.scalars(answers.where(mine, t.c.type == MODEL_COMPLETED)):
        usage = data.get("usage", {})
        total.model_calls += 1
        total.input_tokens += usage.get("inputTokens", 0)
        total.output_tokens += usage.get("outputTokens", 0)
        if "costUsd" in usage:
            total.cost_usd = (total.cost_usd or 0.0) + usage["costUsd"]
    return total


def _insert(connection: sql.Connection, table: sql.Table, rows: list[dict[str, Any]]) -> int:
    mine = table.c.conversation_id == rows[0]["conversation_id"]
    last = connection.scalar(sql.select(sql.func.max(table.c.seq)).where(mine)) or 0
    for number, row in enumerate(rows, last + 1):
        # One by one: a server does not end the transaction of who stands still among many.
        connection.execute(table.insert(), {**row, "seq": number})
    return int(last) + 1


def _call(listener: Listener, event: ThreadEvent | None) -> None:
    try:
        listener(event)
    except Exception:  # the others hear of it all the same
        logger.exception("A listener of a thread raised")
