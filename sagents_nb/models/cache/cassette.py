"""A cassette: recorded answers in one readable file, to lie beside a notebook in a repository."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ...errors import ConfigurationError
from . import layout
from .recording import Recording
from .turns import Turns


class Cassette:
    """The recordings of the JSON file ``path``; there need be none yet.

    It is written after each new recording, as a whole and in one step. What is recorded anew
    with the same words keeps its text and its place. ``header`` holds what else stands in the
    file. Raises :class:`~sagents_nb.errors.ConfigurationError` for a file that is no cassette.

    Use :meth:`at`: all who record into one file must share one Cassette.
    """

    _open: ClassVar[dict[Path, Cassette]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.turns = Turns()
        self.header: dict[str, Any] = {}
        self._entries: dict[str, bytes] = {}  # JSON text of Recording: nothing is shared
        self._lock = threading.Lock()
        self._saved: tuple[int, int] | None = None
        self._dirty = False
        self._read()

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Cassette:
        """The process's one cassette of that path."""
        full = Path(path).expanduser().absolute()
        with cls._opening:
            if full not in cls._open:
                cls._open[full] = cls(full)
            return cls._open[full]

    def __repr__(self) -> str:
        return self.path.name

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Recording | None:
        """The recording of that key, or None; what another process wrote is seen."""
        with self._lock:
            self._read()
            text = self._entries.get(key)
        return None if text is None else _decoded(text)

    def put(self, recording: Recording) -> None:
        """Keep it and write the file; raises OSError if that fails."""
        with self._lock:
            self._read()
            if _same(self._entries.get(recording.key), recording):
                return
            self._entries[recording.key] = msgspec.json.encode(recording)
            self._dirty = True
        with self._lock:  # whoever waited here may find it written along with another's
            if self._dirty:
                self._write()

    def recordings(self) -> Iterator[Recording]:
        """The recordings, in the order in which they were made."""
        with self._lock:
            self._read()
            texts = list(self._entries.values())
        for text in texts:
            yield _decoded(text)

    def keep_of(self, old: Cassette) -> tuple[int, int, int]:
        """After a full recording, look like ``old``: how many are new, changed and gone.

        What says the same as in ``old`` takes its text and its place; the new comes last.
        """
        with self._lock:
            self._read()
            news, before = self._entries, dict(old._entries)
            both = [key for key in before if key in news]
            same = [key for key in both if _same(before[key], _decoded(news[key]))]
            order = [*both, *(key for key in news if key not in before)]
            self._entries = {key: before[key] if key in same else news[key] for key in order}
            self._write()
        return len(news) - len(both), len(both) - len(same), len(before) - len(both)

    def save(self) -> None:
        """Write the file, for a changed ``header``; raises OSError if that fails."""
        with self._lock:
            self._write()

    def _read(self) -> None:
        stamp = _stamp(self.path)
        if stamp == self._saved or stamp is None:
            return
        try:
            self.header, entries = layout.from_text(self.path.read_bytes())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ConfigurationError(
                f"{self.path.name} is no cassette that can be read ({error}); restore it, or "
                "remove it and record again with sagents-nb test-notebook --record."
            ) from None
        self._entries = {key: msgspec.json.encode(entry) for key, entry in entries.items()}
        self._saved = stamp

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        recordings = [_decoded(text) for text in self._entries.values()]
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            with open(beside, "wb") as file:
                file.write(layout.to_text(self.header, recordings))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        finally:
            with suppress(OSError):
                beside.unlink()
        self._saved, self._dirty = _stamp(self.path), False


def _decoded(text: bytes) -> Recording:
    return msgspec.json.decode(text, type=Recording)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _same(text: bytes | None, recording: Recording) -> bool:
    """Whether it says the same: tokens, times and ids of answers differ each time."""
    if text is None:
        return False
    old, new = _decoded(text).message, recording.message
    return (old.parts, old.stop_reason) == (new.parts, new.stop_reason)
