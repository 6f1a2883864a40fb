"""What becomes of the answers people gave: they take the place of what waited for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from .closing import DID_NOT_RUN, NOT_RUN, RAN
from .context import RunContext
from .errors import AgentError, InvalidDecision
from .events import ToolExecutionEnd
from .interrupts import Decision, Interrupt, Reject, Respond
from .invoke import text_of
from .messages import ToolCall, ToolResult
from .middleware.chain import Chain
from .state import State


async def answered(
    interrupt: Interrupt, decisions: Mapping[str, Decision], chain: Chain, ctx: RunContext
) -> tuple[list[Interrupt], AgentError | None]:
    """Put the answers into ``ctx.state``: middleware first, else in the place of the question.

    Gives what still waits, and the first error: what a middleware could not take waits on,
    and what the others made of their answers is kept.
    """
    waiting: list[Interrupt] = []
    failed: AgentError | None = None
    for part in interrupt.parts or (interrupt,):
        mine = {i: decisions[i] for i in part.tool_call_ids}
        try:
            outcome = await chain.handle_resume(part, mine, ctx.state, ctx)
            if isinstance(outcome, State):
                _adopt(outcome, ctx)
            elif isinstance(outcome, Interrupt):
                waiting.append(outcome)
            else:
                _fill(part, mine, ctx)
        except AgentError as error:
            waiting.append(part)
            failed = failed or error
    return waiting, failed


def _adopt(state: State, ctx: RunContext) -> None:
    """Take over a state in which a middleware answered its placeholders, and say so."""
    before = {r.tool_call_id: r for r in _last_results(ctx.state)}
    ctx.state = state
    for result in _last_results(state):
        if before.get(result.tool_call_id) != result:
            _tell(result, "failed" if result.is_error else "completed", ctx)


def _fill(interrupt: Interrupt, decisions: Mapping[str, Decision], ctx: RunContext) -> None:
    placeholders = {r.tool_call_id: r for r in _last_results(ctx.state) if r.is_interrupt}
    unclaimed = [i for i in decisions if i not in placeholders]
    if unclaimed:
        raise InvalidDecision(
            f"No middleware took the decision on {unclaimed[0]!r}; the one that raised this "
            f"{interrupt.type} interrupt needs a handle_resume."
        )
    for call_id, decision in decisions.items():
        result, status = _filled(placeholders[call_id], decision)
        ctx.state = ctx.state.replace_tool_result(call_id, result)
        _tell(result, status, ctx)


def _filled(placeholder: ToolResult, decision: Decision) -> tuple[ToolResult, str]:
    """The result of a call that asked by itself, now that people answered; and its status."""
    if isinstance(decision, Respond):
        text, status = text_of(decision.answer), "completed"
    elif isinstance(decision, Reject):
        text, status = f"A person declined to answer. {decision.message}".strip(), "rejected"
    else:
        text, status = "A person approved.", "completed"
    metadata = {NOT_RUN: status} if status == "rejected" else {}
    return replace(placeholder, content=text, is_interrupt=False, metadata=metadata), status


def _last_results(state: State) -> Sequence[ToolResult]:
    return state.messages[-1].tool_results if state.messages else ()


def _tell(result: ToolResult, status: str, ctx: RunContext) -> None:
    ctx.publish(
        ToolExecutionEnd,
        tool_call_id=result.tool_call_id,
        tool_name=result.name,
        result=result,
        status=status,
    )


def confirmed(call: ToolCall, decision: Decision) -> ToolResult | None:
    """The result of a call in doubt, by what a person said of it; None to run it again."""
    answer = decision.answer if isinstance(decision, Respond) else None
    if answer == RAN:
        text = "A person confirmed that this call ran; its result was lost."
        return ToolResult(call.id, call.name, text)
    if answer == DID_NOT_RUN:
        text = "A person confirmed that this call did not run."
        skipped = {NOT_RUN: "skipped"}
        return ToolResult(call.id, call.name, text, is_error=True, metadata=skipped)
    return None
