"""What a session holds: its state, its status, what was told of it, and who keeps it safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from ..agent import Agent
from ..closing import closing_message
from ..errors import NotRunning
from ..events import REPLACED, Emitter, Event, MessageEnd, MessageStart, StatusChanged, TodosUpdated
from ..eventstream import EventStream
from ..loop import Loop
from ..loopconfig import Unfinished
from ..runtime import runtime
from ..state import State
from .approvals import Approvals
from .log import EventLog, Listener
from .queues import Queues
from .recorder import Recorder
from .recovery import Beginning
from .run import Run

if TYPE_CHECKING:
    from .session import Session

T = TypeVar("T")


class Holding:
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
        self.last_activity = time.time()
        self.log = EventLog()
        self.queues = Queues()
        self.local: dict[str, Any] = {}
        self.initial = beginning.state.messages
        self.recorder = recorder
        self._state = beginning.state
        self._epoch = epoch
        self._emitter = Emitter(self.log.push, session_id=session.id)
        self._loop: Loop | None = None
        self._approvals = Approvals()
        self._run_id = beginning.run_id or ""  # of the active run, or the last one
        self._unfinished: Unfinished | None = beginning.unfinished  # of the last message's calls
        self._told = recorder is None  # of the status it began with
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
            raise NotRunning(
                f"Session {self.session.id!r} is closed; start a new one with its state."
            )

    # what is safe

    def flush(self) -> Future[None] | None:
        """Write what changed; None if all is safe. The future raises StoreError."""
        if self.recorder is None:
            return None
        if self._loop is None:  # else the run notes its own changes
            self.recorder.note(self._state)
        return self.recorder.flush()

    def once_safe(
        self, do: Callable[[], Any], undo: Callable[[], Any] = lambda: None
    ) -> Future[None] | None:
        """Call ``do`` once all that happened so far is safe, or ``undo`` if it cannot be written.

        What is done at once without a store is done at once here too if nothing is to be
        written. The future is that of :meth:`flush`.
        """
        future = self.flush()
        if future is None:
            do()
        else:
            future.add_done_callback(lambda done: undo() if done.exception() else do())
        return future

    def acted(
        self, function: Callable[..., T], args: tuple[Any, ...]
    ) -> tuple[T, Future[None] | None]:
        """What a public method returns, and a future for its being safe and told, or None."""
        value = function(*args)
        future = self.flush()
        if future is None:
            return value, None
        told: Future[None] = Future()  # who waits for it comes after those who are told of it

        def tell(done: Future[None]) -> None:
            error = done.exception()
            if error is None:
                told.set_result(None)
            else:
                self._not_safe(error)
                told.set_exception(error)

        future.add_done_callback(tell)
        return value, told

    def _not_safe(self, error: BaseException) -> None:
        """What was done while nothing runs could not be written: it is, before anything else."""
        if self._loop is None and self.status not in ("closed", "interrupted"):
            self.error = str(error)
            self.status, previous = "error", self.status
            self._emitter.emit(StatusChanged, status="error", previous=previous, reason=self.error)

    # what is told

    def subscribe(self, listener: Listener, since: int | None = None) -> None:
        """Tell a listener of what happens; with ``since`` first of what is kept after that."""
        self.log.subscribe(listener, since)
        self._tell_beginning()

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
        fields = {
            name: getattr(event, name)
            for name in event.__struct_fields__
            if name not in ("seq", "ts", "session_id", "run_id")
        }
        runtime.post(lambda: self._emitter_now().emit(type(event), **fields))

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
