"""The code of the documentation is right for a strict type checker, since people copy it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.docs.typed import modules_of

# A cell may await and has the value of the one before it.
RIGHT_IN_A_PAGE = (
    re.compile(r'Name "_" is not defined'),
    re.compile(r'"(await|async for)" outside (async )?function'),
)


def complaints(pages: list[Path], folder: Path) -> list[str]:
    """What mypy says of the pages, as ``docs/guides/tools.md:12: error: …``."""
    every = [(page, module) for page in pages for module in modules_of(page)]
    modules = {f"page_{number}.py": page for number, (page, _) in enumerate(every)}
    for name, (_, module) in zip(modules, every, strict=True):
        (folder / name).write_text(module, encoding="utf-8")
    files = [str(folder / name) for name in modules]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
    ]
    # From the root: there are the settings, and what was found out of the package before.
    ran = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    said = [line for line in ran.stdout.splitlines() if ": error: " in line]
    wrong = [line for line in said if not any(right.search(line) for right in RIGHT_IN_A_PAGE)]
    return [
        re.sub(r"^.*?(page_\d+\.py)", lambda name: str(modules[name[1]]), line) for line in wrong
    ]


def test_the_code_of_the_pages_has_the_right_types(tmp_path: Path) -> None:
    assert complaints(PAGES, tmp_path) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sa.Agent(max_runs='3')", ":5: error: Argument"),
        ("for event in sa.Agent().stream('hi'):\n    event.delta", ":6: error: "),
        ("def f(x):\n    %agent use x", ":5: error: Function is missing a type annotation"),
        ("sa.Session(sa.Agent()).current_run.nothing", 'Item "Run"'),
    ],
)
def test_what_is_wrong_in_a_page_is_told_with_its_line(
    code: str, said: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n```python\nimport sagents_nb as sa\n{code}\n```\n", "utf-8")
    found = complaints([page], tmp_path)
    assert any(said in line for line in found), found
    assert all(str(page) in line for line in found)


def test_an_event_is_known_by_its_type(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nimport sagents_nb as sa\n"
        "for event in sa.Agent().stream('hi'):\n"
        "    if event.type == 'message_update' and isinstance(event.delta, sa.TextDelta):\n"
        "        print(event.delta.text.upper())\n```\n",
        "utf-8",
    )
    assert complaints([page], tmp_path) == []
