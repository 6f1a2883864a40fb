"""docs/architecture.md is true: the floors, the walks, and the words."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sagents_nb"
DOCS = ROOT / "docs"
TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")

WALKS = {"message": ("A message of the user", 24), "approve": ("A click on Approve", 20)}


def section(title: str) -> str:
    _, _, after = TEXT.partition(f"\n## {title}\n")
    assert after
    return after.partition("\n## ")[0]


def layers() -> list[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in config["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    return list(contract["layers"])


def first_cells(table: str) -> list[str]:
    return [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")][1:]


def steps(walk: str) -> list[str]:
    """What a walk names, as ``file:function``, in order."""
    return re.findall(r"`([\w/]+\.py:[\w.]+)`", section(WALKS[walk][0]))


@pytest.mark.parametrize("walk", WALKS)
def test_a_tracer_sees_every_step_of_a_walk_in_order(walk: str) -> None:
    program = [sys.executable, "-m", "tests.walks", walk]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    calls = iter(ran.stdout.splitlines())
    unseen = next((step for step in steps(walk) if not any(call == step for call in calls)), None)
    assert unseen is None, f"{unseen} is not called there, or not after the step before it"


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_is_short(walk: str) -> None:
    files = {step.partition(":")[0] for step in steps(walk)}
    assert 10 < len(files) <= WALKS[walk][1]


STATIC = PACKAGE / "notebook" / "status_text.py"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((PACKAGE / "notebook").rglob("*.py")) if path != STATIC],
    ids=lambda path: path.name,
)
def test_what_a_notebook_keeps_of_a_conversation_is_made_in_one_place(path: Path) -> None:
    """There it is without keys and inert, which is not to be forgotten at each output."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "transcript"
        for alias in node.names
    }
    made = {
        key.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    # A traceback is masked by what shows all that the code has put out.
    allowed = {"text/html", "folded"} if path.name == "execution.py" else set()
    assert (imported | made) & {"inert", "folded", "text/markdown", "text/html"} == allowed


def test_the_floors_are_those_that_the_linter_checks() -> None:
    table = [sorted(re.findall(r"`(\w+)`", cell)) for cell in first_cells(section("The floors"))]
    assert table == [sorted(re.findall(r"\w+", layer)) for layer in layers()]


def test_no_floor_is_crowded() -> None:
    assert max(len(re.findall(r"\w+", layer)) for layer in layers()) <= 4


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *sorted(p.name for p in DOCS.glob("*.md"))])
def test_what_a_page_names_is_there(page: str) -> None:
    text = next(p for p in (ROOT / page, DOCS / page) if p.exists()).read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|tsx?))[:`]", text)
    folders = [PACKAGE, ROOT / "tests", ROOT / "widgets" / "src"]
    paths = [f"/{path}" for folder in folders for path in folder.rglob("*.[pt]*")]
    assert [name for name in named if not any(p.endswith(f"/{name}") for p in paths)] == []


def test_what_docstrings_refer_to_is_there() -> None:
    said = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = set(re.findall(r":\w+:`(?:[^`<]*<)?~?(sagents_nb\.[\w.]+)>?`", said))
    assert len(names) > 20
    assert [name for name in sorted(names) if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether a module, or something in one, has that name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        with suppress(ImportError):
            found: Any = import_module(".".join(parts[:length]))
            for part in parts[length:]:
                found = getattr(found, part, None)
            return found is not None
    return False


def test_there_are_few_words_to_learn() -> None:
    assert len(first_cells(section("Words"))) <= 20


def test_the_house_is_small() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 30
    assert len(list(PACKAGE.rglob("*.py"))) <= 346
