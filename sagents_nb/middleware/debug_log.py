"""What happens in a session, as a text file that people read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from .. import kinds
from ..context import RunContext
from ..events import (
    AgentEnd,
    AgentStart,
    DecisionMade,
    Event,
    Interrupt,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SubagentEvent,
    TodosUpdated,
    TokenUsage,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from ..messages import Message, TextPart, ThinkingPart, ToolCall
from ..models.providers.history import json_text
from ..redaction import KEY, redacted, texts_in, without
from ..state import to_data
from ..text import digest, logger_of, visible, whole
from .base import Middleware

logger = logger_of(__name__)

_LONGEST = 2_000  # characters of one text
_SHARED = {*Event.__struct_fields__, "type"}


class DebugLog(Middleware):
    """Writes one file per session into ``directory``: a line or a short block per event.

    A file is called after its session and is only ever added to, at the end of each turn and
    run; only its owner may read it. The pieces of streamed messages are left out. What is
    in the agent's ``tool_context`` and what looks like a key is replaced by ``[key]``, long
    texts are shortened, and control characters are written out. A file that cannot be
    written is given up with one warning. ``enabled=False`` writes nothing.

    >>> import tempfile
    >>> from sagents_nb import Agent, DebugLog, ScriptedModel, Session
    >>> log = DebugLog(tempfile.mkdtemp())
    >>> session = Session(Agent(ScriptedModel(["Hello!"]), middleware=[log]), id="trip")
    >>> _ = session.send("hi").result()
    >>> log.path("trip").name, "Hello!" in log.path("trip").read_text()
    ('trip.log', True)
    """

    @kinds.checked
    def __init__(self, directory: str | Path = ".sagents/logs", enabled: bool = True) -> None:
        self.directory = Path(directory).absolute()  # the notebook may change its own later
        self.enabled = enabled
        self._lines: dict[str, list[str]] = {}  # what is not yet written, of sessions that run
        self._given_up: set[str] = set()

    def on_event(self, event: Event, ctx: RunContext) -> None:
        """Note the event."""
        if not self.enabled or _is_piece(event):
            return
        kind = type(event)
        session_id = event.session_id
        lines = self._lines.get(session_id)
        running = lines is not None or kind is AgentStart
        if lines is None:
            lines = self._lines[session_id] = []
        # The values first: of one that looks like a key in part, nothing may be left over.
        text = redacted(without(_block(event), texts_in(ctx.values), KEY))
        lines.append(visible(text))
        if kind is AgentEnd or not running:
            self._write(session_id, self._lines.pop(session_id))
        elif kind is TurnEnd:
            self._write(session_id, lines)
            lines.clear()

    @kinds.checked
    def path(self, session_id: str) -> Path:
        """The file of the session ``session_id``."""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", session_id)[:80].lstrip(".") or "session"
        if name != session_id:  # two ids must not share a file
            name = f"{name}-{digest(session_id)[:8]}"
        return self.directory / f"{name}.log"

    def _write(self, session_id: str, lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if session_id in self._given_up:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            path = self.path(session_id)
            with open(path, "a", encoding="utf-8", opener=_private) as file:
                file.write(whole(text))
        except OSError as error:
            self._given_up.add(session_id)
            logger.warning("The debug log of session %r is not written: %s", session_id, error)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_piece(event: Event) -> bool:
    """Whether it is a part of a message that will be told as a whole."""
    while isinstance(event, SubagentEvent):
        event = event.event
    return isinstance(event, MessageUpdate | MessageStart)


def _block(event: Event) -> str:
    """The event as a line with its time, number and type, and what more it says indented."""
    time = datetime.fromtimestamp(event.ts).astimezone().isoformat(" ", "milliseconds")
    first, *more = _summary(event).splitlines() or [""]
    head = f"{time} #{event.seq} {event.type} {first}".rstrip()
    return "\n".join([head, *(f"    {line}" for line in more)])


def _summary(event: Event) -> str:
    """The essentials of the event."""
    if isinstance(event, MessageEnd):
        return _message(event.message)
    if isinstance(event, ToolExecutionStart):
        return _call(event.tool_call)
    if isinstance(event, ToolExecutionEnd):
        head = f"{event.tool_name} {event.tool_call_id} {event.status} in {event.duration:.3f} s"
        return f"{head}\n{_short(event.result.text)}"
    if isinstance(event, TokenUsage):
        used = event.usage
        cached = f", cache {used.cache_read_tokens} read {used.cache_write_tokens} written"
        return f"{event.model} {used.input_tokens} in {used.output_tokens} out{cached}"
    if isinstance(event, TodosUpdated):
        return "\n".join(["", *(f"{t.id}. [{t.status}] {_short(t.content)}" for t in event.todos)])
    if isinstance(event, Interrupt):
        asked = event.interrupt
        calls = (
            f"{request.tool_name} {request.tool_call_id} {_short(json_text(request.arguments))}"
            for request in asked.action_requests
        )
        return "\n".join([f"{asked.type} {_short(asked.message or '')}", *calls])
    if isinstance(event, DecisionMade):
        return f"{event.tool_call_id} {_short(json_text(event.decision))} by {event.by}"
    if isinstance(event, SubagentEvent):
        return f"{event.sub_agent_id} {event.event.type} {_summary(event.event)}"
    if isinstance(event, TurnEnd):
        return ""
    if isinstance(event, AgentEnd):
        error = f": {_short(event.error)}" if event.error else ""
        return f"{event.status}, {len(event.messages)} new messages{error}"
    return _fields(event)


def _message(message: Message) -> str:
    lines = [f"{message.role} {message.stop_reason or ''}".rstrip()]
    for part in message.parts:
        if isinstance(part, TextPart):
            lines.append(_short(part.text))
        elif isinstance(part, ThinkingPart):
            lines.append(f"(thinks) {_short(part.text)}")
        elif isinstance(part, ToolCall):
            lines.append(f"calls {_call(part)}")
    if message.error:
        lines.append(f"error: {_short(message.error)}")
    return "\n".join(lines)


def _call(call: ToolCall) -> str:
    error = f" unreadable: {_short(call.error)}" if call.error else ""
    return f"{call.name} {call.id} {_short(json_text(call.arguments))}{error}"


def _fields(event: Event) -> str:
    """Any other event: what it has beyond what all have."""
    data = to_data(event)
    return " ".join(
        f"{name}={_short(json_text(value))}" for name, value in data.items() if name not in _SHARED
    )


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {len(text) - _LONGEST:,} more characters"
