"""The site in Chromium: its search works offline, also from a disk, and nothing is cut off."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.docs.conftest import site as site

pytestmark = [pytest.mark.browser, pytest.mark.soak]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server(site: Path) -> Iterator[str]:
    """The address of a server that has the site."""
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(params=["disk", "server"])
def home(request: pytest.FixtureRequest, site: Path) -> str:
    """The address of the site: on a disk, and on a server."""
    if request.param == "disk":
        return site.as_uri()
    return str(request.getfixturevalue("server"))


def test_the_search_finds_a_page_and_nothing_is_asked_of_others(
    home: str, browser: Browser
) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{home}/index.html")
    page.get_by_role("button", name="Search").first.click()
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type("BudgetExceeded")
    found = page.get_by_role("dialog", name="Search").get_by_role("option")
    expect(found.first).to_contain_text("The run's budget is used up")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/reference/errors\.html"))
    assert [url for url in asked if not url.startswith((home, "data:", "blob:"))] == []
    page.close()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_it_is_light_or_dark_as_the_system_is_until_the_reader_chooses(
    site: Path, browser: Browser
) -> None:
    page = browser.new_page(color_scheme="light")
    page.goto((site / "index.html").as_uri())
    light = background(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "(seen) => getComputedStyle(document.body).backgroundColor != seen", arg=light
    )
    dark = background(page)
    for title in ("light", "dark"):
        page.get_by_title(f"Switch to the {title} theme").click()
        page.wait_for_function(
            "(wanted) => getComputedStyle(document.body).backgroundColor == wanted",
            arg={"light": light, "dark": dark}[title],
        )
    page.reload()
    assert background(page) == dark
    page.close()


def test_no_page_is_wider_than_a_narrow_screen(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 800})
    wide = []
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path.name)
    assert wide == []
    page.close()
