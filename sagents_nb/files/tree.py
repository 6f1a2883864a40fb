"""The entries of one filesystem and the rules they obey; no lock and no events.

Every method either does all of what it says or raises a FileError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from ..text import logger_of
from . import paths, patterns
from .entry import FileEntry, Persistence, new_directory
from .errors import InvalidPath, LimitExceeded, WrongKind, is_directory, missing, taken
from .mounts import Mounts

log = logger_of(__name__)


class Limits(msgspec.Struct, frozen=True):
    """Bytes of one file and of all, number of entries, segments of a path.

    What a storage had when it was listed is not counted, only what is written beside it: of an
    entry that was there, what it has grown by.
    """

    file_size: int
    total_size: int
    entries: int
    depth: int


class FileStats(msgspec.Struct, frozen=True):
    """Counts of entries, directories included; ``size`` is in bytes, read or not.

    ``total`` is ``memory + persisted``, and also ``loaded + not_loaded``. ``dirty`` are
    those that wait to be saved.
    """

    total: int
    memory: int
    persisted: int
    loaded: int
    not_loaded: int
    dirty: int
    size: int


class Move(msgspec.Struct, frozen=True):
    """What a move does: entries with what they become, and the directories it makes."""

    old: str
    new: str
    pairs: list[tuple[FileEntry, FileEntry]]
    directories: list[FileEntry]


class Tree:
    """Entries by normal path.

    ``size`` and ``loaded_size`` (bytes), ``persisted`` and ``unloaded`` (counts) are kept up
    to date, and so is what lies in each directory: no write walks the tree. ``written``
    (bytes) and ``made`` (a count) are for the limits. ``versions`` are those of a storage from
    which contents came, or as which they were saved; "" where there was no file. ``marks``, by
    root of a mount, are from where its storage tells what others have added and removed.
    """

    def __init__(self, limits: Limits, mounts: Mounts) -> None:
        self.limits = limits
        self.mounts = mounts
        self.clear()

    def clear(self) -> None:
        """Forget all entries."""
        self.size = self.loaded_size = 0
        self.persisted = 0
        self.unloaded = 0
        self.written = self.made = 0
        self._entries: dict[str, FileEntry] = {}
        # By directory that has something in it, "/" too: the paths right in it.
        self._inside: dict[str, set[str]] = {}
        # The size of what a storage had at a path whose entry was loaded or changed since; also of
        # what was deleted since, which may be restored. An entry that is not loaded says it itself.
        self._there: dict[str, int] = {}
        self.versions: dict[str, str] = {}
        self.marks: dict[str, Any] = {}

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
        return path == "/" or path in self._entries or path in self._inside

    def each(self, paths: Iterable[str]) -> list[FileEntry | None]:
        """What is stored at each of those paths."""
        return [*map(self._entries.get, paths)]

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
        made_up = {path: new_directory(path) for path in self._inside if path != "/"}
        return made_up | self._entries

    def like(self, pattern: str) -> dict[str, FileEntry]:
        """Such entries and directories, among them all that match a glob.

        Directories that the glob cannot mean are not looked into.
        """
        found = ["/"]
        for name in patterns.names(pattern):
            if "**" in name:
                found = [inner for path in found for inner in self._walk(path)]
                break
            if patterns.is_literal(name):
                named = [f"{path.rstrip('/')}/{name}" for path in found]
                found = [path for path in named if self.has(path)]
            else:
                found = [inner for path in found for inner in self._inside.get(path, ())]
        return {path: self._entries.get(path) or new_directory(path) for path in found}

    def inside(self, directory: str) -> list[FileEntry]:
        """The stored entries right in a directory."""
        found = map(self._entries.get, self._inside.get(directory, ()))
        return [entry for entry in found if entry is not None]

    def _walk(self, path: str) -> Iterator[str]:
        """That path, unless it is "/", and all below it."""
        waiting = [path]
        while waiting:
            here = waiting.pop()
            if here != "/":
                yield here
            waiting += self._inside.get(here, ())

    def copy(self) -> dict[str, FileEntry]:
        """The stored entries by path; pointers only."""
        return dict(self._entries)

    def stats(self, dirty: int) -> FileStats:
        """The counts, ``dirty`` of them waiting to be saved."""
        total, persisted = len(self), self.persisted
        return FileStats(
            total=total,
            memory=total - persisted,
            persisted=persisted,
            loaded=total - self.unloaded,
            not_loaded=self.unloaded,
            dirty=dirty,
            size=self.size,
        )

    # changing

    def put(self, entry: FileEntry) -> list[FileEntry]:
        """Store an entry, in the place of one with its path or with the directories above it.

        Gives what was stored, the entry last.
        """
        before = self._entries.get(entry.path)
        if self.has(entry.path) and (before is None or before.is_directory) > entry.is_directory:
            raise is_directory(entry.path)
        if not entry.is_directory and self.mounts.has(entry.path):
            raise is_directory(entry.path)
        self._check_depth(entry.path)
        directories = self.missing_parents(entry.path) if before is None else []
        self._check_count(len(directories) + (before is None))
        self._check_total(entry, before)
        stored = [self._placed(new) for new in (*directories, entry)]
        for new in stored:
            self._store(new)
        return stored

    def swap(self, entry: FileEntry) -> None:
        """Store a loaded entry in the place of one with its path that was not."""
        before = self._entries[entry.path]
        self._entries[entry.path] = entry
        self.size += entry.size - before.size
        self.loaded_size += entry.size
        self.unloaded -= 1
        self.written -= self._growth(before)
        self._there[entry.path] = entry.size  # not every storage tells it before

    def put_back(self, entry: FileEntry) -> None:
        """Store an entry that was here before; no limit holds."""
        self._store(entry)

    def index(self, entries: Iterable[FileEntry]) -> None:
        """Store what a storage lists: no limit holds, and what cannot be is left out."""
        no_files: dict[str, bool] = {}  # by directory: whether neither it nor one above is a file
        for entry in entries:
            before = self._entries.get(entry.path)
            fits = not self.has(entry.path) if before is None else before.is_directory
            if (above := paths.parent(entry.path)) not in no_files:
                there = map(self._entries.get, paths.ancestors(entry.path))
                no_files[above] = all(e is None or e.is_directory for e in there)
            if (entry.is_directory or fits) and no_files[above]:
                if before is not None:
                    self.pop(entry.path)
                    no_files.clear()
                if entry.loaded:
                    self._there[entry.path] = entry.size
                self._store(entry)
            else:
                log.warning("%s was left out: a file and a directory are in one place", entry.path)

    def take_in(self, entry: FileEntry) -> None:
        """Store what a storage has by now in the place of what it had; no limit holds."""
        self.versions.pop(entry.path, None)
        self._store(entry)

    def plan_move(self, old: str, new: str) -> Move:
        """What moving a file, or a directory and what is in it, does; nothing is changed."""
        self.existing(old)
        if old == new:
            return Move(old, new, [], [])
        if paths.is_below(new, old):
            raise InvalidPath(
                f"{old} cannot be moved into itself ({new}); choose a path outside of it.", old
            )
        if self.has(new):
            raise taken(new)
        sources = sorted(self.below(old), key=lambda entry: entry.path)
        pairs = [(e, _at(e, paths.normalize(new + e.path[len(old) :]))) for e in sources]
        for entry in [old, *(e.path for e in sources)]:
            self._check_same_mount(entry, new + entry[len(old) :])
        for _, moved in pairs:
            self._check_depth(moved.path)
        directories = self.missing_parents(new)
        self._check_count(len(directories))
        return Move(old, new, pairs, [self._placed(entry) for entry in directories])

    def planned_again(self, move: Move) -> Move:
        """The same move with the entries as they are now; it was allowed and is done already."""
        entries = [(self._entries.get(old.path), new.path) for old, new in move.pairs]
        pairs = [(entry, _at(entry, path)) for entry, path in entries if entry is not None]
        directories = [self._placed(entry) for entry in self.missing_parents(move.new)]
        return Move(move.old, move.new, pairs, directories)

    def below(self, path: str) -> list[FileEntry]:
        """The entry at a path, if it is stored, and all below it."""
        if path == "/":
            return []
        found = map(self._entries.get, self._walk(path))
        return [entry for entry in found if entry is not None]

    def carry_out(self, move: Move) -> list[FileEntry]:
        """Do what was planned; the entries at their new paths, sorted."""
        for before, after in move.pairs:
            self.pop(before.path)
            if before.path in self._there:
                self._there[after.path] = self._there.pop(before.path)
            if before.path in self.versions:
                self.versions[after.path] = self.versions.pop(before.path)
        moved = [entry for _, entry in move.pairs]
        for entry in (*move.directories, *moved):
            self._store(entry)
        return moved

    def delete(self, path: str) -> FileEntry:
        """Remove a file, or the entry of a directory but nothing in it."""
        self.check_delete(path)
        self.versions.pop(path, None)
        return self.pop(path)

    def check_delete(self, path: str) -> None:
        """Raise for a path that cannot be deleted."""
        self.existing(path)
        if path not in self._entries:
            raise WrongKind(f"{path} is there only because of the files in it; delete those.", path)

    def pop(self, path: str) -> FileEntry:
        """Remove a stored entry."""
        entry = self._entries.pop(path)
        if not entry.loaded:
            self._there[path] = entry.size
        self.size -= entry.size
        self.written -= self._growth(entry)
        self.made -= path not in self._there
        self.persisted -= entry.persistence == "persisted"
        if entry.loaded:
            self.loaded_size -= entry.size
        else:
            self.unloaded -= 1
        while path != "/" and path not in self._inside and path not in self._entries:
            above = paths.parent(path)
            self._inside[above].discard(path)
            if not self._inside[above]:
                del self._inside[above]
            path = above
        return entry

    def _store(self, entry: FileEntry) -> None:
        if entry.path in self._entries:
            self.pop(entry.path)
        self._entries[entry.path] = entry
        self.size += entry.size
        self.written += self._growth(entry)
        self.persisted += entry.persistence == "persisted"
        if entry.loaded:
            self.loaded_size += entry.size
            self.made += entry.path not in self._there
        else:
            self.unloaded += 1
            self._there.pop(entry.path, None)
        path = entry.path
        while path != "/":
            above = paths.parent(path)
            beside = self._inside.setdefault(above, set())
            if path in beside:
                break
            beside.add(path)
            path = above

    # rules

    def missing_parents(self, path: str) -> list[FileEntry]:
        """The directories above a path that are yet to be made, outermost first.

        Where nothing may be written, none is made: it is there because of what is in it.
        """
        self._check_depth(path)  # before thousands of them are looked for
        absent = []
        for directory in paths.ancestors(path):
            entry = self._entries.get(directory)
            if entry is None:
                mount = self.mounts.of(directory)
                if mount is None or not mount.readonly:
                    absent.append(new_directory(directory))
            elif not entry.is_directory:
                raise WrongKind(
                    f"{directory} is a file, so {path} cannot be in it; choose another path.", path
                )
        return absent

    def _placed(self, entry: FileEntry) -> FileEntry:
        """The entry with the persistence that its path has."""
        where: Persistence = "memory" if self.mounts.of(entry.path) is None else "persisted"
        return entry if entry.persistence == where else replace(entry, persistence=where)

    def _check_same_mount(self, old: str, new: str) -> None:
        mounts = self.mounts
        if mounts.of(old) is not mounts.of(new) or mounts.has(old) or mounts.has(new):
            raise InvalidPath(
                f"{old} cannot be moved to {new}, which is kept elsewhere; write it there and "
                "delete the old one.",
                old,
            )

    def check_size(self, entry: FileEntry) -> None:
        """Raise LimitExceeded for a file that is too large."""
        if entry.size > self.limits.file_size:
            raise LimitExceeded(
                f"{entry.path} would be {entry.size:,} bytes, over the limit of "
                f"{self.limits.file_size:,} for one file; split it.",
                entry.path,
            )

    def _growth(self, entry: FileEntry) -> int:
        """By how many bytes it is larger than what was there."""
        if not entry.loaded:
            return 0
        now = self._entries.get(entry.path)
        there = now.size if now and not now.loaded else self._there.get(entry.path, 0)
        return max(0, entry.size - there)

    def _check_total(self, entry: FileEntry, before: FileEntry | None) -> None:
        grown = self._growth(entry) if entry.loaded else 0
        added = grown - (self._growth(before) if before else 0)
        written, limit = self.written + added, self.limits.total_size
        if added <= 0 or written <= limit:
            return
        would = f"all files would be {written:,} bytes"
        if self._there or self.unloaded:
            would = f"{written:,} bytes would have been written beside what was there before"
        raise LimitExceeded(
            f"With {entry.path} {would}, over the limit of {limit:,}; delete some first.",
            entry.path,
        )

    def _check_depth(self, path: str) -> None:
        if paths.depth(path) > self.limits.depth:
            raise LimitExceeded(
                f"{path} is more than {self.limits.depth} levels deep; use fewer directories.", path
            )

    def _check_count(self, added: int) -> None:
        if added and self.made + added > self.limits.entries:
            beside = " beside what was there before" if self._there or self.unloaded else ""
            raise LimitExceeded(
                f"There are {self.made:,} files and directories{beside} and the limit is "
                f"{self.limits.entries:,}; delete some first."
            )


def _at(entry: FileEntry, path: str) -> FileEntry:
    """The entry with another path; a directory that is titled by its name stays so."""
    named = entry.is_directory and entry.title == entry.name
    return replace(entry, path=path, title=paths.name(path) if named else entry.title)
