"""What concerns all files: reset, mounting later, registering entries."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FileError, FileSystem, Mount, StorageFailed
from tests.files.doubles import Desk, HandClock, RichStorage, stored


@pytest.mark.spec("S1.8.8")
def test_reset_drops_what_is_in_memory_and_what_waits_and_lists_anew() -> None:
    desk = Desk()
    desk.fs.write("/mem.md", "x")
    desk.fs.write("/m/edited.md", "0")
    desk.fs.write("/m/vanished.md", "0")
    desk.fs.write("/m/edited.md", "1")
    del desk.storage.files["vanished.md"]
    desk.storage.save("", stored("appeared.md", "new"))
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    desk.fs.reset()
    assert desk.fs.list() == ["/m/appeared.md", "/m/edited.md"]
    assert desk.fs.read("/m/edited.md").content == "0"
    assert desk.fs.stats().dirty == 0
    desk.clock.pass_time(100)
    assert desk.storage.contents() == {"edited.md": "0", "appeared.md": "new"}
    told = sorted((e.type, e.path) for e in events)
    assert told == [
        ("file_deleted", "/m"),
        ("file_deleted", "/m/vanished.md"),
        ("file_deleted", "/mem.md"),
        ("file_updated", "/m/appeared.md"),
        ("file_updated", "/m/edited.md"),
    ]


@pytest.mark.spec("S1.8.8")
def test_a_reset_that_cannot_list_changes_nothing() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.fs.write("/m/a", "1")
    desk.storage.broken = lambda what, path: what == "list"
    with pytest.raises(StorageFailed, match="/m could not be listed"):
        desk.fs.reset()
    assert desk.fs.read("/m/a").content == "1"
    desk.fs.flush()
    assert desk.storage.contents() == {"a": "1"}


def test_what_is_mounted_later_takes_in_the_files_that_are_there() -> None:
    fs = FileSystem(("test", 1), clock=HandClock())
    fs.write("/m/d/mine.md", "x", title="T")
    fs.write("/other.md", "y")
    storage = RichStorage()
    storage.save("", stored("d/stored.md", "z"))
    events: list[Any] = []
    fs.subscribe(events.append)
    fs.mount(Mount("m", storage))
    assert fs.list() == ["/m/d/mine.md", "/m/d/stored.md", "/other.md"]
    assert storage.contents() == {"d/stored.md": "z", "d/mine.md": "x"}
    assert fs.read("/m/d/mine.md").persistence == "persisted"
    assert (fs.stats().persisted, fs.stats().dirty) == (4, 0)
    assert [e.path for e in events] == ["/m/d/stored.md"]


@pytest.mark.parametrize(
    ("path", "readonly"), [("/m/a.md", False), ("/m/b.md", True), ("/m", False)]
)
def test_a_mount_over_files_that_would_be_lost_is_refused(path: str, readonly: bool) -> None:
    fs = FileSystem(("test", 1), clock=HandClock())
    fs.write(path, "mine")
    storage = RichStorage()
    storage.save("", stored("a.md", "theirs"))
    with pytest.raises(FileError, match="move it away first"):
        fs.mount(Mount("m", storage, readonly=readonly))
    assert fs.mounts == ()
    assert fs.list() == [path]
    assert fs.read(path).content == "mine"
    fs.write(path, "still mine")
    assert storage.contents() == {"a.md": "theirs"}


def test_a_mount_within_another_hides_what_that_has_there_and_loses_nothing() -> None:
    desk = Desk(base=None)
    desk.fs.write("/x/a", "0")
    desk.fs.write("/x/a", "1")
    inner = RichStorage()
    inner.save("", stored("b", "inner"))
    desk.fs.mount(Mount("x", inner))
    assert desk.fs.list() == ["/x/b"]
    assert desk.storage.contents() == {"x/a": "1"}
    assert inner.contents() == {"b": "inner"}
    assert desk.reopened().read("/x/a").content == "1"


def test_a_storage_that_cannot_be_listed_is_not_mounted() -> None:
    fs = FileSystem(("test", 1), clock=HandClock())
    storage = RichStorage()
    storage.broken = lambda what, path: True
    with pytest.raises(StorageFailed, match="could not be listed"):
        fs.mount(Mount("m", storage))
    assert fs.mounts == ()
    storage.broken = lambda what, path: False
    fs.mount(Mount("m", storage))
    with pytest.raises(ConfigurationError):
        fs.mount(Mount("m", storage))


def test_registered_entries_are_taken_as_they_are() -> None:
    desk = Desk()
    entry = stored("mem.md", "x", title="T", custom={"k": 1})
    there = replace(stored("m/there.md", "zz"), content=None, loaded=False)
    desk.storage.files["there.md"] = stored("there.md", "zz")
    desk.storage.asked.clear()
    desk.fs.register([entry, there])
    desk.fs.register(stored("m/new.md", "y"))
    taken = desk.fs.read("/mem.md")
    assert (taken.title, taken.custom, taken.created_at) == ("T", {"k": 1}, entry.created_at)
    assert taken.persistence == "memory"
    assert desk.storage.asked == [("save", "new.md")]
    assert not desk.fs.entries("/m/there.md")[0].loaded
    assert desk.fs.read("/m/there.md").content == "zz"
    with pytest.raises(FileError, match="no storage to read it from"):
        desk.fs.register(replace(entry, path="/no.md", content=None))
