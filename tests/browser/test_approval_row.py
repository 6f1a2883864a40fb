"""Where a person decides and reads, in a real page: nothing is out of sight, or jumps."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow, NotebookPage

pytestmark = pytest.mark.browser

CARRIER = "[data-testid=edit-field][data-field=carrier]"

SETUP = r"""
%load_ext sagents_nb
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall

@sa.tool
def pay(amount: float, to: str, note_to_the_receiver: str = "") -> str:
    "Pay."
    return "paid"

@sa.tool
def ship(to: str, carrier: str = "DHL", weight: float = 1.0, note: str | None = None) -> str:
    "Ship."
    return f"{to} by {carrier}, {weight} kg, {note}"

LINES = "\n\n".join(f"Line {n} of what was found." for n in range(60))
ANSWER = (
    "The mean is $\\bar{x} = \\frac{1}{n}\\sum x_i$ for $5 and $6.\n\n$$E = mc^2$$\n\n"
    "| " + " | ".join(f"measurement {n}" for n in range(12)) + " |\n|" + "---|" * 12 + "\n| "
    + " | ".join(str(1000 * n) for n in range(12)) + " |"
)
edit = ToolCall("e1", "edit_file", dict(
    new_string="Sales rose.\n", old_string="Sales fell.\n", file_path="/report.md"))
money = ToolCall("p1", "pay", dict(to="landlord", amount=900, note_to_the_receiver="rent"))

def session(*turns):
    agent = sa.Agent(ScriptedModel(turns), tools=[pay, ship],
                     interrupt_on=dict(edit_file=True, pay=True, ship=True))
    s = sa.Session(agent)
    s.files.write("/report.md", "# Report\n\nSales fell.\nCosts too.\n")
    return s
"""


def opened(lab: Lab, turns: str, *cells: str) -> NotebookPage:
    notebook = lab.open([f"{SETUP}\ns = session({turns})\n%agent use s", *cells])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    return notebook


def part(notebook: NotebookPage, i: int, name: str) -> Locator:
    return notebook.cell(i).get_by_test_id(name)


def test_what_waits_stays_in_sight_wherever_the_conversation_is_read(lab: Lab) -> None:
    notebook = opened(lab, "[LINES, edit], 'Done.'", "%%agent\nMend the report.")
    notebook.run_cell(1)
    card, pane = part(notebook, 1, "approval"), notebook.cell(1).get_by_role("log")
    expect(card).to_be_visible()
    lines = card.locator(".sagents-diff-line").all_inner_texts()
    assert lines == ["-\nSales fell.", "+\nSales rose."]
    pane.hover(position={"x": 5, "y": 5})
    notebook.page.mouse.wheel(0, -20_000)
    expect(notebook.cell(1).get_by_text("Line 0 of")).to_be_in_viewport()
    for inside in (part(notebook, 1, "approve"), part(notebook, 1, "approval-stop")):
        assert _within(inside, pane)
    notebook.screenshot("approval-in-sight")
    card.locator(".sagents-approval-body").focus()
    notebook.page.keyboard.press("a")
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "tool-card")).to_contain_text("Approved")
    assert notebook.console == []


def test_what_waits_stays_in_sight_before_and_after_hundreds_of_messages(lab: Lab) -> None:
    show = "for n in range(40): s.send(f'Question {n}').result()\ns"
    notebook = opened(lab, "*map('Answer {}'.format, range(40)), edit, 'Done.'", show)
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    part(notebook, 1, "composer").fill("Mend the report.")
    part(notebook, 1, "composer").press("Enter")
    card, pane = part(notebook, 1, "approval"), notebook.cell(1).get_by_role("log")
    expect(card).to_be_visible()
    pane.hover(position={"x": 5, "y": 5})
    notebook.page.mouse.wheel(0, -20_000)
    expect(notebook.cell(1).get_by_text("Question 0", exact=True)).to_be_in_viewport()
    for inside in (part(notebook, 1, "approve"), part(notebook, 1, "approval-stop")):
        assert _within(inside, pane)
    notebook.screenshot("approval-in-sight-of-a-long-conversation")
    part(notebook, 1, "approve").click()
    expect(notebook.cell(1).get_by_text("Answer 39", exact=True)).to_be_attached()
    expect(part(notebook, 1, "tool-card")).to_contain_text("Approved")
    assert notebook.console == []


@pytest.mark.soak
def test_a_button_that_moves_away_while_it_is_pressed_is_clicked_all_the_same(lab: Lab) -> None:
    notebook = opened(lab, "edit, 'Done.'", "%%agent\nMend the report.")
    notebook.run_cell(1)
    part(notebook, 1, "approve").hover()
    notebook.page.mouse.down()
    part(notebook, 1, "approval").evaluate("card => card.style.transform = 'translateY(60px)'")
    notebook.page.mouse.up()
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "tool-card")).to_contain_text("Approved")
    assert notebook.console == []


@pytest.mark.soak
def test_a_form_beside_an_answered_card_shows_its_fields_and_its_buttons(lab: Lab) -> None:
    calls = 'ToolCall("a", "ship", dict(to="Ann")), ToolCall("b", "ship", dict(to="Bob", note="!"))'
    notebook = opened(lab, f"[{calls}], 'Done.'", "%%agent\nShip both.")
    notebook.run_cell(1)
    cards = part(notebook, 1, "approval")
    part(notebook, 1, "approve").first.click()
    expect(cards.first.locator(".sagents-approval-head")).to_have_text("shipAnn")
    part(notebook, 1, "edit").nth(1).click()
    fields, pane = part(notebook, 1, "edit-field"), notebook.cell(1).get_by_role("log")
    expect(fields.first).to_be_focused()
    notebook.screenshot("form-beside-an-answered-card")
    body = cards.nth(1).locator(".sagents-approval-body")
    assert body.evaluate("body => body.scrollHeight <= body.clientHeight")
    for inside in (*fields.all(), part(notebook, 1, "edit-save")):
        assert _within(inside, pane)
    part(notebook, 1, "edit-save").click()
    notebook.wait_for_cell(1)
    assert notebook.console == []


@pytest.mark.soak
def test_the_host_pulls_no_name_from_its_value(lab: Lab) -> None:
    notebook = opened(lab, "money, 'Done.'", "%%agent\nPay the rent.")
    notebook.run_cell(1)
    rows = part(notebook, 1, "approval").locator(".sagents-form-row")
    expect(rows).to_have_text(["to landlord", "amount 900", "note_to_the_receiver rent"])
    longest, value = (
        rows.nth(2).locator(f".sagents-form-{name}").bounding_box() for name in ("name", "value")
    )
    assert longest is not None
    assert value is not None
    assert 0 < value["x"] - (longest["x"] + longest["width"]) < 30
    part(notebook, 1, "approve-always").click()
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "completed")


def test_a_person_sees_the_defaults_that_will_be_used_and_may_change_them(lab: Lab) -> None:
    notebook = opened(lab, "ToolCall('s1', 'ship', dict(to='Oslo')), 'Done.'", "%%agent\nShip.")
    notebook.run_cell(1)
    rows = part(notebook, 1, "approval").locator(".sagents-form-row")
    defaults = ["carrier DHL default", "weight 1.0 default", "note null default"]
    expect(rows).to_have_text(["to Oslo", *defaults])
    notebook.screenshot("defaults-on-the-card")
    part(notebook, 1, "edit").click()
    notebook.screenshot("defaults-in-the-form")
    notebook.cell(1).locator(CARRIER).fill("UPS")
    part(notebook, 1, "edit-save").click()
    notebook.wait_for_cell(1)
    card = part(notebook, 1, "tool-card")
    card.locator("summary").click()
    expect(card).to_contain_text("Oslo by UPS, 1.0 kg, None")
    rows = card.locator(".sagents-tool-body > .sagents-arguments .sagents-form-row")
    expect(rows).to_have_text(["to Oslo", "carrier UPS", *defaults[1:]])
    notebook.screenshot("defaults-after")


def test_what_is_begun_of_an_answer_is_there_after_a_reload_and_gone_once_it_is_sent(
    lab_window: LabWindow,
) -> None:
    turns = "[ToolCall('s1', 'ship', dict(to='Oslo')), money], 'Done.'"
    notebook = opened(lab_window, turns, "%%agent\nShip and pay.")
    notebook.run_cell(1)
    first, second = (part(notebook, 1, "approval").nth(n) for n in (0, 1))
    first.get_by_test_id("edit").click()
    notebook.cell(1).locator(CARRIER).fill("UPS")
    second.get_by_test_id("reject").click()
    second.get_by_test_id("reject-message").fill("Too dear.")
    notebook.reload(wait_for_idle=False)
    expect(first).to_contain_text("What you wrote is kept: Edit goes on with it")
    expect(second).to_contain_text("What you wrote is kept: Reject goes on with it")
    first.get_by_test_id("edit").click()
    expect(notebook.cell(1).locator(CARRIER)).to_have_value("UPS")
    first.get_by_test_id("edit-save").click()
    second.get_by_test_id("reject").click()
    second.get_by_test_id("reject-message").press("Enter")
    rows = part(notebook, 1, "tool-card")
    expect(rows.nth(0)).to_contain_text(re.compile("ship.*Oslo.*Edited"))
    expect(rows.nth(1)).to_contain_text(re.compile("pay.*Rejected"))
    notebook.reload()
    left = notebook.page.evaluate("Object.values(sessionStorage).filter(v => v.includes('UPS'))")
    assert left == []


def test_what_is_decided_is_short_and_its_form_is_kept_until_it_is_sent(lab: Lab) -> None:
    turns = "[ToolCall('s1', 'ship', dict(to='Oslo')), money], 'Done.'"
    notebook = opened(lab, turns, "%%agent\nShip and pay.")
    notebook.run_cell(1)
    first, second = (part(notebook, 1, "approval").nth(n) for n in (0, 1))
    first.get_by_test_id("edit").click()
    field, save = first.locator(CARRIER), first.get_by_test_id("edit-save")
    field.fill("UPS")
    field.press("Escape")
    expect(first).to_contain_text("What you wrote is kept: Edit goes on with it")
    notebook.screenshot("what-was-begun-is-kept")
    first.get_by_test_id("edit").click()
    expect(field).to_have_value("UPS")
    save.click()
    expect(first).to_contain_text("You chose to approve with your changes; sent when the other")
    for gone in (field, save, first.get_by_test_id("approval-stop")):
        expect(gone).not_to_be_visible()
    notebook.screenshot("decided-one-of-two")
    line = first.bounding_box()
    assert line is not None
    assert line["height"] < 75  # what it was given, and below that what was chosen
    first.get_by_role("button", name="Change").click()
    expect(field).to_have_value("UPS")
    save.click()
    expect(field).not_to_be_visible()
    second.get_by_test_id("approve").click()
    notebook.wait_for_cell(1)
    rows = part(notebook, 1, "tool-card")
    expect(rows.nth(0)).to_contain_text(re.compile("ship.*Oslo.*Edited"))
    expect(rows.nth(1)).to_contain_text(re.compile("pay.*landlord.*Approved"))
    notebook.screenshot("decided-both")


@pytest.mark.soak
def test_the_end_of_a_run_closes_nothing_and_moves_nothing(lab: Lab) -> None:
    notebook = opened(lab, "[LINES, money], LINES", "%%agent\nPay the rent.")
    notebook.run_cell(1)
    pane, card = notebook.cell(1).get_by_role("log"), part(notebook, 1, "tool-card")
    drawn_anew = notebook.cell(1).locator("[role=log]:not([data-old])")
    pane.evaluate("pane => pane.dataset.old = 'yes'")
    part(notebook, 1, "approve").click()
    expect(drawn_anew).to_be_visible()
    card.locator("summary").click()
    expect(card).to_contain_text("paid")
    pane.evaluate("pane => pane.dataset.old = 'yes'")
    pane.hover()
    notebook.page.mouse.wheel(0, -900)
    expect(notebook.cell(1).get_by_text("Newest")).to_be_visible()
    notebook.page.wait_for_timeout(400)  # the reader comes to rest
    before = _line_at_the_top(pane)
    # What the end of the cell has done: the same view is drawn anew.
    area = "jupyterapp.shell.currentWidget.content.widgets[1].outputArea"
    notebook.page.evaluate(
        f"(() => {{ const outputs = {area}.model; outputs.set(0, outputs.get(0).toJSON()); }})()"
    )
    expect(drawn_anew).to_be_visible()
    expect(card).to_contain_text("paid")
    notebook.page.wait_for_timeout(300)  # it finds its place frame by frame
    assert _line_at_the_top(pane) == before


@pytest.mark.soak
def test_formulas_are_set_and_prices_and_wide_tables_are_left_alone(lab_window: LabWindow) -> None:
    notebook = opened(lab_window, "ANSWER", "%%agent\nWhat is the mean?")
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    panel = part(notebook, 1, "sagents-panel")
    formulas = panel.locator("math")
    expect(formulas).to_have_count(2)
    expect(panel).to_contain_text("for $5 and $6.")
    above, below = (panel.locator("mfrac > *").nth(n).bounding_box() for n in (0, 1))
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"] + 1, "a fraction stands on its denominator"
    notebook.page.set_viewport_size({"width": 480, "height": 800})
    notebook.command("application:toggle-left-area")
    heads = panel.locator("th")
    assert all(height < 40 for height in heads.evaluate_all("all => all.map(h => h.offsetHeight)"))
    assert panel.evaluate("p => p.scrollWidth - p.clientWidth") <= 1
    notebook.screenshot("formulas-narrow")
    assert notebook.console == []
    assert notebook.foreign_requests == []


def _within(element: Locator, pane: Locator) -> bool:
    inner, outer = element.bounding_box(), pane.bounding_box()
    assert inner is not None
    assert outer is not None
    return outer["y"] <= inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"]


def _line_at_the_top(pane: Locator) -> str:
    """The first paragraph that begins in a pane."""
    line: str = pane.evaluate(
        """pane => [...pane.querySelectorAll(".sagents-md-block p")].find(
            p => p.getBoundingClientRect().top >= pane.getBoundingClientRect().top
        ).textContent"""
    )
    return line


REMOVE = r"""
ran = []
@sa.tool
def remove(path: str, why: dict[str, str], n: int = 1) -> str:
    "Remove."
    ran.append((ascii(path), why, n))
    return "removed"

lost = ToolCall("r1", "remove", {"path": "/d/a\udcff.txt", "why": {"b": "2", "a": "1"}})
a = sa.Agent(ScriptedModel([lost, lost, "Done."]), tools=[remove], interrupt_on=["remove"])
%agent use a
"""


def test_the_name_of_a_file_that_is_not_utf_8_is_seen_and_kept_by_an_edit(lab: Lab) -> None:
    notebook = lab.open([SETUP + REMOVE, "%%agent\nRemove it.", "ran"])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    notebook.run_cell(1)
    card = part(notebook, 1, "approval")
    expect(card.locator(".sagents-hidden-character")).to_have_text("\\u{10dcff}")
    expect(card).to_contain_text('{"b":"2","a":"1"}')
    notebook.screenshot("half-a-character")
    part(notebook, 1, "approve").click()
    part(notebook, 1, "edit").click()
    part(notebook, 1, "edit-field").and_(notebook.page.locator("[data-field=n]")).fill("2")
    part(notebook, 1, "edit-save").click()
    notebook.wait_for_cell(1)
    notebook.run_cell(2)
    name, why = "\"'/d/a\\\\udcff.txt'\"", "{'b': '2', 'a': '1'}"
    expect(notebook.cell_output(2)).to_contain_text(f"[({name}, {why}, 1), ({name}, {why}, 2)]")
    assert notebook.console == []
