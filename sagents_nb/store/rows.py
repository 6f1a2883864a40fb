"""Rows of transcripts in the database. Every function works in its caller's transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sql

from ..errors import ConfigurationError, NotFound
from .display import STATUSES, DisplayMessage, Row, checked
from .schema import Tables

LONGEST_TERM = 1000
"""Characters of what is searched for; SQLite takes patterns of 50,000 bytes."""


def append(
    connection: sql.Connection, tables: Tables, conversation_id: str, rows: Sequence[Row]
) -> list[DisplayMessage]:
    """Store the rows of one message behind those that are there."""
    table = tables.display_messages
    newest = connection.execute(
        sql.select(sql.func.max(table.c.inserted_at)).where(
            table.c.conversation_id == conversation_id
        )
    ).scalar()
    now = datetime.now(UTC)
    if newest is not None and newest >= now:  # two messages at once, or a clock set back
        now = newest + timedelta(microseconds=1)
    values = [
        {
            "conversation_id": conversation_id,
            "message_type": row.message_type,
            "content_type": row.content_type,
            "content": row.content,
            "status": row.status,
            "metadata": row.metadata,
            "inserted_at": now,
            "sequence": sequence,
            "tool_call_id": row.tool_call_id,
            "search_text": _search_text(row.content.get("text")),
        }
        for sequence, row in enumerate(map(checked, rows))
    ]
    if not values:
        return []
    adding = table.insert().returning(*_columns(tables), sort_by_parameter_order=True)
    return _messages(connection.execute(adding, values))


def load(connection: sql.Connection, tables: Tables, conversation_id: str) -> list[DisplayMessage]:
    """All rows of a conversation, in order."""
    table = tables.display_messages
    return _messages(
        connection.execute(
            _rows(tables)
            .where(table.c.conversation_id == conversation_id)
            .order_by(table.c.inserted_at, table.c.sequence, table.c.id)
        )
    )


def search(
    connection: sql.Connection, tables: Tables, owner: str, term: str, limit: int
) -> list[DisplayMessage]:
    """The owner's rows whose text holds ``term`` in whatever case, newest first."""
    if not isinstance(term, str) or not 1 <= len(term) <= LONGEST_TERM:
        raise ConfigurationError(f"A search is for 1 to {LONGEST_TERM:,} characters of text.")
    table, conversations = tables.display_messages, tables.conversations
    return _messages(
        connection.execute(
            _rows(tables)
            .join(conversations, conversations.c.id == table.c.conversation_id)
            .where(conversations.c.owner == owner)
            .where(table.c.search_text.contains(_search_text(term), autoescape=True))
            .order_by(table.c.inserted_at.desc(), table.c.sequence.desc(), table.c.id.desc())
            .limit(limit)
        )
    )


def change_tool_call(
    connection: sql.Connection,
    tables: Tables,
    where: sql.ColumnElement[bool],
    status: str,
    info: dict[str, Any],
) -> DisplayMessage:
    """The newest tool call of ``where`` that can become ``status``, now that it has."""
    table = tables.display_messages
    before = STATUSES[status]
    row = _newest(
        connection,
        tables,
        where & (table.c.content_type == "tool_call") & table.c.status.in_(before),
        f"that could become {status}; such a call is {' or '.join(before)}",
    )
    return _change(connection, tables, row, status=status, metadata={**row.metadata, **info})


def record_decision(
    connection: sql.Connection,
    tables: Tables,
    where: sql.ColumnElement[bool],
    decision: str,
) -> DisplayMessage:
    """The newest tool call of ``where``, with the decision in its metadata and its result's."""
    table = tables.display_messages
    call = _newest(connection, tables, where & (table.c.content_type == "tool_call"))
    of_call = where & (table.c.conversation_id == call.conversation_id)
    results = _rows(tables).where(
        of_call & (table.c.content_type == "tool_result") & (table.c.id > call.id)
    )
    stamp = {"hitl_decision": decision}
    for result in _messages(connection.execute(results)):
        _change(connection, tables, result, metadata={**result.metadata, **stamp})
    return _change(connection, tables, call, metadata={**call.metadata, **stamp})


def resolve_result(
    connection: sql.Connection, tables: Tables, where: sql.ColumnElement[bool], content: str
) -> DisplayMessage:
    """The newest interrupted result of ``where``, with ``content`` and interrupted no more."""
    if not isinstance(content, str):
        raise ConfigurationError(f"A tool's result is text, not {type(content).__name__}.")
    table = tables.display_messages
    results = _rows(tables).where(where & (table.c.content_type == "tool_result"))
    newest_first = results.order_by(table.c.id.desc())
    for row in _messages(connection.execute(newest_first)):
        if row.content.get("is_interrupt"):
            kept = {name: value for name, value in row.content.items() if name != "is_interrupt"}
            return _change(connection, tables, row, content={**kept, "content": content})
    raise NotFound("There is no interrupted result of this tool call.")


def _newest(
    connection: sql.Connection, tables: Tables, where: sql.ColumnElement[bool], which: str = ""
) -> DisplayMessage:
    newest_first = _rows(tables).where(where).order_by(tables.display_messages.c.id.desc())
    found = _messages(connection.execute(newest_first.limit(1)))
    if not found:
        raise NotFound(" ".join(["There is no tool call of this id", which]).rstrip() + ".")
    return found[0]


def _change(
    connection: sql.Connection, tables: Tables, row: DisplayMessage, **values: Any
) -> DisplayMessage:
    table = tables.display_messages
    changing = table.update().where(table.c.id == row.id).values(**values)
    return _messages(connection.execute(changing.returning(*_columns(tables))))[0]


def _rows(tables: Tables) -> sql.Select[Any]:
    return sql.select(*_columns(tables))


def _columns(tables: Tables) -> list[sql.Column[Any]]:
    return [tables.display_messages.c[name] for name in DisplayMessage.__struct_fields__]


def _messages(found: Iterable[Any]) -> list[DisplayMessage]:
    return [DisplayMessage(**row._mapping) for row in found]


# What a database cannot hold, or would compare otherwise than the next one.
_UNSEARCHABLE = re.compile("[\0\ud800-\udfff]")


def _search_text(text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    return _UNSEARCHABLE.sub("\ufffd", text.casefold())
