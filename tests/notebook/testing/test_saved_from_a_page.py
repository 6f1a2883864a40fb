"""A notebook that JupyterLab has saved is tested as it is: panels stand for their transcripts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.notebook.kernel import WIDGET, Cell, Kernel
from tests.notebook.testing.test_test_notebook import Notebooks

CELLS = [
    "%load_ext sagents_nb\nimport sagents_nb as sa\n"
    "def draw(): return sa.ImagePart('iVBORw0KGgo=')\n"
    "said = [sa.ToolCall('c1', 'draw', {}), 'Hello there.', 'Sunny.']\n"
    "session = sa.Session(sa.Agent(sa.ScriptedModel(said), tools=[draw]))\n"
    "%agent use session",
    "session",
    "%%agent\nhi",
    "sa.ChatView(session)",
    "%%agent\nAnd the weather?",
    "print(len(session.messages))",
]


def as_saved(ran: list[Cell]) -> list[dict[str, Any]]:
    """The cells as JupyterLab saves them: each display as any cell has shown it last."""
    displays: dict[str, dict[str, Any]] = {}
    cells = []
    for number, (source, cell) in enumerate(zip(CELLS, ran, strict=True)):
        outputs = []
        for message in cell.messages:
            kind, content = message["msg_type"], message["content"]
            id = content.get("transient", {}).get("display_id")
            if kind == "update_display_data":
                displays[id]["data"] = content["data"]
            elif kind in ("display_data", "execute_result", "stream"):
                kept = {key: value for key, value in content.items() if key != "transient"}
                outputs.append({"output_type": kind, **kept})
                displays[id] = outputs[-1]
        about = {"id": f"c{number}", "cell_type": "code", "metadata": {}}
        cells.append({**about, "source": source, "execution_count": 1, "outputs": outputs})
    return cells


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Notebooks:
    """One that was run where somebody could click, and one in which an answer was another."""
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    cells = as_saved([kernel.ok(code, front_end=True, cell=code[-9:]) for code in CELLS])
    kernel.stop()
    assert [WIDGET in json.dumps(cell) for cell in cells] == [False, True, True, True, True, False]
    assert "Sunny." in json.dumps(cells[1]), "which a later cell has said"
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    made = Notebooks(tmp_path_factory.mktemp("notebooks"))
    (made.folder / "saved.ipynb").write_text(text)
    other = text.replace("> And the weather?\\n\\nSunny.", "> And the weather?\\n\\nRain.")
    (made.folder / "other.ipynb").write_text(other)
    assert text.count("base64,iVBORw0KGgo=)") == 3  # of the run, and twice of the session
    drawn = text.replace("base64,iVBORw0KGgo=)", "base64,iVBORw0KGgoA)")
    (made.folder / "drawn.ipynb").write_text(drawn)
    undrawn = text.replace("![image](data:image/png;base64,iVBORw0KGgo=)", "Nothing.")
    (made.folder / "undrawn.ipynb").write_text(undrawn)
    return made


def test_it_passes_as_it_is_and_fails_where_the_transcript_of_a_run_differs(
    saved: Notebooks,
) -> None:
    done = saved.run("saved.ipynb")
    assert done.returncode == 0, done.stdout
    done = saved.run("other.ipynb")
    assert done.returncode == 1
    assert "Rain." in done.stdout
    assert "1 failed, 5 passed" in done.stdout


@pytest.mark.soak
def test_an_image_of_another_version_of_what_drew_it_is_the_same(saved: Notebooks) -> None:
    done = saved.run("drawn.ipynb")
    assert done.returncode == 0, done.stdout
    done = saved.run("undrawn.ipynb")
    assert done.returncode == 1
    assert "1 failed, 5 passed" in done.stdout
