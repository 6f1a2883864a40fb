"""Agents as a service: agencies of them, over HTTP, over a socket and in Python.

It needs ``pip install 'sagents-nb[hub]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .agencies import Agency
    from .blueprints import Blueprint
    from .hub import Hub
    from .records import ThreadRecord
    from .schedules import Schedule
    from .system import AgentSystem
    from .threads import Thread

_HOMES = {
    "Agency": "agencies",
    "AgentSystem": "system",
    "Blueprint": "blueprints",
    "Hub": "hub",
    "Schedule": "schedules",
    "Thread": "threads",
    "ThreadRecord": "records",
}

__all__ = ["Agency", "AgentSystem", "Blueprint", "Hub", "Schedule", "Thread", "ThreadRecord"]

__getattr__ = face(__name__, _HOMES)
