"""The tool calls of one turn: prepared in call order, then run in parallel.

In call order each is looked up, its arguments are checked, the hooks are asked, and what people
decided is heeded; what stands in its way is its answer, or an interrupt. Only then they run, and
their results come in call order.
"""

from __future__ import annotations

import asyncio
import copy
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ..context import RunContext, ToolContext
from ..errors import AgentError, pass_on
from ..events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from ..interrupts import (
    ActionRequest,
    Approve,
    Decision,
    Edit,
    Interrupt,
    Reject,
    Respond,
    canonical_json,
    decision_data,
)
from ..messages import (
    ALWAYS,
    DECISION,
    DEFAULTS,
    EDITED,
    NOT_RUN,
    Message,
    ToolCall,
    ToolResult,
)
from ..middleware.chain import Chain
from ..middleware.human_in_the_loop import PASSING
from ..runtime.telemetry import current
from ..runtime.thread import runtime
from ..state import State
from ..text import said_by
from ..tools import Tool
from .approvals import is_as_shown
from .commits import Commits
from .config import LoopConfig
from .invoke import GRACE, LAST_WORDS, NO_CHANGE, Executed, invoke, refusal
from .open_calls import LEFT_BEHIND, TWIN, cancelled_result
from .tool_values import text_of

NOBODY = "Nobody was there to decide."

AT_A_TIME = 100
"""Calls of one message that are worked on before other sessions have their turn."""


class PreparedCall:
    """One call, ready: either to run ``tool`` with ``arguments``, or with its ``answer``."""

    __slots__ = (
        "answer",
        "arguments",
        "begun",
        "call",
        "decided",
        "defaults",
        "edited",
        "ended",
        "interrupt",
        "over",
        "position",
        "started",
        "status",
        "tool",
        "update",
    )

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}  # those of the arguments that the call leaves out
        self.answer: ToolResult | None = None
        self.status = "completed"
        self.interrupt: Interrupt | None = None
        self.edited: dict[str, Any] | None = None
        self.decided: dict[str, Any] | None = None  # what people said, as its result keeps it
        self.started = 0.0
        self.begun = False  # it is written down that its body is run
        self.update: Mapping[str, Any] = NO_CHANGE  # what it changed in the state, once it ran
        self.over = False  # its end was told: what still comes from it is dropped
        self.ended = False  # nothing comes from it any more
        self.position = 0

    def noted(self, result: ToolResult) -> ToolResult:
        """``result`` with what people decided, and with what it was run then."""
        metadata = result.metadata
        if self.edited is not None:
            metadata = {EDITED: self.edited, **metadata}
        if self.decided is not None:
            if self.defaults:
                metadata = {DEFAULTS: self.defaults, **metadata}
            metadata = {**metadata, DECISION: self.decided}
        return result if metadata is result.metadata else replace(result, metadata=metadata)

    def answer_with(
        self, text: str, status: str, *, is_error: bool = True, not_run: str = ""
    ) -> PreparedCall:
        """Do not run it; this is its result."""
        metadata = {NOT_RUN: not_run} if not_run else {}
        self.answer = ToolResult(
            self.call.id, self.call.name, text, is_error=is_error, metadata=metadata
        )
        self.status = status
        return self


async def prepare(
    message: Message,
    chain: Chain,
    ctx: RunContext,
    decisions: Mapping[str, tuple[ActionRequest, Decision]],
    results: Mapping[str, ToolResult],
) -> list[PreparedCall]:
    """Look up, validate and ask the hooks, call by call; nothing runs.

    ``decisions`` holds what people said, with the request they saw, by ``tool_call_id``, and
    ``results`` those that are known from before a crash.
    """
    batch: list[PreparedCall] = []
    seen: set[str] = set()
    foreseen = True  # what a call finds, as none before it may change that
    for call in message.tool_calls:
        if call.id in seen:  # a decision names a call by its id
            twin = f"Not run: another call of this message has the id {call.id!r} too."
            batch.append(PreparedCall(call).answer_with(twin, "failed", not_run=TWIN))
        elif call.id in results:
            batch.append(_known(call, results[call.id]))
        else:
            decision = decisions.get(call.id)
            batch.append(await _prepare(call, message, chain, ctx, decision, foreseen))
        tool = ctx.tools.get(call.name)
        foreseen = foreseen and tool is not None and tool.idempotent
        seen.add(call.id)
        if not len(seen) % AT_A_TIME:
            await asyncio.sleep(0)
    return batch


def _cut_short(stop_reason: str | None) -> str:
    if stop_reason is None:
        return "The message does not say why it ended (stop_reason), so it may have been cut."
    return f"The message ended with {stop_reason!r} before it was done."


def _known(call: ToolCall, result: ToolResult) -> PreparedCall:
    prepared = PreparedCall(call)
    prepared.answer = result
    prepared.status = result.status
    return prepared


async def _prepare(
    call: ToolCall,
    message: Message,
    chain: Chain,
    ctx: RunContext,
    decided: tuple[ActionRequest, Decision] | None,
    foreseen: bool,
) -> PreparedCall:
    prepared = PreparedCall(call)
    if decided is not None:
        prepared.decided = ctx.decided.get(call.id) or decision_data(decided[1])
    if call.error is not None or message.stop_reason != "tool_use":
        reason = call.error or _cut_short(message.stop_reason)
        return prepared.answer_with(f"Not run: {reason}", "failed", not_run="cut")
    decision = decided[1] if decided else None
    if isinstance(decision, Reject):
        if decision.unattended:
            text = f"This call was not run. {decision.message or NOBODY}"
        else:
            said = f" They said: {decision.message}" if decision.message else ""
            text = f"A person rejected this call, so it was not run.{said}"
        return prepared.answer_with(text, "rejected", is_error=False, not_run="rejected")
    if isinstance(decision, Edit):
        prepared.edited = decision.arguments
        call = replace(call, arguments=decision.arguments)
    if decided is not None:
        call = _copied(call)
    tool = prepared.tool = ctx.tools.get(call.name)
    if tool is None:
        known = ", ".join(ctx.tools) or "none"
        return prepared.answer_with(f"There is no tool {call.name!r}. Tools: {known}.", "failed")
    if not _fits(call, tool, prepared):  # nobody needs to be asked about what cannot run
        return prepared
    outcome: ToolResult | Interrupt | None = None
    if chain.hooks["before_tool"] or ctx.gates is not None:
        call, outcome = await chain.before_tool(call, ctx)
        if isinstance(outcome, ToolResult):
            blocked = "Blocked: this call was not run." if outcome.is_error else ""
            prepared.answer = replace(
                outcome,
                tool_call_id=call.id,
                name=call.name,
                content=outcome.content or blocked,
            )
            prepared.status = outcome.status
            return prepared
        if decided is not None:
            call = _copied(call)
        if not _fits(call, tool, prepared):  # a hook may have changed it, also in place
            return prepared
    prepared.call = call
    prepared.defaults = _defaults(call, tool, prepared.arguments)
    if decided is not None:
        now = outcome if isinstance(outcome, Interrupt) else None
        if isinstance(decision, Respond) and now is not None:
            return prepared.answer_with(text_of(decision.answer), "completed", is_error=False)
        if not _is_as_decided(prepared, *decided, now):
            return prepared.answer_with(
                "Not run: the arguments changed after they were approved.", "failed"
            )
    elif isinstance(outcome, Interrupt):
        seen = ToolContext(ctx, ctx.state, call.id, lambda text, fraction: None)
        refused = await refusal(tool, call, prepared.arguments, seen) if foreseen else None
        if refused is not None:  # nor about what is known to come to nothing
            prepared.answer, prepared.status = refused, refused.status
            return prepared
        prepared.interrupt = _with_defaults(outcome, prepared.defaults)
    elif PASSING in ctx.local and chain.allows_always(call.name, ctx):
        prepared.decided = decision_data(Approve(always=True), ALWAYS)
    return prepared


def _copied(call: ToolCall) -> ToolCall:
    """The call with arguments that nobody else has: what is checked is what is run."""
    return replace(call, arguments=copy.deepcopy(call.arguments))


def _fits(call: ToolCall, tool: Tool, prepared: PreparedCall) -> bool:
    """Take the call's arguments if they fit the tool; else that is its answer."""
    try:
        prepared.arguments = tool.arguments.check(call.arguments)
    except ValueError as error:
        prepared.answer_with(f"{error}", "failed")
        return False
    except BaseException as error:  # of a type of somebody's, which checks its values itself
        pass_on(error)
        prepared.answer_with(f"Invalid arguments: {said_by(error)}", "failed")
        return False
    return True


def _defaults(call: ToolCall, tool: Tool, checked: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool takes for arguments that the call leaves out, as far as JSON can say it."""
    if checked.keys() <= call.arguments.keys():
        return {}
    described = tool.arguments.schema.get("properties", {})
    left_out = (name for name in checked if name not in call.arguments)
    return {
        name: copy.deepcopy(described[name]["default"])
        for name in left_out
        if "default" in described.get(name, ())
    }


def _with_defaults(interrupt: Interrupt, defaults: Mapping[str, Any]) -> Interrupt:
    """``interrupt`` whose requests say them too, where an answer may run the call."""
    requests = tuple(
        replace(request, defaults={n: v for n, v in defaults.items() if n not in request.arguments})
        if {"approve", "edit"} & set(request.allowed_decisions)
        else request
        for request in interrupt.action_requests
    )
    return replace(interrupt, action_requests=requests) if defaults else interrupt


def _is_as_decided(
    prepared: PreparedCall, seen: ActionRequest, decision: Decision, now: Interrupt | None
) -> bool:
    """Whether it is the call that people saw, or what they made of it.

    What a hook asks may show arguments of its own, so what it asks ``now`` is compared.
    """
    if not is_as_shown(seen):
        return False
    call = prepared.call
    arguments = decision.arguments if isinstance(decision, Edit) else seen.arguments
    left = {n: v for n, v in seen.defaults.items() if n not in call.arguments}
    taken = {n: v for n, v in prepared.defaults.items() if n in left}
    if canonical_json(left) != canonical_json(taken):  # the tool is another one by now
        return False
    decided = canonical_json([seen.tool_name, arguments])
    requests = now.action_requests if now else ()
    shown = [
        (request.tool_name, request.arguments)
        for request in requests
        if request.tool_call_id == seen.tool_call_id
    ]
    if not shown and call.arguments.keys() == arguments.keys():  # nothing asks any more
        shown = [(call.name, call.arguments)]
    return all(canonical_json([*one]) == decided for one in shown)


def first_at_once(batch: Sequence[PreparedCall], most: int) -> list[PreparedCall]:
    """Those of a batch that run first, at most so many at once."""
    return [item for item in batch[: _at_once(batch, most)] if item.answer is None]


def _at_once(batch: Sequence[PreparedCall], most: int) -> int:
    if len(batch) == 1:
        return 1
    alone = any(item.tool and item.tool.sequential for item in batch)
    return 1 if alone else most


def execute(
    batch: Sequence[PreparedCall], ctx: RunContext, config: LoopConfig, commits: Commits
) -> Coroutine[Any, Any, list[Executed]]:
    """Run the batch, at most ``max_parallel_tools`` calls at once; results in call order.

    A tool that is ``sequential`` makes it one at a time. A call sees what those that have
    ended changed in the state. Once ``skip_rest`` says so, calls that have not started are
    answered as skipped.

    A cancellation answers what has not finished with a "cancelled" result and is not raised
    again: ``ctx.cancelled`` is set, where the loop looks. A tool that does not stop within
    ``GRACE`` seconds, or ``LAST_WORDS`` after a second cancellation, is left to itself.
    """
    return _Batch(batch, ctx, config, commits).results()


class _Changes:
    """The ``state`` with what calls have changed in it, in their order, whichever ends first."""

    def __init__(self, state: State, batch: Sequence[PreparedCall]) -> None:
        self.state = self._settled = state
        self._batch = batch
        self._first = 0  # all before it have ended: their changes are in what is settled
        self._last = 0  # none behind it has changed anything
        for position, item in enumerate(batch):
            item.position = position

    def take(self, item: PreparedCall) -> None:
        """A call has changed something."""
        batch = self._batch
        while self._first < len(batch) and batch[self._first].ended:
            self._settled = _changed(self._settled, batch[self._first])
            self._first += 1
        self._last = max(self._last, item.position)
        self.state = self._settled
        for other in batch[self._first : self._last + 1]:
            self.state = _changed(self.state, other)


def _changed(state: State, item: PreparedCall) -> State:
    return state.update(item.update) if item.update else state


def _begun(
    work: Coroutine[Any, Any, Executed], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[Executed]:
    """A task of it, which begins at once where Python can: a quick tool ends before it is left."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return asyncio.Task(work, loop=loop)


class _Batch:
    """The calls of one turn while they run, each in a task of its own."""

    def __init__(
        self, batch: Sequence[PreparedCall], ctx: RunContext, config: LoopConfig, commits: Commits
    ) -> None:
        self.batch = batch
        self.ctx = ctx
        self.config = config
        self.commits = commits
        self.changes: _Changes | None = None  # nearly no call changes anything
        self.left = len(batch)
        limit = _at_once(batch, config.max_parallel_tools)
        self.gate = asyncio.Semaphore(limit) if limit < self.left else None
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] | None = None  # made where a call is waited for

    async def results(self) -> list[Executed]:
        """What the calls came to."""
        tasks: list[asyncio.Task[Executed]] = []
        try:
            for item in self.batch:
                tasks.append(_begun(self.run(item), self.loop))
                if not len(tasks) % AT_A_TIME:
                    await asyncio.sleep(0)
            if self.left:
                self.ended = self.loop.create_future()
                await self.ended  # asyncio.wait costs more than all the rest of a quick tool
        except asyncio.CancelledError:
            self.ctx.cancelled.set()
            tasks += [self.loop.create_task(self.run(item)) for item in self.batch[len(tasks) :]]
            for task in tasks:
                task.cancel()
            try:
                await asyncio.wait(tasks, timeout=GRACE)
            except asyncio.CancelledError:  # impatience; or whoever was interrupted, too
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(tasks, timeout=LAST_WORDS)
        return [
            task.result() if task.done() and not task.cancelled() else self.cut(item, task.done())
            for item, task in zip(self.batch, tasks, strict=True)
        ]

    async def run(self, item: PreparedCall) -> Executed:
        """One call, once there is a place for it."""
        try:
            if self.gate is None:
                return await self.answer(item)
            async with self.gate:
                return await self.answer(item)
        finally:
            item.ended = True
            self.left -= 1
            if not self.left and self.ended is not None and not self.ended.done():
                self.ended.set_result(None)

    async def answer(self, item: PreparedCall) -> Executed:
        """Run it, unless it has an answer already or must not run."""
        skip_rest = self.config.skip_rest
        if skip_rest is not None and item.answer is None and not item.begun:
            skip = skip_rest()
            if skip if isinstance(skip, bool) else await skip:
                text = "Skipped: a message came from the user instead."
                item.answer_with(text, "skipped", not_run="skipped")
        self.tell_start(item)
        error: AgentError | None = None
        if item.answer is None:
            try:
                self.ctx.meter.before_tool()
                if self.commits.records and not item.begun:
                    await self.write_start(item)
            except AgentError as kept_from_running:
                error = kept_from_running
                item.answer_with(f"Not run: {error}", "skipped", not_run="skipped")
        if item.answer is None:
            assert item.tool is not None
            executed = await self.ran(item, item.tool)
        else:
            executed = Executed(item.answer, item.status, error)
        noted = item.noted(executed.result)
        if noted is not executed.result:
            executed = replace(executed, result=noted)
        if item.begun:
            self.write_down(item, executed)
        self.tell_end(item, executed.result, executed.status)
        return executed

    async def write_start(self, item: PreparedCall) -> None:
        """Write down that the tool is run; raises AgentError if it must not be."""
        await self.commits.starting(item.call)
        item.begun = True
        if self.ctx.is_cancelled:  # while it was written down
            raise asyncio.CancelledError

    async def ran(self, item: PreparedCall, tool: Tool) -> Executed:
        """What the tool, and the hooks after it, made of the call."""
        ctx, call = self.ctx, item.call

        def progress(text: str, fraction: float | None) -> None:
            runtime.post(self.tell_progress, item, text, fraction)

        state = ctx.state if self.changes is None else self.changes.state
        context = ToolContext(ctx, state, call.id, progress)
        timeout = self.config.tool_timeout
        tracing = current()
        if tracing is None:
            executed = await invoke(tool, call, item.arguments, context, timeout)
        else:
            with tracing.execute_tool(call) as ended:
                executed = await invoke(tool, call, item.arguments, context, timeout)
                ended(executed.result)
        if executed.update:
            item.update = executed.update
            self.changes = self.changes or _Changes(ctx.state, self.batch)
            self.changes.take(item)
        chain = self.config.chain
        if chain.hooks["after_tool"]:
            try:
                result = await chain.after_tool(call, executed.result, ctx)
            except AgentError as error:  # the tool did run: its result stands, the run ends after
                return replace(executed, error=error)
            except asyncio.CancelledError:
                if not ctx.is_cancelled:
                    raise
            else:
                asks = executed.interrupt is not None
                status = executed.status if asks else result.status
                return replace(executed, result=result, status=status)
        return executed

    def write_down(self, item: PreparedCall, executed: Executed) -> None:
        """Note the result, if it says all of what happened and did not come too late."""
        if not item.over and not executed.update and executed.interrupt is None:
            with suppress(AgentError):  # the next commit raises it
                self.commits.finished(item.call, executed.result)

    def cut(self, item: PreparedCall, has_ended: bool) -> Executed:
        """The end of a call that was cancelled, or that nobody waits for any longer."""
        in_thread = item.started and item.tool is not None and item.tool.run_on == "pool"
        result = (
            cancelled_result(item.call, LEFT_BEHIND) if in_thread else cancelled_result(item.call)
        )
        executed = Executed(item.noted(result), "cancelled")
        if item.begun and has_ended:
            self.write_down(item, executed)
        if not item.started:
            self.tell_start(item)
        self.tell_end(item, executed.result, executed.status)
        return executed

    def tell_start(self, item: PreparedCall) -> None:
        item.started = time.perf_counter()
        emitter = self.ctx.emitter
        if emitter.sink is not None:
            tool = item.tool
            text = tool.display(item.call.arguments) if tool and tool.display_text else None
            emitter.emit(ToolExecutionStart, tool_call=item.call, display_text=text)

    def tell_progress(self, item: PreparedCall, text: str, fraction: float | None) -> None:
        if not item.over and not self.ctx.is_cancelled:
            about = {"tool_call_id": item.call.id, "text": text, "fraction": fraction}
            self.ctx.emitter.emit(ToolExecutionUpdate, **about)

    def tell_end(self, item: PreparedCall, result: ToolResult, status: str) -> None:
        if item.over:
            return
        item.over = True
        emitter = self.ctx.emitter
        if emitter.sink is not None:
            emitter.emit(
                ToolExecutionEnd,
                tool_call_id=item.call.id,
                tool_name=item.call.name,
                result=result,
                status=status,
                duration=time.perf_counter() - item.started,
            )
