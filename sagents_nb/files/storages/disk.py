"""Files kept as real files in a directory. POSIX only; see :mod:`.confined`."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from msgspec.structs import replace

from ... import kinds
from ...text import logger_of
from ..entry import FileEntry
from ..errors import FileChanged, FileError, InvalidPath, StorageGone, taken
from ..paths import check_folder
from .base import RESERVED, as_json, check_name, content_of, data_of, folded, metadata_of, segments
from .confined import CREATE, Confined, check_plain, put, remove_empty, write
from .sidefile import EPOCH, Line, SideFile, hold, locked

log = logger_of(__name__)

# `list` is a method below.
Errors = list[OSError | FileError]
Entries = list[FileEntry]

# A disk tells times in steps, FAT in steps of 2 s: what comes later in one changes nothing.
STEP = 2_000_000_000


class Looked(NamedTuple):
    """When a directory had last changed (ns, and its inode) as it was listed.

    Not ``certain``: that was so short a time before that a later change may be told as the same.
    ``inside`` are the names of the directories in it.
    """

    changed: tuple[int, int] | None
    certain: bool
    inside: frozenset[str] = frozenset()


Seen = dict[tuple[str, ...], Looked]
Found = dict[str, os.stat_result]


class DiskStorage:
    """A directory, ``path``, in which "notes/a.md" is the file notes/a.md, made when first needed.

    People and other programs may read, add, change and remove files. Titles, custom metadata
    and the like lie in ".sagents/files" inside it; without that, no file is lost. The scope
    does not count: whoever uses the same directory shares its files.

    A save replaces the whole file at once. With ``fsync`` it waits for the disk itself, so
    that what was saved outlives a power cut; without, only the end of the process.

    Nothing outside of the directory is touched: links are not followed, and neither these
    nor devices and files with several names are listed, read, replaced or removed. Two names
    that some disk takes for one (by case or Unicode form) cannot be beside each other.
    What the disk refuses raises FileError, and no path
    :class:`~sagents_nb.errors.ConfigurationError`.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> from sagents_nb.files.entry import new_file
    >>> DiskStorage(folder).save("user:1", new_file("notes/a.md", "# A", title="First"))
    >>> pathlib.Path(folder, "notes/a.md").read_text()
    '# A'
    >>> DiskStorage(folder).load("user:1", "notes/a.md").title
    'First'
    """

    @kinds.checked(path=kinds.PATH)
    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = True) -> None:
        check_folder(path)
        self.path = os.path.abspath(os.path.expanduser(path))
        self._root = Confined(self.path, fsync=fsync)
        self._side = SideFile(self._root)
        self._lock = threading.RLock()
        self._started = False
        self._left_out: dict[tuple[str, ...], set[str]] = {}  # by directory, what was told

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"DiskStorage({self.path!r})"

    # reading

    def list(self, scope: str) -> Iterable[FileEntry]:
        """All plain files and directories, without contents."""
        _, directories = self.list_since(scope, None)
        return [entry for entries in directories.values() for entry in entries]

    def list_since(self, scope: str, mark: Seen | None) -> tuple[Seen, dict[str, Entries]]:
        """What lies in each directory in which something came or went since ``mark``."""
        return self.list_within(scope, mark, "", None)

    def list_within(
        self, scope: str, mark: Seen | None, directory: str, levels: int | None
    ) -> tuple[Seen, dict[str, Entries]]:
        """The same for a directory and so many levels down; others are not looked at."""
        known = seen = mark or {}
        try:
            target = tuple(segments(directory)) if directory else ()
        except InvalidPath:  # nothing of ours can lie there
            return seen, {}
        found: dict[str, Found] = {}
        # Those above first: what one has no more is not looked for in another that is in its place.
        folders = deque[tuple[str, ...]]([()])
        odd: dict[tuple[str, ...], set[str]] = {}
        with self._root.telling("The files", "listed"):
            while folders:
                names = folders.popleft()
                before = known.get(names)
                looked = before
                if not before or not before.certain or self._changed(names) != before.changed:
                    seen = dict(known) if seen is known else seen
                    looked, found["/".join(names)], odd[names] = self._scan(names)
                    seen[names] = looked
                    for name in before.inside - looked.inside if before else ():
                        _lose((*names, name), seen, found)
                assert looked is not None
                depth = len(names)
                if depth < len(target):
                    folders += [target[: depth + 1]] * (target[depth] in looked.inside)
                elif levels is None or depth + 1 < len(target) + levels:
                    folders += [(*names, name) for name in looked.inside]
        if not found:
            return seen, {}
        self._tell_left_out(odd)
        # After the files: what is known of them is written down before they are put in place.
        with self._lock:
            self._refresh()
            return seen, {
                above: [
                    self._side.described(path, status)
                    for name, status in inside.items()
                    if not self._unlisted(path := f"{above}/{name}" if above else name)
                ]
                for above, inside in found.items()
            }

    def _changed(self, names: Sequence[str]) -> tuple[int, int] | None:
        """When something last came into a directory or went, as the disk tells it."""
        with suppress(OSError):
            # A link in its place is told by the directory above.
            return _change(os.stat("/".join((self.path, *names))))
        return None

    def _scan(self, names: tuple[str, ...]) -> tuple[Looked, Found, set[str]]:
        """A directory, what lies in it, and why something there is no file of ours."""
        above = "".join(f"{name}/" for name in names)
        looked = Looked(None, False)
        found: Found = {}
        odd: Errors = []
        try:
            with self._root.directory(names) as fd:
                looked = _looked(os.fstat(fd))
                with os.scandir(fd) as items:
                    for item in items:
                        try:
                            check_name(above, item.name)
                            status = item.stat(follow_symlinks=False)
                            if not S_ISDIR(status.st_mode):
                                check_plain(status, above + item.name)
                        except FileNotFoundError:
                            continue
                        except FileError as error:
                            if folded(item.name) != RESERVED:
                                odd.append(error)
                            continue
                        found[item.name] = status
        except FileNotFoundError:  # removed meanwhile, or a root that is not made yet
            pass
        except StorageGone:
            raise
        except (OSError, FileError) as error:
            if not names:
                raise
            odd.append(error)
        directories = (name for name, status in found.items() if S_ISDIR(status.st_mode))
        return looked._replace(inside=frozenset(directories)), found, {str(error) for error in odd}

    def _tell_left_out(self, odd: Mapping[tuple[str, ...], set[str]]) -> None:
        """Log what directories have that is no file of ours, each once while it is there.

        In one line: a home has thousands of folders with links.
        """
        new: dict[tuple[str, ...], list[str]] = {}
        with self._lock:
            for names, why in odd.items():
                if untold := sorted(why - self._left_out.pop(names, set())):
                    new[names] = untold
                if why:
                    self._left_out[names] = why
        if not new:
            return
        first = min(new)
        where = "/".join((self.path, *(first if len(new) == 1 else ())))
        within = f"{len(new):,} folders of " if len(new) > 1 else ""
        count = sum(map(len, new.values()))
        log.warning("%d files in %s%s are left out: %s", count, within, where, new[first][0])

    def load(self, scope: str, path: str) -> FileEntry:
        """A file with its content, also one that somebody else has put there."""
        names = segments(path)
        with self._root.telling(path, "read"), self._root.directory(names[:-1]) as fd:
            data, status = self._root.read(fd, names)
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._refresh()
            metadata = self._side.fitting(path, status)[0]
            entry = self._side.described(path, status)
        # The same content at another time was saved here all the same, and copied since.
        same = metadata is not None and metadata.sha256 == digest
        content = content_of(data, metadata.text if same and metadata else None)
        if metadata is None and isinstance(content, str):
            entry = replace(entry, file_type="markdown")
            if entry.mime_type == "application/octet-stream":
                entry = replace(entry, mime_type="text/plain")
        return replace(entry, content=content, size=len(data), sha256=digest, loaded=True)

    @contextmanager
    def open(self, scope: str, path: str) -> Iterator[io.FileIO]:
        """The bytes of a file, to read a part of them."""
        names = segments(path)
        with (
            self._root.telling(path, "read"),
            self._root.directory(names[:-1]) as fd,
            self._root.opened(fd, names) as (file, _),
        ):
            yield file

    def location(self, path: str) -> str:
        """The path on the disk."""
        return os.path.join(self.path, *segments(path))

    def version(self, scope: str, path: str) -> str | None:
        """What is another text once the file is; None if there is none."""
        try:  # the path as it is: a link on the way gives a version of something, and no content
            status = os.stat(f"{self.path}/{'/'.join(segments(path))}", follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            self._root.check_there()
            return None
        return _version(status) if status.st_nlink == 1 and S_ISREG(status.st_mode) else None

    def versions(self, scope: str, paths: Sequence[str]) -> dict[str, str | None]:
        """Those of many files at once, which is several times as quick."""
        found: dict[str, str | None] = dict.fromkeys(paths)
        by_directory: dict[str, list[str]] = {}
        above, inside = None, []
        for path in paths:  # mostly sorted
            directory = path[: path.rfind("/") + 1]
            if directory != above:
                above, inside = directory, by_directory.setdefault(directory, [])
            inside.append(path)
        look = os.lstat
        for above, inside in by_directory.items():
            names, start = segments(above[:-1]) if above else [], len(above)
            with suppress(FileNotFoundError), self._root.directory(names) as fd:
                for path in inside:
                    try:
                        status = look(path[start:], dir_fd=fd)
                    except FileNotFoundError:
                        continue
                    if status.st_nlink == 1 and S_ISREG(status.st_mode):
                        found[path] = _version(status)
        return found

    # writing

    def save(self, scope: str, entry: FileEntry) -> None:
        """Create or replace a file or make a directory."""
        names = segments(entry.path)
        as_json(entry.custom, entry.path)
        if entry.is_directory:
            self._refresh()
        with self._root.telling(entry.path, "saved"):
            if entry.is_directory:
                self._save_directory(names, entry)
            else:
                self._save_file(names, entry, data_of(entry))

    def save_over(self, scope: str, entry: FileEntry, version: str) -> str:
        """Save a file if that is still its version; raises FileChanged if it is another."""
        names = segments(entry.path)
        as_json(entry.custom, entry.path)
        with self._root.telling(entry.path, "saved"):
            return self._save_file(names, entry, data_of(entry), version)

    def save_metadata(self, scope: str, entry: FileEntry) -> None:
        """Save what describes an entry; FileNotFoundError if it is not there."""
        names = segments(entry.path)
        self._refresh()
        with self._root.telling(entry.path, "saved"):
            if entry.is_directory:
                self._save_directory(names, entry)
                return
            with self._root.directory(names[:-1]) as fd:
                status = self._root.status(fd, names)
                if status is None:
                    raise FileNotFoundError(entry.path)
                with self._lock, self._side.writing() as (folder, _):
                    metadata, fits = self._side.fitting(entry.path, status)
                    data = replace(
                        metadata_of(entry),
                        size=status.st_size,
                        sha256=metadata.sha256 if metadata and fits else None,
                        text=metadata.text if metadata and fits else True,
                    )
                    self._side.append(
                        folder, Line(path=entry.path, data=data, mtime=status.st_mtime_ns)
                    )
                    self._side.sync()

    def move(self, scope: str, old: str, new: str) -> None:
        """Rename one file; its metadata goes along."""
        source, target = segments(old), segments(new)
        self._refresh()
        with self._root.telling(old, "moved"), self._root.directory(source[:-1]) as above:
            if self._root.status(above, source) is None:
                raise FileNotFoundError(old)
            with (
                self._root.directory(target[:-1], make=True) as fd,
                self._lock,
                self._side.writing() as (folder, _),
            ):
                same = source[:-1] == target[:-1]
                if self._root.check_free(fd, target, besides=source[-1] if same else ""):
                    raise taken(new)
                status = os.stat(source[-1], dir_fd=above, follow_symlinks=False)
                metadata, fits = self._side.fitting(old, status)
                if metadata is not None:
                    mtime = status.st_mtime_ns if fits else 0
                    self._side.append(folder, Line(path=new, data=metadata, mtime=mtime))
                os.rename(source[-1], target[-1], src_dir_fd=above, dst_dir_fd=fd)
                self._root.note(above, removed=source[-1])
                self._root.note(fd, added=target[-1])
                self._root.sync(fd)
                self._root.sync(above)
                self._forget(folder, source)
                self._side.sync()

    def delete(self, scope: str, path: str) -> None:
        """Delete a file, or a directory unless files lie in it; missing is fine."""
        names = segments(path)
        self._refresh()
        with (
            self._root.telling(path, "deleted"),
            suppress(FileNotFoundError),
            self._root.directory(names[:-1]) as fd,
        ):
            if self._root.exists(fd, names[-1]):
                with self._lock, self._side.writing() as (folder, _):
                    self._delete(fd, folder, names)

    # inside

    def _save_file(
        self, names: Sequence[str], entry: FileEntry, data: bytes, version: str | None = None
    ) -> str:
        self._clean()
        try:
            return self._put_file(names, entry, data, version)
        except FileNotFoundError:  # somebody removes directories meanwhile: they are made anew
            return self._put_file(names, entry, data, version)

    def _put_file(
        self, names: Sequence[str], entry: FileEntry, data: bytes, version: str | None
    ) -> str:
        metadata = replace(
            metadata_of(entry), size=len(data), sha256=hashlib.sha256(data).hexdigest()
        )
        with (
            self._side.opened() as (folder, above),
            self._temporary(above) as (file, temporary),
        ):
            write(file, data)
            time = (entry.modified_at - EPOCH) // timedelta(microseconds=1) * 1000
            os.utime(file, ns=(time, time))
            self._root.sync(file)
            with self._root.directory(names[:-1], make=True) as fd:
                with self._lock, locked(folder):
                    before = self._root.status(fd, names)
                    if before is None:
                        self._root.check_missing(fd, names)
                    elif not before.st_mode & 0o222:
                        raise PermissionError(errno.EACCES, "it is write-protected on the disk")
                    else:
                        os.fchmod(file, before.st_mode & 0o777)
                    if version is not None and before and _version(before) != version:
                        raise FileChanged(f"{entry.path} was changed.", entry.path)
                    written = os.fstat(file)
                    line = Line(path=entry.path, data=metadata, mtime=written.st_mtime_ns)
                    self._side.append(folder, line, before)
                    source, target = (above, temporary), (fd, names[-1])
                    if version is None:
                        os.replace(temporary, names[-1], src_dir_fd=above, dst_dir_fd=fd)
                    else:
                        _replace_if(source, target, _version(before) if before else "")
                    self._root.note(fd, added=names[-1])
                self._side.sync()
                self._root.sync(fd)
            return _version(written)

    def _save_directory(self, names: Sequence[str], entry: FileEntry) -> None:
        line = Line(path=entry.path, data=metadata_of(entry))
        with (
            self._root.directory(names, make=True),
            self._lock,
            self._side.writing() as (folder, _),
        ):
            if self._side.last(entry.path) != line:
                self._side.append(folder, line)
                self._side.sync()

    def _delete(self, fd: int, folder: int, names: Sequence[str]) -> None:
        status = os.stat(names[-1], dir_fd=fd, follow_symlinks=False)
        if not S_ISDIR(status.st_mode):
            check_plain(status, "/".join(names))
            os.unlink(names[-1], dir_fd=fd)
        elif not remove_empty(fd, names[-1]):
            self._side.append(folder, Line(path="/".join(names), listed=False))
            self._side.sync()
            return
        self._root.note(fd, removed=names[-1])
        self._root.sync(fd)
        self._forget(folder, names)
        self._side.sync()

    def _forget(self, folder: int, names: Sequence[str]) -> None:
        """Write down that a path is gone, and remove directories that waited to be empty."""
        if self._side.last("/".join(names)):
            self._side.append(folder, Line(path="/".join(names)))
        above = names[:-1]
        if above and self._unlisted("/".join(above)):
            with self._root.directory(above[:-1]) as fd:
                if remove_empty(fd, above[-1]):
                    self._root.note(fd, removed=above[-1])
                    self._root.sync(fd)
                    self._forget(folder, above)

    def _unlisted(self, path: str) -> bool:
        line = self._side.last(path)
        return line is not None and not line.listed

    @contextmanager
    def _temporary(self, above: int) -> Iterator[tuple[int, str]]:
        while True:
            name = secrets.token_hex(8)
            file = os.open(name, CREATE, 0o666, dir_fd=above)
            if hold(file):
                break
            os.close(file)
        try:
            yield file, name
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=above)
            raise
        finally:
            os.close(file)

    def _refresh(self) -> None:
        with self._lock:
            self._clean()
            self._side.refresh()

    def _clean(self) -> None:
        with self._lock:
            if not self._started or self._side.crowded:
                self._side.clean()
                self._started = True


def _change(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_ino


def _looked(status: os.stat_result) -> Looked:
    return Looked(_change(status), abs(time.time_ns() - status.st_mtime_ns) > STEP)


def _lose(names: tuple[str, ...], seen: Seen, found: dict[str, Found]) -> None:
    """Have nothing any more in a directory and all that are in it."""
    looked = seen.pop(names, None)
    if looked is not None:
        found["/".join(names)] = {}
        for name in looked.inside:
            _lose((*names, name), seen, found)


def _version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


def _replace_if(source: tuple[int, str], target: tuple[int, str], version: str) -> None:
    """Put a file in the place of one with that version, "" for none; else raise FileChanged.

    What was changed in the moment since the version was asked for is found in what was replaced,
    and put back.
    """
    (above, temporary), (fd, name) = source, target
    try:
        if not put(source, target, swap=bool(version)):
            os.replace(temporary, name, src_dir_fd=above, dst_dir_fd=fd)
            return
    except FileExistsError:
        raise FileChanged(f"{name} is there by now.", name) from None
    except FileNotFoundError:
        if not version:  # the directory is gone
            raise
        _replace_if(source, target, "")  # it went: what is saved now is all there is
        return
    if not version:
        return
    if _version(os.stat(temporary, dir_fd=above, follow_symlinks=False)) != version:
        put(source, target, swap=True)
        raise FileChanged(f"{name} was changed.", name)
    os.unlink(temporary, dir_fd=above)
