"""The virtual filesystem: entries, their rules, and one filesystem per scope."""

from .edits import replace_lines, replace_text, split_lines
from .entry import FileEntry
from .errors import (
    FileError,
    FileMissing,
    FilesystemClosed,
    InvalidPath,
    LimitExceeded,
    PathTaken,
    ReadOnly,
    StorageFailed,
    WrongKind,
)
from .filesystem import FileSystem
from .mounts import Mount
from .paths import normalize
from .patterns import Expression
from .registry import Filesystems, filesystems, open_filesystem
from .snapshots import Snapshot
from .storage import FileStorage
from .tree import FileStats

__all__ = [
    "Expression",
    "FileEntry",
    "FileError",
    "FileMissing",
    "FileStats",
    "FileStorage",
    "FileSystem",
    "FilesystemClosed",
    "Filesystems",
    "InvalidPath",
    "LimitExceeded",
    "Mount",
    "PathTaken",
    "ReadOnly",
    "Snapshot",
    "StorageFailed",
    "WrongKind",
    "filesystems",
    "normalize",
    "open_filesystem",
    "replace_lines",
    "replace_text",
    "split_lines",
]
