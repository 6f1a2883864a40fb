"""What an export shows of a conversation, the same in every format: turns, calls, files, usage.

All text is plain here, without secrets and without characters that hide something. What makes a
page or Markdown of it has to see that it stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..citations import citations_of
from ..events import DecisionMade, Event, SubagentEvent, ToolExecutionEnd
from ..files import FileEntry
from ..frames import Conversation
from ..frames.rows import unwrapped
from ..interrupts import Approve, Edit, Reject
from ..messages import (
    ALWAYS,
    ANSWER,
    CUT_SHORT,
    DECISION,
    DECLINED,
    EDITED,
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    Usage,
    brief_of,
    fields_of,
    image_of,
)
from ..models.demo import DemoModel
from ..redaction import masked, secrets_of_names
from ..state import TODOS, Todo
from ..text import visible
from ..transcript import ESTIMATED, MOST_IMAGE, checked_image, title_of, usage_line

MOST_TEXT = 200_000
"""Bytes of a file, and characters of a result, that an export shows."""

_MADE_UP = re.compile(r"notebook-\d+|session-[0-9a-f]{12}")  # ids that nobody chose

Argument = tuple[str, str]  # a name and the value as text


class Text(msgspec.Struct, frozen=True):
    """What somebody said; a model's is Markdown."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """A model's reasoning, to be folded."""

    text: str


class Given(msgspec.Struct, frozen=True):
    """What the ``{name}`` of a person's message stood for, in a ``line`` and at length."""

    line: str
    fields: tuple[Argument, ...]


class Note(msgspec.Struct, frozen=True):
    """A word of ours: what failed, was cut, is not shown."""

    text: str
    is_error: bool = False


class Picture(msgspec.Struct, frozen=True):
    """An image, checked to be one: base64 ``data`` of a PNG, JPEG, GIF or WebP."""

    name: str
    mime_type: str
    data: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call: what ran, what the model had asked for if a person changed it, who decided.

    ``status`` is "completed", "failed", "not done" where the tool has refused, "waiting", or how
    it was not run, such as "rejected".
    ``inside`` is a line for each call of the sub-agent that it started.
    """

    name: str
    arguments: tuple[Argument, ...]
    asked: tuple[Argument, ...] | None
    status: str
    decisions: tuple[str, ...]
    inside: tuple[str, ...]
    result: tuple[Text | Picture | Note, ...]

    @property
    def pictures(self) -> list[Picture]:
        """Those of its result, which are seen without a click: they are what was asked for."""
        return [part for part in self.result if isinstance(part, Picture)]

    @property
    def told(self) -> list[Text | Note]:
        """Its result but for the pictures."""
        return [part for part in self.result if not isinstance(part, Picture)]

    def outcome(self, status: str) -> str:
        """Its status in that word, unless a decision begins with it, and the decisions."""
        told = any(decision.startswith(f"{status} ") for decision in self.decisions)
        return ", ".join(self.decisions if told else (status, *self.decisions))


class Turn(msgspec.Struct, frozen=True):
    """One message; ``role`` is "user", "assistant", or a word of its own."""

    role: str
    parts: tuple[Text | Thought | Note | Picture | Call | Given, ...]


class File(msgspec.Struct, frozen=True):
    """A file of the session; ``content`` is why it is not shown where it is a note."""

    path: str
    size: int
    content: Text | Picture | Note


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is exported."""

    id: str
    title: str
    models: str
    turns: tuple[Turn, ...]
    todos: tuple[Todo, ...]
    usage: Usage
    files: tuple[File, ...]
    estimated: bool = False  # whether tokens of the demo are in the usage

    @property
    def used(self) -> str:
        """The usage in words, and what tokens of the demo stand for."""
        line = usage_line(self.usage)
        return f"{line}. {ESTIMATED}" if self.estimated else line


def document_of(
    conversation: Conversation,
    *,
    title: str | None = None,
    usage: Usage | None = None,
    model: str | None = None,
    read: Callable[[str], FileEntry] | None = None,
    secrets: Iterable[str] = (),
) -> Document:
    """``conversation`` without ``secrets``, those of the process's environment, or keys.

    ``read`` gives a file with its content. Without ``usage`` it is the sum of the messages', and
    ``model`` is named where they name none.
    """
    hidden = {*secrets, *secrets_of_names({})}

    def clean(text: Any) -> str:
        return visible(masked(str(text).replace("\r\n", "\n"), hidden))

    messages = conversation.state.messages
    models = [str(m.metadata["model"]) for m in messages if m.metadata.get("model")]
    if model is not None and not models:
        models = [model]
    if usage is None:
        usage = sum((m.usage for m in messages if m.usage is not None), Usage())
    title = title or conversation.state.metadata.get("conversation_title")
    if not title and _MADE_UP.fullmatch(conversation.session_id):
        title = title_of(messages, clean)
    turns = _Turns(messages, conversation.events, clean)
    return Document(
        id=clean(conversation.session_id),
        title=clean(title) if isinstance(title, str) else "",
        models=clean(", ".join(dict.fromkeys(models))),
        turns=tuple(
            turn
            for message in messages
            if message.role != "tool" and ((turn := turns.of(message)).parts or not message.parts)
        ),
        todos=tuple(
            msgspec.structs.replace(todo, content=clean(todo.content))
            for todo in conversation.state.todos
        ),
        usage=usage,
        estimated=DemoModel.name in models,
        files=tuple(
            _file(entry, read, clean) for entry in conversation.files if not entry.is_directory
        ),
    )


class _Turns:
    """Turns of messages, whose calls are beside their results and what people decided."""

    def __init__(
        self, messages: Sequence[Message], events: Iterable[Event], clean: Callable[[Any], str]
    ) -> None:
        self._clean = clean
        # By the object: some models use the same ids in each turn.
        self._results: dict[int, ToolResult] = {}
        self._last: dict[str, ToolCall] = {}
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self._last[part.id] = part
                elif isinstance(part, ToolResult) and part.tool_call_id in self._last:
                    self._results[id(self._last[part.tool_call_id])] = part
        self._decided: dict[str, list[DecisionMade]] = {}
        self._inside: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event, DecisionMade):
                self._decided.setdefault(event.tool_call_id, []).append(event)
            elif isinstance(event, SubagentEvent):
                for _, inner in unwrapped([event]):
                    if isinstance(inner, ToolExecutionEnd):
                        line = clean(f"{inner.tool_name} {inner.status}")
                        self._inside.setdefault(event.tool_call_id, []).append(line)

    def of(self, message: Message) -> Turn:
        fields, message = fields_of(message), message.shown
        parts = list[Text | Thought | Note | Picture | Call | Given](self._parts(message))
        if fields:
            texts = tuple((self._clean(each.name), self._clean(each.text)) for each in fields)
            parts.append(Given(self._clean(brief_of(fields)), texts))
        for citation in citations_of(message):
            parts.append(Note(self._clean(str(citation)), is_error=not citation.verified))
        if note := message.error or CUT_SHORT.get(message.stop_reason or ""):
            parts.append(Note(self._clean(note), is_error=True))
        return Turn(self._clean(message.role), tuple(parts))

    def _parts(self, message: Message) -> Iterator[Text | Thought | Note | Picture | Call]:
        for part in message.parts:
            if isinstance(part, ToolCall):
                call = self._call(part)
                # As in the panel: the list itself is shown, and not each step that changed it.
                if (call.name, call.status, call.decisions) != (TODOS, "completed", ()):
                    yield call
            elif isinstance(part, ThinkingPart):
                if part.text.strip():
                    yield Thought(self._clean(part.text))
            elif (shown := self._shown(part)) is not None:
                yield shown

    def _shown(self, part: Any) -> Text | Picture | Note | None:
        if isinstance(part, TextPart):
            return Text(self._clean(part.text)) if part.text.strip() else None
        if isinstance(part, JsonPart):
            return Text(self._clean(_value(part.data)))
        if isinstance(part, ImagePart | FilePart):
            what = "image" if isinstance(part, ImagePart) else "file"
            name = self._clean((part.name if isinstance(part, FilePart) else None) or what)
            if part.data is None:
                address = "" if part.url is None else f": {part.url:.2000}"
                return Note(self._clean(f"{name} at an address{address}"))
            return _picture(name, part.data) or Note(f"{name} is not shown here")
        return None

    def _call(self, call: ToolCall) -> Call:
        result = self._results.get(id(call))
        metadata = result.metadata if result is not None else {}
        edited = metadata.get(EDITED)
        ran = edited if isinstance(edited, dict) else call.arguments
        # Of calls with one id only the last can be told to be the one that was decided on.
        is_last = self._last.get(call.id) is call
        decisions = [self._decision(d) for d in self._decided.get(call.id, ()) if is_last]
        if not decisions and ran is edited:
            decisions = ["edited by a person"]
        said = metadata.get(DECISION)
        if not decisions and isinstance(said, dict) and said.get("by") == ALWAYS:
            decisions = ["always allowed"]
        if metadata.get(ANSWER):
            decisions.append(f"answered: {self._clean(metadata[ANSWER])}")
        return Call(
            name=self._clean(call.name),
            arguments=self._arguments(ran),
            asked=self._arguments(call.arguments) if ran is edited else None,
            status=self._clean(_status(result)),
            decisions=tuple(decisions),
            inside=tuple(self._inside.get(call.id, ()) if is_last else ()),
            result=tuple(self._result(call, result)),
        )

    def _arguments(self, arguments: dict[str, Any]) -> tuple[Argument, ...]:
        # Masked beside its name, since a password alone looks like any other word.
        found = []
        for name, value in arguments.items():
            text = _value(value)
            shown = self._clean(f"{name}={text}")
            begin = self._clean(f"{name}=")
            both = shown.startswith(begin)
            found.append((self._clean(name), shown[len(begin) :] if both else self._clean(text)))
        return tuple(found)

    def _result(self, call: ToolCall, result: ToolResult | None) -> Iterator[Text | Picture | Note]:
        if call.error:
            yield Note(self._clean(call.error), is_error=True)
        if result is None:
            return
        content = result.content
        if isinstance(content, str):
            content = [TextPart(content)]
        for part in content:
            shown = self._shown(part)
            if isinstance(shown, Text) and len(shown.text) > MOST_TEXT:
                left = len(shown.text) - MOST_TEXT
                yield Text(shown.text[:MOST_TEXT])
                yield Note(f"{left:,} more characters are not shown here")
            elif shown is not None:
                yield shown

    def _decision(self, made: DecisionMade) -> str:
        decision, by = made.decision, made.by
        if isinstance(decision, Reject):
            who = "as nobody was there to decide" if decision.unattended else f"by {by}"
            why = f": {decision.message}" if decision.message else ""
            return self._clean(f"rejected {who}{why}")
        if isinstance(decision, Approve):
            return self._clean(f"approved by {by}")
        if isinstance(decision, Edit):
            return self._clean(f"edited by {by}")
        return self._clean(f"answered by {by}: {_value(decision.answer)}")


def _status(result: ToolResult | None) -> str:
    if result is None or result.is_interrupt:
        return "waiting"
    not_run = result.metadata.get("not_run")  # as the loop marks what it did not run
    if not_run:
        return str(not_run)
    if result.metadata.get(DECLINED) is True:
        return "not done"
    return "failed" if result.is_error else "completed"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2 if _is_long(value) else None)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _is_long(value: Any) -> bool:
    return isinstance(value, dict | list) and len(repr(value)) > 80


def _picture(name: str, data: str) -> Picture | None:
    image = checked_image(data)
    return None if image is None else Picture(name, image.mime_type, image.data or "")


def _picture_of(name: str, content: bytes) -> Picture | None:
    if len(content) > MOST_IMAGE or (image := image_of(content)) is None or image.data is None:
        return None
    return Picture(name, image.mime_type, image.data)


def _file(
    entry: FileEntry, read: Callable[[str], FileEntry] | None, clean: Callable[[Any], str]
) -> File:
    path = clean(entry.path)
    if entry.size > MOST_IMAGE:
        return File(path, entry.size, Note("It is too large to be shown here."))
    if not entry.loaded and read is not None:
        try:
            entry = read(entry.path)
        except Exception as error:  # a storage's own, whose files are named all the same
            return File(path, entry.size, Note(clean(f"It could not be read: {error}"), True))
    if isinstance(entry.content, bytes) and (picture := _picture_of(path, entry.content)):
        return File(path, entry.size, picture)
    if entry.text is None:
        return File(path, entry.size, Note("It is neither text nor an image."))
    if entry.size > MOST_TEXT:
        return File(path, entry.size, Note("It is too large to be shown here."))
    return File(path, entry.size, Text(clean(entry.text)))
