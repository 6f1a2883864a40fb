"""The steps of a turn: the model is asked, its tools run, people are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from ..context import RunContext
from ..errors import AgentError, MaxRunsExceeded
from ..events import Interrupt as InterruptEvent
from ..events import TurnEnd, TurnStart
from ..interrupts import ActionRequest, Decision, Interrupt
from ..messages import Message, ToolResult, Usage
from ..models.base import ModelRequest
from ..telemetry import current
from .approvals import answered, confirmed, joined
from .commits import Recording
from .config import LoopConfig, Unfinished
from .model_call import Answer, request_for, take_turn
from .open_calls import closing_message, doubtful_calls, open_calls
from .stop_conditions import Ends
from .tool_calls import execute, prepare

_NOTHING = Unfinished()


class Steps:
    """What the turns of one run consist of; in which order they come is the loop's.

    ``refused`` is why answers of people were not taken, ``unfinished`` what is known of calls
    that a crash cut off, ``done`` the results of the last turn.
    """

    def __init__(self, config: LoopConfig, ctx: RunContext) -> None:
        self.config = config
        self.ctx = ctx
        self.emit = ctx.emitter.emit
        self.record = Recording(ctx, config.recorder)
        self.ends = Ends(config)
        self.usage = Usage()
        self.artifacts: dict[str, Any] = {}
        self.in_turn = False
        self.done: tuple[ToolResult, ...] = ()
        self.refused: AgentError | None = None
        self.unfinished = _NOTHING
        self.model_calls = 0
        self._specs = tuple(tool.spec for tool in ctx.tools.values())

    def start_turn(self) -> None:
        """Tell that a turn begins."""
        self.in_turn = True
        self.emit(TurnStart)

    def end_turn(self, message: Message, results: Sequence[ToolResult] = ()) -> None:
        """Tell that it is over."""
        self.in_turn = False
        self.done = results = tuple(results)
        self.emit(TurnEnd, message=message, tool_results=results)

    def said(self) -> Message:
        """What the model said last in this run."""
        said = (m for m in reversed(self.record.messages) if m.role == "assistant")
        return next(said, Message("assistant"))

    async def ask(self) -> Message:
        """Ask the model; what it said is a part of the conversation then."""
        config = self.config
        try:
            request = await request_for(config, self.ctx, self._specs)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            failed = f"The model was not asked: {type(error).__name__}: {error}"
            failure: Exception = error if isinstance(error, AgentError) else AgentError(failed)
            await self.record.append(Message("assistant", stop_reason="error", error=str(failure)))
            raise failure from error
        self.ctx.meter.before_model()
        self.model_calls += 1
        answer = await self._answered(request)
        message = answer.message
        self.ctx.meter.add(message.usage)
        if message.usage is not None:
            self.usage += message.usage
        await self.record.append_answer(answer)
        if answer.failure is not None:
            raise answer.failure
        if wants_more(message) and self.model_calls >= config.max_runs:
            limit = f"the limit of {config.max_runs} model calls was reached"
            self.end_turn(message, await self.close_open_calls(limit))
            raise MaxRunsExceeded(
                f"The model was not done after {config.max_runs} calls (max_runs); "
                "run again with the result's state to continue."
            )
        return message

    async def _answered(self, request: ModelRequest) -> Answer:
        tracing = current()
        if tracing is None:
            return await take_turn(self.config.model, request, self.ctx.emitter)
        with tracing.chat(self.config.model) as said:
            answer = await take_turn(self.config.model, request, self.ctx.emitter)
            said(*answer)
            return answer

    async def answer(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> str | None:
        """Go on with the turn that was interrupted."""
        message = self.last_assistant()
        calls = {call.id: call for call in open_calls(self.ctx.state)}
        if calls.keys() >= decisions.keys():  # none of them has a result that waits
            requests = {r.tool_call_id: r for r in interrupt.action_requests}
            seen = dict(self.unfinished.decisions)
            ends = dict(self.unfinished.results)
            doubtful = doubtful_calls(interrupt)
            for call_id, decision in decisions.items():
                if call_id not in doubtful:
                    seen[call_id] = requests[call_id], decision
                elif (result := confirmed(calls[call_id], decision)) is not None:
                    ends[call_id] = result
                    self.record.finished(calls[call_id], result)
            self.unfinished = replace(self.unfinished, results=ends)
            return await self.run_tools(message, seen)
        waiting, self.refused = await answered(interrupt, decisions, self.config.chain, self.ctx)
        await self.record.tell_changes()
        if calls and not waiting:
            return await self.run_tools(message)
        results = self.ctx.state.messages[-1].tool_results if self.ctx.state.messages else []
        self.end_turn(message, results)
        if waiting:
            await self.interrupt(self.joined(waiting))
            return "interrupted"
        await self.record.keep()
        return self.ends.reached(results)

    async def go_on(self) -> str | None:
        """Run the calls of the last message, which was left before they had results."""
        return await self.run_tools(self.last_assistant(), self.unfinished.decisions)

    async def run_tools(
        self,
        message: Message,
        decisions: Mapping[str, tuple[ActionRequest, Decision]] = MappingProxyType({}),
    ) -> str | None:
        """Run a turn's calls; a status if the run ends here, else None."""
        config, ctx = self.config, self.ctx
        batch = await prepare(message, config.chain, ctx, decisions, self.unfinished.results)
        waiting = [item.interrupt for item in batch if item.interrupt is not None]
        if waiting:
            self.end_turn(message)
            await self.interrupt(self.joined(waiting))
            return "interrupted"
        done = await execute(batch, ctx, config, self.record)
        results: list[ToolResult] = []
        asked: list[Interrupt] = []
        error: AgentError | None = None
        for item in done:
            results.append(item.result)
            error = error or item.error
            if item.interrupt is not None:
                asked.append(item.interrupt)
            if item.update:
                self.ctx.state = self.ctx.state.update(item.update)
            if item.artifact is not None:
                self.artifacts[item.result.tool_call_id] = item.artifact
        if asked and error is None and not ctx.cancelled.is_set():
            ctx.state = ctx.state.with_interrupt(self.joined(asked))  # safe with its results
        await self.record.append(Message.tool(results))
        self.unfinished = _NOTHING
        await self.record.tell_changes()
        self.end_turn(message, results)
        if error is not None:
            raise error
        if ctx.cancelled.is_set():
            return "cancelled"
        if self.ctx.state.interrupt is not None:
            await self.interrupt(self.ctx.state.interrupt)
            return "interrupted"
        if message.stop_reason == "refusal" or all(item.terminate for item in done):
            return "completed"
        status = self.ends.reached(results)
        if status is None:
            self.ends.count_failures(done)
        return status

    def joined(self, interrupts: Sequence[Interrupt]) -> Interrupt:
        """Several interrupts as one of this run."""
        return joined(interrupts, self.ctx.session_id, self.config.epoch)

    async def interrupt(self, interrupt: Interrupt) -> None:
        """Stop here for people."""
        if interrupt.type == "halt":  # what it tells people is said by the agent; no model is asked
            if (tracing := current()) is not None:
                tracing.halted()
            await self.close_open_calls("the run was halted")
            if interrupt.message:
                await self.record.append(Message.assistant(interrupt.message, halt=True))
        self.ctx.state = self.ctx.state.with_interrupt(interrupt)
        await self.record.keep()
        self.emit(InterruptEvent, interrupt=interrupt)

    def last_assistant(self) -> Message:
        """The message whose calls are to be gone on with."""
        recent = reversed(self.ctx.state.messages[-3:])
        return next((message for message in recent if message.tool_calls), self.said())

    async def close_open_calls(self, reason: str) -> tuple[ToolResult, ...]:
        """Answer calls that have no result, so that any provider accepts the history."""
        message = closing_message(self.ctx.state, reason, self.unfinished)
        self.unfinished = _NOTHING
        if message is None:
            return ()
        await self.record.append(message)
        return tuple(message.tool_results)


def wants_more(message: Message) -> bool:
    """Whether the model expects to be asked again."""
    return bool(message.tool_calls) or message.stop_reason == "pause_turn"
