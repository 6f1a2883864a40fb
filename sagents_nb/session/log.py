"""The events of a session: kept for those who come later, told to those who listen."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from ..events import AgentEnd, Event, MessageEnd, MessageUpdate
from ..eventstream import EventStream

logger = logging.getLogger(__name__)

# A reader who is further behind than this misses the oldest.
KEPT = 20_000

Listener = Callable[[Event], Any]


class EventLog:
    """A bounded list of events and its listeners; used on the runtime loop only.

    The deltas of a finished message are dropped: its ``message_end`` says the same.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._deltas: list[Event] = []
        self._listeners: list[Listener] = []
        self._streams: list[EventStream] = []

    def push(self, event: Event) -> None:
        """Keep an event and tell everybody; a listener that raises hurts nobody else."""
        if type(event) is MessageUpdate:
            self._deltas.append(event)
        else:
            if type(event) is MessageEnd:
                self._deltas.clear()
            self._events.append(event)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                logger.exception("A subscriber raised on %s", event.type)

    def kept(self, since: int = 0) -> list[Event]:
        """What is kept after ``since``, in order."""
        events = [event for event in (*self._events, *self._deltas) if event.seq > since]
        return sorted(events, key=lambda event: event.seq)

    def subscribe(self, listener: Listener) -> None:
        """Add a listener, once."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener, if it is there."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def follow(self, stream: EventStream, since: int = 0, run_id: str | None = None) -> None:
        """Feed a stream: what is kept after ``since``, then what comes.

        With ``run_id`` only the events of that run, and the stream ends with the run.
        """

        def take(event: Event) -> None:
            if run_id is not None and event.run_id != run_id:
                return
            stream.push(event)
            if run_id is not None and isinstance(event, AgentEnd):
                self.unsubscribe(take)
                stream.close()

        self._streams.append(stream)
        self.subscribe(take)
        for event in self.kept(since):
            if take in self._listeners:
                take(event)

    def close(self) -> None:
        """No more events: streams end, listeners are let go."""
        self._listeners.clear()
        for stream in self._streams:
            stream.close()
        self._streams.clear()
