"""The page of a hub: people find their agents there, answer them, and lose nothing on the way."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.dashboard import HubPage, letters
from tests.browser.servers import HubServer
from tests.browser.test_accessibility import AXE, faults, tab_to
from tests.talking import PATIENCE, until

pytestmark = pytest.mark.browser


def test_the_said_address_opens_the_hub_once_and_leaves_no_code_behind(
    windows: list[HubPage], hub: HubServer
) -> None:
    first, second = windows
    first.page.goto(hub.said_address)
    expect(first.page.get_by_role("heading", name="Agencies")).to_be_visible()
    assert first.place == "/"
    assert first.page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [
        *(0, 0),
        "",
    ]
    second.page.goto(hub.said_address)
    expect(second.page.get_by_role("alert")).to_contain_text("The code of the address is used")
    second.page.get_by_label("Token").fill("another")
    second.page.get_by_role("button", name="Open the hub").click()
    expect(second.page.get_by_role("alert")).to_contain_text("opens nothing here")
    second.provoked = "401"


def test_a_new_agency_has_a_secret_a_thread_that_streams_and_a_line_in_what_was_used(
    window: HubPage, hub: HubServer
) -> None:
    page = window.open()
    secret = window.make_agency("Weather")
    agency = window.place.split("/")[2]
    request = urllib.request.Request(
        f"{hub.url}/agency/{agency}/agents", headers={"Authorization": f"Bearer {secret}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.read() == b'{"agents":[]}'

    row = window.begin("assistant", "Say it slowly")
    expect(window.panel).to_contain_text("It begins,")
    expect(window.status).to_have_text("Running")
    expect(row).to_contain_text("Running")
    (hub.root / "go").touch()
    expect(window.panel).to_contain_text("It begins, and ends.")
    expect(row).to_contain_text("Done")

    window.panel.get_by_test_id("composer").fill("hello")
    window.panel.get_by_test_id("composer").press("Enter")
    expect(window.panel.locator("math")).to_be_visible()
    page.get_by_role("link", name="Hub").click()
    numbers = page.get_by_test_id("agency").filter(has_text="Weather").locator("td")
    expect(numbers.nth(0)).to_have_text("1")
    expect(numbers.nth(2)).to_have_text("1.2k")
    expect(numbers.nth(4)).to_have_text("$0.0125")
    page.get_by_role("button", name="Delete Weather").click()
    page.get_by_role("button", name="Keep").press("Escape")
    expect(page.get_by_role("button", name="Delete Weather")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(numbers).to_have_count(0)


def test_what_waits_is_found_from_anywhere_and_approved_edited_or_rejected(
    window: HubPage, hub: HubServer
) -> None:
    page = window.open()
    window.make_agency("Post")
    row = window.begin("clerk", "A letter to approve")
    expect(row).to_contain_text("Needs approval")
    page.get_by_role("link", name="Hub").click()
    expect(window.waiting).to_have_accessible_name("1 approval waiting")
    expect(page).to_have_title("(1) sagents_nb hub")
    page.get_by_role("link", name="Post").click()
    expect(page).to_have_title("(1) Post · sagents_nb hub")
    window.waiting.click()
    expect(page.get_by_test_id("approval-link")).to_contain_text("send_letter")
    page.get_by_test_id("approval-link").click()
    window.card.get_by_test_id("approve").click()
    expect(window.panel).to_contain_text("Done: Sent to Ada.")
    expect(window.waiting).to_have_accessible_name("Nothing waits")
    letters(hub, "Ada: All is well.")

    window.begin("clerk", "A letter to edit")
    window.card.get_by_test_id("edit").click()
    window.card.locator("[data-field=to]").fill("Grace")
    window.card.get_by_test_id("edit-save").click()
    expect(window.panel).to_contain_text("Done: Sent to Grace.")
    letters(hub, "Grace: All is well.")

    window.begin("clerk", "A letter to reject")
    window.card.get_by_test_id("reject").click()
    window.card.get_by_test_id("reject-message").fill("Not on a Sunday.")
    window.card.get_by_test_id("reject-message-send").click()
    expect(window.panel.get_by_test_id("tool-card")).to_have_attribute("data-status", "rejected")
    letters(hub)


@pytest.mark.soak
def test_the_browser_tells_of_what_begins_to_wait_and_leads_there(windows: list[HubPage]) -> None:
    first, second = windows
    # What Chromium without a screen shows to nobody.
    second.page.add_init_script(
        """window.notes = [];
        window.Notification = class {
            static permission = "default";
            static requestPermission = async () => (Notification.permission = "granted");
            constructor(title, options) { notes.push(Object.assign(this, options, { title })); }
            close() {}
        };"""
    )
    page = second.open()
    second.waiting.click()
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notify me")).to_have_count(0)
    first.open()
    first.make_agency("Bell")
    first.begin("clerk", "A letter to ring for")
    until(lambda: page.evaluate("notes.length"))
    assert page.evaluate("[notes[0].title, notes[0].body]") == [
        "Bell needs an approval",
        "A letter to ring for: send_letter",
    ]
    page.evaluate("notes[0].onclick()")
    second.card.get_by_test_id("approve").click()
    expect(first.panel).to_contain_text("Done: Sent to Ada.")
    assert page.evaluate("notes.length") == 1


@pytest.mark.soak
def test_who_hands_on_work_leads_to_who_has_it(window: HubPage) -> None:
    page = window.open()
    window.make_agency("Others")
    parent = window.begin("assistant", "Please hand on")
    expect(parent).to_contain_text("Waits for others")
    expect(window.card).to_have_count(0)
    child = page.locator(".hub-tree .hub-tree").get_by_test_id("thread")
    expect(child).to_contain_text("A letter for the other")
    window.panel.get_by_test_id("waits-for").get_by_role("link").click()
    window.card.get_by_test_id("approve").click()
    expect(child).to_contain_text("Done")
    window.panel.get_by_role("link", name="Its parent").click()
    expect(window.panel.get_by_test_id("entry").last).to_contain_text("Done: Done: Sent to Ada.")


@pytest.mark.soak
def test_of_two_windows_that_answer_at_once_one_does(
    windows: list[HubPage], hub: HubServer
) -> None:
    first, second = windows
    first.open()
    first.make_agency("Race")
    first.begin("clerk", "A letter for both")
    expect(first.card).to_be_visible()
    second.open(first.place)
    expect(second.card).to_be_visible()
    # Both clicks are under way before either page has heard of the other's.
    for each in windows:
        each.card.get_by_test_id("approve").evaluate("button => setTimeout(() => button.click())")
    for each in windows:
        expect(each.panel).to_contain_text("Done: Sent to Ada.")
        expect(each.card).to_have_count(0)
        expect(each.page.get_by_test_id("thread")).to_contain_text("Done")
    letters(hub, "Ada: All is well.")


@pytest.mark.soak
def test_a_hub_that_ends_and_begins_anew_is_found_again_and_nothing_happens_twice(
    window: HubPage, hub: HubServer
) -> None:
    page = window.open()
    window.make_agency("Power cut")
    window.begin("clerk", "A letter before")
    expect(window.card).to_be_visible()
    hub.kill()
    expect(page.get_by_test_id("away")).to_contain_text("The hub does not answer")
    expect(window.panel.get_by_test_id("silent")).to_be_visible()
    window.card.get_by_test_id("approve").click()
    hub.start()
    expect(window.panel).to_contain_text("Done: Sent to Ada.")
    expect(page.get_by_test_id("away")).to_be_hidden()
    expect(window.panel.get_by_test_id("silent")).to_have_count(0)
    letters(hub, "Ada: All is well.")

    hub.stop()
    composer = window.panel.get_by_test_id("composer")
    composer.fill("said meanwhile")
    composer.press("Enter")
    hub.start()
    expect(window.panel).to_contain_text("You said 'said meanwhile'")
    expect(window.panel.get_by_text("said meanwhile", exact=True)).to_have_count(1)
    expect(composer).to_have_value("")
    window.provoked = "503"


def test_a_line_that_breaks_while_an_answer_comes_is_mended_and_nothing_is_missing(
    window: HubPage, hub: HubServer
) -> None:
    (hub.root / "go").unlink(missing_ok=True)
    lines: list[WebSocketRoute] = []
    is_broken = False

    def connect(line: WebSocketRoute) -> None:
        if is_broken:
            line.close(code=1001)
        else:
            line.connect_to_server()
            lines.append(line)

    window.page.route_web_socket(re.compile("/stream$"), connect)
    window.open()
    window.make_agency("Line")
    window.begin("assistant", "Say it slowly")
    expect(window.panel).to_contain_text("It begins,")
    is_broken = True
    for line in lines:
        line.close(code=1001)
    expect(window.panel.get_by_test_id("silent")).to_be_visible()
    (hub.root / "go").touch()
    # The list is asked for, and hears of the end before the panel does.
    expect(window.page.get_by_test_id("thread")).to_contain_text("Done")
    expect(window.panel).not_to_contain_text("and ends.")
    is_broken = False
    expect(window.panel.get_by_text("It begins, and ends.", exact=True)).to_have_count(1)
    expect(window.panel.get_by_test_id("silent")).to_have_count(0)


@pytest.mark.soak
def test_of_very_many_threads_the_newest_are_shown_until_more_are_asked_for(
    window: HubPage, hub: HubServer
) -> None:
    page = window.open()
    secret = window.make_agency("Many")
    agency = window.place.split("/")[2]
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    for _ in range(53):
        request = urllib.request.Request(
            f"{hub.url}/agency/{agency}/agents", b'{"agentType": "assistant"}', headers
        )
        urllib.request.urlopen(request, timeout=PATIENCE).close()
    expect(page.get_by_test_id("thread")).to_have_count(50)
    # What else an agency has stays in sight.
    expect(page.get_by_test_id("blueprint").last).to_be_in_viewport()
    expect(page.get_by_test_id("all-schedules")).to_be_in_viewport()
    page.get_by_role("button", name="Show 3 more").click()
    expect(page.get_by_test_id("thread")).to_have_count(53)


@pytest.mark.soak
def test_a_thread_that_another_window_deletes_is_told_to_be_gone(windows: list[HubPage]) -> None:
    first, second = windows
    first.open()
    first.make_agency("Tidy")
    first.begin("assistant", "Soon gone")
    second.open(first.place)
    expect(second.panel).to_contain_text("You said 'Soon gone'")
    first.page.get_by_role("button", name="Delete this thread").click()
    first.page.get_by_role("button", name="Delete", exact=True).click()
    expect(first.page.get_by_role("heading", name="New thread")).to_be_visible()
    expect(second.panel.get_by_test_id("deleted")).to_be_visible()
    for each in windows:
        expect(each.page.get_by_test_id("thread")).to_have_count(0)
    second.page.reload()
    second.open(second.place)
    expect(second.panel.get_by_test_id("deleted")).to_be_visible()
    second.provoked = "404"


def test_a_blueprint_says_what_is_wrong_in_its_place_and_keeps_its_versions(
    window: HubPage,
) -> None:
    page = window.open()
    window.make_agency("Kinds")
    page.get_by_role("link", name="New blueprint").click()
    page.get_by_role("textbox", name="Name").fill("poet")
    page.get_by_role("textbox", name="Prompt").fill("Write poems.")
    config = page.get_by_role("textbox", name="Config")
    config.fill("{oops")
    expect(page.get_by_role("alert")).to_contain_text("This is not valid JSON")
    page.get_by_role("button", name="Create").click()
    expect(config).to_be_focused()
    config.fill('{"hitl": {"tools": 1}}')
    page.get_by_role("button", name="Create").click()
    expect(config).to_have_accessible_description(re.compile(r'The config "hitl" of blueprint'))
    config.fill('{"hitl": {"tools": ["write_file"]}}')
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="poet")).to_be_visible()

    prompt = page.get_by_role("textbox", name="Prompt")
    prompt.fill("Write odes.")
    page.get_by_test_id("blueprint").filter(has_text="clerk").click()
    page.get_by_test_id("blueprint").filter(has_text="poet").click()
    expect(prompt).to_have_value("Write odes.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version 2.")).to_be_visible()
    page.get_by_role("button", name="Bring back version 1").click()
    expect(prompt).to_have_value("Write poems.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_test_id("blueprint").filter(has_text="poet")).to_contain_text("version 3")
    page.get_by_role("button", name="Delete poet").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_test_id("blueprint")).to_have_count(2)
    window.provoked = "400"


def test_the_keyboard_is_enough_from_the_token_to_an_answer(
    window: HubPage, hub: HubServer
) -> None:
    page, press = window.page, window.page.keyboard.press
    page.goto(hub.address())
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(hub.token)
    press("Enter")
    tab_to(page.get_by_label("Name of a new agency"))
    page.keyboard.type("Keys")
    press("Enter")
    tab_to(page.get_by_role("link", name="Keys", exact=True))
    press("Enter")
    tab_to(page.get_by_label("Blueprint", exact=True))
    press("c")  # the clerk
    press("Tab")
    page.keyboard.type("A letter by hand")
    press("Enter")
    tab_to(window.waiting, back=True)
    press("Enter")
    tab_to(page.get_by_role("button", name="Sign out"))
    expect(page.get_by_role("region", name="What waits for people")).to_have_count(0)
    tab_to(window.waiting, back=True)
    press("Enter")
    tab_to(page.get_by_test_id("approval-link"))
    press("Enter")
    tab_to(window.card.get_by_test_id("approve"))
    press("Enter")
    expect(window.panel).to_contain_text("Done: Sent to Ada.")


@pytest.mark.soak
def test_axe_finds_nothing_in_any_part_light_dark_and_narrow(
    window: HubPage, hub: HubServer
) -> None:
    page = window.page
    page.goto(hub.address())
    found = [*check(page, "the way in")]
    window.open()
    page.get_by_label("Name of a new agency").fill("All")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_test_id("secret")).to_be_visible()
    page.get_by_role("button", name="Delete All").click()
    found += check(page, "agencies")
    page.get_by_role("link", name="All", exact=True).click()
    found += check(page, "new thread")
    window.begin("clerk", "A letter to look at")
    expect(window.card).to_be_visible()
    found += check(page, "an approval")
    window.waiting.click()
    expect(page.get_by_test_id("approval-link").first).to_be_visible()
    found += check(page, "what waits", ".hub-popover")
    page.get_by_test_id("blueprint").last.click()
    page.get_by_role("textbox", name="Config").fill("{")
    found += check(page, "a blueprint")
    assert found == []


def check(page: Page, part: str, root: str = "html") -> Iterator[str]:
    """What axe has against the page as it is, in both colour schemes and narrow."""
    # As an expression of the test's: the page's policy lets no script in.
    page.evaluate(AXE.read_text())
    for scheme, width in (("light", 1280), ("dark", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        for said in faults(page.locator(root)):
            yield f"{part}, {scheme}, {width}: {said}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), part
    page.set_viewport_size({"width": 1280, "height": 900})
