"""The state of a conversation: immutable data, no keys, no functions, no scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec.structs import force_setattr, replace

from . import kinds
from .errors import ConfigurationError, pass_on
from .frozenlist import FrozenList
from .interrupts import Interrupt
from .messages import Message, ToolResult
from .serialization import (
    VERSION,
    StateSchema,
    deserialized,
    migrated,
    portable,
    read_as,
    serialized,
    unescaped,
)
from .serialization import to_data as to_data
from .text import logger_of, said_by

TODOS = "write_todos"
"""The tool that changes the to-do list."""
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
TODO_STATUSES: tuple[TodoStatus, ...] = ("pending", "in_progress", "completed", "cancelled")


_STATUS = kinds.one_of(*TODO_STATUSES)
LONGEST_TODO = 2_000
"""Characters of what is to be done, where a list allows as many."""


def _content(longest: int) -> kinds.Kind:
    what = f"text of 1 to {longest:,} characters"
    return kinds.Kind(what, lambda value: isinstance(value, str) and 1 <= len(value) <= longest)


_CONTENT, _LONG_CONTENT = _content(1_000), _content(LONGEST_TODO)


class Todo(msgspec.Struct, metaclass=kinds.Record, frozen=True, omit_defaults=True):
    """One thing to do: ``content`` of 1 to 1,000 characters.

    An unknown ``status`` becomes "pending"; ``id`` None is given the next small integer by
    the state it is put into.

    >>> from sagents_nb import State, Todo
    >>> State(todos=[Todo("Find data"), Todo("Plot them", "completed")]).todos[1].id
    2
    """

    content: str
    status: TodoStatus = "pending"
    id: int | str | None = None

    _kind: ClassVar[kinds.Kind] = _CONTENT

    def __post_init__(self) -> None:
        kinds.check_fields(self, content=self._kind, status=kinds.ANYTHING)
        if not _STATUS.fits(self.status):
            force_setattr(self, "status", "pending")
        if isinstance(self.id, str):
            force_setattr(self, "id", numeric_id(self.id))


def numeric_id(id: str) -> int | str:
    """The id of a todo as the number that its text is, so that "2" is item 2.

    >>> numeric_id("2"), numeric_id("b")
    (2, 'b')
    """
    return int(id) if id.isdecimal() and len(id) < _LONGEST_ID else id


_LONGEST_ID = 100  # digits of one that is a number


class LongTodo(Todo, frozen=True):
    """A todo with up to 2,000 characters, of a list that allows them."""

    _kind: ClassVar[kinds.Kind] = _LONG_CONTENT


class LooseTodo(msgspec.Struct):
    """A stored todo, whose status may be a word this version does not know."""

    content: str
    status: Any = "pending"
    id: int | str | None = None

    @property
    def todo(self) -> Todo:
        """The todo it is."""
        kind = Todo if _CONTENT.fits(self.content) else LongTodo
        return kind(self.content, self.status, self.id)


def numbered(todos: Iterable[Any]) -> FrozenList[Todo]:
    """``todos`` with the missing ids filled in by the next free small integers."""
    if not kinds.LIST.fits(todos):
        raise ConfigurationError(f"The todos of a state are a list, not {type(todos).__name__}.")
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


logger = logger_of(__name__)

# Empty like any other, but ``merge`` knows it: State(todos=None) says nothing about todos.
_UNSAID: FrozenList[Todo] = FrozenList()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, todos, metadata and a pending interrupt. Every method returns a new State.

    ``messages`` and ``todos`` may be given as lists; ``todos=None`` is an empty list that
    leaves the todos alone when it is merged into another state. ``metadata`` is a dict for whoever
    has something to keep, and ``interrupt`` what waits for people, or None.

    >>> s = State().add_message(Message.user("hi")).put_todo(Todo("greet"))
    >>> len(s.messages), s.todos[0].id
    (1, 1)
    """

    messages: FrozenList[Message] = msgspec.field(default_factory=FrozenList)
    todos: FrozenList[Todo] = msgspec.field(default_factory=FrozenList)
    metadata: dict[str, Any] = {}
    interrupt: Interrupt | None = None

    if TYPE_CHECKING:  # the fields are narrower than what may be given for them

        def __init__(
            self,
            *,
            messages: Iterable[Message | Mapping[str, Any]] = (),
            todos: Iterable[Todo] | None = (),
            metadata: Mapping[str, Any] = {},
            interrupt: Interrupt | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.messages, FrozenList):  # a list, for convenience
            force_setattr(self, "messages", FrozenList(_checked(self.messages)))
        if type(self.metadata) is not dict or (
            self.interrupt is not None and type(self.interrupt) is not Interrupt
        ):
            kinds.check_fields(self, messages=kinds.ANYTHING, todos=kinds.ANYTHING)
        if self.todos is None:
            force_setattr(self, "todos", _UNSAID)
        elif not isinstance(self.todos, FrozenList):
            force_setattr(self, "todos", numbered(self.todos))

    # messages

    def add_message(self, message: Message | Mapping[str, Any]) -> State:
        """With ``message`` at the end.

        It may be a provider's, as a dict. Raises :class:`~sagents_nb.errors.ConfigurationError` for
        what is none.

        >>> from sagents_nb import Message, State
        >>> State().add_message(Message.user("hi")).messages[-1].text
        'hi'
        """
        if not isinstance(message, Message):  # not kinds.checked: called in each turn
            return self.add_messages([message])
        return self._with(self.messages.append(message))

    def add_messages(self, messages: Iterable[Message | Mapping[str, Any]]) -> State:
        """With ``messages`` at the end; what they may be is as for :meth:`add_message`.

        >>> from sagents_nb import Message, State
        >>> len(State().add_messages([Message.user("hi"), Message.assistant("Hello!")]).messages)
        2
        """
        return self._with(self.messages.extend(_checked(messages)))

    @kinds.checked(messages=kinds.ANYTHING)
    def set_messages(self, messages: Iterable[Message]) -> State:
        """With these ``messages`` instead; what they may be is as for :meth:`add_message`.

        >>> from sagents_nb import Message, State
        >>> state = State(messages=[Message.user("hi"), Message.assistant("Hello!")])
        >>> len(state.set_messages(state.messages[:1]).messages)
        1
        """
        return self._with(FrozenList(_checked(messages)))

    def _with(self, messages: FrozenList[Message]) -> State:
        """With these; all else has been looked at, so ``replace`` would only take longer."""
        new: State = self.__copy__()  # type: ignore[attr-defined]  # which msgspec does not tell
        force_setattr(new, "messages", messages)
        return new

    @kinds.checked
    def replace_tool_result(self, tool_call_id: str, result: ToolResult) -> State:
        """With ``result`` in the place of that of ``tool_call_id``; unchanged if there is none.

        >>> from sagents_nb import Message, State, ToolResult
        >>> state = State(messages=[Message.tool([ToolResult("c1", "add", "4")])])
        >>> state = state.replace_tool_result("c1", ToolResult("c1", "add", "5"))
        >>> state.messages[0].tool_results[0].text
        '5'
        """
        for position in range(len(self.messages) - 1, -1, -1):
            message = self.messages[position]
            if any(r.tool_call_id == tool_call_id for r in message.tool_results):
                parts = tuple(
                    result if isinstance(p, ToolResult) and p.tool_call_id == tool_call_id else p
                    for p in message.parts
                )
                messages = self.messages[:]
                messages[position] = replace(message, parts=parts)
                return self._with(FrozenList(messages))
        return self

    # todos

    @kinds.checked
    def put_todo(self, todo: Todo) -> State:
        """With ``todo`` in the place of the one with its id, or at the end.

        >>> from sagents_nb import State, Todo
        >>> state = State().put_todo(Todo("Find data"))
        >>> state.put_todo(Todo("Find data", "completed", id=1)).todos[0].status
        'completed'
        """
        todos = list(self.todos)
        for index, old in enumerate(todos):
            if todo.id is not None and old.id == todo.id:
                todos[index] = todo
                break
        else:
            todos.append(todo)
        return replace(self, todos=numbered(todos))

    @kinds.checked
    def get_todo(self, id: int | str) -> Todo | None:
        """The todo with that ``id``, or None.

        >>> from sagents_nb import State, Todo
        >>> State(todos=[Todo("Find data")]).get_todo(1).content
        'Find data'
        """
        return next((todo for todo in self.todos if todo.id == id), None)

    @kinds.checked
    def delete_todo(self, id: int | str) -> State:
        """Without the todo of that ``id``; unchanged if there is none.

        >>> from sagents_nb import State, Todo
        >>> State(todos=[Todo("Find data"), Todo("Plot them")]).delete_todo(1).todos[0].content
        'Plot them'
        """
        return replace(self, todos=FrozenList(t for t in self.todos if t.id != id))

    @kinds.checked
    def set_todos(self, todos: Iterable[Todo]) -> State:
        """With these ``todos`` instead, in this order.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what are none.

        >>> from sagents_nb import State, Todo
        >>> len(State(todos=[Todo("Find data")]).set_todos([]).todos)
        0
        """
        return replace(self, todos=numbered(todos))

    @kinds.checked
    def todos_by_status(self, status: TodoStatus) -> list[Todo]:
        """The todos with that ``status``, in order.

        >>> from sagents_nb import State, Todo
        >>> state = State(todos=[Todo("Find data", "completed"), Todo("Plot them")])
        >>> [todo.content for todo in state.todos_by_status("pending")]
        ['Plot them']
        """
        return [todo for todo in self.todos if todo.status == status]

    # metadata

    @kinds.checked
    def put_metadata(self, key: str, value: Any) -> State:
        """With ``metadata[key]`` set to ``value``.

        >>> from sagents_nb import State
        >>> State().put_metadata("city", "Oslo").metadata
        {'city': 'Oslo'}
        """
        return replace(self, metadata={**self.metadata, key: value})

    @kinds.checked
    def get_metadata(self, key: str, default: Any = None) -> Any:
        """``metadata[key]``, or ``default``.

        >>> from sagents_nb import State
        >>> State(metadata={"city": "Oslo"}).get_metadata("country", "unknown")
        'unknown'
        """
        return self.metadata.get(key, default)

    # the whole

    @kinds.checked
    def merge(self, other: State) -> State:
        """Messages of both, todos and interrupt of ``other``, metadata merged deeply.

        The todos of ``other`` count even if it has none, unless it was made with
        ``todos=None``. Its interrupt counts if it has one.

        >>> from sagents_nb import Message, State, Todo
        >>> before = State(messages=[Message.user("hi")], todos=[Todo("greet")])
        >>> both = before.merge(State(messages=[Message.user("bye")], todos=None))
        >>> len(both.messages), both.todos[0].content
        (2, 'greet')
        """
        return State(
            messages=self.messages.extend(other.messages),
            todos=self.todos if other.todos is _UNSAID else other.todos,
            metadata=_deep_merge(self.metadata, other.metadata),
            interrupt=other.interrupt or self.interrupt,
        )

    @kinds.checked
    def update(self, changes: Mapping[str, Any]) -> State:
        """With the partial update of a tool (``changes``): "todos" replace, "metadata" merges.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for any other key: the history
        is append-only, so a tool adds to it by what it returns.

        >>> from sagents_nb import State
        >>> State(metadata={"city": "Oslo"}).update({"metadata": {"rooms": 2}}).metadata
        {'city': 'Oslo', 'rooms': 2}
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
        """With that ``interrupt`` pending, or none.

        >>> from sagents_nb import Interrupt, State
        >>> State().with_interrupt(Interrupt("halt", message="Closed today.")).interrupt.message
        'Closed today.'
        """
        return replace(self, interrupt=interrupt)

    def reset(self) -> State:
        """Empty: no messages, todos, metadata or interrupt.

        >>> from sagents_nb import Message, State
        >>> len(State(messages=[Message.user("hi")]).reset().messages)
        0
        """
        return State()

    def clean_stale_interrupts(self) -> State:
        """Without an interrupt, and each placeholder of one turned into a clear error.

        For an interrupt that nobody can answer any more, such as that of a sub-agent whose
        process is gone.

        >>> from sagents_nb import Interrupt, State
        >>> State(interrupt=Interrupt("subagent_hitl")).clean_stale_interrupts().interrupt is None
        True
        """
        messages = [_without_placeholders(message) for message in self.messages]
        if all(new is old for new, old in zip(messages, self.messages, strict=True)):
            return self if self.interrupt is None else self.with_interrupt(None)
        return replace(self, messages=FrozenList(messages), interrupt=None)

    def export(self) -> dict[str, Any]:
        """The state as JSON-ready data; see :func:`export_state`.

        >>> from sagents_nb import Message, State
        >>> exported = State(messages=[Message.user("hi")]).export()
        >>> sorted(exported), len(exported["state"]["messages"])
        (['serialized_at', 'state', 'version'], 1)
        """
        return export_state(self)

    @classmethod
    def restore(cls, exported: Any) -> State:
        """The state that :meth:`export` gave as ``exported``; see :func:`restore_state`.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no exported state.

        >>> from sagents_nb import Message, State
        >>> state = State(messages=[Message.user("hi")])
        >>> State.restore(state.export()) == state
        True
        """
        return restore_state(exported)

    @classmethod
    def restore_or_new(cls, exported: Any) -> State:
        """:meth:`restore` of ``exported``, or an empty state and a logged warning where that fails.

        None, where nothing was kept, is an empty state without a warning.

        >>> from sagents_nb import State
        >>> State.restore_or_new(None) == State()
        True
        """
        return restore_or_new(exported)


def export_state(state: State, schema: StateSchema = MappingProxyType({})) -> dict[str, Any]:
    """``state`` as data that any JSON parser and database takes.

    ``{"version": int, "state": {"messages", "todos", "metadata", "interrupt"},
    "serialized_at": ISO time}``. ``schema`` is the agent's ``state_schema``: its functions
    write the metadata they name. What is still no JSON is written as
    :func:`~sagents_nb.serialization.to_data` does. If there is text or a number that is not
    portable (NUL, lone surrogates, NaN), all are escaped and ``"escaped": True`` says so.
    """
    data = {
        "messages": [to_data(message) for message in state.messages],
        "todos": [to_data(todo) for todo in state.todos],
        "metadata": to_data(serialized(state.metadata, schema)),
        "interrupt": to_data(state.interrupt),
    }
    plain, is_escaped = portable(data)
    now = datetime.now(UTC).isoformat()
    exported = {"version": VERSION, "state": plain, "serialized_at": now}
    return {**exported, "escaped": True} if is_escaped else exported


def restore_state(exported: Any, schema: StateSchema = MappingProxyType({})) -> State:
    """The state that :func:`export_state` gave, also one of an older version.

    ``schema`` reads the metadata back that it wrote; other metadata is kept as it is. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for data that is not an export, is
    damaged, or comes from a newer version of this package.
    """
    try:
        return _restored(exported, schema)
    except BaseException as error:
        pass_on(error)
        if issubclass(type(error), ConfigurationError):
            raise
        why = error if type(error) is msgspec.ValidationError else said_by(error)
        raise ConfigurationError(f"This state cannot be read: {why}.") from error


def _restored(exported: Any, schema: StateSchema) -> State:
    if not isinstance(exported, Mapping) or not isinstance(exported.get("state"), Mapping):
        raise ConfigurationError(
            "This is not an exported state: it has no 'state'; pass what State.export() gave."
        )
    data: Any = dict(exported["state"])
    if exported.get("escaped"):
        try:
            data = unescaped(data)
        except RecursionError:
            raise ConfigurationError(
                "This state cannot be read: its data are nested too deep."
            ) from None
    data = migrated(data, exported.get("version", VERSION))
    return State(
        messages=FrozenList(read_as(m, Message) for m in _list(data, "messages")),
        todos=numbered(read_as(t, LooseTodo).todo for t in _list(data, "todos")),
        metadata=deserialized(_mapping(data, "metadata"), schema),
        interrupt=read_as(data.get("interrupt"), Interrupt | None),
    )


def restore_or_new(exported: Any, schema: StateSchema = MappingProxyType({})) -> State:
    """:func:`restore_state`, or an empty state and a logged warning if that fails.

    None, where nothing was stored, is an empty state without a warning.
    """
    if exported is None:
        return State()
    try:
        return restore_state(exported, schema)
    except ConfigurationError as error:
        logger.warning("A stored state is left aside for a new one: %s", error)
        return State()


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if value is not None and not isinstance(value, list):
        logger.warning("The %s of a restored state are no list, so they are left out.", key)
        return []
    return value or []


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if value is not None and not isinstance(value, Mapping):
        logger.warning("The %s of a restored state is no dict, so it is left out.", key)
        return {}
    return value or {}


def _checked(messages: Iterable[Any]) -> Iterable[Message]:
    if not kinds.LIST.fits(messages):
        raise ConfigurationError(
            f"The messages of a state are a list, not {type(messages).__name__}; "
            "use [Message.user(…)]."
        )
    items = list(messages)
    if all(isinstance(message, Message) for message in items):
        return items
    from .foreign_messages import messages_from  # for those who come with another's history

    return messages_from(items)


def _without_placeholders(message: Message) -> Message:
    for part in message.parts:  # of each message of a history
        if isinstance(part, ToolResult) and part.is_interrupt:
            return replace(message, parts=tuple(map(_given_up, message.parts)))
    return message


def _given_up(part: Any) -> Any:
    if not isinstance(part, ToolResult) or not part.is_interrupt:
        return part
    lost = "This call was interrupted and its work was lost."
    return replace(part, content=lost, is_error=True, is_interrupt=False)


def _deep_merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for key, value in right.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _deep_merge(old, value)
        else:
            merged[key] = value
    return merged
