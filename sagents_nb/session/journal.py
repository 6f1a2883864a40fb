"""How a session is written down: what happens as rows of its journal, committed in order.

Everything here runs on the runtime loop, where nothing waits for a disk: the journal's store
has a thread of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import weakref
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec.structs import replace

from ..errors import AgentError, ConfigurationError, StaleOwner, StoreError
from ..interrupts import Decision, Interrupt
from ..loop.open_calls import doubtful_calls
from ..messages import Message, ToolCall, ToolResult, Usage
from ..runtime.thread import runtime
from ..serialization import VERSION, StateSchema, serialized, to_data
from ..state import State
from ..store.entries import Entry
from ..store.folding import Call, Decided, Folded, LastRun, QueuedMessage, Rows
from ..text import logger_of

if TYPE_CHECKING:
    from ..store.journal import Journal

logger = logger_of(__name__)

# Superseded rows are deleted once there are so many more of them than of those that count: what
# a row costs is constant then, and a short conversation is left alone.
SPARE = 100

# Seconds after which is written what was to go along with what comes next.
LAG = 1.0

# Seconds after which is tried again what could not be written, twice as many each time, to a limit.
AGAIN, AGAIN_MOST = 1.0, 30.0


class Rider(Protocol):
    """Keeps something beside the journal, in its transactions: what people see, say."""

    def take(self) -> Callable[[Any], None] | None:
        """What there is to be done with a connection, or None; it must not raise."""

    def taken(self, error: BaseException | None, undone: Collection[Message]) -> None:
        """The transaction was committed, or failed for that reason.

        Of the messages that are ``undone`` nothing is to be kept later.
        """


class _Before(NamedTuple):
    """What was noted before something was held."""

    kept: State
    length: int  # of the history
    run: LastRun | None
    queued: dict[int, tuple[int, Message]]
    messages: list[Message]  # that were noted since


class SessionJournal:
    """The writer of one journal, and the :class:`~sagents_nb.loop.config.Recorder` of its runs.

    Rows are collected, and one batch at a time is on its way: so their order is that of what
    happened, also when one could not be written and goes first with the next, or after a while.
    What a rider keeps is written in the transaction of what comes next, or after ``LAG``.
    ``schema`` is the ``state_schema`` of the agent.
    """

    def __init__(self, journal: Journal, schema: StateSchema) -> None:
        from ..store.database.thread import forgotten  # of the extra, as the journal is

        self.journal = journal
        self.schema = schema
        self._rows = Rows()  # as they are committed
        self._kept = State()  # as it is noted; the next difference is taken to it
        self._numbers = array("q")  # of the messages in ``_kept``
        self._count = itertools.count(1)  # numbers of messages, and ids of queued ones
        self._queued: dict[int, tuple[int, Message]] = {}  # by identity; the message is held
        self._noted: list[Entry] = []
        self._late: asyncio.TimerHandle | None = None
        self._again = AGAIN
        self._held: Future[None] | None = None  # of what waits for the first message of a run
        self._before: _Before | None = None  # that was held
        self.undone: BaseException | None = None  # why what was held last is not written
        self._rider: Rider | None = None
        self._run: LastRun | None = None  # as it was noted last
        self.ending: Callable[[], LastRun | None] = lambda: None  # of the active run, if it ended
        self._released = False
        self._tentative: set[int] = set()  # by identity, of those noted
        self._unsafe: set[int] = set()  # numbers of messages that wait and are not written yet
        self._writing: Future[None] | None = None
        self._then: Future[None] | None = None  # of who waits for what came meanwhile
        self.on_lost: Callable[[AgentError], None] = lambda error: None
        # A session that nobody has any more has nobody to close it.
        self._forgotten = weakref.finalize(self, forgotten.append, journal.release)
        self._forgotten.atexit = False  # the store gives up all that it has

    @property
    def owner(self) -> str:
        """Which store of which process has the conversation, as its lease says."""
        return self.journal.database.owner.text

    def writes_into(self, database: Any) -> bool:
        """Whether it is kept in that one."""
        return self.journal.database is database

    def carry(self, rider: Rider) -> None:
        """Have in the transactions from now on what that one keeps."""
        self._rider = rider

    # what happens

    def begin(self) -> None:
        """What is noted from here on is the whole conversation."""
        self._add("begin", {"version": VERSION})
        self._kept = State()
        self._numbers = array("q")
        self._run = None
        self._queued.clear()

    def begin_anew(self, folded: Folded, state: State, usage: Usage) -> None:
        """Write again what could be read, with ``usage`` of all runs."""
        self.go_on(folded.rows, folded.state, ())
        self.begin()
        self.note(state)
        rows: list[Decided | Call] = [*folded.decisions, *folded.calls]
        for row in sorted(rows, key=lambda row: row.seq):
            self._add("decision" if isinstance(row, Decided) else "call", to_data(row))
        for waiting in folded.queued:
            self._queued[id(waiting.message)] = waiting.id, waiting.message
            self._add("queued", to_data(waiting))
        if folded.run is not None:
            self.run(replace(folded.run, usage=usage))

    def go_on(self, rows: Rows, state: State, queued: Iterable[QueuedMessage]) -> None:
        """What was read is what is there: ``state`` is all that these rows say."""
        self._rows, self._kept, self._numbers = rows, state, array("q", rows.numbers)
        queued = list(queued)
        self._count = itertools.count(max([0, *rows.numbers[-1:], *(w.id for w in queued)]) + 1)
        self._queued = {id(w.message): (w.id, w.message) for w in queued}

    def note(self, state: State, *, at_work: bool = False) -> None:
        """Note what differs from what was noted last; constant where the history only grew.

        While a run is ``at_work``, an interrupt that it has the answers to is gone once there
        are messages that say so.
        """
        before, interrupt = self._kept, state.interrupt
        if state is before:
            return
        changed = self._note_messages(state)
        if state.todos is not before.todos and state.todos != before.todos:
            self._add("todos", to_data(state.todos))
        if state.metadata is not before.metadata:
            self._note_metadata(before.metadata, state.metadata)
        if at_work and interrupt is None and not changed:
            interrupt = before.interrupt
        if interrupt is not before.interrupt and interrupt != before.interrupt:
            self._add("interrupt", to_data(interrupt))
        self._kept = state if interrupt is state.interrupt else state.with_interrupt(interrupt)

    def _note_messages(self, state: State) -> bool:
        before, now = self._kept.messages, state.messages
        same = len(before)
        if not now.continues(before):
            pairs = enumerate(zip(before, now, strict=False))
            same = next((i for i, (old, new) in pairs if old is not new), min(same, len(now)))
        if same < len(before):
            self._add("cut", {"from": self._numbers[same]})
            del self._numbers[same:]
        new = now[same:]
        taken = []
        for message in new:
            number = next(self._count)
            self._numbers.append(number)
            if self._held is not None and self._before is not None:
                self._before.messages.append(message)
            self._add("message", {"n": number, **to_data(message)})
            if id(message) in self._queued:
                taken.append(self._queued.pop(id(message))[0])
        if taken:
            self._add("taken", {"ids": taken})
        return bool(new) or same < len(before)

    def _note_metadata(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for key in before:
            if key not in now:
                self._add("metadata", {"key": key})
        for key, value in now.items():
            if key in before and before[key] is value:
                continue
            try:
                data = self._metadata(key, value)
                if key not in before or not _same(data, self._metadata(key, before[key])):
                    self._add("metadata", {"key": key, "value": data})
            except ConfigurationError as error:  # somebody's state_schema: the rest is kept
                logger.error("A change of the metadata was not kept: %s", error)

    def _metadata(self, key: str, value: Any) -> Any:
        return to_data(serialized({key: value}, self.schema)[key])

    def ask_again(self, interrupt: Interrupt) -> None:
        """The answers to this interrupt were refused: it waits for others."""
        self._add("interrupt", to_data(interrupt))

    def queue(self, messages: Iterable[Message], run_id: str, when: str) -> list[Message]:
        """Acknowledge messages, once this is written; gives them as the history must take them.

        Each is an object of its own, so that one can tell which of them the history took. If it
        cannot be written, they do not wait: see :meth:`waits`.
        """
        copies = [replace(message) for message in messages]
        for message in copies:
            number = next(self._count)
            self._queued[id(message)] = number, message
            data = {"id": number, "run_id": run_id, "when": when, "message": to_data(message)}
            self._add("queued", data, tentative=True)
            self._unsafe.add(number)
        return copies

    def waits(self, messages: Iterable[Message]) -> bool:
        """Whether these were acknowledged, or will be, and are no part of the history yet."""
        return all(id(message) in self._queued for message in messages)

    def is_safe(self, message: Message) -> bool:
        """Whether this message, if it waits, is written."""
        number, _ = self._queued.get(id(message), (None, message))
        return number not in self._unsafe

    def withdraw(self, messages: Iterable[Message]) -> None:
        """These do not wait any more, and are no part of the history."""
        ids = [self._queued.pop(id(m))[0] for m in messages if id(m) in self._queued]
        if ids:
            self._add("taken", {"ids": ids})

    def withdraw_all(self) -> None:
        """Nothing of what waits becomes a part of the history."""
        self.withdraw([message for _, message in self._queued.values()])

    def decided(
        self, interrupt: Interrupt, decisions: Mapping[str, Decision], by: str, at: float
    ) -> None:
        """Somebody decided; it counts once this is written."""
        doubtful = doubtful_calls(interrupt)
        for request in interrupt.action_requests:
            if (id := request.tool_call_id) in decisions:
                doubt = id in doubtful
                said = Decided(interrupt.id, id, decisions[id], request, by, doubt, at=at)
                self._add("decision", to_data(said), tentative=True)

    def run(self, run: LastRun) -> None:
        """A run began or ended, unless that is noted already."""
        run = replace(run, since=self._numbers[-1] + 1 if self._numbers else 0)
        if run != self._run:
            self._run = run
            self._add("run", to_data(run))

    def _add(self, kind: str, data: Any, *, tentative: bool = False) -> None:
        entry = Entry(kind, data)
        self._noted.append(entry)
        if tentative or self._held is not None:
            self._tentative.add(id(entry))

    # what a run calls

    def keep(
        self, state: State, *, begins: Sequence[ToolCall] = (), ends: bool = False
    ) -> Future[None] | None:
        """Write everything up to this state.

        The end of a run that ``ends`` with it is written with it, and so are calls that it
        ``begins``.
        """
        self.note(state, at_work=True)
        for call in begins:
            self._begin_call(call)
        if ends and (end := self.ending()) is not None:
            self.run(end)
        elif self._run is not None and self._run.status == "completed":  # a message came
            self.run(replace(self._run, status="running"))
        return self.let_go() or self.flush()

    def starting(self, call: ToolCall) -> Future[None] | None:
        """Write that the body of a call is run."""
        self._begin_call(call)
        return self.let_go() or self.flush()

    def _begin_call(self, call: ToolCall) -> None:
        self._add("call", {"tool_call_id": call.id, "name": call.name}, tentative=True)

    def finished(self, call: ToolCall, result: ToolResult) -> None:
        """Note the result of a call; it is written with what comes next, or by itself.

        Where it was the last of its turn, what comes next is the message with the results, a turn
        of the loop later; where others still run, that may be long, and a crash would leave in
        doubt whether this one ran.
        """
        data = {"tool_call_id": call.id, "name": call.name, "result": to_data(result)}
        self._add("call", data)
        runtime.loop.call_soon(runtime.loop.call_soon, self._write_alone)

    def _write_alone(self) -> None:
        if not self._released:
            self.flush()

    # writing

    @property
    def is_behind(self) -> bool:
        """Whether something is not written yet, or could not be."""
        return bool(self._noted) or self._writing is not None

    def flush(self, *, all: bool = False) -> Future[None] | None:
        """Write what was noted; None if all of it is safe. The future raises StoreError.

        What a rider keeps goes along; it is no reason to write, unless ``all`` is wanted.
        """
        if self._held is not None:
            return self._held
        due = bool(self._noted) or (all and self._late is not None)
        if self._writing is None:
            return self._write(_promise()) if due else None
        if due and self._then is None:
            self._then = _promise()
        return self._then or self._writing

    def soon(self) -> None:
        """A rider has something to keep: with what comes next, or a little later."""
        self._within(LAG)

    def _within(self, seconds: float) -> None:
        if self._late is None and not self._released:
            self._late = runtime.loop.call_later(seconds, self._no_later)

    def _no_later(self) -> None:
        self.flush(all=True)
        self._late = None

    def hold(self) -> bool:
        """Write the beginning of a run with the first message that it takes: both or nothing.

        For a run that does nothing else before, until it calls :meth:`keep`, or :meth:`let_go`.
        If it cannot be written, nothing of it was noted, and ``undone`` says why. False where
        something else is being written.
        """
        if self._writing is not None or self._held is not None:
            return False
        self._held, self.undone = _promise(), None
        self._before = _Before(self._kept, len(self._numbers), self._run, dict(self._queued), [])
        return True

    def let_go(self) -> Future[None] | None:
        """Write what was held; None if nothing was. The future raises StoreError.

        It may have failed by now, and then nothing is left to be written that would say so.
        """
        held, self._held = self._held, None
        return None if held is None else self._write(held)

    async def committed(self) -> None:
        """Return once all that was noted is safe, and what a rider keeps; raises StoreError."""
        future = self.let_go() or self.flush(all=True)
        if future is not None:
            await asyncio.wrap_future(future)

    def release(self) -> Future[None]:
        """Let go of the conversation, after all that was noted, if that can be written."""
        self.let_go()
        self.flush(all=True)
        self._released = True
        if self._late is not None:
            self._late.cancel()
        self._forgotten.detach()
        return self.journal.release()

    def _write(self, promise: Future[None]) -> Future[None]:
        self._writing, batch, self._noted = promise, self._noted, []
        if self._late is not None:
            self._late.cancel()
            self._late = None

        def ended(appended: Future[int]) -> None:
            runtime.post(self._ended, batch, promise, appended)

        along = None if self._rider is None else self._rider.take()
        if batch or along is not None:
            try:
                appended = self.journal.append(batch, along)
            except Exception as error:  # there may be no more threads, and who waits must hear
                appended = Future()
                appended.set_exception(StoreError(f"The store takes nothing now: {error}."))
            appended.add_done_callback(ended)
        else:
            self._writing = None
            promise.set_result(None)
        return promise

    def _ended(self, batch: list[Entry], promise: Future[None], appended: Future[int]) -> None:
        self._writing, error = None, appended.exception()
        tentative = [entry for entry in batch if id(entry) in self._tentative]
        queued = {entry.data["id"] for entry in tentative if entry.kind == "queued"}
        undone = self._before.messages if error is not None and self._before is not None else ()
        if error is None:
            self._again = AGAIN
            first = appended.result() - len(batch) + 1
            try:
                for seq, entry in enumerate(batch, first):
                    self._rows.take(seq, entry.kind, entry.data)
                self._compact()
            except Exception:  # the rows are safe, and who waits must hear of it
                logger.exception("The rows of a journal are not counted right")
        else:
            kept = [entry for entry in batch if id(entry) not in self._tentative]
            self._noted = kept + self._noted
            if self._before is not None:
                self._kept, length, self._run, queued_before, _ = self._before
                del self._numbers[length:]  # a run that begins adds to them, and no more
                self._queued |= queued_before
                self.undone = error
            self._refuse(queued)
        self._before = None
        self._tentative.difference_update(map(id, batch))
        self._unsafe.difference_update(queued)
        then, self._then = self._then, None
        if self._rider is not None:
            self._rider.taken(error, undone)
        if isinstance(error, StaleOwner):
            self.journal.release()  # if nobody else has it: what is there may be an older copy
            self.on_lost(error)
        elif error is not None and self._noted and then is None:
            self._within(self._again)
            self._again = min(2 * self._again, AGAIN_MOST)
        if then is not None:
            self._write(then)
        if error is None:
            promise.set_result(None)
        else:
            promise.set_exception(error)

    def _refuse(self, numbers: set[int]) -> None:
        """Messages with these numbers wait for nothing, as who sent them is told."""
        if numbers:
            waiting = self._queued.items()
            self._queued = {id: item for id, item in waiting if item[0] not in numbers}

    def _compact(self) -> None:
        rows = self._rows
        if len(rows.superseded) <= len(rows) + SPARE:
            return
        gone, rows.superseded = rows.superseded, []

        def ended(deleted: Future[None]) -> None:
            if deleted.exception() is not None:  # the next time is soon enough
                logger.warning("A journal was not compacted: %s", deleted.exception())
                runtime.post(rows.superseded.extend, gone)

        self.journal.compact(gone).add_done_callback(ended)


def _same(left: Any, right: Any) -> bool:
    # As text: to Python 1, 1.0 and True are equal.
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _promise() -> Future[None]:
    promise: Future[None] = Future()
    promise.set_running_or_notify_cancel()  # who does not wait any more cancels nothing
    return promise
