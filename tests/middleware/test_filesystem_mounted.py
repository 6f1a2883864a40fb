"""The file tools over mounted files, and how an agent comes to them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import FileSystem, Mount
from sagents_nb.middleware.filesystem import TOOL_NAMES
from sagents_nb.runtime.thread import runtime
from tests.files.doubles import Desk, DictStorage, HandClock, RichStorage, stored
from tests.talking import PATIENCE, call, results


@sa.tool
def think() -> str:
    """Think."""
    return "Thought."


def said_by(files: FileSystem, *calls: sa.ToolCall, **options: Any) -> list[str]:
    """What the tools answer to a model that calls them in one turn."""
    agent = sa.Agent(model=sa.ScriptedModel([list(calls), "done"]), **options)
    session = sa.Session(agent, filesystem=files)
    state = session.send("go").result().state
    session.close()
    return results(state)


@pytest.mark.spec("S1.7.5", "S1.8.5")
def test_a_search_reads_what_was_not_read_and_skips_what_cannot_be() -> None:
    storage = RichStorage()
    for name in "abc":
        storage.save("", stored(f"{name}.md", f"needle in {name}\n"))
    storage.broken = lambda what, path: path == "b.md"
    (found,) = said_by(Desk(storage).fs, call("search_text", pattern="needle"))
    assert found == (
        "/m/a.md:\n     1\tneedle in a\n\n/m/c.md:\n     1\tneedle in c\n\n"
        "Not searched: 1 unreadable (/m/b.md)."
    )


@pytest.mark.spec("S1.7.5")
def test_a_search_names_what_is_too_large_cannot_be_read_or_is_no_text() -> None:
    storage = RichStorage()
    storage.save("", stored("a.md", "short"))
    storage.save("", stored("b.md", "needle"))
    storage.save("", stored("c.bin", b"\0"))
    for name in ("d.csv", "e.csv"):
        storage.save("", stored(name, "needle " * 10))
    storage.broken = lambda what, path: path == "b.md"
    desk = Desk(storage, max_file_size=20)
    not_found, found, gone = said_by(
        desk.fs,
        call("search_text", "c1", pattern="needle"),
        call("search_text", "c2", pattern="short"),
        call("search_text", "c3", pattern="needle", file_path="/m/d.csv"),
    )
    assert not_found == (
        "No matches for 'needle' in any file that was searched; not searched: "
        "2 too large (/m/d.csv, /m/e.csv), 1 unreadable (/m/b.md), 1 binary (/m/c.bin)."
    )
    assert found == (
        "/m/a.md:\n     1\tshort\n\n"
        "Not searched: 2 too large (/m/d.csv, /m/e.csv), 1 unreadable (/m/b.md)."
    )
    assert "over the limit of 20 for one file" in gone


@pytest.mark.spec("S1.7.5")
def test_a_file_that_was_deleted_during_a_search_is_not_missed_in_it() -> None:
    storage = RichStorage()
    for name in "ab":
        storage.save("", stored(f"{name}.md", "x"))
    fs = Desk(storage).fs

    def delete_the_other(what: str, path: str) -> None:
        if (what, path) == ("load", "a.md"):
            storage.during = lambda what, path: None
            fs.delete("/m/b.md")

    storage.during = delete_the_other
    (said,) = said_by(fs, call("search_text", pattern="q"))
    assert said == "No matches for 'q' in any file."


@pytest.mark.spec("S1.7.1", "S1.8.5")
def test_ls_tells_what_is_persisted_and_reads_nothing() -> None:
    storage = RichStorage()
    storage.save("", stored("a.md", "12345"))
    storage.asked.clear()
    (listed,) = said_by(Desk(storage).fs, call("ls", pattern="/m/*"))
    assert '"persistence": "persisted", "size": 5' in listed
    assert storage.asked == [("list", "")]


@pytest.mark.spec("S1.7.7", "S1.8.6")
def test_read_only_files_answer_with_the_directory() -> None:
    storage = RichStorage()
    storage.save("", stored("a.md", "x"))
    fs = Desk(storage, readonly=True).fs
    said = said_by(
        fs,
        call("delete_file", "c1", file_path="/m/a.md"),
        call("write_file", "c2", file_path="/m/b.md", content="x"),
        call("edit_file", "c3", file_path="/m/a.md", old_string="x", new_string="y"),
        call("move_file", "c4", old_path="/m/a.md", new_path="/a.md"),
        call("read_file", "c5", file_path="/m/a.md"),
    )
    assert all("is in /m, which is read-only" in text for text in said[:4])
    assert said[4] == "     1\tx"


@pytest.mark.spec("S1.7.8")
def test_a_move_between_places_is_refused_in_words() -> None:
    fs = Desk().fs
    fs.write("/a.md", "x")
    (said,) = said_by(fs, call("move_file", old_path="/a.md", new_path="/m/a.md"))
    assert "which is kept elsewhere; write it there and delete the old one" in said


def test_limits_are_tool_errors_and_nothing_is_written() -> None:
    desk = Desk(max_file_size=10, max_total_size=15, max_entries=3, max_depth=2)
    desk.fs.write("/m/a", "x" * 10)
    kept = dict(desk.storage.files)
    said = said_by(
        desk.fs,
        call("write_file", "c1", file_path="/m/b", content="x" * 11),
        call("write_file", "c2", file_path="/m/b", content="x" * 6),
        call("write_file", "c3", file_path="/m/b/c/d", content=""),
        call("edit_file", "c4", file_path="/m/a", old_string="xxxxxxxxxx", new_string="y" * 11),
    )
    assert ["limit" in text or "levels deep" in text for text in said] == [True] * 4
    assert desk.storage.files == kept
    assert desk.fs.list() == ["/m/a"]
    assert desk.fs.read("/m/a").content == "x" * 10


@pytest.mark.parametrize("name", [n for n in TOOL_NAMES if n not in ("ls", "edit_lines")])
def test_a_slow_storage_does_not_hold_up_the_runtime(name: str) -> None:
    storage = DictStorage()
    storage.save("", stored("a.md", "x"))
    fs = FileSystem(("slow", 1), [Mount("m", storage, debounce=0)], clock=HandClock())
    begun, go_on = threading.Event(), threading.Event()

    def slow(what: str, path: str) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    storage.during = slow
    arguments = {
        "read_file": {"file_path": "/m/a.md"},
        "write_file": {"file_path": "/m/new.md", "content": "x"},
        "edit_file": {"file_path": "/m/a.md", "old_string": "x", "new_string": "y"},
        "search_text": {"pattern": "x"},
        "delete_file": {"file_path": "/m/a.md"},
        "move_file": {"old_path": "/m/a.md", "new_path": "/m/b.md"},
    }[name]
    agent = sa.Agent(model=sa.ScriptedModel([call(name, **arguments), "done"]))
    session = sa.Session(agent, filesystem=fs)
    run = session.send("go")
    assert begun.wait(PATIENCE)
    runtime.call(lambda: None)  # else it waits for the storage, which waits for what follows
    go_on.set()
    state = run.result().state
    assert not state.messages[2].tool_results[0].is_error
    session.close()


@pytest.mark.spec("S1.8.1", "S1.7.9")
def test_an_agent_with_a_scope_works_in_the_filesystem_that_was_opened() -> None:
    scope = ("test", "project 7")
    storage = RichStorage()
    fs = sa.open_filesystem(scope, [sa.Mount("notes", storage)])
    try:
        write = call("write_file", file_path="/notes/a.md", content="x")
        agent = sa.Agent(model=sa.ScriptedModel([write, "done"]), filesystem_scope=scope)
        agent.run("go")
        assert storage.contents() == {"a.md": "x"}
        session = sa.Session(agent)
        assert session.files is fs
        session.close()
        assert fs.read("/notes/a.md").content == "x"  # the session does not own it
    finally:
        sa.filesystems.close(scope)


@pytest.mark.spec("S1.8.1")
def test_a_sub_agent_works_in_the_same_files() -> None:
    desk = Desk()
    writer = sa.SubAgentConfig(
        name="writer",
        description="Writes.",
        system_prompt="Write.",
        tools=[think],
        middleware=[sa.FileSystem()],
        model=sa.ScriptedModel(
            [call("write_file", file_path="/m/report.md", content="done by another"), "Written."]
        ),
    )
    ask = call("task", instructions="Write the report.", subagent_type="writer")
    said_by(desk.fs, ask, subagent_options={"subagents": [writer]})
    assert desk.storage.contents() == {"report.md": "done by another"}
