"""What can be asked of the hub itself, by whoever operates it."""

from __future__ import annotations

from .call import Call

PROMETHEUS = "text/plain; version=0.0.4"
"""What its text is."""


def metrics(call: Call) -> str:
    """What happened in this process, and what is now, for Prometheus."""
    return call.hub.figures.text()
