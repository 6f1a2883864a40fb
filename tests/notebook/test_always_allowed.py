"""A tool that was always allowed in a conversation: what says so, and what takes it back."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from tests.notebook.conftest import value

ALLOWED = "Always allowed here: write_file; %agent ask asks again."


def write(number: int) -> sa.ToolCall:
    return sa.ToolCall(f"w{number}", "write_file", {"file_path": f"/{number}.md", "content": "# A"})


def run(shell: InteractiveShell, cell: str) -> Any:
    return value(shell.run_cell(cell))


def say(shell: InteractiveShell, command: str) -> str:
    return str(run(shell, f"%agent {command}"))


@pytest.fixture
def session(shell: InteractiveShell) -> sa.Session:
    """The notebook's conversation, which was always allowed to write, and has written once."""
    turns = [turn for n in range(1, 5) for turn in (write(n), f"Wrote {n}.")]
    made = sa.Session(
        sa.Agent(sa.ScriptedModel(turns), interrupt_on={"write_file": True}), headless="approve"
    )
    shell.user_ns["s"] = made
    run(shell, "%agent use s")
    made.send("Write.").result()
    made.resume(sa.Approve(always=True)).result()
    return made


def by(session: sa.Session) -> str:
    """Who has approved the last call."""
    return str(session.messages[-2].tool_results[0].metadata["decision"]["by"])


def test_status_and_tools_name_it(shell: InteractiveShell, session: sa.Session) -> None:
    assert ALLOWED in say(shell, "status")
    assert "write_file (always allowed): " in say(shell, "tools")
    run(shell, "%%agent\nWrite.")
    assert by(session) == "always"


@pytest.mark.parametrize("options", ["write_file", "write_file,read_file"])
def test_approve_on_the_line_of_a_cell_asks_again(
    shell: InteractiveShell, session: sa.Session, options: str
) -> None:
    run(shell, f"%%agent --approve {options}\nWrite.")
    assert by(session) == "policy"
    assert "lways allowed" not in say(shell, "status") + say(shell, "tools")


def test_approve_of_a_tool_that_is_asked_about_leaves_others_allowed(
    shell: InteractiveShell, session: sa.Session
) -> None:
    session.replace(session.agent.with_(interrupt_on={"write_file": True, "read_file": True}))
    run(shell, "%%agent\nWrite.")
    assert by(session) == "policy"
    session.headless = [sa.Approve(always=True)]
    run(shell, "%%agent --approve read_file\nWrite.")
    assert ALLOWED in say(shell, "status")
    run(shell, "%%agent --approve read_file\nWrite.")
    assert by(session) == "always"


@pytest.mark.parametrize("named", ["", " write_file"])
def test_ask_takes_it_back(shell: InteractiveShell, session: sa.Session, named: str) -> None:
    with pytest.raises(UsageError, match=r"ls was not always allowed here.*--approve"):
        run(shell, "%agent ask ls")
    assert session.always_allowed == ["write_file"]
    assert say(shell, f"ask{named}") == "You are asked again before write_file."
    run(shell, "%%agent\nWrite.")
    assert by(session) == "policy"
    assert say(shell, "ask") == "No tool is always allowed here."


def test_a_tool_that_is_added_changes_nothing_of_it(
    shell: InteractiveShell, session: sa.Session
) -> None:
    shell.user_ns["double"] = double
    run(shell, "%agent tools add double")
    assert ALLOWED in say(shell, "status")


def double(n: int) -> int:
    """Twice as much."""
    return 2 * n
