"""marimo has no magics: a session as the value of a cell is its panel, in a shadow root."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.marimo import Marimo, MarimoPage

pytestmark = pytest.mark.browser

SETUP = """
import threading
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall

listed = [dict(id=1, content="Look", status="completed"),
          dict(id=2, content="Write", status="in_progress")]
plan = ToolCall("t1", "write_todos", dict(merge=False, todos=listed))
write = ToolCall("w1", "write_file", dict(file_path="/report.md", content="# Report"))
long = "\\n\\n".join(f"Paragraph {i} of an answer that streams slowly." for i in range(6_000))

@sa.tool(run_on="main")
def where() -> str:
    "Where it runs."
    return threading.current_thread().name

def told(request):
    return "The tool said: " + request.messages[-1].tool_results[0].text

def session(*turns):
    model = ScriptedModel(turns, delay=0.01, chunk=20)
    return sa.Session(sa.Agent(model, tools=[where], interrupt_on=dict(write_file=True)))
"""


def talk(marimo: Marimo, script: str, *cells: str) -> MarimoPage:
    """A notebook that has made the session ``s`` and shows it in the second cell, then yours."""
    notebook = marimo.open([f"{SETUP}\ns = {script}", "s", *cells])
    notebook.run_all()
    expect(notebook.cell(1).get_by_test_id("composer")).to_be_visible()
    return notebook


def say(panel: Locator, text: str) -> None:
    """Write to the agent, and send it."""
    composer = panel.get_by_test_id("composer")
    composer.fill(text)
    composer.press("Enter")


def test_the_panel_plans_asks_streams_and_is_stopped(marimo: Marimo) -> None:
    notebook = talk(marimo, 'session(["I plan.", plan], ["I write.", write], long)')
    panel = notebook.cell(1)
    expect(panel.get_by_test_id("sagents-panel")).to_have_css("border-top-width", "1px")
    say(panel, "Go.")
    card = panel.get_by_role("group", name="Approval of write_file")
    expect(card).to_contain_text("# Report")
    notebook.screenshot("marimo")
    panel.get_by_role("tab", name="Todos 2").click()
    todos = panel.get_by_role("list", name="Todos").get_by_role("listitem")
    expect(todos).to_have_text(["Done: Look", "In progress: Write"])
    panel.get_by_role("tab", name="Chat").click()
    card.get_by_role("button", name="Approve").click()
    expect(panel.get_by_test_id("tool-card")).to_have_attribute("data-status", "completed")
    expect(panel.get_by_role("log")).to_contain_text("Paragraph 1")
    expect(panel.get_by_test_id("status")).to_have_text("Running")
    panel.get_by_role("button", name="Stop").click()
    expect(panel.get_by_test_id("status")).to_have_text(re.compile("stopped", re.I))
    panel.get_by_role("tab", name="Files 1").click()
    expect(panel.get_by_role("treeitem", name="report.md")).to_be_visible()
    assert notebook.console == []
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_the_panel_follows_the_theme_and_fits_into_an_output(marimo: Marimo) -> None:
    notebook = talk(marimo, "session(long[:4_000])")
    panel = notebook.cell(1).get_by_test_id("sagents-panel")
    assert panel.evaluate("panel => panel.getRootNode() instanceof ShadowRoot")
    colours = "panel => [getComputedStyle(panel).backgroundColor, getComputedStyle(panel).color]"
    light, ink = panel.evaluate(colours)
    assert light != "rgba(0, 0, 0, 0)"
    # As marimo's dark theme does it; what the system prefers is another matter.
    notebook.page.evaluate("document.documentElement.style.colorScheme = 'dark'")
    dark, chalk = panel.evaluate(colours)
    assert (dark, chalk) != (light, ink)
    notebook.page.emulate_media(color_scheme="dark")
    notebook.page.evaluate("document.documentElement.style.colorScheme = 'light'")
    assert panel.evaluate(colours) == [light, ink]
    say(panel, "Go on.")
    expect(panel).to_contain_text("Paragraph 80")
    log = panel.get_by_role("log")
    assert log.evaluate("log => log.scrollHeight > log.clientHeight")
    area = notebook.cell(1).locator(".output-area")
    assert area.evaluate("area => area.scrollHeight <= area.clientHeight")


@pytest.mark.soak
def test_a_cell_that_is_run_again_has_a_live_panel_and_leaves_others_theirs(marimo: Marimo) -> None:
    notebook = talk(marimo, "session('One.', 'Two.')", "sa.ChatView(s)", "len(s.viewers)")
    first, second = notebook.cell(1), notebook.cell(2)
    say(first, "And?")
    expect(second.get_by_role("log")).to_contain_text("One.")
    notebook.run_cell(1)
    expect(first.get_by_role("log")).to_contain_text("One.")
    say(second, "And?")
    for panel in (first, second):
        expect(panel.get_by_role("log")).to_contain_text("Two.")
    expect(notebook.page.get_by_test_id("sagents-panel")).to_have_count(2)
    notebook.run_cell(3)
    expect(notebook.cell(3).locator(".output-area")).to_have_text("2")
    assert notebook.console == []


@pytest.mark.soak
def test_a_run_of_a_cell_is_shown_by_the_panel_and_its_tools_have_the_main_thread(
    marimo: Marimo,
) -> None:
    script = 'session(ToolCall("w", "where", {}), told)'
    notebook = talk(marimo, script, 's.send("Where?")\nNone')
    expect(notebook.cell(1).get_by_role("log")).to_contain_text("The tool said: MainThread")
