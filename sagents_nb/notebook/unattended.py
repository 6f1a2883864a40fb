"""Who decides where nobody can click: nbval, nbclient, papermill."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..interrupts import ActionRequest, Approve, Interrupt, Reject

DENIED = "Nobody was there to decide, so the policy for unattended runs denied it."


def unattended(shell: Any) -> bool:
    """Whether nobody can click: nbclient, nbval and papermill run cells without stdin."""
    kernel = getattr(shell, "kernel", None)
    return kernel is None or not getattr(kernel, "_allow_stdin", False)


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
