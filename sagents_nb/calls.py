"""The tool calls of one turn: prepare in order, execute in parallel, finalize in call order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from .closing import NOT_RUN, cancelled_result
from .context import RunContext, ToolContext
from .errors import AgentError
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
from .loopconfig import LoopConfig
from .messages import Message, ToolCall, ToolResult
from .middleware.chain import Chain
from .recording import Recording
from .runtime import runtime
from .state import State
from .tools import Tool

# How long a cancelled run waits for tools that clean up after themselves, in seconds.
GRACE = 2.0


class Prepared:
    """One call, ready: either to run ``tool`` with ``arguments``, or with its ``answer``."""

    __slots__ = (
        "answer",
        "arguments",
        "begun",
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
        self.begun = False  # it is written down that its body is run
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
    results: Mapping[str, ToolResult],
) -> list[Prepared]:
    """Look up, validate and ask the hooks, call by call; nothing runs.

    ``decisions`` holds what people said, with the request they saw, by ``tool_call_id``, and
    ``results`` those that are known from before a crash.
    """
    batch: list[Prepared] = []
    for call in message.tool_calls:
        if any(call.id == other.call.id for other in batch):  # a decision names a call by its id
            twin = f"Not run: another call of this message has the id {call.id!r} too."
            batch.append(Prepared(call).answer_with(twin, "failed"))
        elif call.id in results:
            batch.append(_known(call, results[call.id]))
        else:
            batch.append(await _prepare(call, message, chain, ctx, decisions.get(call.id)))
    return batch


def _known(call: ToolCall, result: ToolResult) -> Prepared:
    prepared = Prepared(call)
    prepared.answer = result
    prepared.status = "failed" if result.is_error else "completed"
    if NOT_RUN in result.metadata:
        prepared.status = "rejected" if result.metadata[NOT_RUN] == "rejected" else "skipped"
    return prepared


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
    ctx: RunContext,
    config: LoopConfig,
    record: Recording,
) -> list[Executed]:
    """Run the batch, at most ``max_parallel_tools`` calls at once; results in call order.

    A tool that is ``sequential`` makes it one at a time. A call sees what those that have
    ended changed in the state. Once ``skip_rest`` says so, calls that have not started are
    answered as skipped.

    A cancellation answers what has not finished with a "cancelled" result and is not raised
    again: ``ctx.cancelled`` is set, where the loop looks. A tool that does not stop within
    ``GRACE`` seconds, or by a second cancellation, is left to itself.
    """
    sequential = any(item.tool is not None and item.tool.sequential for item in batch)
    gate = asyncio.Semaphore(1 if sequential else config.max_parallel_tools)
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
                skip = config.skip_rest()
                if skip if isinstance(skip, bool) else await skip:
                    text = "Skipped: a message came from the user instead."
                    item.answer_with(text, "skipped", not_run="skipped")
            return await _run_one(item, config.chain, ctx, state, record)

    tasks = [asyncio.create_task(gated(item)) for item in batch]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        ctx.cancelled.set()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks, timeout=GRACE)
    return [_outcome(item, task, ctx, record) for item, task in zip(batch, tasks, strict=True)]


def _outcome(
    item: Prepared, task: asyncio.Task[Executed], ctx: RunContext, record: Recording
) -> Executed:
    if not task.done():
        return _cancelled(item, ctx)
    if not task.cancelled():
        return task.result()
    executed = Executed(cancelled_result(item.call))
    _finished(item, executed, record)
    return _cancelled(item, ctx)


async def _run_one(
    item: Prepared, chain: Chain, ctx: RunContext, state: Callable[[], State], record: Recording
) -> Executed:
    _start(item, ctx)
    error = await _kept_from_running(item, ctx, record)
    if item.answer is not None:
        executed, status = Executed(item.answer), item.status
        executed.error = error
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
    _finished(item, executed, record)
    _end(item, ctx, executed.result, status)
    return executed


async def _kept_from_running(
    item: Prepared, ctx: RunContext, record: Recording
) -> AgentError | None:
    """Why the tool must not be run, which is its answer then; else it is written down."""
    if item.answer is not None:
        return None
    assert item.tool is not None
    try:
        ctx.meter.before_tool()
        if record.recorder is not None:
            await record.starting(item.call, item.tool)
            item.begun = True
            if ctx.cancelled.is_set():  # while it was written down
                raise asyncio.CancelledError
    except AgentError as error:
        item.answer_with(f"Not run: {error}", "skipped", not_run="skipped")
        return error
    return None


def _finished(item: Prepared, executed: Executed, record: Recording) -> None:
    whole = not executed.update and executed.interrupt is None
    if item.begun and whole and not item.over:
        try:
            record.finished(item.call, executed.result)
        except AgentError as error:
            executed.error = executed.error or error


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
