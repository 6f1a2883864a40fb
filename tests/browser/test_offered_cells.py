"""Cells that an agent writes, plots that it makes, and Tab, as JupyterLab shows them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage
from tests.browser.test_agent_cell import agent_notebook

pytestmark = pytest.mark.browser

MENDED = "session(\"The key was missing.\\n\\n```python\\nx = {}.get('a', 1)\\nx\\n```\")"
PLOTTING = (
    "session(ToolCall('c1', 'run_python', {'code': "
    "'import matplotlib.pyplot as plt\\nplt.plot([1, 3, 2])\\nplt.title(\"Sales\")'}), "
    "'It went up and down.', gate=False)\n"
    "s.replace(agent=s.agent.with_(middleware=[sa.NotebookTools()], "
    "interrupt_on={'run_python': False}))"
)


def source(notebook: NotebookPage, i: int) -> Locator:
    return notebook.cell(i).locator(".jp-InputArea-editor .cm-content")


def test_the_mended_cell_takes_the_place_of_the_magic_and_runs(lab: Lab) -> None:
    notebook = agent_notebook(lab, MENDED, "x = {}['a']", "%agent fix")
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    notebook.run_cell(2)
    expect(source(notebook, 2)).to_have_text("x = {}.get('a', 1)x")  # its two lines
    expect(notebook.cell_output(2)).to_contain_text("The key was missing.")
    notebook.screenshot("agent-fix")
    notebook.run_cell(2)
    expect(notebook.cell_output(2)).to_have_text("[4]:1")


@pytest.mark.soak
def test_the_code_of_an_answer_is_inserted_below(lab: Lab) -> None:
    notebook = agent_notebook(lab, MENDED, "%%agent --cell\nWrite it.", "'the last cell'")
    notebook.run_cell(1)
    expect(source(notebook, 2)).to_have_text("x = {}.get('a', 1)x")
    expect(source(notebook, 3)).to_have_text("'the last cell'")
    notebook.screenshot("agent-cell")


def test_a_plot_of_the_agents_stands_in_the_cell_and_stays_in_the_file(lab: Lab) -> None:
    notebook = agent_notebook(lab, PLOTTING, "%%agent\nPlot it.")
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    image = notebook.cell(1).locator(".jp-OutputArea img[src^='data:image/png']")
    expect(image.first).to_be_visible()
    notebook.screenshot("agent-plot")
    outputs = notebook.save().cells[1].outputs
    assert [o for o in outputs if "image/png" in o.get("data", {})]


@pytest.mark.soak
def test_tab_offers_the_options_of_a_cell(lab: Lab) -> None:
    notebook = agent_notebook(lab, MENDED, "%%agent --")
    editor = source(notebook, 1)
    editor.click()
    editor.press("End")
    editor.press("Tab")
    offered = notebook.page.locator(".jp-Completer-item")
    expect(offered.first).to_be_visible()
    expect(offered.filter(has_text="--model")).to_have_count(1)
    expect(offered.filter(has_text="abs")).to_have_count(0)
    notebook.screenshot("agent-tab")


TALKING = """session("Paris.", "Rome.", "Madrid.", gate=False)
for q in ("France?", "Italy?"):
    s.send(q).result()"""


@pytest.mark.soak
def test_a_fork_is_opened_by_the_cell_that_is_put_below(lab: Lab) -> None:
    notebook = agent_notebook(lab, TALKING, "s", "'the last cell'")
    notebook.run_cell(1)
    panel = notebook.cell_output(1)
    panel.get_by_test_id("entry").first.hover()
    bubble = panel.locator(".sagents-bubble").first.bounding_box()
    fork_button = panel.get_by_test_id("fork").first.bounding_box()
    assert bubble is not None
    assert fork_button is not None
    assert fork_button["y"] >= bubble["y"] + bubble["height"], "it lies on the message"
    panel.get_by_test_id("fork").first.click()
    expect(panel.get_by_test_id("forked")).to_contain_text("The new cell below opens the fork")
    expect(source(notebook, 2)).to_contain_text("%agent load session-")
    expect(source(notebook, 3)).to_have_text("'the last cell'")
    notebook.screenshot("agent-forked")
    notebook.run_cell(2)
    fork = notebook.cell_output(2)
    expect(fork.get_by_test_id("entry")).to_have_text(["YouFrance?", "AgentParis."])
    fork.get_by_test_id("composer").fill("Spain?")
    fork.get_by_test_id("composer").press("Enter")
    expect(fork.get_by_test_id("entry")).to_have_count(4)
    expect(panel.get_by_test_id("entry")).to_have_count(4)
    notebook.screenshot("agent-fork")
