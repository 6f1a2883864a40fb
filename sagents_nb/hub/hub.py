"""The hub: agencies, and the threads of theirs that are open here, over one store."""

from __future__ import annotations

import hmac
import secrets
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec
import sqlalchemy as sql

from .. import kinds
from ..agent import Agent
from ..errors import ConfigurationError, NotFound, Owned, SagentsError, StaleOwner
from ..events import Event
from ..files import Mount, VirtualFilesystem
from ..messages import Message
from ..scope import owner_of
from ..session import Session
from ..sql import path_of
from ..store import ConversationStore, conversations
from ..text import logger_of
from . import agencies, blueprints, event_log, notebooks, standings, variables
from .agencies import Agency, digest_of
from .blueprints import Blueprint, KeptBlueprint
from .doors import Doors, thread_path
from .event_log import EVENTS_KEPT, EventLog, ThreadEvent
from .limits import Limits, TooMany
from .notebooks import KeptThread, NoKernel
from .operations import Figures, line
from .reports import Reports
from .scheduler import Scheduler
from .standings import Spent, Standing
from .sub_agents import Task, links_of
from .system import AgentSystem
from .thread_files import ThreadFiles, scope_of
from .threads import NotebookThread, Thread, ThreadRecord, is_id, missing, record_of
from .variables import resolved
from .vocabulary import SPAWNED, Translator

logger = logger_of(__name__)

T = TypeVar("T")

_WORKERS = 4

MOST_ATTEMPTS = 3
"""How often a run is gone on with after an end of the process, without getting to an end itself."""

MOST_OPEN = 500
"""Threads after which those that rest are forgotten, until somebody asks for them."""

RESTS_AFTER = 300.0
"""Seconds after which a thread that nobody needs lets its conversation go."""

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
        self._events_kept = events_kept
        self._files = ThreadFiles(self.store.database.url)
        self._live: dict[str, Thread] = {}
        self._lock = threading.Lock()
        # Of several who open, change or delete one thread at once, each does it alone.
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._naming = threading.Lock()
        self._key: bytes | None = None
        self._guests: WeakKeyDictionary[Session, str] = WeakKeyDictionary()
        self._closed = self._recovers = False
        self._keeping = threading.Lock()
        self.figures = self._figures()
        # For what follows from an end of a run, which waits for the store.
        self._workers = ThreadPoolExecutor(_WORKERS, "sagents-hub")
        self._reports = Reports(self)
        self.scheduler = Scheduler(self)
        self.doors = Doors(self.store.database)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Hub over {self.store!r}: {len(self._live)} threads are open>"

    def _figures(self) -> Figures:
        """What is counted here, and what can be asked at any time for little."""
        figures, path = Figures(), path_of(self.store.database.url)
        figures.gauge("sagents_hub_active_runs", "Runs that are active.", self.active_runs)
        figures.gauge("sagents_hub_open_threads", "Threads open here.", lambda: len(self._live))
        figures.gauge(
            "sagents_hub_waiting_threads",
            "Threads of all agencies that wait for people.",
            lambda: self._run(standings.count_waiting),
        )
        if path is not None:
            figures.gauge(
                "sagents_hub_store_bytes", "Size of the store's file.", lambda: _size_of(path)
            )
        return figures

    def _run(self, query: Callable[..., T], *args: Any) -> T:
        tables = self.store.database.tables
        return self.store.database.run(lambda connection: query(connection, tables, *args))

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
        return self._run(agencies.create, name)

    def agencies(self) -> list[Agency]:
        """All of them, the newest first.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.agencies()
        []
        >>> hub.close()
        """
        return self._run(agencies.listed)

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
        return self._run(agencies.get, id)

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
        return self._run(agencies.of_secret, digest)

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
        _refuse_notebook(agency)
        return self._run(agencies.new_secret, agency.id)

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
        for guest, id in tuple(self._guests.items()):
            if id == agency.id:
                guest.close("its agency is deleted")
        for record in self.threads(agency):
            try:
                self.delete_thread(agency, record.id)
            except NotFound:
                continue  # somebody was faster
            except Owned as owned:
                self.doors.ask(owned, "DELETE", thread_path(agency.id, record.id))
        self._run(agencies.delete, agency)

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
        if agency.is_notebook:
            return []
        kept = self._run(blueprints.listed, agency.id)
        return blueprints.merged(self.system.blueprints.values(), kept)

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
        _refuse_notebook(agency)

        def save(connection: sql.Connection, tables: Any) -> KeptBlueprint:
            agencies.get(connection, tables, agency.id)  # it may be deleted by now
            static = self.system.blueprints
            kept = blueprints.save(connection, tables, agency.id, changes, static)
            self.system.check(kept.blueprint)
            return kept

        return self._run(save)

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
        _refuse_notebook(agency)
        found = self._run(blueprints.versions, agency.id, name)
        if name in self.system.blueprints:
            found.append(KeptBlueprint(self.system.blueprints[name]))
        if not found:
            raise _no_blueprint(name)
        return found

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
        self._run(blueprints.delete, agency.id, name)

    def _blueprint(self, agency: Agency, name: str) -> Blueprint:
        _refuse_notebook(agency)
        kept = self._run(blueprints.find, agency.id, name)
        found = self.system.blueprints.get(name) if kept is None else kept.blueprint
        if found is None:
            raise _no_blueprint(name)
        return found

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
        return self.system.agent(self._blueprint(agency, type), self._values(agency))

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
        if schedule_run is not None and self._find(agency, schedule_run) is not None:
            return self.thread(agency, schedule_run)  # a kill came before it was told of
        record = ThreadRecord(
            id=schedule_run or uuid.uuid4().hex,
            agency_id=agency.id,
            created_at=datetime.now(UTC),
            blueprint=self._blueprint(self.agency(agency.id), type),  # it may be deleted by now
            request=dict(request),
            variables=dict(variables),
            schedule_run=schedule_run,
        )
        return self._created(agency, record)

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
            record = self._find(agency, id)
            if record is None:
                record = ThreadRecord(
                    id=id,
                    agency_id=agency.id,
                    created_at=datetime.now(UTC),
                    blueprint=self._blueprint(agency, type),
                    request=dict(request),
                )
                return self._created(agency, record)
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
        if self._key is None:
            self._key = self._run(variables.key_of_hub)
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")

    def _created(self, agency: Agency, record: ThreadRecord) -> Thread:
        self._agent(agency, record)  # what cannot be one is refused before anything is made
        mine = self.store.scoped(agency)
        mine.create_conversation(metadata=record.metadata(), id=record.id)
        return self.thread(agency, record.id)

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

    def _find(self, agency: Agency, id: str) -> ThreadRecord | None:
        mine = self.store if agency.is_notebook else self.store.scoped(agency)
        conversation = mine.find_conversation(id)
        return None if conversation is None else record_of(agency, conversation)

    def _record(self, agency: Agency, id: str) -> ThreadRecord:
        record = self._find(agency, id)
        if record is None:
            raise missing(id)
        return record

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
        with self._turn(id):
            return self._open(agency, id)

    def _turn(self, id: str) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(id, threading.Lock())

    def _open(self, agency: Agency, id: str) -> Thread:
        """The thread, for whose turn it is."""
        live = self._live.get(id)
        if isinstance(live, NotebookThread):
            if not live.is_gone and live.record.agency_id == agency.id:
                return live
            live = None
        elif live is not None and live.session.resting is not None:
            live.close("it rests")  # another process may have gone on with it since
            live = None
        if live is None or live.is_gone:
            live = self._opened(self._record(agency, id), agency)
            with self._lock:
                if not self._closed:
                    self._live[id] = live
            if self._recovers and live.was_cut_off:
                self._go_on(agency, live)
                self._stopped(agency, live)
            if len(self._live) > MOST_OPEN:
                self._workers.submit(self._let_go)
            if self._closed:
                live.close("the hub ends")
        if self._closed:
            raise ConfigurationError("This hub is closed; make a new one.")
        if live.record.agency_id != agency.id:
            raise missing(id)
        return live

    def _opened(self, record: ThreadRecord, agency: Agency) -> Thread:
        if record.in_notebook:
            raise self.doors.holder(record.id) or NoKernel()
        files = VirtualFilesystem(
            scope_of(record.id), [Mount(default=True, storage=self._files, debounce=0)]
        )
        session = Session.open(
            record.id,
            agent=self._agent(agency, record),
            store=self.store,
            scope=agency,
            filesystem=files,
            inactivity_timeout=RESTS_AFTER,
        )
        session.steering_batch = "wait"  # what is said meanwhile takes no call's turn
        session.steering_mode = "all"
        log = EventLog(self.store.database, record.id, session.when_kept, self._events_kept)
        log.listen(partial(self.figures.hear, agency.id))
        self._files.follow(log)
        return Thread(
            record, session, log, partial(self._stopped, agency), partial(self._name, agency)
        )

    def _agent(self, agency: Agency, record: ThreadRecord) -> Agent:
        delegate = partial(self._delegate, agency, record)
        values = {**self._values(agency), **record.variables}
        return self.system.agent(record.blueprint, values, delegate)

    def _values(self, agency: Agency) -> dict[str, Any]:
        return resolved(self._run(variables.listed, agency.id), self.environment)

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
        with self._lock:
            self._check_runs(limits)
            session = Session(agent, inactivity_timeout=None)
            self._guests[session] = agency.id
        translator = Translator(agent.model.name)

        def hear(event: Event) -> None:
            for told in translator.translate(event):
                self.figures.take(told)

        session.subscribe(hear)
        return session

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
        self._check_runs(limits)
        waiting = self._run(standings.count_waiting, agency)
        if waiting >= limits.approvals:
            raise TooMany(
                f"{waiting} threads of this agency wait for people, as many as it may have; answer "
                "or cancel one, then try again."
            )

    def _check_runs(self, limits: Limits) -> None:
        if self.active_runs() >= limits.runs:
            raise TooMany(
                f"{limits.runs} runs are active, as many as this hub takes; try again when one has "
                "ended."
            )

    def active_runs(self) -> int:
        """How many threads run now, here, and guests there are.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.active_runs()
        0
        >>> hub.close()
        """
        guests = sum(each.status != "closed" for each in tuple(self._guests))
        return guests + sum(each.session.status == "running" for each in tuple(self._live.values()))

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
        if thread.record.in_notebook:
            raise ConfigurationError(
                "The agent of this thread is a notebook's; say there what its tools are told, as "
                "tool_context."
            )
        with self._turn(thread.record.id):
            both = {**thread.record.variables, **variables}
            record = msgspec.structs.replace(thread.record, variables=both)
            agent = self._agent(agency, record)
            self._write(agency, thread, record)
            thread.replace_agent(record, agent)

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
        self._record(agency, id)
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
        with self._turn(id):
            if self._record(agency, id).in_notebook:
                self._withdraw(id)
                return
            thread = self._open(agency, id)
            self.cancel(agency, thread)
            for path in thread.session.files.list():
                thread.session.files.delete(path)
            thread.close("deleted")
            with self._lock:
                self._live.pop(id, None)
            self.store.scoped(agency).delete_conversation(id)

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
        if session.options.store is not self.store or session.scope is not None:
            raise ConfigurationError(
                f"{session.id!r:.110} is not kept where this hub looks; start it with that store, "
                "and without a scope."
            )
        if not is_id(session.id):
            raise ConfigurationError(
                f"{session.id!r:.110} can be no address; choose a name of 1 to 100 letters, "
                "digits, _ and -."
            )
        id = session.id
        with self._turn(id):
            live = self._live.get(id)
            if live is not None:
                if live.session is session and not live.is_gone:
                    return live
                live.close("it is shown anew")
            shown = self._run(notebooks.show, notebook, id)
            log = EventLog(self.store.database, id, session.when_kept, self._events_kept)
            thread = NotebookThread(shown, session, log)
            with self._lock:
                if not self._closed:
                    self._live[id] = thread
            if self._closed:
                thread.close("the hub ends")
                raise ConfigurationError("This hub is closed; make a new one.")
            return thread

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
        record = self._record(agency, id)
        if not record.in_notebook:
            raise missing(id)
        return KeptThread(self.store, record)

    def _withdraw(self, id: str) -> None:
        """Show a conversation of a notebook no more; for whose turn it is."""
        live = self._live.get(id)
        if live is None and (owned := self.doors.holder(id)) is not None:
            raise owned
        self._run(notebooks.withdraw, id)
        with self._lock:
            self._live.pop(id, None)
        if live is not None:
            live.close("it is shown no more")

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
        _refuse_notebook(agency)
        variables.check(changes, self.environment)
        self._run(variables.save, agency.id, changes)

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
        return list(self._run(variables.listed, agency.id))

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
        self._run(variables.delete, agency.id, name)

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
        for link in links_of(thread.session.state.interrupt):
            with suppress(NotFound):
                self.cancel_thread(agency, link.child_id)
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

    def _delegate(self, agency: Agency, parent: ThreadRecord, task: Task) -> tuple[str, str]:
        """Have the child of a task begin, if it has not; gives its id and its token's digest."""
        key = f"task {task.id}"
        if task.child is not None:
            child = self.thread(agency, self._child_of(agency, parent, task.child))
            if not child.has_accepted(key):  # each report has a token of its own
                self._keep(agency, child, parent=_reporting_to(parent))
        else:
            if self._find(agency, task.id) is not None:  # it was made before a crash
                child = self.thread(agency, task.id)
            else:
                record = ThreadRecord(
                    id=task.id,
                    agency_id=agency.id,
                    created_at=datetime.now(UTC),
                    blueprint=task.blueprint or self._blueprint(agency, task.type),
                    request=parent.request,
                    variables=parent.variables,
                    parent=_reporting_to(parent),
                )
                child = self._created(agency, record)
            teller = self.thread(agency, parent.id)
            if task.id not in teller.children:
                spawned = {"childThreadId": task.id, "toolCallId": task.tool_call_id}
                teller.tell([(SPAWNED, spawned)])
        child.invoke([Message.user(task.description)], idempotency_key=key)
        assert child.record.parent is not None
        return child.record.id, digest_of(child.record.parent["token"])

    def _child_of(self, agency: Agency, parent: ThreadRecord, named: str) -> str:
        """The id of a child, which may be named by its number."""
        children = self.thread(agency, parent.id).children
        if named.isascii() and named.isdigit() and 1 <= int(named[:9]) <= len(children):
            return children[int(named[:9]) - 1]
        if named in children:
            return named
        raise NotFound(
            f"There is no sub-agent {named!r:.110}; there are {len(children)}, by their numbers."
        )

    def _stopped(self, agency: Agency, thread: Thread) -> None:
        """A thread has ended, or waits: on the runtime loop."""
        parent = thread.record.parent
        with suppress(RuntimeError):  # the hub ends: it is done where it is opened again
            if thread.record.attempts:
                self._workers.submit(self._forget_attempts, agency, thread)
            if parent is not None and thread.status != "paused":
                self._workers.submit(self._reports.give, agency, thread, parent)
            if thread.record.schedule_run is not None:
                self._workers.submit(self.scheduler.ended, agency, thread)
            if links_of(thread.session.state.interrupt):
                self._workers.submit(self._reports.settle, agency, thread.record.id)

    # after an end of the process

    def recover(self) -> int:
        """Go on with what an end of a process cut off; how many runs.

        That is done at the start of the hub, and what another process has is left alone: when that
        one has ended, and somebody asks here for a thread of it, it is gone on with then. After
        :data:`MOST_ATTEMPTS` a run is left to people: it is paused. What may have run, and nobody
        knows, waits for people at once.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> hub = Hub(AgentSystem("demo"), "sqlite://")
        >>> hub.recover()
        0
        >>> hub.close()
        """
        count = 0
        self._recovers = True
        for agency in self.agencies():
            for id in self._run(agencies.cut_off, agency):
                try:
                    thread = self.thread(agency, id)
                    if not thread.went_on:  # of what a crash cut off nothing may have been told
                        self._go_on(agency, thread)
                    count += thread.went_on
                    self._stopped(agency, thread)
                except Owned:
                    continue  # it is at work elsewhere
                except SagentsError as error:
                    logger.warning("Thread %s could not be gone on with: %s", id, error)
        line("hub.recovered", runs=count)
        return count

    def _go_on(self, agency: Agency, thread: Thread) -> None:
        attempts = thread.record.attempts
        if attempts < MOST_ATTEMPTS:
            self._keep(agency, thread, attempts=attempts + 1)
            thread.go_on()

    def _let_go(self) -> None:
        """Forget threads that rest: they are read anew when somebody asks for them."""
        for id, live in tuple(self._live.items()):
            if live.session.resting is not None:
                with self._turn(id):
                    if live.session.resting is not None and self._live.get(id) is live:
                        del self._live[id]
                        live.close("it rests")

    def _forget_attempts(self, agency: Agency, thread: Thread) -> None:
        self._keep(agency, thread, attempts=0)

    def _name(self, agency: Agency, thread: Thread, title: str) -> None:
        """What a thread is about is known: on the runtime loop."""
        with suppress(RuntimeError):  # the hub ends
            self._workers.submit(self._keep, agency, thread, title=title)

    def _keep(self, agency: Agency, thread: Thread, **changes: Any) -> None:
        # It may have been deleted meanwhile, or another process may have it.
        with self._keeping, suppress(NotFound, StaleOwner):
            thread.record = msgspec.structs.replace(thread.record, **changes)
            named = {"title": changes["title"]} if "title" in changes else {}
            self._write(agency, thread, thread.record, **named)

    def _write(self, agency: Agency, thread: Thread, record: ThreadRecord, **named: Any) -> None:
        """Keep a ``record`` of a ``thread``; raises StaleOwner where another process has it."""
        owner, changes = owner_of(agency), {"metadata": record.metadata(), **named}

        def write(connection: sql.Connection) -> None:
            thread.log.check(connection)
            tables = self.store.database.tables
            conversations.update(connection, tables, owner, record.id, changes)

        self.store.database.run(write, about=record.id)

    def close(self) -> None:
        """Stop what runs and let go of everything; what is kept goes on where it is opened again.

        >>> from sagents_nb.hub import AgentSystem, Hub
        >>> Hub(AgentSystem("demo"), "sqlite://").close()
        """
        self.scheduler.stop()  # it would say of what begins now that it failed
        with self._lock:
            live, self._live, self._closed = list(self._live.values()), {}, True
        self.doors.close()
        self._reports.stop()
        self._workers.shutdown(cancel_futures=True)
        for thread in live:
            thread.close("the hub ends")
        self._files.close()
        if self._own:
            self.store.close()


def _refuse_notebook(agency: Agency) -> None:
    """Raise ConfigurationError for an agency in which nothing begins but in its notebook."""
    if agency.is_notebook:
        raise ConfigurationError(
            f"What {agency.name!r:.110} has begins in that notebook; choose another agency."
        )


def _size_of(path: Path) -> int:
    """Bytes of an SQLite file, with what is not copied to it yet."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _no_blueprint(name: str) -> NotFound:
    return NotFound(
        f"This agency has no blueprint {name!r:.110}; its list of blueprints names them."
    )


def _reporting_to(parent: ThreadRecord) -> dict[str, str]:
    return {"threadId": parent.id, "token": secrets.token_urlsafe(32)}
