"""Somebody else works on the files of a mount: it is seen, and never overwritten unseen."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.events import FileDeleted, FileUpdated
from sagents_nb.files import (
    FileChanged,
    FileError,
    FileMissing,
    FileSystem,
    FsspecStorage,
    Mount,
    PathTaken,
    SQLStorage,
    StorageFailed,
)
from sagents_nb.files.entry import new_file
from sagents_nb.files.patterns import matching
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.middleware import FileSystem as FileTools
from tests.files.doubles import HandClock
from tests.talking import PATIENCE, agent_of, call, results


class OnlyVersion:
    """A storage of somebody's own: it tells versions and knows no more."""

    def __init__(self, storage: DiskStorage) -> None:
        self.list, self.load = storage.list, storage.load
        self.save, self.delete, self.version = storage.save, storage.delete, storage.version


class Other:
    """Somebody else who works in the same place."""

    def __init__(self, kind: str, place: Path) -> None:
        self.kind, self.place = kind, place
        self.storage: Any = self.opened()

    def opened(self) -> Any:
        if self.kind == "sql":
            return SQLStorage(f"sqlite:///{self.place}/files.db")
        if self.kind == "fsspec":
            return FsspecStorage(f"memory://{self.place.name}")
        disk = DiskStorage(self.place / "files", fsync=False)
        return OnlyVersion(disk) if self.kind == "only versions" else disk

    def write(self, name: str, text: str) -> None:
        self.storage.save("user:1", new_file(name, text))

    def delete(self, name: str) -> None:
        self.storage.delete("user:1", name)

    def read(self, name: str) -> str:
        return str(self.storage.load("user:1", name).content)


@pytest.fixture(params=["disk", "only versions", "sql", "fsspec"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Other:
    return Other(request.param, tmp_path)


@pytest.fixture
def opened(other: Other) -> Iterator[Callable[..., FileSystem]]:
    made: list[FileSystem] = []

    def open(debounce: float = 0.0) -> FileSystem:
        mount = Mount(default=True, storage=other.opened(), debounce=debounce)
        made.append(FileSystem(("user", 1), [mount]))
        return made[-1]

    yield open
    for fs in made:
        with suppress(StorageFailed):
            fs.close()


Opened = Callable[..., FileSystem]


def test_a_read_sees_the_new_text_and_tells_of_it(other: Other, opened: Opened) -> None:
    other.write("a.md", "one\ntwo\n")
    fs = opened()
    assert fs.read("/a.md").content == "one\ntwo\n"
    heard: list[Any] = []
    fs.subscribe(heard.append)
    other.write("a.md", "one\ntwo\nthree\n")
    assert fs.read("/a.md").content == "one\ntwo\nthree\n"
    assert [type(event) for event in heard] == [FileUpdated]
    assert heard[0].entry["size"] == 14
    other.write("a.md", "four\n")
    assert fs.read_lines("/a.md") == (["four"], 1)
    other.write("a.md", "five\n")
    assert [entry.content for entry in fs.contents()] == ["five\n"]
    assert fs.read("/a.md") is fs.read("/a.md")
    assert fs.stats().size == 5


def test_whoever_goes_through_the_files_may_use_them_meanwhile(
    other: Other, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.files.filesystem.READ_AHEAD", 2)
    for name in ("a.md", "b.md", "c.md"):
        other.write(name, name)
    fs = opened()
    for name in ("/a.md", "/b.md"):
        fs.read(name)
    for entry in fs.contents():
        assert fs.read(entry.path).content == entry.name


def test_of_many_files_those_that_were_changed_or_deleted_are_found(
    other: Other, opened: Opened
) -> None:
    for number in range(30):
        other.write(f"d/{number}.md", "old")
    fs = opened()
    assert [entry.text for entry in fs.contents()] == ["old"] * 30
    other.write("d/7.md", "new one")
    other.delete("d/8.md")
    found = {entry.name: entry.text for entry in fs.contents()}
    assert found.pop("7.md") == "new one"
    assert found == {f"{number}.md": "old" for number in range(30) if number not in (7, 8)}


def test_what_others_change_is_found_in_mounts_within_mounts(tmp_path: Path) -> None:
    roots = {None: tmp_path / "rest", "a": tmp_path / "a", "a/b": tmp_path / "inner"}
    for root in roots.values():
        for name in ("1.md", "d/2.md", "d/e/3.md"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("old")
    fs = FileSystem(
        mounts=[
            Mount(base, DiskStorage(root, fsync=False), default=base is None)
            for base, root in roots.items()
        ]
    )
    assert [entry.text for entry in fs.contents()] == ["old"] * 9
    for base, root in roots.items():
        for name in ("1.md", "d/e/3.md"):
            (root / name).write_text(f"new in {base}")
            found = [entry for entry in fs.contents() if entry.text != "old"]
            path = f"/{base}/{name}" if base else f"/{name}"
            assert [(entry.path, entry.text) for entry in found] == [(path, f"new in {base}")]
            assert fs.read(path).text == f"new in {base}"
            (root / name).write_text("old")


def test_a_storage_that_can_is_asked_for_the_versions_of_all_files_at_once(
    other: Other, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        other.write(f"d/{number}.md", "old")
    fs = opened()
    assert len(list(fs.contents())) == 30
    storage: Any = fs.mounts[0].storage
    asked: list[int] = []
    if not (ask := getattr(storage, "versions", None)):
        pytest.skip("it is asked for one at a time")
    monkeypatch.setattr(storage, "version", lambda *_: pytest.fail("asked for one"))
    monkeypatch.setattr(
        storage, "versions", lambda scope, paths: asked.append(len(paths)) or ask(scope, paths)
    )
    assert len(list(fs.contents())) == 30
    assert asked == [30]


def test_a_file_that_cannot_be_read_anew_is_left_out_of_a_search_and_named(
    other: Other, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md"):
        other.write(name, "old")
    fs = opened()
    assert len(list(fs.contents())) == 2
    other.write("a.md", "new one")
    storage: Any = fs.mounts[0].storage
    monkeypatch.setattr(storage, "load", lambda *_: 1 / 0)
    failed: dict[str, FileError] = {}
    assert [entry.path for entry in fs.contents(failed=failed)] == ["/b.md"]
    assert "/a.md was changed by somebody else and could not be read anew" in str(failed["/a.md"])
    assert [entry.path for entry in fs.contents()] == ["/b.md"]


def test_files_whose_versions_cannot_be_asked_for_are_taken_to_be_as_they_were(
    other: Other, opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.md", "b.md"):
        other.write(name, "old")
    fs = opened()
    assert [entry.text for entry in fs.contents()] == ["old", "old"]
    other.write("a.md", "new one")
    for name in ("version", "versions"):
        if hasattr(fs.mounts[0].storage, name):
            monkeypatch.setattr(fs.mounts[0].storage, name, lambda *_: 1 / 0)
    assert [entry.text for entry in fs.contents()] == ["old", "old"]
    assert "ZeroDivisionError" in caplog.text


def test_a_file_that_was_put_there_since_it_was_listed_is_found(
    other: Other, opened: Opened
) -> None:
    fs = opened()
    assert fs.list() == []
    other.write("notes/new.md", "new")
    assert fs.read("/notes/new.md").content == "new"
    assert fs.list() == ["/notes/new.md"]


def test_a_file_that_somebody_deleted_is_gone(other: Other, opened: Opened) -> None:
    other.write("a.md", "a")
    fs = opened()
    fs.read("/a.md")
    heard: list[Any] = []
    fs.subscribe(heard.append)
    other.delete("a.md")
    with pytest.raises(FileMissing):
        fs.read("/a.md")
    assert [type(event) for event in heard] == [FileDeleted]
    assert fs.list() == []
    fs.write("/a.md", "again")
    assert other.read("a.md") == "again"


@pytest.mark.parametrize("debounce", [0.0, 60.0])
def test_an_edit_is_one_of_the_new_text(other: Other, opened: Opened, debounce: float) -> None:
    other.write("a.md", "one\n")
    fs = opened(debounce)
    fs.read("/a.md")
    other.write("a.md", "one\ntwo, of a person\n")
    fs.edit("/a.md", lambda entry: str(entry.content).replace("one", "ONE"))
    fs.flush()
    assert other.read("a.md") == "ONE\ntwo, of a person\n"


@pytest.mark.parametrize("debounce", [0.0, 60.0])
def test_a_write_over_what_was_not_read_is_refused_once_it_is_known(
    other: Other, opened: Opened, debounce: float
) -> None:
    other.write("a.md", "one")
    fs = opened(debounce)
    fs.read("/a.md")
    other.write("a.md", "of a person")
    with pytest.raises(FileChanged, match=r"/a\.md was changed by somebody else .* read it again"):
        fs.write("/a.md", "mine")
    other.write("a.md", "of a person, again")
    with pytest.raises(FileChanged):
        fs.delete("/a.md")
    fs.flush()
    assert other.read("a.md") == "of a person, again"
    assert fs.read("/a.md").content == "of a person, again"
    fs.write("/a.md", "both")
    fs.flush()
    assert other.read("a.md") == "both"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_new_file_takes_the_place_of_nobodys(
    other: Other, opened: Opened, overwrite: bool
) -> None:
    fs = opened()
    other.write("a.md", "of a person")
    with pytest.raises(FileChanged):
        fs.write("/a.md", "mine", overwrite=overwrite)
    assert other.read("a.md") == fs.read("/a.md").content == "of a person"
    with pytest.raises(PathTaken):
        fs.write("/a.md", "mine", overwrite=False)
    fs.write("/b.md", "b")
    other.write("c.md", "of a person")
    with pytest.raises(FileError):
        fs.move("/b.md", "/c.md")
    assert other.read("c.md") == "of a person"
    assert other.read("b.md") == "b"


def test_an_edit_that_waits_to_be_saved_does_not_overwrite_what_came_meanwhile(
    other: Other, opened: Opened
) -> None:
    other.write("a.md", "one")
    fs = opened(60.0)
    fs.edit("/a.md", lambda entry: "mine")
    other.write("a.md", "of a person")
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"/a\.md was changed by .* not saved; it is kept"):
            fs.flush()
    assert other.read("a.md") == "of a person"
    assert fs.read("/a.md").content == "mine"
    for change in (
        lambda: fs.write("/a.md", "again"),
        lambda: fs.edit("/a.md", lambda entry: "again"),
        lambda: fs.move("/a.md", "/b.md"),
        lambda: fs.delete("/a.md"),
    ):
        with pytest.raises(FileChanged, match="is not saved"):
            change()
    assert fs.read("/a.md").content == "mine"
    assert fs.reload("/a.md").content == "of a person"
    fs.flush()
    fs.edit("/a.md", lambda entry: f"{entry.content} and mine")
    fs.flush()
    assert other.read("a.md") == "of a person and mine"


def test_a_save_in_the_background_that_would_overwrite_is_logged_and_not_tried_again(
    other: Other, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    mount = Mount(default=True, storage=other.opened(), debounce=5.0)
    other.write("a.md", "one")
    fs = FileSystem(("user", 1), [mount], clock=clock)
    fs.edit("/a.md", lambda entry: "mine")
    other.write("a.md", "of a person")
    for _ in range(9):
        clock.pass_time(60.0)
    assert caplog.text.count("/a.md was changed by somebody else") == 1
    assert other.read("a.md") == "of a person"
    assert fs.read("/a.md").content == "mine"


def test_an_edit_of_a_file_that_somebody_deleted_meanwhile_is_saved(
    other: Other, opened: Opened
) -> None:
    other.write("a.md", "one")
    fs = opened(60.0)
    fs.edit("/a.md", lambda entry: "mine")
    other.delete("a.md")
    fs.edit("/a.md", lambda entry: f"{entry.content} still")
    fs.flush()
    assert other.read("a.md") == "mine still"


def test_what_is_moved_is_still_known(other: Other, opened: Opened) -> None:
    other.write("d/a.md", "one")
    fs = opened()
    fs.read("/d/a.md")
    fs.move("/d", "/e")
    entry = fs.read("/e/a.md")
    assert fs.read("/e/a.md") is entry or other.kind == "fsspec"
    other.write("e/a.md", "of a person")
    fs.edit("/e/a.md", lambda entry: f"{entry.content} and mine")
    assert other.read("e/a.md") == "of a person and mine"


def test_what_we_write_ourselves_is_nobody_elses(other: Other, opened: Opened) -> None:
    fs = opened()
    for n in range(5):
        fs.write("/a.md", str(n))
        fs.update_metadata("/a.md", {"n": n})
        assert fs.read("/a.md").content == str(n)
        fs.edit("/a.md", lambda entry: f"{entry.content}!")
    fs.move("/a.md", "/b.md")
    fs.write("/b.md", "end")
    fs.delete("/b.md")
    fs.write("/b.md", "anew")
    assert other.read("b.md") == "anew"


def test_the_model_is_told_and_sees_what_the_person_wrote(other: Other, opened: Opened) -> None:
    other.write("a.md", "one\n")
    fs = opened(60.0)

    def person(request: Any) -> Any:
        other.write("a.md", "one\nof a person\n")
        return call("edit_file", "c3", file_path="/a.md", old_string="mine", new_string="more")

    agent = agent_of(
        call("read_file", "c1", file_path="/a.md"),
        call("edit_file", "c2", file_path="/a.md", old_string="one", new_string="one\nmine"),
        person,
        call("read_file", "c4", file_path="/a.md"),
        call("edit_file", "c5", file_path="/a.md", old_string="one\n", new_string="one\nmine\n"),
        "done",
        middleware=[FileTools()],
    )
    session = sa.Session(agent, filesystem=fs)
    session.send("go").result()
    _, _, told, read, _ = results(session.state)
    assert "was changed by somebody else, and nothing of yours was written over" in told
    assert "of a person" in read
    fs.flush()
    assert other.read("a.md") == "one\nmine\nof a person\n"


def append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def test_an_edit_reported_as_done_stays_until_the_model_was_told_that_it_is_not_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    fs = FileSystem(None, [Mount("d", DiskStorage(tmp_path, fsync=False), debounce=60.0)])
    seen: list[Any] = []

    def person(request: Any) -> Any:
        append(file, "of a person\n")
        return edit("two")

    def edit(word: str) -> Any:
        return call(
            "edit_file", f"e{word}", file_path="/d/a.txt", old_string=word, new_string=word.upper()
        )

    def looking(then: Any) -> Callable[[Any], Any]:
        def look(request: Any) -> Any:
            with pytest.raises(StorageFailed, match=r"/d/a\.txt was changed by somebody else"):
                fs.flush()
            seen.append(fs.read("/d/a.txt").content)
            return then

        return look

    agent = agent_of(
        edit("one"),
        person,
        looking(edit("three")),
        looking(call("read_file", "r", file_path="/d/a.txt")),
        call("edit_file", "again", file_path="/d/a.txt", old_string="one", new_string="ONE"),
        "done",
        middleware=[FileTools()],
    )
    session = sa.Session(agent, filesystem=fs)
    session.send("go").result()
    done, told, again, read, anew = results(session.state)
    assert "Replaced" in done
    for refusal in (told, again):
        assert "nothing of yours was written over" in refusal
        assert "earlier changes of /d/a.txt, though reported as done, are not saved" in refusal
        assert "read_file takes what they wrote and drops yours" in refusal
    assert seen == ["ONE\ntwo\nthree\n"] * 2
    assert read.startswith("/d/a.txt as somebody else wrote it; what was not saved is dropped.\n")
    assert "of a person" in read
    assert "ONE" not in read
    assert "/d/a.txt: changes that were not saved are dropped" in caplog.text
    assert "Replaced" in anew
    fs.flush()
    assert file.read_text() == "ONE\ntwo\nthree\nof a person\n"


def test_a_model_that_cannot_read_goes_on_from_what_they_wrote_when_it_tries_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    fs = FileSystem(None, [Mount("d", DiskStorage(tmp_path, fsync=False), debounce=60.0)])

    def edit(id: str, old: str, new: str) -> Any:
        return call("edit_file", id, file_path="/d/a.txt", old_string=old, new_string=new)

    def person(request: Any) -> Any:
        append(file, "of a person\n")
        return edit("b", "two", "TWO")

    turns = (edit("a", "one", "ONE"), person, edit("c", "two", "TWO"), "done")
    agent = agent_of(*turns, middleware=[FileTools(enabled_tools=["edit_file"])])
    session = sa.Session(agent, filesystem=fs)
    session.send("go").result()
    _, told, done = results(session.state)
    assert "try again, which drops yours and begins from what they wrote" in told
    assert "Replaced" in done
    fs.flush()
    assert file.read_text() == "one\nTWO\nof a person\n"


def test_what_is_read_after_a_refusal_is_not_dropped_once_somebody_has_settled_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    fs = FileSystem(None, [Mount("d", DiskStorage(tmp_path, fsync=False), debounce=60.0)])

    def person(request: Any) -> Any:
        append(file, "of a person\n")
        return call("delete_file", "b", file_path="/d/a.txt")

    def settled(request: Any) -> Any:
        fs.reload("/d/a.txt")
        fs.update_metadata("/d/a.txt", {"mine": 1}, persist="debounce")
        return call("read_file", "c", file_path="/d/a.txt")

    edit = call("edit_file", "a", file_path="/d/a.txt", old_string="one", new_string="ONE")
    session = sa.Session(
        agent_of(edit, person, settled, "done", middleware=[FileTools()]), filesystem=fs
    )
    session.send("go").result()
    assert "dropped" not in results(session.state)[-1]
    assert fs.read("/d/a.txt").custom == {"mine": 1}


def test_a_file_that_others_change_too_is_saved_with_every_edit(
    other: Other, opened: Opened
) -> None:
    other.write("a.md", "")
    fs = opened(60.0)
    fs.read("/a.md")
    for number in range(10):
        other.write("a.md", f"{other.read('a.md')}person {number}\n")
        fs.edit("/a.md", lambda entry, n=number: f"{entry.content}mine {n}\n")  # type: ignore[misc]
    written = "".join(f"person {n}\nmine {n}\n" for n in range(10))
    assert other.read("a.md") == written
    fs.flush()


def test_an_edit_made_while_theirs_is_read_is_not_dropped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = of_folder(folder, debounce=60.0)
    fs.read("/a.md")
    storage: Any = fs.mounts[0].storage
    load, reading, edited = storage.load, threading.Event(), threading.Event()

    def slow(scope: str, path: str) -> Any:
        reading.set()
        assert edited.wait(PATIENCE)
        return load(scope, path)

    def change(entry: Any) -> str:
        (folder / "a.md").write_text("of a person")
        reader.start()
        assert reading.wait(PATIENCE)
        return "mine"

    monkeypatch.setattr(storage, "load", slow)
    reader = threading.Thread(target=fs.read, args=("/a.md",))
    fs.edit("/a.md", change)
    edited.set()
    reader.join()
    assert fs.read("/a.md").content == "mine"
    with pytest.raises(StorageFailed, match="was changed by somebody else"):
        fs.flush()
    assert (folder / "a.md").read_text() == "of a person"


def test_who_is_overtaken_again_and_again_is_told_and_nothing_of_theirs_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.files.filesystem.MOST_OVERTAKEN", 3)
    fs = of_folder(folder, debounce=0.0)
    turn = iter(range(100))

    def change(entry: Any) -> str:
        (folder / "a.md").write_text(f"of a person {'!' * next(turn)}")
        return "mine"

    with pytest.raises(FileChanged, match="again and again") as caught:
        fs.edit("/a.md", change)
    assert not caught.value.kept
    fs.flush()
    assert str(fs.read("/a.md").content).startswith("of a person")


def races(folder: Path, rounds: int) -> None:
    """A person saves and the agent edits at about the same moment: no text of a person is lost."""
    chance = random.Random(1)
    file, aside = folder / "a.md", folder / "aside"
    file.write_text("")
    storage = DiskStorage(folder, fsync=False)
    fs = FileSystem((), [Mount(default=True, storage=storage, debounce=0.0)])
    for number in range(rounds):
        aside.write_text(f"person {number}")
        ready, steps = threading.Barrier(2), chance.randrange(4000)

        def person(ready: threading.Barrier = ready, steps: int = steps) -> None:
            ready.wait()
            for _ in range(steps):
                pass
            os.replace(aside, file)

        thread = threading.Thread(target=person)
        thread.start()
        ready.wait()
        fs.edit("/a.md", lambda entry: f"{entry.content}\nagent")
        thread.join()
        assert file.read_text().startswith(f"person {number}")
    fs.close()


def test_no_text_of_a_person_is_lost_however_they_and_the_agent_meet(tmp_path: Path) -> None:
    races(tmp_path, 200)


@pytest.mark.soak
def test_no_text_of_a_person_is_lost_in_a_thousand_meetings(tmp_path: Path) -> None:
    races(tmp_path, 1000)


# what comes and goes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "deep" / "down").mkdir(parents=True)
    (folder / "a.md").write_text("a")
    (folder / "deep" / "down" / "b.md").write_text("b")
    return folder


def of_folder(folder: Path, base: str | None = None, **fields: Any) -> FileSystem:
    storage = DiskStorage(folder, fsync=False)
    return FileSystem(None, [Mount(base, storage, default=base is None, **fields)])


def test_what_others_add_remove_and_rename_is_listed(folder: Path) -> None:
    fs = of_folder(folder)
    heard: list[Any] = []
    fs.subscribe(heard.append)
    assert fs.list() == ["/a.md", "/deep/down/b.md"]
    (folder / "new.md").write_text("new")
    assert fs.list() == ["/a.md", "/deep/down/b.md", "/new.md"]
    assert fs.read("/new.md").content == "new"
    (folder / "deep" / "down").rename(folder / "deep" / "up")
    assert fs.list() == ["/a.md", "/deep/up/b.md", "/new.md"]
    (folder / "a.md").unlink()
    (folder / "new.md").rename(folder / "deep" / "up" / "new.md")
    assert [e.path for e in fs.entries()] == [
        "/deep", "/deep/up", "/deep/up/b.md", "/deep/up/new.md",
    ]  # fmt: skip
    assert fs.read("/deep/up/new.md").content == "new"
    told = [(type(event).__name__, event.path) for event in heard]
    assert told[0] == ("FileUpdated", "/new.md")
    assert {("FileDeleted", "/deep/down"), ("FileUpdated", "/deep/up/b.md")} <= set(told)
    assert not fs.exists("/a.md")
    (folder / "a.md").write_text("again")
    assert fs.exists("/a.md")


def test_a_directory_and_a_file_take_the_place_of_each_other(folder: Path) -> None:
    fs = of_folder(folder)
    fs.read("/a.md")
    (folder / "a.md").unlink()
    (folder / "a.md").mkdir()
    (folder / "a.md" / "in").write_text("in")
    (folder / "deep" / "down" / "b.md").unlink()
    (folder / "deep" / "down").rmdir()
    (folder / "deep" / "down").write_text("a file now")
    assert fs.list() == ["/a.md/in", "/deep/down"]
    assert fs.read("/deep/down").content == "a file now"


def test_a_directory_that_is_a_link_now_is_left_out_with_what_it_had(folder: Path) -> None:
    fs = of_folder(folder)
    assert len(fs.list()) == 2
    elsewhere = folder.parent / "elsewhere"
    (folder / "deep").rename(elsewhere)
    (folder / "deep").symlink_to(elsewhere)
    (elsewhere / "down" / "secret.md").write_text("no")
    assert fs.list() == ["/a.md"]
    assert fs.list() == ["/a.md"]


def test_what_is_old_is_not_looked_through_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = 1_000_000_000
    for directory in (folder / "deep" / "down", folder / "deep", folder):
        os.utime(directory, (long_ago, long_ago))
    fs = of_folder(folder)
    looked: list[Any] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda fd: looked.append(fd) or scandir(fd))
    for _ in range(3):
        assert len(fs.list()) == 2
    assert looked == []
    (folder / "deep" / "new.md").write_text("new")
    assert len(fs.list()) == 3
    assert len(looked) == 2, "once to see whether, once with nothing of ours under way"
    os.utime(folder / "deep", (long_ago, long_ago))
    fs.list()
    looked.clear()
    fs.list()
    assert looked == []


def test_a_new_file_in_the_same_tick_of_the_disk_is_seen(folder: Path) -> None:
    fs = of_folder(folder)
    now = (folder / "deep").stat().st_mtime_ns
    assert len(fs.list()) == 2
    (folder / "deep" / "late.md").write_text("late")
    os.utime(folder / "deep", ns=(now, now))
    assert "/deep/late.md" in fs.list()


def test_what_waits_to_be_saved_stays_whatever_others_remove(folder: Path) -> None:
    fs = of_folder(folder, debounce=60.0)
    fs.edit("/deep/down/b.md", lambda _: "edited")
    (folder / "deep" / "down" / "b.md").unlink()
    (folder / "deep" / "down").rmdir()
    assert fs.list() == ["/a.md", "/deep/down/b.md"]
    assert fs.read("/deep/down/b.md").content == "edited"
    fs.flush()
    assert (folder / "deep" / "down" / "b.md").read_text() == "edited"


def test_what_could_not_be_deleted_after_a_move_does_not_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = of_folder(folder)
    storage = fs.mounts[0].storage
    monkeypatch.setattr(storage, "move", None)
    monkeypatch.setattr(storage, "delete", lambda *_: 1 / 0)
    fs.move("/a.md", "/z.md")
    assert (folder / "a.md").exists()
    assert fs.list() == ["/deep/down/b.md", "/z.md"]


def test_a_mount_in_a_mount_lists_its_own(folder: Path) -> None:
    inner = folder.parent / "inner"
    inner.mkdir()
    fs = of_folder(folder)
    fs.mount(Mount("drafts/in", DiskStorage(inner, fsync=False)))
    (inner / "i.md").write_text("i")
    (folder / "drafts" / "in").mkdir(parents=True)
    (folder / "drafts" / "in" / "hidden.md").write_text("hidden")
    (folder / "o.md").write_text("o")
    assert fs.list() == ["/a.md", "/deep/down/b.md", "/drafts/in/i.md", "/o.md"]
    (inner / "i.md").unlink()
    assert fs.list() == ["/a.md", "/deep/down/b.md", "/o.md"]


def test_a_glob_asks_for_no_more_of_a_disk_than_it_can_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = os.stat

    def stat(*args: Any, **options: Any) -> os.stat_result:
        asked[-1:] = [asked[-1] + 1] if asked else []
        return real(*args, **options)

    for count in (10, 100):
        folder = tmp_path / str(count)
        for number in range(count):
            (folder / f"d{number}" / "deep").mkdir(parents=True)
            (folder / f"d{number}" / "a.md").write_text("a")
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (1, 1))
        fs = of_folder(folder, "m")
        fs.mount(Mount("other", DiskStorage(tmp_path / "other", fsync=False)))
        monkeypatch.setattr(os, "stat", stat)
        asked.append(0)
        assert fs.list("/m/d7/*.md") == ["/m/d7/a.md"]
        assert fs.list("/nowhere/*") == []
        monkeypatch.setattr(os, "stat", real)
    assert asked == [2, 2]  # the folder and the one above


def test_what_a_glob_did_not_ask_for_is_found_later(folder: Path) -> None:
    fs = of_folder(folder)
    (folder / "new" / "inner").mkdir(parents=True)
    (folder / "new" / "inner" / "n.md").write_text("n")
    (folder / "deep" / "d.md").write_text("d")
    assert fs.list("/*.md") == ["/a.md"]
    assert fs.list("/deep/*.md") == ["/deep/d.md"]
    shutil.rmtree(folder / "deep" / "down")
    assert fs.list("/new/*") == []
    assert fs.list("/new/*/*.md") == ["/new/inner/n.md"]
    assert fs.list() == ["/a.md", "/deep/d.md", "/new/inner/n.md"]
    shutil.rmtree(folder / "new")
    assert fs.list("/deep/*") == ["/deep/d.md"]
    assert fs.list("**/n.md") == []


NAMES = st.sampled_from("ab")
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            PLACES,
            st.lists(st.sampled_from(["a", "*", "**"]), min_size=1).map("/".join),
        ),
        max_size=8,
    )
)
def test_whatever_others_add_and_remove_each_glob_finds_what_is_there(
    tmp_path: Path, steps: list[tuple[bool, str, str]]
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    fs = of_folder(folder)
    for adds, place, pattern in steps:
        if adds:
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / "f").write_text("f")
        else:
            shutil.rmtree(folder / place, ignore_errors=True)
        there = sorted(f"/{path.relative_to(folder)}" for path in folder.rglob("f"))
        for glob in (f"{pattern}/f", pattern):
            assert fs.list(glob) == matching(there, glob)


def test_a_disk_that_cannot_be_listed_is_taken_to_be_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fs = of_folder(folder)
    monkeypatch.setattr(fs.mounts[0].storage, "list_since", lambda *_: 1 / 0)
    assert len(fs.list()) == 2
    assert "could not be listed" in caplog.text


def test_restore_undoes_what_others_did_and_can_be_undone(folder: Path) -> None:
    fs = of_folder(folder)
    for path in fs.list():
        fs.read(path)
    before = fs.snapshot()
    (folder / "a.md").write_text("written over")
    (folder / "deep" / "down" / "b.md").unlink()
    (folder / "mine.md").write_text("my own work")
    assert {line for line in fs.diff(before).splitlines() if line[:3] in ("---", "+++")} == {
        "--- a/a.md", "+++ b/a.md", "--- a/deep/down/b.md", "--- /dev/null", "+++ /dev/null",
        "+++ b/mine.md",
    }  # fmt: skip
    fs.restore(before)
    fs.flush()
    there = {p.name: p.read_text() for p in folder.rglob("*.md")}
    assert there == {"a.md": "a", "b.md": "b"}
    undo = next(s.id for s in fs.snapshots() if s.label == "before restore")
    fs.restore(undo)
    fs.flush()
    there = {p.name: p.read_text() for p in folder.rglob("*.md")}
    assert there == {"a.md": "written over", "mine.md": "my own work"}


def test_others_add_and_remove_while_files_are_written(folder: Path) -> None:
    """Whatever the order, at the end both see the same files."""
    fs = of_folder(folder)
    chance = random.Random(7)

    def other(number: int) -> None:
        mine = random.Random(number)
        for turn in range(40):
            directory = folder / mine.choice(("deep", "deep/down", f"own{number}"))
            directory.mkdir(exist_ok=True)
            path = directory / f"o{number}-{turn % 7}.md"
            with suppress(FileNotFoundError):
                path.unlink() if mine.random() < 0.4 else path.write_text("o")

    threads = [threading.Thread(target=other, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(60):
        path = f"/{chance.choice(('deep', 'mine'))}/m{turn % 9}.md"
        if chance.random() < 0.3 and fs.exists(path):
            fs.delete(path)
        else:
            fs.write(path, "m")
        fs.list()
    for thread in threads:
        thread.join()
    fs.flush()
    on_disk = {f"/{p.relative_to(folder)}" for p in folder.rglob("*.md")}
    assert set(fs.list()) == on_disk
    assert {e.path for e in fs.contents()} == on_disk


def test_the_model_lists_what_a_person_has_put_into_the_folder(folder: Path) -> None:
    agent = agent_of(call("ls", "c1"), "ok", middleware=[FileTools()])
    session = sa.Session(agent, filesystem=of_folder(folder))
    (folder / "mine.csv").write_text("x\n1\n")
    session.send("look").result()
    assert "/mine.csv" in results(session.state)[0]
    session.close()
