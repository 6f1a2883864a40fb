"""What AG-UI's clients ask: a run of a thread, told as it happens."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

from ...errors import AgentError, ConfigurationError
from ...events import Event
from ...messages import Message
from ...runtime.thread import runtime
from ..dialects.agui import (
    Answers,
    History,
    Map,
    RunAgentInput,
    RunError,
    Told,
    answers_to,
    frames,
    new_messages,
)
from ..once_kept import OnceKept
from ..threads import Thread
from ..vocabulary import reason_of
from .call import Call
from .sse import ALIVE, HEARTBEAT

MOST_BYTES = 8_000_000
"""What waits for a client that reads slowly, before it is let go."""

_SLOW = RunError(message="This was read too slowly; the run goes on, so run again to see of it.")


class UnansweredInterrupt(AgentError):
    """Something is said to a thread that waits for an answer."""


class AgentRun:
    """One run of ``thread``, as ``asked``; what it tells waits for :meth:`chunks`.

    The thread goes on without whoever reads that.
    """

    def __init__(self, thread: Thread, asked: RunAgentInput) -> None:
        self._thread = thread
        self._asked = asked
        self._map: Map | None = None
        self._early: list[Event] = []  # until it is known what was before them
        self._once_kept = OnceKept(thread.session)
        self._unsubscribe: Callable[[], None] | None = None
        self._unwatch = thread.session.watch(f"agui-{uuid.uuid4().hex[:12]}")
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._done = False
        self._wake: Callable[[], object] | None = None

    def begin(self) -> None:
        """Answer what waits, say what is new, or have the thread go on."""
        session, asked = self._thread.session, self._asked
        files = session.files.list()
        before, partial, waiting = runtime.call(self._listen)
        history = History(f"{self._thread.record.id[:12]}-", before)
        known = [*before, *(each.message for each in session.queued)]
        said = new_messages(asked, known, history.prefix)
        answers = self._answers(said)
        if not before and not said:
            raise ConfigurationError("A thread begins with what somebody says; send messages.")
        map = Map(asked, history, session.todos, files)
        told = map.begin(said)
        if partial is not None:
            told += map.join(partial)
        runtime.call(self._go_live, map, told)
        if answers is not None:
            self._thread.decide(
                answers.decisions,
                interrupt_id=answers.id,
                digests=answers.digests,
                by="ag-ui",
            )
        if waiting and answers is None:
            runtime.call(self._tell_what_waits, map)
        elif said or answers is None:
            self._thread.invoke(said)

    def _listen(self) -> tuple[list[Message], Message | None, bool]:
        """On the runtime loop, where nothing happens in between."""
        session = self._thread.session
        self._unsubscribe = session.subscribe(self._hear)
        interrupt = session.state.interrupt
        waits = (
            session.status == "interrupted"
            and interrupt is not None
            and reason_of(interrupt) != "subagent"
        )
        return session.messages, session.stream_message, waits

    def _answers(self, said: list[Message]) -> Answers | None:
        session = self._thread.session
        if self._asked.resume:
            return answers_to(
                session.interrupt if session.status == "interrupted" else None, self._asked.resume
            )
        if said and session.status == "interrupted" and reason_of(session.interrupt) != "subagent":
            raise UnansweredInterrupt(
                "This thread waits for an answer; send it with resume, or run without new "
                "messages to see what waits."
            )
        return None

    def _tell_what_waits(self, map: Map) -> None:
        """On the runtime loop: unless somebody has answered it meanwhile."""
        interrupt = self._thread.session.interrupt
        if interrupt is not None and self._thread.session.status == "interrupted":
            self._tell(map.waits(interrupt))

    def _go_live(self, map: Map, told: list[Told]) -> None:
        """On the runtime loop: from now on events are told as they come."""
        self._map = map
        self._tell(told)
        early, self._early = self._early, []
        for event in early:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        """On the runtime loop."""
        if self._map is None:
            self._early.append(event)
        elif told := self._map.translate(event):
            self._tell(told)

    def _tell(self, told: Iterable[Told]) -> None:
        """On the runtime loop."""
        is_end = self._map is not None and self._map.done
        self._once_kept.tell(partial(self._put, told, is_end))

    def _put(self, told: Iterable[Told], is_end: bool) -> None:
        data = frames(told)
        with self._lock:
            if self._done:
                return
            if len(self._waiting) > MOST_BYTES:
                self._waiting, self._done = bytearray(frames([_SLOW])), True
            else:
                # What comes while the reader is at work waits here, and is one chunk for it.
                self._waiting += data
                self._done = is_end
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def close(self) -> None:
        """Hear of nothing any more."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._unwatch()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is told, until the run ends, as server-sent events."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        while True:
            woken.clear()
            with self._lock:
                data, self._waiting = self._waiting, bytearray()
                done = self._done
                if not data and not done:
                    self._wake = lambda: loop.call_soon_threadsafe(woken.set)
            if data:
                yield bytes(data)
                continue
            if done:
                return
            try:
                await asyncio.wait_for(woken.wait(), HEARTBEAT)
            except TimeoutError:
                yield ALIVE


def run(call: Call) -> AgentRun:
    """A run that has begun."""
    asked: RunAgentInput = call.body
    asked.check()
    agency = call.agency
    thread = call.hub.named_thread(
        agency,
        call.parameters["name"],
        asked.thread_id,
        request=call.origin,
    )
    try:
        with call.room(thread):
            begun = AgentRun(thread, asked)
            try:
                begun.begin()
            except BaseException:
                begun.close()
                raise
            return begun
    except BaseException:
        if thread.status == "registered" and not thread.session.messages:
            call.hub.delete_thread(agency, thread.record.id)  # what was refused changes nothing
        raise
