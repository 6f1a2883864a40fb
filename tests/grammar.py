"""In which order the events of a run may come."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sagents_nb.events import Event, ToolExecutionEnd, ToolExecutionStart

LETTERS = {
    "agent_start": "A",
    "turn_start": "T",
    "message_start": "m",
    "message_update": "u",
    "message_end": "M",
    "token_usage": "k",
    "tool_execution_start": "s",
    "tool_execution_update": "p",
    "tool_execution_end": "e",
    "todos_updated": "d",
    "turn_end": "t",
    "interrupt": "i",
    "agent_end": "Z",
}

# A turn: what people said, what the model said, its tools with their results, its end.
# What was said to a run that ended before it could listen is kept at its end, and a question that
# was cancelled before it was asked ends there.
RUN = re.compile("A (T(mM)* (mu*Mk?)? [spe]* (mM)? d? t i?)* (mM|e)* i? Z".replace(" ", ""))


def ungrammatical(events: Iterable[Event], asked: set[str] | None = None) -> str:
    """What is wrong with the events of one run; "" if nothing is.

    ``asked`` holds the calls that ended as "interrupted" in the runs before, since those end
    once more, with the answer.
    """
    told = [event for event in events if event.type in LETTERS]
    text = "".join(LETTERS[event.type] for event in told)
    if not RUN.fullmatch(text):
        return text
    numbers = [event.seq for event in told]
    if numbers != sorted(set(numbers)):
        return f"sequence {numbers}"
    asked = set() if asked is None else asked
    running: set[str] = set()
    for event in told:
        if isinstance(event, ToolExecutionStart):
            running.add(event.tool_call.id)
        elif isinstance(event, ToolExecutionEnd):
            if event.tool_call_id not in running | asked:
                return f"{event.tool_call_id} ends and never began"
            (running if event.tool_call_id in running else asked).discard(event.tool_call_id)
            if event.status == "interrupted":
                asked.add(event.tool_call_id)
    return f"{running} never end" if running else ""
