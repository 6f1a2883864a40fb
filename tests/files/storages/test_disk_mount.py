"""A filesystem whose files are kept in a directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.files import FileError, FileSystem, Mount, NotStorable, StorageFailed
from sagents_nb.files.storages.disk import DiskStorage

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
