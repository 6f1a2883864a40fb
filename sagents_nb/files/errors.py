"""What can go wrong with a virtual file; each message names the path and the next step."""

from __future__ import annotations

from ..errors import NotFound, SagentsError
from ..text import said_by


class FileError(SagentsError):
    """A file operation was refused and changed nothing; ``message`` says why.

    ``path`` is the file it was about.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class InvalidPath(FileError, ValueError):
    """The text is no virtual path, or no place where that file could go."""


class FileMissing(FileError, NotFound):
    """There is no file or directory with that path."""


class PathTaken(FileError):
    """Something with that path exists already."""


class WrongKind(FileError):
    """A directory where a file is needed, or the other way round."""


class LimitExceeded(FileError):
    """The file is too large, or there are too many; nothing was written."""


class ReadOnly(FileError):
    """The file lies in a mount that is only read."""


class NotStorable(FileError):
    """A storage can never keep that; with another name, or other metadata, it may."""


class FileChanged(FileError):
    """Somebody else has changed the file since it was read, and would have lost that.

    ``kept``: earlier changes of it that were made here wait in memory, and are not saved.
    """

    def __init__(self, message: str, path: str = "", *, kept: bool = False) -> None:
        super().__init__(message, path)
        self.kept = kept


class StorageFailed(FileError):
    """The storage of a mount failed; the message says what has become of the file.

    ``__cause__`` is what the storage raised.
    """


class StorageGone(StorageFailed):
    """What a storage keeps its files in was there and is not any more; nothing is made anew."""


class FilesystemClosed(FileError):
    """The filesystem was closed."""


# What a storage raises where trying again is of no use.
REFUSALS = (NotStorable, InvalidPath, PathTaken, WrongKind, LimitExceeded)


def reason(error: BaseException) -> str:
    """What a storage raised, within a sentence."""
    if issubclass(type(error), FileError):
        return str(error).removesuffix(".")
    return said_by(error)


def missing(path: str) -> FileMissing:
    """The error for a path that is not there."""
    return FileMissing(f"File not found: {path}; list the files to see what there is.", path)


def taken(path: str) -> PathTaken:
    """The error for a path that is in use."""
    return PathTaken(f"{path} exists already; choose another path or delete it first.", path)


def is_directory(path: str) -> WrongKind:
    """The error for a directory in the place of a file."""
    return WrongKind(f"{path} is a directory; give the path of a file.", path)
