"""The entries of one filesystem and the rules they obey; no lock and no events.

Every method either does all of what it says or raises a FileError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from . import paths
from .entry import FileEntry, new_directory
from .errors import InvalidPath, LimitExceeded, WrongKind, is_directory, missing, taken


class Limits(msgspec.Struct, frozen=True):
    """Bytes of one file and of all, number of entries, segments of a path."""

    file_size: int
    total_size: int
    entries: int
    depth: int


class FileStats(msgspec.Struct, frozen=True):
    """Counts of entries, directories included; ``size`` is in bytes.

    ``total`` is ``memory + persisted``, and also ``loaded + not_loaded``.
    """

    total: int
    memory: int
    persisted: int
    loaded: int
    not_loaded: int
    dirty: int
    size: int


class Tree:
    """Entries by normal path.

    ``size`` (bytes) and ``persisted`` are kept up to date, and so is how much lies below
    each directory: no write walks the tree.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.size = 0
        self.persisted = 0
        self._entries: dict[str, FileEntry] = {}
        self._below: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[FileEntry]:
        return iter(self._entries.values())

    # looking

    def get(self, path: str) -> FileEntry | None:
        """The stored entry, or None."""
        return self._entries.get(path)

    def has(self, path: str) -> bool:
        """Whether there is a file or directory, be it one that nobody made."""
        return path == "/" or path in self._entries or path in self._below

    def file(self, path: str) -> FileEntry:
        """The file with that path."""
        entry = self._entries.get(path)
        if entry is None and not self.has(path):
            raise missing(path)
        if entry is None or entry.is_directory:
            raise is_directory(path)
        return entry

    def existing(self, path: str) -> FileEntry:
        """The entry with that path, made up for a directory that nobody made."""
        if path == "/":
            raise InvalidPath("'/' cannot be changed; give the path of something in it.", path)
        if not self.has(path):
            raise missing(path)
        return self._entries.get(path) or new_directory(path)

    def with_virtual(self) -> dict[str, FileEntry]:
        """All entries, and the directories that are there only because of what is in them."""
        return {path: new_directory(path) for path in self._below} | self._entries

    def stats(self) -> FileStats:
        """The counts; in memory everything is loaded and nothing waits to be saved."""
        total, kept = len(self), self.persisted
        return FileStats(total, total - kept, kept, total, 0, 0, self.size)

    # changing

    def put(self, entry: FileEntry) -> None:
        """Store an entry, in the place of one with its path, and the directories above it."""
        before = self._entries.get(entry.path)
        if self.has(entry.path) and (before is None or before.is_directory) > entry.is_directory:
            raise is_directory(entry.path)
        self._check_depth(entry.path)
        directories = self._missing_parents(entry.path)
        self._check_count(len(directories) + (before is None))
        size = self.size - (before.size if before else 0) + entry.size
        if size > self.limits.total_size:
            raise LimitExceeded(
                f"With {entry.path} all files would be {size:,} bytes, over the limit of "
                f"{self.limits.total_size:,}; delete some first.",
                entry.path,
            )
        for new in (*directories, entry):
            self._store(new)

    def move(self, old: str, new: str) -> list[FileEntry]:
        """Move a file, or a directory and what is in it; the entries at their new paths."""
        self.existing(old)
        if old == new:
            return []
        if paths.is_below(new, old):
            raise InvalidPath(
                f"{old} cannot be moved into itself ({new}); choose a path outside of it.", old
            )
        if self.has(new):
            raise taken(new)
        sources = [e for e in self if e.path == old or paths.is_below(e.path, old)]
        moved = [_at(entry, paths.normalize(new + entry.path[len(old) :])) for entry in sources]
        for entry in moved:
            self._check_depth(entry.path)
        directories = self._missing_parents(new)
        self._check_count(len(directories))
        for entry in sources:
            self.pop(entry.path)
        for entry in (*directories, *moved):
            self._store(entry)
        return sorted(moved, key=lambda entry: entry.path)

    def delete(self, path: str) -> FileEntry:
        """Remove a file, or the entry of a directory but nothing in it."""
        self.existing(path)
        if path not in self._entries:
            raise WrongKind(f"{path} is there only because of the files in it; delete those.", path)
        return self.pop(path)

    def pop(self, path: str) -> FileEntry:
        """Remove a stored entry."""
        entry = self._entries.pop(path)
        self.size -= entry.size
        self.persisted -= entry.persistence == "persisted"
        for directory in paths.ancestors(path):
            self._below[directory] -= 1
            if not self._below[directory]:
                del self._below[directory]
        return entry

    def _store(self, entry: FileEntry) -> None:
        if entry.path in self._entries:
            self.pop(entry.path)
        self._entries[entry.path] = entry
        self.size += entry.size
        self.persisted += entry.persistence == "persisted"
        for directory in paths.ancestors(entry.path):
            self._below[directory] = self._below.get(directory, 0) + 1

    # rules

    def _missing_parents(self, path: str) -> list[FileEntry]:
        absent = []
        for directory in paths.ancestors(path):
            entry = self._entries.get(directory)
            if entry is None:
                absent.append(new_directory(directory))
            elif not entry.is_directory:
                raise WrongKind(
                    f"{directory} is a file, so {path} cannot be in it; choose another path.", path
                )
        return absent

    def _check_depth(self, path: str) -> None:
        if paths.depth(path) > self.limits.depth:
            raise LimitExceeded(
                f"{path} is more than {self.limits.depth} levels deep; use fewer directories.", path
            )

    def _check_count(self, added: int) -> None:
        if added and len(self) + added > self.limits.entries:
            raise LimitExceeded(
                f"There are {len(self):,} files and directories and the limit is "
                f"{self.limits.entries:,}; delete some first."
            )


def _at(entry: FileEntry, path: str) -> FileEntry:
    """The entry with another path; a directory that is titled by its name stays so."""
    named = entry.is_directory and entry.title == entry.name
    return replace(entry, path=path, title=paths.name(path) if named else entry.title)
