"""kill -9 at random moments of runs, approvals and waiting parents: all go on in the next hub."""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from sagents_nb.hub import Agency, Hub, Thread
from sagents_nb.loop.open_calls import DID_NOT_RUN, RAN, RETRY, doubtful_calls
from tests.hub import working
from tests.hub.world import chat, is_dense
from tests.store.conftest import new_file
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")

MOST_IN_A_ROW = 2
"""Processes that are killed before somebody looks: a run is gone on with three times by itself."""

KILLS_OF_A_STORE = 25


class Witness:
    """Who heard what processes over one store said, and outlives them."""

    def __init__(self, url: str, chance: random.Random, figures: Counter[str]) -> None:
        self.url = url
        self.chance = chance
        self.figures = figures
        self.ran: Counter[str] = Counter()
        self.said: dict[str, str] = {}
        self.made: set[str] = set()
        self.approved: set[str] = set()
        self.told: dict[str, int] = defaultdict(int)
        self.ended: set[str] = set()
        self.number = 0

    def one_life(self) -> None:
        """Have a process begin, and kill it after some of what it said."""
        context = working.fork_server()
        here, there = context.Pipe()
        process = context.Process(target=working.live, args=(there, self.url, self.number))
        process.start()
        there.close()
        left = self.chance.choice([1, 4, 12, 30, 60]) + self.chance.randrange(8)
        try:
            while True:
                if left == 0:
                    time.sleep(self.chance.choice([0, 0.01]) * self.chance.random())
                    process.kill()
                self.take(*here.recv())
                left -= 1
        except (EOFError, ConnectionResetError):
            process.join(PATIENCE)
        assert process.exitcode == -9, "it ended by itself"
        self.figures["kills"] += 1
        self.number += 100

    def take(self, what: str, *said: Any) -> None:
        """Note what a process said."""
        if what == "ran":
            self.ran[said[0]] += 1
        elif what == "said":
            self.said[said[0]] = said[1]
        elif what == "told":
            assert said[1] >= self.told[said[0]], "numbers of events do not ascend"
            self.told[said[0]] = said[1]
        else:
            {"made": self.made, "approved": self.approved}[what].add(said[0])

    def look(self) -> None:
        """Have a hub go on with all of it, and compare what there is then with what was said."""
        hub = Hub(working.system_with(lambda what: self.take("ran", what)), self.url)
        agency = working.the_agency(hub)
        self.figures["gone on with"] += hub.recover()
        records = {record.id: record for record in hub.threads(agency)}
        assert self.made <= records.keys(), "a thread is lost"
        children = Counter(r.parent["threadId"] for r in records.values() if r.parent)
        for id in records.keys() - self.ended:
            self.settle(hub, agency, hub.thread(agency, id))
        for id in self.said.keys() - self.ended:
            thread = hub.thread(agency, id)
            users = [text for role, text in chat(thread) if role == "user"]
            assert users == [self.said[id]], "a message is lost, or there twice"
            if self.said[id].startswith("split"):
                records = {record.id: record for record in hub.threads(agency)}
                children = Counter(r.parent["threadId"] for r in records.values() if r.parent)
                assert children[id] == 2, "a child is lost, or there twice"
                links = thread.state()["state"]["subagents"]
                assert [link["status"] for link in links] == ["completed"] * 2
        for id in {record.id for record in hub.threads(agency)} - self.ended:
            events = hub.events(agency, id)
            assert is_dense(events)
            assert len(events) >= self.told[id], "an event that was told is lost"
            self.ended.add(id)
        hub.close()
        assert not [what for what, count in self.ran.items() if count > 1], "a call ran twice"

    def settle(self, hub: Hub, agency: Agency, thread: Thread) -> None:
        """Answer as people would, until the thread has ended."""
        if thread.status == "registered":
            assert thread.record.id not in self.said, "an acknowledged message is lost"
            return
        self.figures["not at an end"] += thread.status in ("running", "paused")
        end = time.monotonic() + PATIENCE
        while thread.status != "completed":
            assert time.monotonic() < end, (thread, thread.session.interrupt)
            assert thread.status in ("running", "paused"), thread
            waiting = thread.session.interrupt if thread.status == "paused" else None
            if thread.run.get("reason") == "error":
                assert thread.session.current_run is None, "it was left to people"
            if waiting is not None and thread.run.get("reason") == "hitl":
                self.answer(thread, waiting)
            elif thread.run.get("reason") == "subagent":
                for record in hub.threads(agency):
                    if record.parent and record.parent["threadId"] == thread.record.id:
                        self.settle(hub, agency, hub.thread(agency, record.id))
            time.sleep(0.005)
        assert chat(thread)[-1] == ("assistant", "done")
        self.figures["ended"] += 1

    def answer(self, thread: Thread, waiting: Any) -> None:
        """What is known of calls in doubt is said, and others are approved."""
        doubtful = doubtful_calls(waiting)
        answers = {}
        for request in waiting.action_requests:
            if request.tool_call_id in doubtful:
                self.figures["in doubt"] += 1
                lacks = self.chance.choice([DID_NOT_RUN, RETRY])
                answers[request.tool_call_id] = (
                    RAN if self.ran[request.arguments["what"]] else lacks
                )
        if not answers:
            assert thread.record.id not in self.approved, "an answer is lost"
        with contextlib.suppress(Exception):
            thread.approve(True, answers=answers, by="test")


def survive(
    kills: int, seed: int, store: Callable[[], AbstractContextManager[str]]
) -> Counter[str]:
    """Stores whose processes are killed, as often; figures of what happened."""
    chance, figures = random.Random(seed), Counter[str]()
    while figures["kills"] < kills:
        with store() as url:
            witness = Witness(url, chance, figures)
            for _ in range(min(KILLS_OF_A_STORE, kills)):
                for _ in range(chance.randint(1, MOST_IN_A_ROW)):
                    witness.one_life()
                witness.look()
                if figures["kills"] >= kills:
                    break
        figures["threads"] += len(witness.made)
        figures["messages"] += len(witness.said)
        figures["approvals"] += len(witness.approved)
        figures["runs of tools"] += witness.ran.total()
    return figures


def test_a_few_kills_lose_nothing_and_run_nothing_twice() -> None:
    figures = survive(4, 11, new_file)
    assert figures["ended"]


@pytest.mark.soak
def test_two_hundred_kills_lose_nothing_and_run_nothing_twice() -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    print(survive(200, seed, new_file))


@pytest.mark.soak
def test_forty_kills_over_postgresql_lose_nothing_and_run_nothing_twice(postgres_url: str) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    print(survive(40, seed, lambda: contextlib.nullcontext(postgres_url)))
