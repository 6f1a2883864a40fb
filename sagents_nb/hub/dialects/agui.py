"""AG-UI 1.0: a thread as any front end of that protocol sees it, a pure map of its events.

A client names the thread and sends what it knows of the conversation; the thread is what counts,
so of that only what is new to it is said. What waits for people ends a run of AG-UI, and is
answered by the next one. The tools, the state and the files are the agent's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ...errors import ConfigurationError, InvalidDecision, StaleApproval
from ...events import (
    AgentEnd,
    AgentStart,
    Event,
    FileDeleted,
    FileMoved,
    FileUpdated,
    Interrupt,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    MessageWithdrawn,
    StatusChanged,
    TodosUpdated,
    TokenUsage,
    ToolExecutionEnd,
    TurnEnd,
)
from ...interrupts import ActionRequest, Approve, Decision, Edit, Reject, Respond
from ...interrupts import Interrupt as Waiting
from ...messages import (
    FilePart,
    ImagePart,
    Message,
    Part,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from ...serialization import encoded
from ...state import Todo
from ..vocabulary import SUB_AGENTS, reason_of

VERSION = "1.0"

MESSAGE_ID = "agui_id"
"""In the metadata of a message: the id that the client knows it by."""

CONTEXT = "agui_context"
"""In the metadata of a message: it is what the client's application said besides."""

_SAID = ("user", "system", "developer")
_OURS = "sagents_nb"


# What a client asks.


class Incoming(msgspec.Struct, kw_only=True, rename="camel"):
    """What a client says: the fields that mean nothing to a thread are left out."""


class IncomingMessage(Incoming):
    """A message that the client knows; what is no one's saying may have any ``content``."""

    id: str
    role: str
    content: Any = None


class ContextEntry(Incoming):
    """Something that the agent is to know of the application."""

    description: str
    value: str


class ResumeEntry(Incoming):
    """The answer to one interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(Incoming):
    """What a client asks of an agent: ``thread_id`` and ``run_id`` are names that it chose."""

    thread_id: str
    run_id: str
    messages: list[IncomingMessage]
    parent_run_id: str | None = None
    tools: list[Any] | None = None
    context: list[ContextEntry] | None = None
    resume: list[ResumeEntry] | None = None

    def check(self) -> None:
        """Raise ConfigurationError for what no thread does."""
        if not self.thread_id or len(self.thread_id) > 1_000:
            raise ConfigurationError("A threadId has 1 to 1,000 characters.")
        if self.tools:
            raise ConfigurationError(
                "Nothing here calls a client's tools; leave out tools, and give the agent its own "
                "by its blueprint."
            )


def new_messages(asked: RunAgentInput, known: Iterable[Message], prefix: str) -> list[Message]:
    """What ``asked`` says that is new to a thread with the messages ``known``.

    That is what follows the last of them: those before it may be in a summary by now. The ids of
    what the thread said begin with ``prefix``. What an application tells of itself comes first,
    where it has changed.
    """
    known = list(known)
    ids = {message.metadata.get(MESSAGE_ID) for message in known}
    following: list[IncomingMessage] = []
    for message in asked.messages:
        if message.id in ids or message.id.startswith(prefix):
            following = []
        elif message.role in _SAID:
            following.append(message)
    said = [_message(message) for message in following]
    told = next((m.text for m in reversed(known) if m.metadata.get(CONTEXT)), "")
    lines = [f"{entry.description}: {entry.value}" for entry in asked.context or ()]
    context = "\n".join(["What the application says:", *lines]) if lines else ""
    if said and context and context != told:
        said.insert(0, Message.system(context, **{CONTEXT: True}))
    return said


def _message(message: IncomingMessage) -> Message:
    content = message.content
    if isinstance(content, str):
        parts: list[Part] = [TextPart(content)]
    elif isinstance(content, list):
        parts = [_part(each) for each in content]
    else:
        raise ConfigurationError(f"Message {message.id!r:.110} says nothing; give it a content.")
    role = "user" if message.role == "user" else "system"
    return Message(role, tuple(parts), metadata={MESSAGE_ID: message.id})


def _part(part: Any) -> Part:
    match part:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image", "source": {"type": "data", "value": str(data), "mimeType": str(m)}}:
            return ImagePart(data, m)
        case {"type": "image", "source": {"type": "url", "value": str(url)}}:
            return ImagePart(url=url)
        case {"type": "document", "source": {"type": "data", "value": str(d), "mimeType": str(m)}}:
            return FilePart(d, m)
        case {"type": "document", "source": {"type": "url", "value": str(url)}}:
            return FilePart(url=url)
    kind = part.get("type") if isinstance(part, Mapping) else part
    raise ConfigurationError(
        f"A message has text, images and documents, as data or a URL, and no {kind!r:.60}."
    )


# What waits for people, and their answers.

_ID = re.compile(r"([0-9a-f]+)\.(.+)")
_HALT = "halt"


def interrupts_of(waiting: Waiting, calls: Mapping[str, str] = {}) -> list[OpenInterrupt]:
    """What a client is asked of ``waiting``, one for each call; for other threads nobody is.

    An id is bound to what is shown: it has the digest of the call, and so has its answer.
    ``calls`` are the ids of the calls as the client knows them, where they are others.
    """
    asked = [_open(waiting, request, part, calls) for request, part in asked_of(waiting)]
    if not asked and not waiting.action_requests:
        reason = f"{_OURS}:{waiting.type}"
        asked = [
            OpenInterrupt(id=f"{waiting.id}.{_HALT}", reason=reason, message=waiting.message or "")
        ]
    return asked


def asked_of(waiting: Waiting) -> list[tuple[ActionRequest, Waiting]]:
    """The requests that people answer, each with the interrupt of its call."""
    asked = [(request, _part_of(waiting, request)) for request in waiting.action_requests]
    return [(request, part) for request, part in asked if not part.data.get(SUB_AGENTS)]


def _part_of(waiting: Waiting, request: ActionRequest) -> Waiting:
    parts = waiting.parts or (waiting,)
    return next((p for p in parts if request.tool_call_id in p.tool_call_ids), waiting)


def id_of(waiting: Waiting, request: ActionRequest) -> str:
    """What a client knows a request by: it is bound to what is shown, by the digest of the call."""
    return f"{waiting.id}.{request.digest}"


def _open(
    waiting: Waiting, request: ActionRequest, part: Waiting, calls: Mapping[str, str]
) -> OpenInterrupt:
    gated = "approve" in request.allowed_decisions
    named = f"Run {request.tool_name}?" if gated else f"{request.tool_name} waits for an answer."
    shown: dict[str, Any] = {
        "type": part.type,
        "toolName": request.tool_name,
        "arguments": request.arguments,
        "allowedDecisions": list(request.allowed_decisions),
        "digest": request.digest,
    }
    if request.defaults:
        shown["defaults"] = request.defaults
    return OpenInterrupt(
        id=id_of(waiting, request),
        reason="tool_call" if gated else "input_required",
        message=part.message or request.display_text or named,
        tool_call_id=calls.get(request.tool_call_id, request.tool_call_id),
        response_schema=_schema(request),
        metadata={_OURS: shown},
    )


def _schema(request: ActionRequest) -> dict[str, Any]:
    allowed, properties = request.allowed_decisions, {}
    if "approve" not in allowed:
        return {"type": "object", "properties": {"answer": {}}, "required": ["answer"]}
    properties = {"approved": {"type": "boolean"}}
    if "edit" in allowed:
        properties["editedArgs"] = {"type": "object", "description": "All arguments, not merged."}
    if "reject" in allowed:
        properties["reason"] = {"type": "string", "description": "Why it is not approved."}
    return {"type": "object", "properties": properties, "required": ["approved"]}


class Answers(msgspec.Struct):
    """What people decided, by tool call, of the interrupt ``id``, as they saw it."""

    id: str
    decisions: dict[str, Decision] = {}
    digests: dict[str, str] = {}


def answers_to(waiting: Waiting | None, resume: Sequence[ResumeEntry]) -> Answers:
    """The answers in ``resume`` to all that waits for people.

    Raises InvalidDecision for an id that is none, an answer that does not fit, and one that is
    missing, and StaleApproval where that waits no more: what was shown is what is decided.
    """
    found: dict[str, ResumeEntry] = {}
    for entry in resume:
        if _ID.fullmatch(entry.interrupt_id) is None:
            raise InvalidDecision(
                f"There is no interrupt {entry.interrupt_id!r:.110}; a run that waits names those "
                "that are open when it ends."
            )
        if entry.interrupt_id in found:
            raise InvalidDecision(f"Interrupt {entry.interrupt_id:.110} is answered twice.")
        found[entry.interrupt_id] = entry
    asked = [] if waiting is None else interrupts_of(waiting)
    stale = found.keys() - {each.id for each in asked}
    if waiting is None or stale:
        raise StaleApproval(
            "This was answered, or has changed, since it was shown; run without resume to see "
            "what waits now."
        )
    missing = [each.id for each in asked if each.id not in found]
    if missing:
        raise InvalidDecision(f"All that waits is answered at once; {missing[0]} is not.")
    answers = Answers(waiting.id)
    for request, _ in asked_of(waiting):
        entry = found[id_of(waiting, request)]
        answers.decisions[request.tool_call_id] = _decision(request, entry)
        answers.digests[request.tool_call_id] = request.digest
    return answers


def _decision(request: ActionRequest, entry: ResumeEntry) -> Decision:
    if entry.status == "cancelled":
        return Reject("Cancelled.")
    gated = "approve" in request.allowed_decisions
    match entry.payload:
        case {"approved": True, "editedArgs": dict(arguments)} if gated:
            return Approve() if arguments == request.arguments else Edit(arguments)
        case {"approved": True, "editedArgs": None} if gated:
            return Approve()
        case {"approved": True, "editedArgs": _}:
            pass
        case {"approved": True} if gated:
            return Approve()
        case {"approved": False, **more}:
            return Reject(str(more.get("reason") or "Rejected."))
        case {"answer": answer} if not gated:
            return Respond(answer)
    wanted = '{"approved": true or false}' if gated else '{"answer": …}'
    raise InvalidDecision(f"The payload for {request.tool_name} is {wanted}.")


# What a client is told.


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", gc=False):
    """An event of AG-UI."""


class OpenInterrupt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that waits for people."""

    id: str
    reason: str
    message: str
    tool_call_id: str | UnsetType = UNSET
    response_schema: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class RunStarted(Told, frozen=True, tag="RUN_STARTED"):
    """A run begins."""

    thread_id: str
    run_id: str
    protocol_version: str
    parent_run_id: str | UnsetType = UNSET


class RunFinished(Told, frozen=True, tag="RUN_FINISHED"):
    """A run has ended and did not fail."""

    thread_id: str
    run_id: str
    outcome: dict[str, Any]
    usage: list[dict[str, Any]] | UnsetType = UNSET


class RunError(Told, frozen=True, tag="RUN_ERROR"):
    """A run has failed: why, in a sentence."""

    message: str


class MessagesSnapshot(Told, frozen=True, tag="MESSAGES_SNAPSHOT"):
    """The whole conversation."""

    messages: list[dict[str, Any]]


class StateSnapshot(Told, frozen=True, tag="STATE_SNAPSHOT"):
    """The to-do list, and which files there are."""

    snapshot: dict[str, Any]


class TextStart(Told, frozen=True, tag="TEXT_MESSAGE_START"):
    """The agent begins to speak."""

    message_id: str
    role: str


class TextContent(Told, frozen=True, tag="TEXT_MESSAGE_CONTENT"):
    """A piece of what it says."""

    message_id: str
    delta: str


class TextEnd(Told, frozen=True, tag="TEXT_MESSAGE_END"):
    """It has said it."""

    message_id: str


class ReasoningStart(Told, frozen=True, tag="REASONING_START"):
    """The agent begins to think."""

    message_id: str


class ReasoningMessageStart(Told, frozen=True, tag="REASONING_MESSAGE_START"):
    """The message of what it thinks."""

    message_id: str
    role: str


class ReasoningContent(Told, frozen=True, tag="REASONING_MESSAGE_CONTENT"):
    """A piece of what it thinks."""

    message_id: str
    delta: str


class ReasoningMessageEnd(Told, frozen=True, tag="REASONING_MESSAGE_END"):
    """That message is complete."""

    message_id: str


class ReasoningEnd(Told, frozen=True, tag="REASONING_END"):
    """It has thought."""

    message_id: str


class CallStart(Told, frozen=True, tag="TOOL_CALL_START"):
    """The agent calls a tool."""

    tool_call_id: str
    tool_call_name: str
    parent_message_id: str


class CallArguments(Told, frozen=True, tag="TOOL_CALL_ARGS"):
    """A piece of the arguments, as JSON."""

    tool_call_id: str
    delta: str


class CallEnd(Told, frozen=True, tag="TOOL_CALL_END"):
    """Its arguments are complete."""

    tool_call_id: str


class CallResult(Told, frozen=True, tag="TOOL_CALL_RESULT"):
    """What a call came to."""

    message_id: str
    tool_call_id: str
    content: str
    role: str


_encoder = msgspec.json.Encoder()


def frames(told: Iterable[Told]) -> bytes:
    """Events as server-sent ones."""
    return b"".join([b"data: %b\n\n" % _encoded(each) for each in told])


def _encoded(told: Told) -> bytes:
    try:
        return _encoder.encode(told)
    except UnicodeEncodeError:  # half a character, as models send them
        return encoded(told)


class History:
    """A conversation as its client knows it, by ids: ``prefix`` and the place of a message.

    ``messages`` are told of it as AG-UI has them, ``place`` is that of the next one, and ``calls``
    are the ids that the calls of the last answer, ``answer``, are known by: providers give one
    twice. ``last`` is the last message.
    """

    def __init__(self, prefix: str, messages: Iterable[Message] = ()) -> None:
        self.prefix = prefix
        self._used: set[str] = set()
        self.messages: list[dict[str, Any]] = []
        self.calls: dict[str, str] = {}
        self.answer = ""
        self.place = 0
        self.last: Message | None = None
        for message in messages:
            self._add(message)
            self.last = message

    def id(self, attempt: int = 0) -> str:
        """The id of the next message; each further ``attempt`` at it has another one."""
        return f"{self.prefix}{self.place}" + (f"-{attempt}" if attempt else "")

    def begin(self, id: str) -> None:
        """An answer begins, under that id."""
        self.answer, self.calls = id, {}

    def call(self, id: str) -> str:
        """What a call of the answer is known by."""
        if id not in self.calls:
            self.calls[id] = f"{id}-{self.answer}" if id in self._used else id
            self._used.add(id)
        return self.calls[id]

    def result(self, id: str) -> str:
        """The id of the message with the result of that call."""
        return f"{self.answer}-{id}"

    def _add(self, message: Message) -> None:
        id, role = self.id(), message.role
        if role == "assistant":
            self.begin(id)
            self._add_answer(message)
        elif role == "tool":
            self.messages += [
                {
                    "id": self.result(result.tool_call_id),
                    "role": "tool",
                    "content": result.text,
                    "toolCallId": self.call(result.tool_call_id),
                    **({"error": result.text} if result.is_error else {}),
                }
                for result in message.tool_results
                if not result.is_interrupt  # it stands for an answer that is not there
            ]
        elif role in _SAID and not message.metadata.get(CONTEXT):
            id = message.metadata.get(MESSAGE_ID) or id
            content = _content(message) if role == "user" else message.text
            self.messages.append({"id": id, "role": role, "content": content})
        self.place += 1

    def _add_answer(self, message: Message) -> None:
        thoughts = "".join(part.text for part in message.parts if isinstance(part, ThinkingPart))
        if thoughts:
            id = f"{self.answer}-thought"
            self.messages.append({"id": id, "role": "reasoning", "content": thoughts})
        calls = [
            {"id": self.call(call.id), "type": "function", "function": _function(call)}
            for call in message.tool_calls
        ]
        if message.text or calls:
            told: dict[str, Any] = {"id": self.answer, "role": "assistant"}
            if message.text:
                told["content"] = message.text
            if calls:
                told["toolCalls"] = calls
            self.messages.append(told)

    def said(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """All of it, and what is about to be said."""
        last = [
            {
                "id": message.metadata[MESSAGE_ID],
                "role": message.role,
                "content": _content(message) if message.role == "user" else message.text,
            }
            for message in messages
            if MESSAGE_ID in message.metadata
        ]
        return [*self.messages, *last]


def _function(call: ToolCall) -> dict[str, str]:
    return {"name": call.name, "arguments": encoded(call.arguments).decode()}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if all(isinstance(part, TextPart) for part in message.parts):
        return message.text
    told: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            told.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart | FilePart):
            kind = "image" if isinstance(part, ImagePart) else "document"
            source = (
                {"type": "url", "value": part.url}
                if part.url
                else {"type": "data", "value": part.data, "mimeType": part.mime_type}
            )
            told.append({"type": kind, "source": source})
    return told


class Map:
    """What a client is told of one run, from the events of its thread.

    ``history`` is what it knows before, ``todos`` and ``files`` what is there then. ``done`` once
    the run has ended: not with the agent's end, but when the thread can be asked again, since who
    answers before is refused. What waits for other threads is no end.
    """

    def __init__(
        self,
        asked: RunAgentInput,
        history: History,
        todos: Iterable[Todo] = (),
        files: Iterable[str] = (),
    ) -> None:
        self._asked = asked
        self._history = history
        self._todos = list(todos)
        self._files = set(files)
        self._attempt = 0
        self._text = ""  # the message that is open, and so on
        self._thought = ""
        self._thoughts = False
        self._speaks = False
        self._calls: dict[int, _OpenCall] = {}
        self._changed = False
        self._unheard: set[str] = set()
        self._waiting: Waiting | None = None
        self._end: AgentEnd | None = None
        self._usage: dict[str, Usage] = {}
        self.done = False

    def begin(self, said: Iterable[Message] = ()) -> list[Told]:
        """The beginning; of a thread that goes on with what there is, and is about to be said."""
        asked, said = self._asked, list(said)
        self._unheard = {m.metadata[MESSAGE_ID] for m in said if MESSAGE_ID in m.metadata}
        told: list[Told] = [
            RunStarted(
                thread_id=asked.thread_id,
                run_id=asked.run_id,
                protocol_version=VERSION,
                parent_run_id=asked.parent_run_id or UNSET,
            )
        ]
        if self._history.place:
            told.append(MessagesSnapshot(messages=self._history.said(said)))
        self._changed = bool(self._todos or self._files)
        return [*told, *self._state()]

    def join(self, partial: Message) -> list[Told]:
        """An answer is under way already: what has arrived of it."""
        last = self._history.last
        if last is not None and last.role == "assistant" and last.text == partial.text:
            return []  # it is complete, and only its end is not told yet
        told = self._start()
        for part in partial.parts:
            if isinstance(part, TextPart):
                told += self._say(part.text)
            elif isinstance(part, ThinkingPart):
                told += self._think(part.text)
        return told

    def translate(self, event: Event) -> list[Told]:
        """What is told of an event; nothing after the end."""
        if self.done:
            return []
        match event:
            case MessageUpdate():
                return self._piece(event.delta)
            case MessageStart() if event.message.role == "assistant":
                return self._start()
            case MessageEnd() if event.message is not self._history.last:  # that is known
                return self._finish_message(event.message)
            case MessageWithdrawn():
                self._unheard.discard(event.message.metadata.get(MESSAGE_ID, ""))
            case ToolExecutionEnd() if event.status != "interrupted":
                return [*self._result(event), *self._state()]
            case TodosUpdated():
                self._changed = self._changed or list(event.todos) != self._todos
                self._todos = list(event.todos)
            case FileUpdated() if event.path not in self._files:
                self._files.add(event.path)
                self._changed = True
            case FileDeleted():
                self._forget(event.path)
            case FileMoved():
                self._forget(event.old_path)
                self._files.add(event.path)
            case TurnEnd():
                return self._state()
            case TokenUsage():
                self._usage[event.model] = self._usage.get(event.model, Usage()) + event.usage
            case Interrupt():
                self._waiting = event.interrupt
            case AgentStart():
                self._end = None  # of the run before, for which this one waited
            case AgentEnd():
                self._end = event
            case StatusChanged():
                return self._status(event)
        return []

    def waits(self, waiting: Waiting) -> list[Told]:
        """The end of a run that has nothing to do but to say what waits for people."""
        self._waiting = waiting
        return self._finished(
            {"type": "interrupt", "interrupts": interrupts_of(waiting, self._history.calls)}
        )

    # messages

    def _start(self) -> list[Told]:
        left = self._close()  # one that never came to its end
        self._history.begin(self._history.id(self._attempt))
        self._attempt += 1
        self._speaks, self._thoughts = True, False
        return left

    def _piece(self, delta: Any) -> list[Told]:
        if not self._speaks:
            return []
        if isinstance(delta, TextDelta):
            return self._say(delta.text)
        if isinstance(delta, ThinkingDelta):
            return self._think(delta.text)
        return self._call_piece(delta) if isinstance(delta, ToolCallDelta) else []

    def _say(self, text: str) -> list[Told]:
        if not text:
            return []
        piece = TextContent(message_id=self._history.answer, delta=text)
        if self._text:
            return [piece] if not self._thought else [*self._thought_ends(), piece]
        self._text = self._history.answer
        return [
            *self._thought_ends(),
            TextStart(message_id=self._text, role="assistant"),
            piece,
        ]

    def _think(self, text: str) -> list[Told]:
        if not text:
            return []
        id = f"{self._history.answer}-thought"
        begin: list[Told] = []
        if not self._thought:
            begin = [
                ReasoningStart(message_id=id),
                ReasoningMessageStart(message_id=id, role="reasoning"),
            ]
            self._thought, self._thoughts = id, True
        return [*begin, ReasoningContent(message_id=id, delta=text)]

    def _thought_ends(self) -> list[Told]:
        id, self._thought = self._thought, ""
        return [ReasoningMessageEnd(message_id=id), ReasoningEnd(message_id=id)] if id else []

    def _call_piece(self, delta: ToolCallDelta) -> list[Told]:
        told: list[Told] = []
        call = self._calls.get(delta.index)
        if call is None:
            if delta.id is None or not delta.name:
                return []  # its beginning was not heard here: it is told when it is complete
            told = self._thought_ends()
            call = self._calls[delta.index] = _OpenCall(delta.id, self._history.call(delta.id))
            told.append(self._call_start(call, delta.name))
        if delta.text:
            call.told = True
            told.append(CallArguments(tool_call_id=call.known, delta=delta.text))
        return told

    def _call_start(self, call: _OpenCall, name: str) -> Told:
        return CallStart(
            tool_call_id=call.known,
            tool_call_name=name,
            parent_message_id=self._history.answer,
        )

    def _finish_message(self, message: Message) -> list[Told]:
        told: list[Told] = []
        if message.role == "assistant":
            if not self._speaks:
                told += self._start()
            told += [*self._untold(message), *self._close()]
        self._unheard.discard(message.metadata.get(MESSAGE_ID, ""))
        self._history.place += 1
        self._attempt, self._speaks = 0, False
        return told

    def _untold(self, message: Message) -> list[Told]:
        """What no piece told of it."""
        told: list[Told] = []
        if message.thinking and not self._thoughts:
            told += self._think(message.thinking)
        if message.text and not self._text:
            told += self._say(message.text)
        open_calls = {call.id: call for call in self._calls.values()}
        for call in message.tool_calls:
            opened = open_calls.get(call.id)
            if opened is None:
                told += self._thought_ends()
                opened = _OpenCall(call.id, self._history.call(call.id))
                self._calls[-1 - len(self._calls)] = opened
                told.append(self._call_start(opened, call.name))
            if not opened.told:
                arguments = encoded(call.arguments).decode()
                told.append(CallArguments(tool_call_id=opened.known, delta=arguments))
        return told

    def _close(self) -> list[Told]:
        """End what is open."""
        told = self._thought_ends()
        if self._text:
            told.append(TextEnd(message_id=self._text))
        told += [CallEnd(tool_call_id=call.known) for call in self._calls.values()]
        self._text, self._calls = "", {}
        return told

    def _result(self, event: ToolExecutionEnd) -> list[Told]:
        id = event.tool_call_id
        return [
            CallResult(
                message_id=self._history.result(id),
                tool_call_id=self._history.call(id),
                content=event.result.text,
                role="tool",
            )
        ]

    # what there is besides

    def _forget(self, path: str) -> None:
        self._files.discard(path)
        self._changed = True

    def _state(self) -> list[Told]:
        """What there is, if that has changed: once for all that one call did."""
        if not self._changed:
            return []
        self._changed = False
        todos = [{"content": todo.content, "status": todo.status} for todo in self._todos]
        return [StateSnapshot(snapshot={"todos": todos, "files": sorted(self._files)})]

    # the end

    def _status(self, event: StatusChanged) -> list[Told]:
        if not event.previous or event.previous == event.status or event.status == "running":
            return []
        end, self._end = self._end, None
        if event.status == "closed":
            return self._failed("The thread was closed; run it again to go on.")
        if event.status == "error":
            return self._failed((end.error if end else event.reason) or "The run failed.")
        if event.status == "interrupted":
            waiting = self._waiting
            if waiting is None or reason_of(waiting) == "subagent":
                return self._state()
            return self.waits(waiting)
        if event.status == "idle" and self._unheard:
            return []  # a run ended just as this was said: another one hears it
        stopped = event.status in ("cancelled", "paused")
        return self._finished({"type": "cancelled" if stopped else "success"})

    def _finished(self, outcome: dict[str, Any]) -> list[Told]:
        self.done = True
        usage = [_usage(*each) for each in self._usage.items() if each[1].total_tokens]
        return [
            *self._close(),
            *self._state(),
            RunFinished(
                thread_id=self._asked.thread_id,
                run_id=self._asked.run_id,
                outcome=outcome,
                usage=usage or UNSET,
            ),
        ]

    def _failed(self, why: str) -> list[Told]:
        self.done = True
        return [*self._close(), RunError(message=why)]


class _OpenCall(msgspec.Struct):
    """A call whose end is not told: its id, that which the client knows, and whether all is."""

    id: str
    known: str
    told: bool = False


def _usage(model: str, usage: Usage) -> dict[str, Any]:
    asked = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        **({"model": model} if model else {}),
        "inputTokens": asked,
        "outputTokens": usage.output_tokens,
        "totalTokens": asked + usage.output_tokens,
        "cachedInputTokens": usage.cache_read_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
