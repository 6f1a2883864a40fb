"""What lies in the repository is small, tells of no machine, and holds no conversation twice."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def test_it_is_below_300_kilobytes(path: Path) -> None:
    assert path.stat().st_size < 300_000


def test_no_widget_state_is_saved(path: Path) -> None:
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in saved["metadata"]
    assert "application/vnd.jupyter.widget-state+json" not in path.read_text(encoding="utf-8")


def test_every_cell_was_run_and_none_failed(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["execution_count"], cell["source"]
            assert not [o for o in cell["outputs"] if o["output_type"] == "error"]
            assert "execution" not in cell["metadata"]  # times, which differ every run


def test_it_tells_nothing_of_the_machine_on_which_it_ran(path: Path) -> None:
    told = json.dumps([cell.get("outputs", ()) for cell in cells(path)])
    for folder in (str(ROOT), str(Path.home()), tempfile.gettempdir()):
        assert f"{folder}/" not in told
