"""Two real processes that want one conversation."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.journals import database_of
from tests.talking import in_threads

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


WORKER = """
import sys
from sagents_nb.errors import AgentError
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import note, said
database = Database(sys.argv[1])
journal = None
print("ready", flush=True)
for line in sys.stdin:
    what, *words = line.split()
    try:
        if what == "open":
            journal, entries, _ = Journal.open(database, "c", take_over=bool(words))
            print("opened", journal.epoch, said(entries)[-1:], flush=True)
        elif what == "append":
            print("wrote", journal.append([note(words[0])]).result(), flush=True)
        elif what == "release":
            journal.release().result()
            print("released", flush=True)
    except AgentError as error:
        print(type(error).__name__, error, flush=True)
"""


class Worker:
    """A process of its own that does with the conversation what it is told."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == "ready"

    def tell(self, line: str) -> None:
        assert self.process.stdin
        print(line, file=self.process.stdin, flush=True)

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.hear()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def workers(url: str) -> Iterator[list[Worker]]:
    with database_of(url):
        pass
    both = list(in_threads(2, lambda index: Worker(url)))
    yield both
    for worker in both:
        worker.kill()


def race(workers: list[Worker], rounds: int) -> None:
    """Both open it at once: one does, the other is told who, and writes nothing.

    In the first rounds each has answered before the other is asked, so that each wins once.
    """
    epochs = [0]
    winners = set()
    last = []
    for n in range(rounds):
        order = (0, 1) if n % 2 else (1, 0)
        said = ["", ""]
        if n < 2:
            for index in order:
                said[index] = workers[index].ask("open")
        else:
            for index in order:
                workers[index].tell("open")
            said = [worker.hear() for worker in workers]
        (won,) = [index for index in range(2) if said[index].startswith("opened")]
        winner, loser = workers[won], workers[1 - won]
        assert re.match(
            f"Owned Conversation 'c' has been open in process {winner.process.pid} on ",
            said[1 - won],
        )
        _, epoch, seen = said[won].split(maxsplit=2)
        epochs.append(int(epoch))
        assert seen == str(last)
        winners.add(won)
        assert winner.ask(f"append {n}").startswith("wrote")
        last = [str(n)]
        if n % 5 == 4:  # the other one takes it away, and the first one is a zombie
            assert loser.ask("open now").startswith("opened")
            epochs.append(epochs[-1] + 1)
            assert winner.ask("append zombie").startswith("StaleOwner")
            winner, loser = loser, winner
        assert winner.ask("release") == "released"
        assert winner.ask("append late").startswith("StaleOwner")
    assert epochs == sorted(set(epochs))
    assert winners == {0, 1}


def test_of_two_processes_one_owns_it(workers: list[Worker]) -> None:
    race(workers, 20)


@pytest.mark.soak
def test_of_two_processes_one_owns_it_200_times(workers: list[Worker]) -> None:
    race(workers, 200)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@linux
def test_a_killed_process_is_known_to_be_dead_at_once(workers: list[Worker]) -> None:
    dead, heir = workers
    assert dead.ask("open") == "opened 1 []"
    assert dead.ask("append last") == "wrote 1"
    assert heir.ask("open").startswith("Owned")
    os.kill(dead.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, dead.process.pid, os.WEXITED | os.WNOWAIT)
    assert heir.ask("open") == "opened 2 ['last']"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_process_that_ends_leaves_its_conversations_to_others(workers: list[Worker]) -> None:
    gone, heir = workers
    assert gone.ask("open") == "opened 1 []"
    gone.process.communicate()
    assert heir.ask("open") == "opened 2 []"
