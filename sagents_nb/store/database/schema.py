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
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sql
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeDecorator

from ... import kinds
from ...errors import ConfigurationError
from ...serialization import escaped, to_data, unescaped
from ...sql import UNKNOWN
from ..entries import encoded
from ..scope import ID_LENGTH

VERSION = "0003"
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
    version: sql.Table


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
        version=sql.Table(
            f"{prefix}version",
            metadata,
            sql.Column("version_num", sql.String(32), primary_key=True),
        ),
    )
