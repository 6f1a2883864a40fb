"""What people see stays as it was looked at: the pictures of docs/pictures, some in the README.

``make pictures`` writes them anew. Look at each that it has changed before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import nbformat
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, expect

from tests.browser.dashboard import HubPage
from tests.browser.lab import LabWindow
from tests.browser.pictures import KEPT, compared, difference, hold_still, picture
from tests.browser.servers import HubServer
from tests.browser.states import exported_page, opened, themes

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]

LIGHT = (
    *("empty", "streaming", "stopped", "conversation", "decided", "error", "to-dos", "sub-agents"),
    *("approval-diff", "approval-code", "approval-form", "approval-edited", "approval-rejected"),
    *("question", "files", "file", "file-changes", "branches", "editing", "queue", "earlier"),
    *("models", "run", "closed"),
)
DARK = ("conversation", "approval-diff", "approval-form", "error", "sub-agents", "files", "queue")
NARROW = ("conversation", "approval-diff", "approval-form", "sub-agents")


@pytest.mark.soak
def test_the_panel_looks_as_it_did_light_dark_and_narrow(lab_window: LabWindow) -> None:
    panels = opened(lab_window, LIGHT)
    notebook = lab_window.notebooks[0]
    notebook.command("application:toggle-left-area")
    notebook.page.set_viewport_size({"width": 1120, "height": 1080})
    hold_still(notebook.page)
    wrong = [compared(name, picture(panels[name])) for name in LIGHT]
    with themes(notebook):
        notebook.set_theme("dark")
        wrong += [compared(f"{name}-dark", picture(panels[name])) for name in DARK]
    notebook.page.set_viewport_size({"width": 480, "height": 1080})
    wrong += [compared(f"{name}-narrow", picture(panels[name])) for name in NARROW]
    assert [words for words in wrong if words] == []


@pytest.mark.soak
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_page_looks_as_it_did(
    theme: Literal["light", "dark"], browser: Browser, tmp_path: Path
) -> None:
    with exported_page(browser, tmp_path, theme) as page:
        page.set_viewport_size({"width": 900, "height": 800})
        hold_still(page)
        page.locator("[data-status=failed] > summary").click()
        assert compared(f"export-{theme}", picture(page.locator("body"))) == ""


@pytest.mark.soak
def test_the_tour_looks_as_the_readme_shows_it(lab_window: LabWindow) -> None:
    tour = nbformat.read(ROOT / "notebooks" / "tour.ipynb", as_version=4)
    code = [cell.source for cell in tour.cells if cell.cell_type == "code"]
    notebook = lab_window.open([*code[:3], "session"])
    notebook.page.set_viewport_size({"width": 1120, "height": 1080})
    notebook.command("application:toggle-left-area")
    hold_still(notebook.page)
    for i in range(2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.run_cell(2)
    approve = notebook.cell(2).get_by_test_id("approve")
    expect(approve).to_be_visible()
    wrong = [compared("tour", picture(notebook.cell(2)))]
    approve.click()
    notebook.wait_for_cell(2)
    notebook.set_theme("dark")
    try:
        notebook.run_cell(3)
        notebook.wait_for_cell(3)
        notebook.cell(3).get_by_test_id("file").first.click()
        expect(notebook.cell(3).get_by_test_id("file-viewer")).to_contain_text("Gentoo")
        wrong.append(compared("tour-dark", picture(notebook.cell(3))))
    finally:
        notebook.set_theme("light")
    assert [words for words in wrong if words] == []


@pytest.mark.soak
def test_the_page_of_a_hub_looks_as_the_documentation_shows_it(
    browser: Browser, hub: HubServer
) -> None:
    window = HubPage(browser, hub, bypass_csp=True)
    page = window.open()
    page.set_viewport_size({"width": 1282, "height": 862})
    hold_still(page)
    window.make_agency("Weather")
    for blueprint, message, becomes in (
        ("assistant", "How is the weather in Oslo?", "Done"),
        ("assistant", "Make a plan for the report", "Done"),
        ("assistant", "Please hand on what is to be said", "Waits for others"),
        ("clerk", "Write a letter to Ada", "Needs approval"),
    ):
        expect(window.begin(blueprint, message)).to_contain_text(becomes)
    root = page.locator(".sagents-hub")
    expect(window.card).to_be_visible()
    expect(window.waiting).to_have_accessible_name("2 approvals waiting")
    page.emulate_media(color_scheme="dark")
    wrong = [compared("hub-dark", picture(root))]
    page.emulate_media(color_scheme="light")
    window.waiting.click()
    expect(page.get_by_test_id("approval-link")).to_have_count(2)
    wrong.append(compared("hub", picture(root)))

    for name, blueprint, message in (
        ("Tidy the shared files", "assistant", "Say what is old in the shared files."),
        ("Letters that are due", "clerk", "Write the letters that are due."),
        ("Morning report", "assistant", "How will the weather be in Oslo today?"),
    ):
        page.get_by_role("link", name="New schedule").first.click()
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Blueprint", exact=True).select_option(blueprint)
        page.get_by_label("First message").fill(message)
        page.get_by_label("Time zone").select_option("Europe/Oslo")
        if blueprint == "clerk":
            page.get_by_label("Every so often").check()
            page.get_by_label("Every", exact=True).fill("7")  # always after the report
            page.get_by_label("Unit").select_option("days")
        page.get_by_role("button", name="Create").click()
        page.get_by_role("button", name=f"Run now: {name}").click()
        expect(page.get_by_test_id("last-run")).to_contain_text(
            "Needs approval" if blueprint == "clerk" else "Done"
        )
    page.get_by_test_id("all-schedules").click()
    page.get_by_role("button", name="Pause Tidy").click()
    expect(page.get_by_role("main")).to_contain_text("Not while it is paused")
    page.get_by_role("heading", name="Schedules", level=1).click()
    expect(window.waiting).to_have_accessible_name("3 approvals waiting")  # as it is next asked
    wrong.append(compared("hub-schedules", picture(root)))
    window.context.close()
    assert [words for words in wrong if words] == []


# What the comparison sees and what it does not; without a browser.

PATHS = sorted(KEPT.glob("*.png"))
EDIT = (152, 397, 239, 426)
"""Where approval-diff.png has its button."""


def kept(name: str) -> Image.Image:
    return Image.open(KEPT / f"{name}.png").convert("RGB")


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_edges_that_are_smoothed_another_way_are_no_difference(path: Path) -> None:
    image = Image.open(path).convert("RGB")
    beside = ImageChops.offset(image, 1, 0)
    beside.paste(image.crop((0, 0, 1, image.height)), (0, 0))
    assert difference(image, Image.blend(image, beside, 0.15)) == ""


@pytest.mark.parametrize(("right", "down"), [(2, 0), (0, 2), (-3, 0)])
def test_a_button_that_has_moved_is_a_difference(right: int, down: int) -> None:
    before = kept("approval-diff")
    after, button = before.copy(), before.crop(EDIT)
    after.paste(before.getpixel((EDIT[0] - 4, EDIT[1])), EDIT)
    after.paste(button, (EDIT[0] + right, EDIT[1] + down))
    assert "looks different" in difference(before, after)


@pytest.mark.parametrize("name", ["approval-diff", "approval-diff-dark"])
def test_an_area_of_another_colour_is_a_difference(name: str) -> None:
    before = kept(name)
    after = before.copy()
    red, green, blue = before.getpixel((700, 300))
    side = before.crop((665, 200, 930, 500))
    after.paste(Image.new("RGB", side.size, (red, green - 5, blue)), (665, 200))
    assert "has another colour" in difference(before, after)


def test_a_letter_and_a_missing_line_are_differences() -> None:
    before = kept("approval-diff")
    for gone in ((60, 405, 70, 420), (660, 100, 940, 101)):
        after = before.copy()
        after.paste((0, 0, 0), gone)
        assert difference(before, after)
    assert "pixels large" in difference(before, before.crop((0, 0, 900, 400)))


def test_the_pictures_of_the_readme_are_kept_and_all_are_small() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(shown) >= 2
    assert all((ROOT / path).parent == KEPT and (ROOT / path).exists() for path in shown)
    assert sum(path.stat().st_size for path in PATHS) < 2_500_000
