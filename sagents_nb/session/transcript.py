"""What is kept of a session beside its journal: rows that people see, and its state at turns.

Nothing here stops the agent: what cannot be kept is logged, told, and given again with what
comes next, in order.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from ..errors import AgentError, ModelError, NotRunning, StaleOwner, pass_on
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
from ..loop.open_calls import TWIN
from ..messages import ANSWER, NOT_RUN, Message, ToolResult
from ..runtime.thread import runtime
from ..runtime.workers import outcome_of, workers
from ..serialization import to_data
from ..store.display import DisplayMessage, Row, cancelled_row, error_row
from ..store.persistence import AgentPersistence, DisplayMessagePersistence, Lifecycle
from ..text import logger_of, said_by, text_or_why

if TYPE_CHECKING:
    from ..store.database.connection import InTurn
    from .journal import SessionJournal

logger = logger_of(__name__)

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
    def __init__(self, kind: type[Event], method: str, args: tuple[Any, ...]) -> None:
        self.kind = kind  # of the event that tells of the rows
        self.method = method  # of who keeps them
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
        self._persistence: Any = persistence
        self._whose = scope, conversation_id
        self._tell = tell
        self._trouble = trouble
        self._journal: SessionJournal | None = None  # in whose transactions all is done
        self._jobs: deque[_Job] = deque()
        self._ride: InTurn | None = None  # of the first jobs, which are being done
        self._lost = False  # the conversation is somebody else's by now
        self._worker: asyncio.Task[None] | None = None
        self._placeholders: set[str] = set()  # ids of calls whose saved result is one
        self._ended: set[str] = set()  # ids of calls that were told to have, since the last results

    def go_along(self, journal: SessionJournal | None) -> None:
        """Write the rows in the transactions of that journal, if it is in the same database.

        Then a message and its rows are there together or not at all.
        """
        database = getattr(self._persistence, "database", None)
        if journal is not None and journal.writes_into(database):
            self._journal, self._lost = journal, False
            journal.carry(self)

    def expect(self, call_ids: Iterable[str]) -> None:
        """The saved results of these calls are to be replaced once they have others."""
        self._placeholders.update(call_ids)

    def keep(self, message: Message) -> Coroutine[Any, Any, None] | None:
        """Save a message that is about to be told, before that if it does not take long.

        With the journal: with the message itself. Else by what is given, once that is safe.
        """
        if self._journal is None:
            return self._keep(message)
        self.save(message)
        return None

    async def _keep(self, message: Message) -> None:
        self.save(message)
        await self.drained()

    def save(self, message: Message) -> None:
        """Save what there is to see of a message."""
        for result in message.tool_results:
            if result.is_interrupt:
                self._placeholders.add(result.tool_call_id)
            elif _is_of_twin(result):
                continue
            elif result.tool_call_id not in self._ended:  # nothing was run, or a process ended
                self._status(result.tool_call_id, _ENDS[result.status], {})
        if message.tool_results or message.tool_calls:  # new ones may have the ids of old ones
            self._ended.clear()
        self._put(DisplayMessageSaved, "save_message", message)

    def forget(self, messages: Collection[Message]) -> None:
        """Save nothing of these messages, if that is not under way."""
        gone = {id(message) for message in messages}
        under_way = 0 if self._ride is None else len(self._ride.works)
        self._jobs = deque(
            job
            for number, job in enumerate(self._jobs)
            if number < under_way or job.method != "save_message" or id(job.args[-1]) not in gone
        )

    def hear(self, event: Event) -> None:
        """Follow the life of tool calls."""
        if isinstance(event, ToolExecutionStart):
            self._status(event.tool_call.id, "executing", {})
        elif isinstance(event, ToolExecutionEnd):
            call_id, result = event.tool_call_id, event.result
            if _is_of_twin(result):
                return
            self._ended.add(call_id)
            info = {"duration": event.duration} if event.duration else {}
            self._status(call_id, _ENDS.get(event.status, "failed"), info)
            if call_id in self._placeholders and not result.is_interrupt:
                self._placeholders.discard(call_id)
                self._put(DisplayMessageUpdated, "resolve_tool_result", call_id, result.text)
                answer = result.metadata.get(ANSWER)
                if isinstance(answer, list) and answer:  # people said it, so it is a row of theirs
                    whose = {"tool_call_id": call_id}
                    row = Row("user", "text", {"text": ", ".join(map(str, answer))}, metadata=whose)
                    self._put(DisplayMessageSaved, "save_row", row)
        elif isinstance(event, Interrupt):
            for call_id in event.interrupt.tool_call_ids:
                self._status(call_id, "interrupted", {})
        elif isinstance(event, DecisionMade):
            said = _DECISIONS.get(type(event.decision), "approved")
            about = {"by": event.by, "at": event.ts, "decision": to_data(event.decision)}
            self._put(DisplayMessageUpdated, "record_decision", event.tool_call_id, said, about)

    def end(self, outcome: Outcome) -> None:
        """Save how a run ended, where its messages do not say it."""
        if outcome.status == "cancelled":
            self._put(DisplayMessageSaved, "save_row", cancelled_row())
        elif outcome.status == "error" and outcome.error is not None:
            said = outcome.messages[-1] if outcome.messages else Message("assistant")
            if said.stop_reason != "error" or not said.text:  # else its text is marked: rows_of
                self._put(DisplayMessageSaved, "save_row", _error_row(outcome.error))

    def _status(self, call_id: str, status: str, info: dict[str, Any]) -> None:
        self._put(DisplayMessageUpdated, "update_tool_status", call_id, status, info)

    def _put(self, kind: type[Event], method: str, *args: Any) -> None:
        if self._lost:
            return
        self._jobs.append(_Job(kind, method, (*self._whose, *args)))
        if self._journal is not None:
            self._journal.soon()
        elif self._worker is None:
            self._worker = runtime.spawn(self._work())

    async def drained(self) -> None:
        """Return once all that could be saved is, or after ``PATIENCE``."""
        if self._journal is not None:
            if self._jobs:
                with suppress(AgentError, TimeoutError):
                    await asyncio.wait_for(self._journal.committed(), PATIENCE)
            return
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
                    saved = await called(getattr(self._persistence, job.method), *job.args)
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

    # in the transactions of the journal

    def take(self) -> InTurn | None:
        """The jobs that wait, for a transaction."""
        if self._jobs:
            from ..store.database.connection import InTurn  # of the extra, as the journal is

            self._ride = InTurn([functools.partial(self._do, job) for job in self._jobs])
        return self._ride

    def _do(self, job: _Job, connection: Any) -> Any:
        return self._persistence.work_of(job.method, *job.args)(connection)

    def taken(self, error: BaseException | None, undone: Collection[Message]) -> None:
        """What came of them; those behind one that failed are given again with what comes next."""
        ride, self._ride = self._ride, None
        if ride is not None and error is not None:
            self._doubt(ride, error)
        if undone:
            self.forget(undone)
        if isinstance(error, StaleOwner):  # nothing of this session is kept any more
            self._jobs.clear()
            self._lost = True
        if ride is None or error is not None:  # which is told by who has the journal
            return
        for saved in ride.done:
            self._tell_of(self._jobs.popleft().kind, saved)
        if ride.error is not None:
            job = self._jobs[0]
            job.tries += not ride.contended  # nothing is wrong with one that waits for somebody
            self._failed(job, ride.error)
            if job.tries >= TRIES:
                self._jobs.popleft()

    def _doubt(self, ride: InTurn, error: BaseException) -> None:
        """Rows of which nobody knows whether they were saved are saved again, and not twice."""
        from ..store.database.connection import CommitInDoubt

        if isinstance(error, CommitInDoubt):
            done = zip(self._jobs, ride.done, strict=False)
            added = [saved for job, saved in done if job.kind is DisplayMessageSaved]
            ids = [row.id for saved in added for row in _rows_of(saved)]
            remove = _Job(DisplayMessageUpdated, "remove_rows", (*self._whose, ids))
            self._jobs.appendleft(remove)

    def _tell_of(self, kind: type[Event], saved: Any) -> None:
        for row in _rows_of(saved):
            data = to_data(asdict(row)) if isinstance(row, DisplayMessage) else to_data(row)
            self._tell(kind, display_message=data)

    def _failed(self, job: _Job, error: BaseException) -> None:
        what = "is left out" if job.tries >= TRIES else "is tried again"
        problem = f"A row of the transcript was not saved and {what}: {text_or_why(error)}"
        logger.warning("Session %r: %s", self._whose[1], problem)
        self._trouble(problem)


def _rows_of(saved: Any) -> Sequence[Any]:
    return [saved] if isinstance(saved, DisplayMessage) else saved or ()


def _is_of_twin(result: ToolResult) -> bool:
    """Whether its row says already how it ended, and the one that is found by its id is another."""
    return result.metadata.get(NOT_RUN) == TWIN


def _error_row(error: AgentError) -> Row:
    kind = error.kind if isinstance(error, ModelError) else _snake(type(error).__name__)
    return error_row(str(error), _TYPES.get(kind, kind))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
