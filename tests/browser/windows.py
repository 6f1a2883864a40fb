"""What a test has open on a host of notebooks: a browser window, and the pages in it."""

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
        self._listeners: dict[str, Callable[[Any], None]] = {
            "pageerror": lambda error: self.console.append(f"uncaught: {error}"),
            "console": self._remember_console,
            "request": lambda request: self._remember_request(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    def wait_until_ready(self) -> None:
        """Wait until the notebook is shown and its cells can be run."""
        raise NotImplementedError

    def leave(self) -> None:
        """Listen no more to the page, which is another notebook's from now on."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

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


class Place(Generic[P]):
    """What one test has open on a server that tests share."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.notebooks: list[P] = []
        self.has_failed = False
        """Whether the test has: who knows what it has left."""
        self._name = re.sub(r"\W+", "-", name).strip("-")

    def new_folder(self, files: dict[str, str] | None = None) -> Path:
        """A folder of its own for a notebook, with these files in it."""
        folder = self.server.root / f"{self._name}-{secrets.token_hex(3)}"
        folder.mkdir()
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        return folder

    def open_file(self, path: Path) -> P:
        """Open a notebook that lies below ``server.root``."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what is open and end the kernels."""
        raise NotImplementedError


class Window(Place[P]):
    """A browser window of its own."""

    def __init__(
        self, server: Server, browser: Browser, name: str, page: Callable[[Page, Path], P]
    ) -> None:
        super().__init__(server, name)
        self._page = page
        self.context = new_context(browser)

    def run_first(self, script: str) -> None:
        """Have each page that is opened from now on run this first, each time it loads."""
        self.context.add_init_script(script)

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


def new_context(browser: Browser, *, bypass_csp: bool = False) -> BrowserContext:
    """What a window has to itself: pages, what they keep, and what they may."""
    return browser.new_context(
        bypass_csp=bypass_csp,
        viewport={"width": 1280, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
    )
