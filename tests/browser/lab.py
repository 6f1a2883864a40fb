"""Drives a real JupyterLab in Chromium; and Notebook 7, which is made of its parts.

A test takes the fixture ``lab``, opens a notebook made of the given cells and talks to it::

    @pytest.mark.browser
    def test_a_cell_prints(lab):
        notebook = lab.open(["print('hello')"])
        notebook.run_cell(0)
        expect(notebook.cell_output(0)).to_have_text("hello")

Whatever returns a *locator* is meant for Playwright's ``expect``, which waits until the condition
holds; nothing here sleeps. Each notebook has a folder, a workspace and a kernel of its own, and the
kernel sees no API keys. When a test fails, the pages it had open are saved as pictures in
``.test-artifacts/``, and what the page's console said is added to the report.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, Literal

import nbformat
from playwright.sync_api import Browser, Locator, expect

from tests.browser.servers import LabServer
from tests.browser.windows import HostPage, Window
from tests.talking import PATIENCE, until


class Lab(Window["NotebookPage"]):
    """A window on JupyterLab, or on Notebook 7."""

    def __init__(self, server: LabServer, browser: Browser, name: str) -> None:
        super().__init__(server, browser, name, NotebookPage)
        self._numbers = itertools.count()

    def open(
        self,
        cells: Sequence[str | nbformat.NotebookNode] = (),
        *,
        files: dict[str, str] | None = None,
    ) -> NotebookPage:
        """Open a new notebook and wait for its kernel.

        A cell is code, or whatever ``nbformat.v4.new_markdown_cell`` and its like make. ``files``
        are put beside the notebook, where its kernel works.
        """
        path = self.new_folder(files) / f"notebook{next(self._numbers)}.ipynb"
        v4 = nbformat.v4
        notebook = v4.new_notebook(
            cells=[v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, path)
        return self.open_file(path)


class NotebookPage(HostPage):
    """A notebook in a browser tab. Cells count from 0."""

    # Cells

    def cell(self, i: int) -> Locator:
        """Locator of a whole cell."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(i)

    def cell_output(self, i: int) -> Locator:
        """Locator of all that a cell has put out, with the "[1]:" before its value."""
        return self.cell(i).locator(".jp-Cell-outputArea")

    def cell_outputs(self, i: int) -> Locator:
        """Locator of each single output of a cell, without prompts."""
        return self.cell(i).locator(".jp-Cell-outputArea .jp-OutputArea-output")

    def cell_prompt(self, i: int) -> Locator:
        """Locator of the text before a cell: "[*]:" while it runs, "[1]:" afterwards."""
        return self.cell(i).locator(".jp-InputPrompt")

    def run_cell(self, i: int) -> None:
        """Run a cell as a person does, with Ctrl+Enter. Does not wait for its end."""
        editor = self.cell(i).locator(".jp-InputArea-editor .cm-content")
        editor.click(position={"x": 2, "y": 2})
        editor.press("Control+Enter")

    def set_source(self, i: int, source: str) -> None:
        """Type a cell anew."""
        editor = self.cell(i).locator(".jp-InputArea-editor .cm-content")
        editor.click(position={"x": 2, "y": 2})
        editor.press("Control+A")
        self.page.keyboard.insert_text(source)

    def run_all(self) -> None:
        """Run all cells. Does not wait for their end."""
        self.command("notebook:run-all-cells")

    def wait_for_cell(self, i: int, timeout: float = PATIENCE) -> None:
        """Wait until a cell that was started has ended, well or not."""
        expect(self.cell_prompt(i)).to_have_text(re.compile(r"\[\d+\]"), timeout=timeout * 1000)

    # The kernel

    def interrupt_kernel(self) -> None:
        """Press the toolbar's stop button."""
        self.page.locator(
            ".jp-NotebookPanel:not(.lm-mod-hidden) [data-command='notebook:interrupt-kernel']"
        ).first.click()

    def restart_kernel(self) -> None:
        """Restart the kernel and wait until it is back; cells keep their outputs."""
        self.page.evaluate(f"{NOTEBOOK}.sessionContext.session.kernel.restart()")
        self.wait_for_kernel_idle()

    def wait_for_kernel_idle(self, timeout: float = PATIENCE) -> None:
        """Wait until the kernel is connected and does nothing.

        A cell that was just started may not have reached the kernel: for cells, see
        :meth:`wait_for_cell`.
        """
        self.page.wait_for_function(
            f"{NOTEBOOK}?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"
            f" && {NOTEBOOK}.sessionContext.session.kernel.status === 'idle'",
            timeout=timeout * 1000,
        )

    # The page

    def wait_until_ready(self) -> None:
        """Wait until the notebook is shown and its kernel answers."""
        self._wait_for_notebook()
        self.wait_for_kernel_idle()

    def save(self) -> nbformat.NotebookNode:
        """Save the notebook and read it from the disk."""
        until(self._saved)
        # A save that was under way before this one empties the file and writes it again.
        until(self.path.read_bytes)
        return nbformat.read(self.path, as_version=4)

    def _saved(self) -> bool:
        """Save it; whether it is as it was saved, and no output has come meanwhile."""
        save = "await jupyterapp.commands.execute('docmanager:save')"
        dirty = f"{NOTEBOOK}.context.model.dirty"
        return self.page.evaluate(f"async () => {{ {save}; return !{dirty}; }}") is True

    def reload(self, *, wait_for_idle: bool = True) -> None:
        """Save, since Lab's autosave is off here, and load the page again.

        While a cell runs the kernel does not get idle: say ``wait_for_idle=False``.
        """
        self.save()
        self.page.reload()
        if wait_for_idle:
            self.wait_until_ready()
        else:
            self._wait_for_notebook()

    def set_theme(self, theme: Literal["light", "dark"]) -> None:
        """Switch Lab's theme."""
        self.command("apputils:change-theme", {"theme": f"JupyterLab {theme.capitalize()}"})
        light = "true" if theme == "light" else "false"
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", light)
        self._wait_for_splash()

    def command(self, name: str, arguments: dict[str, Any] | None = None) -> None:
        """Run one of Lab's commands, as its menu or palette would."""
        self.page.evaluate(
            "([name, arguments]) => void jupyterapp.commands.execute(name, arguments)",
            [name, arguments or {}],
        )

    def _wait_for_notebook(self) -> None:
        self.cell(0).wait_for()
        self._wait_for_splash()

    def _wait_for_splash(self) -> None:
        """Lab covers itself with its logo while it starts and while the theme changes."""
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")


NOTEBOOK = "jupyterapp.shell.currentWidget"
