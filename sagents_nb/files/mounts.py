"""Which part of a filesystem is kept where, and what is there."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, pass_on
from ..text import logger_of
from . import paths
from .entry import FileEntry
from .errors import InvalidPath, ReadOnly, StorageFailed, StorageGone, reason
from .storages.base import FileStorage, teller, teller_of_part

log = logger_of(__name__)

T = TypeVar("T")


class Mount:
    """The files in the directory ``base`` are kept in ``storage``.

    ``base`` is such as "Memories" or "/work/drafts". ``default=True`` instead of a base, or "/",
    is for all files that no other mount takes. The path of a folder as ``storage`` is a
    :class:`~sagents_nb.files.DiskStorage` of it. A changed file is saved ``debounce``
    seconds after the last change; a new one, and with 0 every one, at once. ``readonly``
    refuses changes.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a base that is no such path, without
    a storage, and for both a base and ``default``.

    >>> import tempfile
    >>> from sagents_nb import DiskStorage, Mount, open_filesystem
    >>> mount = Mount("notes", DiskStorage(tempfile.mkdtemp()), debounce=0)
    >>> files = open_filesystem(("example", "mount"), [mount])
    >>> files.write("/notes/a.md", "# A").path, files.list()
    ('/notes/a.md', ['/notes/a.md'])
    """

    @kinds.checked(debounce=kinds.number(0, "seconds"), storage=kinds.ANYTHING)
    def __init__(
        self,
        base: str | None = None,
        storage: FileStorage | str | os.PathLike[str] | None = None,
        *,
        default: bool = False,
        debounce: float = 5.0,
        readonly: bool = False,
    ) -> None:
        if base == "/":
            base, default = None, True
        if isinstance(storage, str | os.PathLike):
            from .storages.disk import DiskStorage  # which needs POSIX

            folder = DiskStorage(storage)
            if readonly and not os.path.isdir(folder.path):
                log.warning(
                    "The folder %r of the read-only mount %r is not there, so it has no files.",
                    *(folder.path, base or "default"),
                )
            storage = folder
        if storage is None or not isinstance(storage, FileStorage):
            raise ConfigurationError(
                f"The mount {base or 'default'!r} needs a storage such as DiskStorage(path), "
                f"not {kinds.shown(storage)}."
            )
        if default is (base is not None):
            raise ConfigurationError(
                "A mount has either a base, such as Mount('Memories', storage), or default=True."
            )
        if not isinstance(debounce, int | float) or not 0 <= debounce < math.inf:
            raise ConfigurationError(f"debounce is a number of seconds from 0, not {debounce!r}.")
        base = base.removeprefix("/") if isinstance(base, str) else base
        self.root = "/" if base is None else _root(base)
        self.base = base
        self.storage: FileStorage = storage
        self.debounce = float(debounce)
        self.readonly = bool(readonly)

    @kinds.safe_repr
    def __repr__(self) -> str:
        where = "default" if self.base is None else repr(self.base)
        return f"<Mount {where}: {type(self.storage).__name__}>"

    @kinds.checked
    def is_like(self, other: Mount) -> bool:
        """Whether it keeps the same files as ``other`` in the same way, as far as storages show.

        >>> import tempfile
        >>> from sagents_nb import Mount
        >>> folder = tempfile.mkdtemp()
        >>> Mount("notes", folder).is_like(Mount("notes", folder))
        True
        """
        mine, theirs = self.storage, other.storage
        same = type(mine) is type(theirs) and (
            type(mine).__repr__ is object.__repr__ or repr(mine) == repr(theirs)
        )
        ways = (self.root, self.debounce, self.readonly)
        return same and ways == (other.root, other.debounce, other.readonly)

    @kinds.checked
    def inside(self, path: str) -> str:
        """A ``path`` of the filesystem as the storage knows it.

        >>> import tempfile
        >>> from sagents_nb import Mount
        >>> Mount("notes", tempfile.mkdtemp()).inside("/notes/a.md")
        'a.md'
        """
        return path[1:] if self.root == "/" else path[len(self.root) + 1 :]

    @kinds.checked
    def outside(self, path: str) -> str:
        """A ``path`` of the storage as the filesystem knows it; raises InvalidPath.

        >>> import tempfile
        >>> from sagents_nb import Mount
        >>> Mount("notes", tempfile.mkdtemp()).outside("a.md")
        '/notes/a.md'
        """
        return paths.normalize(f"{self.root.rstrip('/')}/{path}")


def _root(base: Any) -> str:
    try:
        if not isinstance(base, str) or base[:1] in ("/", ".") or base[-1:] in ("/", "."):
            raise InvalidPath("it begins or ends with '/' or '.'")
        if (root := paths.normalize(base)) != f"/{base}":
            raise InvalidPath("it has '.' segments")
    except InvalidPath as error:
        raise ConfigurationError(
            f"{base!r} is no base for a mount, which is a directory such as 'Memories' or "
            f"'work/drafts': {error}"
        ) from None
    return root


class Stored(NamedTuple):
    """What the storage of a mount has, and the mark from which it tells what is new.

    Paths are those of the filesystem, files without content. ``directories`` are those that were
    listed, all unless something came before.
    """

    entries: list[FileEntry]
    directories: Collection[str]
    mark: Any


# A directory of a storage, "" for all of it, and how many levels down from there; None: any.
Part = tuple[str, int | None]
_ALL: Part = ("", None)


def reached(mount: Mount, directory: str, levels: int | None) -> Part | None:
    """What of a mount lies in a directory, so many levels down; None if nothing does."""
    if directory == mount.root or paths.is_below(directory, mount.root):
        return mount.inside(directory), levels
    if not paths.is_below(mount.root, directory):
        return None
    if levels is not None:
        levels -= paths.depth(mount.root) - paths.depth(directory)
    return None if levels is not None and levels < 1 else ("", levels)


def stored_in(mount: Mount, scope: str, mark: Any = None, part: Part = _ALL) -> Stored:
    """What its storage has, or what has come or gone since ``mark``; raises StorageFailed.

    In a ``part`` of it, where it tells that apart.
    """
    since = teller(mount.storage)
    within = None if part == _ALL else teller_of_part(mount.storage)
    odd: set[str] = set()
    try:
        if since is None:
            directories: Mapping[str, Iterable[FileEntry]] = {"": mount.storage.list(scope)}
        elif within is not None:
            mark, directories = within(scope, mark, *part)
        else:
            mark, directories = since(scope, mark)
        known = {_outside(mount, path, odd) if path else mount.root for path in directories}
        entries = [
            replace(
                entry, path=path, content=None, loaded=entry.is_directory, persistence="persisted"
            )
            for inside in directories.values()
            for entry in inside
            if (path := _outside(mount, entry.path, odd)) is not None
        ]
    except StorageGone:
        raise
    except BaseException as error:
        pass_on(error)
        raise StorageFailed(
            f"The storage of {mount.root} could not be listed ({reason(error)}); see that it "
            "can be reached.",
            mount.root,
        ) from error
    if new := odd - _told.setdefault(mount, set()):
        _told[mount] |= new
        log.warning("%d stored files of %s are left out: %s", len(new), mount.root, min(new))
    return Stored(entries, {path for path in known if path is not None}, mark)


_told = WeakKeyDictionary[Mount, set[str]]()
"""Why files of a mount have no path: each is told once, and those of a listing in one line."""


def _outside(mount: Mount, path: str, odd: set[str]) -> str | None:
    try:
        return mount.outside(path)
    except InvalidPath as error:
        odd.add(str(error))
        return None


class Mounts:
    """The mounts of a filesystem; the longest base that a path lies in has it.

    >>> mounts = Mounts()
    >>> mounts.of("/a/x") is None
    True
    """

    def __init__(self) -> None:
        self._by_root: dict[str, Mount] = {}

    def __iter__(self) -> Iterator[Mount]:
        return iter(tuple(self._by_root.values()))

    def __len__(self) -> int:
        return len(self._by_root)

    def check_new(self, mount: Mount) -> None:
        """Raise ConfigurationError for what is no mount, or has a base that is in use."""
        if not isinstance(mount, Mount):
            raise ConfigurationError(
                f"What is mounted is a Mount('Memories', storage), not {kinds.shown(mount)}."
            )
        if mount.root in self._by_root:
            what = "a default mount" if mount.base is None else f"a mount at {mount.base!r}"
            raise ConfigurationError(f"There is {what} already; give another base.")

    def add(self, mount: Mount) -> None:
        """Add a mount; the base of each is its own."""
        self.check_new(mount)
        self._by_root[mount.root] = mount

    def remove(self, mount: Mount) -> None:
        """Take it away again."""
        del self._by_root[mount.root]

    def at(self, root: str) -> Mount | None:
        """What is mounted right there."""
        return self._by_root.get(root)

    def has(self, root: str) -> bool:
        """Whether something is mounted right there."""
        return root in self._by_root

    def of(self, path: str) -> Mount | None:
        """The mount that a path lies in, or that is mounted right there."""
        if not self._by_root:
            return None
        while path:
            mount = self._by_root.get(path)
            if mount is not None:
                return mount
            path = path[: path.rindex("/")]
        return self._by_root.get("/")

    def keeping(self, path: str) -> Mount | None:
        """The mount whose storage has an entry for that path; none for a base itself."""
        mount = self.of(path)
        return None if mount is None or mount.root == path else mount

    def kept(self, some: Mapping[str, T]) -> dict[Mount, dict[str, T]]:
        """By mount, what is given for the paths that it keeps, by path as its storage knows it."""
        found: dict[Mount, dict[str, T]] = {}
        above, start, kept = None, 0, None
        for path, value in some.items():  # mostly sorted: directories are looked up once
            directory = path[: path.rindex("/")]
            if directory != above:
                above, mount = directory, self.of(directory or "/")
                start = len(mount.root.rstrip("/")) + 1 if mount else 0
                kept = found.setdefault(mount, {}) if mount else None
            if kept is not None and path not in self._by_root:  # a base itself is no storage's
                kept[path[start:]] = value
        return found

    def writable(self, path: str) -> bool:
        """Whether a path may be changed."""
        mount = self.of(path)
        return mount is None or not mount.readonly

    def check_writable(self, path: str) -> None:
        """Raise ReadOnly for a path that may not be changed."""
        mount = self.of(path)
        if mount is not None and mount.readonly:
            raise ReadOnly(
                f"{path} is in {mount.root}, which is read-only; write to another directory.", path
            )


def listed(mounts: Iterable[Mount]) -> list[Mount]:
    """The mounts; raises ConfigurationError for what are none, or not each with its own base."""
    if isinstance(mounts, Mount):
        raise ConfigurationError(f"mounts is a list of mounts: give [{mounts!r}].")
    together = Mounts()
    for mount in mounts:
        together.add(mount)
    return list(together)
