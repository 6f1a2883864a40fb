"""A task at work: a session of its own, and a row that says how far it is."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Generator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from .. import kinds
from ..agent import Agent
from ..budget import Budget, meter_of
from ..context import Caller
from ..errors import ConfigurationError, NotRunning, Owned, SagentsError, StaleOwner, pass_on
from ..events import AnyEvent, Event, TaskArtifact, TaskOutput, TaskUpdated
from ..interrupts import (
    ActionRequest,
    Approve,
    Decisions,
    Edit,
    Interrupt,
    Reject,
    Respond,
    decisions_for,
    is_decision,
)
from ..messages import ContentPart, Message, TextPart
from ..runtime.caller import blocking
from ..runtime.futures import woken_by
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..serialization import read_as, to_data
from ..session import Run, Session
from ..store import tasks as rows
from ..store.tasks import StoredTasks
from ..tasks import Artifact, TaskRecord
from ..text import logger_of, said_by
from .a2a import task_to_a2a

logger = logger_of(__name__)

LOST = (
    "The function was at work when its process ended, so what it did is not known; delegate the "
    "task again if it may be done twice."
)

PATIENCE = 1.5
"""Seconds that a run which is stopped has to end before its task goes on without it."""


class Host(Protocol):
    """The registry of a task, as far as the task needs it."""

    @property
    def store(self) -> Any:
        """Where the task and its conversation are."""

    def agent_for(self, task: Task) -> Agent:
        """Who works on it; raises NotFound for one that is not there."""

    def is_function(self, name: str) -> bool:
        """Whether the agent of that name is a function."""


class _Overtaken(Exception):
    """Somebody else has changed the task meanwhile."""


class Task:
    """Work that an agent does for somebody, in a conversation of its own.

    :meth:`AgentRegistry.delegate` and :meth:`AgentRegistry.task` give one. It can be waited for by
    ``await`` or :meth:`wait`, and its events be read with ``async for``, from where it last went on
    up to where it has ended or waits for input. All of it is in the registry's store: after the end
    of this process another one goes on, by :meth:`retry` where it was at work and by
    :meth:`respond` where it asks.

    ``id`` is also that of its conversation. ``record`` is what the store knew of it when that was
    last seen here, ``scope`` whose it is. ``host`` is its registry, and ``caller`` for whom it is.

    >>> import sagents_nb as sa
    >>> agents = sa.AgentRegistry()
    >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
    >>> task = agents.delegate("How is the weather?", to="weather")
    >>> task.wait().state, task.text
    ('completed', 'Sun.')
    """

    def __init__(self, host: Host, record: TaskRecord, scope: Any, caller: Caller) -> None:
        self.id = record.id
        self.record = record
        self.scope = scope
        self._host = host
        self._caller = caller
        self._session: Session | None = None
        self._opened: Future[Session | None] = _future()
        self._stopped: Future[None] = _future()  # done while nothing works on it
        self._working: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._asked: asyncio.Future[Any] | None = None  # what a function waits for
        self._value: tuple[ContentPart, ...] | None = None  # what a function returned
        self._since = 0  # the event before it last went on
        self.told_to = 0
        if record.is_terminal or record.state == "input_required":
            self._stopped.set_result(None)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Task {self.id!r} of {self.record.agent!r}: {self.record.state}>"

    # what it is now

    @property
    def state(self) -> str:
        """One of :data:`~sagents_nb.tasks.STATES`, as it is known here; see :meth:`refresh`."""
        return self.record.state

    @property
    def agent(self) -> str:
        """The name of who works on it."""
        return self.record.agent

    @property
    def chain(self) -> tuple[str, ...]:
        """The agents through which it came, the one that works on it last."""
        return self.record.chain

    @property
    def input(self) -> tuple[ContentPart, ...]:
        """What is to be done."""
        return self.record.input

    @property
    def output(self) -> tuple[ContentPart, ...]:
        """What came of it; empty until it is completed."""
        return self.record.output

    @property
    def text(self) -> str:
        """The text of :attr:`output`."""
        return self.record.text

    @property
    def error(self) -> str | None:
        """Why it failed, or None."""
        return self.record.message if self.record.state == "failed" else None

    @property
    def question(self) -> Interrupt | None:
        """What it asks while it waits for input, or None."""
        if self.record.state != "input_required" or self.record.question is None:
            return None
        question: Interrupt = read_as(self.record.question, Interrupt)
        return question

    @property
    def artifacts(self) -> list[Artifact]:
        """What it has made so far, in order; read from the store."""
        return list(self._rows.artifacts(self.id))

    @property
    def session(self) -> Session | None:
        """Its conversation, while it is open here."""
        return self._session

    @property
    def is_at_work(self) -> bool:
        """Whether this process works on it."""
        return self._working is not None and not self._working.done()

    @property
    def _rows(self) -> StoredTasks:
        stored: StoredTasks = self._host.store.scoped(self.scope).tasks
        return stored

    def refresh(self) -> Task:
        """Itself, as the store has it now: another process may work on it.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> agents.delegate("Tomorrow?", to="weather").wait().refresh().state
        'completed'
        """
        self._learn(self._rows.get(self.id))
        return self

    def _learn(self, record: TaskRecord) -> None:
        """Take over what the store has; what was read before somebody's change is old."""
        runtime.call(self._take, record)

    def _take(self, record: TaskRecord) -> str:
        """The state before."""
        previous = self.record.state
        if record.change >= self.record.change:
            self.record = record
        return previous

    def to_a2a(self) -> dict[str, Any]:
        """The Task of A2A 1.0 with its artifacts, as JSON-ready data.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> task = agents.delegate("Tomorrow?", to="weather").wait()
        >>> task.to_a2a()["status"]["message"]["parts"]
        [{'text': 'Sun.'}]
        """
        return task_to_a2a(self.record, self.artifacts)

    # waiting

    @kinds.checked(timeout=kinds.or_none(kinds.number(0, "seconds"), "for ever"))
    def wait(self, timeout: float | None = None) -> Task:
        """Itself, once it has ended or waits for input; waits up to ``timeout`` seconds.

        Raises TimeoutError, and :class:`~sagents_nb.errors.NotRunning` where this process does not
        work on it, so that it would wait for ever.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> agents.delegate("Tomorrow?", to="weather").wait(timeout=60).text
        'Sun.'
        """
        runtime.refuse_here("Waiting for a task", "use 'await task' there")
        self._check_attended()
        try:
            with blocking():
                main_thread.wait(self._stopped, timeout)
        except TimeoutError:
            raise TimeoutError(
                f"Task {self.id!r} has not ended within {timeout:g} s; it goes on: wait again or "
                "cancel it."
            ) from None
        return self

    def __await__(self) -> Generator[Any, None, Task]:
        self._check_attended()
        yield from asyncio.wrap_future(self._stopped).__await__()
        return self

    def _check_attended(self) -> None:
        if not self._stopped.done() and self._working is None:
            raise NotRunning(
                f"Nothing here works on task {self.id!r}, which is {self.state}; task.retry() goes "
                "on with it."
            )

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        self._check_attended()
        return self._events()

    async def _events(self) -> AsyncIterator[AnyEvent]:
        session = await asyncio.wrap_future(self._opened)
        if session is None:
            return
        async for event in session.events(self._since):
            yield event
            if isinstance(event, TaskUpdated) and _stops(event.state):
                return

    async def stop_after(self, change: int) -> TaskRecord:
        """What it is at its next stop after that ``change``; on the runtime loop."""
        while not (self._stopped.done() and self.record.change > change):
            waiter = runtime.loop.create_future()
            self._waiters.append(waiter)
            await waiter
        return self.record

    async def stopped(self) -> None:
        """Return once nothing works on it; on the runtime loop. To cancel this leaves it alone."""
        await woken_by(self._stopped)

    async def opened(self) -> Session | None:
        """Its conversation, once it is open, or None if it never will be; on the runtime loop."""
        await woken_by(self._opened)
        return self._opened.result()

    # what people do

    @kinds.checked(answer=kinds.ANYTHING)
    def respond(self, answer: Any) -> Task:
        """Itself, which goes on with the ``answer`` to what it asks.

        A text answers a question; what wants approval takes decisions, as
        :meth:`Session.resume` does: ``sa.Approve()``, for example. Of two who answer, one does.

        Raises :class:`~sagents_nb.errors.NotRunning` where it asks nothing, and
        :class:`~sagents_nb.errors.InvalidDecision` for an answer that does not fit; nothing has
        changed then.

        >>> import sagents_nb as sa
        >>> async def report(task: sa.Task, ctx: sa.TaskContext):
        ...     return f"The tides of {await ctx.request_input('Which port?')}"
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(report)
        >>> task = agents.delegate("Report.", to="report").wait()
        >>> task.state, task.question.message
        ('input_required', 'Which port?')
        >>> task.respond("Bergen").wait().text
        'The tides of Bergen'
        """
        record = self.refresh().record
        question = self.question
        if question is None:
            ask = "; task.retry() goes on" if record.state == "input_required" else ""
            raise NotRunning(f"Task {self.id!r} asks nothing: it is {record.state}{ask}.")
        given: Decisions = answer if _is_decisions(answer) else Respond(answer)
        if self._host.is_function(record.agent):
            self._respond_to_function(given)
            return self
        decisions = self._host.agent_for(self).checked(question, given)
        self._changed_by_people("working", "answered", message="", question=None)
        runtime.call(self.go, decisions)
        return self

    def _respond_to_function(self, given: Decisions) -> None:
        waiting = self._asked
        if waiting is None or waiting.done():
            self._changed_by_people("failed", "answered", message=LOST)
            runtime.call(self._settle)
            raise NotRunning(f"Task {self.id!r} cannot be answered any more. {LOST}")
        question = self.question
        assert question is not None
        [answer] = decisions_for(question, given).values()
        assert isinstance(answer, Respond)  # it allows nothing else
        self._changed_by_people("working", "answered", message="", question=None)
        runtime.call(self._hand, waiting, answer.answer)

    def _hand(self, waiting: asyncio.Future[Any], answer: Any) -> None:
        self._stopped = _future()
        if not waiting.done():
            waiting.set_result(answer)

    def cancel(self) -> None:
        """Stop it, and those that it has delegated to and waits for.

        Raises :class:`~sagents_nb.errors.NotRunning` for one that has ended: nothing has changed
        then.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> slow = sa.ScriptedModel(["Sun. " * 99], delay=60)
        >>> _ = agents.add(sa.Agent(slow, name="weather"))
        >>> task = agents.delegate("Tomorrow?", to="weather")
        >>> task.cancel()
        >>> task.wait().state
        'canceled'
        """
        self._changed_by_people("canceled", "canceled", message="It was canceled.")
        runtime.call(self._stop)

    def retry(self) -> Task:
        """Itself, which goes on where the end of its process, or a pause, has left it.

        What ran then is not run again: a call of which nobody knows whether it did is asked about,
        unless its tool is idempotent. Raises :class:`~sagents_nb.errors.NotRunning` for one that
        has ended, that asks, or that is at work.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> task = agents.delegate("Tomorrow?", to="weather").wait()
        >>> try:
        ...     task.retry()
        ... except sa.NotRunning as error:
        ...     print("is completed" in str(error))
        True
        """
        if self.is_at_work:
            raise NotRunning(f"Task {self.id!r} is at work; wait for it.")
        record = self.refresh().record
        if record.is_terminal or record.question is not None:
            instead = "; answer it by task.respond(…)" if record.question is not None else ""
            raise NotRunning(f"Task {self.id!r} is {record.state}{instead}.")
        runtime.call(self.go)
        return self

    def _changed_by_people(self, state: str, word: str, **values: Any) -> None:
        done, record = self._rows.run(rows.change, self.id, state, **values)
        previous = runtime.call(self._take, record)
        if not done:
            raise NotRunning(
                f"Task {self.id!r} is {record.state}, so it cannot be {word} any more."
            )
        self.publish(TaskUpdated, state=state, previous=previous, text=record.message)

    # what is done: everything from here on happens on the runtime loop

    def go(self, decisions: Mapping[str, Any] | None = None) -> None:
        """Work on it, with the ``decisions`` of people if it asked, unless that is done already."""
        if self.is_at_work or self.record.is_terminal:
            return
        self._stopped = _future()
        self._working = runtime.spawn(self._work(decisions))

    async def _work(self, decisions: Mapping[str, Any] | None) -> None:
        try:
            await self._worked(decisions)
        except _Overtaken:
            self._stop()
        except (Owned, StaleOwner) as error:  # another process works on it
            logger.warning("Task %s is worked on elsewhere: %s", self.id, error)
        except BaseException as error:
            pass_on(error)
            with suppress(_Overtaken, SagentsError):
                await self._change("failed", message=said_by(error))
        if self.record.is_terminal:
            await self._close()
        self._working = None
        self._settle()

    async def _worked(self, decisions: Mapping[str, Any] | None) -> None:
        session = self._session
        if session is None or (session.status == "closed" and session.resting is None):
            session = self._session = await workers.run(self._open)
            if not self._opened.done():
                self._opened.set_result(session)
        if self.record.state != "working":
            await self._change("working", message="", question=None)
        run = self._next_run(session, decisions)
        began = time.perf_counter()
        if run is not None and not await self._ended(run):
            session.cancel()
            limit = "It took longer than it was given (its timeout)."
            await self._change("failed", message=limit)
            await asyncio.wait([woken_by(run.future)], timeout=PATIENCE)
            return
        await self._conclude(session, time.perf_counter() - began)

    def _open(self) -> Session:
        """Its conversation; in a thread."""
        record, budget = self.record, None
        if record.budget is not None:
            budget = Budget(**record.budget).shared()
        meter = meter_of(budget, self._caller.meter) if budget else self._caller.meter
        session = Session.open(
            self.id,
            agent=self._host.agent_for(self),
            store=self._host.store,
            scope=self.scope,
            create=True,
            caller=Caller(record.chain[:-1], record.max_depth, meter),
        )
        said = session.messages
        answers = sum(message.role == "assistant" for message in said)
        if budget is not None and answers:  # of before it was let go of, or the process ended
            budget.meter.add(session.usage)
            budget.meter.add_calls(answers, sum(len(m.tool_results) for m in said))
        return session

    def _next_run(self, session: Session, decisions: Mapping[str, Any] | None) -> Run | None:
        """What is to be done now; None where it is done, or people have to answer."""
        status = session.status
        if status == "running":
            return session.current_run
        if status == "interrupted":
            return session.resume(dict(decisions)) if decisions else None
        if not session.messages and not session.queued:
            return session.send(Message.user(list(self.record.input)))
        if status == "paused":
            if self._host.is_function(self.record.agent):
                raise NotRunning(LOST)
            return session.retry()
        return None

    async def _ended(self, run: Run) -> bool:
        """Whether it has ended in time."""
        deadline = self.record.deadline
        left = None if deadline is None else max(0.0, deadline - time.time())
        done, _ = await asyncio.wait([woken_by(run.future)], timeout=left)
        return bool(done)

    async def _conclude(self, session: Session, seconds: float) -> None:
        """Keep what came of it."""
        usage = session.usage
        spent = {
            "seconds": self.record.seconds + seconds,
            "tokens": usage.total_tokens,
            "cost_usd": usage.cost_usd,
        }
        interrupt = session.state.interrupt
        if session.status == "interrupted" and interrupt is not None:
            message = interrupt.message or _asked_by(interrupt)
            asks = {"question": to_data(interrupt), "message": message}
            await self._change("input_required", **asks, **spent)
        elif session.status == "paused":
            message = "It was paused; task.retry() goes on."
            await self._change("input_required", message=message, **spent)
        elif session.status == "cancelled":
            await self._change("canceled", message="It was canceled.", **spent)
        elif session.status == "error":
            await self._change("failed", message=session.error or "It failed.", **spent)
        elif session.status == "idle":
            output = self._value if self._value is not None else _answer(session)
            await self._change("completed", output=output, message="", **spent)

    async def _change(self, state: str, **values: Any) -> None:
        """Keep another state and tell it; raises _Overtaken if somebody else was faster."""
        done, record = await workers.run(
            lambda: self._rows.run(rows.change, self.id, state, **values)
        )
        previous = self._take(record)
        if not done:
            raise _Overtaken
        self._tell(TaskUpdated, state=state, previous=previous, text=record.message)

    def publish(self, kind: type[Event], **fields: Any) -> None:
        """Tell an event of that ``kind`` and ``fields`` in its conversation, if that is open."""
        runtime.call(lambda: self._tell(kind, **fields))

    def _tell(self, kind: type[Event], **fields: Any) -> None:
        if self._session is None or self._session.status == "closed":
            return
        about = {"agent": self.record.agent} if kind is TaskUpdated else {}
        log = self._session.actor.log
        event: Any = kind
        if kind is TaskUpdated and _stops(fields["previous"]):
            self._since = log.last
        self._session.publish(event(task_id=self.id, **about, **fields))

    def _stop(self) -> None:
        """It has ended, by somebody's word: let go of what is at work."""
        if self._asked is not None and not self._asked.done():
            self._asked.cancel()
        session = self._session
        if session is not None and session.status in ("running", "interrupted", "paused"):
            session.cancel()
        if not self.is_at_work:
            self._working = runtime.spawn(self._let_go())

    async def _let_go(self) -> None:
        await self._close()
        self._working = None
        self._settle()

    async def _close(self) -> None:
        session = self._session
        if session is not None and session.status != "closed":
            try:
                await workers.run(session.close)
            except BaseException as error:
                pass_on(error)
                logger.warning("The conversation of task %s was not closed: %s", self.id, error)

    def _settle(self) -> None:
        """Nothing works on it any more."""
        if not self._opened.done():
            self._opened.set_result(self._session)
        if not self._stopped.done():
            self._stopped.set_result(None)
        waiting, self._waiters = self._waiters, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    # what a function does

    def returned(self, parts: tuple[ContentPart, ...]) -> None:
        """A function has given these ``parts``."""
        self._value = parts

    async def ask(self, question: str) -> Any:
        """What people answer to a ``question``; raises NotRunning if it asks already."""
        if self._asked is not None and not self._asked.done():
            raise NotRunning(f"Task {self.id!r} asks already; wait for that answer first.")
        self._asked = waiting = runtime.loop.create_future()
        interrupt = question_of(self.id, self.record.agent, question)
        try:
            await self._change("input_required", question=to_data(interrupt), message=question)
            self._settle()
            return await waiting
        except _Overtaken:
            raise asyncio.CancelledError from None
        finally:
            self._asked = None

    async def emit(self, artifact: Artifact) -> Artifact:
        """Keep an ``artifact`` that it made, and tell of it."""
        kept = await workers.run(lambda: self._rows.run(rows.add_artifact, artifact))
        self._tell(TaskArtifact, artifact=kept)
        return kept

    def say(self, text: str) -> None:
        """Tell ``text``, a piece of what it will give."""
        self.publish(TaskOutput, text=text)

    def progress(self, text: str, fraction: float | None) -> None:
        """Tell in a ``text`` how far it is; ``fraction`` is 0 to 1."""
        state = self.record.state
        self.publish(TaskUpdated, state=state, previous=state, text=text, fraction=fraction)


def question_of(id: str, agent: str, question: str) -> Interrupt:
    """A function's question, to be answered in words."""
    request = ActionRequest(id, agent, {}, question, ("respond",))
    return Interrupt("input", (request,), question, id=uuid.uuid4().hex)


def _future() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # an abandoned await must not cancel it
    return future


def _stops(state: str) -> bool:
    return state not in ("submitted", "working")


def _is_decisions(answer: Any) -> bool:
    """Whether it is what a session is resumed with."""
    if _is_one(answer):
        return True
    several = answer.values() if isinstance(answer, Mapping) else answer
    return isinstance(answer, Mapping | list) and bool(answer) and all(map(_is_one, several))


def _is_one(answer: Any) -> bool:
    return isinstance(answer, Approve | Edit | Reject | Respond) or is_decision(answer)


def _asked_by(interrupt: Interrupt) -> str:
    asked = ", ".join(each.display_text or each.tool_name for each in interrupt.action_requests)
    return f"It waits for an answer about {asked}." if asked else "It waits for an answer."


def _answer(session: Session) -> tuple[ContentPart, ...]:
    """The last thing that its agent said."""
    answers = (m for m in reversed(session.messages) if m.role == "assistant" and m.text.strip())
    said = next(answers, None)
    return () if said is None else (TextPart(said.text),)


def parts_of(given: Any) -> tuple[ContentPart, ...]:
    """What is to be done, as parts: a text, a message's parts, or a list of these.

    A prompt comes first. Raises :class:`~sagents_nb.errors.ConfigurationError` for anything else.
    """
    from ..loop.execution import messages_of

    if isinstance(given, str) and not given.strip():
        raise ConfigurationError("The task is empty; say what is to be done.")
    messages = messages_of(given)
    if len(messages) != 1 or messages[0].role != "user":
        raise ConfigurationError("A task is one text, or a list of parts such as images.")
    return tuple(p for p in messages[0].parts if isinstance(p, ContentPart))
