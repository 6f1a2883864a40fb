"""The virtual filesystem: files that agents, people and code share."""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, pass_on
from ..events import FileDeleted, FileMoved
from ..runtime.thread import runtime
from ..text import logger_of, whole
from . import paths, patterns
from .changes import Changes
from .entry import FileEntry, new_directory, new_file, with_content
from .errors import (
    REFUSALS,
    FileChanged,
    FileError,
    FilesystemClosed,
    InvalidPath,
    NotStorable,
    StorageFailed,
    reason,
    taken,
)
from .loading import Claims, Loading
from .mounts import Mount, Mounts, Stored, listed, stored_in
from .notices import Notices, Subscriber, updated
from .saving import Clock, MoveOutcome, Saving, Versions, move_in_storage, unsaved
from .snapshots import Snapshot, Snapshots, changed, difference, same
from .storages.base import locator
from .tree import FileStats, Limits, Move, Tree

log = logger_of(__name__)

MB = 1_000_000
# How often one change begins anew because somebody else was faster.
MOST_OVERTAKEN = 100
# How many files are read ahead of who goes through them.
READ_AHEAD = 1000

# `list` is a method below, so annotations there need other names for the type.
Paths = list[str]
Entries = list[FileEntry]
When = Literal["now", "debounce"]
_PERSIST = kinds.of(When)


class VirtualFilesystem:
    """Files in memory and, where something is mounted, in its storage.

    ``scope`` says whose they are (None is nobody's), and ``mounts`` where they are kept.
    Thread-safe; every method may be called from any thread or loop, but those that use a storage
    wait for it. Paths are virtual: see :func:`~sagents_nb.files.paths.normalize`. Limits: bytes of
    one file (``max_file_size``) and of all (``max_total_size``), number of entries, directories
    included (``max_entries``), segments of a path (``max_depth``); they hold for what is written,
    not for what a storage has already, however much that is. Of a file that was there, only what it
    grows by is counted. ``clock`` is for tests.

    Every refusal is a :class:`~sagents_nb.files.errors.FileError` and has changed nothing.
    StorageFailed is one too, and says itself what has become of the file. A file in a mount
    is safe in its storage when the call that made, moved or deleted it returns; a change of
    one after the mount's ``debounce`` time, or when :meth:`flush` returns.

    >>> fs = VirtualFilesystem()
    >>> fs.write("/notes/a.md", "# A").size
    3
    >>> fs.list("**/*.md"), [e.path for e in fs.entries()]
    (['/notes/a.md'], ['/notes', '/notes/a.md'])
    """

    @kinds.checked
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
        if scope:
            paths.check_scope(scope)
        self.scope = scope
        self.limits = Limits(max_file_size, max_total_size, max_entries, max_depth)
        self.closed = False
        self._lock = threading.Lock()
        self._mounting = threading.Lock()
        self._mounts = Mounts()
        self._tree = Tree(self.limits, self._mounts)
        self._notices = Notices(self._lock)
        self._snapshots = Snapshots()
        self._tracking: tuple[Changes, ...] = ()
        self._claims = Claims(self._lock)
        self._scope_text = text = paths.scope_text(scope or ())
        self._saving = Saving(self._lock, self._tree, self._claims, text, clock or Clock())
        self._loading = Loading(self._lock, self._tree, self._claims, text, self._snapshots.loaded)
        self._versions = Versions(
            self._lock, self._tree, self._claims, self._saving, text, self._notices.queue
        )
        self.mount_missing(mounts)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<VirtualFilesystem {self.scope or 'in memory'}: {len(self._tree)} entries>"

    # reading

    def read(self, path: str) -> FileEntry:
        """The file with that ``path``; its text or bytes are in ``.content``.

        Raises :class:`~sagents_nb.files.errors.FileMissing` if there is none, WrongKind for a
        directory, and StorageFailed if the storage cannot give the content, which is read once, and
        again when somebody else has changed it, if the storage tells.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.read("/a.md").content
        '# A'
        """
        path = paths.normalize(path)
        self._look_again([path])
        with self._lock:
            self._check_open()
            entry = self._tree.file(path)
        return entry if entry.loaded else self._loading.load(path)

    @kinds.checked(path=kinds.ANYTHING)
    def reload(self, path: str) -> FileEntry:
        """The file of that ``path`` as its storage has it now; what was not saved of it is dropped.

        For a file that somebody else changed while a change of yours waited to be saved: yours
        is not saved then, :meth:`flush` says so, and it is kept in memory until this is called.

        >>> import pathlib, tempfile
        >>> from sagents_nb import Mount, VirtualFilesystem
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> fs = VirtualFilesystem(mounts=[Mount("notes", folder)])
        >>> _ = fs.write("/notes/a.md", "mine")
        >>> _ = (folder / "a.md").write_text("theirs")
        >>> fs.reload("/notes/a.md").content
        'theirs'
        """
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
        self._versions.reload(path)
        self._notices.deliver()
        return self.read(path)

    @kinds.checked(path=kinds.ANYTHING)
    def in_conflict(self, path: str) -> bool:
        """Whether your change of ``path`` is kept from being saved by what somebody else wrote.

        :meth:`reload` takes theirs.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.in_conflict("/a.md")  # nobody else writes into memory
        False
        """
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
        return self._versions.in_conflict(path)

    def _look_again(self, paths: Sequence[str], failed: dict[str, FileError] | None = None) -> None:
        """Take in what somebody else has made of those files."""
        if len(self._mounts) and self._versions.refresh(paths, failed):
            self._notices.deliver()

    def _look_around(self, pattern: str = "**") -> None:
        """Take in what others have added and removed, as far as a glob can mean it.

        Not on the runtime loop, which waits for no storage: there it is what is known.
        """
        if (
            len(self._mounts)
            and not runtime.here()
            and self._versions.list_again(*patterns.reach(pattern))
        ):
            self._notices.deliver()

    @kinds.checked(path=kinds.ANYTHING)
    def read_lines(self, path: str, first: int = 1, limit: int = 2000) -> tuple[Paths, int | None]:
        r"""Up to ``limit`` lines of a text file, from ``first`` (from 1) on, and how many it has.

        ``path`` is the file. Of a large one on a disk that is not in memory only these are read,
        whatever its size; then nobody knows how many there are (None). Raises WrongKind for a file
        that is no text, and :class:`~sagents_nb.files.errors.FileError` as :meth:`read` does.

        >>> from sagents_nb.files import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "one\ntwo\nthree\n")
        >>> fs.read_lines("/a.md", 2, 1)
        (['two'], 3)
        """
        if first < 1 or limit < 0:
            raise FileError(f"Lines are counted from 1, so {first} with {limit} are none.", path)
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
        self._look_again([path])
        return self._loading.lines(path, first, limit)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory with that ``path``.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/notes/a.md", "# A")
        >>> fs.exists("/notes"), fs.exists("/b.md")
        (True, False)
        """
        path = paths.normalize(path)
        self._look_again([path])
        with self._lock:
            self._check_open()
            return self._tree.has(path)

    @kinds.checked
    def list(self, pattern: str | None = None) -> Paths:
        """The paths of all files, or of those that match the glob ``pattern``, sorted.

        Globs are anchored at "/": "*" within one name, "**" any directories, "?" one
        character.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/notes/a.md", "# A"), fs.write("/b.csv", "1")
        >>> fs.list(), fs.list("**/*.md")
        (['/b.csv', '/notes/a.md'], ['/notes/a.md'])
        """
        return [entry.path for entry in self.entries(pattern) if not entry.is_directory]

    @kinds.checked
    def entries(self, pattern: str | None = None) -> Entries:
        """Files and directories, sorted by path, all or those that match the glob ``pattern``.

        A directory that nobody made, but that a file lies in, is listed too. A file that was
        not read yet is without content (``entry.loaded`` is False). What others have put into
        the directory of a disk that is mounted, or removed there, is seen.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/notes/a.md", "# A")
        >>> [(entry.path, entry.is_directory) for entry in fs.entries()]
        [('/notes', True), ('/notes/a.md', False)]
        """
        self._look_around("**" if pattern is None else pattern)
        with self._lock:
            self._check_open()
            by_path = self._tree.with_virtual() if pattern is None else self._tree.like(pattern)
        chosen = sorted(by_path) if pattern is None else patterns.matching(sorted(by_path), pattern)
        return [by_path[path] for path in chosen]

    @kinds.checked
    def contents(
        self, pattern: str | None = None, failed: dict[str, FileError] | None = None
    ) -> Iterator[FileEntry]:
        """The files with their contents, all or those that match the glob ``pattern``.

        They are sorted by path, and read as they are asked for, several at a time; what cannot be
        read is logged and left out, and why is put into ``failed``, by path. Contents are kept in
        memory up to ``max_total_size`` of all files.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A"), fs.write("/b.md", "# B")
        >>> [entry.content for entry in fs.contents("*.md")]
        ['# A', '# B']
        """
        failed = {} if failed is None else failed
        return self._loading.each(self._current(pattern, failed), failed)

    def _current(self, pattern: str | None, failed: dict[str, FileError]) -> Iterator[Entries]:
        """The files as they are when they are asked for, some of them at a time."""
        files = [entry.path for entry in self.entries(pattern) if not entry.is_directory]
        for start in range(0, len(files), READ_AHEAD):
            part = files[start : start + READ_AHEAD]
            self._look_again(part, failed)
            with self._lock:  # not while whoever asks has its turn
                now = self._tree.each(part)
            files_now = [entry for entry in now if entry and not entry.is_directory]
            yield [e for e in files_now if e.path not in failed] if failed else files_now

    @kinds.checked(path=kinds.ANYTHING)
    def location(self, path: str) -> str | None:
        """Where on this machine's disk ``path`` lies; None unless a mount keeps it on a disk.

        >>> import tempfile
        >>> from sagents_nb import Mount, VirtualFilesystem
        >>> fs = VirtualFilesystem(mounts=[Mount("notes", tempfile.mkdtemp())])
        >>> _ = fs.write("/notes/a.md", "# A"), fs.write("/b.md", "# B")
        >>> fs.location("/notes/a.md").endswith("/a.md"), fs.location("/b.md")
        (True, None)
        """
        path = paths.normalize(path)
        with self._lock:
            self._check_open()
            mount = self._mounts.keeping(path)
        locate = None if mount is None else locator(mount.storage)
        return None if mount is None or locate is None else locate(mount.inside(path))

    def stats(self) -> FileStats:
        """How many entries there are, of which kind, and how many bytes.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/notes/a.md", "# A")
        >>> fs.stats().total, fs.stats().size
        (2, 3)
        """
        with self._lock:
            return self._tree.stats(len(self._saving))

    # writing

    @kinds.checked(path=kinds.ANYTHING, content=kinds.ANYTHING)
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
        """Create the file ``path`` or replace its ``content``; missing directories are made.

        A file that is replaced keeps its creation time, and its ``title``, ``custom`` metadata and
        ``mime_type`` unless they are given. The mime type of a new text is "text/markdown"
        unless given. ``overwrite=False`` refuses to replace, with
        :class:`~sagents_nb.files.errors.PathTaken`. Any other
        :class:`~sagents_nb.files.errors.FileError` says what a limit, a path or a mount refuses.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> entry = fs.write("/notes/a.md", "# A", title="First")
        >>> entry.title, entry.mime_type, entry.size
        ('First', 'text/markdown', 3)
        """
        path = paths.normalize(path)
        _check_whole(path, title=title, mime_type=mime_type)

        def change(before: FileEntry | None) -> FileEntry:
            if before is not None and not overwrite:
                raise taken(path)
            fields = None if custom is None else dict(custom)
            return self._new(path, content, before, title=title, custom=fields, mime_type=mime_type)

        return self._change(path, lambda: self._tree.get(path), change)

    @kinds.checked(path=kinds.ANYTHING)
    def edit(self, path: str, change: Callable[[FileEntry], str | bytes]) -> FileEntry:
        """Replace the content of the file ``path`` by what ``change`` makes of its entry.

        ``change`` is called again if somebody else wrote in between, so no edit is lost. Raises
        :class:`~sagents_nb.files.errors.FileError` as :meth:`read` and :meth:`write` do.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.edit("/a.md", lambda entry: f"{entry.content} and B").content
        '# A and B'
        """
        path = paths.normalize(path)
        return self._change(
            path,
            lambda: self._tree.file(path),
            lambda before: self._new(path, change(before), before),
            read=True,
        )

    @kinds.checked(path=kinds.ANYTHING)
    def mkdir(self, path: str, title: str | None = None) -> FileEntry:
        """Make the directory ``path``, and those above it; its ``title`` is its name unless given.

        Raises :class:`~sagents_nb.files.errors.PathTaken` where a file is.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> fs.mkdir("/notes/trips").path, fs.exists("/notes")
        ('/notes/trips', True)
        """
        path = paths.normalize(path)
        _check_whole(path, title=title)

        def absent() -> None:
            if self._tree.has(path):
                raise taken(path)

        return self._change(path, absent, lambda _: new_directory(path, title))

    @kinds.checked(path=kinds.ANYTHING, persist=kinds.ANYTHING)
    def update_entry(
        self,
        path: str,
        *,
        title: str | None = None,
        file_type: str | None = None,
        mime_type: str | None = None,
        persist: When = "now",
    ) -> FileEntry:
        """Change what describes the file or directory ``path``; the content and its times stay.

        That is its ``title``, ``file_type`` and ``mime_type``; what is None stays. It is saved at
        once, or with ``persist="debounce"`` as late as a change of content.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.update_entry("/a.md", title="First").title
        'First'
        """
        fields = {"title": title, "file_type": file_type, "mime_type": mime_type}
        _check_whole(path, **fields)
        changes = {key: value for key, value in fields.items() if value is not None}
        return self._describe(path, lambda entry: replace(entry, **changes), persist)

    @kinds.checked(path=kinds.ANYTHING, persist=kinds.ANYTHING)
    def update_metadata(
        self, path: str, custom: Mapping[str, Any], persist: When = "now"
    ) -> FileEntry:
        """Merge ``custom`` into the custom metadata of the file or directory ``path``.

        It is saved at once, or with ``persist="debounce"`` as late as a change of content.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A", custom={"read": True})
        >>> fs.update_metadata("/a.md", {"stars": 5}).custom
        {'read': True, 'stars': 5}
        """
        return self._describe(
            path, lambda entry: replace(entry, custom={**entry.custom, **custom}), persist
        )

    @kinds.checked
    def register(self, entries: FileEntry | Iterable[FileEntry]) -> None:
        """Take in entries as they are, with their times and titles; those there are replaced.

        One without content (``loaded=False``) is a file that a mount's storage has, and that
        is read when it is asked for.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs, copy = VirtualFilesystem(), VirtualFilesystem()
        >>> entry = fs.write("/a.md", "# A", title="First")
        >>> _ = copy.register(entry)
        >>> copy.read("/a.md").title, copy.read("/a.md").created_at == entry.created_at
        ('First', True)
        """
        for entry in [entries] if isinstance(entries, FileEntry) else entries:
            self._register(replace(entry, path=paths.normalize(entry.path)))

    def move(self, old: str, new: str) -> Entries:
        """Move a file, or a directory with all that is in it, from ``old`` to ``new``.

        It gives the entries at their new paths. Moving a path onto itself does nothing and moves no
        entries. In a storage files are moved one by one: if the first cannot be, StorageFailed is
        raised and nothing was moved; if a later one cannot be, all are moved here, and
        StorageFailed names it.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/notes/a.md", "# A")
        >>> [entry.path for entry in fs.move("/notes", "/old")]
        ['/old', '/old/a.md']
        """
        return self._move(paths.normalize(old), paths.normalize(new))

    def delete(self, path: str) -> FileEntry:
        """Delete a file, or the entry of a directory but nothing in it; what was at ``path``.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.delete("/a.md").path, fs.list()
        ('/a.md', [])
        """
        return self._remove(paths.normalize(path))

    # what is mounted

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted; without any, no method waits for a storage."""
        return tuple(self._mounts)

    @kinds.checked
    def mount(self, mount: Mount) -> None:
        """Keep the files of a directory in a storage from now on.

        What the storage has is listed, and read when it is asked for. Files that are in
        memory there are saved; one that the storage has too is refused, and nothing mounted.
        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is mounted already, and
        StorageFailed.

        >>> import tempfile
        >>> from sagents_nb import Mount, VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> fs.mount(Mount("notes", tempfile.mkdtemp(), readonly=True))
        >>> fs.mounts
        (<Mount 'notes': DiskStorage>,)
        """
        with self._claims.on((), trees={"/"}):
            with self._lock:
                self._check_open()
                self._mounts.check_new(mount)
                waiting = [e.path for e in self._tree if self._saving.waits(e.path)]
            index = stored_in(mount, self._scope_text)
            if failed := self._saving.save_claimed(waiting):  # by those that keep them until now
                raise unsaved(failed)
            with self._lock:
                adopted = self._take_over(mount, index)
            failed = self._saving.save_claimed(adopted)
        self._notices.deliver()
        if failed:
            raise unsaved(failed)

    @kinds.checked
    def mount_missing(self, mounts: Iterable[Mount]) -> None:
        """Mount those of ``mounts`` that are not mounted yet.

        Raises ConfigurationError, and mounts nothing, where something else is mounted.

        >>> import tempfile
        >>> from sagents_nb import Mount, VirtualFilesystem
        >>> mount = Mount("notes", tempfile.mkdtemp())
        >>> fs = VirtualFilesystem(mounts=[mount])
        >>> fs.mount_missing([mount])
        >>> len(fs.mounts)
        1
        """
        mounts = listed(mounts)
        with self._mounting:
            there = {mount.root: self._mounts.at(mount.root) for mount in mounts}
            for mount in mounts:
                present = there[mount.root]
                if present is not None and not present.is_like(mount):
                    raise ConfigurationError(
                        f"{mount.root} is mounted already, and otherwise ({present.storage!r}); "
                        f"call filesystems.close({self.scope!r}) first."
                    )
            for mount in mounts:
                if there[mount.root] is None:
                    self.mount(mount)

    def reset(self) -> None:
        """Drop everything that is only in memory, unsaved changes too, and list anew.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.reset()
        >>> fs.list()
        []
        """
        with self._claims.on((), trees={"/"}):
            listed = {mount: stored_in(mount, self._scope_text) for mount in self._mounts}
            with self._lock:
                self._check_open()
                before, lost = self._tree.copy(), self._saving.paths()
                self._tree.clear()
                self._saving.forget_all()
                for mount, there in listed.items():
                    self._index(mount, there)
                now = self._tree.copy()
                gone = sorted(before.keys() - now.keys())
                self._notices.queue(FileDeleted(path=path) for path in gone)
                self._notices.queue(
                    updated(entry)
                    for path, entry in now.items()
                    if path in lost or not same(before.get(path), entry)
                )
        self._notices.deliver()

    # What the files were: ``before = fs.snapshot()``, then a run, then ``print(fs.diff(before))``
    # shows what the run did to them, and ``fs.restore(before)`` undoes it.

    @kinds.checked
    def snapshot(self, label: str | None = None) -> str:
        """Remember all files as they are now; the id for :meth:`restore` and :meth:`diff`.

        ``label`` is for people. It costs a pointer per file. The last 100 are kept, in memory.
        While there are any, a stored file is read before it is changed.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> before = fs.snapshot("before the trip")
        >>> _ = fs.write("/a.md", "# A")
        >>> fs.restore(before)
        >>> fs.list()
        []
        """
        self._look_at_all()
        with self._lock:
            self._check_open()
            return self._snapshots.add(self._tree.copy(), self._tree.size, label)

    def snapshots(self) -> builtins.list[Snapshot]:
        """The snapshots that are kept, the oldest first.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.snapshot("empty")
        >>> [snapshot.label for snapshot in fs.snapshots()]
        ['empty']
        """
        with self._lock:
            return [*self._snapshots]

    @kinds.checked
    def diff(self, a: str, b: str | None = None) -> str:
        r"""How the files differ between snapshot ``a`` and ``b``, or now, as a unified diff.

        Binary and very large files are told with their sizes. "" without a difference.

        >>> from sagents_nb.files import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> before = fs.snapshot()
        >>> _ = fs.write("/a.md", "x")
        >>> print(fs.diff(before), end="")
        --- /dev/null
        +++ b/a.md
        @@ -0,0 +1 @@
        +x
        \ No newline at end of file
        """
        if b is None:
            self._look_at_all()
        for read in (True, False):
            with self._lock:
                self._check_open()
                old = self._snapshots.of(a)
                new = self._tree.copy() if b is None else self._snapshots.of(b)
                differing = changed(old, new)
                entries = [e for p in differing for e in (old.get(p), new.get(p)) if e]
                unread = [e.path for e in entries if not e.loaded and e is self._tree.get(e.path)]
                if not read or not unread:
                    break
            self._loading.load_all(unread)
        return difference(old, new, differing)

    @kinds.checked
    def restore(self, id: str) -> None:
        """Make all files what they were at the snapshot ``id``, those in read-only mounts aside.

        Every change is one like any other: told to subscribers, refused by limits, and saved
        as a mount does; also what others have done to them since is undone. What they were
        until now is a snapshot too, with the label "before restore". Raises FileError, after all
        others were restored, that names the first file that could not be.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> _ = fs.write("/a.md", "# A")
        >>> before = fs.snapshot()
        >>> _ = fs.write("/a.md", "# B")
        >>> fs.restore(before)
        >>> fs.read("/a.md").content
        '# A'
        """
        self._look_at_all()
        with self._lock:
            self._check_open()
            before, now = self._snapshots.of(id), self._tree.copy()
            self._snapshots.add(now.copy(), self._tree.size, "before restore")
            differing = [p for p in changed(before, now) if self._mounts.writable(p)]
        failed: FileError | None = None
        for path in reversed(differing):  # what is in a directory before the directory
            there, then = now.get(path), before.get(path)
            if there and (then is None or then.is_directory != there.is_directory):
                try:
                    self._remove(path)
                except FileError as error:
                    failed = failed or error
        for path in differing:
            if path in before:
                try:
                    self._restore(before[path])
                except FileError as error:
                    failed = failed or error
        if failed:
            raise failed

    # the whole

    def flush(self) -> None:
        """Save now all that waits to be saved; files in memory never wait.

        Raises StorageFailed that names what could not be saved, after all others were; it
        is kept, and tried again later.

        >>> import pathlib, tempfile
        >>> from sagents_nb import Mount, VirtualFilesystem
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> fs = VirtualFilesystem(mounts=[Mount("notes", folder, debounce=60)])
        >>> _ = fs.write("/notes/a.md", "# A")  # a new file is saved at once, a change later
        >>> _ = fs.write("/notes/a.md", "# B")
        >>> fs.flush()
        >>> (folder / "a.md").read_text()
        '# B'
        """
        with self._lock:
            self._check_open()
        self._saving.flush()

    def close(self) -> None:
        """Save all and end: subscribers are forgotten, later calls raise FilesystemClosed.

        Raises StorageFailed if something cannot be saved, and stays open.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> fs.close()
        >>> fs.closed
        True
        """
        while not self.closed:
            self._saving.flush()
            with self._lock:
                if not len(self._saving):
                    self.closed = True
                    self._notices.clear()

    @kinds.checked
    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with each file event, after the change; gives the way to stop it.

        Events come in the order of the changes, on a thread that makes one; a callback
        should be quick and may use the filesystem. What it raises is logged.

        >>> from sagents_nb import VirtualFilesystem
        >>> fs = VirtualFilesystem()
        >>> types = []
        >>> stop = fs.subscribe(lambda event: types.append(event.type))
        >>> _ = fs.write("/a.md", "# A"), fs.delete("/a.md")
        >>> stop()
        >>> types
        ['file_updated', 'file_deleted']
        """
        with self._lock:
            self._check_open()
            return self._notices.add(callback)

    @kinds.checked
    def track(self, changes: Changes) -> Callable[[], None]:
        """Have ``changes`` note what becomes of files from now on; gives the way to stop it.

        Until then a stored file that is not large is read before it is first changed.

        >>> from sagents_nb import VirtualFilesystem
        >>> from sagents_nb.files.changes import Changes
        >>> fs, changes = VirtualFilesystem(), Changes()
        >>> stop = fs.track(changes)
        """
        with self._lock:
            self._check_open()
            self._tracking = (*self._tracking, changes)

        def stop() -> None:
            with self._lock:
                self._tracking = tuple(other for other in self._tracking if other is not changes)

        return stop

    # Inside, the order is always: claim the paths that a storage is to be called for, then lock,
    # change the tree, say what waits to be saved and queue the events, unlock, call the storage,
    # give the claim back, deliver the events. Nothing waits with the lock held.

    def _check_open(self) -> None:
        if self.closed:
            raise FilesystemClosed("This filesystem was closed; open it with open_filesystem().")

    def _describe(
        self, path: str, change: Callable[[FileEntry], FileEntry], persist: When
    ) -> FileEntry:
        path = paths.normalize(path)
        if not _PERSIST.fits(persist):
            raise FileError(f"persist is {_PERSIST.what}, not {kinds.shown(persist)}.", path)
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
            self._tree.check_size(entry)
        elif not entry.is_directory:
            if self._mounts.keeping(path) is None:
                raise FileError(f"{path} has no content, and no storage to read it from.", path)
            self._take_in(replace(entry, loaded=False))
            return
        self._change(path, lambda: self._tree.get(path), lambda _: entry)

    def _look_at_all(self) -> None:
        """Take in what others have made of the files, as far as they are in memory."""
        self._look_around()
        if len(self._mounts):
            with self._lock:
                read = [entry.path for entry in self._tree if entry.loaded]
            self._look_again(read)

    def _restore(self, entry: FileEntry) -> None:
        if not entry.loaded:
            raise FileError(f"The snapshot has no content of {entry.path}.", entry.path)
        self._change(entry.path, lambda: self._tree.get(entry.path), lambda _: entry)

    # a change of one entry

    def _change(
        self,
        path: str,
        look: Callable[[], Any],
        make: Callable[[Any], FileEntry],
        *,
        read: bool = False,
        content: bool = True,
        now: bool = False,
    ) -> FileEntry:
        """Put what ``make`` makes of what ``look`` sees, and tell it; again if that changed.

        ``make`` hashes contents and calls other people's code, so it runs without the lock.
        ``read``: it needs the content. ``content``: it changes it. ``now``: a storage gets it
        now, as it always gets what is new.
        """
        overtaken = 0
        while True:
            if content and len(self._mounts):
                with self._lock:
                    self._check_open()
                    self._mounts.check_writable(path)
                if self._seen_anew(path, edits=read):
                    continue
            with self._lock:
                self._check_open()
                self._mounts.check_writable(path)
                stored, before = self._tree.get(path), look()
            if stored is not None and not stored.loaded and (read or self._remembered(stored)):
                stored = self._with_content(path, needed=read)
                if stored.loaded:
                    continue
            entry = make(before)
            with self._lock:
                claimed = self._saved_at_once(path, stored, now)
            failed: dict[str, BaseException] = {}
            with self._claims.on(claimed) if claimed else contextlib.nullcontext():
                with self._lock:
                    self._check_open()
                    if self._tree.get(path) is not stored:
                        continue
                    if not set(self._saved_at_once(path, stored, now)) <= set(claimed):
                        continue
                    differs = entry != before
                    waited = self._saving.waits(path)
                    above = paths.ancestors(path) if claimed else ()
                    there = {p for p in above if self._tree.has(p)}
                    made = [entry]
                    if differs:
                        made = self._put(entry, content or stored is None, bool(claimed))
                        entry = made[-1]
                        if content:
                            self._note(stored, entry)
                        if stored is None:  # so a file that is there by now is another's
                            self._tree.versions[path] = ""
                if differs and claimed:
                    # Itself before what is above it, which a storage makes where it needs it:
                    # so nothing is made for what is refused.
                    failed = self._saving.save_claimed([path])
                    with self._lock:
                        if isinstance(failed.get(path), (*REFUSALS, FileChanged)):
                            self._take_back(made, stored, waited, there)
                        elif (current := self._tree.get(path)) is not None:
                            self._notices.queue(updated(entry) for entry in [current])
                    failed |= self._save_above([p for p in claimed if p != path])
            if isinstance(failed.get(path), FileChanged):
                overtaken += 1
                if overtaken > MOST_OVERTAKEN:
                    raise FileChanged(
                        f"{path} was changed by somebody else again and again, and nothing was "
                        "written; try again later.",
                        path,
                    )
                self._seen_anew(path, edits=read)
                continue
            break
        self._notices.deliver()
        if isinstance(refusal := failed.get(path), REFUSALS):
            raise NotStorable(f"{path} cannot be kept there: {refusal}", path) from refusal
        if failed:
            raise unsaved(failed)
        return entry

    def _seen_anew(self, path: str, *, edits: bool = False) -> bool:
        """Take in what somebody else has made of a file that is to be changed; whether it did.

        Raises FileChanged if that would be lost.
        """
        if not len(self._mounts):
            return False
        try:
            return self._versions.check(path, edits=edits)
        finally:
            self._notices.deliver()

    def _take_back(
        self, made: Entries, stored: FileEntry | None, waited: bool, there: set[str]
    ) -> None:
        """Put ``stored`` in the place of the last one ``made``, unless that changed.

        The directories made above it go too, but a new one that somebody else uses by now;
        ``there`` are the paths that were there because of what is in them. The lock is held.
        """
        *above, entry = made
        if self._tree.get(entry.path) is not entry:
            return
        if stored is not None:
            self._tree.put_back(stored)
        else:
            self._tree.pop(entry.path)
        self._note(entry, stored)
        if not waited:
            self._saving.forget(entry.path)
        for directory in reversed(above):
            path = directory.path
            alone = len(self._tree.below(path)) == 1
            if self._tree.get(path) is directory and (alone or path in there):
                self._tree.pop(path)
                self._saving.forget(path)

    def _save_above(self, claimed: Paths) -> dict[str, BaseException]:
        """Save the new directories above something, and give what failed.

        One that its storage can never keep is there because of what is in it.
        """
        failed = self._saving.save_claimed(claimed)
        for path in [p for p, error in failed.items() if issubclass(type(error), REFUSALS)]:
            del failed[path]
            with self._lock:
                self._tree.pop(path)
                self._saving.forget(path)
        return failed

    def _with_content(self, path: str, needed: bool) -> FileEntry:
        """The entry, loaded; if that fails and is not ``needed``, as it is."""
        try:
            return self._loading.load(path)
        except FileError as error:
            if needed:
                raise
            log.warning("No snapshot has the content of %s: %s", path, error)
            with self._lock:
                return self._tree.file(path)

    def _saved_at_once(self, path: str, stored: FileEntry | None, now: bool) -> Paths:
        """What a storage gets before a change of ``path`` returns; the lock is held."""
        if not len(self._mounts):
            return []
        mount = self._mounts.keeping(path)
        waits = mount is None or (mount.debounce and not self._versions.shared(path))
        if stored is not None and not now and waits:
            return []
        above = self._tree.missing_parents(path) if stored is None else []
        return [p for p in (*(e.path for e in above), path) if self._mounts.keeping(p)]

    def _put(self, entry: FileEntry, content: bool, at_once: bool) -> Entries:
        """Into the tree, what waits, and the notices; the lock is held.

        What was stored: the directories that were made, and the entry.
        """
        stored = self._tree.put(entry)
        for new in stored if len(self._mounts) else ():
            mount = self._mounts.keeping(new.path)
            if mount is not None:
                self._saving.mark(
                    new.path,
                    content=content or new is not stored[-1],
                    after=None if at_once else mount.debounce,
                )
        if not at_once:  # else it is told when it is saved
            self._notices.queue(updated(entry) for entry in stored[-1:])
        return stored

    def _new(
        self,
        path: str,
        content: str | bytes,
        before: FileEntry | None,
        **fields: Any,
    ) -> FileEntry:
        if not isinstance(content, str | bytes):
            raise FileError(
                f"The content of {path} must be text or bytes, not {type(content).__name__}.", path
            )
        try:
            entry = new_file(path, content, before=before, **fields)
        except UnicodeEncodeError:
            raise FileError(f"The text for {path} is not Unicode; write bytes.", path) from None
        self._tree.check_size(entry)
        return entry

    # deleting

    def _remove(self, path: str) -> FileEntry:
        """Delete one entry, in its storage first."""
        self._seen_anew(path)
        self._read_what_is_remembered(path, below=False)
        with self._lock:
            self._check_open()
            self._mounts.check_writable(path)
            mount = self._mounts.keeping(path)
        # A directory with all in it: nothing is to be saved there while the storage looks
        # whether it is empty.
        claim = self._claims.on((), trees=[path]) if mount else contextlib.nullcontext()
        with claim:
            with self._lock:
                self._check_open()
                self._tree.check_delete(path)
            if mount is not None:
                try:
                    mount.storage.delete(self._scope_text, mount.inside(path))
                except InvalidPath:  # of a name that the storage cannot have, it has nothing
                    pass
                except BaseException as error:
                    pass_on(error)
                    raise StorageFailed(
                        f"{path} could not be deleted ({reason(error)}); it is still there.",
                        path,
                    ) from error
            with self._lock:
                entry = self._tree.delete(path)
                self._note(entry, None)
                self._saving.forget(path)
                emptied = self._emptied([path])
                self._notices.queue([FileDeleted(path=path)])
        self._delete_emptied(emptied)
        self._notices.deliver()
        return entry

    def _emptied(self, gone: Iterable[str]) -> Paths:
        """What was a directory only because of those paths, deepest first; the lock is held."""
        if not len(self._mounts):
            return []
        above = {directory for path in gone for directory in paths.ancestors(path)}
        emptied = [p for p in above if not self._tree.has(p) and self._mounts.keeping(p)]
        for path in emptied:
            self._saving.mark(path, after=None)
        return sorted(emptied, reverse=True)

    def _delete_emptied(self, emptied: Paths) -> None:
        """A storage may have made those directories itself; what fails is tried again."""
        for path in emptied:
            with self._claims.on((), trees=[path]):
                self._saving.save(path)

    # what is remembered

    def _remembered(self, entry: FileEntry) -> bool:
        """Whether somebody wants to know what a file was before it is changed."""
        return len(self._snapshots) > 0 or any(each.wants(entry) for each in self._tracking)

    def _read_what_is_remembered(self, path: str, *, below: bool) -> None:
        """Read what would be lost when that path changes."""
        if len(self._snapshots) or self._tracking:
            with self._lock:
                entries = self._tree.below(path) if below else [self._tree.get(path)]
            unread = [e for e in entries if e is not None and not e.loaded]
            self._loading.load_all([e.path for e in unread if self._remembered(e)])

    def _note(self, before: FileEntry | None, after: FileEntry | None) -> None:
        """Tell those who track it that one became the other; the lock is held."""
        for changes in self._tracking:
            changes.note(before, after)

    # moving

    def _plan(self, old: str, new: str) -> tuple[Move, Paths]:
        """The move, and the directories it makes in a storage; the lock is held."""
        self._check_open()
        self._mounts.check_writable(old)
        self._mounts.check_writable(new)
        move = self._tree.plan_move(old, new)
        return move, [e.path for e in move.directories if self._mounts.keeping(e.path)]

    def _move(self, old: str, new: str) -> Entries:
        """Move the path and what is below it, in its storage first."""
        self._seen_anew(new)
        if len(self._mounts):
            with self._lock:
                dirty = [e.path for e in self._tree.below(old) if self._saving.waits(e.path)]
            for path in dirty:  # what is saved is renamed with all that is in it
                self._seen_anew(path, edits=True)
        self._read_what_is_remembered(old, below=True)
        while True:
            failed: dict[str, BaseException] = {}
            emptied: list[str] = []
            with self._lock:
                move, directories = self._plan(old, new)
                if old == new:
                    return []
                mount = self._mounts.keeping(old)
                if mount is None:
                    moved = self._carry_out(move, MoveOutcome())
                    break
            with self._claims.on(directories, trees={old, new}):
                with self._lock:
                    move, directories_now = self._plan(old, new)
                    waiting = {e.path for e, _ in move.pairs if self._saving.waits(e.path)}
                if not set(directories_now) <= set(directories):
                    continue
                outcome = move_in_storage(mount, self._scope_text, move, waiting)
                with self._lock:
                    # Who changes a file that is there does not wait for us.
                    moved = self._carry_out(self._tree.planned_again(move), outcome)
                    emptied = self._emptied([old, *(e.path for e, _ in move.pairs)])
                failed = outcome.failed | self._save_above(directories)
            break
        self._delete_emptied(emptied)
        self._notices.deliver()
        if failed:
            raise unsaved(failed)
        return moved

    def _carry_out(self, move: Move, outcome: MoveOutcome) -> Entries:
        """In the tree, what waits, and the notices, what ``carried`` did; the lock is held."""
        pairs = [
            (old, with_content(new, outcome.read[old.path]))
            if old.path in outcome.read and not new.loaded
            else (old, new)
            for old, new in move.pairs
        ]
        moved = self._tree.carry_out(Move(move.old, move.new, pairs, move.directories))
        for old, new in pairs:
            self._note(old, None)
            self._note(None, new)
        for entry in move.directories:
            if self._mounts.keeping(entry.path):
                self._saving.mark(entry.path)
        for old, new in pairs:
            if outcome.saved.get(old.path) is old:
                self._saving.forget(old.path)
                if (version := outcome.versions.get(old.path)) is not None:
                    self._tree.versions[new.path] = version
            elif old.path in outcome.failed and new.loaded:
                self._saving.forget(old.path)
                self._saving.mark(new.path, left=old.path)
                self._saving.try_again(new.path)
            else:
                self._saving.rename(old.path, new.path)
        for path in outcome.left:
            self._saving.mark(path)
            self._saving.try_again(path)
        self._notices.queue([FileMoved(old_path=move.old, path=move.new)])
        return moved

    def _take_in(self, entry: FileEntry) -> None:
        """Take in a file that its storage has already."""
        with self._claims.on([entry.path]), self._lock:
            self._check_open()
            stored = self._tree.put(entry)
            self._saving.forget(entry.path)
            self._notices.queue(updated(new) for new in stored[-1:])
        self._notices.deliver()

    # mounting

    def _index(self, mount: Mount, there: Stored) -> None:
        """Have in the tree what a storage has, and no other mount hides; the lock is held."""
        self._tree.index(e for e in there.entries if self._mounts.of(e.path) is mount)
        self._tree.marks[mount.root] = there.mark

    def _take_over(self, mount: Mount, there: Stored) -> Paths:
        """Make ``mount`` the one that keeps its directory; the lock is held.

        Files in memory are now its own, and their paths are given; what another mount kept
        there is hidden.
        """
        index = there.entries
        listed = {entry.path for entry in index}
        self._mounts.add(mount)
        try:
            inside = [entry for entry in self._tree if self._mounts.of(entry.path) is mount]
            adopted = [entry for entry in inside if entry.persistence == "memory"]
            for entry in adopted:
                if entry.path == mount.root:
                    clash = not entry.is_directory
                else:
                    clash = mount.readonly or (entry.path in listed and not entry.is_directory)
                if clash:
                    raise InvalidPath(
                        f"{entry.path} is in memory where {mount.root} is to be mounted; move it "
                        "away first.",
                        entry.path,
                    )
        except InvalidPath:
            self._mounts.remove(mount)
            raise
        for entry in inside:
            self._tree.pop(entry.path)
        hidden = [e.path for e in inside if e.persistence == "persisted" and e.path not in listed]
        self._index(mount, there)
        new = [entry for entry in adopted if entry.path not in listed]
        for entry in new:
            self._tree.put_back(replace(entry, persistence="persisted"))
            if entry.path != mount.root:
                self._saving.mark(entry.path)
        self._notices.queue(FileDeleted(path=path) for path in sorted(hidden))
        self._notices.queue(updated(entry) for entry in index if self._tree.get(entry.path))
        return [entry.path for entry in new if entry.path != mount.root]


def _check_whole(path: str, **fields: str | None) -> None:
    """Raise FileError for a text that no disk, database or page could take."""
    for name, text in fields.items():
        if isinstance(text, str) and whole(text) != text:
            said = name.replace("_", " ")
            raise FileError(f"The {said} for {path} has half a character; leave it out.", path)
