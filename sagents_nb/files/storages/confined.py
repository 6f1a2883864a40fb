"""A directory on the disk that a path cannot leave. POSIX only.

Python has no ``openat2``, so a path is walked: each directory is opened relative to the one
above it and links are never followed. What is swapped for a link meanwhile is refused
by the kernel, not by a check that came too early.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from ...errors import ConfigurationError
from ..errors import FileError, NotStorable, StorageGone, is_directory
from .base import folded

try:
    import fcntl
except ImportError:
    raise ConfigurationError(
        "DiskStorage needs Linux or macOS, where a disk can be used without following links; "
        "use SQLStorage('sqlite:///files.db') here."
    ) from None

# O_NONBLOCK: a FIFO that was swapped in must not hold us up until somebody writes to it.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

MAX_LISTINGS = 256

REMEDIES = {
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room on that disk",
    errno.EACCES: "allow it, or choose another directory",
    errno.EPERM: "allow it, or choose another directory",
    errno.EROFS: "choose a directory that can be written",
    errno.EXDEV: "the whole directory has to be on one disk",
}


class Listing(NamedTuple):
    """The names in a directory when its time of change was ``mtime``."""

    mtime: int
    names: set[str]
    folded: dict[str, str]


class Confined:
    """The directories and regular files below ``root``, and no others.

    Names are lists of segments. They count as they are spelled: on a disk that finds "A"
    when asked for "a", "a" is missing, and on no disk can "a" be made beside "A".
    """

    def __init__(self, root: str, *, fsync: bool = True) -> None:
        self.root = root
        self.fsync = fsync
        self._lock = threading.RLock()
        # Whether the root was there, and whether a disk of its own was mounted there.
        self._used = self._mounted = False
        self._listings: dict[tuple[int, int], Listing] = {}

    @contextmanager
    def directory(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """The descriptor of a directory; with ``make``, made if it is missing.

        What was made goes again if the caller raises. Raises FileNotFoundError, and FileError
        for what is no directory.
        """
        made: list[Sequence[str]] = []
        fd = self._open_root(make)
        try:
            for depth in range(len(names)):
                child = self._enter(fd, names[: depth + 1], made if make else None)
                os.close(fd)
                fd = child
            yield fd
        except BaseException:
            for directory in reversed(made):
                self._unmake(directory)
            raise
        finally:
            os.close(fd)

    @contextmanager
    def child(self, fd: int, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """The descriptor of the last of ``names`` in the directory ``fd``, which has the others."""
        made: list[Sequence[str]] = []
        inner = self._enter(fd, names, made if make else None)
        try:
            yield inner
        except BaseException:
            if made:
                self._unmake(names)
            raise
        finally:
            os.close(inner)

    def _enter(self, fd: int, names: Sequence[str], made: list[Sequence[str]] | None) -> int:
        name = names[-1]
        make = made is not None
        try:
            # Most often it is there; and where it is not, nothing has to be listed to know it.
            with suppress(OSError), ExitStack() as opened:
                inner = os.open(name, DIRECTORY, dir_fd=fd)
                opened.callback(os.close, inner)
                if name in self._listing(fd).names:
                    opened.pop_all()
                    return inner
            if made is not None:
                with self._lock:
                    if not self.check_free(fd, names):
                        try:
                            os.mkdir(name, dir_fd=fd)
                        except FileExistsError:  # another process was faster
                            self.check_free(fd, names)
                        else:
                            made.append(names)
                            self.note(fd, added=name)
                            self.sync(fd)
            elif not self.exists(fd, name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            return os.open(name, DIRECTORY, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and not make:  # so nothing lies below it
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
                raise not_ours("/".join(names), "no directory") from None
            raise

    def _unmake(self, names: Sequence[str]) -> None:
        """Remove a directory that nobody else has put anything in."""
        with suppress(OSError, FileError), self.directory(names[:-1]) as fd:
            if remove_empty(fd, names[-1]):
                self.note(fd, removed=names[-1])

    def sync(self, fd: int) -> None:
        """Wait until a file or directory is on the disk itself."""
        if not self.fsync:
            return
        # macOS: its fsync stops at the drive's own cache.
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is not None:
            try:
                fcntl.fcntl(fd, full)
                return
            except OSError:  # a disk that does not know it
                pass
        os.fsync(fd)

    def check_there(self) -> None:
        """Raise StorageGone if the root was there and is not any more."""
        with suppress(FileNotFoundError, NotADirectoryError):
            os.close(self._open_root(False))

    def _open_root(self, make: bool) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        used = self._used  # before: another thread may make it now
        try:
            fd = os.open(self.root, flags)
        except (FileNotFoundError, NotADirectoryError):
            if used:
                raise self._gone() from None
            if not make:
                raise
            self._make_root()
            fd = os.open(self.root, flags)
        if not self._used:
            self._mounted = os.path.ismount(self.root)
            self._used = True
        elif self._mounted and not os.path.ismount(self.root):  # an empty place is left of it
            os.close(fd)
            raise self._gone()
        return fd

    def _gone(self) -> StorageGone:
        return StorageGone(
            f"The folder {self.root} is not there any more: it was renamed, removed or "
            "unmounted; bring it back and try again, or mount another one."
        )

    def _make_root(self) -> None:
        missing, above = [], self.root
        while not os.path.isdir(above):
            missing.append(above)
            above = os.path.dirname(above)
        for directory in reversed(missing):
            try:
                os.mkdir(directory)
            except FileExistsError:
                if not os.path.isdir(directory):
                    raise
            if self.fsync:
                fd = os.open(os.path.dirname(directory), os.O_RDONLY | os.O_DIRECTORY)
                try:
                    self.sync(fd)
                finally:
                    os.close(fd)

    @contextmanager
    def telling(self, path: str, done: str) -> Iterator[None]:
        """Raise FileError for what the disk refuses, but FileNotFoundError as it is."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
        except OSError as error:
            remedy = REMEDIES.get(error.errno or 0, "look after that disk and try again")
            # No disk grows longer names while one waits.
            kind = NotStorable if error.errno == errno.ENAMETOOLONG else FileError
            root = self.root if self.root.isprintable() else repr(self.root)
            raise kind(
                f"{path} could not be {done} in {root}: {error.strerror}; {remedy}.", path
            ) from error

    # names

    def exists(self, fd: int, name: str) -> bool:
        """Whether the directory has that name, spelled so."""
        return self._status(fd, name) is not None

    def _status(self, fd: int, name: str) -> os.stat_result | None:
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        # If it is not listed, it came a moment ago, or the disk takes another name for it.
        is_there = name in self._listing(fd).names or name in self._listing(fd, anew=True).names
        return status if is_there else None

    def check_free(self, fd: int, names: Sequence[str], *, besides: str = "") -> bool:
        """Whether the last of ``names`` is there; FileError if another one is too like it.

        ``besides`` is a name that does not count, because it is about to go.
        """
        return self.exists(fd, names[-1]) or self.check_missing(fd, names, besides=besides)

    def check_missing(self, fd: int, names: Sequence[str], *, besides: str = "") -> bool:
        """The same for one that was just found to be missing."""
        name = names[-1]
        if folded(name) in self._listing(fd).folded:
            like = self._listing(fd, anew=True).folded.get(folded(name), besides)
            if like == name:  # another process has made it since
                return True
            if like != besides:
                raise NotStorable(
                    f"{'/'.join(names)} cannot be beside {like!r}: on some disks they are one "
                    "file; choose another name.",
                    "/".join(names),
                )
        return False

    def note(self, fd: int, *, added: str = "", removed: str = "") -> None:
        """Remember a change that was made here, so that the directory is not read again."""
        status = os.fstat(fd)
        with self._lock:
            listing = self._listings.get((status.st_dev, status.st_ino))
            if listing is None:
                return
            if removed:
                listing.names.discard(removed)
                if listing.folded.get(folded(removed)) == removed:
                    del listing.folded[folded(removed)]
            if added:
                listing.names.add(added)
                listing.folded[folded(added)] = added
            changed = listing._replace(mtime=status.st_mtime_ns)
            self._listings[status.st_dev, status.st_ino] = changed

    def _listing(self, fd: int, *, anew: bool = False) -> Listing:
        status = os.fstat(fd)
        key = (status.st_dev, status.st_ino)
        with self._lock:
            listing = self._listings.get(key)
            if listing is None or anew or listing.mtime != status.st_mtime_ns:
                names = set(os.listdir(fd))
                listing = Listing(status.st_mtime_ns, names, {folded(name): name for name in names})
                if len(self._listings) >= MAX_LISTINGS:
                    self._listings.clear()
                self._listings[key] = listing
            return listing

    # files

    def status(self, fd: int, names: Sequence[str]) -> os.stat_result | None:
        """The status of a file, None if it is missing; FileError for what is no plain file."""
        status = self._status(fd, names[-1])
        if status is not None:
            check_plain(status, "/".join(names))
        return status

    def read(self, fd: int, names: Sequence[str]) -> tuple[bytes, os.stat_result]:
        """The bytes of a file and its status; FileNotFoundError if it is missing."""
        with self.opened(fd, names) as (file, status):
            return file.readall(), status

    @contextmanager
    def opened(self, fd: int, names: Sequence[str]) -> Iterator[tuple[io.FileIO, os.stat_result]]:
        """A file to read and its status; FileNotFoundError if it is missing."""
        path = "/".join(names)
        # Asked before it is opened: to open a device may be to set it going.
        if self.status(fd, names) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        try:
            file = os.open(names[-1], READ, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise not_ours(path, "no plain file") from None
            raise
        with open(file, "rb", buffering=0) as opened:
            status = os.fstat(file)
            check_plain(status, path)
            yield opened, status


def write(file: int, data: bytes) -> None:
    """Write all of that."""
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def put(source: tuple[int, str], target: tuple[int, str], *, swap: bool) -> bool:
    """Move a file into the place of another, which gets its name; or where nothing is.

    At one stroke, so that who does it can see what was replaced; False if the system cannot.
    Raises FileExistsError if something is there, or with ``swap`` FileNotFoundError if not.
    """
    function = _renameat2()
    if function is None:
        return False
    flag = _EXCHANGE if swap else _NOREPLACE
    (above, old), (fd, new) = source, target
    if function(above, os.fsencode(old), fd, os.fsencode(new), flag) == 0:
        return True
    import ctypes

    error = ctypes.get_errno()
    if error in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):  # a disk that does not know it
        return False
    raise OSError(error, os.strerror(error), new)


_NOREPLACE, _EXCHANGE = 1, 2  # of linux/fs.h


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """Linux's; Python has no way to it: https://github.com/python/cpython/issues/105201."""
    import ctypes

    function: Callable[..., int] | None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return function


def check_plain(status: os.stat_result, path: str) -> None:
    """Raise FileError unless it is a regular file with one name."""
    if stat.S_ISDIR(status.st_mode):
        raise is_directory(path)
    if not stat.S_ISREG(status.st_mode):
        raise not_ours(path, "no plain file")
    if status.st_nlink > 1:
        raise not_ours(path, "a file with several names")


def not_ours(path: str, what: str) -> NotStorable:
    """The error for a link, a device and the like."""
    return NotStorable(
        f"{path} is {what} on the disk, so it is left alone; choose another path.",
        path,
    )


def remove_empty(fd: int, name: str) -> bool:
    """Remove a directory if it is empty, and say whether it was."""
    try:
        os.rmdir(name, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True
