"""Agents that find each other and work for each other: a registry, and tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .agents import AgentRegistry
    from .cards import AgentCard
    from .delegation import Delegation
    from .functions import TaskContext
    from .task import Task

__all__ = ["AgentCard", "AgentRegistry", "Delegation", "Task", "TaskContext"]

_HOME = {
    "AgentCard": "cards",
    "AgentRegistry": "agents",
    "Delegation": "delegation",
    "Task": "task",
    "TaskContext": "functions",
}

__getattr__ = face(__name__, _HOME)
