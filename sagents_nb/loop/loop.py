"""The turn loop: the only place that calls a model and runs tools.

Two nested loops. Inside, while there are tool calls or queued messages: take one assistant
turn, run its tools, drain steering. Outside, when the agent would stop: ask for follow-ups.
One driver serves streaming and not, run and resume, agent and sub-agent.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from ..budget import DRAWN_ON
from ..context import RunContext
from ..errors import AgentError, MaxRunsExceeded, pass_on
from ..events import AgentEnd, AgentStart, ToolExecutionEnd, TurnEnd, TurnStart
from ..events import Interrupt as InterruptEvent
from ..interrupts import ActionRequest, Approve, Decision, Interrupt
from ..messages import FALLBACK, Message, ToolResult
from ..middleware.human_in_the_loop import let_pass
from ..models.base import tells_cost
from ..redaction import hush
from ..runtime.foreign import TURN, clock
from ..runtime.telemetry import current, tracing_of
from ..state import State
from ..text import said_by
from ..tools import ToolSpec
from .approvals import apply_decisions, confirmed_result, join_interrupts
from .commits import Commits
from .config import LoopConfig, Outcome, Source, Unfinished, settled
from .model_call import (
    ModelAnswer,
    call_in_time,
    is_blank,
    kept,
    refusal,
    request_for,
    without_hidden,
)
from .open_calls import (
    closing_message,
    doubtful_calls,
    end_of,
    given_up,
    open_calls,
    unanswered_result,
)
from .stop_conditions import StopConditions
from .tool_calls import PreparedCall, execute, first_at_once, prepare

# Where the state's metadata says why a run paused.
PAUSE_REASON = "pause_reason"

_REASONS = {"error": "the run failed", "cancelled": "the run was cancelled"}

_NOTHING = Unfinished()


class Loop:
    """One run: it starts from a state and ends with an :class:`Outcome`.

    ``commits`` is how what happens becomes part of the conversation, ``model_calls`` how often
    the model was asked, and ``pending`` what was said to it and is no part of that yet.
    ``middleware_messages`` are pairs of a middleware's id and a message for it, delivered between
    turns; whoever gives them may add to them while it runs.
    """

    def __init__(
        self,
        config: LoopConfig,
        ctx: RunContext,
        state: State,
        middleware_messages: deque[tuple[str, Any]] | None = None,
    ) -> None:
        self.config = config
        self.ctx = ctx
        self.emit = ctx.emitter.emit
        self.state = state
        self.commits = Commits(ctx, config.recorder, config.transcribe)
        self.model_calls = 0
        self.middleware_messages = deque() if middleware_messages is None else middleware_messages
        self._most = config.max_runs or math.inf  # model calls
        self._stops = StopConditions(config)
        self._tools: Mapping[str, Any] | None = None  # those that the specs are of
        self._specs: tuple[ToolSpec, ...] = ()
        self._artifacts: dict[str, Any] = {}
        self.pending: list[Message] = []
        self._in_turn = False
        self._begun: list[PreparedCall] | None = None  # the calls of an answer they began with
        self._pause: bool | str | None = None  # whether to pause after it, once that was asked
        self._results: tuple[ToolResult, ...] = ()  # of the last turn
        self._unfinished = _NOTHING  # what is known of calls that a crash cut off
        self._resumes = False
        self._unanswered: Interrupt | None = None  # its answers were not even looked at yet
        self._refused: AgentError | None = None  # why answers of people were not taken

    @property
    def state(self) -> State:
        """The state now; hooks and the session see the same one."""
        return self.ctx.state

    @state.setter
    def state(self, state: State) -> None:
        self.ctx.state = state

    # a run

    def run(
        self,
        messages: Iterable[Message] = (),
        decisions: Mapping[str, Decision] | None = None,
        recovered: Unfinished | None = None,
    ) -> Coroutine[Any, Any, Outcome]:
        """Run to the end, an interrupt, a failure or a cancellation; never raises.

        ``decisions`` resume the interrupt in the state; they were validated before.
        ``recovered`` is what is known of calls that a crash cut off.
        """
        work = self._run(messages, decisions, recovered)
        tracing = tracing_of(self.ctx)
        return work if tracing is None else tracing.invoke_agent(work)

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
        self.pending = list(messages)
        self._unfinished = recovered or _NOTHING
        if interrupt is not None:
            doubtful = self._unfinished.doubtful | doubtful_calls(interrupt)
            self._unfinished = replace(self._unfinished, doubtful=doubtful)
        self.ctx.meter.begin()
        try:
            status = await self._drive(interrupt, decisions)
            error = self._refused
        except asyncio.CancelledError as raised:
            task = asyncio.current_task()
            if self.ctx.is_cancelled or (task is not None and task.cancelling()):
                status = "cancelled"
                if task is not None:
                    task.uncancel()  # the cancellation ends here, as a result
            else:  # of something that a hook or the model waited for
                status, error = "error", _failure(raised)
                broken = Message("assistant", stop_reason="error", error=str(error))
        except AgentError as raised:
            status, error = "error", _failure(raised)
            if (unanswered := self.config.unanswered) is not None:
                error = unanswered(error, self.commits.messages)
            if self._unanswered is not None:
                status = "interrupted"
                self.state = self.state.with_interrupt(self._unanswered)
        except BaseException as raised:  # else the thread ends, or its session waits for ever
            pass_on(raised)
            status, error = "error", _failure(raised)
            broken = Message("assistant", stop_reason="error", error=str(error))
        self.ctx.meter.end()
        if self.ctx.is_cancelled and self.commits.failure is None:
            status, error = "cancelled", None
        try:
            await self._end(status, broken)
        except BaseException as raised:  # the rest is kept in memory, and told to nobody
            pass_on(raised)
            status, error = "error", _failure(raised)
            self.state = self.state_if_stopped(_REASONS[status]).clean_stale_interrupts()
            if self._in_turn:
                self._end_turn(self._last_answer())
        if self.ctx.emitter.sink is not None:
            self.emit(
                AgentEnd,
                messages=tuple(self.commits.messages),
                status=status,
                error=str(error) if error else None,
            )
        return Outcome(
            status,
            self.state,
            self.commits.messages,
            self.ctx.usage,
            self._stops.tool_result,
            error,
            self._artifacts,
            self._unfinished if open_calls(self.state) else None,
            self.config.unanswered is not None,
            self.ctx.sub_agents,
            self.model_calls,
        )

    async def _end(self, status: str, broken: Message | None) -> None:
        results: tuple[ToolResult, ...] = ()
        if status in _REASONS:
            results = await self._close_open_calls(_REASONS[status])
            if self._resumes or self.state.interrupt is not None:
                self._give_up_questions()
        if self._in_turn:
            self._end_turn(self._last_answer(), results)
        if broken is not None:
            self._start_turn()
            await self._append_pending()
            await self.commits.append(broken)
            self._end_turn(broken)
        await self._append_pending()  # what somebody said is kept, also when nobody answered
        stopped = status == "cancelled"
        while self.middleware_messages:
            try:
                await self._deliver_messages()
            except asyncio.CancelledError:
                if stopped:  # twice: the message that is being read is lost
                    self.middleware_messages.popleft()
                stopped = True
                if task := asyncio.current_task():
                    task.uncancel()
        await self.commits.keep()

    async def _drive(
        self, interrupt: Interrupt | None, decisions: Mapping[str, Decision] | None
    ) -> str:
        if decisions is None and not self.pending and doubtful_calls(interrupt):
            self.emit(InterruptEvent, interrupt=interrupt)  # nothing but an answer goes on
            return "interrupted"
        if interrupt is not None:
            self.state = self.state.with_interrupt(None)
        metadata = self.state.metadata
        if PAUSE_REASON in metadata:
            kept = {k: v for k, v in metadata.items() if k != PAUSE_REASON}
            self.state = replace(self.state, metadata=kept)
        status = None
        if decisions is not None and interrupt is not None:
            self._unanswered = interrupt
            if self.config.chain.asks(interrupt):  # which asks again until it has its answer
                if await self._take_answers(interrupt, decisions):
                    return "interrupted"
                decisions = None
                if self.pending:
                    await self._close_open_calls("another message came")
                    await self._append_pending()
            if await self._hooks("before_run"):
                return "interrupted"
            self._unanswered = None
            if decisions is not None:
                self._start_turn()
                status = await self._resume(interrupt, decisions)
            elif open_calls(self.state):
                self._start_turn()
                status = await self._run_tools(self._calling_message())
        elif open_calls(self.state) and not self.pending:  # it was paused: go on where it was
            if await self._hooks("before_run"):
                return "interrupted"
            self._start_turn()
            status = await self._run_tools(self._calling_message(), self._unfinished.decisions)
        else:
            if interrupt is not None:  # a message came instead of an answer
                self._give_up_questions()
            if await self._hooks("before_run"):
                return "interrupted"
        status = status or await self._turns()
        if status == "completed":
            self._stops.check()
            if await self._hooks("after_run"):
                return "interrupted"
        return status

    async def _turns(self) -> str:
        config, ctx = self.config, self.ctx
        await self._take(config.steering)
        if not self.pending and (last := self.state.messages[-1:]) and last[0].role == "assistant":
            await self._take(config.follow_ups)  # nothing else is to be answered
            if self._resumes and not self.pending and not self._wants_more(last[0]):
                return "completed"  # a hook asked about an answer
        shared = clock()
        while True:
            more = True
            while more or self.pending:
                if clock() - shared > TURN:  # a model and tools may never wait for anything
                    await asyncio.sleep(0)
                    shared = clock()
                self._start_turn()
                if open_calls(ctx.state):
                    await self._close_open_calls("another message came")
                if self.pending:
                    await self._append_pending()
                    if open_calls(ctx.state):  # the prompt ends with them: go on there
                        if status := await self._run_tools(self._calling_message()):
                            return status
                        continue
                if await self._hooks("before_model"):
                    return "interrupted"
                message = await self._ask_model()
                if self.model_calls >= self._most and self._wants_more(message):
                    return await self._out_of_calls(message)
                if await self._hooks("after_model"):
                    return "interrupted"
                calls = message.tool_calls
                more = bool(calls) or self._wants_more(message)
                pause = self._pauses() if self._pause is None else self._pause
                if more and pause:
                    self._end_turn(message)
                    return self._paused(pause)
                if calls:
                    status = await self._run_tools(message, begun=self._begun)
                    if status:
                        return status
                else:
                    self._end_turn(message)
                if config.should_stop is not None:
                    stop = config.should_stop(message, self._results)
                    if stop and await settled(stop):
                        return "completed"
                await self._take(config.steering)
                if pause and self.pending:
                    return self._paused(pause)
            await self._take(config.follow_ups)
            if not self.pending and config.chain.hooks["before_stop"]:
                await self._ask_whether_to_stop()
            if not self.pending:
                return "completed"
            if pause:
                return self._paused(pause)

    async def _ask_whether_to_stop(self) -> None:
        """Take what hooks say where the run would end, if the model may be asked once more."""
        if self.model_calls < self._most:
            said = await self.config.chain.before_stop(self.state, self.ctx)
            await self.commits.tell_changes()
            self.pending += said

    async def _take(self, source: Source | None) -> None:
        """Take the messages that wait there."""
        if source is not None and (messages := source()):
            self.pending += await settled(messages)

    def _pauses(self) -> bool | str:
        return False if self.config.should_pause is None else self.config.should_pause()

    def _paused(self, reason: bool | str) -> str:
        if isinstance(reason, str):
            self.state = self.state.put_metadata(PAUSE_REASON, reason)
        return "paused"

    # a turn

    def _start_turn(self) -> None:
        self._in_turn = True
        if self.ctx.emitter.sink is not None:
            self.emit(TurnStart)

    def _end_turn(self, message: Message, results: Sequence[ToolResult] = ()) -> None:
        self._in_turn = False
        self._results = results = tuple(results)
        if self.ctx.emitter.sink is not None:
            self.emit(TurnEnd, message=message, tool_results=results)

    async def _ask_model(self) -> Message:
        """Ask the model; what it said is a part of the conversation then."""
        config = self.config
        if self.ctx.tools is not self._tools:  # the first time, and when some were added
            self._tools = self.ctx.tools
            self._specs = tuple([tool.spec for tool in self._tools.values()])
        try:
            request, model = await request_for(config, self.ctx, self._specs)
        except BaseException as error:
            pass_on(error)
            if issubclass(type(error), AgentError):
                failure = _failure(error)
            else:
                failure = AgentError(f"The model was not asked: {said_by(error)}")
            await self.commits.append(Message("assistant", stop_reason="error", error=str(failure)))
            raise failure from error
        meter = self.ctx.meter
        counted = meter.before_model(not meter.limits_cost or tells_cost(model))
        self.model_calls += 1
        tracing = current()
        before = None if counted is None else DRAWN_ON.set(counted)
        try:
            if tracing is None:
                answer = await call_in_time(model, request, self.ctx)
            else:
                with tracing.chat(model) as said:
                    answer = await call_in_time(model, request, self.ctx)
                    said(answer.message, answer.model, answer.failure)
        finally:
            if before is not None:
                DRAWN_ON.reset(before)
        if self.commits.records:
            answer = kept(answer, model)
        if config.chain.hooks["before_model_request"] and answer.message.tool_calls:
            marked = without_hidden(answer.message, request, self.ctx)
            answer = replace(answer, message=marked)
        if config.chain.hooks["on_answer"]:
            answer = replace(answer, message=config.chain.noted(answer.message, self.ctx))
        message = answer.message
        self.ctx.spend(message.usage)
        if message.usage is None and answer.failure is None:
            meter.add_untold()
        self._begun, self._pause = None, None
        if self.commits.records:
            first = await self._beginning_with(answer)
            begins = [item.call for item in first]
            await self.commits.append_answer(answer, begins=begins, ends=self._ends_with(answer))
            for item in first:
                item.begun = True
        else:
            await self.commits.append_answer(answer)
        if answer.failure is not None:
            raise answer.failure
        if message.stop_reason == "refusal":
            raise refusal(message)
        meter.check_cost()
        return message

    async def _out_of_calls(self, message: Message) -> str:
        """Say the text for that, as the answer; raises MaxRunsExceeded where there is none."""
        config = self.config
        limit = f"the limit of {config.max_runs} model calls was reached"
        self._end_turn(message, await self._close_open_calls(limit))
        if config.fallback_text is None or config.unanswered is not None:
            raise MaxRunsExceeded(
                f"The model was not done after {config.max_runs} calls (max_runs); "
                "run again with the result's state to continue."
            )
        self._start_turn()
        answer = replace(Message.assistant(config.fallback_text), metadata={FALLBACK: "max_runs"})
        await self.commits.append(answer)
        self._end_turn(answer)
        return "completed"

    def _wants_more(self, message: Message) -> bool:
        """Whether the model is to be asked again."""
        if message.tool_calls or message.stop_reason == "pause_turn":
            return True
        return self.config.retry_blank and is_blank(message)

    def _ends_with(self, answer: ModelAnswer) -> bool:
        """Whether nothing but a message from somebody makes the run go on after that answer."""
        config, message = self.config, answer.message
        hooks = config.chain.hooks
        may_yet_fail = config.until_tool or self.ctx.meter.limits_cost
        return (
            answer.failure is None
            and message.stop_reason != "refusal"
            and not self._wants_more(message)
            and not (hooks["after_model"] or hooks["before_stop"] or hooks["after_run"])
            and not may_yet_fail
            and not (self.pending or self.middleware_messages)
        )

    async def _beginning_with(self, answer: ModelAnswer) -> list[PreparedCall]:
        """The calls that begin with their message, written down together: the first to run.

        None where something may yet come between: a hook, a person, a limit, a pause.
        """
        config, ctx, message = self.config, self.ctx, answer.message
        chain = config.chain
        if (
            ctx.is_cancelled
            or answer.failure is not None
            or message.stop_reason != "tool_use"
            or self.model_calls >= self._most
            or self.middleware_messages
            or chain.hooks["after_model"]
            or not all(chain.lets_pass(call.name, ctx.gates) for call in message.tool_calls)
        ):
            return []
        batch = await prepare(message, chain, ctx, {}, self._unfinished.results)
        first = first_at_once(batch, config.max_parallel_tools)
        if not first or not ctx.meter.allows_tools(len(first)):
            return []
        if config.skip_rest is not None and await settled(config.skip_rest()):
            return []
        self._pause = self._pauses()
        if self._pause:
            return []
        self._begun = batch
        return first

    async def _run_tools(
        self,
        message: Message,
        decisions: Mapping[str, tuple[ActionRequest, Decision]] = MappingProxyType({}),
        begun: list[PreparedCall] | None = None,
    ) -> str | None:
        """Run a turn's calls; a status if the run ends here, else None."""
        config, ctx = self.config, self.ctx
        batch = begun or await prepare(
            message, config.chain, ctx, decisions, self._unfinished.results
        )
        waiting = [item.interrupt for item in batch if item.interrupt is not None]
        if waiting:
            self._end_turn(message)
            await self._interrupt(self._joined(waiting))
            return "interrupted"
        done = await execute(batch, ctx, config, self.commits)
        results: list[ToolResult] = []
        asked: list[Interrupt] = []
        error: AgentError | None = None
        ends = True
        for item in done:
            results.append(item.result)
            ends = ends and item.terminate
            error = error or item.error
            if item.interrupt is not None:
                asked.append(item.interrupt)
            if item.update:
                ctx.state = ctx.state.update(item.update)
            if item.artifact is not None:
                self._artifacts[item.result.tool_call_id] = item.artifact
        if asked and error is None and not ctx.is_cancelled:
            ctx.state = ctx.state.with_interrupt(self._joined(asked))  # safe with its results
        elif asked:
            results = [self._unasked(result) for result in results]
        await self.commits.append(Message("tool", tuple(results)))
        self._unfinished = _NOTHING
        await self.commits.tell_changes()
        self._end_turn(message, results)
        if error is not None:
            raise error
        if ctx.is_cancelled:
            return "cancelled"
        if ctx.state.interrupt is not None:
            await self._interrupt(ctx.state.interrupt)
            return "interrupted"
        if ends:
            return "completed"
        status = self._stops.reached(results)
        if status is None:
            self._stops.count_failures(done)
        return status

    def _unasked(self, result: ToolResult) -> ToolResult:
        """``result``, unless it is a question that nobody is asked any more."""
        if not result.is_interrupt:
            return result
        cancelled = unanswered_result(result, "the run ended before people were asked")
        self.ctx.publish(ToolExecutionEnd, **end_of(cancelled, cancelled.status))
        return cancelled

    # people

    async def _resume(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> str | None:
        """Go on with the turn that was interrupted; a status if the run ends here, else None."""
        message = self._calling_message()
        calls = {call.id: call for call in open_calls(self.state)}
        if calls.keys() >= decisions.keys():  # none of them has a result that waits
            requests = {r.tool_call_id: r for r in interrupt.action_requests}
            seen = dict(self._unfinished.decisions)
            results = dict(self._unfinished.results)
            doubtful = doubtful_calls(interrupt)
            gated = {
                call_id
                for part in interrupt.parts or (interrupt,)
                if part.type == "hitl"
                for call_id in part.tool_call_ids
            }
            for call_id, decision in decisions.items():
                if isinstance(decision, Approve) and decision.always and call_id in gated:
                    let_pass(self.ctx.local, requests[call_id].tool_name)
                if call_id not in doubtful:
                    seen[call_id] = requests[call_id], decision
                elif (result := confirmed_result(calls[call_id], decision)) is not None:
                    results[call_id] = result
                    self.commits.finished(calls[call_id], result)
            self._unfinished = replace(self._unfinished, results=results)
            return await self._run_tools(message, seen)
        if await self._take_answers(interrupt, decisions):
            return "interrupted"
        answered = self._last_results()
        self._end_turn(message, answered)
        await self.commits.keep()
        return self._stops.reached(answered)

    async def _take_answers(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> bool:
        """Put answers where the questions were; whether something still waits."""
        chain, ctx = self.config.chain, self.ctx
        waiting, self._refused, said = await apply_decisions(interrupt, decisions, chain, ctx)
        self.pending += said
        await self.commits.tell_changes()
        if not waiting:
            return False
        if self._in_turn:
            self._end_turn(self._calling_message(), self._last_results())
        await self._interrupt(self._joined(waiting))
        return True

    def _joined(self, interrupts: Sequence[Interrupt]) -> Interrupt:
        return join_interrupts(interrupts, self.ctx.session_id, self.config.epoch)

    async def _interrupt(self, interrupt: Interrupt) -> None:
        """Stop here for people."""
        if interrupt.type == "halt":  # what it tells people is said by the agent; no model is asked
            if (tracing := current()) is not None:
                tracing.halted()
            await self._close_open_calls("the run was halted")
            if interrupt.message:
                await self.commits.append(Message.assistant(interrupt.message, halt=True))
        self.state = self.state.with_interrupt(interrupt)
        await self.commits.keep()
        self.emit(InterruptEvent, interrupt=interrupt)

    def _give_up_questions(self) -> None:
        """What is asked cannot be answered any more: those calls have failed."""
        before, self.state = self.state, self.state.clean_stale_interrupts()
        for result in given_up(before, self.state):
            self.ctx.publish_kept(ToolExecutionEnd, **end_of(result, "failed"))

    # middleware

    async def _hooks(self, name: str) -> bool:
        """Run a hook over the state; whether it stopped the run."""
        ctx, chain = self.ctx, self.config.chain
        if ctx.is_cancelled:
            raise asyncio.CancelledError
        if self.middleware_messages:
            await self._deliver_messages()
        if not chain.hooks[name]:
            return False
        ctx.state = await chain.state_hooks(name, ctx.state, ctx)
        await self.commits.tell_changes()
        interrupt = ctx.state.interrupt
        if interrupt is None:
            return False
        await self._append_pending()
        if self._in_turn:
            self._end_turn(self._last_answer())
        await self._interrupt(self._joined([interrupt]))
        return True

    async def deliver_messages(self) -> None:
        """Let middleware handle the messages that came for it, also while nothing runs."""
        tracing = None if current() else tracing_of(self.ctx)
        with nullcontext() if tracing is None else tracing.inside():
            await self._deliver_messages()

    async def _deliver_messages(self) -> None:
        while self.middleware_messages:
            # It stays first while it is read: whoever stops the run then does not mean it.
            message = self.middleware_messages[0]
            self.state = await self.config.chain.handle_message(*message, self.state, self.ctx)
            self.middleware_messages.popleft()
            await self.commits.tell_changes()

    # the conversation

    async def _append_pending(self) -> None:
        while self.pending:
            await self.commits.append(self.pending.pop(0))

    async def _close_open_calls(self, reason: str) -> tuple[ToolResult, ...]:
        """Answer calls that have no result, so that any provider accepts the history."""
        message = closing_message(self.state, reason, self._unfinished)
        self._unfinished = _NOTHING
        if message is None:
            return ()
        await self.commits.append(message)
        return tuple(message.tool_results)

    def _last_answer(self) -> Message:
        """What the model said last in this run."""
        answers = (m for m in reversed(self.commits.messages) if m.role == "assistant")
        return next(answers, Message("assistant"))

    def _last_results(self) -> list[ToolResult]:
        messages = self.state.messages
        return messages[-1].tool_results if messages else []

    def _calling_message(self) -> Message:
        """The message whose calls are to be gone on with."""
        recent = reversed(self.state.messages[-3:])
        return next((message for message in recent if message.tool_calls), self._last_answer())

    def state_if_stopped(self, reason: str) -> State:
        """The state as it would be if the run had stopped now; nothing is told or changed."""
        message = closing_message(self.state, reason, self._unfinished)
        state = self.state if message is None else self.state.add_message(message)
        return state.add_messages(self.pending)


def _failure(error: BaseException) -> AgentError:
    if issubclass(type(error), AgentError):
        assert isinstance(error, AgentError)
        hush(error)
        return error
    failure = AgentError(f"The run failed: {said_by(error)}")
    failure.__cause__ = error
    return failure
