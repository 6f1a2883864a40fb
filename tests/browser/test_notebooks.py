"""The notebooks of the repository, run from top to bottom as a person would."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import TimeoutError

from tests.browser.lab import NOTEBOOK, Lab
from tests.talking import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.soak]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


QUICK = ["subagents", "approvals"]
LONG = ["study", "files", "persistence", "middleware", "tasks"]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.soak) for n in LONG)])
def test_a_notebook_runs_to_its_end_and_whoever_is_asked_approves(lab: Lab, name: str) -> None:
    source = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for cell in source.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook = lab.open(source.cells)
    notebook.run_all()
    approve = notebook.page.get_by_role("button", name="Approve", exact=True)
    last = max(i for i, cell in enumerate(source.cells) if cell.cell_type == "code")
    end = time.monotonic() + PATIENCE
    count = (
        f"{NOTEBOOK}.content.model.cells.get({last}).executionCount"  # cells below are not drawn
    )
    while not notebook.page.evaluate(count):
        assert time.monotonic() < end, "it is not done"
        if approve.first.is_visible():
            with suppress(TimeoutError):  # of a card that was answered, and is taken away
                approve.first.click(timeout=2_000)
        notebook.page.wait_for_timeout(200)
    saved = notebook.save()
    failed = [o for cell in saved.cells for o in cell.get("outputs", ()) if "ename" in o]
    assert failed == []
    assert saved.cells[last].outputs
    assert notebook.foreign_requests == []
