"""Parts of the panel on their own."""

from __future__ import annotations

from ..session import Session
from .widget import Panel


def ChatView(session: Session) -> Panel:  # noqa: N802  (reads as the widget it makes)
    """The transcript and the place to type."""
    return Panel(session, "chat")


def TodoView(session: Session) -> Panel:  # noqa: N802
    """The to-do list."""
    return Panel(session, "todos")


def FilesView(session: Session) -> Panel:  # noqa: N802
    """The file browser with its viewer."""
    return Panel(session, "files")


def ApprovalView(session: Session) -> Panel:  # noqa: N802
    """What waits for a decision."""
    return Panel(session, "approvals")
