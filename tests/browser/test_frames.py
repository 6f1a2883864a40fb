"""Frames of a conversation in a real notebook."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.browser.test_agent_cell import agent_notebook

pytestmark = pytest.mark.browser


def test_dollars_in_a_frame_of_ours_stay_dollars(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session()",
        "costs = sa.Agent(ScriptedModel(['It is $5, not $6.']))\n"
        "costs.map(['Is it $5 or $6?'], progress=False)[['prompt', 'text']]",
        "import pandas as pd\npd.DataFrame({'a': ['x costs $5 and y costs $6']})",
    )
    for i in (1, 2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    # One's own is as pandas has it, and comes later: once its formula is set, the page has set all.
    expect(notebook.cell_output(2).locator("mjx-container")).to_have_count(1)
    expect(notebook.cell_output(1).locator("td").nth(0)).to_have_text("Is it $5 or $6?")
    expect(notebook.cell_output(1).locator("td").nth(1)).to_have_text("It is $5, not $6.")
    notebook.screenshot("frame-dollars")
