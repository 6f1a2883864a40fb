"""What can be asked of schedules, and of the variables that their agents are told."""

from __future__ import annotations

from typing import Any

import msgspec

from ..schedules import (
    ACTIVE,
    PAUSED,
    KeptSchedule,
    ScheduleRun,
    schedule_of,
    times_from_now,
)
from .bodies import (
    OkReply,
    ScheduleChanges,
    SchedulePreviewReply,
    ScheduleReply,
    ScheduleRunReply,
    ScheduleRunsReply,
    SchedulesReply,
    VariablesReply,
    moment,
)
from .call import Call

PREVIEWED = 3
"""Times that a preview tells."""


def schedules(call: Call) -> SchedulesReply:
    """Those of the agency."""
    found = call.hub.scheduler.schedules(call.agency)
    last = call.hub.scheduler.last_runs(call.agency)
    return SchedulesReply(schedules=[_seen(kept, last.get(kept.id)) for kept in found])


def create_schedule(call: Call) -> ScheduleReply:
    """A new one."""
    agency = call.agency
    return _seen(call.hub.scheduler.create(agency, schedule_of(_fields(call.body))))


def preview_schedule(call: Call) -> SchedulePreviewReply:
    """When it would begin, whatever it is called and of whatever kind its threads are."""
    call.hub.agency(call.parameters["agency"])  # or there is none
    unsaid = {"name": "Preview", "agent_type": "any"}
    schedule = schedule_of({**unsaid, **_fields(call.body)})
    times = times_from_now(schedule, PREVIEWED)
    return SchedulePreviewReply(
        words=schedule.in_words(), times=[each.isoformat() for each in times]
    )


def schedule(call: Call) -> ScheduleReply:
    """One of them."""
    return _as_it_is(call, call.hub.scheduler.get(call.agency, call.parameters["schedule"]))


def change_schedule(call: Call) -> ScheduleReply:
    """It with other fields."""
    return _changed(call, _fields(call.body))


def pause_schedule(call: Call) -> ScheduleReply:
    """It begins nothing for the time being."""
    return _changed(call, status=PAUSED)


def resume_schedule(call: Call) -> ScheduleReply:
    """It goes on."""
    return _changed(call, status=ACTIVE)


def _changed(call: Call, fields: dict[str, Any] | None = None, **more: Any) -> ScheduleReply:
    id = call.parameters["schedule"]
    return _as_it_is(call, call.hub.scheduler.change(call.agency, id, fields or {}, **more))


def _as_it_is(call: Call, kept: KeptSchedule) -> ScheduleReply:
    return _seen(kept, call.hub.scheduler.last_runs(call.agency).get(kept.id))


def delete_schedule(call: Call) -> OkReply:
    """One less."""
    call.hub.scheduler.delete(call.agency, call.parameters["schedule"])
    return OkReply()


def trigger_schedule(call: Call) -> ScheduleRunReply:
    """It begins now."""
    id = call.parameters["schedule"]
    return _run(call.hub.scheduler.trigger(call.agency, id, call.limits))


def schedule_runs(call: Call) -> ScheduleRunsReply:
    """What became of its times."""
    found = call.hub.scheduler.runs(call.agency, call.parameters["schedule"])
    return ScheduleRunsReply(runs=[_run(run) for run in found])


def _fields(body: ScheduleChanges) -> dict[str, Any]:
    given = msgspec.structs.asdict(body)
    fields = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    if "interval_ms" in fields:
        milliseconds = fields.pop("interval_ms")
        fields["interval"] = None if milliseconds is None else milliseconds / 1_000
    if "overlap_policy" in fields:
        fields["overlap"] = fields.pop("overlap_policy")
    return fields


def _seen(kept: KeptSchedule, last: ScheduleRun | None = None) -> ScheduleReply:
    schedule = kept.schedule
    return ScheduleReply(
        id=kept.id,
        name=schedule.name,
        agent_type=schedule.agent_type,
        input=schedule.input,
        type=schedule.type,
        run_at=moment(schedule.run_at),
        cron=schedule.cron,
        interval_ms=None if schedule.interval is None else schedule.interval * 1_000,
        timezone=schedule.timezone,
        max_retries=schedule.max_retries,
        overlap_policy=schedule.overlap,
        status=kept.status,
        created_at=kept.created_at.isoformat(),
        updated_at=kept.updated_at.isoformat(),
        last_run_at=moment(kept.last_at),
        next_run_at=moment(kept.next_at),
        words=schedule.in_words(),
        last_run=None if last is None else _run(last),
    )


def _run(run: ScheduleRun) -> ScheduleRunReply:
    return ScheduleRunReply(
        id=run.id,
        schedule_id=run.schedule_id,
        agent_id=run.thread_id,
        status=run.status,
        retry_count=max(0, run.attempts - 1),
        error=run.error,
        scheduled_at=run.scheduled_at.isoformat(),
        started_at=moment(run.started_at),
        completed_at=moment(run.ended_at),
    )


def variables(call: Call) -> VariablesReply:
    """The names of those of the agency."""
    return VariablesReply(vars=call.hub.variables(call.agency))


def save_variables(call: Call) -> VariablesReply:
    """More of them, or other values."""
    agency = call.agency
    call.hub.save_variables(agency, call.body.vars)
    return VariablesReply(vars=call.hub.variables(agency))


def delete_variable(call: Call) -> OkReply:
    """One less."""
    call.hub.delete_variable(call.agency, call.parameters["name"])
    return OkReply()
