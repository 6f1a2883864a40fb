"""The one vocabulary of events.

Every event is a frozen struct with ``type``, ``seq``, ``ts`` (seconds since the epoch),
``session_id`` and ``run_id``. The widget, the store, the frames and the tests all read this
one stream; within a session ``seq`` grows by one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from .interrupts import Decision
from .interrupts import Interrupt as InterruptData
from .messages import Delta, Message, ToolCall, ToolResult, Usage
from .state import Todo


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What all events share."""

    seq: int = 0
    ts: float = 0.0
    session_id: str = ""
    run_id: str = ""

    if TYPE_CHECKING:  # a literal in each class: so a checker knows it by its name, too
        type: ClassVar[str]
    else:

        @property
        def type(self) -> str:
            """The event's name, such as "message_update"."""
            return str(self.__struct_config__.tag)


# A run, in the order in which they come.


class AgentStart(Event, frozen=True, tag="agent_start"):
    """A run begins."""

    if TYPE_CHECKING:
        type: ClassVar[Literal["agent_start"]]


class TurnStart(Event, frozen=True, tag="turn_start"):
    """One model call and its tools begin."""

    if TYPE_CHECKING:
        type: ClassVar[Literal["turn_start"]]


class MessageStart(Event, frozen=True, tag="message_start"):
    """A message begins; an assistant's is still empty."""

    message: Message

    if TYPE_CHECKING:
        type: ClassVar[Literal["message_start"]]


class ModelRetry(Event, frozen=True, tag="model_retry"):
    """A model failed before it said anything, and is asked again in ``wait`` seconds.

    ``attempt`` is the number of the attempt that comes; ``reason`` is one sentence.
    ``model`` is the name of the model that is asked instead, "" if it is the same one.
    """

    attempt: int
    wait: float
    reason: str
    model: str = ""

    if TYPE_CHECKING:
        type: ClassVar[Literal["model_retry"]]


class MessageUpdate(Event, frozen=True, tag="message_update"):
    """A piece of the assistant message that is being streamed."""

    delta: Delta

    if TYPE_CHECKING:
        type: ClassVar[Literal["message_update"]]


class MessageEnd(Event, frozen=True, tag="message_end"):
    """A message is complete and part of the conversation."""

    message: Message

    if TYPE_CHECKING:
        type: ClassVar[Literal["message_end"]]


class ToolExecutionStart(Event, frozen=True, tag="tool_execution_start"):
    """A tool call is about to run, or to be answered without running."""

    tool_call: ToolCall
    display_text: str | None = None

    if TYPE_CHECKING:
        type: ClassVar[Literal["tool_execution_start"]]


class ToolExecutionUpdate(Event, frozen=True, tag="tool_execution_update"):
    """Progress of a running tool; ``fraction`` is 0 to 1 where it is known."""

    tool_call_id: str
    text: str
    fraction: float | None = None

    if TYPE_CHECKING:
        type: ClassVar[Literal["tool_execution_update"]]


class ToolExecutionEnd(Event, frozen=True, tag="tool_execution_end"):
    """A tool call has its result.

    ``status`` is "completed", "failed", "rejected" (by a person), "cancelled", "skipped"
    or "interrupted". ``duration`` is in seconds.
    """

    tool_call_id: str
    tool_name: str
    result: ToolResult
    status: str
    duration: float = 0.0

    if TYPE_CHECKING:
        type: ClassVar[Literal["tool_execution_end"]]


class TurnEnd(Event, frozen=True, tag="turn_end"):
    """One model call and its tools are done."""

    message: Message
    tool_results: tuple[ToolResult, ...] = ()

    if TYPE_CHECKING:
        type: ClassVar[Literal["turn_end"]]


class AgentEnd(Event, frozen=True, tag="agent_end"):
    """A run is over; ``messages`` are the new ones, ``status`` that of its result."""

    messages: tuple[Message, ...]
    status: str
    error: str | None = None

    if TYPE_CHECKING:
        type: ClassVar[Literal["agent_end"]]


# What middleware does to the history.


class Compaction(Event, frozen=True, tag="compaction"):
    """A summary of older messages: ``status`` is "started", "completed" or "failed".

    ``summarized`` is the number of messages it stands for, or would; tokens are estimates,
    and ``tokens_after`` is what they are now, so after a failure what they were.
    """

    status: str
    summarized: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    if TYPE_CHECKING:
        type: ClassVar[Literal["compaction"]]


CompactionDone = Compaction  # its name of before


class ToolCallsPatched(Event, frozen=True, tag="tool_calls_patched"):
    """A history that no provider would take was repaired; ``count`` results were missing."""

    count: int

    if TYPE_CHECKING:
        type: ClassVar[Literal["tool_calls_patched"]]


# A session.


# Reasons for which a status is told though it is the same: the conversation is another one now.
REPLACED = ("reset", "replaced")
# And the one for which only who answers is another one.
AGENT_REPLACED = "agent_replaced"
# Reasons for which a session is "closed" only until somebody needs it again.
RESTS = ("inactivity", "no_viewers")


class StatusChanged(Event, frozen=True, tag="status_changed"):
    """The session's status is another one now."""

    status: str
    previous: str = ""
    reason: str | None = None

    if TYPE_CHECKING:
        type: ClassVar[Literal["status_changed"]]


class TodosUpdated(Event, frozen=True, tag="todos_updated"):
    """The full list of todos, after a change."""

    todos: tuple[Todo, ...]

    if TYPE_CHECKING:
        type: ClassVar[Literal["todos_updated"]]


class TokenUsage(Event, frozen=True, tag="token_usage"):
    """The usage of one model call."""

    usage: Usage
    model: str = ""

    if TYPE_CHECKING:
        type: ClassVar[Literal["token_usage"]]


class Interrupt(Event, frozen=True, tag="interrupt"):
    """The run waits for people."""

    interrupt: InterruptData

    if TYPE_CHECKING:
        type: ClassVar[Literal["interrupt"]]


class DecisionMade(Event, frozen=True, tag="decision"):
    """Somebody, or a policy, answered one waiting call; ``by`` says who."""

    tool_call_id: str
    decision: Decision
    by: str = "user"

    if TYPE_CHECKING:
        type: ClassVar[Literal["decision"]]


class TitleGenerated(Event, frozen=True, tag="title_generated"):
    """The conversation has a title."""

    title: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["title_generated"]]


class DisplayMessageSaved(Event, frozen=True, tag="display_message_saved"):
    """A row of the transcript is in the store."""

    display_message: dict[str, Any]

    if TYPE_CHECKING:
        type: ClassVar[Literal["display_message_saved"]]


class DisplayMessageUpdated(Event, frozen=True, tag="display_message_updated"):
    """A row of the transcript changed in the store."""

    display_message: dict[str, Any]

    if TYPE_CHECKING:
        type: ClassVar[Literal["display_message_updated"]]


class MessageQueued(Event, frozen=True, tag="message_queued"):
    """A message waits for the active run; ``when`` is "queue", "steer" or "follow_up".

    One that begins a run of its own has that run's ``run_id``, others have "".
    """

    message: Message
    when: str = "queue"

    if TYPE_CHECKING:
        type: ClassVar[Literal["message_queued"]]


class MessageWithdrawn(Event, frozen=True, tag="message_withdrawn"):
    """A message waits no more, and is no part of the conversation; ``run_id`` is as it was."""

    message: Message

    if TYPE_CHECKING:
        type: ClassVar[Literal["message_withdrawn"]]


class Frozen(Event, frozen=True, tag="frozen"):
    """What shows the session is to become static, as it is now."""

    if TYPE_CHECKING:
        type: ClassVar[Literal["frozen"]]


class AgentShutdown(Event, frozen=True, tag="agent_shutdown"):
    """The session is closed; times are seconds since the epoch.

    ``restorable``: something waits for people, and can still be answered where the session is
    opened again.
    """

    reason: str
    last_activity_at: float
    shutdown_at: float
    restorable: bool = False

    if TYPE_CHECKING:
        type: ClassVar[Literal["agent_shutdown"]]


class NodeTransferring(Event, frozen=True, tag="node_transferring"):
    """The session leaves this process."""

    node: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["node_transferring"]]


class NodeTransferred(Event, frozen=True, tag="node_transferred"):
    """The session arrived in this process."""

    node: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["node_transferred"]]


class Debug(Event, frozen=True, tag="debug"):
    """What goes on behind the scenes, for those who subscribed with ``debug=True`` only.

    ``kind`` is "state_updated", "middleware_action", "llm_error" or "persistence_failed". It has
    the ``seq`` of the event before it and is not kept.
    """

    kind: str
    data: dict[str, Any] = {}

    if TYPE_CHECKING:
        type: ClassVar[Literal["debug"]]


# Files.


class FileUpdated(Event, frozen=True, tag="file_updated"):
    """A file was written; ``entry`` is its description, without the content."""

    path: str
    entry: dict[str, Any] = {}

    if TYPE_CHECKING:
        type: ClassVar[Literal["file_updated"]]


class FileDeleted(Event, frozen=True, tag="file_deleted"):
    """A file is gone."""

    path: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["file_deleted"]]


class FileMoved(Event, frozen=True, tag="file_moved"):
    """A file or a directory has a new path."""

    old_path: str
    path: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["file_moved"]]


class SubagentEvent(Event, frozen=True, tag="subagent_event"):
    """An event of a sub-agent, as it happened there."""

    sub_agent_id: str
    tool_call_id: str
    event: Any

    if TYPE_CHECKING:
        type: ClassVar[Literal["subagent_event"]]


# Tasks.


class TaskUpdated(Event, frozen=True, tag="task_updated"):
    """A task has another ``state``, or tells how far it is: then it is the ``previous`` one.

    ``state`` is one of :data:`sagents_nb.tasks.STATES`. ``text`` is what it asks, why it failed or
    what it does, and ``fraction`` is 0 to 1 where it is known how far it is.
    """

    task_id: str
    agent: str
    state: str
    previous: str
    text: str = ""
    fraction: float | None = None

    if TYPE_CHECKING:
        type: ClassVar[Literal["task_updated"]]


class TaskOutput(Event, frozen=True, tag="task_output"):
    """A piece ``text`` of what a task will give; all of it is there at its end."""

    task_id: str
    text: str

    if TYPE_CHECKING:
        type: ClassVar[Literal["task_output"]]


class TaskArtifact(Event, frozen=True, tag="task_artifact"):
    """A task has made something, an :class:`~sagents_nb.Artifact`."""

    task_id: str
    artifact: Any

    if TYPE_CHECKING:
        type: ClassVar[Literal["task_artifact"]]


AnyEvent = (
    AgentStart
    | TurnStart
    | MessageStart
    | ModelRetry
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | AgentEnd
    | Compaction
    | ToolCallsPatched
    | StatusChanged
    | TodosUpdated
    | TokenUsage
    | Interrupt
    | DecisionMade
    | TitleGenerated
    | DisplayMessageSaved
    | DisplayMessageUpdated
    | MessageQueued
    | MessageWithdrawn
    | Frozen
    | AgentShutdown
    | NodeTransferring
    | NodeTransferred
    | Debug
    | FileUpdated
    | FileDeleted
    | FileMoved
    | SubagentEvent
    | TaskUpdated
    | TaskOutput
    | TaskArtifact
)
"""What a run or a session tells of itself: ``event.type`` says which of these it is."""


class Emitter:
    """Stamps events with sequence, time and ids, and hands them to ``sink``.

    Where ``sink`` is None nobody listens, and no events are made; what happens in each turn looks
    there first, since calling :meth:`emit` for nobody costs more. Not thread-safe: it belongs to
    the runtime loop, which is the only writer.
    """

    __slots__ = ("_counter", "run_id", "session_id", "sink")

    def __init__(
        self,
        sink: Callable[[Event], None] | None = None,
        session_id: str = "",
        run_id: str = "",
        first: int = 1,
        counter: itertools.count[int] | None = None,
    ) -> None:
        self.sink = sink
        self.session_id = session_id
        self.run_id = run_id
        self._counter = counter if counter is not None else itertools.count(first)

    def for_run(self, run_id: str) -> Emitter:
        """An emitter for one run that continues this one's sequence."""
        return Emitter(self.sink, self.session_id, run_id, counter=self._counter)

    def emit(self, kind: type[Event], /, **fields: Any) -> None:
        """Make the event and hand it on; it happened now, unless ``ts`` says when."""
        if self.sink is not None:
            event = kind(
                seq=next(self._counter),
                ts=fields.pop("ts", 0.0) or time.time(),
                session_id=self.session_id,
                run_id=self.run_id,
                **fields,
            )
            self.sink(event)
