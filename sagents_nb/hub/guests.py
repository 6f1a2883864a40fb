"""Conversations that are kept nowhere, with agents of agencies: each is one client's."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..agent import Agent
from ..events import Event
from ..session import Session
from .agencies import Agency
from .limits import Beginning
from .operations import Figures
from .vocabulary import Translator


class Guests:
    """Those that are open here; what they do is counted among ``figures``."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._agencies: WeakKeyDictionary[Session, str] = WeakKeyDictionary()

    def active(self) -> set[str]:
        """The ids of those that are not closed."""
        return {each.id for each in tuple(self._agencies) if each.status != "closed"}

    def begin(self, agency: Agency, agent: Agent, beginning: Beginning) -> Session:
        """A further one, for which there is room; for no event loop."""
        session = Session(agent, inactivity_timeout=None)
        beginning.thread_id = session.id
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
