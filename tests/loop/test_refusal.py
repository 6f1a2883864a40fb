"""Nobody is asked about a call of which it is known that it would be refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import DiskStorage, Mount
from sagents_nb.messages import DECLINED

OLD = "one\ntwo\n"


def write(content: str, **more: Any) -> sa.ToolCall:
    return sa.ToolCall("w", "write_file", {"file_path": "/a.md", "content": content, **more})


def edit(old: str, **more: Any) -> sa.ToolCall:
    arguments = {"file_path": "/a.md", "old_string": old, "new_string": "2"}
    return sa.ToolCall("e", "edit_file", {**arguments, **more})


def lines(start: int, end: int) -> sa.ToolCall:
    arguments = {"file_path": "/a.md", "start_line": start, "end_line": end, "new_content": "2"}
    return sa.ToolCall("l", "edit_lines", arguments)


def session_of(*turns: Any, files: sa.VirtualFilesystem | None = None) -> sa.Session:
    files = files or sa.VirtualFilesystem()
    files.write("/a.md", OLD)
    gates = dict.fromkeys(("write_file", "edit_file", "edit_lines"), True)
    agent = sa.Agent(sa.ScriptedModel([*turns, "Done."]), interrupt_on=gates)
    return sa.Session(agent, filesystem=files)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (write("new"), "/a.md exists already; use edit_file"),
        (edit("three"), "old_string is not in /a.md"),
        (edit("o"), "occurs 2 times in /a.md"),
        (lines(3, 9), "has only 2 lines"),
        (sa.ToolCall("m", "edit_file", {**edit("two").arguments, "file_path": "/no.md"}), "/no.md"),
    ],
)
def test_what_would_be_refused_is_refused_and_not_asked_about(call: sa.ToolCall, why: str) -> None:
    with session_of(call) as session:
        result = session.send("go").result()
        assert (result.status, result.text) == ("completed", "Done.")
        (told,) = result.messages[2].tool_results
        assert told.is_error
        assert told.metadata[DECLINED] is True
        assert why in told.text
        assert session.files.read("/a.md").content == OLD


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (write("new", overwrite=True), "new"),
        (edit("two"), "one\n2\n"),
        (edit("o", replace_all=True), "2ne\ntw2\n"),
        (lines(2, 2), "one\n2\n"),
    ],
)
def test_what_can_be_done_is_asked_about_and_done(call: sa.ToolCall, after: str) -> None:
    with session_of(call) as session:
        assert session.send("go").result().status == "interrupted"
        assert session.files.read("/a.md").content == OLD
        run = session.approve()
        assert run is not None
        assert run.result().text == "Done."
        assert session.files.read("/a.md").content == after


def test_files_on_a_disk_are_looked_at_as_well(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("of somebody else")
    mount = Mount(default=True, storage=DiskStorage(tmp_path))
    files = sa.VirtualFilesystem(("kept", "here"), [mount])
    agent = sa.Agent(sa.ScriptedModel([write("new"), "Done."]), interrupt_on=["write_file"])
    with sa.Session(agent, filesystem=files) as session:
        assert session.send("go").result().text == "Done."
    assert (tmp_path / "a.md").read_text() == "of somebody else"


def test_the_model_says_it_otherwise_and_people_are_asked_once() -> None:
    with session_of(write("new"), write("new", overwrite=True)) as session:
        result = session.send("go").result()
        assert result.interrupt is not None
        (request,) = result.interrupt.action_requests
        assert request.arguments["overwrite"] is True


def test_what_a_person_made_of_a_call_is_run_and_says_itself_what_is_wrong() -> None:
    with session_of(edit("two")) as session:
        session.send("go").result()
        session.resume(sa.Edit(edit("three").arguments)).result()
        (told,) = session.messages[2].tool_results
        assert told.is_error
        assert "old_string is not in /a.md" in told.text


def test_a_tool_of_ones_own_says_so_too() -> None:
    class Stock(sa.Tool):
        async def refusal(
            self, arguments: dict[str, Any], ctx: sa.ToolContext
        ) -> sa.ToolOutput | None:
            if arguments["count"] > 3:
                return sa.ToolOutput("There are 3.", is_error=True)
            return None

    def buy(count: int) -> str:
        """Buy some."""
        return f"Bought {count}."

    calls = [sa.ToolCall(f"c{n}", "buy", {"count": n}) for n in (9, 2)]
    agent = sa.Agent(sa.ScriptedModel([*calls, "Done."]), tools=[Stock(buy)], interrupt_on=["buy"])
    result = agent.run("go")
    assert result.messages[2].tool_results[0].text == "There are 3."
    assert result.interrupt is not None
    assert agent.resume(result, sa.Approve()).messages[-2].tool_results[0].text == "Bought 2."


def act() -> str:
    """Act."""
    return "Acted."


def acting(refuse: Any, **options: Any) -> sa.RunResult:
    """What comes of a gated call of a tool that says so what it refuses."""

    class Odd(sa.Tool):
        async def refusal(self, arguments: dict[str, Any], ctx: sa.ToolContext) -> Any:
            return await refuse()

    model = sa.ScriptedModel([sa.ToolCall("c", "act", {}), "Done."])
    return sa.Agent(model, tools=[Odd(act, **options)], interrupt_on=["act"]).run("go")


async def fails() -> None:
    raise ZeroDivisionError


async def is_cancelled() -> None:
    raise asyncio.CancelledError


async def says_text() -> str:
    return "no"


async def never_ends() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("refuse", [fails, is_cancelled, says_text])
def test_a_tool_that_fails_to_say_it_is_asked_about(refuse: Any) -> None:
    assert acting(refuse).status == "interrupted"


def test_saying_it_takes_no_longer_than_the_tool_may() -> None:
    assert acting(never_ends, timeout=0.01).status == "interrupted"


def test_a_refusal_is_an_error_whatever_its_output_says() -> None:
    async def refuse() -> sa.ToolOutput:
        return sa.ToolOutput("no")

    (told,) = acting(refuse).messages[2].tool_results
    assert (told.text, told.is_error, told.metadata[DECLINED]) == ("no", True, True)


@pytest.mark.parametrize(
    "calls",
    [
        [
            sa.ToolCall("n", "write_file", {"file_path": "/new.md", "content": "hello"}),
            sa.ToolCall("e", "edit_file", {"file_path": "/new.md", "old_string": "hello",
                                           "new_string": "bye"}),
        ],
        [sa.ToolCall("d", "delete_file", {"file_path": "/a.md"}), write("new")],
    ],
)  # fmt: skip
def test_what_depends_on_a_call_before_it_is_asked_about(calls: list[sa.ToolCall]) -> None:
    with session_of(calls) as session:
        result = session.send("go").result()
        assert result.interrupt is not None
        asked = [request.tool_call_id for request in result.interrupt.action_requests]
        assert calls[1].id in asked


def test_what_stands_behind_calls_that_only_look_is_foreseen() -> None:
    look = sa.ToolCall("r", "read_file", {"file_path": "/a.md"})
    with session_of([look, write("new")]) as session:
        assert session.send("go").result().text == "Done."
