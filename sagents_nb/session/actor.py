"""The actor behind a session: the one writer of its state, on the runtime loop only."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from ..agent import Agent
from ..errors import AgentError, Busy
from ..events import REPLACED, AgentShutdown, MessageQueued, NodeTransferring, StatusChanged
from ..loop.execution import new_run_id
from ..messages import Message
from ..runtime.thread import runtime
from ..state import State
from .deciding import Deciding
from .opening import Beginning, Held, here
from .run import Run

if TYPE_CHECKING:
    from .session import Session


class Actor(Deciding):
    """Status, state, queues and the active loop of one session.

    Every method runs on the runtime loop, so nothing here needs a lock; other threads read
    ``status``, ``state`` and the other attributes, which are immutable snapshots. What it is
    made of: it holds a state (:class:`Holding`), runs (:class:`Running`), takes decisions
    (:class:`Deciding`), and here it takes messages, begins anew and ends.
    """

    def __init__(
        self,
        session: Session,
        agent: Agent,
        held: Held,
    ) -> None:
        super().__init__(session, agent, held.beginning, held.recorder, held.epoch)
        self._moved = here() if held.moved else ""
        self.started_at = time.time()
        self.asleep = False  # it rests: it is closed, and the next call wakes it
        self.gone = False  # it is closed for good
        self._awake_as = self.status
        self.ended: Future[None] = Future()  # of the last rest, or of its close
        self._restore(held.beginning)

    def _restore(self, beginning: Beginning) -> None:
        """Know what was decided, and what waits, as a conversation was left."""
        session, recorder = self.session, self.recorder
        if beginning.status == "paused":
            self._answers = beginning.decisions or None
        else:
            self._approvals.restore(beginning.decisions)
        runs: dict[str, list[Message]] = {}
        for waiting in beginning.queued:
            if waiting.when == "queue":
                runs.setdefault(waiting.run_id, []).append(waiting.message)
            else:
                self.queues.add(waiting.message, waiting.when)
        for run_id, messages in runs.items():
            self.queues.put(messages, Run(session, run_id))
        if recorder is not None:
            recorder.on_lost = self._lost

    @property
    def awakes_as(self) -> str | None:
        """The status after a rest; None while it does not rest."""
        return self._awake_as if self.asleep else None

    # messages

    def send(self, messages: list[Message], when: str) -> Run:
        """Start a run, or queue, steer or refuse, as the status and ``when`` say."""
        self.check_open()
        if self.status == "running":
            if when == "raise":
                raise Busy(
                    f"Session {self.session.id!r} is running; send(…, when='queue') waits for it, "
                    "when='steer' talks to the active run."
                )
            if when == "steer":
                self.enqueue(messages, "steer")
                assert self.current_run is not None
                return self.current_run
            run = Run(self.session, new_run_id())
            self.queues.put(self._noted(messages, run.id, "queue"), run)
            for message in messages:
                self.tell(MessageQueued, message=message, when=when)
            return run
        if self.status == "interrupted":
            self._drop_interrupt("another message came")
        run = Run(self.session, new_run_id())
        # Behind what an earlier stop left waiting.
        self.queues.put(self._noted(messages, run.id, "queue"), run)
        self._start_next()
        return run

    def enqueue(self, messages: list[Message], when: str) -> None:
        """Queue messages for the active run, or the next one."""
        self.check_open()
        for message in self._noted(messages, "", when):
            self.queues.add(message, when)
            self.tell(MessageQueued, message=message, when=when)

    def _noted(self, messages: list[Message], run_id: str, when: str) -> list[Message]:
        return messages if self.recorder is None else self.recorder.queue(messages, run_id, when)

    def cancel_run(self, run: Run) -> None:
        """Stop that run, or take it out of the queue."""
        messages = self.queues.remove(run)
        if messages is not None:
            if self.recorder is not None:
                self.recorder.withdraw(messages)
            self._never_begins(run)
        elif run is self.current_run:
            self.cancel()

    # another conversation

    def reset(self) -> None:
        """Stop, and forget messages, todos, metadata and queues."""
        self.check_open()
        self._stop_now()
        if self.recorder is not None:
            self.recorder.withdraw_all()
        before = self._state
        self._begin_with(before.reset())
        self.error = None
        self._set_status("idle", "reset")
        self._tell_todos(before)

    def replace(self, agent: Agent | None, state: State | None) -> None:
        """Go on with another agent or state."""
        self.check_open()
        if self.status == "running":
            raise Busy(f"Session {self.session.id!r} is running; cancel it or wait for it first.")
        self.agent = agent or self.agent
        if self.recorder is not None:
            self.recorder.schema = self.agent._chain.state_schema
        status, before = self.status, self._state
        if state is not None:
            self._answers = None
            self._begin_with(state)
            status = "interrupted" if state.interrupt else "idle"
        self._set_status(status, "replaced")
        if state is not None:
            self._tell_todos(before)

    # the end, or a rest

    def begin(self) -> None:
        """Call the hooks of a session that starts, and count the time that nobody uses it."""
        self.boot()
        self.attendance.start()

    def close(self, reason: str) -> Future[None]:
        """Stop for good; the future is done once the conversation is let go and that is told.

        What is queued stays in the store.
        """
        rests, self.asleep, self.gone = self.asleep, False, True
        if rests and self.ended.done():
            self.log.close()
        return self._stop(reason)

    def rest(self, reason: str) -> None:
        """Let the conversation go, until somebody needs the session again."""
        self._awake_as = self.status
        self.asleep = True
        self._stop(reason)

    def transfer(self) -> Future[None]:
        """Leave the conversation to another process."""
        self.check_open()
        self._emit_now(NodeTransferring, node=here())
        return self.close("transferring")

    def _stop(self, reason: str) -> Future[None]:
        if self.status == "closed":
            return self.ended
        self.ended = done = Future[None]()
        if self._loop is not None:
            self._state = self._loop.settled("the session was closed")
        self._stop_now()
        self._unsubscribe_files()
        self.attendance.stop()
        previous, self.status = self.status, "closed"
        if self.recorder is not None:
            self.recorder.note(self._state)

        def tell() -> None:
            self._tell_end(reason, previous)
            done.set_result(None)

        if not (self.recorder or self.transcriber or self.persister):
            tell()
        else:
            runtime.spawn(self._let_go()).add_done_callback(lambda _: tell())
        return done

    async def _let_go(self) -> None:
        """Have kept what is left to keep, and let the conversation go."""
        if self.transcriber is not None:
            await self.transcriber.drained()
        if self.persister is not None:
            await self.persister.keep("on_shutdown")
        if self.recorder is not None:
            with suppress(AgentError):  # what cannot be written is not more lost than before
                await self.recorder.committed()
            with suppress(AgentError):
                await asyncio.wrap_future(self.recorder.release())

    def _tell_end(self, reason: str, previous: str) -> None:
        interrupt = self._state.interrupt
        self._emitter.emit(
            AgentShutdown,
            reason=reason,
            last_activity_at=self.attendance.last_activity,
            shutdown_at=time.time(),
            restorable=interrupt is not None and interrupt.restorable,
        )
        self._emitter.emit(StatusChanged, status="closed", previous=previous, reason=reason)
        if not self.asleep:
            self.log.close()

    def wake(self, held: Held | None) -> None:
        """Go on after a rest, with the conversation as it is by now; None if it is only here."""
        if not self.asleep:
            return
        self.asleep = False
        self.status = self._awake_as
        if held is not None:
            beginning, self.recorder = held.beginning, held.recorder
            self._epoch = max(self._epoch + 1, held.epoch)
            if beginning.state != self._state:  # somebody went on with it elsewhere
                self._begin_with(beginning.state)
                self.tell(StatusChanged, status=beginning.status, reason=REPLACED[1])
            self.status, self.error = beginning.status, beginning.error
            self.usage, self.problems = beginning.usage, beginning.problems
            self._unfinished = beginning.unfinished
            self._restore(beginning)
        self._unsubscribe_files = self.files.subscribe(self._file_event)
        self.attendance.start()

    def _lost(self, error: AgentError) -> None:
        """Somebody took the conversation over: nothing that happens here is kept any more."""
        self.recorder = None
        self.close(str(error))
