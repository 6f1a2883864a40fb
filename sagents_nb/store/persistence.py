"""What a session needs of whatever keeps its state and its transcript.

A scoped store is both; an application may bring its own. Each method may be sync or async. A
method that raises stops nothing: the session logs it, tells it and tries again later. The
scope comes first and is never part of what is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Literal, Protocol

from ..messages import Message
from .display import DisplayMessage, Row

Lifecycle = Literal[
    "on_completion",
    "on_error",
    "on_interrupt",
    "on_cancel",
    "on_title_generated",
    "on_shutdown",
]
"""Why a state is kept: a run ended (also by a pause), failed, waits for people or was
cancelled; the conversation has a title; the session ends."""


class AgentPersistence(Protocol):
    """Keeps the state of a conversation."""

    def save_state(
        self, scope: Any, conversation_id: str, exported: dict[str, Any], context: Lifecycle
    ) -> Awaitable[None] | None:
        """Keep ``exported``, what ``State.export()`` gives, instead of what was kept before."""

    def load_state(
        self, scope: Any, conversation_id: str
    ) -> Awaitable[dict[str, Any] | None] | dict[str, Any] | None:
        """What was kept, or None."""


class DisplayMessagePersistence(Protocol):
    """Keeps what people see of a conversation."""

    def save_message(
        self, scope: Any, conversation_id: str, message: Message
    ) -> Awaitable[Sequence[DisplayMessage]] | Sequence[DisplayMessage]:
        """Keep a finished message; the rows that it became, in order."""

    def save_row(
        self, scope: Any, conversation_id: str, row: Row
    ) -> Awaitable[DisplayMessage] | DisplayMessage:
        """Keep what no message says: that a run failed, or was cancelled."""

    def update_tool_status(
        self,
        scope: Any,
        conversation_id: str,
        tool_call_id: str,
        status: str,
        info: dict[str, Any],
    ) -> Awaitable[DisplayMessage | None] | DisplayMessage | None:
        """A tool call is "executing", "completed", "failed", "interrupted" or "cancelled" now.

        ``info`` goes into the metadata of its row. Gives the changed row, or None if there is
        none that could have become so.
        """

    def record_decision(
        self,
        scope: Any,
        conversation_id: str,
        tool_call_id: str,
        decision: str,
        said: dict[str, Any],
    ) -> Awaitable[DisplayMessage | None] | DisplayMessage | None:
        """Somebody "approved", "rejected" or "answered" a call; the changed row, or None.

        ``said`` has the whole "decision", who made it ("by") and when ("at", seconds).
        """

    def resolve_tool_result(
        self, scope: Any, conversation_id: str, tool_call_id: str, content: str
    ) -> Awaitable[DisplayMessage | None] | DisplayMessage | None:
        """A call that was interrupted has its result; the changed row, or None."""
