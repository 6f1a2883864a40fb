"""What a disk does not keep of its files: a log of JSON lines beside them.

Nothing here is needed to have the files themselves. A line that is damaged is skipped, and a
file that has no line is described by what the disk tells.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from ...text import logger_of
from .. import paths
from ..entry import FileEntry, guessed_type
from ..errors import FileError
from .base import RESERVED, Metadata, as_json
from .confined import CREATE, Confined

log = logger_of(__name__)

FOLDER = (RESERVED, "files")
TEMPORARY = (*FOLDER, "tmp")
LOG = "index.jsonl"
HEAD = 64  # bytes; a log begins with a line of its own, so that another is noticed
SPARE_LINES = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a path from this line on; ``data`` None: nothing any more.

    ``mtime`` (ns) is the disk's time of the content that it was written for. ``listed`` is
    False for a directory that was deleted while other files lay in it.
    """

    path: str
    data: Metadata | None = None
    mtime: int = 0
    listed: bool = True


_decoder = msgspec.json.Decoder(Line)


class SideFile:
    """The log of one root. Not thread-safe; several processes may write it.

    The two last lines of a path count: a line is written before its file is put in place, so
    after a crash the file may still be the one of the line before.
    """

    def __init__(self, root: Confined) -> None:
        self._root = root
        self._head = b""
        self._offset = 0
        self._lines = 0
        self._torn = False
        self._index: dict[str, tuple[Line, ...]] = {}

    def last(self, path: str) -> Line | None:
        """The last line of a path."""
        lines = self._index.get(path)
        return lines[-1] if lines else None

    def fitting(self, path: str, status: os.stat_result) -> tuple[Metadata | None, bool]:
        """What is known of a file, and whether it was written for just this content."""
        line = self._fitting_line(path, status)
        if line is not None:
            return line.data, True
        last = self.last(path)
        return (last.data if last else None), False

    def _fitting_line(self, path: str, status: os.stat_result) -> Line | None:
        for line in reversed(self._index.get(path, ())):
            data = line.data
            if data and (data.size, line.mtime) == (status.st_size, status.st_mtime_ns):
                return line
        return None

    def described(self, path: str, status: os.stat_result) -> FileEntry:
        """The entry of what has that status, as far as it is known without its content."""
        metadata, fits = self.fitting(path, status)
        changed = _time(status.st_mtime_ns)
        if stat.S_ISDIR(status.st_mode):
            if metadata is None or not metadata.is_directory:
                metadata = Metadata(
                    title=paths.name(path),
                    created_at=changed,
                    modified_at=changed,
                    is_directory=True,
                )
        elif metadata is None or metadata.is_directory:
            mime_type = guessed_type(path)
            metadata = Metadata(
                file_type="markdown" if mime_type.startswith("text/") else "binary",
                mime_type=mime_type,
                size=status.st_size,
                created_at=changed,
                modified_at=changed,
            )
        elif not fits:  # somebody else has changed it
            metadata = replace(metadata, size=status.st_size, sha256=None, modified_at=changed)
        return metadata.entry(path)

    # the folder and the lock

    @contextmanager
    def opened(self, *, make: bool = True) -> Iterator[tuple[int, int]]:
        """The descriptors of the folder and of its "tmp"."""
        with (
            self._root.directory(FOLDER, make=make) as folder,
            self._root.child(folder, TEMPORARY, make=make) as temporary,
        ):
            yield folder, temporary

    @contextmanager
    def writing(self, *, make: bool = True) -> Iterator[tuple[int, int]]:
        """The same, with the folder locked."""
        with self.opened(make=make) as (folder, temporary), locked(folder):
            yield folder, temporary

    @property
    def crowded(self) -> bool:
        """Whether most of the lines count no more."""
        return self._lines > 2 * len(self._index) + SPARE_LINES

    def refresh(self) -> None:
        """Read what this process does not know yet; without a folder, nothing."""
        try:
            with self._root.directory(FOLDER) as folder:
                self._read(folder)
        except FileNotFoundError:
            self._forget()
        except (OSError, FileError) as error:
            self._forget()
            log.warning("The titles of the files in %s cannot be read: %s", self._root.root, error)

    def clean(self) -> None:
        """Remove what saves left behind that were cut off; those of live processes stay."""
        try:
            with self.writing(make=False) as (folder, temporary):
                for name in os.listdir(temporary):
                    _remove_if_stale(temporary, name)
                self._read(folder)
                if self.crowded:
                    self._rewrite(folder, temporary)
        except FileNotFoundError:
            return
        except (OSError, FileError) as error:  # a root that can only be read
            log.debug("%s is not cleaned: %s", self._root.root, error)

    # lines

    def append(self, folder: int, line: Line, before: os.stat_result | None = None) -> None:
        """Add a line; the folder is locked. It is safe when the log was synced.

        ``before`` is the status of the file that is to be replaced: its line stays the last
        but one, also if an earlier save wrote its line and failed then.
        """
        data = as_json(line, line.path) + b"\n"
        file, size = self._open(folder, os.O_RDWR | os.O_APPEND)
        try:
            self._read_on(file, size)
            fitting = self._fitting_line(line.path, before) if before else None
            if fitting is not None and fitting is not self.last(line.path):
                data = as_json(fitting, line.path) + b"\n" + data
            if not self._head:
                data = _heading() + data
            elif self._torn:
                data = b"\n" + data  # what a crash has left of a line spoils no other
            if os.write(file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)

    def sync(self) -> None:
        """Wait until the lines are on the disk itself."""
        if not self._root.fsync:
            return
        with self._root.directory(FOLDER) as folder:
            file, _ = self._open(folder, os.O_RDONLY)
            try:
                self._root.sync(file)
            finally:
                os.close(file)

    def _open(self, folder: int, flags: int) -> tuple[int, int]:
        """The log, and how many bytes it has."""
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if flags & os.O_RDWR:
            flags |= os.O_CREAT
        try:
            file = os.open(LOG, flags, 0o666, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise
            plain = False
        else:
            status = os.fstat(file)
            plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if plain:
                return file, status.st_size
            os.close(file)
        if not flags & os.O_RDWR:
            raise FileError(f"{'/'.join(FOLDER)}/{LOG} is no plain file; remove it.")
        os.rename(
            LOG, f"{LOG}.damaged-{secrets.token_hex(4)}", src_dir_fd=folder, dst_dir_fd=folder
        )
        return os.open(LOG, flags | os.O_EXCL, 0o666, dir_fd=folder), 0

    def _read(self, folder: int) -> None:
        try:
            file, size = self._open(folder, os.O_RDONLY)
        except (FileNotFoundError, FileError):
            self._forget()
            return
        try:
            self._read_on(file, size)
        finally:
            os.close(file)

    def _read_on(self, file: int, size: int) -> None:
        """Read the lines that were added since, of a log with so many bytes."""
        head = os.pread(file, HEAD, 0)
        if head != self._head or size < self._offset:
            self._forget()
            self._head = head
        data = b""
        while (start := self._offset + len(data)) < size:
            if not (part := os.pread(file, size - start, start)):
                break
            data += part
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        self._torn = whole < len(data)
        for text in data[:whole].splitlines():
            self._take(text)

    def _take(self, text: bytes) -> None:
        self._lines += 1
        try:
            line = _decoder.decode(text)
        except msgspec.DecodeError:  # the heading, or damage
            return
        if line.data is None and line.listed:
            self._index.pop(line.path, None)
        else:
            self._index[line.path] = (*self._index.get(line.path, ())[-1:], line)

    def _forget(self) -> None:
        self._head, self._offset, self._lines, self._torn = b"", 0, 0, False
        self._index = {}

    def _rewrite(self, folder: int, temporary: int) -> None:
        """Leave out the lines that count no more; the folder is locked."""
        lines = [as_json(line, line.path) for group in self._index.values() for line in group]
        name = secrets.token_hex(8)
        file = os.open(name, CREATE, 0o666, dir_fd=temporary)
        with open(file, "wb") as opened:
            opened.write(_heading() + b"".join(line + b"\n" for line in lines))
            opened.flush()
            self._root.sync(file)
        os.rename(name, LOG, src_dir_fd=temporary, dst_dir_fd=folder)
        self._root.sync(folder)


def _heading() -> bytes:
    return b'{"sagents-nb files":1,"id":"%s"}\n' % secrets.token_hex(16).encode()


@contextmanager
def locked(folder: int) -> Iterator[None]:
    """Nobody else, in this process or another, writes there meanwhile."""
    file = os.open(
        "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
    )
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            # Some network disks have no locks. Two processes may then lose each other's titles.
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                raise
        yield
    finally:
        os.close(file)


def hold(file: int) -> bool:
    """Mark a new temporary file as that of a live process, until it is closed.

    False if another process, which looked for those of dead ones, was faster and removes it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        log.debug("A temporary file cannot be locked: %s", error)
    return os.fstat(file).st_nlink > 0


def _remove_if_stale(temporary: int, name: str) -> None:
    try:
        file = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=temporary
        )
    except OSError:  # gone meanwhile, or nothing that we put there
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        os.unlink(name, dir_fd=temporary)
    finally:
        os.close(file)


def _time(nanoseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:  # disks keep years that Python does not
        return EPOCH
