"""The fixtures of the browser tests; what they can do is told in ``lab.py`` and ``marimo.py``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TypeVar

import pytest
from playwright.sync_api import Browser, Error, expect, sync_playwright

from tests.browser.chromium import ARGUMENTS, find_chromium
from tests.browser.dashboard import AGENTS, HubPage
from tests.browser.dashboard import opened as opened_hub
from tests.browser.lab import Lab, LabWindow, SharedLab, SharedPage
from tests.browser.marimo import Marimo
from tests.browser.servers import HubServer, LabServer, MarimoServer, Notebook7Server, Server
from tests.browser.windows import Place
from tests.talking import PATIENCE

S = TypeVar("S", bound=Server)

expect.set_options(timeout=PATIENCE * 1000)


def running(server: S) -> Iterator[S]:
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


@pytest.fixture(scope="session")
def shared_page(browser: Browser, lab_server: LabServer) -> Iterator[SharedPage]:
    """The page of JupyterLab in which tests open their notebooks."""
    page = SharedPage(lab_server, browser)
    yield page
    page.discard()


@pytest.fixture
def lab(shared_page: SharedPage, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """JupyterLab, in the page that tests share: ``lab.open([…cells…])`` opens a notebook."""
    lab = SharedLab(shared_page, request.node.name)
    yield lab
    lab.close()


@pytest.fixture
def lab_window(
    browser: Browser, lab_server: LabServer, request: pytest.FixtureRequest
) -> Iterator[LabWindow]:
    """The same in a browser window of its own, for what the shared page cannot take."""
    window = LabWindow(lab_server, browser, request.node.name)
    yield window
    window.close()


@pytest.fixture
def notebook7(
    browser: Browser, notebook7_server: Notebook7Server, request: pytest.FixtureRequest
) -> Iterator[LabWindow]:
    """The same on Notebook 7."""
    window = LabWindow(notebook7_server, browser, request.node.name)
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


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """One hub for the tests of a file."""
    yield from running(HubServer(tmp_path_factory.mktemp("hub"), AGENTS))


@pytest.fixture
def windows(browser: Browser, hub: HubServer) -> Iterator[list[HubPage]]:
    """Two windows on it."""
    with opened_hub(browser, hub, 2) as both:
        yield both


@pytest.fixture
def window(browser: Browser, hub: HubServer) -> Iterator[HubPage]:
    """A window on it."""
    with opened_hub(browser, hub, 1) as (one,):
        yield one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show what a failed test had on the screen."""
    report = yield
    places = [each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Place)]
    for place in places:
        place.has_failed |= report.failed
    if report.when == "call" and report.failed:
        for place in places:
            for number, notebook in enumerate(place.notebooks):
                name = re.sub(r"\W+", "-", item.nodeid).strip("-")
                try:
                    picture = str(notebook.screenshot(f"{name}-{number}"))
                except Error as error:  # a page that hangs draws nothing either
                    picture = error.message
                report.sections.append(("Screenshot", picture))
                report.sections.append(("Console", "\n".join(notebook.console)))
            report.sections.append((place.server.name, place.server.log()[-3000:]))
    return report
