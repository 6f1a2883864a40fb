"""What the demo model reads from a conversation: the task at hand and what is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ...messages import Message, ToolCall, ToolResult
from ..base import ModelRequest
from .data import Fact
from .words import IDENTIFIER, word_set

TODOS = "write_todos"
_LONGEST = 20_000  # characters of a task that are read
_RECENT = 200  # messages to look back for what a follow-up question is about
_REJECTED = re.compile(
    r"\b(?:person|people|user|human|you)\b[^.\n]{0,40}\brejected\b", re.IGNORECASE
)
_SAID = re.compile(r"\bThey said:\s*(.*)", re.DOTALL)
_CANCELLED = re.compile(r"\bcancelled\b", re.IGNORECASE)
_CALL_ID = re.compile(r"call_(\d+)_\d+")
_STATISTICS = word_set("count mean std min max median 25% 50% 75% sum n index")


class Done(msgspec.Struct, frozen=True):
    """A call of the history and its result, None where there is none."""

    call: ToolCall
    result: ToolResult | None

    @property
    def status(self) -> str:
        """ "ok", "error" or "rejected"."""  # noqa: D210
        if self.result is None or self.result.is_error or self.result.is_interrupt:
            return "error"
        return "rejected" if _REJECTED.search(self.result.text[:200]) else "ok"

    def fact(self, step: str) -> Fact:
        """What it came to, as a fact about a step."""
        text = self.result.text if self.result else "there is no result"
        return Fact(step, self.call.name, self.call.arguments, text, self.status)


class Talk:
    """A conversation, cut where the present task begins.

    ``task`` is what people said since the last answer, ``done`` the calls since then,
    ``todos`` the calls that wrote the to-do list. ``earlier`` are the facts before, and
    ``before`` what people said before, the newest first.
    """

    def __init__(self, request: ModelRequest) -> None:
        messages = list(request.messages)[-_RECENT:]
        begin = _begin(messages)
        said = [m.text for m in messages[begin:] if m.role == "user"]
        self.task = "\n".join(text for text in said if text.strip())[:_LONGEST]
        before = [m.text for m in messages[:begin] if m.role == "user" and m.text.strip()]
        self.before = before[::-1]
        calls = _calls(messages[begin:])
        self.done = [d for d in calls if d.call.name != TODOS]
        self.todos = [d for d in calls if d.call.name == TODOS]
        self.earlier = [d.fact("") for d in _calls(messages[:begin]) if d.call.name != TODOS]
        self.turn = 1 + max(
            (int(m[1]) for c in _ids(messages) if (m := _CALL_ID.fullmatch(c))),
            default=sum(m.role == "assistant" for m in messages),
        )


def _ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.tool_calls]


def _begin(messages: Sequence[Message]) -> int:
    """Where the present task begins: after the last answer that a person replied to."""
    replied = False
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "user":
            replied = True
        elif replied and message.role == "assistant":
            # A message that broke off is no answer; one that was cancelled ended its task.
            if not message.tool_calls and message.stop_reason != "error":
                return position + 1
        elif replied and any(
            r.is_error and _CANCELLED.search(r.text) for r in message.tool_results
        ):
            return position + 1
    return 0


def _calls(messages: Sequence[Message]) -> list[Done]:
    results: dict[str, ToolResult] = {}
    for message in messages:
        for result in message.tool_results:
            results[result.tool_call_id] = result
    return [Done(c, results.get(c.id)) for message in messages for c in message.tool_calls]


def rejection(fact: Fact) -> str:
    """What the person said with a rejection, "" if nothing."""
    match = _SAID.search(fact.text)
    return match[1].strip() if match else ""


def columns_of(facts: Sequence[Fact]) -> list[str]:
    """Names of columns that results and arguments mention."""
    found: list[str] = []
    for fact in facts:
        if fact.status == "ok":
            found += [key for row in fact.rows[:1] for key in row if key]
            found += IDENTIFIER.findall(fact.text[:5000])
        found += [v for v in fact.arguments.values() if isinstance(v, str) and v.isidentifier()]
    return [name for name in dict.fromkeys(found) if name.lower() not in _STATISTICS]


def path_of(arguments: dict[str, Any]) -> str | None:
    """The path in the arguments of a call; the new one of a move."""
    paths = [v for k, v in arguments.items() if isinstance(v, str) and ("path" in k or "file" in k)]
    return paths[-1] if paths else None
