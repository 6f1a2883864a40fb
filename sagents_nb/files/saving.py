"""Saving changed files: when the time has come, one at a time per path, until it worked.

A move is saved too: in its storage first, each file on its own, so that none is ever absent. And
what others make of the files is seen before one is read again, and never overwritten unseen.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from ..errors import StaleOwner, pass_on
from ..events import Event, FileDeleted
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..text import logger_of
from .entry import FileEntry, with_content
from .errors import FileChanged, FileError, StorageFailed, StorageGone, reason
from .loading import Claims, together
from .mounts import Mount, Part, Stored, reached, stored_in
from .notices import updated
from .snapshots import same
from .storages.base import asker, asker_of_many, loaded_content, teller
from .tree import Move, Tree

log = logger_of(__name__)

# After a failed save: a second (or the debounce time) later, then twice as long each time.
RETRIES = 5
# How long the end of the process may be held up, in seconds.
PATIENCE = 10.0


class Clock:
    """Time in seconds, timers and work in the background; a test brings its own."""

    def now(self) -> float:
        """A time that only goes forward."""
        return time.monotonic()

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """Call a quick function after that time."""
        runtime.post(runtime.loop.call_later, seconds, function)

    def work(self, function: Callable[[], object]) -> None:
        """Call a slow function on another thread, soon."""
        workers.submit(function)


class Pending:
    """What waits to be saved for one path: ``content`` or only the rest, from ``due`` on.

    ``left`` is a path where the storage still has it, to be deleted once it is saved here.
    """

    __slots__ = ("content", "due", "left", "tries")

    def __init__(self, content: bool, left: str | None) -> None:
        self.content = content
        self.left = left
        self.due: float | None = None
        self.tries = 0


class Saving:
    """The changes of a ``tree`` that its storages do not have yet.

    A path that waits is brought in line: what the tree has is saved, what it has not is
    deleted. ``lock`` is the filesystem's; no storage is ever called with it held.
    """

    def __init__(
        self, lock: threading.Lock, tree: Tree, claims: Claims, scope: str, clock: Clock
    ) -> None:
        self._lock = lock
        self._tree = tree
        self._claims = claims
        self._scope = scope
        self._clock = clock
        self._pending: dict[str, Pending] = {}
        self._wakes: float | None = None

    def __len__(self) -> int:
        return len(self._pending)

    # with the lock held

    def paths(self) -> set[str]:
        """The paths that wait to be saved."""
        return set(self._pending)

    def unsettled(self) -> set[str]:
        """These, and those that wait to be deleted since they were moved."""
        left = {p.left for p in self._pending.values() if p.left is not None}
        return self._pending.keys() | left

    def waits(self, path: str) -> bool:
        """Whether that path waits to be saved."""
        return path in self._pending

    def mark(
        self,
        path: str,
        *,
        content: bool = True,
        left: str | None = None,
        after: float | None = None,
    ) -> None:
        """That path waits, and is saved ``after`` so many seconds, which begin anew.

        Without a time the caller sees to it.
        """
        before = self._pending.get(path)
        if before is not None:
            content, left = content or before.content, left or before.left
        pending = self._pending[path] = Pending(content, left)
        _waiting.add(self)
        _hear_of_the_end()
        if after is not None:
            self._at(pending, self._clock.now() + after)

    def forget(self, path: str) -> None:
        """That path needs no saving any more."""
        self._pending.pop(path, None)

    def forget_all(self) -> None:
        """Nothing needs saving any more."""
        self._pending.clear()

    def rename(self, old: str, new: str) -> None:
        """What waits for ``old`` waits for ``new``, and not longer than it would have."""
        pending = self._pending.pop(old, None)
        if pending is not None:
            self._pending[new] = pending

    def try_again(self, path: str, pending: Pending | None = None) -> None:
        """Save that path later, unless that was tried often enough or it changed since."""
        current = self._pending.get(path)
        if current is None or (pending or current) is not current or current.tries == RETRIES:
            return
        mount = self._tree.mounts.of(path)
        wait = max(1.0, mount.debounce if mount else 0.0) * 2**current.tries
        current.tries += 1
        self._at(current, self._clock.now() + wait)

    def _at(self, pending: Pending, due: float) -> None:
        pending.due = due
        # One timer that looks at all: restarting a debounce is an assignment.
        if self._wakes is None or due < self._wakes:
            self._wakes = due
            with contextlib.suppress(RuntimeError):  # at the end of the process: see _at_exit
                self._clock.later(due - self._clock.now(), partial(self._wake, due))

    # without the lock

    def _wake(self, due: float) -> None:
        """Have saved what is due; called by the timer."""
        by_mount: dict[Mount | None, list[str]] = {}
        with self._lock:
            if self._wakes != due:  # there is an earlier timer by now
                return
            now = self._clock.now()
            self._wakes = None
            for path, pending in self._pending.items():
                if pending.due is not None and pending.due <= now:
                    pending.due = None
                    by_mount.setdefault(self._tree.mounts.of(path), []).append(path)
            rest = [(p.due, p) for p in self._pending.values() if p.due is not None]
            if rest:
                next_due, first = min(rest, key=lambda pair: pair[0])
                self._at(first, next_due)
        for paths in by_mount.values():  # a slow storage does not hold up another
            with contextlib.suppress(RuntimeError):
                self._clock.work(partial(self._save_due, paths))

    def _save_due(self, paths: list[str]) -> None:
        for error in self.save_all(paths).values():
            if issubclass(type(error), FileChanged):
                log.warning("%s", error)

    def save_all(
        self, paths: Iterable[str], until: float | None = None
    ) -> dict[str, BaseException]:
        """Save those of the paths that wait, and give what failed."""
        failed = {}
        for path in paths:
            try:
                with self._claims.on([path], until=until):
                    error = self.save(path)
            except StorageFailed as too_late:
                error = too_late
            if error is not None:
                failed[path] = error
        return failed

    def save_claimed(self, paths: Iterable[str]) -> dict[str, BaseException]:
        """Save those of the paths that wait, and give what failed. The caller has claimed them."""
        return {path: error for path in paths if (error := self.save(path)) is not None}

    def save(self, path: str) -> BaseException | None:
        """Save that path if it waits; what the storage raised. The caller has claimed it."""
        with self._lock:
            pending = self._pending.get(path)
            if pending is None:
                return None
            pending.due = None
            entry = self._tree.get(path)
            mount = self._tree.mounts.keeping(path)
            known = self._tree.versions.get(path)
        version = None
        try:
            if mount is not None:
                version = self._bring_in_line(mount, path, entry, pending.content, known)
        except BaseException as error:
            pass_on(error)
            if issubclass(type(error), StaleOwner):  # another process has it: nothing is kept here
                with self._lock:
                    self.forget_all()
                    _waiting.discard(self)
            elif not issubclass(type(error), FileChanged):  # no time mends it, and who called tells
                log.warning("%s could not be saved (%r)", path, error)
                with self._lock:
                    self.try_again(path, pending)
            return error
        with self._lock:
            if version is not None and self._tree.get(path) is not None:
                self._tree.versions[path] = version
            if pending.left is not None:
                self.mark(pending.left, after=0.0)
            now = self._pending.get(path)
            if now is pending:
                del self._pending[path]
            elif now is not None:  # it was changed meanwhile
                now.left = None
            if not self._pending:
                _waiting.discard(self)
        return None

    def _bring_in_line(
        self, mount: Mount, path: str, entry: FileEntry | None, content: bool, known: str | None
    ) -> str | None:
        """The version that the file has then, if the storage tells."""
        storage, inside = mount.storage, mount.inside(path)
        if entry is None:
            storage.delete(self._scope, inside)
            return None
        entry = replace(entry, path=inside)
        save_metadata = getattr(storage, "save_metadata", None)
        if save_metadata is not None and not content and not entry.is_directory:
            save_metadata(self._scope, entry)
            return None
        if not entry.loaded:
            entry = with_content(entry, loaded_content(storage, self._scope, inside))
        ask = asker(storage)
        if ask is None or entry.is_directory:
            storage.save(self._scope, entry)
            return None
        save_over = getattr(storage, "save_over", None)
        try:
            if known is not None and save_over is not None:
                version: str | None = save_over(self._scope, entry, known)
                return version
            if known is not None and (ask(self._scope, inside) or known) != known:
                raise FileChanged("")
        except FileChanged:
            raise overwriting(path) from None
        storage.save(self._scope, entry)
        return ask(self._scope, inside)

    def flush(self, until: float | None = None) -> None:
        """Save all that waits now; what failed waits on and is named by StorageFailed.

        ``until`` is a time of :func:`time.monotonic` after which nothing more is begun.
        """
        failed: dict[str, BaseException] = {}
        # First what is there, so that what was moved is never absent from the storage.
        for there in (True, False):
            with self._lock:
                paths = [p for p in self._pending if (self._tree.get(p) is not None) is there]
            paths.sort()
            parts = together(self.save_all, paths) if until is None else ()
            for part in parts or [self.save_all(paths, until)]:
                failed |= part
        if failed:
            raise unsaved(failed)


def overwriting(path: str) -> FileChanged:
    """The error for what would overwrite the work of somebody else with ours."""
    return FileChanged(
        f"{path} was changed by somebody else since it was read, so what was written here since "
        "is not saved; it is kept in memory until reload() takes what is there.",
        path,
        kept=True,
    )


def unsaved(failed: dict[str, BaseException]) -> StorageFailed:
    """The error for files that are in memory, but not yet in their storage."""
    names = sorted(failed)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    first = failed[names[0]]
    ended = [each for each in failed.values() if issubclass(type(each), StaleOwner)]
    if ended:
        text = str(ended[0])
    elif len(names) == 1 and issubclass(type(first), FileChanged):
        text = str(first)
    else:
        text = (
            f"{', '.join(names[:5])}{more} could not be saved ({reason(first)}); "
            "what you wrote is kept in memory and saved with the next flush()."
        )
    error = StorageFailed(text, names[0])
    error.__cause__ = first
    return error


class Versions:
    """Compares what is in memory with what the storages have by now.

    A storage with a ``version`` method is asked, others are taken to change by nobody else. The
    ``tree`` holds the version from which each content came; ``tell`` is called with the lock held.
    """

    def __init__(
        self,
        lock: threading.Lock,
        tree: Tree,
        claims: Claims,
        saving: Saving,
        scope: str,
        tell: Callable[[Iterable[Event]], None],
    ) -> None:
        self._lock = lock
        self._tree = tree
        self._claims = claims
        self._saving = saving
        self._scope = scope
        self._tell = tell
        self._shared: set[str] = set()

    def shared(self, path: str) -> bool:
        """Whether somebody else was seen to change that file; the lock is held.

        Then no change of ours waits to be saved, since theirs would come between.
        """
        return path in self._shared

    def in_conflict(self, path: str) -> bool:
        """Whether what waits to be saved there would overwrite what somebody else wrote."""
        found = self._now(path)
        return found is not None and found[1] is not None and found[2]

    def refreshed(self, path: str) -> bool:
        """Take what the storage has by now, if that is another and nothing here is unsaved.

        Whether the tree was changed. What cannot be asked is taken to be the same.
        """
        if self._now(path) is None:
            return False
        with self._claims.on([path]):
            found = self._now(path)
            if found is None or found[2]:
                return False
            self._take(path, found[0])
        return True

    def refresh(self, paths: Sequence[str], failed: dict[str, FileError] | None = None) -> bool:
        """The same for many files; a storage that can is asked for all of them at once.

        ``failed`` is told what could not be read anew, by path; without it that is raised.
        """
        outdated = paths if len(paths) == 1 else self._outdated(paths)
        changed = False
        for path in outdated:
            try:
                changed |= self.refreshed(path)
            except FileError as error:
                if failed is None:
                    raise
                log.warning("%s", error)
                failed[path] = error
        return changed

    def _outdated(self, paths: Sequence[str]) -> Iterator[str]:
        """Those that somebody else has changed, or of whose storage only one can be asked for."""
        with self._lock:
            versions = self._tree.versions
            known = {path: versions[path] for path in paths if path in versions}
            kept = self._tree.mounts.kept(known)
        for mount, before in kept.items():
            ask = asker_of_many(mount.storage)
            try:
                now = ask(self._scope, list(before)) if ask else {}
            except StorageGone:
                raise
            except BaseException as error:
                pass_on(error)
                log.warning("It is not known what of %s has changed (%r)", mount.root, error)
                continue
            if now == before:  # all of them, told without a look at each
                continue
            for inside, version in before.items():
                if not ask or (now.get(inside) or "") != version:
                    yield mount.outside(inside)

    def check(self, path: str, *, edits: bool = False) -> bool:
        """Look before a content is replaced; whether the tree was changed by that.

        Raises FileChanged for what would overwrite the work of somebody else, which is taken in
        first; one that only ``edits`` what is there goes on from that.
        """
        if self._now(path, unread=True) is None:
            return False
        with self._claims.on([path]):  # no save of ours is under way
            found = self._now(path)
            if found is None:
                return False
            mount, version, unsaved = found
            if unsaved and version is not None:
                raise overwriting(path)
            if unsaved:  # deleted: what is here is all there is
                return False
            self._take(path, mount)
        if edits or version is None:
            return True
        raise FileChanged(
            f"{path} was changed by somebody else since it was read; read it again before you "
            "change it.",
            path,
        )

    def list_again(self, directory: str, levels: int | None) -> bool:
        """Take in what others have added and removed; whether the tree was changed.

        In a directory and so many levels down, None for all, as far as a storage can tell that
        apart. What waits to be saved stays as it is here. A storage that does not tell is taken to
        be as it was, and also one that cannot be asked. Raises StorageGone.
        """
        news = False
        for mount in self._tree.mounts:
            part = reached(mount, directory, levels)
            if part and teller(mount.storage) and self._stored(mount, part):
                with self._claims.on((), trees={mount.root}):  # none of ours is under way
                    news |= self._take_in(mount, self._stored(mount, part))
        return news

    def _stored(self, mount: Mount, part: Part) -> Stored | None:
        """What has come or gone, if anything has."""
        try:
            stored = stored_in(mount, self._scope, self._tree.marks.get(mount.root), part)
        except StorageGone:
            raise
        except StorageFailed as error:
            log.warning("%s", error)
            return None
        return stored if stored.directories else None

    def _take_in(self, mount: Mount, stored: Stored | None) -> bool:
        if stored is None:
            return False
        listed = {entry.path: entry for entry in stored.entries}
        kinds = {path: entry.is_directory for path, entry in listed.items()}
        with self._lock:
            tree, kept = self._tree, self._saving.unsettled()
            mine = tree.mounts.keeping
            gone = [
                entry.path
                for directory in stored.directories
                for entry in tree.inside(directory)
                if mine(entry.path) is mount
                and entry.path not in kept
                and kinds.get(entry.path) is not entry.is_directory
            ]
            for path in gone:
                tree.versions.pop(path, None)
                tree.pop(path)
            new = [
                entry
                for path, entry in sorted(listed.items())
                if path not in kept
                and mine(path) is mount
                and ((known := tree.get(path)) is None or not (known.loaded or same(known, entry)))
            ]
            for entry in new:
                if tree.get(entry.path):
                    tree.take_in(entry)
                else:
                    tree.index([entry])
            tree.marks[mount.root] = stored.mark
            came = [entry for entry in new if tree.get(entry.path) is entry]
            self._tell([FileDeleted(path=path) for path in gone if tree.get(path) is None])
            self._tell(updated(entry) for entry in came)
        return bool(gone or came)

    def reload(self, path: str) -> None:
        """Take what the storage has, whatever is unsaved here."""
        with self._lock:
            mount = self._tree.mounts.keeping(path)
        if mount is None:
            return
        with self._claims.on([path]):
            self._take(path, mount, drop=True)

    def _now(self, path: str, *, unread: bool = False) -> tuple[Mount, str | None, bool] | None:
        """The mount, the version there, and whether something waits here; None if all is as known.

        What is known is that of the content in memory, or that there is no such file. With
        ``unread`` the storage is asked also where nothing is known. Raises StorageGone.
        """
        with self._lock:
            found = self._known(path)
            if found is None and unread and (keeping := self._tree.mounts.keeping(path)):
                found = keeping, None
            unsaved = self._saving.waits(path)
        if found is None:
            return None
        mount, known = found
        ask = asker(mount.storage)
        if ask is None:
            return None
        try:
            version = ask(self._scope, mount.inside(path))
        except StorageGone:
            raise
        except BaseException as error:
            pass_on(error)
            log.warning("It is not known whether %s has changed (%r)", path, error)
            return None
        return None if known is None or (version or "") == known else (mount, version, unsaved)

    def _known(self, path: str) -> tuple[Mount, str | None] | None:
        """The mount, and the version of what is in memory, "" for no file; None without one."""
        mount = self._tree.mounts.keeping(path)
        version = None if mount is None else self._version(path)
        return None if mount is None or version is None else (mount, version)

    def _version(self, path: str) -> str | None:
        """The version of what is in memory, "" for no file, None where none is known."""
        entry = self._tree.get(path)
        if entry is None:
            return None if self._tree.has(path) else ""
        return None if entry.is_directory or not entry.loaded else self._tree.versions.get(path)

    def _take(self, path: str, mount: Mount, *, drop: bool = False) -> None:
        """Have in memory what the storage has; the path is claimed.

        What was changed here meanwhile stays, unless that is to be dropped.
        """
        inside = mount.inside(path)
        ask = asker(mount.storage)
        try:
            version = ask(self._scope, inside) if ask else None
            stored = mount.storage.load(self._scope, inside)
        except FileNotFoundError:
            self._lose(path, drop)
            return
        except StorageGone:
            raise
        except BaseException as error:
            pass_on(error)
            raise StorageFailed(
                f"{path} was changed by somebody else and could not be read anew "
                f"({reason(error)}); try again.",
                path,
            ) from error
        entry = replace(stored, path=path, content=None, loaded=False, persistence="persisted")
        with self._lock:
            self._shared.add(path)
            if self._saving.waits(path) and not drop:
                return
            self._saving.forget(path)
            self._tree.take_in(entry)
            fits = entry.size <= self._tree.limits.file_size
            if self._tree.get(path) is entry and stored.content is not None and fits:
                self._tree.swap(with_content(entry, stored.content))
                if version is not None:
                    self._tree.versions[path] = version
            now = self._tree.get(path)
            self._tell([] if now is None else [updated(now)])

    def _lose(self, path: str, drop: bool) -> None:
        with self._lock:
            self._shared.discard(path)
            if self._saving.waits(path) and not drop:
                return
            self._saving.forget(path)
            self._tree.versions.pop(path, None)
            if self._tree.get(path) is not None:
                self._tree.pop(path)
                self._tell([FileDeleted(path=path)])


# Those with something to save, which nobody else may hold any more.
_waiting: set[Saving] = set()
if hasattr(os, "register_at_fork"):  # what waits is the parent's to save
    os.register_at_fork(after_in_child=_waiting.clear)


_heard: set[int] = set()  # the processes that have


def _hear_of_the_end() -> None:
    """Save what waits also when a child of multiprocessing ends: a forked one runs no atexit."""
    process = sys.modules.get("multiprocessing.process")
    if os.getpid() in _heard or process is None or process.parent_process() is None:
        return
    _heard.add(os.getpid())
    from multiprocessing.util import Finalize

    Finalize(None, _at_exit, exitpriority=0)


@atexit.register
def _at_exit() -> None:
    """Save what is still waiting when the process ends."""
    until = time.monotonic() + PATIENCE
    for saving in list(_waiting):
        try:
            saving.flush(until)
        except StorageFailed as error:
            lost = ", ".join(sorted(saving.paths()))
            log.error("Not saved before the process ended: %s (%r)", lost, error.__cause__)


class MoveOutcome:
    """What became of a move in the storage, by old path.

    ``saved``: the storage has at the new path what the entry was. Those in neither were
    renamed, so that the storage has at the new path what it had at the old one.
    ``failed``: it is still at the old path. ``left`` are old paths yet to be deleted.
    ``read`` are contents that had to be read on the way and are not safe at the new path.
    ``versions`` are those of what was saved, where the storage tells.
    """

    def __init__(self) -> None:
        self.saved: dict[str, FileEntry] = {}
        self.failed: dict[str, BaseException] = {}
        self.left: list[str] = []
        self.read: dict[str, str | bytes] = {}
        self.versions: dict[str, str | None] = {}


def move_in_storage(mount: Mount, scope: str, move: Move, waiting: set[str]) -> MoveOutcome:
    """Do in the storage what ``move`` says; ``waiting`` are old paths it may know nothing of.

    Raises StorageFailed if the first step fails, so that nothing was moved.
    """
    outcome = MoveOutcome()
    storage = mount.storage
    emptied = []
    for before, after in move.pairs:
        old, new = mount.inside(before.path), mount.inside(after.path)
        try:
            if before.is_directory:
                storage.save(scope, replace(after, path=new))
                outcome.saved[before.path] = before
                emptied.append(before.path)
                continue
            if before.path not in waiting and _renamed(mount, scope, old, new):
                continue
            moved = after
            if not after.loaded:
                content = loaded_content(storage, scope, old)
                moved = with_content(after, content)
                outcome.read[before.path] = content
            storage.save(scope, replace(moved, path=new))
            outcome.read.pop(before.path, None)
            outcome.saved[before.path] = before
            ask = asker(storage)
            outcome.versions[before.path] = ask(scope, new) if ask else None
        except BaseException as error:
            pass_on(error)
            if before is move.pairs[0][0]:
                raise _nothing_moved(move, error) from error
            log.warning("%s could not be moved in its storage (%r)", before.path, error)
            outcome.failed[before.path] = error
            continue
        _delete(mount, scope, before.path, outcome)
    for path in reversed(emptied):
        _delete(mount, scope, path, outcome)
    return outcome


def _renamed(mount: Mount, scope: str, old: str, new: str) -> bool:
    rename = getattr(mount.storage, "move", None)
    if rename is None:
        return False
    try:
        rename(scope, old, new)
    except BaseException as error:
        pass_on(error)
        log.info("%s is copied, since it could not be renamed (%r)", old, error)
        return False
    return True


def _delete(mount: Mount, scope: str, path: str, outcome: MoveOutcome) -> None:
    try:
        mount.storage.delete(scope, mount.inside(path))
    except BaseException as error:
        pass_on(error)
        log.warning("%s was moved, but the old one could not be deleted (%r)", path, error)
        outcome.left.append(path)


def _nothing_moved(move: Move, error: BaseException) -> StorageFailed:
    return StorageFailed(
        f"{move.old} could not be moved ({reason(error)}); nothing was moved.",
        move.old,
    )
