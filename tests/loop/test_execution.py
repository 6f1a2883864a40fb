"""One run has an id, whatever the program around it does with chance and forks."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from sagents_nb.loop.execution import new_run_id

FORKS = """
import os
from sagents_nb.loop.execution import new_run_id
new_run_id()
if (child := os.fork()) == 0:
    os.write(1, f"{new_run_id()}\\n".encode())
    os._exit(0)
os.waitpid(child, 0)
print(new_run_id())
"""


def test_a_program_that_seeds_its_chance_gets_other_ids_all_the_same() -> None:
    random.seed(7)
    first = new_run_id()
    random.seed(7)
    assert first != new_run_id()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_give_its_runs_the_ids_of_its_parent() -> None:
    said = subprocess.check_output([sys.executable, "-c", FORKS], text=True).split()
    assert len(set(said)) == len(said) == 2
