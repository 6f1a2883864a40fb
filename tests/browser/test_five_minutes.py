"""Who follows "Five minutes" of docs/hub.md, word by word, sees what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.dashboard import HubPage
from tests.browser.servers import HubServer

pytestmark = pytest.mark.browser

PAGE = Path(__file__).parents[2] / "docs" / "hub.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## Five minutes")[2].partition("\n## ")[0]
WORDS = re.sub(r"\s+", " ", re.sub(r"```.*?```", "", SECTION, flags=re.DOTALL))
SAID = [pressed or written for pressed, written in re.findall(r"\*([^*]+)\*|`([^`]+)`", WORDS)]


def said(words: str) -> str:
    """What the page tells to press or to write."""
    assert words in SAID, f"{words} is nowhere in the section"
    return words


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    server = HubServer(tmp_path_factory.mktemp("shop"), code)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def test_each_step_leads_to_the_next(browser: Browser, shop: HubServer) -> None:
    window = HubPage(browser, shop)
    page = window.page
    page.goto(shop.said_address)

    page.get_by_label(said("Name of a new agency")).fill(said("Lab"))
    page.get_by_role("button", name=said("Create")).click()
    page.get_by_role("button", name=said("I have it")).click()
    page.get_by_role("link", name=said("Lab"), exact=True).click()

    expect(page.get_by_role("heading", name=said("New thread"))).to_be_visible()
    expect(page.get_by_label(said("Blueprint"), exact=True)).to_have_value(said("buyer"))
    first = page.get_by_label(said("First message"))
    first.fill(said("Please order 3 lamps."))
    first.press("Enter")

    window.card.get_by_role("button", name=said("Edit")).click()
    window.card.locator("[data-testid=edit-field][data-field=count]").fill(said("2"))
    window.card.get_by_role("button", name=said("Approve with changes")).click()
    expect(window.panel).to_contain_text("2 × lamps are ordered.")
    expect(window.panel.get_by_test_id("tool-card")).to_have_count(1)

    said("Schedules")
    page.get_by_role("link", name=f"{said('New')} schedule").click()
    page.get_by_label(said("Name"), exact=True).fill(said("Lamps"))
    page.get_by_label(said("First message")).fill(said("Please order 3 lamps."))
    expect(page.get_by_label(said("At set times"))).to_be_checked()
    expect(page.get_by_label("Cron expression")).to_have_value(said("0 7 * * 1-5"))
    expect(page.get_by_test_id("preview").get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name=said("Create")).click()

    page.get_by_role("button", name="Run now: Lamps").get_by_text(said("Run now")).click()
    expect(window.waiting).to_have_accessible_name(said("1 approval waiting"))
    window.waiting.click()
    page.get_by_test_id("approval-link").click()
    window.card.get_by_role("button", name=said("Reject")).click()
    window.card.get_by_test_id("reject-message-send").click()
    expect(window.waiting).to_have_accessible_name("Nothing waits")

    shop.stop()
    shop.start()
    window.open()
    page.get_by_role("link", name="Lab", exact=True).click()
    expect(page.get_by_test_id("thread")).to_have_count(2)
    expect(page.get_by_test_id("all-schedules")).to_contain_text("Next: Lamps")
    window.context.close()
