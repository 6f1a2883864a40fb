"""Reading contents from the storages, when they are first asked for.

Also what reading and saving have in common: several threads are in the storages at a time,
and no two of them for one path.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TypeVar

from ..errors import pass_on
from ..runtime.workers import workers
from ..text import logger_of
from . import paths
from .edits import lines_from
from .entry import FileEntry, with_content
from .errors import FileError, LimitExceeded, StorageFailed, StorageGone, WrongKind, reason
from .storages.base import asker, asker_of_many, loaded_content
from .tree import Tree

T = TypeVar("T")

log = logger_of(__name__)

# More threads than processors, since what they do is waiting for a network or for a disk.
THREADS = 8
# Seconds for one path. What is quicker is work of ours, which threads would only hold up.
SLOW = 0.005
PART = 16
LOOKS = 3
# Bytes from which on a part of a file is read alone, and how much of one line of it.
LARGE = 1_000_000
LONGEST = 10_000


def together(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    """What ``function`` gives for parts of ``paths``; it must not raise."""
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
        futures = [workers.submit(function, part) for part in parts]
        return [future.result() for future in futures]
    except RuntimeError:  # the process is ending and starts no more threads
        return [function(paths)]


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


def _lines_of(file: IO[bytes], first: int, limit: int) -> list[str]:
    lines: list[str] = []
    with io.BufferedReader(file, 1 << 20) as buffered:  # type: ignore[type-var]
        for _ in range(first - 1):
            if not buffered.readline():
                return lines
        while len(lines) < limit and (line := buffered.readline(LONGEST)):
            if not line.endswith(b"\n"):
                while (rest := buffered.readline(1 << 20)) and not rest.endswith(b"\n"):
                    pass
                line = _whole_characters(line)
            if b"\0" in line:
                raise UnicodeDecodeError("utf-8", line, 0, 1, "a binary file")
            lines.append(line.decode().removesuffix("\n"))
    return lines


def _whole_characters(line: bytes) -> bytes:
    """Without the piece of a character at its end."""
    for cut in range(min(4, len(line))):
        try:
            line[: len(line) - cut].decode()
        except UnicodeDecodeError:
            continue
        return line[: len(line) - cut]
    return line


def _no_text(path: str) -> WrongKind:
    return WrongKind(f"{path} is a binary file and has no lines; read it as a whole.", path)


def _unreadable(path: str, error: BaseException) -> StorageFailed:
    if issubclass(type(error), StorageGone):
        assert isinstance(error, StorageGone)
        return error
    return StorageFailed(
        f"{path} could not be read from its storage ({reason(error)}); "
        "try again, or see with reset() what is there.",
        path,
    )


class Loading:
    """Brings contents into a ``tree``; ``on_load(before, after)`` is called with the lock held."""

    def __init__(
        self,
        lock: threading.Lock,
        tree: Tree,
        claims: Claims,
        scope: str,
        on_load: Callable[[FileEntry, FileEntry], None],
    ) -> None:
        self._lock = lock
        self._tree = tree
        self._claims = claims
        self._scope = scope
        self._on_load = on_load

    def load(self, path: str, *, keep: bool = True) -> FileEntry:
        """The file with its content; who comes second waits for the first and reads nothing.

        Without ``keep`` the content stays in memory only if it is within the limit for all.
        Raises StorageFailed, and the file is as it was.
        """
        with self._claims.on([path]):
            return self._load(path, keep, None)

    def _load(self, path: str, keep: bool, version: str | None) -> FileEntry:
        """The same for who has claimed the path, and may know what version there was before."""
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
        inside, ask = mount.inside(path), asker(mount.storage)
        try:
            # Before it is read, so that what is changed meanwhile is read again.
            if version is None and ask is not None:
                version = ask(self._scope, inside)
            content = loaded_content(mount.storage, self._scope, inside)
        except BaseException as error:
            pass_on(error)
            raise _unreadable(path, error) from error
        with self._lock:
            now = self._tree.file(path)
            if now.loaded:  # somebody wrote it meanwhile
                return now
            loaded = with_content(now, content)
            if keep or self._tree.loaded_size + loaded.size <= self._tree.limits.total_size:
                self._tree.swap(loaded)
                if version is not None:
                    self._tree.versions[path] = version
                self._on_load(now, loaded)
            return loaded

    def lines(self, path: str, first: int, limit: int) -> tuple[list[str], int | None]:
        """Up to ``limit`` lines from line ``first`` on, and how many there are, if that is known.

        Of a large file in a storage that opens files, only these are read, and a line of it is
        cut after LONGEST bytes. Raises WrongKind for a file that is no text.
        """
        with self._claims.on([path]):
            with self._lock:
                entry = self._tree.file(path)
                mount = self._tree.mounts.keeping(path)
            opens = None if mount is None else getattr(mount.storage, "open", None)
            if entry.loaded or entry.size < LARGE or mount is None or opens is None:
                text = self._load(path, True, None).text
                if text is None:
                    raise _no_text(path)
                return lines_from(text, first, limit)
            try:
                with opens(self._scope, mount.inside(path)) as file:
                    return _lines_of(file, first, limit), None
            except UnicodeDecodeError:
                raise _no_text(path) from None
            except BaseException as error:
                pass_on(error)
                raise _unreadable(path, error) from error

    def load_all(self, paths: Sequence[str]) -> None:
        """Load those files, several at a time; what cannot be read is logged."""
        together(self._load_each, paths)

    def each(
        self, parts: Iterable[Sequence[FileEntry]], failed: dict[str, FileError] | None = None
    ) -> Iterator[FileEntry]:
        """The files with their contents; what cannot be read is logged and left out.

        Those of a part are read before the first of it is given. ``failed`` is told why, by path.
        Contents are kept while all that are in memory are within the limit for all files.
        """
        passing = partial(self._load_each, keep=False, failed=failed)
        for part in parts:
            unread = [entry.path for entry in part if not entry.loaded]
            if not unread:
                yield from part
                continue
            read = dict(pair for pairs in together(passing, unread) for pair in pairs)
            yield from (
                entry if entry.loaded else read[entry.path]
                for entry in part
                if entry.loaded or entry.path in read
            )

    def _load_each(
        self,
        paths: Sequence[str],
        keep: bool = True,
        failed: dict[str, FileError] | None = None,
    ) -> list[tuple[str, FileEntry]]:
        loaded = []
        known = self._known_versions(paths)
        for path in paths:
            try:
                with self._claims.on([path]):
                    loaded.append((path, self._load(path, keep, known.get(path))))
            except FileError as error:
                log.warning("%s", error)
                if failed is not None:
                    failed[path] = error
        return loaded

    def _known_versions(self, paths: Sequence[str]) -> dict[str, str | None]:
        """What those versions are, as far as storages are asked for many files at once."""
        known: dict[str, str | None] = {}
        with self._lock:
            kept = self._tree.mounts.kept({path: path for path in paths})
        for mount, files in kept.items():
            if (ask := asker_of_many(mount.storage)) is None:
                continue
            try:
                found = ask(self._scope, list(files))
            except BaseException as error:
                pass_on(error)
                continue  # each is asked for, and says what is wrong
            known |= {path: found.get(inside) for inside, path in files.items()}
        return known
