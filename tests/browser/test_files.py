"""The files of an agent: walked by keyboard, seen as what they are, downloaded, and undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, NotebookPage

pytestmark = pytest.mark.browser

SETUP = """
%load_ext sagents_nb
import base64, json, struct, zlib
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall
from sagents_nb.files import DiskStorage, FileSystem, Mount

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

head = struct.pack(">IIBBBBB", 120, 60, 8, 2, 0, 0, 0)
rows = b"".join(b"\\0" + bytes([40, 90, 2 * y]) * 120 for y in range(60))
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
png += chunk(b"IEND", b"")

image = {"image/png": base64.b64encode(png).decode()}
outputs = [{"output_type": "stream", "name": "stdout", "text": "three species\\n"},
           {"output_type": "display_data", "data": image, "metadata": {}}]
study = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"language": "python"}},
         "cells": [{"cell_type": "markdown", "source": "# Study\\n\\nPenguins.", "metadata": {}},
                   {"cell_type": "code", "source": "import pandas as pd\\nprint('three species')",
                    "execution_count": 1, "outputs": outputs, "metadata": {}}]}

edit = ToolCall("e1", "edit_file", dict(file_path="/study/notes/plan.md",
                old_string="- measure", new_string="- measure flippers\\n- compare"))
drop = ToolCall("d1", "delete_file", dict(file_path="/old.md"))
make = ToolCall("w1", "write_file", dict(file_path="/study/report.md", content="# Report\\n"))
files = FileSystem(mounts=[Mount("study", DiskStorage("study-files"))])
files.write("/study/notes/plan.md", "# Plan\\n\\n- look\\n- measure\\n- write\\n")
files.write("/study/study.ipynb", json.dumps(study))
files.write("/plots/mass.png", png)
files.write("/data/penguins.csv", "species,mass\\n" + "Adelie,3700\\n" * 250)
files.write("/data/all.zip", b"PK\\x03\\x04\\0\\xff" * 2000)
files.write("/settings.json", '{"alpha": 1.0, "names": ["a", null]}\\n')
files.write("/old.md", "An old note.\\n")
files.mkdir("/empty")
s = sa.Session(sa.Agent(ScriptedModel([[edit, drop, make], "Done."])), filesystem=files)
"""


def files_view(lab: Lab) -> NotebookPage:
    """A notebook that shows the files of a session, whose run has then changed three of them."""
    notebook = lab.open([SETUP, "sa.FilesView(s)", "_ = s.send('Go.').result(20)"])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    expect(of(notebook, "file").first).to_be_visible()
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell(1).locator(".sagents-file-change")).to_have_count(3)
    return notebook


def of(notebook: NotebookPage, name: str) -> Locator:
    return notebook.cell(1).get_by_test_id(name)


def row(notebook: NotebookPage, path: str) -> Locator:
    return notebook.cell(1).locator(f"[role=treeitem][data-path='{path}']")


def pictures(notebook: NotebookPage, name: str) -> None:
    """One in each theme, the light one last: the theme is that of the other tests too."""
    notebook.set_theme("dark")
    try:
        of(notebook, "sagents-panel").scroll_into_view_if_needed()
        notebook.screenshot(f"{name}-dark")
    finally:
        notebook.set_theme("light")
    of(notebook, "sagents-panel").scroll_into_view_if_needed()
    notebook.screenshot(f"{name}-light")


def test_the_tree_is_walked_by_keyboard_and_enter_opens(lab: Lab) -> None:
    notebook = files_view(lab)
    pictures(notebook, "files-tree")
    keyboard = notebook.page.keyboard
    row(notebook, "/data").focus()
    keyboard.press("ArrowDown")
    expect(row(notebook, "/data/all.zip")).to_be_focused()
    keyboard.press("ArrowLeft")
    keyboard.press("ArrowLeft")
    expect(row(notebook, "/data/all.zip")).to_have_count(0)
    keyboard.press("End")
    expect(row(notebook, "/settings.json")).to_be_focused()
    keyboard.press("Enter")
    expect(of(notebook, "file-viewer").locator(".hljs-number").first).to_have_text("1.0")
    of(notebook, "file-back").click()
    expect(row(notebook, "/settings.json")).to_be_focused()
    assert notebook.console == []


@pytest.mark.soak
def test_images_and_notebooks_are_seen_in_both_themes(lab: Lab) -> None:
    notebook = files_view(lab)
    row(notebook, "/plots/mass.png").click()
    image = of(notebook, "file-image")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.naturalWidth") == 120
    notebook.screenshot("files-image")
    of(notebook, "file-back").click()
    row(notebook, "/study/study.ipynb").click()
    expect(of(notebook, "notebook-cell")).to_have_count(2)
    cell = of(notebook, "notebook-cell").last
    assert cell.locator("img").evaluate("image => image.naturalWidth") == 120
    pictures(notebook, "files-notebook")
    assert notebook.console == []
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_a_file_is_downloaded_byte_for_byte(lab: Lab) -> None:
    notebook = files_view(lab)
    row(notebook, "/data/all.zip").click()
    expect(of(notebook, "file-viewer")).to_contain_text("A binary file of 12 kB (application/zip).")
    with notebook.page.expect_download() as download:
        of(notebook, "file-download").click()
    assert download.value.suggested_filename == "all.zip"
    assert Path(download.value.path()).read_bytes() == b"PK\x03\x04\0\xff" * 2000
    assert notebook.console == []


def test_what_the_run_did_is_shown_and_undone(lab: Lab) -> None:
    notebook = files_view(lab)
    row(notebook, "/study/notes/plan.md").click()
    expect(of(notebook, "file-location")).to_contain_text("study-files/notes/plan.md")
    of(notebook, "file-compare").click()
    changes = of(notebook, "file-changes")
    expect(changes.get_by_role("insertion").first).to_contain_text("- measure flippers")
    pictures(notebook, "files-changes")
    of(notebook, "file-undo").click()
    asked = notebook.cell(1).get_by_role("group", name="Undo what the last run did?")
    expect(asked).to_contain_text("/study/notes/plan.md")
    expect(asked).to_contain_text("goes back")
    pictures(notebook, "files-undo")
    expect(of(notebook, "undo-keep")).to_be_focused()
    notebook.page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(of(notebook, "file-undo")).to_be_focused()
    notebook.page.keyboard.press("Enter")
    expect(of(notebook, "undo-keep")).to_be_focused()
    notebook.page.keyboard.press("Tab")
    expect(of(notebook, "undo-yes")).to_be_focused()
    notebook.page.keyboard.press("Enter")
    expect(of(notebook, "file-compare")).to_have_count(0)
    expect(of(notebook, "file-viewer").locator("li")).to_have_text(["look", "measure", "write"])
    of(notebook, "file-back").click()
    row(notebook, "/old.md").click()
    expect(changes.get_by_role("deletion")).to_contain_text("An old note.")
    of(notebook, "file-undo").click()
    of(notebook, "undo-yes").click()
    expect(of(notebook, "file-download")).to_be_visible()
    of(notebook, "file-back").click()
    row(notebook, "/study/report.md").click()
    of(notebook, "file-undo").click()
    of(notebook, "undo-yes").click()
    expect(row(notebook, "/study/report.md")).to_have_count(0)
    expect(notebook.cell(1).locator(".sagents-file-change")).to_have_count(0)
    assert notebook.console == []


@pytest.mark.soak
def test_all_that_the_run_did_is_undone_at_once(lab: Lab) -> None:
    notebook = files_view(lab)
    expect(notebook.cell(1)).to_contain_text("The last run changed 3 files.")
    of(notebook, "file-undo").click()
    asked = notebook.cell(1).get_by_role("group", name="Undo what the last run did?")
    expect(asked.get_by_role("listitem")).to_have_count(3)
    pictures(notebook, "files-undo-all")
    asked.get_by_role("button", name="Undo 3 files").click()
    expect(notebook.cell(1).locator(".sagents-file-change")).to_have_count(0)
    expect(row(notebook, "/old.md")).to_be_visible()
    expect(row(notebook, "/study/report.md")).to_have_count(0)
    assert notebook.console == []
