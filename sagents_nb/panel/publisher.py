"""From the session's events to the page: merged, bounded, and never more than 20 times a second.

The publisher is the only one that writes to a comm. It lives on the runtime loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ..events import (
    REPLACED,
    RESTS,
    DisplayMessageSaved,
    DisplayMessageUpdated,
    Event,
    StatusChanged,
    SubagentEvent,
)
from ..messages import Message
from ..runtime.thread import runtime
from ..session import Session
from ..state import to_data
from .protocol import (
    encoded,
    file_data,
    merged,
    new_view_state,
    plain,
    reduce,
    shortened_message,
    snapshot_of,
    wire,
)

logger = logging.getLogger(__name__)

# Pages show the progress of the parent's call, and the messages themselves.
UNSEEN = (SubagentEvent, DisplayMessageSaved, DisplayMessageUpdated)

Send = Callable[[dict[str, Any], list[bytes]], None]

# jupyter_server drops silently above 1,000 messages a second over 3 s; 20 a second looks live.
INTERVAL = 0.05
# A page may be this many bytes behind before it is given a snapshot instead of events.
KEPT_BYTES = 500_000
BYTES_A_SECOND = 1_000_000
# One message is not longer than this, if no single event is.
MESSAGE_BYTES = 200_000

Batch = tuple[int, int, bytes]  # after, seq, events


class Publisher:
    """Feeds the pages that show one session, through ``send``."""

    def __init__(self, session: Session, send: Send) -> None:
        self.session = session
        self._send = send
        self._waiting: list[Event] = []
        self._flushing = False
        self._free_at = 0.0  # when what was sent last has paid for its bytes
        self._seq = 0
        self._listened = False  # no page has said hello: nothing needs to travel yet
        self._closed = False
        self._snapshot_due = False
        self._unsubscribe: Callable[[], None] | None = None
        self._sent: deque[Batch] = deque()
        self._kept = 0
        self.state = new_view_state(session.id, session.agent.model.name)
        runtime.call(self._start)

    def _start(self) -> None:
        session = self.session
        self._closed = session.status == "closed" and session.resting is None
        self._set_entries(session.initial_messages)
        self._unsubscribe = session.subscribe(self.push, since=0)
        self._take()
        self._read_session()

    def _read_session(self) -> None:
        """Set what the session knows best by itself."""
        session = self.session
        self.state["status"] = session.resting or session.status
        self.state["todos"] = plain(to_data(session.todos))
        self.state["files"] = plain([file_data(e.describe()) for e in session.files.entries()])
        waiting = session.interrupt
        if waiting is not None and self.state["status"] == "interrupted":
            self.state["interrupt"] = self.state["interrupt"] or {
                **plain(to_data(waiting)),
                "run_id": "",
            }

    def _set_entries(self, messages: list[Message]) -> None:
        """Show these messages, of which no event tells."""
        shown = [shortened_message(to_data(message.shown)) for message in messages]
        self.state["entries"] = [
            {"seq": 0, "run_id": "", "ts": 0, "message": message} for message in plain(shown)
        ]

    def push(self, event: Event) -> None:
        """Take an event; it travels with the next batch."""
        if isinstance(event, UNSEEN):
            return
        if isinstance(event, StatusChanged) and event.reason in RESTS:
            return  # a request wakes it, so nothing has changed for a person
        self._waiting.append(event)
        if isinstance(event, StatusChanged):
            self._closed = event.status == "closed"
            if event.reason in REPLACED and self._unsubscribe is not None:
                self._begin_anew(event.seq)
        self._flush_later()

    def _begin_anew(self, seq: int) -> None:
        """The conversation is another one, so pages get a snapshot instead of events."""
        self._waiting.clear()
        self._sent.clear()
        self._kept, self._seq = 0, seq
        self.state = new_view_state(self.session.id, self.session.agent.model.name)
        self._set_entries(self.session.messages)
        self._read_session()
        self._snapshot_due = True

    def _flush_later(self) -> None:
        if not self._flushing:
            self._flushing = True
            pause = max(INTERVAL, self._free_at - runtime.loop.time())
            runtime.loop.call_later(pause, self._flush)

    def _take(self) -> Batch | None:
        """What waits, as one batch that the state knows now; if it is much, the first of it."""
        if not self._waiting:
            return None
        waiting, self._waiting = merged(self._waiting), []
        after, taken, size = self._seq, [], 0
        for i, event in enumerate(waiting):
            self._seq = event.seq
            try:
                data = encoded(wire(event))
                reduce(self.state, msgspec.json.decode(data))
            except Exception:  # the rest of the conversation is still worth seeing
                logger.exception("A page cannot be told of %s", event.type)
                continue
            taken.append(data)
            size += len(data)
            if self._listened and size >= MESSAGE_BYTES:
                self._waiting = waiting[i + 1 :]
                break
        return after, self._seq, b"[" + b",".join(taken) + b"]"

    def _keep(self, batch: Batch) -> None:
        self._sent.append(batch)
        self._kept += len(batch[2])
        while self._kept > KEPT_BYTES:
            self._kept -= len(self._sent.popleft()[2])

    def _flush(self) -> None:
        self._flushing = False
        if self._snapshot_due and self._listened:
            self._snapshot_due = False
            self._send_snapshot()
        batch = self._take()
        if not self._listened:
            return
        if batch is not None:
            self._keep(batch)
            self._send_batch(batch)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting:
            self._flush_later()
        elif self._closed:
            self._send({"type": "closed"}, [])

    def _send_batch(self, batch: Batch) -> None:
        after, seq, events = batch
        self._pay(len(events))
        message = {"type": "events", "after": after, "seq": seq}
        self._send({**message, "events": msgspec.json.decode(events)}, [])

    def _pay(self, size: int) -> None:
        """Nothing more travels before ``size`` bytes are within the budget."""
        now = runtime.loop.time()
        self._free_at = max(now, self._free_at) + size / BYTES_A_SECOND

    def hello(self, have: int) -> None:
        """Bring a page that has everything up to ``have`` up to date."""
        self._listened = True
        batch = self._take()
        if batch is not None:
            self._keep(batch)
        missing = [item for item in self._sent if item[0] >= have]
        if have and have == self._seq:
            self._send_batch((have, have, b"[]"))
        elif have and missing and missing[0][0] == have:
            for item in missing:
                self._send_batch(item)
        else:
            self._send_snapshot()
        self._go_on()

    def _send_snapshot(self) -> None:
        self.state["model"] = self.session.agent.model.name
        state = snapshot_of(self.state)
        self._pay(len(msgspec.json.encode(state)))
        self._send({"type": "snapshot", "seq": self._seq, "state": state}, [])
