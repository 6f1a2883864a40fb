"""Where a run waits for people: questions as one interrupt, decisions checked and taken."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..context import RunContext
from ..errors import AgentError, InvalidDecision
from ..events import ToolExecutionEnd
from ..interrupts import (
    ActionRequest,
    Decision,
    Decisions,
    Edit,
    Interrupt,
    Reject,
    Respond,
    canonical_json,
    decision_data,
    decisions_for,
    digest_of,
)
from ..messages import DECISION, EDITED, NOT_RUN, Message, ToolCall, ToolResult
from ..middleware.chain import Chain
from ..state import State
from ..text import sha256
from ..tools import Tool
from .open_calls import DID_NOT_RUN, DOUBT_ANSWERS, RAN, doubtful_calls, end_of, open_calls
from .tool_values import text_of


def join_interrupts(interrupts: Sequence[Interrupt], session_id: str, epoch: int) -> Interrupt:
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


def bound_anew(state: State, session_id: str, epoch: int) -> State:
    """``state`` with what waits bound to that session: no approval of another one counts."""
    interrupt = state.interrupt
    if interrupt is None:
        return state
    return state.with_interrupt(join_interrupts(interrupt.parts or [interrupt], session_id, epoch))


def _bound(interrupt: Interrupt, session_id: str, epoch: int) -> Interrupt:
    requests = []
    for request in interrupt.action_requests:
        name, arguments = request.tool_name, copy.deepcopy(request.arguments)  # what is shown stays
        digest = digest_of(session_id, epoch, request.tool_call_id, name, arguments)
        bound = replace(
            request,
            arguments=arguments,
            defaults=copy.deepcopy(request.defaults),
            digest=f"{digest}-{_asked(request)}",
        )
        requests.append(bound)
    return replace(interrupt, action_requests=tuple(requests))


def is_as_shown(request: ActionRequest) -> bool:
    """Whether it asks what it asked when it was bound: its arguments can be changed in place.

    Its digest ends with one of that alone. What an older version has bound is taken to be so.
    """
    _, known, asked = request.digest.partition("-")
    return not known or asked == _asked(request)


def _asked(request: ActionRequest) -> str:
    asked = [request.tool_call_id, request.tool_name, request.arguments]
    return sha256(canonical_json([*asked, request.defaults] if request.defaults else asked))


_ELSEWHERE = ("subagent_hitl", "task")


def check_decisions(
    interrupt: Interrupt, given: Decisions, tools: Mapping[str, Tool], chain: Chain
) -> dict[str, Decision]:
    """``given`` validated against the interrupt, the tools and the middleware, by call id.

    Raises :class:`~sagents_nb.errors.InvalidDecision`; nothing has changed then.
    """
    if interrupt.type == "halt":
        raise InvalidDecision("A halt takes no decision: dismiss() it, or send a message.")
    decisions = decisions_for(interrupt, given)
    parts = interrupt.parts or (interrupt,)
    # Another agent's tools are its own, whatever they are called; the middleware checks them.
    doubtful = doubtful_calls(interrupt)
    elsewhere = {i for part in parts if part.type in _ELSEWHERE for i in part.tool_call_ids}
    for request in interrupt.action_requests:
        decision = decisions[request.tool_call_id]
        if request.tool_call_id in doubtful:
            _check_doubt(request, decision)
        tool = None if request.tool_call_id in elsewhere else tools.get(request.tool_name)
        if isinstance(decision, Edit) and tool is not None:
            try:
                tool.arguments.check(decision.arguments)
            except ValueError as error:
                raise InvalidDecision(
                    f"The edited arguments do not fit {request.tool_name}: {error}",
                    tool_call_id=request.tool_call_id,
                ) from None
    for part in parts:
        named = {i: decisions[i] for i in part.tool_call_ids if i in decisions}
        if named:
            chain.check_decisions(part, named)
    return decisions


def _check_doubt(request: ActionRequest, decision: Decision) -> None:
    if not isinstance(decision, Respond) or decision.answer not in DOUBT_ANSWERS:
        known = ", ".join(f"Respond({answer!r})" for answer in DOUBT_ANSWERS)
        raise InvalidDecision(
            f"It is not known whether {request.tool_name} ran: answer with {known}.",
            tool_call_id=request.tool_call_id,
        )


async def apply_decisions(
    interrupt: Interrupt, decisions: Mapping[str, Decision], chain: Chain, ctx: RunContext
) -> tuple[list[Interrupt], AgentError | None, list[Message]]:
    """Put the answers into ``ctx.state``: middleware first, else in the place of the question.

    Gives what still waits, and the first error: what a middleware could not take waits on,
    and what the others made of their answers is kept. A hook's question has no place; what
    people say to it are the messages that it gives.
    """
    waiting: list[Interrupt] = []
    said: list[Message] = []
    failed: AgentError | None = None
    for part in interrupt.parts or (interrupt,):
        mine = {i: decisions[i] for i in part.tool_call_ids}
        try:
            outcome = await chain.handle_resume(part, mine, ctx.state, ctx)
            if isinstance(outcome, State):
                _adopt(outcome, mine, ctx)
            elif isinstance(outcome, Interrupt):
                waiting.append(outcome)
            elif chain.asks(part):
                said += _said(mine.values(), ctx.state)
            else:
                _fill(part, mine, ctx)
        except AgentError as error:
            waiting.append(part)
            failed = failed or error
    return waiting, failed, said


def _adopt(state: State, decisions: Mapping[str, Decision], ctx: RunContext) -> None:
    """Take over a state in which a middleware answered its placeholders, and say so."""
    before = {r.tool_call_id: r for r in _last_results(ctx.state)}
    ctx.state = state
    for result in _last_results(state):
        placeholder = before.get(result.tool_call_id)
        if placeholder is None or placeholder == result or result.is_interrupt:
            continue
        noted = _noted(result, placeholder, decisions.get(result.tool_call_id), ctx)
        ctx.state = ctx.state.replace_tool_result(noted.tool_call_id, noted)
        ctx.publish(ToolExecutionEnd, **end_of(noted, noted.status))


def _noted(
    result: ToolResult, placeholder: ToolResult, decision: Decision | None, ctx: RunContext
) -> ToolResult:
    """A result with what people decided on its call, also before that asked by itself."""
    known = {key: placeholder.metadata[key] for key in _KEPT if key in placeholder.metadata}
    metadata = {**known, **result.metadata}
    if decision is not None:
        metadata[DECISION] = ctx.decided.get(result.tool_call_id) or decision_data(decision)
        if isinstance(decision, Reject):
            metadata[NOT_RUN] = "rejected"
    return replace(result, metadata=metadata)


_KEPT = (EDITED, DECISION)


def _fill(interrupt: Interrupt, decisions: Mapping[str, Decision], ctx: RunContext) -> None:
    placeholders = {r.tool_call_id: r for r in _last_results(ctx.state) if r.is_interrupt}
    unclaimed = [i for i in decisions if i not in placeholders]
    if unclaimed:
        raise InvalidDecision(
            f"No middleware took the decision on {unclaimed[0]!r}; the one that raised this "
            f"{interrupt.type} interrupt needs a handle_resume."
        )
    for call_id, decision in decisions.items():
        placeholder = placeholders[call_id]
        result = _noted(_filled(placeholder, decision), placeholder, decision, ctx)
        ctx.state = ctx.state.replace_tool_result(call_id, result)
        ctx.publish(ToolExecutionEnd, **end_of(result, result.status))


def _said(decisions: Iterable[Decision], state: State) -> Iterator[Message]:
    """The answers to a hook's question as messages; "yes" to calls that wait needs none."""
    for decision in decisions:
        if isinstance(decision, Respond):
            yield Message.user(text_of(decision.answer))
        elif isinstance(decision, Reject):
            yield Message.user(f"No. {decision.message}".strip())
        elif not open_calls(state):
            yield Message.user("Yes.")


def _filled(placeholder: ToolResult, decision: Decision) -> ToolResult:
    """The result of a call that asked by itself, now that people answered."""
    if isinstance(decision, Respond):
        text = text_of(decision.answer)
    elif isinstance(decision, Reject):
        text = f"A person declined to answer. {decision.message}".strip()
    else:
        text = "A person approved."
    return replace(placeholder, content=text, is_interrupt=False, metadata={})


def _last_results(state: State) -> Sequence[ToolResult]:
    return state.messages[-1].tool_results if state.messages else ()


def confirmed_result(call: ToolCall, decision: Decision) -> ToolResult | None:
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
