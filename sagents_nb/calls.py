"""The tool calls of one turn: prepare in order, execute in parallel, finalize in call order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from .context import RunContext, ToolContext
from .errors import AgentError, BudgetExceeded
from .events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from .interrupts import (
    ActionRequest,
    Approve,
    Decision,
    Edit,
    Interrupt,
    Reject,
    Respond,
)
from .invoke import Executed, invoke, text_of
from .messages import Message, ToolCall, ToolResult
from .middleware.chain import Chain
from .runtime import runtime
from .state import State
from .tools import Tool

# How long a cancelled run waits for tools that clean up after themselves, in seconds.
GRACE = 2.0

# In the metadata of a result: why its tool was not called at all.
NOT_RUN = "not_run"


class Prepared:
    """One call, ready: either to run ``tool`` with ``arguments``, or with its ``answer``."""

    __slots__ = (
        "answer",
        "arguments",
        "call",
        "edited",
        "interrupt",
        "over",
        "started",
        "status",
        "tool",
        "update",
    )

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.answer: ToolResult | None = None
        self.status = "completed"
        self.interrupt: Interrupt | None = None
        self.edited: dict[str, Any] | None = None
        self.started = 0.0
        self.update: dict[str, Any] = {}  # what it changed in the state, once it has run
        self.over = False  # its end was told: what still comes from it is dropped

    def answer_with(
        self, text: str, status: str, *, is_error: bool = True, not_run: str = ""
    ) -> Prepared:
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
) -> list[Prepared]:
    """Look up, validate and ask the hooks, call by call; nothing runs.

    ``decisions`` holds what people said, with the request they saw, by ``tool_call_id``.
    """
    batch: list[Prepared] = []
    for call in message.tool_calls:
        if any(call.id == other.call.id for other in batch):  # a decision names a call by its id
            twin = f"Not run: another call of this message has the id {call.id!r} too."
            batch.append(Prepared(call).answer_with(twin, "failed"))
        else:
            batch.append(await _prepare(call, message, chain, ctx, decisions.get(call.id)))
    return batch


async def _prepare(
    call: ToolCall,
    message: Message,
    chain: Chain,
    ctx: RunContext,
    decided: tuple[ActionRequest, Decision] | None,
) -> Prepared:
    prepared = Prepared(call)
    if call.error is not None or message.stop_reason != "tool_use":
        reason = call.error or f"The message ended with {message.stop_reason!r} before it was done."
        return prepared.answer_with(f"Not run: {reason}", "failed", not_run="cut")
    decision = decided[1] if decided else None
    if isinstance(decision, Reject):
        said = f" They said: {decision.message}" if decision.message else ""
        text = f"A person rejected this call, so it was not run.{said}"
        return prepared.answer_with(text, "rejected", is_error=False, not_run="rejected")
    if isinstance(decision, Edit):
        prepared.edited = decision.arguments
        call = replace(call, arguments=decision.arguments)
    tool = prepared.tool = ctx.tools.get(call.name)
    if tool is None:
        known = ", ".join(ctx.tools) or "none"
        return prepared.answer_with(f"There is no tool {call.name!r}. Tools: {known}.", "failed")
    if not _fits(call, tool, prepared):  # nobody needs to be asked about what cannot run
        return prepared
    outcome: ToolResult | Interrupt | None = None
    if chain.hooks["before_tool"]:
        call, outcome = await chain.before_tool(call, ctx)
        if isinstance(outcome, ToolResult):
            blocked = "Blocked: this call was not run." if outcome.is_error else ""
            prepared.answer = replace(
                outcome,
                tool_call_id=call.id,
                name=call.name,
                content=outcome.content or blocked,
            )
            prepared.status = "failed" if outcome.is_error else "completed"
            return prepared
        if not _fits(call, tool, prepared):  # a hook may have changed it, also in place
            return prepared
    prepared.call = call
    if isinstance(outcome, Interrupt):
        if decided is None:
            prepared.interrupt = outcome
        elif isinstance(decision, Respond):
            return prepared.answer_with(text_of(decision.answer), "completed", is_error=False)
        elif isinstance(decision, Approve) and _changed(decided[0], outcome):
            return prepared.answer_with(
                "Not run: the arguments changed after they were approved.", "failed"
            )
    return prepared


def _fits(call: ToolCall, tool: Tool, prepared: Prepared) -> bool:
    """Take the call's arguments if they fit the tool; else that is its answer."""
    try:
        prepared.arguments = tool.arguments.check(call.arguments)
    except ValueError as error:
        prepared.answer_with(f"{error}", "failed")
        return False
    return True


def _changed(seen: ActionRequest, now: Interrupt) -> bool:
    return any(
        request.tool_call_id == seen.tool_call_id
        and (request.tool_name, request.arguments) != (seen.tool_name, seen.arguments)
        for request in now.action_requests
    )


async def execute(
    batch: Sequence[Prepared],
    chain: Chain,
    ctx: RunContext,
    limit: int,
    skip_rest: Callable[[], bool | Awaitable[bool]],
) -> list[Executed]:
    """Run the batch, at most ``limit`` calls at once; results in call order.

    A tool that is ``sequential`` makes it one at a time. A call sees what those that have
    ended changed in the state. Once ``skip_rest`` says so, calls that have not started are
    answered as skipped.

    A cancellation answers what has not finished with a "cancelled" result and is not raised
    again: ``ctx.cancelled`` is set, where the loop looks. A tool that does not stop within
    ``GRACE`` seconds, or by a second cancellation, is left to itself.
    """
    if any(item.tool is not None and item.tool.sequential for item in batch):
        limit = 1
    gate = asyncio.Semaphore(limit)
    before = ctx.state

    def state() -> State:
        now = before
        for item in batch:
            if item.update:
                now = now.update(item.update)
        return now

    async def gated(item: Prepared) -> Executed:
        async with gate:
            if item.answer is None:
                skip = skip_rest()
                if skip if isinstance(skip, bool) else await skip:
                    text = "Skipped: a message came from the user instead."
                    item.answer_with(text, "skipped", not_run="skipped")
            return await _run_one(item, chain, ctx, state)

    tasks = [asyncio.create_task(gated(item)) for item in batch]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        ctx.cancelled.set()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks, timeout=GRACE)
    return [
        task.result() if task.done() and not task.cancelled() else _cancelled(item, ctx)
        for item, task in zip(batch, tasks, strict=True)
    ]


async def _run_one(
    item: Prepared, chain: Chain, ctx: RunContext, state: Callable[[], State]
) -> Executed:
    _start(item, ctx)
    exceeded = _over_budget(item, ctx)
    if item.answer is not None:
        executed, status = Executed(item.answer), item.status
        executed.error = exceeded
    else:
        executed = await _run(item, ctx, state())
        item.update = executed.update
        status = "failed" if executed.result.is_error else "completed"
        if executed.interrupt is not None:
            status = "interrupted"
        try:
            executed.result = await chain.after_tool(item.call, executed.result, ctx)
        except AgentError as error:  # the tool did run: its result stands, the run ends after
            executed.error = error
        except asyncio.CancelledError:
            if not ctx.cancelled.is_set():
                raise
    if item.edited is not None:
        metadata = {"edited_arguments": item.edited, **executed.result.metadata}
        executed.result = replace(executed.result, metadata=metadata)
    executed.status = status
    _end(item, ctx, executed.result, status)
    return executed


def _over_budget(item: Prepared, ctx: RunContext) -> BudgetExceeded | None:
    if item.answer is None:
        try:
            ctx.meter.before_tool()
        except BudgetExceeded as error:
            item.answer_with(f"Not run: {error}", "skipped")
            return error
    return None


async def _run(item: Prepared, ctx: RunContext, state: State) -> Executed:
    call, tool = item.call, item.tool
    assert tool is not None

    def progress(text: str, fraction: float | None) -> None:
        def tell() -> None:
            if not item.over and not ctx.cancelled.is_set():
                ctx.emitter.emit(
                    ToolExecutionUpdate, tool_call_id=call.id, text=text, fraction=fraction
                )

        runtime.post(tell)

    return await invoke(tool, call, item.arguments, ToolContext(ctx, state, call.id, progress))


def _start(item: Prepared, ctx: RunContext) -> None:
    item.started = time.perf_counter()
    text = item.tool.display(item.call.arguments) if item.tool else None
    ctx.emitter.emit(ToolExecutionStart, tool_call=item.call, display_text=text)


def _end(item: Prepared, ctx: RunContext, result: ToolResult, status: str) -> None:
    if not item.over:
        item.over = True
        ctx.emitter.emit(
            ToolExecutionEnd,
            tool_call_id=item.call.id,
            tool_name=item.call.name,
            result=result,
            status=status,
            duration=time.perf_counter() - item.started,
        )


def _cancelled(item: Prepared, ctx: RunContext) -> Executed:
    result = cancelled_result(item.call)
    if not item.started:
        _start(item, ctx)
    _end(item, ctx, result, "cancelled")
    return Executed(result)


def cancelled_result(call: ToolCall, reason: str = "the run was cancelled") -> ToolResult:
    """The result of a call that will not be run, or whose end nobody waits for."""
    return ToolResult(call.id, call.name, f"Cancelled: {reason}.", is_error=True)
