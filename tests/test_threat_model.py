"""docs/threat-model.md names tests that exist, and they are run every time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:tests|widgets)/[^`]+)`", TEXT)))


def test_every_promise_names_its_proof() -> None:
    rows = [line.split("|") for line in TEXT.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        assert len(row) == 6, row
        assert re.search(r"`(tests|widgets)/", row[4]), row


@pytest.mark.parametrize("proof", NAMED)
def test_a_proof_that_is_named_exists(proof: str) -> None:
    path, _, name = proof.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    if name:
        before, found, _ = text.partition(f"def {name}(")
        assert found
        assert "@pytest.mark.soak" not in before.rpartition("\n\n\n")[2]
