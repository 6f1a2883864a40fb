"""docs/architecture.md is true: the floors, the walks, and the words."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sagents_nb"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

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


def test_the_floors_are_those_that_the_linter_checks() -> None:
    table = [sorted(re.findall(r"`(\w+)`", cell)) for cell in first_cells(section("The floors"))]
    assert table == [sorted(re.findall(r"\w+", layer)) for layer in layers()]


def test_no_floor_is_crowded() -> None:
    assert max(len(re.findall(r"\w+", layer)) for layer in layers()) <= 4


def test_what_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|tsx?))`", TEXT)
    missing = [name for name in named if not any((r / name).exists() for r in (PACKAGE, ROOT))]
    assert named
    assert missing == []


def test_there_are_few_words_to_learn() -> None:
    assert len(first_cells(section("Words"))) <= 20


def test_the_house_is_small() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 24
    assert len(list(PACKAGE.rglob("*.py"))) <= 190
