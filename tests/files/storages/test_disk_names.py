"""Two names are never one file, on a disk with case and on one without."""

from __future__ import annotations

import itertools
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.files import FileError, FileSystem, InvalidPath, Mount
from sagents_nb.files.entry import new_directory, new_file
from sagents_nb.files.storages.disk import DiskStorage

SCOPE = "user:1"

# Each pair is one file on some disk: by case, by Unicode form, by what Windows drops.
ALIKE = [
    ("A", "a"),
    ("notes.md", "NOTES.MD"),
    ("é", "e\u0301"),
    ("\u1e9b\u0323", "\u017f\u0323\u0307"),
    ("straße", "STRASSE"),
    ("K", "\u212a"),
    ("Å", "\u212b"),
    ("ﬁ", "FI"),
    ("σ", "ς"),
    ("a\u200db", "ab"),
    ("❤", "❤\ufe0f"),
    ("a", "a."),
    ("a", "A "),
    ("a.md", "a.md. ."),
]
DIFFERENT = [("a", "b"), ("ä", "a"), ("a b", "ab"), ("ı", "i"), ("0", "O"), ("x.md", "x.txt")]


def insensitive(name: str) -> str:
    """How a disk compares that keeps the spelling and finds any: as APFS and ext4 can."""
    form = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
    return form.replace("\u200d", "").replace("\ufe0f", "").rstrip(" .")


def on_an_insensitive_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the calls of the operating system that name a file find it in any spelling."""

    def spelled(name: Any, directory: int) -> Any:
        wanted = insensitive(name)
        return next((n for n in os.listdir(directory) if insensitive(n) == wanted), name)

    def patch(name: str) -> None:
        original: Callable[..., Any] = getattr(os, name)

        def one(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            if dir_fd is not None:
                path = spelled(path, dir_fd)
            return original(path, *args, dir_fd=dir_fd, **kwargs)

        monkeypatch.setattr(os, name, one)

    def patch_two(name: str) -> None:
        original: Callable[..., Any] = getattr(os, name)

        def two(old: Any, new: Any, *, src_dir_fd: int, dst_dir_fd: int) -> Any:
            old, there = spelled(old, src_dir_fd), spelled(new, dst_dir_fd)
            same = os.path.samestat(os.fstat(src_dir_fd), os.fstat(dst_dir_fd)) and there == old
            if not same:
                new = there  # what is replaced keeps its spelling; what is renamed does not
            return original(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(os, name, two)

    for name in ("open", "stat", "mkdir", "unlink", "rmdir"):
        patch(name)
    for name in ("rename", "replace"):
        patch_two(name)


@pytest.fixture(params=["with case", "without case"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> DiskStorage:
    if request.param == "without case":
        on_an_insensitive_disk(monkeypatch)
    return DiskStorage(tmp_path, fsync=False)


def files(disk: DiskStorage) -> dict[str, str | bytes | None]:
    """What is there, by exact name, as a new start finds it."""
    again = DiskStorage(disk.path)
    return {
        e.path: again.load(SCOPE, e.path).content for e in again.list(SCOPE) if not e.is_directory
    }


def test_the_simulated_disk_has_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "A").write_text("1")
    on_an_insensitive_disk(monkeypatch)
    directory = os.open(tmp_path, os.O_RDONLY)
    os.close(os.open("a", os.O_RDONLY, dir_fd=directory))
    os.rename("a", "b", src_dir_fd=directory, dst_dir_fd=directory)
    assert os.listdir(directory) == ["b"]
    os.close(directory)


@pytest.mark.parametrize("pair", ALIKE + [pair[::-1] for pair in ALIKE], ids=ascii)
def test_a_name_cannot_be_beside_one_that_is_too_like_it(
    disk: DiskStorage, pair: tuple[str, str]
) -> None:
    first, second = pair
    disk.save(SCOPE, new_file(first, "first"))
    attempts = (
        lambda: disk.save(SCOPE, new_file(second, "second")),
        lambda: disk.save(SCOPE, new_file(f"{second}/below", "second")),
        lambda: disk.save(SCOPE, new_directory(second)),
    )
    for attempt in attempts:
        with pytest.raises(FileError, match="cannot be beside"):
            attempt()
    assert files(disk) == {first: "first"}


@pytest.mark.parametrize("pair", ALIKE, ids=ascii)
def test_a_directory_cannot_be_beside_one_that_is_too_like_it(
    disk: DiskStorage, pair: tuple[str, str]
) -> None:
    first, second = pair
    disk.save(SCOPE, new_file(f"{first}/x", "first"))
    for path in (f"{second}/x", f"{second}/y", second):
        with pytest.raises(FileError, match="cannot be beside"):
            disk.save(SCOPE, new_file(path, "second"))
    assert files(disk) == {f"{first}/x": "first"}


@pytest.mark.parametrize("pair", ALIKE, ids=ascii)
def test_another_spelling_is_another_file_and_missing(
    disk: DiskStorage, pair: tuple[str, str]
) -> None:
    first, second = pair
    disk.save(SCOPE, new_file(first, "first"))
    for again in (disk, DiskStorage(disk.path)):
        with pytest.raises(FileNotFoundError):
            again.load(SCOPE, second)
        with pytest.raises(FileNotFoundError):
            again.save_metadata(SCOPE, new_file(second, "second", title="second"))
        with pytest.raises(FileNotFoundError):
            again.move(SCOPE, second, "elsewhere")
        again.delete(SCOPE, second)
    assert files(disk) == {first: "first"}


@pytest.mark.parametrize("pair", ALIKE, ids=ascii)
def test_a_file_can_be_renamed_to_another_spelling(
    disk: DiskStorage, pair: tuple[str, str]
) -> None:
    first, second = pair
    disk.save(SCOPE, new_file(first, "first", title="Title"))
    disk.move(SCOPE, first, second)
    assert files(disk) == {second: "first"}
    assert disk.load(SCOPE, second).title == "Title"
    disk.save(SCOPE, new_file("other", "other"))
    with pytest.raises(FileError, match="cannot be beside"):
        disk.move(SCOPE, "other", first)


@pytest.mark.parametrize("pair", DIFFERENT, ids=ascii)
def test_names_that_are_two_everywhere_are_two(disk: DiskStorage, pair: tuple[str, str]) -> None:
    for name in pair:
        disk.save(SCOPE, new_file(name, name))
    assert files(disk) == {name: name for name in pair}


def test_two_like_files_of_another_program_are_both_there(tmp_path: Path) -> None:
    for name in ("A", "a"):  # this disk has case
        (tmp_path / name).write_text(name)
    disk = DiskStorage(tmp_path, fsync=False)
    disk.save(SCOPE, new_file("A", "new"))
    assert files(disk) == {"A": "new", "a": "a"}


@pytest.mark.parametrize(
    "name", [".sagents", ".SAGENTS", ".sagents.", ".ſagents", ".sa\u200dgents"]
)
def test_nobody_reaches_the_side_file(disk: DiskStorage, name: str) -> None:
    disk.save(SCOPE, new_file("a.md", "a", title="Title"))
    for path in (name, f"{name}/files/index.jsonl", f"d/{name}/x"):
        with pytest.raises(InvalidPath, match="keeps its own data"):
            disk.save(SCOPE, new_file(path, "evil"))
        with pytest.raises(InvalidPath):
            disk.load(SCOPE, path)
        with pytest.raises(InvalidPath):
            disk.delete(SCOPE, path)
        with pytest.raises(InvalidPath):
            disk.move(SCOPE, "a.md", path)
    assert DiskStorage(disk.path).load(SCOPE, "a.md").title == "Title"


DEVICES = [
    *("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"),
    *(f"{port}{digit}" for port in ("COM", "LPT") for digit in "0123456789¹²³"),
]


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_of_windows_is_refused_on_every_disk(tmp_path: Path, device: str) -> None:
    disk = DiskStorage(tmp_path / "root")
    fs = FileSystem(("user", 1), [Mount("m", DiskStorage(tmp_path / "root"))])
    spellings = [device, device.lower(), device.title()]
    forms = ["{}", "{}.txt", "{}.tar.gz", "d/{}", "{}/x", "{} ", "{} .txt", "{}."]
    for spelling, form in itertools.product(spellings, forms):
        path = form.format(spelling)
        for operation in (disk.load, disk.delete):
            with pytest.raises(InvalidPath):
                operation(SCOPE, path)
        with pytest.raises(InvalidPath):
            disk.save(SCOPE, new_file(path, "x"))
        with pytest.raises(InvalidPath):
            fs.write(f"/m/{path}", "x")
    fs.close()
    assert not (tmp_path / "root").exists()
