"""Below an answer from documents stand its sources; a task of another agent says what it made."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab import LabWindow
from tests.browser.test_agent_cell import part

pytestmark = [pytest.mark.browser, pytest.mark.soak]

DOCUMENTS = """
%load_ext sagents_nb
from pathlib import Path
import sagents_nb as sa

Path("tides.md").write_text("# Tides\\n\\nHigh tide is at six.\\n\\n# Boats\\n\\nLater.\\n")
index = sa.DocumentIndex("index.db")
index.add("tides.md")
turns = [sa.ToolCall("c1", "search_documents", {"query": "when is high tide"}),
         "High tide is at six [1], or at noon [9]."]
s = sa.Session(sa.Agent(sa.ScriptedModel(turns), middleware=[sa.Retrieval(index)]))
"""

COLLEAGUES = """
async def count_words(text: str, ctx: sa.TaskContext):
    "Count the words of a text."
    await ctx.emit_artifact("words.csv", "word,n")
    return f"{len(text.split())} {await ctx.request_input('In which unit?')}"

agents = sa.AgentRegistry()
agents.add(count_words)
turns = [sa.ToolCall("d1", "agent__count_words", {"instructions": "one two three"}), "Three."]
s = sa.Session(sa.Agent(sa.ScriptedModel(turns), name="host", middleware=[sa.Delegation(agents)]))
"""


def test_the_number_in_an_answer_leads_to_its_passage(lab_window: LabWindow) -> None:
    notebook = lab_window.open([DOCUMENTS, "%agent use s", "%%agent\nWhen is high tide?"])
    for i in range(3):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    panel = part(notebook, 2, "sagents-panel")
    expect(panel.get_by_text("[9] not verified")).to_be_visible()
    panel.get_by_role("button", name="1", exact=True).click()
    sources = part(notebook, 2, "sources")
    expect(sources).to_contain_text("[1] tides.md:1-3")
    expect(sources.get_by_text("High tide is at six.")).to_be_visible()


def test_the_card_of_a_task_has_its_question_and_what_it_made(lab_window: LabWindow) -> None:
    notebook = lab_window.open([DOCUMENTS, COLLEAGUES, "%agent use s", "%%agent\nCount them."])
    for i in range(4):
        notebook.run_cell(i)
        if i < 3:
            notebook.wait_for_cell(i)
    panel = part(notebook, 3, "sagents-panel")
    expect(panel.get_by_text("In which unit?").first).to_be_visible()
    answer = panel.locator("textarea, input").first
    answer.fill("words")
    answer.press("Enter")
    notebook.wait_for_cell(3)
    part(notebook, 3, "tool-card").locator("summary").first.click()
    expect(part(notebook, 3, "task")).to_contain_text("it made words.csv")
    expect(part(notebook, 3, "tool-card")).to_contain_text("3 words")
