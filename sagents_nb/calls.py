"""The tool calls of one turn: prepare in order, execute in parallel, finalize in call order."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .context import RunContext, ToolContext
from .errors import InvalidDecision
from .events import Emitter, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from .interrupts import (
    ActionRequest,
    Approve,
    Decision,
    Decisions,
    Edit,
    Interrupt,
    Reject,
    Respond,
    decisions_for,
    digest_of,
)
from .mainthread import main_thread
from .messages import ContentPart, Message, ToolCall, ToolResult
from .middleware.base import Chain
from .runtime import runtime
from .state import State, to_data
from .tools import Tool, ToolOutput


class Prepared:
    """One call, ready: either to run ``tool`` with ``arguments``, or with its ``answer``."""

    __slots__ = ("answer", "arguments", "call", "edited", "interrupt", "status", "tool")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.tool: Tool | None = None
        self.arguments: dict[str, Any] = {}
        self.answer: ToolResult | None = None
        self.status = "completed"
        self.interrupt: Interrupt | None = None
        self.edited = False

    def answer_with(self, text: str, status: str, *, is_error: bool = True) -> Prepared:
        """Do not run it; this is its result."""
        self.answer = ToolResult(self.call.id, self.call.name, text, is_error=is_error)
        self.status = status
        return self


class Executed:
    """One call with its result, and what it wants changed or asked."""

    __slots__ = ("artifact", "interrupt", "result", "update")

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.update: dict[str, Any] = {}
        self.interrupt: Interrupt | None = None
        self.artifact: Any = None


async def prepare(
    message: Message,
    chain: Chain,
    ctx: RunContext,
    decisions: Mapping[str, tuple[ActionRequest, Decision]],
) -> list[Prepared]:
    """Look up, validate and ask the hooks, call by call; nothing runs.

    ``decisions`` holds what people said, with the request they saw, by ``tool_call_id``.
    """
    runnable = message.stop_reason == "tool_use"
    return [
        await _prepare(call, runnable, message, chain, ctx, decisions.get(call.id))
        for call in message.tool_calls
    ]


async def _prepare(
    call: ToolCall,
    runnable: bool,
    message: Message,
    chain: Chain,
    ctx: RunContext,
    decided: tuple[ActionRequest, Decision] | None,
) -> Prepared:
    prepared = Prepared(call)
    if call.error is not None or not runnable:
        reason = call.error or f"The message ended with {message.stop_reason!r} before it was done."
        return prepared.answer_with(f"Not run: {reason}", "failed")
    decision = decided[1] if decided else None
    if isinstance(decision, Reject):
        said = f" They said: {decision.message}" if decision.message else ""
        text = f"A person rejected this call, so it was not run.{said}"
        return prepared.answer_with(text, "rejected", is_error=False)
    if isinstance(decision, Edit):
        prepared.edited = True
        call = replace(call, arguments=decision.arguments)
    tool = prepared.tool = ctx.tools.get(call.name)
    if tool is None:
        known = ", ".join(ctx.tools) or "none"
        return prepared.answer_with(f"There is no tool {call.name!r}. Tools: {known}.", "failed")
    outcome = await chain.before_tool(call, ctx)
    if isinstance(outcome, ToolResult):
        prepared.answer = replace(outcome, tool_call_id=call.id, name=call.name)
        prepared.status = "failed" if outcome.is_error else "completed"
        return prepared
    if isinstance(outcome, ToolCall):
        call = outcome
    try:
        prepared.arguments = tool.arguments.check(call.arguments)
    except ValueError as error:
        return prepared.answer_with(f"{error}", "failed")
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


def _changed(seen: ActionRequest, now: Interrupt) -> bool:
    return any(
        request.tool_call_id == seen.tool_call_id
        and (request.tool_name, request.arguments) != (seen.tool_name, seen.arguments)
        for request in now.action_requests
    )


def joined(interrupts: Sequence[Interrupt], session_id: str, epoch: int) -> Interrupt:
    """Several interrupts of one turn as one, every request bound to session and epoch."""
    types = {interrupt.type for interrupt in interrupts}
    requests = tuple(
        replace(
            request,
            digest=digest_of(
                session_id, epoch, request.tool_call_id, request.tool_name, request.arguments
            ),
        )
        for interrupt in interrupts
        for request in interrupt.action_requests
    )
    first = interrupts[0]
    return Interrupt(
        type="halt" if "halt" in types else first.type if len(types) == 1 else "multiple",
        action_requests=requests,
        message=first.message,
        data=first.data
        if len(interrupts) == 1
        else {"interrupts": [to_data(i) for i in interrupts]},
        id=digest_of(session_id, epoch, "interrupt", first.type, [r.digest for r in requests])[:16],
    )


async def execute(
    batch: Sequence[Prepared],
    chain: Chain,
    ctx: RunContext,
    limit: int,
) -> list[Executed]:
    """Run the batch, at most ``limit`` calls at once; results in call order.

    A cancellation answers what has not finished with a "cancelled" result and is not raised
    again: whoever cancels has set ``ctx.cancelled``, where the loop looks.
    """
    emitter, state = ctx.emitter, ctx.state
    if len(batch) == 1:
        return [await _run_one(batch[0], chain, ctx, state, emitter)]
    gate = asyncio.Semaphore(limit)

    async def gated(item: Prepared) -> Executed:
        try:
            async with gate:
                return await _run_one(item, chain, ctx, state, emitter)
        except asyncio.CancelledError:
            return _cancelled(item, emitter, 0.0)

    tasks = [asyncio.create_task(gated(item)) for item in batch]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]


async def _run_one(
    item: Prepared, chain: Chain, ctx: RunContext, state: State, emitter: Emitter
) -> Executed:
    call = item.call
    tool = item.tool
    emitter.emit(
        ToolExecutionStart,
        tool_call=call,
        display_text=tool.display(call.arguments) if tool else None,
    )
    began = time.perf_counter()
    if item.answer is not None:
        executed, status = Executed(item.answer), item.status
    else:
        assert tool is not None
        try:
            executed = await _invoke(tool, item, ctx, state, emitter)
        except asyncio.CancelledError:
            return _cancelled(item, emitter, time.perf_counter() - began)
        status = "failed" if executed.result.is_error else "completed"
        if executed.interrupt is not None:
            status = "interrupted"
        executed.result = await chain.after_tool(call, executed.result, ctx)
    emitter.emit(
        ToolExecutionEnd,
        tool_call_id=call.id,
        tool_name=call.name,
        result=executed.result,
        status=status,
        duration=time.perf_counter() - began,
    )
    return executed


def _cancelled(item: Prepared, emitter: Emitter, duration: float) -> Executed:
    result = cancelled_result(item.call)
    emitter.emit(
        ToolExecutionEnd,
        tool_call_id=item.call.id,
        tool_name=item.call.name,
        result=result,
        status="cancelled",
        duration=duration,
    )
    return Executed(result)


def cancelled_result(call: ToolCall, reason: str = "the run was cancelled") -> ToolResult:
    """The result of a call that will not be run, or whose end nobody waits for."""
    return ToolResult(call.id, call.name, f"Cancelled: {reason}.", is_error=True)


async def _invoke(
    tool: Tool, item: Prepared, ctx: RunContext, state: State, emitter: Emitter
) -> Executed:
    call = item.call

    def progress(text: str, fraction: float | None) -> None:
        if ctx.cancelled.is_set():
            return

        def tell() -> None:
            emitter.emit(ToolExecutionUpdate, tool_call_id=call.id, text=text, fraction=fraction)

        runtime.post(tell)

    arguments = dict(item.arguments)
    if tool.arguments.context_parameter:
        arguments[tool.arguments.context_parameter] = ToolContext(ctx, state, call.id, progress)
    try:
        async with asyncio.timeout(tool.timeout):
            value = await _call(tool, arguments)
    except TimeoutError:
        if tool.timeout is None:
            return _failure(call, "TimeoutError: the tool gave up waiting")
        more = "" if tool.is_async else " It may still be working in the background."
        return _failure(call, f"Timed out after {tool.timeout:g} seconds.{more}")
    except Exception as error:
        return _failure(call, f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        return _failure(call, "KeyboardInterrupt: a person stopped this call")
    return _executed(call, value, {"edited_arguments": call.arguments} if item.edited else {})


async def _call(tool: Tool, arguments: dict[str, Any]) -> Any:
    if tool.run_on == "main":
        return await asyncio.wrap_future(main_thread.submit(lambda: tool.function(**arguments)))
    if tool.run_on == "pool" and not tool.is_async:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            runtime.pool, lambda: context.run(tool.function, **arguments)
        )
    value = tool.function(**arguments)
    return await value if tool.is_async else value


def _failure(call: ToolCall, text: str) -> Executed:
    return Executed(ToolResult(call.id, call.name, text, is_error=True))


def _executed(call: ToolCall, value: Any, metadata: dict[str, Any]) -> Executed:
    if isinstance(value, Interrupt):
        placeholder = value.message or "Waiting for a person's answer."
        executed = Executed(ToolResult(call.id, call.name, placeholder, is_interrupt=True))
        if not value.action_requests:
            request = ActionRequest(call.id, call.name, call.arguments, value.message, ("respond",))
            value = replace(value, action_requests=(request,))
        executed.interrupt = value
        return executed
    output = value if isinstance(value, ToolOutput) else ToolOutput(value)
    content = output.content
    if isinstance(content, ToolResult):
        executed = Executed(replace(content, tool_call_id=call.id, name=call.name))
    else:
        executed = Executed(
            ToolResult(
                call.id,
                call.name,
                content_of(content),
                is_error=output.is_error,
                metadata={**metadata, **output.metadata},
            )
        )
    executed.update = output.update
    executed.artifact = output.artifact
    return executed


def content_of(value: Any) -> str | list[ContentPart]:
    """A tool's value as content for the model: parts stay parts, the rest becomes text."""
    if isinstance(value, ContentPart):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(v, ContentPart) for v in value):
        return list(value)
    return text_of(value)


def text_of(value: Any) -> str:
    """Text as it is, other values as JSON, and what JSON cannot say as ``str``."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def fill_placeholder(placeholder: ToolResult, decision: Decision) -> tuple[ToolResult, str]:
    """The result of a call that asked by itself, now that people answered; and its status."""
    if isinstance(decision, Respond):
        text, status = text_of(decision.answer), "completed"
    elif isinstance(decision, Reject):
        text, status = f"A person declined to answer. {decision.message}".strip(), "rejected"
    else:
        text, status = "A person approved.", "completed"
    return replace(placeholder, content=text, is_interrupt=False), status


def checked_decisions(
    interrupt: Interrupt, given: Decisions, tools: Mapping[str, Tool]
) -> dict[str, Decision]:
    """``given`` validated against the interrupt and the tools, by ``tool_call_id``.

    Raises :class:`~sagents_nb.errors.InvalidDecision`; nothing has changed then.
    """
    decisions = decisions_for(interrupt, given)
    for request in interrupt.action_requests:
        decision = decisions[request.tool_call_id]
        tool = tools.get(request.tool_name)
        if isinstance(decision, Edit) and tool is not None:
            try:
                tool.arguments.check(decision.arguments)
            except ValueError as error:
                raise InvalidDecision(
                    f"The edited arguments do not fit {request.tool_name}: {error}"
                ) from None
    return decisions
