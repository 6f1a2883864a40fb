"""The virtual filesystem: files that agents, people and code share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from . import paths, patterns
from .entry import FileEntry, new_directory, with_content
from .errors import FileError, taken
from .mounting import Mounting
from .mounts import Mount
from .notices import Subscriber
from .remembering import Remembering
from .saving import Clock
from .tree import FileStats, Limits

MB = 1_000_000

# `list` is a method below, so annotations there need other names for the type.
Paths = list[str]
Entries = list[FileEntry]
When = Literal["now", "debounce"]


class FileSystem(Mounting, Remembering):
    """Files in memory and, where something is mounted, in its storage.

    Thread-safe; every method may be called from any thread or loop, but those that use a
    storage wait for it. Paths are virtual: see :func:`~sagents_nb.files.paths.normalize`.
    Limits: bytes of one file and of all, number of entries (directories included), segments
    of a path; they hold for what is written, not for what a storage has already.

    Every refusal is a :class:`~sagents_nb.files.errors.FileError` and has changed nothing.
    StorageFailed is one too, and says itself what has become of the file. A file in a mount
    is safe in its storage when the call that made, moved or deleted it returns; a change of
    one after the mount's ``debounce`` time, or when :meth:`flush` returns.

    >>> fs = FileSystem()
    >>> fs.write("/notes/a.md", "# A").size
    3
    >>> fs.list("**/*.md"), [e.path for e in fs.entries()]
    (['/notes/a.md'], ['/notes', '/notes/a.md'])
    """

    def __init__(
        self,
        scope: tuple[Any, ...] | None = None,
        mounts: Iterable[Mount] = (),
        *,
        max_file_size: int = 10 * MB,
        max_total_size: int = 100 * MB,
        max_entries: int = 100_000,
        max_depth: int = 32,
        clock: Clock | None = None,
    ) -> None:
        limits = Limits(max_file_size, max_total_size, max_entries, max_depth)
        super().__init__(scope, limits, clock)
        self.mount_missing(mounts)

    def __repr__(self) -> str:
        return f"<FileSystem {self.scope or 'in memory'}: {len(self._tree)} entries>"

    # reading

    def read(self, path: str) -> FileEntry:
        """The file with that path; its text or bytes are in ``.content``.

        Raises StorageFailed if the storage cannot give the content, which is read once.
        """
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
            entry = self._tree.file(path)
        return entry if entry.loaded else self._loading.load(path)

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

        A directory that nobody made, but that a file lies in, is listed too. A file that was
        not read yet is without content (``entry.loaded`` is False).
        """
        with self._lock:
            self._check_open()
            found = self._tree.with_virtual()
        chosen = sorted(found) if pattern is None else patterns.matching(sorted(found), pattern)
        return [found[path] for path in chosen]

    def contents(self, pattern: str | None = None) -> Iterator[FileEntry]:
        """The files, sorted by path, all or those that match a glob, with their contents.

        They are read as they are asked for, several at a time; what cannot be read is logged
        and left out. Contents are kept in memory up to ``max_total_size`` of all files.
        """
        return self._loading.each(e for e in self.entries(pattern) if not e.is_directory)

    def stats(self) -> FileStats:
        """How many entries there are, of which kind, and how many bytes."""
        with self._lock:
            return self._tree.stats(len(self._saving))

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
            fields = None if custom is None else dict(custom)
            return self._new(path, content, before, title=title, custom=fields, mime_type=mime_type)

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
            read=True,
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
        persist: When = "now",
    ) -> FileEntry:
        """Change what describes a file or directory; the content and its times stay.

        It is saved at once, or with ``persist="debounce"`` as late as a change of content.
        """
        given = {"title": title, "file_type": file_type, "mime_type": mime_type}
        changes = {key: value for key, value in given.items() if value is not None}
        return self._describe(path, lambda entry: replace(entry, **changes), persist)

    def update_metadata(
        self, path: str, custom: Mapping[str, Any], persist: When = "now"
    ) -> FileEntry:
        """Merge ``custom`` into the custom metadata of a file or directory.

        It is saved at once, or with ``persist="debounce"`` as late as a change of content.
        """
        return self._describe(
            path, lambda entry: replace(entry, custom={**entry.custom, **custom}), persist
        )

    def register(self, entries: FileEntry | Iterable[FileEntry]) -> None:
        """Take in entries as they are, with their times and titles; those there are replaced.

        One without content (``loaded=False``) is a file that a mount's storage has, and that
        is read when it is asked for.
        """
        for given in [entries] if isinstance(entries, FileEntry) else entries:
            self._register(replace(given, path=paths.normalize(given.path)))

    def move(self, old: str, new: str) -> Entries:
        """Move a file, or a directory with all that is in it; the entries at their new paths.

        Moving a path onto itself does nothing and moves no entries. In a storage files are
        moved one by one: if the first cannot be, StorageFailed is raised and nothing was
        moved; if a later one cannot be, all are moved here, and StorageFailed names it.
        """
        return self._move(paths.normalize(old), paths.normalize(new))

    def delete(self, path: str) -> FileEntry:
        """Delete a file, or the entry of a directory but nothing in it; what was deleted."""
        return self._remove(paths.normalize(path))

    # the whole

    def flush(self) -> None:
        """Save now all that waits to be saved; files in memory never wait.

        Raises StorageFailed that names what could not be saved, after all others were; it
        is kept, and tried again later.
        """
        with self._lock:
            self._check_open()
        self._saving.flush()

    def close(self) -> None:
        """Save all and end: subscribers are forgotten, later calls raise FilesystemClosed.

        Raises StorageFailed if something cannot be saved, and stays open.
        """
        while not self.closed:
            self._saving.flush()
            with self._lock:
                if not len(self._saving):
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

    def _describe(
        self, path: str, change: Callable[[FileEntry], FileEntry], persist: When
    ) -> FileEntry:
        path = paths.normalize(path)
        if persist not in ("now", "debounce"):
            raise FileError(f"persist is 'now' or 'debounce', not {persist!r}.", path)
        return self._change(
            path,
            lambda: self._tree.existing(path),
            change,
            content=False,
            now=persist == "now",
        )

    def _register(self, entry: FileEntry) -> None:
        path = entry.path
        if entry.content is not None:
            entry = with_content(entry, entry.content)
            self._check_size(entry)
        elif not entry.is_directory:
            if self._mounts.keeping(path) is None:
                raise FileError(f"{path} has no content, and no storage to read it from.", path)
            self._index(replace(entry, loaded=False))
            return
        self._change(path, lambda: self._tree.get(path), lambda _: entry)
