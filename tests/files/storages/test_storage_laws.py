"""Any sequence of operations on any storage gives what a plain dict gives, also after a restart."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sagents_nb.files import FileError
from sagents_nb.files.entry import FileEntry, new_directory, new_file
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.files.storages.fsspec import FsspecStorage
from sagents_nb.files.storages.sql import SQLStorage

SCOPE = "user:1"

names = st.sampled_from(["a", "b", "c.md"])
some_path = st.lists(names, min_size=1, max_size=3).map("/".join)
contents = st.one_of(st.text(max_size=5), st.binary(max_size=5))
titles = st.one_of(st.none(), st.text(min_size=1, max_size=5))


def parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


class AgainstADict(RuleBasedStateMachine):
    """The model: path → entry. As the filesystem does, parents are saved before what is in them."""

    storage: Any
    moves: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.model: dict[str, FileEntry] = {}
        self.restart()

    def teardown(self) -> None:
        shutil.rmtree(self.place)

    def make(self) -> Any:
        raise NotImplementedError

    def is_dir(self, path: str) -> bool:
        return any(p.startswith(path + "/") for p in self.model) or (
            path in self.model and self.model[path].is_directory
        )

    def possible(self, path: str) -> bool:
        return not any(p in self.model and not self.model[p].is_directory for p in parents(path))

    def put(self, entry: FileEntry) -> None:
        for parent in parents(entry.path):
            if parent not in self.model:
                self.model[parent] = new_directory(parent)
                self.storage.save(SCOPE, self.model[parent])
        self.storage.save(SCOPE, entry)
        self.model[entry.path] = entry

    @rule()
    def restart(self) -> None:
        self.storage = self.make()

    @rule(path=some_path, content=contents, title=titles)
    def save(self, path: str, content: str | bytes, title: str | None) -> None:
        if self.possible(path) and not self.is_dir(path):
            self.put(new_file(path, content, title=title))

    @rule(path=some_path, title=titles)
    def make_directory(self, path: str, title: str | None) -> None:
        if self.possible(path) and (path not in self.model or self.model[path].is_directory):
            self.put(new_directory(path, title))

    @rule(path=some_path, title=titles)
    def describe(self, path: str, title: str | None) -> None:
        before = self.model.get(path)
        if before is not None:
            after = FileEntry(
                **{f: getattr(before, f) for f in before.__struct_fields__} | {"title": title}
            )
            self.storage.save_metadata(SCOPE, after)
            self.model[path] = after

    @rule(path=some_path)
    def delete(self, path: str) -> None:
        self.storage.delete(SCOPE, path)
        self.model.pop(path, None)

    @precondition(lambda self: self.moves)
    @rule(old=some_path, new=some_path)
    def move(self, old: str, new: str) -> None:
        entry = self.model.get(old)
        if entry is None or entry.is_directory or not self.possible(new):
            return
        if new in self.model or self.is_dir(new) or new.startswith(f"{old}/"):
            with pytest.raises(FileError):
                self.storage.move(SCOPE, old, new)
            return
        for parent in parents(new):
            if parent not in self.model:
                self.model[parent] = new_directory(parent)
                self.storage.save(SCOPE, self.model[parent])
        self.storage.move(SCOPE, old, new)
        del self.model[old]
        self.model[new] = FileEntry(
            **{f: getattr(entry, f) for f in entry.__struct_fields__} | {"path": new}
        )

    @invariant()
    def holds_the_same(self) -> None:
        listed = {entry.path: entry for entry in self.storage.list(SCOPE)}
        assert set(listed) == set(self.model)
        for path, entry in self.model.items():
            found = listed[path]
            assert (found.title, found.is_directory) == (entry.title, entry.is_directory)
            if not entry.is_directory:
                assert (found.size, found.sha256) == (entry.size, entry.sha256)
                assert found.modified_at == entry.modified_at
                assert self.storage.load(SCOPE, path).content == entry.content


class OnDisk(AgainstADict):
    def make(self) -> DiskStorage:
        return DiskStorage(self.place, fsync=False)


class InADatabase(AgainstADict):
    def make(self) -> SQLStorage:
        if not hasattr(self, "kept"):
            self.kept = SQLStorage("sqlite://")  # ends with its engine
        return self.kept

    def teardown(self) -> None:
        super().teardown()
        self.kept.close()


class WithFsspec(AgainstADict):
    moves = False

    def make(self) -> FsspecStorage:
        return FsspecStorage(f"memory://{self.place}")


class WithFsspecOnDisk(AgainstADict):
    moves = False

    def make(self) -> FsspecStorage:
        return FsspecStorage(f"file://{self.place}")


MACHINES = (OnDisk, InADatabase, WithFsspec, WithFsspecOnDisk)


def check(machine: type[AgainstADict], examples: int) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_a_storage_is_a_dict(machine: type[AgainstADict]) -> None:
    check(machine, 12)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_storage_is_a_dict_for_long(machine: type[AgainstADict]) -> None:
    check(machine, 300)
