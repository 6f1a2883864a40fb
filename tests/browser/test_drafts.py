"""What somebody writes in the panel stays when a run ends and JupyterLab draws its output anew."""

from __future__ import annotations

import itertools

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow, NotebookPage
from tests.browser.test_agent_cell import give
from tests.browser.test_agent_cell import part as part_of
from tests.browser.test_composer import DOT

pytestmark = [pytest.mark.browser, pytest.mark.soak]

SETUP = """
%load_ext sagents_nb
import asyncio, os
import sagents_nb as sa

@sa.tool
async def hold() -> str:
    "Wait."
    while not os.path.exists("go on"):
        await asyncio.sleep(0.02)
    return "held"

def turn(request):
    held = request.messages[-1].role == "tool"
    return "It was held." if held else sa.ToolCall("h1", "hold", {})

s = sa.Session(sa.Agent(sa.ScriptedModel([turn] * 6), tools=[hold]))
s
"""


def part(notebook: NotebookPage, name: str) -> Locator:
    return part_of(notebook, 0, name)


def begun(lab: Lab) -> NotebookPage:
    """A conversation whose run waits, in the whole panel."""
    notebook = lab.open([SETUP])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    begin(notebook)
    return notebook


def begin(notebook: NotebookPage) -> None:
    part(notebook, "composer").fill("Go.")
    part(notebook, "composer").press("Enter")
    expect(part(notebook, "status")).to_have_attribute("data-status", "running")
    expect(part(notebook, "composer")).to_have_value("")
    # Lab puts another element in its place when it draws the output anew.
    part(notebook, "sagents-panel").evaluate("panel => panel.parentNode.parentNode.dataset.old = 1")


def drawn_anew(notebook: NotebookPage) -> Locator:
    return notebook.cell(0).locator(":not([data-old]) > div > .sagents-panel")


def write(notebook: NotebookPage, text: str) -> None:
    part(notebook, "composer").fill(text)
    part(notebook, "picker").set_input_files(
        [
            {"name": "dot.png", "mimeType": "image/png", "buffer": DOT},
            {"name": "data.csv", "mimeType": "text/csv", "buffer": b"a,b"},
        ]
    )
    expect(part(notebook, "attached")).to_have_count(2)
    part(notebook, "composer").evaluate("box => box.setSelectionRange(4, 4)")


def expect_kept(notebook: NotebookPage, text: str) -> None:
    """The draft is there, with its attachments, and who wrote it goes on in its middle."""
    expect(drawn_anew(notebook)).to_have_count(1)
    expect(part(notebook, "composer")).to_have_value(text)
    expect(part(notebook, "attached")).to_have_count(2)
    expect(part(notebook, "composer")).to_be_focused()
    notebook.page.keyboard.type("ever ")
    expect(part(notebook, "composer")).to_have_value(f"{text[:4]}ever {text[4:]}")


def test_a_draft_and_its_attachments_outlive_the_end_of_a_run(lab: Lab) -> None:
    notebook = begun(lab)
    write(notebook, "How many rows?")
    give(notebook, "go on")
    expect_kept(notebook, "How many rows?")
    notebook.screenshot("draft-after-a-run")
    part(notebook, "composer").press("Enter")
    expect(part(notebook, "entry").filter(has_text="How ever many rows?")).to_be_visible()
    assert notebook.console == []


def test_a_draft_and_its_attachments_outlive_stop(lab: Lab) -> None:
    notebook = begun(lab)
    write(notebook, "How many rows?")
    notebook.page.keyboard.press("Escape")
    notebook.page.keyboard.press("Escape")
    expect(part(notebook, "status")).to_have_attribute("data-status", "cancelled")
    expect_kept(notebook, "How many rows?")
    for _ in "12":
        part(notebook, "attached").first.get_by_role("button").click()
    begin(notebook)
    write(notebook, "And then?")
    part(notebook, "stop").click()
    expect(drawn_anew(notebook)).to_have_count(1)
    expect(part(notebook, "composer")).to_have_value("And then?")
    expect(part(notebook, "attached")).to_have_count(2)
    assert notebook.console == []


def test_a_draft_outlives_a_reload_of_the_page(lab_window: LabWindow) -> None:
    notebook = begun(lab_window)
    write(notebook, "How many rows?")
    notebook.reload(wait_for_idle=False)
    expect(part(notebook, "composer")).to_have_value("How many rows?")
    part(notebook, "composer").press("Enter")
    give(notebook, "go on")
    expect(part(notebook, "entry").filter(has_text="How many rows?")).to_be_visible()
    notebook.reload()
    expect(part(notebook, "composer")).to_have_value("")


def test_a_draft_is_of_its_notebook_where_another_one_has_a_conversation_of_that_name(
    lab_window: LabWindow,
) -> None:
    named = """
%load_ext sagents_nb
import sagents_nb as sa
sa.Session(sa.Agent(sa.ScriptedModel(["Yes."])), id="notebook-1")
"""
    here, there = lab_window.open([named]), lab_window.open([named])
    for notebook in (here, there):
        notebook.run_cell(0)
        notebook.wait_for_cell(0)
        notebook.save()
    part(here, "composer").fill("How many rows?")
    # One tab goes from the one to the other and back.
    home = here.page.url
    here.page.goto(there.page.url)
    here.wait_until_shown()
    expect(part(here, "composer")).to_have_value("")
    part(here, "composer").fill("And here?")
    here.page.goto(home)
    here.wait_until_shown()
    expect(part(here, "composer")).to_have_value("How many rows?")


def test_no_letter_is_lost_of_what_is_typed_across_the_end_of_a_run(lab: Lab) -> None:
    notebook = begun(lab)
    letters = itertools.cycle("abcdefghij ")
    typed = ""
    part(notebook, "composer").focus()
    for n in itertools.count():
        if n == 20:
            give(notebook, "go on")
        if n > 20 and n % 10 == 0 and drawn_anew(notebook).count():
            break
        typed += (letter := next(letters))
        notebook.page.keyboard.type(letter)
    expect(part(notebook, "composer")).to_have_value(typed)
    expect(part(notebook, "entry").last).to_contain_text("It was held.")
    assert notebook.console == []
