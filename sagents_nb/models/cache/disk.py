"""What diskcache is allowed to do here: keep text under text, in its one database file.

diskcache unpickles any row that says it is pickled, and reads and removes whatever file a row
names (PYSEC-2026-2447; its JSONDisk does too). A row that :meth:`StrictDisk.store` could not
have written is an OSError here, which diskcache takes for a miss. Nothing else of a foreign
database is trusted either: its settings become SQL there, so they are read before diskcache
is.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

from diskcache import Cache, Disk
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA, MODE_RAW

_SETTINGS = frozenset(DEFAULT_SETTINGS) | frozenset(METADATA)
_OBJECTS = re.compile(r"(Cache|Settings|sqlite_(autoindex|stat|sequence))\w*")
_PLAIN = re.compile(r"[a-z-]{1,30}")
WAIT = 5.0  # seconds for another process's lock; then it is a miss


class Damaged(Exception):
    """The database is none that this package wrote."""


class StrictDisk(Disk):  # type: ignore[misc]
    """Text in, text out; no pickle, no file, and every other row is refused."""

    def put(self, key: Any) -> tuple[str, bool]:
        """The key as a column; raises TypeError for any that is no text."""
        if type(key) is not str:
            raise TypeError(f"A key is text, not {type(key).__name__}.")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """The key of a row; "" for one that was not written here, and finds nothing."""
        return key if type(key) is str and raw == 1 else ""

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        """The value as columns; raises TypeError for any that is no text."""
        if type(value) is not str or read:
            raise TypeError(f"A value is text, not {type(value).__name__}.")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> str:
        """The value of a row; raises OSError, which is a miss, for any other kind of row."""
        if mode != MODE_RAW or filename is not None or type(value) is not str or read:
            raise OSError("This row holds no text that was written here.")
        return value

    def filename(self, key: Any = None, value: Any = None) -> Any:
        """No value has a file."""
        raise TypeError("Nothing is stored in files.")

    def remove(self, file_path: Any) -> None:
        """No value has a file, so there is none to remove, whatever a row says."""


def opened(directory: Path, size_limit: int) -> Cache:
    """The cache in that directory.

    Raises Damaged, OSError or sqlite3.Error where there is none that can be used.
    """
    database = directory / DBNAME
    if database.is_symlink():
        raise Damaged(f"{database} is a link")
    if database.exists():
        _inspect(database)
    settings = {
        **DEFAULT_SETTINGS,
        "cull_limit": 100,  # each write may make room for itself
        "size_limit": size_limit,
        "sqlite_mmap_size": 0,  # a mapped file that somebody cuts ends the process
    }
    cache = Cache(str(directory), timeout=WAIT, disk=StrictDisk, **settings)
    cache.reset("size", 0)  # of files: a row that claims to have some would push out all others
    return cache


def _inspect(database: Path) -> None:
    """See that nobody writes to it for ever, and that diskcache may read its settings."""
    connection = sqlite3.connect(database, timeout=WAIT, isolation_level=None)
    try:
        # diskcache tries for a minute to open a database that another process has locked.
        connection.execute("BEGIN IMMEDIATE")
        named = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
        for kind, name in named:
            if kind == "view" or not _OBJECTS.fullmatch(str(name)):
                raise Damaged(f"{database} has a {kind} {name!r} that was not made here")
        if any(name == "Settings" for _, name in named):
            for key, value in connection.execute("SELECT key, value FROM Settings"):
                word = key not in METADATA and _PLAIN.fullmatch(str(value))
                plain = isinstance(value, int) or word
                if key not in _SETTINGS or not plain:
                    raise Damaged(f"{database} has a setting {key!r} that was not made here")
    finally:
        connection.close()
