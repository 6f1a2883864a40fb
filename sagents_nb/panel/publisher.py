"""From a session's events to its pages: merged, bounded, and never more than 15 times a second.

The publisher lives on the runtime loop, and alone sends what happens. It knows listeners, not
what carries a message from there: the comm of a notebook, say, or a socket.
"""

from __future__ import annotations

import weakref
from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from ..events import (
    AGENT_REPLACED,
    REPLACED,
    RESTS,
    Event,
    StatusChanged,
)
from ..loop.open_calls import open_calls
from ..messages import Message, Usage
from ..models.base import context_window
from ..runtime.thread import runtime
from ..serialization import encoded
from ..session import Session
from ..session.branches import branches_of
from ..state import to_data
from ..text import logger_of
from .files import run_changes_of
from .parameters import with_parameters
from .protocol import (
    SHOWN_ENTRIES,
    file_data,
    following_state,
    forget_others,
    interrupt_data,
    known_calls,
    merged,
    new_view_state,
    plain,
    queued_text,
    recall,
    reduce,
    shortened_message,
    shown,
    snapshot_of,
    travels,
    wire,
    with_display_texts,
)

logger = logger_of(__name__)

# Takes a message to a page, or to several that share a way. It is called on the runtime loop and
# serialises at once: others get the same message, and a snapshot is the state itself.
Listener = Callable[[dict[str, Any]], None]

# jupyter_server drops silently above 1,000 messages a second over 3 s; 14 a second look live. What
# the host tells a page besides, as of each command that comes from it, is not counted in these.
INTERVAL = 0.07
# So many entries of what came before are given to a page that asks for more.
EARLIER_ENTRIES = 100
# A page learns from the next message that one was lost. So when nothing happens, it is told so,
# after so many seconds each.
REMINDERS = (1.0, 9.0, 50.0)
# A page may be this many bytes behind before it is given a snapshot instead of events.
BACKLOG_BYTES = 500_000
BYTES_A_SECOND = 1_000_000
# One message is not longer than this, if no single event is.
MESSAGE_BYTES = 200_000

Batch = tuple[int, int, bytes]  # after, seq, events


class Shown:
    """What pages know of a session, apart from it: who keeps this does not keep the session."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.seq = 0

    def last(self) -> bytes:
        """The snapshot that is to be told of a session that is gone, as JSON."""
        gone: dict[str, Any] = {
            "status": "closed",
            "interrupt": None,
            "partial": None,
            "queued": [],
        }
        state = {**snapshot_of(self.state), **gone}
        return msgspec.json.encode({"type": "snapshot", "seq": self.seq, "state": state})


def without_tool(session: Session) -> set[str]:
    """The ids of the calls that wait and whose tool the agent does not have by now.

    The call of a sub-agent has the id of the one that it was started by, and so that name counts.
    """
    known = session.agent.tools_by_name
    return {call.id for call in open_calls(session.state) if call.name not in known}


class Publisher:
    """Tells listeners what happens in one session, each from its :meth:`hello` on.

    ``shown`` is the view state after the event ``seq``, ``backlog`` the batches that a listener
    may have missed, the newest last.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.shown = Shown(new_view_state(session.id, ""))
        self._read_agent()
        self._left: dict[Any, dict[str, Any]] = {}  # what is known of calls, also of other branches
        self.backlog: deque[Batch] = deque()
        self.backlog_bytes = 0
        self._listeners: dict[Listener, bool] = {}  # as they came; whether told that it is closed
        self._listened = False  # nobody has said hello: nothing needs to travel yet
        self._waiting: list[Event] = []
        self._flushing = False
        self._free_at = 0.0  # when what was sent last has paid for its bytes
        self._reminder: TimerHandle | None = None
        self._closed = False
        self._snapshot_due = False
        self._unsubscribe: Callable[[], None] | None = None
        runtime.call(self._start)

    @property
    def state(self) -> dict[str, Any]:
        """The view state."""
        return self.shown.state

    @property
    def seq(self) -> int:
        """The event that it is after."""
        return self.shown.seq

    @property
    def idle(self) -> bool:
        """Whether everything that happened has been sent."""
        return not (self._flushing or self._waiting)

    def _start(self) -> None:
        session = self.session
        self._closed = session.status == "closed" and session.resting is None
        self._set_entries(session.initial_messages)
        used = sum((each.usage for each in session.initial_messages if each.usage), Usage())
        self.state["usage"].update(plain(to_data(used)))
        self._unsubscribe = session.subscribe(self.push, since=0)
        self._take()
        self._read_session()
        run_changes_of(session)  # a page will want to know what the next run does to files

    def _read_session(self) -> None:
        """Set what the session knows best by itself."""
        session = self.session
        self.state["status"] = session.resting or session.status
        if session.options.store is not None:
            self.state["kept"] = True
        self.state["queued"] = plain([_queued(*waiting) for waiting in session.queued])
        self.state["todos"] = plain(to_data(session.todos))
        self.state["branches"] = {
            id: {"current": current, "count": count}
            for id, (current, count) in branches_of(session.state.metadata).items()
        }
        self.state["files"] = plain([file_data(e.describe()) for e in session.files.entries()])
        waiting = session.state.interrupt  # all of it: what was decided says so in its row
        if waiting is not None and self.state["status"] == "interrupted":
            self.state["interrupt"] = self.state["interrupt"] or {
                **plain(interrupt_data(to_data(waiting))),
                "run_id": "",
            }

    def _read_agent(self) -> None:
        """Set what changes with the agent: its model, and the tools of the calls that wait.

        A conversation may be opened again by an agent with other tools.
        """
        agent = self.session.agent
        model = agent.model
        self.state.update({"model": model.name, "context_window": context_window(model)})
        if (interrupt := self.state["interrupt"]) is None:
            return
        gone = without_tool(self.session)
        requests = [
            {name: value for name, value in request.items() if name != "missing"}
            | ({"missing": True} if request["tool_call_id"] in gone else {})
            for request in interrupt.get("action_requests", ())
        ]
        told = {**interrupt, "action_requests": requests}
        self.state["interrupt"] = plain(with_parameters(told, agent.tools_by_name))

    def _set_entries(self, messages: list[Message]) -> None:
        """Show these messages, of which no event tells; a page is shown the last of them only."""
        self.state["earlier"] = max(0, len(messages) - SHOWN_ENTRIES)
        self.state["entries"] = self._entries_of(messages[-SHOWN_ENTRIES:])

    def _entries_of(self, messages: list[Message]) -> list[dict[str, Any]]:
        """Entries of messages of which no event tells, so that they say what their calls are."""
        tools = self.session.agent.tools_by_name
        seen = [with_display_texts(shortened_message(to_data(shown(m))), tools) for m in messages]
        return [{"seq": 0, "run_id": "", "ts": 0, "message": message} for message in plain(seen)]

    def push(self, event: Event) -> None:
        """Take an event; it travels with the next batch."""
        if not travels(event):
            return
        if isinstance(event, StatusChanged) and event.reason in RESTS:
            return  # a request wakes it, so nothing has changed for a person
        self._waiting.append(event)
        if isinstance(event, StatusChanged):
            self._closed = event.status == "closed"
            self._listeners = dict.fromkeys(self._listeners, False)
            if event.reason in REPLACED and self._unsubscribe is not None:
                self._begin_anew(event)
            elif event.reason == AGENT_REPLACED:
                self._snapshot_due = True  # which names the model
        self._flush_later()

    def _begin_anew(self, event: StatusChanged) -> None:
        """The conversation is another one, so pages get a snapshot instead of events.

        Views of runs go on showing them.
        """
        while self._take() is not None:  # what ended with the old one is known of its runs
            pass
        self.backlog.clear()
        self.backlog_bytes, self.shown.seq = 0, event.seq
        self._left |= known_calls(self.state)
        if event.reason == REPLACED[0]:
            self._left.clear()
        self.shown.state = following_state(self.state)
        self._set_entries(self.session.initial_messages)
        forget_others(self.state)
        self._read_session()
        recall(self.state, self._left)
        self._snapshot_due = True

    def _flush_later(self) -> None:
        if not self._flushing:
            self._flushing = True
            pause = max(INTERVAL, self._free_at - runtime.loop.time())
            runtime.loop.call_later(pause, self.flush)

    def flush(self) -> None:
        """Send what waits now, whatever the clock says."""
        self._flushing = False
        self._send_waiting()
        self._go_on(self._listeners)

    def hello(self, listener: Listener, have: int) -> None:
        """Bring a listener that has everything up to ``have`` up to date; 0 is nothing.

        It alone is answered; from now on it is told what happens, until :meth:`leave`.
        """
        self._listened = True
        self.leave(listener)
        self._send_waiting()
        self._listeners[listener] = False
        asker = [listener]
        missing = [batch for batch in self.backlog if batch[0] >= have]
        if have and have == self.seq:
            self._send_batch((have, have, b"[]"), asker)
        elif have and missing and missing[0][0] == have:
            for batch in missing:
                self._send_batch(batch, asker)
        else:
            self._send_snapshot(asker)
        self._go_on(asker)

    def entries_before(self, place: int) -> list[dict[str, Any]]:
        """The entries before that place of the conversation, as many as a page takes at once."""
        first = max(0, place - EARLIER_ENTRIES)
        known = self.state["earlier"]  # of those before them no event told
        told = self.state["entries"][max(0, first - known) : max(0, place - known)]
        return [*self._entries_of(self.session.initial_messages[first : min(place, known)]), *told]

    def leave(self, listener: Listener) -> None:
        """Tell that listener no more."""
        self._listeners.pop(listener, None)

    def _send_waiting(self) -> None:
        """What waits becomes a batch, for those who may come back and those who listen."""
        if self._snapshot_due and self._listeners:
            self._send_snapshot(self._listeners)
        self._snapshot_due = False
        batch = self._take()
        if batch is not None and self._listened:
            self._keep(batch)
            self._send_batch(batch, self._listeners)
            self.remind(REMINDERS)

    def remind(self, pauses: Sequence[float], seq: int = 0) -> None:
        """Tell pages after each of these pauses that nothing more has happened, if so.

        They have had everything up to ``seq``; 0 is not told.
        """
        if seq:
            self._send_batch((seq, seq, b"[]"), self._listeners)
        if self._reminder is not None:
            self._reminder.cancel()
        self._reminder = None
        if pauses:
            self._reminder = runtime.loop.call_later(
                pauses[0], _remind, weakref.ref(self), pauses[1:], self.seq
            )

    def _take(self) -> Batch | None:
        """What waits, as one batch that the state knows now; if it is much, the first of it."""
        if not self._waiting:
            return None
        waiting, self._waiting = merged(self._waiting), []
        after, taken, size = self.seq, [], 0
        for i, event in enumerate(waiting):
            self.shown.seq = event.seq
            try:
                told = wire(event, self.state)
                if told["type"] == "interrupt":
                    tools = self.session.agent.tools_by_name
                    told["interrupt"] = with_parameters(told["interrupt"], tools)
                data = encoded(told)
                reduce(self.state, msgspec.json.decode(data))
            except Exception:  # the rest of the conversation is still worth seeing
                logger.exception("A page cannot be told of %s", event.type)
                continue
            taken.append(data)
            size += len(data)
            if self._listened and size >= MESSAGE_BYTES:
                self._waiting = waiting[i + 1 :]
                break
        return after, self.seq, b"[" + b",".join(taken) + b"]"

    def _keep(self, batch: Batch) -> None:
        self.backlog.append(batch)
        self.backlog_bytes += len(batch[2])
        while self.backlog_bytes > BACKLOG_BYTES:
            self.backlog_bytes -= len(self.backlog.popleft()[2])

    def _go_on(self, listeners: Collection[Listener]) -> None:
        if self._waiting:
            self._flush_later()
        elif self._closed:
            untold = [each for each in listeners if not self._listeners.get(each, True)]
            self._listeners.update(dict.fromkeys(untold, True))
            self._send({"type": "closed"}, untold)

    def _send_batch(self, batch: Batch, listeners: Collection[Listener]) -> None:
        if not listeners:
            return
        after, seq, events = batch
        self._pay(len(events))
        message = {"type": "events", "after": after, "seq": seq}
        self._send({**message, "events": msgspec.json.decode(events)}, listeners)

    def _send_snapshot(self, listeners: Collection[Listener]) -> None:
        self._read_agent()
        state = snapshot_of(self.state)
        self._pay(len(msgspec.json.encode(state)))
        self._send({"type": "snapshot", "seq": self.seq, "state": state}, listeners)

    def _pay(self, size: int) -> None:
        """Nothing more travels before ``size`` bytes are within the budget of each listener."""
        now = runtime.loop.time()
        self._free_at = max(now, self._free_at) + size / BYTES_A_SECOND

    def _send(self, message: dict[str, Any], listeners: Collection[Listener]) -> None:
        for listener in tuple(listeners):
            try:
                listener(message)
            except Exception:  # the others hear of it all the same
                logger.exception("A listener raised on %s", message["type"])


def _remind(publisher: weakref.ref[Publisher], pauses: Sequence[float], seq: int) -> None:
    # What waits for its time keeps no session.
    if (found := publisher()) is not None:
        found.remind(pauses, seq)


def _queued(run_id: str, when: str, message: Message) -> dict[str, Any]:
    return {"run_id": run_id, "when": when, "text": queued_text(to_data(message.shown))}


# Weakly, both: a publisher is its session's subscriber, and nothing else keeps either.
_publishers: WeakKeyDictionary[Session, weakref.ref[Publisher]] = WeakKeyDictionary()


def publisher_of(session: Session) -> Publisher:
    """The publisher of that session, for all who listen; made on first use, from any thread."""
    return runtime.call(_publisher_of, session)


def _publisher_of(session: Session) -> Publisher:
    reference = _publishers.get(session)
    publisher = None if reference is None else reference()
    if publisher is None:  # also of a session that was closed, and let go of its subscribers
        publisher = Publisher(session)
        _publishers[session] = weakref.ref(publisher)
    return publisher
