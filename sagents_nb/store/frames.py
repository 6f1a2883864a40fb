"""What frames are made of, from what a store keeps of its conversations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql

from ..errors import ConfigurationError
from ..events import DecisionMade, Event, MessageEnd, TokenUsage, ToolExecutionEnd
from ..frames import Conversation
from ..frames.columns import OF_TASKS
from ..frames.rows import MAKERS
from ..interrupts import Decision
from ..messages import ToolCall, ToolResult
from ..serialization import to_data
from ..state import State, restore_state
from ..text import logger_of
from . import conversations, states
from . import display_rows as rows
from .database.schema import Tables
from .display import DisplayMessage
from .journal import StoredJournal, journals_of

logger = logger_of(__name__)

KINDS = ("messages", "tool_calls", "todos", "usage", "decisions")
"""The kinds of frames that a store can fill; the others are of what only a session knows."""


def check_kind(kind: str) -> None:
    """Raises :class:`~sagents_nb.errors.ConfigurationError` for any that is none of these."""
    if kind not in KINDS:
        known = ", which only a session has" if kind in MAKERS else ""
        raise ConfigurationError(
            f"A store has the frames {', '.join((*KINDS, *OF_TASKS))}, not {kind!r:.40}{known}."
        )


AT_ONCE = 100
"""Of how many conversations all is read in one transaction: nobody waits long for it."""


class Stored(NamedTuple):
    """A conversation as it is in the database."""

    id: str
    journal: StoredJournal
    saved: Any
    shown: list[DisplayMessage]

    def read(self) -> Conversation:
        """What frames are made of.

        Times of messages are those at which they were written to the journal. Where there is none,
        and where the transcript does not know how long a call took, they are missing.
        """
        if (journal := states.folded(self.journal)) is not None:
            folded, at = journal
            state, times = folded.state, [at[seq] for seq in folded.rows.messages]
        else:
            saved = states.checked(self.saved, self.id)
            state, times = State() if saved is None else restore_state(saved), []
        return Conversation(self.id, state, list(_events(state, times, self.shown)))


def ids_of(connection: sql.Connection, tables: Tables, owner: str) -> list[str]:
    """All conversations of the owner, the oldest first; one whose id is damaged is left out."""
    c = tables.conversations.c
    query = sql.select(c.id).where(c.owner == owner).order_by(c.created_at, c.id)
    found: list[Any] = list(connection.execute(query).scalars())
    for id in found:
        if not isinstance(id, str):  # SQLite takes anything
            logger.warning("A conversation with the damaged id %r is in no frame.", id)
    return [id for id in found if isinstance(id, str)]


def stored(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    ids: Sequence[str],
    kind: str | None = None,
) -> list[Stored]:
    """These conversations of the owner, with what frames of that kind need, or of any."""
    kinds = ("begin", "todos") if kind == "todos" else ()
    journals = journals_of(connection, tables, ids, kinds)
    unopened = [id for id, journal in journals.items() if not journal.begun]
    saved = states.saved_of(connection, tables, unopened) if unopened else {}
    shown: dict[str, list[DisplayMessage]] = {}
    if kind not in ("messages", "todos", "usage"):
        for row in rows.load_all(connection, tables, ids):
            shown.setdefault(row.conversation_id, []).append(row)
    return [Stored(id, journals[id], saved.get(id), shown.get(id, [])) for id in ids]


def one(connection: sql.Connection, tables: Tables, owner: str, id: str) -> Stored:
    """The conversation of that id."""
    conversations.get(connection, tables, owner, id)
    return stored(connection, tables, owner, [id])[0]


def _events(state: State, times: list[float], shown: list[DisplayMessage]) -> Iterator[Event]:
    if len(times) != len(state.messages):  # no journal, or a message of it cannot be read
        times = [math.nan] * len(state.messages)
    answered: dict[str, tuple[ToolResult, float]] = {}
    asked: dict[str, list[ToolCall]] = {}  # some models use one id in each turn
    for message, ts in zip(state.messages, times, strict=True):
        yield MessageEnd(message=message, ts=ts)
        if message.usage:
            model = message.metadata.get("model")
            yield TokenUsage(usage=message.usage, model=str(model or ""), ts=ts)
        answered |= {result.tool_call_id: (result, ts) for result in message.tool_results}
        for call in message.tool_calls:
            asked.setdefault(call.id, []).append(call)
    for row in shown:
        call_id = row.content.get("call_id")
        decided = _decided(row) if row.content_type == "tool_call" else None
        if decided and _is_of(row, asked.get(decided.tool_call_id, [])):
            yield decided
        if row.content_type == "tool_call" and str(call_id) in answered:
            result, ts = answered[str(call_id)]
            duration = row.metadata.get("duration")
            yield ToolExecutionEnd(
                tool_call_id=result.tool_call_id,
                tool_name=result.name,
                result=result,
                status=result.status,
                duration=duration if isinstance(duration, int | float) else math.nan,
                ts=ts,
            )


def _is_of(row: DisplayMessage, calls: list[ToolCall]) -> bool:
    """Whether a row is of one of these calls, and of none of another branch that has their id."""
    told = (row.content.get("name"), row.content.get("arguments"))
    return not calls or any(told == (call.name, to_data(call.arguments)) for call in calls)


def _decided(row: DisplayMessage) -> DecisionMade | None:
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
