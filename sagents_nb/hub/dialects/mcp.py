"""MCP: an agent as a tool, and what waits for people as forms to fill in; a pure map.

The answers are those of AG-UI, so that both know one rule: what was shown is what is decided.
What a client is told is given as it is written in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ...errors import ConfigurationError, InvalidDecision
from ...interrupts import ActionRequest
from ...interrupts import Interrupt as Waiting
from ...loop.open_calls import DOUBT_ANSWERS
from ...middleware.ask_user import OTHER, Question
from ...serialization import encoded
from ...text import whole_data
from ..blueprints import Blueprint
from ..event_log import ThreadEvent
from ..vocabulary import RUN_PAUSED, SPAWNED
from .agui import Answers, ResumeEntry, answers_to, asked_of, id_of

INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "message": {
            "type": "string",
            "description": "What to say to the agent. Left out, a thread is only asked how it is.",
        },
        "thread_id": {
            "type": "string",
            "description": "The thread to go on with, from an earlier result; a new one without.",
        },
    },
    "additionalProperties": False,
}

OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "description": "What the agent says, or why it says nothing."},
        "thread_id": {"type": "string", "description": "With which its thread goes on."},
        "status": {"type": "string", "description": "completed, paused, error or canceled."},
    },
    "required": ["answer", "thread_id", "status"],
}

_TITLES = {"approved": "Run it?", "reason": "Why not?", "arguments": "Other arguments, as JSON"}


# What a client says.


class ToolArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What a tool is called with."""

    message: str = ""
    thread_id: str | None = None


def arguments_of(given: Mapping[str, Any] | None) -> ToolArguments:
    """What these arguments say; raises ConfigurationError where they do not fit."""
    try:
        said = msgspec.convert(given or {}, ToolArguments)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"The arguments do not fit: {error!s:.300}.") from None
    if said.thread_id is None and not said.message.strip():
        raise ConfigurationError("A thread begins with what somebody says; give a message.")
    return said


class Filled(msgspec.Struct):
    """What became of a form: it was accepted with a ``content``, declined, or left alone."""

    action: str
    content: Mapping[str, Any] | None = None


def answers_of(waiting: Waiting, filled: Mapping[str, Filled]) -> Answers | None:
    """The answers to all that waits, by the ids of its forms; None where somebody left one open.

    Raises InvalidDecision for an answer that does not fit, and StaleApproval for one to what waits
    no more.
    """
    asked = {id_of(waiting, request): (request, part) for request, part in asked_of(waiting)}
    entries = []
    for id, form in filled.items():
        if id not in asked:  # which is told as what it is: answered, or changed
            entries.append(ResumeEntry(interrupt_id=id, status="cancelled"))
            continue
        request, part = asked[id]
        allows = request.allowed_decisions
        if form.action == "accept":
            payload = _payload(request, part, form.content or {})
            entries.append(ResumeEntry(interrupt_id=id, status="resolved", payload=payload))
        elif form.action == "decline" and "approve" in allows:
            payload = {"approved": False, "reason": "Declined."}
            entries.append(ResumeEntry(interrupt_id=id, status="resolved", payload=payload))
        elif form.action == "decline" and "reject" in allows:
            entries.append(ResumeEntry(interrupt_id=id, status="cancelled"))
        else:
            return None
    return answers_to(waiting, entries)


def _payload(request: ActionRequest, part: Waiting, content: Mapping[str, Any]) -> Any:
    if "approve" in request.allowed_decisions:
        payload = {"approved": content.get("approved"), "reason": content.get("reason")}
        changed = content.get("arguments")
        if payload["approved"] is True and isinstance(changed, str) and changed.strip():
            if "edit" not in request.allowed_decisions:
                raise InvalidDecision(f"The arguments of {request.tool_name} cannot be changed.")
            payload["editedArgs"] = _object(request, changed)
        return payload
    answer, other = content.get("answer"), content.get("other")
    if (question := _question(part)) is None:
        return {"answer": answer} if answer is not None else {}
    if question.response_type == "freeform":
        return {"answer": {"other_text": answer}}
    selected = answer if isinstance(answer, list) else [] if answer is None else [answer]
    if other:
        selected = [*selected, OTHER]
    return {"answer": {"selected": selected, "other_text": other or None}}


def _object(request: ActionRequest, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidDecision(f"The other arguments of {request.tool_name} are no JSON object.")
    return found


# What a client is told.


def tool_of(blueprint: Blueprint) -> dict[str, Any]:
    """A kind of agent as a tool."""
    about = blueprint.description or f"Ask the agent {blueprint.name}."
    more = "It answers with its thread_id: give that again to go on with the same conversation."
    return {
        "name": blueprint.name,
        "description": f"{about.rstrip()}\n\n{more}",
        "inputSchema": INPUT,
        "outputSchema": OUTPUT,
    }


class Form(NamedTuple):
    """What people are shown of one call that waits, and the schema of what they fill in."""

    message: str
    schema: dict[str, Any]


def forms_of(waiting: Waiting) -> dict[str, Form]:
    """A form for each call that waits for people, by an id that is bound to what it shows."""
    return {
        id_of(waiting, request): Form(_shown(request, part), _schema(request, part))
        for request, part in asked_of(waiting)
    }


def _shown(request: ActionRequest, part: Waiting) -> str:
    if (question := _question(part)) is not None:
        lines = [question.question, *([question.context] if question.context else [])]
        lines += [
            f"{each.value}: {each.label}" + (f" ({each.description})" if each.description else "")
            for each in question.options
            if each.label != each.value or each.description
        ]
        return "\n".join(lines)
    gated = "approve" in request.allowed_decisions
    asks = f"Run {request.tool_name}?" if gated else f"{request.tool_name} waits for an answer."
    # First what would run: whatever else is said of it may be as long as it likes.
    lines = [asks, _written(request.arguments)]
    if request.defaults:
        lines.append(f"And what the call leaves out: {_written(request.defaults)}")
    said = part.message or request.display_text
    return "\n".join([*lines, *([said] if said and said != asks else [])])


def _written(value: Any) -> str:
    return json.dumps(whole_data(value), indent=2, ensure_ascii=False, default=str)


def _question(part: Waiting) -> Question | None:
    if part.type != "ask_user":
        return None
    try:
        return msgspec.convert(part.data, Question)
    except msgspec.ValidationError:  # somebody else's
        return None


def _schema(request: ActionRequest, part: Waiting) -> dict[str, Any]:
    allowed, required = request.allowed_decisions, ["answer"]
    properties: dict[str, Any]
    if "approve" in allowed:
        properties, required = {"approved": {"type": "boolean"}}, ["approved"]
        if "reject" in allowed:
            properties["reason"] = {"type": "string", "description": "What the agent is told."}
        if "edit" in allowed:
            how = "All of them, in place of those above; left out, it runs as it is shown."
            properties["arguments"] = {"type": "string", "description": how}
        for name, schema in properties.items():
            schema["title"] = _TITLES[name]
    elif part.type == "in_doubt":
        properties = {"answer": {"type": "string", "enum": list(DOUBT_ANSWERS)}}
    elif (question := _question(part)) is not None and question.options:
        one = {"type": "string", "enum": [option.value for option in question.options]}
        several = question.response_type == "multi_select"
        properties = {"answer": {"type": "array", "items": one} if several else one}
        if question.allow_other:
            properties["other"] = {"type": "string", "title": "Or in your own words"}
            required = []
    else:
        properties = {"answer": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": required}


def progress_of(event: ThreadEvent) -> str | None:
    """What is told on the way to an answer; nothing of most."""
    if event.type == "tool.started":
        return f"Runs {event.data['toolName']}."
    if event.type == SPAWNED:
        return "A sub-agent begins."
    if event.type == RUN_PAUSED and event.data.get("reason") == "hitl":
        return "Waits for people."
    return None


def waits_text(waiting: Waiting, where: str) -> str:
    """What a client is told that asks nobody: what waits, and ``where`` that is answered."""
    lines = [_shown(request, part) for request, part in asked_of(waiting)]
    return "\n\n".join(
        [
            "This waits for people, and nothing was decided:",
            *(lines or [waiting.message or "The run was halted."]),
            f"It is answered on the hub's page, or with {where}. After that, call this tool again "
            "with the thread_id and without a message.",
        ]
    )


def result_of(
    answer: str, thread_id: str, status: str, *, is_error: bool = False, note: str = ""
) -> dict[str, Any]:
    """What a call came to. The ids are text too: many models are shown nothing else."""
    known = {"thread_id": thread_id, "status": status}
    texts = [*([answer] if answer else []), *([note] if note else []), encoded(known).decode()]
    told: dict[str, Any] = whole_data(
        {
            "content": [{"type": "text", "text": text} for text in texts],
            "structuredContent": {"answer": answer, **known},
            "isError": is_error,
        }
    )
    return told


def refusal_of(sentence: str) -> dict[str, Any]:
    """Why a call did nothing: the model reads it, and may do better."""
    told: dict[str, Any] = whole_data(
        {"content": [{"type": "text", "text": sentence}], "isError": True}
    )
    return told
