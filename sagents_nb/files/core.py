"""What every change of a filesystem goes through, in memory and in the storages."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ..events import FileDeleted, FileMoved, FileUpdated
from . import paths
from .entry import FileEntry, new_file, with_content
from .errors import (
    REFUSALS,
    FileError,
    FilesystemClosed,
    LimitExceeded,
    NotStorable,
    StorageFailed,
    said,
)
from .loading import Loading
from .mounts import Mounts
from .notices import Notices
from .paths import scope_text
from .saving import Carried, Clock, Saving, carry, unsaved
from .snapshots import Snapshots
from .tree import Limits, Move, Tree

log = logging.getLogger(__name__)


class Core:
    """The parts of a filesystem and how they work together; :class:`FileSystem` is its face.

    The order is always: claim the paths that a storage is to be called for, then lock,
    change the tree, say what waits to be saved and queue the events, unlock, call the
    storage, give the claim back, deliver the events. Nothing waits with the lock held.
    """

    def __init__(self, scope: tuple[Any, ...] | None, limits: Limits, clock: Clock | None) -> None:
        self.scope = scope
        self.limits = limits
        self.closed = False
        self._lock = threading.Lock()
        self._mounting = threading.Lock()
        self._mounts = Mounts()
        self._tree = Tree(limits, self._mounts)
        self._notices = Notices(self._lock)
        self._snapshots = Snapshots()
        text = scope_text(scope or ())
        self._saving = Saving(self._lock, self._tree, text, clock or Clock())
        self._claims = self._saving.claims
        self._loading = Loading(self._lock, self._tree, self._claims, text, self._snapshots.loaded)

    def _check_open(self) -> None:
        if self.closed:
            raise FilesystemClosed("This filesystem was closed; open it with open_filesystem().")

    # one entry

    def _change(
        self,
        path: str,
        look: Callable[[], Any],
        make: Callable[[Any], FileEntry],
        *,
        read: bool = False,
        content: bool = True,
        now: bool = False,
    ) -> FileEntry:
        """Put what ``make`` makes of what ``look`` sees, and tell it; again if that changed.

        ``make`` hashes contents and calls other people's code, so it runs without the lock.
        ``read``: it needs the content. ``content``: it changes it. ``now``: a storage gets it
        now, as it always gets what is new.
        """
        while True:
            with self._lock:
                self._check_open()
                self._mounts.check_writable(path)
                stored, before = self._tree.get(path), look()
            if stored is not None and not stored.loaded and (read or len(self._snapshots)):
                stored = self._with_content(path, needed=read)
                if stored.loaded:
                    continue
            entry = make(before)
            with self._lock:
                claimed = self._saved_at_once(path, stored, now)
            failed: dict[str, Exception] = {}
            with self._claims.on(claimed) if claimed else contextlib.nullcontext():
                with self._lock:
                    self._check_open()
                    if self._tree.get(path) is not stored:
                        continue
                    if not set(self._saved_at_once(path, stored, now)) <= set(claimed):
                        continue
                    changed = entry != before
                    if changed:
                        entry = self._put(entry, content or stored is None, bool(claimed))
                if changed and claimed:
                    failed = self._save(claimed)
                    with self._lock:
                        if isinstance(failed.get(path), REFUSALS):
                            self._take_back(entry, stored)
                        elif (current := self._tree.get(path)) is not None:
                            self._notices.queue([updated(current)])
            break
        self._notices.deliver()
        if isinstance(refusal := failed.get(path), REFUSALS):
            raise NotStorable(f"{path} cannot be kept there: {refusal}", path) from refusal
        if failed:
            raise unsaved(failed)
        return entry

    def _take_back(self, entry: FileEntry, stored: FileEntry | None) -> None:
        """Put ``stored`` in the place of ``entry``, unless that changed; the lock is held."""
        if self._tree.get(entry.path) is not entry:
            return
        if stored is not None:
            self._tree.put_back(stored)
        else:
            self._tree.pop(entry.path)
            self._saving.forget(entry.path)

    def _with_content(self, path: str, needed: bool) -> FileEntry:
        """The entry, loaded; if that fails and is not ``needed``, as it is."""
        try:
            return self._loading.load(path)
        except FileError as error:
            if needed:
                raise
            log.warning("No snapshot has the content of %s: %s", path, error)
            with self._lock:
                return self._tree.file(path)

    def _saved_at_once(self, path: str, stored: FileEntry | None, now: bool) -> list[str]:
        """What a storage gets before a change of ``path`` returns; the lock is held."""
        if not len(self._mounts):
            return []
        mount = self._mounts.keeping(path)
        if stored is not None and not now and (mount is None or mount.debounce):
            return []
        above = self._tree.missing_parents(path) if stored is None else []
        return [p for p in (*(e.path for e in above), path) if self._mounts.keeping(p)]

    def _put(self, entry: FileEntry, content: bool, at_once: bool) -> FileEntry:
        """Into the tree, what waits, and the notices; the lock is held."""
        stored = self._tree.put(entry)
        for new in stored if len(self._mounts) else ():
            mount = self._mounts.keeping(new.path)
            if mount is not None:
                self._saving.mark(
                    new.path,
                    content=content or new is not stored[-1],
                    after=None if at_once else mount.debounce,
                )
        if not at_once:  # else it is told when it is saved
            self._notices.queue(updated(entry) for entry in stored[-1:])
        return stored[-1]

    def _save(self, claimed: Iterable[str]) -> dict[str, Exception]:
        return {path: error for path in claimed if (error := self._saving.save(path)) is not None}

    def _new(
        self,
        path: str,
        content: str | bytes,
        before: FileEntry | None,
        **fields: Any,
    ) -> FileEntry:
        if not isinstance(content, str | bytes):
            raise FileError(
                f"The content of {path} must be text or bytes, not {type(content).__name__}.", path
            )
        try:
            entry = new_file(path, content, before=before, **fields)
        except UnicodeEncodeError:
            raise FileError(f"The text for {path} is not Unicode; write bytes.", path) from None
        self._check_size(entry)
        return entry

    def _check_size(self, entry: FileEntry) -> None:
        if entry.size > self.limits.file_size:
            raise LimitExceeded(
                f"{entry.path} would be {entry.size:,} bytes, over the limit of "
                f"{self.limits.file_size:,} for one file; split it.",
                entry.path,
            )

    def _remove(self, path: str) -> FileEntry:
        """Delete one entry, in its storage first."""
        self._keep_for_snapshots(path, below=False)
        with self._lock:
            self._check_open()
            self._mounts.check_writable(path)
            mount = self._mounts.keeping(path)
        # A directory with all in it: nothing is to be saved there while the storage looks
        # whether it is empty.
        claim = self._claims.on((), trees=[path]) if mount else contextlib.nullcontext()
        with claim:
            with self._lock:
                self._check_open()
                self._tree.check_delete(path)
            if mount is not None:
                try:
                    mount.storage.delete(self._saving.scope, mount.inside(path))
                except Exception as error:
                    raise StorageFailed(
                        f"{path} could not be deleted ({said(error)}); it is still there.",
                        path,
                    ) from error
            with self._lock:
                entry = self._tree.delete(path)
                self._saving.forget(path)
                emptied = self._emptied([path])
                self._notices.queue([FileDeleted(path=path)])
        self._delete_emptied(emptied)
        self._notices.deliver()
        return entry

    def _emptied(self, gone: Iterable[str]) -> list[str]:
        """What was a directory only because of those paths, deepest first; the lock is held."""
        if not len(self._mounts):
            return []
        above = {directory for path in gone for directory in paths.ancestors(path)}
        emptied = [p for p in above if not self._tree.has(p) and self._mounts.keeping(p)]
        for path in emptied:
            self._saving.mark(path, after=None)
        return sorted(emptied, reverse=True)

    def _delete_emptied(self, emptied: list[str]) -> None:
        """A storage may have made those directories itself; what fails is tried again."""
        for path in emptied:
            with self._claims.on((), trees=[path]):
                self._saving.save(path)

    def _keep_for_snapshots(self, path: str, *, below: bool) -> None:
        """Read what the snapshots, if there are any, would lose when that path changes."""
        if len(self._snapshots):
            with self._lock:
                entries = self._tree.below(path) if below else [self._tree.get(path)]
            self._loading.load_all([e.path for e in entries if e is not None and not e.loaded])

    # moving

    def _plan(self, old: str, new: str) -> tuple[Move, list[str]]:
        """The move, and the directories it makes in a storage; the lock is held."""
        self._check_open()
        self._mounts.check_writable(old)
        self._mounts.check_writable(new)
        move = self._tree.plan_move(old, new)
        return move, [e.path for e in move.directories if self._mounts.keeping(e.path)]

    def _move(self, old: str, new: str) -> list[FileEntry]:
        """Move the path and what is below it, in its storage first."""
        self._keep_for_snapshots(old, below=True)
        while True:
            failed: dict[str, Exception] = {}
            emptied: list[str] = []
            with self._lock:
                move, made = self._plan(old, new)
                if old == new:
                    return []
                mount = self._mounts.keeping(old)
                if mount is None:
                    moved = self._carry_out(move, Carried())
                    break
            with self._claims.on(made, trees={old, new}):
                with self._lock:
                    move, now_made = self._plan(old, new)
                    waiting = {e.path for e, _ in move.pairs if self._saving.waits(e.path)}
                if not set(now_made) <= set(made):
                    continue
                carried = carry(mount, self._saving.scope, move, waiting)
                with self._lock:
                    # Who changes a file that is there does not wait for us.
                    moved = self._carry_out(self._tree.planned_again(move), carried)
                    emptied = self._emptied([old, *(e.path for e, _ in move.pairs)])
                failed = carried.failed | self._save(made)
            break
        self._delete_emptied(emptied)
        self._notices.deliver()
        if failed:
            raise unsaved(failed)
        return moved

    def _carry_out(self, move: Move, carried: Carried) -> list[FileEntry]:
        """In the tree, what waits, and the notices, what ``carried`` did; the lock is held."""
        pairs = [
            (old, with_content(new, carried.read[old.path]))
            if old.path in carried.read and not new.loaded
            else (old, new)
            for old, new in move.pairs
        ]
        moved = self._tree.carry_out(Move(move.old, move.new, pairs, move.directories))
        for entry in move.directories:
            if self._mounts.keeping(entry.path):
                self._saving.mark(entry.path)
        for old, new in pairs:
            if carried.saved.get(old.path) is old:
                self._saving.forget(old.path)
            elif old.path in carried.failed and new.loaded:
                self._saving.forget(old.path)
                self._saving.mark(new.path, left=old.path)
                self._saving.try_again(new.path)
            else:
                self._saving.rename(old.path, new.path)
        for path in carried.left:
            self._saving.mark(path)
            self._saving.try_again(path)
        self._notices.queue([FileMoved(old_path=move.old, path=move.new)])
        return moved

    def _index(self, entry: FileEntry) -> None:
        """Take in a file that its storage has already."""
        with self._claims.on([entry.path]), self._lock:
            self._check_open()
            stored = self._tree.put(entry)
            self._saving.forget(entry.path)
            self._notices.queue(updated(new) for new in stored[-1:])
        self._notices.deliver()


def updated(entry: FileEntry) -> FileUpdated:
    """The event that tells of a new or changed entry."""
    return FileUpdated(path=entry.path, entry=entry.describe())
