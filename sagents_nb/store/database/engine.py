"""How a database is reached: which URLs, how its connections behave, and what its errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool, StaticPool

from ...drives import network_kind
from ...errors import ConfigurationError, StoreError
from ...redaction import HIDDEN, texts_in, without

LOCK_SECONDS = 5.0
"""How long a locked file, or a locked row of PostgreSQL, is waited for."""

# In seconds, but the last: how PostgreSQL's driver finds out that a server is gone for good.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_KINDS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def url_of(url: str | sql.URL) -> sql.URL:
    """``url``, read and checked, with the driver that is used.

    Raises :class:`~sagents_nb.errors.ConfigurationError`, which never shows the URL itself:
    there may be a password in it.
    """
    try:
        made = sql.make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "The store's URL cannot be read; write 'sqlite:///agents.db' or "
            "'postgresql://user@host/database'."
        ) from None
    if made.drivername not in _KINDS:
        raise ConfigurationError(
            f"A store cannot be kept in {made.drivername!r}; use sqlite:/// or postgresql://."
        )
    made = made.set(drivername=_KINDS[made.drivername])
    if is_sqlite(made) and (made.database or "").startswith("file:"):
        raise ConfigurationError(
            "A store's SQLite file is named by its path, as in 'sqlite:///agents.db', not by a "
            "'file:' URI."
        )
    return made


def is_sqlite(url: sql.URL) -> bool:
    """Whether it is SQLite, not PostgreSQL."""
    return url.get_backend_name() == "sqlite"


def path_of(url: sql.URL) -> Path | None:
    """The absolute path of the SQLite file; None in memory and for PostgreSQL."""
    if not is_sqlite(url) or url.database in (None, "", ":memory:"):
        return None
    assert url.database is not None
    return Path(url.database).absolute()


def name_of(url: sql.URL) -> str:
    """What errors and people call it: the file, or server and database. Never a password."""
    if is_sqlite(url):
        return str(path_of(url) or "in memory")
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{url.host or ''}{port}/{url.database or ''}"


def make_engine(url: sql.URL) -> sql.Engine:
    """An engine for one connection at a time. Raises ConfigurationError for a network drive."""
    path = path_of(url)
    if path is not None and (kind := network_kind(path)):
        raise ConfigurationError(
            f"The store {path} is on a network drive ({kind}), where SQLite loses data because "
            "locks are not kept; choose a path on a local disk, or use PostgreSQL."
        )
    settings: dict[str, Any] = {"hide_parameters": True, "poolclass": NullPool}
    settings["connect_args"] = {k: v for k, v in _PATIENCE.items() if k not in url.query}
    if is_sqlite(url):
        settings["connect_args"] = {"timeout": LOCK_SECONDS}
        if path is None:
            settings["poolclass"] = StaticPool  # a closed connection would be a lost database
            settings["connect_args"]["check_same_thread"] = False
    try:
        engine = sql.create_engine(url, **settings)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"PostgreSQL needs {error.name}: pip install 'sagents-nb[postgres]'."
        ) from error
    sql.event.listen(engine, "connect", _set_up_sqlite if is_sqlite(url) else _set_up_postgres)
    return engine


def connect(engine: sql.Engine) -> sql.Connection:
    """A connection, as soon as a locked file can be opened. Raises what SQLAlchemy raises."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return engine.connect()
        except sql.exc.OperationalError as error:
            # SQLite itself waits, but not while another one begins the file.
            code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def make_file(path: Path) -> None:
    """Make the file and its directory, for this user only, where they are not there.

    An existing file is not opened: closing it would drop the locks that this process has on it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def wal_is_safe(version: tuple[int, ...]) -> bool:
    """Whether SQLite of this version may use WAL with several connections.

    Before, a checkpoint beside a commit could lose that commit or damage the file, rarely
    (https://sqlite.org/wal.html#walresetbug).
    """
    return (
        version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    )


def _set_up_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # The driver's own BEGINs come too late, or not at all; ours are explicit.
    connection.isolation_level = None

    def ask(pragma: str) -> Any:
        return connection.execute(f"PRAGMA {pragma}").fetchone()

    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA fullfsync=ON")  # macOS: else the drive keeps it in its cache
    safe = wal_is_safe(sqlite3.sqlite_version_info)
    is_wal = ask("journal_mode")[0] == "wal"
    # A file that has begun without WAL stays so: somebody may have it open who must not use WAL.
    mode = "WAL" if safe and (is_wal or not ask("page_count")[0]) else "TRUNCATE"
    try:
        is_wal = ask(f"journal_mode={mode}")[0] == "wal"
    except sqlite3.OperationalError:
        if safe or not is_wal:
            raise
    if is_wal and not safe:
        raise StoreError(
            "The store's file is open in WAL mode in another program, which this SQLite "
            f"({sqlite3.sqlite_version}) cannot safely share; close that program, or update SQLite."
        )
    connection.execute("PRAGMA synchronous=FULL")
    if ask("synchronous")[0] != 2:
        raise StoreError(
            "SQLite does not take synchronous=FULL; use a Python with an ordinary SQLite."
        )


def _set_up_postgres(connection: Any, record: object) -> None:
    # Nobody may keep this store's one thread waiting for good, and a commit is one on the disk.
    connection.execute(f"SET lock_timeout TO {round(LOCK_SECONDS * 1000)}")
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


# By SQLite's primary result code: what is wrong, and what to do.
_SQLITE = {
    sqlite3.SQLITE_BUSY: (
        f"another program has had it locked for {LOCK_SECONDS:g} s",
        "close that program or wait for it, then try again",
    ),
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space, then try again"),
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "make the file and its directory writable, or choose another path",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened or made",
        "make the file and its directory writable, or choose another path",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "keep a copy of it, then move it away or recover it with sqlite3's .recover",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is no SQLite database, or is damaged",
        "choose another path, or move it away",
    ),
    sqlite3.SQLITE_IOERR: ("the disk failed to read or write", "check the disk, then try again"),
}
_SQLITE[sqlite3.SQLITE_LOCKED] = _SQLITE[sqlite3.SQLITE_BUSY]
_SQLITE[sqlite3.SQLITE_PERM] = _SQLITE[sqlite3.SQLITE_READONLY]

_LOCKED = "55P03"  # PostgreSQL's word for it


def failure(url: sql.URL, error: BaseException) -> BaseException:
    """``error`` as people can act on it: a StoreError for what the database or the disk says.

    Errors that are no fault of the database are given back as they are.
    """
    if isinstance(error, DBAPIError):
        cause: BaseException = error.orig or error
    elif isinstance(error, OSError | sql.exc.SQLAlchemyError | sqlite3.Error):
        cause = error
    else:
        return error
    what, step = f"{type(cause).__name__}: {_first_line(url, cause)}", "try again"
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _SQLITE:
        what, step = _SQLITE[code & 0xFF]
    elif getattr(cause, "sqlstate", None) == _LOCKED:
        what, step = _SQLITE[sqlite3.SQLITE_BUSY]
    elif isinstance(cause, OSError):
        full = cause.errno == errno.ENOSPC
        what, step = _SQLITE[sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_CANTOPEN]
        what += f" ({cause.strerror})"
    elif not is_sqlite(url) and getattr(error, "connection_invalidated", False):
        what, step = f"the connection was lost ({what})", "see that the server runs, then try again"
    elif not is_sqlite(url):
        step = "see that the server runs and lets you in, then try again"
    made = StoreError(f"The store {name_of(url)} cannot be used: {what}; {step}.")
    made.__cause__ = error
    return made


def _first_line(url: sql.URL, error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    secrets = [url.password, *(url.query.values() if not is_sqlite(url) else ())]
    return without(lines[0], texts_in(secrets, 1), HIDDEN).rstrip(".")
