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


@pytest.mark.parametrize(
    ("source", "error", "mended"),
    [
        ("orders['Region']", "KeyError: 'Region'", "orders['region']"),
        ("orders['REVENUE ']", "KeyError: 'REVENUE '", "orders['revenue']"),
        ("d = {'year': 1}\nd['yaer']", "KeyError: 'yaer'", "d = {'year': 1}\nd['year']"),
        (
            "'a'.uper()",
            "AttributeError: 'str' object has no attribute 'uper'",
            "'a'.upper()",
        ),
        ("import pnadas", "ModuleNotFoundError: No module named 'pnadas'", "import pandas"),
    ],
)
def test_a_name_in_another_writing_or_of_a_known_type_is_mended(
    source: str, error: str, mended: str
) -> None:
    assert last_python(mend(source, error)[-1].text) == mended


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("math.sqrt(4)", "import math"),
        ("pd.DataFrame()", "import pandas as pd"),
        ("Path('.')", "from pathlib import Path"),
        ("datetime.now()", "from datetime import datetime"),
        ("datetime.datetime.now()", "import datetime"),
    ],
)
def test_a_known_import_that_is_missing_is_added(source: str, line: str) -> None:
    name = source.partition(".")[0].partition("(")[0]
    told = mend(source, f"NameError: name '{name}' is not defined")[-1].text
    assert last_python(told) == f"{line}\n{source}"
    told = mend(f"%%time\n{source}", f"NameError: name '{name}' is not defined")[-1].text
    assert last_python(told) == f"%%time\n{line}\n{source}"


@pytest.mark.parametrize(
    ("source", "error", "mended"),
    [
        (
            "print('n is ' + n)",
            'TypeError: can only concatenate str (not "int") to str',
            "print('n is ' + str(n))",
        ),
        (
            "print(f(n) + ' ä')",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            "print(str(f(n)) + ' ä')",
        ),
        ("for i in x", "SyntaxError: expected ':'", None),
    ],
)
def test_a_number_beside_a_text_becomes_one(source: str, error: str, mended: str | None) -> None:
    assert last_python(mend(source, error)[-1].text) == mended


def test_a_line_without_its_colon_gets_one() -> None:
    source = "for i in x\n    print(i)"
    told = mend(source, "SyntaxError: expected ':'")[-1].text
    assert last_python(told) == "for i in x:\n    print(i)"


def test_a_file_with_one_close_name_beside_it_is_looked_for() -> None:
    def look(call: ToolCall) -> ToolResult:
        assert call.arguments == {"code": "import os\n\nprint(sorted(os.listdir('data')))"}
        return ToolResult(call.id, call.name, "['map.png', 'sales.csv']")

    for name, mended in (("slaes.csv", "read('data/sales.csv')"), ("other.txt", None)):
        source = f"read('data/{name}')"
        error = f"FileNotFoundError: [Errno 2] No such file or directory: 'data/{name}'"
        trace = f"Traceback (most recent call last):\n{error}"
        messages = converse([fix_prompt(FailedCell(4, source, trace, None), "")], TOOLS, look)
        assert [call for call, _ in calls_of(messages)] == ["run_python"]
        assert last_python(messages[-1].text) == mended


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero", "Line 1, `1 / 0`, failed: what it div"),
        ("xs[5]", "IndexError: list index out of range", "`xs[5]`, failed: it asks for a place"),
        ("x.y", "AttributeError: 'NoneType' object has no attribute 'y'", "before `.y` is None"),
        ("'5' + n", 'TypeError: can only concatenate str (not "int") to str', "`'5' + n`, failed."),
        ("'a' + n + m", 'TypeError: can only concatenate str (not "int") to str', "failed."),
        ("t.region", "AttributeError: 'tuple' object has no attribute 'regoin'", "it has no `re"),
        ("import yaml", "ModuleNotFoundError: No module named 'yaml'", "`%pip install pyyaml`"),
        ("import maths2", "ModuleNotFoundError: No module named 'maths2'", "is installed here."),
    ],
)
def test_of_all_else_it_says_where_and_why_and_offers_no_cell(
    source: str, error: str, said: str
) -> None:
    told = mend(source, error)[-1].text
    assert said in told
    assert last_python(told) is None


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
