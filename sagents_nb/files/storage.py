"""What keeps the files of a mount: one small protocol that every backend implements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from .entry import FileEntry


@runtime_checkable
class FileStorage(Protocol):
    """Where a mount keeps its files. Plain functions, called from worker threads.

    ``scope`` is the filesystem's scope as text ("user:123"). Paths, and ``path`` of the
    entries in both directions, are relative to the mount and without a leading "/"
    ("notes/a.md"). Calls for one path never overlap; those for different paths may.
    A change is safe (on disk, committed) when its call returns, and done wholly or not at
    all. Any exception means that it failed: the filesystem tells it as StorageFailed and tries
    again. One of ``REFUSALS`` (NotStorable, PathTaken, …) means that it always would: what is
    new is then refused and not kept.

    A storage may have more, used where it is there:

    - ``save_metadata(scope, entry)``: save all of an entry but its content, which may be
      absent (``entry.loaded`` is False).
    - ``move(scope, old, new)``: rename one file, with its metadata, and make what it needs
      above it; nothing is at ``new``.
    """

    def list(self, scope: str) -> Iterable[FileEntry]:
        """All files and saved directories, in any order, without reading contents.

        ``size`` is needed; ``sha256`` may be None.
        """

    def load(self, scope: str, path: str) -> FileEntry:
        """One file with its content: text (str) as it was saved, else bytes.

        Raises FileNotFoundError.
        """

    def save(self, scope: str, entry: FileEntry) -> None:
        """Create or replace a file or directory, and what it needs above it."""

    def delete(self, scope: str, path: str) -> None:
        """Delete a file, or a directory's own entry and nothing in it; missing is fine."""


def content_of(storage: FileStorage, scope: str, path: str) -> str | bytes:
    """The content of a file; raises what the storage raises, also if it gives none."""
    content = storage.load(scope, path).content
    if content is None:
        raise TypeError(f"{type(storage).__name__}.load gave no content")
    return content
