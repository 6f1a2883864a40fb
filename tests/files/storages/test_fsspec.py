"""Files wherever fsspec can keep them."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FileError
from sagents_nb.files.entry import FileEntry, new_directory, new_file
from sagents_nb.files.storages.fsspec import FsspecStorage

SCOPE = "user:1"


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}://{tmp_path}/files"


def listed(url: str) -> dict[str, FileEntry]:
    return {entry.path: entry for entry in FsspecStorage(url).list(SCOPE)}


def test_a_file_lies_where_its_path_says(url: str) -> None:
    FsspecStorage(url).save(SCOPE, new_file("notes/é [1].md", "# A"))
    fs, root = fsspec.url_to_fs(url)
    assert fs.cat_file(f"{root}/notes/é [1].md") == b"# A"


def test_files_of_others_are_described_by_the_place(url: str) -> None:
    fs, root = fsspec.url_to_fs(url)
    fs.makedirs(f"{root}/d", exist_ok=True)
    fs.pipe_file(f"{root}/d/a.csv", b"1,2")
    fs.pipe_file(f"{root}/b.bin", b"\xff\0")
    found = listed(url)
    assert {p: (e.size, e.mime_type) for p, e in found.items()} == {
        "b.bin": (2, "application/octet-stream"),
        "d/a.csv": (3, "text/csv"),
    }
    storage = FsspecStorage(url)
    assert storage.load(SCOPE, "d/a.csv").content == "1,2"
    assert storage.load(SCOPE, "b.bin").content == b"\xff\0"


def test_a_file_that_another_program_changed_keeps_its_title(url: str) -> None:
    FsspecStorage(url).save(SCOPE, new_file("a.md", "ours", title="Title"))
    fs, root = fsspec.url_to_fs(url)
    fs.pipe_file(f"{root}/a.md", b"theirs")
    entry = listed(url)["a.md"]
    assert (entry.title, entry.size, entry.sha256) == ("Title", 6, None)
    assert FsspecStorage(url).load(SCOPE, "a.md").content == "theirs"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"a.md": 7}'])
def test_a_damaged_side_object_loses_titles_and_no_file(url: str, damage: bytes) -> None:
    FsspecStorage(url).save(SCOPE, new_file("d/a.md", "a", title="Old"))
    fs, root = fsspec.url_to_fs(url)
    fs.pipe_file(f"{root}/.sagents/files/d/index.json", damage)
    assert FsspecStorage(url).load(SCOPE, "d/a.md").content == "a"
    assert list(listed(url)) == ["d/a.md"]
    FsspecStorage(url).save(SCOPE, new_file("d/b.md", "b", title="New"))
    assert listed(url)["d/b.md"].title == "New"


def test_a_side_object_that_tells_of_hostile_paths_is_not_believed(url: str) -> None:
    storage = FsspecStorage(url)
    storage.save(SCOPE, new_directory("d", "Title"))
    fs, root = fsspec.url_to_fs(url)
    side = f"{root}/.sagents/files/index.json"
    fs.pipe_file(side, fs.cat_file(side).replace(b'"d"', b'"../d"'))
    assert listed(url) == {}


def test_a_save_writes_only_what_is_known_of_its_directory(url: str) -> None:
    storage = FsspecStorage(url)
    for number in range(3):
        storage.save(SCOPE, new_file(f"d{number}/a.md", "a", title=str(number)))
    fs, root = fsspec.url_to_fs(url)
    side = json.loads(fs.cat_file(f"{root}/.sagents/files/d1/index.json"))
    assert list(side) == ["a.md"]


def test_on_a_disk_a_file_is_replaced_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that is cut off is not seen, and what it left goes with a later start."""
    storage = FsspecStorage(f"file://{tmp_path}")
    storage.save(SCOPE, new_file("a.md", "old"))
    original = LocalFileSystem.pipe_file

    def cut_off(self: Any, path: str, value: bytes, **kwargs: Any) -> None:
        original(self, path, value[:2], **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalFileSystem, "pipe_file", cut_off)
    monkeypatch.setattr(LocalFileSystem, "rm_file", lambda *_: None)  # as if killed
    with pytest.raises(KeyboardInterrupt):
        storage.save(SCOPE, new_file("a.md", "new"))
    monkeypatch.undo()
    assert (tmp_path / "a.md").read_text() == "old"
    (left,) = tmp_path.glob(".sagents/files/tmp/*")
    FsspecStorage(f"file://{tmp_path}").save(SCOPE, new_file("b.md", "b"))
    assert left.exists()  # it may be one of a live process
    os.utime(left, (0, 0))
    assert list(listed(f"file://{tmp_path}")) == ["a.md", "b.md"]
    assert not list(tmp_path.glob(".sagents/files/tmp/*"))


def test_a_zip_file_is_read_and_refuses_to_be_written(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("notes/a.md", "# A")
        archive.writestr("../evil.md", "x")
        archive.writestr("/abs.md", "x")
    storage = FsspecStorage(f"zip://::{tmp_path / 'a.zip'}")
    assert "notes/a.md" in [entry.path for entry in storage.list(SCOPE)]
    assert all(".." not in entry.path for entry in storage.list(SCOPE))
    assert storage.load(SCOPE, "notes/a.md").content == "# A"
    with pytest.raises(FileNotFoundError):
        storage.load(SCOPE, "b.md")
    with pytest.raises(FileError, match=r"b\.md could not be saved in zip://"):
        storage.save(SCOPE, new_file("b.md", "b"))
    with pytest.raises(FileError, match=r"notes/a\.md could not be deleted in zip://"):
        storage.delete(SCOPE, "notes/a.md")


# secrets


class Refusing(MemoryFileSystem):  # type: ignore[misc]
    """A filesystem that tells its credentials in its errors, as some do."""

    protocol = "refusing"
    cachable = False

    def __init__(self, key: str = "", options: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key = key

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        raise PermissionError(f"Access denied for key {self.key} at {path}")

    find = cat_file = rm_file = pipe_file


fsspec.register_implementation("refusing", Refusing, clobber=True)


def test_no_credentials_are_told() -> None:
    storage = FsspecStorage(
        "refusing://me:pa55word@bucket/files?token=t0ken%21",
        key="k3y-1234",
        options={"nested": ["n3sted"]},
    )
    shown = [repr(storage)]
    for attempt in (
        lambda: storage.save(SCOPE, new_file("a.md", "a")),
        lambda: storage.list(SCOPE),
    ):
        with pytest.raises(FileError, match="could not be") as caught:
            attempt()
        error = caught.value
        shown += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    for secret in ("pa55word", "t0ken", "k3y-1234", "n3sted"):
        assert not [text for text in shown if secret in text]
    assert "bucket/files" in shown[0]


def test_a_place_that_fsspec_does_not_know_is_told() -> None:
    with pytest.raises(
        ConfigurationError, match=r"nonesuch://\*\*\*@host cannot be used.*nonesuch"
    ):
        FsspecStorage("nonesuch://me:pa55word@host")


def test_a_missing_fsspec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'sagents-nb\[fsspec\]'"):
        FsspecStorage("memory://x")
