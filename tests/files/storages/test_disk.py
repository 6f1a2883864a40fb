"""A directory of real files, used by people and other programs as well."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FileError
from sagents_nb.files.entry import FileEntry, new_directory, new_file
from sagents_nb.files.storages import disk as disk_module
from sagents_nb.files.storages.disk import DiskStorage
from tests.talking import PATIENCE

SCOPE = "user:1"
SIDE = Path(".sagents/files")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def disk(root: Path) -> DiskStorage:
    return DiskStorage(root, fsync=False)


def listed(root: Path) -> dict[str, FileEntry]:
    return {entry.path: entry for entry in DiskStorage(root).list(SCOPE)}


# people read it


@pytest.mark.spec("S1.8.16")
def test_a_file_lies_where_its_path_says(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("notes/2024/é.md", "# A\r\n"))
    assert (root / "notes/2024/é.md").read_bytes() == b"# A\r\n"


def test_the_file_has_the_time_of_its_entry(root: Path, disk: DiskStorage) -> None:
    entry = new_file("a.md", "a")
    disk.save(SCOPE, entry)
    assert (root / "a.md").stat().st_mtime == pytest.approx(entry.modified_at.timestamp())


def test_nothing_is_made_by_looking(root: Path, disk: DiskStorage) -> None:
    assert disk.list(SCOPE) == []
    with pytest.raises(FileNotFoundError):
        disk.load(SCOPE, "d/a.md")
    disk.delete(SCOPE, "d/a.md")
    assert not root.exists()


def test_a_file_that_is_replaced_keeps_its_mode(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("run.sh", "1"))
    (root / "run.sh").chmod(0o750)
    disk.save(SCOPE, new_file("run.sh", "2"))
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_write_protected_file_is_not_replaced(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("a.md", "1"))
    (root / "a.md").chmod(0o444)
    with pytest.raises(FileError, match=r"a\.md could not be saved in .*write-protected"):
        disk.save(SCOPE, new_file("a.md", "2"))
    assert (root / "a.md").read_text() == "1"


def test_a_root_may_be_a_link_because_a_person_chose_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    root.symlink_to(tmp_path / "real")
    DiskStorage(root).save(SCOPE, new_file("a.md", "a"))
    assert (tmp_path / "real/a.md").read_text() == "a"


def test_a_root_is_meant_as_it_was_when_the_storage_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    disk = DiskStorage("files")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    disk.save(SCOPE, new_file("a.md", "a"))
    assert (tmp_path / "files/a.md").exists()


def test_no_path_is_not_the_current_directory() -> None:
    with pytest.raises(ConfigurationError, match="path of a directory"):
        DiskStorage("")


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be"):
        DiskStorage(tmp_path / "file").save(SCOPE, new_file("a.md", "a"))


# other programs change it


@pytest.mark.spec("S1.8.16")
def test_files_of_other_programs_are_described_by_the_disk(root: Path) -> None:
    (root / "empty").mkdir(parents=True)
    for name, data in (("a.md", b"# A"), ("b.csv", b"1,2"), ("c.png", b"\x89PNG\0"), ("d", b"x")):
        (root / name).write_bytes(data)
        os.utime(root / name, (0, 86400))
    found = listed(root)
    assert {p: e.mime_type for p, e in found.items() if not e.is_directory} == {
        "a.md": "text/markdown",
        "b.csv": "text/csv",
        "c.png": "image/png",
        "d": "application/octet-stream",
    }
    assert found["a.md"].modified_at == datetime(1970, 1, 2, tzinfo=UTC)
    assert found["a.md"].size == 3
    assert found["empty"].is_directory
    disk = DiskStorage(root)
    assert disk.load(SCOPE, "a.md").content == "# A"
    assert disk.load(SCOPE, "c.png").content == b"\x89PNG\0"
    assert disk.load(SCOPE, "d").mime_type == "text/plain"


def test_a_file_that_another_program_changed_keeps_its_title(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("a.md", "ours", title="Title", custom={"a": 1}))
    (root / "a.md").write_text("theirs, longer")
    entry = listed(root)["a.md"]
    assert (entry.title, entry.custom, entry.size, entry.sha256) == ("Title", {"a": 1}, 14, None)
    assert disk.load(SCOPE, "a.md").content == "theirs, longer"


def test_bytes_that_another_program_made_of_a_text_are_bytes(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("a.md", "ours"))
    (root / "a.md").write_bytes(b"\xff\xfe")
    assert disk.load(SCOPE, "a.md").content == b"\xff\xfe"


def test_a_copy_of_the_directory_is_as_good(root: Path, disk: DiskStorage, tmp_path: Path) -> None:
    disk.save(SCOPE, new_file("a.txt", b"text as bytes", title="Title"))
    subprocess.run(["cp", "-r", str(root), str(tmp_path / "copy")], check=True)  # new times
    copied = DiskStorage(tmp_path / "copy").load(SCOPE, "a.txt")
    assert (copied.content, copied.title) == (b"text as bytes", "Title")


def test_a_file_that_another_program_removed_is_gone(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("d/a.md", "a"))
    (root / "d/a.md").unlink()
    with pytest.raises(FileNotFoundError):
        disk.load(SCOPE, "d/a.md")
    assert list(disk.list(SCOPE)) == list(listed(root).values())
    assert "d/a.md" not in listed(root)
    (root / "d").rmdir()
    disk.save(SCOPE, new_file("d/a.md", "b"))
    assert (root / "d/a.md").read_text() == "b"


def test_a_file_of_another_program_is_found_although_the_directory_was_read_before(
    root: Path, disk: DiskStorage
) -> None:
    for number in range(50):
        disk.save(SCOPE, new_file(f"a{number}.md", "a"))
        (root / f"b{number}.md").write_text("b")
        assert disk.load(SCOPE, f"b{number}.md").content == "b"


def test_names_that_are_no_virtual_paths_are_left_out(
    root: Path, disk: DiskStorage, caplog: pytest.LogCaptureFixture
) -> None:
    disk.save(SCOPE, new_file("a.md", "a"))
    for name in (b"new\nline", b"\xff", b"back\\slash", b"CON"):
        (root / os.fsdecode(name)).write_text("x")
    assert list(listed(root)) == ["a.md"]
    assert "4 files in" in caplog.text


def test_a_new_file_at_an_old_path_has_no_old_directory_behind(
    root: Path, disk: DiskStorage
) -> None:
    disk.save(SCOPE, new_directory("a", "A directory"))
    (root / "a").rmdir()
    (root / "a").write_text("a file")
    entry = disk.load(SCOPE, "a")
    assert (entry.content, entry.title) == ("a file", None)
    assert not listed(root)["a"].is_directory


# the side file


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" * 500,
        b"{",
        b"garbage\n" * 9,
        b'{"path":"a.md","data":{"title":7}}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_damaged_side_file_loses_titles_and_no_file(root: Path, damage: bytes) -> None:
    disk = DiskStorage(root)
    disk.save(SCOPE, new_file("a.md", "a", title="Old"))
    (root / SIDE / "index.jsonl").write_bytes(damage)
    for again in (disk, DiskStorage(root)):
        assert again.load(SCOPE, "a.md").content == "a"
        assert [entry.path for entry in again.list(SCOPE)] == ["a.md"]
    disk.save(SCOPE, new_file("b.md", "b", title="New"))
    assert listed(root)["b.md"].title == "New"


def test_a_line_that_was_cut_off_spoils_no_other(root: Path, disk: DiskStorage) -> None:
    for name in ("a", "b"):
        disk.save(SCOPE, new_file(f"{name}.md", name, title=name))
    side = root / SIDE / "index.jsonl"
    side.write_bytes(side.read_bytes()[:-20])
    DiskStorage(root).save(SCOPE, new_file("c.md", "c", title="c"))
    disk.save(SCOPE, new_file("d.md", "d", title="d"))
    assert {p: e.title for p, e in listed(root).items()} == {
        "a.md": "a",
        "b.md": None,
        "c.md": "c",
        "d.md": "d",
    }


@pytest.mark.parametrize("kind", ["directory", "link", "fifo", "hard link"])
def test_something_else_in_the_place_of_the_side_file_is_put_aside(
    root: Path, disk: DiskStorage, tmp_path: Path, kind: str
) -> None:
    disk.save(SCOPE, new_file("a.md", "a", title="a"))
    side, outside = root / SIDE / "index.jsonl", tmp_path / "outside"
    side.unlink()
    outside.write_text("precious\n")
    if kind == "directory":
        (side / "x").mkdir(parents=True)
    elif kind == "link":
        side.symlink_to(outside)
    elif kind == "fifo":
        os.mkfifo(side)
    else:
        side.hardlink_to(outside)
    assert disk.load(SCOPE, "a.md").content == "a"
    disk.save(SCOPE, new_file("b.md", "b", title="b"))
    assert listed(root)["b.md"].title == "b"
    assert outside.read_text() == "precious\n"


def test_a_side_folder_that_leads_outside_is_not_used(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    root.mkdir()
    (root / ".sagents").symlink_to(tmp_path / "outside")
    (root / "a.md").write_text("a")
    disk = DiskStorage(root)
    assert [entry.path for entry in disk.list(SCOPE)] == ["a.md"]
    with pytest.raises(FileError, match="left alone"):
        disk.save(SCOPE, new_file("b.md", "b"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_side_file_stays_small(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.files.storages.sidefile.SPARE_LINES", 50)
    other = DiskStorage(root, fsync=False)
    for number in range(110):
        disk.save(SCOPE, new_file("a.md", str(number), title=str(number)))
    side = root / SIDE / "index.jsonl"
    assert side.read_bytes().count(b"\n") < 60  # tidied up on the way
    for number in range(110):
        other.save(SCOPE, new_file("a.md", str(number), title=str(number)))
    # who had it open goes on with the new one
    disk.save(SCOPE, new_file("b.md", "b", title="b"))
    assert {p: e.title for p, e in listed(root).items()} == {"a.md": "109", "b.md": "b"}


def test_a_side_file_in_the_place_of_the_one_that_was_read_is_noticed(
    root: Path, disk: DiskStorage, tmp_path: Path
) -> None:
    disk.save(SCOPE, new_file("a.md", "a", title="before"))
    assert disk.load(SCOPE, "a.md").title == "before"
    other = DiskStorage(tmp_path / "other", fsync=False)
    for name in "abcd":  # longer, and the line for a.md is where the old one was
        other.save(SCOPE, new_file(f"{name}.md", name, title="after"))
    os.replace(tmp_path / "other" / SIDE / "index.jsonl", root / SIDE / "index.jsonl")
    assert disk.load(SCOPE, "a.md").title == "after"


def test_a_title_is_never_that_of_another_content(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the process dies after the line and before the file."""
    disk.save(SCOPE, new_file("a.md", b"old", title="Old"))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for content in ("new", "newer"):
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", die)
            with pytest.raises(KeyboardInterrupt):
                disk.save(SCOPE, new_file("a.md", content, title=content))
        for again in (disk, DiskStorage(root)):
            entry = again.load(SCOPE, "a.md")
            assert (entry.content, entry.title) == (b"old", "Old")
            assert entry.sha256 == listed(root)["a.md"].sha256
    disk.save(SCOPE, new_file("a.md", "newest", title="newest"))
    assert listed(root)["a.md"].title == "newest"


def test_two_processes_know_each_others_titles(root: Path, disk: DiskStorage) -> None:
    other = DiskStorage(root, fsync=False)
    for number in range(20):
        one, two = (disk, other) if number % 2 else (other, disk)
        one.save(SCOPE, new_file("a.md", str(number), title=str(number)))
        assert two.load(SCOPE, "a.md").title == str(number)


def test_many_processes_write_one_side_file(root: Path) -> None:
    script = textwrap.dedent("""
        import sys
        from sagents_nb.files.storages.disk import DiskStorage
        from sagents_nb.files.entry import new_file
        for n in range(60):
            disk = DiskStorage(sys.argv[1], fsync=False)
            disk.save("s", new_file(f"{sys.argv[2]}/{n}.md", "x", title=f"{sys.argv[2]} {n}"))
    """)
    workers = [subprocess.Popen([sys.executable, "-c", script, str(root), name]) for name in "abc"]
    assert [worker.wait(PATIENCE) for worker in workers] == [0, 0, 0]
    found = listed(root)
    assert all(found[f"{name}/{n}.md"].title == f"{name} {n}" for name in "abc" for n in range(60))


def test_a_directory_that_somebody_removes_during_a_save_is_made_anew(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.save(SCOPE, new_file("d/a.md", "one"))
    put = disk_module.put
    once = True

    def removed_before(source: Any, target: Any, *, swap: bool) -> bool:
        if swap or not once:
            shutil.rmtree(root / "d", ignore_errors=True)
        return put(source, target, swap=swap)

    monkeypatch.setattr(disk_module, "put", removed_before)
    version = disk.version(SCOPE, "d/a.md")
    assert version
    now = disk.save_over(SCOPE, new_file("d/a.md", "two"), version)
    assert (root / "d/a.md").read_text() == "two"
    once = False
    with pytest.raises(FileNotFoundError, match=r"d/a\.md"):
        disk.save_over(SCOPE, new_file("d/a.md", "three"), now)


@pytest.mark.parametrize("call", ["stat", "mkdir"])
def test_a_directory_that_another_process_makes_meanwhile_is_used(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    disk.save(SCOPE, new_file("first.md", "x"))
    make, original = os.mkdir, getattr(os, call)

    def another_is_faster(path: Any, *args: Any, **named: Any) -> Any:
        try:
            if call == "mkdir" and path == "d":
                make(root / "d")
            return original(path, *args, **named)
        finally:
            if call == "stat" and path == "d":
                with suppress(FileExistsError):
                    make(root / "d")

    monkeypatch.setattr(os, call, another_is_faster)
    disk.save(SCOPE, new_file("d/a.md", "x"))
    assert (root / "d/a.md").read_text() == "x"


def test_a_title_is_kept_when_only_that_was_saved(root: Path, disk: DiskStorage) -> None:
    (root / "d").mkdir(parents=True)
    (root / "d/a.md").write_text("theirs")
    (entry,) = (e for e in disk.list(SCOPE) if not e.is_directory)
    before = (root / "d/a.md").stat()
    disk.save_metadata(SCOPE, new_file("d/a.md", "theirs", title="Ours", before=entry))
    after = listed(root)["d/a.md"]
    assert after.title == "Ours"
    assert (root / "d/a.md").stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(FileNotFoundError):
        disk.save_metadata(SCOPE, new_file("d/none.md", "x"))


def test_metadata_that_are_no_json_are_refused_and_nothing_is_saved(
    root: Path, disk: DiskStorage
) -> None:
    with pytest.raises(FileError, match=r"custom metadata of d/a\.md"):
        disk.save(SCOPE, new_file("d/a.md", "a", custom={"x": object()}))
    assert listed(root) == {}


# what a dead process left


def test_what_a_dead_process_left_is_removed_and_what_a_live_one_writes_stays(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.save(SCOPE, new_file("a.md", "a"))
    (root / SIDE / "tmp/dead").write_text("half a fi")
    seen: list[tuple[list[str], list[str]]] = []
    set_times = os.utime

    def look(*args: Any, **options: Any) -> None:  # while the new file is being written
        there = [entry.path for entry in DiskStorage(root).list(SCOPE)]
        seen.append((there, os.listdir(root / SIDE / "tmp")))
        set_times(*args, **options)

    monkeypatch.setattr(os, "utime", look)
    disk.save(SCOPE, new_file("b.md", "b"))
    [(there, (name,))] = seen
    assert there == ["a.md"]
    assert name != "dead"
    assert DiskStorage(root).load(SCOPE, "b.md").content == "b"


def test_a_save_begins_anew_whose_temporary_file_was_taken_for_that_of_a_dead_process(
    root: Path, disk: DiskStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.save(SCOPE, new_file("a.md", "old"))
    real, made = os.open, list[str]()

    def and_another_cleans(path: str, flags: int, *args: Any, **options: Any) -> int:
        file = real(path, flags, *args, **options)
        if flags & os.O_EXCL:
            made.append(path)
            if len(made) == 1:  # before it is held
                DiskStorage(root).delete(SCOPE, "nothing.md")
                assert os.listdir(root / SIDE / "tmp") == []
        return file

    monkeypatch.setattr(os, "open", and_another_cleans)
    disk.save(SCOPE, new_file("a.md", "new"))
    assert len(made) == 2
    assert disk.load(SCOPE, "a.md").content == "new"
    assert os.listdir(root / SIDE / "tmp") == []


def test_a_save_that_fails_leaves_nothing_behind(root: Path, disk: DiskStorage) -> None:
    disk.save(SCOPE, new_file("d/a.md", "a"))
    with pytest.raises(FileError):
        disk.save(SCOPE, new_file("d", "a directory is there"))
    with pytest.raises(FileError):
        disk.save(SCOPE, new_file("d/a.md/b.md", "a file is there"))
    assert os.listdir(root / SIDE / "tmp") == []
    assert set(listed(root)) == {"d", "d/a.md"}


OPENS = """
import sys
from sagents_nb.files.entry import new_file
from sagents_nb.files.storages.disk import DiskStorage

disk = DiskStorage(sys.argv[1], fsync=False)
for number in range(int(sys.argv[2])):
    disk.save_over("user:1", new_file(f"d/{number}.md", "text"), "")
events = []
sys.addaudithook(lambda event, args: events.append((event, args[0])))
disk.save_over("user:1", new_file("d/new.md", "text"), "")
opened = [what for event, what in events if event == "open" and not isinstance(what, int)]
print(len(opened), sum(event in ("os.listdir", "os.scandir") for event, _ in events))
"""


@pytest.mark.parametrize("count", [2, 50])
def test_a_new_file_opens_each_directory_on_its_way_once(root: Path, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPENS, str(root), str(count)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    # The root, what is beside the files (3), the temporary file, the lock, the log; and the root
    # and the directory of the file itself.
    assert done.stdout.split() == ["9", "0"], done.stderr


def test_threads_that_save_like_names_get_one_of_them(root: Path, disk: DiskStorage) -> None:
    for number in range(20):
        outcomes = []

        def save(name: str, outcomes: list[str] = outcomes) -> None:
            try:
                disk.save(SCOPE, new_file(name, name))
                outcomes.append(name)
            except FileError:
                pass

        names = (f"N{number}/x", f"n{number}/x")
        threads = [threading.Thread(target=save, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
        assert (root / outcomes[0]).read_text() == outcomes[0]


# what it needs


def test_a_root_that_can_only_be_read_is_read() -> None:
    root = Path(tempfile.mkdtemp())  # pytest's own directories are closed to other users
    disk = DiskStorage(root)
    disk.save(SCOPE, new_file("a.md", "a", title="Title"))
    script = textwrap.dedent("""
        import json, os, sys
        from sagents_nb.files.storages.disk import DiskStorage
        from sagents_nb.files.entry import new_file
        if os.getuid() == 0:
            os.setuid(65534)  # root may write anywhere
        disk = DiskStorage(sys.argv[1])
        found = [(e.path, e.title) for e in disk.list("s")]
        try:
            disk.save("s", new_file("b.md", "b"))
        except Exception as error:
            content = disk.load("s", "a.md").content
            print(json.dumps([found, content, type(error).__name__, str(error)]))
    """)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    ran = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True)
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(root)
    assert ran.returncode == 0, ran.stderr
    found, content, kind, message = json.loads(ran.stdout)
    assert (found, content, kind) == ([["a.md", "Title"]], "a", "FileError")
    assert message.startswith(f"b.md could not be saved in {root}: Permission denied")


def test_where_links_can_only_be_followed_it_says_what_to_use_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("confined", "sidefile", "disk"):
        monkeypatch.delitem(sys.modules, f"sagents_nb.files.storages.{name}")
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    import sagents_nb.files

    monkeypatch.delitem(vars(sagents_nb.files), "DiskStorage", raising=False)  # it may be loaded
    with pytest.raises(ConfigurationError, match=r"needs Linux or macOS.*SQLStorage"):
        sagents_nb.files.DiskStorage  # noqa: B018


@pytest.mark.parametrize("address", ["postgresql://me:hunter2@host/db", "s3://me:hunter2@bucket"])
def test_an_address_is_no_directory_and_is_not_shown(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = partial(sa.Session, sa.Agent(sa.ScriptedModel([])))
    for make in (DiskStorage, lambda place: session(filesystem=place)):
        with pytest.raises(ConfigurationError, match="is an address") as raised:
            make(address)
        assert "hunter2" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
