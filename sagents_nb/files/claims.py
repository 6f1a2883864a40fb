"""Who is at work on which paths, so that no two threads use a storage for one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from . import paths
from .errors import FileError, StorageFailed


class Claims:
    """Paths and whole directories that a thread works on in a storage.

    ``lock`` is that of the filesystem; it is not held while the work goes on.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._free = threading.Condition(lock)
        self._paths: dict[str, int] = {}  # path → the thread that has it
        self._trees: dict[str, int] = {}  # the same for a path and all below it

    @contextmanager
    def on(
        self, some: Collection[str], trees: Collection[str] = (), until: float | None = None
    ) -> Iterator[None]:
        """Wait until nobody else works on any of them, and have them all.

        The caller does not hold the lock. Raises StorageFailed when ``until``, a time of
        :func:`time.monotonic`, has come.
        """
        me = threading.get_ident()
        with self._free:
            while (holder := self._holder(some, trees)) is not None:
                if holder == me:
                    raise FileError("A storage called its own filesystem for a file it works on.")
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise StorageFailed("The storage took too long.")
                self._free.wait(left)
            self._paths.update(dict.fromkeys(some, me))
            self._trees.update(dict.fromkeys(trees, me))
        try:
            yield
        finally:
            with self._free:
                for path in some:
                    del self._paths[path]
                for tree in trees:
                    del self._trees[tree]
                self._free.notify_all()

    def _holder(self, some: Collection[str], trees: Collection[str]) -> int | None:
        for path in some:
            if path in self._paths:
                return self._paths[path]
        for tree, holder in self._trees.items():
            if any(_within(path, tree) for path in some):
                return holder
            if any(_within(tree, other) or _within(other, tree) for other in trees):
                return holder
        for path, holder in self._paths.items() if trees else ():
            if any(_within(path, tree) for tree in trees):
                return holder
        return None


def _within(path: str, tree: str) -> bool:
    return path == tree or paths.is_below(path, tree)
