"""Moves of stored files, with and without what waits to be saved."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sagents_nb.events import FileMoved
from sagents_nb.files import FileError, FileSystem, Mount, StorageFailed
from tests.files.doubles import Desk, DictStorage, HandClock, RichStorage, stored
from tests.talking import PATIENCE

KINDS = pytest.mark.parametrize("kind", [RichStorage, DictStorage])


@KINDS
@pytest.mark.spec("S1.8.10")
def test_a_move_takes_the_pending_save_along(kind: type[DictStorage]) -> None:
    desk = Desk(kind())
    desk.fs.write("/m/a.md", "0")
    desk.fs.write("/m/a.md", "1")
    desk.fs.move("/m/a.md", "/m/b.md")
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"b.md": "1"}
    assert desk.fs.stats().dirty == 0
    desk.fs.flush()
    desk.clock.pass_time(100)
    assert desk.storage.contents() == {"b.md": "1"}
    assert desk.reopened().read("/m/b.md").content == "1"


@KINDS
@pytest.mark.spec("S1.8.10", "S1.8.17")
def test_a_directory_moves_with_several_children_that_wait(kind: type[DictStorage]) -> None:
    desk = Desk(kind())
    for name in ("d/a", "d/b", "d/e/c", "d/clean", "dd"):
        desk.fs.write(f"/m/{name}", "0")
    for name in ("d/a", "d/b", "d/e/c"):
        desk.fs.write(f"/m/{name}", "1")
    assert len(desk.fs.move("/m/d", "/m/x/y")) == 6
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {
        "x/y/a": "1",
        "x/y/b": "1",
        "x/y/e/c": "1",
        "x/y/clean": "0",
        "dd": "0",
    }
    directories = {p for p, e in desk.storage.files.items() if e.is_directory}
    assert directories == {"x", "x/y", "x/y/e"}
    assert desk.fs.stats().dirty == 0
    assert desk.storage.faults == []


@KINDS
@pytest.mark.spec("S1.8.10", "S1.8.2")
def test_an_edit_during_a_move_is_saved_at_the_new_path(kind: type[DictStorage]) -> None:
    desk = Desk(kind())
    desk.fs.write("/m/a", "0")

    def edit_meanwhile(what: str, path: str) -> None:
        desk.storage.during = lambda what, path: None
        desk.fs.write("/m/a", "1")

    desk.storage.during = edit_meanwhile
    desk.fs.move("/m/a", "/m/b")
    assert desk.fs.read("/m/b").content == "1"
    assert desk.storage.contents() == {"b": "0"}
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"b": "1"}


def test_a_new_file_in_a_directory_that_moves_waits_for_the_move() -> None:
    desk = Desk()
    desk.fs.write("/m/d/a", "0")
    begun, go_on = threading.Event(), threading.Event()

    def slow(what: str, path: str) -> None:
        if what == "move":
            begun.set()
            assert go_on.wait(PATIENCE)

    desk.storage.during = slow
    mover = threading.Thread(target=desk.fs.move, args=("/m/d", "/m/e"))
    mover.start()
    assert begun.wait(PATIENCE)
    writer = threading.Thread(target=desk.fs.write, args=("/m/d/new", "1"))
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    go_on.set()
    mover.join(PATIENCE)
    writer.join(PATIENCE)
    assert desk.fs.list() == ["/m/d/new", "/m/e/a"]
    assert desk.storage.contents() == {"d/new": "1", "e/a": "0"}
    assert desk.storage.faults == []


def test_a_move_that_has_begun_is_finished_whatever_the_limits_say_by_then() -> None:
    desk = Desk(max_entries=4)
    desk.fs.write("/m/a", "0")

    def fill_up(what: str, path: str) -> None:
        desk.storage.during = lambda what, path: None
        for name in "xy":
            desk.fs.write(f"/{name}", "")

    desk.storage.during = fill_up
    desk.fs.move("/m/a", "/m/d/b")
    assert desk.fs.list() == ["/m/d/b", "/x", "/y"]
    assert desk.storage.contents() == {"d/b": "0"}


def test_an_unread_file_moves_without_being_kept_in_memory() -> None:
    for kind in (RichStorage, DictStorage):
        storage = kind()
        storage.save("", stored("d/a", "x", title="A"))
        desk = Desk(storage)
        desk.fs.move("/m/d", "/m/e")
        assert desk.fs.stats().not_loaded == 1
        assert storage.contents() == {"e/a": "x"}
        assert storage.files["e/a"].title == "A"
        assert desk.fs.read("/m/e/a").content == "x"


def test_a_storage_that_cannot_rename_copies_and_deletes() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "x")
    desk.storage.broken = lambda what, path: what == "move"
    desk.fs.move("/m/a", "/m/b")
    assert desk.storage.contents() == {"b": "x"}


@pytest.mark.spec("S1.7.8", "S1.8.15")
def test_nothing_is_moved_when_the_storage_fails_at_once() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.fs.write("/m/a", "1")
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    desk.storage.broken = lambda what, path: True
    with pytest.raises(StorageFailed, match="nothing was moved"):
        desk.fs.move("/m/a", "/m/b")
    assert desk.fs.list() == ["/m/a"]
    assert events == []
    desk.storage.broken = lambda what, path: False
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a": "1"}


@KINDS
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.spec("S1.8.17")
def test_a_child_that_cannot_be_moved_is_saved_at_its_new_place_later(
    kind: type[DictStorage], loaded: bool
) -> None:
    desk = Desk(kind())
    for name in "abc":
        desk.fs.write(f"/m/d/{name}", name)
    if not loaded:
        desk = Desk(desk.storage)
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    desk.storage.broken = lambda what, path: path == "e/b"
    with pytest.raises(StorageFailed, match="/m/d/b"):
        desk.fs.move("/m/d", "/m/e")
    assert [e for e in events if isinstance(e, FileMoved)]
    assert desk.fs.list() == ["/m/e/a", "/m/e/b", "/m/e/c"]
    assert desk.storage.contents() == {"e/a": "a", "d/b": "b", "e/c": "c"}
    assert desk.fs.stats().dirty == 1
    with pytest.raises(StorageFailed, match="/m/e/b"):
        desk.fs.flush()
    desk.storage.broken = lambda what, path: False
    desk.fs.flush()
    assert desk.storage.contents() == {"e/a": "a", "e/b": "b", "e/c": "c"}
    assert desk.fs.stats().dirty == 0


@pytest.mark.spec("S1.8.17")
def test_an_old_file_that_could_not_be_deleted_is_deleted_later() -> None:
    desk = Desk(DictStorage())
    desk.fs.write("/m/a", "x")
    desk.storage.broken = lambda what, path: what == "delete"
    desk.fs.move("/m/a", "/m/b")
    assert desk.storage.contents() == {"a": "x", "b": "x"}
    desk.storage.broken = lambda what, path: False
    desk.clock.pass_time(10)
    assert desk.storage.contents() == {"b": "x"}


@pytest.mark.spec("S1.8.17")
def test_a_file_written_where_an_old_one_is_to_be_deleted_stays() -> None:
    desk = Desk(DictStorage())
    desk.fs.write("/m/a", "x")
    desk.storage.broken = lambda what, path: what == "delete"
    desk.fs.move("/m/a", "/m/b")
    desk.storage.broken = lambda what, path: False
    desk.fs.write("/m/a", "new")
    desk.fs.flush()
    desk.clock.pass_time(100)
    assert desk.storage.contents() == {"a": "new", "b": "x"}


@pytest.mark.spec("S1.7.8")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/m/a", "/a"),
        ("/mem", "/m/mem"),
        ("/m/a", "/n/a"),
        ("/m", "/k"),
        ("/dir", "/m"),
        ("/dir", "/n/deep"),
        ("/above", "/other"),
    ],
)
def test_between_places_that_are_kept_differently_nothing_is_moved(old: str, new: str) -> None:
    storages = [RichStorage(), RichStorage(), RichStorage()]
    mounts = [Mount(b, s) for b, s in zip(["m", "n", "above/x"], storages, strict=True)]
    fs = FileSystem(("test", 1), mounts, clock=HandClock())
    fs.write("/m/a", "1")
    fs.write("/mem", "2")
    fs.write("/dir/f", "3")
    fs.write("/above/x/f", "4")
    before = fs.entries()
    kept = [dict(s.files) for s in storages]
    with pytest.raises(FileError):
        fs.move(old, new)
    assert [e.path for e in fs.entries()] == [e.path for e in before]
    assert [s.files for s in storages] == kept
