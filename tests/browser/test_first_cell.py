"""The first cell of a person without a key, in a real notebook."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, NotebookPage

pytestmark = pytest.mark.browser

PENGUINS = "from palmerpenguins import load_penguins\npenguins = load_penguins()"


def first_cells() -> list[str]:
    """The cells under "A first cell" of the README."""
    readme = Path(__file__).parents[2] / "README.md"
    section = readme.read_text().split("## A first cell\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:python)?\n(.*?)\n```", section, re.DOTALL)[:2]


def look(notebook: NotebookPage, name: str) -> None:
    if folder := os.environ.get("LOOKS"):
        notebook.page.screenshot(path=f"{folder}/{name}.png")


def test_the_first_cell_of_the_readme_shows_its_answer(lab: Lab) -> None:
    notebook = lab.open(first_cells())
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    output = notebook.cell_output(1)
    expect(output).to_contain_text("a planner that works offline")
    panel = notebook.cell(1).get_by_test_id("sagents-panel")
    expect(panel).to_contain_text("From 2024 to 2025 the total went from 600 to 703 (+17.2 %)")
    expect(panel).to_contain_text("I wrote /report.md")
    look(notebook, "first-cell")
    assert notebook.console == []


def test_code_on_all_rows_is_read_and_approved(lab: Lab) -> None:
    cells = [
        "%load_ext sagents_nb\n" + PENGUINS,
        "%%agent\nWhich species is heaviest in {penguins}?",
    ]
    notebook = lab.open(cells)
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    notebook.run_cell(1)
    expect(notebook.cell(1).get_by_test_id("approval")).to_contain_text(".groupby('species')")
    look(notebook, "approval")
    notebook.cell(1).get_by_test_id("approve").click()
    notebook.wait_for_cell(1)
    panel = notebook.cell(1).get_by_test_id("sagents-panel")
    expect(panel).to_contain_text("The heaviest species is Gentoo")
    look(notebook, "answered")


def test_a_plot_is_shown(lab: Lab) -> None:
    cells = [
        "%load_ext sagents_nb\n" + PENGUINS,
        "%%agent\nplot body mass by species in {penguins}",
    ]
    notebook = lab.open(cells)
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    notebook.run_cell(1)
    notebook.cell(1).get_by_test_id("approve").click()
    notebook.wait_for_cell(1)
    panel = notebook.cell(1).get_by_test_id("sagents-panel")
    expect(panel).to_contain_text("The bar chart shows: average body_mass_g by species.")
    expect(notebook.cell_output(1).locator("img[src^='data:image/png']")).to_have_count(1)
    look(notebook, "plot")
