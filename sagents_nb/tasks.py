"""Work that one agent does for another: what is known of it, and what it makes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from .messages import ContentPart, TextPart

STATES = (
    "submitted",
    "working",
    "input_required",
    "completed",
    "failed",
    "canceled",
    "rejected",
)
"""What a task can be, in the words of A2A."""

TERMINAL = frozenset(("completed", "failed", "canceled", "rejected"))
"""The states that nothing leaves."""

NEXT: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "submitted": frozenset(("working", "failed", "canceled", "rejected")),
        "working": frozenset(("input_required", "completed", "failed", "canceled")),
        "input_required": frozenset(("working", "failed", "canceled")),
    }
)
"""By each state those that may follow it."""


def before(state: str) -> tuple[str, ...]:
    """The states that ``state`` may follow.

    >>> before("input_required")
    ('working',)
    """
    return tuple(first for first, following in NEXT.items() if state in following)


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a task has made, its ``parts``; the ``index`` is its number there, from 0.

    ``task_id`` is that task, ``name`` and ``description`` say what it is, ``metadata`` is data of
    whoever made it, and ``created_at`` is when, in UTC.

    It is not the ``artifact`` of a :class:`~sagents_nb.ToolOutput`, which is an object of this
    process: this one is kept in the store.

    >>> from sagents_nb import Artifact, JsonPart
    >>> tides = Artifact(name="tides", parts=(JsonPart({"high": [6, 18]}),))
    >>> tides.value
    {'high': [6, 18]}
    """

    task_id: str = ""
    index: int = 0
    name: str = ""
    description: str = ""
    parts: tuple[ContentPart, ...] = ()
    metadata: dict[str, Any] = {}
    created_at: datetime | None = None

    @property
    def id(self) -> str:
        """Its id, such as "task-1f00/0"."""
        return f"{self.task_id}/{self.index}"

    @property
    def value(self) -> Any:
        """Its text or data, if it is one part of that kind; else its parts."""
        if len(self.parts) == 1:
            [part] = self.parts
            return getattr(part, "text", getattr(part, "data", None))
        return self.parts


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a store knows of a task.

    ``agent`` works on ``input`` for ``caller``, "" for a person; ``chain`` are the agents through
    which it came, itself last. ``id`` is also that of its conversation, and ``context`` that of the
    conversation in which it began. ``state`` is one of :data:`~sagents_nb.tasks.STATES`.
    ``question`` is what it asks people while it waits for input: an interrupt, as data; ``message``
    says so in a sentence, and why it failed. ``deadline`` is a moment in seconds since the epoch,
    and ``budget`` what it may use, as data. ``background`` tasks are told to their context when
    they end: ``change`` counts the changes of the state, and ``told`` is the last that was.

    ``output`` is what came of it. At most ``max_depth`` agents may be in its chain. It was made at
    ``created_at``, its state last changed at ``updated_at``, and it ended at ``completed_at``, in
    UTC. ``seconds`` is how long it has worked, ``tokens`` and ``cost_usd`` what that took.

    >>> from sagents_nb import TaskRecord
    >>> TaskRecord(id="task-1", agent="weather", state="failed").is_terminal
    True
    """

    id: str
    agent: str
    caller: str = ""
    context: str = ""
    chain: tuple[str, ...] = ()
    state: str = "submitted"
    input: tuple[ContentPart, ...] = ()
    output: tuple[ContentPart, ...] = ()
    message: str = ""
    question: dict[str, Any] | None = None
    background: bool = False
    budget: dict[str, Any] | None = None
    max_depth: int | None = None
    deadline: float | None = None
    change: int = 0
    told: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.state in TERMINAL

    @property
    def text(self) -> str:
        """What it answered, as text."""
        return text_of_parts(self.output)


def text_of_parts(parts: tuple[ContentPart, ...]) -> str:
    r"""The text parts as one text.

    >>> text_of_parts((TextPart("a"), TextPart("b")))
    'a\n\nb'
    """
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
