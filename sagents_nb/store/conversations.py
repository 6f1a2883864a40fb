"""Conversations in the database.

Every function works in its caller's transaction and for one owner only: to it, what is
somebody else's does not exist.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import sqlalchemy as sql

from ..errors import Busy, ConfigurationError, NotFound
from ..scope import ID_LENGTH
from ..serialization import escaped
from ..sql import Prepared, insert_new
from .database import leases
from .database.schema import Tables, forget_deleted_texts


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation; times are UTC, and ``updated_at`` is when it last went on."""

    id: str
    title: str | None
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def create(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    title: str | None,
    metadata: Mapping[str, Any] | None,
    id: str | None,
) -> Conversation:
    """A new one, whose journal is empty."""
    id = add(connection, tables, owner, title, metadata, id)
    leases.begin(connection, tables, id)
    return get(connection, tables, owner, id)


def add(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    title: str | None,
    metadata: Mapping[str, Any] | None,
    id: str | None,
) -> str:
    """A new one, by its id; what its journal has is for the caller to say."""
    id = str(uuid4()) if id is None else id
    if not isinstance(id, str) or not 1 <= len(escaped(id)) <= ID_LENGTH:
        raise ConfigurationError(
            f"The id of a conversation is text of 1 to {ID_LENGTH} characters, not {id!r:.60}."
        )
    table, now = tables.conversations, datetime.now(UTC)
    changes = _changes({"title": title, "metadata": metadata or {}})
    times = {"created_at": now, "updated_at": now}
    # Not looked for first: of two that make it at once, the second would find none, and fail.
    made = insert_new(connection, table).values(id=id, owner=owner, **times, **changes)
    if connection.execute(made.returning(table.c.id)).first() is None:
        raise ConfigurationError(f"The id {id!r} is taken; choose another.")
    return id


def find(connection: sql.Connection, tables: Tables, owner: str, id: str) -> Conversation | None:
    """The one of that id, or None."""
    if not isinstance(id, str):
        return None
    rows = _finding(tables)(connection, {"found": id, "by": owner}).rows
    return conversation_of(rows[0]) if rows else None


def get(connection: sql.Connection, tables: Tables, owner: str, id: str) -> Conversation:
    """The one of that id."""
    found = find(connection, tables, owner, id)
    if found is None:
        raise _missing(id)
    return found


def listed(
    connection: sql.Connection, tables: Tables, owner: str, limit: int, offset: int
) -> list[Conversation]:
    """Those that went on last, newest first."""
    limit, offset = counted("limit", limit), counted("offset", offset)
    held, others = _listing(tables)
    open_ones = held(connection, {"by": owner}).rows
    # So many of the others, at least, come before the first that is asked for.
    skipped = max(0, offset - len(open_ones))
    window = {"by": owner, "most": limit + offset - skipped, "skipped": skipped}
    found = [conversation_of(row) for row in [*open_ones, *others(connection, window).rows]]
    if open_ones:
        found.sort(
            key=lambda conversation: (conversation.updated_at, conversation.id), reverse=True
        )
    return found[offset - skipped :][:limit]


def update(
    connection: sql.Connection, tables: Tables, owner: str, id: str, changes: Mapping[str, Any]
) -> Conversation:
    """It, with other values of "title" and "metadata"."""
    touch(connection, tables, owner, id, **_changes(changes))
    return get(connection, tables, owner, id)


def touch(connection: sql.Connection, tables: Tables, owner: str, id: str, **values: Any) -> None:
    """It went on just now. Until the transaction ends nobody else can delete it."""
    if not isinstance(id, str):
        raise _missing(id)
    changing = _touching(tables, frozenset(values))
    which = {"touched": id, "by": owner, "now": datetime.now(UTC), **values}
    if not changing(connection, which).changed:
        raise _missing(id)


def delete(connection: sql.Connection, tables: Tables, owner: str, id: str) -> None:
    """Delete it, and by the foreign keys all that belongs to it."""
    touch(connection, tables, owner, id)
    if lease := leases.living(connection, tables, id):
        raise Busy(
            f"Conversation {id!r} is open in process {lease.pid} on {lease.host}; close it there "
            "before you delete it."
        )
    connection.execute(tables.conversations.delete().where(tables.conversations.c.id == id))
    forget_deleted_texts(connection, tables)


OLD_AT_ONCE = 50
"""How many old conversations are deleted in one transaction: nobody waits long for it."""


def older_than(
    connection: sql.Connection, tables: Tables, days: float, among: Sequence[str] | None = None
) -> list[str]:
    """Everybody's that have not gone on for so many days, by the clock of the database."""
    if not isinstance(days, int | float) or isinstance(days, bool) or not 0 <= days <= 36_500:
        raise ConfigurationError(f"days must be a number from 0 to 36,500, not {days!r:.60}.")
    c, last = tables.conversations.c, leases.now(connection) - timedelta(days=days)
    query = sql.select(c.id).where(
        c.updated_at < last, _is_shut(tables) | (leases.went_on(tables) < last)
    )
    if among is not None:
        query = query.where(c.id.in_(among))
    return list(connection.execute(query.order_by(c.id)).scalars())


def delete_older_than(
    connection: sql.Connection, tables: Tables, days: float, among: Sequence[str]
) -> int:
    """Delete those of them that are still as old and are not open; how many."""
    old = older_than(connection, tables, days, among)
    deleted = [id for id in old if not leases.living(connection, tables, id)]
    table = tables.conversations
    connection.execute(table.delete().where(table.c.id.in_(deleted)))
    forget_deleted_texts(connection, tables)
    return len(deleted)


def counted(name: str, value: Any) -> int:
    """``value``, if it is a number of rows."""
    if type(value) is not int or value < 0:
        raise ConfigurationError(f"{name} must be a whole number from 0 on, not {value!r:.60}.")
    return min(value, 2**31)


def _missing(id: Any) -> NotFound:
    return NotFound(f"There is no conversation {id!r:.300}.")


def _changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(changes.get("title"), str | None):
        raise ConfigurationError(f"A title is text or None, not {changes['title']!r:.60}.")
    if not isinstance(changes.get("metadata", {}), Mapping):
        raise ConfigurationError(f"metadata must be a dict, not {changes['metadata']!r:.60}.")
    return dict(changes)


def conversation_of(row: Iterable[Any]) -> Conversation:
    """What a row of :func:`selected` says."""
    id, title, metadata, created_at, updated_at = row
    return Conversation(
        id=id,
        title=title,
        metadata=metadata if isinstance(metadata, dict) else {},  # else it is damaged
        created_at=created_at,
        updated_at=updated_at,
    )


@functools.cache
def _touching(tables: Tables, names: frozenset[str]) -> Prepared:
    table = tables.conversations
    of_it = table.c.id == sql.bindparam("touched"), table.c.owner == sql.bindparam("by")
    new = {name: sql.bindparam(name, type_=table.c[name].type) for name in names}
    return Prepared(table.update().where(*of_it).values(updated_at=sql.bindparam("now"), **new))


def selected(tables: Tables, updated_at: sql.ColumnElement[datetime]) -> sql.Select[Any]:
    """What is read of a conversation, whose ``updated_at`` may be known better elsewhere."""
    c = tables.conversations.c
    return sql.select(c.id, c.title, c.metadata, c.created_at, updated_at.label("updated_at"))


@functools.cache
def _finding(tables: Tables) -> Prepared:
    c = tables.conversations.c
    of_it = c.id == sql.bindparam("found"), c.owner == sql.bindparam("by")
    return Prepared(selected(tables, leases.went_on(tables)).where(*of_it))


@functools.cache
def _listing(tables: Tables) -> tuple[Prepared, Prepared]:
    """The owner's that somebody has open, or had when they crashed; and some of the others.

    Only of the first, which are few, the journal has to be looked at.
    """
    c = tables.conversations.c
    by = sql.bindparam("by", type_=c.owner.type)
    # Not by the index of owners, which has all of theirs.
    held = selected(tables, leases.went_on(tables)).where(
        c.id.in_(leases.held(tables)), sql.func.coalesce(c.owner, "") == by
    )
    others = selected(tables, c.updated_at).where(c.owner == by, _is_shut(tables))
    most, skipped = (sql.bindparam(name, type_=sql.BigInteger) for name in ("most", "skipped"))
    newest = others.order_by(c.updated_at.desc(), c.id.desc()).limit(most).offset(skipped)
    return Prepared(held), Prepared(newest)


def _is_shut(tables: Tables) -> sql.ColumnElement[bool]:
    return tables.conversations.c.id.not_in(leases.held(tables))
