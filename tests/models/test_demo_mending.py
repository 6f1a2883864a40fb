"""A cell that failed: the demo model mends what it is certain of, and says what it is otherwise."""

from __future__ import annotations

import pytest

from sagents_nb.messages import Message, ToolCall, ToolResult
from sagents_nb.middleware import TodoList
from sagents_nb.notebook import NotebookTools
from sagents_nb.notebook.cells import FailedCell, last_python
from sagents_nb.notebook.extension import fix_prompt
from sagents_nb.tools import Tool
from tests.models.test_demo import ask, calls_of, converse

VARIABLES = "orders: DataFrame DataFrame, 400 rows × 2 columns\nprinted: int 3"
DESCRIBED = (
    "orders: DataFrame, 400 rows × 2 columns\n- region: str\n- revenue: float64\nFirst rows:\n"
    "region,revenue\nnorth,1.5"
)
TOOLS: list[Tool] = [*TodoList().tools(), *NotebookTools().tools()]


def mend(source: str, error: str, wish: str = "", tools: list[Tool] = TOOLS) -> list[Message]:
    traceback = (
        f'Traceback (most recent call last):\n  File "<Cell In[4]>", line 1\n    {source}\n{error}'
    )

    def look(call: ToolCall) -> ToolResult:
        text = DESCRIBED if call.arguments.get("names") else VARIABLES
        return ToolResult(call.id, call.name, text)

    return converse([fix_prompt(FailedCell(4, source, traceback, None), wish)], tools, look)


@pytest.mark.parametrize(
    ("source", "error", "mended"),
    [
        (
            "orders.groupby('regoin')['revenue'].mean()",
            "KeyError: 'regoin'",
            "orders.groupby('region')['revenue'].mean()",
        ),
        (
            "orders[['regoin', \"revenue\"]]",
            "KeyError: \"['regoin'] not in index\"",
            "orders[['region', \"revenue\"]]",
        ),
        (
            "orders.regoin.unique()",
            "AttributeError: 'DataFrame' object has no attribute 'regoin'",
            "orders.region.unique()",
        ),
        ("pritn(orders)", "NameError: name 'pritn' is not defined", "print(orders)"),
        ("ordrs.head()", "NameError: name 'ordrs' is not defined", "orders.head()"),
        (
            "amount = 3\nx = amuont + o.amuont",
            "NameError: name 'amuont' is not defined",
            "amount = 3\nx = amount + o.amuont",
        ),
    ],
)
def test_a_name_with_one_close_name_is_mended_and_nothing_else(
    source: str, error: str, mended: str
) -> None:
    messages = mend(source, error)
    assert [name for name, _ in calls_of(messages)] == ["inspect_variables"]
    assert last_python(messages[-1].text) == mended


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("{}['a']", "KeyError: 'a'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        (
            "total1 = total2 = 1\ntotal",
            "NameError: name 'total' is not defined",
        ),
        ("wholly_unknown", "NameError: name 'wholly_unknown' is not defined"),
        ("orders[key]", "KeyError: 'regoin'"),
        ("%time orders['regoin']\n!ls", "KeyError: 'regoins!'"),
    ],
)
def test_what_it_is_not_certain_of_it_says_with_the_error_and_how_to_choose_a_model(
    source: str, error: str
) -> None:
    messages = mend(source, error)
    told = messages[-1].text
    assert last_python(told) is None
    assert "a planner without a language model" in told
    assert f"“{error}”" in told
    assert "`%agent model " in told
    assert "write_todos" not in [name for name, _ in calls_of(messages)]


def test_a_wish_beside_it_is_named_as_left_out() -> None:
    told = mend("pritn(1)", "NameError: name 'pritn' is not defined", "Print 2, too.")[-1].text
    assert "I left out “Print 2, too.”" in told


def test_without_the_tools_of_a_notebook_it_mends_what_the_cell_and_python_know() -> None:
    messages = mend("pritn(1)", "NameError: name 'pritn' is not defined", tools=[])
    assert last_python(messages[-1].text) == "print(1)"


def test_the_cell_is_all_that_is_looked_at_where_a_message_before_it_has_no_answer() -> None:
    said = ["Write a report on orders to /report.md", mending_of("1 / 0")]
    answer = ask([Message.user(text) for text in said], TOOLS)
    assert answer.tool_calls == []
    assert "I cannot mend “ZeroDivisionError: division by zero”" in answer.text


def test_a_cell_that_nobody_mended_is_no_part_of_the_next_task() -> None:
    answer = ask([Message.user(text) for text in (mending_of("1 / 0"), "Hello")], TOOLS)
    assert answer.text.startswith("Hello. I am the demo model")


def test_a_long_cell_is_handed_over_as_a_whole() -> None:
    source = "\n".join(f"x{number} = {number}" for number in range(1600)) + "\n1 / 0"
    assert len(source) > 18_000
    answer = ask([Message.user(mending_of(source, "x = 1\n" * 700))], TOOLS)
    assert "I cannot mend “ZeroDivisionError" in answer.text


def mending_of(source: str, before: str = "") -> str:
    """What a model is asked about a cell that divides by zero."""
    traceback = f"Traceback (most recent call last):\n{before}ZeroDivisionError: division by zero"
    return fix_prompt(FailedCell(4, source, traceback, None))
