"""What is about to begin takes room, as what has begun does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.hub import Schedule, Thread
from sagents_nb.hub.limits import Limits, TooMany
from tests.hub.world import World, rest

ONE = Limits(runs=1)
PAY = sa.ToolCall("c1", "pay", {"amount": 1})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(f"sqlite:///{tmp_path / 'hub.db'}")
    yield made
    made.close()


def begin(thread: Thread) -> None:
    thread.invoke([sa.Message.user("go")])


def test_what_is_about_to_begin_takes_room(world: World) -> None:
    with (
        world.hub.room(world.agency, ONE),
        pytest.raises(TooMany, match="1 runs are active"),
        world.hub.room(world.agency, ONE),
    ):
        pass


def test_the_room_of_what_did_not_begin_is_given_back(world: World) -> None:
    with pytest.raises(RuntimeError), world.hub.room(world.agency, ONE):
        raise RuntimeError("it fails to begin")
    world.hub.check_room(world.agency, ONE)


def test_what_has_just_begun_is_counted_once(world: World) -> None:
    two = Limits(runs=2)
    thread = world.thread(world.held("done"))
    with world.hub.room(world.agency, two, thread):
        begin(thread)
        world.hub.check_room(world.agency, two)
        with pytest.raises(TooMany):
            world.hub.check_room(world.agency, ONE)
    with pytest.raises(TooMany):
        world.hub.check_room(world.agency, ONE)
    world.go_on.set()
    assert rest(thread) == "completed"
    world.hub.check_room(world.agency, ONE)


def test_a_thread_that_runs_is_told_more_where_no_further_one_begins(world: World) -> None:
    thread = world.thread(world.held("done"), "more")
    begin(thread)
    with world.hub.room(world.agency, ONE, thread):
        begin(thread)
    world.go_on.set()
    assert rest(thread) == "completed"


def test_a_guest_takes_room_and_finds_what_is_about_to_begin(world: World) -> None:
    with world.hub.room(world.agency, ONE), pytest.raises(TooMany):
        world.hub.guest(world.agency, "clerk", ONE)
    with world.hub.guest(world.agency, "clerk", ONE), pytest.raises(TooMany):
        world.hub.check_room(world.agency, ONE)


def test_a_schedule_that_is_begun_by_hand_leaves_nothing_where_there_is_no_room(
    world: World,
) -> None:
    seldom = Schedule(name="Seldom", agent_type="clerk", type="interval", interval=1e6)
    scheduler = world.hub.scheduler
    id = scheduler.create(world.agency, seldom).id
    with world.hub.room(world.agency, ONE), pytest.raises(TooMany):
        scheduler.trigger(world.agency, id, ONE)
    assert scheduler.runs(world.agency, id) == []
    world.says("done")
    scheduler.trigger(world.agency, id, ONE)
    assert len(scheduler.runs(world.agency, id)) == 1


def test_what_waits_counts_before_it_is_kept_and_no_more_once_it_is_answered(
    world: World,
) -> None:
    last = Limits(approvals=1)
    thread = world.thread(PAY, world.held("paid"))
    begin(thread)
    assert rest(thread) == "paused"
    with pytest.raises(TooMany):
        world.hub.check_room(world.agency, last)
    thread.approve(True, by="test")
    world.hub.check_room(world.agency, last)  # whether or not that it runs is kept by now
    world.go_on.set()
    assert rest(thread) == "completed"
