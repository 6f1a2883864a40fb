"""The kernel's side of ``widgets/PROTOCOL.md``: wire forms, merging, and the view state.

Pure functions and one reducer; nothing here knows what carries a message.
``tests/fixtures/protocol`` holds the golden examples that this file and
``widgets/src/protocol.ts`` both follow.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from ..events import (
    Event,
    MessageEnd,
    MessageQueued,
    MessageStart,
    MessageUpdate,
    MessageWithdrawn,
    SubagentEvent,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from ..kinds import HALF_CHARACTER
from ..messages import (
    BRANCH,
    DECISION,
    DECLINED,
    DEFAULTS,
    EDITED,
    NOT_RUN,
    SHOWN_IN_CELL,
    Delta,
    Message,
    ToolCall,
    ToolCallDelta,
)
from ..serialization import encoded
from ..state import to_data
from ..text import carried
from ..tools import Tool

SHOWN_ENTRIES = 200
SHOWN_OF_SUB_AGENTS = 30  # entries of each
SHOWN_SUB_AGENTS = 20  # of a snapshot, the newest
BRIEF = 2_000  # characters of a result in a sub-agent
SHORTENED_AT = 20_000
SHOWN_IMAGES = 4
LARGEST_IMAGE = 512 * 1024  # characters of base64
ATTACHED_IMAGES = 2 * 1024 * 1024  # characters of base64, of all images of a message
SNAPSHOT_IMAGES = 4 * 1024 * 1024  # of all images together, the newest first
_EXACT = 2**53 - 1  # up to here a page knows each integer

# Of which events a page takes the time, and the run.
_DATED = {"agent_start", "message_end", "agent_end"}
_QUEUE = {"message_queued", "message_withdrawn"}
_OF_A_RUN = {*_DATED, *_QUEUE, "message_start", "message_update", "interrupt"}
# What the wire leaves out because another event says it, or no page asks.
_LEFT_OUT = {
    "tool_execution_end": ("result",),
    "turn_end": ("message", "tool_results"),
    "agent_end": ("messages",),
    "status_changed": ("previous",),
}
# The field of a message's part that its deltas have said.
_STREAMED = {"text": "text", "thinking": "text", "tool_call": "arguments"}


def travels(event: Event) -> bool:
    """Whether a page knows anything else after that event."""
    if isinstance(event, SubagentEvent):
        return event.event.type in _OF_SUB_AGENTS and travels(event.event)
    if isinstance(event, MessageStart):
        return event.message.role == "assistant"
    return event.type in REDUCERS


def wire(event: Event, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """An event as it travels to pages that have that view state, as far as it matters."""
    if isinstance(event, SubagentEvent):
        call_id = event.tool_call_id
        inner = wire(event.event, _agent(state, call_id) if state else None)
        if "message" in inner:
            inner["message"] = _brief(inner["message"])
        return {"type": event.type, "seq": event.seq, "tool_call_id": call_id, "event": inner}
    if isinstance(event, MessageStart):
        event = replace(event, message=Message(event.message.role))
    elif isinstance(event, MessageEnd | MessageQueued | MessageWithdrawn):
        event = replace(event, message=shown(event.message))
    elif isinstance(event, ToolExecutionStart):
        event = replace(event, tool_call=ToolCall(event.tool_call.id, event.tool_call.name))
    data: dict[str, Any] = to_data(event)
    data.pop("session_id", None)
    if isinstance(event, ToolExecutionEnd) and event.result.metadata.get(DECLINED) is True:
        data["status"] = DECLINED
    if state and _answers(state, event):  # and no message comes that says what the answer is
        data["answer"] = shortened(data["result"])
    for name in _LEFT_OUT.get(data["type"], ()):
        data.pop(name, None)
    if data["type"] not in _DATED:
        data.pop("ts", None)
    if data["type"] not in _OF_A_RUN:
        data.pop("run_id", None)
    if data["type"] == "message_end":
        data["message"] = _unsaid(shortened_message(data["message"]), state and state["partial"])
    elif data["type"] in _QUEUE:
        data["text"] = queued_text(data.pop("message"))
    elif data["type"] == "file_updated":
        data["entry"] = file_data(data.get("entry") or {"path": data["path"]})
    elif data["type"] == "interrupt":
        data["interrupt"] = interrupt_data(data["interrupt"])
    return data


def _brief(message: dict[str, Any]) -> dict[str, Any]:
    """A message of a sub-agent: of its results the beginnings only, and no images."""
    parts = []
    for part in message.get("parts", ()):
        if part["type"] == "tool_result":
            part = {name: value for name, value in part.items() if name != "images"}
            content = part["content"]
            if len(content) > BRIEF:
                length = part.get("shortened", len(content))
                part = {**part, "content": content[:BRIEF], "shortened": length}
        parts.append(part)
    return {**message, "parts": parts} if parts else message


def shown(message: Message) -> Message:
    """What people see of it, which says of which branches it is the first message."""
    seen, branch = message.shown, message.metadata.get(BRANCH)
    if seen is message or branch is None:
        return seen
    return replace(seen, metadata={**seen.metadata, BRANCH: branch})


def _unsaid(message: dict[str, Any], partial: dict[str, Any] | None) -> dict[str, Any]:
    """A message whose parts say by ``streamed`` which one of ``partial`` has their text."""
    if message["role"] != "assistant" or partial is None or "parts" not in message:
        return message
    written = partial["parts"]
    parts, left = [], 0
    for part in message["parts"]:
        alike = (n for n in range(left, len(written)) if written[n]["type"] == part["type"])
        place = next(alike, None)
        if place is not None and (field := _STREAMED[part["type"]]) in part:
            left = place + 1
            if _same(part[field], written[place]["text"], field):
                part = {name: said for name, said in part.items() if name != field}
                part["streamed"] = place
        parts.append(part)
    return {**message, "parts": parts}


def _same(said: Any, text: str, field: str) -> bool:
    """Whether what the deltas said comes to the same for a page."""
    if field == "text":
        return bool(said == text)
    try:
        return encoded(msgspec.json.decode(text)) == encoded(said)
    except (msgspec.DecodeError, RecursionError):
        return False


def _said(message: dict[str, Any], partial: dict[str, Any] | None) -> dict[str, Any]:
    """The whole message again."""
    parts = message.get("parts", ())
    if partial is None or not any("streamed" in part for part in parts):
        return message
    whole = []
    for part in parts:
        if "streamed" in part:
            field, text = _STREAMED[part["type"]], partial["parts"][part["streamed"]]["text"]
            part = {**part, field: text if field == "text" else msgspec.json.decode(text)}
            del part["streamed"]
        whole.append(part)
    return {**message, "parts": whole}


def interrupt_data(interrupt: dict[str, Any]) -> dict[str, Any]:
    """An interrupt whose requests are exact."""
    requests = [exact_call(request) for request in interrupt.get("action_requests", ())]
    return {**interrupt, "action_requests": requests} if requests else interrupt


def exact_call(call: dict[str, Any]) -> dict[str, Any]:
    """A call whose arguments, defaults among them, a page can show as they are.

    It has the text of each number that a page, which knows floats only, shows otherwise, by its
    place as a JSON Pointer (RFC 6901); and its half characters are :func:`.carried`.
    """
    given = [name for name in ("arguments", "defaults") if name in call]
    if has_halves([call[name] for name in given]):
        call = {
            **call,
            **{name: carried(call[name]) for name in (*given, "display_text") if name in call},
        }
    numbers = dict(_numbers({**call.get("defaults", {}), **call.get("arguments", {})}))
    return {**call, "numbers": numbers} if numbers else call


def has_halves(value: Any) -> bool:
    """Whether a text in it, or a name, has half characters."""
    return any(
        (isinstance(leaf, str) and HALF_CHARACTER.search(leaf)) or HALF_CHARACTER.search(place)
        for place, leaf in _leaves(value)
    )


def with_display_texts(message: dict[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    """A message whose calls say in the words of their tools what they are, as their start did."""
    parts = []
    for part in message.get("parts", ()):
        tool = tools.get(part["name"]) if part["type"] == "tool_call" else None
        if tool is not None and tool.display_text and "error" not in part:
            text = tool.display(part.get("arguments", {}))
            part = {**part, "display_text": text} if isinstance(text, str) else part
        parts.append(part)
    return {**message, "parts": parts} if parts else message


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """What has nothing in it, by its place."""
    left = [("", value)]
    while left:  # no function that calls itself: arguments may nest deeper than Python's stack
        place, value = left.pop()
        if isinstance(value, dict) and value:
            for key, item in value.items():
                left.append((f"{place}/{key.replace('~', '~0').replace('/', '~1')}", item))
        elif isinstance(value, list) and value:
            left += ((f"{place}/{index}", item) for index, item in enumerate(value))
        else:
            yield place, value


def _numbers(data: Any) -> Iterator[tuple[str, str]]:
    for place, value in _leaves(data):
        if isinstance(value, float):
            if not math.isfinite(value):
                yield place, {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
            elif value.is_integer():
                yield place, repr(value)
        elif isinstance(value, int) and abs(value) > _EXACT:
            yield place, str(value)


def plain(data: Any) -> Any:
    """``data`` as a page will read it."""
    return msgspec.json.decode(encoded(data))


def shortened_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose tool results are not longer than the wire allows, and its calls exact.

    Of a person's message the first images travel; of the others it is only said that they are.
    """
    parts = message.get("parts")
    if message["role"] == "user" and parts:
        left, kept = ATTACHED_IMAGES, []
        for part in parts:
            left -= _image_size(part)
            kept.append(part if left >= 0 else _without_image(part))
        return {**message, "parts": kept}
    if message["role"] not in ("tool", "assistant") or not parts:
        return message
    change = {"tool_result": shortened, "tool_call": exact_call}
    return {**message, "parts": [change.get(p["type"], dict)(p) for p in parts]}


def shortened(result: dict[str, Any]) -> dict[str, Any]:
    """A tool result with at most the first 20,000 characters of text and four small images.

    Its parts become one text, in which all other images and files are named.

    It says how its call ended, where :attr:`.ToolResult.status` is no matter of ``is_error``, and
    what was decided on it. Of its metadata a page shows the arguments that somebody edited and the
    defaults that were taken beside them, which say how their numbers are written, as
    :func:`exact_call`; the list of to-dos that was done and cleared; whether its images stand in
    the cell too; and what became of the task that it was of another agent.
    """
    result = dict(result)
    metadata = result.pop("metadata", None) or {}
    if (status := metadata.get(NOT_RUN)) in ("rejected", "skipped", "cancelled"):
        result["status"] = status
    elif metadata.get(DECLINED) is True:
        result["status"] = DECLINED
    if isinstance(decision := metadata.get(DECISION), dict):
        result["decision"] = decision
    shown = {
        name: metadata[name] for name in (DEFAULTS, EDITED) if isinstance(metadata.get(name), dict)
    }
    if has_halves(shown):
        shown = carried(shown)
    if numbers := dict(_numbers({n: v for taken in shown.values() for n, v in taken.items()})):
        result["numbers"] = numbers
    if isinstance(task := metadata.get("task"), dict):
        shown["task"] = task
    if metadata.get(SHOWN_IN_CELL) is True:
        shown[SHOWN_IN_CELL] = True
    if metadata.get("cleared") is True and isinstance(metadata.get("todos"), list):
        shown["todos"] = metadata["todos"]
    if shown:
        result["metadata"] = shown
    content = result["content"]
    if isinstance(content, list):
        content, images = _text_and_images(content)
        result["content"] = content
        if images:
            result["images"] = images
    if len(content) > SHORTENED_AT:
        return {**result, "content": content[:SHORTENED_AT], "shortened": len(content)}
    return result


def _text_and_images(parts: list[Any]) -> tuple[str, list[dict[str, str]]]:
    """The parts of a result as a text, and the images that travel beside it."""
    lines: list[str] = []
    images: list[dict[str, str]] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        data = part.get("data") if part["type"] == "image" else None
        if not isinstance(data, str):
            lines.append(part.get("text") or f"[{part['type']}]")
        elif len(images) < SHOWN_IMAGES and len(data) <= LARGEST_IMAGE:
            images.append({"media_type": part.get("mime_type", "image/png"), "data": data})
        else:
            lines.append(_image_named(data))
    return "\n".join(lines), images


def _image_named(data: str) -> str:
    return f"[image of {len(data) * 3 // 4:,} bytes]"


def _image_size(part: dict[str, Any]) -> int:
    """The characters of base64 of a part that is an image of a message."""
    return len(part.get("data") or "") if part["type"] == "image" else 0


def _without_image(part: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in part.items() if k != "data"} if _image_size(part) else part


def with_new_images(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with no more images than a message carries; the older are named."""
    left = SNAPSHOT_IMAGES
    kept: list[dict[str, Any]] = []
    for entry in reversed(entries):
        parts = []
        for part in entry["message"].get("parts", ()):
            images = part.get("images", ())
            left -= sum(len(image["data"]) for image in images) + _image_size(part)
            if left < 0:
                part = _without_image(part)
            if images and left < 0:
                names = [_image_named(image["data"]) for image in images]
                part = {**part, "content": "\n".join(filter(None, [part["content"], *names]))}
                del part["images"]
            parts.append(part)
        old = parts != entry["message"].get("parts", [])
        kept.append({**entry, "message": {**entry["message"], "parts": parts}} if old else entry)
    return kept[::-1]


def file_data(described: dict[str, Any]) -> dict[str, Any]:
    """A file as the page lists it, from what ``FileEntry.describe`` says."""
    modified = described.get("modified_at")
    return {
        "path": described["path"],
        "size": described.get("size", 0),
        "modified": datetime.fromisoformat(modified).timestamp() if modified else 0.0,
        "mime_type": described.get("mime_type") or "",
        "is_directory": described.get("is_directory", False),
    }


def merged(events: Iterable[Event]) -> list[Event]:
    """The events with runs of deltas of the same kind joined into one."""
    out: list[Event] = []
    run: list[Event] = []

    def close() -> None:
        if run:
            delta = _join([_update(event).delta for event in run])
            out.append(_with_delta(run[-1], delta) if len(run) > 1 else run[-1])
            run.clear()

    for event in events:
        if isinstance(_innermost(event), MessageUpdate):
            if run and not _same_kind(run[-1], event):
                close()
            run.append(event)
        else:
            close()
            out.append(event)
    close()
    return out


def _innermost(event: Event) -> Event:
    while isinstance(event, SubagentEvent):
        event = event.event
    return event


def _update(event: Event) -> MessageUpdate:
    update = _innermost(event)
    assert isinstance(update, MessageUpdate)
    return update


def _with_delta(event: Event, delta: Delta) -> Event:
    if isinstance(event, SubagentEvent):
        return replace(event, event=_with_delta(event.event, delta))
    return replace(_update(event), delta=delta)


def _same_kind(a: Event, b: Event) -> bool:
    if isinstance(a, SubagentEvent) and isinstance(b, SubagentEvent):
        of_one = (a.tool_call_id, a.sub_agent_id) == (b.tool_call_id, b.sub_agent_id)
        return of_one and _same_kind(a.event, b.event)
    if not (isinstance(a, MessageUpdate) and isinstance(b, MessageUpdate)):
        return False
    if type(a.delta) is not type(b.delta) or a.run_id != b.run_id:
        return False
    if isinstance(a.delta, ToolCallDelta) and isinstance(b.delta, ToolCallDelta):
        return a.delta.index == b.delta.index
    return True


def _join(deltas: Sequence[Delta]) -> Delta:
    text = "".join(delta.text for delta in deltas)
    return msgspec.structs.replace(deltas[0], text=text)


def new_view_state(
    session_id: str, model: str, context_window: int | None = None
) -> dict[str, Any]:
    """What a page knows of a session in which nothing has happened."""
    return {
        "session_id": session_id,
        "status": "idle",
        "error": None,
        "model": model,
        "context_window": context_window,
        "entries": [],
        "earlier": 0,
        "past": [],
        "partial": None,
        "tools": {},
        "todos": [],
        "interrupt": None,
        "decided": {},
        "files": [],
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "runs": {},
        "queued": [],
        "branches": {},
        "agents": {},
    }


def new_agent_state() -> dict[str, Any]:
    """What a page knows of a sub-agent that has not begun."""
    return {"entries": [], "earlier": 0, "partial": None, "tools": {}, "usage": {}, "agents": {}}


def _agent(state: dict[str, Any], call_id: str) -> dict[str, Any]:
    agent: dict[str, Any] = state["agents"].get(call_id) or new_agent_state()
    return agent


def following_state(before: dict[str, Any]) -> dict[str, Any]:
    """What a page knows of a new conversation in the session, and of the runs of those before."""
    entries = [entry for entry in before["entries"] if entry["run_id"]]
    stopped = {"running": "cancelled", "interrupted": "cancelled"}
    return {
        **new_view_state(before["session_id"], before["model"], before["context_window"]),
        "past": [*before["past"], *entries][-SHOWN_ENTRIES:],
        "usage": before["usage"],
        "tools": before["tools"],
        "agents": before["agents"],
        "decided": before["decided"],
        "runs": {
            id: {**run, "status": stopped.get(run["status"], run["status"])}
            for id, run in before["runs"].items()
        },
    }


def forget_others(state: dict[str, Any]) -> None:
    """Forget what is known of other calls by the ids of those in the entries.

    In each branch of a conversation a model may give its calls the same ids again.
    """
    for entry in state["entries"]:
        for part in entry["message"].get("parts", ()):
            if part["type"] == "tool_call" and (known := state["tools"].get(part["id"])):
                said = part["name"], part.get("display_text")
                if said != (known["name"], known["display_text"]):
                    _forget(state, part["id"])


def _forget(state: dict[str, Any], call_id: str) -> None:
    for known in _OF_CALLS:
        state[known].pop(call_id, None)


_OF_CALLS = ("tools", "decided", "agents")


def known_calls(state: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What is known of the calls in the entries, each beside what tells it from all others.

    That is the call, its place and the branches that lead there, of which the first counts for
    none: it is there before the others.
    """
    trail: list[tuple[str, int]] = []
    found: dict[str, Any] = {}  # of those with one id it is known of the last
    for place, entry in enumerate(state["entries"], state["earlier"]):
        message = entry["message"]
        id = message.get("metadata", {}).get(BRANCH)
        point = state["branches"].get(id) if isinstance(id, str) else None
        if point is not None and point["current"]:
            trail.append((id, point["current"]))
        for part in message.get("parts", ()):
            if part["type"] == "tool_call":
                found[part["id"]] = (*trail, place, part["id"], part["name"])
    for id, call in found.items():
        yield call, {known: state[known][id] for known in _OF_CALLS if id in state[known]}


def recall(state: dict[str, Any], remembered: Mapping[Any, dict[str, Any]]) -> None:
    """Have known of the calls in the entries what was known of them when they were left."""
    for call, _ in list(known_calls(state)):
        if call in remembered:
            id = call[-2]
            _forget(state, id)
            for known, value in remembered[call].items():
                state[known][id] = value


def reduce(state: dict[str, Any], event: dict[str, Any]) -> None:
    """Apply one wire event to a view state, in place."""
    change = REDUCERS.get(event["type"])
    if change is not None:
        change(state, event)


def _agent_start(state: dict[str, Any], event: dict[str, Any]) -> None:
    started = _started(state, event)
    if started is None:
        started = event.get("ts")
    run_id = _run_id(event)
    state["runs"][run_id] = {"status": "running", "started": started, "ended": None}
    state["error"] = None
    state["queued"] = [
        waits for waits in state["queued"] if not run_id or waits["run_id"] != run_id
    ]


def _run_id(event: dict[str, Any]) -> str:
    return str(event.get("run_id", ""))  # left out for what belongs to no run


def _started(state: dict[str, Any], event: dict[str, Any]) -> float | None:
    started: float | None = state["runs"].get(_run_id(event), {}).get("started")
    return started


def _message_start(state: dict[str, Any], event: dict[str, Any]) -> None:
    if event["message"]["role"] == "assistant":
        state["partial"] = _new_partial(event)


def _new_partial(event: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": _run_id(event), "seq": event["seq"], "parts": []}


def _message_update(state: dict[str, Any], event: dict[str, Any]) -> None:
    if state["partial"] is None:
        state["partial"] = _new_partial(event)
    parts, delta = state["partial"]["parts"], event["delta"]
    kind, text = delta["type"], delta.get("text", "")
    last = parts[-1] if parts else {}
    if last.get("type") == kind and last.get("index") == delta.get("index"):
        last["text"] += text
    elif kind == "tool_call":
        named = {"id": delta.get("id"), "name": delta.get("name")}
        parts.append({"type": kind, "index": delta["index"], **named, "text": text})
    else:
        parts.append({"type": kind, "text": text})


def _message_end(state: dict[str, Any], event: dict[str, Any]) -> None:
    message = _said(event["message"], state["partial"])
    entry = {"seq": event["seq"], "run_id": _run_id(event), "ts": event.get("ts", 0)}
    state["entries"].append({**entry, "message": message})
    if message["role"] == "assistant":
        state["partial"] = None
        for part in message.get("parts", ()):
            if part["type"] == "tool_call":  # nothing is known of it, whatever had its id before
                _forget(state, part["id"])
    elif message["role"] == "user":
        _leave_queue(state, "", queued_text(message))  # else it began a run, as that said
    for name, number in (message.get("usage") or {}).items():
        if number is not None:
            state["usage"][name] = state["usage"].get(name, 0) + number


def _sub_agent(state: dict[str, Any], event: dict[str, Any]) -> None:
    if event["event"]["type"] not in _OF_SUB_AGENTS:
        return
    agent = _agent(state, event["tool_call_id"])
    # What a sub-agent has of a conversation is less, and is told of by the same rules.
    known = {**agent, "queued": [], "decided": {}}
    reduce(known, event["event"])
    agent = {name: known[name] for name in agent}
    over = len(agent["entries"]) - SHOWN_OF_SUB_AGENTS
    if over > 0:
        agent["entries"] = agent["entries"][over:]
        agent["earlier"] += over
    state["agents"][event["tool_call_id"]] = agent


def _tool_start(state: dict[str, Any], event: dict[str, Any]) -> None:
    call = event["tool_call"]
    state["tools"][call["id"]] = {
        "name": call["name"],
        "status": "running",
        "display_text": event.get("display_text"),
    }


def _tool_update(state: dict[str, Any], event: dict[str, Any]) -> None:
    tool = state["tools"].get(event["tool_call_id"])
    if tool is not None:
        tool["progress"] = {"text": event["text"], "fraction": event.get("fraction")}


def _tool_end(state: dict[str, Any], event: dict[str, Any]) -> None:
    tool = state["tools"].setdefault(
        event["tool_call_id"], {"name": event["tool_name"], "display_text": None}
    )
    tool["status"] = event["status"]
    tool["duration"] = event.get("duration", 0.0)
    tool.pop("progress", None)
    if "answer" in event:
        state["entries"] = _answered(state["entries"], event["answer"])


def _answers(state: dict[str, Any], event: Event) -> bool:
    """Whether ``event`` ends a call of the newest turn that has a question for its result."""
    if not isinstance(event, ToolExecutionEnd) or event.result.is_interrupt:
        return False
    for entry in reversed(state["entries"]):
        parts = entry["message"].get("parts", ())
        if any(_asks(part, event.tool_call_id) for part in parts):
            return True
        if any(part["type"] == "tool_call" for part in parts):
            break
    return False


def _answered(entries: list[dict[str, Any]], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries with the answer in the place of the newest question of its call."""
    call_id = answer["tool_call_id"]
    for place in range(len(entries) - 1, -1, -1):
        message = entries[place]["message"]
        parts = [answer if _asks(part, call_id) else part for part in message.get("parts", ())]
        if any(part is answer for part in parts):
            entry = {**entries[place], "message": {**message, "parts": parts}}
            return [*entries[:place], entry, *entries[place + 1 :]]
    return entries


def _asks(part: dict[str, Any], call_id: str) -> bool:
    asks = part["type"] == "tool_result" and part.get("is_interrupt") is True
    return asks and bool(part["tool_call_id"] == call_id)


def _todos(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["todos"] = event["todos"]


def _interrupt(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["interrupt"] = {**event["interrupt"], "run_id": _run_id(event)}
    for request in event["interrupt"].get("action_requests", ()):
        state["decided"].pop(request["tool_call_id"], None)


def _decision(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["decided"][event["tool_call_id"]] = {**event["decision"], "by": event.get("by", "user")}
    interrupt = state["interrupt"]
    if interrupt is not None and all(
        request["tool_call_id"] in state["decided"]
        for request in interrupt.get("action_requests", ())
    ):
        state["interrupt"] = None


def _agent_end(state: dict[str, Any], event: dict[str, Any]) -> None:
    run = {"status": event["status"], "started": _started(state, event), "ended": event.get("ts")}
    state["runs"][_run_id(event)] = run
    state["error"] = event.get("error")
    state["partial"] = None


def _status(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["status"] = event["status"]
    if event["status"] != "interrupted":
        state["interrupt"] = None


def _queued(state: dict[str, Any], event: dict[str, Any]) -> None:
    waits = {"when": event.get("when", "queue"), "text": event.get("text", "")}
    state["queued"] = [*state["queued"], {"run_id": _run_id(event), **waits}]


def _withdrawn(state: dict[str, Any], event: dict[str, Any]) -> None:
    _leave_queue(state, _run_id(event), event["text"])


def _leave_queue(state: dict[str, Any], run_id: str, text: str) -> None:
    left = list(state["queued"])
    for place, waiting in enumerate(left):
        if (waiting["run_id"], waiting["text"]) == (run_id, text):
            del left[place]
            break
    state["queued"] = left


def queued_text(message: dict[str, Any]) -> str:
    """The text of a message that waits, shortened; what else is in it is named."""
    parts = message.get("parts", ())
    text = "\n".join(part.get("text") or f"[{part['type']}]" for part in parts)
    return text if len(text) <= SHORTENED_AT else text[:SHORTENED_AT]


def _file_updated(state: dict[str, Any], event: dict[str, Any]) -> None:
    files, path = state["files"], event["path"]
    place = bisect_left(files, path, key=_path)
    listed = place < len(files) and files[place]["path"] == path
    files[place : place + listed] = [{**event.get("entry", {}), "path": path}]


def _file_deleted(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["files"] = [f for f in state["files"] if f["path"] != event["path"]]


def _file_moved(state: dict[str, Any], event: dict[str, Any]) -> None:
    old, new = event["old_path"], event["path"]
    moved = {
        f["path"]: {**f, "path": new + f["path"][len(old) :]}
        for f in state["files"]
        if _within(f["path"], old)
    }
    gone = moved.keys() | {f["path"] for f in moved.values()}
    rest = [f for f in state["files"] if f["path"] not in gone]
    state["files"] = sorted([*rest, *moved.values()], key=_path)


def _path(file: dict[str, Any]) -> str:
    return str(file["path"])


def _within(path: str, parent: str) -> bool:
    return path == parent or path.startswith(f"{parent.rstrip('/')}/")


REDUCERS = {
    "agent_start": _agent_start,
    "message_start": _message_start,
    "message_update": _message_update,
    "message_end": _message_end,
    "tool_execution_start": _tool_start,
    "tool_execution_update": _tool_update,
    "tool_execution_end": _tool_end,
    "todos_updated": _todos,
    "interrupt": _interrupt,
    "decision": _decision,
    "agent_end": _agent_end,
    "status_changed": _status,
    "message_queued": _queued,
    "message_withdrawn": _withdrawn,
    "file_updated": _file_updated,
    "file_deleted": _file_deleted,
    "file_moved": _file_moved,
    "subagent_event": _sub_agent,
}
# What is told of sub-agents: what they say and do, and what theirs do.
_OF_SUB_AGENTS = {
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "subagent_event",
}


def snapshot_of(state: dict[str, Any]) -> dict[str, Any]:
    """The bounded view state that a page starts from: the last 200 entries and their tools."""
    entries = state["entries"]
    shown = with_new_images(entries[-SHOWN_ENTRIES:])
    agents = dict([*state["agents"].items()][-SHOWN_SUB_AGENTS:])
    if len(shown) == len(entries):
        return {**state, "entries": shown, "agents": agents}
    calls = {
        part["id"]
        for entry in [*state["past"], *shown]
        for part in entry["message"].get("parts", ())
        if part["type"] == "tool_call"
    }
    calls |= {i for i, tool in state["tools"].items() if tool["status"] == "running"}
    calls |= {r["tool_call_id"] for r in (state["interrupt"] or {}).get("action_requests", ())}
    return {
        **state,
        "entries": shown,
        "earlier": state["earlier"] + len(entries) - len(shown),
        "tools": {i: tool for i, tool in state["tools"].items() if i in calls},
        "decided": {i: d for i, d in state["decided"].items() if i in calls},
        "agents": {i: agent for i, agent in agents.items() if i in calls},
    }
