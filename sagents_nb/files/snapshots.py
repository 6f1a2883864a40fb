"""What the files were at some time, and how that differs from what they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from ..errors import NotFound
from .edits import split_lines
from .entry import FileEntry
from .errors import FileError

MAX_SNAPSHOTS = 100
# Lines of one file: comparing takes time that grows with the square of what differs.
MAX_COMPARED_LINES = 5_000

Files = Mapping[str, FileEntry]


class Snapshot(msgspec.Struct, frozen=True):
    """What ``fs.snapshots()`` tells of one: counts of entries, ``size`` in bytes."""

    id: str
    label: str | None
    taken_at: datetime
    entries: int
    size: int


class SnapshotMissing(FileError, NotFound):
    """There is no snapshot with that id, or no longer: the last 100 are kept."""


class Snapshots:
    """The last 100 snapshots. A snapshot holds the entries themselves, which never change."""

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[Snapshot, dict[str, FileEntry]]] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Snapshot]:
        return (snapshot for snapshot, _ in self._by_id.values())

    def add(self, files: dict[str, FileEntry], size: int, label: str | None) -> str:
        """Keep these; gives the id."""
        id = f"snapshot-{next(self._numbers)}"
        snapshot = Snapshot(id, label, datetime.now(UTC), len(files), size)
        self._by_id[id] = snapshot, files
        if len(self._by_id) > MAX_SNAPSHOTS:
            del self._by_id[next(iter(self._by_id))]
        return id

    def of(self, id: str) -> dict[str, FileEntry]:
        """The files of a snapshot."""
        if id not in self._by_id:
            raise SnapshotMissing(
                f"There is no snapshot {id!r}; snapshots() lists the last {MAX_SNAPSHOTS}, which "
                "are kept."
            )
        return self._by_id[id][1]

    def loaded(self, before: FileEntry, after: FileEntry) -> None:
        """The content of an entry was read: snapshots that hold the entry have it too."""
        for _, files in self._by_id.values():
            if files.get(before.path) is before:
                files[before.path] = after


def same(one: FileEntry | None, other: FileEntry | None) -> bool:
    """Whether two entries of one path say the same, as far as can be told without reading."""
    if one is None or other is None or one is other:
        return one is other
    if _described(one) != _described(other):
        return False
    if one.loaded and other.loaded:
        return one.content == other.content
    if one.sha256 and other.sha256:
        return one.sha256 == other.sha256
    return (one.size, one.modified_at) == (other.size, other.modified_at)


def _described(entry: FileEntry) -> tuple[object, ...]:
    return (entry.is_directory, entry.title, entry.custom, entry.mime_type, entry.file_type)


def changed(old: Files, new: Files) -> list[str]:
    """The paths that are not the same in both, sorted."""
    return sorted(p for p in old.keys() | new.keys() if not same(old.get(p), new.get(p)))


def difference(old: Files, new: Files, paths: Iterable[str]) -> str:
    """The differences of the files at ``paths`` as one unified diff, "" if there are none."""
    return "".join(_file_difference(path, old.get(path), new.get(path)) for path in paths)


def _file_difference(path: str, old: FileEntry | None, new: FileEntry | None) -> str:
    old = None if old and old.is_directory else old
    new = None if new and new.is_directory else new
    if old is None and new is None:
        return ""
    if old and new and old.loaded and new.loaded and old.content == new.content:
        return ""  # only what describes it
    before = f"a{path}" if old else "/dev/null"
    after = f"b{path}" if new else "/dev/null"
    old_text, new_text = old.text if old else "", new.text if new else ""
    if old_text is None or new_text is None:
        kind = "File" if (old and not old.loaded) or (new and not new.loaded) else "Binary file"
        return f"{kind} {path} {_sizes(old, new)}\n"
    old_lines, new_lines = _lines(old_text), _lines(new_text)
    if max(len(old_lines), len(new_lines)) > MAX_COMPARED_LINES:
        return f"Large file {path} {_sizes(old, new)}\n"
    import difflib  # 3 ms

    shown = list(difflib.unified_diff(old_lines, new_lines, before, after))
    if not shown:  # an empty file came or went
        return f"--- {before}\n+++ {after}\n"
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown
    )


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in split_lines(text)]
    if lines and not text.endswith("\n"):
        lines[-1] = lines[-1][:-1]
    return lines


def _sizes(old: FileEntry | None, new: FileEntry | None) -> str:
    if old is None:
        return f"was created ({new.size if new else 0:,} bytes)"
    if new is None:
        return f"was deleted ({old.size:,} bytes)"
    return f"was changed ({old.size:,} → {new.size:,} bytes)"
