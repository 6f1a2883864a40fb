"""Drives a real JupyterLab in Chromium.

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
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse

import nbformat
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.conftest import PRIVATE_PREFIXES
from tests.talking import PATIENCE

ARTIFACTS = Path(__file__).parents[2] / ".test-artifacts"

# News, update checks and kernel dialogs would cover the notebook.
SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}


class LabServer:
    """A JupyterLab on a free loopback port, with no settings but ours."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir()
        self.token = secrets.token_hex(16)
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._log = folder / "lab.log"
        for name, values in SETTINGS.items():
            path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                f"--ServerApp.root_dir={self.root}",
                "--ServerApp.ip=127.0.0.1",
                f"--ServerApp.port={urlparse(self.url).port}",
                "--ServerApp.port_retries=0",
                f"--IdentityProvider.token={self.token}",
                "--LabApp.expose_app_in_browser=True",
                f"--LabApp.user_settings_dir={folder / 'settings'}",
                f"--LabApp.workspaces_dir={folder / 'workspaces'}",
                "--LabApp.collaborative=False",
            ],
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=self._log.open("w"),
            stderr=subprocess.STDOUT,
        )

    def wait_until_ready(self, timeout: float = PATIENCE) -> None:
        """Return when the server answers; if it died, raise what it said."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                self.request("GET", "api/status")
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"JupyterLab did not start:\n{self.log()}")

    def request(self, method: str, path: str) -> Any:
        """Ask the server's REST API."""
        request = urllib.request.Request(
            f"{self.url}/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or "null")

    def log(self) -> str:
        """What the server and its kernels wrote."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """End the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Lab:
    """What one test has open: a browser window of its own on the shared server."""

    def __init__(self, server: LabServer, browser: Browser, name: str) -> None:
        self.server = server
        self.notebooks: list[NotebookPage] = []
        self._name = re.sub(r"\W+", "-", name).strip("-")
        self._numbers = itertools.count()
        self._context: BrowserContext = browser.new_context(
            viewport={"width": 1280, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
        )

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
        number = next(self._numbers)
        folder = self.server.root / f"{self._name}-{secrets.token_hex(3)}"
        folder.mkdir()
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        path = folder / f"notebook{number}.ipynb"
        v4 = nbformat.v4
        notebook = v4.new_notebook(
            cells=[v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, path)
        return self.open_file(path)

    def open_file(self, path: Path) -> NotebookPage:
        """Open a notebook that lies below ``server.root``: once more, say, as a second viewer."""
        page = NotebookPage(self._context.new_page(), path)
        self.notebooks.append(page)
        place = path.relative_to(self.server.root).as_posix()
        # A workspace of its own, or Lab would open what the last page had open.
        workspace = f"w{secrets.token_hex(4)}"
        page.page.goto(
            f"{self.server.url}/lab/workspaces/{workspace}/tree/{place}?token={self.server.token}"
        )
        page.wait_until_ready()
        return page

    def close(self) -> None:
        """Close the window and shut the kernels down."""
        self._context.close()
        for session in self.server.request("GET", "api/sessions"):
            self.server.request("DELETE", f"api/sessions/{session['id']}")


class NotebookPage:
    """A notebook in a browser tab. Cells count from 0."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.path = path
        self.console: list[str] = []
        """Errors and warnings of the page's console, and uncaught exceptions."""
        self.foreign_requests: list[str] = []
        """Addresses outside this machine that the page asked for; there should be none."""
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.on("console", self._remember_console)
        page.on("request", lambda request: self._remember_request(request.url))

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
        self.command("docmanager:save")
        self.page.wait_for_function(f"!{NOTEBOOK}.context.model.dirty")
        return nbformat.read(self.path, as_version=4)

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

    def screenshot(self, name: str) -> Path:
        """Save a picture of the page as ``.test-artifacts/NAME.png``."""
        ARTIFACTS.mkdir(exist_ok=True)
        path = ARTIFACTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def _wait_for_notebook(self) -> None:
        self.cell(0).wait_for()
        self._wait_for_splash()

    def _wait_for_splash(self) -> None:
        """Lab covers itself with its logo while it starts and while the theme changes."""
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def _remember_console(self, message: Any) -> None:
        slow = "to activate." in message.text  # JupyterLab's own words on a slow machine
        if message.type in ("error", "warning") and not slow:
            self.console.append(f"{message.type}: {message.text}")

    def _remember_request(self, url: str) -> None:
        parts = urlparse(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.foreign_requests.append(url)


NOTEBOOK = "jupyterapp.shell.currentWidget"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    """The person's own settings, kernels' histories and keys stay out."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*PRIVATE_PREFIXES, "JUPYTER"))}
    return kept | {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
