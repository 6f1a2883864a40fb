"""The fixtures of the browser tests; what they can do is told in ``lab.py`` and ``marimo.py``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.chromium import ARGUMENTS, find_chromium
from tests.browser.lab import Lab
from tests.browser.marimo import Marimo
from tests.browser.servers import LabServer, MarimoServer, Notebook7Server, Server
from tests.browser.windows import Window
from tests.talking import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)


def running(server: Server) -> Iterator[Server]:
    """The server, from when it answers until nobody needs it any more."""
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One JupyterLab for all tests."""
    yield from running(LabServer(tmp_path_factory.mktemp("lab")))


@pytest.fixture(scope="module")
def notebook7_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One Notebook 7 for the tests of a file."""
    yield from running(Notebook7Server(tmp_path_factory.mktemp("notebook7")))


@pytest.fixture(scope="module")
def marimo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One marimo for the tests of a file."""
    yield from running(MarimoServer(tmp_path_factory.mktemp("marimo")))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests. A machine without one skips them; in CI that is a failure."""
    path = find_chromium()
    if path is None:
        message = "There is no Chromium: install one, or set CHROMIUM to its path."
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def lab(browser: Browser, lab_server: LabServer, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A browser window on JupyterLab: ``lab.open([…cells…])`` opens a notebook."""
    window = Lab(lab_server, browser, request.node.name)
    yield window
    window.close()


@pytest.fixture
def notebook7(
    browser: Browser, notebook7_server: Notebook7Server, request: pytest.FixtureRequest
) -> Iterator[Lab]:
    """The same on Notebook 7."""
    window = Lab(notebook7_server, browser, request.node.name)
    yield window
    window.close()


@pytest.fixture
def marimo(
    browser: Browser, marimo_server: MarimoServer, request: pytest.FixtureRequest
) -> Iterator[Marimo]:
    """A browser window on marimo: ``marimo.open([…cells…])`` opens a notebook."""
    window = Marimo(marimo_server, browser, request.node.name)
    yield window
    window.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show what a failed test had on the screen."""
    report = yield
    windows = [w for w in getattr(item, "funcargs", {}).values() if isinstance(w, Window)]
    if report.when == "call" and report.failed:
        for window in windows:
            for number, notebook in enumerate(window.notebooks):
                name = re.sub(r"\W+", "-", item.nodeid).strip("-")
                report.sections.append(("Screenshot", str(notebook.screenshot(f"{name}-{number}"))))
                report.sections.append(("Console", "\n".join(notebook.console)))
            report.sections.append((window.server.name, window.server.log()[-3000:]))
    return report
