"""The events of a session: kept for those who come later, told to those who listen."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain
from typing import Any
from weakref import WeakSet

from msgspec.structs import replace

from ..errors import pass_on
from ..events import (
    AgentEnd,
    Debug,
    DecisionMade,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SubagentEvent,
    TokenUsage,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from ..frames import Conversation
from ..loop.model_call import Partial
from ..messages import Message
from ..runtime.event_stream import EventStream
from ..runtime.foreign import clock, name_of, stepwise, took
from ..runtime.thread import runtime
from ..state import State

logger = logging.getLogger(__name__)

# A reader or async listener who is further behind than this misses the oldest.
KEPT = 20_000

Listener = Callable[[Event], Any]


class EventLog:
    """A bounded list of events and its listeners; used on the runtime loop only.

    The deltas of a finished message are dropped: its ``message_end`` says the same.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._deltas: dict[str, list[Event]] = {}  # of who speaks now: "" or a sub-agent's id
        self.listeners: list[Listener] = []
        self.debuggers: list[Listener] = []  # of the listeners, who hear debug events too
        self.streams: WeakSet[EventStream] = WeakSet()
        self._untold: list[tuple[Event, tuple[Listener, ...]]] = []  # few, and seldom any
        self._telling = False
        self._closed = False
        self._behind: dict[Listener, _Behind] = {}  # async listeners at work
        self.last = 0  # the newest event's sequence number
        self._calls: dict[str, None] = {}  # the ids of those between their start and their end
        self._speaking = False

    def push(self, event: Event) -> None:
        """Keep an event and tell everybody; a listener that raises hurts nobody else."""
        self.last = event.seq
        speaker, inner = "", event
        while type(inner) is SubagentEvent:
            speaker, inner = inner.sub_agent_id, inner.event
        if type(inner) is MessageUpdate:
            self._deltas.setdefault(speaker, []).append(event)
        else:
            if not speaker:
                self._note(event)
            if type(inner) is MessageEnd:
                self._deltas.pop(speaker, None)
            self._events.append(event)
        self._untold.append((event, tuple(self.listeners)))
        if self._telling:  # a listener caused it: all hear of it after this one, in order
            return
        self._telling = True
        while self._untold:
            event, listeners = self._untold.pop(0)
            for listener in listeners:
                if listener in self.listeners:
                    self._tell(listener, event)
        self._telling = False
        if self._closed:
            self._release()

    def _note(self, event: Event) -> None:
        kind = type(event)
        if kind is MessageStart:
            self._speaking = event.message.role == "assistant"  # type: ignore[attr-defined]
        elif kind is MessageEnd:
            self._speaking = False
        elif kind is ToolExecutionStart:
            self._calls[event.tool_call.id] = None  # type: ignore[attr-defined]
        elif kind is ToolExecutionEnd:
            self._calls.pop(event.tool_call_id, None)  # type: ignore[attr-defined]

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of the calls that run now; from any thread."""
        return tuple(self._calls)  # at one stroke: no code of Python's runs in between

    def partial(self) -> Message | None:
        """What has arrived of the message that is being streamed; from any thread."""
        partial = Partial()
        for event in list(self._deltas.get("", ())):
            partial.add(event.delta)  # type: ignore[attr-defined]
        return partial.message() if self._speaking else None  # asked last: it may just have ended

    def kept(self, since: int = 0) -> list[Event]:
        """What is kept after ``since``, in order."""
        every = chain(self._events, *self._deltas.values())
        events = [event for event in every if event.seq > since]
        return sorted(events, key=lambda event: event.seq)

    def forget(self) -> None:
        """Keep nothing of what was told so far."""
        self._events.clear()
        self._deltas.clear()
        self._calls.clear()
        self._speaking = False

    def subscribe(self, listener: Listener, since: int | None = None, debug: bool = False) -> None:
        """Add a listener, once; with ``since`` it first hears what is kept after that."""
        for event in [] if since is None else self.kept(since):
            self._tell(listener, event)
        if listener not in self.listeners:
            self.listeners.append(listener)
        if debug and listener not in self.debuggers:
            self.debuggers.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener, if it is there."""
        for listeners in (self.listeners, self.debuggers):
            if listener in listeners:
                listeners.remove(listener)

    def tell_one(self, listener: Listener, event: Event) -> None:
        """Tell one listener of something that is no news to the others, and is not kept."""
        self._tell(listener, event)

    def debug(self, event: Debug) -> None:
        """Tell those who hear debug events."""
        for listener in tuple(self.debuggers):
            self._tell(listener, event)

    def follow(self, stream: EventStream, since: int = 0, run_id: str | None = None) -> None:
        """Feed a stream: what is kept after ``since``, then what comes.

        With ``run_id`` only the events of that run, and the stream ends with the run. The
        stream is let go with its reader.
        """
        reader = weakref.ref(stream)

        def take(event: Event) -> None:
            stream = reader()
            if stream is None:
                self.unsubscribe(take)
            elif run_id is None or event.run_id == run_id:
                stream.push(event)
                if run_id is not None and isinstance(event, AgentEnd):
                    self.unsubscribe(take)
                    stream.close()

        for event in self.kept(since):
            if not stream.closed:
                take(event)
        if self._closed:
            stream.close()
        elif not stream.closed:
            self.streams.add(stream)
            self.listeners.append(take)

    def close(self) -> None:
        """No more events: streams end, listeners are let go."""
        self._closed = True
        if not self._telling:  # else a listener closed the session: the others hear of it first
            self._release()

    def _release(self) -> None:
        self.listeners.clear()
        self.debuggers.clear()
        for stream in self.streams:
            stream.close()

    def _tell(self, listener: Listener, event: Event) -> None:
        behind = self._behind.get(listener)
        if behind is not None:
            behind.add(event)
            return
        outcome = _call(listener, event)
        if outcome is not None:  # an async one, which hears one event after the other
            self._behind[listener] = behind = _Behind()
            runtime.spawn(self._hear(listener, event, outcome, behind))

    async def _hear(
        self, listener: Listener, event: Event, outcome: Awaitable[Any] | None, behind: _Behind
    ) -> None:
        try:
            while True:
                if outcome is not None:
                    await _heard(listener, event, outcome)
                if not behind.events:
                    return
                await asyncio.sleep(0)  # one that never waits holds nobody up
                if missed := behind.missed:
                    behind.missed = 0
                    logger.warning(
                        "The subscriber %s was slower than its events came and missed %d, the "
                        "oldest of those it had yet to hear; let it take less time for each.",
                        *(name_of(listener), missed),
                    )
                event = behind.events.popleft()
                outcome = _call(listener, event)
        finally:
            del self._behind[listener]


class _Behind:
    """What an async listener has yet to hear."""

    __slots__ = ("events", "missed")

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self.missed = 0

    def add(self, event: Event) -> None:
        self.missed += len(self.events) == KEPT
        self.events.append(event)


def _call(listener: Listener, event: Event) -> Awaitable[Any] | None:
    """Tell a listener; what is left to be awaited, if it is an async one."""
    began = clock()
    try:
        outcome = listener(event)
    except BaseException as error:
        pass_on(error)
        logger.exception("A subscriber raised on %s", event.type)
        return None
    took(began, "The subscriber", listener)
    return outcome if outcome is not None and inspect.isawaitable(outcome) else None


async def _heard(listener: Listener, event: Event, outcome: Awaitable[Any]) -> None:
    try:
        await stepwise(outcome, "The subscriber", listener)
    except BaseException as error:
        pass_on(error)
        logger.exception("A subscriber raised on %s", event.type)


def stored_events(kept: Conversation, state: State, events: Sequence[Event]) -> Iterator[Event]:
    """The events of ``kept`` that are not among ``events``, about the messages of ``state``."""
    told = {id(event.message) for event in events if isinstance(event, MessageEnd)}
    ended = {event.tool_call_id for event in events if isinstance(event, ToolExecutionEnd)}
    decided = {event.tool_call_id for event in events if isinstance(event, DecisionMade)}
    # One history: the store reads it as it was written, object by object.
    mine = dict(zip(map(id, kept.state.messages), state.messages, strict=False))
    new = False
    for event in kept.events:
        if isinstance(event, MessageEnd):
            message = mine.get(id(event.message))
            new = message is not None and id(message) not in told
            if new and message is not None:
                yield replace(event, message=message)
        elif isinstance(event, TokenUsage):  # of the message before it
            if new:
                yield event
        elif isinstance(event, ToolExecutionEnd):
            if event.tool_call_id not in ended:
                yield event
        elif isinstance(event, DecisionMade) and event.tool_call_id not in decided:
            yield event
