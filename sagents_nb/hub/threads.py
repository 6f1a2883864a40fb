"""Threads: conversations of an agency with one kind of agent each, and what can be done to one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from .. import kinds
from ..agent import Agent
from ..errors import Busy, ConfigurationError, InvalidDecision, NotFound, NotRunning
from ..events import RESTS, AgentShutdown, Event, MessageEnd
from ..files.entry import FileEntry
from ..interrupts import Approve, Decision, Edit, Reject, Respond
from ..messages import Message
from ..runtime.thread import runtime
from ..serialization import to_data
from ..session import Session
from ..store.conversations import Conversation
from .agencies import Agency, digest_of
from .blueprints import Blueprint, blueprint_of
from .event_log import EventLog
from .sub_agents import links_of
from .vocabulary import (
    BY_SUB_AGENT,
    REPORTED,
    REQUEST_ACCEPTED,
    RUN_CANCELED,
    SPAWNED,
    STATUSES,
    Told,
    Translator,
    as_chat,
    chats,
    reason_of,
    status_of,
)

HUB = "hub"
"""In the metadata of a conversation: that it is a thread, and of what kind."""

IDEMPOTENCY_KEY = "idempotency_key"

MOST_TITLE = 80
"""Characters of a first message that are the title of its thread."""

_ROLES = ("user", "system")


class NothingWaits(NotRunning):
    """Nobody is asked anything."""


class ThreadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a thread without opening it.

    ``blueprint`` is the one it was made with: what is changed in it later is for later threads.
    ``request`` says where the request came from that made it, and ``variables`` what its tools are
    told. ``parent`` is the thread that waits for its report, and the token that it reports with.
    ``attempts`` counts how often it was gone on with since the process ended last, without an end.
    ``title`` is what it is about: by default how the first message begins.
    """

    id: str
    agency_id: str
    created_at: datetime
    blueprint: Blueprint
    request: dict[str, str] = {}
    variables: dict[str, Any] = {}
    parent: dict[str, str] | None = None
    attempts: int = 0
    title: str = ""

    @property
    def type(self) -> str:
        """Of which kind its agent is: the name of its blueprint."""
        return self.blueprint.name

    def metadata(self) -> dict[str, Any]:
        """As its conversation keeps it."""
        kept = {"blueprint": to_data(self.blueprint), "request": self.request}
        if self.parent is not None:
            kept["parent"] = self.parent
        if self.attempts:
            kept["attempts"] = self.attempts
        return {HUB: {**kept, "variables": self.variables}}

    def view(self) -> dict[str, Any]:
        """As its clients see it."""
        seen: dict[str, Any] = {
            "id": self.id,
            "createdAt": self.created_at.isoformat(),
            "request": self.request,
            "agentType": self.type,
            "agencyId": self.agency_id,
        }
        if self.title:
            seen["title"] = self.title
        return seen if self.parent is None else {**seen, "parent": self.parent}


def record_of(agency: Agency, conversation: Conversation) -> ThreadRecord | None:
    """What a conversation says of its thread, None where it is no thread, or damaged."""
    kept = conversation.metadata.get(HUB)
    try:
        blueprint = blueprint_of(kept["blueprint"])  # type: ignore[index]
    except (ConfigurationError, TypeError, KeyError, AttributeError):
        return None
    return ThreadRecord(
        id=conversation.id,
        agency_id=agency.id,
        created_at=conversation.created_at,
        blueprint=blueprint,
        request=kept.get("request") or {},  # type: ignore[union-attr]
        variables=kept.get("variables") or {},  # type: ignore[union-attr]
        parent=kept.get("parent"),  # type: ignore[union-attr]
        attempts=kept.get("attempts") or 0,  # type: ignore[union-attr]
        title=conversation.title or "",
    )


class Thread:
    """A thread that is open here: its ``session``, and the ``log`` of what is told of it.

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
        self._keys = {
            str(key): None
            for message in (*session.messages, *(each.message for each in session.queued))
            if (key := message.metadata.get(IDEMPOTENCY_KEY)) is not None
        }
        self._agent_due: Agent | None = None
        session.steering_batch = "wait"  # what is said meanwhile takes no call's turn
        self._catch_up()
        session.subscribe(self._hear)

    def _catch_up(self) -> None:
        """Tell what an end of the process kept from being told: the journal has it, the log not."""
        if STATUSES.get(self.log.status or "") != "running":
            return
        run, status = {"runId": self.log.run_id}, self.session.status
        if status in ("interrupted", "paused"):
            self.tell([("run.paused", {**run, "reason": reason_of(self.session.state.interrupt)})])
        elif status == "idle" and not self.session.queued:
            last = next(iter(self.session.messages[-1:]), None)
            if last is not None and last.role == "assistant" and not last.tool_calls:
                self.tell([("agent.completed", {"result": as_chat(last)[0]})])
            else:
                self.tell([(RUN_CANCELED, run)])

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Thread {self.record.id} of {self.record.type!r}: {self.status}>"

    @property
    def status(self) -> str:
        """One of "registered", "running", "paused", "completed", "error" and "canceled"."""
        return status_of(self.session.resting or self.session.status, self.log.status)

    def _hear(self, event: Event) -> None:
        if isinstance(event, MessageEnd) and event.message.role == "user" and not self._has_title:
            title = " ".join(event.message.text.split())
            if title:
                self._has_title = True
                self._named(self, f"{title[:MOST_TITLE]}…" if len(title) > MOST_TITLE else title)
        told = self._translator.translate(event)
        self.log.append(told)
        if any(STATUSES.get(type, "running") != "running" for type, _ in told):
            self._stopped(self)
        if isinstance(event, AgentShutdown) and event.reason not in RESTS:
            self.log.end()

    # what can be done

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
            for path, content in files.items():
                self.session.files.write(path if path.startswith("/") else f"/{path}", content)
            if idempotency_key is not None and said:
                named = {**said[-1].metadata, IDEMPOTENCY_KEY: idempotency_key}
                said[-1] = msgspec.structs.replace(said[-1], metadata=named)
            self._use_agent()
            self._say(said)
            if idempotency_key is not None:
                self._keys[idempotency_key] = None
                self.tell([(REQUEST_ACCEPTED, {"idempotencyKey": idempotency_key})])
            return self.run

    def _say(self, said: list[Message]) -> None:
        session = self.session
        if session.status not in ("running", "interrupted"):
            if said:
                session.send(said)
            else:
                session.proceed()
            return
        if said:
            session.steer(said)
            if session.status not in ("running", "interrupted"):  # it ended before it heard
                with suppress(NotRunning, Busy):
                    session.retry()

    def replace_agent(self, record: ThreadRecord, agent: Agent) -> None:
        """Have further runs by ``agent``, with the variables of ``record``."""
        with self._lock:
            self.record, self._agent_due = record, agent

    def _use_agent(self) -> None:
        if self._agent_due is not None:
            with suppress(Busy):  # a run goes on with the one it began with
                self.session.replace(self._agent_due)
                self._agent_due = None

    def approve(
        self,
        approved: bool,
        edits: Mapping[str, Mapping[str, Any]] = {},
        *,
        interrupt_id: str | None = None,
        digests: Mapping[str, str] | None = None,
        by: str,
    ) -> None:
        """Approve all that waits, with other arguments for the calls in ``edits``, or reject all.

        With ``interrupt_id`` and ``digests`` it is the answer to what somebody saw, and else to
        what waits now. Raises :class:`NothingWaits`, InvalidDecision, and StaleApproval where
        something else waits by now.
        """
        with self._lock:
            waiting = self.session.interrupt
            if waiting is None or reason_of(waiting) != "hitl" or not waiting.action_requests:
                raise NothingWaits("Nothing waits for an approval; its state says what it does.")
            requests = waiting.action_requests
            strangers = [id for id in edits if id not in waiting.tool_call_ids]
            if strangers:
                raise InvalidDecision(
                    f"No call {strangers[0]!r:.110} waits; those that do are "
                    f"{', '.join(waiting.tool_call_ids)}."
                )
            decisions: dict[str, Decision] = {}
            for request in requests:
                id = request.tool_call_id
                changed = edits.get(id)
                if not approved:
                    decisions[id] = Reject("Rejected.")
                elif changed is not None and changed != request.arguments:
                    decisions[id] = Edit(dict(changed))
                else:
                    decisions[id] = Approve()
            shown = {request.tool_call_id: request.digest for request in requests}
            self.session.decide(
                decisions,
                interrupt_id=interrupt_id or waiting.id,
                digests=shown if digests is None else digests,
                by=by,
            )

    def cancel(self) -> None:
        """Stop what it does, and deny what waits; one that has completed stays as it is."""
        with self._lock:
            if self.status in ("running", "paused"):
                self.session.cancel()
                self.session.clear_queue()
            elif self.status in ("registered", "error"):
                self.tell([(RUN_CANCELED, {"runId": self._translator.run_id})])
                self._stopped(self)

    def report(self, child_id: str, report: str, token: str | None = None) -> None:
        """A child's ``report`` becomes the result of the call that waits for it.

        With a ``token`` it is the child that says so, and it has to be the child's. Raises
        :class:`NothingWaits` where this thread waits for no such child any more.
        """
        with self._lock:
            waiting = self.session.state.interrupt
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

    def go_on(self) -> bool:
        """After an end of the process: go on with what was under way; whether there was any."""
        with self._lock, suppress(NotRunning, Busy):
            if self.session.status == "paused" or self.session.queued:
                self.session.retry()
                return True
        return False

    def tell(self, told: Sequence[Told]) -> None:
        """Have these events kept, and told."""
        runtime.call(self.log.append, told)

    # what it is

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
            seen["reason"] = reason_of(self.session.state.interrupt)
        elif seen["status"] == "error" and self.session.error:
            seen["reason"] = self.session.error
        return seen

    def state(self) -> dict[str, Any]:
        """All that it is, as its clients see it."""
        session, agent = self.session, self.session.agent
        state: dict[str, Any] = {
            "messages": chats(session.messages),
            "tools": [
                {"name": tool.name, "description": tool.description, "parameters": tool.schema}
                for tool in agent.tools_by_name.values()
            ],
            "thread": self.record.view(),
            "threadId": self.record.id,
            "agentType": self.record.type,
            "model": agent.model.name,
        }
        if self.record.parent is not None:
            state["parent"] = self.record.parent
        if "write_todos" in agent.tools_by_name:
            state["todos"] = [{"content": t.content, "status": t.status} for t in session.todos]
        if "read_file" in agent.tools_by_name:
            files = session.files.contents()
            state["files"] = {entry.path: _text(entry) for entry in files}
        if links := self._links():
            state["subagents"] = links
        waiting = session.state.interrupt
        if waiting is not None and self.status == "paused":
            state["interrupt"] = to_data(waiting)
        return {"state": state, "run": self.run}

    def _links(self) -> list[dict[str, Any]]:
        """Its children, as they were told of."""
        waits = {link.child_id: link for link in links_of(self.session.state.interrupt)}
        links: dict[str, dict[str, Any]] = {}
        for event in self.log.read_types((SPAWNED, REPORTED)):
            child_id = event.data["childThreadId"]
            if event.type == SPAWNED:
                state = "waiting" if child_id in waits else "canceled"
                links[child_id] = {
                    "childThreadId": child_id,
                    "toolCallId": event.data["toolCallId"],
                    "status": state,
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
        return list(links.values())


def _checked(messages: Sequence[Message]) -> list[Message]:
    for message in messages:
        if message.role not in _ROLES:
            raise ConfigurationError(
                f"A message to a thread is of the role user or system, not {message.role!r}."
            )
    return list(messages)


def _text(entry: FileEntry) -> str:
    return entry.text if entry.text is not None else f"[binary, {entry.size} bytes]"


def missing(thread_id: str) -> NotFound:
    """What is said of a thread that is not there, or is another agency's."""
    return NotFound(f"This agency has no thread {thread_id!r:.110}; its list of agents names them.")
