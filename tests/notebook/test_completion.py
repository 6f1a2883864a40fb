"""Tab in the cells that talk to an agent."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb.notebook.cell_options import OPTIONS
from sagents_nb.notebook.magics import COMMANDS
from tests.notebook.conftest import value
from tests.panel.pages import session_of, write


@pytest.fixture(autouse=True)
def names(shell: InteractiveShell) -> None:
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    session = session_of(write("/report.md"), "Done.", id="talk", gate=True)
    shell.user_ns |= {"double": double, "table": [1], "s": session, "mine": sa.ScriptedModel([])}
    value(shell.run_cell("%agent use s"))


def tab(shell: InteractiveShell, cell: str, after: str = "") -> list[str]:
    """What the cell could become, by its last line, when Tab is pressed at the end of ``cell``."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(cell + after, len(cell)))
    return [cell[: each.start].rpartition("\n")[2] + each.text for each in found]


def test_options_of_a_cell(shell: InteractiveShell) -> None:
    assert tab(shell, "%%agent --") == [f"%%agent {option}" for option in sorted(OPTIONS)]
    assert tab(shell, "%%agent ") == [f"%%agent {option}" for option in sorted(OPTIONS)]
    assert tab(shell, "%%agent --plain --mo") == ["%%agent --plain --model"]
    assert tab(shell, "%%agent --mo", "\nWrite it.") == ["%%agent --model"]


def test_what_an_option_takes(shell: InteractiveShell) -> None:
    models = tab(shell, "%%agent --model ")
    assert {"%%agent --model demo", "%%agent --model mine"} <= set(models)
    assert tab(shell, "%%agent --model anth")[0].startswith("%%agent --model anthropic:claude")
    assert "%%agent --tools double" in tab(shell, "%%agent --tools ")
    assert "%%agent --tools table" not in tab(shell, "%%agent --tools ")
    assert tab(shell, "%%agent --tools x,dou") == ["%%agent --tools x,double"]
    assert tab(shell, "%%agent --approve write_f") == ["%%agent --approve write_file"]


def test_commands_and_what_they_take(shell: InteractiveShell) -> None:
    assert tab(shell, "%agent ") == [f"%agent {command}" for command in sorted(COMMANDS)]
    assert tab(shell, "%agent tod") == ["%agent todos"]
    assert tab(shell, "%agent use ") == ["%agent use s"]
    assert tab(shell, "%agent tools ") == ["%agent tools add", "%agent tools remove"]
    assert tab(shell, "%agent tools add dou") == ["%agent tools add double"]
    assert tab(shell, "%agent frame tool") == ["%agent frame tool_calls"]
    assert tab(shell, "%agent replay re") == ["%agent replay record", "%agent replay replay"]
    assert tab(shell, "%agent model mi") == ["%agent model mine"]
    sa.sessions.start(shell.user_ns["s"].agent, "other-talk")
    assert tab(shell, "x = 1\n%agent load other-t") == ["%agent load other-talk"]


def test_a_frame_and_an_export_are_offered_what_they_can_be(shell: InteractiveShell) -> None:
    kinds = [line.removeprefix("%agent frame ") for line in tab(shell, "%agent frame ")]
    session = shell.user_ns["s"]
    assert kinds == sorted(kinds)
    assert "tool_calls" in kinds
    for kind in kinds:
        session.to_frame(kind)
    offered = tab(shell, "%agent export ")
    assert offered == [f"%agent export talk{ending}" for ending in (".html", ".ipynb", ".md")]


def test_what_a_reset_has_to_be_told(shell: InteractiveShell) -> None:
    assert tab(shell, "%agent reset ") == ["%agent reset --yes"]


def test_a_call_that_waits_can_be_approved(shell: InteractiveShell) -> None:
    shell.user_ns["s"].send("go").result()
    assert tab(shell, "%agent approve ") == ["%agent approve w1"]
    shell.user_ns["s"].resume({"type": "approve", "always": True}).result()
    assert tab(shell, "%agent ask ") == ["%agent ask write_file"]


def test_variables_and_files_in_a_prompt(shell: InteractiveShell) -> None:
    session = shell.user_ns["s"]
    session.send("go").result()
    session.approve().result()
    assert tab(shell, "%%agent\nLook at {tab") == ["Look at {table"]
    assert tab(shell, "%%agent --plain\n\nLook at {tab", "} now.") == ["Look at {table"]
    assert tab(shell, "%%agent\nRead /rep") == ["Read /report.md"]
    assert "Use {table" in tab(shell, "%%agent\nUse {")
    assert not any("{_" in each for each in tab(shell, "%%agent\nUse {"))


@pytest.mark.parametrize(
    "cell", ["tab", "x = {tab", "print(1)\n%%agent --", "%agentx to", "%%agents --"]
)
def test_other_cells_are_left_to_ipython(shell: InteractiveShell, cell: str) -> None:
    before = tab(shell, cell)
    sa.unload_ipython_extension(shell)
    assert tab(shell, cell) == before


def test_unloading_takes_it_away(shell: InteractiveShell) -> None:
    sa.unload_ipython_extension(shell)
    sa.unload_ipython_extension(shell)
    assert shell.Completer.custom_matchers == []
    assert "%agent todos" not in tab(shell, "%agent tod")
