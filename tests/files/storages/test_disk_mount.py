"""A filesystem whose files are kept in a directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sagents_nb import Session
from sagents_nb.files import FileError, FileSystem, Mount, NotStorable, StorageFailed
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.middleware import FileSystem as FileTools
from tests.talking import agent_of, call, results

pytestmark = pytest.mark.spec("S1.8.16")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def fs(root: Path) -> Iterator[FileSystem]:
    opened = FileSystem(("user", 1), [Mount("Memories", DiskStorage(root, fsync=False))])
    yield opened
    with suppress(StorageFailed):
        opened.close()


def again(root: Path) -> FileSystem:
    return FileSystem(("user", 1), [Mount("Memories", DiskStorage(root, fsync=False))])


def test_the_base_is_no_part_of_the_place_on_the_disk(fs: FileSystem, root: Path) -> None:
    fs.write("/Memories/notes/a.md", "# A")
    assert (root / "notes/a.md").read_text() == "# A"
    fs.delete("/Memories/notes/a.md")
    assert not (root / "notes/a.md").exists()


@pytest.mark.spec("S1.8.12", "S1.8.13")
def test_what_an_entry_tells_outlives_the_process(fs: FileSystem, root: Path) -> None:
    fs.write("/Memories/a.md", "é", title="Title", custom={"a": 1})
    fs.update_metadata("/Memories/a.md", {"b": 2})
    written = fs.update_entry("/Memories/a.md", file_type="chapter")
    fs.flush()
    found = again(root).read("/Memories/a.md")
    assert found.describe() == written.describe() | {"persistence": "persisted"}
    assert (found.custom, found.size, found.file_type) == ({"a": 1, "b": 2}, 2, "chapter")


def test_a_file_that_cannot_be_saved_is_told_with_the_reason(fs: FileSystem, root: Path) -> None:
    fs.write("/Memories/a.md", "a")
    with pytest.raises(FileError, match=r"cannot be beside 'a\.md'"):
        fs.write("/Memories/A.md", "A")
    assert sorted(os.listdir(root)) == [".sagents", "a.md"]
    fs.reset()


def on_disk(root: Path) -> list[str]:
    """What lies there, our own folder aside."""
    there = (path.relative_to(root).as_posix() for path in root.rglob("*"))
    return sorted(path for path in there if not path.startswith(".sagents"))


REFUSED: dict[str, Callable[[FileSystem], Any]] = {
    "a name of ours": lambda fs: fs.write("/Memories/new/sub/.sagents", "x"),
    "a directory of ours": lambda fs: fs.write("/Memories/new/.sagents/a.md", "x"),
    "our folder": lambda fs: fs.mkdir("/Memories/.sagents/new"),
    "a name too like another": lambda fs: fs.write("/Memories/kept/A.md", "x"),
    "a directory too like another": lambda fs: fs.write("/Memories/Kept/new/a.md", "x"),
    "behind a link": lambda fs: fs.write("/Memories/link/new/a.md", "x"),
    "in the place of a link": lambda fs: fs.write("/Memories/link", "x"),
    "a directory in the place of a link": lambda fs: fs.mkdir("/Memories/link"),
    "below a device": lambda fs: fs.write("/Memories/fifo/new/a.md", "x"),
    "below a file that came since": lambda fs: fs.write("/Memories/since/new/a.md", "x"),
    "no JSON": lambda fs: fs.write("/Memories/new/a.md", "x", custom={"x": object()}),
    "too large": lambda fs: fs.write("/Memories/new/sub/a.md", "x" * 11_000_000),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_write_changes_nothing_here_and_on_the_disk(
    fs: FileSystem, root: Path, tmp_path: Path, why: str
) -> None:
    fs.write("/Memories/kept/a.md", "a")
    (root / "link").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    (root / "since").write_text("by another program")
    before = fs.entries(), on_disk(root)
    with pytest.raises(FileError) as refusal:
        REFUSED[why](fs)
    assert not isinstance(refusal.value, StorageFailed)
    assert (fs.entries(), on_disk(root)) == before
    assert fs.stats().dirty == 0
    fs.close()


def test_a_name_that_the_disk_finds_too_long_leaves_no_directory_there(
    fs: FileSystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.write("/Memories/kept.md", "a")
    make = os.mkdir

    def with_short_names(name: str, *args: Any, **options: Any) -> None:
        if len(name) > 100:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        make(name, *args, **options)

    monkeypatch.setattr(os, "mkdir", with_short_names)
    with pytest.raises(NotStorable, match="give it a shorter name"):
        fs.write(f"/Memories/new/{'x' * 101}/a.md", "a")
    assert fs.list() == ["/Memories/kept.md"]
    assert on_disk(root) == ["kept.md"]
    fs.write("/Memories/new/a.md", "a")
    fs.close()


def test_what_other_programs_did_is_seen_after_a_reset(fs: FileSystem, root: Path) -> None:
    fs.write("/Memories/a.md", "a")
    fs.write("/Memories/b.md", "b")
    (root / "a.md").write_text("changed")
    (root / "b.md").unlink()
    (root / "c.md").write_text("new")
    fs.reset()
    assert fs.list("/Memories/*") == ["/Memories/a.md", "/Memories/c.md"]
    assert fs.read("/Memories/a.md").content == "changed"


def test_a_deleted_directory_is_gone_from_the_disk_with_its_last_file(
    fs: FileSystem, root: Path
) -> None:
    fs.write("/Memories/d/e/a.md", "a")
    fs.delete("/Memories/d")
    fs.delete("/Memories/d/e")
    assert (root / "d/e/a.md").exists()
    fs.delete("/Memories/d/e/a.md")
    assert not (root / "d").exists()
    assert again(root).stats().total == again(root).stats().persisted <= 1


@pytest.mark.spec("S1.8.17")
def test_a_directory_moves_child_by_child_and_one_that_fails_is_written_later(
    fs: FileSystem, root: Path
) -> None:
    for name in "abc":
        fs.write(f"/Memories/old/{name}.md", name, title=f"Title {name}")
    fs.write("/Memories/new", "to be replaced by a directory")
    fs.delete("/Memories/new")
    (root / "new").mkdir()
    os.mkfifo(root / "new/b.md")  # no file of ours takes its place
    with pytest.raises(StorageFailed, match=r"b\.md could not be saved"):
        fs.move("/Memories/old", "/Memories/new")
    expected = [f"/Memories/new/{name}.md" for name in "abc"]
    assert fs.list("/Memories/**") == expected
    assert sorted(p.name for p in (root / "new").iterdir() if p.is_file()) == ["a.md", "c.md"]
    with pytest.raises(StorageFailed):
        fs.flush()
    (root / "new/b.md").unlink()
    fs.flush()
    fs.close()
    after = again(root)
    assert after.list("/Memories/**") == expected
    for name in "abc":
        entry = after.read(f"/Memories/new/{name}.md")
        assert (entry.content, entry.title) == (name, f"Title {name}")
    assert not (root / "old").exists()
    after.close()


# a folder that goes away, and what is left out of one


def in_use(root: Path, debounce: float = 60.0) -> FileSystem:
    (root / "d").mkdir(parents=True)
    for name in ("a.md", "d/b.md", "d/c.md"):
        (root / name).write_text(name)
    fs = FileSystem(("user", 1), [Mount("m", DiskStorage(root, fsync=False), debounce=debounce)])
    assert fs.read("/m/d/b.md").content == "d/b.md"
    return fs


USES: dict[str, Callable[[FileSystem], Any]] = {
    "list": lambda fs: fs.list(),
    "list a part": lambda fs: fs.list("/m/d/*"),
    "read": lambda fs: fs.read("/m/a.md"),
    "read what is in memory": lambda fs: fs.read("/m/d/b.md"),
    "read lines": lambda fs: fs.read_lines("/m/d/b.md"),
    "reload": lambda fs: fs.reload("/m/d/b.md"),
    "see whether it is there": lambda fs: fs.exists("/m/d/b.md"),
    "search": lambda fs: list(fs.contents()),
    "write anew": lambda fs: fs.write("/m/new/z.md", "z"),
    "write over": lambda fs: fs.write("/m/a.md", "z"),
    "edit": lambda fs: fs.edit("/m/d/b.md", lambda entry: f"{entry.content}!"),
    "mkdir": lambda fs: fs.mkdir("/m/x"),
    "describe": lambda fs: fs.update_metadata("/m/a.md", {"a": 1}),
    "move": lambda fs: fs.move("/m/a.md", "/m/b.md"),
    "delete": lambda fs: fs.delete("/m/d/b.md"),
    "snapshot": lambda fs: fs.snapshot(),
    "reset": lambda fs: fs.reset(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_folder_that_went_away_is_named_and_none_is_made_in_its_place(
    root: Path, use: Callable[[FileSystem], Any]
) -> None:
    fs = in_use(root)
    aside = root.with_name("aside")
    root.rename(aside)
    with pytest.raises(StorageFailed, match=f"The folder {root} is not there any more") as caught:
        use(fs)
    assert "bring it back" in str(caught.value)
    assert not root.exists()
    aside.rename(root)
    fs.flush()
    assert {"/m/a.md", "/m/d/b.md", "/m/d/c.md"} <= set(fs.list())
    assert fs.read("/m/a.md").content in ("a.md", "z")
    assert (root / "d" / "b.md").exists()
    fs.close()


def test_what_waits_when_its_folder_goes_is_saved_when_it_is_back(root: Path) -> None:
    fs = in_use(root)
    fs.edit("/m/d/b.md", lambda entry: "edited")
    aside = root.with_name("aside")
    root.rename(aside)
    with pytest.raises(StorageFailed, match="is not there any more"):
        fs.flush()
    assert not root.exists()
    aside.rename(root)
    fs.flush()
    assert (root / "d" / "b.md").read_text() == "edited"
    fs.close()


def test_other_mounts_and_memory_go_on_without_the_folder_that_went(root: Path) -> None:
    fs = in_use(root)
    fs.mount(Mount("other", DiskStorage(root.with_name("other"), fsync=False)))
    root.rename(root.with_name("aside"))
    fs.write("/other/a.md", "a")
    fs.write("/b.md", "b")
    assert fs.list("/other/*") == ["/other/a.md"]
    assert fs.read("/b.md").content == "b"


def test_a_folder_that_never_was_there_is_made_with_the_first_write(root: Path) -> None:
    place = root / "not" / "yet"
    fs = FileSystem(None, [Mount("m", DiskStorage(place, fsync=False))])
    assert fs.list() == []
    assert not fs.exists("/m/a.md")
    assert not root.exists()
    fs.write("/m/a.md", "a")
    assert (place / "a.md").read_text() == "a"


def test_a_folder_that_somebody_made_anew_is_used(root: Path) -> None:
    fs = in_use(root)
    root.rename(root.with_name("aside"))
    root.mkdir()
    (root / "new.md").write_text("new")
    assert fs.list() == ["/m/new.md"]


def test_a_place_where_nothing_is_mounted_any_more_is_not_the_folder_that_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = True
    monkeypatch.setattr(os.path, "ismount", lambda path: mounted and path == str(root))
    fs = in_use(root)
    aside = root.with_name("aside")
    root.rename(aside)
    root.mkdir()
    mounted = False
    for use in (USES["list"], USES["read what is in memory"], USES["write anew"]):
        with pytest.raises(StorageFailed, match="is not there any more"):
            use(fs)
    assert os.listdir(root) == []
    root.rmdir()
    aside.rename(root)
    mounted = True
    assert "/m/a.md" in fs.list()


def test_the_model_is_told_that_the_folder_went(root: Path) -> None:
    fs = in_use(root)
    root.rename(root.with_name("aside"))
    calls = [
        call("ls", "a"),
        call("search_text", "b", pattern="md"),
        call("read_file", "c", file_path="/m/d/b.md"),
        call("write_file", "d", file_path="/m/new.md", content="new"),
    ]
    session = Session(agent_of(calls, "done", middleware=[FileTools()]), filesystem=fs)
    session.send("go").result()
    told = results(session.state)
    assert len(told) == 4
    assert all(f"The folder {root} is not there any more" in text for text in told)


def test_what_is_left_out_is_told_once_for_each_thing(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fs = in_use(root)

    def told() -> int:
        for number in range(3):
            (root / f"new{number}.md").write_text("looked through again")
            fs.list()
        count = caplog.text.count("left out")
        caplog.clear()
        return count

    assert told() == 0
    (root / "link").symlink_to("a.md")
    assert told() == 1
    (root / "d" / "link").symlink_to("b.md")
    assert told() == 1
    (root / "other").symlink_to("a.md")
    assert told() == 1
    (root / "link").unlink()
    assert told() == 0
    (root / "link").symlink_to("a.md")
    assert told() == 1
    (root / "link").unlink()
    os.link(root / "a.md", root / "link")
    assert told() == 1


def test_all_that_is_left_out_of_a_folder_is_told_in_a_line(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        (root / f"d{number}" / "inside").mkdir(parents=True)
        (root / f"d{number}" / "inside" / "link").symlink_to("a.md")
    (root / "d7" / "link").symlink_to("a.md")
    fs = FileSystem(("user", 1), [Mount("m", root)])
    fs.list()
    (record,) = caplog.records
    assert record.getMessage().startswith(f"21 files in 21 folders of {root} are left out: ")


def test_names_that_no_file_of_the_root_may_have_are_left_out_with_what_is_in_them(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "~").mkdir(parents=True)
    (root / "~" / "a.md").write_text("of a shell that did not expand it")
    (root / "~$report.docx").write_text("of a word processor")
    (root / "b.md").write_text("B")
    fs = FileSystem(("user", 1), [Mount(default=True, storage=root)])
    for number in range(3):
        (root / f"new{number}.md").write_text("listed anew")
        assert fs.list()[0] == "/b.md"
    assert "/~/a.md" not in fs.list()
    (record,) = caplog.records
    assert "3 stored files of / are left out: The path '/~" in record.getMessage()
