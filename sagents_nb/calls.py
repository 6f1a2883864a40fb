"""Each tool call of a conversation with all that became of it: what every view of it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .messages import DECISION, EDITED, Message, ToolCall, ToolResult, Usage


class CallRecord(msgspec.Struct, frozen=True):
    """One tool call; ``call`` is what the model asked for, ``said`` what stands for its result."""

    call: ToolCall
    said: ToolResult | None = None

    @property
    def result(self) -> ToolResult | None:
        """Its result; None while there is none, as long as it waits for people, say."""
        return None if self.said is None or self.said.is_interrupt else self.said

    @property
    def edited(self) -> dict[str, Any] | None:
        """What people made of its arguments, if they did."""
        return None if self.said is None else edited_arguments(self.said)

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was run with, or is to be."""
        edited = self.edited
        return self.call.arguments if edited is None else edited

    @property
    def status(self) -> str | None:
        """How it ended; None if it did not, "interrupted" if it waits for an answer."""
        return None if self.said is None else self.said.status

    @property
    def decision(self) -> dict[str, Any] | None:
        """What was decided on it, "by" whom and "at" what time; None if nobody did."""
        decision = None if self.said is None else self.said.metadata.get(DECISION)
        return decision if isinstance(decision, dict) else None


class SubAgentResult(msgspec.Struct, frozen=True):
    """What one sub-agent did in a run: ``messages`` are its conversation, ``duration`` seconds.

    ``sub_agent_id`` is its id, ``subagent_type`` the name it was called by, ``tool_call_id`` the
    call of the agent that gave it the work. ``status`` is as that of a run.
    """

    sub_agent_id: str
    subagent_type: str
    tool_call_id: str
    status: str
    messages: list[Message]
    usage: Usage
    duration: float

    @property
    def text(self) -> str:
        """The text of its last message that has any; "" if there is none."""
        answers = (m.text for m in reversed(self.messages) if m.role == "assistant")
        return next(filter(None, answers), "")


def edited_arguments(result: ToolResult) -> dict[str, Any] | None:
    """The arguments that people gave the call of that result in place of its own, if they did."""
    edited = result.metadata.get(EDITED)
    return edited if isinstance(edited, dict) else None


def call_records(messages: Iterable[Message]) -> list[CallRecord]:
    """The calls of these messages in order, each with its own result."""
    return list(map(CallRecord, *calls_and_results(messages)))


def calls_and_results(
    messages: Iterable[Message],
) -> tuple[list[ToolCall], list[ToolResult | None]]:
    """The calls of these messages in order, and in the same order what stands for their results.

    Some models use one id in each turn, or twice in one: then results come in call order.
    """
    calls: list[ToolCall] = []
    results: list[ToolResult | None] = []
    open_: dict[str, int] = {}  # by id: the place of the first that waits for its result
    after: dict[int, int] = {}  # the place of the next one with the same id, if there is one
    for message in messages:
        asked: dict[str, int] = {}
        last: dict[str, int] = {}
        for part in message.parts:
            if type(part) is ToolCall:
                place = len(calls)
                if asked.setdefault(part.id, place) != place:
                    after[last.get(part.id, asked[part.id])] = last[part.id] = place
                calls.append(part)
                results.append(None)
            elif type(part) is ToolResult:
                place = open_.pop(part.tool_call_id, -1)
                if place >= 0:
                    results[place] = part
                    if place in after:
                        open_[part.tool_call_id] = after[place]
        if asked:
            open_ = asked
    return calls, results
