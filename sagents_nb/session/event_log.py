"""The events of a session: kept for those who come later, told to those who listen."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from types import BuiltinMethodType, MethodType
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
from ..messages import Delta, Message
from ..models.replay import deltas_of
from ..runtime import foreign
from ..runtime.event_stream import EventStream
from ..runtime.foreign import clock
from ..runtime.thread import runtime
from ..state import State
from ..text import logger_of

logger = logger_of(__name__)

# A reader or async listener who is further behind than this misses the oldest.
KEPT = 20_000

# Up to so many listeners are timed each for itself, more of them in groups of so many: to ask the
# clock takes longer than a listener that does little.
ALONE, TOGETHER = 64, 16

Listener = Callable[[Event], Any]
Branch = tuple[str, int]
"""The id of a point, and which of its branches."""


class EventLog:
    """A bounded list of events and its listeners; used on the runtime loop only.

    The deltas of a finished message are dropped: its ``message_end`` says the same. Numbers up to
    ``before`` are those of events that were told elsewhere, before this session had the
    conversation.
    """

    def __init__(self, before: int = 0) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._deltas: dict[str, list[Event]] = {}  # of who speaks now: "" or a sub-agent's id
        # By the number of a message's end its first pieces, as many as it has parts.
        self._first: dict[int, list[Event]] = {}
        self._subscribers: dict[object, Subscriber] = {}  # by who listens, in the order they came
        self._before: list[Event] = []  # of branches, before the current one
        self._aside: dict[Branch, Sequence[Message]] = {}  # of which those tell, by their branch
        self._told: Groups | None = ()  # they, until somebody comes or goes
        self.streams: WeakSet[EventStream] = WeakSet()
        self._untold: list[tuple[Event, Groups]] = []  # few, and seldom any
        self._telling = False
        self._closed = False
        self.last = before  # the newest event's sequence number
        self.has_told = False
        self._calls: dict[str, None] = {}  # the ids of those between their start and their end
        self._speaking = False

    def push(self, event: Event) -> None:
        """Keep an event and tell everybody; a listener that raises hurts nobody else."""
        if event.seq <= self.last:  # of what a hook began before the session rested
            event = replace(event, seq=self.last + 1)
        self.last = event.seq
        self.has_told = True
        speaker, inner = "", event
        while type(inner) is SubagentEvent:
            speaker, inner = inner.sub_agent_id, inner.event
        if type(inner) is MessageUpdate:
            self._deltas.setdefault(speaker, []).append(event)
        else:
            if not speaker:
                self._note(event)
            if type(inner) is MessageEnd:
                self._drop_deltas(speaker, event.seq, inner.message)
            elif type(inner) is MessageStart:  # the one before may never have come to its end
                self._deltas.pop(speaker, None)
            self._events.append(event)
        groups = self._groups()
        if self._telling:  # a listener caused it: all hear of it after this one, in order
            self._untold.append((event, groups))
            return
        self._telling = True
        while True:
            tell(groups, event)
            if not self._untold:
                break
            event, groups = self._untold.pop(0)
        self._telling = False
        if self._closed:
            self._release()

    def pass_over(self, last: int) -> None:
        """Events up to that number were told elsewhere meanwhile."""
        self.last = max(self.last, last)

    def _drop_deltas(self, speaker: str, end: int, message: Message) -> None:
        """Keep no pieces of a message that has ended, but those that :meth:`spoken` puts it in."""
        if told := self._deltas.pop(speaker, None):
            self._first[end] = told[: len(message.parts)]
            if len(self._first) > KEPT:  # so its end is kept no more
                del self._first[next(iter(self._first))]

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

    def spoken(self, since: int = 0) -> list[Event]:
        """What is kept after ``since``, and one piece for each part of messages that have ended.

        So whoever reads only the pieces misses nothing of a run that was quicker than its reader.
        The pieces have the places of the message's own first ones, so that whoever goes on after
        any number is told none of them twice. A message that was told in fewer pieces than it has
        parts is told in those; one in none, by its end alone.
        """
        pieces = [
            _with_delta(first, delta)
            for event in self._events
            if event.seq in self._first
            for first, delta in zip(self._first[event.seq], _pieces_of(event), strict=False)
            if first.seq > since
        ]
        return sorted([*self.kept(since), *pieces], key=lambda event: event.seq)

    def turn(self, left: Branch, before: Sequence[Message]) -> None:
        """The messages ``before`` are set aside as that branch: what was told of them stays."""
        self._aside[left] = before

    def turn_back(self, to: Branch, now: Sequence[Message]) -> None:
        """That branch is current again, with messages that are equal to those it was left with."""
        new = dict(zip(map(id, self._aside.pop(to, ())), now, strict=False))
        for place, event in enumerate(self._before):
            if type(event) is MessageEnd and (message := new.get(id(event.message))):
                self._before[place] = replace(event, message=message)

    def before(self, messages: Sequence[Message]) -> list[Event]:
        """What was told of the runs of these messages before the conversation took this branch."""
        mine = set(map(id, messages)) if self._before else ()
        ends = (event for event in self._before if type(event) is MessageEnd)
        runs = {event.run_id for event in ends if id(event.message) in mine}
        return [event for event in self._before if event.run_id in runs]

    def forget(self, *, branch: bool = False) -> None:
        """Keep nothing of what was told so far; with ``branch`` only for :meth:`before`."""
        if branch:
            self._before = [*self._before, *self._events][-KEPT:]
        else:
            self._before.clear()
            self._aside.clear()
        self._events.clear()
        self._deltas.clear()
        self._first.clear()
        self._calls.clear()
        self._speaking = False

    def subscribe(
        self,
        listener: Listener,
        since: int | None = None,
        debug: bool = False,
        first: Event | None = None,
    ) -> None:
        """Add a listener, once, who hears ``debug`` events too if it wants to.

        It first hears ``first``, which is no news to the others, then with ``since`` what is kept
        after that.
        """
        subscriber = self._subscribers.get(_key(listener)) or Subscriber(listener)
        if first is not None:
            tell([[subscriber]], first)
        for event in () if since is None else self.kept(since):
            tell([[subscriber]], event)
        subscriber.debug = subscriber.debug or debug
        self._add(subscriber)

    def _add(self, subscriber: Subscriber) -> None:
        self._subscribers[_key(subscriber.listener)] = subscriber
        self._told = None

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener, if it is there."""
        found = self._subscribers.pop(_key(listener), None)
        if found is not None:
            found.leave()
            self._told = None

    @property
    def subscribers(self) -> Sequence[Subscriber]:
        """Those who listen now, in the order in which they came."""
        return tuple(self._subscribers.values())

    def _groups(self) -> Groups:
        """Those who listen now, as they are timed; anew only if somebody came or went."""
        if self._told is None:
            every = self.subscribers
            size = 1 if len(every) <= ALONE else TOGETHER
            self._told = [every[first : first + size] for first in range(0, len(every), size)]
        return self._told

    @property
    def debugs(self) -> bool:
        """Whether anybody hears debug events."""
        return any(subscriber.debug for subscriber in self._subscribers.values())

    def debug(self, event: Debug) -> None:
        """Tell those who hear debug events."""
        tell([[each] for each in self.subscribers if each.debug], event)

    def follow(self, stream: EventStream, since: int, run_id: str | None = None) -> None:
        """Feed a stream: what is kept after ``since``, then what comes.

        With ``run_id`` only the events of that run, each message that was said by then in one
        piece for each of its parts, and the stream ends with the run. The stream is let go with
        its reader.
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

        for event in self.kept(since) if run_id is None else self.spoken(since):
            if not stream.closed:
                take(event)
        if self._closed:
            stream.close()
        elif not stream.closed:
            self.streams.add(stream)
            self._add(Subscriber(take))

    def close(self) -> None:
        """No more events: streams end, listeners are let go."""
        self._closed = True
        if not self._telling:  # else a listener closed the session: the others hear of it first
            self._release()

    def _release(self) -> None:
        for subscriber in self.subscribers:
            subscriber.leave()
        self._subscribers.clear()
        self._told = ()
        for stream in self.streams:
            stream.close()


class Subscriber:
    """A listener; what it ``hear``s an event with is itself, unless it is at work or gone."""

    __slots__ = ("_missed", "debug", "hear", "listener")

    def __init__(self, listener: Listener) -> None:
        self.listener = self.hear = listener
        self.debug = False  # it hears debug events too
        self._missed = 0

    def leave(self) -> None:
        """It hears nothing that comes from now on."""
        self.hear = _pass_over

    def wait_for(self, event: Event, outcome: Awaitable[Any]) -> None:
        """It is an async one, at work on an event: those that come meanwhile it hears after it."""
        since: deque[Event] = deque(maxlen=KEPT)
        if self.hear is not _pass_over:  # else it left because of this event
            self.hear = partial(self._later, since)
        runtime.spawn(self._hear(event, outcome, since))

    def _later(self, since: deque[Event], event: Event) -> None:
        self._missed += len(since) == KEPT
        since.append(event)

    async def _hear(self, event: Event, outcome: Awaitable[Any], since: deque[Event]) -> None:
        try:
            await self._heard(event, outcome)
            while since:
                await asyncio.sleep(0)  # one that never waits holds nobody up
                if missed := self._missed:
                    self._missed = 0
                    logger.warning(
                        "The subscriber %s was slower than its events came and missed %d, the "
                        "oldest of those it had yet to hear; let it take less time for each.",
                        *(foreign.name_of(self.listener), missed),
                    )
                event = since.popleft()
                further = self._call(event)
                if further is not None:
                    await self._heard(event, further)
        finally:
            if self.hear is not _pass_over:
                self.hear = self.listener

    def _call(self, event: Event) -> Awaitable[Any] | None:
        began = clock()
        try:
            outcome = self.listener(event)
        except BaseException as error:
            _raised(event, error)
            return None
        if clock() - began > foreign.HELD:
            foreign.took(began, "The subscriber", self.listener)
        return outcome if inspect.isawaitable(outcome) else None

    async def _heard(self, event: Event, outcome: Awaitable[Any]) -> None:
        try:
            await foreign.stepwise(outcome, "The subscriber", self.listener)
        except BaseException as error:
            _raised(event, error)


def _pieces_of(event: Event) -> Iterator[Delta]:
    """What the message that ends there says: a piece for each text, thought and call in a row."""
    while isinstance(event, SubagentEvent):
        event = event.event
    deltas = deltas_of(event.message)  # type: ignore[attr-defined]
    for _, alike in groupby(deltas, lambda delta: (type(delta), getattr(delta, "index", 0))):
        first, *further = alike
        yield replace(first, text="".join(delta.text for delta in (first, *further)))


def _with_delta(event: Event, delta: Delta) -> Event:
    if isinstance(event, SubagentEvent):
        return replace(event, event=_with_delta(event.event, delta))
    return replace(event, delta=delta)


Groups = Sequence[Sequence[Subscriber]]


def tell(groups: Groups, event: Event) -> None:
    """Have them hear an event, and each group be timed; an async one hears one after the other."""
    began = clock()
    for group in groups:
        for subscriber in group:
            try:
                outcome = subscriber.hear(event)
            except BaseException as error:
                _raised(event, error)
                continue
            if outcome is not None and inspect.isawaitable(outcome):
                subscriber.wait_for(event, outcome)
        if (now := clock()) - began > foreign.HELD:
            foreign.took(began, "The subscriber", *(each.listener for each in group))
            now = clock()
        began = now


def _raised(event: Event, error: BaseException) -> None:
    pass_on(error)
    logger.error("A subscriber raised on %s", event.type, exc_info=error)


def _pass_over(event: Event) -> None:
    """What one who has left does."""


def _key(listener: Listener) -> object:
    """What tells it from others: asked for a method, an object gives another one each time."""
    if isinstance(listener, MethodType):
        return id(listener.__self__), id(listener.__func__)
    return listener if isinstance(listener, BuiltinMethodType) else id(listener)


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
