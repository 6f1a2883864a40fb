"""A hub of an older version that was stopped, or killed, in the middle of runs: today's goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sagents_nb.hub import Agency, Hub, Thread
from tests.hub import released
from tests.hub.houses import still
from tests.hub.world import chat, is_dense, say

RELEASED = ["0004", "0005", "0006"]


@pytest.fixture(params=[(v, e) for v in RELEASED for e in released.ENDINGS], ids="-".join)
def hub(url: str, request: pytest.FixtureRequest) -> Iterator[Hub]:
    """Today's hub over what that one has left."""
    released.load(url, *request.param)
    made = Hub(released.system_of(), url)
    yield made
    made.close()


def opened(hub: Hub) -> tuple[Agency, list[Thread]]:
    """The agency and its threads, the oldest first."""
    [agency] = hub.agencies()
    records = sorted(hub.threads(agency), key=lambda each: each.created_at)
    return agency, [hub.thread(agency, each.id) for each in records]


def test_what_runs_goes_on_once_and_what_waits_still_waits(hub: Hub) -> None:
    [agency] = hub.agencies()
    assert [each[1].title for each in hub.waiting()] == ["pay"]
    assert hub.spent(agency).model_calls == 2
    assert hub.recover() == 1
    agency, (done, waits, ran) = opened(hub)
    assert still(ran) == "completed"
    assert chat(ran) == [("user", "hold"), ("assistant", "done")]
    assert chat(done) == [("user", "hello"), ("assistant", "done")]
    assert waits.status == "paused"
    waits.approve(True, by="test")
    assert still(waits, "completed")
    assert ("tool", "paid 5") in chat(waits)
    assert hub.waiting() == []
    for thread in (done, waits, ran):
        thread.log.wait()
        assert is_dense(hub.events(agency, thread.record.id))
    spent = hub.spent(agency)
    assert (spent.threads, spent.model_calls, spent.cost_usd) == (3, 4, 0.75)


def test_all_else_that_it_had_is_there(hub: Hub) -> None:
    agency, (done, _, _) = opened(hub)
    assert agency.name == "Post"
    assert hub.variables(agency) == ["city"]
    assert [(b.blueprint.name, b.version) for b in hub.blueprints(agency)] == [("clerk", 1)]
    [daily] = hub.scheduler.schedules(agency)
    assert daily.status == "active"
    assert done.state()["state"]["files"] == {"/note.txt": "hello"}
    before = len(chat(done))
    assert say(done, "again", idempotency_key="key hello") == "completed"
    assert len(chat(done)) == before
