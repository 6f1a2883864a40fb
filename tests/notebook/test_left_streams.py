"""A loop over a stream that a cell leaves is over, whatever the notebook keeps of the cell."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.loop.test_leaving import CANCELLED, Work

LOOP = "for item in {items}:\n    if {is_far}:\n        {leave}"
ITEMS = {
    "stream": "item.type == 'tool_execution_start'",
    "stream.text_stream()": "True",
}


@pytest.mark.parametrize("leave", ["break", "1 / 0"])
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("word", ["", "async "], ids=["for", "async-for"])
def test_a_cell_that_leaves_its_loop_cancels_the_run(
    shell: InteractiveShell, word: str, items: str, leave: str
) -> None:
    work = Work()
    shell.user_ns["stream"] = work.begin()
    cell = word + LOOP.format(items=items, is_far=ITEMS[items], leave=leave)
    done = shell.run_cell(cell)
    assert isinstance(done.error_in_exec, ZeroDivisionError) == (leave != "break")
    assert work.outcome() == CANCELLED
    assert shell.run_cell("stream.result.status").result == "cancelled"
