"""One run: its id, whatever the program does with chance and forks, and that it leaves nothing."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.loop.execution import new_run_id
from sagents_nb.runtime.thread import runtime
from tests.talking import agent_of

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


@pytest.mark.parametrize(
    "work",
    [
        lambda agent: agent.run("go"),
        lambda agent: list(agent.stream("go")),
        lambda agent: agent.map(["go"], progress=False),
    ],
    ids=["run", "stream", "map"],
)
def test_what_a_run_held_is_let_go_of_as_it_ends(work: Callable[[sa.Agent], Any]) -> None:
    held: list[weakref.ref[sa.RunContext]] = []

    class Looks(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            held.append(weakref.ref(ctx))

    agent = agent_of("done", middleware=[Looks()])
    gc.disable()  # which would find it some day, and look at all there is for that
    try:
        work(agent)
        runtime.call(lambda: None)  # the last step of its task is over
        assert [ctx() for ctx in held] == [None]
    finally:
        gc.enable()
