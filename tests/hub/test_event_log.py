"""The events of one thread: kept in their order, then told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import StoreError
from sagents_nb.hub import event_log
from sagents_nb.hub.event_log import EventLog, ThreadEvent
from sagents_nb.runtime.thread import runtime
from sagents_nb.store.database.thread import Database
from tests.talking import until

Heard = list[ThreadEvent | None]


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    store = sa.ConversationStore(url)
    store.create_conversation(id="t1")
    yield store.database
    store.close()


def append(log: EventLog, *types: str) -> None:
    runtime.call(log.append, [(type, {"of": type}) for type in types])


def kept(log: EventLog, database: Database, since: int = 0) -> list[ThreadEvent]:
    log.wait()
    return database.run(lambda c: event_log.read(c, database.tables, "t1", since))


def failing(*args: Any, **options: Any) -> Future[int]:
    future: Future[int] = Future()
    future.set_exception(StoreError("The disk is full."))
    return future


def heard_of(log: EventLog) -> Heard:
    heard: Heard = []
    runtime.call(log.listen, heard.append)
    return heard


@pytest.mark.spec("H3.1.8")
def test_numbers_ascend_from_one_also_in_a_log_that_is_opened_again(database: Database) -> None:
    for round in range(3):
        log = EventLog(database, "t1")
        assert log.last == 3 * round
        append(log, "a", "model.delta", "b")
        append(log, "c")
        assert [event.seq for event in kept(log, database)] == list(range(1, 3 * round + 4))
    assert [event.type for event in kept(log, database, 7)] == ["b", "c"]


def test_a_piece_has_the_number_of_the_last_and_is_not_kept(database: Database) -> None:
    log = EventLog(database, "t1")
    heard = heard_of(log)
    append(log, "model.delta", "a", "model.delta")
    log.wait()
    append(log, "model.delta")
    append(log, "b")
    log.wait()
    assert [(e.type, e.seq) for e in heard if e is not None] == [
        ("model.delta", 0),
        ("a", 1),
        ("model.delta", 1),
        ("model.delta", 1),
        ("b", 2),
    ]
    assert [event.type for event in kept(log, database)] == ["a", "b"]


def test_what_is_told_is_kept_before(database: Database) -> None:
    log = EventLog(database, "t1")
    seen: list[bool] = []

    def look(event: ThreadEvent | None) -> None:
        assert event is not None
        found: Future[Any] = database.submit(
            lambda c: event_log.read(c, database.tables, "t1", event.seq - 1)[0] == event
        )
        seen.append(found.result())

    runtime.call(log.listen, look)
    append(log, "a", "b")
    append(log, "c")
    log.wait()
    assert seen == [True] * 3


def test_what_cannot_be_kept_is_kept_with_what_comes_next(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventLog(database, "t1")
    heard = heard_of(log)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "submit", failing)
        append(log, "a", "model.delta")
        log.wait()
        until(lambda: "could not be kept" in caplog.text)
    assert heard == []
    append(log, "b")
    until(lambda: len(heard) == 2)
    assert [event.type for event in kept(log, database)] == ["a", "b"]
    assert heard == kept(log, database)


def test_the_end_comes_after_all_that_was_told(database: Database) -> None:
    log = EventLog(database, "t1")
    heard = heard_of(log)

    def all_at_once() -> None:
        log.append([("a", {}), ("b", {})])
        log.end()

    runtime.call(all_at_once)
    log.wait()
    assert [event and event.type for event in heard] == ["a", "b", None]


def test_the_end_comes_also_where_nothing_can_be_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EventLog(database, "t1")
    heard = heard_of(log)

    monkeypatch.setattr(Database, "submit", failing)
    append(log, "a")
    runtime.call(log.end)
    until(lambda: heard == [None])


def test_a_listener_that_raises_keeps_nothing_from_the_others(database: Database) -> None:
    log = EventLog(database, "t1")

    def raises(event: ThreadEvent | None) -> None:
        raise RuntimeError("odd")

    runtime.call(log.listen, raises)
    heard = heard_of(log)
    append(log, "a")
    runtime.call(log.leave, raises)
    runtime.call(log.leave, raises)
    append(log, "b")
    log.wait()
    assert [event and event.type for event in heard] == ["a", "b"]


def test_an_answer_has_so_many_events_and_the_next_goes_on_there(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "MOST_READ", 2)
    log = EventLog(database, "t1")
    append(log, *"abcde")
    assert [event.type for event in kept(log, database)] == ["a", "b"]
    assert [event.type for event in kept(log, database, 4)] == ["e"]
