"""Where a run waits for people: their questions as one interrupt, their answers checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from .errors import InvalidDecision
from .interrupts import (
    Decision,
    Decisions,
    Edit,
    Interrupt,
    Reject,
    Respond,
    decisions_for,
    digest_of,
)
from .invoke import text_of
from .messages import ToolResult
from .middleware.base import Chain
from .tools import Tool


def joined(interrupts: Sequence[Interrupt], session_id: str, epoch: int) -> Interrupt:
    """Several interrupts of one turn as one, every request bound to session and epoch."""
    bound = [_bound(interrupt, session_id, epoch) for interrupt in interrupts]
    first, types = bound[0], {interrupt.type for interrupt in bound}
    requests = tuple(request for interrupt in bound for request in interrupt.action_requests)
    halt = next((interrupt for interrupt in bound if interrupt.type == "halt"), None)
    return Interrupt(
        # A halt beats all others: nothing goes on before a person says so.
        type="halt" if halt else first.type if len(types) == 1 else "multiple",
        action_requests=requests,
        message=(halt or first).message,
        data=(halt or first).data if halt or len(bound) == 1 else {},
        id=digest_of(session_id, epoch, "interrupt", first.type, [r.digest for r in requests])[:16],
        parts=tuple(bound) if len(bound) > 1 else (),
    )


def _bound(interrupt: Interrupt, session_id: str, epoch: int) -> Interrupt:
    requests = tuple(
        replace(r, digest=digest_of(session_id, epoch, r.tool_call_id, r.tool_name, r.arguments))
        for r in interrupt.action_requests
    )
    return replace(interrupt, action_requests=requests)


def checked_decisions(
    interrupt: Interrupt, given: Decisions, tools: Mapping[str, Tool], chain: Chain
) -> dict[str, Decision]:
    """``given`` validated against the interrupt, the tools and the middleware, by call id.

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
    for part in interrupt.parts or (interrupt,):
        named = {i: decisions[i] for i in part.tool_call_ids if i in decisions}
        if named:
            chain.check_decisions(part, named)
    return decisions


def filled(placeholder: ToolResult, decision: Decision) -> tuple[ToolResult, str]:
    """The result of a call that asked by itself, now that people answered; and its status."""
    if isinstance(decision, Respond):
        text, status = text_of(decision.answer), "completed"
    elif isinstance(decision, Reject):
        text, status = f"A person declined to answer. {decision.message}".strip(), "rejected"
    else:
        text, status = "A person approved.", "completed"
    return replace(placeholder, content=text, is_interrupt=False), status
