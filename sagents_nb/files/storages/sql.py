"""Files kept in a table of a database."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ... import kinds
from ...errors import ConfigurationError, StoreError
from ..entry import FileEntry
from ..errors import FileChanged, FileError, is_directory, taken
from .base import Metadata, as_json, content_of, data_of, metadata_of, segments

if TYPE_CHECKING:
    import sqlalchemy as sql

DESCRIPTION = (
    *("title", "file_type", "mime_type", "size", "sha256", "is_text"),
    *("created_at", "modified_at", "custom", "is_directory"),
)

AT_ONCE = 500
"""Rows that one statement asks for; SQLite before 3.32 took 999 parameters."""


class SQLStorage:
    """A ``table`` with one row for each file of each scope, made when first needed.

    ``url`` is that of a database of SQLAlchemy ("sqlite:///files.db",
    "postgresql://user@host/name"), or an engine that you have, with its own settings. A save
    is one transaction, and on the disk when it returns. What the database refuses raises
    FileError, and a ``url`` that SQLAlchemy cannot use
    :class:`~sagents_nb.errors.ConfigurationError`, as does SQLAlchemy that is not there.

    >>> from sagents_nb.files.entry import new_file
    >>> storage = SQLStorage("sqlite://")
    >>> storage.save("user:1", new_file("notes/a.md", "# A", title="First"))
    >>> [(entry.path, entry.title, entry.size) for entry in storage.list("user:1")]
    [('notes/a.md', 'First', 3)]
    >>> storage.list("user:2")
    []
    """

    @kinds.checked
    def __init__(self, url: str | sql.URL | sql.Engine, *, table: str = "sagents_files") -> None:
        try:
            import sqlalchemy as sql
        except ImportError:
            raise ConfigurationError(
                "SQLStorage needs SQLAlchemy: pip install 'sagents-nb[store]'."
            ) from None
        self._own = not isinstance(url, sql.Engine)
        try:
            self._engine = _engine(url)
        except ConfigurationError as error:
            raise error.with_traceback(None) from None
        finally:
            url = ""  # a traceback with locals shows no password
        self._table = files_table(table)
        self._ready = False
        self._starting = threading.Lock()
        # A database in memory has but one connection, and a transaction is not for two threads.
        single = isinstance(self._engine.pool, sql.StaticPool)
        self._turn: AbstractContextManager[Any] = (
            threading.RLock() if single else contextlib.nullcontext()
        )

    def __repr__(self) -> str:
        if not hasattr(self, "_table"):  # a traceback with locals may show what could not be made
            return "<SQLStorage that is not open>"
        return f"SQLStorage({self._place!r}, table={self._table.name!r})"

    @property
    def _place(self) -> str:
        url = self._engine.url
        # The query may hold a password too.
        return url.set(query={}).render_as_string(hide_password=True)

    def close(self) -> None:
        """Close the connections, unless they are those of an engine of yours."""
        if self._own:
            self._engine.dispose()

    # reading

    def list(self, scope: str) -> Iterable[FileEntry]:
        """All files and directories of the scope; contents stay in the database."""
        t = self._table.c
        query = self._table.select().with_only_columns(t.path, *(t[name] for name in DESCRIPTION))
        with self._transaction("The files", "listed") as connection:
            rows = connection.execute(query.where(t.scope_id == _digest(scope))).all()
        return [_metadata(row).entry(row.path) for row in rows]

    def load(self, scope: str, path: str) -> FileEntry:
        """A file with its content."""
        segments(path)
        query = self._table.select().where(*self._at(scope, path))
        with self._transaction(path, "read") as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise FileNotFoundError(path)
        if row.is_directory:
            raise is_directory(path)
        return _metadata(row).entry(path, content_of(bytes(row.content), row.is_text))

    def version(self, scope: str, path: str) -> str | None:
        """What is another text once the content is; None if there is no such file."""
        return self.versions(scope, [path])[path]

    def versions(self, scope: str, paths: Sequence[str]) -> dict[str, str | None]:
        """Those of many files, asked for together."""
        t = self._table.c
        query = self._table.select().with_only_columns(t.path, t.sha256, t.modified_at)
        query = query.where(t.scope_id == _digest(scope), ~t.is_directory)
        found: dict[str, str | None] = dict.fromkeys(paths)
        with self._transaction("The files", "read") as connection:
            for first in range(0, len(paths), AT_ONCE):
                these = map(_digest, paths[first : first + AT_ONCE])
                rows = connection.execute(query.where(t.path_id.in_(these)))
                found |= {row.path: f"{row.sha256} {row.modified_at}" for row in rows}
        return found

    # writing

    def save(self, scope: str, entry: FileEntry) -> None:
        """Create or replace a file or directory."""
        self._save(scope, entry, ())

    def save_over(self, scope: str, entry: FileEntry, version: str) -> str:
        """Save a file if that is still its version; raises FileChanged if it is another."""
        import sqlalchemy as sql

        t = self._table.c
        same: sql.ColumnElement[bool] = sql.false()  # a new one: none may be there
        if version:
            sha256, modified_at = version.split(" ", 1)
            same = sql.and_(t.sha256 == sha256, t.modified_at == modified_at)
        values = self._save(scope, entry, (same,))
        return f"{values['sha256']} {values['modified_at']}"

    def _save(self, scope: str, entry: FileEntry, only: tuple[Any, ...]) -> dict[str, Any]:
        segments(entry.path)
        metadata = metadata_of(entry)
        data = None
        if not entry.is_directory:
            data = data_of(entry)
            metadata = replace(metadata, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        values = {**_columns(metadata, entry.path), "content": data}
        key = {"scope_id": _digest(scope), "path_id": _digest(entry.path)}
        new = {**key, "scope": scope, "path": entry.path, **values}
        change = self._table.update().where(*self._at(scope, entry.path), *only).values(values)
        # The change comes first: a transaction that begins by reading cannot always go on to
        # write in SQLite. Another process may add the row between the two; then it is changed.
        for attempt in (1, 2):
            with self._transaction(entry.path, "saved") as connection:
                if connection.execute(change).rowcount or self._added(connection, new, attempt):
                    self.before_commit(connection, scope)
                    break
                if only:
                    raise FileChanged(f"{entry.path} was changed.", entry.path)
        return values

    def _added(self, connection: sql.Connection, row: dict[str, Any], attempt: int) -> bool:
        import sqlalchemy as sql

        try:
            with connection.begin_nested():
                connection.execute(self._table.insert().values(row))
        except sql.exc.IntegrityError:
            if attempt > 1:
                raise
            return False
        return True

    def save_metadata(self, scope: str, entry: FileEntry) -> None:
        """Save what describes an entry; FileNotFoundError if it is not there."""
        segments(entry.path)
        values = _columns(metadata_of(entry), entry.path)
        if not entry.is_directory:  # what belongs to the content stays with it
            for name in ("size", "sha256", "is_text", "is_directory"):
                del values[name]
        change = self._table.update().where(*self._at(scope, entry.path)).values(values)
        with self._transaction(entry.path, "saved") as connection:
            if not connection.execute(change).rowcount:
                raise FileNotFoundError(entry.path)
            self.before_commit(connection, scope)

    def move(self, scope: str, old: str, new: str) -> None:
        """Rename one file; its metadata goes along."""
        import sqlalchemy as sql

        segments(old)
        segments(new)
        change = self._table.update().where(*self._at(scope, old))
        below = (
            self._table.select()
            .with_only_columns(self._table.c.path)
            .where(
                self._table.c.scope_id == _digest(scope),
                self._table.c.path.startswith(f"{new}/", autoescape=True),
            )
        )
        with self._transaction(old, "moved") as connection:
            try:
                renamed = connection.execute(change.values(path=new, path_id=_digest(new)))
            except sql.exc.IntegrityError:
                raise taken(new) from None
            if not renamed.rowcount:
                raise FileNotFoundError(old)
            # Asked last: in SQLite, one who has read may not be let write.
            if old == new or connection.execute(below.limit(1)).first() is not None:
                raise taken(new)
            self.before_commit(connection, scope)

    def delete(self, scope: str, path: str) -> None:
        """Delete a file, or a directory's own row; missing is fine."""
        segments(path)
        with self._transaction(path, "deleted") as connection:
            connection.execute(self._table.delete().where(*self._at(scope, path)))
            self.before_commit(connection, scope)

    def before_commit(self, connection: sql.Connection, scope: str) -> None:
        """Called last in each transaction that writes to ``scope``; what it raises undoes that.

        ``connection`` is that of the transaction. For a subclass whose files not everybody may
        write who could, at that moment.

        >>> SQLStorage("sqlite://").before_commit(None, "user:1")
        """

    # inside

    def _at(self, scope: str, path: str) -> tuple[Any, ...]:
        t = self._table.c
        return t.scope_id == _digest(scope), t.path_id == _digest(path)

    @contextmanager
    def _transaction(self, path: str, done: str) -> Iterator[sql.Connection]:
        """A transaction; what the database says against it is raised as FileError."""
        import sqlalchemy as sql

        from ...sql import connect, forget_frames, is_text_damage, masked, set_patience

        try:
            with self._turn, connect(self._engine) as connection:
                self._make_table(connection)
                with connection.begin():
                    if connection.dialect.name == "postgresql":
                        set_patience(connection)
                    yield connection
        except (sql.exc.SQLAlchemyError, StoreError, UnicodeDecodeError) as error:
            if isinstance(error, StoreError):
                reason = str(error).removesuffix(".")
            elif is_text_damage(error):
                reason = "it is damaged"
            else:  # not its own text, which has the statement and may have the content
                reason = str(getattr(error, "orig", None) or type(error).__name__)
            reason = masked(self._engine.url, " ".join(reason.split()))
            forget_frames(error)
            raise FileError(
                f"{path} could not be {done} in {self._place}: {reason}; look after the database "
                "and try again.",
                path,
            ) from None

    def _make_table(self, connection: sql.Connection) -> None:
        if self._ready:
            return
        import sqlalchemy as sql

        with self._starting:
            try:
                with connection.begin():
                    self._table.create(connection, checkfirst=True)
            except sql.exc.DBAPIError:
                # Another process was faster, or it is really not possible.
                with connection.begin():
                    if not sql.inspect(connection).has_table(self._table.name):
                        raise
            self._ready = True


def _engine(url: str | sql.URL | sql.Engine) -> sql.Engine:
    import sqlalchemy as sql

    from ...sql import create_engine, is_sqlite, read_url

    if isinstance(url, sql.Engine):
        return url
    url = read_url(
        url,
        "SQLStorage needs the URL of a database, such as 'sqlite:///files.db' or "
        "'postgresql://user@host/name'.",
    )
    try:
        # Several threads save at a time, and each of them may wait for the others.
        return create_engine(url, "The storage", lock_seconds=30, pool_pre_ping=not is_sqlite(url))
    except sql.exc.ArgumentError:
        raise ConfigurationError(
            f"SQLAlchemy knows no database called {url.drivername!r}; use sqlite or postgresql."
        ) from None


def files_table(name: str) -> sql.Table:
    """The table of that name: a row is a file or directory of a scope."""
    import sqlalchemy as sql

    # Digests are the key because databases compare texts in ways of their own (without case,
    # without spaces at the end) and limit how long a key may be.
    return sql.Table(
        name,
        sql.MetaData(),
        sql.Column("scope_id", sql.String(64), primary_key=True),
        sql.Column("path_id", sql.String(64), primary_key=True),
        sql.Column("scope", sql.Text, nullable=False),
        sql.Column("path", sql.Text, nullable=False),
        sql.Column("title", sql.Text),
        sql.Column("file_type", sql.Text),
        sql.Column("mime_type", sql.Text),
        sql.Column("size", sql.BigInteger, nullable=False),
        sql.Column("sha256", sql.String(64)),
        sql.Column("is_text", sql.Boolean, nullable=False),
        # As text, because databases keep times with less than microseconds or without a zone.
        sql.Column("created_at", sql.String(32), nullable=False),
        sql.Column("modified_at", sql.String(32), nullable=False),
        sql.Column("custom", sql.Text, nullable=False),
        sql.Column("is_directory", sql.Boolean, nullable=False),
        sql.Column("content", sql.LargeBinary(2**32 - 1)),
    )


def _columns(metadata: Metadata, path: str) -> dict[str, Any]:
    return {
        "title": metadata.title,
        "file_type": metadata.file_type,
        "mime_type": metadata.mime_type,
        "size": metadata.size,
        "sha256": metadata.sha256,
        "is_text": metadata.text,
        "created_at": metadata.created_at.astimezone(UTC).isoformat(),
        "modified_at": metadata.modified_at.astimezone(UTC).isoformat(),
        "custom": as_json(metadata.custom, path).decode(),
        "is_directory": metadata.is_directory,
    }


def _metadata(row: Any) -> Metadata:
    return Metadata(
        title=row.title,
        file_type=row.file_type,
        mime_type=row.mime_type,
        size=row.size,
        sha256=row.sha256,
        text=row.is_text,
        created_at=_moment(row.created_at),
        modified_at=_moment(row.modified_at),
        custom=msgspec.json.decode(row.custom),
        is_directory=row.is_directory,
    )


def _moment(text: Any) -> datetime:
    """The time that a row tells; UNKNOWN if it tells none."""
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        from ...sql import UNKNOWN  # of the extra, as all of that is

        return UNKNOWN
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
