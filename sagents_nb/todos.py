"""Todos: what they are, and how they get their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr, replace

from .errors import ConfigurationError
from .frozenlist import FrozenList

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


class LooseTodo(msgspec.Struct):
    """A stored todo, whose status may be a word this version does not know."""

    content: str
    status: Any = "pending"
    id: int | str | None = None

    @property
    def todo(self) -> Todo:
        """The todo it is."""
        return Todo(self.content, self.status, self.id)


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
