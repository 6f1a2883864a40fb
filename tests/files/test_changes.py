"""What files were before they were changed, for those who track them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.files import DiskStorage, FileError, FileSystem, Mount
from sagents_nb.files.changes import Changes


def tracked(fs: FileSystem) -> Changes:
    changes = Changes()
    fs.track(changes)
    return changes


def before(changes: Changes, path: str) -> str | None:
    """The text before; None if the file was not there."""
    change = changes.of(path)
    assert change is not None
    return None if change.before is None else change.before.text


@pytest.fixture(params=["in memory", "on a disk"])
def fs(request: Any, tmp_path: Path) -> FileSystem:
    """Files of which, on a disk, none has been read."""
    texts = {"/a.md": "one", "/dir/b.md": "two"}
    if request.param == "on a disk":
        storage = DiskStorage(tmp_path, fsync=False)
        first = FileSystem(mounts=[Mount(default=True, storage=storage)])
        for path, text in texts.items():
            first.write(path, text)
        first.close()
        return FileSystem(mounts=[Mount(default=True, storage=DiskStorage(tmp_path, fsync=False))])
    files = FileSystem()
    for path, text in texts.items():
        files.write(path, text)
    return files


def test_a_changed_file_is_known_as_it_was_before_the_first_change(fs: FileSystem) -> None:
    changes = tracked(fs)
    fs.write("/a.md", "two")
    fs.edit("/a.md", lambda entry: f"{entry.text}, three")
    fs.write("/new.md", "x")
    fs.delete("/dir/b.md")
    assert changes.paths() == ["/a.md", "/dir/b.md", "/new.md"]
    assert [before(changes, p) for p in changes.paths()] == ["one", "two", None]
    assert changes.of("/dir/b.md").after is None  # type: ignore[union-attr]
    fs.close()


def test_a_move_is_something_that_went_and_something_that_came(fs: FileSystem) -> None:
    changes = tracked(fs)
    fs.move("/dir", "/other")
    assert {p: before(changes, p) for p in changes.paths()} == {
        "/dir/b.md": "two",
        "/other/b.md": None,
    }
    fs.move("/other", "/dir")
    assert changes.paths() == []
    fs.close()


@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda fs: (fs.write("/a.md", "x"), fs.write("/a.md", "one")),
        lambda fs: (fs.write("/n.md", "x"), fs.delete("/n.md")),
        lambda fs: (fs.delete("/a.md"), fs.write("/a.md", "one")),
        lambda fs: fs.write("/a.md", "one"),
        lambda fs: fs.update_entry("/a.md", title="A"),
        lambda fs: fs.mkdir("/d"),
    ],
    ids=["back", "gone", "again", "the same", "the title", "a directory"],
)
def test_what_is_again_as_it_was_is_no_change(
    fs: FileSystem, there_and_back: Callable[[FileSystem], Any]
) -> None:
    changes = tracked(fs)
    there_and_back(fs)
    assert changes.paths() == []
    fs.close()


def test_what_is_refused_is_no_change(fs: FileSystem) -> None:
    changes = tracked(fs)
    with pytest.raises(FileError):
        fs.write("/a.md", "x", overwrite=False)
    with pytest.raises(FileError):
        fs.write("/../x", "x")
    with pytest.raises(FileError):
        fs.delete("/missing.md")
    assert changes.paths() == []
    fs.close()


def test_what_is_done_before_and_after_is_not_noted(fs: FileSystem) -> None:
    changes = Changes()
    fs.write("/a.md", "before")
    stop = fs.track(changes)
    fs.write("/a.md", "meanwhile")
    stop()
    fs.write("/a.md", "after")
    fs.write("/b.md", "after")
    assert changes.paths() == ["/a.md"]
    assert before(changes, "/a.md") == "before"
    change = changes.of("/a.md")
    assert change is not None
    assert not change.left(fs.read("/a.md"))
    fs.write("/a.md", "meanwhile")
    assert change.left(fs.read("/a.md"))
    fs.close()


def test_a_change_that_its_storage_refuses_is_none(tmp_path: Path) -> None:
    fs = FileSystem(mounts=[Mount("m", DiskStorage(tmp_path, fsync=False))])
    changes = tracked(fs)
    with pytest.raises(FileError):
        fs.write("/m/.sagents/x", "x")
    assert changes.paths() == []
    fs.close()


def test_of_binary_and_large_files_it_is_known_that_they_changed_and_not_what_they_were() -> None:
    fs = FileSystem()
    fs.write("/a.bin", b"\0\xff")
    fs.write("/large.md", "x" * 200_001)
    fs.write("/fits.md", "x" * 200_000)
    changes = tracked(fs)
    for path in fs.list():
        fs.write(path, "new")
    kept = {p: c.before.loaded for p in changes.paths() if (c := changes.of(p)) and c.before}
    assert kept == {"/a.bin": False, "/fits.md": True, "/large.md": False}


def test_all_that_is_kept_has_a_bound_and_what_is_forgotten_makes_room() -> None:
    fs = FileSystem()
    paths = [f"/{n:03}.md" for n in range(102)]
    for path in paths:
        fs.write(path, "x" * 200_000)
    changes = tracked(fs)
    for path in paths[:-1]:
        fs.write(path, "new")
    assert before(changes, paths[99]) is not None
    assert before(changes, paths[100]) is None
    changes.forget(paths[0])
    fs.write(paths[101], "new")
    assert before(changes, paths[101]) is not None
