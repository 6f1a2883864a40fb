"""The parts of the panel on their own, and how they behave: keyboard, theme, width."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow, NotebookPage

pytestmark = pytest.mark.browser

SETUP = """
%load_ext sagents_nb
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall

def todos(*contents):
    listed = [dict(id=i, content=c, status="pending") for i, c in enumerate(contents, 1)]
    return ToolCall("t1", "write_todos", dict(merge=False, todos=listed))

REPORT = "# Findings\\n\\nThere are **three** [penguins](https://example.org/penguins).\\n\\n```python\\nprint(3)\\n```"
write = ToolCall("w1", "write_file", dict(file_path="/notes/report.md", content=REPORT))

agent = sa.Agent(ScriptedModel([["I plan.", todos("Look", "Write")], ["I write.", write],
                                "All **done**.", "Yes."]),
                 interrupt_on=dict(write_file=True))
s = sa.Session(agent)
s.files.write("/data.csv", "name,mass\\nAdelie,3700\\nGentoo,5076")
run = s.send("Look at the penguins.").result(10)
"""


def views(lab: Lab, *cells: str) -> NotebookPage:
    """A notebook whose session waits for an approval; your cells come second."""
    notebook = lab.open([SETUP, *cells])
    for i in range(len(cells) + 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    return notebook


def part(notebook: NotebookPage, i: int, name: str) -> Locator:
    return notebook.cell(i).get_by_test_id(name)


def quiet(notebook: NotebookPage) -> None:
    """Nothing was complained about and nobody else was asked for anything."""
    assert notebook.console == []
    assert notebook.foreign_requests == []


def test_each_view_shows_its_part_and_they_move_together(lab: Lab) -> None:
    notebook = views(
        lab, "sa.ChatView(s)", "sa.TodoView(s)", "sa.FilesView(s)", "sa.ApprovalView(s)"
    )
    chat, todo, files, approval = (part(notebook, i, "sagents-panel") for i in (1, 2, 3, 4))
    for panel, name in ((chat, "chat"), (todo, "todos"), (files, "files")):
        expect(panel).to_have_attribute("data-view", name)
    expect(part(notebook, 1, "entry").first).to_contain_text("Look at the penguins.")
    expect(part(notebook, 1, "composer")).to_be_visible()
    expect(part(notebook, 2, "todo")).to_have_count(2)
    expect(part(notebook, 2, "composer")).to_have_count(0)
    expect(part(notebook, 3, "file")).to_have_count(1)
    expect(approval).to_contain_text("Findings")
    part(notebook, 4, "approve").click()
    expect(part(notebook, 4, "approve")).to_have_count(0)
    expect(part(notebook, 1, "approve")).to_have_count(0)
    expect(chat).to_contain_text("All done.")
    expect(part(notebook, 3, "file")).to_have_count(2)
    quiet(notebook)


@pytest.mark.soak
def test_a_file_opens_by_a_click_and_shows_what_it_is(lab: Lab) -> None:
    notebook = views(lab, "s.approve().result(10); sa.FilesView(s)")
    notebook.cell(1).locator("[data-testid=file][data-path='/notes/report.md']").click()
    viewer = part(notebook, 1, "file-viewer")
    expect(viewer.locator("h1, h2, h3").first).to_have_text("Findings")
    expect(viewer.locator("strong")).to_have_text("three")
    link = viewer.locator("a")
    expect(link).to_have_attribute("href", "https://example.org/penguins")
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    part(notebook, 1, "file-raw").click()
    expect(viewer).to_contain_text("# Findings")
    part(notebook, 1, "file-back").click()
    notebook.cell(1).locator("[data-testid=file][data-path='/data.csv']").click()
    expect(viewer.locator("td").first).to_have_text("Adelie")
    notebook.screenshot("files-view")
    quiet(notebook)


@pytest.mark.soak
def test_a_session_as_the_last_line_is_the_whole_panel(lab: Lab) -> None:
    notebook = views(lab, "s")
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_have_attribute("data-view", "session")
    expect(part(notebook, 1, "todo")).to_have_count(2)
    expect(part(notebook, 1, "file")).to_have_count(1)
    notebook.screenshot("session-light")
    part(notebook, 1, "approve").click()
    expect(panel).to_contain_text("All done.")
    composer = part(notebook, 1, "composer")
    composer.fill("Are you sure?")
    composer.press("Enter")
    expect(part(notebook, 1, "entry").last).to_contain_text("Yes.")
    expect(composer).to_have_value("")
    quiet(notebook)


def test_an_approval_by_keyboard_alone(lab: Lab) -> None:
    notebook = views(lab, "s")
    approve = part(notebook, 1, "approve")
    expect(approve).to_be_visible()
    notebook.page.evaluate("document.activeElement.blur()")
    part(notebook, 1, "sagents-panel").locator("button, [tabindex='0'], summary").first.focus()
    for _ in range(25):
        if approve.evaluate("button => button === document.activeElement"):
            break
        notebook.page.keyboard.press("Tab")
    expect(approve).to_be_focused()
    outline = approve.evaluate(
        "b => { const s = getComputedStyle(b); return s.outlineStyle + s.boxShadow }"
    )
    assert outline != "nonenone", "the focus can be seen"
    notebook.page.keyboard.press("Enter")
    expect(part(notebook, 1, "approve")).to_have_count(0)
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("All done.")
    quiet(notebook)


@pytest.mark.soak
def test_in_the_dark_theme_the_panel_is_dark(lab: Lab) -> None:
    notebook = views(lab, "s")
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_contain_text("I write.")
    light = brightness(panel)
    notebook.set_theme("dark")
    try:
        expect(panel).to_be_visible()
        notebook.screenshot("session-dark")
        check_dark(notebook, light)
    finally:
        notebook.set_theme("light")  # the theme is the server's, and other tests come
    quiet(notebook)


def check_dark(notebook: NotebookPage, light: float) -> None:
    panel = part(notebook, 1, "sagents-panel")
    dark, text = brightness(panel), brightness(panel, "color")
    assert light > 200
    assert dark < 80
    assert text > 150
    card = part(notebook, 1, "approval")
    assert brightness(card) < 110
    for button in ("approve", "reject", "edit"):
        found = part(notebook, 1, button)
        assert abs(brightness(found, "color") - brightness(found)) > 70, button


def test_in_a_narrow_window_nothing_sticks_out(lab_window: LabWindow) -> None:
    notebook = views(lab_window, "s")
    panel = part(notebook, 1, "sagents-panel")
    notebook.command("application:toggle-left-area")
    notebook.page.set_viewport_size({"width": 480, "height": 800})
    tabs = panel.get_by_role("tab")
    expect(tabs).to_have_count(3)
    expect(part(notebook, 1, "approve")).to_be_visible()
    notebook.screenshot("session-narrow")
    assert panel.evaluate("p => p.scrollWidth - p.clientWidth") <= 1
    assert stick_out(panel) == []
    tabs.nth(2).click()
    notebook.cell(1).locator("[data-testid=file][data-path='/data.csv']").click()
    expect(part(notebook, 1, "file-viewer").locator("td").first).to_have_text("Adelie")
    assert stick_out(panel) == []
    tabs.nth(0).click()
    part(notebook, 1, "approve").click()
    expect(panel).to_contain_text("All done.")
    quiet(notebook)


def brightness(element: Locator, what: str = "background-color") -> float:
    """0 for black to 255 for white, of the first background below it that is not transparent."""
    return float(
        element.first.evaluate(
            """(element, what) => {
                const canvas = document.createElement("canvas").getContext("2d");
                for (let e = element; e; e = e.parentElement) {
                    const value = getComputedStyle(e).getPropertyValue(what);
                    canvas.clearRect(0, 0, 1, 1);
                    canvas.fillStyle = value;
                    canvas.fillRect(0, 0, 1, 1);
                    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
                    if (a > 127) return 0.299 * r + 0.587 * g + 0.114 * b;
                }
                return 255;
            }""",
            what,
        )
    )


def stick_out(panel: Locator) -> list[str]:
    """What can be seen and reaches over the panel's right edge, unless it scrolls by itself."""
    found: list[str] = panel.evaluate(
        """panel => {
            const right = panel.getBoundingClientRect().right + 1;
            const own = e => /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
            const scrolls = e => e && e !== panel && (own(e) || scrolls(e.parentElement));
            return [...panel.querySelectorAll("*")]
                .filter(e => e.getBoundingClientRect().right > right && !scrolls(e.parentElement))
                .map(e => e.className || e.tagName);
        }"""
    )
    return found
