"""The turn loop: the only place that calls a model and runs tools.

Two nested loops. Inside, while there are tool calls or queued messages: take one assistant
turn, run its tools, drain steering. Outside, when the agent would stop: ask for follow-ups.
One driver serves streaming and not, run and resume, agent and sub-agent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from ..context import RunContext
from ..errors import AgentError
from ..events import AgentEnd, AgentStart
from ..events import Interrupt as InterruptEvent
from ..interrupts import Decision, Interrupt
from ..messages import Message, ToolResult
from ..state import State
from ..telemetry import current, tracing_of
from .config import LoopConfig, Outcome, Unfinished, settled
from .open_calls import closing_message, doubtful_calls, open_calls
from .steps import Steps, wants_more

# Where the state's metadata says why a run paused.
PAUSE_REASON = "pause_reason"

_REASONS = {"error": "the run failed", "cancelled": "the run was cancelled"}


class Loop:
    """One run: it starts from a state and ends with an :class:`Outcome`."""

    def __init__(self, config: LoopConfig, ctx: RunContext, state: State) -> None:
        self.config = config
        self.ctx = ctx
        self.emit = ctx.emitter.emit
        self.state = state
        self.steps = Steps(config, ctx)
        self.record = self.steps.record
        self.mail: deque[tuple[str, Any]] = deque()
        self._pending: list[Message] = []  # taken, and not yet part of the conversation
        self._unanswered: Interrupt | None = None
        self._resumes = False

    @property
    def state(self) -> State:
        """The state now; hooks and the session see the same one."""
        return self.ctx.state

    @state.setter
    def state(self, state: State) -> None:
        self.ctx.state = state

    async def run(
        self,
        messages: Iterable[Message] = (),
        decisions: Mapping[str, Decision] | None = None,
        recovered: Unfinished | None = None,
    ) -> Outcome:
        """Run to the end, an interrupt, a failure or a cancellation; never raises.

        ``decisions`` resume the interrupt in the state; they were validated before.
        ``recovered`` is what is known of calls that a crash cut off.
        """
        work = self._run(messages, decisions, recovered)
        tracing = tracing_of(self.ctx)
        return await (work if tracing is None else tracing.invoke_agent(work))

    async def _run(
        self,
        messages: Iterable[Message],
        decisions: Mapping[str, Decision] | None,
        recovered: Unfinished | None,
    ) -> Outcome:
        self.emit(AgentStart)
        error: AgentError | None = None
        broken: Message | None = None
        interrupt = self.state.interrupt
        self._resumes = decisions is not None
        self._pending = list(messages)
        unfinished = recovered or self.steps.unfinished
        doubtful = unfinished.doubtful | doubtful_calls(interrupt)
        self.steps.unfinished = replace(unfinished, doubtful=doubtful)
        self.ctx.meter.begin()
        try:
            status = await self._drive(interrupt, decisions)
            error = self.steps.refused
        except asyncio.CancelledError:
            status = "cancelled"
            if task := asyncio.current_task():
                task.uncancel()  # the cancellation ends here, as a result
        except AgentError as raised:
            status, error = "error", raised
            if self._unanswered is not None:  # the answers were not even looked at
                status = "interrupted"
                self.state = self.state.with_interrupt(self._unanswered)
        except GeneratorExit:  # nobody waits for its end
            raise
        except BaseException as raised:  # else the thread ends, or its session waits for ever
            status, error = "error", _failure(raised)
            broken = Message("assistant", stop_reason="error", error=str(error))
        self.ctx.meter.end()
        if self.ctx.cancelled.is_set() and self.record.failure is None:
            status, error = "cancelled", None
        try:
            await self._end(status, broken)
        except Exception as raised:  # the rest is kept in memory, and told to nobody
            status, error = "error", _failure(raised)
            self.state = self.settled(_REASONS[status]).clean_stale_interrupts()
            if self.steps.in_turn:
                self.steps.end_turn(self.steps.said())
        self.emit(
            AgentEnd,
            messages=tuple(self.record.messages),
            status=status,
            error=str(error) if error else None,
        )
        return Outcome(
            status,
            self.state,
            self.record.messages,
            self.steps.usage,
            self.steps.ends.tool_result,
            error,
            self.steps.artifacts,
            self.steps.unfinished if open_calls(self.state) else None,
        )

    async def _end(self, status: str, broken: Message | None) -> None:
        results: tuple[ToolResult, ...] = ()
        if status in _REASONS:
            results = await self.steps.close_open_calls(_REASONS[status])
            if self._resumes or self.state.interrupt is not None:
                self.state = self.state.clean_stale_interrupts()
        if self.steps.in_turn:
            self.steps.end_turn(self.steps.said(), results)
        if broken is not None:
            self.steps.start_turn()
            await self._append_pending()
            await self.record.append(broken)
            self.steps.end_turn(broken)
        await self._append_pending()  # what somebody said is kept, also when nobody answered
        stopped = status == "cancelled"
        while self.mail:
            try:
                await self._read_mail()
            except asyncio.CancelledError:
                if stopped:  # twice: the letter that is being read is lost
                    self.mail.popleft()
                stopped = True
                if task := asyncio.current_task():
                    task.uncancel()
        await self.record.keep()

    async def _drive(
        self, interrupt: Interrupt | None, decisions: Mapping[str, Decision] | None
    ) -> str:
        if decisions is None and not self._pending and doubtful_calls(interrupt):
            self.emit(InterruptEvent, interrupt=interrupt)  # nothing but an answer goes on
            return "interrupted"
        self.state = self.state.with_interrupt(None)
        if PAUSE_REASON in self.state.metadata:
            kept = {k: v for k, v in self.state.metadata.items() if k != PAUSE_REASON}
            self.state = replace(self.state, metadata=kept)
        status = None
        if decisions is not None and interrupt is not None:
            self._unanswered = interrupt
            if await self._hooks("before_run"):
                return "interrupted"
            self._unanswered = None
            self.steps.start_turn()
            status = await self.steps.answer(interrupt, decisions)
        elif open_calls(self.state) and not self._pending:  # it was paused: go on where it was
            if await self._hooks("before_run"):
                return "interrupted"
            self.steps.start_turn()
            status = await self.steps.go_on()
        else:
            if interrupt is not None:  # a message came instead of an answer
                self.state = self.state.clean_stale_interrupts()
            if await self._hooks("before_run"):
                return "interrupted"
        status = status or await self._turns()
        if status == "completed":
            self.steps.ends.check()
            if await self._hooks("after_run"):
                return "interrupted"
        return status

    async def _turns(self) -> str:
        config = self.config
        self._pending += await settled(config.steering())
        if not self._pending and (last := self.state.messages[-1:]) and last[0].role == "assistant":
            self._pending += await settled(config.follow_ups())  # nothing else is to be answered
        while True:
            more = True
            while more or self._pending:
                self.steps.start_turn()
                await self.steps.close_open_calls("another message came")
                if self._pending:
                    await self._append_pending()
                if await self._hooks("before_model"):
                    return "interrupted"
                message = await self.steps.ask()
                if await self._hooks("after_model"):
                    return "interrupted"
                more = wants_more(message)
                pause = config.should_pause()
                if more and pause:
                    self.steps.end_turn(message)
                    return self._paused(pause)
                if message.tool_calls:
                    status = await self.steps.run_tools(message)
                    if status:
                        return status
                else:
                    self.steps.end_turn(message)
                stop = config.should_stop(message, self.steps.done)
                if stop and await settled(stop):
                    return "completed"
                if steering := config.steering():
                    self._pending += await settled(steering)
                if pause and self._pending:
                    return self._paused(pause)
            self._pending += await settled(config.follow_ups())
            if not self._pending:
                return "completed"
            if pause:
                return self._paused(pause)

    def _paused(self, reason: bool | str) -> str:
        if isinstance(reason, str):
            self.state = self.state.put_metadata(PAUSE_REASON, reason)
        return "paused"

    async def _hooks(self, name: str) -> bool:
        """Run a hook over the state; whether it stopped the run."""
        if self.ctx.cancelled.is_set():
            raise asyncio.CancelledError
        if self.mail:
            await self._read_mail()
        if not self.config.chain.hooks[name]:
            return False
        self.state = await self.config.chain.state_hooks(name, self.state, self.ctx)
        await self.record.tell_changes()
        interrupt = self.state.interrupt
        if interrupt is None:
            return False
        await self._append_pending()
        if self.steps.in_turn:
            self.steps.end_turn(self.steps.said())
        await self.steps.interrupt(self.steps.joined([interrupt]))
        return True

    async def read_mail(self) -> None:
        """Let middleware handle the messages that came for it, also while nothing runs."""
        tracing = None if current() else tracing_of(self.ctx)
        with nullcontext() if tracing is None else tracing.inside():
            await self._read_mail()

    async def _read_mail(self) -> None:
        while self.mail:
            # It stays first while it is read: whoever stops the run then does not mean it.
            self.state = await self.config.chain.handle_message(*self.mail[0], self.state, self.ctx)
            self.mail.popleft()
            await self.record.tell_changes()

    async def _append_pending(self) -> None:
        while self._pending:
            await self.record.append(self._pending.pop(0))

    def settled(self, reason: str) -> State:
        """The state as it would be if the run had stopped now; nothing is told or changed."""
        message = closing_message(self.state, reason, self.steps.unfinished)
        state = self.state if message is None else self.state.add_message(message)
        return state.add_messages(self._pending)


def _failure(error: BaseException) -> AgentError:
    if isinstance(error, AgentError):
        return error
    failure = AgentError(f"The run failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
