"""The option that files are read before they are edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import FileSystem as Files
from tests.talking import call, results


def session_with(*turns: Any, **options: Any) -> sa.Session:
    agent = sa.Agent(
        model=sa.ScriptedModel(list(turns)),
        filesystem_options={"must_read_before_edit": True, **options},
    )
    files = Files()
    files.write("/a.md", "one\ntwo\n")
    return sa.Session(agent, filesystem=files)


def edit(id: str, path: str = "/a.md", old: str = "one") -> sa.ToolCall:
    return call("edit_file", id, file_path=path, old_string=old, new_string="1")


@pytest.mark.spec("H3.4.2")
def test_an_edit_of_what_was_not_read_is_refused_until_it_is() -> None:
    lines = call("edit_lines", "c2", file_path="/a.md", start_line=1, end_line=1, new_content="x")
    session = session_with(
        edit("c1"), lines, call("read_file", "c3", file_path="a.md"), edit("c4"), "done"
    )
    said = results(session.send("go").result().state)
    for refused in said[:2]:
        assert refused == "Read /a.md with read_file before you edit it."
    assert said[3].startswith("Replaced 1 occurrence")
    session.close()


@pytest.mark.spec("H3.4.2")
def test_what_was_read_is_known_in_later_runs() -> None:
    session = session_with(
        call("read_file", "c1", file_path="/a.md"), "read", edit("c2"), edit("c3", old="two"), "ok"
    )
    session.send("read").result()
    said = results(session.send("edit").result().state)
    assert [text.startswith("Replaced") for text in said[1:]] == [True, True]
    session.close()


@pytest.mark.spec("H3.4.2")
def test_writing_a_file_is_not_reading_it() -> None:
    write = call("write_file", "c1", file_path="/a.md", content="one", overwrite=True)
    session = session_with(write, edit("c2"), "done")
    said = results(session.send("go").result().state)
    assert said[1].startswith("Read /a.md")
    assert session.files.read("/a.md").content == "one"
    session.close()


def test_without_the_option_nothing_has_to_be_read() -> None:
    session = session_with(edit("c1"), "done", must_read_before_edit=False)
    assert results(session.send("go").result().state)[0].startswith("Replaced")
    session.close()


@pytest.mark.spec("H3.4.2")
def test_existence_comes_first_then_reading_then_uniqueness() -> None:
    session = session_with(
        edit("c1", path="/no.md"),
        edit("c2", old="o"),
        call("read_file", "c3", file_path="/a.md"),
        edit("c4", old="o"),
        "done",
    )
    said = results(session.send("go").result().state)
    assert "File not found: /no.md" in said[0]
    assert "Read /a.md with read_file before you edit it." in said[1]
    assert "occurs 2 times" in said[3]
    session.close()


@pytest.mark.spec("H3.4.2")
def test_what_was_read_is_known_after_a_restart_and_in_a_restored_state(tmp_path: Path) -> None:
    def agent(*turns: Any) -> sa.Agent:
        return sa.Agent(
            sa.ScriptedModel(list(turns)), filesystem_options={"must_read_before_edit": True}
        )

    store = sa.ConversationStore(tmp_path / "agents.db")
    files = Files()
    files.write("/a.md", "one\ntwo\n")
    files.write("/b.md", "one\n")
    reads = [call("read_file", f"c{n}", file_path=path) for n, path in enumerate(["/a.md", "b.md"])]
    with sa.Session(agent(reads, "read"), "c1", store=store, filesystem=files) as session:
        session.send("read").result()
        exported = session.export_state()
        assert session.state.metadata == {"FileSystem.read": {"/a.md": True, "/b.md": True}}
    edits = [edit("c3"), edit("c4", path="/b.md")]
    again = sa.Session.open("c1", agent=agent(edits, "ok"), store=store, filesystem=files)
    restored = sa.Session.restore(exported, agent(edit("c3", old="two"), "ok"), filesystem=files)
    for session in (again, restored):
        said = results(session.send("edit").result().state)[2:]
        assert all(text.startswith("Replaced") for text in said)
        session.reset()
        assert session.state.metadata == {}
        session.close()
    store.close()


def test_without_the_option_nothing_is_kept_of_what_was_read() -> None:
    read = call("read_file", "c1", file_path="/a.md")
    session = session_with(read, "done", must_read_before_edit=False)
    assert session.send("go").result().state.metadata == {}
    session.close()
