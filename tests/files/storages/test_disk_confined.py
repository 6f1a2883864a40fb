"""Nothing outside of a directory of files is read, changed or even opened."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.files import FileError
from sagents_nb.files.entry import new_directory, new_file
from sagents_nb.files.storages.disk import DiskStorage
from tests.files import hostile

SCOPE = "user:1"
REPOSITORY = Path(__file__).parents[2]
OURS = {"FileError", "InvalidPath", "FileMissing", "WrongKind", "PathTaken", "LimitExceeded"}


def run(place: Path, what: str) -> dict[str, Any]:
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("only Linux tells which directory a descriptor is of")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.files.hostile_child", str(place), what],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


@pytest.mark.spec("S1.8.16", "P8")
def test_hostile_paths_touch_nothing_outside(tmp_path: Path) -> None:
    report = run(tmp_path, "paths")
    assert report["touched"] == []
    assert report["leaks"] == []
    assert report["unchanged"]
    assert report["paths"] >= 1000
    assert report["operations"] >= 10 * report["paths"]
    # The hook has looked at real work: some of these paths are good ones.
    assert min(report["seen"][name] for name in ("open", "os.mkdir", "os.rename")) > 100
    # What is refused is refused on purpose.
    assert set(report["failures"]) <= OURS | {"FileNotFoundError", "NotStorable", "StorageFailed"}


@pytest.mark.spec("S1.8.16")
def test_links_and_devices_are_neither_followed_nor_listed_nor_changed(tmp_path: Path) -> None:
    report = run(tmp_path, "links")
    assert report["touched"] == []
    assert report["leaks"] == []
    assert report["unchanged"]
    assert report["links_stay"] == []
    assert sorted(report["listed"]) == ["etc", "etc/passwd"]
    assert report["paths"] >= 3 * 18
    assert set(report["failures"]) <= OURS | {"FileNotFoundError", "NotStorable", "StorageFailed"}


def test_the_watch_sees_what_goes_outside(tmp_path: Path) -> None:
    """Else the two tests above would prove nothing."""
    hostile.make_outside(tmp_path)
    script = (
        "import sys; sys.argv = ['', sys.argv[1], 'none']\n"
        "from tests.files import hostile_child as child\n"
        "import os\n"
        "sys.addaudithook(child.watch)\n"
        "child.watching = True\n"
        "fd = os.open(child.place, os.O_RDONLY)\n"
        "for attempt in (\n"
        "    lambda: open(child.place / 'secret.txt'),\n"
        "    lambda: os.open('secret.txt', os.O_RDONLY, dir_fd=fd),\n"
        "    lambda: os.mkdir('new', dir_fd=fd),\n"
        "    lambda: os.unlink('../secret.txt', dir_fd=fd),\n"
        "    lambda: os.rename('secret.txt', 'x', src_dir_fd=fd, dst_dir_fd=fd),\n"
        "    lambda: os.listdir(fd),\n"
        "):\n"
        "    before = len(child.touched)\n"
        "    try: attempt()\n"
        "    except OSError: pass\n"
        "    assert len(child.touched) > before, attempt\n"
        "print('all seen')\n"
    )
    (tmp_path / "root").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert "all seen" in ran.stdout, ran.stderr


@pytest.mark.parametrize("kind", ["hard_link", "fifo", "socket", "device"])
def test_what_is_no_plain_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    outside = hostile.make_outside(tmp_path)
    if kind not in hostile.make_links(tmp_path / "root", outside):
        pytest.skip(f"no {kind} can be made here")
    disk = DiskStorage(tmp_path / "root", fsync=False)
    for attempt in (
        lambda: disk.load(SCOPE, kind),
        lambda: disk.save(SCOPE, new_file(kind, "new")),
        lambda: disk.save(SCOPE, new_directory(kind)),
        lambda: disk.save_metadata(SCOPE, new_file(kind, "new")),
        lambda: disk.move(SCOPE, kind, "moved"),
        lambda: disk.delete(SCOPE, kind),
    ):
        with pytest.raises(FileError, match="left alone"):
            attempt()
    assert os.path.lexists(tmp_path / "root" / kind)


class Swapping:
    """Flips a file and a directory to links and back, as fast as it goes."""

    def __init__(self, root: Path, outside: Path, aside: Path) -> None:
        self.outside = outside
        # Each of the first becomes what lies at the second, and the other way round.
        self.pairs = [(root / "f.md", aside / "f.md"), (root / "d", aside / "d")]
        self.flips = 0
        self.going = True
        aside.mkdir()
        self.libc = ctypes.CDLL(None, use_errno=True)  # lets other threads run meanwhile

    def run(self) -> None:
        try:
            while self.going:
                for here, there in self.pairs:
                    if not self.exchange(here, there):
                        # Those who are tested may write in between; the next round tries again.
                        with contextlib.suppress(OSError):
                            self.make_anew(here, there)
                    self.flips += 1
        finally:
            self.going = False

    def exchange(self, here: Path, there: Path) -> bool:
        result: int = self.libc.renameat2(-100, bytes(here), -100, bytes(there), 2)
        return result == 0

    def make_anew(self, here: Path, there: Path) -> None:
        """One of them was moved or deleted by those who are tested."""
        for path in (here, there):
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)
            elif path.is_dir():
                shutil.rmtree(path)
        if here.name == "d":
            here.mkdir(exist_ok=True)
            (here / "secret.txt").write_text("inside")
            there.symlink_to(self.outside)
        else:
            here.write_text("inside")
            there.symlink_to(self.outside / "secret.txt")


def swap_during_use(tmp_path: Path, flips: int, rounds: int) -> dict[str, int]:
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("only Linux can exchange two files at once")
    outside = hostile.make_outside(tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    before = hostile.state(outside)
    swapping = Swapping(root, outside, tmp_path / "aside")
    disk = DiskStorage(root, fsync=False)
    thread = threading.Thread(target=swapping.run)
    done: dict[str, int] = {}

    def load(path: str) -> None:
        content = disk.load(SCOPE, path).content
        assert isinstance(content, str)
        assert "SECRET" not in content

    operations = [
        *[("load", lambda: load("f.md"))] * 5,
        ("load below", lambda: load("d/secret.txt")),
        ("save", lambda: disk.save(SCOPE, new_file("f.md", "ours"))),
        ("save below", lambda: disk.save(SCOPE, new_file("d/new.md", "ours"))),
        ("list", lambda: disk.list(SCOPE)),
        ("describe", lambda: disk.save_metadata(SCOPE, new_file("f.md", "ours", title="t"))),
        ("delete below", lambda: disk.delete(SCOPE, "d/secret.txt")),
        ("move", lambda: disk.move(SCOPE, "f.md", "d/moved.md")),
        ("move back", lambda: disk.move(SCOPE, "d/moved.md", "f.md")),
    ]
    thread.start()
    try:
        while swapping.going and (swapping.flips < flips or rounds > 0):
            rounds -= 1
            for name, operation in operations:
                try:
                    operation()
                    done[name] = done.get(name, 0) + 1
                except (FileError, FileNotFoundError):
                    done["refused"] = done.get("refused", 0) + 1
    finally:
        swapping.going = False
        thread.join()
    assert hostile.state(outside) == before
    return {**done, "flips": swapping.flips}


def test_a_swap_during_use_leads_nowhere(tmp_path: Path) -> None:
    done = swap_during_use(tmp_path, 2_000, 300)
    assert min(done.get(name, 0) for name in ("load", "save", "list", "refused")) > 0


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_hundred_thousand_swaps_during_use_lead_nowhere(tmp_path: Path) -> None:
    done = swap_during_use(tmp_path, 100_000, 4_000)
    print(done)  # how much of it went well
    assert done["flips"] >= 100_000


@pytest.mark.parametrize("look", [1, 2], ids=["to read", "to make it"])
def test_a_folder_that_another_thread_makes_meanwhile_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    storage = DiskStorage(tmp_path / "not made yet")
    real, looks = os.open, 0

    def slow(path: Any, *args: Any, **options: Any) -> int:
        nonlocal looks
        try:
            return real(path, *args, **options)
        except FileNotFoundError:
            looks += 1
            if looks == look:  # between looking for it and what comes of that
                storage.save("s", new_file("b.md", "theirs"))
            raise

    monkeypatch.setattr(os, "open", slow)
    storage.save("s", new_file("a.md", "ours"))
    assert looks >= look
    assert {storage.load("s", path).content for path in ("a.md", "b.md")} == {"ours", "theirs"}
