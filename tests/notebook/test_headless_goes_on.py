"""A new conversation keeps who decides where nobody can click, as it keeps its agent."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import sagents_nb as sa
from sagents_nb.notebook.extension import extension_of
from tests.notebook.conftest import value


@sa.tool
def note(text: str) -> str:
    """Note it."""
    return f"noted {text}"


def using(shell: InteractiveShell, headless: Any) -> sa.Session:
    """A conversation that notes something at each prompt, and asks before."""
    turns = [turn for n in range(9) for turn in (sa.ToolCall(f"n{n}", "note", {"text": "A"}), "Ok")]
    agent = sa.Agent(sa.ScriptedModel(turns), tools=[note], interrupt_on={"note": True})
    made = shell.user_ns["s"] = sa.Session(agent, headless=headless)
    value(shell.run_cell("%agent use s"))
    return made


def noted(shell: InteractiveShell, options: str = "") -> str:
    """What came of the call in a cell with these options."""
    with capture_output():
        result = value(shell.run_cell(f"%%agent {options}\nNote it."))
    (text,) = [r.text for message in result.messages for r in message.tool_results]
    return str(text)


@pytest.mark.parametrize("option", ["--new", "--name another", "--new --name one-more"])
def test_a_new_conversation_keeps_the_policy(shell: InteractiveShell, option: str) -> None:
    first = using(shell, "approve")
    assert noted(shell, option) == "noted A"
    current = extension_of(shell).conversations.current
    assert current is not first
    assert current.headless == "approve"
    current.headless = "deny"
    assert first.headless == "approve"


def test_one_that_follows_a_closed_one_keeps_it_too(shell: InteractiveShell) -> None:
    using(shell, "approve").close()
    assert noted(shell) == "noted A"


def test_each_decision_of_a_list_is_taken_once_whichever_conversation_asks(
    shell: InteractiveShell,
) -> None:
    first = using(shell, [sa.Edit({"text": "B"}), sa.Edit({"text": "C"}), sa.Approve()])
    assert noted(shell) == "noted B"
    assert noted(shell, "--new") == "noted C"
    shell.user_ns["s"] = first
    value(shell.run_cell("%agent use s"))
    assert noted(shell) == "noted A"
    assert "policy for unattended runs denied" in noted(shell, "--new")


def test_another_agent_and_a_conversation_that_is_there_have_their_own(
    shell: InteractiveShell,
) -> None:
    first = using(shell, "deny")
    noted(shell, "--name strict")
    strict = extension_of(shell).conversations.current
    shell.user_ns["s"] = first
    first.headless = "approve"
    value(shell.run_cell("%agent use s"))
    assert "denied" in noted(shell, "--name strict")
    assert extension_of(shell).conversations.current is strict
    shell.user_ns["mine"] = first.agent.with_(name="mine")
    first.headless = "approve"
    value(shell.run_cell("%agent use s"))
    value(shell.run_cell("%agent use mine"))
    assert "denied" in noted(shell)
