"""The tools that see the notebook, as a model is given them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import sagents_nb as sa
from sagents_nb.messages import ContentPart
from tests.talking import agent_of, call

SECRET = "correct-horse-battery"


def results(shell: InteractiveShell, *calls: sa.ToolCall, **options: Any) -> list[Any]:
    """The results of these calls."""
    tools = sa.NotebookTools(shell, **options)
    agent = agent_of([*calls], "done", middleware=[tools], interrupt_on={"run_python": False})
    agent.run("go")
    return [r for m in agent.model.requests[-1].messages for r in m.tool_results]  # type: ignore[attr-defined]


def told(shell: InteractiveShell, name: str, /, *, options: Any = None, **arguments: Any) -> str:
    """What a model is told by one call."""
    (result,) = results(shell, sa.ToolCall("c1", name, arguments), **(options or {}))
    assert isinstance(result.content, str)
    return result.content


def run(shell: InteractiveShell, code: str) -> None:
    with capture_output():
        shell.run_cell(code, store_history=True)


def test_the_tools_and_which_of_them_asks(shell: InteractiveShell) -> None:
    tools = sa.NotebookTools(shell).tools()
    assert [tool.name for tool in tools] == [
        *("inspect_variables", "show_frame", "plot"),
        *("read_cell", "last_error", "insert_cell", "run_python"),
    ]
    assert [tool.name for tool in tools if tool.needs_approval] == ["run_python"]
    assert {tool.run_on for tool in tools} == {"main"}
    (run_python,) = [tool for tool in tools if tool.name == "run_python"]
    assert list(run_python.schema["properties"]) == ["code"]


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": -1}, {"max_output": 0}])
def test_limits_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError):
        sa.NotebookTools(**options)


def test_no_limit_of_time_is_none(shell: InteractiveShell) -> None:
    assert sa.NotebookTools(shell, timeout=None).timeout == math.inf
    assert told(shell, "run_python", options={"timeout": None}, code="6 * 7") == "42"


# Variables


def test_the_newest_variables_are_listed_and_the_others_counted(shell: InteractiveShell) -> None:
    shell.user_ns |= {f"v{n}": n for n in range(250)}
    listed = told(shell, "inspect_variables").splitlines()
    assert listed[:-1] == [f"v{n}: int {n}" for n in range(50, 250)]
    assert listed[-1].startswith("Left out: 5")
    assert listed[-1].endswith(" older variables; ask for them by name.")


def test_the_list_has_a_most_length_and_names_what_is_left_out(shell: InteractiveShell) -> None:
    shell.user_ns |= {f"v{n}": "x" * 1000 for n in range(100)}
    listed = told(shell, "inspect_variables", options={"max_output": 1000})
    assert len(listed) < 2000
    assert "Left out, since there is no room for them: v" in listed
    assert listed.endswith(", v99")


def test_of_a_huge_value_only_the_beginning_is_made_up(shell: InteractiveShell) -> None:
    looked: list[int] = []

    class Item:
        def __repr__(self) -> str:
            looked.append(1)
            return "item"

    shell.user_ns["huge"] = [[Item()] * 1000] * 1000
    assert "huge: list [[item, item" in told(shell, "inspect_variables")
    assert "item, item" in told(shell, "inspect_variables", names=["huge"])
    assert len(looked) < 20_000


def test_a_value_that_takes_too_long_costs_the_others_no_more(shell: InteractiveShell) -> None:
    code = (
        "class Slow:\n    def __repr__(self):\n        while True: pass\na = 1\nb = Slow()\nc = 3"
    )
    run(shell, code)
    listed = told(shell, "inspect_variables", options={"timeout": 0.05})
    assert "a: int 1" in listed
    assert "\nLeft out, since looking took over 0.05 seconds: b, c" in listed
    described = told(shell, "inspect_variables", options={"timeout": 0.05}, names=["a", "b"])
    assert described.startswith("a: 1\n\nLeft out, since looking took over 0.05 seconds: b")


def test_a_frame_that_takes_too_long_is_said(shell: InteractiveShell) -> None:
    class Slow(pd.DataFrame):
        def describe(self, **_: Any) -> Any:
            while True:
                pass

    shell.user_ns["df"] = Slow({"a": [1]})
    said = told(shell, "show_frame", options={"timeout": 0.05}, name="df")
    assert said == "ValueError: That takes over 0.05 seconds; look at a part of it instead."


# Plots


def drawn(shell: InteractiveShell, **arguments: Any) -> list[ContentPart]:
    (result,) = results(shell, sa.ToolCall("c1", "plot", arguments))
    assert not result.is_error, result.content
    found: list[ContentPart] = result.content
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"columns": ["a"]},
        {"columns": ["b"], "x": "a"},
        {"columns": ["b"], "x": "a", "kind": "scatter"},
        {"kind": "hist"},
        {"kind": "box", "columns": ["a", "b"]},
        {"kind": "bar", "x": "c", "columns": ["a"]},
    ],
)
def test_columns_are_drawn_as_an_image(shell: InteractiveShell, arguments: Any) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    theirs = pyplot.get_fignums()
    shell.user_ns["df"] = pd.DataFrame({"a": [1, 2, 3], "b": [2.5, 1.0, 2.0], "c": list("xyz")})
    text, image = drawn(shell, name="df", **arguments)
    assert text == sa.TextPart(f"A {arguments.get('kind', 'line')} plot of df:")
    assert isinstance(image, sa.ImagePart)
    assert (image.data or "").startswith("iVBORw0KGgo")
    assert pyplot.get_fignums() == theirs


def test_of_a_long_frame_every_so_many_rows_are_drawn(shell: InteractiveShell) -> None:
    pytest.importorskip("matplotlib").use("agg")
    shell.user_ns["df"] = pd.DataFrame({"a": range(50_000)})
    assert drawn(shell, name="df")[0] == sa.TextPart(
        "A line plot of df, of every 3th of 50,000 rows:"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "n"}, "'n' is no data frame of this notebook."),
        ({"name": "df", "columns": ["z"]}, "'df' has no column 'z'."),
        ({"name": "df", "x": "z"}, "'df' has no column 'z'."),
        ({"name": "df", "kind": "scatter"}, "A scatter needs x and columns."),
    ],
)
def test_what_cannot_be_drawn_is_said(
    shell: InteractiveShell, arguments: dict[str, Any], said: str
) -> None:
    shell.user_ns |= {"n": 1, "df": pd.DataFrame({"a": [1]})}
    assert told(shell, "plot", **arguments) == f"ValueError: {said}"


# Cells


def test_cells_are_read_by_number_or_from_the_end(shell: InteractiveShell) -> None:
    assert told(shell, "read_cell") == "No cell of this notebook was run before this one."
    run(shell, "x = 20\nx + 1")
    run(shell, "print('two')")
    assert told(shell, "read_cell").startswith("In [2]:\nprint('two')\n\ntwo")
    assert told(shell, "read_cell", number=1) == "In [1]:\nx = 20\nx + 1\n\nOut[1]: 21"
    assert told(shell, "read_cell", last=100).startswith("In [1]:")
    assert "There is no cell 9" in told(shell, "read_cell", number=9)


def test_the_last_error_has_its_cell_and_its_traceback(shell: InteractiveShell) -> None:
    assert told(shell, "last_error").startswith("No cell has failed")
    run(shell, "y = {}\ny['a']")
    failed = told(shell, "last_error")
    assert failed.startswith("Cell 1 failed:\ny = {}\ny['a']\n\nTraceback (most recent call last):")
    assert failed.endswith("KeyError: 'a'")


def test_without_an_editor_a_cell_is_shown_in_the_answer(shell: InteractiveShell) -> None:
    assert told(shell, "insert_cell", code="x = 1").startswith("No cell can be inserted here")


def test_none_of_them_hands_out_a_secret(shell: InteractiveShell) -> None:
    pytest.importorskip("matplotlib").use("agg")
    run(shell, f"password = '{SECRET}'\nprint(password)\npassword")
    run(shell, "raise ValueError(password)")
    shell.user_ns["df"] = pd.DataFrame({"a": [1], "who": [SECRET]})
    calls = [
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=["password", "df"]),
        sa.ToolCall("c", "show_frame", {"name": "df"}),
        call("read_cell", "d", last=5),
        call("last_error", "e"),
        sa.ToolCall("f", "plot", {"name": "df"}),
        call("run_python", "g", code="print(password)\ndisplay(password)\npassword"),
        call("run_python", "h", code="import matplotlib.pyplot as p\np.figure()\nprint(password)"),
    ]
    found = results(shell, *calls)
    assert len(found) == len(calls)
    assert not [r for r in found if r.is_error]
    assert SECRET not in "\n".join(r.text for r in found)


# Stopping


def test_an_interrupt_ends_the_run_and_the_result_says_so(shell: InteractiveShell) -> None:
    code = "import signal\nprint('so far')\nsignal.raise_signal(signal.SIGINT)\n1 + 1"
    tools = sa.NotebookTools(shell)
    calls = [call("run_python", code=code)]
    agent = agent_of(calls, "done", middleware=[tools], interrupt_on={"run_python": False})
    session = sa.Session(agent)
    run = session.send("go")
    with pytest.raises(KeyboardInterrupt):
        run.result()
    assert run.result().status == "cancelled"
    (result,) = [r for m in session.messages for r in m.tool_results]
    assert result.is_error
    assert result.status == "cancelled"
    assert result.text == "so far\nThe code was stopped before its end."
    assert agent.model.requests[1:] == []  # type: ignore[attr-defined]
