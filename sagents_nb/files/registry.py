"""The filesystems of this process, one per scope."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from .. import kinds
from .filesystem import VirtualFilesystem
from .mounts import Mount, listed
from .paths import Scope, check_scope, scope_text


class Filesystems:
    """Open filesystems by scope; the one of the process is ``sagents_nb.filesystems``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By text: what storages take for one scope has one filesystem.
        self._open: dict[str, VirtualFilesystem] = {}
        # Those that are forgotten with the last who has one.
        self._lent: WeakValueDictionary[str, VirtualFilesystem] = WeakValueDictionary()

    @kinds.checked(scope=kinds.ANYTHING)
    def open(self, scope: Scope, mounts: Iterable[Mount] = (), **limits: Any) -> VirtualFilesystem:
        """The filesystem of that ``scope``; the same one each time until it is closed.

        Of ``mounts``, those are mounted that are not yet; ConfigurationError is raised where
        something else is mounted. ``limits`` are those of :class:`VirtualFilesystem`, for one that
        is not open yet.

        >>> from sagents_nb import filesystems
        >>> filesystems.open(("example", 1)) is filesystems.open(("example", 1))
        True
        >>> filesystems.close(("example", 1))
        """
        check_scope(scope)
        mounts = listed(mounts)
        with self._lock:
            filesystem = self._found(scope)
            if filesystem is None:
                filesystem = VirtualFilesystem(scope, **limits)
            self._open[scope_text(scope)] = filesystem
        filesystem.mount_missing(mounts)
        return filesystem

    def lend(self, scope: Scope) -> VirtualFilesystem:
        """As :meth:`open`, but if nobody opens it, it is forgotten with the last who has it.

        ``scope`` is as there.

        >>> from sagents_nb import filesystems
        >>> files = filesystems.lend(("example", 2))
        >>> files.scope
        ('example', 2)
        """
        check_scope(scope)
        with self._lock:
            filesystem = self._found(scope)
            if filesystem is None:
                filesystem = self._lent[scope_text(scope)] = VirtualFilesystem(scope)
            return filesystem

    def _found(self, scope: Scope) -> VirtualFilesystem | None:
        """The open one, if there is one; the caller holds the lock."""
        text = scope_text(scope)
        known = (self._open.get(text), self._lent.get(text))
        return next((fs for fs in known if fs is not None and not fs.closed), None)

    def list(self) -> list[Scope]:
        """The scopes that have an open filesystem.

        >>> from sagents_nb import filesystems
        >>> _ = filesystems.open(("example", 3))
        >>> ("example", 3) in filesystems.list()
        True
        >>> filesystems.close(("example", 3))
        """
        with self._lock:
            found = {**self._lent, **self._open}
            return [fs.scope for fs in found.values() if fs.scope and not fs.closed]

    def get(self, scope: Scope) -> VirtualFilesystem | None:
        """The open filesystem of that ``scope``, or None.

        >>> from sagents_nb import filesystems
        >>> filesystems.get(("example", "unknown")) is None
        True
        """
        check_scope(scope)
        with self._lock:
            return self._found(scope)

    def close(self, scope: Scope) -> None:
        """Save and close the filesystem of that ``scope``, if it is open.

        Files in memory are gone. Raises StorageFailed if one in a mount cannot be saved, and
        leaves the filesystem open.

        >>> from sagents_nb import filesystems
        >>> files = filesystems.open(("example", 4))
        >>> filesystems.close(("example", 4))
        >>> files.closed
        True
        """
        filesystem = self.get(scope)
        if filesystem is not None:
            filesystem.close()
        with self._lock:
            current = self._open.get(scope_text(scope))
            if current is not None and current.closed:
                del self._open[scope_text(scope)]


filesystems = Filesystems()


@kinds.checked(scope=kinds.ANYTHING)
def open_filesystem(
    scope: Scope | Iterable[Mount] | None = None, mounts: Iterable[Mount] = (), **limits: Any
) -> VirtualFilesystem:
    """The filesystem of ``scope``, a tuple such as ``("user", 123)``.

    Without a scope, ``open_filesystem([Mount(…)])``, it is a new one that nobody else can open.

    Everybody who opens a scope shares its files; different scopes never see each other, where
    ``("user", "123")`` is the same: storages know the text. An
    agent with that ``filesystem_scope`` works in it, and so does a session that is given it as
    ``filesystem``. ``mounts`` say what is kept where; what is mounted already stays, and
    ConfigurationError is raised if it is something else than what is asked for.
    ``limits`` are those of :class:`~sagents_nb.files.filesystem.VirtualFilesystem`.

    >>> open_filesystem(("doc", 1)) is open_filesystem(("doc", 1))
    True
    >>> open_filesystem(("doc", 1)) is open_filesystem(("doc", "1"))
    True

    >>> open_filesystem(("doc", 1)).write("/a.md", "# A").path
    '/a.md'
    """
    if scope is None or (isinstance(scope, list) and isinstance(next(iter(scope), None), Mount)):
        files = VirtualFilesystem(("own", uuid.uuid4().hex[:12]), **limits)
        for given in (scope or (), mounts):
            files.mount_missing(listed(given))
        return files
    return filesystems.open(scope, mounts, **limits)  # type: ignore[arg-type]
