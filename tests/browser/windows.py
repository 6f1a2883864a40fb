"""A browser window on a host of notebooks, and the pages that are open in it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlparse

from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.servers import Server
from tests.talking import PATIENCE

ARTIFACTS = Path(__file__).parents[2] / ".test-artifacts"


class HostPage:
    """A notebook in a browser tab."""

    # What hosts say of themselves, on a slow machine or of their own files.
    OF_THE_HOST = ("to activate.", "was preloaded using link preload")

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

    def wait_until_ready(self) -> None:
        """Wait until the notebook is shown and its cells can be run."""
        raise NotImplementedError

    def screenshot(self, name: str) -> Path:
        """Save a picture of the page as ``.test-artifacts/NAME.png``."""
        ARTIFACTS.mkdir(exist_ok=True)
        path = ARTIFACTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def _remember_console(self, message: Any) -> None:
        ours = not any(words in message.text for words in self.OF_THE_HOST)
        if message.type in ("error", "warning") and ours:
            self.console.append(f"{message.type}: {message.text}")

    def _remember_request(self, url: str) -> None:
        parts = urlparse(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.foreign_requests.append(url)


P = TypeVar("P", bound=HostPage)


class Window(Generic[P]):
    """What one test has open: a browser window of its own on a server that tests share."""

    def __init__(
        self, server: Server, browser: Browser, name: str, page: Callable[[Page, Path], P]
    ) -> None:
        self.server = server
        self.notebooks: list[P] = []
        self._page = page
        self._name = re.sub(r"\W+", "-", name).strip("-")
        self.context: BrowserContext = browser.new_context(
            viewport={"width": 1280, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
        )

    def run_first(self, script: str) -> None:
        """Have each page that is opened from now on run this first, each time it loads."""
        self.context.add_init_script(script)

    def new_folder(self, files: dict[str, str] | None = None) -> Path:
        """A folder of its own for a notebook, with these files in it."""
        folder = self.server.root / f"{self._name}-{secrets.token_hex(3)}"
        folder.mkdir()
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        return folder

    def open_file(self, path: Path) -> P:
        """Open a notebook that lies below ``server.root``: once more, say, as a second viewer."""
        page = self._page(self.context.new_page(), path)
        self.notebooks.append(page)
        page.page.goto(self.server.address(path.relative_to(self.server.root).as_posix()))
        page.wait_until_ready()
        return page

    def close(self) -> None:
        """Close the window and end the kernels."""
        self.context.close()
        self.server.end_kernels()
