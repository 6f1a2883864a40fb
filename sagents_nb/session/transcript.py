"""What is kept of a session beside its journal: rows that people see, and its state at turns.

Nothing here stops the agent: what cannot be kept is logged, told, and given again with what
comes next, in order.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import re
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from msgspec.structs import asdict

from ..errors import AgentError, ModelError, NotRunning, pass_on
from ..events import (
    DecisionMade,
    DisplayMessageSaved,
    DisplayMessageUpdated,
    Event,
    Interrupt,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from ..interrupts import Reject, Respond
from ..loop.config import Outcome
from ..messages import ANSWER, Message
from ..runtime.thread import runtime
from ..runtime.workers import outcome_of, workers
from ..serialization import to_data
from ..store.display import DisplayMessage, Row, cancelled_row, error_row
from ..store.persistence import AgentPersistence, DisplayMessagePersistence, Lifecycle
from ..text import said_by, text_or_why

logger = logging.getLogger(__name__)

# How long a run waits for what is on its way to be kept, in seconds; then it comes when it comes.
PATIENCE = 5.0

LIFECYCLE: dict[str, Lifecycle] = {
    "completed": "on_completion",
    "paused": "on_completion",
    "interrupted": "on_interrupt",
    "error": "on_error",
    "cancelled": "on_cancel",
}
"""Why a state is kept, by how a run ended."""


class StateSaver:
    """Keeps the state of one conversation, one after the other; on the runtime loop only."""

    def __init__(
        self,
        persistence: AgentPersistence,
        scope: Any,
        conversation_id: str,
        export: Callable[[], dict[str, Any]],
        trouble: Callable[[str], None],
    ) -> None:
        self._persistence = persistence
        self._whose = scope, conversation_id
        self._export = export
        self._trouble = trouble
        self._last: asyncio.Task[None] | None = None

    async def keep(self, context: Lifecycle) -> None:
        """Have the state of now kept, and wait for it if it does not take long."""
        await asyncio.wait([self.post(context)], timeout=PATIENCE)

    def post(self, context: Lifecycle) -> asyncio.Task[None]:
        """Have the state of now kept, behind what is being kept."""
        self._last = runtime.spawn(self._keep(self._last, self._export(), context))
        return self._last

    async def _keep(
        self, before: asyncio.Task[None] | None, exported: dict[str, Any], context: Lifecycle
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await called(self._persistence.save_state, *self._whose, exported, context)
        except BaseException as error:
            pass_on(error)
            problem = f"The state was not saved {context}: {said_by(error)}"
            logger.warning("Session %r: %s", self._whose[1], problem)
            self._trouble(problem)


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """What somebody's function gives, be it sync (in a worker thread) or async."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    future = _submitted(function, *args)
    outcome, error = await asyncio.wrap_future(future)
    if error is not None:
        raise error
    return await outcome if inspect.isawaitable(outcome) else outcome


_lock = threading.Lock()
_saving: set[Future[Any]] | None = set()  # None once the process ends


def _submitted(function: Callable[..., Any], *args: Any) -> Future[Any]:
    with _lock:
        if _saving is None:
            raise NotRunning("The process ends, so nothing more is kept.")
        future = workers.submit(outcome_of, function, *args)
        _saving.add(future)
        future.add_done_callback(_saving.discard)
    return future


@atexit.register
def _at_exit() -> None:
    """Let what is being kept be kept; for a bounded time, since the process has to end."""
    global _saving
    with _lock:
        saving, _saving = _saving, None
    wait(list(saving or ()), timeout=2 * PATIENCE)


# How often one row is tried; then it is left out, so that those behind it are saved.
TRIES = 5

_ENDS = {
    "completed": "completed",
    "failed": "failed",
    "rejected": "failed",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "interrupted": "interrupted",
}

_DECISIONS: dict[type, str] = {Reject: "rejected", Respond: "answered"}

# As Sagents calls them.
_TYPES = {
    "max_runs_exceeded": "exceeded_max_runs",
    "failures_exceeded": "exceeded_failure_count",
}


class _Job:
    def __init__(self, kind: type[Event], save: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.kind = kind  # of the event that tells of the rows
        self.save = save
        self.args = args
        self.tries = 0


class Transcript:
    """Keeps the rows of one conversation, one after the other; on the runtime loop only.

    ``tell`` emits an event, ``trouble`` takes a sentence about what could not be saved.
    """

    def __init__(
        self,
        persistence: DisplayMessagePersistence,
        scope: Any,
        conversation_id: str,
        tell: Callable[..., Any],
        trouble: Callable[[str], None],
    ) -> None:
        self._persistence = persistence
        self._whose = scope, conversation_id
        self._tell = tell
        self._trouble = trouble
        self._jobs: deque[_Job] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._placeholders: set[str] = set()  # ids of calls whose saved result is one

    async def keep(self, message: Message) -> None:
        """Save a message that is about to be told, before that if it does not take long."""
        self.save(message)
        await self.drained()

    def save(self, message: Message) -> None:
        """Save what there is to see of a message."""
        self._put(DisplayMessageSaved, self._persistence.save_message, message)
        for result in message.tool_results:
            if result.is_interrupt:
                self._placeholders.add(result.tool_call_id)

    def hear(self, event: Event) -> None:
        """Follow the life of tool calls."""
        if isinstance(event, ToolExecutionStart):
            self._status(event.tool_call.id, "executing", {})
        elif isinstance(event, ToolExecutionEnd):
            call_id, result = event.tool_call_id, event.result
            info = {"duration": event.duration} if event.duration else {}
            self._status(call_id, _ENDS.get(event.status, "failed"), info)
            if call_id in self._placeholders and not result.is_interrupt:
                self._placeholders.discard(call_id)
                resolve = self._persistence.resolve_tool_result
                self._put(DisplayMessageUpdated, resolve, call_id, result.text)
                answer = result.metadata.get(ANSWER)
                if isinstance(answer, list) and answer:  # people said it, so it is a row of theirs
                    whose = {"tool_call_id": call_id}
                    row = Row("user", "text", {"text": ", ".join(map(str, answer))}, metadata=whose)
                    self._put(DisplayMessageSaved, self._persistence.save_row, row)
        elif isinstance(event, Interrupt):
            for call_id in event.interrupt.tool_call_ids:
                self._status(call_id, "interrupted", {})
        elif isinstance(event, DecisionMade):
            said = _DECISIONS.get(type(event.decision), "approved")
            record = self._persistence.record_decision
            about = {"by": event.by, "at": event.ts, "decision": to_data(event.decision)}
            self._put(DisplayMessageUpdated, record, event.tool_call_id, said, about)

    async def end(self, outcome: Outcome) -> None:
        """Save how a run ended, where its messages do not say it, and wait for all that is due."""
        save = self._persistence.save_row
        if outcome.status == "cancelled":
            self._put(DisplayMessageSaved, save, cancelled_row())
        elif outcome.status == "error" and outcome.error is not None:
            said = outcome.messages[-1] if outcome.messages else Message("assistant")
            if said.stop_reason != "error" or not said.text:  # else its text is marked: rows_of
                self._put(DisplayMessageSaved, save, _error_row(outcome.error))
        await self.drained()

    def _status(self, call_id: str, status: str, info: dict[str, Any]) -> None:
        change = self._persistence.update_tool_status
        self._put(DisplayMessageUpdated, change, call_id, status, info)

    def _put(self, kind: type[Event], save: Callable[..., Any], *args: Any) -> None:
        self._jobs.append(_Job(kind, save, (*self._whose, *args)))
        if self._worker is None:
            self._worker = runtime.spawn(self._work())

    async def drained(self) -> None:
        """Return once all that could be saved is, or after ``PATIENCE``."""
        if self._jobs and self._worker is None:
            self._worker = runtime.spawn(self._work())
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=PATIENCE)

    async def _work(self) -> None:
        try:
            while self._jobs:
                job = self._jobs[0]
                job.tries += 1
                try:
                    saved = await called(job.save, *job.args)
                except BaseException as error:
                    pass_on(error)
                    self._failed(job, error)
                    if job.tries < TRIES:
                        return
                    saved = None
                self._jobs.popleft()
                self._tell_of(job.kind, saved)
        finally:
            self._worker = None

    def _tell_of(self, kind: type[Event], saved: Any) -> None:
        rows = [saved] if isinstance(saved, DisplayMessage) else saved or ()
        for row in rows:
            data = to_data(asdict(row)) if isinstance(row, DisplayMessage) else to_data(row)
            self._tell(kind, display_message=data)

    def _failed(self, job: _Job, error: BaseException) -> None:
        what = "is left out" if job.tries >= TRIES else "is tried again"
        problem = f"A row of the transcript was not saved and {what}: {text_or_why(error)}"
        logger.warning("Session %r: %s", self._whose[1], problem)
        self._trouble(problem)


def _error_row(error: AgentError) -> Row:
    kind = error.kind if isinstance(error, ModelError) else _snake(type(error).__name__)
    return error_row(str(error), _TYPES.get(kind, kind))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
