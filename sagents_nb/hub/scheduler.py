"""What begins threads by schedule: one thread that waits for the next, and what follows from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from .. import kinds
from ..errors import NotFound, Owned, SagentsError
from ..messages import Message
from ..store import ConversationStore
from ..text import logger_of
from . import schedules
from .agencies import Agency
from .blueprints import KeptBlueprint
from .limits import Beginning, Limits
from .operations import Figures, line
from .schedules import KeptSchedule, Schedule, ScheduleRun
from .threads import Thread

logger = logger_of(__name__)

T = TypeVar("T")

LONGEST_WAIT = 30.0
"""Seconds after which it looks again what is due: another process may have changed a schedule."""


class Host(Protocol):
    """The hub, as far as schedules need it."""

    store: ConversationStore
    figures: Figures

    def agency(self, id: str) -> Agency:
        """The agency of that id."""

    def thread(self, agency: Agency, id: str) -> Thread:
        """The thread of that id, open."""

    def room(
        self, agency: Agency, limits: Limits | None, thread: Thread | None = None
    ) -> AbstractContextManager[Beginning]:
        """Room for a run that is about to begin."""

    def create_thread(self, agency: Agency, type: str, *, schedule_run: str | None) -> Thread:
        """The thread of that run of a schedule, made if it is not there."""

    def blueprint_versions(self, agency: Agency, name: str) -> list[KeptBlueprint]:
        """Those of that name; raises NotFound where there is none."""


class Scheduler:
    """The schedules of all agencies of a ``hub``; :meth:`start` has them begin by themselves.

    Of several processes over one store each time begins in one of them. What was due while none
    was there begins once, when the first is there again.
    """

    def __init__(self, hub: Host) -> None:
        self._hub = hub
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._beginning = threading.RLock()  # what is begun twice at once is told its input once

    def _run(self, query: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return self._hub.store.database.query(query, *args, **kwargs)

    # what there is

    @kinds.checked
    def schedules(self, agency: Agency) -> list[KeptSchedule]:
        """Those of the ``agency``, the newest first.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.scheduler.schedules(agency)
        []
        >>> hub.close()
        """
        return self._run(schedules.listed, agency.id)

    @kinds.checked
    def get(self, agency: Agency, id: str) -> KeptSchedule:
        """The one of that ``id`` of the ``agency``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> daily = Schedule(name="News", agent_type="guide", type="cron", cron="0 7 * * *")
        >>> hub.scheduler.get(agency, hub.scheduler.create(agency, daily).id).status
        'active'
        >>> hub.close()
        """
        return self._run(schedules.get, agency.id, id)

    @kinds.checked
    def create(self, agency: Agency, schedule: Schedule) -> KeptSchedule:
        """Have a ``schedule`` of the ``agency`` begin by itself from now on.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for a moment that has passed, and
        :class:`~sagents_nb.errors.NotFound` for a blueprint that is not there.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> hub.scheduler.create(agency, often).status
        'active'
        >>> hub.close()
        """
        self._hub.blueprint_versions(agency, schedule.agent_type)
        made = self._run(schedules.create, agency.id, schedule)
        self._woken.set()
        return made

    @kinds.checked(changes=kinds.of(Mapping[str, Any]))
    def change(
        self,
        agency: Agency,
        id: str,
        changes: Mapping[str, Any] = {},
        *,
        status: str | None = None,
    ) -> KeptSchedule:
        """Have the schedule ``id`` of the ``agency`` with other fields, or another ``status``.

        "paused" begins nothing, also of what is queued; "active" begins that, and goes on from now:
        what was missed meanwhile is left out. One that is over goes on with a time to come.
        Raises :class:`~sagents_nb.errors.NotFound` and
        :class:`~sagents_nb.errors.ConfigurationError`; nothing has changed then.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> made = hub.scheduler.create(agency, often)
        >>> hub.scheduler.change(agency, made.id, {"interval": 60}, status="paused").next_at
        >>> hub.close()
        """
        if "agent_type" in changes:
            self._run(schedules.get, agency.id, id)
            self._hub.blueprint_versions(agency, changes["agent_type"])
        changed = self._run(schedules.change, agency.id, id, changes, status)
        self._begin_pending(id)
        self._woken.set()
        return changed

    @kinds.checked
    def delete(self, agency: Agency, id: str) -> None:
        """Forget the schedule ``id`` of the ``agency``; what it began goes on.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> hub.scheduler.delete(agency, hub.scheduler.create(agency, often).id)
        >>> hub.scheduler.schedules(agency)
        []
        >>> hub.close()
        """
        self._run(schedules.delete, agency.id, id)

    @kinds.checked
    def runs(self, agency: Agency, id: str) -> list[ScheduleRun]:
        """The last :data:`~sagents_nb.hub.schedules.KEPT_RUNS` times, the newest first.

        Of the schedule ``id`` of the ``agency``. Raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> hub.scheduler.runs(agency, hub.scheduler.create(agency, often).id)
        []
        >>> hub.close()
        """
        self._run(schedules.get, agency.id, id)
        return self._run(schedules.runs, id)

    @kinds.checked
    def last_runs(self, agency: Agency) -> dict[str, ScheduleRun]:
        """The newest time of each schedule of the ``agency`` that began once, by its id.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> made = hub.scheduler.create(agency, often)
        >>> run = hub.scheduler.trigger(agency, made.id)
        >>> hub.scheduler.last_runs(agency)[made.id].id == run.id
        True
        >>> hub.close()
        """
        return self._run(schedules.last_runs, agency.id)

    @kinds.checked(limits=kinds.or_none(kinds.of(Limits)))
    def trigger(self, agency: Agency, id: str, limits: Limits | None = None) -> ScheduleRun:
        """Begin the schedule ``id`` of the ``agency`` now, whatever runs, and is due.

        Raises :class:`~sagents_nb.errors.NotFound`, and :class:`~sagents_nb.hub.limits.TooMany`
        where the ``limits`` leave no room for it.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> often = Schedule(name="Look", agent_type="guide", type="interval", interval=3600)
        >>> run = hub.scheduler.trigger(agency, hub.scheduler.create(agency, often).id)
        >>> run.thread_id == hub.threads(agency)[0].id
        True
        >>> hub.close()
        """
        kept = self._run(schedules.get, agency.id, id)
        with self._hub.room(agency, limits) as beginning:
            run = self._run(schedules.begin, kept, datetime.now(UTC), overlaps=True)
            beginning.thread_id = run.id
            self._begin(kept, run)
        return self._run(schedules.run_of, run.id)

    # by itself

    def start(self) -> None:
        """Begin what is due from now on; what an end of the process cut off is looked after."""
        self._thread = threading.Thread(target=self._serve, name="sagents-schedules", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing any more."""
        self._ended.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        self._guarded(self._look_after)
        while not self._ended.is_set():
            self._woken.clear()
            self._guarded(self._begin_due)
            self._woken.wait(self._pause())

    def _pause(self) -> float:
        try:
            moment = self._run(schedules.next_moment)
        except SagentsError:
            return LONGEST_WAIT
        if moment is None:
            return LONGEST_WAIT
        return min(LONGEST_WAIT, max(0.0, (moment - datetime.now(UTC)).total_seconds()))

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # what is due later begins all the same
            logger.exception("Schedules could not be looked after")

    def _begin_due(self) -> None:
        for run, kept in self._run(schedules.claim, datetime.now(UTC)):
            if run.status == schedules.RUNNING:
                self._begin(kept, run)
            elif run.status == schedules.SKIPPED:
                self._tell(run, run.status)

    def _look_after(self) -> None:
        """Of what ran when a process ended: what has ended since, and what never began."""
        for run, kept in self._run(schedules.unended, schedules.RUNNING):
            if run.thread_id is None:
                self._begin(kept, run)
                continue
            try:
                agency = self._hub.agency(kept.agency_id)
                thread = self._hub.thread(agency, run.thread_id)
                if thread.status == "registered":  # it was made, and told nothing yet
                    self._begin(kept, run)
                else:
                    self.ended(agency, thread)
            except NotFound:
                self._end(run, schedules.FAILED, "Its thread is gone.")
            except SagentsError as error:  # it is open elsewhere, and told there
                logger.info("Run %s of a schedule is not looked after: %s", run.id, error)
        for id in {kept.id for _, kept in self._run(schedules.unended, schedules.PENDING)}:
            self._begin_pending(id)

    def _begin(self, kept: KeptSchedule, run: ScheduleRun) -> None:
        schedule = kept.schedule
        try:
            agency = self._hub.agency(kept.agency_id)
            with self._beginning:
                thread = self._hub.create_thread(agency, schedule.agent_type, schedule_run=run.id)
                self._run(schedules.change_run, run.id, thread_id=thread.record.id, attempts=1)
                if thread.status == "registered":
                    said = [Message.user(schedule.input)] if schedule.input.strip() else []
                    with self._hub.room(agency, None, thread):
                        thread.invoke(said)
        except Owned as error:  # another process begins it
            logger.info("Run %s of a schedule is not begun here: %s", run.id, error)
        except SagentsError as error:
            if not self._ended.is_set():  # else the next process begins it
                self._end(run, schedules.FAILED, str(error))

    def _begin_pending(self, schedule_id: str) -> None:
        """What waits longest begins, if nothing of its schedule runs any more."""
        if self._ended.is_set():
            return
        if (following := self._run(schedules.begin_pending, schedule_id)) is not None:
            run, kept = following
            self._begin(kept, run)

    def ended(self, agency: Agency, thread: Thread) -> None:
        """A thread of the ``agency`` that a schedule began has stopped; not on the runtime loop."""
        id = thread.record.schedule_run
        if id is None or thread.status not in ("completed", "error", "canceled"):
            return
        try:
            run = self._run(schedules.run_of, id)
            kept = self._run(schedules.get, agency.id, run.schedule_id)
        except NotFound:
            return  # it was forgotten meanwhile
        if run.status != schedules.RUNNING:
            return
        if thread.status == "completed":
            self._end(run, schedules.COMPLETED)
        elif thread.status == "error" and run.attempts <= kept.schedule.max_retries:
            self._run(schedules.change_run, id, attempts=run.attempts + 1)
            thread.retry()
        else:
            error = thread.session.error if thread.status == "error" else "It was cancelled."
            self._end(run, schedules.FAILED, error)

    def _end(self, run: ScheduleRun, status: str, error: str | None = None) -> None:
        # Who says it last, of several who saw the end at once, begins nothing beside the others.
        if self._run(schedules.end_run, run.id, status, error):
            self._tell(run, status)
            self._begin_pending(run.schedule_id)

    def _tell(self, run: ScheduleRun, status: str) -> None:
        self._hub.figures.count("sagents_hub_schedule_runs_total", status=status)
        schedule, thread = run.schedule_id, run.thread_id
        line("schedule.ended", status=status, schedule=schedule, run=run.id, thread=thread)
