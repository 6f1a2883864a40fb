"""What a post and its run cost a hub, in counts: no machine is slow at these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import Thread
from sagents_nb.hub.web.agent_routes import invoke
from sagents_nb.hub.web.bodies import ChatMessage, Invocation
from sagents_nb.hub.web.call import Call
from sagents_nb.hub.web.settings import Settings
from sagents_nb.sql import driver_of
from tests.hub.world import World, rest

SETTINGS = Settings(token="none")


@pytest.fixture
def statements(world: World) -> Iterator[list[str]]:
    """What SQLite is told, statement by statement."""
    told: list[str] = []
    database = world.hub.store.database
    database.run(lambda connection: driver_of(connection).set_trace_callback(told.append))
    yield told
    database.run(lambda connection: driver_of(connection).set_trace_callback(None))


def post(world: World, thread: Thread) -> None:
    """Say something to it, as a client's request does."""
    places = {"agency": world.agency.id, "thread": thread.record.id}
    said = Invocation(messages=[ChatMessage(content="go")])
    invoke(
        Call(world.hub, SETTINGS, places, query={}, headers={}, client="", codes=None, body=said)
    )


def second_turn(world: World, statements: list[str]) -> list[str]:
    """What SQLite is told of a post and its run, where there was one before."""
    thread = world.thread("fine", "fine")
    for _ in range(2):
        world.hub.store.database.run(lambda connection: None)
        statements.clear()
        post(world, thread)
        rest(thread)
    return list(statements)


def begins(statements: list[str], *words: str) -> int:
    """How many of them begin so, in whole words."""
    return sum(text.split()[: len(words)] == list(words) for text in statements)


def test_a_post_and_its_run_are_so_many_transactions_at_most(
    world: World, statements: list[str]
) -> None:
    found = second_turn(world, statements)
    # Whether it may begin, what was said, the answer, and what is told: that it runs, asks the
    # model, has its answer and has ended. What comes at one moment is in one of these.
    assert begins(found, "BEGIN") <= 7
    assert begins(found, "SAVEPOINT") == 2  # of what people see, which fails alone


def test_a_post_to_a_thread_that_is_open_looks_for_no_agency(
    world: World, statements: list[str]
) -> None:
    found = second_turn(world, statements)
    assert [text for text in found if "hub_agencies" in text] == []


def test_an_event_is_one_statement(world: World, statements: list[str]) -> None:
    found = second_turn(world, statements)
    of_events = [text for text in found if "hub_events" in text]
    assert begins(of_events, "INSERT") == len(of_events) == 5
    # Whose it is, once for each batch, beside what the journal asks of it.
    batches = sum("checksum" not in text and "FROM sagents_leases" in text for text in found)
    assert batches <= 4


def test_a_thread_of_a_deleted_agency_is_gone_though_it_was_open(world: World) -> None:
    thread = world.thread("fine")
    post(world, thread)
    rest(thread)
    world.hub.delete_agency(world.agency)
    with pytest.raises(sa.errors.NotFound):
        post(world, thread)


def test_of_another_agency_an_open_thread_is_not_there(world: World) -> None:
    thread, (other, _) = world.thread("fine"), world.hub.create_agency()
    world.hub.create_thread(other, "clerk")
    places: dict[str, Any] = {"agency": other.id, "thread": thread.record.id}
    call = Call(world.hub, SETTINGS, places, query={}, headers={}, client="", codes=None)
    assert call.agency.id == other.id
    with pytest.raises(sa.errors.NotFound):
        call.thread  # noqa: B018
