"""The live sessions of this process, by id."""

from __future__ import annotations

import threading
from fnmatch import fnmatchcase
from typing import Any

from .. import kinds
from ..agent import Agent
from ..errors import ConfigurationError, NotFound
from .session import Session, new_unless_stored


class Sessions:
    """What ``sa.sessions`` is: start, find, list and stop sessions by id.

    A session that rests is one of them: whoever needs it wakes it. One that was closed is not.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    @kinds.checked
    def start(self, agent: Agent, id: str, *, take_over: bool = False, **options: Any) -> Session:
        """The session with that ``id``, started with ``agent`` if it is not there.

        ``options`` are those of Session. With a ``store``, a conversation of that id in it is
        opened, else made. ``take_over`` takes one that is open elsewhere from there, as for
        :meth:`Session.open`.

        >>> import sagents_nb as sa
        >>> session = sa.sessions.start(sa.Agent(sa.ScriptedModel(["Hello!"])), "example-start")
        >>> sa.sessions.start(session.agent, "example-start") is session
        True
        >>> sa.sessions.stop("example-start")
        """
        with self._lock:
            session = self._sessions.get(id)
            if session is None or not _is_live(session):
                session = self._sessions[id] = _opened_or_made(agent, id, take_over, options)
            return session

    @kinds.checked
    def add(self, session: Session) -> None:
        """Take in a ``session`` that was made otherwise, such as a fork.

        Raises :class:`~sagents_nb.errors.ConfigurationError` where another has its id.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])), id="example-add")
        >>> sa.sessions.add(session)
        >>> sa.sessions.get("example-add") is session
        True
        >>> sa.sessions.stop("example-add")
        """
        with self._lock:
            there = self._sessions.get(session.id)
            if there is not None and there is not session and _is_live(there):
                raise ConfigurationError(
                    f"A session {session.id!r} is live here already; choose another id."
                )
            self._sessions[session.id] = session

    @kinds.checked
    def get(self, id: str) -> Session:
        """The live session with that ``id``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> session = sa.sessions.start(sa.Agent(sa.ScriptedModel([])), "example-get")
        >>> sa.sessions.get("example-get") is session
        True
        >>> sa.sessions.stop("example-get")
        """
        session = self._sessions.get(id)
        if session is None or not _is_live(session):
            raise NotFound(
                f"No session {id!r} is live here; start it with sessions.start(agent, id)."
            )
        return session

    @kinds.checked
    def list(self, pattern: str = "*") -> list[str]:
        """The ids of live sessions that match the glob ``pattern``, sorted.

        >>> import sagents_nb as sa
        >>> _ = sa.sessions.start(sa.Agent(sa.ScriptedModel([])), "example-list")
        >>> sa.sessions.list("example-l*")
        ['example-list']
        >>> sa.sessions.stop("example-list")
        """
        with self._lock:
            # Those that were closed are forgotten, with all that they hold.
            self._sessions = {i: s for i, s in self._sessions.items() if _is_live(s)}
            ids = list(self._sessions)
        return sorted(id for id in ids if fnmatchcase(id, pattern))

    def count(self) -> int:
        """How many sessions are live.

        >>> import sagents_nb as sa
        >>> sa.sessions.count() == len(sa.sessions.list())
        True
        """
        return len(self.list())

    @kinds.checked
    def info(self, id: str) -> dict[str, Any] | None:
        """A summary of the session with that ``id``, or None.

        >>> import sagents_nb as sa
        >>> sa.sessions.info("unknown") is None
        True
        """
        try:
            return self.get(id).info()
        except NotFound:
            return None

    @kinds.checked
    def stop(self, id: str) -> None:
        """Close the session with that ``id``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> session = sa.sessions.start(sa.Agent(sa.ScriptedModel([])), "example-stop")
        >>> sa.sessions.stop("example-stop")
        >>> session.status
        'closed'
        """
        session = self.get(id)
        session.close("stopped")
        with self._lock:
            if self._sessions.get(id) is session:
                del self._sessions[id]


def _opened_or_made(agent: Agent, id: str, take_over: bool, options: dict[str, Any]) -> Session:
    new = new_unless_stored(agent, id, **options)
    if new is not None:
        return new
    return Session.open(id, agent=agent, take_over=take_over, **options)


def _is_live(session: Session) -> bool:
    return not session.actor.gone


sessions = Sessions()
