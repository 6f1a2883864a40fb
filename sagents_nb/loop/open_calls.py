"""The end of calls that nobody will run: an answer to each, so that any provider goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from ..interrupts import ActionRequest, Interrupt
from ..messages import DECISION, NOT_RUN, Message, ToolCall, ToolResult
from ..state import State
from .config import Unfinished

# Why a call was not run that has the id of one before it in the same message.
TWIN = "twin"

# What people may answer where it is not known whether a call ran.
RAN, DID_NOT_RUN, RETRY = DOUBT_ANSWERS = ("ran", "did not run", "retry")

_NOTHING = Unfinished()


def open_calls(state: State) -> list[ToolCall]:
    """The calls at the end of the history that have no result yet."""
    messages = state.messages
    if not messages or messages[-1].role != "assistant":
        return []
    return messages[-1].tool_calls


def doubtful_calls(interrupt: Interrupt | None) -> frozenset[str]:
    """The ids of the calls of which ``interrupt`` asks whether they ran."""
    if interrupt is None:
        return frozenset()
    parts = interrupt.parts or (interrupt,)
    return frozenset(i for part in parts if part.type == "in_doubt" for i in part.tool_call_ids)


def in_doubt(calls: Iterable[ToolCall]) -> Interrupt:
    """The question whether these calls, which had started before a crash, ran."""
    choice = ", ".join(f"{answer!r}" for answer in DOUBT_ANSWERS)
    requests = tuple(
        ActionRequest(call.id, call.name, call.arguments, None, ("respond",)) for call in calls
    )
    names = ", ".join(request.tool_name for request in requests)
    message = (
        f"The process ended when this had begun: {names}. Look whether it ran, and say {choice}."
    )
    return Interrupt("in_doubt", requests, message)


def closing_message(
    state: State,
    reason: str,
    unfinished: Unfinished | None = None,
    decided: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> Message | None:
    """What answers the calls that have no result; None if there are none.

    Results that are known from before a crash are used, and of a call that may have run it is
    said so. ``decided`` is what people said of these calls, by id.
    """
    if not (calls := open_calls(state)):
        return None
    known = unfinished or _NOTHING
    doubtful = known.doubtful | doubtful_calls(state.interrupt)

    def result_of(call: ToolCall) -> ToolResult:
        if call.id in known.results:
            return known.results[call.id]
        lost = call.id in doubtful
        return with_decision(lost_result(call) if lost else cancelled_result(call, reason), decided)

    return Message.tool(map(result_of, calls))


def with_decision(result: ToolResult, decided: Mapping[str, dict[str, Any]]) -> ToolResult:
    """``result`` with what people said of its call, if they did."""
    said = decided.get(result.tool_call_id)
    return replace(result, metadata={**result.metadata, DECISION: said}) if said else result


def placeholders(state: State) -> list[ToolResult]:
    """The results that stand for what people have not answered yet."""
    return [r for message in state.messages for r in message.tool_results if r.is_interrupt]


def given_up(before: State, after: State) -> list[ToolResult]:
    """The results that :meth:`State.clean_stale_interrupts` has put in place of those."""
    if after.messages is before.messages:
        return []
    pairs = zip(before.messages, after.messages, strict=True)
    changed = [
        zip(old.tool_results, new.tool_results, strict=True) for old, new in pairs if old is not new
    ]
    return [new for results in changed for old, new in results if old is not new]


def end_of(result: ToolResult, status: str) -> dict[str, Any]:
    """What ``tool_execution_end`` tells of a call whose result comes from no body."""
    return {
        "tool_call_id": result.tool_call_id,
        "tool_name": result.name,
        "result": result,
        "status": status,
    }


LEFT_BEHIND = "the run was cancelled; its function may go on in its thread"
"""Why a call has no result whose thread nobody can end, unless it asks ``ctx.cancelled``."""


def cancelled_result(call: ToolCall, reason: str = "the run was cancelled") -> ToolResult:
    """The result of a call that will not be run, or whose end nobody waits for."""
    cancelled = {NOT_RUN: "cancelled"}
    return ToolResult(
        call.id, call.name, f"Cancelled: {reason}.", is_error=True, metadata=cancelled
    )


def unanswered_result(placeholder: ToolResult, reason: str) -> ToolResult:
    """The result of a call that asks people, of whom nobody can answer it any more."""
    return replace(
        placeholder,
        content=f"Cancelled: {reason}.",
        is_error=True,
        is_interrupt=False,
        metadata={**placeholder.metadata, NOT_RUN: "cancelled"},
    )


def lost_result(call: ToolCall) -> ToolResult:
    """The result of a call that a crash cut off, of which nobody said whether it ran."""
    text = "It is not known whether this call ran: its process ended meanwhile. Look before you"
    cancelled = {NOT_RUN: "cancelled"}
    return ToolResult(
        call.id, call.name, f"{text} call it again.", is_error=True, metadata=cancelled
    )
