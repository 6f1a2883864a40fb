"""The pytest plugin costs nothing to those who do not ask for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from nbval.plugin import get_sanitize_patterns

from sagents_nb.notebook.testing import environment, plugin

ROOT = Path(__file__).parents[3]
NAME = "sagents_nb.notebook.testing.plugin"


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", NAME]
    return subprocess.run(
        [*command, *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "IPYTHONDIR": str(folder / ".ipython")},
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_without_its_option_it_does_nothing_and_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    for name in ('nbformat', 'jupyter_client', 'ipykernel', 'anywidget', 'pandas'):\n"
        "        assert name not in sys.modules, name\n"
    )
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), tmp_path / "test_bad.ipynb")
    done = pytest_run(tmp_path, "-p", "no:nbval")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_with_its_option_notebooks_are_tests_beside_others(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    cells = [new_code_cell("import sagents_nb as sa"), new_code_cell("sa.Agent().model")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "good.ipynb")
    done = pytest_run(tmp_path, "--sagents", "--collect-only")
    assert done.stdout.splitlines()[:3] == [
        *("good.ipynb::Cell 0", "good.ipynb::Cell 1"),
        "test_it.py::test_it",
    ]


def test_without_nbval_the_extra_is_named(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--sagents", "-p", "no:nbval")
    assert "--sagents needs nbval; pip install 'sagents-nb[testing]'." in done.stderr


def _sanitized(text: str) -> str:
    shipped = Path(plugin.__file__).with_name("sanitize.cfg").read_text(encoding="utf-8")
    for regex, replacement in get_sanitize_patterns(shipped):
        text = re.sub(regex, replacement, text)
    return text


def test_what_differs_each_time_is_sanitized() -> None:
    for one, other in [
        ("run-3f0c9a1b22d4 of agent-0123456789ab", "run-000000000000 of agent-ba9876543210"),
        (f"<Task 'task-{'0f' * 16}' of", f"<Task 'task-{'a1' * 16}' of"),
        ("<X at 0x7f2650627df0>", "<X at 0x55d0c0ffee>"),
        ("at 2026-11-22T03:27:32.123Z", "at 2027-01-01T00:00:00Z"),
        ("2026-11-22 03:27:32+00:00", "2026-11-22 03:27:33+01:00"),
        ("took 0.25 s", "took 12.5 s"),
        ("in /tmp/abc/x", "in /tmp/def/y"),
        ("3f2b8c1e-0000-4000-8000-0123456789ab", "3f2b8c1e-1111-4000-8000-0123456789ab"),
    ]:
        assert one != other
        assert _sanitized(one) == _sanitized(other)
    kept = ("84 mm in Oslo", "call_1_1", "task-1", "2026-11-22", "1.5 seconds-old", "/report.md")
    for text in kept:
        assert text == "1.5 seconds-old" or _sanitized(text) == text


def test_a_replay_has_no_keys_and_the_model_that_was_recorded(tmp_path: Path) -> None:
    changes = environment.replaying(tmp_path / "none.cassette.json")
    assert changes["ANTHROPIC_API_KEY"] is changes["OPENAI_API_KEY"] is None
    assert changes["SAGENTS_MODEL"] is None
    assert changes["SAGENTS_REPLAY"] == "replay"
    cassette = environment.Cassette(tmp_path / "x.cassette.json")
    cassette.header[environment.DEFAULT] = "anthropic:claude"
    cassette.save()
    assert environment.replaying(cassette.path)["SAGENTS_MODEL"] == "anthropic:claude"
