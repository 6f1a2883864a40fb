"""The state of a conversation: immutable data, no keys, no functions, no scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr, replace

from .errors import ConfigurationError
from .frozenlist import FrozenList
from .interrupts import Interrupt
from .messages import Message, ToolResult

VERSION = 1

TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
TODO_STATUSES: tuple[TodoStatus, ...] = ("pending", "in_progress", "completed", "cancelled")


class Todo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do: ``content`` of 1 to 1,000 characters.

    An unknown ``status`` becomes "pending"; ``id`` None is given the next small integer by
    the state it is put into.
    """

    content: str
    status: TodoStatus = "pending"
    id: int | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not 1 <= len(self.content) <= 1000:
            raise ConfigurationError("A todo's content is text of 1 to 1,000 characters.")
        if self.status not in TODO_STATUSES:
            force_setattr(self, "status", "pending")
        if isinstance(self.id, str) and self.id.isdecimal():
            force_setattr(self, "id", int(self.id))


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, todos, metadata and a pending interrupt. Every method returns a new State.

    >>> s = State().add_message(Message.user("hi")).put_todo(Todo("greet"))
    >>> len(s.messages), s.todos[0].id
    (1, 1)
    """

    messages: FrozenList[Message] = msgspec.field(default_factory=FrozenList)
    todos: FrozenList[Todo] = msgspec.field(default_factory=FrozenList)
    metadata: dict[str, Any] = {}
    interrupt: Interrupt | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.messages, FrozenList):  # a list, for convenience
            force_setattr(self, "messages", FrozenList(_checked(self.messages)))
        if not isinstance(self.todos, FrozenList):
            force_setattr(self, "todos", numbered(self.todos))

    # messages

    def add_message(self, message: Message) -> State:
        """With ``message`` at the end."""
        return replace(self, messages=self.messages.append(message))

    def add_messages(self, messages: Iterable[Message]) -> State:
        """With ``messages`` at the end."""
        return replace(self, messages=self.messages.extend(_checked(messages)))

    def set_messages(self, messages: Iterable[Message]) -> State:
        """With these messages instead."""
        return replace(self, messages=FrozenList(_checked(messages)))

    def replace_tool_result(self, tool_call_id: str, result: ToolResult) -> State:
        """With the result of that call replaced; unchanged if there is none."""
        for position in range(len(self.messages) - 1, -1, -1):
            message = self.messages[position]
            if any(r.tool_call_id == tool_call_id for r in message.tool_results):
                parts = tuple(
                    result if isinstance(p, ToolResult) and p.tool_call_id == tool_call_id else p
                    for p in message.parts
                )
                messages = self.messages[:]
                messages[position] = replace(message, parts=parts)
                return replace(self, messages=FrozenList(messages))
        return self

    # todos

    def put_todo(self, todo: Todo) -> State:
        """With ``todo`` in the place of the one with its id, or at the end."""
        todos = list(self.todos)
        for index, old in enumerate(todos):
            if todo.id is not None and old.id == todo.id:
                todos[index] = todo
                break
        else:
            todos.append(todo)
        return replace(self, todos=numbered(todos))

    def get_todo(self, id: int | str) -> Todo | None:
        """The todo with that id, or None."""
        return next((todo for todo in self.todos if todo.id == id), None)

    def delete_todo(self, id: int | str) -> State:
        """Without that todo; unchanged if there is none."""
        return replace(self, todos=FrozenList(t for t in self.todos if t.id != id))

    def set_todos(self, todos: Iterable[Todo]) -> State:
        """With these todos instead, in this order."""
        return replace(self, todos=numbered(todos))

    def todos_by_status(self, status: TodoStatus) -> list[Todo]:
        """The todos with that status, in order."""
        return [todo for todo in self.todos if todo.status == status]

    # metadata

    def put_metadata(self, key: str, value: Any) -> State:
        """With ``metadata[key]`` set."""
        return replace(self, metadata={**self.metadata, key: value})

    def get_metadata(self, key: str, default: Any = None) -> Any:
        """``metadata[key]``, or ``default``."""
        return self.metadata.get(key, default)

    # the whole

    def merge(self, other: State) -> State:
        """Messages of both, todos and interrupt of ``other``, metadata merged deeply."""
        return State(
            messages=self.messages.extend(other.messages),
            todos=other.todos,
            metadata=_deep_merge(self.metadata, other.metadata),
            interrupt=other.interrupt or self.interrupt,
        )

    def update(self, changes: Mapping[str, Any]) -> State:
        """With the partial update of a tool: "todos" replace, "metadata" merges.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for any other key: the history
        is append-only, so a tool adds to it by what it returns.
        """
        unknown = sorted(set(changes) - {"todos", "metadata"})
        if unknown:
            raise ConfigurationError(
                f"A tool's update may hold 'todos' and 'metadata', not {', '.join(unknown)}."
            )
        state = self
        if "todos" in changes:
            state = state.set_todos(changes["todos"])
        if "metadata" in changes:
            state = replace(state, metadata=_deep_merge(state.metadata, changes["metadata"]))
        return state

    def with_interrupt(self, interrupt: Interrupt | None) -> State:
        """With that interrupt pending, or none."""
        return replace(self, interrupt=interrupt)

    def reset(self) -> State:
        """Empty: no messages, todos, metadata or interrupt."""
        return State()

    def clean_stale_interrupts(self) -> State:
        """Without an interrupt, and each placeholder of one turned into a clear error."""
        state = self.with_interrupt(None)
        for message in self.messages:
            for result in message.tool_results:
                if result.is_interrupt:
                    state = state.replace_tool_result(
                        result.tool_call_id,
                        replace(
                            result,
                            content="This call was interrupted and its work was lost.",
                            is_error=True,
                            is_interrupt=False,
                        ),
                    )
        return state

    def export(self) -> dict[str, Any]:
        """The state as JSON-ready data: ``{"version", "state", "serialized_at"}``."""
        return {
            "version": VERSION,
            "state": {
                "messages": [to_data(m) for m in self.messages],
                "todos": [to_data(t) for t in self.todos],
                "metadata": to_data(self.metadata),
                "interrupt": to_data(self.interrupt),
            },
            "serialized_at": datetime.now(UTC).isoformat(),
        }

    @classmethod
    def restore(cls, exported: Mapping[str, Any]) -> State:
        """The state that :meth:`export` gave.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for data that is not an export
        or comes from a newer version of this package.
        """
        if not isinstance(exported, Mapping) or not isinstance(exported.get("state"), Mapping):
            raise ConfigurationError(
                "This is not an exported state: it has no 'state'; pass what State.export() gave."
            )
        version = exported.get("version", VERSION)
        if not isinstance(version, int) or version > VERSION:
            raise ConfigurationError(
                f"This state has version {version!r}, but {VERSION} is the newest that this "
                "sagents_nb reads; upgrade sagents_nb."
            )
        data = exported["state"]
        messages = data.get("messages")
        try:
            return cls(
                messages=FrozenList(
                    msgspec.convert(m, Message)
                    for m in (messages if isinstance(messages, list) else [])
                ),
                todos=numbered(
                    msgspec.convert(t, _LooseTodo).todo for t in data.get("todos") or []
                ),
                metadata=dict(data.get("metadata") or {}),
                interrupt=msgspec.convert(data.get("interrupt"), Interrupt | None),
            )
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"This state cannot be read: {error}.") from error


class _LooseTodo(msgspec.Struct):
    """A stored todo, whose status may be a word this version does not know."""

    content: str
    status: str = "pending"
    id: int | str | None = None

    @property
    def todo(self) -> Todo:
        return Todo(self.content, self.status, self.id)  # type: ignore[arg-type]


def to_data(value: Any) -> Any:
    """``value`` as JSON-ready data: functions become null, unknown objects their repr."""
    try:
        return msgspec.to_builtins(value, enc_hook=_encode_unknown, str_keys=True)
    except TypeError:  # a dict whose keys are neither text nor numbers
        plain = _with_text_keys(value)
        return msgspec.to_builtins(plain, enc_hook=_encode_unknown, str_keys=True)


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return replace(
            value, **{n: _with_text_keys(getattr(value, n)) for n in value.__struct_fields__}
        )
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str | int | float) else repr(key): _with_text_keys(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset | FrozenList):
        return [_with_text_keys(item) for item in value]
    return value


def _encode_unknown(value: Any) -> Any:
    if isinstance(value, FrozenList):
        return value[:]
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return None
    return repr(value)


def numbered(todos: Iterable[Any]) -> FrozenList[Todo]:
    """``todos`` with the missing ids filled in by the next free small integers."""
    items = list(todos)
    for todo in items:
        if not isinstance(todo, Todo):
            raise ConfigurationError(f"A todo must be a Todo, not {type(todo).__name__}.")
    following = max((t.id for t in items if isinstance(t.id, int)), default=0) + 1
    for index, todo in enumerate(items):
        if todo.id is None:
            items[index] = replace(todo, id=following)
            following += 1
    return FrozenList(items)


def _checked(messages: Iterable[Any]) -> Iterable[Message]:
    items = list(messages)
    for message in items:
        if not isinstance(message, Message):
            raise ConfigurationError(
                f"A state's messages must be Message objects, not {type(message).__name__}; "
                "use Message.user(…)."
            )
    return items


def _deep_merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for key, value in right.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _deep_merge(old, value)
        else:
            merged[key] = value
    return merged
