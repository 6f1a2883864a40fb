"""One owner for a conversation: who has it, whether they live, and epochs against zombies."""

from __future__ import annotations

import functools
import os
import secrets
import socket
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from ...errors import NotFound, Owned, StaleOwner, StoreError
from ...sql import Prepared, insert_new
from ..entries import Tally
from .schema import IS_HELD, Tables

RENEWED_EVERY = 10.0
"""Seconds between two heartbeats of a store that holds a lease."""

STALE_AFTER = 30.0
"""Seconds without a heartbeat after which one counts as dead that is elsewhere, or stopped."""

_SEPARATOR = " "


class Owner(msgspec.Struct, frozen=True):
    """A store of one process.

    ``machine`` says within what a ``pid`` means one process, and ``started`` which one of those
    that had it; ``store`` tells two stores of a process apart.
    """

    machine: str
    pid: int
    started: str
    store: str

    @classmethod
    def new(cls) -> Owner:
        """This process, with a store of its own."""
        pid = os.getpid()
        return cls(_machine(), pid, started_at(pid) or _imported(), secrets.token_hex(8))

    @property
    def text(self) -> str:
        """As it is kept in the table; :meth:`read` reads it."""
        return _SEPARATOR.join((self.machine, str(self.pid), self.started, self.store))

    @classmethod
    def read(cls, text: str) -> Owner | None:
        """None for a text that none of ours is."""
        parts = text.split(_SEPARATOR)
        if len(parts) != 4 or not parts[1].isdecimal():
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])

    def lives(self) -> bool | None:
        """Whether the process lives; None where that cannot be told, as of one that is stopped."""
        if self.machine != _machine():
            return None
        if self.pid == os.getpid():
            return self.started == (started_at(self.pid) or _imported())
        if sys.platform == "win32":
            return None  # there, os.kill() kills
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
        started = started_at(self.pid)
        if started != self.started:
            return None if started is None else False
        # Nobody knows when one that was stopped goes on: its heartbeats say how long it is waited.
        return None if _is_stopped(self.pid) else True


@functools.cache
def _machine() -> str:
    """Where process ids are the same: the boot of a kernel and its namespace of them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return f"{uuid.getnode():x}/{socket.gethostname().replace(_SEPARATOR, '-')}"


def started_at(pid: int) -> str | None:
    """When the process began, in ticks since boot; "" if it has ended, None if nobody tells."""
    if (found := _stat(pid)) is None:
        return None
    state, *fields = found
    return "" if state in "ZX" else fields[18]  # a zombie has ended, and waits to be told of


def _is_stopped(pid: int) -> bool:
    """Whether a signal or a debugger has stopped the process."""
    found = _stat(pid)
    return found is not None and found[0] in "Tt"


def _stat(pid: int) -> list[str] | None:
    """What the system tells of a process, its state first; None if it does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None  # not Linux, or other users' processes are hidden
    return stat.rpartition(")")[2].split()


@functools.cache
def _imported() -> str:
    """Stands for when this process began, where the system does not tell."""
    return str(time.time_ns())


def begin(connection: sql.Connection, tables: Tables, conversation_id: str) -> None:
    """The lease of a new conversation, which nobody has and whose journal is empty."""
    _insert(connection, tables, conversation_id, Tally().text(conversation_id))


def _insert(
    connection: sql.Connection, tables: Tables, conversation_id: str, tally: str | None
) -> None:
    """A lease that nobody has, if there is none."""
    values = _first(connection, conversation_id, None, tally)
    connection.execute(insert_new(connection, tables.leases), values)


def begin_owned(
    connection: sql.Connection, tables: Tables, owner: Owner, conversation_id: str
) -> None:
    """The lease of a new conversation, whose journal is empty, and which ``owner`` has."""
    tally = Tally().text(conversation_id)
    _begin(tables)(connection, _first(connection, conversation_id, owner, tally))


def _first(
    connection: sql.Connection, conversation_id: str, owner: Owner | None, tally: str | None
) -> dict[str, Any]:
    """The columns of a lease that begins."""
    moment = now(connection)
    return {
        "conversation_id": conversation_id,
        "epoch": int(owner is not None),
        "owner": owner.text if owner else "",
        "host": socket.gethostname() if owner else "",
        "pid": owner.pid if owner else 0,
        "began_at": moment,
        "heartbeat_at": moment,
        "tally": tally,
    }


@functools.cache
def _begin(tables: Tables) -> Prepared:
    return Prepared(tables.leases.insert())


def take(
    connection: sql.Connection, tables: Tables, owner: Owner, conversation_id: str, take_over: bool
) -> tuple[int, Tally | None]:
    """Make ``owner`` the owner of the conversation; the new epoch, and what its journal has.

    Raises :class:`~sagents_nb.errors.Owned` if it has one that lives and that nobody takes over,
    and :class:`~sagents_nb.errors.NotFound` if there is no such conversation.
    """
    leases = tables.leases
    moment = now(connection)
    try:
        # It has one from its beginning on: one that is missing was lost, and its tally with it.
        _insert(connection, tables, conversation_id, None)
    except IntegrityError as error:
        raise NotFound(f"There is no conversation {conversation_id!r} in this store.") from error
    of_it = leases.c.conversation_id == conversation_id
    held = connection.execute(sql.select(leases).where(of_it).with_for_update()).one()
    if not take_over and _is_held(held, moment):
        raise _owned(held, owner)
    if not isinstance(held.epoch, int):  # SQLite takes anything
        raise StoreError(
            f"The lease of conversation {conversation_id!r} is damaged; keep a copy of the file, "
            "then recover it with sqlite3's .recover."
        )
    epoch = held.epoch + 1
    connection.execute(
        leases.update()
        .where(of_it)
        .values(
            epoch=epoch,
            owner=owner.text,
            host=socket.gethostname(),
            pid=owner.pid,
            began_at=moment,
            heartbeat_at=moment,
        )
    )
    return epoch, Tally.read(held.tally, conversation_id)


def check(
    connection: sql.Connection,
    tables: Tables,
    owner: Owner,
    conversation_id: str,
    epoch: int,
    seq: int,
) -> tuple[Tally | None, Any]:
    """What the journal has, None if that is not known, and the checksum of its row ``seq``.

    Raises StaleOwner for another's. The owner stays so for the transaction.
    """
    held = None
    found = _lock(tables)(connection, {"id": conversation_id, "seq": seq}).rows
    for held_epoch, held_by, host, pid, tally, checksum in found:
        if (held_epoch, held_by) == (epoch, owner.text):
            return Tally.read(tally, conversation_id), checksum
        held = held_by, host, pid
    raise _stale(conversation_id, held)


def check_untaken(
    connection: sql.Connection, tables: Tables, owner: Owner, conversation_id: str, epoch: int
) -> int:
    """The epoch in which the owner has it, or ``epoch`` if nobody else had it after that one.

    For what is kept beside the journal, also when the conversation was let go of. Raises
    StaleOwner where another has it, or had it since. Nobody takes it for the transaction.
    """
    found = _untaken(tables)(connection, {"id": conversation_id}).rows
    if not found:
        raise _stale(conversation_id, None)
    held_epoch, *held_by = found[0]
    if held_by[0] != owner.text and held_epoch != epoch:
        raise _stale(conversation_id, tuple(held_by))
    return int(held_epoch)


def _stale(conversation_id: str, held: tuple[str, str, int] | None) -> StaleOwner:
    """What is said to who owned it; ``held`` is who has it now, on which host, as which process."""
    why, step = "was deleted", "begin another one"
    if held is not None:
        why, step = "was closed", "open it again"
        if held[0]:
            why = f"was taken over by process {held[2]} on {held[1]}"
            step = "open it with take_over=True to go on here"
    return StaleOwner(
        f"Conversation {conversation_id!r} {why}, so nothing of this session is kept any more; "
        f"{step}."
    )


def tallies(
    connection: sql.Connection, tables: Tables, ids: Sequence[str]
) -> dict[str, Tally | None]:
    """What journals have, for whoever does not own them; None where that is not known."""
    c = tables.leases.c
    asked = sql.select(c.conversation_id, c.tally).where(c.conversation_id.in_(ids))
    return {id: Tally.read(text, id) for id, text in connection.execute(asked)}


def keep_tally(
    connection: sql.Connection, tables: Tables, conversation_id: str, tally: Tally | None
) -> None:
    """The journal has this from now on; None if that is not known."""
    text = None if tally is None else tally.text(conversation_id)
    values = {"id": conversation_id, "text": text}
    _keep(tables)(connection, values)


def last(connection: sql.Connection, tables: Tables, conversation_id: str) -> str | None:
    """The process that has or had the conversation last, as "host:pid", or None."""
    of_it = tables.leases.c.conversation_id == conversation_id
    held = connection.execute(sql.select(tables.leases).where(of_it)).first()
    return f"{held.host}:{held.pid}" if held is not None and held.epoch else None


def living(connection: sql.Connection, tables: Tables, conversation_id: str) -> sql.Row[Any] | None:
    """The lease of a session that lives, which nobody else takes for the transaction, or None."""
    of_it = tables.leases.c.conversation_id == conversation_id
    held = connection.execute(sql.select(tables.leases).where(of_it).with_for_update()).first()
    return held if held is not None and _is_held(held, now(connection)) else None


def holder(
    connection: sql.Connection, tables: Tables, me: Owner, conversation_id: str
) -> Owned | None:
    """Who has it in a session that lives, as the error that says so, or None."""
    held = living(connection, tables, conversation_id)
    return None if held is None else _owned(held, me)


def release(
    connection: sql.Connection, tables: Tables, owner: Owner, conversation_id: str, epoch: int
) -> None:
    """Give it up; nothing happens if it is somebody else's by now. The epoch stays."""
    c = tables.leases.c
    _give_up(
        connection,
        tables,
        c.conversation_id == conversation_id,
        c.epoch == epoch,
        c.owner == owner.text,
    )


def release_all(connection: sql.Connection, tables: Tables, owner: Owner) -> None:
    """Give up all that the owner has."""
    _give_up(connection, tables, *_has(tables, owner))


def _give_up(
    connection: sql.Connection, tables: Tables, *which: sql.ColumnElement[bool] | sql.TextClause
) -> None:
    leases, conversations = tables.leases, tables.conversations
    of_them = conversations.c.id.in_(sql.select(leases.c.conversation_id).where(*which))
    newest = _newest(tables)
    # Lists look into the journals of those alone that somebody has.
    going_on = conversations.update().where(of_them, newest > conversations.c.updated_at)
    connection.execute(going_on.values(updated_at=newest))
    connection.execute(leases.update().where(*which).values(owner=""))


def held(tables: Tables) -> sql.Select[tuple[str]]:
    """The conversations that somebody has, or had when they crashed."""
    return sql.select(tables.leases.c.conversation_id).where(sql.text(IS_HELD))


def open_now(connection: sql.Connection, tables: Tables, owner: str) -> set[str]:
    """Those of a scope's owner that a session has which lives, here or in another process."""
    leases, of = tables.leases, tables.conversations.c
    # Not by the index of owners, which has all of theirs.
    theirs = of.id == leases.c.conversation_id, sql.func.coalesce(of.owner, "") == owner
    found = sql.select(leases).where(sql.text(IS_HELD), sql.exists().where(*theirs))
    moment = now(connection)
    return {row.conversation_id for row in connection.execute(found) if _is_held(row, moment)}


def went_on(tables: Tables) -> sql.ColumnElement[datetime]:
    """When a conversation did: the newest of what is written to it and of its journal.

    A journal that is written touches nothing else, but its end notes it: see :func:`release`.
    """
    updated_at, newest = tables.conversations.c.updated_at, _newest(tables)
    return sql.case((newest > updated_at, newest), else_=updated_at)


def _newest(tables: Tables) -> sql.ScalarSelect[datetime]:
    journal = tables.journal.c
    entries = sql.select(journal.at).where(journal.conversation_id == tables.conversations.c.id)
    return entries.order_by(journal.seq.desc()).limit(1).scalar_subquery()


def renew_all(connection: sql.Connection, tables: Tables, owner: Owner) -> None:
    """The heartbeat of all that the owner has.

    But for those that somebody has locked just now: nobody takes these meanwhile, and the others
    do not wait for them.
    """
    leases = tables.leases
    free = sql.select(leases.c.conversation_id).where(*_has(tables, owner))
    of_them = leases.c.conversation_id.in_(free.with_for_update(skip_locked=True))
    connection.execute(leases.update().where(of_them).values(heartbeat_at=now(connection)))


def held_by(connection: sql.Connection, tables: Tables, owner: Owner) -> set[str]:
    """The conversations that the owner has."""
    query = sql.select(tables.leases.c.conversation_id).where(*_has(tables, owner))
    return set(connection.execute(query).scalars())


def _has(tables: Tables, owner: Owner) -> tuple[sql.TextClause, sql.ColumnElement[bool]]:
    return sql.text(IS_HELD), tables.leases.c.owner == owner.text


@functools.cache
def _lock(tables: Tables) -> Prepared:
    leases, journal = tables.leases, tables.journal
    columns = (leases.c.epoch, leases.c.owner, leases.c.host, leases.c.pid, leases.c.tally)
    of_it = leases.c.conversation_id == sql.bindparam("id")
    row = journal.c.conversation_id == sql.bindparam("id"), journal.c.seq == sql.bindparam("seq")
    checksum = sql.select(journal.c.checksum).where(*row).scalar_subquery()
    return Prepared(sql.select(*columns, checksum).where(of_it).with_for_update())


@functools.cache
def _untaken(tables: Tables) -> Prepared:
    c = tables.leases.c
    of_it = c.conversation_id == sql.bindparam("id")
    columns = c.epoch, c.owner, c.host, c.pid
    return Prepared(sql.select(*columns).where(of_it).with_for_update())


@functools.cache
def _keep(tables: Tables) -> Prepared:
    leases = tables.leases
    of_it = leases.c.conversation_id == sql.bindparam("id")
    return Prepared(leases.update().where(of_it).values(tally=sql.bindparam("text")))


def _is_held(held: sql.Row[Any], moment: datetime) -> bool:
    if not held.owner:
        return False
    owner = Owner.read(held.owner)
    lives = owner.lives() if owner else None
    if lives is not None:
        return lives
    # A heartbeat from the future is one from before the clock was set back.
    age: timedelta = abs(moment - held.heartbeat_at)
    return age.total_seconds() <= STALE_AFTER


def _owned(held: sql.Row[Any], me: Owner) -> Owned:
    owner = Owner.read(held.owner)
    here = owner is not None and (owner.machine, owner.pid) == (me.machine, me.pid)
    where = "in this process" if here else f"in process {held.pid} on {held.host}"
    return Owned(
        f"Conversation {held.conversation_id!r} has been open {where} since "
        f"{held.began_at:%Y-%m-%d %H:%M} UTC; close it there, or open it with take_over=True.",
        host=held.host,
        pid=held.pid,
        since=held.began_at,
        owner=held.owner,
    )


def _is_postgres(connection: sql.Connection) -> bool:
    return connection.dialect.name == "postgresql"


def now(connection: sql.Connection) -> datetime:
    """By the clock that all owners share: the server's, or this machine's for a file."""
    if _is_postgres(connection):
        told = connection.execute(sql.select(sql.func.clock_timestamp())).scalar_one()
        return cast(datetime, told).astimezone(UTC)
    return datetime.now(UTC)
