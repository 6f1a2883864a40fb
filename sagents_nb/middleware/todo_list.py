"""A to-do list that the model keeps and people watch."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..context import ToolContext
from ..state import TODO_STATUSES, Todo, numbered, numeric_id, to_data
from ..tools import Tool, ToolOutput
from .base import Middleware

MOST = 500
"""Items of a list: each answer has all of them."""

_DESCRIPTION = """\
Keep the to-do list of this conversation; people watch it while you work.

Use it for work of several steps. Write the whole plan first (merge=false), then update it as
you go (merge=true, only the items that change): mark a step "in_progress" before you begin it
and "completed" as soon as it is done, one at a time. When everything is completed or
cancelled the list is cleared."""

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


class TodoList(Middleware):
    """Gives the model ``write_todos`` and says when to use it.

    The todos are in ``state.todos``. When all are completed or cancelled the list is
    emptied; the final list is in the metadata of that tool result, as "todos", together
    with ``"cleared": True``, for whoever wants to show it.

    >>> from sagents_nb import Agent, ScriptedModel, TodoList, ToolCall
    >>> todos = {"merge": False, "todos": [{"content": "Find data", "status": "in_progress"}]}
    >>> model = ScriptedModel([ToolCall("c1", "write_todos", todos), "I have begun."])
    >>> agent = Agent(model, middleware=[TodoList()], defaults=False)
    >>> agent.run("Study it.").state.todos[0].content
    'Find data'
    """

    def system_prompt(self) -> str:
        """When to plan, and how."""
        return _PROMPT

    def tools(self) -> list[Tool]:
        """``write_todos``."""
        return [_write_todos()]


def write_todos(
    merge: Annotated[
        bool,
        Meta(description="True updates items by id and adds new ones; false replaces the list."),
    ],
    todos: Annotated[
        list[TodoItem], Meta(min_length=1, description="The items, in the order to do them.")
    ],
    ctx: ToolContext,
) -> ToolOutput:
    """Update the to-do list."""
    items = list(ctx.state.todos) if merge else []
    places = {todo.id: place for place, todo in enumerate(items)}
    for position, item in enumerate(todos, start=1):
        id = numeric_id(item.id) if isinstance(item.id, str) else item.id
        place = places.get(id) if id is not None else None
        before = None if place is None else items[place]
        content = before.content if before and item.content is UNSET else item.content
        if not isinstance(content, str) or not 1 <= len(content) <= 1000:
            return ToolOutput(
                f"Item {position} has no content of 1 to 1,000 characters, so the list was not "
                "changed; send it again.",
                is_error=True,
            )
        todo = Todo(content, item.status or "pending", id)  # type: ignore[arg-type]
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
    if all(todo.status in ("completed", "cancelled") for todo in final):
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


@functools.cache
def _write_todos() -> Tool:
    return Tool(
        write_todos,
        description=_DESCRIPTION,
        run_on="loop",
        idempotent=True,
        display_text="Updating the to-do list",
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
