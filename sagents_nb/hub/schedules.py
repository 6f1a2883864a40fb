"""Schedules: when a thread of a kind begins by itself, and what became of each time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec
import sqlalchemy as sql
from cronsim import CronSim, CronSimError

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..serialization import to_data
from ..store.database.schema import Tables

KEPT_RUNS = 100
"""Runs of a schedule that are remembered."""

MOST_RETRIES = 3

ACTIVE, PAUSED, DISABLED = "active", "paused", "disabled"
PENDING, RUNNING, SKIPPED = "pending", "running", "skipped"
COMPLETED, FAILED = "completed", "failed"

_KINDS = {"once": "run_at", "cron": "cron", "interval": "interval"}
LONGEST_INTERVAL = 10 * 365 * 86_400
"""Seconds of ten years."""

_INTERVAL = kinds.or_none(
    kinds.Kind(
        f"a number of seconds from 1 to {LONGEST_INTERVAL:,}",
        lambda value: kinds.number(1).fits(value) and value <= LONGEST_INTERVAL,
    )
)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_RETRIES = kinds.Kind(
    f"a whole number from 0 to {MOST_RETRIES}",
    lambda value: kinds.whole(0).fits(value) and value <= MOST_RETRIES,
)


class Schedule(msgspec.Struct, metaclass=kinds.Record, frozen=True, kw_only=True):
    """When threads with an agent of the blueprint ``agent_type`` begin by themselves.

    ``type`` says by what: "once" at ``run_at``, a moment with its zone; "cron" by an expression of
    five fields in ``timezone``; "interval" every so many seconds. Each is told ``input``. While one
    runs that has not ended, a further one is left out ("skip"), waits for it ("queue") or runs
    beside it ("allow"), as ``overlap`` says. One that fails is tried again ``max_retries`` times.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for what makes no sense.

    >>> from datetime import UTC, datetime
    >>> from sagents_nb.hub import Schedule
    >>> daily = Schedule(name="News", agent_type="guide", type="cron", cron="0 7 * * 1-5")
    >>> daily.next_after(datetime(2026, 11, 27, 12, tzinfo=UTC)).isoformat()
    '2026-11-30T07:00:00+00:00'
    """

    name: str
    agent_type: str
    type: Literal["once", "cron", "interval"]
    input: str = ""
    run_at: datetime | None = None
    cron: str | None = None
    interval: float | None = None
    timezone: str = "UTC"
    overlap: Literal["skip", "queue", "allow"] = "skip"
    max_retries: int = 0

    def __post_init__(self) -> None:
        kinds.check_fields(self, interval=_INTERVAL, max_retries=_RETRIES)
        needed = _KINDS[self.type]
        given = [name for name in _KINDS.values() if getattr(self, name) is not None]
        if given != [needed]:
            raise ConfigurationError(
                f"A schedule of the type {self.type!r} has {needed}, and neither of the others."
            )
        if not self.name.strip():
            raise ConfigurationError("A schedule has a name that is not empty.")
        if self.run_at is not None:
            _check_moment("run_at", self.run_at)
        self._zone()
        if self.cron is not None:
            self._of_cron(datetime.now(UTC))

    @kinds.checked
    def next_after(self, moment: datetime) -> datetime | None:
        """When it begins next, after ``moment``, which has a zone; None if it does not any more.

        >>> from datetime import UTC, datetime
        >>> from sagents_nb.hub import Schedule
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=60)
        >>> often.next_after(datetime(2026, 11, 27, tzinfo=UTC)).isoformat()
        '2026-11-27T00:01:00+00:00'
        """
        _check_moment("moment", moment)
        if self.run_at is not None:
            return self.run_at if self.run_at > moment else None
        if self.interval is not None:
            return moment + timedelta(seconds=self.interval)
        return self._of_cron(moment)

    def in_words(self) -> str:
        """When it begins, as people say it.

        >>> from sagents_nb.hub import Schedule
        >>> daily = Schedule(name="News", agent_type="guide", type="cron", cron="0 7 * * 1-5")
        >>> daily.in_words()
        'At 07:00 on Monday through Friday, UTC'
        """
        if self.run_at is not None:
            return f"Once, at {self.run_at:%Y-%m-%d %H:%M %Z}"
        if self.interval is not None:
            unit, seconds = next(u for u in _UNITS if self.interval % u[1] == 0 or u[1] == 1)
            count = self.interval / seconds
            return f"Every {unit}" if count == 1 else f"Every {count:g} {unit}s"
        return f"{self._times(datetime.now(UTC)).explain()}, {self.timezone}"

    def _of_cron(self, moment: datetime) -> datetime | None:
        following = next(self._times(moment), None)
        return None if following is None else following.astimezone(UTC)

    def _times(self, moment: datetime) -> CronSim:
        try:
            # What is skipped or doubled as clocks change is once, as cron of Debian has it.
            if len(str(self.cron).split()) != 5:  # a sixth would be seconds
                raise CronSimError
            return CronSim(str(self.cron), moment.astimezone(self._zone()))
        except CronSimError:
            raise ConfigurationError(
                f"{self.cron!r:.110} is no cron expression; write five fields, such as "
                "'0 7 * * 1-5'."
            ) from None

    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.timezone)
        except (ValueError, OSError, LookupError):  # of a name that is no path, too
            raise ConfigurationError(
                f"There is no time zone {self.timezone!r:.110}; write one as 'Europe/Oslo'."
            ) from None


def _check_moment(name: str, moment: datetime) -> None:
    """Raise ConfigurationError for one without a zone, and for one that is far from today."""
    if moment.tzinfo is None:
        raise ConfigurationError(f"{name} needs its zone, such as 2026-12-01T09:00:00+01:00.")
    if not 1970 < moment.year < 9000:  # of others the calendar of a database may know nothing
        raise ConfigurationError(f"{name} is a moment from 1971 to 8999, not of {moment.year}.")


class KeptSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """One as an agency has it: ``status`` is "active", "paused" or "disabled" once it is over."""

    id: str
    agency_id: str
    schedule: Schedule
    status: str
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ScheduleRun(msgspec.Struct, frozen=True, kw_only=True):
    """One time: ``status`` is "pending", "running", "completed", "failed" or "skipped".

    ``thread_id`` is the thread that does it, ``attempts`` how often it was tried.
    """

    id: str
    schedule_id: str
    thread_id: str | None
    status: str
    attempts: int
    error: str | None
    scheduled_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


def schedule_of(data: Mapping[str, Any]) -> Schedule:
    """The schedule that these fields are; others are refused."""
    kinds.refuse_unknown("A schedule", data, Schedule.__struct_fields__)
    for name in ("name", "agent_type", "type"):
        if name not in data:
            raise ConfigurationError(f"A schedule needs a {name}.")
    if data["type"] not in _KINDS:
        raise ConfigurationError(f"The type of a schedule is {', '.join(_KINDS)}.")
    return Schedule(**data)


def times_from_now(schedule: Schedule, count: int) -> list[datetime]:
    """The next times of a schedule, so many if there are; one at least, or it is refused."""
    times: list[datetime] = []
    following = schedule.next_after(datetime.now(UTC))
    while following is not None and len(times) < count:
        times.append(following)
        following = schedule.next_after(following)
    if not times:
        raise ConfigurationError("run_at has passed; choose a moment that is to come.")
    return times


# In the database, each function in its caller's transaction.


def create(
    connection: sql.Connection, tables: Tables, agency_id: str, schedule: Schedule
) -> KeptSchedule:
    """A new one, active from now on."""
    now = datetime.now(UTC)
    [next_at] = times_from_now(schedule, 1)
    id = uuid.uuid4().hex
    connection.execute(
        tables.hub_schedules.insert().values(
            id=id,
            agency_id=agency_id,
            data=to_data(schedule),
            status=ACTIVE,
            next_at=next_at,
            created_at=now,
            updated_at=now,
        )
    )
    return get(connection, tables, agency_id, id)


def get(connection: sql.Connection, tables: Tables, agency_id: str, id: str) -> KeptSchedule:
    """The one of that id."""
    t = tables.hub_schedules
    row = connection.execute(sql.select(t).where(t.c.id == id, t.c.agency_id == agency_id)).first()
    if row is None:
        raise NotFound(
            f"This agency has no schedule {id!r:.110}; its list of schedules names them."
        )
    return _kept(row)


def listed(connection: sql.Connection, tables: Tables, agency_id: str) -> list[KeptSchedule]:
    """Those of the agency, the newest first."""
    t = tables.hub_schedules
    query = sql.select(t).where(t.c.agency_id == agency_id)
    return [_kept(r) for r in connection.execute(query.order_by(t.c.created_at.desc(), t.c.id))]


def change(
    connection: sql.Connection,
    tables: Tables,
    agency_id: str,
    id: str,
    changes: Mapping[str, Any],
    status: str | None = None,
) -> KeptSchedule:
    """It with other fields, or another status; what is active begins again from now on.

    One that is over is active again once it has a time that is to come.
    """
    before = get(connection, tables, agency_id, id)
    fields = {**to_data(before.schedule), **changes}
    if isinstance(fields.get("run_at"), str):
        fields["run_at"] = datetime.fromisoformat(fields["run_at"])
    schedule = schedule_of(fields)
    status = status or before.status
    now = datetime.now(UTC)
    next_at = None
    if status == ACTIVE or (status == DISABLED and schedule.next_after(now) is not None):
        status, [next_at] = ACTIVE, times_from_now(schedule, 1)
    t = tables.hub_schedules
    connection.execute(
        t.update()
        .where(t.c.id == id)
        .values(data=to_data(schedule), status=status, next_at=next_at, updated_at=now)
    )
    return get(connection, tables, agency_id, id)


def delete(connection: sql.Connection, tables: Tables, agency_id: str, id: str) -> None:
    """It, and what is remembered of its runs; what runs goes on."""
    get(connection, tables, agency_id, id)
    t = tables.hub_schedules
    connection.execute(t.delete().where(t.c.id == id))


def next_moment(connection: sql.Connection, tables: Tables) -> datetime | None:
    """When the next of all begins."""
    t = tables.hub_schedules
    moment: datetime | None = connection.scalar(
        sql.select(t.c.next_at)
        .where(t.c.status == ACTIVE, t.c.next_at.is_not(None))
        .order_by(t.c.next_at)
        .limit(1)
    )
    return moment


def claim(
    connection: sql.Connection, tables: Tables, now: datetime
) -> list[tuple[ScheduleRun, KeptSchedule]]:
    """A run of each that is due, which nobody else claims; what was missed before counts once."""
    t = tables.hub_schedules
    due = sql.select(t).where(t.c.status == ACTIVE, t.c.next_at <= now).order_by(t.c.next_at)
    claimed: list[tuple[ScheduleRun, KeptSchedule]] = []
    for row in connection.execute(due).all():
        kept = _kept(row)
        next_at = kept.schedule.next_after(now)
        values: dict[str, Any] = {"next_at": next_at, "last_at": now}
        if next_at is None:
            values["status"] = DISABLED
        mine = t.update().where(t.c.id == kept.id, t.c.next_at == kept.next_at).values(values)
        if connection.execute(mine).rowcount:
            claimed.append((begin(connection, tables, kept, kept.next_at or now), kept))
    return claimed


def begin(
    connection: sql.Connection,
    tables: Tables,
    kept: KeptSchedule,
    at: datetime,
    *,
    overlaps: bool = False,
) -> ScheduleRun:
    """A run that is to begin, or is skipped or waits for another one, as ``overlap`` says."""
    t = tables.hub_schedule_runs
    mine = t.c.schedule_id == kept.id
    open_ = sql.select(sql.func.count()).where(mine, t.c.status.in_((PENDING, RUNNING)))
    others = 0 if overlaps or kept.schedule.overlap == "allow" else connection.scalar(open_) or 0
    status = RUNNING
    if others:
        waits = kept.schedule.overlap == "queue" and others < KEPT_RUNS
        status = PENDING if waits else SKIPPED
    id, now = uuid.uuid4().hex, datetime.now(UTC)
    connection.execute(
        t.insert().values(
            id=id,
            schedule_id=kept.id,
            status=status,
            attempts=0,
            scheduled_at=at,
            started_at=now if status == RUNNING else None,
            ended_at=now if status == SKIPPED else None,
        )
    )
    ended = t.c.status.not_in((PENDING, RUNNING))  # others are counted, and gone on with
    old = sql.select(t.c.id).where(mine, ended).order_by(t.c.scheduled_at.desc(), t.c.id)
    gone = list(connection.execute(old.offset(KEPT_RUNS)).scalars())
    if gone:
        connection.execute(t.delete().where(t.c.id.in_(gone)))
    return run_of(connection, tables, id)


def run_of(connection: sql.Connection, tables: Tables, id: str) -> ScheduleRun:
    """The run of that id."""
    t = tables.hub_schedule_runs
    row = connection.execute(sql.select(t).where(t.c.id == id)).first()
    if row is None:
        raise NotFound(f"There is no run {id!r:.110} of a schedule.")
    return ScheduleRun(**row._mapping)


def change_run(connection: sql.Connection, tables: Tables, id: str, **values: Any) -> None:
    """It is otherwise now."""
    t = tables.hub_schedule_runs
    connection.execute(t.update().where(t.c.id == id).values(values))


def end_run(
    connection: sql.Connection, tables: Tables, id: str, status: str, error: str | None
) -> bool:
    """It runs no more; False where somebody has said so before."""
    t = tables.hub_schedule_runs
    ended = {"status": status, "error": error, "ended_at": datetime.now(UTC)}
    mine = t.update().where(t.c.id == id, t.c.status == RUNNING).values(ended)
    return bool(connection.execute(mine).rowcount)


def begin_pending(
    connection: sql.Connection, tables: Tables, schedule_id: str
) -> tuple[ScheduleRun, KeptSchedule] | None:
    """The oldest that waits runs now, unless another does, or the schedule is paused."""
    t, s = tables.hub_schedule_runs, tables.hub_schedules
    row = connection.execute(sql.select(s).where(s.c.id == schedule_id).with_for_update()).first()
    if row is None or row.status == PAUSED or unended(connection, tables, RUNNING, schedule_id):
        return None
    for run, kept in unended(connection, tables, PENDING, schedule_id)[:1]:
        started = {"status": RUNNING, "started_at": datetime.now(UTC)}
        mine = t.update().where(t.c.id == run.id, t.c.status == PENDING).values(started)
        if connection.execute(mine).rowcount:
            return run_of(connection, tables, run.id), kept
    return None


def runs(connection: sql.Connection, tables: Tables, schedule_id: str) -> list[ScheduleRun]:
    """Those of a schedule that are remembered, the newest first."""
    t = tables.hub_schedule_runs
    query = sql.select(t).where(t.c.schedule_id == schedule_id)
    rows = connection.execute(query.order_by(t.c.scheduled_at.desc(), t.c.id).limit(KEPT_RUNS))
    return [ScheduleRun(**row._mapping) for row in rows]


def last_runs(connection: sql.Connection, tables: Tables, agency_id: str) -> dict[str, ScheduleRun]:
    """The newest of each schedule of the agency that has one, by the id of the schedule."""
    t, s = tables.hub_schedule_runs, tables.hub_schedules
    newest = (t.c.scheduled_at.desc(), t.c.id)
    place = sql.func.row_number().over(partition_by=t.c.schedule_id, order_by=newest)
    mine = sql.select(t.c.id, place.label("place")).join(s, s.c.id == t.c.schedule_id)
    placed = mine.where(s.c.agency_id == agency_id).subquery()
    first = sql.select(placed.c.id).where(placed.c.place == 1)
    rows = connection.execute(sql.select(t).where(t.c.id.in_(first)))
    return {row.schedule_id: ScheduleRun(**row._mapping) for row in rows}


def unended(
    connection: sql.Connection, tables: Tables, status: str, schedule_id: str | None = None
) -> list[tuple[ScheduleRun, KeptSchedule]]:
    """Runs of that status with their schedules, of one or of all, the oldest first."""
    t, s = tables.hub_schedule_runs, tables.hub_schedules
    query = sql.select(t).where(t.c.status == status).order_by(t.c.scheduled_at)
    if schedule_id is not None:
        query = query.where(t.c.schedule_id == schedule_id)
    found: list[tuple[ScheduleRun, KeptSchedule]] = []
    for row in connection.execute(query).all():
        kept = connection.execute(sql.select(s).where(s.c.id == row.schedule_id)).one()
        found.append((ScheduleRun(**row._mapping), _kept(kept)))
    return found


def _kept(row: Any) -> KeptSchedule:
    data = dict(row.data)
    if data.get("run_at"):
        data["run_at"] = datetime.fromisoformat(data["run_at"])
    return KeptSchedule(
        id=row.id,
        agency_id=row.agency_id,
        schedule=schedule_of(data),
        status=row.status,
        next_at=row.next_at,
        last_at=row.last_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
