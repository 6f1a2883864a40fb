"""What frames are made of, from what a store keeps of its conversations."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import sqlalchemy as sql

from ..errors import ConfigurationError
from ..events import DecisionMade, Event, MessageEnd, TokenUsage, ToolExecutionEnd
from ..frames import Conversation
from ..interrupts import Decision
from ..messages import ToolResult
from ..state import State, restore_state
from . import conversations, states
from . import display_rows as rows
from .database.schema import Tables
from .display import DisplayMessage

KINDS = ("messages", "tool_calls", "todos", "usage", "decisions")
"""The kinds of frames that a store can fill; the others are of what only a session knows."""


def check_kind(kind: str) -> None:
    """Raises :class:`~sagents_nb.errors.ConfigurationError` for any that is none of these."""
    if kind not in KINDS:
        raise ConfigurationError(
            f"A store has the frames {', '.join(KINDS)}, not {kind!r:.40}; ask a session for more."
        )


def kept(connection: sql.Connection, tables: Tables, owner: str) -> list[Conversation]:
    """All conversations of the owner, the oldest first.

    Times of messages are those at which they were written to the journal. Where there is none,
    and where the transcript does not know how long a call took, they are missing.
    """
    found = conversations.listed(connection, tables, owner, 2**31, 0)
    found.sort(key=lambda conversation: (conversation.created_at, conversation.id))
    return [one(connection, tables, owner, conversation.id) for conversation in found]


def one(connection: sql.Connection, tables: Tables, owner: str, id: str) -> Conversation:
    """The conversation of that id."""
    state, times = _state(connection, tables, owner, id)
    shown = rows.load(connection, tables, owner, id)
    return Conversation(id, state, list(_events(state, times, shown)))


def _state(
    connection: sql.Connection, tables: Tables, owner: str, id: str
) -> tuple[State, list[float]]:
    """The state, and when each of its messages was written."""
    journal = states.journaled(connection, tables, id)
    if journal is not None:
        folded, times = journal
        return folded.state, [times[seq] for seq in folded.rows.messages]
    exported = states.load(connection, tables, owner, id)
    return (State() if exported is None else restore_state(exported)), []


def _events(state: State, times: list[float], shown: list[DisplayMessage]) -> Iterator[Event]:
    if len(times) != len(state.messages):  # no journal, or a message of it cannot be read
        times = [math.nan] * len(state.messages)
    answered: dict[str, tuple[ToolResult, float]] = {}
    for message, ts in zip(state.messages, times, strict=True):
        yield MessageEnd(message=message, ts=ts)
        if message.usage:
            model = message.metadata.get("model")
            yield TokenUsage(usage=message.usage, model=str(model or ""), ts=ts)
        answered |= {result.tool_call_id: (result, ts) for result in message.tool_results}
    for row in shown:
        call_id = row.content.get("call_id")
        if row.content_type == "tool_call" and (decided := _decided(row)):
            yield decided
        if row.content_type == "tool_call" and str(call_id) in answered:
            result, ts = answered[str(call_id)]
            duration = row.metadata.get("duration")
            yield ToolExecutionEnd(
                tool_call_id=result.tool_call_id,
                tool_name=result.name,
                result=result,
                status=_status(row),
                duration=duration if isinstance(duration, int | float) else math.nan,
                ts=ts,
            )


def _decided(row: DisplayMessage) -> Event | None:
    try:
        said = msgspec.convert(row.metadata.get("decision"), _Said)
    except msgspec.ValidationError:  # nobody decided, or somebody else's metadata
        return None
    call_id = str(row.content.get("call_id"))
    return DecisionMade(tool_call_id=call_id, decision=said.decision, by=said.by, ts=said.at)


class _Said(msgspec.Struct):
    decision: Decision
    by: str
    at: float


def _status(row: DisplayMessage) -> str:
    return "rejected" if row.metadata.get("hitl_decision") == "rejected" else row.status
