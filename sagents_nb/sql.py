"""How an SQL database is reached, be it of conversations or of files.

Which URLs, how an engine is made and its connections behave, and what may be told of an error.
SQLAlchemy is optional, so this is imported where a database is asked for.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import StaticPool

from .drives import network_kind
from .errors import ConfigurationError, StoreError
from .redaction import HIDDEN, is_secret, looks_like_secret, texts_in, without

UNKNOWN = datetime.fromtimestamp(0, UTC)
"""Stands for what somebody else wrote into a column of times: one bad row breaks no list."""

LOCK_SECONDS = 5.0
"""How long a locked file, or a locked row of PostgreSQL, is waited for."""

JOURNAL_BYTES = 8 * 2**20
"""To what SQLite's journal is cut again when a transaction made it larger; so is its WAL, once
that was copied to the file."""

# In seconds, but the last: how PostgreSQL's driver finds out that a server is gone for good.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

# The drivers that Python brings and that our extra installs.
SQLITE = "sqlite"
POSTGRESQL = "postgresql+psycopg"
_DRIVERS = {"sqlite+pysqlite": SQLITE, "postgres": POSTGRESQL, "postgresql": POSTGRESQL}


def read_url(url: str | sql.URL, advice: str) -> sql.URL:
    """``url`` with the driver that is used.

    Raises :class:`~sagents_nb.errors.ConfigurationError` with ``advice`` for what is none, has a
    key in the place of its user or host, or is a server of SQLite, which has none; and never
    shows the text itself: there may be a password in it.
    """
    parsed: sql.URL | None = None
    with suppress(ArgumentError, AttributeError, ValueError):  # whose frames show it
        parsed = sql.make_url(url)
    url = ""
    if parsed is None:
        raise ConfigurationError(advice)
    places = [place or "" for place in (parsed.username, parsed.host, parsed.database)]
    if (is_sqlite(parsed) and any(places[:2])) or any(map(_is_key, places)):
        raise ConfigurationError(advice)
    if "@" in (parsed.host or ""):
        raise ConfigurationError(
            "The URL has an '@' in its user or password, so that nobody can tell where its host "
            "begins; write it as %40."
        )
    password = parsed.query.get("password")
    if isinstance(password, str) and not is_sqlite(parsed):  # where no text of the URL shows it
        parsed = parsed.set(password=password).difference_update_query(["password"])
    return parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))


def url_of_place(place: str | Path | sql.URL) -> str | sql.URL:
    """A path as the URL of its SQLite file; any other as it is.

    Raises :class:`~sagents_nb.errors.ConfigurationError`, which does not show it, for what is a
    server's address without "://", or a key: there would be a file with a secret for its name.

    >>> str(url_of_place("agents.db"))
    'sqlite:///agents.db'
    >>> url_of_place("postgresql:/me:secret@host/agents")
    Traceback (most recent call last):
    sagents_nb.errors.ConfigurationError: That is neither a path nor a URL; write 'agents.db', \
'sqlite:///agents.db' or 'postgresql://user@host/database'.
    """
    if isinstance(place, sql.URL) or (isinstance(place, str) and "://" in place):
        return place
    if place == "":
        raise ConfigurationError("The place is empty; name a file, such as 'agents.db', or a URL.")
    if isinstance(place, str) and (_ADDRESS.search(place) or _is_key(place)):
        raise ConfigurationError(
            "That is neither a path nor a URL; write 'agents.db', 'sqlite:///agents.db' or "
            "'postgresql://user@host/database'."
        )
    return sql.URL.create("sqlite", database=str(Path(place).expanduser()))


# "postgresql:/…", "user:password@host" and "host=… password=…". "C:/…" is a path.
_ADDRESS = re.compile(
    r"^[A-Za-z][\w+]+:/|^[^/\\]*:[^/\\]*@|(?:^|\s)(?:host|hostaddr|port|user|password|dbname|service)\s*="
)


def _is_key(place: str) -> bool:
    return not set(place) & set("./\\") and looks_like_secret(place)


def is_sqlite(url: sql.URL) -> bool:
    """Whether it is SQLite, not a server."""
    return url.get_backend_name() == "sqlite"


def path_of(url: sql.URL) -> Path | None:
    """The absolute path of the SQLite file; None in memory and for a server."""
    if not is_sqlite(url) or url.database in (None, "", ":memory:"):
        return None
    assert url.database is not None
    return Path(url.database).absolute()


_SHORTEST_SURE = 6


def masked(url: sql.URL, text: str) -> str:
    """``text`` without the password of ``url`` and the secrets in its query.

    >>> url = sql.make_url("postgresql://me:w@host/d?sslmode=require")
    >>> masked(url, "password of 'worker' required: postgresql://me:w@host/d?sslmode=require")
    "password of 'worker' required: postgresql://me:***@host/d?sslmode=require"
    """
    secrets = {url.password} if url.password else set[str]()
    for name, value in () if is_sqlite(url) else url.query.items():
        secrets |= {*texts_in(value, 1)} if is_secret(name) else set()
    # What may be a word, or a part of one, is only masked where it stands as a value: elsewhere the
    # gap would tell what is missing.
    said = {url.username, url.host, url.database}
    words = {s for s in secrets if s.isalpha() or len(s) < _SHORTEST_SURE or s in said}
    for word in words:
        text = re.sub(rf"(?<=[:=]){re.escape(word)}(?![^@&\s\"'])", HIDDEN, text)
    return without(text, secrets - words, HIDDEN)


def forget_frames(error: BaseException | None) -> None:
    """Have a traceback with locals show none of the driver's, which have the password.

    So has the connection that psycopg's errors keep, to whoever dumps their attributes.
    """
    while error is not None:
        error.__traceback__ = None
        if "_pgconn" in vars(error):
            vars(error)["_pgconn"] = None
        error = error.__cause__ or error.__context__


def create_engine(
    url: sql.URL,
    owner: str,
    *,
    lock_seconds: float | None = None,
    connect_args: dict[str, Any] | None = None,
    **settings: Any,
) -> sql.Engine:
    """An engine for which a commit is one on the disk; no error of it shows what is stored.

    ``owner`` is what messages call the database, as in "The store". SQLite is waited for
    ``lock_seconds``, by default ``LOCK_SECONDS``. The rest is for SQLAlchemy's
    ``create_engine``. Raises ConfigurationError for a network drive, and for a driver that is
    not installed; the first connection to SQLite raises StoreError where it cannot be safe.
    """
    path = path_of(url)
    if path is not None and (kind := network_kind(path)):
        raise ConfigurationError(
            f"{owner} {path} is on a network drive ({kind}), where SQLite loses data because "
            "locks are not kept; choose a path on a local disk, or use PostgreSQL."
        )
    arguments: dict[str, Any] = dict(connect_args or {})
    if is_sqlite(url):
        seconds = LOCK_SECONDS if lock_seconds is None else lock_seconds
        arguments |= {"timeout": seconds, "check_same_thread": False}
        if path is None:
            settings["poolclass"] = StaticPool  # a closed connection would be a lost database
    elif url.drivername == POSTGRESQL:
        arguments |= {k: v for k, v in _PATIENCE.items() if k not in url.query}
        # Behind a pool, the next transaction may be on another of the server's connections, where
        # nothing was prepared.
        prepare = url.query.get("prepare_threshold")
        arguments["prepare_threshold"] = _threshold(prepare, owner)
        url = url.difference_update_query(["prepare_threshold"])
    try:
        engine = sql.create_engine(url, hide_parameters=True, connect_args=arguments, **settings)
    except ImportError as error:
        raise ConfigurationError(
            f"PostgreSQL needs {error.name or 'psycopg'}: pip install 'sagents-nb[postgres]'."
            if url.drivername == POSTGRESQL
            else f"{url.drivername} needs the package {error.name}; install it."
        ) from error

    if is_sqlite(url):
        sql.event.listen(engine, "connect", lambda made, _: _set_up_sqlite(made, owner))
    return engine


def _threshold(asked: Any, owner: str) -> int | None:
    """After how many executions PostgreSQL's driver prepares a statement; never by default."""
    if asked in (None, "None"):
        return None
    if not (isinstance(asked, str) and asked.isascii() and asked.isdecimal()):
        raise ConfigurationError(
            f"{owner}'s URL has prepare_threshold={asked!r:.40}; write a whole number, or leave it "
            "out for no prepared statements."
        )
    return int(asked)


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


def driver_of(connection: sql.Connection) -> Any:
    """The driver's own connection, such as a :class:`sqlite3.Connection`."""
    return connection.connection.driver_connection


def is_text_damage(error: BaseException) -> bool:
    """Whether SQLite gave its driver a text that is none, as a damaged file holds or names."""
    if isinstance(error, sql.exc.DBAPIError):
        error = error.orig or error
    undecoded = isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)
    return undecoded or isinstance(error, UnicodeDecodeError)


def set_patience(connection: sql.Connection, seconds: float | None = None) -> None:
    """Have PostgreSQL wait so long for what is locked, by default ``LOCK_SECONDS``.

    It holds for the transaction that has just begun: what is set for a connection is also for
    others behind a pool. Nor does the server wait for us if we stand still in it: who waits for
    what we have locked gets it. A commit is one on the disk.
    """
    locked = LOCK_SECONDS if seconds is None else seconds
    in_ms = {"locked": f"{locked * 1000:.0f}", "idle": f"{LOCK_SECONDS * 800:.0f}"}
    connection.execute(_PATIENCE_OF_ONE, in_ms)


_PATIENCE_OF_ONE = sql.text(
    "SELECT set_config('lock_timeout', :locked, true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
    "WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)


def insert_new(connection: sql.Connection, table: sql.Table) -> Any:
    """An insert that does nothing, and returns no row, where there is such a row already."""
    made = (sqlite if is_sqlite(connection.engine.url) else postgresql).insert(table)
    return made.on_conflict_do_nothing()


class Done(NamedTuple):
    """What a statement gave: its rows, and how many an update or a deletion changed."""

    rows: list[tuple[Any, ...]]
    changed: int


class Prepared:
    """A statement that is executed often. SQLite's driver gets it as text that is made once.

    Values and rows are those of its columns' types all the same. What fails raises what the driver
    does, or SQLAlchemy. To have SQLAlchemy execute it takes several times as long.

    >>> engine = sql.create_engine("sqlite://")
    >>> twice = Prepared(sql.select(2 * sql.bindparam("n", type_=sql.Integer)))
    >>> with engine.connect() as connection:
    ...     twice(connection, {"n": 21}).rows
    [(42,)]
    """

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._texts: dict[tuple[str, ...], _Text] = {}

    def __call__(self, connection: sql.Connection, values: Mapping[str, Any]) -> Done:
        """Execute it in the transaction of the connection; an insert is of these columns."""
        if connection.dialect.name != SQLITE:
            done = connection.execute(self._statement, values)
            rows = [tuple(row) for row in done] if done.returns_rows else []
            return Done(rows, done.rowcount)
        text = self._texts.get(names := tuple(values))
        if text is None:
            text = self._texts[names] = _Text.of(self._statement, names, connection.dialect)
        cursor = driver_of(connection).execute(text.text, text.bound(values))
        return Done([text.read(row) for row in cursor], cursor.rowcount)


Process = Callable[[Any], Any]


class _Text(NamedTuple):
    """A statement as SQLite's driver takes it, with what makes of values what it stores."""

    text: str
    binds: list[tuple[str, Process | None]]
    fixed: Mapping[str, Any]
    columns: list[Process | None]

    @classmethod
    def of(cls, statement: Any, names: tuple[str, ...], dialect: sql.Dialect) -> _Text:
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        kinds = [(name, compiled.binds[name].type) for name in compiled.positiontup]
        return cls(
            str(compiled),
            [(name, kind.dialect_impl(dialect).bind_processor(dialect)) for name, kind in kinds],
            compiled.params,
            [
                column.type.dialect_impl(dialect).result_processor(dialect, None)
                for column in statement.exported_columns
            ],
        )

    def bound(self, values: Mapping[str, Any]) -> list[Any]:
        values = {**self.fixed, **values}
        return [
            values[name] if process is None else process(values[name])
            for name, process in self.binds
        ]

    def read(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            value if process is None else process(value)
            for value, process in zip(row, self.columns, strict=True)
        )


def wal_is_safe(version: tuple[int, ...]) -> bool:
    """Whether SQLite of this version may use WAL with several connections.

    Before, a checkpoint beside a commit could lose that commit or damage the file, rarely
    (https://sqlite.org/wal.html#walresetbug).
    """
    return (
        version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    )


def _set_up_sqlite(connection: sqlite3.Connection, owner: str) -> None:
    def ask(pragma: str) -> Any:
        return connection.execute(f"PRAGMA {pragma}").fetchone()

    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA fullfsync=ON")  # macOS: else the drive keeps it in its cache
    safe = wal_is_safe(sqlite3.sqlite_version_info)
    is_wal = ask("journal_mode")[0] == "wal"
    # A file that has begun without WAL stays so: somebody may have it open who must not use WAL.
    # Else the journal's file is kept and written over: to cut it and let it grow again with each
    # transaction takes the disk longer. Others may leave it another way; that changes nothing.
    mode = "WAL" if safe and (is_wal or not ask("page_count")[0]) else "PERSIST"
    try:
        is_wal = ask(f"journal_mode={mode}")[0] == "wal"
    except sqlite3.OperationalError:
        if safe or not is_wal:
            raise
    if is_wal and not safe:
        raise StoreError(
            f"{owner}'s file is open in WAL mode in another program, which this SQLite "
            f"({sqlite3.sqlite_version}) cannot safely share; close that program, or update SQLite."
        )
    connection.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
    connection.execute("PRAGMA wal_autocheckpoint=1000")  # in pages: a commit waits for 4 MB
    connection.execute("PRAGMA synchronous=FULL")
    if ask("synchronous")[0] != 2:
        raise StoreError(
            "SQLite does not take synchronous=FULL; use a Python with an ordinary SQLite."
        )
