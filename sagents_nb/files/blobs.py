"""Blobs: data under a name, with a type, metadata and a time to live, in any storage of files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from .. import kinds
from .entry import FileEntry, new_file
from .errors import FileChanged, FileMissing, NotStorable, taken
from .storages.base import FileStorage, segments

_LONGEST = 100 * 365 * 24 * 3600
_SECONDS = kinds.or_none(
    kinds.Kind(
        "a number of seconds over 0, of at most a hundred years",
        lambda value: kinds.number(0, over=True).fits(value) and value <= _LONGEST,
    ),
    "for one that stays",
)
_BLOB = "blob"  # in the custom metadata of its file


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """What is under a ``name``: ``size`` in bytes, its type, ``metadata`` and when it goes.

    ``data`` are bytes, and None in a list. ``expires_at`` is None for one that stays.
    """

    name: str
    size: int
    mime_type: str
    sha256: str | None
    metadata: dict[str, Any] = {}
    created_at: datetime
    expires_at: datetime | None = None
    data: bytes | None = None

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"Blob({self.name!r}, {self.size:,} bytes, {self.mime_type!r})"


Blobs = list[Blob]  # "list" is a method below


class BlobStore:
    """Blobs in a ``storage`` of files: on disk, in a database, over fsspec, in NATS, or yours.

    Each ``scope`` has names of its own, where the storage tells scopes apart. A name is put once:
    delete it to put another. Of two that are put at once in several processes the storage decides:
    where it tells versions, one is refused. What has lived its time is not there any more, and is
    removed when somebody looks.

    ``clock`` (seconds since 1970) is for tests. Blocking, so in an async tool ask from a thread.

    >>> import tempfile
    >>> from sagents_nb import BlobStore, DiskStorage
    >>> blobs = BlobStore(DiskStorage(tempfile.mkdtemp()))
    >>> blobs.put("plots/a.png", bytes(3), metadata={"of": "tides"}, ttl=3600)
    Blob('plots/a.png', 3 bytes, 'image/png')
    >>> blobs.get("plots/a.png").data == bytes(3)
    True
    >>> [blob.metadata for blob in blobs.list("plots/")]
    [{'of': 'tides'}]
    """

    @kinds.checked(
        storage=kinds.having("a storage, such as DiskStorage(…)", "list", "load", "save", "delete"),
        clock=kinds.Kind("a function of nothing", callable),
    )
    def __init__(
        self,
        storage: FileStorage,
        scope: str = "blobs",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.storage = storage
        self.scope = scope
        self._clock = clock
        self._lock = threading.Lock()

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"BlobStore({self.storage!r})"

    @kinds.checked(data=kinds.of(bytes | str), ttl=_SECONDS)
    def put(
        self,
        name: str,
        data: bytes | str,
        *,
        mime_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: float | None = None,
    ) -> Blob:
        """Keep ``data`` under ``name``, a path such as "plots/a.png", for ``ttl`` seconds.

        ``mime_type`` is by default what the name suggests; ``metadata`` is what JSON can hold.
        Raises :class:`~sagents_nb.files.errors.PathTaken` for a name that is there,
        :class:`~sagents_nb.files.errors.NotStorable` for metadata that is no JSON, and
        :class:`~sagents_nb.files.errors.InvalidPath` for what is no name.

        >>> import tempfile
        >>> from sagents_nb import BlobStore, DiskStorage
        >>> blobs = BlobStore(DiskStorage(tempfile.mkdtemp()))
        >>> blobs.put("note.txt", "high at 6").size
        9
        """
        "/".join(segments(name))
        content = data.encode("utf-8", "replace") if isinstance(data, str) else data
        now = self._clock()
        about: dict[str, Any] = {"metadata": dict(metadata or {})}
        if ttl is not None:
            about["expires"] = now + ttl
        entry = new_file(name, content, custom={_BLOB: about}, mime_type=mime_type)
        try:
            msgspec.json.encode(about)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotStorable(
                f"The metadata of {name} is no JSON data ({error}); use text, numbers, lists and "
                "dicts.",
                name,
            ) from None
        with self._lock:
            if (there := self._found(name)) is not None:
                if not self._is_over(there):
                    raise taken(name)
                self.storage.delete(self.scope, name)
            self._save(entry)
        return _blob(entry, None)

    def _save(self, entry: FileEntry) -> None:
        save_over = getattr(self.storage, "save_over", None)
        if save_over is None:
            self.storage.save(self.scope, entry)
            return
        try:
            save_over(self.scope, entry, "")  # only if it is not there
        except FileChanged:
            raise taken(entry.path) from None

    @kinds.checked
    def get(self, name: str) -> Blob:
        """The blob under ``name``, with its data; raises FileMissing where there is none.

        >>> import tempfile
        >>> from sagents_nb import BlobStore, DiskStorage
        >>> blobs = BlobStore(DiskStorage(tempfile.mkdtemp()))
        >>> _ = blobs.put("note.txt", "high at 6")
        >>> blobs.get("note.txt").data
        b'high at 6'
        """
        segments(name)
        there = self._found(name)
        if there is None or self._is_over(there):
            raise FileMissing(f"There is no blob {name!r}; list them to see what there is.", name)
        content = there.content
        return _blob(there, content.encode() if isinstance(content, str) else content)

    @kinds.checked
    def list(self, prefix: str = "") -> Blobs:
        """The blobs whose names begin with ``prefix``, by name, without their data.

        >>> import tempfile
        >>> from sagents_nb import BlobStore, DiskStorage
        >>> BlobStore(DiskStorage(tempfile.mkdtemp())).list()
        []
        """
        found: Blobs = []
        for entry in self.storage.list(self.scope):
            if entry.is_directory or not entry.path.startswith(prefix):
                continue
            if self._is_over(entry):
                self._remove(entry)
            else:
                found.append(_blob(entry, None))
        return sorted(found, key=lambda blob: blob.name)

    @kinds.checked
    def delete(self, name: str) -> None:
        """Delete the blob under ``name``; missing is fine.

        >>> import tempfile
        >>> from sagents_nb import BlobStore, DiskStorage
        >>> BlobStore(DiskStorage(tempfile.mkdtemp())).delete("a.png")
        """
        segments(name)
        with self._lock:
            self.storage.delete(self.scope, name)

    def _remove(self, entry: FileEntry) -> None:
        with self._lock:  # or one that was put in its place just now would go
            there = self._found(entry.path)
            if there is not None and self._is_over(there):
                self.storage.delete(self.scope, entry.path)

    def _found(self, name: str) -> FileEntry | None:
        try:
            return self.storage.load(self.scope, name)
        except FileNotFoundError:
            return None

    def _is_over(self, entry: FileEntry) -> bool:
        expires = _about(entry).get("expires")
        return expires is not None and expires <= self._clock()


def _about(entry: FileEntry) -> dict[str, Any]:
    about = entry.custom.get(_BLOB)
    return about if isinstance(about, dict) else {}


def _blob(entry: FileEntry, data: bytes | None) -> Blob:
    about = _about(entry)
    expires = about.get("expires")
    return Blob(
        name=entry.path,
        size=entry.size,
        mime_type=entry.mime_type or "application/octet-stream",
        sha256=entry.sha256,
        metadata=about.get("metadata") or {},
        created_at=entry.created_at,
        expires_at=None if expires is None else datetime.fromtimestamp(expires, UTC),
        data=data,
    )
