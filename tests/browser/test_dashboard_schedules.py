"""Schedules in the page of a hub: made, run, looked at, changed, paused and deleted."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.dashboard import HubPage, letters
from tests.browser.servers import HubServer
from tests.browser.test_accessibility import tab_to
from tests.browser.test_dashboard import check, pytestmark

__all__ = ["pytestmark"]


def new_schedule(window: HubPage) -> Locator:
    """The form of a new one; gives what it says of when that would begin."""
    window.page.get_by_role("link", name="New schedule").first.click()
    expect(window.page.get_by_role("heading", name="New schedule")).to_be_visible()
    return window.page.get_by_test_id("preview")


def choose(window: HubPage, label: str, *, field: str, value: str) -> None:
    """When it is to begin."""
    window.page.get_by_label(label).check()
    window.page.get_by_label(field, exact=True).fill(value)


def make(window: HubPage, name: str) -> None:
    """One that begins nothing while the test lasts, with the page of it open."""
    new_schedule(window)
    window.page.get_by_label("Name", exact=True).fill(name)
    window.page.get_by_label("First message").fill("Say hello")
    choose(window, "Every so often", field="Every", value="9999")
    window.page.get_by_role("button", name="Create").click()
    expect(window.page.get_by_role("heading", name=name, level=1)).to_be_visible()


def test_a_schedule_is_made_begins_by_itself_and_leads_to_its_thread(
    window: HubPage, hub: HubServer
) -> None:
    page = window.open()
    window.make_agency("Clockwork")
    page.get_by_test_id("all-schedules").click()
    expect(page.get_by_text("A schedule begins threads by itself")).to_be_visible()
    page.get_by_role("link", name="Make the first schedule").click()
    page.get_by_label("Name", exact=True).fill("Post")
    page.get_by_label("Blueprint", exact=True).select_option("clerk")
    page.get_by_label("First message").fill("A letter by the clock")
    choose(window, "Every so often", field="Every", value="1")
    page.get_by_label("Unit").select_option("seconds")
    preview = page.get_by_test_id("preview")
    expect(preview).to_contain_text("Every second")
    expect(preview.get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name="Create").click()

    run = page.get_by_test_id("schedule-run").last
    expect(run).to_contain_text("Needs approval")
    page.get_by_role("button", name="Pause Post").click()
    expect(page.get_by_test_id("next-run")).to_have_text("Not while it is paused")
    run.get_by_role("link").click()
    window.card.get_by_test_id("approve").click()
    expect(window.panel).to_contain_text("Done: Sent to Ada.")
    letters(hub, "Ada: All is well.")
    page.get_by_test_id("all-schedules").click()
    card = page.get_by_test_id("schedule")
    expect(card).to_contain_text("Paused")
    card.get_by_role("link", name="Post", exact=True).click()
    expect(run).to_contain_text("Done")

    page.get_by_role("button", name="Run now: Post").click()
    page.get_by_role("link", name="open its thread").click()
    window.card.get_by_test_id("reject").click()
    window.card.get_by_test_id("reject-message").fill("Once is enough.")
    window.card.get_by_test_id("reject-message-send").click()
    expect(window.panel.get_by_test_id("tool-card")).to_have_attribute("data-status", "rejected")
    letters(hub)


@pytest.mark.soak
def test_what_the_hub_says_of_a_field_stands_at_that_field(window: HubPage) -> None:
    page = window.open()
    window.make_agency("Wrong")
    preview = new_schedule(window)
    expect(preview).to_contain_text("At 07:00 on Monday through Friday")
    cron = page.get_by_label("Cron expression")
    cron.fill("every day")
    expect(cron).to_have_accessible_description(
        "'every day' is no cron expression; write five fields, such as '0 7 * * 1-5'."
    )
    expect(preview).to_have_text("")
    create = page.get_by_role("button", name="Create")
    create.click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Wrong")
    create.click()
    expect(page.get_by_label("First message")).to_be_focused()
    page.get_by_label("First message").fill("Say hello")
    create.click()
    expect(cron).to_be_focused()
    cron.fill("30 6 1 * *")
    expect(preview).to_contain_text("At 06:30 on the first day of every month")
    expect(cron).to_have_attribute("aria-invalid", "false")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    expect(preview.get_by_role("listitem").first).to_contain_text("06:30 Asia/Tokyo")
    choose(window, "Once", field="At", value="2020-01-01T09:00")
    at = page.get_by_label("At", exact=True)
    expect(at).to_have_accessible_description("run_at has passed; choose a moment that is to come.")
    choose(window, "Every so often", field="Every", value="soon")
    expect(page.get_by_label("Every", exact=True)).to_have_accessible_description(
        "Write a number: a second is the least."
    )
    window.provoked = "400"


@pytest.mark.soak
def test_a_schedule_is_changed_as_it_was_written_and_deleted(window: HubPage) -> None:
    page = window.open()
    window.make_agency("Changes")
    make(window, "<b>Bold</b> \u202eplan")
    page.get_by_role("link", name="Edit").click()
    every, unit = page.get_by_label("Every", exact=True), page.get_by_label("Unit")
    expect(every).to_have_value("9999")
    expect(unit).to_have_value("minutes")
    page.get_by_label("Name", exact=True).fill("Plan")
    choose(window, "At set times", field="Cron expression", value="0 0 1 1 *")
    page.get_by_label("If one fails").select_option("Try again twice")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Plan", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("At 00:00 on January 1")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("If one fails")).to_have_value("2")
    page.get_by_label("Name", exact=True).fill("Not kept")
    page.get_by_role("button", name="Cancel").click()

    page.get_by_test_id("all-schedules").click()
    page.get_by_role("button", name="Pause Plan").click()
    page.get_by_role("button", name="Resume Plan").press("Enter")
    expect(page.get_by_role("button", name="Pause Plan")).to_be_focused()
    page.get_by_role("button", name="Delete Plan").press("Enter")
    page.get_by_role("button", name="Delete", exact=True).press("Enter")
    expect(page.get_by_test_id("schedule")).to_have_count(0)
    expect(page.get_by_role("heading", name="Schedules", level=1)).to_be_focused()


@pytest.mark.soak
def test_a_schedule_that_another_window_deletes_is_told_to_be_gone(
    windows: list[HubPage],
) -> None:
    first, second = windows
    first.open()
    first.make_agency("Both")
    make(first, "Soon gone")
    second.open(first.place)
    expect(second.page.get_by_role("heading", name="Soon gone")).to_be_visible()
    first.page.get_by_role("button", name="Delete Soon gone").click()
    first.page.get_by_role("button", name="Delete", exact=True).click()
    expect(second.page.get_by_role("heading", name="No such schedule")).to_be_visible()
    second.page.get_by_role("link", name="All schedules").click()
    expect(second.page.get_by_text("A schedule begins threads by itself")).to_be_visible()
    second.provoked = "404"


@pytest.mark.soak
def test_the_keyboard_is_enough_to_make_a_schedule(window: HubPage) -> None:
    page, press = window.open(), window.page.keyboard.press
    window.make_agency("Keys alone")
    tab_to(page.get_by_test_id("all-schedules"), back=True)
    press("Enter")
    tab_to(page.get_by_role("link", name="Make the first schedule"))
    press("Enter")
    tab_to(page.get_by_label("Name", exact=True))
    page.keyboard.type("By hand")
    tab_to(page.get_by_label("First message"))
    page.keyboard.type("Say hello")
    tab_to(page.get_by_label("At set times"))
    press("ArrowDown")
    expect(page.get_by_label("Every so often")).to_be_checked()
    tab_to(page.get_by_label("Every", exact=True))
    press("Enter")
    expect(page.get_by_role("heading", name="By hand")).to_be_focused()
    expect(page.get_by_role("main")).to_contain_text("Every 30 minutes")


@pytest.mark.soak
def test_axe_finds_nothing_in_schedules_light_dark_and_narrow(window: HubPage) -> None:
    page = window.open()
    window.make_agency("Looked at")
    page.get_by_test_id("all-schedules").click()
    expect(page.get_by_role("link", name="Make the first schedule")).to_be_visible()
    found = [*check(page, "no schedule")]
    preview = new_schedule(window)
    expect(preview.get_by_role("listitem")).to_have_count(3)
    found += check(page, "a new one")
    page.get_by_label("Cron expression").fill("soon")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_have_count(3)
    found += check(page, "what is wrong")
    make(window, "Verylongword" * 16)
    run = page.get_by_role("button", name="Run now: Very")
    run.click()
    expect(page.get_by_test_id("schedule-run").first).to_contain_text("Done")
    found += check(page, "one with a run")
    page.get_by_role("button", name="Pause Very").click()
    expect(page.get_by_text("Not while it is paused")).to_be_visible()
    page.get_by_test_id("all-schedules").click()
    page.get_by_role("button", name="Delete Very").click()
    found += check(page, "a list of one")
    assert found == []
    window.provoked = "400"
