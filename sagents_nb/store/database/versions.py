"""Which version a database is of, and how it becomes the newest."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ...errors import ConfigurationError
from ...sql import set_patience
from . import schema
from .schema import Tables


def look_at(path: Path, tables: Tables) -> None:
    """Read an SQLite file before anything is written to it, be it the mode of its journal.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a database of a newer version,
    and for one whose tables of these names are somebody else's.
    """
    address = f"{path.as_uri()}?mode=ro"
    engine = sql.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=NullPool
    )
    # What cannot be read this way, such as a file that a crash left unfinished, is told by the
    # connection that may also write.
    with contextlib.suppress(DBAPIError), engine.connect() as connection:
        _version(connection, tables)


def bring_up_to_date(connection: sql.Connection, tables: Tables) -> None:
    """Make the tables, or change older ones, in a transaction of its own: all of it or nothing.

    Of several processes that try, one does it. Raises what :func:`look_at` raises.
    """
    with connection.begin() as reading:
        version = _version(connection, tables)
        reading.rollback()
    if version is not None and connection.dialect.name == "sqlite" and not schema.has_trigrams():
        with connection.begin():  # another SQLite made it, and this one could delete no row
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            schema.drop_text_index(connection, tables)
    if version == schema.VERSION:
        return
    if connection.dialect.name == "postgresql":
        with connection.begin():
            set_patience(connection)
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK)))
            if _bring_up_to_date(connection, tables):
                schema.index_texts_on_server(connection, tables)
        return
    # SQLite changes a table by making another in its place, and dropping one would delete, by
    # the foreign keys, what belongs to its rows.
    with _without_foreign_keys(connection), connection.begin():
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _bring_up_to_date(connection, tables)


def _bring_up_to_date(connection: sql.Connection, tables: Tables) -> bool:
    """Whether it was of another version before."""
    version = _version(connection, tables)
    if version == schema.VERSION:
        return False
    if version is None:
        tables.metadata.create_all(connection, checkfirst=False)
    else:
        from ..migrations import migrate  # alembic: most stores never need it

        migrate(connection, tables.prefix, version, schema.VERSION)
        connection.execute(tables.version.delete())
    connection.execute(tables.version.insert().values(version_num=schema.VERSION))
    return True


@contextlib.contextmanager
def _without_foreign_keys(connection: sql.Connection) -> Iterator[None]:
    def switch(to: str) -> None:
        with connection.begin():  # SQLAlchemy's alone: to SQLite there is no transaction yet
            connection.exec_driver_sql(f"PRAGMA foreign_keys={to}")

    switch("OFF")
    try:
        yield
    finally:
        switch("ON")


_LOCK = 0x5A6E7475  # any number that nobody else is likely to lock


def _version(connection: sql.Connection, tables: Tables) -> str | None:
    """None for a database that has none of the tables."""
    database = sql.inspect(connection)
    present = set(database.get_table_names())
    if tables.version.name not in present:
        present.update(database.get_view_names())
        if taken := sorted(present & set(tables.metadata.tables)):
            raise ConfigurationError(
                f"The database has a table or view {taken[0]} that is no store's; "
                "give the store another table_prefix."
            )
        return None
    versions = connection.execute(sql.select(tables.version.c.version_num)).scalars().all()
    texts = list(map(str, versions))  # SQLite takes anything
    found = ", ".join(texts) or "no number"
    if not (found.isascii() and found.isdecimal()) or not 1 <= int(found) <= int(schema.VERSION):
        raise ConfigurationError(
            f"This store is of version {found:.40}, but {schema.VERSION} is the newest that this "
            "sagents_nb reads; upgrade sagents_nb."
        )
    return found
