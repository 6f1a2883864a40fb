"""Every notebook, run to its end by plain nbclient, as anybody would: widget state and all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from sagents_nb.notebook.headless import retry_start
from tests.talking import PATIENCE

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
# The others are run to their ends by nbval as well.
QUICK = {"tour.ipynb", "approvals.ipynb"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.soak) for n in NAMES]
)
def test_it_runs_to_its_end_and_saves_no_conversation_beside_its_outputs(
    name: str, tmp_path: Path
) -> None:
    here = shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    notebook = nbformat.read(here / name, as_version=4)
    place = {"metadata": {"path": str(here)}}
    client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources=place)
    retry_start(client.execute)
    states = notebook.metadata.get("widgets", {})
    for widget in states.get("application/vnd.jupyter.widget-state+json", {}).get("state", {}):
        raise AssertionError(f"a widget was saved: {widget}")
    assert len(json.dumps(notebook)) < 300_000
