"""The turn loop: the only place that calls a model and runs tools.

Two nested loops. Inside, while there are tool calls or queued messages: take one assistant
turn, run its tools, drain steering. Outside, when the agent would stop: ask for follow-ups.
One driver serves streaming and not, run and resume, agent and sub-agent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from .calls import NOT_RUN, cancelled_result, execute, prepare
from .context import RunContext
from .errors import (
    AgentError,
    FailuresExceeded,
    MaxRunsExceeded,
    UntilToolNotCalled,
)
from .events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    TodosUpdated,
    TurnEnd,
    TurnStart,
)
from .events import Interrupt as InterruptEvent
from .gate import answered, joined
from .interrupts import ActionRequest, Decision, Interrupt
from .invoke import Executed
from .loopconfig import LoopConfig, Outcome, settled
from .messages import Message, ToolCall, ToolResult, Usage
from .state import State, Todo
from .turn import request_for, take_turn

# As Sagents has it: a model that fails three turns in a row does not find out by itself.
MAX_FAILURES = 3

# Where the state's metadata says why a run paused.
PAUSE_REASON = "pause_reason"


class Loop:
    """One run: it starts from a state and ends with an :class:`Outcome`."""

    def __init__(self, config: LoopConfig, ctx: RunContext, state: State) -> None:
        self.config = config
        self.ctx = ctx
        self.emit = ctx.emitter.emit
        self.messages: list[Message] = []
        self.usage = Usage()
        self.model_calls = 0
        self.tool_result: ToolResult | None = None
        self.artifacts: dict[str, Any] = {}
        self.mail: deque[tuple[str, Any]] = deque()
        self.state = state
        self._pending: list[Message] = []  # taken, and not yet part of the conversation
        self._in_turn = False
        self._failures = 0
        self._done: tuple[ToolResult, ...] = ()  # the results of the last turn
        self._unanswered: Interrupt | None = None
        self._refused: AgentError | None = None
        self._specs = tuple(tool.spec for tool in ctx.tools.values())

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
    ) -> Outcome:
        """Run to the end, an interrupt, a failure or a cancellation; never raises.

        ``decisions`` resume the interrupt in the state; they were validated before.
        """
        self.emit(AgentStart)
        error: AgentError | None = None
        broken: Message | None = None
        interrupt = self.state.interrupt
        self._pending = list(messages)
        self.ctx.meter.begin()
        try:
            status = await self._drive(interrupt, decisions)
            error = self._refused
        except asyncio.CancelledError:
            status = "cancelled"
            if task := asyncio.current_task():
                task.uncancel()  # the cancellation ends here, as a result
        except AgentError as raised:
            status, error = "error", raised
            if self._unanswered is not None:  # the answers were not even looked at
                status = "interrupted"
                self.state = self.state.with_interrupt(self._unanswered)
        except (Exception, SystemExit, KeyboardInterrupt) as raised:  # else the thread ends
            status = "error"
            error = AgentError(f"The run failed: {type(raised).__name__}: {raised}")
            error.__cause__ = raised
            broken = Message("assistant", stop_reason="error", error=str(error))
        self.ctx.meter.end()
        if self.ctx.cancelled.is_set():
            status, error = "cancelled", None
        results: tuple[ToolResult, ...] = ()
        if status in ("error", "cancelled"):
            reason = "the run was cancelled" if status == "cancelled" else "the run failed"
            results = self.close_open_calls(reason)
            if decisions is not None:  # nobody waits for what is not answered by now
                self.state = self.state.clean_stale_interrupts()
        if self._in_turn:
            self._end_turn(self._said(), results)
        if broken is not None:
            self._start_turn()
            self._append_pending()
            self._append(broken)
            self._end_turn(broken)
        self._append_pending()  # what somebody said is kept, also when nobody answered
        await self.read_mail()
        self.emit(
            AgentEnd,
            messages=tuple(self.messages),
            status=status,
            error=str(error) if error else None,
        )
        return Outcome(
            status,
            self.state,
            self.messages,
            self.usage,
            self.tool_result,
            error,
            self.artifacts,
        )

    async def _drive(
        self, interrupt: Interrupt | None, decisions: Mapping[str, Decision] | None
    ) -> str:
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
            self._start_turn()
            status = await self._answer(interrupt, decisions)
        elif open_calls(self.state) and not self._pending:  # it was paused: go on where it was
            if await self._hooks("before_run"):
                return "interrupted"
            self._start_turn()
            status = await self._tools(self._last_assistant(), {})
        else:
            if interrupt is not None:  # a message came instead of an answer
                self.state = self.state.clean_stale_interrupts()
            if await self._hooks("before_run"):
                return "interrupted"
        status = status or await self._turns()
        if status == "completed" and self.config.until_tool and self.tool_result is None:
            names = ", ".join(sorted(self.config.until_tool))
            raise UntilToolNotCalled(
                f"The model ended without calling {names}; ask for it in the prompt, or run again."
            )
        if status == "completed" and await self._hooks("after_run"):
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
                self._start_turn()
                self.close_open_calls("another message came")
                self._append_pending()
                if await self._hooks("before_model"):
                    return "interrupted"
                message = await self._ask()
                if await self._hooks("after_model"):
                    return "interrupted"
                more = _wants_more(message)
                pause = config.should_pause()
                if more and pause:
                    self._end_turn(message)
                    return self._paused(pause)
                if message.tool_calls:
                    status = await self._tools(message, {})
                    if status:
                        return status
                else:
                    self._end_turn(message)
                if await settled(config.should_stop(message, self._done)):
                    return "completed"
                self._pending += await settled(config.steering())
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
        self._stop_if_cancelled()
        await self.read_mail()
        if not self.config.chain.hooks[name]:
            return False
        todos = self.state.todos
        self.state = await self.config.chain.state_hooks(name, self.state, self.ctx)
        self._tell_todos(todos)
        interrupt = self.state.interrupt
        if interrupt is None:
            return False
        self._append_pending()
        if self._in_turn:
            self._end_turn(self._said())
        self._interrupt([interrupt])
        return True

    async def read_mail(self) -> None:
        """Let middleware handle the messages that came for it."""
        while self.mail:
            middleware_id, message = self.mail.popleft()
            self.state = await self.config.chain.handle_message(
                middleware_id, message, self.state, self.ctx
            )

    def _stop_if_cancelled(self) -> None:
        if self.ctx.cancelled.is_set():
            raise asyncio.CancelledError

    def _start_turn(self) -> None:
        self._in_turn = True
        self.emit(TurnStart)

    def _end_turn(self, message: Message, results: Sequence[ToolResult] = ()) -> None:
        self._in_turn = False
        self._done = results = tuple(results)
        self.emit(TurnEnd, message=message, tool_results=results)

    def _said(self) -> Message:
        said = (m for m in reversed(self.messages) if m.role == "assistant")
        return next(said, Message("assistant"))

    def _append_pending(self) -> None:
        pending, self._pending = self._pending, []
        for message in pending:
            self._append(message)

    def _append(self, message: Message) -> None:
        self.emit(MessageStart, message=message)
        self._keep(message)
        self.emit(MessageEnd, message=message)

    def _keep(self, message: Message) -> None:
        self.messages.append(message)
        self.state = self.state.add_message(message)

    async def _ask(self) -> Message:
        config = self.config
        try:
            request = await request_for(config, self.ctx, self._specs)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            failed = f"The model was not asked: {type(error).__name__}: {error}"
            failure: Exception = error if isinstance(error, AgentError) else AgentError(failed)
            self._append(Message("assistant", stop_reason="error", error=str(failure)))
            raise failure from error
        self.ctx.meter.before_model()
        self.model_calls += 1
        message, broken = await take_turn(config.model, request, self.ctx.emitter)
        self._keep(message)
        self.ctx.meter.add(message.usage)
        if message.usage is not None:
            self.usage += message.usage
        if broken is not None:
            raise broken
        if _wants_more(message) and self.model_calls >= config.max_runs:
            limit = f"the limit of {config.max_runs} model calls was reached"
            self._end_turn(message, self.close_open_calls(limit))
            raise MaxRunsExceeded(
                f"The model was not done after {config.max_runs} calls (max_runs); "
                "run again with the result's state to continue."
            )
        return message

    async def _answer(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> str | None:
        """Go on with the turn that was interrupted."""
        message = self._last_assistant()
        calls = {call.id for call in open_calls(self.state)}
        if calls.issuperset(decisions):  # they wait at the gate: nothing of the turn has run
            requests = {r.tool_call_id: r for r in interrupt.action_requests}
            return await self._tools(message, {i: (requests[i], d) for i, d in decisions.items()})
        waiting, self._refused = await answered(interrupt, decisions, self.config.chain, self.ctx)
        if calls and not waiting:
            return await self._tools(message, {})
        results = self.state.messages[-1].tool_results if self.state.messages else []
        self._end_turn(message, results)
        if waiting:
            self._interrupt(waiting)
            return "interrupted"
        return self._reached(results)

    async def _tools(
        self, message: Message, decisions: Mapping[str, tuple[ActionRequest, Decision]]
    ) -> str | None:
        """Run a turn's calls; a status if the run ends here, else None."""
        config, ctx = self.config, self.ctx
        batch = await prepare(message, config.chain, ctx, decisions)
        waiting = [item.interrupt for item in batch if item.interrupt is not None]
        if waiting:
            self._end_turn(message)
            self._interrupt(waiting)
            return "interrupted"
        done = await execute(batch, config.chain, ctx, config.max_parallel_tools, config.skip_rest)
        results = [item.result for item in done]
        self._append(Message.tool(results))
        self._apply(done)
        self._end_turn(message, results)
        for item in done:
            if item.error is not None:
                raise item.error
        if ctx.cancelled.is_set():
            return "cancelled"
        asked = [item.interrupt for item in done if item.interrupt is not None]
        if asked:
            self._interrupt(asked)
            return "interrupted"
        if message.stop_reason == "refusal" or all(item.terminate for item in done):
            return "completed"
        status = self._reached(results)
        if status is None:
            self._count_failures(done)
        return status

    def _reached(self, results: Iterable[ToolResult]) -> str | None:
        """Whether one of the tools that end the run was run: the first in call order counts."""
        config = self.config
        for result in results:
            if result.name not in config.until_tool or NOT_RUN in result.metadata:
                continue
            if config.until_success and result.is_error:
                continue
            self.tool_result = result
            return "completed"
        return None

    def _count_failures(self, done: Sequence[Executed]) -> None:
        failed = [item.result for item in done if item.status == "failed"]
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= MAX_FAILURES and not self.config.until_success:
            raise FailuresExceeded(
                f"Tools failed in {MAX_FAILURES} turns in a row, last {failed[-1].name}: "
                f"{failed[-1].text[:200]}; run again with the result's state to continue."
            )

    def _apply(self, done: Sequence[Executed]) -> None:
        todos = self.state.todos
        for item in done:
            if item.update:
                self.state = self.state.update(item.update)
            if item.artifact is not None:
                self.artifacts[item.result.tool_call_id] = item.artifact
        self._tell_todos(todos)

    def _tell_todos(self, before: Sequence[Todo]) -> None:
        if self.state.todos is not before:
            self.emit(TodosUpdated, todos=tuple(self.state.todos))

    def _interrupt(self, interrupts: Sequence[Interrupt]) -> None:
        whole = joined(interrupts, self.ctx.session_id, self.config.epoch)
        if whole.type == "halt":  # what it tells people is said by the agent; no model is asked
            self.close_open_calls("the run was halted")
            if whole.message:
                self._append(Message.assistant(whole.message, halt=True))
        self.state = self.state.with_interrupt(whole)
        self.emit(InterruptEvent, interrupt=whole)

    def _last_assistant(self) -> Message:
        recent = reversed(self.state.messages[-3:])
        return next((message for message in recent if message.tool_calls), self._said())

    def close_open_calls(self, reason: str) -> tuple[ToolResult, ...]:
        """Answer calls that have no result, so that any provider accepts the history."""
        results = _cancelled_results(self.state, reason)
        if results:
            self._append(Message.tool(results))
        return results

    def settled(self, reason: str) -> State:
        """The state as it would be if the run had stopped now; nothing is told or changed."""
        results = _cancelled_results(self.state, reason)
        state = self.state.add_message(Message.tool(results)) if results else self.state
        return state.add_messages(self._pending)


def _wants_more(message: Message) -> bool:
    return bool(message.tool_calls) or message.stop_reason == "pause_turn"


def _cancelled_results(state: State, reason: str) -> tuple[ToolResult, ...]:
    return tuple(cancelled_result(call, reason) for call in open_calls(state))


def open_calls(state: State) -> list[ToolCall]:
    """The calls at the end of the history that have no result yet."""
    messages = state.messages
    if not messages or messages[-1].role != "assistant":
        return []
    return messages[-1].tool_calls
