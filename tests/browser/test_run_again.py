"""A cell that is run again while what it asked waits for an answer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, LabWindow, NotebookPage
from tests.browser.test_agent_cell import agent_notebook, part
from tests.browser.test_stop import be_heard

pytestmark = [pytest.mark.browser, pytest.mark.soak]

REPORT = "session(write('# Report'), told, 'The second answer.', 'The third answer.')"


def run_again(notebook: NotebookPage, i: int) -> None:
    """Press Shift+Enter in that cell, and see that it has lost its output and waits for its turn.

    What is below it from then on, its new request has shown.
    """
    notebook.cell_outputs(i).first.evaluate("output => output.dataset.old = 'yes'")
    editor = notebook.cell(i).locator(".jp-InputArea-editor .cm-content")
    editor.click(position={"x": 2, "y": 2})
    editor.press("Shift+Enter")
    expect(notebook.cell(i).locator("[data-old]")).to_have_count(0)
    expect(notebook.cell_prompt(i)).to_have_text("[*]:")


@pytest.mark.parametrize("host", ["lab", pytest.param("notebook7", marks=pytest.mark.soak)])
def test_what_waits_is_answered_below_its_new_output(
    request: pytest.FixtureRequest, host: str
) -> None:
    window: Lab = request.getfixturevalue(host)
    notebook = agent_notebook(window, REPORT, "%%agent\nWrite.", "print(s.files.list())")
    of_the_host = set(notebook.console)  # there is no panel yet
    notebook.run_cell(1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    behind = part(notebook, 1, "behind")
    expect(behind).to_have_text("Cells that are run now wait for this answer.")
    be_heard(notebook, 1)
    run_again(notebook, 1)
    notebook.run_cell(2)
    expect(behind).to_contain_text("run again: when this run has ended, it sends its message once")
    expect(part(notebook, 1, "approval")).to_have_count(1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    notebook.screenshot(f"run-again-waits-{host}")
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("/report.md")
    panels = part(notebook, 1, "sagents-panel")
    expect(panels).to_have_count(2)
    expect(panels.first).to_contain_text("The tool said")
    expect(panels.last).to_contain_text("The second answer.")
    expect(behind).to_have_count(0)
    notebook.screenshot(f"run-again-answered-{host}")
    assert set(notebook.console) <= of_the_host
    kept = [output["data"]["text/markdown"] for output in notebook.save().cells[1].outputs]
    assert ["The tool said" in text for text in kept] == [True, False]
    assert "The second answer." in kept[1]


@pytest.mark.soak
def test_each_time_and_also_what_a_later_run_asks(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(write('# First'), 'The first.', write('# Second', '/2.md'), 'The second.', "
        "'The third.')",
        "%%agent\nWrite.",
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    for _ in range(2):
        expect(part(notebook, 1, "approval")).to_contain_text("# First")
        run_again(notebook, 1)
    part(notebook, 1, "approve").click()
    expect(part(notebook, 1, "approval").last).to_contain_text("# Second")
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(1)
    panels = part(notebook, 1, "sagents-panel")
    for n, text in enumerate(["The first.", "The second.", "The third."]):
        expect(panels.nth(n)).to_contain_text(text)
    expect(panels).to_have_count(3)
    assert notebook.console == []


def test_a_run_is_stopped_there_and_what_waited_behind_it_does_not_run(lab: Lab) -> None:
    notebook = agent_notebook(lab, REPORT, "%%agent\nWrite.", "print(s.files.list())")
    notebook.run_cell(1)
    be_heard(notebook, 1)
    expect(part(notebook, 1, "approval")).to_be_visible()
    run_again(notebook, 1)
    part(notebook, 1, "stop").click()
    expect(part(notebook, 1, "status")).to_have_text(re.compile("stopped", re.I))
    expect(notebook.cell_prompt(1)).not_to_have_text("[*]:")
    expect(part(notebook, 1, "sagents-panel")).to_have_count(1)
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_have_text("[]")


@pytest.mark.soak
def test_after_the_page_was_loaded_again(lab_window: LabWindow) -> None:
    notebook = agent_notebook(lab_window, REPORT, "%%agent\nWrite.")
    notebook.run_cell(1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    notebook.reload(wait_for_idle=False)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    run_again(notebook, 1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    part(notebook, 1, "reject").click()
    part(notebook, 1, "reject-message-send").click()
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "sagents-panel").first).to_contain_text("A person rejected")


@pytest.mark.soak
def test_what_a_sync_cell_waits_for(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(write('# Report'), told, 'The second answer.')",
        "result = s.send('Write.').result(wait=True)",
        "print(result.text, s.files.list())",
    )
    notebook.run_cell(1)
    be_heard(notebook, 1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    run_again(notebook, 1)
    notebook.run_cell(2)
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("The second answer. ['/report.md']")
    expect(part(notebook, 1, "sagents-panel")).to_have_count(2)


@pytest.mark.soak
def test_in_a_second_tab_with_an_older_save_a_cell_is_answered_too(lab_window: LabWindow) -> None:
    first = agent_notebook(lab_window, REPORT, "%%agent\nWrite.", "print(s.files.list())")
    first.save()
    first.run_cell(1)
    expect(part(first, 1, "approval")).to_contain_text("# Report")
    second = lab_window.open_beside(first)
    expect(part(second, 1, "approval")).to_contain_text("# Report")
    second.screenshot("second-tab-waits")
    part(second, 1, "approve").click()
    for notebook in (first, second):
        expect(part(notebook, 1, "sagents-panel")).to_contain_text("The tool said")
    first.wait_for_cell(1)
    # What the one runs leaves the other what it shows.
    second.run_cell(1)
    expect(part(second, 1, "sagents-panel")).to_contain_text("The second answer.")
    second.wait_for_cell(1)
    expect(part(first, 1, "sagents-panel")).to_contain_text("The tool said")
    assert first.console == second.console == []
