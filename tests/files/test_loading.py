"""Contents are read when they are asked for, once."""

from __future__ import annotations

import logging
import threading
import tracemalloc
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from sagents_nb.files import FileEntry, FileSystem, LimitExceeded, Mount, StorageFailed
from sagents_nb.files.entry import new_directory
from tests.files.doubles import Desk, DictStorage, RichStorage, stored
from tests.talking import PATIENCE


def desk_with(**files: str | bytes) -> Desk:
    storage = RichStorage()
    for name, content in files.items():
        storage.save("", stored(name.replace("__", "/") + ".md", content, title=name))
    storage.asked.clear()
    return Desk(storage)


@pytest.mark.spec("S1.8.5")
def test_opening_lists_and_reads_nothing() -> None:
    desk = desk_with(a="x", d__b="yy")
    assert desk.storage.asked == [("list", "")]
    entry = desk.fs.entries("/m/d/b.md")[0]
    assert (entry.loaded, entry.content, entry.size, entry.title) == (False, None, 2, "d__b")
    assert entry.persistence == "persisted"
    assert desk.fs.list() == ["/m/a.md", "/m/d/b.md"]
    assert desk.fs.exists("/m/d")
    assert desk.fs.stats().not_loaded == 2


@pytest.mark.spec("S1.8.5")
def test_a_file_is_read_once() -> None:
    desk = desk_with(a="x")
    assert desk.fs.read("/m/a.md").content == "x"
    assert desk.fs.read("/m/a.md").loaded
    assert desk.storage.count("load") == 1
    assert desk.fs.stats().not_loaded == 0


@pytest.mark.spec("S1.8.5")
def test_two_readers_at_once_read_once_and_hold_up_nobody_else() -> None:
    desk = desk_with(a="x", b="y")
    begun, go_on = threading.Event(), threading.Event()

    def slow(what: str, path: str) -> None:
        if path == "a.md":
            begun.set()
            assert go_on.wait(PATIENCE)

    desk.storage.during = slow
    results: list[object] = []
    readers = [
        threading.Thread(target=lambda: results.append(desk.fs.read("/m/a.md").content))
        for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    assert begun.wait(PATIENCE)
    # While the storage is at it, everything else goes on.
    assert desk.fs.read("/m/b.md").content == "y"
    desk.fs.write("/m/a.md", "newer")
    desk.fs.write("/mem.md", "z")
    assert len(desk.fs.list()) == 3
    go_on.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert results == ["newer", "newer"]
    assert desk.storage.count("load", "a.md") == 1
    assert desk.storage.faults == []


@pytest.mark.spec("S1.8.5")
def test_a_failed_read_is_an_error_and_the_next_may_work() -> None:
    desk = desk_with(a="x", b="y")
    desk.storage.broken = lambda what, path: path == "a.md"
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"/m/a\.md could not be read .*on fire"):
            desk.fs.read("/m/a.md")
    assert not desk.fs.entries("/m/a.md")[0].loaded
    assert desk.fs.read("/m/b.md").content == "y"
    desk.storage.broken = lambda what, path: False
    assert desk.fs.read("/m/a.md").content == "x"


def test_a_file_that_has_vanished_is_an_error_that_names_it() -> None:
    desk = desk_with(a="x")
    desk.storage.files.clear()
    with pytest.raises(StorageFailed, match=r"/m/a\.md .*reset"):
        desk.fs.read("/m/a.md")


def test_a_storage_that_gives_nothing_is_no_empty_file() -> None:
    class Forgetful(RichStorage):
        def load(self, scope: str, path: str) -> FileEntry:
            from msgspec.structs import replace

            return replace(super().load(scope, path), content=None)

    storage = Forgetful()
    storage.save("", stored("a.md", "x"))
    desk = Desk(storage)
    with pytest.raises(StorageFailed, match="gave no content"):
        desk.fs.read("/m/a.md")
    with pytest.raises(StorageFailed):
        desk.fs.edit("/m/a.md", lambda entry: "y")


@pytest.mark.spec("S1.8.5", "S1.7.4")
def test_an_edit_reads_first_and_keeps_what_describes_the_file() -> None:
    desk = desk_with(a="x", b="y")
    entry = desk.fs.edit("/m/a.md", lambda entry: f"{entry.content}!")
    assert (entry.content, entry.title) == ("x!", "a")
    replaced = desk.fs.write("/m/b.md", "z")
    assert (replaced.content, replaced.title) == ("z", "b")
    assert desk.storage.count("load", "b.md") == 0


@pytest.mark.spec("S1.8.5")
def test_contents_are_read_as_one_goes_and_what_cannot_be_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = desk_with(**{f"f{i}": str(i) for i in range(40)})
    desk.storage.broken = lambda what, path: path == "f7.md"
    with caplog.at_level(logging.WARNING):
        entries = list(desk.fs.contents("/m/f*.md"))
    assert [e.path for e in entries] == sorted(f"/m/f{i}.md" for i in range(40) if i != 7)
    assert all(e.path == f"/m/f{e.text}.md" for e in entries)
    assert "/m/f7.md" in caplog.text
    assert desk.storage.faults == []


def test_a_stored_name_that_is_no_virtual_path_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = DictStorage()
    for name in ("good.md", "a\\b.md", "nul.txt", "x/../../y", "good.md/below"):
        storage.files[name] = stored("x", "x", title=name)
        storage.files[name] = FileEntry(
            path=name,
            created_at=storage.files[name].created_at,
            modified_at=storage.files[name].modified_at,
        )
    with caplog.at_level(logging.WARNING):
        desk = Desk(storage)
    assert desk.fs.list() == ["/m/good.md"]
    assert "3 stored files of /m are left out" in caplog.text
    assert "/m/good.md/below was left out" in caplog.text
    caplog.clear()
    desk.fs.reset()
    assert "stored files" not in caplog.text


def test_limits_are_for_what_is_written_and_not_for_what_is_there() -> None:
    storage = RichStorage()
    storage.save("", stored("big", "x" * 100))
    storage.save("", stored("small", "x" * 10))
    desk = Desk(storage, max_file_size=50, max_total_size=60, max_entries=3)
    assert desk.fs.stats().size == 110
    with pytest.raises(LimitExceeded, match="larger max_file_size"):
        desk.fs.read("/m/big")
    desk.fs.write("/m/new", "x" * 40)
    desk.fs.write("/memory", "x" * 20)
    assert desk.fs.stats().size == 170
    with pytest.raises(
        LimitExceeded,
        match="61 bytes would have been written beside what was there before, over the limit of 60",
    ):
        desk.fs.write("/m/small", "x" * 11)
    with pytest.raises(LimitExceeded, match=r"3 files and .* beside what was there before"):
        desk.fs.write("/m/more", "")
    desk.fs.delete("/m/big")  # which was there, so it makes no room
    with pytest.raises(LimitExceeded):
        desk.fs.write("/memory", "x" * 21)
    desk.fs.delete("/m/new")
    desk.fs.write("/m/small", "x" * 50)
    desk.fs.write("/m/more", "")
    desk.fs.close()


def full_desk(**limits: int) -> Desk:
    """Over files that are larger than all limits, in a directory."""
    storage = RichStorage()
    storage.save("", replace(new_directory("d"), persistence="persisted"))
    for i in range(20):
        storage.save("", stored(f"d/{i}", "x" * 10))
    return Desk(storage, **{"max_total_size": 30, "max_entries": 5, **limits})


def test_what_was_there_may_be_read_changed_and_moved_whatever_it_comes_to() -> None:
    fs = full_desk().fs
    assert sum(len(entry.text or "") for entry in fs.contents()) == 200
    for i in range(20):
        fs.edit(f"/m/d/{i}", lambda entry: "y" * 10)
        fs.update_metadata(f"/m/d/{i}", {"seen": True})
    fs.move("/m/d", "/m/e")
    for i in range(20):
        fs.edit(f"/m/e/{i}", lambda entry: f"{entry.content}z")
        if i == 9:
            fs.write("/m/e/new", "n" * 20)
            with pytest.raises(LimitExceeded, match="31 bytes"):
                fs.edit("/m/e/10", lambda entry: f"{entry.content}z")
            fs.delete("/m/e/new")
    with pytest.raises(LimitExceeded, match="31 bytes"):
        fs.write("/m/e/new", "n" * 11)
    fs.write("/m/e/0", "")
    fs.write("/m/e/new", "n" * 11)
    assert fs.stats().size == 20 * 11 - 11 + 11


def test_what_was_there_and_was_deleted_can_be_restored() -> None:
    fs = full_desk().fs
    before = fs.snapshot()
    for i in range(20):
        fs.delete(f"/m/d/{i}")
    fs.delete("/m/d")
    fs.restore(before)
    assert len(fs.list("/m/d/*")) == 20
    fs.write("/new", "x" * 30)


def test_a_file_whose_storage_does_not_tell_its_size_was_there_all_the_same() -> None:
    class Vague(RichStorage):
        def list(self, scope: str) -> Iterable[FileEntry]:
            return [replace(entry, size=0) for entry in super().list(scope)]

    storage = Vague()
    storage.save("", stored("a", "x" * 100))
    desk = Desk(storage, max_total_size=30)
    assert desk.fs.read("/m/a").size == 100
    desk.fs.write("/m/b", "x" * 30)
    storage.save("", stored("c", "x" * 100))
    desk.fs.register(replace(stored("m/c", "x" * 100), content=None, loaded=False))
    assert desk.fs.read("/m/c").size == 100
    with pytest.raises(LimitExceeded, match="31 bytes"):
        desk.fs.write("/m/b", "x" * 31)


def test_after_a_reset_what_was_saved_was_there() -> None:
    fs = full_desk().fs
    fs.write("/m/d/new", "x" * 30)
    with pytest.raises(LimitExceeded):
        fs.write("/m/d/more", "x")
    fs.reset()
    fs.write("/m/d/more", "x" * 30)


@pytest.mark.spec("S1.8.5")
def test_what_is_not_read_needs_no_memory() -> None:
    class Large(DictStorage):
        """A gigabyte, made when it is asked for."""

        def list(self, scope: str) -> Iterable[FileEntry]:
            entry = stored("x", "")
            for i in range(1000):
                yield FileEntry(
                    path=f"{i}.bin",
                    size=1_000_000,
                    created_at=entry.created_at,
                    modified_at=entry.modified_at,
                )

        def load(self, scope: str, path: str) -> FileEntry:
            return stored(path, b"x" * 1_000_000)

    tracemalloc.start()
    fs = FileSystem(("big", 1), [Mount("m", Large())])
    used = tracemalloc.get_traced_memory()[0]
    assert fs.stats().size == 1_000_000_000
    assert len(fs.list()) == 1000
    fs.read("/m/7.bin")
    with_one = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < 2_000_000
    assert with_one < 4_000_000


def test_going_through_more_than_memory_may_hold_keeps_only_so_much() -> None:
    storage = RichStorage()
    for i in range(50):
        storage.save("", stored(f"{i:02}", "x" * 10))
    desk = Desk(storage, max_total_size=100)
    assert sum(len(e.text or "") for e in desk.fs.contents()) == 500
    assert desk.fs.stats().loaded == 10
    assert desk.fs.edit("/m/49", lambda e: f"{e.content}"[1:]).size == 9
