"""Of a large file only the lines that are asked for are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sagents_nb import Agent, ScriptedModel
from sagents_nb.files import DiskStorage, FileError, FileSystem, Mount, StorageFailed, WrongKind
from sagents_nb.files import loading as loading_module
from tests.files.doubles import DictStorage
from tests.talking import call, results

LINE = "x" * 99 + "\n"
ROWS = 30_000  # 3 MB


@pytest.fixture
def disk(tmp_path: Path) -> FileSystem:
    """A filesystem whose files in /d are on the disk."""
    with open(tmp_path / "large.txt", "w") as file:
        for n in range(ROWS):
            file.write(f"{n:08d} {LINE}")
    return FileSystem(mounts=[Mount("d", DiskStorage(tmp_path, fsync=False))], max_file_size=1000)


class Counting:
    """How many bytes were read through the reads of a process."""

    def __enter__(self) -> Counting:
        self.before = self.read()
        return self

    def __exit__(self, *args: Any) -> None:
        self.bytes = self.read() - self.before

    def read(self) -> int:
        if not os.path.exists("/proc/self/io"):
            pytest.skip("only Linux tells how much was read")
        return int(Path("/proc/self/io").read_text().split()[1])


def test_the_first_lines_cost_what_they_are(disk: FileSystem) -> None:
    with Counting() as counted:
        lines, total = disk.read_lines("/d/large.txt", 1, 3)
    assert [line[:8] for line in lines] == ["00000000", "00000001", "00000002"]
    assert total is None
    assert counted.bytes < 2_000_000 < disk.entries("/d/large.txt")[0].size


def test_lines_further_on_and_beyond_the_end(disk: FileSystem) -> None:
    lines, _ = disk.read_lines("/d/large.txt", ROWS - 1, 9)
    assert [int(line[:8]) for line in lines] == [ROWS - 2, ROWS - 1]
    assert disk.read_lines("/d/large.txt", ROWS + 1, 9) == ([], None)


def test_the_tool_shows_a_part_of_a_file_that_is_too_large_to_be_taken_in(tmp_path: Path) -> None:
    with open(tmp_path / "large.txt", "w") as file:
        file.writelines(f"{n} {LINE}" for n in range(120_000))  # over 10 MB, the limit of one file
    disk = FileSystem(mounts=[Mount("d", DiskStorage(tmp_path, fsync=False))])
    reads = [
        call("read_file", "a", file_path="/d/large.txt", limit=2),
        call("read_file", "b", file_path="/d/large.txt", offset=119_999, limit=5),
        call("read_file", "c", file_path="/d/large.txt", offset=500_000),
    ]
    agent = Agent(ScriptedModel([reads, "done"]), filesystem_scope=("lines", 1))
    from sagents_nb import filesystems, open_filesystem

    open_filesystem(("lines", 1), disk.mounts)
    first, last, beyond = results(agent.run("go").state)
    filesystems.close(("lines", 1))
    assert first.startswith("Lines 1–2; more follow:\n     1\t0 xxx")
    assert last.startswith("Lines 119999–120000 of 120000:\n119999\t119998 xxx")
    assert "the offset is beyond its end: it has fewer lines" in beyond


def test_a_line_without_end_is_cut_at_a_character(tmp_path: Path, disk: FileSystem) -> None:
    (tmp_path / "one.json").write_text("é" * 3_000_000 + "\nnext\n")
    disk.reset()
    (line, after), _ = disk.read_lines("/d/one.json", 1, 2)
    assert set(line) == {"é"}
    assert len(line) <= loading_module.LONGEST
    assert after == "next"


def test_what_is_no_text_has_no_lines(tmp_path: Path, disk: FileSystem) -> None:
    (tmp_path / "large.bin").write_bytes(b"a\0b" * 1_000_000)
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe" * 1_000_000)
    (tmp_path / "small.bin").write_bytes(b"\0")
    disk.reset()
    for path in ("/d/large.bin", "/d/latin.txt", "/d/small.bin"):
        with pytest.raises(WrongKind, match="binary file"):
            disk.read_lines(path)
    with pytest.raises(FileError, match="counted from 1"):
        disk.read_lines("/d/large.txt", 0)


def test_a_file_in_memory_or_of_a_storage_that_reads_all_is_read_as_ever() -> None:
    storage = DictStorage()
    fs = FileSystem(mounts=[Mount("m", storage)], max_file_size=10_000_000)
    for path in ("/a", "/m/a"):
        fs.write(path, LINE * 20_000)
    assert fs.read_lines("/a", 19_999, 9) == ([LINE[:-1]] * 2, 20_000)
    fs.reset()
    assert fs.read_lines("/m/a", 20_000, 9) == ([LINE[:-1]], 20_000)
    assert ("load", "a") in storage.asked


def test_a_file_that_went_meanwhile_is_told_as_such(tmp_path: Path, disk: FileSystem) -> None:
    os.unlink(tmp_path / "large.txt")
    with pytest.raises(StorageFailed, match=r"/d/large\.txt could not be read"):
        disk.read_lines("/d/large.txt")


def test_what_was_written_and_waits_is_what_is_read(tmp_path: Path) -> None:
    disk = FileSystem(mounts=[Mount("d", DiskStorage(tmp_path, fsync=False), debounce=300)])
    disk.write("/d/a.txt", LINE * 20_000)
    disk.write("/d/a.txt", "new\n" + LINE * 20_000)
    assert disk.read_lines("/d/a.txt", 1, 1) == (["new"], 20_001)
    disk.close()
