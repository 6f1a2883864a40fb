"""From the session's events to the page: merged, bounded, and never more than 20 times a second.

The publisher is the only one that writes to a comm. It lives on the runtime loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ..events import Event
from ..runtime import runtime
from ..session import Session
from ..state import to_data
from .protocol import (
    file_data,
    merged,
    new_view_state,
    reduce,
    shortened_message,
    snapshot_of,
    wire,
)

Send = Callable[[dict[str, Any], list[bytes]], None]

# jupyter_server drops silently above 1,000 messages a second over 3 s; 20 a second looks live.
INTERVAL = 0.05
# A page may be this many bytes behind before it is given a snapshot instead of events.
KEPT_BYTES = 500_000
BYTES_A_SECOND = 1_000_000


class Publisher:
    """Feeds the pages that show one session, through ``send``."""

    def __init__(self, session: Session, send: Send) -> None:
        self.session = session
        self._send = send
        self._waiting: list[Event] = []
        self._flushing = False
        self._seq = 0
        self._listened = False  # no page has said hello: nothing needs to travel yet
        self._sent: deque[tuple[int, int, bytes]] = deque()  # after, seq, events
        self._kept = 0
        self.state = new_view_state(session.id, session.agent.model.name)
        runtime.call(self._start)

    def _start(self) -> None:
        self.state["status"] = self.session.status
        self.state["entries"] = [
            {"seq": 0, "run_id": "", "ts": 0.0, "message": shortened_message(to_data(message))}
            for message in self.session.initial_messages
        ]
        self._unsubscribe = self.session.subscribe(self.push, since=0)
        self._take()
        self.state["todos"] = to_data(self.session.todos)
        self.state["files"] = [
            file_data(entry.describe()) for entry in self.session.files.entries()
        ]
        self.state["interrupt"] = self.state["interrupt"] or to_data(self.session.interrupt)

    def push(self, event: Event) -> None:
        """Take an event; it travels with the next batch."""
        self._waiting.append(event)
        if not self._flushing:
            self._flushing = True
            runtime.loop.call_later(INTERVAL, self._flush)

    def _take(self) -> tuple[int, int, bytes] | None:
        if not self._waiting:
            return None
        after, self._seq = self._seq, self._waiting[-1].seq
        events = [wire(event) for event in merged(self._waiting)]
        self._waiting = []
        for event in events:
            reduce(self.state, event)
        return after, self._seq, msgspec.json.encode(events)

    def _flush(self) -> None:
        batch = self._take()
        self._flushing = False
        if batch is None or not self._listened:
            return
        after, seq, events = batch
        self._sent.append(batch)
        self._kept += len(events)
        while self._kept > KEPT_BYTES and self._sent:
            self._kept -= len(self._sent.popleft()[2])
        self._send_events(after, seq, events)
        # A large batch pays for itself with a pause, which keeps a session under 1 MB/s.
        pause = len(events) / BYTES_A_SECOND
        if pause > INTERVAL:
            self._flushing = True
            runtime.loop.call_later(pause, self._flush)

    def _send_events(self, after: int, seq: int, events: bytes) -> None:
        message = {"type": "events", "after": after, "seq": seq}
        self._send({**message, "events": msgspec.json.decode(events)}, [])

    def hello(self, have: int) -> None:
        """Bring a page that has everything up to ``have`` up to date."""
        self._listened = True
        batch = self._take()
        if batch is not None:
            self._sent.append(batch)
        if have and have == self._seq:
            return
        missing = [item for item in self._sent if item[0] >= have]
        if have and missing and missing[0][0] == have:
            for after, seq, events in missing:
                self._send_events(after, seq, events)
            return
        self._send({"type": "snapshot", "seq": self._seq, "state": snapshot_of(self.state)}, [])

    def close(self) -> None:
        """Tell pages that nothing more comes."""
        self._unsubscribe()
        self._flush()
        self._send({"type": "closed"}, [])
