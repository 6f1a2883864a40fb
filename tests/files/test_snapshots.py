"""What the files were: shown as a diff, and brought back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.errors import NotFound
from sagents_nb.files import FileError, FileSystem, Mount
from tests.files.doubles import Desk, HandClock, RichStorage, stored


def test_a_diff_shows_what_was_made_changed_and_deleted() -> None:
    fs = FileSystem()
    fs.write("/changed.md", "one\ntwo\nthree\n")
    fs.write("/gone.md", "x\n")
    fs.write("/same.md", "y")
    fs.write("/image.png", b"\x89PNG\0")
    before = fs.snapshot("before")
    assert fs.diff(before) == ""
    fs.write("/changed.md", "one\n2\nthree")
    fs.delete("/gone.md")
    fs.write("/made/new.md", "z\n")
    fs.write("/empty.md", "")
    fs.write("/image.png", b"\x89PNG\0\0")
    fs.update_entry("/same.md", title="no change of content")
    assert fs.diff(before) == (
        "--- a/changed.md\n+++ b/changed.md\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n"
        "\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/empty.md\n"
        "--- a/gone.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "Binary file /image.png was changed (5 → 6 bytes)\n"
        "--- /dev/null\n+++ b/made/new.md\n@@ -0,0 +1 @@\n+z\n"
    )


def test_two_snapshots_are_compared_and_listed() -> None:
    fs = FileSystem()
    one = fs.snapshot("one")
    fs.write("/a", "x\n")
    two = fs.snapshot()
    fs.write("/a", "y\n")
    assert "+x" in fs.diff(one, two)
    assert "-x" in fs.diff(two, one)
    assert [(s.id, s.label, s.entries, s.size) for s in fs.snapshots()] == [
        (one, "one", 0, 0),
        (two, None, 1, 2),
    ]
    with pytest.raises(NotFound, match="no snapshot 'x'"):
        fs.diff("x")
    with pytest.raises(FileError, match="no snapshot 'x'"):
        fs.restore("x")


def test_the_last_hundred_are_kept() -> None:
    fs = FileSystem()
    ids = [fs.snapshot() for _ in range(105)]
    assert [s.id for s in fs.snapshots()] == ids[5:]


def test_a_large_change_is_told_with_its_sizes() -> None:
    fs = FileSystem()
    before = fs.snapshot()
    fs.write("/a", "x\n" * 6000)
    assert fs.diff(before) == "Large file /a was created (12,000 bytes)\n"


def test_a_restore_brings_everything_back_and_tells() -> None:
    fs = FileSystem()
    fs.write("/d/a.md", "1", title="A", custom={"k": 1})
    fs.write("/gone.md", "2")
    fs.mkdir("/empty")
    before = fs.entries()
    id = fs.snapshot()
    fs.write("/d/a.md", "changed", title="B")
    fs.delete("/gone.md")
    fs.delete("/empty")
    fs.write("/new/deep/file", "3")
    fs.write("/gone.md/is/a/directory/now", "4")
    events: list[Any] = []
    fs.subscribe(events.append)
    fs.restore(id)
    assert fs.entries() == before
    assert fs.diff(id) == ""
    assert {e.path for e in events if e.type == "file_updated"} == {
        "/d/a.md",
        "/gone.md",
        "/empty",
    }
    events.clear()
    fs.restore(id)
    assert events == []


def test_the_storage_follows_a_restore() -> None:
    desk = Desk()
    desk.fs.write("/m/a", "old")
    desk.fs.write("/m/gone", "x")
    id = desk.fs.snapshot()
    desk.fs.write("/m/a", "new")
    desk.fs.delete("/m/gone")
    desk.fs.write("/m/made", "y")
    desk.fs.move("/m/a", "/m/b")
    desk.fs.flush()
    assert desk.storage.contents() == {"b": "new", "made": "y"}
    desk.fs.restore(id)
    desk.fs.flush()
    assert desk.storage.contents() == {"a": "old", "gone": "x"}
    assert desk.reopened().list() == ["/m/a", "/m/gone"]


@pytest.mark.parametrize("change", ["write", "delete", "move", "describe", "read", "mkdir"])
def test_a_snapshot_of_unread_files_has_their_contents_when_they_change(change: str) -> None:
    storage = RichStorage()
    storage.save("", stored("d/a", "stored\n"))
    storage.save("", stored("d/b", "untouched"))
    desk = Desk(storage)
    id = desk.fs.snapshot()
    if change == "write":
        desk.fs.write("/m/d/a", "new\n")
    elif change == "delete":
        desk.fs.delete("/m/d/a")
    elif change == "move":
        desk.fs.move("/m/d/a", "/m/x")
    elif change == "describe":
        desk.fs.update_entry("/m/d/a", title="T")
        desk.fs.write("/m/d/a", "new\n")
    elif change == "read":
        desk.fs.read("/m/d/a")
        desk.fs.write("/m/d/a", "new\n")
    else:
        desk.fs.delete("/m/d/a")
        desk.fs.mkdir("/m/d/a")
    desk.fs.flush()
    assert "-stored" in desk.fs.diff(id)
    desk.fs.restore(id)
    desk.fs.flush()
    assert storage.contents() == {"d/a": "stored\n", "d/b": "untouched"}
    assert storage.count("load", "d/b") == 0


def test_a_restore_leaves_read_only_mounts_alone() -> None:
    storage = RichStorage()
    storage.save("", stored("a", "x"))
    fs = FileSystem(("test", 1), [Mount("ro", storage, readonly=True)], clock=HandClock())
    fs.write("/b", "1")
    id = fs.snapshot()
    storage.save("", stored("new", "y"))
    fs.reset()
    assert fs.list() == ["/ro/a", "/ro/new"]
    storage.asked.clear()
    fs.restore(id)
    assert fs.list() == ["/b", "/ro/a", "/ro/new"]
    assert storage.asked == []


def test_what_cannot_be_restored_is_named_and_the_rest_is() -> None:
    desk = Desk()
    for name in "abc":
        desk.fs.write(f"/m/{name}", "x")
    id = desk.fs.snapshot()
    for name in "abc":
        desk.fs.delete(f"/m/{name}")
    desk.storage.broken = lambda what, path: path == "b"
    with pytest.raises(FileError, match="/m/b"):
        desk.fs.restore(id)
    assert desk.storage.contents() == {"a": "x", "c": "x"}
    assert desk.fs.list() == ["/m/a", "/m/b", "/m/c"]
    desk.storage.broken = lambda what, path: False
    desk.fs.flush()
    assert desk.storage.contents() == {"a": "x", "b": "x", "c": "x"}


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "move", "mkdir"]),
        st.sampled_from(["/a", "/b", "/a/c", "/m/a", "/m/b", "/m/a/c"]),
        st.sampled_from(["/a", "/x", "/m/x", "/m/a"]),
        st.text(max_size=3),
    ),
    max_size=12,
)


def take(fs: FileSystem, changes: list[tuple[str, str, str, str]]) -> None:
    for what, path, other, content in changes:
        try:
            if what == "write":
                fs.write(path, content)
            elif what == "delete":
                fs.delete(path)
            elif what == "move":
                fs.move(path, other)
            else:
                fs.mkdir(path)
        except FileError:
            pass


@settings(max_examples=100)
@given(steps, steps)
def test_whatever_was_done_is_undone(before: Any, after: Any) -> None:
    desk = Desk()
    take(desk.fs, before)
    contents = {e.path: e.content for e in desk.fs.entries()}
    id = desk.fs.snapshot()
    take(desk.fs, after)
    desk.fs.restore(id)
    assert {e.path: e.content for e in desk.fs.entries()} == contents
    assert desk.fs.diff(id) == ""
    desk.fs.flush()
    assert desk.storage.contents() == {
        p.removeprefix("/m/"): c
        for p, c in contents.items()
        if p.startswith("/m/") and c is not None
    }


def test_the_file_changes_of_a_run_are_shown_and_undone() -> None:
    model = sa.ScriptedModel(
        [
            sa.ToolCall("1", "write_file", {"file_path": "/plan.md", "content": "do it\n"}),
            "Done.",
        ]
    )
    session = sa.Session(sa.Agent(model=model))
    before = session.files.snapshot()
    session.send("plan").result()
    assert "+do it" in session.files.diff(before)
    session.files.restore(before)
    assert session.files.list() == []
    session.close()
