"""The virtual filesystem: files that agents, people and code share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ..events import FileDeleted, FileMoved, FileUpdated
from . import paths, patterns
from .entry import FileEntry, new_directory, new_file
from .errors import FileError, FilesystemClosed, LimitExceeded, taken
from .notices import Notices, Subscriber
from .tree import FileStats, Limits, Tree

MB = 1_000_000

# `list` is a method below, so annotations there need other names for the type.
Paths = list[str]
Entries = list[FileEntry]


class FileSystem:
    """Files in memory. Thread-safe; every method may be called from any thread or loop.

    Paths are virtual: see :func:`~sagents_nb.files.paths.normalize`. Every refusal is a
    :class:`~sagents_nb.files.errors.FileError` and has changed nothing. Limits: bytes of
    one file and of all, number of entries (directories included), segments of a path.

    >>> fs = FileSystem()
    >>> fs.write("/notes/a.md", "# A").size
    3
    >>> fs.list("**/*.md"), [e.path for e in fs.entries()]
    (['/notes/a.md'], ['/notes', '/notes/a.md'])
    """

    def __init__(
        self,
        scope: tuple[Any, ...] | None = None,
        *,
        max_file_size: int = 10 * MB,
        max_total_size: int = 100 * MB,
        max_entries: int = 10_000,
        max_depth: int = 32,
    ) -> None:
        self.scope = scope
        self.limits = Limits(max_file_size, max_total_size, max_entries, max_depth)
        self.closed = False
        self._lock = threading.Lock()
        self._tree = Tree(self.limits)
        self._notices = Notices(self._lock)

    def __repr__(self) -> str:
        return f"<FileSystem {self.scope or 'in memory'}: {len(self._tree)} entries>"

    # reading

    def read(self, path: str) -> FileEntry:
        """The file with that path; its text or bytes are in ``.content``."""
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
            return self._tree.file(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory with that path."""
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
            return self._tree.has(path)

    def list(self, pattern: str | None = None) -> Paths:
        """The paths of all files, or of those that match a glob, sorted.

        Globs are anchored at "/": "*" within one name, "**" any directories, "?" one
        character.
        """
        return [entry.path for entry in self.entries(pattern) if not entry.is_directory]

    def entries(self, pattern: str | None = None) -> Entries:
        """Files and directories, sorted by path, all or those that match a glob.

        A directory that nobody made, but that a file lies in, is listed too.
        """
        with self._lock:
            self._check_open()
            found = self._tree.with_virtual()
        chosen = sorted(found) if pattern is None else patterns.matching(sorted(found), pattern)
        return [found[path] for path in chosen]

    def stats(self) -> FileStats:
        """How many entries there are, of which kind, and how many bytes."""
        with self._lock:
            return self._tree.stats()

    # writing

    def write(
        self,
        path: str,
        content: str | bytes,
        title: str | None = None,
        custom: Mapping[str, Any] | None = None,
        mime_type: str | None = None,
        *,
        overwrite: bool = True,
    ) -> FileEntry:
        """Create a file or replace its content; missing directories are made.

        A file that is replaced keeps its creation time, and its title, custom metadata and
        mime type unless they are given. The mime type of a new text is "text/markdown"
        unless given. ``overwrite=False`` refuses to replace.
        """
        path = paths.normalize(path)

        def change(before: FileEntry | None) -> FileEntry:
            if before is not None and not overwrite:
                raise taken(path)
            return self._new(path, content, before, title, custom, mime_type)

        return self._change(path, lambda: self._tree.get(path), change)

    def edit(self, path: str, change: Callable[[FileEntry], str | bytes]) -> FileEntry:
        """Replace the content of a file by what ``change`` makes of its entry.

        ``change`` is called again if somebody else wrote in between, so no edit is lost.
        """
        path = paths.normalize(path)
        return self._change(
            path,
            lambda: self._tree.file(path),
            lambda before: self._new(path, change(before), before),
        )

    def mkdir(self, path: str) -> FileEntry:
        """Make a directory, and the ones above it."""
        path = paths.normalize(path)

        def absent() -> None:
            if self._tree.has(path):
                raise taken(path)

        return self._change(path, absent, lambda _: new_directory(path))

    def update_entry(
        self,
        path: str,
        *,
        title: str | None = None,
        file_type: str | None = None,
        mime_type: str | None = None,
    ) -> FileEntry:
        """Change what describes a file or directory; the content and its times stay."""
        path = paths.normalize(path)
        given = {"title": title, "file_type": file_type, "mime_type": mime_type}
        changes = {key: value for key, value in given.items() if value is not None}
        return self._change(
            path, lambda: self._tree.existing(path), lambda entry: replace(entry, **changes)
        )

    def update_metadata(self, path: str, custom: Mapping[str, Any]) -> FileEntry:
        """Merge ``custom`` into the custom metadata of a file or directory."""
        path = paths.normalize(path)
        return self._change(
            path,
            lambda: self._tree.existing(path),
            lambda entry: replace(entry, custom={**entry.custom, **custom}),
        )

    def move(self, old: str, new: str) -> Entries:
        """Move a file, or a directory with all that is in it; the entries at their new paths.

        Moving a path onto itself does nothing and moves no entries.
        """
        old, new = paths.normalize(old), paths.normalize(new)
        with self._lock:
            self._check_open()
            moved = self._tree.move(old, new)
            if old != new:
                self._notices.queue([FileMoved(old_path=old, path=new)])
        self._notices.deliver()
        return moved

    def delete(self, path: str) -> FileEntry:
        """Delete a file, or the entry of a directory but nothing in it; what was deleted."""
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
            entry = self._tree.delete(path)
            self._notices.queue([FileDeleted(path=path)])
        self._notices.deliver()
        return entry

    def reset(self) -> None:
        """Drop everything that is only in memory."""
        with self._lock:
            self._check_open()
            dropped = sorted(entry.path for entry in self._tree)
            self._tree = Tree(self.limits)
            self._notices.queue(FileDeleted(path=path) for path in dropped)
        self._notices.deliver()

    def flush(self) -> None:
        """Save now what waits to be saved; files in memory never wait."""
        with self._lock:
            self._check_open()

    def close(self) -> None:
        """End: subscribers are forgotten, and later calls raise FilesystemClosed."""
        with self._lock:
            self.closed = True
            self._notices.clear()

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with each file event, after the change; gives the way to stop it.

        Events come in the order of the changes, on a thread that makes one; a callback
        should be quick and may use the filesystem. What it raises is logged.
        """
        with self._lock:
            self._check_open()
            return self._notices.add(callback)

    # inside

    def _check_open(self) -> None:
        if self.closed:
            raise FilesystemClosed("This filesystem was closed; open it with open_filesystem().")

    def _change(
        self, path: str, look: Callable[[], Any], make: Callable[[Any], FileEntry]
    ) -> FileEntry:
        """Put what ``make`` makes of what ``look`` sees, and tell it; again if that changed.

        ``make`` hashes contents and calls other people's code, so it runs without the lock.
        """
        while True:
            with self._lock:
                self._check_open()
                stored, before = self._tree.get(path), look()
            entry = make(before)
            with self._lock:
                self._check_open()
                if self._tree.get(path) is stored:
                    if entry != before:
                        self._tree.put(entry)
                        self._notices.queue([_updated(entry)])
                    break
        self._notices.deliver()
        return entry

    def _new(
        self,
        path: str,
        content: str | bytes,
        before: FileEntry | None,
        title: str | None = None,
        custom: Mapping[str, Any] | None = None,
        mime_type: str | None = None,
    ) -> FileEntry:
        if not isinstance(content, str | bytes):
            raise FileError(
                f"The content of {path} must be text or bytes, not {type(content).__name__}.", path
            )
        fields = None if custom is None else dict(custom)
        try:
            entry = new_file(
                path, content, title=title, custom=fields, mime_type=mime_type, before=before
            )
        except UnicodeEncodeError:
            raise FileError(f"The text for {path} is not Unicode; write bytes.", path) from None
        if entry.size > self.limits.file_size:
            raise LimitExceeded(
                f"{path} would be {entry.size:,} bytes, over the limit of "
                f"{self.limits.file_size:,} for one file; split it.",
                path,
            )
        return entry


def _updated(entry: FileEntry) -> FileUpdated:
    return FileUpdated(path=entry.path, entry=entry.describe())
