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
    WrongKind,
)
from .filesystem import FileSystem
from .paths import normalize
from .patterns import Expression
from .registry import Filesystems, filesystems, open_filesystem
from .tree import FileStats

__all__ = [
    "Expression",
    "FileEntry",
    "FileError",
    "FileMissing",
    "FileStats",
    "FileSystem",
    "FilesystemClosed",
    "Filesystems",
    "InvalidPath",
    "LimitExceeded",
    "PathTaken",
    "WrongKind",
    "filesystems",
    "normalize",
    "open_filesystem",
    "replace_lines",
    "replace_text",
    "split_lines",
]
