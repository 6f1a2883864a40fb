"""The actor behind a session: the one writer of its state, on the runtime loop only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..agent import Agent
from ..budget import Meter
from ..closing import closing_message, open_calls
from ..errors import Busy, NotRunning, StaleApproval
from ..events import (
    REPLACED,
    AgentShutdown,
    DecisionMade,
    Emitter,
    Event,
    MessageEnd,
    MessageQueued,
    MessageStart,
    StatusChanged,
    TodosUpdated,
)
from ..execution import finished, new_run_id
from ..gate import checked_decisions
from ..interrupts import Decision, Decisions, Interrupt
from ..loop import PAUSE_REASON, Loop
from ..messages import Message, Usage
from ..runtime import runtime
from ..state import State
from .approvals import Approvals
from .log import EventLog
from .queues import Queues
from .run import Run

if TYPE_CHECKING:
    from .session import Session


class Actor:
    """Status, state, queues and the active loop of one session.

    Every method runs on the runtime loop, so nothing here needs a lock; other threads read
    ``status``, ``state`` and the other attributes, which are immutable snapshots.
    """

    def __init__(
        self, session: Session, agent: Agent, state: State, files: Any, scope: Any
    ) -> None:
        if state.interrupt is None or not state.interrupt.restorable:
            state = state.clean_stale_interrupts()
        self.session = session
        self.agent = agent
        self.files = files
        self.scope = scope
        self.status = "interrupted" if state.interrupt else "idle"
        self.error: str | None = None
        self.usage = Usage()
        self.current_run: Run | None = None
        self.last_activity = time.time()
        self.log = EventLog()
        self.queues = Queues()
        self.local: dict[str, Any] = {}
        self.initial = state.messages
        self._state = state
        self._epoch = 1
        self._emitter = Emitter(self.log.push, session_id=session.id)
        self._loop: Loop | None = None
        self._task: asyncio.Task[None] | None = None
        self._approvals = Approvals()
        self._meter: Meter | None = None  # of the last run, which may go on
        self._tell_todos()  # no event of a run tells of those that are there already
        self._unsubscribe_files = files.subscribe(self._file_event)

    @property
    def state(self) -> State:
        """The state now, also in the middle of a run."""
        loop = self._loop
        return loop.state if loop is not None else self._state

    def _check_open(self) -> None:
        if self.status == "closed":
            raise NotRunning(
                f"Session {self.session.id!r} is closed; start a new one with its state."
            )

    def _set_status(self, status: str, reason: str | None = None) -> None:
        previous, self.status = self.status, status
        if status != previous or reason in REPLACED:
            self._emitter.emit(StatusChanged, status=status, previous=previous, reason=reason)

    def send(self, messages: list[Message], when: str) -> Run:
        """Start a run, or queue, steer or refuse, as the status and ``when`` say."""
        self._check_open()
        self.last_activity = time.time()
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
            self.queues.put(messages, run)
            for message in messages:
                self._emitter.emit(MessageQueued, message=message, when=when)
            return run
        if self.status == "interrupted":
            self._drop_interrupt("another message came")
        run = Run(self.session, new_run_id())
        self.queues.put(messages, run)  # behind what an earlier stop left waiting
        self._start_next()
        return run

    def enqueue(self, messages: list[Message], when: str) -> None:
        """Queue messages for the active run, or the next one."""
        self._check_open()
        for message in messages:
            self.queues.add(message, when)
            self._emitter.emit(MessageQueued, message=message, when=when)

    def retry(self) -> Run:
        """Run again from the last user or tool message."""
        self._check_open()
        if self.status in ("running", "interrupted"):
            raise Busy(f"Session {self.session.id!r} is {self.status}; retry needs it to be idle.")
        if self.status == "paused" or open_calls(self._state):
            return self._start(Run(self.session, new_run_id()), [], meter=self._meter)
        messages = self._state.messages
        while messages and messages[-1].role == "assistant" and messages[-1].error:
            self._state = self._state.set_messages(messages[:-1])
            messages = self._state.messages
        answered = not messages or messages[-1].role not in ("user", "tool")
        if answered and not (messages and self.queues.has_messages):
            raise NotRunning("There is nothing to retry: the last message is an answer.")
        return self._start(Run(self.session, new_run_id()), [])

    def _start(
        self,
        run: Run,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None = None,
        meter: Meter | None = None,
    ) -> Run:
        self._epoch += 1
        self.error = None
        self.current_run = run
        self._loop = self.agent.loop(
            self._state,
            self._emitter.for_run(run.id),
            files=self.files,
            scope=self.scope,
            epoch=self._epoch,
            local=self.local,
            notify=self.notify,
            meter=meter,
            steering=self.queues.steering,
            follow_ups=self.queues.follow_ups,
            skip_rest=self.queues.skips_rest,
            should_pause=self.queues.takes_pause,
        )
        self._meter = self._loop.ctx.meter
        self._set_status("running")
        self._task = None
        runtime.spawn(self._execute(run, self._loop, messages, decisions), run.context)
        return run

    async def _execute(
        self,
        run: Run,
        loop: Loop,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None,
    ) -> None:
        began = time.perf_counter()
        if self._loop is loop:  # a task that is cancelled before its first step never ends a run
            self._task = asyncio.current_task()
        outcome = await loop.run(messages, decisions)
        if self._loop is not loop:  # reset or closed meanwhile: a late result changes nothing
            run.resolve(lambda: finished(outcome, time.perf_counter() - began, {}, self.local))
            return
        self._state, self._loop, self._task = outcome.state, None, None
        self.usage += outcome.usage
        self.error = str(outcome.error) if outcome.error else None
        self.last_activity = time.time()
        go_on = outcome.status == "completed" and self.queues.has_runs
        if not go_on:
            status = "idle" if outcome.status == "completed" else outcome.status
            self.queues.takes_pause()  # whoever asked too late does not mean the next run
            self._set_status(status, self.error or self._state.get_metadata(PAUSE_REASON))
        run.resolve(lambda: finished(outcome, time.perf_counter() - began, {}, self.local))
        if go_on:
            self._start_next()

    def _start_next(self) -> None:
        messages, run = self.queues.take()
        self._start(run, messages)

    def _waiting(self) -> Interrupt:
        self._check_open()
        interrupt = self._state.interrupt
        if self.status != "interrupted" or interrupt is None:
            raise NotRunning(
                f"Session {self.session.id!r} is {self.status}: nothing waits for a decision."
            )
        return interrupt

    def resume(self, given: Decisions, by: str) -> Run:
        """Take a decision for everything that waits."""
        interrupt = self._waiting()
        decisions = checked_decisions(interrupt, given, self.agent._tools, self.agent._chain)
        run = self._take(interrupt, decisions, by)
        assert run is not None
        return run

    def decide_all(self, ids: tuple[str, ...], decision: Decision, by: str) -> Run | None:
        """Take one decision for these calls, or for all that are open."""
        interrupt = self._waiting()
        self._approvals.check_open(interrupt, ids)
        given = dict.fromkeys(ids or self._approvals.open_ids(interrupt), decision)
        return self._take(interrupt, self._approvals.checked(self.agent, interrupt, given), by)

    def decide_seen(
        self,
        decisions: Mapping[str, Any],
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> Run | None:
        """Take decisions on requests as somebody saw them."""
        self._check_open()
        interrupt = self._state.interrupt
        if self.status != "interrupted" or interrupt is None or interrupt.id != interrupt_id:
            raise StaleApproval("This request was already answered; nothing was run for it now.")
        self._approvals.check_seen(interrupt, decisions, digests)
        return self._take(interrupt, self._approvals.checked(self.agent, interrupt, decisions), by)

    def _take(self, interrupt: Interrupt, decisions: Mapping[str, Decision], by: str) -> Run | None:
        run_id = self.current_run.id if self.current_run else new_run_id()
        run = Run(self.session, run_id, since=self.log.last)
        emitter = self._emitter.for_run(run_id)
        for tool_call_id, decision in decisions.items():
            emitter.emit(DecisionMade, tool_call_id=tool_call_id, decision=decision, by=by)
        complete = self._approvals.add(interrupt, decisions)
        return None if complete is None else self._start(run, [], complete, self._meter)

    def dismiss(self) -> None:
        """Let go of a halt."""
        interrupt = self._waiting()
        if interrupt.type != "halt":
            raise NotRunning(f"This {interrupt.type} interrupt needs an answer; decide it.")
        self._drop_interrupt("the halt was dismissed")
        self._set_status("idle")

    def notify(self, middleware_id: str, message: Any) -> None:
        """Deliver a message to a middleware: between turns, or now if nothing runs."""
        if self._loop is not None:
            self._loop.mail.append((middleware_id, message))
        elif self.status != "closed":
            runtime.spawn(self._deliver(middleware_id, message))

    async def _deliver(self, middleware_id: str, message: Any) -> None:
        if self._loop is not None:  # a run began meanwhile
            self._loop.mail.append((middleware_id, message))
            return
        before = self._state
        loop = self._idle_loop()
        loop.mail.append((middleware_id, message))
        await loop.read_mail()
        if self._state is before:
            self._state = loop.state

    def _idle_loop(self) -> Loop:
        run_id = self.current_run.id if self.current_run else ""
        emitter = self._emitter.for_run(run_id)
        return self.agent.loop(
            self._state, emitter, files=self.files, scope=self.scope, local=self.local
        )

    def _drop_interrupt(self, reason: str) -> None:
        """Answer the waiting calls as cancelled, so that the conversation can go on."""
        self._approvals.clear()
        message = closing_message(self._state, reason)
        self._state = self._state.clean_stale_interrupts()
        if message is not None:
            self._state = self._state.add_message(message)
            emitter = self._emitter.for_run(self.current_run.id if self.current_run else "")
            emitter.emit(MessageStart, message=message)
            emitter.emit(MessageEnd, message=message)

    def pause(self, reason: str) -> None:
        """Ask the active run to stop after its next model call."""
        if self.status == "running":
            self.queues.ask_pause(reason)

    def cancel(self) -> None:
        """Stop the active run, or answer what waits as cancelled."""
        if self.status == "running" and self._loop is not None:
            self._loop.ctx.cancelled.set()
            self._stop_task()
        elif self.status in ("interrupted", "paused"):
            self._drop_interrupt("a person stopped the run")
            self._set_status("cancelled")

    def cancel_run(self, run: Run) -> None:
        """Stop that run, or take it out of the queue."""
        if self.queues.remove(run):
            run.never_began(self._state)
        elif run is self.current_run:
            self.cancel()

    def _stop_now(self) -> None:
        if self._loop is not None:
            loop, self._loop = self._loop, None
            loop.ctx.cancelled.set()
            self._stop_task()
        for run in self.queues.clear():
            run.never_began(self._state)

    def reset(self) -> None:
        """Stop, and forget messages, todos, metadata and queues."""
        self._check_open()
        self._stop_now()
        before = self._state
        self._begin_with(before.reset())
        self.error = None
        self._set_status("idle", "reset")
        self._tell_todos(before)

    def replace(self, agent: Agent | None, state: State | None) -> None:
        """Go on with another agent or state."""
        self._check_open()
        if self.status == "running":
            raise Busy(f"Session {self.session.id!r} is running; cancel it or wait for it first.")
        self.agent = agent or self.agent
        status, before = self.status, self._state
        if state is not None:
            self._begin_with(state)
            status = "interrupted" if state.interrupt else "idle"
        self._set_status(status, "replaced")
        if state is not None:
            self._tell_todos(before)

    def _begin_with(self, state: State) -> None:
        """Another conversation: what was told of the old one is forgotten."""
        self._approvals.clear()
        self._state = state
        self.initial = state.messages
        self.log.forget()
        self._epoch += 1

    def _tell_todos(self, before: State | None = None) -> None:
        todos = tuple(self.state.todos)
        if todos or (before is not None and before.todos):
            self._emitter.emit(TodosUpdated, todos=todos)

    def close(self, reason: str) -> None:
        """Stop for good."""
        if self.status == "closed":
            return
        if self._loop is not None:
            self._state = self._loop.settled("the session was closed")
        self._stop_now()
        self._unsubscribe_files()
        self._emitter.emit(
            AgentShutdown,
            reason=reason,
            last_activity_at=self.last_activity,
            shutdown_at=time.time(),
        )
        self._set_status("closed", reason)
        self.log.close()

    def _file_event(self, event: Event) -> None:
        fields = {
            name: getattr(event, name)
            for name in event.__struct_fields__
            if name not in ("seq", "ts", "session_id", "run_id")
        }
        runtime.post(lambda: self._emitter_now().emit(type(event), **fields))

    def _stop_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _emitter_now(self) -> Emitter:
        return self._loop.ctx.emitter if self._loop is not None else self._emitter
