"""What people see stays as it was looked at: the pictures of docs/pictures, some in the README.

``make pictures`` writes them anew. Look at each that it has changed before you commit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.lab import Lab
from tests.browser.pictures import compared, hold_still, picture
from tests.browser.states import exported, opened

pytestmark = [pytest.mark.browser, pytest.mark.soak]

ROOT = Path(__file__).parents[2]

LIGHT = (
    *("empty", "streaming", "stopped", "conversation", "decided", "error", "to-dos", "sub-agents"),
    *("approval-diff", "approval-code", "approval-form", "approval-edited", "approval-rejected"),
    *("question", "files", "file", "file-changes", "branches", "editing", "queue", "earlier"),
    *("models", "run", "closed"),
)
DARK = ("conversation", "approval-diff", "approval-form", "error", "sub-agents", "files", "queue")
NARROW = ("conversation", "approval-diff", "approval-form", "sub-agents")


def test_the_panel_looks_as_it_did_light_dark_and_narrow(lab: Lab) -> None:
    panels = opened(lab, LIGHT)
    notebook = lab.notebooks[0]
    notebook.command("application:toggle-left-area")
    notebook.page.set_viewport_size({"width": 1120, "height": 1080})
    hold_still(notebook.page)
    wrong = [compared(name, picture(panels[name])) for name in LIGHT]
    notebook.set_theme("dark")
    try:
        wrong += [compared(f"{name}-dark", picture(panels[name])) for name in DARK]
    finally:
        notebook.set_theme("light")
    notebook.page.set_viewport_size({"width": 480, "height": 1080})
    wrong += [compared(f"{name}-narrow", picture(panels[name])) for name in NARROW]
    assert [words for words in wrong if words] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_page_looks_as_it_did(
    theme: Literal["light", "dark"], browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "penguins.html"
    path.write_text(exported(), encoding="utf-8")
    # The page's own policy would keep the fonts out.
    context = browser.new_context(
        color_scheme=theme, bypass_csp=True, viewport={"width": 900, "height": 800}
    )
    page = context.new_page()
    page.goto(path.as_uri())
    hold_still(page)
    page.locator("summary").nth(1).click()
    assert compared(f"export-{theme}", picture(page.locator("body"))) == ""
    context.close()


def test_the_tour_looks_as_the_readme_shows_it(lab: Lab) -> None:
    tour = nbformat.read(ROOT / "notebooks" / "tour.ipynb", as_version=4)
    code = [cell.source for cell in tour.cells if cell.cell_type == "code"]
    notebook = lab.open([*code[:3], "session"])
    notebook.page.set_viewport_size({"width": 1120, "height": 1080})
    notebook.command("application:toggle-left-area")
    hold_still(notebook.page)
    for i in range(2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.run_cell(2)
    approve = notebook.cell(2).get_by_test_id("approve")
    expect(approve).to_be_visible()
    wrong = [compared("tour", picture(notebook.cell(2)))]
    approve.click()
    notebook.wait_for_cell(2)
    notebook.set_theme("dark")
    try:
        notebook.run_cell(3)
        notebook.wait_for_cell(3)
        notebook.cell(3).get_by_test_id("file").first.click()
        expect(notebook.cell(3).get_by_test_id("file-viewer")).to_contain_text("Gentoo")
        wrong.append(compared("tour-dark", picture(notebook.cell(3))))
    finally:
        notebook.set_theme("light")
    assert [words for words in wrong if words] == []
