"""Recorded answers in a directory: for one person, many processes, and any number of runs."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ... import kinds
from ...drives import network_kind
from ...errors import ConfigurationError
from ...text import logger_of
from .recording import (
    MESSAGES,
    REST,
    AskOnce,
    Parts,
    Recording,
    from_row,
    parts_of,
    shared_rows,
    to_row,
)

_log = logger_of("sagents_nb.cache")
_T = TypeVar("_T")

GIGABYTE = 2**30
_AGAIN = 2.0  # seconds until a database that could not be opened is tried again
_LOG_PAGES = 200  # of SQLite's log, which stays as long as it once was: under a megabyte
_MOST_READ = 1_000  # recordings that are looked through
# Another process's lock and a full disk pass; what else SQLite says of a file does not, nor do
# rows and settings of a type that diskcache cannot count with.
_PASSING = sqlite3.OperationalError
_DAMAGE = sqlite3.DatabaseError | TypeError | ValueError


class ResponseCache:
    """Recorded answers of models in the directory ``path``, found by what was asked.

    Recordings share what their requests have in common: a conversation takes the space of its
    messages, not of all its requests. ``size_limit`` is in bytes; beyond it the oldest go.
    ``expire`` is in seconds, None for never. A recording is found for as long as it is there
    itself; if the beginning of its request has gone, it is no longer the nearest to another.

    The directory is made with mode 0700; one that belongs to, or is open to, somebody else
    raises :class:`~sagents_nb.errors.ConfigurationError`. It holds JSON text in an SQLite
    database and may be shared by threads and processes of this machine.

    Whatever else goes wrong is a miss: a row that was not written here, a locked or damaged
    database, a full disk. The first time, a warning says so; ``stats()["problem"]`` keeps it.

    Give it to :class:`~sagents_nb.RecordedModel`. Needs ``pip install 'sagents-nb[cache]'``.

    >>> import tempfile
    >>> from sagents_nb import Agent, RecordedModel, ResponseCache, ScriptedModel
    >>> folder = tempfile.TemporaryDirectory()
    >>> cache = ResponseCache(f"{folder.name}/answers")
    >>> Agent(RecordedModel(ScriptedModel(["Hello!"]), cache)).run("hi").text
    'Hello!'
    >>> Agent(RecordedModel(ScriptedModel([]), cache, "replay")).run("hi").text
    'Hello!'
    >>> cache.stats()["hits"], len(list(cache.recordings())), cache.clear()
    (1, 1, 1)
    >>> folder.cleanup()
    """

    @kinds.checked(
        path=kinds.PATH,
        size_limit=kinds.whole(1),
        expire=kinds.or_none(kinds.number(0, "seconds", over=True)),
    )
    def __init__(
        self, path: str | os.PathLike[str], size_limit: int = GIGABYTE, expire: float | None = None
    ) -> None:
        self.path = Path(path).expanduser().absolute()
        self.size_limit = size_limit
        self.expire = expire
        self.ask_once = AskOnce()
        self._lock = threading.Lock()
        self._cache: Any = None
        self._retry_at = 0.0
        self._problem = ""
        self._damaged = False
        self._counts = dict.fromkeys(("hits", "misses", "stored", "failures"), 0)
        try:
            import diskcache  # noqa: F401
        except ImportError:
            raise ConfigurationError(
                "A ResponseCache needs diskcache; pip install 'sagents-nb[cache]'."
            ) from None
        try:
            _prepare(self.path)
        except OSError as error:
            self._failed(error)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"ResponseCache({str(self.path)!r})"

    @kinds.checked
    def get(self, key: str) -> Recording | None:
        """The recording of that ``key``, or None, whatever the disk says. Blocks for a disk access.

        >>> import tempfile
        >>> from sagents_nb import ResponseCache
        >>> ResponseCache(f"{tempfile.mkdtemp()}/answers").get("unknown") is None
        True
        """
        recording = self._read(key, self._text)
        self._counts["hits" if recording is not None else "misses"] += 1
        return recording

    @kinds.checked
    def put(self, recording: Recording) -> None:
        """Store ``recording`` in place of what has its key, if the disk lets it.

        Blocks for a disk access.

        >>> import tempfile
        >>> from sagents_nb import Agent, RecordedModel, ResponseCache, ScriptedModel
        >>> one, other = (ResponseCache(f"{tempfile.mkdtemp()}/answers") for _ in range(2))
        >>> _ = Agent(RecordedModel(ScriptedModel(["Hello!"]), one)).run("hi")
        >>> for recording in one.recordings():
        ...     other.put(recording)
        >>> Agent(RecordedModel(ScriptedModel([]), other, "replay")).run("hi").text
        'Hello!'
        """
        parts = parts_of(recording)
        rows = {recording.key: to_row(recording, parts)}
        self._counts["stored"] += self._tried(
            lambda cache: _stored(cache, rows, parts, self.expire), False
        )

    def recordings(self) -> Iterator[Recording]:
        """The recordings, the newest first; those that cannot be read are left out.

        >>> import tempfile
        >>> from sagents_nb import Agent, RecordedModel, ResponseCache, ScriptedModel
        >>> cache = ResponseCache(f"{tempfile.mkdtemp()}/answers")
        >>> _ = Agent(RecordedModel(ScriptedModel(["Hello!"]), cache)).run("hi")
        >>> [recording.message.text for recording in cache.recordings()]
        ['Hello!']
        """
        texts: dict[str, str | None] = {}  # of what they share, each of which is read once

        def shared(key: str) -> str | None:
            if key not in texts:
                texts[key] = self._text(key)
            return texts[key]

        keys: list[str] = self._tried(lambda cache: list(islice(_keys(cache), _MOST_READ)), [])
        for key in keys:
            recording = self._read(key, shared)
            if recording is not None and _is_whole(recording):
                yield recording

    def stats(self) -> dict[str, Any]:
        """What this object has seen, and what the directory holds.

        ``hits``, ``misses``, ``stored`` and ``failures`` are counts of this object; ``entries``
        and ``bytes`` are of the whole directory; ``problem`` is what failed last, or "".

        >>> import tempfile
        >>> from sagents_nb import ResponseCache
        >>> ResponseCache(f"{tempfile.mkdtemp()}/answers").stats()["entries"]
        0
        """
        entries, size = self._tried(lambda cache: (_count(cache), cache.volume()), (0, 0))
        return {**self._counts, "entries": entries, "bytes": size, "problem": self._problem}

    def clear(self) -> int:
        """Remove every recording, or a database that is damaged; returns how many there were.

        >>> import tempfile
        >>> from sagents_nb import Agent, RecordedModel, ResponseCache, ScriptedModel
        >>> cache = ResponseCache(f"{tempfile.mkdtemp()}/answers")
        >>> _ = Agent(RecordedModel(ScriptedModel(["Hello!"]), cache)).run("hi")
        >>> cache.clear()
        1
        """
        self._retry_at = 0.0
        removed = self._tried(_cleared, 0)
        if self._damaged:
            with self._lock:
                for name in ("cache.db", "cache.db-wal", "cache.db-shm"):
                    (self.path / name).unlink(missing_ok=True)
                self._cache, self._damaged, self._retry_at, self._problem = None, False, 0.0, ""
        return removed

    def _text(self, key: str) -> str | None:
        text: str | None = self._tried(lambda cache: cache.get(key), None)
        return text

    def _read(self, key: str, shared: Callable[[str], str | None]) -> Recording | None:
        text = self._text(key)
        if text is None:
            return None
        try:
            return from_row(text, key, shared)
        except Exception:  # damaged, or put there by somebody else
            return None

    def _tried(self, action: Callable[[Any], _T], otherwise: _T) -> _T:
        """``action`` on the open cache, or ``otherwise`` if anything fails."""
        try:
            cache = self._cache if self._cache is not None else self._opened()
            return otherwise if cache is None else action(cache)
        except Exception as error:
            self._failed(error)
            return otherwise

    def _opened(self) -> Any:
        from .disk import opened

        with self._lock:
            if self._cache is None and time.monotonic() >= self._retry_at:
                self._retry_at = time.monotonic() + _AGAIN
                if network_kind(self.path):
                    raise OSError("it is on a network drive, where SQLite's locks do not hold")
                _prepare(self.path)
                self._cache = opened(self.path, self.size_limit)
            return self._cache

    def _failed(self, error: Exception) -> None:
        from .disk import Damaged

        if isinstance(error, Damaged | _DAMAGE) and not isinstance(error, _PASSING):
            self._damaged, self._cache = True, None
        self._counts["failures"] += 1
        warned, self._problem = bool(self._problem), f"{type(error).__name__}: {error}"
        if not warned:
            advice = "clear() removes it" if self._damaged else "see stats()"
            _log.warning(
                "The cache %s cannot be used (%s); models are asked instead, and %s.",
                *(self.path, self._problem, advice),
            )


def _stored(cache: Any, rows: dict[str, str], parts: Parts | None, expire: float | None) -> bool:
    """Store the rows with those of the parts that are missing, all or none of them."""
    if parts is not None:
        rows = {**shared_rows(parts, lambda key: cache.get(key) is not None), **rows}
    # Of this thread's connection; as a setting of the database older versions would refuse it.
    cache.reset("sqlite_wal_autocheckpoint", _LOG_PAGES, update=False)
    with cache.transact():
        return all(cache.set(key, text, expire=expire) for key, text in rows.items())


def _is_whole(recording: Recording) -> bool:
    try:
        return len(recording.request) > 0
    except LookupError:
        return False


def _cleared(cache: Any) -> int:
    removed = _count(cache)
    cache.clear()
    cache.reset("size", 0)  # which a row of somebody else's may have spoiled
    return removed


def _keys(cache: Any) -> Iterator[str]:
    """The keys of recordings, the newest first."""
    return (key for key in reversed(cache) if key and not key.startswith((MESSAGES, REST)))


def _count(cache: Any) -> int:
    return sum(1 for _ in _keys(cache))


# The directory


def _prepare(path: Path) -> None:
    """Make the directory with mode 0700, or see that it is nobody's but the user's.

    Raises ConfigurationError for a directory that others own, can enter, or could replace by
    one of theirs, and OSError where there is none and none can be made.
    """
    if os.name == "nt":  # where the user's profile is private and there is no mode
        path.mkdir(parents=True, exist_ok=True)
        return
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o755, exist_ok=True)
    above = path.parent.stat()
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise ConfigurationError(
            f"The cache {str(path)!r} would lie in a directory that anybody may change; choose a "
            "directory of your own."
        )
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        _check(path)


def _check(path: Path) -> None:
    status = path.stat()  # of what a link points to: that is what must be ours
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(f"The cache {str(path)!r} is a file; name a directory.")
    if status.st_uid != os.geteuid():
        raise ConfigurationError(
            f"The cache {str(path)!r} belongs to another user, who could change what it says; "
            "choose a directory of your own."
        )
    if not status.st_mode & 0o077:
        return
    if any(path.iterdir()):
        raise ConfigurationError(
            f"The cache {str(path)!r} is open to other users of this machine; close it with: "
            f"chmod 700 {path}"
        )
    path.chmod(0o700)
