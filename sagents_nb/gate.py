"""Where a run waits for people: their questions as one interrupt, their decisions checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from .closing import DOUBT_ANSWERS, doubtful_calls
from .errors import InvalidDecision
from .interrupts import (
    Decision,
    Decisions,
    Edit,
    Interrupt,
    Respond,
    decisions_for,
    digest_of,
)
from .middleware.chain import Chain
from .tools import Tool


def joined(interrupts: Sequence[Interrupt], session_id: str, epoch: int) -> Interrupt:
    """Several interrupts of one turn as one, every request bound to session and epoch."""
    bound = [_bound(interrupt, session_id, epoch) for interrupt in interrupts]
    first, types = bound[0], {interrupt.type for interrupt in bound}
    requests = tuple(request for interrupt in bound for request in interrupt.action_requests)
    halt = next((interrupt for interrupt in bound if interrupt.type == "halt"), None)
    if halt is not None:  # it beats all others: nothing of them is asked any more
        requests = ()
    return Interrupt(
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
    if interrupt.type == "halt":
        raise InvalidDecision("A halt takes no decision: dismiss() it, or send a message.")
    decisions = decisions_for(interrupt, given)
    parts = interrupt.parts or (interrupt,)
    # A sub-agent's tools are its own, whatever they are called; its middleware checks them.
    doubtful = doubtful_calls(interrupt)
    elsewhere = {i for part in parts if part.type == "subagent_hitl" for i in part.tool_call_ids}
    for request in interrupt.action_requests:
        decision = decisions[request.tool_call_id]
        if request.tool_call_id in doubtful:
            _check_doubt(request.tool_name, decision)
        tool = None if request.tool_call_id in elsewhere else tools.get(request.tool_name)
        if isinstance(decision, Edit) and tool is not None:
            try:
                tool.arguments.check(decision.arguments)
            except ValueError as error:
                raise InvalidDecision(
                    f"The edited arguments do not fit {request.tool_name}: {error}"
                ) from None
    for part in parts:
        named = {i: decisions[i] for i in part.tool_call_ids if i in decisions}
        if named:
            chain.check_decisions(part, named)
    return decisions


def _check_doubt(tool_name: str, decision: Decision) -> None:
    if not isinstance(decision, Respond) or decision.answer not in DOUBT_ANSWERS:
        known = ", ".join(f"Respond({answer!r})" for answer in DOUBT_ANSWERS)
        raise InvalidDecision(f"It is not known whether {tool_name} ran: answer with {known}.")
