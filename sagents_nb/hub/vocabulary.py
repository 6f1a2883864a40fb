"""A session's events in the words of a hub's clients: a pure map, and the only one.

The words are those of the Cloudflare "sys" agents, so that their clients work here. Two of them
that are announced there and never said are said here, since people wait for them: hitl.interrupt
and model.delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..events import (
    AgentEnd,
    AgentStart,
    DecisionMade,
    Event,
    Interrupt,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    StatusChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnStart,
)
from ..interrupts import Edit, Reject, Respond
from ..interrupts import Interrupt as Waiting
from ..loop.tool_values import NO_OUTPUT
from ..messages import Message, TextDelta

Told = tuple[str, dict[str, Any]]
"""The type of an event, and its data."""

DELTA = "model.delta"
"""What is told and never kept: the message that it is a piece of is."""

REQUEST_ACCEPTED = "request.accepted"
RUN_CANCELED = "run.canceled"
RUN_TICK = "run.tick"

FORGOTTEN = "events.forgotten"
"""Instead of events that are not kept any more: data has the number of the last of them."""

MODEL_COMPLETED = "model.completed"
ASKED = "hitl.interrupt"

RUN_STARTED = "run.started"
RUN_RESUMED = "run.resumed"
RUN_PAUSED = "run.paused"
AGENT_COMPLETED = "agent.completed"
AGENT_ERROR = "agent.error"

STATUSES = {
    RUN_STARTED: "running",
    RUN_RESUMED: "running",
    RUN_PAUSED: "paused",
    AGENT_COMPLETED: "completed",
    AGENT_ERROR: "error",
    RUN_CANCELED: "canceled",
}
"""What a thread is after an event of that type; "registered" before the first of them."""

SUB_AGENTS = "subagents"
"""In the data of an interrupt: what waits is other threads, and no person."""

BY_SUB_AGENT = "subagent"
"""Who decided, where a thread reported."""

SPAWNED, REPORTED = "subagent.spawned", "subagent.completed"


def status_of(session_status: str, last: str | None) -> str:
    """What a thread is, by its session's status and the ``last`` event that tells of one."""
    if session_status in _SOONER:
        return _SOONER[session_status]
    return "registered" if last is None else STATUSES[last]


# What a session is a moment before it is told.
_SOONER = {"running": "running", "interrupted": "paused"}


def reason_of(interrupt: Waiting | None) -> str:
    """Why a run waits: for people, for other threads, or because it was stopped."""
    if interrupt is None:
        return "error"
    left = set(interrupt.tool_call_ids)  # of what was answered the parts are still there
    parts = [part for part in interrupt.parts if left & set(part.tool_call_ids)] or [interrupt]
    return "subagent" if all(part.data.get(SUB_AGENTS) for part in parts) else "hitl"


def child_of(waiting: Waiting | None, tool_call_id: str) -> str | None:
    """The thread of which that call waits for the report."""
    parts = () if waiting is None else waiting.parts or (waiting,)
    mine = (part for part in parts if tool_call_id in part.tool_call_ids)
    return next((part.data[SUB_AGENTS]["childThreadId"] for part in mine), None)


def as_chat(message: Message) -> list[dict[str, Any]]:
    """What a client sees of a message; of several results of tools one each."""
    if message.role == "tool":
        return [
            {
                "role": "tool",
                "content": f"Error: {result.text}" if result.is_error else result.text,
                "toolCallId": result.tool_call_id,
            }
            for result in message.tool_results
            if not result.is_interrupt  # it stands for an answer that is not there
        ]
    chat: dict[str, Any] = {"role": message.role}
    calls = [
        {"id": call.id, "name": call.name, "args": call.arguments} for call in message.tool_calls
    ]
    if message.text or not calls:
        chat["content"] = message.text
    if calls:
        chat["toolCalls"] = calls
    return [chat]


def chats(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """What a client sees of these messages: of an answer that never came, nothing."""
    said = (m for m in messages if not m.error or m.text or m.tool_calls)
    return [chat for message in said for chat in as_chat(message)]


class Translator(msgspec.Struct):
    """Says what happens in one thread, whose model is ``model``; ``ticks`` are its turns so far.

    How a run ends is said once the session can be asked to go on, and not a moment before it: who
    answers at once would be refused.
    """

    model: str
    run_id: str = ""
    ticks: int = 0
    waiting: Waiting | None = None
    decided: list[DecisionMade] = []
    end: AgentEnd | None = None
    resumed: bool = False

    def translate(self, event: Event) -> list[Told]:
        """What is told of an event, nothing of most."""
        match event:
            case MessageUpdate():
                if isinstance(event.delta, TextDelta) and event.delta.text:
                    return [(DELTA, {"delta": event.delta.text})]
            case AgentStart():
                return self._begin(event)
            case TurnStart():
                self.ticks += 1
                return [(RUN_TICK, {**self._run, "step": self.ticks - 1})]
            case MessageStart() if event.message.role == "assistant":
                return [("model.started", {"model": self.model})]
            case MessageEnd() if event.message.role == "assistant":
                return _answered(event.message)
            case ToolExecutionStart():
                call = event.tool_call
                return [("tool.started", {"toolName": call.name, "args": call.arguments})]
            case ToolExecutionEnd():
                return _executed(event)
            case Interrupt():
                self.waiting = event.interrupt
            case DecisionMade():
                return self._decide(event)
            case AgentEnd():
                self.end = event
            case StatusChanged():
                return self._changed(event)
        return []

    def _decide(self, event: DecisionMade) -> list[Told]:
        if event.by != BY_SUB_AGENT or not isinstance(event.decision, Respond):
            self.decided.append(event)
            return []
        child_id = child_of(self.waiting, event.tool_call_id)
        return [(REPORTED, {"childThreadId": child_id, "result": event.decision.answer})]

    def _begin(self, event: AgentStart) -> list[Told]:
        before = self._end()  # the run before, where this one waited in the queue for it
        self.run_id, resumed, self.resumed = event.run_id, self.resumed, False
        return [*before, *([] if resumed else [(RUN_STARTED, self._run)])]

    @property
    def _run(self) -> dict[str, Any]:
        return {"runId": self.run_id}

    def _changed(self, event: StatusChanged) -> list[Told]:
        if not event.previous or event.previous == event.status:
            return []  # what it was when somebody came
        if event.status == "closed":  # which cuts a run off: whoever opens it again says so
            self.end = None
            return []
        if event.status == "running":
            return self._resume() if event.previous == "interrupted" else []
        if event.status == "cancelled" and self.end is None:  # what waited was denied
            self.waiting, self.decided = None, []
            return [self.canceled]
        return self._end()

    def _resume(self) -> list[Told]:
        decided, self.decided, self.waiting = self.decided, [], None
        self.resumed = True
        said: list[Told] = [(RUN_RESUMED, self._run)]
        if any(not isinstance(made.decision, Reject) for made in decided):
            data: dict[str, Any] = {"approved": True}
            edits = [
                {"id": made.tool_call_id, "args": made.decision.arguments}
                for made in decided
                if isinstance(made.decision, Edit)
            ]
            if edits:
                data["modifiedToolCalls"] = edits
            return [("hitl.resume", data), *said]
        return [("hitl.resume", {"approved": False}), *said] if decided else said

    def _end(self) -> list[Told]:
        """What is told of how the last run ended, if that was not told yet."""
        end, self.end = self.end, None
        if end is None:
            return []
        if end.status == "completed":
            return completed(end.messages)
        if end.status == "cancelled":
            return [self.canceled]
        if end.status == "error":
            return [failed(end.error)]
        return self.paused(self.waiting)

    @property
    def canceled(self) -> Told:
        """What is told of a run that somebody stopped."""
        return RUN_CANCELED, self._run

    def paused(self, waiting: Waiting | None) -> list[Told]:
        """What is told of a run that stops for what is ``waiting``, or because it was cut off."""
        reason = reason_of(waiting)
        told: list[Told] = [(RUN_PAUSED, {**self._run, "reason": reason})]
        if waiting is None or reason != "hitl":
            return told
        proposed = [
            {"toolName": request.tool_name, "args": request.arguments}
            for request in waiting.action_requests
        ]
        return [(ASKED, {"proposedToolCalls": proposed}), *told]


def completed(messages: Sequence[Message]) -> list[Told]:
    """What is told of a run that has its answer, the last of these."""
    last = next((m for m in reversed(messages) if m.role == "assistant"), None)
    return [(AGENT_COMPLETED, {"result": as_chat(last)[0]} if last else {})]


def failed(error: str | None) -> Told:
    """What is told of a run that failed."""
    return AGENT_ERROR, {"error": error or "The run failed."}


def _answered(message: Message) -> list[Told]:
    if message.error:
        return []
    usage = message.usage
    if usage is None:
        return [(MODEL_COMPLETED, {})]
    counted = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    used: dict[str, Any] = {"inputTokens": counted, "outputTokens": usage.output_tokens}
    if usage.cost_usd is not None:
        used["costUsd"] = usage.cost_usd
    return [(MODEL_COMPLETED, {"usage": used})]


def _executed(event: ToolExecutionEnd) -> list[Told]:
    name, text = event.tool_name, event.result.text
    if event.status == "interrupted" or (event.status == "completed" and text == NO_OUTPUT):
        return []
    if event.status == "completed":
        return [("tool.output", {"toolName": name, "output": text})]
    return [("tool.error", {"toolName": name, "error": text})]
