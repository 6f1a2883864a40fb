"""A storage in a dict that tells what was asked of it, and a clock that is set by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from sagents_nb.files import FileEntry, FileSystem, Mount
from sagents_nb.files.saving import Clock


class DictStorage:
    """Keeps files in a dict; ``asked`` lists the calls, ``broken`` says which ones fail.

    What the protocol promises to a storage is checked: relative paths, and no two calls for
    one path at once.
    """

    def __init__(self) -> None:
        self.files: dict[str, FileEntry] = {}
        self.asked: list[tuple[str, str]] = []
        self.broken: Callable[[str, str], bool] = lambda what, path: False
        self.during: Callable[[str, str], Any] = lambda what, path: None
        self.faults: list[str] = []
        self.scopes: set[str] = set()
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def _call(self, what: str, scope: str, *paths: str) -> Iterator[None]:
        with self._lock:
            self.scopes.add(scope)
            self.asked.append((what, paths[-1] if paths else ""))
            if self._busy & set(paths):
                self.faults.append(f"two calls for {paths} at once")
            if any(not path or path.startswith("/") for path in paths):
                self.faults.append(f"{paths} are not relative")
            self._busy |= set(paths)
        try:
            self.during(what, paths[-1] if paths else "")
            if any(self.broken(what, path) for path in paths or ("",)):
                raise OSError("the disk is on fire")
            yield
        finally:
            with self._lock:
                self._busy -= set(paths)

    def list(self, scope: str) -> Iterable[FileEntry]:
        with self._call("list", scope):
            return [
                replace(entry, content=None, loaded=entry.is_directory)
                for entry in tuple(self.files.values())
            ]

    def load(self, scope: str, path: str) -> FileEntry:
        with self._call("load", scope, path):
            if path not in self.files:
                raise FileNotFoundError(path)
            return self.files[path]

    def save(self, scope: str, entry: FileEntry) -> None:
        with self._call("save", scope, entry.path):
            if not entry.loaded or (entry.content is None) is not entry.is_directory:
                self.faults.append(f"{entry.path} was saved without content")
            self.files[entry.path] = entry

    def delete(self, scope: str, path: str) -> None:
        with self._call("delete", scope, path):
            self.files.pop(path, None)

    # for the tests

    def contents(self) -> dict[str, str | bytes | None]:
        """What is kept, directories aside."""
        return {p: e.content for p, e in self.files.items() if not e.is_directory}

    def count(self, what: str, path: str | None = None) -> int:
        """How often that was asked."""
        return sum(w == what and path in (None, p) for w, p in self.asked)


class RichStorage(DictStorage):
    """One that can also rename, and save what describes a file without its content."""

    def save_metadata(self, scope: str, entry: FileEntry) -> None:
        with self._call("save_metadata", scope, entry.path):
            kept = self.files[entry.path]
            self.files[entry.path] = replace(
                entry,
                content=kept.content,
                size=kept.size,
                sha256=kept.sha256,
                loaded=True,
            )

    def move(self, scope: str, old: str, new: str) -> None:
        with self._call("move", scope, old, new):
            if old not in self.files:
                raise FileNotFoundError(old)
            self.files[new] = replace(self.files.pop(old), path=new)


class HandClock(Clock):
    """Time passes when the test says so, and work in the background is done then."""

    def __init__(self) -> None:
        self.time = 0.0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def now(self) -> float:
        return self.time

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        self._count += 1
        self._timers.append((self.time + seconds, self._count, function))

    def work(self, function: Callable[[], object]) -> None:
        function()

    def pass_time(self, seconds: float) -> None:
        end = self.time + seconds
        while due := sorted(t for t in self._timers if t[0] <= end):
            self._timers.remove(due[0])
            self.time = max(self.time, due[0][0])
            due[0][2]()
        self.time = end


class Desk:
    """A filesystem with one mount, its storage, and the clock of both."""

    def __init__(
        self,
        storage: DictStorage | None = None,
        base: str | None = "m",
        *,
        debounce: float = 5.0,
        readonly: bool = False,
        **limits: Any,
    ) -> None:
        self.storage = storage or RichStorage()
        self.clock = HandClock()
        self.mount = Mount(
            base, self.storage, default=base is None, debounce=debounce, readonly=readonly
        )
        self.fs = FileSystem(("desk", 1), [self.mount], clock=self.clock, **limits)

    def reopened(self) -> FileSystem:
        """Another filesystem on the same storage, as after a restart."""
        mount = Mount(self.mount.base, self.storage, default=self.mount.base is None)
        return FileSystem(("desk", 1), [mount], clock=self.clock)


def stored(path: str, content: str | bytes, **fields: Any) -> FileEntry:
    """An entry as a storage has it."""
    return replace(FileSystem().write("/" + path, content, **fields), path=path)
