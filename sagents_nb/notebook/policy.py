"""Who decides where nobody can click: nbval, nbclient, papermill."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..interrupts import Approve, Interrupt, Reject

DENIED = "Nobody was there to decide, so the policy for unattended runs denied it."


def unattended(shell: Any) -> bool:
    """Whether nobody can click: nbclient, nbval and papermill run cells without stdin."""
    kernel = getattr(shell, "kernel", None)
    return kernel is None or not getattr(kernel, "_allow_stdin", False)


def decide(policy: Any, interrupt: Interrupt) -> list[Any]:
    """One decision per waiting call.

    ``policy`` is "deny", "approve", or a list of decisions that is used up from its front;
    once it is empty, the rest is denied. Raises ConfigurationError for any other policy.
    """
    count = len(interrupt.action_requests)
    if policy == "approve":
        return [Approve()] * count
    if policy == "deny":
        return [Reject(DENIED)] * count
    if isinstance(policy, list):
        taken, policy[:count] = policy[:count], []
        return [*taken, *([Reject(DENIED)] * (count - len(taken)))]
    raise ConfigurationError(
        f"headless is 'deny', 'approve' or a list of decisions, not {policy!r}."
    )
