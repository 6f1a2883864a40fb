"""Who decides where nobody can click: the policy of a session."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..errors import ConfigurationError
from ..interrupts import ActionRequest, Approve, Interrupt, Reject
from ..messages import Message
from ..result import RunResult
from ..state import State

DENIED = "Nobody was there to decide, so the policy for unattended runs denied it."


def decide(policy: Any, interrupt: Interrupt) -> list[Any] | None:
    """One decision per waiting call, or None if only a person can answer one of them.

    ``policy`` is "deny", "approve", or a list of decisions that is used up from its front;
    once it is empty, the rest is denied. What cannot be approved is denied. Raises
    ConfigurationError for any other policy.
    """
    requests = interrupt.action_requests
    decisions: list[Any] = []
    if isinstance(policy, list):
        decisions = policy[: len(requests)]
    elif policy not in ("approve", "deny"):
        raise ConfigurationError(
            f"headless is 'deny', 'approve' or a list of decisions, not {policy!r}."
        )
    rest = [_decision(policy == "approve", request) for request in requests[len(decisions) :]]
    if None in rest:
        return None
    if isinstance(policy, list):
        del policy[: len(decisions)]
    return [*decisions, *rest]


def _decision(approve: bool, request: ActionRequest) -> Any:
    if approve and "approve" in request.allowed_decisions:
        return Approve()
    # Whether a call ran that a crash cut off, say: no policy knows.
    return Reject(DENIED, unattended=True) if "reject" in request.allowed_decisions else None


def joined(before: RunResult | None, result: RunResult) -> RunResult:
    """``result``, with what the run had done before it waited for an answer."""
    if before is not None:
        result.messages = [*_answered(before.messages, result.state), *result.messages]
        result.usage = before.usage + result.usage
        result.duration += before.duration
    return result


def _answered(messages: list[Message], state: State) -> list[Message]:
    """With the answers of people, where something stood for them until they came."""
    waited = [m for m in messages if any(r.is_interrupt for r in m.tool_results)]
    if not waited:
        return messages
    now = {r.tool_call_id: m for m in state.messages for r in m.tool_results}
    found = {id(m): now.get(m.tool_results[0].tool_call_id, m) for m in waited}
    return [found.get(id(m), m) for m in messages]


def closed(messages: list[Message], state: State) -> list[Message]:
    """With what ``state`` answers of the calls that waited at the end of a run."""
    messages = _answered(messages, state)
    if messages and messages[-1].tool_calls:
        for following, message in pairwise(reversed(state.messages)):
            if message == messages[-1] and following.role == "tool":
                return [*messages, following]
    return messages
