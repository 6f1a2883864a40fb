"""Of what was told of a thread the newest stays, and who asks for more is told so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sagents_nb as sa
from sagents_nb.errors import ConfigurationError
from sagents_nb.hub import AgentSystem, Hub, event_log
from sagents_nb.hub.event_log import EventLog, ThreadEvent
from sagents_nb.hub.vocabulary import FORGOTTEN, REQUEST_ACCEPTED, RUN_TICK, SPAWNED
from sagents_nb.runtime.thread import runtime
from sagents_nb.store.database.thread import Database


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    store = sa.ConversationStore(url)
    store.create_conversation(id="t1")
    yield store.database
    store.close()


def log_of(database: Database, events_kept: int = 20) -> EventLog:
    return EventLog(database, "t1", events_kept=events_kept)


def tell(log: EventLog, *types: str) -> None:
    for number, type in enumerate(types):
        data = {"runId": "r", "step": number, "idempotencyKey": f"k{number}"}
        runtime.call(log.append, [(type, data)])
        log.wait()


def told(database: Database, since: int = 0) -> list[ThreadEvent]:
    return database.run(lambda c: event_log.read(c, database.tables, "t1", since))


def test_the_newest_stay_and_their_numbers_go_on(database: Database) -> None:
    log = log_of(database)
    tell(log, *["a"] * 50)
    found = [event.seq for event in told(database, 30)]
    assert found == list(range(31, 51))
    assert log_of(database).last == 50
    tell(log, "b")
    assert told(database, 50)[0].seq == 51


def test_who_asks_for_what_is_forgotten_is_told_so_and_goes_on_behind_it(
    database: Database,
) -> None:
    tell(log_of(database), *["a"] * 50)
    first, *others = told(database, 7)
    assert (first.type, first.seq, first.data) == (FORGOTTEN, 30, {"until": 30})
    assert [event.seq for event in others] == list(range(31, 51))
    assert told(database, 30)[0].type == "a"


def test_what_says_how_a_thread_goes_on_is_never_forgotten(database: Database) -> None:
    log = log_of(database)
    tell(log, RUN_TICK, REQUEST_ACCEPTED, "run.started", SPAWNED, *["a"] * 50)
    again = log_of(database)
    assert (again.run_id, again.ticks) == ("r", 1)
    assert again.accepted == {"k1"}
    assert again.status == "run.started"
    assert [event.data["step"] for event in again.read_types([SPAWNED])] == [3]


def test_requests_and_children_stay_known_and_are_told_no_more(database: Database) -> None:
    log = log_of(database)
    tell(log, REQUEST_ACCEPTED, SPAWNED, *["a"] * 50, RUN_TICK, *["a"] * 30)
    again = log_of(database)
    assert again.accepted == {"k0"}
    assert len(again.read_types([SPAWNED])) == 1
    assert {event.type for event in told(database)} == {FORGOTTEN, "a", RUN_TICK}


def test_what_was_used_is_known_of_what_is_forgotten_too(database: Database) -> None:
    log = log_of(database)
    for _ in range(30):
        used = {"usage": {"inputTokens": 2, "outputTokens": 1, "costUsd": 0.5}}
        runtime.call(log.append, [("model.completed", used), ("a", {})])
        log.wait()
    tables = database.tables
    row = database.run(lambda c: c.execute(tables.hub_standings.select()).one())
    assert (row.model_calls, row.input_tokens, row.output_tokens, row.cost_usd) == (30, 60, 30, 15)


def test_fewer_than_a_thousand_are_refused_for_a_reader_might_miss_some() -> None:
    with pytest.raises(ConfigurationError, match="events_kept"):
        Hub(AgentSystem("demo"), "sqlite://", events_kept=999)
