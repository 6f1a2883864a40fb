"""kill -9 at random points of a conversation: nothing that was said to be safe is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.store.folding import Folded, fold
from tests.session import crashing
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory where that can be: what a dead process wrote is there either way."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sagents-", dir=place) as name:
        yield Path(name)


class Witness:
    """What somebody saw of a conversation who lived longer than the processes that held it."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        self.chance = chance
        self.ran: Counter[str] = Counter()
        self.sent: set[str] = set()
        self.heard: list[str] = []
        self.decided: set[str] = set()
        self.kills = 0
        self.doubts = 0
        self.finished = False

    def one_life(self, most: int) -> None:
        """Start the process, and kill it after up to ``most`` things it said."""
        context = crashing.fork_server()
        here, there = context.Pipe()
        process = context.Process(target=crashing.live, args=(there, f"sqlite:///{self.path}"))
        process.start()
        there.close()
        left = self.chance.randint(1, most)
        try:
            while left and not self.finished:
                self.take(here, here.recv())
                left -= 1
            if not self.finished:
                time.sleep(self.chance.choice([0, 0.004]) * self.chance.random())
            process.kill()
            self.kills += not self.finished
            while True:  # what it said before it died
                self.take(here, here.recv())
        except (EOFError, ConnectionResetError):
            pass
        process.join(PATIENCE)
        assert process.exitcode == -9, "it ended by itself"
        self.check()

    def take(self, pipe: Any, said: tuple[str, str]) -> None:
        what, text = said
        if what == "ran":
            self.ran[text] += 1
        elif what == "sent":
            self.sent.add(text)
        elif what == "heard":
            self.heard.append(text)
        elif what == "decided":
            self.decided.add(text)
        elif what == "asked":
            assert text not in self.decided, "a recorded decision was asked for again"
        elif what == "doubt":
            self.doubts += 1
            denial = self.chance.choice(["did not run", "retry"])
            with contextlib.suppress(BrokenPipeError):
                pipe.send("ran" if self.ran[text] else denial)
        elif what == "finished":
            self.finished = True

    def read(self) -> Folded:
        with sqlite3.connect(self.path) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            rows = database.execute("SELECT seq, kind, data FROM sagents_journal").fetchall()
        database.close()
        return fold((seq, kind, json.loads(data)) for seq, kind, data in sorted(rows))

    def check(self) -> None:
        """What the file says after a death, against what was seen."""
        folded = self.read()
        assert folded.problems == []
        told = []
        for message in folded.state.messages:
            text = message.text or " ".join(r.text for r in message.tool_results)
            told.append(f"{message.role} {text}")
        left = iter(told)
        assert all(text in left for text in self.heard), "an acknowledged message is lost"
        users = [m.text for m in folded.state.messages if m.role == "user"]
        waiting = [w.message.text for w in folded.queued]
        assert sorted(users + waiting, key=int) == [str(n) for n in range(len(users + waiting))]
        assert self.sent <= {*users, *waiting}, "an acknowledged message is lost"
        for key in self.decided:
            known = any(d.request.arguments["key"] == key for d in folded.decisions)
            turn = told.index(f"user {crashing.turn_of(key)}")
            used = any(text.startswith("tool ") for text in told[turn : turn + 3])
            assert known or used, f"the decision on {key} is lost"
        once = {k: n for k, n in self.ran.items() if not is_idempotent(k)}
        assert all(n == 1 for n in once.values()), "a call was run again without the user's word"

    def check_end(self) -> None:
        """Everything that was to happen has, but for what somebody said had not to."""
        texts = [m.text for m in self.read().state.messages if m.text]
        assert texts == [t for n in range(crashing.TURNS) for t in (str(n), f"done {n}")]
        for turn in range(crashing.TURNS):
            for tool, key in crashing.calls_of(turn):
                decision = crashing.decision_on(key) if tool == "pay" else None
                kind = type(decision).__name__
                if kind == "Reject":
                    assert self.ran[key] == 0
                elif kind == "Edit":
                    assert self.ran[key] == 0
                    assert self.ran[f"{key}!"] <= 1
                elif tool == "look":
                    assert self.ran[key] >= 1


def is_idempotent(key: str) -> bool:
    key = key.removesuffix("!")
    return ("look", key) in crashing.calls_of(crashing.turn_of(key))


def survive(directory: Path, kills: int, seed: int) -> Counter[str]:
    """Conversations, killed as often; figures of what happened."""
    chance, figures = random.Random(seed), Counter[str]()
    while figures["kills"] < kills:
        figures["conversations"] += 1
        witness = Witness(directory / f"{figures['conversations']}.db", chance)
        while not witness.finished:
            witness.one_life(most=(8, 20, 50, 120)[figures["conversations"] % 4])
        witness.check_end()
        figures["kills"] += witness.kills
        figures["doubts"] += witness.doubts
        figures["acknowledged"] += len(witness.heard) + len(witness.sent)
        figures["decisions"] += len(witness.decided)
        figures["runs of tools"] += witness.ran.total()
    return figures


def test_twenty_kills_lose_nothing_and_run_nothing_twice(directory: Path) -> None:
    survive(directory, kills=20, seed=5)


@pytest.mark.soak
def test_five_hundred_kills_lose_nothing_and_run_nothing_twice(directory: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    print(survive(directory, kills=500, seed=seed))
