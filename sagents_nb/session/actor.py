"""The actor behind a session: the one writer of its state, on the runtime loop only."""

from __future__ import annotations

import asyncio
import functools
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace as struct_replace

from .. import kinds
from ..agent import Agent
from ..budget import Meter, meter_of
from ..context import ADDED
from ..errors import (
    AgentError,
    Busy,
    ConfigurationError,
    ModelError,
    NotRunning,
    StaleApproval,
    StaleOwner,
    StoreError,
)
from ..events import (
    AGENT_REPLACED,
    REPLACED,
    AgentShutdown,
    Debug,
    DecisionMade,
    Emitter,
    Event,
    MessageEnd,
    MessageQueued,
    MessageStart,
    MessageWithdrawn,
    NodeTransferred,
    NodeTransferring,
    StatusChanged,
    TitleGenerated,
    TodosUpdated,
    ToolExecutionEnd,
)
from ..interrupts import Decision, Decisions, Interrupt
from ..loop.approvals import bound_anew
from ..loop.config import Outcome, Unfinished
from ..loop.execution import new_run_id, run_result
from ..loop.loop import PAUSE_REASON, Loop
from ..loop.model_call import is_blank
from ..loop.open_calls import (
    closing_message,
    end_of,
    given_up,
    open_calls,
    placeholders,
    unanswered_result,
    with_decision,
)
from ..messages import BRANCH, CUT_SHORT, Message, ToolResult, Usage
from ..middleware.human_in_the_loop import ask_again, passing
from ..middleware.turns import is_summary
from ..runtime.event_stream import EventStream
from ..runtime.futures import enter, wait_uncancelled, woken_by
from ..runtime.thread import runtime
from ..state import State, export_state
from ..store.folding import LastRun
from ..tools import Tool
from .approvals import Approvals
from .branches import branch_points, branched, switched
from .event_log import EventLog, Listener
from .inbox import Inbox, Queued
from .journal import SessionJournal
from .middleware_messages import MiddlewareMessages
from .opening import OpenedConversation, RestoredSession, conversations_of, here
from .options import SessionOptions
from .presence import Presence
from .run import Conversing, Run
from .transcript import LIFECYCLE, StateSaver, Transcript

T = TypeVar("T")

# The reason of a status that is told to somebody who comes late, and is no news.
SNAPSHOT = "snapshot"


class Actor:
    """Status, state and the active run of one session.

    Every method runs on the runtime loop, so nothing here needs a lock; other threads read
    ``status``, ``state`` and the other attributes, which are immutable snapshots. Without a store
    there is no ``journal``: then all is safe at once.
    """

    def __init__(
        self,
        session: Conversing,
        agent: Agent,
        files: Any,
        options: SessionOptions,
        opened: OpenedConversation,
    ) -> None:
        restored = opened.restored
        self.session = session
        self.agent = agent
        self.files = files
        self.options = options
        self.scope = options.scope
        self.started_at = time.time()
        self.status = restored.status
        self.error = restored.error
        self._taken: AgentError | None = None  # why nothing is kept any more
        self.usage = restored.usage
        self.problems = restored.problems
        self.initial = restored.state.messages
        self.current_run: Run | None = None
        self.local: dict[str, Any] = {}
        self.log = EventLog(opened.told)
        self.journal = opened.journal
        self.inbox = Inbox(self.journal.is_safe if self.journal else lambda message: True)
        self.approvals = Approvals(self.local)
        self.middleware = MiddlewareMessages(self._is_idle, self._idle_run, self._keep_idle_run)
        self.presence = Presence(
            self._is_needed,
            self.rest,
            inactivity=options.inactivity_timeout,
            presence=options.presence_timeout,
        )
        self._state = restored.state
        self._unfinished: Unfinished | None = restored.unfinished  # of the last message's calls
        self._emitter = self._new_emitter()
        self._transcript, self._saver = self._keepers()
        self._epoch = opened.epoch
        self._run_id = restored.run_id or ""  # of the active run, or the last one
        self._loop: Loop | None = None  # of the active run
        self._task: asyncio.Task[None] | None = None  # of the active run
        self._stopped: list[Run] = []  # what waited when somebody stopped it
        self._meter: Meter | None = None  # of the last run, which may go on
        self.answers: Mapping[str, Decision] | None = None  # all that a stopped run has to take
        self._refused: Any = None  # why the answers to the active run could not be written
        self._acting: list[tuple[Callable[[], Any], Callable[..., Any]]] | None = None
        self._told = self.journal is None  # of the status it began with
        self._moved = here() if opened.moved else ""
        self.asleep = False  # it rests: it is closed, and the next call wakes it
        self.gone = False  # it is closed for good
        self.ended: Future[None] = Future()  # of the last rest, or of its close
        self._awake_as = self.status
        self._tell_todos()  # no event of a run tells of those that are there already
        self._follow_files()
        self._restore(restored)

    def _new_emitter(self) -> Emitter:
        """One whose events come after all that were told."""
        return Emitter(self.log.push, session_id=self.session.id, first=self.log.last + 1)

    def _restore(self, restored: RestoredSession) -> None:
        """Know what was decided, and what waits, as a conversation was left."""
        if restored.status == "paused":
            self.answers = restored.decisions or None
        else:
            self.approvals.restore(restored.decisions)
        self.approvals.said = restored.said
        asking = restored.given_up
        if restored.state.interrupt is not None:  # else there is none, and all was looked at
            asking = asking + placeholders(restored.state)
        if self._transcript is not None:
            self._transcript.expect(result.tool_call_id for result in asking)
        runs: dict[str, list[Message]] = {}
        for queued in restored.queued:
            if queued.when == "queue":
                runs.setdefault(queued.run_id, []).append(queued.message)
            else:
                self.inbox.add(queued.message, queued.when)
        for run_id, messages in runs.items():
            self.inbox.put(messages, Run(self.session, run_id))
        if self.journal is not None:
            self.journal.on_lost = self._lost
            self.journal.ending = self._ending
        if restored.given_up:  # last: the runtime may be quicker than the rest of this
            runtime.post(self._tell_given_up, restored.given_up)

    def _keepers(self) -> tuple[Transcript | None, StateSaver | None]:
        """Who keeps what people see, and the state at the turns of the session's life."""
        options, whose = self.options, (self.scope, self.session.id)
        transcript = saver = None
        if options.display_persistence is not None:
            shown = options.display_persistence
            transcript = Transcript(shown, *whose, self._emit_now, self._trouble)
            transcript.go_along(self.journal)
            self.log.subscribe(transcript.hear)
        titled: list[StateSaver] = []  # who is told of a title
        if options.agent_persistence is not None:
            saver = StateSaver(options.agent_persistence, *whose, self.exported, self._trouble)
            titled.append(saver)
        if options.store is not None:  # its journal is the state; a conversation has a title too
            conversations = conversations_of(options.store, self.scope)
            titled.append(StateSaver(conversations, *whose, self.exported, self._trouble))

        def hear(event: Event) -> None:
            if isinstance(event, TitleGenerated):
                for one in titled:  # soon: a hook tells of a title before the state has it
                    runtime.loop.call_soon(one.post, "on_title_generated")

        if titled:
            self.log.subscribe(hear)
        return transcript, saver

    # what can be read

    @property
    def state(self) -> State:
        """The state now, also in the middle of a run."""
        loop = self._loop
        return loop.state if loop is not None else self._state

    @property
    def taken(self) -> list[Message]:
        """What the active run has taken of what was said, and is no part of the state yet."""
        return [] if self._loop is None else list(self._loop.pending)

    @property
    def added_tools(self) -> Mapping[str, Tool]:
        """By name the tools that hooks and tools have added in this conversation."""
        added: Mapping[str, Tool] = self.local.get(ADDED, ({}, None))[0]
        return added

    def exported(self) -> dict[str, Any]:
        """The state as JSON-ready data."""
        return export_state(self.state, self.agent.middleware_chain.state_schema)

    @property
    def awakes_as(self) -> str | None:
        """The status after a rest; None while it does not rest."""
        return self._awake_as if self.asleep else None

    def check_open(self) -> None:
        """Raise NotRunning if the session is closed, StaleOwner if it was taken over."""
        if self._taken is not None:
            raise StaleOwner(str(self._taken))
        if self.status == "closed":
            stored = self.options.store is not None
            step = (
                "open it again by Session.open(…)" if stored else "start a new one with its state"
            )
            raise NotRunning(f"Session {self.session.id!r} is closed; {step}.")

    # what is safe before it is told

    def acted(
        self, function: Callable[..., T], args: tuple[Any, ...]
    ) -> tuple[T, Future[None] | None]:
        """What a public method returns, and a future for its being safe and told, or None.

        All that it changes is written together.
        """
        acting: list[tuple[Callable[[], Any], Callable[..., Any]]] = []
        self._acting = acting
        try:
            value = function(*args)
        finally:
            self._acting = None
            future = self._flush()
            for do, undo in acting:
                _after(future, do, undo)
        if future is None:
            return value, None
        told: Future[None] = Future()  # who waits for it comes after those who are told of it

        def tell() -> None:
            told.set_result(None)

        def fail(error: BaseException) -> None:
            self._not_safe(error)
            told.set_exception(error)

        _after(future, tell, fail)
        return value, told

    def _not_safe(self, error: BaseException) -> None:
        """What was done while nothing runs could not be written: it is, before anything else."""
        if self._loop is None and self.status not in ("closed", "interrupted"):
            self.error = str(error)
            self.status, previous = "error", self.status
            self._emitter.emit(StatusChanged, status="error", previous=previous, reason=self.error)

    def _once_safe(
        self, do: Callable[[], Any], undo: Callable[[BaseException], Any] = lambda error: None
    ) -> None:
        """Call ``do`` once all that happened so far is safe, or ``undo`` if it cannot be."""
        if self.journal is not None and self._acting is not None:
            self._acting.append((do, undo))
        else:
            _after(self._flush(), do, undo)

    def _flush(self) -> Future[None] | None:
        """Write what changed; None if all is safe. The future raises StoreError."""
        if self.journal is None:
            return None
        if self._loop is None:  # else the run notes its own changes
            self.journal.note(self._state)
        return self.journal.flush()

    def when_kept(self, tell: Callable[[BaseException | None], object]) -> None:
        """Call ``tell`` once all that happened so far is safe, or with what went wrong."""
        _after(self._flush(), lambda: tell(None), tell)

    async def _failure(self) -> AgentError | None:
        """Wait until what happened so far is safe, also when cancelled; why it is not."""
        future = self.journal.flush() if self.journal is not None else None
        if future is None:
            return None
        await wait_uncancelled(woken_by(future))
        error = future.exception()
        return error if error is None or isinstance(error, AgentError) else AgentError(str(error))

    # messages

    def send(self, messages: list[Message], when: str, overrides: Mapping[str, Any]) -> Run:
        """Start a run, or queue, steer or refuse, as the status and ``when`` say."""
        self.check_open()
        if self.status == "running":
            if when == "raise":
                raise Busy(
                    f"Session {self.session.id!r} is running; send(…, when='queue') waits for it, "
                    "when='steer' talks to the active run."
                )
            if when == "steer":
                self.enqueue(messages, "steer")
                assert self.current_run is not None
                return self.current_run
        elif self.status == "interrupted":
            self._drop_interrupt("another message came")
        # An earlier stop, or an end of the process, may have left others that wait.
        behind = self.status == "running" or self.inbox.has_runs
        run = Run(self.session, new_run_id(), overrides=overrides)
        self.inbox.put(self._queued(messages, run.id, "queue"), run)
        if behind:
            run.wait_in_line()
            self._once_safe(lambda: None, functools.partial(self._refuse, run))
            for message in messages:
                self._tell(MessageQueued, message=message, when="queue", of_run=run.id)
        if self.status != "running":
            self._start_next()
        return run

    def send_instead(
        self, messages: list[Message], position: int, overrides: Mapping[str, Any]
    ) -> Run:
        """Start a run with messages in the place of the one there, which becomes a branch."""
        self.check_open()
        name = f"Session {self.session.id!r}"
        if self.status in ("running", "interrupted"):
            raise Busy(f"{name} is {self.status}; stop the run, then send the edited message.")
        if self.inbox.queued:
            raise Busy(f"Messages wait in {name}; let them run or withdraw them first.")
        before = self._state
        asked = (
            place
            for place, said in enumerate(before.messages)
            if said.role == "user" and not is_summary(said)
        )
        if type(position) is not int or position not in asked:
            where = kinds.shown(position)
            raise ConfigurationError(f"{name} has no message of a person at {where}.")
        state, branch = branched(before, position)
        first, *others = messages
        first = struct_replace(first, metadata={**first.metadata, BRANCH: branch})
        self.log.turn((branch, _current(before, position)), before.messages[position:])
        self.replace(None, state, branch=True)
        try:
            return self.send([first, *others], "queue", overrides)
        except BaseException:
            self.replace(None, before, branch=True)
            raise

    def switch_branch(self, position: int, branch: int) -> None:
        """Go on with another branch of the point at that place."""
        self.check_open()
        if self.status in ("running", "interrupted"):
            raise Busy(f"Session {self.session.id!r} is {self.status}; stop the run first.")
        before = self._state
        state = switched(before, position, branch)
        if state is not before:
            id = state.messages[position].metadata[BRANCH]
            self.log.turn((id, _current(before, position)), before.messages[position:])
            self.log.turn_back((id, branch), state.messages[position:])
            self.replace(None, state, branch=True)

    def wake_agent(self, messages: list[Message]) -> Run | None:
        """Start or queue a run with messages that answer nothing; what waits for people waits on.

        Then they are kept for when it goes on.
        """
        self.check_open()
        if self.status in ("interrupted", "paused"):
            self.enqueue(messages, "follow_up")
            return None
        return self.send(messages, "queue", {})

    def enqueue(self, messages: list[Message], when: str) -> None:
        """Queue messages for the active run, or the next one."""
        self.check_open()
        for message in self._queued(messages, "", when):
            self.inbox.add(message, when)
            self._tell(MessageQueued, message=message, when=when)
            self._once_safe(lambda: None, functools.partial(self._forget, message))

    def _forget(self, message: Message, error: BaseException) -> None:
        """A message for the active run that could not be written does not wait for it."""
        self.inbox.forget(message)

    def _refuse(self, run: Run, error: BaseException) -> None:
        """A run whose message could not be written is none, if it has not begun to find out."""
        if self.inbox.remove(run) is not None:
            run.refused(error)

    def _queued(self, messages: list[Message], run_id: str, when: str) -> list[Message]:
        return messages if self.journal is None else self.journal.queue(messages, run_id, when)

    # runs

    def retry(self, run_id: str = "") -> Run:
        """Run again from the last user or tool message, or with what is queued, or go on.

        With ``run_id`` as that run, which has to be the last.
        """
        if run_id and run_id != self._run_id:
            raise NotRunning("Another run has begun since, so this one cannot go on any more.")
        run = self._go_on("retry", run_id)
        if run is None:
            raise NotRunning("There is nothing to retry: the last message is an answer.")
        return run

    def proceed(self) -> Run:
        """The same; where nothing is left to do, ask the model with the conversation as it is."""
        return self._go_on("proceed") or self._start(Run(self.session, new_run_id()), [])

    def _go_on(self, how: str, run_id: str = "") -> Run | None:
        """Go on with what is left to do, as that run or a further one; None if there is nothing."""
        self.check_open()
        if self.status == "running":
            raise Busy(f"Session {self.session.id!r} is running; wait until it ends, then {how}.")
        if self.status == "interrupted":
            raise Busy(
                f"Session {self.session.id!r} waits for an answer; give it by approve(), reject() "
                "or resume(), and it goes on."
            )
        messages = self._state.messages
        last = messages[-1] if messages else None
        goes_on = last is not None and (last.stop_reason == "pause_turn" or is_blank(last))
        unanswered = last is not None and last.role in ("user", "tool")
        since = self.log.last if run_id else 0
        further = functools.partial(self._further_run, run_id or new_run_id(), since)
        if self.answers is not None or open_calls(self._state):
            return self._start(further(), [], decisions=self.answers, meter=self._meter)
        if self.status == "paused" and (unanswered or goes_on):
            return self._start(further(), [], meter=self._meter)
        while messages and _is_no_answer(messages[-1]):
            self._state = self._state.set_messages(messages[:-1])
            messages = self._state.messages
        if not (messages and messages[-1].role in ("user", "tool")):
            if self.inbox.has_runs:
                return self._start_next()
            if not (messages and self.inbox.has_messages):
                return None
        return self._start(further(), [])

    def _further_run(self, id: str, since: int = 0) -> Run:
        """One that goes on with the last: what was another agent's for that, is for it."""
        last = self.current_run
        overrides = {} if last is None else last.overrides
        run = Run(self.session, id, since, overrides)
        if last is not None and last.id == id:  # its tools still see who sent it, not who answered
            run.context = last.context.copy()
        return run

    def _start_next(self) -> Run:
        messages, run = self.inbox.take()
        return self._start(run, messages, self.answers)  # what was answered is not lost to it

    def _start(
        self,
        run: Run,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None = None,
        meter: Meter | None = None,
    ) -> Run:
        self._epoch += 1
        self.error = None
        self.current_run, self._run_id = run, run.id
        run.begin()
        held = False
        agent = self.agent.overridden(run.overrides)
        if self.journal is not None:
            self.journal.note(self._state)
            # Nothing happens before the message is taken, so both are written at once.
            alone = not (agent.middleware_chain.hooks["before_run"] or self.middleware.at_work)
            if messages and decisions is None and self._refused is None and alone:
                held = self._state.interrupt is None and self.journal.hold()
            self.journal.run(LastRun(run.id, "running", usage=self.usage))
        self._loop = loop = agent.new_run(
            self._state,
            self._emitter.for_run(run.id),
            files=self.files,
            scope=self.scope,
            epoch=self._epoch,
            local=self.local,
            notify=self.notify,
            middleware_messages=self.middleware.waiting,
            meter=meter or self._meter_of(agent),
            steering=self.inbox.steering,
            follow_ups=self.inbox.follow_ups,
            skip_rest=self.inbox.skips_rest,
            should_pause=self.inbox.takes_pause,
            recorder=self.journal,
            transcribe=self._transcript and self._transcript.keep,
        )
        loop.ctx.decided = dict(self.approvals.said)
        loop.ctx.caller = self.options.caller
        loop.pending = list(messages)
        self._meter = loop.ctx.meter
        self._set_status("running")
        self._task = None
        runtime.spawn(self._execute(run, loop, messages, decisions, held), run.context)
        return run

    def _meter_of(self, agent: Agent) -> Meter | None:
        """What a run counts by that works for another agent; None for one of its own."""
        before = self.options.caller.meter
        return None if before is None else meter_of(agent.budget, before)

    async def _execute(
        self,
        run: Run,
        loop: Loop,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None,
        held: bool,
    ) -> None:
        began = time.perf_counter()
        enter(run)
        if self._loop is loop:  # a task that is cancelled before its first step never ends a run
            self._task = asyncio.current_task()
        interrupt = loop.state.interrupt
        failure = (None if held else await self._failure()) or self._refused
        if failure is None and self.journal is not None and not self.journal.waits(messages):
            failure = StoreError("The message was not written, so it is not sent; send it again.")
        self._refused = None
        begun = loop.state
        if failure is None:
            await self._after_middleware(loop)
            begun = loop.state
            outcome = await loop.run(messages, decisions, self._unfinished)
        if held and self.journal is not None:
            self.journal.let_go()
            if isinstance(undone := self.journal.undone, AgentError):
                failure = failure or undone
                self._give_back(loop.state.messages[len(begun.messages) :], messages)
                loop.state = begun
        answers = None
        if failure is None:
            if self._loop is loop and self._transcript is not None:
                for message in loop.commits.left:
                    self._transcript.save(message)
            refused = outcome.status == "interrupted" and loop.state.interrupt is interrupt
            if self._loop is loop and self.journal is not None:
                if refused and interrupt is not None:
                    self.journal.ask_again(interrupt)
                failure = await self._keep_end(self.journal, run, loop, outcome)
                outcome.error = outcome.error or failure
                if failure is not None and outcome.status != "interrupted":
                    outcome.status = "error"
            if self._loop is loop:
                await self._tell_keepers(outcome, failure)
        else:
            outcome, answers = self._not_begun(loop, messages, decisions, failure)
        go_on = False
        if self._loop is loop:  # else it was reset or closed: a late result changes nothing
            self._take_end(outcome, loop)
            self.answers = answers
            if outcome.status == "completed":
                go_on = self.inbox.has_runs
            elif outcome.status == "cancelled":  # what was said since the stop is to be answered
                go_on = any(waiting not in self._stopped for waiting in self.inbox.runs)
            if not go_on:
                status = "idle" if outcome.status == "completed" else outcome.status
                self.inbox.takes_pause()  # whoever asked too late does not mean the next run
                reason = self.error or self._state.get_metadata(PAUSE_REASON)
                self._set_status(status, reason, at_once=failure is not None)
                if status == "interrupted" and loop.ctx.is_cancelled:
                    self.cancel()  # somebody stopped it as it had just begun to ask
            self.presence.touch()
        duration, id = time.perf_counter() - began, self.session.id
        run.resolve(lambda: run_result(outcome, duration, {}, self.local, session_id=id))
        if go_on:
            self._start_next()
        self.middleware.handle()  # what came after the run had handled the last

    def _not_begun(
        self,
        loop: Loop,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None,
        failure: AgentError,
    ) -> tuple[Outcome, Mapping[str, Decision] | None]:
        """Nothing runs that is not written: decisions are asked for again.

        Messages that were acknowledged wait on, those that were refused do not.
        """
        waits = self.journal is not None and self.journal.waits(messages)
        if messages and waits and self._loop is loop:
            self.inbox.put_first(messages, self._further_run(new_run_id()))
        status = "error" if decisions is None else "interrupted"
        answers = self.answers
        if answers is not None:  # those were written long ago
            status = "paused"
        outcome = Outcome(status, loop.state, [], Usage(), error=failure)
        outcome.unfinished = self._unfinished
        return outcome, answers

    def _give_back(self, taken: Sequence[Message], refused: Sequence[Message]) -> None:
        """Of a run that is undone: what it had taken for itself waits again, and has no row."""
        if self._transcript is not None:
            self._transcript.forget(taken)
        for message in taken:
            mine = any(message is other for other in refused)
            if self.journal is not None and not mine and self.journal.waits([message]):
                self.inbox.add(message, "steer")

    def _ending(self) -> LastRun | None:
        """The end of the active run, if it completed now."""
        if self._loop is None or self.inbox.has_messages:
            return None
        return LastRun(self._run_id, "completed", usage=self.usage + self._loop.ctx.usage)

    async def _keep_end(
        self, journal: SessionJournal, run: Run, loop: Loop, outcome: Outcome
    ) -> AgentError | None:
        """Have the end of a run written; what middleware hears meanwhile belongs to it.

        Where nothing could be written a moment ago, nobody waits for that once more.
        """
        error = str(outcome.error) if outcome.error else None
        usage = self.usage + outcome.usage
        while True:
            journal.note(loop.state)
            journal.run(LastRun(run.id, outcome.status, error, usage))
            failure = loop.commits.failure
            if failure is not None:
                journal.soon()
                return failure
            failure = await self._failure()
            if failure is not None or not loop.middleware_messages or self._loop is not loop:
                return failure
            await loop.deliver_messages()

    async def _tell_keepers(self, outcome: Outcome, failure: AgentError | None) -> None:
        """Have transcript and state kept before the run's end is told, also when cancelled.

        After a ``failure`` of the journal, its transcript is kept once that can be written.
        """
        if isinstance(outcome.error, ModelError):
            self._debug("llm_error", error=str(outcome.error), error_type=outcome.error.kind)
        work = []
        if self._transcript is not None:
            self._transcript.end(outcome)
            if failure is None:
                work.append(self._transcript.drained())
        if self._saver is not None:
            work.append(self._saver.keep(LIFECYCLE[outcome.status]))
        for saving in work:
            await wait_uncancelled(asyncio.ensure_future(saving))

    def _take_end(self, outcome: Outcome, loop: Loop) -> None:
        self._state, self._loop, self._task = loop.state, None, None
        self._unfinished = outcome.unfinished
        self.usage += outcome.usage
        self.error = str(outcome.error) if outcome.error else None
        self._debug("state_updated", messages=len(self._state.messages))

    # stopping a run

    def pause(self, reason: str) -> None:
        """Ask the active run to stop after its next model call."""
        if self.status == "running":
            self.inbox.ask_pause(reason)

    def wind_down(self) -> None:
        """Begin nothing further in the active run, which ends with the calls that are at work."""
        if self.status == "running" and self._loop is not None:
            self._stopped = self.inbox.runs
            self._loop.ctx.cancelled.set()

    def cancel(self) -> None:
        """Stop the active run, or answer what waits as cancelled."""
        if self.status == "running" and self._loop is not None:
            self.wind_down()
            self._stop_task()
            if self.current_run is not None:
                self.current_run.inside.cancel()
        elif self.status in ("interrupted", "paused"):
            self._drop_interrupt("a person stopped the run")
            self.answers = None
            if self.journal is not None:  # else it would wait to go on where it is opened again
                self.journal.run(LastRun(self._run_id, "cancelled", usage=self.usage))
            self._set_status("cancelled")

    def clear_queue(self, which: str) -> None:
        """Forget what waits in one queue, or in all."""
        self.check_open()
        dropped, runs = self.inbox.clear_queue(which)
        self._withdraw(dropped)
        for run in runs:
            self._never_begins(run)

    def withdraw(self, message: Message) -> None:
        """Forget one message that waits, and with it the run that it would have begun."""
        self.check_open()
        found = next((each for each in self.inbox.queued if each.message is message), None)
        if found is None:
            raise NotRunning(
                "That message does not wait any more: the agent has it, or it was taken back."
            )
        if found.run_id:
            self.cancel_run(next(run for run in self.inbox.runs if run.id == found.run_id))
        else:
            self.inbox.forget(message)
            self._withdraw([found])

    def cancel_run(self, run: Run) -> None:
        """Stop that run, or take it out of the queue."""
        messages = self.inbox.remove(run)
        if messages is not None:
            self._withdraw([Queued(run.id, "queue", message) for message in messages])
            self._never_begins(run)
        elif run is self.current_run:
            self.cancel()

    def _withdraw(self, dropped: Sequence[Queued]) -> None:
        if self.journal is not None:
            self.journal.withdraw(queued.message for queued in dropped)
        for queued in dropped:
            self._tell(MessageWithdrawn, message=queued.message, of_run=queued.run_id)

    def _stop_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _stop_now(self) -> None:
        """Let the active run go, whatever it still does, and all that waits for one."""
        if self._loop is not None:
            loop, self._loop = self._loop, None
            loop.commits.stop()
            if self.journal is not None:  # it may have held what it was to begin with
                self.journal.let_go()
            loop.ctx.cancelled.set()
            self.middleware.hand_over()
            self._stop_task()
        self.answers = None
        for run in self.inbox.clear():
            self._never_begins(run)

    def _never_begins(self, run: Run) -> None:
        """Let who waits for that run know, once it is written; also if it cannot be."""
        tell = functools.partial(run.never_began, self._state)
        self._once_safe(tell, lambda error: tell())

    # decisions: everything here runs on one loop, so one of two is the first

    def resume(self, given: Decisions, by: str, interrupt_id: str | None = None) -> Run:
        """Take a decision for everything that is still open."""
        interrupt = self._interrupt(interrupt_id)
        run = self._take(interrupt, self.approvals.rest(self.agent, interrupt, given), by)
        assert run is not None
        return run

    def decide_all(
        self,
        ids: tuple[str, ...],
        decision: Decision,
        by: str,
        interrupt_id: str | None = None,
    ) -> Run | None:
        """Take one decision for these calls, or for all that are open."""
        interrupt = self._interrupt(interrupt_id)
        self.approvals.check_open(interrupt, ids)
        given = dict.fromkeys(ids or self.approvals.open_ids(interrupt), decision)
        return self._take(interrupt, self.approvals.checked(self.agent, interrupt, given), by)

    def decide_seen(
        self,
        decisions: Mapping[str, Any],
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> Run | None:
        """Take decisions on requests as somebody saw them."""
        self.check_open()
        interrupt = self._state.interrupt
        id = interrupt_id if isinstance(interrupt_id, str) else None
        if self.status != "interrupted" or interrupt is None or interrupt.id != id:
            raise StaleApproval("This request was already answered; nothing was run for it now.")
        self.approvals.check_seen(interrupt, decisions, digests)
        return self._take(interrupt, self.approvals.checked(self.agent, interrupt, decisions), by)

    def dismiss(self) -> None:
        """Let go of a halt."""
        interrupt = self._interrupt()
        if interrupt.type != "halt":
            raise NotRunning(f"This {interrupt.type} interrupt needs an answer; decide it.")
        self._drop_interrupt("the halt was dismissed")
        self._set_status("idle")

    def _interrupt(self, meant: str | None = None) -> Interrupt:
        """What waits for people; raises NotRunning if nothing does.

        ``meant`` is the id of what is answered: StaleApproval if that is another one.
        """
        self.check_open()
        interrupt = self._state.interrupt
        if self.status != "interrupted" or interrupt is None:
            raise NotRunning(
                f"Nothing waits for a decision in session {self.session.id!r}, whose status is "
                f"{self.status!r}."
            )
        if meant is not None and meant != interrupt.id:
            open_now = ", ".join(
                f"{request.tool_name} ({request.tool_call_id})"
                for request in interrupt.action_requests
            )
            raise StaleApproval(
                "What this answers was answered already, so nothing was run for it; open by now "
                f"is {open_now or interrupt.type}: look at session.interrupt, and decide again."
            )
        return interrupt

    def _take(self, interrupt: Interrupt, decisions: Mapping[str, Decision], by: str) -> Run | None:
        run = self._further_run(self._run_id or new_run_id(), since=self.log.last)
        emitter = self._emitter.for_run(run.id)
        before, at = self.approvals.taken, time.time()
        complete = self.approvals.add(interrupt, decisions, by, at)
        if self.journal is not None:
            self.journal.decided(interrupt, decisions, by, at)

        def tell() -> None:
            for tool_call_id, decision in decisions.items():
                about = {"tool_call_id": tool_call_id, "decision": decision, "by": by, "ts": at}
                emitter.emit(DecisionMade, **about)

        def take_back(error: BaseException) -> None:
            """What cannot be written was not decided; it may be decided again."""
            self.approvals.restore(before)
            self._refused = error if complete is not None else None

        self._once_safe(tell, take_back)
        return None if complete is None else self._start(run, [], complete, self._meter)

    def _drop_interrupt(self, reason: str) -> None:
        """Answer the waiting calls as cancelled, so that the conversation can go on."""
        said = self.approvals.said_of({*self.approvals.taken, *(self.answers or ())})
        self.approvals.clear()
        message = closing_message(self._state, reason, self._unfinished, said)
        self._unfinished = None
        before = self._state
        asked = placeholders(before)
        self._state = before.clean_stale_interrupts()
        for placeholder in asked:
            result = with_decision(unanswered_result(placeholder, reason), said)
            self._state = self._state.replace_tool_result(result.tool_call_id, result)
        self._tell_given_up(given_up(before, self._state))
        if message is not None:
            self._state = self._state.add_message(message)
            if self._transcript is not None:
                self._transcript.save(message)
            emitter = self._emitter.for_run(self._run_id)

            def tell() -> None:
                emitter.emit(MessageStart, message=message)
                emitter.emit(MessageEnd, message=message)

            self._once_safe(tell)

    def _tell_given_up(self, results: Sequence[ToolResult]) -> None:
        """The end of these calls: nobody can answer what they asked."""
        emitter = self._emitter.for_run(self._run_id)

        def tell() -> None:
            for result in results:
                emitter.emit(ToolExecutionEnd, **end_of(result, result.status))

        if results:
            self._once_safe(tell)

    # middleware

    def notify(self, middleware_id: str, message: Any) -> None:
        """Deliver a message to a middleware: between turns, or now if nothing runs."""
        if self.status != "closed":
            self.middleware.post(middleware_id, message)

    def _is_idle(self) -> bool:
        return self._loop is None and self.status != "closed"

    def _idle_run(self, messages: deque[tuple[str, Any]]) -> Loop:
        """A run for hooks while nothing runs, with the messages that it has to deliver."""
        loop = self.agent.new_run(
            self._state,
            self._emitter.for_run(self._run_id),
            files=self.files,
            scope=self.scope,
            local=self.local,
            middleware_messages=messages,
        )
        if self.journal is not None:
            loop.ctx.held = []  # what hooks tell waits until it is safe
        return loop

    def _keep_idle_run(self, loop: Loop, before: State) -> bool:
        """Keep what hooks made of the state; False if that was changed meanwhile."""
        if loop.state is not before:
            if self._state is not before:
                return False
            self._state = loop.state
            self._debug("state_updated", messages=len(self._state.messages))
        held = loop.ctx.held or []

        def tell() -> None:
            for kind, fields in held:
                loop.ctx.emitter.emit(kind, **fields)

        self._once_safe(tell)
        return True

    async def _after_middleware(self, loop: Loop) -> None:
        """Have a run begin with what hooks made of the state while nothing ran."""
        before = loop.state
        await self.middleware.idle()
        if self._loop is loop and loop.state is before:
            loop.state = self._state

    # what is told

    def subscribe(self, listener: Listener, since: int | None = None, debug: bool = False) -> None:
        """Tell a listener of what happens; with ``since`` first of what is kept after that.

        One that comes late and asks for nothing is first told the status.
        """
        now = None
        if since is None and self._told and self.log.has_told:
            now = StatusChanged(
                **self._now(), status=self.status, previous=self.status, reason=SNAPSHOT
            )
        self.log.subscribe(listener, since, debug, now)
        self._tell_beginning()

    def follow(self, stream: EventStream, since: int = 0) -> None:
        """Feed a stream with what is kept after ``since``, and what comes."""
        self.log.follow(stream, since)
        self._tell_beginning()

    def publish(self, event: Event) -> None:
        """Tell everybody an event of somebody's, as the next one of this session."""
        self.check_open()
        self._emit_now(type(event), **_fields(event))

    def _tell_beginning(self) -> None:
        """Tell the first who watches which status a stored session began with.

        Not before, and not once it has another: nobody should see a question for a moment that
        was answered while the session was opened.
        """
        if not self._told:
            self._told = True
            if self._moved:
                self._emitter.emit(NodeTransferred, node=self._moved)
            self._emitter.emit(StatusChanged, status=self.status, reason=self.error)

    def _set_status(self, status: str, reason: str | None = None, at_once: bool = False) -> None:
        """Tell it once all that led to it is safe, or ``at_once``."""
        previous, self.status = self.status, status
        self._told = True
        goes_on = status in ("running", "interrupted")
        for waiting in self.inbox.runs:
            waiting.wait_in_line() if goes_on else waiting.stand(status)
        if status != previous or reason in (*REPLACED, AGENT_REPLACED):
            tell = self._emitter.emit if at_once else self._tell
            tell(StatusChanged, status=status, previous=previous, reason=reason)
        self.presence.touch()

    def _tell_todos(self, before: State | None = None) -> None:
        todos = tuple(self.state.todos)
        if todos or (before is not None and before.todos):
            self._tell(TodosUpdated, todos=todos)

    def _tell(self, kind: type[Event], /, of_run: str = "", **fields: Any) -> None:
        """Emit an event, once what it tells of is safe."""
        emitter = self._emitter.for_run(of_run) if of_run else self._emitter
        self._once_safe(lambda: emitter.emit(kind, **fields))

    def _emit_now(self, kind: type[Event], /, **fields: Any) -> None:
        emitter = self._emitter if self._loop is None else self._loop.ctx.emitter
        emitter.emit(kind, **fields)

    def _follow_files(self) -> None:
        """Hear of changes of the files, which others may share and which may live longer."""
        reference = weakref.ref(self)

        def hear(event: Event) -> None:
            actor = reference()
            if actor is None:
                unsubscribe()
            else:
                runtime.post(actor.emit_file_event, event)

        self._unsubscribe_files = unsubscribe = self.files.subscribe(hear)

    def emit_file_event(self, event: Event) -> None:
        """Tell of a change of the files, on the runtime loop."""
        self._emit_now(type(event), **_fields(event))

    def _trouble(self, problem: str) -> None:
        self._debug("persistence_failed", problem=problem)

    def _debug(self, kind: str, **data: Any) -> None:
        """Tell those who want to know what goes on behind the scenes."""
        if self.log.debugs:
            self.log.debug(Debug(**self._now(), kind=kind, data=data))

    def _now(self) -> dict[str, Any]:
        """The stamps of an event that is not kept, and so takes no number of its own."""
        ids = {"session_id": self.session.id, "run_id": self._run_id}
        return {"seq": self.log.last, "ts": time.time(), **ids}

    # another conversation

    def reset(self) -> None:
        """Stop, and forget messages, todos, metadata and queues."""
        self.check_open()
        self._stop_now()
        if self.journal is not None:
            self.journal.withdraw_all()
        before = self._state
        self._begin_with(before.reset())
        self.error = None
        self._set_status("idle", "reset")
        self._tell_todos(before)

    def replace(self, agent: Agent | None, state: State | None, *, branch: bool = False) -> None:
        """Go on with another agent or state; ``branch``: with another of this conversation."""
        self.check_open()
        if self.status == "running":
            raise Busy(f"Session {self.session.id!r} is running; cancel it or wait for it first.")
        if agent is not None:
            for run in self.inbox.runs:
                agent.overridden(run.overrides)  # raises for what cannot be
            if self.current_run is not None:
                self.current_run.overrides = {}  # which were of the other
            if agent.interrupt_on is not self.agent.interrupt_on:
                self.ask_again(agent.interrupt_on)
            self.local.pop(ADDED, None)
        self.agent = agent or self.agent
        if self.journal is not None:
            self.journal.schema = self.agent.middleware_chain.state_schema
        status, before = self.status, self._state
        if state is not None:
            self.answers = None
            self._begin_with(bound_anew(state, self.session.id, self._epoch + 1), branch)
            status = "interrupted" if state.interrupt else "idle"
        self._set_status(status, AGENT_REPLACED if state is None else REPLACED[1])
        if state is not None:
            self._tell_todos(before)

    def always_allowed(self) -> list[str]:
        """The tools that people are not asked about any more, though a gate names them."""
        return sorted(passing(self.local))

    def ask_again(self, tool_names: Iterable[str]) -> None:
        """Ask people again before these tools."""
        ask_again(self.local, tool_names)

    def _begin_with(self, state: State, branch: bool = False) -> None:
        """Another conversation, so what was told is forgotten; or a ``branch`` of the same."""
        self.approvals.clear()
        ask_again(self.local)
        self.local.pop(ADDED, None)
        self._unfinished = None
        self._state = state
        self.initial = state.messages
        self.log.forget(branch=branch)
        self._epoch += 1

    # the beginning, a rest, and the end

    def begin(self) -> None:
        """Call the hooks of a session that starts, and count the time that nobody uses it."""
        self.middleware.start(self.agent.middleware_chain)
        self.presence.start()

    def rest(self, reason: str) -> None:
        """Let the conversation go, until somebody needs the session again."""
        self._awake_as = self.status
        self.asleep = True
        self._stop(reason)

    def wake(self, opened: OpenedConversation | None) -> None:
        """Go on after a rest, with the conversation as it is by now; None if it is only here."""
        if not self.asleep:
            return
        self.asleep = False
        self.status = self._awake_as
        if opened is not None:
            restored, self.journal = opened.restored, opened.journal
            self.log.pass_over(opened.told)
            self._emitter = self._new_emitter()
            if self._transcript is not None:
                self._transcript.go_along(self.journal)
            self._epoch = max(self._epoch + 1, opened.epoch)
            if restored.state != self._state:  # somebody went on with it elsewhere
                self._begin_with(restored.state)
                self._tell(StatusChanged, status=restored.status, reason=REPLACED[1])
            self.status, self.error = restored.status, restored.error
            self.usage, self.problems = restored.usage, restored.problems
            self._unfinished = restored.unfinished
            self._restore(restored)
        self._follow_files()
        self.presence.start()

    def transfer(self) -> Future[None]:
        """Leave the conversation to another process."""
        self.check_open()
        self._emit_now(NodeTransferring, node=here())
        return self.close("transferring")

    def close(self, reason: str) -> Future[None]:
        """Stop for good; the future is done once the conversation is let go and that is told.

        What is queued stays in the store.
        """
        rests, self.asleep, self.gone = self.asleep, False, True
        if rests and self.ended.done():
            self.log.close()
        return self._stop(reason)

    def _is_needed(self, reason: str) -> bool:
        """Whether the session must not rest now, for that reason."""
        waits = self.status == "interrupted" and reason == "no_viewers"
        behind = self.journal is not None and self.journal.is_behind  # it is only here
        return self.status in ("running", "closed") or waits or behind or self.inbox.has_runs

    def _stop(self, reason: str) -> Future[None]:
        if self.status == "closed":
            return self.ended
        self.ended = done = Future[None]()
        if self._loop is not None:
            self._state = self._loop.state
            # Else people are asked, or have just answered; or where it is opened again is known
            # which of its calls have ended, which ran, and which are to run.
            kept = self.journal is not None and bool(open_calls(self._state))
            if self._state.interrupt is None and not kept:
                self._state = self._loop.state_if_stopped("the session was closed")
        self._stop_now()
        self._unsubscribe_files()
        self.presence.stop()
        previous, self.status = self.status, "closed"
        if self.journal is not None:
            self.journal.note(self._state)

        def tell() -> None:
            self._tell_end(reason, previous)
            done.set_result(None)

        if not (self.journal or self._transcript or self._saver):
            tell()
        else:
            runtime.spawn(self._let_go()).add_done_callback(lambda _: tell())
        return done

    async def _let_go(self) -> None:
        """Have kept what is left to keep, and let the conversation go."""
        journal = self.journal  # of which the session may hear, here, that it is lost
        if self._transcript is not None:
            await self._transcript.drained()
        if self._saver is not None:
            await self._saver.keep("on_shutdown")
        if journal is not None:
            with suppress(AgentError):  # what cannot be written is not more lost than before
                await journal.committed()
            with suppress(AgentError):
                await asyncio.wrap_future(journal.release())

    def _tell_end(self, reason: str, previous: str) -> None:
        interrupt = self._state.interrupt
        self._emitter.emit(
            AgentShutdown,
            reason=reason,
            last_activity_at=self.presence.last_activity,
            shutdown_at=time.time(),
            restorable=interrupt is not None and interrupt.restorable,
        )
        self._emitter.emit(StatusChanged, status="closed", previous=previous, reason=reason)
        if not self.asleep:
            self.log.close()

    def _lost(self, error: AgentError) -> None:
        """Somebody took the conversation over: nothing that happens here is kept any more."""
        self.journal, self._taken = None, error
        self.close(str(error))


def _current(state: State, position: int) -> int:
    """Which branch of the message at that place is current; the first, if there are no others."""
    return next((p.current for p in branch_points(state) if p.position == position), 0)


def _is_no_answer(message: Message) -> bool:
    """Whether it is no whole answer: it failed, was stopped, refused or cut."""
    return message.role == "assistant" and bool(message.error or message.stop_reason in CUT_SHORT)


def _after(future: Future[None] | None, do: Callable[[], Any], undo: Callable[..., Any]) -> None:
    """Call ``do`` once the future has a result, or ``undo`` with its error."""
    if future is None:
        do()
        return

    def ended(future: Future[None]) -> None:
        error = future.exception()
        do() if error is None else undo(error)

    future.add_done_callback(ended)


def _fields(event: Event) -> dict[str, Any]:
    """What an event says, without when and where it was said."""
    stamps = Event.__struct_fields__
    return {name: getattr(event, name) for name in event.__struct_fields__ if name not in stamps}
