"""The tool calls of one turn, made ready: nothing runs yet.

In call order each is looked up, its arguments are checked, the hooks are asked, and what people
decided is heeded. What stands in its way is its answer, or an interrupt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .closing import NOT_RUN
from .context import RunContext
from .interrupts import ActionRequest, Approve, Decision, Edit, Interrupt, Reject, Respond
from .invoke import text_of
from .messages import Message, ToolCall, ToolResult
from .middleware.chain import Chain
from .tools import Tool


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
        if batch and any(
            call.id == other.call.id for other in batch
        ):  # a decision names a call by its id
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
