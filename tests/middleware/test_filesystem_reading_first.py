"""The option that files are read before they are edited."""

from __future__ import annotations

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
