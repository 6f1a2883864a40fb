"""Agencies: who has blueprints and threads of their own, and the secret that opens one of them."""

from __future__ import annotations

import functools
import hashlib
import secrets
from datetime import UTC, datetime

import msgspec
import sqlalchemy as sql

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..scope import owner_of
from ..sql import Prepared, insert_new
from ..store.conversations import Conversation, conversation_of, selected
from ..store.database.schema import Tables
from .vocabulary import RUN_PAUSED, STATUSES

NOTEBOOK = "notebook"
"""In what a thread keeps: the id of the agency of its notebook, where a kernel has it."""

_OF_NOTEBOOK = f"{NOTEBOOK}-"  # the ids of others are hexadecimal
_LONGEST_NAME = 100

_NAME = kinds.Kind(
    f"text of 1 to {_LONGEST_NAME} characters",
    lambda value: isinstance(value, str) and bool(value.strip()) and len(value) <= _LONGEST_NAME,
)


class NameTaken(ConfigurationError):
    """Another agency has that name."""


class Agency(msgspec.Struct, frozen=True):
    """One row; ``secret`` is the digest of the token that opens it."""

    id: str
    name: str
    secret: str
    created_at: datetime

    @property
    def owner_id(self) -> tuple[str, str]:
        """Whose its conversations are: an agency is the scope of what it has."""
        return ("agency", self.id)

    @property
    def is_notebook(self) -> bool:
        """Whether its threads are the conversations of a notebook, which stay in no scope."""
        return self.id.startswith(_OF_NOTEBOOK)


def digest_of(token: str) -> str:
    """What is kept of a token: nobody can say from it what the token was."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def create(connection: sql.Connection, tables: Tables, name: str | None) -> tuple[Agency, str]:
    """A new one, and its secret, which nobody can ask for again."""
    if name is not None and not _NAME.fits(name):
        raise ConfigurationError(f"The name of an agency is {_NAME.what}.")
    id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    agency = Agency(id, name or f"agency-{id}", digest_of(secret), datetime.now(UTC))
    made = insert_new(connection, tables.hub_agencies).values(msgspec.structs.asdict(agency))
    if connection.execute(made.returning(tables.hub_agencies.c.id)).first() is None:
        raise NameTaken(f"There is an agency {name!r:.110} already; choose another name.")
    return agency, secret


def id_of_notebook(name: str) -> str:
    """The id of the agency of the notebook of that name."""
    return _OF_NOTEBOOK + digest_of(name)[:16]


def of_notebook(connection: sql.Connection, tables: Tables, name: str) -> Agency:
    """The one of the notebook of that name, made if it is not there: the same each time.

    Its secret is told to nobody; whoever has the hub's token can have another made.
    """
    id = id_of_notebook(name)
    t, shown, number = tables.hub_agencies, name[:_LONGEST_NAME], 1
    while (row := connection.execute(sql.select(t).where(t.c.id == id)).first()) is None:
        secret = digest_of(secrets.token_urlsafe(32))
        made = Agency(id, shown, secret, datetime.now(UTC))
        connection.execute(insert_new(connection, t).values(msgspec.structs.asdict(made)))
        number += 1  # another agency may have that name
        shown = f"{name[: _LONGEST_NAME - 10]} ({number})"
    return Agency(*row)


def listed(connection: sql.Connection, tables: Tables) -> list[Agency]:
    """All of them, the newest first."""
    t = tables.hub_agencies
    rows = connection.execute(sql.select(t).order_by(t.c.created_at.desc(), t.c.id))
    return [Agency(*row) for row in rows]


def get(connection: sql.Connection, tables: Tables, id: str) -> Agency:
    """The one of that id."""
    rows = _finding(tables)(connection, {"of": id}).rows
    if not rows:
        raise missing(id)
    return Agency(*rows[0])


def hold(connection: sql.Connection, tables: Tables, agency: Agency) -> None:
    """Have nobody delete the agency until this transaction ends; raises NotFound if one has."""
    c = tables.hub_agencies.c
    there = sql.select(c.id).where(c.id == agency.id).with_for_update(read=True)
    if connection.execute(there).first() is None:
        raise missing(agency.id)


def missing(id: str) -> NotFound:
    """What is said of an agency that is not there, or is not for whoever asks."""
    return NotFound(f"There is no agency {id!r:.110}; the list of agencies names them.")


def of_secret(connection: sql.Connection, tables: Tables, digest: str) -> str | None:
    """The id of the one that has a secret of that digest, or None."""
    rows = _opening(tables)(connection, {"digest": digest}).rows
    return rows[0][0] if rows else None


# Both are asked with each request.
@functools.cache
def _finding(tables: Tables) -> Prepared:
    t = tables.hub_agencies
    return Prepared(sql.select(t).where(t.c.id == sql.bindparam("of", type_=t.c.id.type)))


@functools.cache
def _opening(tables: Tables) -> Prepared:
    t = tables.hub_agencies
    return Prepared(sql.select(t.c.id).where(t.c.secret == sql.bindparam("digest")))


def new_secret(connection: sql.Connection, tables: Tables, id: str) -> str:
    """Another secret instead of the one it had, which opens nothing from now on."""
    get(connection, tables, id)
    secret, t = secrets.token_urlsafe(32), tables.hub_agencies
    connection.execute(t.update().where(t.c.id == id).values(secret=digest_of(secret)))
    return secret


def delete(connection: sql.Connection, tables: Tables, agency: Agency) -> None:
    """It and what it keeps; its conversations are deleted before."""
    for table, column in (
        (tables.hub_blueprints, tables.hub_blueprints.c.agency_id),
        (tables.hub_schedules, tables.hub_schedules.c.agency_id),
        (tables.hub_variables, tables.hub_variables.c.agency_id),
        (tables.hub_agencies, tables.hub_agencies.c.id),
    ):
        connection.execute(table.delete().where(column == agency.id))


def is_of(tables: Tables, agency: Agency) -> sql.ColumnElement[bool]:
    """Whether a conversation is the agency's: of its scope, or shown in it by a kernel."""
    c = tables.conversations.c
    if not agency.is_notebook:
        return c.owner == owner_of(agency)
    shown = sql.cast(c.metadata, sql.Text).contains(f'"{NOTEBOOK}":"{agency.id}"')
    return sql.and_(c.owner == owner_of(None), shown)


def conversations_of(
    connection: sql.Connection, tables: Tables, agency: Agency
) -> list[Conversation]:
    """Its conversations, the newest first."""
    t = tables.conversations
    query = selected(tables, t.c.updated_at).where(is_of(tables, agency))
    rows = connection.execute(query.order_by(t.c.created_at.desc(), t.c.id.desc()))
    return [conversation_of(row) for row in rows]


def cut_off(connection: sql.Connection, tables: Tables, agency: Agency) -> list[str]:
    """Which of its threads were at work when their process ended, or wait for others of it.

    That is what was told last of a thread, and whether somebody still seems to have it: of what
    happened just before a crash, nothing may have been told. Conversations of notebooks are none:
    they are gone on with in their kernels alone.
    """
    t, last, leases = tables.conversations, tables.hub_standings, tables.leases
    running = [type for type, status in STATUSES.items() if status == "running"]
    is_held = sql.exists().where(leases.c.conversation_id == t.c.id, leases.c.owner != "")
    waits = sql.and_(last.c.type == RUN_PAUSED, last.c.reason == "subagent")
    query = sql.select(t.c.id).outerjoin(last, last.c.conversation_id == t.c.id)
    query = query.where(
        t.c.owner == owner_of(agency), sql.or_(last.c.type.in_(running), waits, is_held)
    )
    return list(connection.execute(query).scalars())
