"""How a session comes to own a conversation of a store: it makes it, or opens it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from ..agent import Agent
from ..errors import ConfigurationError, NotFound
from ..runtime.thread import runtime
from ..serialization import VERSION
from ..state import State, restore_state
from ..store.folding import fold
from .recorder import Recorder
from .recovery import Beginning, from_journal, from_state, stored_state

logger = logging.getLogger(__name__)

# An approval is bound to an epoch. Each owner of a conversation has this many of its own.
_EPOCHS = 2**32


class Held(msgspec.Struct):
    """What a session begins with, who keeps it safe, and the first of its epochs."""

    beginning: Beginning
    recorder: Recorder | None = None
    epoch: int = 1
    moved: bool = False  # it was in another process before


def created(store: Any, scope: Any, agent: Agent, id: str, state: State) -> Held:
    """A new conversation that begins with ``state``.

    Raises :class:`~sagents_nb.errors.ConfigurationError` if there is one of that id.
    """
    conversations = conversations_of(store, scope)
    if conversations.find_conversation(id) is not None:
        raise ConfigurationError(
            f"Conversation {id!r} is in the store already; go on with it by "
            "Session.open(id, agent=…, store=…), or choose another id."
        )
    conversations.create_conversation(id=id)
    return opened(store, scope, agent, id, state=state)


def opened(
    store: Any,
    scope: Any,
    agent: Agent,
    id: str,
    *,
    take_over: bool = False,
    state: State | None = None,
) -> Held:
    """The conversation of that id, as its journal says; ``state`` if it has no journal yet.

    Raises :class:`~sagents_nb.errors.NotFound` for one that is not there or somebody else's,
    :class:`~sagents_nb.errors.Owned` for one that a living session has, and
    :class:`~sagents_nb.errors.ConfigurationError` for one that a newer version wrote.
    """
    from ..store import leases
    from ..store.journal import Journal

    conversations = conversations_of(store, scope)
    conversations.get_conversation(id)
    database = conversations.database
    before = database.run(lambda connection: leases.last(connection, database.tables, id))
    moved = before not in (None, here())
    journal, entries, problems = Journal.open(database, id, take_over=take_over)
    try:
        schema = agent._chain.state_schema
        recorder = Recorder(journal, schema)
        epoch = journal.epoch * _EPOCHS
        if not entries:
            first = from_state(_saved(conversations, agent, id) if state is None else state)
            _written(lambda: recorder.begin(), recorder, first.state)
            return Held(first, recorder, epoch)
        folded = fold((entry.seq, entry.kind, entry.data) for entry in entries)
        stored, more = stored_state(folded, schema)
        beginning = from_journal(folded, stored, problems + more, agent, id, epoch)
        for problem in beginning.problems:
            logger.warning("Conversation %r: %s", id, problem)
        if folded.damaged:
            journal.set_aside(folded.damaged).result()
        if problems or folded.damaged or folded.version != VERSION:
            anew = lambda: recorder.begin_anew(folded, stored, beginning.usage)  # noqa: E731
        else:
            anew = lambda: recorder.go_on(folded.rows, stored, folded.queued)  # noqa: E731
        _written(anew, recorder, beginning.state)
        return Held(beginning, recorder, epoch, moved)
    except BaseException:
        journal.release()
        raise


def here() -> str:
    """This process, as events name it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_stored(store: Any, scope: Any, id: str) -> bool:
    """Whether there is a store, and a conversation of that id in it."""
    return store is not None and conversations_of(store, scope).find_conversation(id) is not None


def _written(begin: Callable[[], None], recorder: Recorder, state: State) -> None:
    def write() -> Future[None] | None:
        begin()
        recorder.note(state)
        return recorder.flush()

    future = runtime.call(write)
    if future is not None:
        future.result()


def conversations_of(store: Any, scope: Any) -> Any:
    """The conversations of whoever the session is for; ``store`` may be theirs already."""
    return store.scoped(scope) if hasattr(store, "scoped") else store


def _saved(conversations: Any, agent: Agent, id: str) -> State:
    try:
        exported = conversations.load_agent_state(id)
    except NotFound:
        return State()
    return restore_state(exported, agent._chain.state_schema)
