"""What a person writes in the panel: steering, earlier messages, attachments, another model."""

from __future__ import annotations

import base64

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage

pytestmark = pytest.mark.browser

SETUP = """
%load_ext sagents_nb
import threading
import sagents_nb as sa

goes_on = threading.Event()

@sa.tool
def hold() -> str:
    "Wait."
    goes_on.wait(60)
    return "held"

model = sa.ScriptedModel([sa.ToolCall("h1", "hold", {}), "Shorter then.", "A dot."])
s = sa.Session(sa.Agent(model, tools=[hold]))
s
"""
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def part(notebook: NotebookPage, name: str) -> Locator:
    return notebook.cell(0).get_by_test_id(name)


def printed(notebook: NotebookPage, source: str) -> Locator:
    """What the second cell prints, which is run with this source."""
    notebook.set_source(1, source)
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    return notebook.cell_output(1)


def test_a_message_steers_or_waits_is_found_again_and_takes_files_along(lab: Lab) -> None:
    notebook = lab.open([SETUP, "0"])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    composer = part(notebook, "composer")
    composer.fill("Go.")
    composer.press("Enter")
    expect(part(notebook, "steer")).to_be_visible()
    for text, key in (("Shorter", "Control+Enter"), ("Later", "Enter"), ("Much later", "Enter")):
        composer.fill(text)
        composer.press(key)
        expect(composer).to_have_value("")
    expect(part(notebook, "queued")).to_have_count(3)
    for place in (2, 1):
        part(notebook, "queued").nth(place).get_by_role("button").click()
        expect(part(notebook, "queued")).to_have_count(place)
    expect(printed(notebook, "goes_on.set(); print(s.current_run.result(30).text)")).to_have_text(
        "Shorter then."
    )
    expect(part(notebook, "status")).to_have_attribute("data-status", "idle")

    composer.fill("What is")
    composer.press("ArrowUp")
    expect(composer).to_have_value("Shorter")
    composer.press("ArrowUp")
    expect(composer).to_have_value("Go.")
    composer.press("ArrowDown")
    composer.press("ArrowDown")
    expect(composer).to_have_value("What is")
    composer.press_sequentially(" this?")
    part(notebook, "picker").set_input_files(
        [
            {"name": "dot.png", "mimeType": "image/png", "buffer": DOT},
            {"name": "data.csv", "mimeType": "text/csv", "buffer": b"a,b"},
        ]
    )
    expect(part(notebook, "attached")).to_have_count(2)
    expect(part(notebook, "blind")).to_contain_text("may not see images")
    composer.press("Enter")
    expect(part(notebook, "attached")).to_have_count(0)
    expect(notebook.cell(0).locator("[data-role=user] img")).to_have_count(1)
    expect(part(notebook, "entry").last).to_contain_text("A dot.")
    expect(
        printed(notebook, "print(s.messages[-2].text, s.files.read('/uploads/data.csv').text)")
    ).to_contain_text("What is this?")
    expect(notebook.cell_output(1)).to_contain_text("/uploads/data.csv a,b")

    part(notebook, "model").click()
    expect(part(notebook, "model-choice").first).to_contain_text("this session's own")
    part(notebook, "model-choice").filter(has_text="demo").click()
    expect(part(notebook, "model")).to_have_text("demo")
    expect(printed(notebook, "print(s.agent.model.name)")).to_have_text("demo")
    assert notebook.console == []
    assert notebook.foreign_requests == []
