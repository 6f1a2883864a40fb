"""Tasks in the background: whoever asked for them goes on, and is told once of what comes.

What is told is a message in the journaled queue of the conversation, with the task and the number
of the change in its metadata; the task's row has the number that was told last. A process may end
between the two: then the next one looks for the message before it tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from ..context import Caller
from ..errors import SagentsError
from ..messages import Message
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..session import Session
from ..store import tasks as rows
from ..tasks import TaskRecord
from ..text import logger_of
from .task import Task

logger = logger_of(__name__)

TASK = "task"
"""In the metadata of a message that tells of a task: its "id" and the number of the "change"."""

_SAYS = {
    "completed": "is completed. It answered:\n\n",
    "failed": "has failed: ",
    "canceled": "was canceled.",
    "rejected": "was rejected: ",
    "input_required": "waits for input. It asks: ",
}


class Host(Protocol):
    """The registry, as far as this needs it."""

    scope: Any
    watched: dict[str, Watch]
    told: dict[str, int]

    @property
    def store(self) -> Any:
        """Where tasks are."""

    def known(self, record: TaskRecord, scope: Any, caller: Caller) -> Task:
        """The one object of this process for that task."""


class Watch:
    """Tells a ``session`` of each stop of one of its tasks; on the runtime loop."""

    def __init__(self, agents: Host, task: Task, session: Session, recovers: bool) -> None:
        self.task = task
        self.session = session
        self._agents = agents
        self._recovers = recovers  # another process may have told of it
        agents.watched[task.id] = self
        runtime.spawn(self._watch())

    async def _watch(self) -> None:
        told = max(self.task.record.told, self._agents.told.get(self.task.id, 0))
        try:
            while True:
                record = await self.task.stop_after(told)
                if record.state in ("submitted", "working"):
                    return  # another process works on it
                await workers.run(self._tell, record)
                # Who has read the row before that must not tell of it again.
                told = self._agents.told[self.task.id] = record.change
                self._recovers = False
                if record.is_terminal:
                    return
        except SagentsError as error:
            # It is told when the conversation is opened again.
            logger.warning("Session %s is not told of %s: %s", self.session.id, self.task.id, error)
        finally:
            self._agents.watched.pop(self.task.id, None)

    def _tell(self, record: TaskRecord) -> None:
        """In a thread: put it into the queue, safely, and note that it is there."""
        if not (self._recovers and _has_heard(self.session, record)):
            self.session.wake(news_of(record))
        tasks = self._agents.store.scoped(self.task.scope).tasks
        tasks.run(rows.told, record.id, record.change)


def news_of(record: TaskRecord) -> Message:
    """What a conversation is told of its task."""
    more = record.text if record.state == "completed" else record.message
    said = _SAYS[record.state]
    text = (
        f"(Background task {record.id} of {record.agent} {said}{more if said[-1] != '.' else ''})"
    )
    message = Message.user(text)
    about: Mapping[str, Any] = {"id": record.id, "change": record.change, "state": record.state}
    return replace(message, metadata={**message.metadata, TASK: dict(about)})


def _has_heard(session: Session, record: TaskRecord) -> bool:
    told = (message.metadata.get(TASK) for message in session.said())
    return any(
        isinstance(each, dict)
        and (each.get("id"), each.get("change")) == (record.id, record.change)
        for each in told
    )


def recover(agents: Host, session: Session, caller: Caller) -> list[Task]:
    """Go on with the background tasks of a session, and tell it what it has not heard.

    In a thread. Those that this process looks after already are left to that.
    """
    scope = session.scope if agents.scope is None else agents.scope
    records = agents.store.scoped(scope).tasks.run(rows.untold, session.id)
    found: list[Task] = []
    for record in records:
        task = agents.known(record, scope, caller)
        found.append(task)
        runtime.call(_attend, agents, task, session, True)
    return found


def _attend(agents: Host, task: Task, session: Session, recovers: bool) -> None:
    told = max(task.record.told, agents.told.get(task.id, 0))
    if task.id in agents.watched or (task.record.is_terminal and told >= task.record.change):
        return
    Watch(agents, task, session, recovers)
    if task.state in ("submitted", "working"):
        task.go()


def attend(agents: Host, task: Task, session: Session) -> None:
    """Have ``session`` told of a task that was begun just now; from any thread."""
    runtime.call(_attend, agents, task, session, False)
