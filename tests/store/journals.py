"""Databases with a conversation, and entries to put into its journal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sql

from sagents_nb.store import conversations
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal


@contextlib.contextmanager
def database_of(url: str, *conversations: str) -> Iterator[Database]:
    """A database that has these conversations, "c" if none is named."""
    database = Database(url)
    for id in conversations or ("c",):
        begin(database, id)
    try:
        yield database
    finally:
        database.close()


def begin(database: Database, id: str) -> None:
    """Put a conversation into the database if it is not there."""
    tables = database.tables

    def create(connection: sql.Connection) -> None:
        if conversations.find(connection, tables, "", id) is None:
            conversations.create(connection, tables, "", None, None, id)

    database.run(create)


def note(value: Any, kind: str = "run") -> Entry:
    """An entry that says ``value``."""
    return Entry(kind, {"says": value})


def said(entries: list[Entry]) -> list[Any]:
    """What :func:`note` was told, in the order of the journal."""
    return [entry.data["says"] for entry in entries]


def kept(database: Database, id: str = "c") -> list[Any]:
    """What the journal says to a new owner, who gives it up at once."""
    journal, entries, problems = Journal.open(database, id, take_over=True)
    assert not problems
    journal.release().result()
    return said(entries)


def count(connection: sql.Connection, table: sql.Table) -> int:
    """How many rows the table has."""
    return connection.execute(sql.select(sql.func.count()).select_from(table)).scalar_one()
