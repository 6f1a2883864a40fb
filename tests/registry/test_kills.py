"""kill -9 while agents delegate: each call is one task, and nothing is done twice unasked."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from tests.registry import dying
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")

KILLS = int(os.environ.get("DELEGATION_KILLS", "40"))
"""For the long tests; 200 take a quarter of an hour."""


@pytest.fixture
def directory() -> Iterator[Path]:
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sagents-", dir=place) as name:
        yield Path(name)


class Witness:
    """What somebody saw who lived longer than the processes."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.chance = chance
        self.ran: Counter[str] = Counter()
        self.said: Counter[str] = Counter()
        self.again: Counter[str] = Counter()  # what somebody said is to be run again
        self.kills = 0
        self.finished = False

    def one_life(self, most: int, target: Callable[..., None], *args: Any) -> None:
        """Start the process, and kill it after up to ``most`` things it said."""
        context = dying.fork_server()
        here, there = context.Pipe()
        process = context.Process(target=target, args=(there, self.url, *args))
        process.start()
        there.close()
        left = self.chance.randint(1, most)
        try:
            while left and not self.finished:
                if self.take(here, here.recv()):
                    left -= 1
            if not self.finished:
                time.sleep(self.chance.choice([0, 0.004, 0.02]) * self.chance.random())
            process.kill()
            self.kills += not self.finished
            while True:
                self.take(here, here.recv())
        except (EOFError, ConnectionResetError):
            pass
        process.join(PATIENCE)
        assert process.exitcode == -9, "it ended by itself"

    def take(self, pipe: Any, said: tuple[str, str]) -> bool:
        what, text = said
        if what == "ran":
            self.ran[text] += 1
        elif what == "said":
            self.said[text] += 1
        elif what == "doubt":
            known = "ran" if self.ran[text] else self.chance.choice(["did not run", "retry"])
            with contextlib.suppress(BrokenPipeError):
                pipe.send(known)
                self.again[text] += known == "retry"
        elif what == "finished":
            self.finished = True
        return what != "waits"


def survive(directory: Path, kills: int, seed: int) -> Counter[str]:
    chance, figures = random.Random(seed), Counter[str]()
    while figures["kills"] < kills:
        figures["conversations"] += 1
        witness = Witness(directory / f"{figures['conversations']}.db", chance)
        while not witness.finished:
            most = (3, 6, 12, 25)[figures["conversations"] % 4]
            witness.one_life(most, dying.live)
            twice = [key for key, count in witness.ran.items() if count > 1]
            assert not twice, "a call was run again without anybody's word"
        figures["kills"] += witness.kills
        figures["doubts"] += witness.again.total()
        check_end(witness)
    return figures


def check_end(witness: Witness) -> None:
    store = sa.ConversationStore(witness.url)
    keys = [key for turn in range(dying.TURNS) for key in dying.keys_of(turn)]
    records = store.tasks.list(context=dying.ID)
    assert sorted(record.input[0].text for record in records) == sorted(keys)  # type: ignore[union-attr]
    assert {record.state for record in records} == {"completed"}
    state = sa.State.restore(store.load_agent_state(dying.ID))
    results = [r.text for m in state.messages for r in m.tool_results]
    assert results == [f"done {key}" for key in keys]
    store.close()


@pytest.mark.spec("R4.3.1", "R4.3.4")
def test_killed_delegations_go_on_as_one_task_each_and_do_nothing_twice(directory: Path) -> None:
    survive(directory, kills=6, seed=3)


@pytest.mark.soak
def test_many_killed_delegations_go_on_as_one_task_each(directory: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    print(survive(directory, KILLS, seed))


def survive_in_background(directory: Path, kills: int, seed: int) -> Counter[str]:
    chance, figures = random.Random(seed), Counter[str]()
    turns = 5
    while figures["kills"] < kills:
        figures["conversations"] += 1
        witness = Witness(directory / f"b{figures['conversations']}.db", chance)
        while not witness.finished:
            most = (4, 8, 15, 30)[figures["conversations"] % 4]
            witness.one_life(most, dying.live_in_background, turns)
        store = sa.ConversationStore(witness.url)
        keys = sorted(f"k{turn}{letter}" for turn in range(turns) for letter in "ab")
        records = store.tasks.list(context=dying.ID)
        assert sorted(record.input[0].text for record in records) == keys  # type: ignore[union-attr]
        state = sa.State.restore(store.load_agent_state(dying.ID))
        news = [m.metadata["task"]["id"] for m in state.messages if "task" in m.metadata]
        assert sorted(news) == sorted(record.id for record in records), "lost, or told twice"
        heard = sorted(m.text for m in state.messages if m.text.startswith("heard"))
        assert heard == [f"heard {key}" for key in keys], "it was not woken"
        figures["kills"] += witness.kills
        figures["news"] += len(news)
        store.close()
    return figures


def test_killed_background_tasks_are_told_of_once(directory: Path) -> None:
    survive_in_background(directory, kills=6, seed=4)


@pytest.mark.soak
def test_many_killed_background_tasks_are_told_of_once(directory: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    print(survive_in_background(directory, KILLS, seed))
