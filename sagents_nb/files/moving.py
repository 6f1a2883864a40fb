"""Moving files within a storage: each on its own, so that none is ever absent."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from .entry import FileEntry, with_content
from .errors import StorageFailed, said
from .mounts import Mount
from .storage import content_of
from .tree import Move

log = logging.getLogger(__name__)


class Carried:
    """What became of a move in the storage, by old path.

    ``saved``: the storage has at the new path what the entry was. Those in neither were
    renamed, so that the storage has at the new path what it had at the old one.
    ``failed``: it is still at the old path. ``left`` are old paths yet to be deleted.
    ``read`` are contents that had to be read on the way and are not safe at the new path.
    """

    def __init__(self) -> None:
        self.saved: dict[str, FileEntry] = {}
        self.failed: dict[str, Exception] = {}
        self.left: list[str] = []
        self.read: dict[str, str | bytes] = {}


def carry(mount: Mount, scope: str, move: Move, unsaved: set[str]) -> Carried:
    """Do in the storage what ``move`` says; ``unsaved`` are old paths it may know nothing of.

    Raises StorageFailed if the first step fails, so that nothing was moved.
    """
    carried = Carried()
    storage = mount.storage
    emptied = []
    for before, after in move.pairs:
        old, new = mount.inside(before.path), mount.inside(after.path)
        try:
            if before.is_directory:
                storage.save(scope, replace(after, path=new))
                carried.saved[before.path] = before
                emptied.append(before.path)
                continue
            if before.path not in unsaved and _renamed(mount, scope, old, new):
                continue
            moved = after
            if not after.loaded:
                content = content_of(storage, scope, old)
                moved = with_content(after, content)
                carried.read[before.path] = content
            storage.save(scope, replace(moved, path=new))
            carried.read.pop(before.path, None)
            carried.saved[before.path] = before
        except Exception as error:
            if before is move.pairs[0][0]:
                raise _nothing_moved(move, error) from error
            log.warning("%s could not be moved in its storage (%r)", before.path, error)
            carried.failed[before.path] = error
            continue
        _delete(mount, scope, before.path, carried)
    for path in reversed(emptied):
        _delete(mount, scope, path, carried)
    return carried


def _renamed(mount: Mount, scope: str, old: str, new: str) -> bool:
    rename = getattr(mount.storage, "move", None)
    if rename is None:
        return False
    try:
        rename(scope, old, new)
    except Exception as error:
        log.info("%s is copied, since it could not be renamed (%r)", old, error)
        return False
    return True


def _delete(mount: Mount, scope: str, path: str, carried: Carried) -> None:
    try:
        mount.storage.delete(scope, mount.inside(path))
    except Exception as error:
        log.warning("%s was moved, but the old one could not be deleted (%r)", path, error)
        carried.left.append(path)


def _nothing_moved(move: Move, error: Exception) -> StorageFailed:
    return StorageFailed(
        f"{move.old} could not be moved ({said(error)}); nothing was moved.",
        move.old,
    )
