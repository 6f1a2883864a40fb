"""Whether tool calls and their results fit together as the strictest provider wants it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from sagents_nb.frozenlist import FrozenList
from sagents_nb.messages import Message
from sagents_nb.models.providers.history import sendable


def violations(messages: Iterable[Message]) -> list[str]:
    """What is wrong; nothing if each call is answered once, in call order, by the next message.

    Messages of roles that are no part of the conversation, such as "system", do not count.
    """
    problems: list[str] = []
    waiting: list[str] = []
    for position, message in enumerate(messages):
        if message.role not in ("user", "assistant", "tool"):
            continue
        calls = [call.id for call in message.tool_calls]
        answered = [result.tool_call_id for result in message.tool_results]
        where = f"message {position} ({message.role})"
        if answered != waiting:
            problems.append(f"{where} answers {answered}, but {waiting} wait")
        elif answered and message.role != "tool":
            problems.append(f"{where} holds results")
        if calls and message.role != "assistant":
            problems.append(f"{where} holds calls")
        waiting = calls
    return problems + ([f"{waiting} have no result"] if waiting else [])


def sent(messages: Iterable[Message]) -> list[Message]:
    """The messages as providers are sent them."""
    return [Message(turn.role, turn.parts) for turn in sendable(messages)]


CallModel = Callable[..., Awaitable[Any]]


def watched(call_model: CallModel, problems: list[str]) -> CallModel:
    """``call_model`` that notes what is wrong with the requests that go through it.

    What was looked at is not looked at again, or tests with long histories would be slow.
    """
    seen: dict[str, FrozenList[Message]] = {}

    async def watching(model: Any, request: Any, emitter: Any, *args: Any, **options: Any) -> Any:
        messages: Sequence[Message] = request.messages
        if isinstance(messages, FrozenList):
            before = seen.get(emitter.session_id)
            known = len(before) if before is not None and messages.continues(before) else 0
            seen[emitter.session_id] = messages
            messages = messages[known:]
        problems.extend(violations(sent(messages)))
        return await call_model(model, request, emitter, *args, **options)

    return watching
