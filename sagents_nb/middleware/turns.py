"""Turns of a conversation: what a user said, and all that came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ..frozenlist import FrozenList
from ..messages import Message, ThinkingPart


class Turns:
    """Where the turns of a conversation begin, known of each message once: see :func:`turns_of`.

    ``head`` is how many messages come before the first: instructions, and the summary of what came
    before. ``starts`` are the places of their first messages.
    """

    __slots__ = ("_messages", "_role", "head", "starts")

    def __init__(self) -> None:
        self.head = 0
        self.starts: list[int] = []
        self._messages: FrozenList[Message] | None = None
        self._role = ""

    def take(self, messages: FrozenList[Message]) -> bool:
        """Look at what is new; whether they go on from those that were looked at before."""
        if self._messages is not None and not messages.continues(self._messages):
            return False
        place = 0 if self._messages is None else len(self._messages)
        self._add(place, messages.since(self._messages))
        self._messages = messages
        return True

    def _add(self, place: int, messages: Iterable[Message]) -> None:
        for message in messages:
            begins = message.role == "user" and self._role != "user" and not is_summary(message)
            if begins:
                self.starts.append(place)
            elif not self.starts and (message.role == "system" or is_summary(message)):
                self.head = place + 1
            self._role = "" if is_summary(message) else message.role
            place += 1


_LOCAL = "turns"


def turns_of(messages: Sequence[Message], local: dict[str, Any]) -> Turns:
    """The turns of a conversation; ``local`` remembers those of its state, which only grows."""
    if not isinstance(messages, FrozenList):  # somebody's own
        messages, local = FrozenList(messages), {}
    known: Turns | None = local.get(_LOCAL)
    if known is None or not known.take(messages):
        known = local[_LOCAL] = Turns()
        known.take(messages)
    return known


def is_summary(message: Message) -> bool:
    """Whether it is of a summary: what was asked for, or the summary itself."""
    metadata = message.metadata
    return bool(metadata and (metadata.get("summary") or metadata.get("summary_request")))


def without_thinking(message: Message) -> Message:
    """As it may follow another beginning than the one it was thought after.

    Providers refuse it else (platform.claude.com/docs/build-with-claude/preserved-thinking).
    """
    if not any(isinstance(part, ThinkingPart) for part in message.parts):
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, ThinkingPart))
    return replace(message, parts=parts)
