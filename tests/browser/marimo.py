"""Drives a real marimo in Chromium, as ``lab.py`` does JupyterLab.

marimo runs cells in the order of what they need of each other, and has no magics; the value of a
cell is shown below it, in a shadow root, into which Playwright's locators look.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from playwright.sync_api import Browser, Locator, expect

from tests.browser.servers import MarimoServer
from tests.browser.windows import HostPage, Window


class Marimo(Window["MarimoPage"]):
    """A window on marimo."""

    def __init__(self, server: MarimoServer, browser: Browser, name: str) -> None:
        super().__init__(server, browser, name, MarimoPage)

    def open(self, cells: Sequence[str]) -> MarimoPage:
        """Open a new notebook of these cells, none of which has run."""
        path = self.new_folder() / "notebook.py"
        bodies = [textwrap.indent(cell.strip(), "    ") for cell in cells]
        path.write_text(
            "import marimo\n\napp = marimo.App()\n\n\n"
            + "".join(f"@app.cell\ndef _():\n{body}\n    return\n\n\n" for body in bodies)
        )
        return self.open_file(path)


class MarimoPage(HostPage):
    """A notebook of marimo's in a browser tab. Cells count from 0."""

    def cell(self, i: int) -> Locator:
        """Locator of a whole cell."""
        return self.page.locator(".marimo-cell").nth(i)

    def run_cell(self, i: int) -> None:
        """Run a cell as a person does, with Ctrl+Enter. Does not wait for its end."""
        editor = self.cell(i).locator(".cm-content")
        editor.click(position={"x": 2, "y": 2})
        editor.press("Control+Enter")

    def run_all(self) -> None:
        """Run all cells that have not run. Does not wait for their end."""
        self.page.get_by_test_id("chrome-controls-bottom-right").get_by_test_id(
            "run-button"
        ).click()

    def wait_until_ready(self) -> None:
        expect(self.cell(0).locator(".cm-content")).to_be_visible()
