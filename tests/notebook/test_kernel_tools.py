"""The notebook's tools in a real kernel: what stands in the cell, and what it offers as a cell."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernel import Cell, Kernel
from tests.notebook.test_kernel_cells import SETUP

TOOLS = """
from sagents_nb.notebook import NotebookTools

def tools(*calls, answer="Done.", **options):
    '''Cells talk to a new session whose model makes these calls at once, and then answers.'''
    calls = [ToolCall(f"c{n}", *call) for n, call in enumerate(calls)]
    start(*([calls] if calls else []), answer, name=None)
    s.replace(agent=s.agent.with_(middleware=[NotebookTools(**options)],
                                  interrupt_on={"run_python": False}))

def python(*codes, **options):
    tools(*[("run_python", {"code": code}) for code in codes], **options)

def told():
    for result in (r for m in s.messages for r in m.tool_results):
        content = result.content
        parts = [content] if isinstance(content, str) else content
        print(*[p if isinstance(p, str) else getattr(p, "text", "[image]") for p in parts])
"""
FIGURE = "import matplotlib.pyplot as plt\\nplt.plot([1, 2])"
ANSWER = "The key was missing.\\n```python\\nx = {}.get('a')\\n```\\nThat is all."


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP + TOOLS)


def agent(kernel: Kernel, *, front_end: bool = True) -> Cell:
    return kernel.ok("%%agent\nGo.", front_end=front_end)


def displayed(cell: Cell) -> list[dict[str, str]]:
    """What the cell shows beside its panel."""
    return [data for data in cell.shown if "Panel" not in data["text/plain"]]


def offered(cell: Cell) -> list[tuple[str, bool]]:
    """The code that the front end is handed as a cell, and whether it replaces this one."""
    payloads = cell.reply["payload"]
    return [(p["text"], p["replace"]) for p in payloads if p["source"] == "set_next_input"]


# What stands in the cell


def test_a_figure_is_shown_in_the_cell_once_and_seen_by_the_model(kernel: Kernel) -> None:
    kernel.ok(f'python("{FIGURE}\\nprint(40 + 2)")')
    (shown,) = displayed(agent(kernel))
    assert shown["image/png"].startswith("iVBORw0KGgo")
    assert kernel.ok("told()").text == "42\n [image]\n"
    assert not kernel.ok("plt.get_fignums()").shown


def test_plt_show_and_the_inline_magic_work(kernel: Kernel) -> None:
    kernel.ok(f'python("%matplotlib inline\\n{FIGURE}\\nplt.show()")')
    (shown,) = displayed(agent(kernel))
    assert shown["image/png"].startswith("iVBORw0KGgo")
    assert kernel.ok("told()").text == "[image]\n"


def test_what_is_more_than_text_is_shown_in_the_cell(kernel: Kernel) -> None:
    kernel.ok("python('import pandas as pd\\npd.DataFrame({\"a\": [1]})', '6 * 7', 'print(1)')")
    (shown,) = displayed(agent(kernel))
    assert "<table" in shown["text/html"]
    assert "DataFrame, 1 row × 1 column" in kernel.ok("told()").text


def test_it_is_shown_in_the_cell_that_began_the_run(kernel: Kernel) -> None:
    code = 'display({"text/html": "<b>here</b>", "text/plain": "here"}, raw=True)'
    kernel.ok(f"python({code!r}, answer=lambda r: 'ok')\n")
    agent(kernel, front_end=False)
    kernel.ok(
        "s.replace(agent=s.agent.with_(model=ScriptedModel("
        f"[ToolCall('d', 'run_python', {{'code': {code!r}}}), 'Done.'])))"
    )
    assert [data["text/plain"] for data in displayed(agent(kernel))] == ["here"]


def test_what_clears_the_output_leaves_the_panel(kernel: Kernel) -> None:
    kernel.ok("python('from IPython.display import clear_output\\nclear_output()')")
    assert not agent(kernel).of("clear_output")


def test_people_see_all_of_a_traceback_and_the_model_its_own_frames(kernel: Kernel) -> None:
    kernel.ok("python('import json\\njson.loads(\"{\")')")
    (shown,) = displayed(agent(kernel))
    assert "json/decoder.py" in shown["text/plain"]
    assert shown["text/html"].startswith("<details><summary>run_python: json.decoder.JSON")
    assert "json/decoder.py" not in kernel.ok("told()").text
    kernel.ok("python('1 / 0')")
    assert displayed(agent(kernel, front_end=False))[0]["text/plain"].startswith("> Go.")


def test_history_and_counters_stay_as_they_were(kernel: Kernel) -> None:
    kernel.ok("python('6 * 7', '%%time\\n6 * 7')")
    kernel.ok("before = len(In), dict(Out)")
    agent(kernel)
    assert kernel.ok("print(len(In) - before[0], len(Out) - len(before[1]))").text == "2 1\n"
    assert kernel.ok("print(_)").text.startswith("Agent run completed")


def test_code_over_its_time_ends_and_the_cell_goes_on(kernel: Kernel) -> None:
    kernel.ok("python('while True: pass', timeout=0.1)")
    agent(kernel)
    assert kernel.ok("print(_)").text == "Agent run completed: 2 turns, 1 tool call\n"
    assert kernel.ok("told()").text.startswith("It was stopped after 0.1 seconds")


# Cells


def test_cells_and_the_last_error_are_read(kernel: Kernel) -> None:
    kernel.ok("print('a cell that printed')\n6 * 7")
    kernel.run("{}['nothing']")
    kernel.ok("tools(('read_cell', {'last': 3}), ('last_error', {}))")
    agent(kernel)
    told = kernel.ok("told()").text
    assert "print('a cell that printed')\n6 * 7\n\na cell that printed\nOut[" in told
    assert "It failed: KeyError: 'nothing'" in told
    assert (
        "failed:\n{}['nothing']\n\nTraceback (most recent call last):\n  File \"<Cell In[" in told
    )
    assert "%%agent" not in told


def test_a_cell_is_offered_while_one_runs(kernel: Kernel) -> None:
    kernel.ok("tools(('insert_cell', {'code': 'y = 1'}), ('insert_cell', {'code': 'y = 2'}))")
    assert offered(agent(kernel)) == [("y = 2", False)]
    assert "The cell appears below" in kernel.ok("told()").text


@pytest.mark.parametrize("where", ["nobody", "background"])
def test_elsewhere_the_model_is_told_that_no_cell_can_be_offered(
    kernel: Kernel, where: str
) -> None:
    kernel.ok("tools(('insert_cell', {'code': 'y = 1'}))")
    if where == "nobody":
        assert offered(agent(kernel, front_end=False)) == []
    else:
        kernel.ok("run = None")
        kernel.ok("threading.Timer(0, lambda: globals().update(run=s.send('Go.'))).start()")
        while kernel.ok("print(run is not None and run.done)").text != "True\n":
            pass
    assert "No cell can be inserted here" in kernel.ok("told()").text


# %%agent --cell and %agent fix


def test_the_code_of_an_answer_becomes_the_next_cell(kernel: Kernel) -> None:
    kernel.ok(f'tools(answer="{ANSWER}")')
    cell = kernel.ok("%%agent --cell\nWrite it.", front_end=True)
    assert offered(cell) == [("x = {}.get('a')", False)]
    assert "The code is in a new cell below" in cell.text
    kernel.ok("tools(answer='No code.')")
    cell = kernel.ok("%%agent --cell\nWrite it.", front_end=True)
    assert offered(cell) == []
    assert cell.text == "The answer has no Python code that could be a cell.\n"
    kernel.ok(f'tools(answer="{ANSWER}")')
    cell = kernel.ok("%%agent --cell\nWrite it.")
    assert offered(cell) == []
    assert "No cell can be offered here" in cell.text


def test_where_an_answer_shows_no_code_the_code_that_was_run_for_it_is_the_cell(
    kernel: Kernel,
) -> None:
    kernel.ok("python('product = 6 * 7', '1 / 0', answer='It is 42.')")
    cell = kernel.ok("%%agent --cell\nCompute it.", front_end=True)
    assert offered(cell) == [("product = 6 * 7", False)]


def test_the_cell_is_the_code_that_people_made_of_it(kernel: Kernel) -> None:
    kernel.ok("python('product = 6 * 7', answer='It is 42.')")
    kernel.ok("s.replace(agent=s.agent.with_(interrupt_on={'run_python': True}))")
    kernel.ok(
        "import threading, time\n"
        "def decide():\n"
        "    while s.status != 'interrupted': time.sleep(0.01)\n"
        "    s.resume([sa.Edit({'code': 'product = 7 * 7'})])\n"
        "threading.Thread(target=decide).start()"
    )
    cell = kernel.ok("%%agent --cell\nCompute it.", front_end=True)
    assert kernel.ok("print(product)").text == "49\n"
    assert offered(cell) == [("product = 7 * 7", False)]


def test_code_that_people_let_not_run_is_the_cell_where_none_ran(kernel: Kernel) -> None:
    kernel.ok("python('product = 7 * 8', answer='I left it.')")
    kernel.ok("s.replace(agent=s.agent.with_(interrupt_on={'run_python': True}))")
    kernel.ok(
        "import threading, time\n"
        "def decide():\n"
        "    while s.status != 'interrupted': time.sleep(0.01)\n"
        "    s.resume([sa.Reject()])\n"
        "threading.Thread(target=decide).start()"
    )
    cell = kernel.ok("%%agent --cell\nCompute it.", front_end=True)
    assert offered(cell) == [("product = 7 * 8", False)]
    assert "The code, which was not run, is in a new cell below" in cell.text


def test_the_demo_says_what_to_do_where_it_wrote_no_code(kernel: Kernel) -> None:
    kernel.ok("s = sa.Session(sa.Agent('demo'))\n%agent use s")
    cell = kernel.ok("%%agent --cell\nWrite code that sorts a list.", front_end=True)
    assert offered(cell) == []
    assert "ask for a plot, or choose a model with %agent model PROVIDER:NAME." in cell.text


def test_the_cell_that_failed_is_mended_in_the_place_of_the_magic(kernel: Kernel) -> None:
    kernel.ok("password = 'correct-horse-battery'")
    kernel.run("x = {}['a']  # correct-horse-battery")
    kernel.ok(f'tools(answer="{ANSWER}")')
    cell = kernel.ok("%agent fix Use {get}.", front_end=True)
    assert offered(cell) == [("x = {}.get('a')", True)]
    assert kernel.ok("print(_)").text == "Agent run completed: 1 turn\n"
    asked = kernel.ok("print(s.messages[0].text)").text
    assert "failed:\n\n```python\nx = {}['a']  # [key]\n```" in asked
    assert "KeyError: 'a'\n```\n\nUse {get}.\n\n" in asked
    assert "correct-horse" not in asked
    shown = kernel.ok("print(s.messages[0].shown.text)").text
    assert re.fullmatch(r"Fix cell \d+: KeyError: 'a'\n\nUse {get}.\n", shown)


def test_the_mended_cell_may_be_asked_for_in_an_own_conversation_too(kernel: Kernel) -> None:
    kernel.run("x = {}['a']")
    kernel.ok(f'tools(answer="{ANSWER}")')
    cell = kernel.ok("\n%agent fix\ny = 1", front_end=True)
    assert offered(cell) == [("x = {}.get('a')", True)]
    assert kernel.ok("print(y)").text == "1\n"


def test_an_answer_without_code_leaves_the_failed_cell_and_says_so(kernel: Kernel) -> None:
    kernel.run("1 / 0")
    kernel.ok("tools(answer='Do not divide by zero.')")
    cell = kernel.ok("%agent fix", front_end=True)
    assert not offered(cell)
    assert cell.text == "The answer has no code, so the cell stays as it is.\n"


def test_where_nothing_failed_there_is_nothing_to_fix(kernel: Kernel) -> None:
    kernel.run("n / 1")
    kernel.ok("n = 1")
    kernel.ok("n / 1")
    kernel.ok(f'tools(answer="{ANSWER}")')
    cell = kernel.ok("%agent fix", front_end=True)
    assert cell.text.startswith("No cell has failed, or the one that did runs by now")
    assert not cell.of("execute_result")
    assert kernel.ok("print(len(s.messages))").text == "0\n"


def test_in_the_middle_of_a_cell_the_magic_says_where_it_belongs(kernel: Kernel) -> None:
    cell = kernel.run("x = 1\n%agent fix", front_end=True)
    assert cell.reply["evalue"] == (
        "%agent fix must be the first line of its cell; see %agent help."
    )


def test_tab_over_the_wire(kernel: Kernel) -> None:
    cell = "%%agent --mo\nWrite it."
    id = kernel.client.complete(cell, len("%%agent --mo"))
    while (reply := kernel.client.get_shell_msg())["parent_header"]["msg_id"] != id:
        pass
    content = reply["content"]
    assert content["matches"] == ["--model"]
    assert (content["cursor_start"], content["cursor_end"]) == (8, 12)


@pytest.mark.parametrize(
    "code",
    [
        "from IPython.display import HTML\\nHTML(f'<b>{password}</b>')",
        "from IPython.display import JSON\\nJSON({'deep': [password, {'pw': password}]})",
        "from IPython.display import Markdown as M\\ndisplay(M(password), metadata={'a': 1})",
        "import pandas as pd\\npd.DataFrame({'password': [password]})",
        "raise ValueError(password)",
    ],
)
def test_no_secret_is_in_what_is_shown_in_the_cell(kernel: Kernel, code: str) -> None:
    kernel.ok("password = 'correct-horse-battery'")
    kernel.ok(f'python("""{code}""")')
    cell = agent(kernel)
    assert cell.shown
    assert "correct-horse-battery" not in str(cell.messages)
    assert "[key]" in str(cell.shown)


PLACES = "[os.fstat(number).st_ino for number in (1, 2)]"  # where the output goes
PAST_PYTHON = """
import ctypes, os, subprocess, sys
os.write(1, f'one {password}'.encode())
os.write(2, f' two {password}'.encode())
subprocess.run(['echo', ' three', password])
print('four', file=sys.__stdout__, flush=True)
ctypes.CDLL(None).puts(b'five')
left = subprocess.Popen(['sh', '-c', 'sleep 60 && echo late'])
"""


def test_what_is_written_past_python_is_handed_to_the_model_and_masked(kernel: Kernel) -> None:
    kernel.ok(f"import os; before = {PLACES}; password = 'correct-horse-battery'")
    kernel.ok(f'python("""{PAST_PYTHON}""")')
    cell = agent(kernel)
    assert "correct-horse-battery" not in str(cell.messages)
    told = kernel.ok("told()").text
    assert told == "one [key] two [key] three [key]\nfour\nfive\n\n"
    assert kernel.ok(f"left.kill(); print({PLACES} == before)").text == "True\n"
    kernel.ok("python(\"import os\\nos.write(1, b'x' * 1_000_000)\\nraise KeyError(1)\")")
    agent(kernel)
    told = kernel.ok("told()").text
    assert "characters are left out here" in told
    assert "KeyError: 1" in told


@pytest.mark.parametrize("front_end", [True, False])
def test_an_answer_that_names_a_secret_is_saved_without_it(kernel: Kernel, front_end: bool) -> None:
    kernel.ok("password = 'correct-horse-battery'")
    kernel.ok("tools(answer='The password is correct-horse-battery.')")
    cell = agent(kernel, front_end=front_end)
    saved = cell.updates[-1] if front_end else cell.shown[-1]
    assert "correct-horse-battery" not in saved["text/markdown"] + saved["text/plain"]
    assert "The password is [key]" in saved["text/markdown"]
