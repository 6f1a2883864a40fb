from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.files import FileSystem as Files
from sagents_nb.middleware.filesystem import FileSystem
from sagents_nb.tools import ToolOutput
from tests.middleware.calling import call, tool_of

MIDDLEWARE = FileSystem()


class Desk:
    """A filesystem, and the tools of a model over it."""

    def __init__(self, **files: str | bytes) -> None:
        self.files = Files()
        for name, content in files.items():
            self.files.write("/" + name.replace("__", "/") + ".md", content)

    def __call__(self, tool_name: str, **arguments: Any) -> ToolOutput:
        return call(tool_of(MIDDLEWARE, tool_name), arguments, files=self.files)

    def ok(self, tool_name: str, **arguments: Any) -> str:
        output = self(tool_name, **arguments)
        assert not output.is_error, output.content
        return str(output.content)

    def error(self, tool_name: str, **arguments: Any) -> str:
        before = self.files.entries()
        output = self(tool_name, **arguments)
        assert output.is_error, output.content
        assert self.files.entries() == before
        return str(output.content)


@pytest.mark.spec("S1.7.1", "S1.8.13")
def test_ls_is_json_sorted_by_path_with_directories() -> None:
    desk = Desk(b="é", d__a="x")
    assert json.loads(desk.ok("ls")) == [
        {
            "path": "/b.md",
            "type": "file",
            "file_type": "markdown",
            "persistence": "memory",
            "size": 2,
        },
        {"path": "/d", "title": "d", "type": "directory", "persistence": "memory"},
        {
            "path": "/d/a.md",
            "type": "file",
            "file_type": "markdown",
            "persistence": "memory",
            "size": 1,
        },
    ]


@pytest.mark.spec("S1.7.1", "P10")
def test_ls_says_what_there_is_not() -> None:
    assert Desk().ok("ls") == "There are no files yet."
    assert Desk().ok("ls", pattern="*.md") == "There are no files yet."
    desk = Desk(a="x", d__b="y")
    assert desk.ok("ls", pattern="*.txt") == "No files match '*.txt'."
    assert [e["path"] for e in json.loads(desk.ok("ls", pattern="*.md"))] == ["/a.md"]
    assert [e["path"] for e in json.loads(desk.ok("ls", pattern="/d/"))] == ["/d/b.md"]


def test_ls_of_very_many_files_stays_readable() -> None:
    desk = Desk()
    for i in range(1005):
        desk.files.write(f"/{i}", "")
    assert desk.ok("ls").endswith("]\n5 more are not shown; give a pattern.")


@pytest.mark.spec("S1.7.2", "P9")
def test_read_file_numbers_lines_from_one() -> None:
    desk = Desk(a="a\nb\n", long="\n".join("abcdefghijkl"), empty="", nl="\n", crlf="x\r\ny\r\n")
    assert desk.ok("read_file", file_path="/a.md") == "     1\ta\n     2\tb"
    assert desk.ok("read_file", file_path="a.md", offset=0) == "     1\ta\n     2\tb"
    assert (
        desk.ok("read_file", file_path="/long.md", offset=10, limit=2)
        == "Lines 10–11 of 12:\n    10\tj\n    11\tk"
    )
    assert desk.ok("read_file", file_path="/long.md", offset=12) == "Lines 12–12 of 12:\n    12\tl"
    assert desk.ok("read_file", file_path="/empty.md") == "     1\t"
    assert desk.ok("read_file", file_path="/nl.md") == "     1\t"
    assert desk.ok("read_file", file_path="/crlf.md") == "     1\tx\n     2\ty"


@pytest.mark.spec("S1.7.2")
def test_read_file_beyond_the_end_and_of_nothing() -> None:
    desk = Desk(a="a\nb\n", empty="")
    assert "empty or the offset is beyond" in desk.error("read_file", file_path="/a.md", offset=3)
    assert "empty or the offset is beyond" in desk.error(
        "read_file", file_path="/empty.md", offset=2
    )
    assert desk.error("read_file", file_path="/no.md").startswith("File not found: /no.md;")
    assert "'..'" in desk.error("read_file", file_path="../etc/passwd")


@pytest.mark.spec("S1.7.2")
def test_read_file_cuts_long_lines_and_stops_before_it_floods() -> None:
    desk = Desk(wide="x" * 3000, huge="\n".join(["y" * 1900] * 1000))
    shown = desk.ok("read_file", file_path="/wide.md")
    assert shown == "     1\t" + "x" * 2000 + "… [line cut]"
    huge = desk.ok("read_file", file_path="/huge.md")
    assert huge.startswith("Lines 1–104 of 1000:")
    assert len(huge) < 210_000


@pytest.mark.spec("S1.7.2")
def test_a_binary_file_is_described() -> None:
    desk = Desk()
    entry = desk.files.write("/i.png", b"\x89PNG\0")
    shown = desk.ok("read_file", file_path="/i.png")
    assert "binary file (image/png, 5 bytes" in shown
    assert str(entry.sha256) in shown
    assert "binary" in desk.error("edit_file", file_path="/i.png", old_string="P", new_string="Q")
    assert "binary" in desk.error(
        "edit_lines", file_path="/i.png", start_line=1, end_line=1, new_content="x"
    )


@pytest.mark.spec("S1.7.3", "S1.8.13", "P9")
def test_write_file_creates_and_points_elsewhere_when_there_is_one() -> None:
    desk = Desk()
    shown = json.loads(desk.ok("write_file", file_path="n/a.md", content=""))
    assert (shown["path"], shown["size"]) == ("/n/a.md", 0)
    assert desk.files.read("/n/a.md").mime_type == "text/plain"
    assert desk.files.read("/n/a.md").content == ""
    assert desk.files.entries()[0].path == "/n"
    error = desk.error("write_file", file_path="/n/a.md", content="new")
    assert "edit_file" in error
    assert "overwrite=true" in error
    desk.ok("write_file", file_path="/n/a.md", content="new", overwrite=True)
    assert desk.files.read("/n/a.md").content == "new"
    assert "directory" in desk.error("write_file", file_path="/n", content="x", overwrite=True)


@pytest.mark.spec("S1.7.4")
def test_edit_file_replaces_literally_and_shows_the_place() -> None:
    desk = Desk(a="one\ntwo (2)\nthree\nfour\nfive\nsix\nseven\n")
    created = desk.files.update_metadata("/a.md", {"k": 1}).created_at
    shown = desk.ok(
        "edit_file", file_path="/a.md", old_string="two (2)\nthree", new_string="2.\n2b\n3"
    )
    assert shown == (
        "Replaced 1 occurrence in /a.md.\nLines 1–7 of 8:\n     1\tone\n     2\t2.\n     3\t2b\n"
        "     4\t3\n     5\tfour\n     6\tfive\n     7\tsix"
    )
    entry = desk.files.read("/a.md")
    assert entry.content == "one\n2.\n2b\n3\nfour\nfive\nsix\nseven\n"
    assert (entry.custom, entry.created_at) == ({"k": 1}, created)


@pytest.mark.spec("S1.7.4")
def test_edit_file_counts_what_it_finds() -> None:
    desk = Desk(a="x.x.x")
    assert "not in /a.md" in desk.error(
        "edit_file", file_path="/a.md", old_string="y", new_string="z"
    )
    assert "occurs 3 times" in desk.error(
        "edit_file", file_path="/a.md", old_string="x", new_string="z"
    )
    for old, new in (("", "z"), ("x", "x")):
        desk.error("edit_file", file_path="/a.md", old_string=old, new_string=new)
    shown = desk.ok(
        "edit_file", file_path="/a.md", old_string="x", new_string="y", replace_all=True
    )
    assert shown.startswith("Replaced 3 occurrences in /a.md.")
    assert desk.files.read("/a.md").content == "y.y.y"
    assert "File not found: /no" in desk.error(
        "edit_file", file_path="/no", old_string="x", new_string="y"
    )


def test_edit_file_looks_at_the_limit_before_it_makes_the_text() -> None:
    desk = Desk(a="x" * 1000)
    desk.files = Files(max_file_size=2000)
    desk.files.write("/a.md", "x" * 1000)
    tracemalloc.start()
    try:
        said = desk.error(
            "edit_file", file_path="/a.md", old_string="x", new_string="y" * 50_000,
            replace_all=True,
        )  # fmt: skip
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "would have 50,000,000 characters" in said
    assert most < 10_000_000
    assert desk.files.read("/a.md").content == "x" * 1000


@pytest.mark.spec("S1.7.4", "S1.7.6")
def test_edits_keep_the_line_ends_of_a_windows_file() -> None:
    desk = Desk(a="a\r\nb\r\nc\r\n")
    desk.ok("edit_file", file_path="/a.md", old_string="a\nb", new_string="1\n2")
    assert desk.files.read("/a.md").content == "1\r\n2\r\nc\r\n"
    desk.ok("edit_lines", file_path="/a.md", start_line=2, end_line=2, new_content="x\ny")
    assert desk.files.read("/a.md").content == "1\r\nx\r\ny\r\nc\r\n"


@pytest.mark.spec("S1.7.5")
def test_search_text_in_one_file_marks_context() -> None:
    desk = Desk(a="one\ntwo\nthree\nfour\nfive\nTwo\n")
    assert (
        desk.ok("search_text", pattern="t[wh]", file_path="/a.md") == "     2\ttwo\n     3\tthree"
    )
    assert (
        desk.ok("search_text", pattern="^two$", file_path="/a.md", case_sensitive=False)
        == "     2\ttwo\n     6\tTwo"
    )
    assert desk.ok("search_text", pattern="(?i)TWO", file_path="/a.md", context_lines=1) == (
        "     1|\tone\n     2\ttwo\n     3|\tthree\n    --\n     5|\tfive\n     6\tTwo"
    )


@pytest.mark.spec("S1.7.5")
def test_search_text_over_all_files_is_in_path_order_with_one_limit() -> None:
    desk = Desk(b="x\nx\n", a="x\n", c="x\n")
    desk.files.write("/0.bin", b"x\0")
    assert desk.ok("search_text", pattern="x") == (
        "/a.md:\n     1\tx\n\n/b.md:\n     1\tx\n     2\tx\n\n/c.md:\n     1\tx"
    )
    assert desk.ok("search_text", pattern="x", max_results=2) == (
        "/a.md:\n     1\tx\n\n/b.md:\n     1\tx\n\n"
        "Only the first 2 hits are shown; make the pattern narrower."
    )
    assert "Only" not in desk.ok("search_text", pattern="x", max_results=4)
    assert desk.ok("search_text", pattern="q", file_path="a.md") == "No matches for 'q' in /a.md."
    desk.files.delete("/0.bin")
    assert desk.ok("search_text", pattern="q") == "No matches for 'q' in any file."


@pytest.mark.spec("S1.7.5")
def test_where_nothing_was_found_search_text_says_what_it_did_not_look_into() -> None:
    desk = Desk(a="x")
    desk.files.write("/0.bin", b"q\0")
    assert desk.ok("search_text", pattern="q") == (
        "No matches for 'q' in any file that was searched; not searched: 1 binary (/0.bin)."
    )
    for i in range(1, 6):
        desk.files.write(f"/{i}.png", b"\xff")
    assert desk.ok("search_text", pattern="q") == (
        "No matches for 'q' in any file that was searched; not searched: "
        "6 binary (/0.bin, /1.png, /2.png, …)."
    )
    assert desk.ok("search_text", pattern="x") == "/a.md:\n     1\tx"
    assert desk.ok("search_text", pattern="q", file_path="/0.bin") == (
        "/0.bin was not searched: it is a binary file."
    )


contents = st.text(st.sampled_from("ab1\r\n"), max_size=12)


@given(
    st.lists(contents | contents.map(str.encode) | st.just(b"\0"), max_size=8),
    st.sampled_from(["a", "^b", "a$", "b1?$", "^$", r"[^a]1", r"(?<!a)b"]),
    st.integers(1, 5),
)
def test_search_text_finds_in_files_searched_together_what_is_in_each(
    files: list[str | bytes], pattern: str, together: int
) -> None:
    desk = Desk(**{str(number): content for number, content in enumerate(files)})
    each = [desk.ok("search_text", pattern=pattern, file_path=path) for path in desk.files.list()]
    found = [
        f"{path}:\n{hits}"
        for path, hits in zip(desk.files.list(), each, strict=True)
        if not hits.startswith(("No matches", path))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sagents_nb.middleware.filesystem.TOGETHER", together)
        all_of_them = desk.ok("search_text", pattern=pattern)
    assert all_of_them.startswith("\n\n".join(found) or "No matches")


@pytest.mark.spec("S1.7.5")
def test_search_text_refuses_what_cannot_be_searched() -> None:
    desk = Desk(a="x")
    assert "no regular expression" in desk.error("search_text", pattern="(")
    assert "is too large" in desk.error("search_text", pattern="(?:x{1000}){1000}")
    assert "File not found" in desk.error("search_text", pattern="x", file_path="/no")


@pytest.mark.spec("S1.7.6")
def test_edit_lines_replaces_a_range() -> None:
    desk = Desk(a="1\n2\n3\n4\n", b="1\n2")
    shown = desk.ok("edit_lines", file_path="/a.md", start_line=2, end_line=3, new_content="x\n")
    assert shown == "Replaced 2 lines (2–3) of /a.md.\n     1\t1\n     2\tx\n     3\t4"
    desk.ok("edit_lines", file_path="/a.md", start_line=3, end_line=3, new_content="a\nb\nc")
    assert desk.files.read("/a.md").content == "1\nx\na\nb\nc\n"
    shown = desk.ok("edit_lines", file_path="/b.md", start_line=1, end_line=2, new_content="")
    assert shown.startswith("Replaced 2 lines (1–2)")
    assert desk.files.read("/b.md").content == ""


@pytest.mark.spec("S1.7.6")
def test_edit_lines_empty_text_leaves_one_empty_line() -> None:
    desk = Desk(a="1\n2\n3\n")
    desk.ok("edit_lines", file_path="/a.md", start_line=2, end_line=2, new_content="")
    assert desk.files.read("/a.md").content == "1\n\n3\n"


@pytest.mark.spec("S1.7.6")
def test_edit_lines_has_four_different_errors() -> None:
    desk = Desk(a="1\n2\n")
    texts = {
        desk.error("edit_lines", file_path="/a.md", start_line=a, end_line=b, new_content="x")
        for a, b in ((0, 1), (2, 1), (3, 3), (1, 3))
    }
    assert len(texts) == 4
    assert sum("has only 2 lines" in text for text in texts) == 2


@pytest.mark.spec("S1.7.7")
def test_delete_file_deletes_files_and_entries_of_directories() -> None:
    desk = Desk(a="x", d__b="y")
    assert desk.ok("delete_file", file_path="/a.md") == "Deleted /a.md."
    assert "File not found: /a.md" in desk.error("delete_file", file_path="/a.md")
    assert "were kept" in desk.ok("delete_file", file_path="/d")
    assert desk.files.list() == ["/d/b.md"]


@pytest.mark.spec("S1.7.8")
def test_move_file_tells_how_much_it_moved() -> None:
    desk = Desk(a="x", d__b="y", d__c="z")
    assert desk.ok("move_file", old_path="/d", new_path="/e") == "Moved 3 entries: /d → /e."
    assert (
        desk.ok("move_file", old_path="/a.md", new_path="b.md") == "Moved 1 entry: /a.md → /b.md."
    )
    assert "nothing was moved" in desk.ok("move_file", old_path="/e", new_path="/e")
    assert "File not found: /x" in desk.error("move_file", old_path="/x", new_path="/y")
    assert "exists already" in desk.error("move_file", old_path="/b.md", new_path="/e")
    assert "into itself" in desk.error("move_file", old_path="/e", new_path="/e/f")


def test_without_a_filesystem_the_tools_say_so() -> None:
    output = call(tool_of(MIDDLEWARE, "ls"), {}, files=None)
    assert output.is_error
    assert "no filesystem" in str(output.content)
