"""Reading contents from the storages, when they are first asked for."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from .claims import Claims
from .entry import FileEntry, with_content
from .errors import FileError, LimitExceeded, StorageFailed, said
from .storages.base import loaded_content
from .tree import Tree

T = TypeVar("T")

log = logging.getLogger(__name__)

# More threads than processors, since what they do is waiting for a network or for a disk.
THREADS = 8
# Seconds for one path. What is quicker is work of ours, which threads would only hold up.
SLOW = 0.005
PART = 16
LOOKS = 3


def together(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    """What ``function`` gives for parts of ``paths``; it must not raise.

    The threads are new ones: those of a shared pool might all be waiting here.
    """
    results: list[T] = []
    times: list[float] = []
    done = 0
    while done < len(paths):
        part = paths[done : done + (PART if len(times) >= LOOKS else 1)]
        began = time.monotonic()
        results.append(function(part))
        done += len(part)
        times.append((time.monotonic() - began) / len(part))
        # One long time may be anything; several in a row are how it is here.
        if len(times) >= LOOKS and min(times[-LOOKS:]) > SLOW and len(paths) - done > 1:
            return results + _in_threads(function, paths[done:])
    return results


def _in_threads(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    parts = [part for first in range(THREADS) if (part := paths[first::THREADS])]
    try:
        with ThreadPoolExecutor(len(parts), "sagents-files") as pool:
            return list(pool.map(function, parts))
    except RuntimeError:  # the process is ending and starts no more threads
        return [function(paths)]


# How many files are read ahead of who goes through them.
READ_AHEAD = 1000


class Loading:
    """Brings contents into a ``tree``; ``told(before, after)`` is called with the lock held."""

    def __init__(
        self,
        lock: threading.Lock,
        tree: Tree,
        claims: Claims,
        scope: str,
        told: Callable[[FileEntry, FileEntry], None],
    ) -> None:
        self._lock = lock
        self._tree = tree
        self._claims = claims
        self._scope = scope
        self._told = told

    def load(self, path: str, *, keep: bool = True) -> FileEntry:
        """The file with its content; who comes second waits for the first and reads nothing.

        Without ``keep`` the content stays in memory only if it is within the limit for all.
        Raises StorageFailed, and the file is as it was.
        """
        with self._claims.on([path]):
            return self._load(path, keep)

    def _load(self, path: str, keep: bool) -> FileEntry:
        with self._lock:
            entry = self._tree.file(path)
            mount = self._tree.mounts.keeping(path)
        if entry.loaded:
            return entry
        limit = self._tree.limits.file_size
        if entry.size > limit:
            raise LimitExceeded(
                f"{path} is {entry.size:,} bytes, over the limit of {limit:,} for one file; "
                "open the filesystem with a larger max_file_size.",
                path,
            )
        assert mount is not None, "only a mount has files that are not loaded"
        try:
            content = loaded_content(mount.storage, self._scope, mount.inside(path))
        except Exception as error:
            raise StorageFailed(
                f"{path} could not be read from its storage ({said(error)}); "
                "try again, or see with reset() what is there.",
                path,
            ) from error
        with self._lock:
            now = self._tree.file(path)
            if now.loaded:  # somebody wrote it meanwhile
                return now
            loaded = with_content(now, content)
            if keep or self._tree.loaded_size + loaded.size <= self._tree.limits.total_size:
                self._tree.swap(loaded)
                self._told(now, loaded)
            return loaded

    def load_all(self, paths: Sequence[str]) -> None:
        """Load those files, several at a time; what cannot be read is logged."""
        together(self._load_each, paths)

    def each(self, entries: Iterable[FileEntry]) -> Iterator[FileEntry]:
        """The files with their contents; what cannot be read is logged and left out.

        Contents are kept while all that are in memory are within the limit for all files.
        """
        entries = iter(entries)
        passing = partial(self._load_each, keep=False)
        while part := list(itertools.islice(entries, READ_AHEAD)):
            unread = [entry.path for entry in part if not entry.loaded]
            read = dict(pair for pairs in together(passing, unread) for pair in pairs)
            yield from (
                entry if entry.loaded else read[entry.path]
                for entry in part
                if entry.loaded or entry.path in read
            )

    def _load_each(self, paths: Iterable[str], keep: bool = True) -> list[tuple[str, FileEntry]]:
        loaded = []
        for path in paths:
            try:
                loaded.append((path, self.load(path, keep=keep)))
            except FileError as error:
                log.warning("%s", error)
        return loaded
