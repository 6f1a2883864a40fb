"""What a store knows of a session's conversation from before the session was opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..events import DecisionMade, Event, MessageEnd, TokenUsage, ToolExecutionEnd
from ..frames import Conversation
from ..state import State


def earlier(kept: Conversation, state: State, events: Sequence[Event]) -> Iterator[Event]:
    """The events of ``kept`` that are not among ``events``, about the messages of ``state``."""
    told = {id(event.message) for event in events if isinstance(event, MessageEnd)}
    ended = {event.tool_call_id for event in events if isinstance(event, ToolExecutionEnd)}
    decided = {event.tool_call_id for event in events if isinstance(event, DecisionMade)}
    # One history: the store reads it as it was written, object by object.
    mine = dict(zip(map(id, kept.state.messages), state.messages, strict=False))
    new = False
    for event in kept.events:
        if isinstance(event, MessageEnd):
            message = mine.get(id(event.message))
            new = message is not None and id(message) not in told
            if new and message is not None:
                yield replace(event, message=message)
        elif isinstance(event, TokenUsage):  # of the message before it
            if new:
                yield event
        elif isinstance(event, ToolExecutionEnd):
            if event.tool_call_id not in ended:
                yield event
        elif isinstance(event, DecisionMade) and event.tool_call_id not in decided:
            yield event
