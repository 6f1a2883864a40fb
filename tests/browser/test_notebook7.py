"""Notebook 7 is made of the parts of JupyterLab, on one page: little is special to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.browser.test_agent_cell import agent_notebook, give, part
from tests.browser.test_stop import COMPUTE, STOPPED, be_heard

pytestmark = pytest.mark.browser

# What people are told to run by hand in other hosts, and to expect there.
_CHECK_LIST = (Path(__file__).parents[2] / "docs/hosts.md").read_text().partition("## By hand")[2]
SETUP, GO, AFTERWARDS = re.findall(r"```\w+\n(.*?)```", _CHECK_LIST, re.DOTALL)


def test_a_cell_plans_asks_streams_and_is_stopped(notebook7: Lab) -> None:
    notebook = notebook7.open([SETUP, GO, AFTERWARDS, "%agent files", "%agent panel"])
    notebook.run_cell(0)
    told = "Cells talk to 'notebook-1' now (scripted). It is new."
    expect(notebook.cell_outputs(0)).to_have_text([told])
    of_the_host = set(notebook.console)  # there is no panel yet
    cell = notebook.cell(1)
    notebook.run_cell(1)
    notebook.run_cell(2)
    todos = cell.get_by_role("list", name="Todos").get_by_role("listitem")
    expect(todos).to_have_text(["Done: Look", "In progress: Write"])
    card = cell.get_by_role("group", name="Approval of write_file")
    expect(card).to_contain_text("# Report")
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "interrupted")
    card.get_by_role("button", name="Approve").click()
    expect(part(notebook, 1, "tool-card")).to_contain_text("Approved")
    expect(cell.get_by_role("log")).to_contain_text("Paragraph 1")
    expect(notebook.cell_prompt(1)).to_have_text("[*]:")
    cell.get_by_role("button", name="Stop").click()
    notebook.wait_for_cell(1)
    expect(notebook.cell_output(1)).to_contain_text(STOPPED)
    expect(part(notebook, 1, "status")).to_have_text(re.compile("stopped", re.I))
    expect(notebook.cell_output(2)).to_have_text("")
    notebook.run_cell(3)
    expect(notebook.cell_output(3)).to_contain_text("8  /report.md")
    notebook.run_cell(4)
    composer = part(notebook, 4, "composer")
    composer.fill("Sure?")
    composer.press("Enter")
    expect(part(notebook, 4, "entry").last).to_contain_text("Yes.")
    notebook.screenshot("notebook7")
    assert set(notebook.console) <= of_the_host
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_stop_ends_what_a_tool_computes_in_the_kernel(notebook7: Lab) -> None:
    notebook = agent_notebook(notebook7, COMPUTE, "%%agent\nGo.", AFTERWARDS)
    notebook.run_all()
    be_heard(notebook, 1)
    give(notebook, "go on")
    expect(part(notebook, 1, "tool-card")).to_contain_text("begun")
    part(notebook, 1, "stop").click()
    notebook.wait_for_cell(1)
    expect(notebook.cell_output(1)).to_contain_text(STOPPED)
    expect(notebook.cell_output(2)).to_have_text("")


@pytest.mark.soak
def test_the_whole_panel_is_the_same_after_a_reload_also_in_the_dark(notebook7: Lab) -> None:
    notebook = agent_notebook(notebook7, "session(write('# Report'), told, gate=False)", "s")
    of_the_host = set(notebook.console)
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    notebook.set_theme("dark")
    composer = part(notebook, 1, "composer")
    composer.fill("Write.")
    composer.press("Enter")
    expect(part(notebook, 1, "sagents-panel")).to_contain_text('"size": 8}')
    said = part(notebook, 1, "entry").all_text_contents()
    notebook.screenshot("notebook7-dark")
    notebook.reload()
    expect(part(notebook, 1, "entry")).to_have_text(said)
    assert set(notebook.console) <= of_the_host
