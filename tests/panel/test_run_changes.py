"""What the last run did to the files, as a page sees it, and Undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import DiskStorage, FileSystem, Mount
from sagents_nb.panel.publisher import Publisher
from sagents_nb.store import ConversationStore
from tests.panel.pages import session_of, write
from tests.panel.test_files import ask
from tests.panel.test_requests import MESSAGES

EDIT = sa.ToolCall(
    "e1", "edit_file", {"file_path": "/a.md", "old_string": "one", "new_string": "two"}
)
DELETE = sa.ToolCall("d1", "delete_file", {"file_path": "/b.md"})
NEW = write("/new.md", "# New")


@pytest.fixture(params=["in memory", "on a disk", "in a store"])
def session(request: Any, tmp_path: Path) -> Iterator[Any]:
    """A session that a page shows, whose first run edits, deletes and makes a file."""
    files = FileSystem()
    if request.param == "on a disk":
        storage = DiskStorage(tmp_path / "files", fsync=False)
        files = FileSystem(mounts=[Mount(default=True, storage=storage)])
    store = ConversationStore(tmp_path / "a.db") if request.param == "in a store" else None
    files.write("/a.md", "one\n")
    files.write("/b.md", "bee\n", title="B")
    session = session_of([EDIT, DELETE, NEW], "Done.", "Nothing.", filesystem=files, store=store)
    Publisher(session)
    session.send("Go.").result()
    yield session
    session.close()
    files.close()
    if store is not None:
        store.close()


def changes(session: Any) -> dict[str, str]:
    """Which files were changed, and how."""
    return {c["path"]: c["kind"] for c in ask(session, "read_changes")["changes"]}


def change(session: Any, path: str) -> dict[str, Any]:
    told: dict[str, Any] = ask(session, "read_change", path=path)["change"]
    return told


def undo(session: Any, path: Any) -> str:
    """Undo it; what was said against it, or nothing."""
    return str(ask(session, "undo_change", path=path).get("message", ""))


def test_a_run_tells_what_it_has_changed_and_how(session: Any) -> None:
    assert changes(session) == {"/a.md": "changed", "/b.md": "deleted", "/new.md": "new"}
    told = {"path": "/a.md", "kind": "changed", "before": "one\n", "after": "two\n"}
    assert change(session, "/a.md") == {**told, "kept": True, "since": False}
    assert change(session, "/b.md")["before"] == "bee\n"
    assert change(session, "/b.md")["after"] is None
    assert change(session, "/new.md")["before"] is None
    assert change(session, "/new.md")["after"] == "# New"


def test_undo_makes_each_file_what_it_was(session: Any) -> None:
    for path in ("/a.md", "/b.md", "/new.md"):
        assert undo(session, path) == ""
    assert session.files.list() == ["/a.md", "/b.md"]
    assert session.files.read("/a.md").text == "one\n"
    assert session.files.read("/b.md").text == "bee\n"
    assert session.files.read("/b.md").title == "B"
    assert changes(session) == {}
    assert "left that file as it was" in undo(session, "/a.md")


def test_what_has_changed_since_is_not_undone(session: Any) -> None:
    session.files.write("/a.md", "by hand")
    session.files.write("/b.md", "by hand")
    session.files.write("/new.md", "by hand")
    for path in ("/a.md", "/new.md"):
        assert undo(session, path) == (
            f"{path} has changed since the run, so nothing was undone; change it by hand."
        )
    assert undo(session, "/b.md")
    assert {session.files.read(path).text for path in session.files.list()} == {"by hand"}
    assert change(session, "/a.md")["since"]
    assert change(session, "/b.md")["since"]


def test_what_is_gone_since_is_not_undone(session: Any) -> None:
    session.files.delete("/a.md")
    session.files.delete("/new.md")
    assert undo(session, "/a.md")
    assert undo(session, "/new.md")
    assert session.files.list() == []


def test_the_next_run_is_the_one_that_counts(session: Any) -> None:
    session.send("And?").result()
    assert changes(session) == {}


def test_what_a_person_has_made_of_it_on_the_disk_is_not_overwritten(tmp_path: Path) -> None:
    storage = DiskStorage(tmp_path, fsync=False)
    files = FileSystem(mounts=[Mount(default=True, storage=storage, debounce=0)])
    session = session_of(NEW, "Done.", filesystem=files)
    Publisher(session)
    session.send("Go.").result()
    (tmp_path / "new.md").write_text("by hand")
    assert "has changed since the run" in undo(session, "/new.md")
    assert (tmp_path / "new.md").read_text() == "by hand"
    session.close()
    files.close()


@pytest.mark.parametrize("path", [None, 3, {}, [], "/../x", "/unknown.md"])
def test_a_path_that_makes_no_sense_is_refused(session: Any, path: Any) -> None:
    for kind in ("read_change", "undo_change"):
        assert ask(session, kind, path=path)["type"] == "error"
    assert changes(session) == {"/a.md": "changed", "/b.md": "deleted", "/new.md": "new"}


def test_a_run_that_goes_on_after_a_question_is_one_run() -> None:
    session = session_of(
        write("/a.md", "x", id="w1"), write("/b.md", "y", id="w2"), "Done.", gate=True
    )
    Publisher(session)
    session.send("Go.").result()
    session.approve().result()
    assert changes(session) == {"/a.md": "new"}
    session.approve().result()
    assert changes(session) == {"/a.md": "new", "/b.md": "new"}
    session.close()


def test_a_run_that_failed_and_went_on_as_itself_is_one_run() -> None:
    lost = ConnectionError("cable")
    session = session_of(write("/a.md", "x", id="w1"), lost, write("/b.md", "y", id="w2"), "Done.")
    Publisher(session)
    run = session.send("Go.")
    with pytest.raises(sa.ModelError):
        run.result()
    assert changes(session) == {"/a.md": "new"}
    session.retry(run.id).result()
    assert changes(session) == {"/a.md": "new", "/b.md": "new"}
    session.close()


def test_nothing_is_undone_while_the_run_goes_on() -> None:
    said: list[str] = []

    @sa.tool
    def press_undo() -> str:
        """Press the button in the middle of the run."""
        said.append(undo(session, "/new.md"))
        return "Pressed."

    turns = (NEW, sa.ToolCall("p1", "press_undo", {}), "Done.")
    session: Any = session_of(*turns, tools=[press_undo])
    Publisher(session)
    session.send("Go.").result()
    assert said == ["The run still goes on; stop it or wait for its end, and undo then."]
    assert session.files.list() == ["/new.md"]
    assert undo(session, "/new.md") == ""
    session.close()


MOVE = sa.ToolCall("m1", "move_file", {"old_path": "/c", "new_path": "/d"})


def test_what_a_run_has_changed_before_there_was_a_panel_is_told_too() -> None:
    files = FileSystem()
    for path in ("/a.md", "/b.md", "/c/one.md", "/cc.md"):
        files.write(path, "one\n")
    gone = sa.ToolCall("d2", "delete_file", {"file_path": "/brief.md"})
    turns = [write("/before.md", "x"), "Said."], [EDIT, DELETE, NEW, MOVE], write("/brief.md", "x")
    session: Any = session_of(*turns[0], *turns[1:], gone, "Done.", filesystem=files)
    session.send("Go.").result()
    session.send("And go.").result()
    expected = {
        "/a.md": "changed",
        "/b.md": "deleted",
        "/new.md": "new",
        "/c/one.md": "deleted",
        "/d/one.md": "new",
    }
    assert changes(session) == expected
    assert change(session, "/a.md")["kept"] is False
    assert undo(session, "/a.md").startswith("What /a.md was before is not known")
    assert undo(session, "/b.md").startswith("What /b.md was before is not known")
    assert undo(session, "/new.md") == ""
    assert session.files.list() == ["/a.md", "/before.md", "/cc.md", "/d/one.md"]
    session.close()


def test_a_run_that_goes_on_when_the_panel_comes_is_one_run() -> None:
    session: Any = session_of(
        [EDIT, write("/a2.md", "x")], sa.ToolCall("p1", "look", {}), NEW, "Done.", tools=[look]
    )
    session.files.write("/a.md", "one\n")
    SESSIONS.append(session)
    session.send("Go.").result()
    assert changes(session) == {"/a.md": "changed", "/a2.md": "new", "/new.md": "new"}
    SESSIONS.clear()
    session.close()


SESSIONS: list[Any] = []


@sa.tool
def look() -> str:
    """Open the panel."""
    Publisher(SESSIONS[0])
    return "Opened."


def test_of_a_large_file_it_is_said_that_its_text_was_not_kept() -> None:
    session = session_of(sa.ToolCall("d1", "delete_file", {"file_path": "/large.md"}), "Done.")
    session.files.write("/large.md", "x" * 300_000)
    Publisher(session)
    session.send("Go.").result()
    told = change(session, "/large.md")
    assert (told["before"], told["kept"]) == (None, False)
    assert undo(session, "/large.md") == (
        "What /large.md was before is not known: only texts of up to 200 kB are kept, "
        "once there is a panel."
    )
    session.close()


def test_the_examples_of_the_protocol_have_the_same_shape(session: Any) -> None:
    examples = json.loads(MESSAGES.read_text())["from_kernel"]
    listed = next(m["changes"] for m in examples if "changes" in m)
    shown = next(m["change"] for m in examples if "change" in m)
    assert {tuple(c) for c in listed} == {tuple(c) for c in ask(session, "read_changes")["changes"]}
    assert set(shown) == set(change(session, "/a.md"))
