"""JupyterLab and a hub's page beside each other: one conversation, seen and answered in both."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import NOTEBOOK, LabWindow
from tests.browser.test_agent_cell import part
from tests.browser.windows import HostPage
from tests.hub.web.kernels import SETUP
from tests.hub.web.served import TOKEN, serving

pytestmark = [pytest.mark.browser, pytest.mark.soak]

CELLS = [
    SETUP,
    "%agent use agent\n%agent serve",
    "%%agent\nSay it slowly.",
    "%%agent\ncompute answer = 6 * 7",
    "%%agent\nSay it slowly, again.",
    "%agent panel",
    "print(answer + 1)",
    "%agent use agent\n%agent load notebook-1\n%agent serve",
]


def shown(page: HostPage) -> Locator:
    """The panel of the conversation that is open there."""
    return page.page.locator(".hub-thread:not([hidden])")


def test_a_conversation_of_the_notebook_lives_on_the_page_of_its_kernel_and_of_another_hub(
    lab_window: LabWindow,
) -> None:
    notebook = lab_window.open(CELLS)
    folder = notebook.path.parent
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    said = re.search(r"http://127\.0\.0\.1:\d+/#code=\w+", notebook.cell_output(1).inner_text())
    assert said is not None
    mine = HostPage(lab_window.context.new_page(), folder)
    mine.page.goto(said[0])
    expect(mine.page.get_by_role("heading", name="Agencies")).to_be_visible()
    mine.page.get_by_role("link", name="notebook.ipynb").click()
    expect(mine.page.get_by_role("heading", name="notebook.ipynb")).to_be_visible()
    mine.screenshot("served-agency")
    mine.page.get_by_test_id("thread").click()
    with serving(folder / ".sagents" / "agents.db") as hub:
        other = HostPage(lab_window.context.new_page(), folder)
        other.page.goto(f"{hub.url}{mine.page.url[mine.page.url.index('/#') :]}")
        other.page.get_by_label("Token").fill(TOKEN)
        other.page.get_by_role("button", name="Open the hub").click()
        pages = (mine, other)

        notebook.page.bring_to_front()
        notebook.run_cell(2)
        for panel in (notebook.cell_output(2), *map(shown, pages)):
            expect(panel).to_contain_text("It begins,")
        (folder / "go").touch()
        for panel in (notebook.cell_output(2), *map(shown, pages)):
            expect(panel).to_contain_text("It begins, and ends.")
        notebook.wait_for_cell(2)

        notebook.run_cell(3)
        for page in pages:
            expect(shown(page).get_by_test_id("approval")).to_be_visible()
        other.screenshot("served-approval")
        shown(other).get_by_role("button", name="Approve", exact=True).click()
        notebook.wait_for_cell(3)
        expect(part(notebook, 3, "approval")).to_have_count(0)
        notebook.cell_output(3).get_by_text("Approved").first.click()
        expect(notebook.cell_output(3)).to_contain_text("approved by hub", ignore_case=True)
        notebook.screenshot("served-approved")

        notebook.run_cell(4)
        expect(shown(mine)).to_contain_text("Say it slowly, again.")
        shown(mine).get_by_test_id("stop").click()
        notebook.wait_for_cell(4)
        expect(notebook.cell_output(4)).to_contain_text("The run was stopped.")

        notebook.run_cell(5)
        shown(mine).get_by_test_id("composer").fill("compute answer = 99")
        shown(mine).get_by_test_id("composer").press("Enter")
        in_notebook = part(notebook, 5, "approval")
        in_notebook.get_by_role("button", name="Approve", exact=True).click()
        for page in pages:
            expect(shown(page)).to_contain_text("It gave")
            expect(shown(page).get_by_test_id("approval")).to_have_count(0)
        notebook.run_cell(6)
        expect(notebook.cell_output(6)).to_contain_text("100")

        notebook.restart_kernel()
        expect(other.page.get_by_test_id("kernel-away")).to_be_visible()
        expect(shown(other).get_by_test_id("status")).to_have_text("Closed")
        expect(shown(other)).to_contain_text("It begins, and ends.")
        other.screenshot("served-away")
        expect(mine.page.get_by_test_id("away")).to_be_visible()
        for i in (0, 7):
            notebook.run_cell(i)
            notebook.wait_for_cell(i)
        expect(other.page.get_by_test_id("kernel-away")).to_have_count(0)
        expect(shown(other).get_by_test_id("status")).to_have_text("Ready")
        shown(other).get_by_test_id("composer").fill("there?")
        shown(other).get_by_test_id("composer").press("Enter")
        expect(shown(other)).to_contain_text("You said: there?")
        expect(notebook.cell_output(7)).to_contain_text("You said: there?")
        notebook.page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    assert mine.foreign_requests == other.foreign_requests == []


def test_a_page_keeps_what_it_shows_when_the_notebook_serves_no_more(lab_window: LabWindow) -> None:
    cells = [SETUP, "%agent use agent\n%agent serve", "%%agent\ncompute answer = 6 * 7"]
    notebook = lab_window.open([*cells, "%agent serve off"])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    said = re.search(r"http://127\.0\.0\.1:\d+/#code=\w+", notebook.cell_output(1).inner_text())
    assert said is not None
    mine = HostPage(lab_window.context.new_page(), notebook.path.parent)
    mine.page.goto(said[0])
    mine.page.get_by_role("link", name="notebook.ipynb").click()
    mine.page.get_by_test_id("thread").click()
    with serving(notebook.path.parent / ".sagents" / "agents.db") as hub:
        other = HostPage(lab_window.context.new_page(), notebook.path.parent)
        other.page.goto(f"{hub.url}{mine.page.url[mine.page.url.index('/#') :]}")
        other.page.get_by_label("Token").fill(TOKEN)
        other.page.get_by_role("button", name="Open the hub").click()
        notebook.page.bring_to_front()
        notebook.run_cell(2)
        shown(mine).get_by_role("button", name="Approve", exact=True).click()
        notebook.wait_for_cell(2)
        for page in (mine, other):
            expect(shown(page).get_by_test_id("tool-card")).to_be_visible()
        notebook.run_cell(3)
        notebook.wait_for_cell(3)
        for page in (mine, other):
            expect(shown(page).get_by_test_id("withdrawn")).to_contain_text("%agent serve")
            expect(shown(page).get_by_test_id("tool-card")).to_be_visible()
            expect(shown(page)).not_to_contain_text("Connecting")
        mine.screenshot("served-no-more")
        other.screenshot("served-no-more-elsewhere")
