"""Everybody can use the panel: axe-core finds nothing in any state, and the keyboard is enough.

All of axe's rules are on, those of WCAG A and AA and of good practice; given a part of a page, axe
itself leaves out what only a whole page can have: a title, a language, landmarks round everything.
Those are the host's, and are asked of the exported page.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.lab import Lab, LabWindow
from tests.browser.states import SETUP, STATES, exported_page, opened, themes

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"

# The states that differ most; the others are checked where there is time for it.
MAIN = ("streaming", "approval-diff", "approval-form", "question", "files", "run")


def prepare(page: Page) -> None:
    """Load axe-core into a page; nothing of it is left to the network."""
    page.add_script_tag(path=AXE)
    # Lab's body has no height and hides what sticks out of it, so axe would take all of the page
    # for hidden and find no fault with the colours of anything.
    page.add_style_tag(content="html, body { height: 100% }")


def faults(root: Locator) -> list[str]:
    """What axe has against an element and all in it: a rule, an element and a reason each.

    Where it could not tell is a fault as well, but for single characters and signs, of whose
    colours it says that they may be no text.
    """
    root.scroll_into_view_if_needed()
    root.page.mouse.move(0, 0)
    found: dict[str, list[dict[str, str]]] = root.evaluate(
        """async root => {
            // What is cut off within its own box axe takes for text behind what is below the box.
            for (const body of root.querySelectorAll(".sagents-approval-body"))
                body.style.maxHeight = "none";
            for (const log of root.querySelectorAll("[role=log]")) log.scrollTop = log.scrollHeight;
            // It finds a heading again by where it is, so the notebook has to have come to rest.
            for (let frame = 0; frame < 10; frame++) await new Promise(requestAnimationFrame);
            const { violations, incomplete, passes } = await axe.run(root);
            const told = ({ id, nodes }) => nodes.map(({ html, any, all, none }) => {
                const checks = [...any, ...all, ...none];
                const why = checks.map(check => check.message).join("; ");
                return { rule: id, html, why, key: checks[0]?.data?.messageKey ?? "" };
            });
            return {
                faults: [...violations, ...incomplete].flatMap(told),
                passes: passes.flatMap(told),
            };
        }"""
    )
    seen = [node for node in found["passes"] if node["rule"] == "color-contrast"]
    assert len(seen) > 2, "axe looked at the colours of nearly nothing"
    return [
        f"{node['rule']}: {node['html']}: {node['why']}"
        for node in found["faults"]
        if node["key"] not in ("shortTextContent", "nonBmp")
    ]


def check(lab: Lab, names: Iterable[str]) -> None:
    panels = opened(lab, names)
    notebook = lab.notebooks[0]
    prepare(notebook.page)
    with themes(notebook):
        found = {name: faults(panel) for name, panel in panels.items()}
        notebook.set_theme("dark")
        found |= {f"{name}, dark": faults(panel) for name, panel in panels.items()}
    assert {name: said for name, said in found.items() if said} == {}
    assert notebook.console == []


def test_axe_finds_nothing_in_the_main_states_light_and_dark(lab_window: LabWindow) -> None:
    check(lab_window, MAIN)


@pytest.mark.soak
def test_axe_finds_nothing_in_any_state_light_and_dark(lab_window: LabWindow) -> None:
    check(lab_window, STATES)


@pytest.mark.soak
def test_axe_finds_nothing_in_a_narrow_panel(lab_window: LabWindow) -> None:
    panels = opened(lab_window, ["to-dos", "file", "approval-diff", "sub-agents", "run"])
    notebook = lab_window.notebooks[0]
    notebook.command("application:toggle-left-area")
    notebook.page.set_viewport_size({"width": 480, "height": 800})
    prepare(notebook.page)
    with themes(notebook):
        for theme in ("light", "dark"):
            notebook.set_theme(theme)
            for panel in panels.values():
                for tab in panel.get_by_role("tab").all() or [None]:
                    if tab:
                        tab.click()
                    assert faults(panel) == []


@pytest.mark.soak
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_an_exported_page(
    theme: Literal["light", "dark"], browser: Browser, tmp_path: Path
) -> None:
    with exported_page(browser, tmp_path, theme) as page:
        page.add_script_tag(path=AXE)
        assert faults(page.locator("html")) == []
        for fold in page.locator("summary").all():
            fold.press("Enter")
        expect(page.locator("details:not([open])")).to_have_count(0)
        assert faults(page.locator("html")) == []


KEYBOARD = """
s = session(write("/a.md", "# A", "w1"), write("/b.md", "# B", "w2"), write("/c.md", "# C", "w3"),
    ToolCall("q1", "ask_user", dict(question="Which?", response_type="single_select",
        options=[dict(label=name, value=name) for name in ("Adelie", "Gentoo")])),
    "All is written.", "All is written anew.", ToolCall("h1", "hold", {}),
    ask=["write_file"], middleware=[sa.AskUser()])
s
"""


@pytest.mark.soak
def test_the_keyboard_is_enough_from_the_first_message_to_the_last_stop(lab: Lab) -> None:
    notebook = lab.open([SETUP, KEYBOARD])
    for i in (0, 1):
        notebook.run_cell(i)  # the last time that the mouse is used
        notebook.wait_for_cell(i)
    cell, press = notebook.cell(1), notebook.page.keyboard.press
    composer, cards = cell.get_by_test_id("composer"), cell.get_by_test_id("tool-card")
    press("Escape")
    tab_to(composer)
    notebook.page.keyboard.type("Write.")
    press("Enter")

    asked = cell.get_by_role("group", name="What is asked")
    expect(asked).to_contain_text("/a.md")
    tab_to(asked, back=True)
    press("a")
    expect(cards.nth(0)).to_have_attribute("data-status", "completed")

    expect(asked).to_contain_text("/b.md")
    tab_to(asked)
    press("e")
    tab_to(cell.locator("[data-testid=edit-field][data-field=content]"))
    press("Control+A")
    notebook.page.keyboard.type("# Better")
    tab_to(cell.get_by_test_id("edit-save"))
    press("Enter")
    expect(cards.nth(1)).to_contain_text("Edited")

    expect(asked).to_contain_text("/c.md")
    tab_to(asked)
    press("r")
    expect(cell.get_by_test_id("reject-message")).to_be_focused()
    notebook.page.keyboard.type("Not on a Sunday.")
    press("Enter")
    expect(cards.nth(2)).to_have_attribute("data-status", "rejected")

    option = cell.get_by_test_id("answer-option").nth(1)
    expect(option).to_be_visible()
    tab_to(option)
    press("Enter")
    expect(cell.get_by_test_id("entry").last).to_contain_text("All is written.")

    files = cell.get_by_role("treeitem")
    tab_to(files.first)
    press("ArrowDown")
    press("Enter")
    viewer = cell.get_by_test_id("file-viewer")
    expect(viewer.get_by_role("heading")).to_have_text("Better")
    tab_to(cell.get_by_test_id("file-back"), back=True)
    press("Enter")
    expect(files.nth(1)).to_be_focused()

    tab_to(cell.get_by_role("button", name="Edit your last message"), back=True)
    press("Enter")
    expect(composer).to_be_focused()
    expect(composer).to_have_value("Write.")
    notebook.page.keyboard.type(" Again.")
    press("Enter")
    branches = cell.get_by_test_id("branches")
    expect(branches).to_contain_text("2 / 2")
    expect(cell.get_by_test_id("entry").last).to_contain_text("All is written anew.")
    tab_to(cell.get_by_role("button", name="Earlier branch"), back=True)
    press("Enter")
    expect(branches).to_contain_text("1 / 2")

    tab_to(composer)
    notebook.page.keyboard.type("Once more.")
    press("Enter")
    stop = cell.get_by_test_id("stop")
    expect(stop).to_be_visible()
    tab_to(stop, back=True)
    press("Escape")
    press("Escape")
    expect(cell.get_by_test_id("status")).to_contain_text("Stopped")
    assert notebook.console == []


def tab_to(target: Locator, *, back: bool = False) -> None:
    """Press Tab until it has the focus."""
    expect(target).to_be_visible()
    for _ in range(60):
        if target.evaluate("element => element === document.activeElement"):
            return
        target.page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"Tab does not lead to {target}")
