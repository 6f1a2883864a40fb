"""Stop ends the run it belongs to, whatever the kernel does, and later cells do not run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, LabWindow, NotebookPage
from tests.browser.test_agent_cell import agent_notebook, give, part

pytestmark = pytest.mark.browser

COMPUTE = """session(once("go on", ToolCall("p1", "compute", {})), "later")

@sa.tool(run_on="main")
def compute(ctx: sa.ToolContext) -> None:
    "Compute for ever."
    ctx.progress("begun")
    while True:
        pass

s.replace(agent=s.agent.with_(tools=[compute]))"""
AFTERWARDS = "print('the next cell ran')"
STOPPED = re.compile("KeyboardInterrupt: The run was stopped")


def be_heard(notebook: NotebookPage, i: int) -> None:
    """Wait until a kernel that computes would hear the panel below that cell."""
    panel = part(notebook, i, "sagents-panel")
    expect(panel).to_have_attribute("data-heard-while-busy", "true")


@pytest.mark.soak
def test_a_panel_is_there_though_the_kernel_computes_from_the_first_moment(
    lab_window: LabWindow,
) -> None:
    notebook = agent_notebook(lab_window, COMPUTE, "%%agent\nGo.")
    give(notebook, "go on")
    notebook.run_cell(1)
    expect(part(notebook, 1, "tool-card")).to_contain_text("begun")
    notebook.interrupt_kernel()
    notebook.wait_for_cell(1)


def test_stop_ends_what_a_tool_computes_in_the_kernel(lab: Lab) -> None:
    notebook = agent_notebook(lab, COMPUTE, "%%agent\nGo.", AFTERWARDS, "s.status")
    notebook.run_all()
    be_heard(notebook, 1)
    give(notebook, "go on")
    expect(part(notebook, 1, "tool-card")).to_contain_text("begun")
    part(notebook, 1, "stop").click()
    notebook.wait_for_cell(1)
    expect(notebook.cell_output(1)).to_contain_text(STOPPED)
    expect(part(notebook, 1, "status")).to_have_text(re.compile("stopped", re.I))
    expect(notebook.cell_output(2)).to_have_text("")
    notebook.run_cell(3)
    notebook.wait_for_cell(3)
    expect(notebook.cell_output(3)).to_contain_text("'cancelled'")


PRINTING = """import time
for step in range(10_000):
    print("step", step)
    time.sleep(0.1)"""


def test_what_code_prints_is_seen_while_it_runs_and_after_stop_the_model_goes_on(lab: Lab) -> None:
    turns = f"ToolCall('p1', 'run_python', {{'code': {PRINTING!r}}}), 'I leave it at that.'"
    notebook = agent_notebook(
        lab,
        f"session({turns}, gate=False)\n"
        "tools = sa.NotebookTools(get_ipython())\n"
        "free = {'run_python': False}\n"
        "s.replace(agent=s.agent.with_(middleware=[tools], interrupt_on=free))",
        "%%agent\nGo.",
        "(s.messages[2].tool_results[0].status, s.status)",
    )
    notebook.run_cell(1)
    card = part(notebook, 1, "tool-card")
    expect(card).to_contain_text(re.compile(r"step [1-9]"))
    notebook.screenshot("prints-of-busy-code")
    part(notebook, 1, "stop").click()
    notebook.wait_for_cell(1)
    expect(card).to_contain_text("Stopped")
    going_on = part(notebook, 1, "retry")
    expect(going_on).to_have_text("Continue")
    notebook.screenshot("stopped-code")
    going_on.click()
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("I leave it at that.")
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("('cancelled', 'idle')")


@pytest.mark.soak
def test_stop_ends_a_cell_that_waits_in_sync_code(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, COMPUTE, "s", "result = s.send('Go.').result()", AFTERWARDS, "s.status"
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    notebook.run_cell(2)
    notebook.run_cell(3)
    give(notebook, "go on")
    expect(part(notebook, 1, "tool-card")).to_contain_text("begun")
    part(notebook, 1, "stop").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("KeyboardInterrupt")
    expect(notebook.cell_output(3)).to_have_text("")
    notebook.run_cell(4)
    notebook.wait_for_cell(4)
    expect(notebook.cell_output(4)).to_contain_text("'cancelled'")


def test_a_click_on_approve_counts_while_a_sync_cell_runs(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(write('# Report'), told)",
        "s",
        "import time\nrun = s.send('Write.')\n"
        "while '/report.md' not in s.files.list():\n    time.sleep(0.02)\n"
        "print(s.files.list())",
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    notebook.run_cell(2)
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("/report.md")


@pytest.mark.soak
def test_an_approval_is_clicked_while_a_sync_cell_waits_for_it(lab_window: LabWindow) -> None:
    """In the first panel of its page: the kernel computes from before it is there."""
    notebook = agent_notebook(
        lab_window,
        "session(write('# Report'), told)",
        "result = s.agent.run('Write.', wait=True)\nprint(result.text, s.agent.files.list())",
        AFTERWARDS,
    )
    notebook.run_cell(1)
    notebook.run_cell(2)
    be_heard(notebook, 1)
    notebook.screenshot("approval-in-sync-cell")
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(1)
    expect(notebook.cell_output(1)).to_contain_text("['/report.md']")
    expect(part(notebook, 1, "tool-card")).to_contain_text("Approved")
    expect(notebook.cell_output(2)).to_contain_text("the next cell ran")
    assert notebook.console == []


@pytest.mark.soak
def test_stop_ends_a_sync_cell_that_waits_for_an_approval(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session(write('# Report'), told)", "s.send('Write.').result(wait=True)", AFTERWARDS
    )
    notebook.run_cell(1)
    notebook.run_cell(2)
    be_heard(notebook, 1)
    part(notebook, 1, "approval-stop").click()
    notebook.wait_for_cell(1)
    expect(notebook.cell_output(1)).to_contain_text(STOPPED)
    expect(notebook.cell_output(2)).to_have_text("")


QUESTION = """None
asked = ToolCall("q1", "ask_user", dict(question="Which one?", response_type="freeform"))
s = sa.Session(sa.Agent(ScriptedModel([write("# A"), asked, "later"]), middleware=[sa.AskUser()],
                        interrupt_on={"write_file": True}))"""


@pytest.mark.soak
def test_what_is_stopped_while_it_waits_for_people_was_stopped(lab: Lab) -> None:
    notebook = agent_notebook(lab, QUESTION, "%%agent\nGo.", "%%agent --no-wait\nAsk.")
    for i, stop in ((1, "approval-stop"), (2, "stop")):
        notebook.run_cell(i)
        part(notebook, i, stop).click()
        expect(part(notebook, i, "status")).to_have_text("Stopped")
        card = part(notebook, i, "tool-card")
        expect(card).to_have_attribute("data-status", "cancelled")
        card.locator("summary").click()
        expect(card).to_contain_text("Cancelled: a person stopped the run.")
        notebook.wait_for_cell(i)
    expect(part(notebook, 1, "status")).to_have_text("Stopped")
    notebook.screenshot("stopped-while-it-waited")
    assert notebook.console == []


@pytest.mark.soak
def test_stop_in_a_cell_that_waits_its_turn_leaves_the_run_before_it_alone(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(once('go on', 'First answer.'), 'Second answer.')",
        "%%agent --background\nFirst.",
        "%%agent\nSecond.",
        "s.messages[-1].text",
    )
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    notebook.run_cell(2)
    expect(part(notebook, 2, "status")).to_contain_text("Waiting to start")
    part(notebook, 2, "stop").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text(STOPPED)
    give(notebook, "go on")
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("First answer.")
    notebook.run_cell(3)
    notebook.wait_for_cell(3)
    expect(notebook.cell_output(3)).to_contain_text("'First answer.'")


def test_escape_stops_when_it_is_pressed_twice_and_what_waits_is_shown(lab: Lab) -> None:
    notebook = agent_notebook(lab, "session(LONG * 50, 'later', delay=0.05)", "s", "%%agent\nTell.")
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    notebook.run_cell(2)
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_contain_text("Paragraph 0")
    composer = part(notebook, 1, "composer")
    composer.fill("And then?")
    composer.press("Enter")
    expect(part(notebook, 1, "queued")).to_contain_text("And then?")
    part(notebook, 1, "stop").focus()
    notebook.page.keyboard.press("Escape")
    expect(part(notebook, 1, "stop")).to_have_text("Stop: Esc once more")
    notebook.page.keyboard.press("Escape")
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text(STOPPED)
    expect(part(notebook, 1, "queue")).to_contain_text("go out with your next message")
    composer.fill("Or this?")
    part(notebook, 1, "queued").get_by_role("button").click()
    expect(part(notebook, 1, "queued")).to_have_count(0)
    expect(composer).to_have_value("And then?\nOr this?")


@pytest.mark.soak
def test_a_figure_is_drawn_whole_though_the_page_asks_for_something_meanwhile(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        '''None
from sagents_nb.notebook import NotebookTools
code = """import matplotlib.pyplot as plt, time
ax = plt.subplots(figsize=(8, 4))[1]
time.sleep(0.4)
ax.plot(range(50))"""
turns = [ToolCall("f1", "write_file", {"file_path": "/r.md", "content": "# R"}), "Saved."]
for n in range(4):
    turns += [ToolCall(f"p{n}", "run_python", {"code": code}), "Plotted."]
s = sa.Session(sa.Agent(ScriptedModel(turns), middleware=[NotebookTools()],
                        interrupt_on={"run_python": False}))''',
        "s",
        *["%%agent\nGo."] * 5,
        "print({len(p.data) for m in s.messages for r in m.tool_results for p in r.content"
        " if isinstance(p, sa.ImagePart)})",
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    for cell in range(2, 7):
        notebook.run_cell(cell)
        notebook.wait_for_cell(cell)
    notebook.run_cell(7)
    expect(notebook.cell_output(7)).to_have_text(re.compile(r"^\{\d{5,}\}\s*$"))
