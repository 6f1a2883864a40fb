"""A process that dies while it saves leaves every file old or new, and what was safe is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


def kill_savers(place: Path, rounds: int, seed: int) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.files.crash_child", str(place), str(rounds), str(seed)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def test_a_kill_during_saves_leaves_every_file_old_or_new(tmp_path: Path) -> None:
    report = kill_savers(tmp_path, 25, 1)
    assert report["problems"] == []
    assert report["saved"] >= 10


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_three_hundred_kills_during_saves_leave_every_file_old_or_new(
    tmp_path: Path, seed: int
) -> None:
    report = kill_savers(tmp_path, 300, seed)
    print({key: value for key, value in report.items() if key != "problems"})
    assert report["problems"] == []
    assert report["saved"] >= 100
    assert report["cut_off"] > 10  # it was killed in the midst of saves too


# power cuts: what the kernel is asked for, in which order


SAVE = """
import os, sys
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.files.entry import new_file
disk = DiskStorage(sys.argv[1], fsync=sys.argv[2] == "True")
disk.save("s", new_file("d/e/a.md", "first"))
os.getpid(); os.write(1, b"begin\\n")
disk.save("s", new_file("d/e/a.md", "second", title="t"))
os.write(1, b"safe\\n")
disk.save("s", new_file("new/b.md", "b"))
os.write(1, b"safe\\n")
disk.move("s", "d/e/a.md", "new/c.md")
os.write(1, b"safe\\n")
disk.delete("s", "new/c.md")
os.write(1, b"safe\\n")
"""


def traced(root: Path, fsync: bool) -> list[list[str]]:
    """The calls between one "safe" and the next, as "name path"; paths relative to the root."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    calls = "fsync,fdatasync,rename,renameat,renameat2,unlinkat,unlink,mkdirat,mkdir,write"
    command = [strace, "-f", "-y", "-s", "40", "-e", f"trace={calls}"]
    script = [sys.executable, "-c", SAVE, str(root), str(fsync)]
    ran = subprocess.run([*command, *script], cwd=REPOSITORY, capture_output=True, text=True)
    if ran.returncode and "ptrace" in ran.stderr:
        pytest.skip("strace is not allowed here")
    assert ran.returncode == 0, ran.stderr
    parts: list[list[str]] = [[]]
    for line in ran.stderr.splitlines():
        if re.search(r'write\(1<.*"(begin|safe)\\n"', line):
            parts.append([])
            continue
        name = re.match(r"(?:\[pid +\d+\] )?(\w+)\(", line)
        paths = re.findall(rf"<{re.escape(str(root))}/?([^>]*)>(?:, \"([^\"]*)\")?", line)
        if name and paths:
            if name[1] == "write":  # what follows is the content
                paths = [(paths[0][0], "")]
            described = " ".join("/".join(filter(None, pair)) or "." for pair in paths)
            call = name[1].removesuffix("2").removesuffix("at")
            parts[-1].append(f"{call} {re.sub(r'tmp/[0-9a-f]{16}', 'tmp/*', described)}")
    return parts[1:-1]


SIDE = ".sagents/files"
LOG = f"{SIDE}/index.jsonl"


def test_what_was_saved_is_on_the_disk_itself(tmp_path: Path) -> None:
    replaced, new, moved, deleted = traced(tmp_path / "root", fsync=True)
    assert replaced == [
        f"write {SIDE}/tmp/*",
        f"fsync {SIDE}/tmp/*",  # the content, before it takes the place of the old one
        f"write {LOG}",
        f"rename {SIDE}/tmp/* d/e/a.md",
        f"fsync {LOG}",
        "fsync d/e",
    ]
    assert new == [
        f"write {SIDE}/tmp/*",
        f"fsync {SIDE}/tmp/*",
        "mkdir new",
        "fsync .",  # a new directory has to be there as well
        f"write {LOG}",
        f"rename {SIDE}/tmp/* new/b.md",
        f"fsync {LOG}",
        "fsync new",
    ]
    assert moved == [
        f"write {LOG}",
        "rename d/e/a.md new/c.md",
        "fsync new",
        "fsync d/e",
        f"write {LOG}",
        f"fsync {LOG}",
    ]
    assert deleted == ["unlink new/c.md", "fsync new", f"write {LOG}", f"fsync {LOG}"]


def test_without_fsync_nobody_waits_for_the_disk(tmp_path: Path) -> None:
    parts = traced(tmp_path / "root", fsync=False)
    assert parts[0] == [f"write {SIDE}/tmp/*", f"write {LOG}", f"rename {SIDE}/tmp/* d/e/a.md"]
    assert not any("fsync" in call for part in parts for call in part)
