"""Who works by keys goes on where they are: at the next card, in the composer, in a file."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage
from tests.browser.states import SETUP

pytestmark = pytest.mark.browser

ANSWER = "All is written: see [the second](/b.md), and [nothing](/nowhere.md)."
SESSION = f"""
s = session(write("/a.md", "# A", "w1"), [write("/b.md", "# B", "w2"), write("/c.md", "# C", "w3")],
    write("/d.md", "# D", "w4"), {ANSWER!r}, ToolCall("h1", "hold", {{}}), ask=["write_file"])
s
"""


def opened(lab: Lab) -> NotebookPage:
    notebook = lab.open([SETUP, SESSION])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    return notebook


def part(notebook: NotebookPage, name: str) -> Locator:
    return notebook.cell(1).get_by_test_id(name)


def send(notebook: NotebookPage, text: str) -> None:
    part(notebook, "composer").fill(text)
    part(notebook, "composer").press("Enter")


def test_who_answers_a_card_goes_on_at_the_next_and_then_in_the_composer(lab: Lab) -> None:
    notebook = opened(lab)
    press, cards = notebook.page.keyboard.press, part(notebook, "approval")
    send(notebook, "Write.")
    expect(cards).to_contain_text("/a.md")
    part(notebook, "approve").click()
    expect(cards.first).to_contain_text("/b.md")
    expect(cards.first).to_be_focused()
    notebook.screenshot("card-in-focus")
    press("e")
    expect(part(notebook, "edit-field").first).to_be_focused()
    part(notebook, "edit-save").click()
    expect(cards.nth(1)).to_be_focused()
    press("r")
    expect(part(notebook, "reject-message")).to_be_focused()
    press("Enter")
    expect(cards.filter(has_text="/d.md")).to_be_visible()
    expect(cards).to_be_focused()
    part(notebook, "composer").focus()
    cards.locator(".sagents-approval-head").click()
    expect(cards).to_be_focused()
    press("a")
    expect(part(notebook, "entry").last).to_contain_text("All is written")
    expect(part(notebook, "composer")).to_be_focused()
    statuses = [card.get_attribute("data-status") for card in part(notebook, "tool-card").all()]
    assert statuses == ["completed", "completed", "rejected", "completed"]
    assert notebook.console == []


@pytest.mark.soak
def test_keys_are_shown_where_they_are_heard(lab: Lab) -> None:
    notebook = opened(lab)
    notebook.run_cell(1)  # Ctrl+Enter leaves Lab in command mode
    notebook.wait_for_cell(1)
    send(notebook, "Write.")
    keys = part(notebook, "approval").locator(".sagents-key")
    expect(keys).to_have_text(["A", "E", "R"])
    notebook.cell(1).locator(".jp-InputPrompt").click()
    for key in keys.all():
        expect(key).not_to_be_visible()
    notebook.screenshot("keys-not-heard")
    place = part(notebook, "approve").bounding_box()
    notebook.cell(1).get_by_role("log").click(position={"x": 5, "y": 5})
    for key in keys.all():
        expect(key).to_be_visible()
    notebook.screenshot("keys-heard")
    assert part(notebook, "approve").bounding_box() == place
    part(notebook, "composer").focus()
    expect(keys.first).not_to_be_visible()
    notebook.cell(1).get_by_role("log").focus()
    notebook.page.keyboard.press("a")
    expect(part(notebook, "approval").first).to_contain_text("/b.md")
    assert notebook.console == []


QUESTION = """
question = dict(question="How many?", response_type="freeform")
s = session(ToolCall("q1", "ask_user", question), "So many.", middleware=[sa.AskUser()])
s
"""


@pytest.mark.soak
def test_no_key_is_shown_while_an_answer_is_typed(lab: Lab) -> None:
    notebook = lab.open([SETUP, QUESTION])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    send(notebook, "Count.")
    card = part(notebook, "approval")
    key = card.locator(".sagents-key")
    card.locator(".sagents-approval-head").click()
    expect(key).to_be_visible()
    card.locator("input").focus()
    expect(key).not_to_be_visible()
    notebook.page.keyboard.press("r")
    expect(card.locator("input")).to_have_value("r")
    notebook.screenshot("keys-while-typing")


LONG = """
s = session(write("/a.txt", "x" * 130_000), "Done.", ask=["write_file"])
s
"""


@pytest.mark.soak
def test_a_button_that_cannot_be_pressed_yet_shows_no_key(lab: Lab) -> None:
    notebook = lab.open([SETUP, LONG])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    send(notebook, "Write.")
    card = part(notebook, "approval")
    card.locator(".sagents-approval-head").click()
    keys = card.locator(".sagents-key")
    expect(keys).to_have_text(["E", "R"])
    notebook.screenshot("keys-of-a-long-call")
    card.locator(".sagents-more").click()
    expect(keys).to_have_text(["A", "E", "R"])


@pytest.mark.soak
def test_a_fresh_question_takes_no_focus_from_the_notebook(lab: Lab) -> None:
    turns = 'write("/a.md", "# A", "w1"), "Done."'
    source = f's = session({turns}, ask=["write_file"])\n%agent use s'
    notebook = lab.open([SETUP, source, "%%agent\nWrite.", "text"])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.run_cell(2)
    editor = notebook.cell(3).locator(".cm-content")
    editor.click()
    card = notebook.cell(2).get_by_test_id("approval")
    expect(card).to_be_visible()
    expect(notebook.cell(2).get_by_role("alert").first).to_contain_text("Approval needed")
    notebook.page.wait_for_timeout(300)  # all that comes by itself has come
    expect(editor).to_be_focused()
    notebook.page.keyboard.press("Escape")  # Lab's command mode: its keys are its own
    for key in card.locator(".sagents-key").all():
        expect(key).not_to_be_visible()
    notebook.page.keyboard.press("a")
    expect(card).to_be_visible()
    notebook.cell(2).get_by_test_id("approve").click()
    notebook.wait_for_cell(2)


@pytest.mark.soak
def test_a_focus_elsewhere_in_the_notebook_is_not_taken(lab: Lab) -> None:
    notebook = opened(lab)
    send(notebook, "Write.")
    part(notebook, "approve").click()
    editor = notebook.cell(0).locator(".cm-content")
    editor.click()
    expect(part(notebook, "approval").first).to_contain_text("/b.md")
    notebook.page.wait_for_timeout(300)  # all that comes by itself has come
    expect(editor).to_be_focused()


def test_escape_twice_in_the_composer_stops_the_run(lab: Lab) -> None:
    notebook = lab.open([SETUP, 's = session(ToolCall("h1", "hold", {}), "later")\ns'])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    send(notebook, "Hold.")
    stop = part(notebook, "stop")
    expect(stop).to_be_visible()
    expect(part(notebook, "composer")).to_be_focused()
    notebook.page.keyboard.press("Escape")
    expect(stop).to_have_text("Stop: Esc once more")
    notebook.screenshot("escape-once")
    notebook.page.keyboard.press("Escape")
    expect(part(notebook, "status")).to_contain_text("Stopped")
    assert notebook.console == []


@pytest.mark.soak
def test_newest_covers_nothing_of_a_card_that_is_in_sight(lab: Lab) -> None:
    long = "\\n\\n".join(f"Line {n}." for n in range(60))
    files = '{"/plan.md": "one\\ntwo\\n"}'
    source = f's = session(["{long}", MENDED], "Done.", ask=["edit_file"], files={files})\ns'
    notebook = lab.open([SETUP, source])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    send(notebook, "Mend.")
    part(notebook, "reject").click()
    notebook.cell(1).get_by_role("log").hover(position={"x": 9, "y": 9})
    notebook.page.mouse.wheel(0, -2_000)
    pill = notebook.cell(1).get_by_role("button", name="Newest")
    expect(pill).to_be_visible()
    notebook.screenshot("newest-above-a-card")
    above, card = pill.bounding_box(), part(notebook, "approval").bounding_box()
    assert above is not None
    assert card is not None
    assert above["y"] + above["height"] <= card["y"]
    pill.click()
    expect(pill).to_have_count(0)


@pytest.mark.soak
def test_a_link_to_a_file_opens_it_and_the_edited_message_is_marked(lab: Lab) -> None:
    made = f"""session({ANSWER!r}, "Yes.", files={{"/b.md": "# B"}})"""
    notebook = lab.open([SETUP, f's = said({made}, "Write.", "Sure?")\ns'])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    answer = notebook.cell(1).locator(".sagents-md").first
    notebook.screenshot("file-link")
    colour = "link => getComputedStyle(link).color"
    plain = answer.get_by_text("nothing").evaluate(colour)
    assert plain == answer.evaluate(colour)
    link = answer.get_by_role("button", name="the second")
    assert link.evaluate(colour) != plain
    link.click()
    expect(part(notebook, "file-viewer").get_by_role("heading")).to_have_text("B")
    expect(part(notebook, "file-back")).to_be_focused()
    notebook.screenshot("file-link-opened")
    part(notebook, "edit").first.click()
    outlines = [
        bubble.evaluate("bubble => getComputedStyle(bubble).outlineStyle")
        for bubble in notebook.cell(1).locator(".sagents-bubble").all()
    ]
    assert outlines == ["solid", "none"]
    notebook.screenshot("edited-message")
    notebook.page.keyboard.press("Escape")
    expect(part(notebook, "editing")).to_have_count(0)
    assert notebook.console == []


WAYS_OUT = """
s = session(write("/a.md", "# A", "w1"), "Written.", ToolCall("h1", "hold", {}), ask=["write_file"])
%agent use s
"""


@pytest.mark.soak
def test_escape_gives_the_focus_back_to_the_notebook(lab: Lab) -> None:
    notebook = lab.open([SETUP, WAYS_OUT, "%%agent\nWrite.", "%%agent\nHold."])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    press, cells = notebook.page.keyboard.press, notebook.page.locator(".jp-Cell")
    notebook.run_cell(2)
    card = notebook.cell(2).get_by_test_id("approval")
    card.locator(".sagents-approval-head").click()
    press("a")
    notebook.wait_for_cell(2)
    expect(notebook.cell(2).locator("summary:focus")).to_be_visible()
    press("b")  # of the panel, which has no such key
    press("Escape")
    expect(notebook.cell(2)).to_be_focused()
    expect(cells).to_have_count(4)
    press("b")
    expect(cells).to_have_count(5)
    press("d")
    press("d")
    expect(cells).to_have_count(4)
    notebook.run_cell(3)
    stop = notebook.cell(3).get_by_test_id("stop")
    expect(notebook.cell(3).get_by_test_id("tool-card")).to_be_visible()
    notebook.cell(3).get_by_role("log").focus()
    press("Escape")
    expect(stop).to_have_text("Stop: Esc once more")
    press("Escape")
    notebook.wait_for_cell(3)
    expect(stop).to_have_count(0)
    press("Escape")
    expect(notebook.cell(3)).to_be_focused()
    press("ArrowUp")
    expect(notebook.cell(2)).to_be_focused()


@pytest.mark.soak
def test_a_click_on_a_prompt_gives_the_focus_back_to_the_notebook(lab: Lab) -> None:
    notebook = opened(lab)
    part(notebook, "composer").fill("A draft")
    notebook.cell_prompt(1).click()
    expect(notebook.cell(1)).to_be_focused()
    part(notebook, "composer").focus()
    notebook.cell_prompt(0).click()
    expect(notebook.cell(0)).to_be_focused()
    expect(part(notebook, "composer")).to_have_value("A draft")
