"""A copy of the store of a hub that runs, in another hub: all is there, and goes on once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import Hub, Schedule
from sagents_nb.hub.agencies import digest_of
from tests.hub.world import World, chat, is_dense, rest
from tests.talking import call, until


@pytest.fixture
def copied(world: World, tmp_path: Path) -> Any:
    """Hubs over copies of the world's store, which goes on all the while."""
    made: list[Hub] = []

    def copy(*turns: Any) -> Hub:
        path = tmp_path / f"copy{len(made)}.db"
        sa.ConversationStore.backup(world.url.removeprefix("sqlite:///"), path)
        world.says(*turns)
        made.append(Hub(world.system_of(), path))
        return made[-1]

    yield copy
    for hub in made:
        hub.close()


def test_what_runs_and_waits_goes_on_in_a_copy_while_the_first_hub_has_it_too(
    world: World, copied: Any
) -> None:
    waits = world.thread(call("pay", "p1", amount=5))
    waits.invoke([sa.Message.user("pay")], {"/note.txt": "kept"}, "key")
    rest(waits)
    ran = world.thread([call("look", "l1", at="sea"), call("hold", "h1")], "done")
    ran.invoke([sa.Message.user("go")])
    world.holds.wait()
    until(lambda: "tool.output" in world.told(ran))
    hub = copied("the copy is done", "the copy is done")
    [agency] = hub.agencies()
    assert hub.doors.of(world.hub.store.database.owner.text) is None
    hub.recover()
    there = hub.thread(agency, ran.record.id)
    interrupt = there.session.interrupt
    assert interrupt is not None
    assert (interrupt.type, interrupt.tool_call_ids) == ("in_doubt", ["h1"])
    there.approve(True, answers={"h1": "did not run"}, by="test")
    assert rest(there) == "completed"
    assert ("tool", "seen sea") in chat(there)
    assert world.ran == ["look sea"], "it ran again"
    asked = hub.thread(agency, waits.record.id)
    asked.approve(True, by="test")
    assert rest(asked) == "completed"
    assert asked.state()["state"]["files"] == {"/note.txt": "kept"}
    assert is_dense(hub.events(agency, waits.record.id))
    assert asked.has_accepted("key")
    assert waits.status == "paused", "the first hub has its own"
    world.go_on.set()
    assert rest(ran) == "completed"


def test_all_that_an_agency_has_is_in_a_copy(world: World, copied: Any) -> None:
    agency = world.agency
    world.hub.save_variables(agency, {"city": "Oslo"})
    world.hub.save_blueprint(agency, {"name": "clerk", "description": "Pays."})
    daily = Schedule(name="Daily", agent_type="clerk", type="cron", cron="0 7 * * *")
    made = world.hub.scheduler.create(agency, daily)
    hub = copied()
    assert hub.agencies() == [agency]
    assert hub.agency_of_secret(digest_of(world.secret)) == agency.id
    assert hub.variables(agency) == ["city"]
    assert hub.scheduler.schedules(agency) == [made]
    assert [(b.blueprint.description, b.version) for b in hub.blueprints(agency)] == [("Pays.", 1)]
