"""Files kept wherever fsspec can: S3, Google Cloud Storage, SFTP, a zip file, memory."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ... import kinds
from ...errors import ConfigurationError
from ...redaction import PlaceRedaction
from ...text import logger_of
from ..entry import FileEntry, guessed_type
from ..errors import FileError, is_directory
from .base import (
    RESERVED,
    Metadata,
    as_json,
    content_of,
    data_of,
    metadata_of,
    segments,
)

log = logger_of(__name__)

# They put a whole object in place at once; elsewhere a file is written aside and renamed.
AT_ONCE = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "oci", "oss", "s3", "s3a"}
)
# One per directory, so that a save does not write anew what is known of all files.
SIDE = f"{RESERVED}/files"
INDEX = "index.json"
STALE = timedelta(hours=1)

Index = dict[str, Metadata]
Names = list[str]  # `list` is a method below
Entries = list[FileEntry]
T = TypeVar("T")
_decoder = msgspec.json.Decoder(Index)


class FsspecStorage:
    """A place that fsspec knows by its ``url``: "s3://bucket/prefix" or "memory://notes".

    ``storage_options`` are those of its filesystem (keys, endpoints); they appear in no
    message. What the place cannot keep (titles, custom metadata, empty directories) lies in
    JSON objects below ".sagents/files". The scope does not count: whoever uses the same place
    shares its files.

    A file is replaced at once where the place can do that, and a save is as safe as the place
    makes it. Two processes that save in one directory at the same time may lose each other's
    titles, never files. Links of a local disk are followed: for files here use DiskStorage.
    What the place refuses raises FileError, and what is no such place
    :class:`~sagents_nb.errors.ConfigurationError`.

    >>> from sagents_nb.files.entry import new_file
    >>> storage = FsspecStorage("memory://doctest")
    >>> storage.save("user:1", new_file("notes/a.md", "# A", title="First"))
    >>> [(entry.path, entry.title, entry.size) for entry in storage.list("user:1")]
    [('notes/a.md', 'First', 3)]
    """

    @kinds.checked
    def __init__(self, url: str, **storage_options: Any) -> None:
        try:
            import fsspec  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise ConfigurationError(
                "FsspecStorage needs fsspec: pip install 'sagents-nb[fsspec]'."
            ) from None
        self._redacted = PlaceRedaction(url, storage_options)
        self._url = self._redacted(url)
        try:
            self._fs, root = fsspec.core.url_to_fs(url, **storage_options)
            self._root = self._fs._strip_protocol(root).rstrip("/")
        except Exception as error:
            problem = self._redacted(f"{type(error).__name__} {error}")
        else:
            problem = ""
        if problem:  # outside of the except block: our error carries no other one with secrets
            raise ConfigurationError(f"{self._url} cannot be used by fsspec: {problem}.")
        protocol = self._fs.protocol
        self._at_once = bool(
            AT_ONCE.intersection((protocol,) if isinstance(protocol, str) else protocol)
        )
        self._lock = threading.Lock()
        self._started = False

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"FsspecStorage({self._url!r})"

    # the operations

    def list(self, scope: str) -> Iterable[FileEntry]:
        """All files, and the directories that were saved, without contents."""
        return self._ask("The files", "listed", self._list)

    def load(self, scope: str, path: str) -> FileEntry:
        """A file with its content, also one that somebody else has put there."""
        return self._ask(path, "read", partial(self._load, segments(path)))

    def version(self, scope: str, path: str) -> str | None:
        """What is another text once the file is, as the place tells; None if there is none."""
        place = self._place("/".join(segments(path)))

        def ask() -> str | None:
            self._fs.invalidate_cache(self._fs._parent(place))
            if self._fs.info(place).get("type") == "directory":
                return None
            return str(self._fs.ukey(place))

        try:
            return self._ask(path, "read", ask)
        except FileNotFoundError:
            return None

    def save(self, scope: str, entry: FileEntry) -> None:
        """Create or replace a file, or remember a directory."""
        names = segments(entry.path)
        metadata = metadata_of(entry)
        data = None if entry.is_directory else data_of(entry)
        if data is not None:
            metadata = replace(metadata, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        as_json(metadata, entry.path)
        self._ask(entry.path, "saved", partial(self._save, names, metadata, data))

    def save_metadata(self, scope: str, entry: FileEntry) -> None:
        """Save what describes an entry; FileNotFoundError if it is not there."""
        names = segments(entry.path)
        metadata = metadata_of(entry)
        as_json(metadata, entry.path)
        self._ask(entry.path, "saved", partial(self._save_metadata, names, metadata))

    def delete(self, scope: str, path: str) -> None:
        """Delete a file, or forget a directory; missing is fine."""
        self._ask(path, "deleted", partial(self._delete, segments(path)))

    def _ask(self, path: str, done: str, work: Callable[[], T]) -> T:
        """Raise FileError for what the place refuses, without the secrets in its words."""
        try:
            self._start()
            return work()
        except (FileNotFoundError, NotADirectoryError):
            problem = ""
        except IsADirectoryError:
            raise is_directory(path) from None
        except FileError:
            raise
        except NotImplementedError:
            problem = "it can only be read"
        except Exception as error:  # each library has its own
            problem = self._redacted(f"{type(error).__name__} {error}")
        # Outside of the except blocks: our error carries no other one, which has secrets.
        if not problem:
            raise FileNotFoundError(path)
        raise FileError(
            f"{path} could not be {done} in {self._url}: {problem}; look after that place and "
            "try again.",
            path,
        )

    def _list(self) -> Entries:
        files, sides = self._find()
        index: Index = {}
        places = [self._place(f"{SIDE}/{above}{INDEX}") for above in sides]
        # All at once, where the filesystem can do that; what fails is in its place.
        contents = self._fs.cat_ranges(places, None, None, on_error="return") if places else []
        for above, content in zip(sides, contents, strict=True):
            index |= {above + name: data for name, data in self._decoded(above, content).items()}
        described = {path: data for path, data in index.items() if data.is_directory}
        described |= {path: _described(path, info, index.get(path)) for path, info in files.items()}
        entries, odd = [], []
        for path, data in described.items():
            try:
                segments(path)
            except FileError as error:
                odd.append(error)
            else:
                entries.append(data.entry(path))
        if odd:
            log.warning("%d files in %s are left out: %s", len(odd), self._url, odd[0])
        return entries

    def _load(self, names: Names) -> FileEntry:
        path = "/".join(names)
        data = self._fs.cat_file(self._place(path))
        metadata = self._index(_above(names)).get(names[-1])
        info = self._fs.info(self._place(path)) if metadata is None else {}
        digest = hashlib.sha256(data).hexdigest()
        same = metadata is not None and metadata.sha256 == digest
        content = content_of(data, metadata.text if metadata and same else None)
        described = _described(path, {**info, "size": len(data)}, metadata)
        if metadata is None and isinstance(content, str):
            described = replace(described, file_type="markdown")
        return replace(described, sha256=digest).entry(path, content)

    def _save(self, names: Names, metadata: Metadata, data: bytes | None) -> None:
        path = "/".join(names)
        if data is not None:
            if self._fs.isdir(self._place(path)):
                self._remove_emptied(path)
            self._put(self._place(path), data)
        self._note(names, metadata)

    def _remove_emptied(self, path: str) -> None:
        """Remove a directory that is left of files that are gone; else raise WrongKind."""
        place = self._place(path)
        if self._at_once or self._fs.find(place):
            raise is_directory(path)
        try:
            self._fs.rmdir(place)
        except OSError:
            raise is_directory(path) from None

    def _save_metadata(self, names: Names, metadata: Metadata) -> None:
        if not metadata.is_directory:
            path = "/".join(names)
            if self._fs.info(self._place(path)).get("type") == "directory":
                raise is_directory(path)
            before = self._index(_above(names)).get(names[-1])
            metadata = replace(
                metadata,
                sha256=before.sha256 if before else None,
                text=before.text if before else True,
            )
        self._note(names, metadata)

    def _delete(self, names: Names) -> None:
        place = self._place("/".join(names))
        if self._fs.isfile(place):
            self._fs.rm_file(place)
        self._note(names, None)

    # inside

    def _place(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _start(self) -> None:
        """Remove what saves left behind that were cut off."""
        if self._started:
            return
        self._started = True
        if self._at_once:
            return
        try:
            left = self._fs.ls(self._place(f"{SIDE}/tmp"), detail=True)
        except FileNotFoundError:
            return
        for info in left:
            if _time(info) < datetime.now(UTC) - STALE:  # else it may be one of a live process
                self._fs.rm_file(info["name"])

    def _find(self) -> tuple[dict[str, dict[str, Any]], Names]:
        """The files by path, and the directories that have a side object."""
        self._fs.invalidate_cache()
        try:
            places = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return {}, []
        start = len(self._root) + 1 if self._root else 0
        if self._root == "":
            places = {place.removeprefix("/"): info for place, info in places.items()}
        by_path = {place[start:]: info for place, info in places.items()}
        files = {
            path: info
            for path, info in by_path.items()
            if path and not path.startswith(f"{RESERVED}/")
        }
        end = f"/{INDEX}"
        sides = [
            path[len(SIDE) + 1 : -len(INDEX)]
            for path in by_path
            if path.startswith(f"{SIDE}/") and path.endswith(end)
        ]
        return files, sides

    def _put(self, place: str, data: bytes) -> None:
        if self._at_once:
            self._fs.pipe_file(place, data)
            return
        aside = self._place(f"{SIDE}/tmp/{secrets.token_hex(8)}")
        for needed in (aside, place):
            self._fs.makedirs(self._fs._parent(needed), exist_ok=True)
        try:
            self._fs.pipe_file(aside, data)
            self._fs.mv(aside, place)
        except BaseException:
            if self._fs.exists(aside):
                self._fs.rm_file(aside)
            raise

    def _index(self, above: str) -> Index:
        """What is known of the files in a directory."""
        try:
            content = self._fs.cat_file(self._place(f"{SIDE}/{above}{INDEX}"))
        except FileNotFoundError:
            return {}
        return self._decoded(above, content)

    def _decoded(self, above: str, content: bytes | Exception) -> Index:
        """What a side object tells; one that is damaged, nothing."""
        if isinstance(content, Exception):
            if not isinstance(content, FileNotFoundError):
                raise content
            return {}
        try:
            return _decoder.decode(content)
        except msgspec.DecodeError as error:
            log.warning("The titles in %s/%s cannot be read: %s", self._url, above, error)
            return {}

    def _note(self, names: Names, metadata: Metadata | None) -> None:
        above = _above(names)
        with self._lock:
            index = self._index(above)
            if index.get(names[-1]) == metadata:
                return
            if metadata is None:
                del index[names[-1]]
            else:
                index[names[-1]] = metadata
            place = self._place(f"{SIDE}/{above}{INDEX}")
            if index:
                self._put(place, as_json(index, names[-1]))
            else:
                self._fs.rm_file(place)


def _described(path: str, info: dict[str, Any], metadata: Metadata | None) -> Metadata:
    """What is known of a file that has that ``info`` of fsspec."""
    size = int(info.get("size") or 0)
    if metadata is not None and not metadata.is_directory:
        # Another size is another content; of the same size it shows when it is read.
        return metadata if metadata.size == size else replace(metadata, size=size, sha256=None)
    changed = _time(info)
    mime_type = guessed_type(path)
    return Metadata(
        file_type="markdown" if mime_type.startswith("text/") else "binary",
        mime_type=mime_type,
        size=size,
        created_at=changed,
        modified_at=changed,
    )


def _time(info: dict[str, Any]) -> datetime:
    """When a file was changed; each filesystem has another word for it."""
    for name in (*("mtime", "LastModified", "last_modified", "updated"), "modified", "created"):
        value = info.get(name)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime.now(UTC)


def _above(names: Names) -> str:
    return "".join(f"{name}/" for name in names[:-1])
