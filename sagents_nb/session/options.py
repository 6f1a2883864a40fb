"""What a session is given besides an agent and a state."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from .. import kinds
from ..context import Caller
from ..errors import AgentError, ConfigurationError, pass_on
from ..messages import DISPLAY, Message
from ..runtime.thread import runtime
from ..serialization import to_data
from ..state import State
from ..store.persistence import AgentPersistence, DisplayMessagePersistence
from ..text import said_by


class MessageContext(msgspec.Struct, frozen=True):
    """What a message preprocessor is told besides the message."""

    agent_id: str
    conversation_id: str
    tool_context: Mapping[str, Any]
    state: State


Pair = tuple[Message | str, Message | str]
Preprocessor = Callable[[Message, MessageContext], Pair | Awaitable[Pair]]
"""Gives what people see and what the model sees, each a message of the user or its text."""


def preprocessed(
    preprocessor: Preprocessor, messages: list[Message], ctx: MessageContext
) -> list[Message]:
    """The messages for the model; each holds what people see instead of it in its metadata.

    What an AgentError or a ConfigurationError says is passed on; any other exception is an
    AgentError that names the preprocessor. Messages that are not the user's stay as they are.
    """
    return [_one(preprocessor, m, ctx) if m.role == "user" else m for m in messages]


def _one(preprocessor: Preprocessor, message: Message, ctx: MessageContext) -> Message:
    try:
        outcome = preprocessor(message, ctx)
        if inspect.isawaitable(outcome):
            runtime.refuse_here("An async message_preprocessor", "make it a plain function")
            outcome = asyncio.run_coroutine_threadsafe(_value(outcome), runtime.loop).result()
    except (AgentError, ConfigurationError):
        raise
    except BaseException as error:
        pass_on(error)
        raise AgentError(
            f"The message_preprocessor failed, so nothing was sent: {said_by(error)}"
        ) from error
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        raise _wrong(outcome)
    display, shown_to_model = (_message(item, outcome) for item in outcome)
    if display == shown_to_model:
        return shown_to_model
    metadata = {**shown_to_model.metadata, DISPLAY: to_data(display)}
    return replace(shown_to_model, metadata=metadata)


async def _value(outcome: Awaitable[Any]) -> Any:
    return await outcome


def _message(item: Any, outcome: Any) -> Message:
    message = Message.user(item) if isinstance(item, str) else item
    if not isinstance(message, Message) or message.role != "user":
        raise _wrong(outcome)
    return message


def _wrong(outcome: Any) -> ConfigurationError:
    return ConfigurationError(
        "A message_preprocessor returns a tuple (for people, for the model) of two texts or two "
        f"messages of the user, not {outcome!r:.200}; nothing was sent."
    )


_SECONDS = kinds.or_none(kinds.number(0, "seconds", over=True), "for never")
_KINDS = {
    "filesystem": kinds.or_none(
        kinds.either(
            "a filesystem, as sa.open_filesystem(…) gives, or the path of a folder",
            kinds.PATH,
            kinds.having("", "read", "entries", "flush"),
        )
    ),
    "display_persistence": kinds.or_none(
        kinds.having("a DisplayMessagePersistence", "save_message")
    ),
    "headless": kinds.or_none(
        kinds.Kind(
            "'deny', 'approve' or a list of decisions",
            lambda value: isinstance(value, list) or kinds.one_of("deny", "approve").fits(value),
            shows=True,
        )
    ),
    "inactivity_timeout": _SECONDS,
    "presence_timeout": _SECONDS,
}


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a session lives. Times are in seconds; None is never.

    ``store`` holds the conversation, of the ``scope``'s owner; ``filesystem`` its files, those of
    the agent's scope or of the session by default; the path of a folder is where they are kept.
    ``headless`` says what happens to approvals where nobody can click: "deny", "approve", or a list
    of decisions to take in turn; None denies in notebooks that run unattended, and leaves them to a
    script. A session
    rests that nobody used for ``inactivity_timeout``, or nobody watches any more for
    ``presence_timeout``. ``message_preprocessor`` makes of a user's message what people and what
    the model see. ``display_persistence`` keeps the transcript, the store does by default;
    ``agent_persistence`` the state at the turns of its life, besides what the store does.
    ``caller`` is for whom it works, where another agent has delegated to this one.
    """

    store: Any = None
    scope: Any = None
    filesystem: Any = None
    headless: Any = None
    inactivity_timeout: float | None = 300
    presence_timeout: float | None = None
    message_preprocessor: Preprocessor | None = None
    agent_persistence: AgentPersistence | None = None
    display_persistence: DisplayMessagePersistence | None = None
    caller: Caller = Caller()

    def __post_init__(self) -> None:
        kinds.check_fields(self, **_KINDS)
        if isinstance(self.filesystem, str | os.PathLike):
            from ..files.paths import check_folder

            check_folder(self.filesystem)
