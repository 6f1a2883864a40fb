"""What can be seen of a session: snapshots, from any thread, and its events."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..agent import Agent
from ..events import Event, Frozen
from ..interrupts import Interrupt
from ..messages import Message, Usage
from ..runtime.event_stream import EventStream
from ..runtime.thread import runtime
from ..state import State, Todo, export_state
from .actor import Actor
from .opening import conversations_of, here
from .options import Surroundings
from .run import Run

if TYPE_CHECKING:
    import pandas


class Watched:
    """The part of a session that changes nothing in it."""

    id: str
    files: Any
    surroundings: Surroundings
    _actor: Actor

    def __repr__(self) -> str:
        return f"<Session {self.id!r}: {self._actor.status}, {len(self.messages)} messages>"

    @property
    def agent(self) -> Agent:
        """The agent that answers."""
        return self._actor.agent

    @property
    def scope(self) -> Any:
        """Whose it is, or None."""
        return self.surroundings.scope

    @property
    def status(self) -> str:
        """One of "idle", "running", "interrupted", "paused", "cancelled", "error" and "closed"."""
        return self._actor.status

    @property
    def resting(self) -> str | None:
        """The status that it wakes with, while it rests; else None."""
        return self._actor.awakes_as

    @property
    def state(self) -> State:
        """The state now, also in the middle of a run."""
        return self._actor.state

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return self.state.messages[:]

    @property
    def initial_messages(self) -> list[Message]:
        """What the conversation held when this session began; no event tells of it."""
        return self._actor.initial[:]

    @property
    def todos(self) -> list[Todo]:
        """The to-do list now."""
        return self.state.todos[:]

    @property
    def interrupt(self) -> Interrupt | None:
        """What waits for people, or None."""
        return self.state.interrupt

    @property
    def usage(self) -> Usage:
        """The sum over all runs so far."""
        return self._actor.usage

    @property
    def error(self) -> str | None:
        """What the last run failed with, or None."""
        return self._actor.error

    @property
    def stream_message(self) -> Message | None:
        """What has arrived of the answer that is being streamed, without calls; else None."""
        return self._actor.log.partial()

    @property
    def pending_tool_calls(self) -> list[str]:
        """The ids of the calls that are at work now."""
        return list(self._actor.log.calls)

    @property
    def current_run(self) -> Run | None:
        """The active run, or the last one; None before the first."""
        return self._actor.current_run

    def info(self) -> dict[str, Any]:
        """A summary as plain data."""
        return {
            "id": self.id,
            "agent": self.agent.name,
            "model": self.agent.model.name,
            "status": self._actor.status,
            "messages": len(self.state.messages),
            "todos": len(self.state.todos),
            "queued": len(self._actor.queues),
            "started_at": self._actor.started_at,
            "last_activity_at": self._actor.attendance.last_activity,
            "node": here(),
            "scope": getattr(self.scope, "owner_id", self.scope),
            "viewers": self.viewers,
            "problems": list(self._actor.problems),
        }

    @property
    def viewers(self) -> list[str]:
        """The ids of those who watch now; a panel in a page is one."""
        return list(self._actor.attendance.viewers)

    # watching

    def watch(self, viewer: str, owner: Any = None) -> Callable[[], None]:
        """Count ``viewer`` among those who watch, until the returned function is called.

        With an ``owner`` also until that object is gone: who dies does not watch for ever.
        """
        leave = runtime.call(self._actor.attendance.join, viewer)
        stop = functools.partial(runtime.post, leave)
        if owner is not None:
            weakref.finalize(owner, stop).atexit = False
        return stop

    def freeze(self) -> None:
        """Have everything that shows this session become static: panels in a notebook, say."""
        self.publish(Frozen())

    def publish(self, event: Event) -> None:
        """Tell everybody who listens an event of yours; it gets the next ``seq`` and the ids."""
        runtime.call(self._actor.publish, event)

    def subscribe(
        self, callback: Callable[[Event], Any], since: int | None = None, *, debug: bool = False
    ) -> Callable[[], None]:
        """Call ``callback`` on the runtime loop for every further event; it must not block.

        An async one is awaited, one event after the other. With ``since`` it is first called
        for the kept events after that sequence number; without, who comes late is first told the
        status, with the reason "snapshot". With ``debug`` it hears
        :class:`~sagents_nb.events.Debug` events as well. Subscribing twice is one subscription.
        Returns the unsubscribe.
        """
        runtime.call(self._actor.subscribe, callback, since, debug)
        return lambda: runtime.post(self._actor.log.unsubscribe, callback)

    def events(self, since: int = 0) -> EventStream:
        """The events after ``since`` and all further ones, to iterate on any loop."""
        stream = EventStream()
        runtime.call(self._actor.follow, stream, since)
        return stream

    def follow(self, stream: EventStream, run_id: str, since: int = 0) -> None:
        """Feed ``stream`` with the events of one run, up to its next end."""
        runtime.call(self._actor.log.follow, stream, since, run_id)

    def export_state(self) -> dict[str, Any]:
        """The state as JSON-ready data; see :meth:`State.export`."""
        return export_state(self.state, self.agent._chain.state_schema)

    def to_frame(self, kind: str = "messages") -> pandas.DataFrame:
        """The conversation as a frame.

        ``kind`` is "messages", "tool_calls", "todos", "usage", "events", "files" or
        "decisions"; :data:`sagents_nb.frames.COLUMNS` lists the columns of each.
        """
        from ..frames import Conversation, frame_of
        from .event_log import earlier

        events = runtime.call(self._actor.log.kept)
        state = self.state
        if self.surroundings.store is not None:
            kept = conversations_of(self.surroundings.store, self.scope).history(self.id)
            events = [*earlier(kept, state, events), *events]
        return frame_of(kind, [Conversation(self.id, state, events, self.files.entries())])
