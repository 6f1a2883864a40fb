"""The filesystems of this process, one per scope."""

from __future__ import annotations

import threading
from typing import Any

from ..errors import ConfigurationError
from .filesystem import FileSystem


class Filesystems:
    """Open filesystems by scope; the one of the process is ``sagents_nb.filesystems``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[Any, ...], FileSystem] = {}

    def open(self, scope: tuple[Any, ...]) -> FileSystem:
        """The filesystem of that scope; the same one each time until it is closed."""
        _check(scope)
        with self._lock:
            found = self._open.get(scope)
            if found is None or found.closed:
                found = self._open[scope] = FileSystem(scope)
            return found

    def list(self) -> list[tuple[Any, ...]]:
        """The scopes that have an open filesystem."""
        with self._lock:
            return [scope for scope, fs in self._open.items() if not fs.closed]

    def get(self, scope: tuple[Any, ...]) -> FileSystem | None:
        """The open filesystem of that scope, or None."""
        _check(scope)
        with self._lock:
            found = self._open.get(scope)
            return None if found is None or found.closed else found

    def close(self, scope: tuple[Any, ...]) -> None:
        """Close the filesystem of that scope, if it is open; files in memory are gone."""
        _check(scope)
        with self._lock:
            found = self._open.pop(scope, None)
        if found is not None:
            found.close()


def _check(scope: Any) -> None:
    if not isinstance(scope, tuple) or not scope:
        raise ConfigurationError(
            f"A filesystem's scope is a tuple such as ('user', 123), not {scope!r}."
        )
    try:
        hash(scope)
    except TypeError:
        raise ConfigurationError(
            f"A filesystem's scope is a key, so {scope!r} may hold no lists or dicts."
        ) from None


filesystems = Filesystems()


def open_filesystem(scope: tuple[Any, ...]) -> FileSystem:
    """The filesystem of ``scope``, a tuple such as ``("user", 123)``.

    Everybody who opens a scope shares its files; different scopes never see each other.

    >>> open_filesystem(("doc", 1)) is open_filesystem(("doc", 1))
    True
    """
    return filesystems.open(scope)
