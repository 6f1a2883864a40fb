"""Conversations of notebooks as threads: who shows them, and what is kept where no kernel does.

Such a conversation stays what it is in the notebook's store: nobody's scope has it, and no hub
opens it, since its agent, its tools and the variables that they work on are in the kernel alone.
What makes it a thread is a word in its metadata, the agency of its notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sql

from ..agent import Agent
from ..errors import ConfigurationError, NotFound
from ..models.base import ChatModel
from ..panel.publisher import publisher_of
from ..scope import owner_of
from ..session import Session
from ..state import State, restore_state
from ..store import ConversationStore
from ..store import conversations as rows
from ..store.database.schema import Tables
from . import agencies
from .agencies import NOTEBOOK, Agency
from .doors import Doors
from .event_log import last_run
from .open_threads import OpenThreads
from .records import HUB, ThreadRecord, is_id, missing, record_of
from .standings import Standing
from .threads import NotebookThread, Thread
from .vocabulary import STATUSES, chats

NO_KERNEL = "kernel"
"""Why a run stands still that no kernel has: it goes on in one, and nowhere else."""


def show(connection: sql.Connection, tables: Tables, notebook: str, id: str) -> ThreadRecord:
    """Have a conversation be a thread of that notebook's agency, in whichever it was before."""
    agency = agencies.of_notebook(connection, tables, notebook)
    kept = rows.get(connection, tables, owner_of(None), id)
    metadata = {**kept.metadata, HUB: {NOTEBOOK: agency.id}}
    if metadata != kept.metadata:
        _keep(connection, tables, id, metadata)
    record = record_of(agency, msgspec.structs.replace(kept, metadata=metadata))
    assert record is not None
    return record


def withdraw(connection: sql.Connection, tables: Tables, id: str) -> None:
    """Have it be a conversation of its notebook alone."""
    kept = rows.find(connection, tables, owner_of(None), id)
    if kept is not None:
        left = {name: value for name, value in kept.metadata.items() if name != HUB}
        _keep(connection, tables, id, left)


def _keep(connection: sql.Connection, tables: Tables, id: str, metadata: Mapping[str, Any]) -> None:
    t = tables.conversations  # it does not go on by this, so that lists of it stay in their order
    connection.execute(t.update().where(t.c.id == id).values(metadata=metadata))


def as_left(standing: Standing) -> Standing:
    """What a thread is that was told of so, and that no kernel has by now."""
    if standing.status not in ("running", "paused"):
        return standing
    return Standing(status="paused", at=standing.at, reason=NO_KERNEL)


class Notebooks:
    """The conversations of notebooks among ``threads``, whose kernels have ``doors``."""

    def __init__(self, store: ConversationStore, threads: OpenThreads, doors: Doors) -> None:
        self._store = store
        self._threads = threads
        self._doors = doors

    def show(self, notebook: str, session: Session) -> Thread:
        """Have a session of this process be a thread of the agency of that notebook."""
        if session.options.store is not self._store or session.scope is not None:
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
        with self._threads.turn(id):
            live = self._threads.live(id)
            if live is not None:
                if live.session is session and not live.is_gone:
                    return live
                live.close("it is shown anew")
            shown = self._store.database.query(show, notebook, id)
            thread = NotebookThread(shown, session, self._threads.log_of(session))
            self._threads.put(id, thread)
            return thread

    def kept(self, agency: Agency, id: str) -> KeptThread:
        """What there is to be read of one that no kernel serves; raises NotFound."""
        record = self._threads.record(agency, id)
        if not record.in_notebook:
            raise missing(id)
        return KeptThread(self._store, record)

    def withdraw(self, agency: Agency, id: str) -> None:
        """Show one no more; raises NotFound, and Owned where another kernel shows it."""
        with self._threads.turn(id):
            self._threads.record(agency, id)
            live = self._threads.live(id)
            if live is None and (owned := self._doors.holder(id)) is not None:
                raise owned
            self._store.database.query(withdraw, id)
            self._threads.take(id)
            if live is not None:
                live.close("it is shown no more")


class KeptThread:
    """What there is to be read of a conversation that no kernel serves, by its ``record``.

    Its files are the kernel's, and not here.
    """

    def __init__(self, store: ConversationStore, record: ThreadRecord) -> None:
        self._store = store
        self._record = record

    def _state(self) -> State:
        try:
            return restore_state(self._store.load_agent_state(self._record.id))
        except NotFound:
            return State()  # nothing was said yet

    def state(self) -> dict[str, Any]:
        """All that it is, as :meth:`Thread.state <sagents_nb.hub.Thread.state>` says it."""
        record, state = self._record, self._state()
        database = self._store.database
        last = database.run(lambda connection: last_run(connection, database.tables, record.id))
        standing = as_left(Standing(status=STATUSES.get(last.status or "", "registered")))
        run = {"runId": last.id, "status": standing.status, "step": last.ticks}
        return {
            "state": {
                "messages": chats(state.messages),
                "tools": [],
                "thread": record.view(),
                "threadId": record.id,
                "agentType": record.type,
                "model": "",
                "todos": [{"content": t.content, "status": t.status} for t in state.todos],
            },
            "run": run if standing.reason is None else {**run, "reason": standing.reason},
        }

    def snapshot(self) -> dict[str, Any]:
        """The last that a panel is told of it: see widgets/PROTOCOL.md."""
        session = Session(Agent(ChatModel()), self._record.id, self._state())  # asks no model
        try:
            last: dict[str, Any] = msgspec.json.decode(publisher_of(session).shown.last())
        finally:
            session.close("it was read")
        return last
