"""What becomes of files: what each was before it was first changed, and as what it was left."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from .entry import FileEntry

LARGEST = 200_000  # bytes of a text that is kept
ROOM = 20_000_000  # of all that are


class Change(NamedTuple):
    """One file: what it was, None if it was not there, and what it is, None if it is gone.

    ``before`` has its content if that is a text and was kept; ``after`` has none.
    """

    before: FileEntry | None
    after: FileEntry | None

    def left(self, entry: FileEntry | None) -> bool:
        """Whether a file, read anew, is still as the change has left it."""
        if entry is None or self.after is None:
            return entry is self.after
        if self.after.sha256 is None:  # moved, and never read
            return (entry.size, entry.modified_at) == (self.after.size, self.after.modified_at)
        return entry.sha256 == self.after.sha256


class Changes:
    """What was changed while ``fs.track(changes)`` held, by whomever it was.

    Texts of up to 200 kB are kept as they were, up to 20 MB of them. What other programs do to the
    files of a mount is none of it. A move is two changes: something went, and something came.

    >>> from sagents_nb.files import VirtualFilesystem
    >>> fs, changes = VirtualFilesystem(), Changes()
    >>> _ = fs.write("/a.md", "one")
    >>> stop = fs.track(changes)
    >>> _ = fs.write("/a.md", "two")
    >>> stop()
    >>> changes.paths(), changes.of("/a.md").before.text
    (['/a.md'], 'one')
    """

    def __init__(self) -> None:
        self._changes: dict[str, Change] = {}
        self._size = 0

    def paths(self) -> list[str]:
        """What was changed, sorted; what became again what it was is not among it."""
        return sorted(dict(self._changes))

    def of(self, path: str) -> Change | None:
        """What was done to that file, from its first change to its last."""
        return self._changes.get(path)

    def forget(self, path: str) -> None:
        """That file is as it was."""
        change = self._changes.pop(path, None)
        if change is not None:
            self._size -= _kept(change.before)

    def wants(self, entry: FileEntry) -> bool:
        """Whether the content of a file is needed before it is changed."""
        return not entry.is_directory and entry.size <= LARGEST and entry.path not in self._changes

    def note(self, before: FileEntry | None, after: FileEntry | None) -> None:
        """Take in that one became the other; both have the same path."""
        entry = after or before
        if entry is None or entry.is_directory:
            return
        known = self._changes.get(entry.path)
        change = Change(known.before if known else self._keep(before), after and _bare(after))
        self._changes[entry.path] = change
        if change.left(change.before):
            self.forget(entry.path)

    def _keep(self, entry: FileEntry | None) -> FileEntry | None:
        """The entry, with its content if that is to be kept."""
        if entry is None:
            return None
        if entry.size > min(LARGEST, ROOM - self._size) or entry.text is None:
            return _bare(entry)
        self._size += entry.size
        return entry


def _bare(entry: FileEntry) -> FileEntry:
    return replace(entry, content=None, loaded=False)


def _kept(entry: FileEntry | None) -> int:
    return entry.size if entry is not None and entry.loaded else 0
