"""What keeps the files of a mount: the protocol of all storages, and what they need."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from .. import paths
from ..entry import FileEntry
from ..errors import FileError, InvalidPath, NotStorable


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
    - ``open(scope, path)``: a context manager that gives the bytes of one file as a binary file,
      so that of a large one only a part is read. Raises FileNotFoundError.
    - ``move(scope, old, new)``: rename one file, with its metadata, and make what it needs
      above it; nothing is at ``new``.
    - ``version(scope, path)``: a text that is another one once the content is, None if there is
      no such file. It is asked before a file that was read is read again or replaced, so that
      what others do with the files is seen; it should be quick.
    - ``versions(scope, paths)``: those of many files at once, by path, for when all are searched.
    - ``list_since(scope, mark)``: a new mark, and what lies right in each directory ("" for the
      mount itself) in which something came or went since that mark, by directory; all for None.
      New directories are among them, with all below; one that is gone has []. It is asked before
      files are listed, so that what others add and remove is seen; it should be quick.
    - ``list_within(scope, mark, directory, levels)``: the same for a directory ("" for the mount
      itself) and so many levels down from there, 1 for what lies right in it and None for all.
      The mark holds for the rest as it did.
    - ``save_over(scope, entry, version)``: save a file if that is still its version ("": if it
      is not there), and give the new one; raises FileChanged. One that is gone is saved too.
      Without it, the version is asked for before a save and after it.
    - ``location(path)``: where on this machine's disk a file lies, for people to find it there.

    >>> from sagents_nb import Mount, VirtualFilesystem
    >>> class InADict:
    ...     def __init__(self):
    ...         self.kept = {}
    ...     def list(self, scope):
    ...         return list(self.kept.values())
    ...     def load(self, scope, path):
    ...         if path not in self.kept:
    ...             raise FileNotFoundError(path)
    ...         return self.kept[path]
    ...     def save(self, scope, entry):
    ...         self.kept[entry.path] = entry
    ...     def delete(self, scope, path):
    ...         self.kept.pop(path, None)
    >>> storage = InADict()
    >>> fs = VirtualFilesystem(mounts=[Mount("notes", storage)])
    >>> _ = fs.write("/notes/a.md", "# A")
    >>> list(storage.kept)
    ['a.md']
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


# What a storage may have besides, as FileStorage says.
Version = Callable[[str, str], str | None]
Versions = Callable[[str, Sequence[str]], Mapping[str, str | None]]
News = tuple[Any, Mapping[str, Iterable[FileEntry]]]
ListSince = Callable[[str, Any], News]
ListWithin = Callable[[str, Any, str, int | None], News]
Locate = Callable[[str], str]


def asker(storage: FileStorage) -> Version | None:
    """How a storage is asked for versions, if it tells them."""
    ask: Version | None = getattr(storage, "version", None)
    return ask


def asker_of_many(storage: FileStorage) -> Versions | None:
    """How it is asked for those of many files at once, if it can be."""
    ask: Versions | None = getattr(storage, "versions", None)
    return ask


def teller(storage: FileStorage) -> ListSince | None:
    """How it tells what others have added and removed, if it does."""
    tell: ListSince | None = getattr(storage, "list_since", None)
    return tell


def teller_of_part(storage: FileStorage) -> ListWithin | None:
    """How it tells that of a directory only, if it does."""
    tell: ListWithin | None = getattr(storage, "list_within", None)
    return tell


def locator(storage: FileStorage) -> Locate | None:
    """How it says where on the disk a file lies, if it is one."""
    locate: Locate | None = getattr(storage, "location", None)
    return locate


def loaded_content(storage: FileStorage, scope: str, path: str) -> str | bytes:
    """The content of a file; raises what the storage raises, also if it gives none."""
    content = storage.load(scope, path).content
    if content is None:
        raise TypeError(f"{type(storage).__name__}.load gave no content")
    return content


# Unicode's Default_Ignorable_Code_Point, as far as it is not in the category Cf.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)

# Where a storage that has only files and directories keeps what does not fit in them.
RESERVED = ".sagents"


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of an entry but its path and content; ``text`` tells whether that was text."""

    title: str | None = None
    file_type: str | None = None
    mime_type: str | None = None
    size: int = 0
    sha256: str | None = None
    text: bool = True
    created_at: datetime
    modified_at: datetime
    custom: dict[str, Any] = {}
    is_directory: bool = False

    def entry(self, path: str, content: str | bytes | None = None) -> FileEntry:
        """The entry with that path; one of a file without content is not loaded."""
        return FileEntry(
            path=path,
            content=content,
            title=self.title,
            file_type=self.file_type,
            size=self.size,
            sha256=self.sha256,
            mime_type=self.mime_type,
            created_at=self.created_at,
            modified_at=self.modified_at,
            custom=self.custom,
            is_directory=self.is_directory,
            persistence="persisted",
            loaded=self.is_directory or content is not None,
        )


def metadata_of(entry: FileEntry) -> Metadata:
    """What a storage keeps of an entry beside its content."""
    return Metadata(
        title=entry.title,
        file_type=entry.file_type,
        mime_type=entry.mime_type,
        size=entry.size,
        sha256=entry.sha256,
        text=not isinstance(entry.content, bytes),
        created_at=entry.created_at,
        modified_at=entry.modified_at,
        custom=entry.custom,
        is_directory=entry.is_directory,
    )


def as_json(value: Any, path: str) -> bytes:
    """``value`` as JSON; FileError for custom metadata that JSON cannot hold."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(
            f"The custom metadata of {path} is no JSON data ({error}); use text, numbers, lists "
            "and dicts.",
            path,
        ) from None


def segments(path: str) -> list[str]:
    """The names in a path relative to a mount; a storage trusts nobody to have checked it.

    Raises InvalidPath for everything that :func:`~sagents_nb.files.paths.normalize` refuses
    or would have to change, and for the name in which storages keep their own data.

    >>> segments("notes/a.md")
    ['notes', 'a.md']
    """
    # Below some directory, as in a mount: "~" and "C:" mean something in first place only.
    if not isinstance(path, str) or paths.normalize("/-/" + path) != "/-/" + path:
        raise InvalidPath(f"The path {path!r} is not relative to a mount, like 'notes/a.md'.")
    names = path.split("/")
    may_be = not path.isascii() or RESERVED in path.lower()
    if may_be and any(folded(name) == RESERVED for name in names):
        raise InvalidPath(
            f"The path {path!r} uses {RESERVED}, where the storage keeps its own data; "
            "choose another name.",
            path,
        )
    return names


def check_name(above: str, name: str) -> None:
    """Raise InvalidPath like :func:`segments` for a name in the directory ``above``, checked."""
    segments(name)
    if len(above.encode()) + len(name.encode()) >= paths.MAX_PATH_BYTES:
        raise InvalidPath(f"A path is over {paths.MAX_PATH_BYTES} bytes long.", above + name)


def folded(name: str) -> str:
    """What all names have in common that are one file on some disk.

    Case and Unicode form differ, characters that are not seen, and the dots and spaces at the
    end that Windows drops.

    >>> folded("STRASSE.MD") == folded("straße.md"), folded("a"), folded("A. ")
    (True, 'a', 'a')
    """
    if not name.isascii():
        # Unicode 3.13, canonical caseless matching, as ext4 and APFS do it.
        name = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
        name = "".join(c for c in _UNSEEN.sub("", name) if unicodedata.category(c) != "Cf")
    low = name.lower().rstrip(". ")
    return name if low == name else low  # most are, and a directory keeps both


def data_of(entry: FileEntry) -> bytes:
    """The bytes of a file's content."""
    if entry.content is None:
        raise FileError(f"{entry.path} has no content to save; load it first.", entry.path)
    return entry.content.encode() if isinstance(entry.content, str) else entry.content


def content_of(data: bytes, text: bool | None) -> str | bytes:
    """The content that was saved as ``data``; with ``text`` unknown, what it looks like."""
    if text is False or (text is None and b"\0" in data):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
