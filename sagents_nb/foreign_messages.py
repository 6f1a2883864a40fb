"""Conversations as OpenAI's and Anthropic's APIs write them, read as ours.

OpenAI's chat has calls beside the content and a message for each result; its Responses have
items for both; Anthropic's Messages have both as blocks of content. All three come as dicts, or as
what the SDKs make of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .errors import ConfigurationError
from .messages import (
    Message,
    Part,
    ProviderPart,
    StopReason,
    ThinkingPart,
    ToolCall,
    ToolResult,
    as_parts,
)
from .serialization import unreadable

# The items of the Responses API that have no role.
_ITEMS = ("function_call", "function_call_output", "reasoning")

# Of an answer as a whole, and of what no model is told again.
_OF_ANSWERS = {
    *("id", "type", "object", "model", "stop_reason", "stop_sequence", "usage", "container"),
    *("status", "phase", "refusal", "annotations", "audio", "function_call", "name"),
}
_ANTHROPIC = "anthropic"


def is_foreign_message(value: Any) -> bool:
    """Whether it is a message of theirs, as a dict or as their SDKs' object."""
    if isinstance(value, Mapping):
        return "role" in value or value.get("type") in _ITEMS
    return hasattr(value, "model_dump") and (
        isinstance(getattr(value, "role", None), str) or getattr(value, "type", None) in _ITEMS
    )


def messages_from(values: Iterable[Any]) -> list[Message]:
    """Messages of theirs and of ours, in order.

    Results that follow each other are one message of ours, with the names of their calls. Raises
    :class:`~sagents_nb.errors.ConfigurationError` that names what cannot be read.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    >>> messages = messages_from([
    ...     {"role": "user", "content": "Add."},
    ...     {"role": "assistant", "content": None, "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ... ])
    >>> messages[1].tool_calls[0].name, messages[2].tool_results[0].name
    ('add', 'add')
    """
    read = _Reading()
    for number, value in enumerate(values, start=1):
        if isinstance(value, Message) or not is_foreign_message(value):
            read.messages.append(Message.of(value))
            continue
        try:
            for message in _read(value):
                if why := unreadable(message, Message):
                    raise ValueError(why)
                read.add(message)
        except RecursionError:
            raise ConfigurationError(
                f"Message {number} cannot be read: its data are nested too deep."
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigurationError(
                f"Message {number} cannot be read as one of OpenAI or Anthropic: {why}."
            ) from error
    return read.messages


class _Reading:
    """What was read so far, with the names of the calls in it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._names: dict[str, str] = {}

    def add(self, message: Message) -> None:
        self._names |= {call.id: call.name for call in message.tool_calls}
        parts = tuple(map(self._named, message.parts))
        last = self.messages[-1] if self.messages else None
        joins = message.role == "tool" or message.metadata.get(_ITEM)
        if last is not None and joins and last.role == message.role:
            parts = self.messages.pop().parts + parts
        reason: StopReason | None = None
        if message.role == "assistant":
            calls = any(isinstance(part, ToolCall) for part in parts)
            reason = "tool_use" if calls else "end_turn"
        self.messages.append(Message(message.role, parts, None, reason))

    def _named(self, part: Part) -> Part:
        if isinstance(part, ToolResult) and not part.name:
            name = self._names.get(part.tool_call_id, "tool")
            return ToolResult(part.tool_call_id, name, part.content, part.is_error)
        return part


# In the metadata of what is read from an item: it goes with the message before it.
_ITEM = "item"


def _read(value: Any) -> Iterator[Message]:
    plain = _plain(value)
    given = {key: item for key, item in plain.items() if item is not None and item != []}
    kind = given.get("type")
    if kind == "function_call" and "role" not in given:
        call = ToolCall(_id(given["call_id"]), given["name"], _arguments(given["arguments"]))
        yield Message("assistant", (call,), metadata={_ITEM: True})
    elif kind == "function_call_output":
        yield Message("tool", (_result(given["call_id"], given["output"]),))
    elif kind == "reasoning" and "role" not in given:
        return  # of no use to another model, and encrypted
    elif given["role"] == "tool":
        yield Message("tool", (_result(given["tool_call_id"], given.get("content", "")),))
    else:
        if "content" not in plain and "tool_calls" not in given:
            raise KeyError("content")
        yield from _of_role(given)


def _of_role(given: Mapping[str, Any]) -> Iterator[Message]:
    known = {"role", "content", "tool_calls", "reasoning_content", "reasoning"} | _OF_ANSWERS
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(
            f"A message as a dict has no {', '.join(map(repr, unknown))} that could be kept; leave "
            "it out, or use Message(…) for more."
        )
    blocks = given.get("content", "")
    results: list[Part] = []
    parts: list[Part] = []
    thought = given.get("reasoning_content") or given.get("reasoning")
    if isinstance(thought, str):
        parts.append(ThinkingPart(thought))
    for block in map(_plain, [blocks] if isinstance(blocks, str | Mapping) else blocks):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "tool_result":
            content = block.get("content") or ""
            results.append(_result(block["tool_use_id"], content, bool(block.get("is_error"))))
        elif kind == "tool_use":
            parts.append(ToolCall(_id(block["id"]), block["name"], dict(block.get("input") or {})))
        elif kind == "thinking":
            signature = block.get("signature")
            whose = _ANTHROPIC if signature else None
            parts.append(ThinkingPart(block["thinking"], signature, whose))
        elif kind == "redacted_thinking":
            parts.append(ProviderPart(_ANTHROPIC, dict(block)))
        else:
            parts += as_parts(block if isinstance(block, str) else [block])
    for call in map(_plain, given.get("tool_calls", ())):
        function = call["function"]
        parts.append(ToolCall(_id(call["id"]), function["name"], _arguments(function["arguments"])))
    if results:
        yield Message("tool", tuple(results))
    if parts or not results:
        yield Message.of({"role": given["role"], "content": parts})


def _result(call_id: Any, content: Any, is_error: bool = False) -> ToolResult:
    if isinstance(content, str):
        return ToolResult(_id(call_id), "", content, is_error)
    parts = as_parts(map(_plain, content) if isinstance(content, list) else content)
    return ToolResult(_id(call_id), "", list(parts), is_error)  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    """What is an SDK's object as a dict."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def _id(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the id of a call is text, not {value!r}")
    return value


def _arguments(value: Any) -> dict[str, Any]:
    read = json.loads(value or "{}") if isinstance(value, str) else value
    if not isinstance(read, Mapping):
        raise TypeError(f"the arguments of a call are an object, not {value!r:.80}")
    return dict(read)
