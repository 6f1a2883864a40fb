"""What a session holds: its state, its status, and what was told of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..agent import Agent
from ..errors import NotRunning
from ..events import (
    REPLACED,
    Debug,
    Emitter,
    Event,
    MessageEnd,
    MessageStart,
    NodeTransferred,
    StatusChanged,
    TitleGenerated,
    TodosUpdated,
)
from ..loop.config import Unfinished
from ..loop.loop import Loop
from ..loop.open_calls import closing_message
from ..runtime.event_stream import EventStream
from ..runtime.thread import runtime
from ..state import State
from .approvals import Approvals
from .event_log import EventLog, Listener
from .inbox import Queues
from .journal import Recorder
from .opening import Beginning, conversations_of
from .options import Surroundings
from .presence import Attendance
from .run import Run
from .transcript import Persister, Transcriber
from .writing import Writing

if TYPE_CHECKING:
    from .session import Session

# The reason of a status that is told to somebody who comes late, and is no news.
SNAPSHOT = "snapshot"


class Holding(Writing):
    """The state of one session and its events.

    Every method runs on the runtime loop, so nothing here needs a lock; other threads read
    ``status``, ``state`` and the other attributes, which are immutable snapshots.
    """

    def __init__(
        self,
        session: Session,
        agent: Agent,
        beginning: Beginning,
        recorder: Recorder | None,
        epoch: int,
    ) -> None:
        self.session = session
        self.agent = agent
        self.files = session.files
        self.scope = session.scope
        self.status = beginning.status
        self.error = beginning.error
        self.usage = beginning.usage
        self.problems = beginning.problems
        self.current_run: Run | None = None
        self.log = EventLog()
        self.queues = Queues()
        self.local: dict[str, Any] = {}
        self.initial = beginning.state.messages
        self.recorder = recorder
        self._state = beginning.state
        self._epoch = epoch
        self._emitter = Emitter(self.log.push, session_id=session.id)
        self.transcriber, self.persister = self._keepers(session.surroundings)
        self.attendance = Attendance(
            self._needed,
            self.rest,
            inactivity=session.surroundings.inactivity_timeout,
            presence=session.surroundings.presence_timeout,
        )
        self._loop: Loop | None = None
        self._approvals = Approvals()
        self._run_id = beginning.run_id or ""  # of the active run, or the last one
        self._unfinished: Unfinished | None = beginning.unfinished  # of the last message's calls
        self._told = recorder is None  # of the status it began with
        self._moved = ""  # this process, if the conversation was in another one before
        self._tell_todos()  # no event of a run tells of those that are there already
        self._unsubscribe_files = self.files.subscribe(self._file_event)

    @property
    def state(self) -> State:
        """The state now, also in the middle of a run."""
        loop = self._loop
        return loop.state if loop is not None else self._state

    def check_open(self) -> None:
        """Raise NotRunning if the session is closed."""
        if self.status == "closed":
            stored = self.session.surroundings.store is not None
            step = (
                "open it again by Session.open(…)" if stored else "start a new one with its state"
            )
            raise NotRunning(f"Session {self.session.id!r} is closed; {step}.")

    def _keepers(self, around: Surroundings) -> tuple[Transcriber | None, Persister | None]:
        """Who keeps what people see, and the state at the turns of the session's life."""
        whose = self.scope, self.session.id
        transcriber = persister = None
        if around.display_persistence is not None:
            shown = around.display_persistence
            transcriber = Transcriber(shown, *whose, self._emit_now, self._trouble)
            self.log.subscribe(transcriber.hear)
        named: list[Persister] = []  # who is told of a title
        export = lambda: self.session.export_state()  # noqa: E731
        if around.agent_persistence is not None:
            persister = Persister(around.agent_persistence, *whose, export, self._trouble)
            named.append(persister)
        if around.store is not None:  # its journal is the state; a conversation has a title too
            kept = conversations_of(around.store, self.scope)
            named.append(Persister(kept, *whose, export, self._trouble))

        def titled(event: Event) -> None:
            if isinstance(event, TitleGenerated):
                for one in named:
                    one.post("on_title_generated")

        if named:
            self.log.subscribe(titled)
        return transcriber, persister

    # who needs it

    def _needed(self, reason: str) -> bool:
        """Whether the session must not rest now, for that reason."""
        waits = self.status == "interrupted" and reason == "no_viewers"
        behind = self.recorder is not None and self.recorder.is_behind  # it is only here
        return self.status in ("running", "closed") or waits or behind or self.queues.has_runs

    def rest(self, reason: str) -> None:
        """Nobody needs the session now."""
        raise NotImplementedError

    # what is told

    def subscribe(self, listener: Listener, since: int | None = None, debug: bool = False) -> None:
        """Tell a listener of what happens; with ``since`` first of what is kept after that.

        One that comes late and asks for nothing is first told the status.
        """
        if since is None and self._told and self.log.last:
            now = StatusChanged(
                seq=self.log.last,
                ts=time.time(),
                session_id=self.session.id,
                run_id=self._run_id,
                status=self.status,
                previous=self.status,
                reason=SNAPSHOT,
            )
            self.log.tell_one(listener, now)
        self.log.subscribe(listener, since, debug)
        self._tell_beginning()

    def debug(self, kind: str, **data: Any) -> None:
        """Tell those who want to know what goes on behind the scenes."""
        if self.log.debuggers:
            where = self.session.id, self._run_id
            now = Debug(
                seq=self.log.last,
                ts=time.time(),
                session_id=where[0],
                run_id=where[1],
                kind=kind,
                data=data,
            )
            self.log.debug(now)

    def publish(self, event: Event) -> None:
        """Tell everybody an event of somebody's, as the next one of this session."""
        self.check_open()
        self._emit_now(type(event), **_fields(event))

    def _trouble(self, problem: str) -> None:
        self.debug("persistence_failed", problem=problem)

    def _emit_now(self, kind: type[Event], **fields: Any) -> None:
        self._emitter_now().emit(kind, **fields)

    def follow(self, stream: EventStream, since: int = 0) -> None:
        """Feed a stream with what is kept after ``since``, and what comes."""
        self.log.follow(stream, since)
        self._tell_beginning()

    def _tell_beginning(self) -> None:
        """Tell the first who watches which status a stored session began with.

        Not before, and not once it has another: nobody should see a question for a moment that
        was answered while the session was opened.
        """
        if not self._told:
            self._told = True
            if self._moved:
                self._emitter.emit(NodeTransferred, node=self._moved)
            self._emitter.emit(StatusChanged, status=self.status, reason=self.error)

    def tell(self, kind: type[Event], **fields: Any) -> None:
        """Emit an event, once what it tells of is safe."""
        emitter = self._emitter
        self.once_safe(lambda: emitter.emit(kind, **fields))

    def _set_status(self, status: str, reason: str | None = None) -> None:
        previous, self.status = self.status, status
        self._told = True
        if status != previous or reason in REPLACED:
            self.tell(StatusChanged, status=status, previous=previous, reason=reason)

    def _tell_todos(self, before: State | None = None) -> None:
        todos = tuple(self.state.todos)
        if todos or (before is not None and before.todos):
            self.tell(TodosUpdated, todos=todos)

    def _file_event(self, event: Event) -> None:
        runtime.post(lambda: self._emit_now(type(event), **_fields(event)))

    def _emitter_now(self) -> Emitter:
        return self._loop.ctx.emitter if self._loop is not None else self._emitter

    # what waits

    def _drop_interrupt(self, reason: str) -> None:
        """Answer the waiting calls as cancelled, so that the conversation can go on."""
        self._approvals.clear()
        message = closing_message(self._state, reason, self._unfinished)
        self._unfinished = None
        self._state = self._state.clean_stale_interrupts()
        if message is not None:
            self._state = self._state.add_message(message)
            emitter = self._emitter.for_run(self._run_id)

            def tell() -> None:
                emitter.emit(MessageStart, message=message)
                emitter.emit(MessageEnd, message=message)

            self.once_safe(tell)

    def _begin_with(self, state: State) -> None:
        """Another conversation: what was told of the old one is forgotten."""
        self._approvals.clear()
        self._unfinished = None
        self._state = state
        self.initial = state.messages
        self.log.forget()
        self._epoch += 1


def _fields(event: Event) -> dict[str, Any]:
    """What an event says, without when and where it was said."""
    stamps = Event.__struct_fields__
    return {name: getattr(event, name) for name in event.__struct_fields__ if name not in stamps}
