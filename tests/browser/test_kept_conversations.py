"""Conversations outlive their kernels, as a person sees it in a real notebook."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow, NotebookPage

pytestmark = pytest.mark.browser

SETUP = """
%load_ext sagents_nb
import os, time
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall

def told(request):
    return "The tool said: " + request.messages[-1].tool_results[0].text

def write(request):
    return ToolCall("w1", "write_file", dict(file_path="/report.md", content="# Report"))

def pay(request):
    return ["I pay.", ToolCall("p1", "transfer", dict(amount=900, to="landlord"))]

@sa.tool
def transfer(amount: int, to: str) -> str:
    "Send money."
    with open("paid.txt", "a") as book:
        print(os.getpid(), file=book, flush=True)
    time.sleep(600)
    return f"{amount} sent to {to}"

agent = sa.Agent(ScriptedModel([TURN]), tools=[transfer], interrupt_on={"write_file": True})
%agent use agent
"""


def part(notebook: NotebookPage, i: int, name: str) -> Locator:
    return notebook.cell(i).get_by_test_id(name)


def run(notebook: NotebookPage, *cells: int) -> None:
    for i in cells:
        notebook.run_cell(i)
        notebook.wait_for_cell(i)


def cut_off_payment(lab: Lab) -> NotebookPage:
    """The kernel is killed while it pays; cell 3 shows the conversation in the next one."""
    cells = ("%%agent --name rent\nPay the rent.", "%agent load rent", "sa.sessions.get('rent')")
    notebook = lab.open([SETUP.replace("TURN", "pay"), *cells])
    run(notebook, 0)
    notebook.run_cell(1)
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "running")
    book = notebook.path.parent / "paid.txt"
    while not (book.exists() and book.read_text().endswith("\n")):
        notebook.page.wait_for_timeout(20)
    os.kill(int(book.read_text()), signal.SIGKILL)
    notebook.page.get_by_role("dialog").get_by_role("button", name="Ok").click()
    notebook.wait_for_kernel_idle()
    expect(part(notebook, 1, "tool-card")).to_contain_text("Unfinished")
    expect(part(notebook, 1, "lost")).to_contain_text("%agent load rent")
    notebook.set_source(0, SETUP.replace("TURN", "told"))
    run(notebook, 0, 2, 3)
    return notebook


@pytest.mark.soak
def test_a_panel_whose_kernel_has_ended_promises_only_what_a_store_has(lab: Lab) -> None:
    notebook = lab.open(
        [
            "%load_ext sagents_nb\nimport sagents_nb as sa",
            "s = sa.Session(sa.Agent(sa.ScriptedModel([])), id='mine')\ns",
        ]
    )
    run(notebook, 0, 1)
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("mine")
    notebook.restart_kernel()
    expect(part(notebook, 1, "lost")).to_have_text("The kernel of this panel has ended.")
    notebook.screenshot("ended-unkept")


def test_after_a_restart_an_approval_is_given_and_the_run_goes_on(lab: Lab) -> None:
    notebook = lab.open(
        [
            SETUP.replace("TURN", "write"),
            "%%agent --name study\nWrite a report.",
            "%agent list",
            "%agent load study",
            "sa.sessions.get('study')",
            "print(sa.sessions.get('study').files.read('/report.md').content)",
            "%agent freeze",
        ]
    )
    run(notebook, 0)
    notebook.run_cell(1)
    expect(part(notebook, 1, "approve")).to_be_visible()
    notebook.restart_kernel()
    expect(part(notebook, 1, "approve")).to_have_count(0)
    expect(part(notebook, 1, "lost")).to_contain_text("%agent load study")

    notebook.set_source(0, SETUP.replace("TURN", "told"))
    run(notebook, 0, 2, 3, 4)
    expect(notebook.cell_output(2)).to_contain_text("study: kept, waits for an answer, last used")
    expect(notebook.cell_output(3)).to_contain_text("It waits for your answer above.")
    part(notebook, 4, "approve").click()
    expect(part(notebook, 4, "sagents-panel")).to_contain_text("The tool said:")
    run(notebook, 5)
    expect(notebook.cell_output(5)).to_have_text("# Report")

    run(notebook, 6)
    expect(part(notebook, 4, "sagents-panel")).to_have_count(0)
    expect(notebook.cell_output(4)).to_contain_text("The tool said:")


@pytest.mark.soak
def test_after_a_crash_a_person_says_what_became_of_a_call(lab: Lab) -> None:
    notebook = cut_off_payment(lab)
    card = part(notebook, 3, "approval")
    expect(card).to_contain_text("Did this call run? The kernel ended while it was at work")
    expect(card).to_contain_text("landlord")
    expect(card.get_by_role("button")).to_have_text(["It ran", "It did not run", "Run it again"])
    card.get_by_role("button", name="It ran", exact=True).click()
    expect(part(notebook, 3, "sagents-panel")).to_contain_text(
        "A person confirmed that this call ran"
    )
    expect(card).to_have_count(0)
    assert len((notebook.path.parent / "paid.txt").read_text().splitlines()) == 1
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_a_page_that_is_told_nothing_of_a_restart_from_another_says_what_may_be(
    lab_window: LabWindow,
) -> None:
    notebook = lab_window.open([SETUP.replace("TURN", "told"), "s = sa.Session(agent)\ns"])
    run(notebook, 0, 1)
    notebook.save()
    other = lab_window.open_file(notebook.path)
    composer = part(other, 1, "composer")
    expect(composer).to_be_enabled()
    notebook.restart_kernel()
    composer.fill("Are you there?")
    composer.press("Enter")
    expect(part(other, 1, "silent")).to_contain_text("restarted from another page")
