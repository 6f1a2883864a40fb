"""The virtual filesystem: entries, their rules, and one filesystem per scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face
from .edits import replace_lines, replace_text, split_lines
from .entry import FileEntry
from .errors import (
    FileChanged,
    FileError,
    FileMissing,
    FilesystemClosed,
    InvalidPath,
    LimitExceeded,
    NotStorable,
    PathTaken,
    ReadOnly,
    StorageFailed,
    WrongKind,
)
from .filesystem import VirtualFilesystem
from .mounts import Mount
from .paths import normalize
from .patterns import Expression
from .registry import Filesystems, filesystems, open_filesystem
from .snapshots import Snapshot
from .storages.base import FileStorage
from .tree import FileStats

if TYPE_CHECKING:
    from .blobs import Blob, BlobStore
    from .storages.callbacks import CallbackStorage
    from .storages.disk import DiskStorage
    from .storages.fsspec import FsspecStorage
    from .storages.nats import NatsStorage
    from .storages.sql import SQLStorage

FileSystem = VirtualFilesystem  # its name of before; that of the middleware, too

# Loaded when they are asked for: one of them needs POSIX, and most people none.
_STORAGES = {
    "Blob": "blobs",
    "BlobStore": "blobs",
    "CallbackStorage": "storages.callbacks",
    "DiskStorage": "storages.disk",
    "FsspecStorage": "storages.fsspec",
    "NatsStorage": "storages.nats",
    "SQLStorage": "storages.sql",
}

__all__ = [
    "Blob",
    "BlobStore",
    "CallbackStorage",
    "DiskStorage",
    "Expression",
    "FileChanged",
    "FileEntry",
    "FileError",
    "FileMissing",
    "FileStats",
    "FileStorage",
    "FileSystem",
    "FilesystemClosed",
    "Filesystems",
    "FsspecStorage",
    "InvalidPath",
    "LimitExceeded",
    "Mount",
    "NatsStorage",
    "NotStorable",
    "PathTaken",
    "ReadOnly",
    "SQLStorage",
    "Snapshot",
    "StorageFailed",
    "VirtualFilesystem",
    "WrongKind",
    "filesystems",
    "normalize",
    "open_filesystem",
    "replace_lines",
    "replace_text",
    "split_lines",
]

__getattr__ = face(__name__, _STORAGES)
