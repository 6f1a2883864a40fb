"""What others make of the files of a mount: seen before a read, and never overwritten unseen."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ..errors import pass_on
from ..events import Event, FileDeleted
from .entry import with_content
from .errors import FileChanged, StorageFailed, reason
from .loading import Claims
from .mounts import Mount
from .notices import updated
from .saving import Saving, overwriting
from .storages.base import asker
from .tree import Tree

log = logging.getLogger(__name__)


class Versions:
    """Compares what is in memory with what the storages have by now.

    A storage with a ``version`` method is asked, others are taken to change by nobody else. The
    ``tree`` holds the version from which each content came; ``tell`` is called with the lock held.
    """

    def __init__(
        self,
        lock: threading.Lock,
        tree: Tree,
        claims: Claims,
        saving: Saving,
        scope: str,
        tell: Callable[[Iterable[Event]], None],
    ) -> None:
        self._lock = lock
        self._tree = tree
        self._claims = claims
        self._saving = saving
        self._scope = scope
        self._tell = tell

    def refreshed(self, path: str) -> bool:
        """Take what the storage has by now, if that is another and nothing here is unsaved.

        Whether the tree was changed. What cannot be asked is taken to be the same.
        """
        if self._now(path) is None:
            return False
        with self._claims.on([path]):
            found = self._now(path)
            if found is None or found[2]:
                return False
            self._take(path, found[0])
        return True

    def check(self, path: str, *, edits: bool = False) -> bool:
        """Look before a content is replaced; whether the tree was changed by that.

        Raises FileChanged for what would overwrite the work of somebody else, which is taken in
        first; one that only ``edits`` what is there goes on from that.
        """
        if self._now(path) is None:
            return False
        with self._claims.on([path]):  # no save of ours is under way
            found = self._now(path)
            if found is None:
                return False
            mount, version, unsaved = found
            if unsaved and version is not None:
                raise overwriting(path)
            if unsaved:  # deleted: what is here is all there is
                return False
            self._take(path, mount)
        if edits or version is None:
            return True
        raise FileChanged(
            f"{path} was changed by somebody else since it was read; read it again before you "
            "change it.",
            path,
        )

    def reload(self, path: str) -> None:
        """Take what the storage has, whatever is unsaved here."""
        with self._lock:
            mount = self._tree.mounts.keeping(path)
        if mount is None:
            return
        with self._claims.on([path]):
            self._take(path, mount)

    def _now(self, path: str) -> tuple[Mount, str | None, bool] | None:
        """The mount, the version there, and whether something waits here; None if all is as known.

        What is known is that of the content in memory, or that there is no such file.
        """
        with self._lock:
            mount = self._tree.mounts.keeping(path)
            entry = self._tree.get(path)
            if mount is None or (entry is None and self._tree.has(path)):
                return None
            if entry is not None and (entry.is_directory or not entry.loaded):
                return None
            known = self._tree.versions.get(path) if entry is not None else ""
            unsaved = self._saving.waits(path)
        if known is None:
            return None
        ask = asker(mount.storage)
        if ask is None:
            return None
        try:
            version = ask(self._scope, mount.inside(path))
        except BaseException as error:
            pass_on(error)
            log.warning("It is not known whether %s has changed (%r)", path, error)
            return None
        return None if (version or "") == known else (mount, version, unsaved)

    def _take(self, path: str, mount: Mount) -> None:
        """Have in memory what the storage has; the path is claimed."""
        inside = mount.inside(path)
        ask = asker(mount.storage)
        try:
            version = ask(self._scope, inside) if ask else None
            stored = mount.storage.load(self._scope, inside)
        except FileNotFoundError:
            self._lose(path)
            return
        except BaseException as error:
            pass_on(error)
            raise StorageFailed(
                f"{path} was changed by somebody else and could not be read anew "
                f"({reason(error)}); try again.",
                path,
            ) from error
        entry = replace(stored, path=path, content=None, loaded=False, persistence="persisted")
        with self._lock:
            self._saving.forget(path)
            self._tree.take_in(entry)
            fits = entry.size <= self._tree.limits.file_size
            if self._tree.get(path) is entry and stored.content is not None and fits:
                self._tree.swap(with_content(entry, stored.content))
                if version is not None:
                    self._tree.versions[path] = version
            now = self._tree.get(path)
            self._tell([] if now is None else [updated(now)])

    def _lose(self, path: str) -> None:
        with self._lock:
            self._saving.forget(path)
            self._tree.versions.pop(path, None)
            if self._tree.get(path) is not None:
                self._tree.pop(path)
                self._tell([FileDeleted(path=path)])
