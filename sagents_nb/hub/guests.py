"""Conversations that are kept nowhere, with agents of agencies: each is one client's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

from ..agent import Agent
from ..events import Event
from ..session import Session
from .agencies import Agency
from .operations import Figures
from .vocabulary import Translator


class Guests:
    """Those that are open here; what they do is counted among ``figures``."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._agencies: WeakKeyDictionary[Session, str] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def active(self) -> int:
        """How many there are."""
        return sum(each.status != "closed" for each in tuple(self._agencies))

    def begin(self, agency: Agency, agent: Agent, check: Callable[[], None]) -> Session:
        """A further one, unless ``check`` raises; for no event loop."""
        with self._lock:
            check()
            session = Session(agent, inactivity_timeout=None)
            self._agencies[session] = agency.id
        translator = Translator(agent.model.name)

        def hear(event: Event) -> None:
            for told in translator.translate(event):
                self._figures.take(told)

        session.subscribe(hear)
        return session

    def end(self, agency: Agency, reason: str) -> None:
        """Close those of an agency."""
        for guest, id in tuple(self._agencies.items()):
            if id == agency.id:
                guest.close(reason)
