"""What is mounted in a filesystem, and listing what the storages have."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from ..errors import ConfigurationError
from ..events import FileDeleted
from .core import Core, updated
from .entry import FileEntry
from .errors import InvalidPath, StorageFailed, said
from .mounts import Mount, check_bases
from .saving import unsaved
from .snapshots import same

log = logging.getLogger(__name__)


class Mounting(Core):
    """The methods of a filesystem for its mounts."""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted; without any, no method waits for a storage."""
        return tuple(self._mounts)

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
        """Mount those that are not mounted yet.

        Raises ConfigurationError, and mounts nothing, where something else is mounted.
        """
        if isinstance(mounts, Mount):
            raise ConfigurationError(f"mounts is a list of mounts: give [{mounts!r}].")
        mounts = list(mounts)
        check_bases(mounts)
        with self._mounting:
            there = {mount.root: self._mounts.at(mount.root) for mount in mounts}
            for mount in mounts:
                known = there[mount.root]
                if known is not None and not known.is_like(mount):
                    raise ConfigurationError(
                        f"{mount.root} is mounted already, and otherwise ({known.storage!r}); "
                        f"call filesystems.close({self.scope!r}) first."
                    )
            for mount in mounts:
                if there[mount.root] is None:
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
                    if path in lost or not same(before.get(path), entry)
                )
        self._notices.deliver()

    def _take_over(self, mount: Mount, index: list[FileEntry]) -> list[str]:
        """Make ``mount`` the one that keeps its directory; the lock is held.

        Files in memory are now its own, and their paths are given; what another mount kept
        there is hidden.
        """
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
        self._tree.index(entry for entry in index if self._mounts.of(entry.path) is mount)
        new = [entry for entry in adopted if entry.path not in listed]
        for entry in new:
            self._tree.put_back(replace(entry, persistence="persisted"))
            if entry.path != mount.root:
                self._saving.mark(entry.path)
        self._notices.queue(FileDeleted(path=path) for path in sorted(hidden))
        self._notices.queue(updated(entry) for entry in index if self._tree.get(entry.path))
        return [entry.path for entry in new if entry.path != mount.root]

    def _owned(self, mount: Mount) -> list[FileEntry]:
        """What its storage has and no other mount hides."""
        return [e for e in self._listed(mount) if self._mounts.of(e.path) is mount]

    def _listed(self, mount: Mount) -> list[FileEntry]:
        """What its storage has, with the paths that it has here."""
        try:
            entries = list(mount.storage.list(self._saving.scope))
        except Exception as error:
            raise StorageFailed(
                f"The storage of {mount.root} could not be listed ({said(error)}); see that it "
                "can be reached.",
                mount.root,
            ) from error
        listed = []
        for entry in entries:
            try:
                path = mount.outside(entry.path)
            except InvalidPath as error:
                log.warning("A stored file was left out: %s", error)
                continue
            loaded = entry.is_directory
            listed.append(
                replace(entry, path=path, content=None, loaded=loaded, persistence="persisted")
            )
        return listed
