"""The hub inside JupyterLab: behind a tile of the Launcher, and signed in by who has Lab open."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, expect

from tests.browser.dashboard import AGENTS
from tests.browser.servers import LabWithHub
from tests.browser.test_accessibility import AXE, faults
from tests.browser.windows import HostPage, new_context
from tests.hub.web.jupyter import hub_processes
from tests.talking import until

pytestmark = pytest.mark.browser


class LabPage(HostPage):
    """A window on a Lab."""

    # What the browser says of how jupyter-server-proxy shows a page in a tab.
    OF_THE_HOST = (*HostPage.OF_THE_HOST, "can escape its sandboxing")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabWithHub]:
    server = LabWithHub(tmp_path_factory.mktemp("lab"), AGENTS)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def begin(hub: FrameLocator, blueprint: str, message: str) -> None:
    """A thread of that kind, once it is shown."""
    hub.get_by_role("complementary").get_by_role("link", name="New", exact=True).click()
    hub.get_by_label("Blueprint", exact=True).select_option(blueprint)
    hub.get_by_label("First message").fill(message)
    hub.get_by_label("First message").press("Enter")
    heading = hub.locator(".hub-thread:not([hidden])").get_by_role("heading", level=1)
    expect(heading).to_have_text(message)


@pytest.fixture
def window(browser: Browser, lab: LabWithHub) -> Iterator[LabPage]:
    """A window in which somebody has clicked on the tile."""
    context = new_context(browser)
    window = LabPage(context.new_page(), Path())
    window.page.goto(lab.address())
    tile = window.page.locator(".jp-LauncherCard[title=Agents]")
    expect(tile.locator("img")).to_have_js_property("naturalWidth", 64)
    window.screenshot("hub-tile")
    tile.click()
    yield window
    context.close()


def test_the_tile_opens_the_hub_where_threads_stream_and_are_approved_and_axe_finds_nothing(
    window: LabPage, lab: LabWithHub
) -> None:
    page = window.page
    hub = page.frame_locator(".jp-ServerProxy iframe")
    expect(hub.get_by_role("heading", name="Agencies")).to_be_visible()
    expect(hub.get_by_role("button", name="Sign out")).to_have_count(0)

    hub.get_by_label("Name of a new agency").fill("Lab")
    hub.get_by_role("button", name="Create").click()
    hub.get_by_role("link", name="Lab", exact=True).click()
    begin(hub, "assistant", "Say it slowly")
    panel = hub.locator(".hub-thread:not([hidden])")
    expect(panel).to_contain_text("It begins,")
    expect(panel.get_by_test_id("status")).to_have_text("Running")
    (lab.root / "go").touch()
    expect(panel).to_contain_text("It begins, and ends.")

    begin(hub, "clerk", "A letter to approve")
    expect(hub.get_by_test_id("waiting")).to_have_accessible_name("1 approval waiting")
    window.screenshot("hub-in-jupyter")
    (frame,) = (each for each in page.frames if each.url.startswith(f"{lab.url}/sagents/"))
    frame.evaluate(AXE.read_text())
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert faults(frame.locator("html")) == []
    panel.get_by_test_id("approve").click()
    expect(panel).to_contain_text("Done: Sent to Ada.")
    assert (lab.root / "letters").read_text() == "Ada: All is well.\n"
    assert window.console == []
    assert window.foreign_requests == []

    def is_told() -> bool:
        # Lab, whose requests have its token, is given a new cookie within a second.
        page.context.clear_cookies()
        page.wait_for_timeout(200)
        return hub.get_by_role("alert").all_inner_texts() == ["Jupyter has signed you out."]

    until(is_told)


@pytest.mark.soak
def test_a_hub_that_dies_is_found_again_and_a_thread_that_is_deleted_is_told_to_be_gone(
    window: LabPage, lab: LabWithHub
) -> None:
    (lab.root / "letters").unlink(missing_ok=True)
    hub = window.page.frame_locator(".jp-ServerProxy iframe")
    hub.get_by_label("Name of a new agency").fill("Power cut")
    hub.get_by_role("button", name="Create").click()
    hub.get_by_role("link", name="Power cut", exact=True).click()
    begin(hub, "clerk", "A letter before")
    panel = hub.locator(".hub-thread:not([hidden])")
    expect(panel.get_by_test_id("approve")).to_be_visible()
    (process,) = hub_processes(lab)
    os.kill(process, signal.SIGKILL)
    expect(hub.get_by_test_id("away")).to_contain_text("The hub does not answer")
    panel.get_by_test_id("approve").click()
    expect(panel).to_contain_text("Done: Sent to Ada.")
    expect(hub.get_by_test_id("away")).to_be_hidden()
    assert (lab.root / "letters").read_text() == "Ada: All is well.\n"

    (frame,) = (each for each in window.page.frames if "/sagents/#" in each.url)
    _, _, agency, _, thread = frame.url.partition("#")[2].split("/")
    assert lab.request("DELETE", f"sagents/agency/{agency}/agent/{thread}") == {"ok": True}
    expect(panel.get_by_test_id("deleted")).to_be_visible()
