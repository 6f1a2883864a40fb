"""Drives a real JupyterLab in Chromium; and Notebook 7, which is made of its parts.

A test takes the fixture ``lab``, opens a notebook made of the given cells and talks to it::

    @pytest.mark.browser
    def test_a_cell_prints(lab):
        notebook = lab.open(["print('hello')"])
        notebook.run_cell(0)
        expect(notebook.cell_output(0)).to_have_text("hello")

Whatever returns a *locator* is meant for Playwright's ``expect``, which waits until the condition
holds; nothing here sleeps. Each notebook has a folder and a kernel of its own, and the kernel sees
no API keys.

To load JupyterLab takes seconds, so tests that take ``lab`` open their notebooks one after the
other in the same page, as a person does; each finds it without any notebook and has to leave all
else as it was. A test takes ``lab_window``, which opens as well and is a window of its own, if it
loads the page again, opens a second one, changes its size, adds something to it, or has to see it
from its first moment. When a test fails, the pages it had open are saved as pictures in
``.test-artifacts/``, and what the page's console said is added to the report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import nbformat
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.servers import LabServer
from tests.browser.windows import HostPage, Place, Window, new_context
from tests.talking import PATIENCE, until


class Lab(Place["NotebookPage"]):
    """Where a test opens its notebooks: JupyterLab, or Notebook 7."""

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
        path = self.new_folder(files) / "notebook.ipynb"
        v4 = nbformat.v4
        notebook = v4.new_notebook(
            cells=[v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, path)
        return self.open_file(path)


class LabWindow(Lab, Window["NotebookPage"]):
    """A window of its own, in which each notebook has a page of its own."""

    def __init__(self, server: LabServer, browser: Browser, name: str) -> None:
        Window.__init__(self, server, browser, name, NotebookPage)

    def open_beside(self, notebook: NotebookPage) -> NotebookPage:
        """Open the same notebook in a second tab, as it was saved last, while its kernel works."""
        page = NotebookPage(self.context.new_page(), notebook.path)
        self.notebooks.append(page)
        place = notebook.path.relative_to(self.server.root).as_posix()
        page.page.goto(self.server.address(place))
        page.wait_until_shown()
        return page


class SharedPage:
    """A page of JupyterLab in which one test after the other opens its notebook."""

    def __init__(self, server: LabServer, browser: Browser) -> None:
        self.server = server
        self._browser = browser
        self._page: Page | None = None
        self._found: dict[str, Any] = {}

    def page(self) -> Page:
        """The page, with no notebook in it: loaded where there is none."""
        if self._page is None:
            self._page = new_context(self._browser).new_page()
            self._page.set_default_timeout(PATIENCE * 1000)
            self._page.goto(self.server.address())
            # What Lab opens last by itself, over whatever was opened before.
            self._page.locator(".jp-Launcher").wait_for()
            self._page.locator("#jupyterlab-splash").wait_for(state="detached")
            self._found = self._state(self._page)
        return self._page

    def clear(self) -> None:
        """Close what is open and end the kernels, for the next test.

        Lab is not asked to save anything. What a notebook cannot take with it has to be as it was.
        """
        page = self.page()
        try:
            page.mouse.move(0, 0)
            page.evaluate(
                """async () => {
                  for (const widget of [...jupyterapp.shell.widgets("main")])
                    if (!widget.node.querySelector(".jp-Launcher")) widget.dispose();
                  // Of the page: it would ask for kernels that the server has ended.
                  await jupyterapp.serviceManager.sessions.shutdownAll();
                }"""
            )
            left = self._state(page)
            changed = {what: each for what, each in left.items() if each != self._found[what]}
            assert not changed, (
                f"The page is left with {changed}: put it back, or take lab_window instead of lab."
            )
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Close the page. Who comes next loads another."""
        if self._page is not None:
            self._page.context.close()
            self._page = None
        self.server.end_kernels()

    @staticmethod
    def _state(page: Page) -> dict[str, Any]:
        """What outlives a notebook, as far as tests change it."""
        of_the_page: dict[str, Any] = page.evaluate(
            """() => ({
              "loaded at": performance.timeOrigin,
              "size": [innerWidth, innerHeight],
              "dark colours": matchMedia("(prefers-color-scheme: dark)").matches,
              "light theme": document.body.dataset.jpThemeLight,
              "hidden sidebars": ["left", "right"].filter(
                side => jupyterapp.shell[`${side}Collapsed`]),
              "dialogs and menus": document.querySelectorAll(".jp-Dialog, .lm-Menu").length,
            })"""
        )
        return {**of_the_page, "pages": len(page.context.pages)}


class SharedLab(Lab):
    """One notebook in the page that tests share."""

    def __init__(self, shared: SharedPage, name: str) -> None:
        super().__init__(shared.server, name)
        self._shared = shared

    def open_file(self, path: Path) -> NotebookPage:
        """Open a notebook that lies below ``server.root``, as the only one."""
        assert not self.notebooks, "Who needs two notebooks takes lab_window instead of lab."
        notebook = NotebookPage(self._shared.page(), path)
        self.notebooks.append(notebook)
        place = path.relative_to(self.server.root).as_posix()
        notebook.command("docmanager:open", {"path": place, "factory": "Notebook"})
        notebook.wait_until_ready()
        return notebook

    def close(self) -> None:
        """Give the page back; after a test that failed, nobody gets it any more."""
        if self.has_failed:
            self._shared.discard()
        elif self.notebooks:
            self._shared.clear()
            self.notebooks[0].leave()


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
        self.wait_until_shown()
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
            self.wait_until_shown()

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

    def wait_until_shown(self) -> None:
        """Wait until the notebook is shown."""
        self.cell(0).wait_for()
        self._wait_for_splash()

    def _wait_for_splash(self) -> None:
        """Lab covers itself with its logo while it starts and while the theme changes."""
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")


NOTEBOOK = "jupyterapp.shell.currentWidget"
