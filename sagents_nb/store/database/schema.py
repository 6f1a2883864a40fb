"""The tables of a store, the same on every database, and what their columns take.

Text that a database cannot hold (NUL in PostgreSQL, lone surrogates in both) is written
escaped by the column types, so every query has to go through these tables and never through
SQL text of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sql
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeDecorator

from ... import kinds
from ...errors import ConfigurationError
from ...scope import ID_LENGTH
from ...serialization import escaped, to_data, unescaped
from ...sql import UNKNOWN
from ..entries import encoded

VERSION = "0006"
"""The revision that these tables are; migrations/versions/ has a file for each step to it."""

IS_HELD = "owner <> ''"
"""Of leases: somebody has it. In these words, so that its index is used."""

UNREADABLE: Any = object()
"""Stands for what somebody else wrote into a column of JSON."""

# What begins with it is JSON of which the texts are escaped; no JSON begins so itself.
_MARK = "\ufffe"


class Words(TypeDecorator[str]):
    """Text of any characters, up to ``length`` as it is stored; without it, of any length."""

    impl = sql.String
    cache_ok = True

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """As it is stored."""
        return None if value is None else escaped(str.__str__(value))

    def process_result_value(self, value: Any, dialect: Any) -> str | None:
        """As it was given."""
        return None if value is None else unescaped(value)


class Json(TypeDecorator[Any]):
    """Any value, as JSON text that any database and any JSON parser takes."""

    impl = sql.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """As it is stored."""
        return json_text(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        """As it was given, tuples as lists and structs as dicts; UNREADABLE if it is damaged."""
        if value is None:
            return None
        try:
            if value.startswith(_MARK):
                return unescaped(json.loads(value[1:]))
            return json.loads(value)
        except (ValueError, AttributeError, TypeError, RecursionError):
            return UNREADABLE


class _SqliteTime(sqlite.DATETIME):
    """SQLite's times are texts, and so may be anything."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any]:
        read = super().result_processor(dialect, coltype)

        def moment(value: Any) -> Any:
            try:
                return value if read is None else read(value)
            except (ValueError, TypeError):
                return UNKNOWN

        return moment


class Time(TypeDecorator[datetime]):
    """A moment to the microsecond: UTC, with its zone also where the database keeps none."""

    impl = sql.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Any) -> Any:
        """The type that the database has."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(_SqliteTime())  # type: ignore[no-untyped-call]
        return super().load_dialect_impl(dialect)

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """As it is stored: in UTC."""
        if value is not None and value.tzinfo is None:
            raise ConfigurationError("A time needs its zone; use datetime.now(UTC).")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """In UTC."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def json_text(value: Any) -> str:
    """``value`` as JSON text without a character or a number that is not portable."""
    data = to_data(value)
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
        if "\\u0000" not in text:
            return text  # with U+FFFE as itself: what a state exports is escaped already
    text, is_escaped = encoded(data)
    return _MARK + text if is_escaped else text


class Tables(msgspec.Struct, frozen=True):
    """The tables of one prefix; ``version`` is Alembic's own."""

    metadata: sql.MetaData
    conversations: sql.Table
    agent_states: sql.Table
    display_messages: sql.Table
    journal: sql.Table
    journal_damaged: sql.Table
    leases: sql.Table
    hub_agencies: sql.Table
    hub_blueprints: sql.Table
    hub_events: sql.Table
    hub_standings: sql.Table
    hub_schedules: sql.Table
    hub_schedule_runs: sql.Table
    hub_variables: sql.Table
    hub_doors: sql.Table
    tasks: sql.Table
    artifacts: sql.Table
    tool_feedback: sql.Table
    version: sql.Table

    @property
    def prefix(self) -> str:
        """With which the names of all of them begin."""
        return self.version.name.removesuffix("version")


_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,29}|")


@kinds.checked
@functools.cache
def tables(prefix: str = "sagents_") -> Tables:
    """The tables whose names begin with ``prefix``.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a prefix that is no name.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ConfigurationError(
            f"The table prefix {prefix!r} cannot begin a name; use up to 30 letters, digits and _."
        )
    metadata = sql.MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
        }
    )
    conversations = sql.Table(
        f"{prefix}conversations",
        metadata,
        sql.Column("id", Words(ID_LENGTH), primary_key=True),
        # Canonical JSON of the scope's owner_id; "" where there is no owner.
        sql.Column("owner", Words(ID_LENGTH), nullable=False),
        sql.Column("title", Words()),
        sql.Column("metadata", Json, nullable=False),
        sql.Column("created_at", Time, nullable=False),
        # As long as a session has it open, its journal may be newer: see conversations.py.
        sql.Column("updated_at", Time, nullable=False),
        sql.Index(f"ix_{prefix}conversations_newest", "owner", "updated_at", "id"),
    )

    def of_conversation(**options: Any) -> sql.Column[str]:
        """The column that goes with its conversation: deleted with it."""
        link = sql.ForeignKey(conversations.c.id, ondelete="CASCADE")
        return sql.Column("conversation_id", Words(ID_LENGTH), link, nullable=False, **options)

    hub_schedules = sql.Table(
        f"{prefix}hub_schedules",
        metadata,
        sql.Column("id", Words(ID_LENGTH), primary_key=True),
        sql.Column("agency_id", Words(ID_LENGTH), nullable=False),
        sql.Column("data", Json, nullable=False),
        sql.Column("status", sql.String(20), nullable=False),
        # Null where it does not begin by itself any more.
        sql.Column("next_at", Time),
        sql.Column("last_at", Time),
        sql.Column("created_at", Time, nullable=False),
        sql.Column("updated_at", Time, nullable=False),
        sql.Index(f"ix_{prefix}hub_schedules_due", "status", "next_at"),
        sql.Index(f"ix_{prefix}hub_schedules_agency", "agency_id", "created_at"),
    )

    return Tables(
        metadata=metadata,
        conversations=conversations,
        agent_states=sql.Table(
            f"{prefix}agent_states",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("data", Json, nullable=False),
            sql.Column("updated_at", Time, nullable=False),
        ),
        display_messages=sql.Table(
            f"{prefix}display_messages",
            metadata,
            sql.Column(
                "id",
                sql.BigInteger().with_variant(sql.Integer, "sqlite"),
                primary_key=True,
                autoincrement=True,
            ),
            of_conversation(),
            # Before what may be large, which SQLite would read through to get at it.
            sql.Column("tool_call_id", Words(ID_LENGTH)),
            sql.Column("message_type", Words(ID_LENGTH), nullable=False),
            sql.Column("content_type", sql.String(40), nullable=False),
            sql.Column("content", Json, nullable=False),
            sql.Column("status", sql.String(20), nullable=False),
            sql.Column("metadata", Json, nullable=False),
            sql.Column("inserted_at", Time, nullable=False),
            sql.Column("sequence", sql.Integer, nullable=False),
            # The text of the content as a search compares it; null where there is none.
            sql.Column("search_text", sql.Text),
            sql.Index(
                f"ix_{prefix}display_messages_order", "conversation_id", "inserted_at", "sequence"
            ),
            sql.Index(f"ix_{prefix}display_messages_call", "conversation_id", "tool_call_id"),
        ),
        journal=sql.Table(
            f"{prefix}journal",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("seq", sql.BigInteger, primary_key=True, autoincrement=False),
            sql.Column("kind", sql.String(20), nullable=False),
            # Null in what an older version wrote, until the next owner adds it.
            sql.Column("checksum", sql.BigInteger),
            sql.Column("data", sql.Text, nullable=False),
            sql.Column("escaped", sql.Boolean, nullable=False),
            sql.Column("at", Time, nullable=False),
        ),
        journal_damaged=sql.Table(
            f"{prefix}journal_damaged",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("seq", sql.BigInteger, primary_key=True, autoincrement=False),
            sql.Column("kind", sql.Text),
            sql.Column("data", sql.Text),
            sql.Column("escaped", sql.Boolean),
            sql.Column("reason", Words(), nullable=False),
            sql.Column("at", Time, nullable=False),
        ),
        leases=sql.Table(
            f"{prefix}leases",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("epoch", sql.BigInteger, nullable=False),
            sql.Column("owner", Words(), nullable=False),
            sql.Column("host", Words(), nullable=False),
            sql.Column("pid", sql.BigInteger, nullable=False),
            sql.Column("began_at", Time, nullable=False),
            sql.Column("heartbeat_at", Time, nullable=False),
            # What the journal has, see checksums.py; null where that is not known.
            sql.Column("tally", sql.String),
            sql.Index(
                f"ix_{prefix}leases_held",
                "owner",
                "conversation_id",
                sqlite_where=sql.text(IS_HELD),
                postgresql_where=sql.text(IS_HELD),
            ),
        ),
        hub_agencies=sql.Table(
            f"{prefix}hub_agencies",
            metadata,
            sql.Column("id", Words(ID_LENGTH), primary_key=True),
            sql.Column("name", Words(ID_LENGTH), nullable=False),
            # Of the token that opens this agency alone, the digest.
            sql.Column("secret", sql.String(64), nullable=False),
            sql.Column("created_at", Time, nullable=False),
            sql.Index(f"ix_{prefix}hub_agencies_name", "name", unique=True),
        ),
        hub_blueprints=sql.Table(
            f"{prefix}hub_blueprints",
            metadata,
            sql.Column("agency_id", Words(ID_LENGTH), primary_key=True),
            sql.Column("name", Words(ID_LENGTH), primary_key=True),
            sql.Column("version", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("data", Json, nullable=False),
            sql.Column("created_at", Time, nullable=False),
        ),
        # What the hub told of a thread, in the words of its clients. Never read for a recovery: the
        # journal is the truth.
        hub_events=sql.Table(
            f"{prefix}hub_events",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("seq", sql.BigInteger, primary_key=True, autoincrement=False),
            sql.Column("type", sql.String(40), nullable=False),
            sql.Column("data", Json, nullable=False),
            sql.Column("at", Time, nullable=False),
        ),
        # What the events of a thread come to, so that nobody reads them all for it.
        hub_standings=sql.Table(
            f"{prefix}hub_standings",
            metadata,
            of_conversation(primary_key=True),
            # Of the event that says what the thread is; null where none does.
            sql.Column("type", sql.String(40)),
            sql.Column("reason", Words()),
            sql.Column("asks", Json, nullable=False),
            sql.Column("at", Time),
            sql.Column("model_calls", sql.BigInteger, nullable=False, default=0),
            sql.Column("input_tokens", sql.BigInteger, nullable=False, default=0),
            sql.Column("output_tokens", sql.BigInteger, nullable=False, default=0),
            sql.Column("cost_usd", sql.Double),
            # Events up to this number are not there any more.
            sql.Column("forgotten", sql.BigInteger, nullable=False, default=0),
            sql.Index(f"ix_{prefix}hub_standings_type", "type"),
        ),
        hub_schedules=hub_schedules,
        hub_schedule_runs=sql.Table(
            f"{prefix}hub_schedule_runs",
            metadata,
            sql.Column("id", Words(ID_LENGTH), primary_key=True),
            sql.Column(
                "schedule_id",
                Words(ID_LENGTH),
                sql.ForeignKey(hub_schedules.c.id, ondelete="CASCADE"),
                nullable=False,
            ),
            sql.Column("thread_id", Words(ID_LENGTH)),
            sql.Column("status", sql.String(20), nullable=False),
            sql.Column("attempts", sql.Integer, nullable=False),
            sql.Column("error", Words()),
            sql.Column("scheduled_at", Time, nullable=False),
            sql.Column("started_at", Time),
            sql.Column("ended_at", Time),
            sql.Index(f"ix_{prefix}hub_schedule_runs_newest", "schedule_id", "scheduled_at"),
        ),
        hub_variables=sql.Table(
            f"{prefix}hub_variables",
            metadata,
            sql.Column("agency_id", Words(ID_LENGTH), primary_key=True),
            sql.Column("name", Words(ID_LENGTH), primary_key=True),
            sql.Column("value", Json, nullable=False),
        ),
        # Where who has a lease can be asked, by the owner in the lease.
        hub_doors=sql.Table(
            f"{prefix}hub_doors",
            metadata,
            sql.Column("owner", Words(ID_LENGTH), primary_key=True),
            sql.Column("address", Words(), nullable=False),
            sql.Column("token", Words(ID_LENGTH), nullable=False),
            sql.Column("opened_at", Time, nullable=False),
        ),
        # A task is worked on in the conversation of its id, whose journal is the truth about that.
        tasks=sql.Table(
            f"{prefix}tasks",
            metadata,
            of_conversation(primary_key=True),
            # The conversation in which it began.
            sql.Column("context", Words(ID_LENGTH), nullable=False),
            sql.Column("caller", Words(ID_LENGTH), nullable=False),
            sql.Column("agent", Words(ID_LENGTH), nullable=False),
            sql.Column("state", sql.String(20), nullable=False),
            sql.Column("background", sql.Boolean, nullable=False),
            # How often its state was changed, and which change its context has heard of.
            sql.Column("change", sql.BigInteger, nullable=False),
            sql.Column("told", sql.BigInteger, nullable=False),
            sql.Column("seconds", sql.Double, nullable=False),
            sql.Column("tokens", sql.BigInteger, nullable=False),
            sql.Column("cost_usd", sql.Double),
            sql.Column("data", Json, nullable=False),
            sql.Column("input", Json, nullable=False),
            sql.Column("output", Json, nullable=False),
            sql.Column("created_at", Time, nullable=False),
            sql.Column("updated_at", Time, nullable=False),
            sql.Column("completed_at", Time),
            sql.Index(f"ix_{prefix}tasks_newest", "created_at"),
            sql.Index(f"ix_{prefix}tasks_context", "context", "created_at"),
            sql.Index(f"ix_{prefix}tasks_agent", "agent", "state"),
        ),
        artifacts=sql.Table(
            f"{prefix}artifacts",
            metadata,
            of_conversation(primary_key=True),
            sql.Column("position", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("data", Json, nullable=False),
            sql.Column("created_at", Time, nullable=False),
        ),
        # Of each tool the questions for which it was of use, in words; of nobody's conversation.
        tool_feedback=sql.Table(
            f"{prefix}tool_feedback",
            metadata,
            sql.Column("owner", Words(ID_LENGTH), primary_key=True),
            sql.Column("tool", Words(ID_LENGTH), primary_key=True),
            sql.Column("queries", Json, nullable=False),
            sql.Column("updated_at", Time, nullable=False),
        ),
        version=sql.Table(
            f"{prefix}version",
            metadata,
            sql.Column("version_num", sql.String(32), primary_key=True),
        ),
    )


@functools.cache
def has_trigrams() -> bool:
    """Whether this SQLite can have an index by which texts are found: from 3.34 on, with FTS5."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='trigram')")
        except sqlite3.Error:
            return False
    return True


def text_index(prefix: str) -> dict[str, str]:
    """What SQLite finds texts by, each part by its name and as it is made; no part of a version.

    The index has the rows up to number ``indexed``, and none where that is null: it begins anew.
    A search brings it up to date, see display_rows.py. What is deleted, by whomever, is noted, for
    :func:`forget_deleted_texts`, and ``indexed`` stays below the numbers of rows to come, which may
    be those of deleted ones. What nobody here does, to change a text or to add a number below, has
    it begin anew. Triggers may not write to the index itself: schemas are not trusted.

    Rows after ``disordered`` are in the order of time, as ``newest_at`` and ``newest_sequence``
    were the highest so far.
    """
    rows, index = f"{prefix}display_messages", f"{prefix}search"
    state, gone = f"{index}_state", f"{index}_gone"
    begin_anew = f"UPDATE {state} SET indexed = NULL"
    last = f"coalesce((SELECT max(id) FROM {rows}), indexed - 1)"
    return {
        index: f"CREATE VIRTUAL TABLE {index} USING fts5(text, content='', columnsize=0, "
        "detail=none, tokenize='trigram case_sensitive 1')",
        state: f"CREATE TABLE {state} "
        "(indexed INTEGER, newest_at TEXT, newest_sequence INTEGER, disordered INTEGER)",
        gone: f"CREATE TABLE {gone} (id INTEGER, text TEXT)",
        f"{index}_deleted": f"CREATE TRIGGER {index}_deleted AFTER DELETE ON {rows} BEGIN "
        f"INSERT INTO {gone} SELECT old.id, old.search_text FROM {state} "
        "WHERE old.id <= indexed AND old.search_text IS NOT NULL; "
        f"UPDATE {state} SET indexed = (SELECT max(id) FROM {rows}) WHERE indexed > {last}; END",
        f"{index}_changed": f"CREATE TRIGGER {index}_changed "
        f"AFTER UPDATE OF id, search_text, inserted_at, sequence ON {rows} "
        f"BEGIN {begin_anew}; END",
        f"{index}_added": f"CREATE TRIGGER {index}_added AFTER INSERT ON {rows} "
        f"WHEN new.id <= (SELECT indexed FROM {state}) BEGIN {begin_anew}; END",
    }


def has_text_index(connection: sql.Connection, tables: Tables) -> bool:
    """Whether there is one that can be used, with all its parts."""
    if connection.dialect.name != "sqlite" or not has_trigrams():
        return False
    parts = text_index(tables.prefix)
    places = ", ".join("?" * len(parts))
    known = f"SELECT name, sql FROM sqlite_master WHERE name IN ({places})"
    there = connection.exec_driver_sql(known, tuple(parts))
    return {row.name: row.sql for row in there} == parts


def forget_deleted_texts(connection: sql.Connection, tables: Tables) -> None:
    """Have nothing in the index of what was deleted."""
    if has_text_index(connection, tables):
        index = f"{tables.prefix}search"
        connection.exec_driver_sql(
            f"INSERT INTO {index} ({index}, rowid, text) "
            f"SELECT 'delete', id, text FROM {index}_gone"
        )
        connection.exec_driver_sql(f"DELETE FROM {index}_gone")


def drop_text_index(connection: sql.Connection, tables: Tables) -> None:
    """Have none; what an SQLite without trigrams cannot drop is of no use to anybody then."""
    for name, made in reversed(text_index(tables.prefix).items()):
        kind = "TRIGGER" if made.startswith("CREATE TRIGGER") else "TABLE"
        if has_trigrams() or "VIRTUAL" not in made:
            connection.exec_driver_sql(f"DROP {kind} IF EXISTS {name}")


def make_text_index(connection: sql.Connection, tables: Tables) -> None:
    """An empty one."""
    drop_text_index(connection, tables)
    for made in text_index(tables.prefix).values():
        connection.exec_driver_sql(made)
    connection.exec_driver_sql(f"INSERT INTO {tables.prefix}search_state (indexed) VALUES (NULL)")


def index_texts_on_server(connection: sql.Connection, tables: Tables) -> None:
    """PostgreSQL's own index of trigrams, where its extension is there or may be made."""
    rows = tables.display_messages.name
    with contextlib.suppress(DBAPIError), connection.begin_nested():
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        place = connection.exec_driver_sql(_PLACE_OF_TRIGRAMS).scalar_one()
        connection.exec_driver_sql(
            f"CREATE INDEX ix_{rows}_text ON {rows} USING gin (search_text {place}.gin_trgm_ops)"
        )


_PLACE_OF_TRIGRAMS = (
    "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace "
    "ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm'"
)
