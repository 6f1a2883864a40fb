"""Threads: conversations of an agency with one kind of agent each, and what can be done to one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from .. import kinds
from ..agent import Agent
from ..errors import (
    AgentError,
    Busy,
    ConfigurationError,
    NotRunning,
    SagentsError,
)
from ..events import (
    RESTS,
    AgentShutdown,
    DecisionMade,
    Event,
    MessageEnd,
    StatusChanged,
    ToolExecutionEnd,
)
from ..files.entry import FileEntry
from ..interrupts import Decision, Interrupt, Respond
from ..messages import DECISION, Message, ToolResult
from ..runtime.thread import runtime
from ..serialization import to_data
from ..session import Run, Session
from ..state import TODOS
from .agencies import digest_of
from .approvals import decisions_on
from .event_log import EventLog
from .records import ThreadRecord
from .standings import PEOPLE
from .sub_agents import links_of
from .vocabulary import (
    AGENT_ERROR,
    BY_SUB_AGENT,
    REPORTED,
    REQUEST_ACCEPTED,
    RUN_CANCELED,
    RUN_PAUSED,
    RUN_STARTED,
    SPAWNED,
    STATUSES,
    Told,
    Translator,
    chats,
    completed,
    failed,
    reason_of,
    status_of,
)

IDEMPOTENCY_KEY = "idempotency_key"

MOST_TITLE = 80
"""Characters of a first message that are the title of its thread."""

_ROLES = ("user", "system")
_MESSAGES = kinds.Kind(
    "a list of messages",
    lambda value: kinds.LIST.fits(value) and all(isinstance(each, Message) for each in value),
)


class NothingWaits(NotRunning):
    """Nobody is asked anything."""


class NoKernel(AgentError):
    """A conversation of a notebook is to do something, and no kernel serves it."""

    def __init__(self) -> None:
        super().__init__(
            "No kernel serves this conversation now, so it can only be read; open its notebook and "
            "say %agent serve there."
        )


class Thread:
    """A thread that is open here: its ``session``, and the ``log`` of what is told of it.

    ``was_cut_off`` says whether it ran when its process ended, ``went_on`` whether that goes on.
    ``stopped`` is called with it, on the runtime loop, whenever a run of it has ended, or waits,
    and ``named`` with it and its title, once it has one.
    Its methods wait until what they did is safe, so they are for no event loop.
    """

    def __init__(
        self,
        record: ThreadRecord,
        session: Session,
        log: EventLog,
        stopped: Callable[[Thread], None],
        named: Callable[[Thread, str], None],
    ) -> None:
        self.record = record
        self.session = session
        self.log = log
        self._stopped = stopped
        self._named = named
        self._has_title = bool(record.title)
        # Two who act at once act one after the other: each finds what the other left.
        self._lock = threading.RLock()
        self._translator = Translator(
            session.agent.model.name, log.run_id, log.ticks, session.state.interrupt
        )
        # A key is written with its message, and told after that; a summary forgets messages.
        self._keys = log.accepted | {
            key
            for message in self._messages()
            if (key := message.metadata.get(IDEMPOTENCY_KEY)) is not None
        }
        self._agent_due: Agent | None = None
        self._stopping: Run | None = None  # which somebody cancelled
        self.was_cut_off = STATUSES.get(log.status or "") == "running"
        self.went_on = False
        self._leave = runtime.call(self._listen)
        log.wait()

    def _listen(self) -> Callable[[], None]:
        """On the runtime's loop: what follows what is told here is heard; gives the way out."""
        self.log.append(self._untold())
        return self.session.subscribe(self._hear)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Thread {self.record.id} of {self.record.type!r}: {self.status}>"

    @property
    def status(self) -> str:
        """One of "registered", "running", "paused", "completed", "error" and "canceled"."""
        return status_of(self.session.resting or self.session.status, self.log.status)

    @property
    def waits_for_people(self) -> bool:
        """Whether somebody is asked, and nobody has answered yet."""
        return self.status == "paused" and reason_of(self._waiting) == PEOPLE

    @property
    def is_gone(self) -> bool:
        """Whether its session was closed for good, here or since another process has it."""
        return self.session.status == "closed" and self.session.resting is None

    def _untold(self) -> list[Told]:
        """What happened and was not told, since the process ended that would have told it."""
        results = (r for m in self.session.messages for r in m.tool_results)
        reports = self._reports(results) if self.log.unreported else []
        return [*reports, *self._untold_status()]

    def _reports(self, results: Iterable[ToolResult]) -> list[Told]:
        """The reports in these of which nothing was told, since the process ended meanwhile."""
        children = self.log.unreported
        return [
            (REPORTED, {"childThreadId": children.pop(result.tool_call_id), "result": result.text})
            for result in results
            if result.tool_call_id in children
            and result.metadata.get(DECISION, {}).get("by") == BY_SUB_AGENT
        ]

    def _untold_status(self) -> list[Told]:
        session, told = self.session, self.log.status
        tell = self._translator
        if session.status == "interrupted":
            return [] if told == RUN_PAUSED else tell.paused(session.state.interrupt)
        if session.error is not None:
            return [] if told in (AGENT_ERROR, RUN_CANCELED) else [failed(session.error)]
        is_open = STATUSES[told] in ("running", "paused") if told else bool(session.messages)
        unheard = bool(session.queued) and told != RUN_CANCELED
        if session.status == "paused" or unheard or (is_open and not session.messages):
            return [] if told == RUN_PAUSED else tell.paused(None)
        if not is_open:
            return []
        last = session.messages[-1]
        has_answer = last.role == "assistant" and not last.error
        return completed(session.messages) if has_answer else [tell.canceled]

    def _hear(self, event: Event) -> None:
        if isinstance(event, MessageEnd) and event.message.role == "user" and not self._has_title:
            title = " ".join(event.message.text.split())
            if title:
                self._has_title = True
                self._named(self, f"{title[:MOST_TITLE]}…" if len(title) > MOST_TITLE else title)
        told = self._translator.translate(event)
        if isinstance(event, DecisionMade) and event.by == BY_SUB_AGENT:
            self.log.unreported.pop(event.tool_call_id, None)
        elif isinstance(event, ToolExecutionEnd):
            told = [*self._reports([event.result]), *told]
        self.log.append(told)
        if any(STATUSES.get(type, "running") != "running" for type, _ in told):
            self._stopped(self)
        match event:
            case AgentShutdown() if event.reason not in RESTS:
                self.log.end()
            case StatusChanged(status="idle", previous="running") if self.session.queued:
                self._left_unheard()

    def _left_unheard(self) -> None:
        """Something was said when the run heard nothing more."""
        runtime.loop.call_soon(self._hear_more)

    def _hear_more(self) -> None:
        """Have what was said be heard by a run, unless one is there to hear it."""
        with suppress(NotRunning, Busy):
            self.session.retry()

    # what can be done

    @kinds.checked(messages=_MESSAGES, files=kinds.of(Mapping[str, str]))
    def invoke(
        self,
        messages: Sequence[Message] = (),
        files: Mapping[str, str] = {},
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Say ``messages``, put ``files``, and have the agent go on; without any, it goes on too.

        A thread that runs, or waits, is only told: it takes in what was said with its next call of
        the model. The same ``idempotency_key`` does nothing a second time.
        """
        said = _checked(messages)
        with self._lock:
            if idempotency_key is not None and idempotency_key in self._keys:
                return self.run
            if idempotency_key is not None and said:
                named = {**said[-1].metadata, IDEMPOTENCY_KEY: idempotency_key}
                said[-1] = msgspec.structs.replace(said[-1], metadata=named)
            with self._put(files):
                self._use_agent()
                self._say(said)
            if idempotency_key is not None:
                self._keys.add(idempotency_key)
                self.tell([(REQUEST_ACCEPTED, {"idempotencyKey": idempotency_key})])
            return self.run

    @contextmanager
    def _put(self, files: Mapping[str, str]) -> Iterator[None]:
        """Have these files be there; where what follows is refused, as they were before."""
        mine, before = self.session.files, dict[str, str | bytes | None]()
        try:
            for path, content in files.items():
                path = path if path.startswith("/") else f"/{path}"
                before[path] = mine.read(path).content if mine.exists(path) else None
                mine.write(path, content)
            yield
        except BaseException:
            for path, was in reversed(before.items()):
                if was is not None:
                    mine.write(path, was)
                elif mine.exists(path):
                    mine.delete(path)
            raise

    @kinds.checked
    def has_accepted(self, idempotency_key: str) -> bool:
        """Whether a request of that key was accepted: another one does nothing."""
        return idempotency_key in self._keys

    def _say(self, said: list[Message]) -> None:
        session = self.session
        if session.status in ("running", "interrupted"):
            if not said:
                return
            if session.status == "running" and session.current_run is self._stopping:
                session.send(said)  # it hears nothing any more
                return
            session.steer(said)
            if session.status not in ("running", "interrupted"):  # it ended before it heard
                self._hear_more()
        elif said and session.queued:  # what was said before comes first
            session.steer(said)
            self._hear_more()
        elif said:
            session.send(said)
        else:
            session.proceed()

    @kinds.checked(timeout=kinds.or_none(kinds.number(0, "seconds")))
    def wait(self, timeout: float | None = None) -> str:
        """Wait until the run that is active has ended, or waits itself; what the thread is then.

        Raises :class:`TimeoutError` after ``timeout`` seconds.
        """
        if (run := self.session.current_run) is not None:
            with suppress(SagentsError):  # the status says that it failed
                run.result(timeout)
        return self.status

    def replace_agent(self, record: ThreadRecord, agent: Agent) -> None:
        """Have further runs by ``agent``, with the variables of ``record``."""
        with self._lock:
            self.record, self._agent_due = record, agent

    def _use_agent(self) -> None:
        if self._agent_due is not None:
            with suppress(Busy):  # a run goes on with the one it began with
                self.session.replace(self._agent_due)
                self._agent_due = None

    @kinds.checked(
        edits=kinds.of(Mapping[str, Mapping[str, Any]]),
        answers=kinds.of(Mapping[str, Any]),
        names=kinds.of(Mapping[str, str]),
        digests=kinds.or_none(kinds.of(Mapping[str, str])),
    )
    def approve(
        self,
        approved: bool,
        edits: Mapping[str, Mapping[str, Any]] = {},
        answers: Mapping[str, Any] = {},
        *,
        names: Mapping[str, str] = {},
        interrupt_id: str | None = None,
        digests: Mapping[str, str] | None = None,
        by: str,
    ) -> None:
        """Approve all that waits, with other arguments for the calls in ``edits``, or reject all.

        Calls that ask something have ``answers`` instead, by their ids. ``names`` are the tools
        that somebody took calls to be of. With ``interrupt_id`` and ``digests`` it is the answer to
        what somebody saw, and else to what waits now. Raises :class:`NothingWaits`,
        InvalidDecision, and StaleApproval where something else waits by now.
        """
        with self._lock:
            # A run that is about to pause has its question a moment before it can be answered.
            waiting = self.session.interrupt if self.status == "paused" else None
            if waiting is None or reason_of(waiting) != "hitl" or not waiting.action_requests:
                raise NothingWaits("Nothing waits for an approval; its state says what it does.")
            decisions = decisions_on(waiting, approved, edits, answers, names)
            shown = {request.tool_call_id: request.digest for request in waiting.action_requests}
            self.decide(
                decisions,
                interrupt_id=interrupt_id or waiting.id,
                digests=shown if digests is None else digests,
                by=by,
            )

    def decide(
        self,
        decisions: Mapping[str, Decision],
        *,
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> None:
        """Decide on calls that wait, as somebody saw them; without any, let go of a halt.

        Raises StaleApproval where something else waits by now, InvalidDecision, and
        :class:`~sagents_nb.errors.NotRunning`.
        """
        with self._lock:
            if decisions:
                self.session.decide(decisions, interrupt_id=interrupt_id, digests=digests, by=by)
            else:
                self.session.dismiss()

    def cancel(self) -> None:
        """Stop what it does, and deny what waits; one that has completed stays as it is."""
        with self._lock:
            if self.status in ("running", "paused"):
                self._stopping = self.session.current_run
                self.session.cancel()
                self.log.wait()
            elif self.status in ("registered", "error"):
                self.tell([self._translator.canceled])
                self._stopped(self)

    def report(self, child_id: str, report: str, token: str | None = None) -> None:
        """A child's ``report`` becomes the result of the call that waits for it.

        With a ``token`` it is the child that says so, and it has to be the child's. Raises
        :class:`NothingWaits` where this thread waits for no such child any more.
        """
        with self._lock:
            waiting = self.session.interrupt if self.status == "paused" else None
            known = None if token is None else digest_of(token)
            for link in links_of(waiting):
                if link.child_id != child_id or known not in (None, link.token):
                    continue
                assert waiting is not None
                request = link.request
                self.session.decide(
                    {request.tool_call_id: Respond(report)},
                    interrupt_id=waiting.id,
                    digests={request.tool_call_id: request.digest},
                    by=BY_SUB_AGENT,
                )
                return
            raise NothingWaits("This thread waits for no report of that child and token.")

    def retry(self) -> None:
        """Try again what failed."""
        with self._lock:
            self._hear_more()

    def go_on(self) -> None:
        """After an end of the process: go on with what was under way, if there was any."""
        with self._lock, suppress(NotRunning, Busy):
            if self.session.status == "paused" or self.session.queued:
                self.session.retry()
                self.went_on = True

    def close(self, reason: str) -> None:
        """Stop what it does and let its conversation go, once all that was told is kept."""
        self.session.close(reason)
        self.log.wait()

    def tell(self, told: Sequence[Told]) -> None:
        """Have these events kept, and told; returns once they are."""
        runtime.call(self.log.append, told)
        self.log.wait()

    # what it is

    @property
    def _waiting(self) -> Interrupt | None:
        """What waits still, without what was answered; all of it while that is taken in."""
        return self.session.interrupt or self.session.state.interrupt

    @property
    def answer(self) -> str:
        """What it has to report: its last answer, or why there is none."""
        if self.status == "completed":
            said = (m.text for m in reversed(self.session.messages) if m.role == "assistant")
            return next(filter(None, said), "")
        if self.status == "canceled":
            return "Error: The sub-agent was cancelled."
        return f"Error: The sub-agent failed: {self.session.error or 'nothing tells why'}"

    @property
    def run(self) -> dict[str, Any]:
        """Its last run, and what the thread is."""
        run = self.session.current_run
        seen = {
            "runId": self._translator.run_id if run is None else run.id,
            "status": self.status,
            "step": self._translator.ticks,
        }
        if seen["status"] == "paused":
            seen["reason"] = reason_of(self._waiting)
        elif seen["status"] == "error" and self.session.error:
            seen["reason"] = self.session.error
        return seen

    def _messages(self) -> list[Message]:
        """What was said, also what its agent has not heard yet."""
        return [*self.session.messages, *(each.message for each in self.session.queued)]

    def state(self) -> dict[str, Any]:
        """All that it is, as its clients see it."""
        session, agent = self.session, self.session.agent
        run = self.run  # first: of a run that has completed the answer is among what follows
        state: dict[str, Any] = {
            "messages": chats(runtime.call(self._messages)),
            "tools": [
                {"name": tool.name, "description": tool.description, "parameters": tool.schema}
                for tool in session.tools.values()
            ],
            "thread": self.record.view(),
            "threadId": self.record.id,
            "agentType": self.record.type,
            "model": agent.model.name,
        }
        if self.record.parent is not None:
            state["parent"] = self.record.parent
        if TODOS in agent.tools_by_name:
            state["todos"] = [{"content": t.content, "status": t.status} for t in session.todos]
        if "read_file" in agent.tools_by_name:
            files = session.files.contents()
            state["files"] = {entry.path: _text(entry) for entry in files}
        if links := self._links():
            state["subagents"] = links
        waiting = self._waiting
        if waiting is not None and run["status"] == "paused":
            state["interrupt"] = to_data(waiting)
        return {"state": state, "run": run}

    def _links(self) -> list[dict[str, Any]]:
        """Its children, as they were told of."""
        waits = {link.child_id for link in links_of(self._waiting)}
        links: dict[str, dict[str, Any]] = {}
        for event in self.log.read_types((SPAWNED, REPORTED)):
            child_id = event.data["childThreadId"]
            if event.type == SPAWNED:
                links[child_id] = {
                    "childThreadId": child_id,
                    "toolCallId": event.data["toolCallId"],
                    "status": "canceled",
                    "createdAt": event.ts,
                }
            elif child_id in links:
                report = event.data["result"]
                failed = isinstance(report, str) and report.startswith("Error:")
                links[child_id] |= {
                    "status": "canceled" if failed else "completed",
                    "completedAt": event.ts,
                    "report": report,
                }
        for child_id in waits & links.keys():
            links[child_id]["status"] = "waiting"
        # Those of one turn begin side by side: they are in the order of their calls.
        calls = [call.id for message in self.session.messages for call in message.tool_calls]
        order = {id: number for number, id in enumerate(calls)}
        return sorted(links.values(), key=lambda link: order.get(link["toolCallId"], -1))

    @property
    def children(self) -> list[str]:
        """The ids of its children, in the order of the calls by which they began."""
        return [link["childThreadId"] for link in self._links()]


class NotebookThread(Thread):
    """A conversation of a notebook that is shown here: its session and agent are the kernel's.

    They stay as the notebook has them, also when this is closed: that only shows them no more.
    """

    def __init__(self, record: ThreadRecord, session: Session, log: EventLog) -> None:
        if session.resting is not None:
            session.pause()  # any call wakes it
        super().__init__(record, session, log, lambda thread: None, lambda thread, title: None)
        self._unwatch = session.watch("hub")  # it does not rest: others would find it closed

    def _untold(self) -> list[Told]:
        """Also a run that is at work already."""
        run, told = self.session.current_run, self.log.status
        if run is None or self.session.status != "running":
            return super()._untold()
        self._translator.run_id = run.id
        return [] if STATUSES.get(told or "") == "running" else [(RUN_STARTED, {"runId": run.id})]

    def _left_unheard(self) -> None:
        """It waits for the next message, as in the notebook."""

    def _say(self, said: list[Message]) -> None:
        if self.session.status == "interrupted":
            if said:
                self.session.steer(said)
        elif said:
            self.session.send(said)
        elif self.session.status != "running":
            self.session.proceed()

    def cancel(self) -> None:
        """Stop what it does as the notebook's own Stop would; what has ended stays as it is."""
        with self._lock:
            if self.status in ("running", "paused"):
                self.session.stop()
                self.log.wait()

    def close(self, reason: str) -> None:
        """Show it no more; the session goes on."""
        self._leave()
        self._unwatch()
        runtime.call(self.log.end)
        self.log.wait()


def _checked(messages: Sequence[Message]) -> list[Message]:
    for message in messages:
        if message.role not in _ROLES:
            raise ConfigurationError(
                f"A message to a thread is of the role user or system, not {message.role!r}."
            )
    return list(messages)


def _text(entry: FileEntry) -> str:
    return entry.text if entry.text is not None else f"[binary, {entry.size} bytes]"
