"""Messages between agents, sessions and processes: by subjects, in one process or over NATS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .base import Bus, BusMessage, Subscription
    from .local import LocalBus
    from .nats import NatsBus

_MODULES = {
    "Bus": "base",
    "BusMessage": "base",
    "LocalBus": "local",
    "NatsBus": "nats",
    "Subscription": "base",
}

__all__ = ["Bus", "BusMessage", "LocalBus", "NatsBus", "Subscription"]

__getattr__ = face(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_MODULES))
