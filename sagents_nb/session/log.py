"""The events of a session: kept for those who come later, told to those who listen."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from ..events import AgentEnd, Event
from ..eventstream import EventStream

logger = logging.getLogger("sagents_nb.session")

# A reader who is further behind than this starts from a snapshot instead.
KEPT = 20_000


class EventLog:
    """A bounded list of events and its listeners; used on the runtime loop only."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._listeners: list[Callable[[Event], Any]] = []
        self._streams: list[EventStream] = []

    def push(self, event: Event) -> None:
        """Keep an event and tell everybody; a listener that raises hurts nobody else."""
        self._events.append(event)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                logger.exception("A subscriber raised on %s", event.type)

    def subscribe(self, listener: Callable[[Event], Any]) -> None:
        """Add a listener, once."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[Event], Any]) -> None:
        """Remove a listener, if it is there."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def follow(self, stream: EventStream, since: int = 0, run_id: str | None = None) -> None:
        """Feed a stream: what is kept after ``since``, then what comes.

        With ``run_id`` only the events of that run, and the stream ends with the run.
        """

        def take(event: Event) -> None:
            if event.seq <= since or (run_id is not None and event.run_id != run_id):
                return
            stream.push(event)
            if run_id is not None and isinstance(event, AgentEnd):
                self.unsubscribe(take)
                stream.close()

        self._streams.append(stream)
        self.subscribe(take)
        for event in tuple(self._events):
            if take in self._listeners:
                take(event)

    def close(self) -> None:
        """No more events: streams end, listeners are let go."""
        self._listeners.clear()
        for stream in self._streams:
            stream.close()
        self._streams.clear()
