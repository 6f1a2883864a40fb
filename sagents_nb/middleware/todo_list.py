"""A to-do list that the model keeps and people watch."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .. import kinds
from ..context import ToolContext
from ..state import (
    LONGEST_TODO,
    TODO_STATUSES,
    TODOS,
    LooseTodo,
    Todo,
    numbered,
    numeric_id,
    to_data,
)
from ..tools import Tool, ToolOutput
from .base import Middleware

MOST = 500
"""Items of a list: each answer has all of them."""

_MERGING = """\
Keep the to-do list of this conversation; people watch it while you work.

Use it for work of several steps. Write the whole plan first (merge=false), then update it as
you go (merge=true, only the items that change): mark a step "in_progress" before you begin it
and "completed" as soon as it is done, one at a time."""

_REPLACING = """\
Keep the to-do list of this conversation; people watch it while you work.

Use it for work of several steps. Write the whole plan first, then write all of it again as you
go, also the items that stay as they are: mark a step "in_progress" before you begin it and
"completed" as soon as it is done, one at a time."""

_CLEARED = " When everything is completed or\ncancelled the list is cleared."

_PROMPT = """\
## To-do list

For work of three or more steps, write a plan with `write_todos` before you begin, and keep it \
up to date: one item "in_progress" at a time, "completed" as soon as it is done, "cancelled" if \
it is no longer needed. Do not use it for a question that one step answers."""


class TodoItem(msgspec.Struct):
    """One item as a model sends it; an unknown status counts as "pending"."""

    content: Annotated[
        str | UnsetType,
        Meta(description="What to do, 1 to 1,000 characters. May be left out to keep the text."),
    ] = UNSET
    # Any text, so that a wrong word costs no turn; the schema still names the right ones.
    status: Annotated[
        str | None,
        Meta(description="Where it stands.", extra_json_schema={"enum": list(TODO_STATUSES)}),
    ] = "pending"
    id: Annotated[
        int | str | None,
        Meta(description="The id of an item to update. A new item gets the next number."),
    ] = None


_MAX_CONTENT = kinds.or_none(
    kinds.Kind(
        f"a whole number from 1 to {LONGEST_TODO:,}",
        lambda value: kinds.whole(1).fits(value) and value <= LONGEST_TODO,
    )
)

Merge = Annotated[
    bool, Meta(description="True updates items by id and adds new ones; false replaces the list.")
]
Items = Annotated[
    list[TodoItem], Meta(min_length=1, description="The items, in the order to do them.")
]


class TodoList(Middleware):
    """Gives the model ``write_todos`` and says when to use it.

    The todos are in ``state.todos``. When all are completed or cancelled the list is
    emptied; the final list is in the metadata of that tool result, as "todos", together
    with ``"cleared": True``, for whoever wants to show it. With ``keep_done`` it stays.

    The model updates items by their ids, or replaces the list; with ``replace_only`` it always
    writes the whole list. An item has up to 1,000 characters, and a longer one is refused; with
    ``max_content``, up to 2,000, it is cut after so many. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for another number.

    An agent has one by default, which ``todo_options`` configures.

    >>> from sagents_nb import Agent, ScriptedModel, TodoList, ToolCall
    >>> todos = {"merge": False, "todos": [{"content": "Find data", "status": "in_progress"}]}
    >>> model = ScriptedModel([ToolCall("c1", "write_todos", todos), "I have begun."])
    >>> agent = Agent(model, middleware=[TodoList()], defaults=False)
    >>> agent.run("Study it.").state.todos[0].content
    'Find data'
    """

    @kinds.checked(max_content=_MAX_CONTENT)
    def __init__(
        self,
        *,
        replace_only: bool = False,
        max_content: int | None = None,
        keep_done: bool = False,
    ) -> None:
        self.replace_only = replace_only
        self.max_content = max_content
        self.keep_done = keep_done

    def system_prompt(self) -> str:
        """When to plan, and how."""
        return _PROMPT

    def tools(self) -> list[Tool]:
        """``write_todos``."""
        return [_tool(self.replace_only, self.max_content, self.keep_done)]


@functools.cache
def _tool(replace_only: bool, max_content: int | None, keep_done: bool) -> Tool:
    def write_todos(merge: Merge, todos: Items, ctx: ToolContext) -> ToolOutput:
        return _written(list(ctx.state.todos) if merge else [], todos, max_content, keep_done)

    def replace_todos(todos: Items) -> ToolOutput:
        return _written([], todos, max_content, keep_done)

    return Tool(
        replace_todos if replace_only else write_todos,
        name=TODOS,
        description=f"{_REPLACING if replace_only else _MERGING}{'' if keep_done else _CLEARED}",
        run_on="loop",
        idempotent=True,
        display_text="Updating the to-do list",
    )


def _written(
    items: list[Todo], given: list[TodoItem], max_content: int | None, keep_done: bool
) -> ToolOutput:
    """The list of ``items`` with what was given for it."""
    places = {todo.id: place for place, todo in enumerate(items)}
    for position, item in enumerate(given, start=1):
        id = numeric_id(item.id) if isinstance(item.id, str) else item.id
        place = places.get(id) if id is not None else None
        before = None if place is None else items[place]
        content = before.content if before and item.content is UNSET else item.content
        if max_content is not None and isinstance(content, str):
            content = content[:max_content]
        if not isinstance(content, str) or not 1 <= len(content) <= (max_content or 1000):
            wanted = "content" if max_content else "content of 1 to 1,000 characters"
            return ToolOutput(
                f"Item {position} has no {wanted}, so the list was not changed; send it again.",
                is_error=True,
            )
        todo = LooseTodo(content, item.status or "pending", id).todo
        if place is not None:
            items[place] = todo
        else:
            places[id] = len(items)
            items.append(todo)
    if len(items) > MOST:
        return ToolOutput(
            f"The list would have {len(items):,} items, and {MOST} is the most, so it was not "
            "changed; send fewer.",
            is_error=True,
        )
    final = list(numbered(items))
    metadata: dict[str, Any] = {"todos": to_data(final)}
    lines = "\n".join(f"{todo.id}. [{todo.status}] {todo.content}" for todo in final)
    if not keep_done and all(todo.status in ("completed", "cancelled") for todo in final):
        return ToolOutput(
            f"{_all_done(final)} The list is cleared.\n{lines}",
            update={"todos": []},
            metadata={**metadata, "cleared": True},
        )
    return ToolOutput(
        f"{_count(len(final))}: {_by_status(final)}.\n{lines}",
        update={"todos": final},
        metadata=metadata,
    )


def _all_done(todos: list[Todo]) -> str:
    if all(todo.status == "completed" for todo in todos):
        return f"All done: {_count(len(todos))} completed."
    return f"All done: {_count(len(todos))} resolved ({_by_status(todos)})."


def _by_status(todos: list[Todo]) -> str:
    counts = Counter(todo.status for todo in todos)
    return ", ".join(f"{counts[s]} {s}" for s in TODO_STATUSES if counts[s])


def _count(number: int) -> str:
    return f"{number} todo" if number == 1 else f"{number} todos"
