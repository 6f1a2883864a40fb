"""From conversations to the values of each kind's columns, one column after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls import CallRecord, call_records, calls_and_results, edited_arguments
from ..events import (
    AgentEnd,
    AgentStart,
    DecisionMade,
    Event,
    Interrupt,
    MessageEnd,
    MessageStart,
    SubagentEvent,
    TokenUsage,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from ..interrupts import Decision, Edit, Reject
from ..messages import Message, TextPart, ThinkingPart, ToolCall, ToolResult, Usage
from ..serialization import to_data
from ..state import State
from ..text import REPLACEMENT, whole_data

if TYPE_CHECKING:
    from ..files import FileEntry

Values = dict[str, Iterable[Any]]


class Conversation(msgspec.Struct, frozen=True):
    """What frames are made of: the state, and what is known of how it came about.

    ``events`` give times, runs and durations; what they do not cover is missing in the frame.
    A "message_end" is about the message of the state that is the same object.
    """

    session_id: str = ""
    state: State = msgspec.field(default_factory=State)
    events: Sequence[Event] = ()
    files: Iterable[FileEntry] = ()


Conversations = Iterable[Conversation]
"""Gone through once, so that not all of them need be there at once."""
AgentEvent = tuple[str | None, Event]


def unwrapped(events: Iterable[Event]) -> Iterator[AgentEvent]:
    """Every event beside the id of the sub-agent in which it happened, None for the agent."""
    for event in events:
        inside = None
        while type(event) is SubagentEvent:
            inside, event = event.sub_agent_id, event.event
        yield inside, event


def messages(conversations: Conversations) -> Values:
    """The values of "messages"."""
    # A list for each column and no tuple for each row: half the time, a third of the memory. And no
    # message longer than its conversation, of which there may be many.
    whose: list[str] = []
    positions: list[int] = []
    roles: list[str] = []
    texts: list[str] = []
    thoughts: list[str | None] = []
    called: list[int] = []
    reasons: list[str | None] = []
    usages: list[Usage | None] = []
    errors: list[str | None] = []
    runs: list[str | None] = []
    times: list[float | None] = []
    inside: list[str | None] = []
    for c in conversations:
        ended = {id(e.message): e for e in c.events if type(e) is MessageEnd}
        own = c.state.messages
        told: list[tuple[Message, MessageEnd | None]] = [(m, ended.get(id(m))) for m in own]
        positions += range(len(own))
        inside += [None] * len(own)
        said = Counter[str]()
        for who, event in unwrapped(c.events):
            if who is not None and type(event) is MessageEnd:
                told.append((event.message, event))
                positions.append(said[who])
                inside.append(who)
                said[who] += 1
        whose += [c.session_id] * len(told)
        for message, end in told:
            text, thought, calls = _contents(message)
            roles.append(message.role)
            texts.append(text)
            thoughts.append(thought)
            called.append(calls)
            reasons.append(message.stop_reason)
            usages.append(message.usage)
            errors.append(message.error)
            runs.append((end and end.run_id) or None)
            times.append(end.ts if end else None)
    return {
        "session_id": whose,
        "position": positions,
        "role": roles,
        "text": texts,
        "thinking": thoughts,
        "tool_calls": called,
        "stop_reason": reasons,
        **_usage_values(usages),
        "error": errors,
        "sub_agent": inside,
        "run_id": runs,
        "time": times,
    }


def _contents(message: Message) -> tuple[str, str | None, int]:
    """The text, the thinking, and how many tools were called, in one pass."""
    text, thought, calls = "", "", 0
    for part in message.parts:
        kind = type(part)
        if kind is TextPart:
            text += part.text  # type: ignore[union-attr]
        elif kind is ToolCall:
            calls += 1
        elif kind is ToolResult and message.role == "tool":
            text = f"{text}\n{part.text}" if text else part.text  # type: ignore[union-attr]
        elif kind is ThinkingPart:
            thought += part.text  # type: ignore[union-attr]
    return text, thought or None, calls


def _usage_values(usages: Sequence[Usage | None]) -> Values:
    return {name: map(partial(_of_usage, name), usages) for name in Usage.__struct_fields__}


def _of_usage(name: str, usage: Usage | None) -> Any:
    return None if usage is None else getattr(usage, name)


def tool_calls(conversations: Conversations) -> Values:
    """The values of "tool_calls": the conversation's own, then those of sub-agents."""
    calls: list[ToolCall] = []
    said: list[ToolResult | None] = []
    whose: list[str] = []
    inside: list[str | None] = []
    ends: list[ToolExecutionEnd | None] = []
    statuses: list[str | None] = []
    for c in conversations:
        before = len(calls)
        ended: dict[str | None, _Ends] = {None: _Ends()}
        inner: list[tuple[str, ToolCall]] = []
        asked: dict[tuple[str, str], ToolCall] = {}  # of sub-agents, before people changed it
        for who, e in unwrapped(c.events):
            if isinstance(e, ToolExecutionEnd):
                if who not in ended:
                    ended[who] = _Ends()
                if ended[who].setdefault(e.tool_call_id, e) is not e:
                    ended[who].add_another(e)
            elif who is not None and isinstance(e, ToolExecutionStart):
                call = e.tool_call
                inner.append((who, asked.get((who, call.id), call)))
            elif who is not None and isinstance(e, MessageEnd):
                asked |= {(who, call.id): call for call in e.message.tool_calls}
        own_calls, own_said = calls_and_results(c.state.messages)
        calls += own_calls
        said += own_said
        inside += [None] * len(own_calls)
        # Of those with one id, the last were seen.
        seen = ended[None]
        own_ends = [
            seen.taken(call.id, -1) if result else None
            for call, result in zip(reversed(own_calls), reversed(own_said), strict=True)
        ]
        own_ends.reverse()
        ends += own_ends
        for who, call in inner:  # all of which were seen
            end = ended[who].taken(call.id, 0) if who in ended else None
            calls.append(call)
            said.append(end.result if end else None)
            ends.append(end)
            inside.append(who)
        statuses += [None if result is None else result.status for result in said[before:]]
        if interrupt := c.state.interrupt:
            waiting = set(interrupt.tool_call_ids)
            open_ = {id(call) for m in c.state.messages[-1:] for call in m.tool_calls}
            for place, call in enumerate(own_calls, before):
                if id(call) in open_ and call.id in waiting:
                    statuses[place] = "interrupted"
        whose += [c.session_id] * (len(calls) - before)
    results = [None if result is None or result.is_interrupt else result for result in said]
    edits = {
        place: edited
        for place, result in enumerate(said)
        if result
        and result.metadata  # of nearly none
        and (edited := edited_arguments(result)) is not None
    }
    arguments = [_json(call.arguments) for call in calls]
    asked_for: list[str | None] = [None] * len(calls)
    for place, edited in edits.items():
        asked_for[place], arguments[place] = arguments[place], _json(edited)
    return {
        "session_id": whose,
        "tool_call_id": (call.id for call in calls),
        "name": (call.name for call in calls),
        "arguments": arguments,
        "asked": asked_for,
        "status": statuses,
        "result": (r and r.text for r in results),
        "is_error": (r and r.is_error for r in results),
        "duration": (e and e.duration for e in ends),
        "sub_agent": inside,
        "run_id": ((e and e.run_id) or None for e in ends),
        "time": (e and e.ts for e in ends),
    }


class _Ends(dict[str, ToolExecutionEnd | list[ToolExecutionEnd]]):
    """The ends of calls by id, which nearly always is that of one call: then no list is made."""

    def add_another(self, end: ToolExecutionEnd) -> None:
        """Add one to the one or more that are there."""
        before = self[end.tool_call_id]
        ends = before if isinstance(before, list) else [before]
        if ends and ends[-1].status == "interrupted":  # now it went on
            ends.pop()
        ends.append(end)
        self[end.tool_call_id] = ends

    def taken(self, id: str, place: int) -> ToolExecutionEnd | None:
        """The first (0) or last (-1) that was not taken yet."""
        found = self.pop(id, None)
        if isinstance(found, list):
            end = found.pop(place) if found else None
            self[id] = found
            return end
        return found


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):  # a key that is no text, half a character
        return msgspec.json.encode(whole_data(to_data(value), REPLACEMENT)).decode()


def todos(conversations: Conversations) -> Values:
    """The values of "todos"."""
    items = [(c.session_id, todo) for c in conversations for todo in c.state.todos]
    return {
        "session_id": (i[0] for i in items),
        "id": (i[1].id for i in items),
        "content": (i[1].content for i in items),
        "status": (i[1].status for i in items),
    }


def usage(conversations: Conversations) -> Values:
    """The values of "usage", the calls of sub-agents included."""
    items = [
        (c.session_id, who, e)
        for c in conversations
        for who, e in unwrapped(c.events)
        if isinstance(e, TokenUsage)
    ]
    return {
        "session_id": (i[0] for i in items),
        "model": (i[2].model or None for i in items),
        **_usage_values([i[2].usage for i in items]),
        "sub_agent": (i[1] for i in items),
        "run_id": (i[2].run_id or None for i in items),
        "time": (i[2].ts for i in items),
    }


_BEGINNINGS: Mapping[type[Event], type[Event]] = {
    MessageEnd: MessageStart,
    TurnEnd: TurnStart,
    AgentEnd: AgentStart,
}


def events(conversations: Conversations) -> Values:
    """The values of "events", in the order in which they were told."""
    items: list[tuple[str, str | None, Event, float | None]] = []
    for c in conversations:
        began: dict[tuple[str | None, type[Event]], float] = {}
        asked: dict[str, float] = {}
        for who, e in unwrapped(c.events):
            began[who, type(e)] = e.ts
            first = began.get((who, _BEGINNINGS.get(type(e), Event)))
            duration = None if first is None else e.ts - first
            if isinstance(e, ToolExecutionEnd):
                duration = e.duration
            elif isinstance(e, Interrupt):
                asked |= {r.tool_call_id: e.ts for r in e.interrupt.action_requests}
            elif isinstance(e, DecisionMade) and e.tool_call_id in asked:
                duration = e.ts - asked[e.tool_call_id]
            items.append((c.session_id, who, e, duration))
    return {
        "session_id": (i[0] for i in items),
        "seq": (i[2].seq for i in items),
        "type": (i[2].type for i in items),
        "name": (_subject(i[2]) for i in items),
        "tool_call_id": (_call_id(i[2]) for i in items),
        "status": (_status(i[2]) for i in items),
        "duration": (i[3] for i in items),
        "sub_agent": (i[1] for i in items),
        "run_id": (i[2].run_id or None for i in items),
        "time": (i[2].ts for i in items),
    }


def _subject(event: Event) -> str | None:
    if isinstance(event, ToolExecutionStart):
        return event.tool_call.name
    if isinstance(event, MessageStart | MessageEnd):
        return event.message.role
    if isinstance(event, Interrupt):
        return event.interrupt.type
    for name in ("tool_name", "model", "path"):
        if subject := getattr(event, name, None):
            return str(subject)
    return None


def _call_id(event: Event) -> str | None:
    if isinstance(event, ToolExecutionStart):
        return event.tool_call.id
    return getattr(event, "tool_call_id", None)


def _status(event: Event) -> str | None:
    if isinstance(event, DecisionMade):
        return str(event.decision.__struct_config__.tag)
    return getattr(event, "status", None)


def files(conversations: Conversations) -> Values:
    """The values of "files"; directories are none."""
    items = [(c.session_id, f) for c in conversations for f in c.files if not f.is_directory]
    return {
        "session_id": (i[0] for i in items),
        "path": (i[1].path for i in items),
        "title": (i[1].title for i in items),
        "size": (i[1].size for i in items),
        "mime_type": (i[1].mime_type for i in items),
        "sha256": (i[1].sha256 for i in items),
        "modified": (i[1].modified_at for i in items),
    }


def decisions(conversations: Conversations) -> Values:
    """The values of "decisions"."""
    items: list[tuple[str, DecisionMade, str | None, float | None]] = []
    for c in conversations:
        asked: dict[str, tuple[str, float]] = {}
        records = call_records(c.state.messages)
        names = {record.call.id: record.call.name for record in records}
        told = {(e.tool_call_id, e.ts) for _, e in unwrapped(c.events) if type(e) is DecisionMade}
        told_of = {id for id, _ in told}
        for record in records:  # of which only their results tell
            made = _made(record)
            if made is None or (made.tool_call_id, made.ts) in told:
                continue
            if math.isfinite(made.ts) or made.tool_call_id not in told_of:
                items.append((c.session_id, made, record.call.name, None))
        for _, e in unwrapped(c.events):
            if isinstance(e, Interrupt):
                requests = e.interrupt.action_requests
                asked |= {r.tool_call_id: (r.tool_name, e.ts) for r in requests}
            elif isinstance(e, DecisionMade):
                name, since = asked.get(e.tool_call_id, (names.get(e.tool_call_id), None))
                waited = None if since is None else e.ts - since
                items.append((c.session_id, e, name, waited))
    return {
        "session_id": (i[0] for i in items),
        "tool_call_id": (i[1].tool_call_id for i in items),
        "name": (i[2] for i in items),
        "decision": (_status(i[1]) for i in items),
        "message": (_said(i[1].decision) for i in items),
        "by": (i[1].by for i in items),
        "waited": (i[3] for i in items),
        "run_id": (i[1].run_id or None for i in items),
        "time": (i[1].ts for i in items),
    }


def _made(record: CallRecord) -> DecisionMade | None:
    """The decision that the result of a call keeps."""
    data = dict(record.decision or {})
    by, at = str(data.pop("by", "user")), data.pop("at", math.nan)
    if record.edited is not None:
        data["arguments"] = record.edited
    try:
        decision = msgspec.convert(data, Decision)
    except msgspec.ValidationError:  # nobody decided, or somebody else's metadata
        return None
    return DecisionMade(tool_call_id=record.call.id, decision=decision, by=by, ts=at)


def _said(decision: Decision) -> str | None:
    """The reason, the answer or the arguments that came with it, as text."""
    if isinstance(decision, Edit):
        return _json(decision.arguments)
    said = getattr(decision, "message" if isinstance(decision, Reject) else "answer", None)
    return said or None if said is None or isinstance(said, str) else _json(said)


MAKERS: Mapping[str, Callable[[Conversations], Values]] = {
    "messages": messages,
    "tool_calls": tool_calls,
    "todos": todos,
    "usage": usage,
    "events": events,
    "files": files,
    "decisions": decisions,
}
