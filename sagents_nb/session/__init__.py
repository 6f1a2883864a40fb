"""Live conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .registry import Sessions, sessions
    from .run import Run
    from .session import Session

__all__ = ["Run", "Session", "Sessions", "sessions"]

_HOME = {"Run": "run", "Session": "session", "Sessions": "registry", "sessions": "registry"}

__getattr__ = face(__name__, _HOME)
