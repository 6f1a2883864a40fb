"""Stop and Approve at random moments, many times: the right run ends, and no later cell runs."""

from __future__ import annotations

import random
import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage
from tests.browser.test_agent_cell import agent_notebook, part
from tests.browser.test_stop import be_heard
from tests.talking import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.soak, pytest.mark.timeout(3600)]

TIMES = 34
"""Moments of each kind in each host, 340 in all."""
# What a run is stopped in never ends by itself.
STREAMS = """sa.Session(sa.Agent(Endless()))"""
COMPUTES = """sa.Session(sa.Agent(Calling("while True:\\n    pass"), middleware=[NotebookTools()],
    interrupt_on={"run_python": False}))"""
CATCHES = """sa.Session(sa.Agent(Calling(CATCHING), middleware=[NotebookTools()],
    interrupt_on={"run_python": False}))"""
ENDLESS = '''
from sagents_nb.notebook import NotebookTools
class Endless(sa.ChatModel):
    name = "endless"
    async def stream(self, request):
        while True:
            yield "word "
            await asyncio.sleep(0.01)

CATCHING = """
print("so far")
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""

class Calling(sa.ChatModel):
    name = "calling"
    def __init__(self, code):
        super().__init__()
        self.code = code
    async def stream(self, request):
        yield sa.Message.assistant("", [ToolCall("p1", "run_python", {"code": self.code})])

def told():
    """Of how many calls nothing is known, and whether most have what their code printed."""
    texts = [r.text for m in s.messages for r in m.tool_results]
    printed = [t for t in texts if t.startswith("so far\\n")]
    early = ("The code was stopped before it began", "Cancelled")
    not_begun = [t for t in texts if t.startswith(early)]
    print(len(texts) - len(printed) - len(not_begun), len(printed) > len(texts) // 2)
'''
STOPPED = re.compile("KeyboardInterrupt")


KINDS = {  # the model, the cell that is stopped, and the cell whose panel has the button
    "an agent streams": (STREAMS, "%%agent\nGo.", 2),
    "run_python computes": (COMPUTES, "%%agent\nGo.", 2),
    "a sync cell waits": (COMPUTES, "s.send('Go.').result()", 1),
    "code prints and catches interrupts": (CATCHES, "%%agent\nGo.", 2),
    "the same, and the kernel is interrupted": (CATCHES, "%%agent\nGo.", 2),
}


def stopped(notebook: NotebookPage, panel: int, moment: float, by_kernel: bool) -> float:
    """Run cell 2 and one that counts after it, stop at that moment; how long it took."""
    notebook.run_cell(2)
    notebook.run_cell(3)
    stop = part(notebook, panel, "stop")
    expect(stop).to_be_visible()
    notebook.page.wait_for_timeout(1000 * moment)
    start = time.monotonic()
    if by_kernel:
        notebook.interrupt_kernel()
    else:
        stop.click()
    # An expectation looks ever more seldom, at last each half second.
    deadline = start + PATIENCE
    while "*" in notebook.cell_prompt(2).inner_text() and time.monotonic() < deadline:
        notebook.page.wait_for_timeout(10)
    took = time.monotonic() - start
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text(STOPPED)
    expect(notebook.cell_output(3)).to_have_text("")
    return took


def counted(notebook: NotebookPage, cell: int) -> None:
    """None of the cells that wait behind a stopped one has run."""
    notebook.set_source(cell, "print(ran, s.status)")
    notebook.run_cell(cell)
    expect(notebook.cell_output(cell)).to_have_text("[] cancelled")


def printed_is_kept(notebook: NotebookPage, cell: int) -> None:
    """What the code printed is in each result, and in what the file has of the last."""
    notebook.set_source(cell, "told()")
    notebook.run_cell(cell)
    expect(notebook.cell_output(cell)).to_have_text("0 True")
    text = str(notebook.save().cells[2].outputs)
    assert "was cancelled" in text
    assert "so far" in text or "before it began" in text


def told(name: str, times: list[float]) -> None:
    times = sorted(times)
    over = sum(each > 1 for each in times)
    print(
        f"\n{name}: {len(times)} stops, median {times[len(times) // 2]:.2f} s, "
        f"worst {times[-1]:.2f} s, {over} over 1 s"
    )


@pytest.mark.parametrize("host", ["lab", "notebook7"])
@pytest.mark.parametrize("kind", KINDS)
def test_stop_at_any_moment(request: pytest.FixtureRequest, host: str, kind: str) -> None:
    model, code, panel = KINDS[kind]
    chance = random.Random(kind)
    notebook = agent_notebook(
        request.getfixturevalue(host),
        f"None\n{ENDLESS}\nran = []\ns = {model}",
        "s",
        code,
        "ran.append(1)",
        "0",
    )
    # A kernel whose first cell with a panel computes at once hears no page: the button says so.
    notebook.run_cell(1)
    be_heard(notebook, 1)
    by_kernel = "kernel" in kind
    times = [stopped(notebook, panel, chance.uniform(0, 0.6), by_kernel) for _ in range(TIMES)]
    counted(notebook, 4)
    if model == CATCHES:
        printed_is_kept(notebook, 4)
    told(f"{host}, {kind}", times)


def test_fifty_approvals_are_clicked_while_a_sync_cell_runs(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(*[turn for n in range(50)\n"
        "          for turn in (write(f'# {n}', f'/{n}.md'), f'Done {n}.')])",
        "s",
        "import time\nrun = s.send('Write.')\n"
        "while s.status != 'idle':\n    time.sleep(0.01)\n"
        "print(s.messages[-1].text)",
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    chance = random.Random(50)
    for n in range(50):
        notebook.run_cell(2)
        approve = part(notebook, 1, "approve")
        expect(approve).to_be_visible()
        notebook.page.wait_for_timeout(1000 * chance.uniform(0, 0.3))
        approve.click()
        notebook.wait_for_cell(2)
        expect(notebook.cell_output(2)).to_have_text(f"Done {n}.")
