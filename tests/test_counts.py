"""What work takes in counts does not grow unseen: ``benchmarks/counts.json`` holds what it was.

Where it is meant to, ``python benchmarks/counts.py --write`` keeps the new counts.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks import counts

KEPT: counts.Measured = json.loads(counts.KEPT.read_text())
SLACK = 1.02
"""One block or call in some hundreds is made or not, as a thread happens to have ended."""
this_python = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="another Python calls and allocates otherwise"
)


@pytest.fixture(scope="module")
def found() -> counts.Measured:
    """What it is now, in a process that has done nothing else."""
    command = [sys.executable, counts.__file__, "--json"]
    measured: counts.Measured = json.loads(subprocess.check_output(command))
    assert measured.keys() <= KEPT.keys()
    return measured


def grown(found: counts.Measured, *kinds: str) -> dict[str, tuple[int, int]]:
    """What was kept and what there is, of those kinds that are more than they were."""
    of_kind = {n: count for n, count in found.items() if n.partition(": ")[2].startswith(kinds)}
    if not of_kind:
        pytest.skip("nothing here follows the calls of a process: strace is missing or refused")
    return {n: (KEPT[n], count) for n, count in of_kind.items() if count > KEPT[n] * SLACK}


def test_no_more_transactions_and_statements(found: counts.Measured) -> None:
    assert grown(found, "transactions", "statements") == {}


def test_the_disk_is_waited_for_no_more_often(found: counts.Measured) -> None:
    assert grown(found, "syncs") == {}


@this_python
def test_a_turn_with_a_tool_calls_no_more_functions(found: counts.Measured) -> None:
    assert grown(found, "calls") == {}


@this_python
def test_an_agent_and_a_session_are_no_more_blocks_of_memory(found: counts.Measured) -> None:
    assert grown(found, "blocks") == {}


def test_no_more_modules_are_imported(found: counts.Measured) -> None:
    assert grown(found, "modules") == {}
