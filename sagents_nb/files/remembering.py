"""What the files were: taken down, compared with, brought back."""

from __future__ import annotations

from .core import Core
from .entry import FileEntry
from .errors import FileError
from .snapshots import Snapshot, changed, difference


class Remembering(Core):
    """The methods of a filesystem for snapshots.

    ``before = fs.snapshot()``, then a run, then ``print(fs.diff(before))`` shows what the run
    did to the files, and ``fs.restore(before)`` undoes it.
    """

    def snapshot(self, label: str | None = None) -> str:
        """Remember all files as they are now; the id for :meth:`restore` and :meth:`diff`.

        It costs a pointer per file. The last 100 are kept, in memory. While there are any, a
        stored file is read before it is changed.
        """
        with self._lock:
            self._check_open()
            return self._snapshots.add(self._tree.copy(), self._tree.size, label)

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that are kept, the oldest first."""
        with self._lock:
            return [*self._snapshots]

    def diff(self, a: str, b: str | None = None) -> str:
        r"""How the files differ between snapshot ``a`` and ``b``, or now, as a unified diff.

        Binary and very large files are told with their sizes. "" without a difference.

        >>> from sagents_nb.files import FileSystem
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
                differing = changed(old, new)
                entries = [e for p in differing for e in (old.get(p), new.get(p)) if e]
                unread = [e.path for e in entries if not e.loaded and e is self._tree.get(e.path)]
                if not read or not unread:
                    break
            self._loading.load_all(unread)
        return difference(old, new, differing)

    def restore(self, id: str) -> None:
        """Make all files what they were at a snapshot, those in read-only mounts aside.

        Every change is one like any other: told to subscribers, refused by limits, and saved
        as a mount does. Raises FileError, after all others were restored, that names the
        first file that could not be.
        """
        with self._lock:
            self._check_open()
            before, now = self._snapshots.of(id), self._tree.copy()
            paths = [p for p in changed(before, now) if self._mounts.writable(p)]
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

    def _restore(self, entry: FileEntry) -> None:
        if not entry.loaded:
            raise FileError(f"The snapshot has no content of {entry.path}.", entry.path)
        self._change(entry.path, lambda: self._tree.get(entry.path), lambda _: entry)
