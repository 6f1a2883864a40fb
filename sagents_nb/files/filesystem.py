"""The virtual filesystem: files that agents, people and code share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from ..events import FileDeleted
from . import paths, patterns, snapshots
from .core import Core, updated
from .entry import FileEntry, new_directory, with_content
from .errors import FileError, taken
from .mounts import Mount, check_bases
from .notices import Subscriber
from .saving import Clock, unsaved
from .snapshots import Snapshot
from .tree import FileStats, Limits

MB = 1_000_000

# `list` is a method below, so annotations there need other names for the type.
Paths = list[str]
Entries = list[FileEntry]
Kept = list[Snapshot]
When = Literal["now", "debounce"]


class FileSystem(Core):
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

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted; without any, no method waits for a storage."""
        return tuple(self._mounts)

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

    def mount(self, mount: Mount) -> None:
        """Keep the files of a directory in a storage from now on.

        What the storage has is listed, and read when it is asked for. Files that are in
        memory there are saved; one that the storage has too is refused, and nothing mounted.
        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is mounted already, and
        StorageFailed.
        """
        with self._claims.on((), trees={"/"}):
            with self._lock:
                self._check_open()
                self._mounts.check_new(mount)
                waiting = [e.path for e in self._tree if self._saving.waits(e.path)]
            index = self._listed(mount)
            if failed := self._save(waiting):  # by those that keep them until now
                raise unsaved(failed)
            with self._lock:
                adopted = self._take_over(mount, index)
            failed = self._save(adopted)
        self._notices.deliver()
        if failed:
            raise unsaved(failed)

    def mount_missing(self, mounts: Iterable[Mount]) -> None:
        """Mount those for whose base nothing is mounted yet."""
        mounts = list(mounts)
        check_bases(mounts)
        with self._mounting:
            for mount in mounts:
                if not self._mounts.has(mount.root):
                    self.mount(mount)

    def reset(self) -> None:
        """Drop everything that is only in memory, unsaved changes too, and list anew."""
        with self._claims.on((), trees={"/"}):
            index = [entry for mount in self._mounts for entry in self._owned(mount)]
            with self._lock:
                self._check_open()
                before, lost = self._tree.copy(), self._saving.paths()
                self._tree.clear()
                self._saving.forget_all()
                self._tree.index(index)
                now = self._tree.copy()
                gone = sorted(before.keys() - now.keys())
                self._notices.queue(FileDeleted(path=path) for path in gone)
                self._notices.queue(
                    updated(entry)
                    for path, entry in now.items()
                    if path in lost or not snapshots.same(before.get(path), entry)
                )
        self._notices.deliver()

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

    # snapshots

    def snapshot(self, label: str | None = None) -> str:
        """Remember all files as they are now; the id for :meth:`restore` and :meth:`diff`.

        It costs a pointer per file. The last 100 are kept, in memory. While there are any, a
        stored file is read before it is changed.
        """
        with self._lock:
            self._check_open()
            return self._snapshots.add(self._tree.copy(), self._tree.size, label)

    def snapshots(self) -> Kept:
        """The snapshots that are kept, the oldest first."""
        with self._lock:
            return [*self._snapshots]

    def diff(self, a: str, b: str | None = None) -> str:
        r"""How the files differ between snapshot ``a`` and ``b``, or now, as a unified diff.

        Binary and very large files are told with their sizes. "" without a difference.

        >>> fs = FileSystem()
        >>> before = fs.snapshot()
        >>> _ = fs.write("/a.md", "x")
        >>> print(fs.diff(before), end="")
        --- /dev/null
        +++ b/a.md
        @@ -0,0 +1 @@
        +x
        \ No newline at end of file
        """
        for read in (True, False):
            with self._lock:
                self._check_open()
                old = self._snapshots.of(a)
                new = self._tree.copy() if b is None else self._snapshots.of(b)
                differing = snapshots.changed(old, new)
                entries = [e for p in differing for e in (old.get(p), new.get(p)) if e]
                unread = [e.path for e in entries if not e.loaded and e is self._tree.get(e.path)]
                if not read or not unread:
                    break
            self._loading.load_all(unread)
        return snapshots.difference(old, new, differing)

    def restore(self, id: str) -> None:
        """Make all files what they were at a snapshot, those in read-only mounts aside.

        Every change is one like any other: told to subscribers, refused by limits, and saved
        as a mount does. Raises FileError, after all others were restored, that names the
        first file that could not be.
        """
        with self._lock:
            self._check_open()
            before, now = self._snapshots.of(id), self._tree.copy()
            paths = [p for p in snapshots.changed(before, now) if self._mounts.writable(p)]
        failed: FileError | None = None
        for path in reversed(paths):  # what is in a directory before the directory
            there, then = now.get(path), before.get(path)
            if there and (then is None or then.is_directory != there.is_directory):
                try:
                    self._remove(path)
                except FileError as error:
                    failed = failed or error
        for path in paths:
            if path in before:
                try:
                    self._restore(before[path])
                except FileError as error:
                    failed = failed or error
        if failed:
            raise failed

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

    def _restore(self, entry: FileEntry) -> None:
        if not entry.loaded:
            raise FileError(f"The snapshot has no content of {entry.path}.", entry.path)
        self._change(entry.path, lambda: self._tree.get(entry.path), lambda _: entry)

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
