"""Each tool call of a conversation with all that became of it: what every view of it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .messages import DECISION, EDITED, Message, ToolCall, ToolResult


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
        edited = None if self.said is None else self.said.metadata.get(EDITED)
        return edited if isinstance(edited, dict) else None

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


def call_records(messages: Iterable[Message]) -> list[CallRecord]:
    """The calls of these messages in order, each with its own result.

    Some models use one id in each turn, or twice in one: then results come in call order.
    """
    calls: list[ToolCall] = []
    results: list[ToolResult | None] = []
    open_: dict[str, list[int]] = {}  # by id: the places of those that wait for their result
    for message in messages:
        asked: dict[str, list[int]] = {}
        for part in message.parts:
            if type(part) is ToolCall:
                asked.setdefault(part.id, []).append(len(calls))
                calls.append(part)
                results.append(None)
            elif type(part) is ToolResult and (places := open_.get(part.tool_call_id)):
                results[places.pop(0)] = part
        if asked:
            open_ = asked
    return [CallRecord(*pair) for pair in zip(calls, results, strict=True)]
