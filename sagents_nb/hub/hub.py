"""The hub: agencies, and the threads of theirs that are open here, over one store."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .. import kinds
from ..agent import Agent
from ..errors import ConfigurationError, NotFound, Owned
from ..session import Session
from ..sql import path_of
from ..store import ConversationStore
from . import agencies, event_log, notebooks, standings
from .agencies import Agency
from .blueprints import KeptBlueprint
from .catalogue import Catalogue
from .children import Children
from .doors import Doors, Moved, thread_path
from .event_log import EVENTS_KEPT, ThreadEvent
from .guests import Guests
from .limits import Beginning, Limits, Room
from .notebooks import KeptThread, Notebooks
from .open_threads import Following, OpenThreads
from .operations import Figures
from .records import ThreadRecord, record_of
from .recovery import Recovery
from .scheduler import Scheduler
from .standings import Spent, Standing
from .sub_agents import links_of
from .system import AgentSystem
from .threads import Thread

T = TypeVar("T")

_WORKERS = 4
_TRIES = 5  # to delete a thread that goes from process to process meanwhile

_STORE = kinds.either(
    "a sa.ConversationStore, a path or a URL", kinds.PATH, kinds.of(ConversationStore)
)


_NAMES = kinds.Kind(
    "a list of names",
    lambda value: (
        isinstance(value, list | tuple | set | frozenset)
        and all(isinstance(name, str) for name in value)
    ),
)


def _is_ascii(value: Any) -> bool:
    return isinstance(value, str) and value.isascii()


class Hub:
    """Agencies and their threads, from a ``system``, kept in a ``store``.

    ``store`` is a :class:`~sagents_nb.ConversationStore`, the path of its file or its URL; one that
    was opened here is closed with it. ``environment`` names the variables of the process that a
    variable of an agency may stand for, as "$NAME". Of what is told of a thread the newest
    ``events_kept`` stay, 1,000 at least. ``scheduler`` has its schedules, ``doors``
    where other processes can be asked for what they have open. Every method may be called from any
    thread, and none from an event loop: they wait for the store. To an agency what is another's is
    not there.

    >>> import sagents_nb as sa
    >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
    >>> system = AgentSystem(sa.ScriptedModel(["Sun."])).add_agent(Blueprint("guide", "Be brief."))
    >>> hub = Hub(system, "sqlite://")
    >>> agency, secret = hub.create_agency("Weather")
    >>> thread = hub.create_thread(agency, "guide")
    >>> thread.invoke([sa.Message.user("How is the weather?")])["status"]
    'running'
    >>> thread.wait(), thread.state()["state"]["messages"][-1]["content"]
    ('completed', 'Sun.')
    >>> hub.close()
    """

    of_notebook = False
    """Whether it is a kernel's own, which shows conversations of notebooks and nothing else."""

    @kinds.checked(store=_STORE, environment=_NAMES, events_kept=kinds.whole(1_000))
    def __init__(
        self,
        system: AgentSystem,
        store: ConversationStore | str | Path,
        *,
        environment: Collection[str] = (),
        events_kept: int = EVENTS_KEPT,
    ) -> None:
        self.system = system
        self.environment = frozenset(environment)
        self._own = not isinstance(store, ConversationStore)
        self.store = store if isinstance(store, ConversationStore) else ConversationStore(store)
        database = self.store.database
        self.figures = Figures()
        self.doors = Doors(database)
        # For what follows from an end of a run, which waits for the store.
        self._workers = ThreadPoolExecutor(_WORKERS, "sagents-hub")
        self._catalogue = Catalogue(database, system, self.environment)
        following = Following(
            opened=lambda agency, thread: self._recovery.opened(agency, thread),
            stopped=self._stopped,
            named=self._named,
            told=self.figures.hear,
            full=lambda: self._later(self._threads.forget_resting),
        )
        self._threads = OpenThreads(self.store, self.doors, self._agent, events_kept, following)
        self._recovery = Recovery(database, self._threads, self._stopped)
        self._children = Children(self, self._threads, self._catalogue.blueprint)
        self._notebooks = Notebooks(self.store, self._threads, self.doors)
        self._guests = Guests(self.figures)
        self._room = Room(self._active, self._threads.waiting)
        self._naming = threading.Lock()
        self.scheduler = Scheduler(self)
        self._show_figures()

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Hub over {self.store!r}: {len(self._threads)} threads are open>"

    def _show_figures(self) -> None:
        """What can be asked at any time for little."""
        figures, path = self.figures, path_of(self.store.database.url)
        figures.gauge("sagents_hub_active_runs", "Runs that are active.", self.active_runs)
        figures.gauge("sagents_hub_open_threads", "Threads open here.", lambda: len(self._threads))
        figures.gauge(
            "sagents_hub_waiting_threads",
            "Threads of all agencies that wait for people.",
            lambda: self._run(standings.count_waiting),
        )
        if path is not None:
            figures.gauge(
                "sagents_hub_store_bytes", "Size of the store's file.", lambda: _size_of(path)
            )

    def _run(self, query: Callable[..., T], *args: Any) -> T:
        return self.store.database.query(query, *args)

    # agencies

    @kinds.checked
    def create_agency(self, name: str | None = None) -> tuple[Agency, str]:
        """A new agency, and the secret that opens it, which nobody can ask for again.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for a ``name`` that another has.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> agency.name, len(secret)
        ('Weather', 43)
        >>> hub.close()
        """
        return self._catalogue.create(name)

    def agencies(self) -> list[Agency]:
        """All of them, the newest first.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.agencies()
        []
        >>> hub.close()
        """
        return self._catalogue.agencies()

    @kinds.checked
    def agency(self, id: str) -> Agency:
        """The one of that ``id``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.agency(agency.id).name
        'Weather'
        >>> hub.close()
        """
        return self._catalogue.agency(id)

    @kinds.checked
    def agency_of(self, id: str, thread_id: str) -> Agency:
        """:meth:`agency`, of one of its threads: of one that is open here nothing is asked.

        Nobody deletes an agency while a thread of it is open.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> hub.agency_of(agency.id, thread.record.id).name
        'Weather'
        >>> hub.close()
        """
        agency = self._threads.agency_of(thread_id)
        return agency if agency is not None and agency.id == id else self.agency(id)

    @kinds.checked(digest=kinds.Kind("a digest in hex", _is_ascii))
    def agency_of_secret(self, digest: str) -> str | None:
        """The id of the agency that the token of that ``digest`` opens, None if there is none.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> from sagents_nb.hub.agencies import digest_of
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.agency_of_secret(digest_of(secret)) == agency.id
        True
        >>> hub.close()
        """
        return self._catalogue.of_secret(digest)

    @kinds.checked
    def new_secret(self, agency: Agency) -> str:
        """Another secret for the ``agency``; the one before opens nothing any more.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for that of a notebook, which none
        opens.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.new_secret(agency) == secret
        False
        >>> hub.close()
        """
        return self._catalogue.new_secret(agency)

    @kinds.checked
    def delete_agency(self, agency: Agency) -> None:
        """Delete the ``agency`` with its threads and blueprints; what runs is stopped.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.delete_agency(agency)
        >>> hub.agencies()
        []
        >>> hub.close()
        """
        self._guests.end(agency, "its agency is deleted")
        self._delete_threads(agency)
        self._catalogue.forget(agency)
        self._delete_threads(agency)  # that began meanwhile; from now on none does

    def _delete_threads(self, agency: Agency) -> None:
        for record in reversed(self.threads(agency)):  # nobody is told of the end of a child then
            self._delete_wherever(agency, record.id)

    def _delete_wherever(self, agency: Agency, id: str) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self.delete_thread(agency, id)
            except NotFound:
                return  # somebody was faster
            except Owned as owned:
                try:
                    self.doors.ask(owned, "DELETE", thread_path(agency.id, id))
                except Moved:  # who stops its family has it for a moment
                    if not tries_left:
                        raise
                    continue
            return

    # blueprints

    @kinds.checked
    def blueprints(self, agency: Agency) -> list[KeptBlueprint]:
        """Those that the ``agency`` can use, by name: its own come before those of the code.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> [(kept.blueprint.name, kept.version) for kept in hub.blueprints(agency)]
        [('guide', 0)]
        >>> hub.close()
        """
        return self._catalogue.blueprints(agency)

    @kinds.checked(changes=kinds.of(Mapping[str, Any]))
    def save_blueprint(self, agency: Agency, changes: Mapping[str, Any]) -> KeptBlueprint:
        """A further version of the blueprint ``changes["name"]`` of the ``agency``.

        What ``changes`` do not say stays as it is. Threads that were made before keep theirs.
        Raises :class:`~sagents_nb.errors.ConfigurationError` for fields that make no sense, and for
        a ``config`` that no middleware takes.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> kept = hub.save_blueprint(agency, {"name": "guide", "description": "For guests."})
        >>> kept.version, kept.blueprint.prompt
        (1, 'Be brief.')
        >>> hub.close()
        """
        return self._catalogue.save_blueprint(agency, changes)

    @kinds.checked
    def blueprint_versions(self, agency: Agency, name: str) -> list[KeptBlueprint]:
        """All versions that there are of the blueprint ``name``, the newest first.

        Raises :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> _ = hub.save_blueprint(agency, {"name": "guide", "prompt": "Be kind."})
        >>> [kept.version for kept in hub.blueprint_versions(agency, "guide")]
        [1, 0]
        >>> hub.close()
        """
        return self._catalogue.versions(agency, name)

    @kinds.checked
    def delete_blueprint(self, agency: Agency, name: str) -> None:
        """Forget what the ``agency`` keeps of the blueprint ``name``; that of the code stays.

        Raises :class:`~sagents_nb.errors.NotFound` where it keeps none.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> _ = hub.save_blueprint(agency, {"name": "guide", "prompt": "Be kind."})
        >>> hub.delete_blueprint(agency, "guide")
        >>> hub.blueprints(agency)
        []
        >>> hub.close()
        """
        self._catalogue.delete_blueprint(agency, name)

    @kinds.checked
    def agent(self, agency: Agency, type: str) -> Agent:
        """An agent of the blueprint ``type`` of the ``agency``, for what is kept nowhere.

        It has no sub-agents, since no thread waits for them. Raises
        :class:`~sagents_nb.errors.NotFound` and :class:`~sagents_nb.errors.ConfigurationError`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.agent(agency, "guide").name
        'guide'
        >>> hub.close()
        """
        blueprint = self._catalogue.blueprint(agency, type)
        return self.system.agent(blueprint, self._catalogue.values(agency))

    # threads

    @kinds.checked(request=kinds.of(Mapping[str, str]), variables=kinds.of(Mapping[str, Any]))
    def create_thread(
        self,
        agency: Agency,
        type: str,
        *,
        request: Mapping[str, str] = {},
        variables: Mapping[str, Any] = {},
        schedule_run: str | None = None,
    ) -> Thread:
        """A new thread of the ``agency`` with an agent of the blueprint ``type``.

        It keeps the blueprint as it is now. ``request`` says where it came from, and ``variables``
        are the ``tool_context`` of its agent, besides those of the agency. ``schedule_run`` is the
        run of a schedule that it does: its id is that of the thread, which is made once. Raises
        :class:`~sagents_nb.errors.NotFound` for a blueprint that is not there, and
        :class:`~sagents_nb.errors.ConfigurationError` for one that no agent can be made of; nothing
        was made then.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.create_thread(agency, "guide").status
        'registered'
        >>> hub.close()
        """
        if schedule_run is not None and self._threads.find(agency, schedule_run) is not None:
            return self.thread(agency, schedule_run)  # a kill came before it was told of
        record = ThreadRecord(
            id=schedule_run or uuid.uuid4().hex,
            agency_id=agency.id,
            created_at=datetime.now(UTC),
            # The agency may be deleted by now.
            blueprint=self._catalogue.blueprint(self.agency(agency.id), type),
            request=dict(request),
            variables=dict(variables),
            schedule_run=schedule_run,
        )
        return self._threads.create(agency, record)

    @kinds.checked(name=kinds.of(str), request=kinds.of(Mapping[str, str]))
    def named_thread(
        self, agency: Agency, type: str, name: str, *, request: Mapping[str, str] = {}
    ) -> Thread:
        """The thread of the ``agency`` that a client calls ``name``; made on its first use.

        Its id is made of both and of a key of this store, so two agencies have two threads of one
        name, and nobody can say the id of another's. Raises
        :class:`~sagents_nb.errors.ConfigurationError` where the thread of that name is of another
        blueprint than ``type``, and what :meth:`create_thread` raises.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.named_thread(agency, "guide", "tab-1")
        >>> hub.named_thread(agency, "guide", "tab-1") is thread, len(thread.record.id)
        (True, 32)
        >>> hub.close()
        """
        id = self.signed(f"{agency.id}\n{name}").hex()[:32]
        with self._naming:  # of two who name it first, one makes it
            record = self._threads.find(agency, id)
            if record is None:
                record = ThreadRecord(
                    id=id,
                    agency_id=agency.id,
                    created_at=datetime.now(UTC),
                    blueprint=self._catalogue.blueprint(agency, type),
                    request=dict(request),
                )
                return self._threads.create(agency, record)
        if record.type != type:
            raise ConfigurationError(
                f"The thread {name!r:.110} is of the kind {record.type!r}, not {type!r:.110}; "
                "choose another name for it."
            )
        return self.thread(agency, id)

    @kinds.checked
    def signed(self, text: str) -> bytes:
        """32 bytes for a ``text``, which nobody else can say: the same from all over one store.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> len(hub.signed("a")), hub.signed("a") == hub.signed("a")
        (32, True)
        >>> hub.close()
        """
        return self._catalogue.signed(text)

    @kinds.checked
    def threads(self, agency: Agency) -> list[ThreadRecord]:
        """Those of the ``agency``, the newest first.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.threads(agency)
        []
        >>> hub.close()
        """
        found = self._run(agencies.conversations_of, agency)
        return [record for each in found if (record := record_of(agency, each)) is not None]

    @kinds.checked
    def standings(self, agency: Agency) -> dict[str, Standing]:
        """What the threads of the ``agency`` are, by their ids; none of one that has done nothing.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.standings(agency)
        {}
        >>> hub.close()
        """
        found = self._run(standings.listed, agency)
        if not agency.is_notebook:
            return found
        here = self.doors.reachable()
        return {
            id: standing if id in here else notebooks.as_left(standing)
            for id, standing in found.items()
        }

    def served(self) -> set[str]:
        """The threads that a process has open now which can be asked for them, this one or another.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.served()
        set()
        >>> hub.close()
        """
        return self.doors.reachable()

    @kinds.checked
    def spent(self, agency: Agency) -> Spent:
        """What the threads of the ``agency`` have used, those that were deleted not counted.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.spent(agency).model_calls
        0
        >>> hub.close()
        """
        return self._run(standings.spent, agency)

    def waiting(self) -> list[tuple[Agency, ThreadRecord, Standing]]:
        """The threads of all agencies that wait for people, the longest first.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.waiting()
        []
        >>> hub.close()
        """
        if not self._run(standings.count_waiting):
            return []
        here = self.doors.reachable()
        found = [
            (agency, record, standing)
            for agency in self.agencies()
            for conversation, standing in self._run(standings.waiting, agency)
            if (record := record_of(agency, conversation)) is not None
            and (record.id in here or not agency.is_notebook)
        ]
        return sorted(found, key=lambda each: each[2].at or each[1].created_at)

    @kinds.checked
    def thread(self, agency: Agency, id: str) -> Thread:
        """The thread of that ``id`` of the ``agency``, opened here if it is not.

        Raises :class:`~sagents_nb.errors.NotFound`, also for another agency's, and
        :class:`~sagents_nb.errors.Owned` where another process has it open.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> hub.thread(agency, thread.record.id) is thread
        True
        >>> hub.close()
        """
        return self._threads.get(agency, id)

    def _agent(self, agency: Agency, record: ThreadRecord) -> Agent:
        delegate = partial(self._children.delegate, agency, record)
        values = {**self._catalogue.values(agency), **record.variables}
        return self.system.agent(record.blueprint, values, delegate)

    @kinds.checked
    def guest(self, agency: Agency, type: str, limits: Limits) -> Session:
        """A conversation that is kept nowhere, with an agent of the ``agency``; None are begun.

        Those that are open count as active runs, and end with their agency. Raises
        :class:`~sagents_nb.hub.limits.TooMany` where as many are active as the ``limits`` say, and
        what :meth:`agent` raises.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> from sagents_nb.hub.limits import Limits
        >>> with hub.guest(agency, "guide", Limits()) as session:
        ...     hub.active_runs()
        1
        >>> hub.close()
        """
        agent = self.agent(agency, type)
        with self._room.take(agency, limits, kept=False) as beginning:
            return self._guests.begin(agency, agent, beginning)

    @kinds.checked
    def check_room(self, agency: Agency, limits: Limits) -> None:
        """Raise :class:`~sagents_nb.hub.limits.TooMany` where the ``agency`` may begin no run.

        That is where as many are active as the ``limits`` say, or as many of its threads wait for
        people. Answering one, or cancelling it, is not beginning one.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> from sagents_nb.hub.limits import Limits
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.check_room(agency, Limits())
        >>> hub.close()
        """
        self._room.check(agency, limits)

    @kinds.checked(limits=kinds.or_none(kinds.of(Limits)))
    def room(
        self, agency: Agency, limits: Limits | None, thread: Thread | None = None
    ) -> AbstractContextManager[Beginning]:
        """Room for a run of the ``agency`` that is about to begin, as if it had begun.

        It is given back with the context, in which it begins: of the ``thread``, where there is one
        already. One that runs or waits is only told more, for which there always is room, as there
        is without ``limits``. Entering raises what :meth:`check_room` raises.

        >>> import sagents_nb as sa
        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> from sagents_nb.hub.limits import Limits
        >>> system = AgentSystem(sa.ScriptedModel(["Sun."])).add_agent(Blueprint("guide", "Be it."))
        >>> hub = Hub(system, "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> with hub.room(agency, Limits(runs=1), thread):
        ...     thread.invoke([sa.Message.user("How is the weather?")])["status"]
        'running'
        >>> hub.close()
        """
        if thread is None:
            return self._room.take(agency, limits)
        is_at_work = thread.status in ("running", "paused")
        return self._room.take(agency, None if is_at_work else limits, thread.record.id)

    def active_runs(self) -> int:
        """How many threads run now, here, and guests there are.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.active_runs()
        0
        >>> hub.close()
        """
        return len(self._active())

    def _active(self) -> set[str]:
        return self._guests.active() | self._threads.active()

    @kinds.checked(variables=kinds.of(Mapping[str, Any]))
    def set_variables(self, agency: Agency, thread: Thread, variables: Mapping[str, Any]) -> None:
        """Change ``variables`` of a ``thread`` of the ``agency``, from its next run on.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> hub.set_variables(agency, thread, {"city": "Oslo"})
        >>> thread.record.variables
        {'city': 'Oslo'}
        >>> hub.close()
        """
        self._threads.set_variables(agency, thread, variables)

    @kinds.checked(since=kinds.whole(0))
    def events(self, agency: Agency, id: str, since: int = 0) -> list[ThreadEvent]:
        """What was told of the thread ``id`` of the ``agency`` after the event number ``since``.

        Those of :data:`~sagents_nb.hub.event_log.MOST_READ` at most. Raises
        :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.events(agency, hub.create_thread(agency, "guide").record.id)
        []
        >>> hub.close()
        """
        self._threads.record(agency, id)
        return self._run(event_log.read, id, since)

    @kinds.checked
    def delete_thread(self, agency: Agency, id: str) -> None:
        """Stop the thread ``id`` of the ``agency`` and delete all of it, its files too.

        A conversation of a notebook is only shown no more: all of it stays there. Raises
        :class:`~sagents_nb.errors.NotFound`, and :class:`~sagents_nb.errors.Owned` where another
        process has it open.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.delete_thread(agency, hub.create_thread(agency, "guide").record.id)
        >>> hub.threads(agency)
        []
        >>> hub.close()
        """
        record = self._threads.record(agency, id)
        if record.in_notebook:
            self._notebooks.withdraw(agency, id)
            return
        self._threads.delete(agency, id, partial(self.cancel, agency))
        if record.parent is not None:
            self._children.gone(agency, id, record.parent)

    # conversations of notebooks

    @kinds.checked
    def show(self, notebook: str, session: Session) -> Thread:
        """Have a ``session`` of this process be a thread of the agency of that ``notebook``.

        It is kept in this hub's store, for nobody's scope, and stays as it is: only its events are
        kept as well, and who may ask this hub may ask it. The agency is made if it is not there.
        Raises :class:`~sagents_nb.errors.ConfigurationError` for a session that is not kept there,
        and for an id that can stand in no address.

        >>> import sagents_nb as sa
        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!"]))
        >>> session = sa.Session(agent, id="notebook-1", store=hub.store)
        >>> _ = session.send("hi").result()
        >>> thread = hub.show("trip.ipynb", session)
        >>> hub.agency(thread.record.agency_id).name, thread.status
        ('trip.ipynb', 'completed')
        >>> session.close()
        >>> hub.close()
        """
        return self._notebooks.show(notebook, session)

    @kinds.checked
    def kept(self, agency: Agency, id: str) -> KeptThread:
        """What there is to be read of a conversation of a notebook that no kernel serves.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!"]))
        >>> session = sa.Session(agent, id="notebook-1", store=hub.store)
        >>> _ = session.send("hi").result()
        >>> agency = hub.agency(hub.show("trip.ipynb", session).record.agency_id)
        >>> session.close()
        >>> hub.kept(agency, "notebook-1").state()["state"]["messages"][-1]["content"]
        'Hello!'
        >>> hub.close()
        """
        return self._notebooks.kept(agency, id)

    # variables

    @kinds.checked(changes=kinds.of(Mapping[str, Any]))
    def save_variables(self, agency: Agency, changes: Mapping[str, Any]) -> None:
        """Keep variables of the ``agency``, for the agents of threads that are opened from now on.

        Their values are shown to nobody. ``"$NAME"`` is the variable of the process, where the
        hub's ``environment`` has it. Raises :class:`~sagents_nb.errors.ConfigurationError` for a
        name that is none, for one of the process that the hub does not allow, and for
        MAX_ITERATIONS that is no number.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.save_variables(agency, {"city": "Oslo"})
        >>> hub.variables(agency)
        ['city']
        >>> hub.close()
        """
        self._catalogue.save_variables(agency, changes)

    @kinds.checked
    def variables(self, agency: Agency) -> list[str]:
        """The names of the variables of the ``agency``.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.variables(agency)
        []
        >>> hub.close()
        """
        return self._catalogue.variables(agency)

    @kinds.checked
    def delete_variable(self, agency: Agency, name: str) -> None:
        """Forget the variable ``name`` of the ``agency``.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> hub.save_variables(agency, {"city": "Oslo"})
        >>> hub.delete_variable(agency, "city")
        >>> hub.variables(agency)
        []
        >>> hub.close()
        """
        self._catalogue.delete_variable(agency, name)

    # sub-agents

    @kinds.checked
    def cancel(self, agency: Agency, thread: Thread) -> None:
        """Stop a ``thread`` of the ``agency``, and first the children that it waits for.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> hub.cancel(agency, thread)
        >>> thread.status
        'canceled'
        >>> hub.close()
        """
        self._children.cancel(agency, thread)
        thread.cancel()

    @kinds.checked
    def cancel_thread(self, agency: Agency, id: str) -> None:
        """:meth:`cancel` the thread of that ``id``, also where another process has it open.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb.hub import AgentSystem, Blueprint, Hub
        >>> hub = Hub(AgentSystem("demo").add_agent(Blueprint("guide", "Be brief.")), "sqlite://")
        >>> agency, secret = hub.create_agency("Weather")
        >>> thread = hub.create_thread(agency, "guide")
        >>> hub.cancel_thread(agency, thread.record.id)
        >>> thread.status
        'canceled'
        >>> hub.close()
        """
        try:
            self.cancel(agency, self.thread(agency, id))
        except Owned as owned:
            self.doors.ask(owned, "POST", f"{thread_path(agency.id, id)}/cancel")

    # what follows

    def _stopped(self, agency: Agency, thread: Thread) -> None:
        """A thread has ended, or waits: on the runtime loop."""
        parent = thread.record.parent
        if thread.record.attempts:
            self._later(self._recovery.got_on, agency, thread)
        if parent is not None and thread.status != "paused":
            self._later(self._children.give, agency, thread, parent)
        if thread.record.schedule_run is not None:
            self._later(self.scheduler.ended, agency, thread)
        if links_of(thread.session.state.interrupt):
            self._later(self._children.settle, agency, thread.record.id)

    def _named(self, agency: Agency, thread: Thread, title: str) -> None:
        """What a thread is about is known: on the runtime loop."""
        self._later(partial(self._threads.keep, agency, thread, title=title))

    def _later(self, work: Callable[..., None], *args: Any) -> None:
        """Have it done by somebody who may wait for the store."""
        with suppress(RuntimeError):  # the hub ends: it is done where it is opened again
            self._workers.submit(work, *args)

    # after an end of the process

    def recover(self) -> int:
        """Go on with what an end of a process cut off; how many runs.

        That is done at the start of the hub, and what another process has is left alone: when that
        one has ended, and somebody asks here for a thread of it, it is gone on with then. After
        :data:`~sagents_nb.hub.recovery.MOST_ATTEMPTS` a run is left to people: it is paused. What
        may have run, and nobody knows, waits for people at once.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.recover()
        0
        >>> hub.close()
        """
        return self._recovery.recover(self.agencies())

    def close(self) -> None:
        """Stop what runs and let go of everything; what is kept goes on where it is opened again.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> Hub(AgentSystem("demo"), "sqlite://").close()
        """
        self.scheduler.stop()  # it would say of what begins now that it failed
        live = self._threads.end()
        self.doors.close()
        self._children.stop()
        self._workers.shutdown(cancel_futures=True)
        self._threads.close(live)
        if self._own:
            self.store.close()


def _size_of(path: Path) -> int:
    """Bytes of an SQLite file, with what is not copied to it yet."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
