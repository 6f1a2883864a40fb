"""Columns stand as they were written, and what is beside each other keeps its distance."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage
from tests.browser.test_agent_cell import part
from tests.browser.test_composer import DOT

pytestmark = [pytest.mark.browser, pytest.mark.soak]

OPTION = (
    "Take the wells of the northern field only, as the probes of the others were not calibrated "
    "this year and so what they say of the acidity of the water has to be taken with care"
)
SETUP = f"""
%load_ext sagents_nb
import sagents_nb as sa
TABLE = "| Site | pH | State |\\n|:--|--:|:-:|\\n| W1 | 7.29 | flagged |"
OPTIONS = [dict(label=text, value=text) for text in ({OPTION!r}, "All")]
QUESTION = dict(question="Which?", response_type="single_select", options=OPTIONS)
model = sa.ScriptedModel([TABLE, sa.ToolCall("q1", "ask_user", QUESTION), "Good."])
s = sa.Session(sa.Agent(model, middleware=[sa.AskUser()]))
s.send("Which wells?").result()
s.send("Ask.").result()
s
"""


def computed(element: Locator, what: str) -> str:
    return str(element.evaluate(f"element => getComputedStyle(element).{what}"))


def opened(lab: Lab) -> NotebookPage:
    notebook = lab.open([SETUP])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    return notebook


def test_the_columns_of_a_table_are_aligned_as_the_model_wrote_them(lab: Lab) -> None:
    notebook = opened(lab)
    for row in ("th", "td"):
        cells = notebook.cell(0).locator(f".sagents-md {row}")
        expect(cells).to_have_count(3)
        aligned = [computed(cell, "textAlign") for cell in cells.all()]
        assert aligned == ["start", "end", "center"]


def test_lines_of_an_answer_to_choose_keep_apart(lab: Lab) -> None:
    notebook = opened(lab)
    option = part(notebook, 0, "answer-option").first
    size, line = (float(computed(option, f)[:-2]) for f in ("fontSize", "lineHeight"))
    assert line >= 1.35 * size
    height = option.evaluate("option => option.clientHeight")
    assert height > 2 * line, "it has no two lines"
    notebook.screenshot("long-option")


def test_what_is_attached_keeps_apart_from_the_message_box(lab: Lab) -> None:
    notebook = opened(lab)
    dot = {"name": "dot.png", "mimeType": "image/png", "buffer": DOT}
    part(notebook, 0, "picker").set_input_files([dot])  # type: ignore[list-item]
    chip = part(notebook, 0, "attached").bounding_box()
    box = notebook.cell(0).locator(".sagents-composer-box").bounding_box()
    warning = part(notebook, 0, "blind").bounding_box()
    assert chip is not None
    assert box is not None
    assert warning is not None
    assert box["y"] - (chip["y"] + chip["height"]) >= 6
    assert warning["y"] - (box["y"] + box["height"]) >= 4
    notebook.screenshot("chips")
