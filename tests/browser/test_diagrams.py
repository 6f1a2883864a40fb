"""Diagrams in Mermaid: JupyterLab draws them, and none of them runs or asks for anything."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage
from tests.browser.states import themes

pytestmark = [pytest.mark.browser, pytest.mark.soak]

PLAIN = (
    "graph TD; A[Load the data] --> B{Is it clean?}; B -- yes --> C((Fit)); B -- no --> D[Clean]"
)
# Each would run or fetch something if the page that draws it took it as it is.
PAYLOADS = [
    'graph TD; A@{ img: "https://evil.example/img.png", h: 60, w: 60 }',
    "graph TD; A; style A fill:#fff,background-image:url(https://evil.example/style.png)",
    "graph TD; A; classDef default background-image:url('https://evil.example/class.png')",
    """%%{init: {"themeCSS": ".node rect { fill: url(https://evil.example/css.png) }"}}%%
graph TD; A""",
    "---\nconfig:\n  themeCSS: '@import url(https://evil.example/front.css)'\n---\ngraph TD; A",
    'graph TD; A["<img src=https://evil.example/label.png onerror=window.pwned=1>"]',
    'graph TD; A["<script>window.pwned=1</script>"]',
    'graph TD; A["<svg onload=window.pwned=1>"]',
    'graph TD; A; click A href "javascript:window.pwned=1"',
    "graph TD; A[#lt;img src=x onerror=window.pwned=1#gt;]",
]
SETUP = """
%load_ext sagents_nb
import json
from typing import Literal
import sagents_nb as sa
texts = json.loads({texts!r})
s = sa.Session(sa.Agent(sa.ScriptedModel(texts, chunk=10_000)))
for text in texts:
    s.send("Draw it.").result(20)
"""


def answered(lab: Lab, *sources: str) -> NotebookPage:
    """A panel with an answer for each diagram."""
    texts = json.dumps([f"So:\n\n```mermaid\n{source}\n```\n\nDone." for source in sources])
    notebook = lab.open([SETUP.format(texts=texts), "s"])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    return notebook


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_diagram_is_drawn_and_its_code_is_a_click_away(
    lab: Lab, theme: Literal["light", "dark"]
) -> None:
    notebook = answered(lab, PLAIN)
    panel = notebook.cell_output(1)
    with themes(notebook):
        notebook.set_theme(theme)
        expect(panel.get_by_test_id("diagram")).to_be_visible()
        notebook.page.wait_for_function("document.querySelector('[data-testid=diagram]').complete")
        notebook.screenshot(f"diagram-{theme}")
    panel.get_by_test_id("as-code").click()
    expect(panel.locator(".sagents-code pre")).to_have_text(PLAIN)
    assert notebook.foreign_requests == []


def test_what_could_run_or_fetch_something_is_the_code_that_it_is(lab: Lab) -> None:
    notebook = answered(
        lab, *PAYLOADS, PLAIN
    )  # the last is drawn when all others have had their turn
    panel = notebook.cell_output(1)
    panel.locator(".sagents-transcript").evaluate("pane => (pane.style.maxHeight = 'none')")
    expect(panel.get_by_test_id("diagram")).to_be_visible()
    expect(panel.get_by_test_id("diagram")).to_have_count(1)
    expect(panel.locator(".sagents-code pre")).to_have_count(len(PAYLOADS))
    assert notebook.foreign_requests == []
    assert notebook.page.evaluate("window.pwned") is None
