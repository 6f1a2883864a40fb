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

pytestmark = [pytest.mark.browser, pytest.mark.soak, pytest.mark.timeout(3600)]

TIMES = 34
"""Moments of each kind in each host, 204 in all."""
# What a run is stopped in never ends by itself.
STREAMS = """sa.Session(sa.Agent(Endless()))"""
COMPUTES = """sa.Session(sa.Agent(Calling(), middleware=[NotebookTools()],
    interrupt_on={"run_python": False}))"""
ENDLESS = """
from sagents_nb.notebook import NotebookTools
class Endless(sa.ChatModel):
    name = "endless"
    async def stream(self, request):
        while True:
            yield "word "
            await asyncio.sleep(0.01)

class Calling(sa.ChatModel):
    name = "calling"
    async def stream(self, request):
        code = "while True:\\n    pass"
        yield sa.Message.assistant("", [ToolCall("p1", "run_python", {"code": code})])
"""
STOPPED = re.compile("KeyboardInterrupt")


KINDS = {  # the model, the cell that is stopped, and the cell whose panel has the button
    "an agent streams": (STREAMS, "%%agent\nGo.", 2),
    "run_python computes": (COMPUTES, "%%agent\nGo.", 2),
    "a sync cell waits": (COMPUTES, "s.send('Go.').result()", 1),
}


def stopped(notebook: NotebookPage, panel: int, moment: float) -> float:
    """Run cell 2 and one that counts after it, stop at that moment; how long it took."""
    notebook.run_cell(2)
    notebook.run_cell(3)
    stop = part(notebook, panel, "stop")
    expect(stop).to_be_visible()
    notebook.page.wait_for_timeout(1000 * moment)
    start = time.monotonic()
    stop.click()
    notebook.wait_for_cell(2)
    took = time.monotonic() - start
    expect(notebook.cell_output(2)).to_contain_text(STOPPED)
    expect(notebook.cell_output(3)).to_have_text("")
    return took


def counted(notebook: NotebookPage, cell: int) -> None:
    """None of the cells that wait behind a stopped one has run."""
    notebook.set_source(cell, "print(ran, s.status)")
    notebook.run_cell(cell)
    expect(notebook.cell_output(cell)).to_have_text("[] cancelled")


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
    times = [stopped(notebook, panel, chance.uniform(0, 0.6)) for _ in range(TIMES)]
    counted(notebook, 4)
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
