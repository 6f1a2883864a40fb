"""Schedules: when they begin, that each time begins once, and what becomes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.hub import Agency, Hub, Schedule, schedules
from sagents_nb.serialization import to_data
from tests.hub.houses import a_hub
from tests.session.gates import Gate
from tests.talking import in_threads, until

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
ONCE = {"name": "One", "agent_type": "guide", "type": "once"}
OFTEN = {"name": "Often", "agent_type": "guide", "type": "interval", "interval": 3600.0}


def due(hub: Hub, moment: datetime) -> list[schedules.ScheduleRun]:
    """What is claimed at that moment."""
    database = hub.store.database
    claimed = database.run(lambda c: schedules.claim(c, database.tables, moment))
    return [run for run, _ in claimed]


def runs(hub: Hub, agency: Agency, id: str) -> list[str]:
    return [run.status for run in hub.scheduler.runs(agency, id)]


@pytest.mark.spec("H3.5.2")
@pytest.mark.parametrize(
    ("fields", "following"),
    [
        ({"type": "once", "run_at": NOON + timedelta(days=1)}, NOON + timedelta(days=1)),
        ({"type": "once", "run_at": NOON}, None),
        ({"type": "interval", "interval": 90.0}, NOON + timedelta(seconds=90)),
        ({"type": "cron", "cron": "30 6 * * *"}, datetime(2026, 11, 28, 6, 30, tzinfo=UTC)),
        (
            {"type": "cron", "cron": "30 6 * * *", "timezone": "Asia/Tokyo"},
            datetime(2026, 11, 27, 21, 30, tzinfo=UTC),
        ),
    ],
)
def test_each_type_says_when_it_begins_next(fields: Any, following: datetime | None) -> None:
    assert Schedule(name="x", agent_type="guide", **fields).next_after(NOON) == following


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "once"},
        {"type": "once", "cron": "* * * * *"},
        {"type": "once", "run_at": datetime(2026, 11, 27)},
        {"type": "cron", "cron": "every day"},
        {"type": "cron", "cron": "0 0 30 2 *"},
        {"type": "cron", "cron": "* * * * * *"},
        {"type": "cron", "cron": "* * * *"},
        {"type": "cron", "cron": "* * * * *", "timezone": "Mars/Olympus"},
        {"type": "cron", "cron": "* * * * *", "timezone": "../../etc/passwd"},
        {"type": "interval", "interval": 0},
        {"type": "interval", "interval": float("inf")},
        {"type": "interval", "interval": 1e12},
        {"type": "once", "run_at": datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))},
        {"type": "once", "run_at": datetime(9999, 12, 31, tzinfo=UTC)},
        {"type": "interval", "interval": 60, "max_retries": 4},
        {"type": "interval", "interval": 60, "overlap": "stack"},
        {"type": "weekly", "interval": 60},
        {"type": "interval", "interval": 60, "name": " "},
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(fields: Any) -> None:
    with pytest.raises(sa.ConfigurationError) as refused:
        schedules.schedule_of({"name": "x", "agent_type": "guide", **fields})
    assert str(refused.value).endswith(".")


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
    st.sampled_from(["*/7 * * * *", "15 2 * * *", "0 12 1 * *", "59 23 * * 0"]),
    st.sampled_from(["UTC", "Europe/Oslo", "America/New_York", "Australia/Lord_Howe"]),
)
def test_a_following_moment_is_always_later_also_where_clocks_change(
    moment: datetime, cron: str, zone: str
) -> None:
    schedule = Schedule(name="x", agent_type="g", type="cron", cron=cron, timezone=zone)
    first = moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    second = schedule.next_after(first)
    third = schedule.next_after(second) if second else None
    assert second is not None
    assert third is not None
    assert first < second < third


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": "cron", "cron": "0 7 * * 1-5"}, "At 07:00 on Monday through Friday, UTC"),
        (
            {"type": "cron", "cron": "*/5 * * * *", "timezone": "Europe/Oslo"},
            "Every fifth minute of every hour, Europe/Oslo",
        ),
        ({"type": "interval", "interval": 3600.0}, "Every hour"),
        ({"type": "interval", "interval": 5400.0}, "Every 90 minutes"),
        ({"type": "interval", "interval": 172_800}, "Every 2 days"),
        ({"type": "interval", "interval": 1.5}, "Every 1.5 seconds"),
        ({"type": "once", "run_at": NOON}, "Once, at 2026-11-27 12:00 UTC"),
    ],
)
def test_a_schedule_says_in_words_when_it_begins(fields: Any, words: str) -> None:
    assert Schedule(name="x", agent_type="guide", **fields).in_words() == words


def field(low: int, high: int, *more: str) -> st.SearchStrategy[str]:
    """One of an expression: all, a step, a range, some, or what else it may be."""
    one = st.integers(low, high).map(str)
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(
        lambda ends: f"{min(ends)}-{max(ends)}"
    )
    step = st.integers(1, high).map(lambda n: f"*/{n}")
    some = st.lists(one, min_size=2, max_size=4).map(",".join)
    return st.one_of(st.just("*"), one, span, step, some, *map(st.just, more))


EXPRESSIONS = st.tuples(
    field(0, 59),
    field(0, 23),
    field(1, 31, "L", "LW"),
    field(1, 12, "jan", "FEB-apr"),
    field(0, 7, "mon", "TUE-fri", "5L", "2#1", "sun,WED"),
).map(" ".join)


@given(EXPRESSIONS)
def test_every_expression_that_is_taken_can_be_said_in_words(cron: str) -> None:
    try:
        schedule = Schedule(name="x", agent_type="g", type="cron", cron=cron)
    except sa.ConfigurationError:  # a day that no month has
        return
    assert schedule.in_words().endswith(", UTC")


def test_one_that_is_over_goes_on_with_a_time_to_come_and_else_stays_over(path: Path) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        soon = datetime.now(UTC) + timedelta(hours=1)
        kept = hub.scheduler.create(agency, Schedule(**ONCE, run_at=soon))
        database = hub.store.database
        passed = to_data(Schedule(**ONCE, run_at=NOON - timedelta(days=999)))
        over = {"data": passed, "status": "disabled", "next_at": None}
        database.run(lambda c: c.execute(database.tables.hub_schedules.update().values(over)))
        renamed = hub.scheduler.change(agency, kept.id, {"name": "Two"})
        assert (renamed.schedule.name, renamed.status) == ("Two", "disabled")
        again = hub.scheduler.change(agency, kept.id, {"run_at": soon})
        assert (again.status, again.next_at) == ("active", soon)
        hub.scheduler.change(agency, kept.id, status="paused")
        assert hub.scheduler.change(agency, kept.id, {"name": "One"}).status == "paused"


def test_the_newest_time_of_each_schedule_is_known_at_once(path: Path) -> None:
    with a_hub(path, {"guide": ["Sun.", "Rain.", "Snow."]}) as hub:
        agency, _ = hub.create_agency()
        other, _ = hub.create_agency()
        often = hub.scheduler.create(agency, Schedule(**OFTEN))
        hub.scheduler.create(agency, Schedule(**OFTEN))
        elsewhere = hub.scheduler.create(other, Schedule(**OFTEN))
        hub.scheduler.trigger(other, elsewhere.id)
        hub.scheduler.trigger(agency, often.id)
        newest = hub.scheduler.trigger(agency, often.id)
        assert {id: run.id for id, run in hub.scheduler.last_runs(agency).items()} == {
            often.id: newest.id
        }


@pytest.mark.spec("H3.5.2")
def test_what_is_due_begins_a_thread_that_is_told_its_input(path: Path | str) -> None:
    with a_hub(path, {"guide": ["Sun."]}) as hub:
        agency, _ = hub.create_agency()
        soon = datetime.now(UTC) + timedelta(seconds=1)
        kept = hub.scheduler.create(agency, Schedule(**ONCE, run_at=soon, input="The weather?"))
        hub.scheduler.start()
        until(lambda: runs(hub, agency, kept.id) == ["completed"])
        [thread] = hub.threads(agency)
        said = hub.thread(agency, thread.id).state()["state"]["messages"]
        assert [message["content"] for message in said] == ["The weather?", "Sun."]
        over = hub.scheduler.get(agency, kept.id)
        assert (over.status, over.next_at) == ("disabled", None)


def test_of_many_who_look_at_once_one_begins_it(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub, a_hub(path, {"guide": []}) as other:
        agency, _ = hub.create_agency()
        hub.scheduler.create(agency, Schedule(**OFTEN))
        moment = datetime.now(UTC) + timedelta(hours=2)
        claimed = in_threads(6, lambda number: due([hub, other][number % 2], moment))
        assert sorted(map(len, claimed)) == [0] * 5 + [1]


def test_what_was_missed_while_nobody_was_there_begins_once(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN))
        later = datetime.now(UTC) + timedelta(days=3)
        assert len(due(hub, later)) == 1
        assert due(hub, later) == []
        assert hub.scheduler.get(agency, kept.id).next_at == later + timedelta(hours=1)


@pytest.mark.spec("H3.5.2")
@pytest.mark.parametrize(
    ("overlap", "second"), [("skip", "skipped"), ("queue", "pending"), ("allow", "running")]
)
def test_one_that_comes_while_another_runs(path: Path | str, overlap: Any, second: str) -> None:
    gate = Gate()
    turns = [sa.ToolCall("c1", "hold", {}), "Done.", sa.ToolCall("c2", "hold", {}), "Done."]
    with a_hub(path, {"guide": turns}) as hub:
        hub.system.add_tool(gate.tool)
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN, overlap=overlap))
        hub.scheduler.trigger(agency, kept.id)
        gate.wait()
        [run] = due(hub, datetime.now(UTC) + timedelta(hours=2))
        assert run.status == second
        gate.open()
        ended = {"skip": ["completed", "skipped"], "queue": ["completed"] * 2}
        if overlap in ended:
            until(lambda: sorted(runs(hub, agency, kept.id)) == ended[overlap])


@pytest.mark.spec("H3.5.2")
@pytest.mark.parametrize(("retries", "status", "attempts"), [(1, "completed", 2), (0, "failed", 1)])
def test_one_that_fails_is_tried_again_as_often_as_it_may(
    path: Path | str, retries: int, status: str, attempts: int
) -> None:
    with a_hub(path, {"guide": [sa.ModelError("It is down."), "Sun."]}) as hub:
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN, max_retries=retries, input="Go."))
        hub.scheduler.trigger(agency, kept.id)
        until(lambda: runs(hub, agency, kept.id) == [status])
        [run] = hub.scheduler.runs(agency, kept.id)
        assert run.attempts == attempts
        assert (run.error is None) is (status == "completed")


@pytest.mark.spec("H3.5.2")
def test_pausing_begins_nothing_and_resuming_goes_on_from_now(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN))
        assert hub.scheduler.change(agency, kept.id, status="paused").next_at is None
        assert due(hub, datetime.now(UTC) + timedelta(days=1)) == []
        again = hub.scheduler.change(agency, kept.id, status="active")
        assert again.next_at is not None
        assert again.next_at > datetime.now(UTC)


@pytest.mark.spec("H3.5.2")
def test_the_last_hundred_times_are_remembered(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN))
        del hub.system.blueprints["guide"]
        for _ in range(schedules.KEPT_RUNS + 5):
            hub.scheduler.trigger(agency, kept.id)
        assert runs(hub, agency, kept.id) == ["failed"] * schedules.KEPT_RUNS


def test_a_run_that_an_end_of_the_process_cut_off_is_looked_after_by_the_next(
    path: Path | str,
) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(path, {"guide": slow}) as hub:
        agency, _ = hub.create_agency()
        kept = hub.scheduler.create(agency, Schedule(**OFTEN, input="Go."))
        hub.scheduler.trigger(agency, kept.id)
        assert runs(hub, agency, kept.id) == ["running"]
    with a_hub(path, {"guide": ["Sun."]}) as hub:
        hub.recover()
        hub.scheduler.start()
        until(lambda: runs(hub, agency, kept.id) == ["completed"])


def waiting_behind(hub: Hub, agency: Agency, gate: Gate, count: int) -> str:
    """A schedule with a run that is at work, and so many that wait for it."""
    hub.system.add_tool(gate.tool)
    kept = hub.scheduler.create(agency, Schedule(**OFTEN, overlap="queue", input="Go."))
    hub.scheduler.trigger(agency, kept.id)
    gate.wait()
    for hours in range(count):
        assert due(hub, datetime.now(UTC) + timedelta(hours=2 * hours + 2))
    return kept.id


HELD = [sa.ToolCall("c1", "hold", {}), "Done."]


@pytest.mark.spec("H3.5.2")
def test_what_is_queued_waits_while_its_schedule_is_paused_and_begins_once_it_goes_on(
    path: Path | str,
) -> None:
    gate = Gate()
    with a_hub(path, {"guide": HELD * 2}) as hub:
        agency, _ = hub.create_agency()
        id = waiting_behind(hub, agency, gate, 1)
        hub.scheduler.change(agency, id, status="paused")
        gate.open()
        until(lambda: "completed" in runs(hub, agency, id))
        hub.scheduler.stop()  # what was to follow has followed
        assert sorted(runs(hub, agency, id)) == ["completed", "pending"]
        assert len(hub.threads(agency)) == 1
    with a_hub(path, {"guide": ["Done."]}) as hub:
        hub.scheduler.start()
        hub.scheduler.change(agency, id, status="active")
        until(lambda: runs(hub, agency, id) == ["completed"] * 2)


def test_of_what_is_queued_one_begins_however_many_saw_the_end_of_the_one_before(
    path: Path | str,
) -> None:
    gate = Gate()
    slow = sa.ScriptedModel([*HELD, *["never" * 99] * 3])
    with a_hub(path, {"guide": slow}) as hub:
        agency, _ = hub.create_agency()
        id = waiting_behind(hub, agency, gate, 3)
        hub.scheduler.change(agency, id, status="paused")
        gate.open()
        until(lambda: "completed" in runs(hub, agency, id))
        [first] = hub.threads(agency)
        database, slow.delay = hub.store.database, 3600
        again = {"id": first.id, "status": "running"}  # as if nobody had seen it
        database.run(lambda c: schedules.change_run(c, database.tables, **again))
        hub.scheduler.change(agency, id, status="active")
        thread = hub.thread(agency, first.id)
        in_threads(6, lambda _: hub.scheduler.ended(agency, thread))
        assert sorted(runs(hub, agency, id)) == ["completed", "pending", "pending", "running"]


def test_after_a_restart_what_waits_begins_and_one_at_a_time(path: Path | str) -> None:
    gate = Gate()
    with a_hub(path, {"guide": HELD}) as hub:
        agency, _ = hub.create_agency()
        id = waiting_behind(hub, agency, gate, 2)
        hub.scheduler.stop()  # the process ends as the first has its answer
        gate.open()
        [first] = hub.threads(agency)
        hub.thread(agency, first.id).wait()
        until(lambda: "completed" in runs(hub, agency, id))
        assert sorted(runs(hub, agency, id)) == ["completed", "pending", "pending"]
    with a_hub(path, {"guide": sa.ScriptedModel(["never" * 99] * 2, delay=3600)}) as hub:
        hub.recover()
        hub.scheduler.start()
        until(lambda: "running" in runs(hub, agency, id))
        [later] = due(hub, datetime.now(UTC) + timedelta(days=1))
        assert later.status == "pending"
        assert sorted(runs(hub, agency, id)) == ["completed", "pending", "pending", "running"]


@pytest.mark.parametrize("is_told_of", [False, True])
def test_a_thread_that_a_kill_left_before_it_was_told_anything_is_the_one_that_runs(
    path: Path | str, is_told_of: bool
) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        hub.scheduler.create(agency, Schedule(**OFTEN, input="The weather?"))
        [run] = due(hub, datetime.now(UTC) + timedelta(hours=2))
        thread = hub.create_thread(agency, "guide", schedule_run=run.id)
        if is_told_of:
            database = hub.store.database
            told = {"thread_id": thread.record.id, "attempts": 1}
            database.run(lambda c: schedules.change_run(c, database.tables, run.id, **told))
    with a_hub(path, {"guide": ["Sun."]}) as hub:
        hub.recover()
        hub.scheduler.start()
        until(lambda: runs(hub, agency, run.schedule_id) == ["completed"])
        [only] = hub.threads(agency)
        assert only.id == hub.scheduler.runs(agency, run.schedule_id)[0].thread_id
        said = hub.thread(agency, only.id).state()["state"]["messages"]
        assert [message["content"] for message in said] == ["The weather?", "Sun."]


def test_what_is_queued_is_not_forgotten_for_what_came_later_and_the_queue_has_an_end(
    path: Path | str,
) -> None:
    gate = Gate()
    with a_hub(path, {"guide": HELD}) as hub:
        agency, _ = hub.create_agency()
        id = waiting_behind(hub, agency, gate, schedules.KEPT_RUNS + 3)
        kept = runs(hub, agency, id)
        assert kept.count("skipped") == 4
        hub.scheduler.change(agency, id, status="paused")
        database = hub.store.database
        running = database.run(lambda c: schedules.unended(c, database.tables, "running", id))
        assert len(running) == 1
        gate.open()


def test_a_schedule_is_of_a_blueprint_that_is_there(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub:
        agency, _ = hub.create_agency()
        gone = Schedule(**{**OFTEN, "agent_type": "gone"})
        with pytest.raises(sa.NotFound, match="no blueprint 'gone'"):
            hub.scheduler.create(agency, gone)
        kept = hub.scheduler.create(agency, Schedule(**OFTEN))
        with pytest.raises(sa.NotFound, match="no blueprint 'gone'"):
            hub.scheduler.change(agency, kept.id, {"agent_type": "gone"})
        assert hub.scheduler.schedules(agency) == [kept]


def test_what_is_another_agencys_is_not_there(path: Path | str) -> None:
    with a_hub(path, {"guide": []}) as hub:
        (mine, _), (theirs, _) = hub.create_agency(), hub.create_agency()
        kept = hub.scheduler.create(mine, Schedule(**OFTEN))
        for act in (hub.scheduler.get, hub.scheduler.delete, hub.scheduler.trigger):
            with pytest.raises(sa.NotFound):
                act(theirs, kept.id)
        assert hub.scheduler.schedules(theirs) == []
        hub.delete_agency(mine)
        assert due(hub, datetime.now(UTC) + timedelta(days=1)) == []
