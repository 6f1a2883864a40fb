"""When what is written reaches its storage, and what happens when it does not."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

import sagents_nb
from sagents_nb.errors import StaleOwner
from sagents_nb.files import (
    FileEntry,
    FileError,
    FileSystem,
    FilesystemClosed,
    LimitExceeded,
    Mount,
    NotStorable,
    PathTaken,
    StorageFailed,
    WrongKind,
    filesystems,
    open_filesystem,
)
from sagents_nb.files.storages.disk import DiskStorage
from tests.files.doubles import Desk, DictStorage, RichStorage, stored
from tests.talking import PATIENCE


@pytest.mark.spec("S1.8.2")
def test_a_new_file_is_saved_at_once_with_the_directories_above_it() -> None:
    desk = Desk()
    desk.fs.write("/m/d/e/a.md", "x", title="A")
    assert desk.storage.contents() == {"d/e/a.md": "x"}
    assert desk.storage.files["d/e/a.md"].title == "A"
    assert desk.storage.files["d"].is_directory
    assert desk.storage.files["d/e"].is_directory
    desk.fs.mkdir("/m/f")
    assert desk.storage.files["f"].is_directory
    assert desk.fs.stats().dirty == 0


@pytest.mark.spec("S1.8.2")
def test_three_edits_in_a_window_are_one_save_of_the_last() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "0")
    for i in range(1, 4):
        desk.fs.write("/m/a.md", str(i))
        assert desk.fs.read("/m/a.md").content == str(i)
        desk.clock.pass_time(4.9)
        assert desk.storage.contents() == {"a.md": "0"}
    assert desk.fs.stats().dirty == 1
    desk.clock.pass_time(0.1)
    assert desk.storage.contents() == {"a.md": "3"}
    assert desk.storage.count("save") == 2
    assert desk.fs.stats().dirty == 0
    desk.clock.pass_time(100)
    assert desk.storage.count("save") == 2


@pytest.mark.spec("S1.8.2")
def test_every_file_has_its_own_time() -> None:
    desk = Desk()
    for name in "abc":
        desk.fs.write(f"/m/{name}", "0")
    for name in "abc":
        desk.fs.write(f"/m/{name}", "1")
        desk.clock.pass_time(2)
    assert desk.storage.contents() == {"a": "1", "b": "0", "c": "0"}
    desk.clock.pass_time(1)
    assert desk.storage.contents() == {"a": "1", "b": "1", "c": "0"}
    desk.clock.pass_time(2)
    assert desk.storage.contents() == {"a": "1", "b": "1", "c": "1"}


@pytest.mark.spec("S1.8.2")
def test_without_a_debounce_every_write_is_saved_when_it_returns() -> None:
    desk = Desk(debounce=0)
    for i in range(3):
        desk.fs.write("/m/a.md", str(i))
        assert desk.storage.contents() == {"a.md": str(i)}


@pytest.mark.spec("S1.8.7")
def test_flush_saves_all_that_waits_and_the_timers_are_gone() -> None:
    desk = Desk()
    for i in range(30):
        desk.fs.write(f"/m/{i}", "0")
        desk.fs.write(f"/m/{i}", "1")
    assert desk.fs.stats().dirty == 30
    desk.fs.flush()
    assert set(desk.storage.contents().values()) == {"1"}
    assert desk.fs.stats().dirty == 0
    saves = desk.storage.count("save")
    desk.clock.pass_time(100)
    desk.fs.flush()
    assert desk.storage.count("save") == saves


@pytest.mark.spec("S1.8.7")
def test_what_cannot_be_saved_is_named_waits_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for name in "abc":
        desk.fs.write(f"/m/{name}", "0")
        desk.fs.write(f"/m/{name}", "1")
    desk.storage.broken = lambda what, path: path == "b"
    with caplog.at_level(logging.WARNING), pytest.raises(StorageFailed, match=r"/m/b .*on fire"):
        desk.fs.flush()
    assert desk.storage.contents() == {"a": "1", "b": "0", "c": "1"}
    assert "/m/b could not be saved" in caplog.text
    assert desk.fs.stats().dirty == 1
    assert desk.fs.read("/m/b").content == "1"
    desk.storage.broken = lambda what, path: False
    desk.fs.flush()
    assert desk.storage.contents()["b"] == "1"
    assert desk.fs.stats().dirty == 0


@pytest.mark.spec("S1.8.7")
def test_an_edit_tries_again_too() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.storage.broken = lambda what, path: what == "save"
    desk.fs.write("/m/a", "1")
    desk.clock.pass_time(1000)
    tries = desk.storage.count("save")
    desk.fs.write("/m/a", "2")
    desk.storage.broken = lambda what, path: False
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a": "2"}
    assert desk.storage.count("save") == tries + 1


@pytest.mark.spec("S1.8.7")
def test_a_failed_save_is_tried_five_times_more_and_then_waits_for_a_flush() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.storage.broken = lambda what, path: what == "save"
    desk.fs.write("/m/a", "1")
    desk.storage.asked.clear()
    times = []
    for _ in range(400):
        before = desk.storage.count("save")
        desk.clock.pass_time(1)
        times += [desk.clock.time] * (desk.storage.count("save") - before)
    assert times == [5, 10, 20, 40, 80, 160]
    assert desk.fs.stats().dirty == 1
    desk.storage.broken = lambda what, path: False
    desk.fs.flush()
    assert desk.storage.contents() == {"a": "1"}


def test_where_the_files_are_somebody_elses_by_now_nothing_waits_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for name in "ab":
        desk.fs.write(f"/m/{name}", "0")
        desk.fs.write(f"/m/{name}", "1")

    def taken(what: str, path: str) -> bool:
        raise StaleOwner("Another process has it; open it again.")

    desk.storage.broken = taken
    with pytest.raises(StorageFailed, match=r"^Another process has it; open it again\.$"):
        desk.fs.flush()
    asked = len(desk.storage.asked)
    desk.clock.pass_time(1000)
    desk.fs.flush()
    with pytest.raises(StorageFailed, match=r"^Another process has it"):
        desk.fs.write("/m/c", "2")
    desk.clock.pass_time(1000)
    assert desk.fs.stats().dirty == 0
    assert len(desk.storage.asked) <= asked + 1
    assert desk.storage.contents() == {"a": "0", "b": "0"}
    assert caplog.text == ""


@pytest.mark.spec("S1.8.7")
def test_a_new_file_that_cannot_be_saved_is_an_error_and_is_kept() -> None:
    desk = Desk()
    desk.storage.broken = lambda what, path: path == "a.md"
    with pytest.raises(StorageFailed, match=r"/m/a\.md could not be saved .*kept in memory"):
        desk.fs.write("/m/a.md", "x")
    assert desk.fs.read("/m/a.md").content == "x"
    assert desk.fs.stats().dirty == 1
    desk.storage.broken = lambda what, path: False
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a.md": "x"}


class Picky(RichStorage):
    """One that refuses what it can never keep."""

    def save(self, scope: str, entry: FileEntry) -> None:
        if "A" in entry.path or "bad" in entry.custom:
            raise PathTaken("a.md is there already")
        super().save(scope, entry)

    def save_metadata(self, scope: str, entry: FileEntry) -> None:
        if "bad" in entry.custom:
            raise NotStorable("no JSON")
        super().save_metadata(scope, entry)


@pytest.mark.spec("S1.8.15")
def test_what_a_storage_can_never_keep_is_refused_and_not_kept() -> None:
    desk = Desk(Picky())
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    with pytest.raises(NotStorable, match=r"/m/A\.md cannot be kept there: a\.md is there already"):
        desk.fs.write("/m/A.md", "x")
    assert (desk.fs.list(), desk.fs.stats().dirty, events) == ([], 0, [])
    desk.fs.write("/m/a.md", "x", custom={"good": 1})
    events.clear()
    with pytest.raises(NotStorable, match="no JSON"):
        desk.fs.update_metadata("/m/a.md", {"bad": object()})
    assert desk.fs.read("/m/a.md").custom == {"good": 1}
    assert events == []
    desk.fs.flush()
    assert desk.storage.files["a.md"].custom == {"good": 1}
    desk.fs.close()


@pytest.mark.spec("S1.8.11")
def test_a_refused_file_takes_the_directories_that_were_made_for_it_along() -> None:
    desk = Desk(Picky())
    desk.fs.write("/m/d/a.md", "x")
    desk.fs.delete("/m/d")  # is there only because of the file in it
    before = desk.fs.entries("/m/**"), dict(desk.storage.files)
    for path in ("/m/new/sub/A.md", "/m/A/new.md", "/m/d/A.md", "/m/d/sub/A.md"):
        with pytest.raises(NotStorable):
            desk.fs.write(path, "x")
        with pytest.raises(NotStorable):
            desk.fs.mkdir(path)
    assert [e.path for e in desk.fs.entries("/m/**")] == [e.path for e in before[0]]
    with pytest.raises(WrongKind, match="only because of the files in it"):
        desk.fs.delete("/m/d")
    assert desk.storage.files == before[1]
    assert desk.fs.stats().dirty == 0


def test_a_directory_that_somebody_else_has_used_meanwhile_stays() -> None:
    class Shared(Picky):
        """While it looks at the one file, another is written beside it."""

        def save(self, scope: str, entry: FileEntry) -> None:
            if entry.path == "new/A.md":
                desk.fs.write("/m/new/b.md", "y")
            super().save(scope, entry)

    desk = Desk(Shared())
    with pytest.raises(NotStorable):
        desk.fs.write("/m/new/A.md", "x")
    assert sorted(desk.storage.files) == ["new", "new/b.md"]
    assert desk.fs.stats().dirty == 0
    desk.fs.delete("/m/new/b.md")
    assert [e.path for e in desk.fs.entries("/m/*")] == ["/m/new"]


def test_a_file_is_kept_where_the_directory_above_it_cannot_be() -> None:
    class Flat(RichStorage):
        """One that has names with "/" in them and no directories."""

        def save(self, scope: str, entry: FileEntry) -> None:
            if entry.is_directory:
                raise NotStorable("there are no directories here")
            super().save(scope, entry)

    desk = Desk(Flat())
    desk.fs.write("/m/d/e/a.md", "x")
    desk.fs.move("/m/d/e/a.md", "/m/f/g/a.md")
    assert desk.storage.contents() == {"f/g/a.md": "x"}
    assert [e.path for e in desk.fs.entries("/m/**")] == ["/m/f", "/m/f/g", "/m/f/g/a.md"]
    desk.fs.delete("/m/f/g/a.md")
    assert desk.fs.entries("/m/**") == []
    desk.fs.close()


def test_a_refused_change_writes_nothing_over_what_another_program_made_since() -> None:
    class Full(RichStorage):
        def save(self, scope: str, entry: FileEntry) -> None:
            if entry.content == "too much":
                raise LimitExceeded("it is too large")
            super().save(scope, entry)

    desk = Desk(Full(), debounce=0)
    desk.fs.write("/m/a.md", "ours")
    desk.storage.files["a.md"] = stored("a.md", "theirs")
    with pytest.raises(NotStorable):
        desk.fs.write("/m/a.md", "too much")
    assert desk.fs.read("/m/a.md").content == "ours"
    assert desk.fs.stats().dirty == 0
    desk.clock.pass_time(1000)
    desk.fs.flush()
    assert desk.storage.contents() == {"a.md": "theirs"}


def test_a_refused_change_leaves_what_waits_waiting() -> None:
    desk = Desk(Picky())
    desk.fs.write("/m/a.md", "0")
    desk.fs.write("/m/a.md", "1")
    with pytest.raises(NotStorable):
        desk.fs.update_metadata("/m/a.md", {"bad": object()})
    assert desk.fs.stats().dirty == 1
    desk.fs.flush()
    assert desk.storage.contents() == {"a.md": "1"}


def test_what_was_in_memory_where_a_storage_cannot_keep_it_can_be_deleted(tmp_path: Path) -> None:
    fs = FileSystem(("test", 1))
    fs.write("/.sagents/a.md", "x")
    with pytest.raises(StorageFailed):
        fs.mount(Mount(default=True, storage=DiskStorage(tmp_path, fsync=False)))
    fs.delete("/.sagents/a.md")
    fs.delete("/.sagents")
    assert fs.entries() == []
    fs.close()


def test_what_could_not_be_saved_yet_is_told_all_the_same() -> None:
    desk = Desk()
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    desk.storage.broken = lambda what, path: True
    with pytest.raises(StorageFailed):
        desk.fs.write("/m/a.md", "x")
    assert [e.path for e in events] == ["/m/a.md"]  # it is there to be read
    desk.storage.broken = lambda what, path: False
    desk.fs.flush()


@pytest.mark.spec("S1.8.9")
def test_delete_is_done_at_once_and_no_timer_brings_the_file_back() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "0")
    desk.fs.write("/m/a.md", "1")
    desk.fs.delete("/m/a.md")
    assert desk.storage.contents() == {}
    desk.clock.pass_time(100)
    desk.fs.flush()
    assert desk.storage.contents() == {}
    assert desk.storage.count("save") == 1
    desk.fs.write("/m/a.md", "new life")
    assert desk.storage.contents() == {"a.md": "new life"}


@pytest.mark.spec("S1.8.9", "S1.8.15")
def test_a_file_that_its_storage_cannot_delete_stays_with_what_waits() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "0")
    desk.fs.write("/m/a.md", "1")
    events: list[Any] = []
    desk.fs.subscribe(events.append)
    desk.storage.broken = lambda what, path: what == "delete"
    with pytest.raises(StorageFailed, match=r"could not be deleted .*still there"):
        desk.fs.delete("/m/a.md")
    assert events == []
    assert desk.fs.read("/m/a.md").content == "1"
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a.md": "1"}


@pytest.mark.spec("S1.8.12")
@pytest.mark.parametrize(("kind", "call"), [(RichStorage, "save_metadata"), (DictStorage, "save")])
def test_what_describes_a_file_is_saved_at_once(kind: type[DictStorage], call: str) -> None:
    desk = Desk(kind())
    desk.fs.write("/m/a.md", "x", custom={"a": 1})
    desk.storage.asked.clear()
    desk.fs.update_metadata("/m/a.md", {"b": 2})
    desk.fs.update_entry("/m/a.md", title="A")
    assert desk.storage.asked == [(call, "a.md")] * 2
    kept = desk.storage.files["a.md"]
    assert (kept.custom, kept.title, kept.content) == ({"a": 1, "b": 2}, "A", "x")


@pytest.mark.spec("S1.8.12")
@pytest.mark.parametrize("kind", [RichStorage, DictStorage])
def test_what_describes_an_unread_file_is_saved_with_its_content(kind: type[DictStorage]) -> None:
    storage = kind()
    storage.save("", stored("a.md", "x"))
    desk = Desk(storage)
    desk.fs.update_entry("/m/a.md", title="A")
    assert (storage.files["a.md"].title, storage.files["a.md"].content) == ("A", "x")
    assert not desk.fs.entries("/m/a.md")[0].loaded
    assert (desk.fs.read("/m/a.md").content, desk.fs.read("/m/a.md").title) == ("x", "A")


@pytest.mark.spec("S1.8.12")
def test_an_update_that_changes_nothing_saves_nothing() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "x", title="A", custom={"k": 1})
    desk.fs.write("/m/a.md", "y")
    desk.storage.asked.clear()
    desk.fs.update_entry("/m/a.md", title="A", file_type="markdown")
    desk.fs.update_metadata("/m/a.md", {"k": 1})
    assert desk.storage.asked == []


@pytest.mark.spec("S1.8.12")
def test_a_debounced_description_is_saved_later_and_alone() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "x")
    desk.storage.asked.clear()
    desk.fs.update_metadata("/m/a.md", {"a": 1}, persist="debounce")
    desk.fs.update_entry("/m/a.md", title="A", persist="debounce")
    desk.clock.pass_time(4)
    assert desk.storage.asked == []
    desk.clock.pass_time(1)
    assert desk.storage.asked == [("save_metadata", "a.md")]
    assert desk.storage.files["a.md"].custom == {"a": 1}


@pytest.mark.spec("S1.8.12")
@pytest.mark.parametrize("content_first", [True, False])
def test_content_and_description_together_are_one_full_save(content_first: bool) -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "x")
    desk.storage.asked.clear()
    if content_first:
        desk.fs.write("/m/a.md", "y")
        desk.fs.update_metadata("/m/a.md", {"a": 1})
    else:
        desk.fs.update_metadata("/m/a.md", {"a": 1}, persist="debounce")
        desk.fs.write("/m/a.md", "y")
    desk.clock.pass_time(100)
    assert desk.storage.asked == [("save", "a.md")]
    kept = desk.storage.files["a.md"]
    assert (kept.content, kept.custom) == ("y", {"a": 1})


def test_a_word_that_is_no_time_to_save_is_an_error() -> None:
    desk = Desk()
    desk.fs.write("/m/a.md", "x")
    with pytest.raises(FileError, match="persist is 'now' or 'debounce'"):
        desk.fs.update_metadata("/m/a.md", {"a": 1}, persist="later")  # type: ignore[arg-type]


@pytest.mark.spec("S1.8.2")
def test_what_is_written_during_a_save_is_saved_after_it() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")

    def write_meanwhile(what: str, path: str) -> None:
        desk.storage.during = lambda what, path: None
        desk.fs.write("/m/a", "2")

    desk.fs.write("/m/a", "1")
    desk.storage.during = write_meanwhile
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a": "1"}
    assert desk.fs.stats().dirty == 1
    desk.clock.pass_time(5)
    assert desk.storage.contents() == {"a": "2"}


def test_an_older_save_never_lands_after_a_newer() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.fs.write("/m/a", "1")
    begun, go_on = threading.Event(), threading.Event()

    def slow(what: str, path: str) -> None:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE)

    desk.storage.during = slow
    older = threading.Thread(target=desk.fs.flush)
    older.start()
    assert begun.wait(PATIENCE)
    desk.fs.write("/m/a", "2")
    newer = threading.Thread(target=desk.fs.flush)
    newer.start()
    newer.join(0.05)
    assert newer.is_alive()  # it waits for the older one
    go_on.set()
    older.join(PATIENCE)
    newer.join(PATIENCE)
    assert desk.storage.contents() == {"a": "2"}
    assert desk.storage.faults == []


def test_a_storage_that_calls_its_own_filesystem_is_told_and_does_not_hang() -> None:
    desk = Desk()
    desk.storage.during = lambda what, path: desk.fs.delete("/m/a") if what == "save" else None
    with pytest.raises(StorageFailed, match="called its own filesystem"):
        desk.fs.write("/m/a", "x")
    desk.storage.during = lambda what, path: None
    desk.fs.flush()
    assert desk.storage.contents() == {"a": "x"}


@pytest.mark.spec("S1.8.7")
def test_close_saves_all_and_stays_open_when_it_cannot() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.fs.write("/m/a", "1")
    desk.storage.broken = lambda what, path: True
    with pytest.raises(StorageFailed):
        desk.fs.close()
    assert desk.fs.read("/m/a").content == "1"
    desk.storage.broken = lambda what, path: False
    desk.fs.close()
    desk.fs.close()
    assert desk.storage.contents() == {"a": "1"}
    with pytest.raises(FilesystemClosed):
        desk.fs.read("/m/a")


@pytest.mark.spec("S1.8.7")
def test_the_registry_closes_with_a_flush() -> None:
    storage = RichStorage()
    fs = open_filesystem(("test", "closing"), [Mount("m", storage, debounce=1000)])
    fs.write("/m/a", "0")
    fs.write("/m/a", "1")
    storage.broken = lambda what, path: True
    with pytest.raises(StorageFailed):
        filesystems.close(("test", "closing"))
    assert filesystems.get(("test", "closing")) is fs
    storage.broken = lambda what, path: False
    filesystems.close(("test", "closing"))
    assert storage.contents() == {"a": "1"}
    assert filesystems.get(("test", "closing")) is None


@pytest.mark.spec("S1.8.2")
def test_the_real_clock_saves_by_itself() -> None:
    storage = RichStorage()
    saved = threading.Event()
    fs = FileSystem(("test", "clock"), [Mount("m", storage, debounce=0.01)])
    fs.write("/m/a", "0")
    storage.during = lambda what, path: saved.set()
    fs.write("/m/a", "1")
    assert saved.wait(PATIENCE)
    fs.flush()
    assert storage.contents() == {"a": "1"}


@pytest.mark.spec("S1.8.7")
def test_what_waits_is_saved_when_nobody_holds_the_filesystem_any_more() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "0")
    desk.fs.write("/m/a", "1")
    storage, clock = desk.storage, desk.clock
    del desk
    gc.collect()
    clock.pass_time(5)
    assert storage.contents() == {"a": "1"}


@pytest.mark.spec("S1.8.7")
def test_the_end_of_the_process_saves_what_waits(tmp_path: Path) -> None:
    code = """
import pathlib, sys, sagents_nb as sa
from tests.files.doubles import RichStorage

class Kept(RichStorage):
    def save(self, scope, entry):
        pathlib.Path(sys.argv[1], entry.path).write_text(entry.content)

fs = sa.open_filesystem(("test", 1), [sa.Mount("m", Kept(), debounce=3600)])
for i in range(20):
    fs.write(f"/m/{i}", "old")
    fs.write(f"/m/{i}", "new")
"""
    root = Path(sagents_nb.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=root)
    assert {p.read_text() for p in tmp_path.iterdir()} == {"new"}
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.spec("S1.8.7")
def test_a_storage_that_hangs_or_fails_does_not_hold_up_the_end_of_the_process() -> None:
    code = """
import threading, time, sagents_nb as sa, sagents_nb.files.saving as saving
from tests.files.doubles import RichStorage

saving.PATIENCE = 0.5
storage = RichStorage()
fs = sa.open_filesystem(("test", 1), [sa.Mount("m", storage, debounce=3600)])
for name in ("hangs", "fails"):
    fs.write(f"/m/{name}", "old")
    fs.write(f"/m/{name}", "new")
storage.during = lambda what, path: path == "hangs" and time.sleep(3600)
storage.broken = lambda what, path: path == "fails"
threading.Thread(target=fs.flush, daemon=True).start()
while ("save", "hangs") not in storage.asked[3:]:
    time.sleep(0.01)
"""
    root = Path(sagents_nb.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Not saved before the process ended: /m/fails, /m/hangs" in done.stderr


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_what_waits_is_saved_when_a_child_of_multiprocessing_ends(
    tmp_path: Path, method: str
) -> None:
    script = f"""
        import multiprocessing
        import sagents_nb as sa

        def work(path):
            mount = sa.Mount("data", sa.DiskStorage(path, fsync=False), debounce=60)
            fs = sa.open_filesystem(("user", 1), [mount])
            fs.write("/data/a.md", "one")
            fs.write("/data/a.md", "two")

        if __name__ == "__main__":
            child = multiprocessing.get_context({method!r}).Process(
                target=work, args=({str(tmp_path / "files")!r},)
            )
            child.start()
            child.join()
            raise SystemExit(child.exitcode)
    """
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(script))
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, str(program)], env=env, check=True, timeout=PATIENCE)
    assert (tmp_path / "files" / "a.md").read_text() == "two"
