"""Threads that are open in this process: each is opened, changed and deleted by one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import sqlalchemy as sql

from ..agent import Agent
from ..errors import ConfigurationError, NotFound, SagentsError, StaleOwner
from ..files import Mount, VirtualFilesystem
from ..scope import owner_of
from ..session import Session
from ..store import ConversationStore, conversations
from ..store.database import leases
from . import agencies, standings
from .agencies import Agency
from .doors import Doors
from .event_log import EventLog, ThreadEvent
from .records import ThreadRecord, missing, record_of
from .thread_files import ThreadFiles, scope_of
from .threads import NoKernel, NotebookThread, Thread

MOST_OPEN = 500
"""Threads after which those that rest are forgotten, until somebody asks for them."""

RESTS_AFTER = 300.0
"""Seconds after which a thread that nobody needs lets its conversation go."""


class Following(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from what threads do.

    ``opened`` is called once one was opened from what is kept, for whose turn it is; ``stopped``,
    ``named`` and ``told`` on the runtime loop: a run of it has ended or waits, it has a title, and
    an event of it was told. ``full`` is called when more than :data:`MOST_OPEN` are open.
    """

    opened: Callable[[Agency, Thread], None]
    stopped: Callable[[Agency, Thread], None]
    named: Callable[[Agency, Thread, str], None]
    told: Callable[[str, ThreadEvent | None], None]
    full: Callable[[], None]


class OpenThreads:
    """The threads of a ``store`` that are open here, by their ids; those of others have ``doors``.

    ``agent_of`` makes the agent of one, which is kept with the newest ``events_kept`` of its
    events. For no event loop, but for :meth:`active` and ``len``.
    """

    def __init__(
        self,
        store: ConversationStore,
        doors: Doors,
        agent_of: Callable[[Agency, ThreadRecord], Agent],
        events_kept: int,
        following: Following,
    ) -> None:
        self._store = store
        self._doors = doors
        self._agent_of = agent_of
        self._events_kept = events_kept
        self._following = following
        self._files = ThreadFiles(store.database.url)
        self._live: dict[str, Thread] = {}
        self._agencies: dict[str, Agency] = {}  # of threads that were opened here, by their ids
        self._lock = threading.Lock()
        # Of several who open, change or delete one thread at once, each does it alone.
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._keeping = threading.Lock()
        self._stalls = store.database.stalls
        self._closed = False

    def __len__(self) -> int:
        return len(self._live)

    def active(self) -> set[str]:
        """The ids of those that run now."""
        return {id for id, each in tuple(self._live.items()) if each.session.status == "running"}

    def waiting(self, agency: Agency) -> set[str]:
        """The ids of the threads of an agency that wait for people, open or not."""
        kept = self._store.database.query(standings.waiting_ids, agency)
        # What those do that are open here may not be kept yet.
        here = {
            id: each.waits_for_people
            for id, each in tuple(self._live.items())
            if each.record.agency_id == agency.id and each.session.resting is None
        }
        return {id for id in kept if here.get(id, True)} | {id for id in here if here[id]}

    # what is kept

    def find(self, agency: Agency, id: str) -> ThreadRecord | None:
        """What is kept of a thread, open or not; None where there is none."""
        mine = self._store if agency.is_notebook else self._store.scoped(agency)
        conversation = mine.find_conversation(id)
        return None if conversation is None else record_of(agency, conversation)

    def record(self, agency: Agency, id: str) -> ThreadRecord:
        """The same; raises NotFound where there is none."""
        record = self.find(agency, id)
        if record is None:
            raise missing(id)
        return record

    def create(self, agency: Agency, record: ThreadRecord) -> Thread:
        """A new thread, open."""
        self._agent_of(agency, record)  # what cannot be one is refused before anything is made
        owner, metadata = owner_of(agency), record.metadata()

        def begin(connection: sql.Connection) -> None:
            tables = self._store.database.tables
            agencies.hold(connection, tables, agency)
            conversations.create(connection, tables, owner, None, metadata, record.id)

        self._store.database.run(begin, about=record.id)
        return self.get(agency, record.id)

    def keep(self, agency: Agency, thread: Thread, **changes: Any) -> None:
        """Change the record of a thread that is open here."""
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
            tables = self._store.database.tables
            conversations.update(connection, tables, owner, record.id, changes)

        self._store.database.run(write, about=record.id)

    # what is open

    def turn(self, id: str) -> threading.Lock:
        """Held by who opens, changes or deletes the thread of that id."""
        with self._lock:
            return self._turns.setdefault(id, threading.Lock())

    def live(self, id: str) -> Thread | None:
        """The one of that id that is open here, None where none is."""
        return self._live.get(id)

    def agency_of(self, id: str) -> Agency | None:
        """The agency of the thread of that id that is open here, None where none is.

        Nobody deletes an agency while a thread of it is open.
        """
        live = self._live.get(id)
        return None if live is None or live.is_gone else self._agencies.get(live.record.agency_id)

    def put(self, id: str, thread: Thread) -> None:
        """Have a thread be open here, for whose turn it is; it is closed where all of it ends."""
        with self._lock:
            if not self._closed:
                self._live[id] = thread
        if self._closed:
            thread.close("the hub ends")
            raise _closed()

    def take(self, id: str) -> None:
        """Have none of that id be open here, for whose turn it is."""
        with self._lock:
            self._live.pop(id, None)

    def get(self, agency: Agency, id: str) -> Thread:
        """The thread of that id of an agency, opened if it is not.

        Raises NotFound, also for another agency's, and Owned where another process has it open.
        """
        self._let_go_of_lost()
        with self.turn(id):
            return self._open(agency, id)

    def _let_go_of_lost(self) -> None:
        """Where this process stood still, close what another one has taken meanwhile."""
        database = self._store.database
        if (stalls := database.stalls) == self._stalls:
            return
        # Before it is asked what is held: what is opened meanwhile is, and was not taken.
        awake = {
            id: live
            for id, live in tuple(self._live.items())
            if not live.record.in_notebook and live.session.resting is None
        }
        held = database.run(lambda c: leases.held_by(c, database.tables, database.owner))
        for id in awake.keys() - held:
            with self.turn(id):
                if self._live.get(id) is awake[id]:
                    self.take(id)
                    awake[id].close("another process has it")
        self._stalls = stalls  # only now: who comes meanwhile finds none of these either

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
            live = self._opened(self.record(agency, id), agency)
            self.put(id, live)
            self._agencies[agency.id] = agency
            self._following.opened(agency, live)
            if len(self._live) > MOST_OPEN:
                self._following.full()
        if self._closed:
            raise _closed()
        if live.record.agency_id != agency.id:
            raise missing(id)
        return live

    def _opened(self, record: ThreadRecord, agency: Agency) -> Thread:
        if record.in_notebook:
            raise self._doors.holder(record.id) or NoKernel()
        try:
            agent = self._agent_of(agency, record)
        except SagentsError:
            if (owned := self._doors.holder(record.id)) is not None:
                raise owned from None  # there may be what is missing here
            raise
        files = VirtualFilesystem(
            scope_of(record.id), [Mount(default=True, storage=self._files, debounce=0)]
        )
        session = Session.open(
            record.id,
            agent=agent,
            store=self._store,
            scope=agency,
            filesystem=files,
            inactivity_timeout=RESTS_AFTER,
        )
        session.steering_batch = "wait"  # what is said meanwhile takes no call's turn
        session.steering_mode = "all"
        log = self.log_of(session)
        log.listen(partial(self._following.told, agency.id))
        self._files.follow(log)
        stopped = partial(self._following.stopped, agency)
        return Thread(record, session, log, stopped, partial(self._following.named, agency))

    def log_of(self, session: Session) -> EventLog:
        """The events of the thread that a session is of."""
        return EventLog(self._store.database, session.id, session.when_kept, self._events_kept)

    def set_variables(self, agency: Agency, thread: Thread, variables: Mapping[str, Any]) -> None:
        """Change variables of a thread, from its next run on."""
        if thread.record.in_notebook:
            raise ConfigurationError(
                "The agent of this thread is a notebook's; say there what its tools are told, as "
                "tool_context."
            )
        with self.turn(thread.record.id):
            both = {**thread.record.variables, **variables}
            record = msgspec.structs.replace(thread.record, variables=both)
            agent = self._agent_of(agency, record)
            self._write(agency, thread, record)
            thread.replace_agent(record, agent)

    def delete(self, agency: Agency, id: str, cancel: Callable[[Thread], None]) -> None:
        """``cancel`` the thread of that id and delete all of it, its files too."""
        self._let_go_of_lost()
        with self.turn(id):
            thread = self._open(agency, id)
            cancel(thread)
            for path in thread.session.files.list():
                thread.session.files.delete(path)
            thread.close("deleted")
            self.take(id)
            self._store.scoped(agency).delete_conversation(id)

    def forget_resting(self) -> None:
        """Forget threads that rest: they are read anew when somebody asks for them."""
        for id, live in tuple(self._live.items()):
            if live.session.resting is not None:
                with self.turn(id):
                    if live.session.resting is not None and self._live.get(id) is live:
                        del self._live[id]
                        live.close("it rests")

    def end(self) -> list[Thread]:
        """Open none any more; those that were, for :meth:`close`."""
        with self._lock:
            live, self._live, self._closed = list(self._live.values()), {}, True
        return live

    def close(self, live: list[Thread]) -> None:
        """Stop what these do and let go of their conversations and of all files."""
        for thread in live:
            thread.close("the hub ends")
        self._files.close()


def _closed() -> ConfigurationError:
    return ConfigurationError("This hub is closed; make a new one.")
