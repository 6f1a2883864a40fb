"""Take the README's pictures: the tour in a real JupyterLab, light and dark.

Run ``python docs/pictures.py`` from the root of the checkout, with Chromium installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import ARGUMENTS, find_chromium  # noqa: E402
from tests.browser.lab import Lab, NotebookPage  # noqa: E402
from tests.browser.servers import LabServer  # noqa: E402


def main() -> None:
    """Take both pictures."""
    server = LabServer(Path(tempfile.mkdtemp()))
    server.wait_until_ready()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            lab = Lab(server, browser, "pictures")
            tour = nbformat.read(ROOT / "notebooks" / "tour.ipynb", as_version=4)
            code = [cell.source for cell in tour.cells if cell.cell_type == "code"]
            notebook = lab.open([*code[:3], "session"])
            notebook.page.set_viewport_size({"width": 1120, "height": 1080})
            notebook.command("application:toggle-left-area")
            light(notebook)
            dark(notebook)
    finally:
        server.stop()


def light(notebook: NotebookPage) -> None:
    """The agent waits for approval below its cell."""
    for i in range(2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.run_cell(2)
    expect(notebook.cell(2).get_by_test_id("approve")).to_be_visible()
    picture(notebook, 2, "tour-light")
    notebook.cell(2).get_by_test_id("approve").click()
    notebook.wait_for_cell(2)


def dark(notebook: NotebookPage) -> None:
    """The whole panel, with the report open."""
    notebook.set_theme("dark")
    notebook.run_cell(3)
    notebook.wait_for_cell(3)
    panel = notebook.cell(3)
    panel.get_by_test_id("file").first.click()
    expect(panel.get_by_test_id("file-viewer")).to_contain_text("Gentoo")
    picture(notebook, 3, "panel-dark")


def picture(notebook: NotebookPage, i: int, name: str) -> None:
    """Save a cell as docs/NAME.png."""
    cell = notebook.cell(i)
    cell.scroll_into_view_if_needed()
    notebook.page.mouse.move(0, 0)
    notebook.page.wait_for_timeout(600)  # until colours and folds have come to rest
    cell.screenshot(path=ROOT / "docs" / f"{name}.png")


if __name__ == "__main__":
    main()
