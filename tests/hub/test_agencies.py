"""Agencies: their names, the secrets that open them, and what is another's."""

from __future__ import annotations

import pytest

import sagents_nb as sa
from sagents_nb.hub import Hub, Thread
from sagents_nb.hub.agencies import NameTaken, digest_of
from tests.hub.world import World
from tests.talking import in_threads, until


@pytest.mark.spec("H3.5.1")
def test_an_agency_has_a_name_of_its_own_or_a_made_one(stored_world: World) -> None:
    hub = stored_world.hub
    weather, _ = hub.create_agency("Weather")
    assert stored_world.agency.name == f"agency-{stored_world.agency.id}"
    assert [agency.id for agency in hub.agencies()] == [weather.id, stored_world.agency.id]
    assert hub.agency(weather.id) == weather


@pytest.mark.spec("H3.5.1")
def test_of_eight_who_want_a_name_at_once_one_gets_it(stored_world: World) -> None:
    outcomes = in_threads(8, lambda n: stored_world.hub.create_agency("Weather"))
    refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(refused) == 7
    assert all(isinstance(error, NameTaken) for error in refused)


@pytest.mark.parametrize("name", ["", " ", "x" * 101])
def test_a_name_says_something_and_is_short(world: World, name: str) -> None:
    with pytest.raises(sa.ConfigurationError, match="1 to 100 characters"):
        world.hub.create_agency(name)


def test_a_secret_opens_its_agency_until_there_is_another_one(stored_world: World) -> None:
    hub, agency, before = stored_world.hub, stored_world.agency, stored_world.secret
    assert hub.agency_of_secret(digest_of(before)) == agency.id
    after = hub.new_secret(agency)
    assert hub.agency_of_secret(digest_of(before)) is None
    assert hub.agency_of_secret(digest_of(after)) == agency.id
    assert before not in str(hub.agencies())
    assert after not in str(hub.agencies())


def test_what_is_anothers_is_not_there(stored_world: World) -> None:
    hub = stored_world.hub
    thread = stored_world.thread("hi")
    other, _ = hub.create_agency()
    hub.save_blueprint(stored_world.agency, {"name": "own", "prompt": "Be."})
    id = thread.record.id
    for ask in (
        lambda: hub.thread(other, id),
        lambda: hub.events(other, id),
        lambda: hub.delete_thread(other, id),
        lambda: hub.set_variables(other, thread, {"x": 1}),
        lambda: hub.create_thread(other, "own"),
        lambda: hub.blueprint_versions(other, "own"),
        lambda: hub.delete_blueprint(other, "own"),
        lambda: hub.thread(stored_world.agency, "no-thread"),
    ):
        with pytest.raises(sa.NotFound):
            ask()
    assert hub.threads(other) == []
    assert [kept.blueprint.name for kept in hub.blueprints(other)] == ["clerk"]
    assert hub.thread(stored_world.agency, id) is thread
    assert thread.record.variables == {}


def test_what_was_deleted_is_gone_with_all_that_it_had(stored_world: World) -> None:
    world, hub = stored_world, stored_world.hub
    thread = world.thread("hi")
    thread.invoke([sa.Message.user("a")], {"/a.md": "x"})
    hub.save_blueprint(world.agency, {"name": "own", "prompt": "Be."})
    hub.delete_agency(world.agency)
    assert hub.agencies() == []
    for ask in (
        lambda: hub.agency(world.agency.id),
        lambda: hub.thread(world.agency, thread.record.id),
        lambda: hub.create_thread(world.agency, "clerk"),
        lambda: hub.save_blueprint(world.agency, {"name": "own", "prompt": "Be."}),
        lambda: hub.new_secret(world.agency),
    ):
        with pytest.raises(sa.NotFound):
            ask()
    hub.close()
    world.hub = Hub(world.system, world.url)
    tables = world.hub.store.database.tables
    for table in (tables.hub_agencies, tables.hub_blueprints, tables.hub_events):
        rows = world.hub.store.database.run(lambda c, t=table: c.execute(t.select()).all())
        assert rows == []


def test_nothing_begins_in_an_agency_that_is_being_deleted(stored_world: World) -> None:
    world, hub = stored_world, stored_world.hub
    world.says(*["Done."] * 200)
    began: list[Thread] = []

    def begin(number: int) -> None:
        if number == 0:
            until(lambda: len(began) > 10)
            hub.delete_agency(world.agency)
            return
        for _ in range(20):
            began.append(hub.create_thread(world.agency, "clerk"))

    outcomes = in_threads(6, begin)
    assert {type(outcome) for outcome in outcomes[1:]} == {sa.NotFound}
    tables = hub.store.database.tables
    left = hub.store.database.run(lambda c: c.execute(tables.conversations.select()).all())
    assert left == []
    assert all(thread.is_gone for thread in began)
