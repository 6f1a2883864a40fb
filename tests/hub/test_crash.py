"""kill -9 of a process in the middle of a run: its hub's threads go on in another."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from sagents_nb.hub import Hub
from tests.hub import crashing
from tests.hub.world import chat, is_dense, say
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")


def heard_until_killed(url: str, first: int, after: int) -> Iterator[tuple[str, int]]:
    """What a process said that is killed once it has said so much."""
    here, there = crashing.fork_server().Pipe()
    process = crashing.fork_server().Process(target=crashing.live, args=(there, url, first))
    process.start()
    there.close()
    try:
        for number in range(10_000):
            if number == after:
                process.kill()
            yield here.recv()
    except (EOFError, ConnectionResetError):
        process.join(PATIENCE)
    assert process.exitcode == -9, "it ended by itself"


@pytest.mark.spec("H3.1.8")
def test_what_was_acknowledged_is_there_after_a_kill_and_the_thread_goes_on(url: str) -> None:
    chance = random.Random(4)
    ran: Counter[int] = Counter()
    said: set[int] = set()
    last = first = 0
    for after in [1, 3, *(chance.randint(4, 60) for _ in range(4))]:
        for what, number in heard_until_killed(url, first, after):
            if what == "ran":
                ran[number] += 1
            elif what == "said":
                said.add(number)
            else:
                last = max(last, number)
        hub = Hub(crashing.system_with(lambda number: None), url)
        thread = crashing.the_thread(hub)
        assert thread.status in ("registered", "paused", "completed", "canceled")
        assert thread.status != "registered" or not said
        users = [int(text) for role, text in chat(thread) if role == "user"]
        assert users == list(range(len(users))), "a message is lost, or there twice"
        assert said <= set(users)
        events = hub.events(thread.session.scope, thread.record.id)
        assert is_dense(events)
        assert len(events) >= last, "an event that was told is lost"
        first, last = len(users), len(events)
        hub.close()
    assert max(ran.values()) == 1, "a call ran twice"
    go_on(url, first)


def test_a_call_whose_result_was_told_is_not_asked_about_after_a_kill(url: str) -> None:
    process = crashing.fork_server().Process(target=crashing.die_as_it_is_told, args=(url,))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -9, "it ended by itself"
    hub = Hub(crashing.system_that_looks_and_holds(), url)
    thread = crashing.the_thread(hub)
    waiting = thread.session.interrupt
    assert waiting is not None
    assert waiting.type == "in_doubt"
    assert waiting.tool_call_ids == ["c2"]
    hub.close()


def go_on(url: str, number: int) -> None:
    """The thread does what it is told, and tells it."""
    hub = Hub(crashing.system_with(lambda number: None), url)
    thread = crashing.the_thread(hub)
    if thread.session.interrupt is not None:
        thread.cancel()
    before = hub.events(thread.session.scope, thread.record.id)
    assert say(thread, str(number), idempotency_key=str(number)) == "completed"
    assert chat(thread)[-1] == ("assistant", "done")
    assert say(thread, str(number), idempotency_key="0") == "completed"
    events = hub.events(thread.session.scope, thread.record.id)
    assert events[: len(before)] == before
    assert is_dense(events)
    assert events[-1].type == "agent.completed"
    assert chat(thread)[-1] == ("assistant", "done")
    hub.close()
