"""Threads: conversations of an agency with one kind of agent each, and what can be done to one."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from .. import kinds
from ..agent import Agent
from ..errors import Busy, ConfigurationError, InvalidDecision, NotFound, NotRunning
from ..events import RESTS, AgentShutdown, Event
from ..files.entry import FileEntry
from ..interrupts import Approve, Decision, Edit, Reject
from ..messages import Message
from ..runtime.thread import runtime
from ..serialization import to_data
from ..session import Session
from ..store.conversations import Conversation
from .agencies import Agency
from .blueprints import Blueprint, blueprint_of
from .event_log import EventLog
from .vocabulary import REQUEST_ACCEPTED, RUN_CANCELED, Translator, chats, reason_of, status_of

HUB = "hub"
"""In the metadata of a conversation: that it is a thread, and of what kind."""

IDEMPOTENCY_KEY = "idempotency_key"

_ROLES = ("user", "system")


class NothingWaits(NotRunning):
    """Nobody is asked anything."""


class ThreadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a thread without opening it.

    ``blueprint`` is the one it was made with: what is changed in it later is for later threads.
    ``request`` says where the request came from that made it, and ``variables`` what its tools are
    told.
    """

    id: str
    agency_id: str
    created_at: datetime
    blueprint: Blueprint
    request: dict[str, str] = {}
    variables: dict[str, Any] = {}
    parent: dict[str, str] | None = None

    @property
    def type(self) -> str:
        """Of which kind its agent is: the name of its blueprint."""
        return self.blueprint.name

    def metadata(self) -> dict[str, Any]:
        """As its conversation keeps it."""
        kept = {"blueprint": to_data(self.blueprint), "request": self.request}
        if self.parent is not None:
            kept["parent"] = self.parent
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
    )


class Thread:
    """A thread that is open here: its ``session``, and the ``log`` of what is told of it.

    Its methods wait until what they did is safe, so they are for no event loop.
    """

    def __init__(self, record: ThreadRecord, session: Session, log: EventLog) -> None:
        self.record = record
        self.session = session
        self.log = log
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
        session.subscribe(self._hear)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Thread {self.record.id} of {self.record.type!r}: {self.status}>"

    @property
    def status(self) -> str:
        """One of "registered", "running", "paused", "completed", "error" and "canceled"."""
        return status_of(self.session.resting or self.session.status, self.log.status)

    def _hear(self, event: Event) -> None:
        self.log.append(self._translator.translate(event))
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
                self._tell([(REQUEST_ACCEPTED, {"idempotencyKey": idempotency_key})])
            return self.run

    def has_accepted(self, idempotency_key: str) -> bool:
        """Whether a request of that key was accepted: another one does nothing."""
        return idempotency_key in self._keys

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
                self._tell([(RUN_CANCELED, {"runId": self._translator.run_id})])

    def _tell(self, told: list[tuple[str, dict[str, Any]]]) -> None:
        runtime.call(self.log.append, told)

    # what it is

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
        waiting = session.state.interrupt
        if waiting is not None and self.status == "paused":
            state["interrupt"] = to_data(waiting)
        return {"state": state, "run": self.run}


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
