"""A notebook without a page: its kernel is started again if it lost its ports; how it is saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from sagents_nb.notebook.headless import main

ROOT = Path(__file__).parents[2]
UNLUCKY = """
import os, sys
from pathlib import Path
starts = Path(sys.argv[1])
starts.write_text(starts.read_text() + "x")
if len(starts.read_text()) <= int(sys.argv[2]):
    sys.exit("zmq.error.ZMQError: Address already in use")
sys.argv[1:] = ["-f", sys.argv[3]]
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""


class Unlucky:
    """A notebook whose kernel dies so often before it can answer."""

    def __init__(self, folder: Path, deaths: int) -> None:
        self.folder = folder
        self.starts = folder / "starts"
        self.starts.write_text("")
        (folder / "unlucky.py").write_text(UNLUCKY)
        spec = folder / "jupyter" / "kernels" / "python3"
        spec.mkdir(parents=True)
        command = [sys.executable, str(folder / "unlucky.py"), str(self.starts), str(deaths)]
        (spec / "kernel.json").write_text(
            json.dumps({"argv": [*command, "{connection_file}"], "display_name": "Unlucky"})
        )
        answer = new_output("stream", name="stdout", text="42\n")
        cell = new_code_cell("print(6 * 7)", execution_count=1, outputs=[answer])
        nbformat.write(new_notebook(cells=[cell]), folder / "it.ipynb")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        place = {"JUPYTER_PATH": str(self.folder / "jupyter"), "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", *command],
            env={**os.environ, **place, "IPYTHONDIR": str(self.folder / ".ipython")},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )


HEADLESS = ["sagents_nb.notebook.headless", "it.ipynb", "--save"]
NBVAL = [
    *("pytest", "-q", "-p", "no:cacheprovider", "-p", "sagents_nb.notebook.testing.plugin"),
    *("--sagents", "--nbval-kernel-name", "python3", "it.ipynb"),
]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(HEADLESS, id="headless", marks=pytest.mark.soak),
        pytest.param(NBVAL, id="nbval"),
    ],
)
def test_a_kernel_that_died_twice_before_it_was_ready_is_started_a_third_time(
    command: list[str], tmp_path: Path
) -> None:
    notebook = Unlucky(tmp_path, deaths=2)
    done = notebook.run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert notebook.starts.read_text() == "xxx"
    assert "42" in done.stdout if command is HEADLESS else "1 passed" in done.stdout


def test_a_kernel_that_never_starts_is_tried_three_times_and_said_to_have_died(
    tmp_path: Path,
) -> None:
    notebook = Unlucky(tmp_path, deaths=9)
    done = notebook.run(*HEADLESS)
    assert done.returncode == 1
    assert "Kernel died before replying to kernel_info" in done.stderr
    assert notebook.starts.read_text() == "xxx"


def test_where_the_disk_is_full_the_notebook_is_what_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    small_disk: Callable[[], AbstractContextManager[None]],
) -> None:
    def execute(client: NotebookClient) -> None:
        client.nb.cells[0].outputs = [new_output("stream", name="stdout", text="long " * 9_000)]

    path = tmp_path / "it.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1")]), path)
    before = path.read_bytes()
    monkeypatch.setattr(NotebookClient, "execute", execute)
    with small_disk():
        assert main([str(path), "--save"]) == 1
    assert path.read_bytes() == before
    assert "free some space there first." in capsys.readouterr().err
    assert main([str(path), "--save"]) == 0
    assert "long" in path.read_text(encoding="utf-8")
