"""`%agent panel`: the whole panel, which JupyterLab can show in an area of its own."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.browser.test_agent_cell import agent_notebook, give

pytestmark = [pytest.mark.browser, pytest.mark.soak]

WRITE_AND_TELL = 'session(["I write.", write("# Report")], once("seen", LONG), delay=0.001)'


def test_the_panel_in_a_view_of_its_own_streams_and_takes_an_approval(lab: Lab) -> None:
    notebook = agent_notebook(lab, WRITE_AND_TELL, "%agent panel", "s.files.list()")
    notebook.run_cell(1)
    output = notebook.cell_output(1)
    expect(output).to_contain_text("right-click it, choose “Create New View for Cell Output”")
    output.get_by_test_id("status").click(button="right")
    notebook.page.get_by_role("menuitem", name="Create New View for Cell Output").click()
    panel = notebook.page.locator(".jp-LinkedOutputView").get_by_test_id("sagents-panel")
    panel.get_by_test_id("composer").fill("Write.")
    panel.get_by_role("button", name="Send").click()
    card = panel.get_by_role("group", name="Approval of write_file")
    expect(card).to_contain_text("# Report")
    notebook.screenshot("panel-beside-approval")
    card.get_by_role("button", name="Approve").click()
    expect(panel.get_by_test_id("tool-card")).to_have_attribute("data-status", "completed")
    expect(panel.get_by_test_id("status")).to_have_text("Running")
    give(notebook, "seen")
    expect(panel.get_by_role("log")).to_contain_text("Paragraph 11")
    expect(panel.get_by_test_id("status")).to_have_text(re.compile("ready", re.I))
    expect(output.get_by_role("log")).to_contain_text("Paragraph 11")  # below its cell, too
    expect(panel.get_by_test_id("composer")).to_be_in_viewport(ratio=1)
    notebook.screenshot("panel-beside")
    notebook.run_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("/report.md")
    assert notebook.console == []
