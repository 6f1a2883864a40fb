"""Ways back in a conversation: branches, what came before, and what sub-agents did."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage

pytestmark = [pytest.mark.browser, pytest.mark.soak]

BRANCHES = """
%load_ext sagents_nb
import sagents_nb as sa
s = sa.Session(sa.Agent(sa.ScriptedModel(["One.", "Two.", "Another one."])))
s.send("First").result()
s.send("Second").result()
s
"""
LONG = """
%load_ext sagents_nb
import sagents_nb as sa
said = [sa.Message.user(f"Question {n}") for n in range(420)]
s = sa.Session(sa.Agent(sa.ScriptedModel([])), state=sa.State(messages=said))
s
"""
DELEGATING = """
%load_ext sagents_nb
import threading
import sagents_nb as sa
goes_on = threading.Event()

@sa.tool
def look(where: str) -> str:
    "Look somewhere."
    goes_on.wait(60)
    return f"Nothing in {where}."

looking = ["I look at the attic.", sa.ToolCall("l1", "look", {"where": "attic"})]
model = sa.ScriptedModel([looking, "The attic is empty."])
helper = sa.CompiledSubAgent("helper", "Looks.", sa.Agent(model, tools=[look]))
task = {"instructions": "Look at the attic.", "subagent_type": "helper"}
outer = sa.ScriptedModel([sa.ToolCall("t1", "task", task), "All is empty."])
s = sa.Session(sa.Agent(outer, subagent_options={"subagents": [helper]}))
run = s.send("Search the house.")
s
"""


def part(notebook: NotebookPage, name: str) -> Locator:
    return notebook.cell(0).get_by_test_id(name)


def opened(lab: Lab, source: str) -> NotebookPage:
    notebook = lab.open([source, "0"])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    return notebook


def test_an_earlier_message_is_said_anew_and_the_former_is_gone_back_to(lab: Lab) -> None:
    notebook = opened(lab, BRANCHES)
    entries = part(notebook, "entry")
    expect(entries).to_have_text(["YouFirst", "AgentOne.", "YouSecond", "AgentTwo."])
    notebook.cell(0).get_by_role("button", name="Edit this message").click()
    composer = part(notebook, "composer")
    expect(composer).to_have_value("First")
    composer.fill("First, better")
    composer.press("Enter")
    expect(entries).to_have_text(["YouFirst, better", "AgentAnother one."])
    expect(part(notebook, "branches")).to_contain_text("2 / 2")
    notebook.cell(0).get_by_role("button", name="Earlier branch").click()
    expect(entries).to_have_text(["YouFirst", "AgentOne.", "YouSecond", "AgentTwo."])
    expect(part(notebook, "branches")).to_contain_text("1 / 2")
    notebook.set_source(1, "print([m.text for m in s.messages], s.branches)")
    notebook.run_cell(1)
    expect(notebook.cell_output(1)).to_have_text(
        "['First', 'One.', 'Second', 'Two.'] [BranchPoint(position=0, current=0, count=2)]"
    )


def test_earlier_messages_are_read_and_the_reader_stays_where_he_was(lab: Lab) -> None:
    notebook = opened(lab, LONG)
    entries = part(notebook, "entry")
    expect(entries).to_have_count(200)
    earlier = notebook.cell(0).get_by_role("button", name="Show earlier messages (220)")
    notebook.cell(0).get_by_role("log").hover()
    notebook.page.mouse.wheel(0, -100_000)
    top = entries.filter(has_text="Question 220")
    expect(top).to_be_visible()
    before = top.bounding_box()
    earlier.click()
    expect(entries).to_have_count(300)
    after = top.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 60, "what was read has moved away"
    for left in (120, 20):
        notebook.cell(0).get_by_role("button", name=f"Show earlier messages ({left})").click()
    expect(entries).to_have_count(420)
    expect(entries.first).to_have_text("YouQuestion 0")


def test_each_of_many_messages_can_be_edited_by_the_whole_of_its_button(lab: Lab) -> None:
    notebook = opened(lab, LONG)
    pane = notebook.cell(0).get_by_role("log")
    for n in range(410, 390, -1):
        message = pane.get_by_text(f"Question {n}", exact=True)
        message.hover()
        button = pane.get_by_role("button", name="Edit this message").nth(n - 220)
        box = button.bounding_box()
        assert box is not None
        for part_of_it in (1, box["height"] - 6):
            button.click(trial=True, position={"x": box["width"] / 2, "y": part_of_it})
        assert button.evaluate("b => parseFloat(getComputedStyle(b.parentNode).opacity)") > 0
    button.click()
    expect(part(notebook, "composer")).to_have_value("Question 391")


def test_a_hand_that_goes_to_newest_from_what_it_reads_finds_it(lab: Lab) -> None:
    notebook = opened(lab, LONG)
    notebook.cell(0).get_by_role("log").hover()
    notebook.page.mouse.wheel(0, -3_000)
    newest = notebook.cell(0).get_by_role("button", name="Newest")
    box = newest.bounding_box()
    assert box is not None
    notebook.screenshot("newest-over-a-conversation")
    notebook.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=20)
    notebook.page.mouse.down()
    notebook.page.mouse.up()
    expect(newest).to_have_count(0)
    expect(part(notebook, "entry").last).to_be_in_viewport()


def test_a_sub_agent_is_seen_at_work_in_its_card(lab: Lab) -> None:
    notebook = opened(lab, DELEGATING)
    card = notebook.cell(0).locator("[data-tool=task]")
    card.locator("summary").first.click()
    stream = part(notebook, "agent-stream")
    expect(stream).to_contain_text("I look at the attic.")
    expect(stream.locator("[data-tool=look]")).to_have_attribute("data-status", "running")
    notebook.set_source(1, "goes_on.set()")
    notebook.run_cell(1)
    expect(stream.locator("[data-tool=look]")).to_have_attribute("data-status", "completed")
    expect(part(notebook, "entry").last).to_contain_text("All is empty.")
    expect(card.get_by_text("The attic is empty.")).to_have_count(1)
