"""What a session is given besides an agent and a state."""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import ConfigurationError
from ..store.persistence import AgentPersistence, DisplayMessagePersistence
from .preprocessing import Preprocessor


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a session lives. Times are in seconds; None is never.

    ``store`` holds the conversation, of the ``scope``'s owner; ``filesystem`` its files, those of
    the agent's scope or of the session by default. ``headless`` says what happens to approvals
    where nobody can click: "deny", "approve", or a list of decisions to take in turn. A session
    rests that nobody used for ``inactivity_timeout``, or nobody watches any more for
    ``presence_timeout``. ``message_preprocessor`` makes of a user's message what people and what
    the model see. ``display_persistence`` keeps the transcript, the store does by default;
    ``agent_persistence`` the state at the turns of its life, besides what the store does.
    """

    store: Any = None
    scope: Any = None
    filesystem: Any = None
    headless: Any = "deny"
    inactivity_timeout: float | None = 300
    presence_timeout: float | None = None
    message_preprocessor: Preprocessor | None = None
    agent_persistence: AgentPersistence | None = None
    display_persistence: DisplayMessagePersistence | None = None

    def __post_init__(self) -> None:
        for name in ("inactivity_timeout", "presence_timeout"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ConfigurationError(f"{name} is a number of seconds or None, not {value!r}.")
