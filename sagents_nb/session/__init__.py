"""Live conversations."""

from .registry import Sessions, sessions
from .run import Run
from .session import Session

__all__ = ["Run", "Session", "Sessions", "sessions"]
