"""Any sequence of operations on mounted files gives what a plain dict gives, also on disk.

After every flush another filesystem on the same storage sees the same.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from sagents_nb.files import FileError, FileStorage, FileSystem, Mount, StorageFailed
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.files.storages.fsspec import FsspecStorage
from sagents_nb.files.storages.sql import SQLStorage
from tests.files.doubles import DictStorage, HandClock, RichStorage
from tests.talking import PATIENCE

Content = str | bytes | None

names = st.sampled_from(["a", "ab", "b", "c.md"])
below = st.lists(names, min_size=1, max_size=3).map("/".join)
some_path = st.one_of(below.map("/m/{}".format), below.map("/m/{}".format), below.map("/{}".format))
contents = st.one_of(st.text(max_size=5), st.binary(max_size=5))
when = st.sampled_from(["now", "debounce"])

STORAGES: dict[str, Callable[[Path], FileStorage]] = {
    "dict": lambda path: DictStorage(),
    "rich": lambda path: RichStorage(),
    "disk": lambda path: DiskStorage(path / "files", fsync=False),
    "sql": lambda path: SQLStorage(f"sqlite:///{path / 'files.db'}"),
    "fsspec": lambda path: FsspecStorage(f"memory://{path}"),
}


class Model:
    """Path → content, None for a directory; nothing else."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self.custom: dict[str, dict[str, int]] = {}

    def is_dir(self, path: str) -> bool:
        stored = path in self.files and self.files[path] is None
        return stored or any(p.startswith(path + "/") for p in self.files) or path == "/"

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_dir(path)

    def parents(self, path: str) -> list[str]:
        parts = path[1:].split("/")
        return ["/" + "/".join(parts[:n]) for n in range(1, len(parts))]

    def free(self, path: str) -> bool:
        """Whether something may be put there, as far as what is above it goes."""
        return path != "/m" and all(self.files.get(p) is None for p in self.parents(path))

    def put(self, path: str, content: Content) -> None:
        if path not in self.files:
            for above in self.parents(path):
                self.files.setdefault(above, None)
        self.files[path] = content

    def listed(self) -> list[str]:
        return sorted({q for p in self.files for q in (p, *self.parents(p))})

    def mounted(self) -> list[str]:
        return [p for p in self.listed() if p.startswith("/m/")]


class Mounted(RuleBasedStateMachine):
    kind: ClassVar[str] = "dict"
    fails: ClassVar[bool] = False

    @initialize()
    def begin(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.clock = HandClock()
        self.storage = STORAGES[self.kind](Path(self.place.name))
        self.fs = self.open()
        self.model = Model()
        self.failing = 0

    def open(self) -> FileSystem:
        return FileSystem(("model", 1), [Mount("m", self.storage)], clock=self.clock)

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.heal()
            self.same_after_a_restart()
            if isinstance(self.storage, DictStorage):
                assert self.storage.faults == []
            if isinstance(self.storage, SQLStorage):
                self.storage.close()
            self.place.cleanup()

    def attempt(self, allowed: bool, operation: Callable[[], Any]) -> str:
        """Do it; "done", "refused" or "failed", and it must not be done unless allowed."""
        try:
            operation()
        except StorageFailed:
            assert self.failing
            return "failed"
        except FileError:
            assert not allowed
            return "refused"
        assert allowed
        return "done"

    @rule(path=some_path, content=contents, overwrite=st.booleans())
    def write(self, path: str, content: str | bytes, overwrite: bool) -> None:
        model = self.model
        allowed = model.free(path) and not model.is_dir(path)
        allowed = allowed and (overwrite or path not in model.files)
        if (
            self.attempt(allowed, lambda: self.fs.write(path, content, overwrite=overwrite))
            != "refused"
        ):
            model.put(path, content)  # what could not be saved is kept

    @rule(path=some_path)
    def write_what_no_storage_keeps(self, path: str) -> None:
        if path.startswith("/m/") and not isinstance(self.storage, DictStorage):
            self.attempt(False, lambda: self.fs.write(f"{path}/.sagents/a", "x"))
            self.attempt(False, lambda: self.fs.mkdir(f"{path}/b/.sagents"))

    @rule(path=some_path)
    def edit(self, path: str) -> None:
        allowed = self.model.files.get(path) is not None
        result = self.attempt(allowed, lambda: self.fs.edit(path, lambda e: b"+"))
        if result == "done":
            self.model.put(path, b"+")

    @rule(path=some_path)
    def mkdir(self, path: str) -> None:
        allowed = self.model.free(path) and not self.model.exists(path)
        if self.attempt(allowed, lambda: self.fs.mkdir(path)) != "refused":
            self.model.put(path, None)

    @rule(path=some_path)
    def delete(self, path: str) -> None:
        if self.attempt(path in self.model.files, lambda: self.fs.delete(path)) == "done":
            del self.model.files[path]
            self.model.custom.pop(path, None)

    @rule(path=some_path, value=st.integers(0, 3), persist=when)
    def describe(self, path: str, value: int, persist: Any) -> None:
        allowed = self.model.exists(path)
        change = {"k": value}
        result = self.attempt(allowed, lambda: self.fs.update_metadata(path, change, persist))
        if result != "refused":
            self.model.put(path, self.model.files.get(path))
            self.model.custom[path] = change

    @rule(old=some_path, new=some_path)
    def move(self, old: str, new: str) -> None:
        model = self.model
        there = model.exists(old)
        if old == new:
            self.attempt(there, lambda: self.fs.move(old, new))
            return
        allowed = there and not new.startswith(old + "/") and model.free(new)
        allowed = allowed and not model.exists(new) and "/m" not in (old, new)
        allowed = allowed and old.startswith("/m/") == new.startswith("/m/")
        result = self.attempt(allowed, lambda: self.fs.move(old, new))
        if result == "done" or (result == "failed" and self.fs.exists(new)):
            for above in model.parents(new):
                model.files.setdefault(above, None)
            for kept in (model.files, model.custom):
                for path in [p for p in kept if p == old or p.startswith(old + "/")]:
                    kept[new + path[len(old) :]] = kept.pop(path)  # type: ignore[attr-defined]

    @rule(seconds=st.sampled_from([1, 3, 6]))
    def time_passes(self, seconds: float) -> None:
        self.clock.pass_time(seconds)

    @rule(count=st.integers(1, 4))
    def the_storage_fails(self, count: int) -> None:
        if self.fails and isinstance(self.storage, DictStorage):
            self.failing = 1
            left = [count]

            def broken(what: str, path: str) -> bool:
                left[0] -= 1
                return what != "list" and left[0] % 2 == 0

            self.storage.broken = broken

    @rule()
    def heal(self) -> None:
        if isinstance(self.storage, DictStorage):
            self.storage.broken = lambda what, path: False
        self.failing = 0

    @rule()
    def flush(self) -> None:
        if self.attempt(True, self.fs.flush) == "done":
            assert self.fs.stats().dirty == 0
            self.heal()
            self.same_after_a_restart()

    @rule()
    def restart(self) -> None:
        """Everything in memory is gone, and everything in the mount is there."""
        self.heal()
        self.same_after_a_restart()
        self.fs = self.open()
        self.only_what_is_kept()

    @rule()
    def reset(self) -> None:
        self.heal()
        self.fs.flush()
        self.fs.reset()
        self.only_what_is_kept()

    def only_what_is_kept(self) -> None:
        """Memory is gone; which directories are there by themselves is the storage's to say."""
        stored = {f"/m/{entry.path}" for entry in self.storage.list("model:1")}
        self.model.files = {p: self.model.files.get(p) for p in self.model.mounted() if p in stored}
        self.model.custom = {p: c for p, c in self.model.custom.items() if p in self.model.files}

    def same_after_a_restart(self) -> None:
        self.fs.flush()
        again = self.open()
        expected = self.model.mounted()
        assert [e.path for e in again.entries() if e.path != "/m"] == expected
        for path in expected:
            content = self.model.files.get(path)
            entry = again.entries(path)[0]
            assert entry.is_directory is (content is None)
            if content is not None:
                assert again.read(path).content == content
                assert again.read(path).custom == self.model.custom.get(path, {})
                assert again.read(path).size == entry.size

    @invariant()
    def holds_the_same(self) -> None:
        if not hasattr(self, "fs"):
            return
        found = {e.path: e for e in self.fs.entries()}
        listed = self.model.listed()
        assert [p for p in found if p != "/m"] == [p for p in listed if p != "/m"]
        for path, content in self.model.files.items():
            if path != "/m":
                assert found[path].is_directory is (content is None)
                assert not found[path].loaded or found[path].content == content
                assert found[path].custom == self.model.custom.get(path, {})
        stats = self.fs.stats()
        assert stats.total == stats.memory + stats.persisted == stats.loaded + stats.not_loaded
        assert stats.size == sum(e.size for e in found.values())


def run(kind: str, examples: int, fails: bool = False) -> None:
    machine = type(f"Mounted_{kind}", (Mounted,), {"kind": kind, "fails": fails})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )


SPEC = pytest.mark.spec("S1.8.2", "S1.8.7", "S1.8.9", "S1.8.10", "S1.8.12", "S1.8.14", "S1.7.8")


@SPEC
@pytest.mark.parametrize(
    ("kind", "examples"), [("dict", 40), ("rich", 40), ("disk", 15), ("sql", 10), ("fsspec", 10)]
)
def test_mounted_files_are_what_a_dict_would_be(kind: str, examples: int) -> None:
    run(kind, examples)


@SPEC
@pytest.mark.parametrize("kind", ["dict", "rich"])
def test_a_storage_that_fails_now_and_then_loses_nothing(kind: str) -> None:
    run(kind, 40, fails=True)


@SPEC
@pytest.mark.soak
@pytest.mark.parametrize("kind", list(STORAGES))
@pytest.mark.parametrize("fails", [False, True])
def test_three_hundred_runs(kind: str, fails: bool) -> None:
    if not fails or kind in ("dict", "rich"):
        run(kind, 300, fails)


def with_threads(kind: str, place: Path, seed: int, steps: int) -> None:
    """Eight threads, each in a directory of its own, and all in one file."""
    storage = STORAGES[kind](place)
    fs = FileSystem(("threads", 1), [Mount("m", storage, debounce=0.001)])
    fs.write("/m/shared", "")
    faults: list[BaseException] = []
    models = [Model() for _ in range(8)]

    def work(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        model = models[number]
        home = f"/m/{number}"
        try:
            for step in range(steps):
                path = f"{home}/{chance.choice('abc')}" + chance.choice(["", "/d", "/d/e"])
                other = f"{home}/{chance.choice('abc')}" + chance.choice(["", "/d"])
                what = chance.choice(["write", "write", "write", "delete", "move", "read", "share"])
                if what == "write" and model.free(path) and not model.is_dir(path):
                    fs.write(path, str(step))
                    model.put(path, str(step))
                elif what == "delete" and path in model.files:
                    fs.delete(path)
                    del model.files[path]
                elif what == "read" and model.files.get(path) is not None:
                    assert fs.read(path).content == model.files[path]
                elif what == "share":
                    fs.edit("/m/shared", lambda entry: f"{entry.content}{number}")
                    model.custom.setdefault("shared", {"n": 0})["n"] += 1
                elif (
                    what == "move"
                    and path != other
                    and model.exists(path)
                    and not model.exists(other)
                    and model.free(other)
                    and not other.startswith(path + "/")
                ):
                    fs.move(path, other)
                    model_move(model, path, other)
                if step % 7 == number % 7:
                    fs.flush()
        except BaseException as error:
            faults.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert faults == []
    fs.flush()
    assert fs.stats().dirty == 0
    for seen in (fs, FileSystem(("threads", 1), [Mount("m", storage)])):
        shared = seen.read("/m/shared").content
        for number, model in enumerate(models):
            files = {p: c for p, c in model.files.items() if c is not None}
            assert {p: seen.read(p).content for p in seen.list(f"/m/{number}/**")} == files
            assert str(shared).count(str(number)) == model.custom.get("shared", {"n": 0})["n"]
    if isinstance(storage, DictStorage):
        assert storage.faults == []
    if isinstance(storage, SQLStorage):
        storage.close()


def model_move(model: Model, old: str, new: str) -> None:
    for above in model.parents(new):
        model.files.setdefault(above, None)
    for path in [p for p in model.files if p == old or p.startswith(old + "/")]:
        model.files[new + path[len(old) :]] = model.files.pop(path)


@pytest.mark.spec("S1.8.2", "S1.8.9", "S1.8.10")
@pytest.mark.parametrize("kind", list(STORAGES))
def test_eight_threads_lose_nothing(kind: str, tmp_path: Path) -> None:
    with_threads(kind, tmp_path, seed=1, steps=120 if kind in ("dict", "rich") else 40)


@pytest.mark.soak
@pytest.mark.parametrize("kind", list(STORAGES))
@pytest.mark.parametrize("seed", range(10))
def test_eight_threads_with_five_hundred_steps_each(kind: str, seed: int, tmp_path: Path) -> None:
    with_threads(kind, tmp_path, seed, steps=500)
