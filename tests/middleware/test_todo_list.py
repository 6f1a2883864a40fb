from __future__ import annotations

from typing import Any

import pytest

from sagents_nb.middleware.todo_list import MOST, TodoList
from sagents_nb.state import State, Todo
from sagents_nb.tools import ToolOutput
from tests.middleware.calling import call, tool_of

TOOL = tool_of(TodoList(), "write_todos")


def write(todos: Any, *, merge: bool = False, state: State | None = None) -> ToolOutput:
    return call(TOOL, {"merge": merge, "todos": todos}, state=state)


def after(output: ToolOutput, state: State | None = None) -> list[Todo]:
    return list((state or State()).update(output.update).todos)


def test_the_tool_is_described_and_the_prompt_names_it() -> None:
    assert "write_todos" in TodoList().system_prompt()
    assert TOOL.schema["required"] == ["merge", "todos"]
    item = TOOL.schema["$defs"]["TodoItem"]["properties"]
    assert item["status"]["enum"] == ["pending", "in_progress", "completed", "cancelled"]
    assert all(field["description"] for field in item.values())


@pytest.mark.spec("S1.9.5", "S1.9.4", "P7")
def test_a_plan_gets_small_numbers_and_the_reply_counts() -> None:
    output = write([{"content": "a", "status": "in_progress"}, {"content": "b"}, {"content": "c"}])
    assert output.content == (
        "3 todos: 2 pending, 1 in_progress.\n1. [in_progress] a\n2. [pending] b\n3. [pending] c"
    )
    assert [t.id for t in after(output)] == [1, 2, 3]


def test_a_list_has_no_more_items_than_anybody_reads() -> None:
    state = State(todos=[Todo(f"item {n}") for n in range(MOST - 1)])
    one_more = write([{"content": "last"}], merge=True, state=state)
    assert len(after(one_more, state)) == MOST
    output = write([{"content": "a"}, {"content": "b"}], merge=True, state=state)
    assert output.is_error
    assert "The list would have 501 items, and 500 is the most" in output.content
    assert not output.update


@pytest.mark.spec("S1.9.5")
def test_merge_updates_by_id_and_appends_what_is_new() -> None:
    state = State(todos=[Todo("a"), Todo("b"), Todo("c", id="own")])
    output = write(
        [
            {"id": "2", "content": "b!", "status": "completed"},
            {"content": "d"},
            {"id": "own", "status": "cancelled"},
        ],
        merge=True,
        state=state,
    )
    assert after(output, state) == [
        Todo("a", id=1),
        Todo("b!", "completed", 2),
        Todo("c", "cancelled", "own"),
        Todo("d", id=3),
    ]
    assert output.content.startswith("4 todos: 2 pending, 1 completed, 1 cancelled.")


@pytest.mark.spec("S1.9.5")
def test_without_merge_the_list_is_replaced() -> None:
    state = State(todos=[Todo("a"), Todo("b")])
    output = write([{"content": "new"}], state=state)
    assert after(output, state) == [Todo("new", id=1)]
    assert output.content.startswith("1 todo: 1 pending.")


@pytest.mark.spec("S1.9.6", "P7")
def test_the_declared_order_is_kept() -> None:
    output = write([{"content": str(i), "id": i} for i in (10, 2, 1)] + [{"content": "x"}])
    assert [t.id for t in after(output)] == [10, 2, 1, 11]


@pytest.mark.spec("S1.9.4", "P7")
@pytest.mark.parametrize("status", ["done", "", None, "PENDING"])
def test_an_unknown_status_is_pending(status: Any) -> None:
    output = write([{"content": "a", "status": status}, {"content": "b"}])
    assert [t.status for t in after(output)] == ["pending", "pending"]


@pytest.mark.spec("S1.9.4", "S1.9.5")
@pytest.mark.parametrize("item", [{"content": ""}, {"content": "x" * 1001}, {"id": 9}, {}])
def test_a_bad_item_leaves_the_list_as_it_was(item: dict[str, Any]) -> None:
    state = State(todos=[Todo("a")])
    output = write([{"content": "fine"}, item], merge=True, state=state)
    assert output.is_error
    assert "Item 2" in str(output.content)
    assert output.update == {}


@pytest.mark.spec("S1.9.5")
@pytest.mark.parametrize(
    "arguments",
    [
        {"todos": [{"content": "a"}]},
        {"merge": True},
        {"merge": True, "todos": "a"},
        {"merge": True, "todos": []},
        {"merge": True, "todos": ["a"]},
        {"merge": True, "todos": [{"content": 5}]},
        {"merge": True, "todos": [{"content": "a", "id": [1]}]},
    ],
)
def test_what_is_no_list_of_items_is_refused_before_it_runs(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Invalid arguments"):
        TOOL.arguments.check(arguments)


@pytest.mark.spec("S1.9.7")
def test_when_all_is_completed_the_list_is_cleared_and_the_reply_says_so() -> None:
    state = State(todos=[Todo("a", "completed"), Todo("b")])
    output = write([{"id": 2, "status": "completed"}], merge=True, state=state)
    assert after(output, state) == []
    assert output.content == (
        "All done: 2 todos completed. The list is cleared.\n1. [completed] a\n2. [completed] b"
    )
    assert output.metadata["cleared"] is True
    assert [t["content"] for t in output.metadata["todos"]] == ["a", "b"]


@pytest.mark.spec("S1.9.7")
def test_cancelled_items_count_as_resolved() -> None:
    output = write(
        [{"content": "a", "status": "completed"}, {"content": "b", "status": "cancelled"}]
    )
    assert str(output.content).startswith(
        "All done: 2 todos resolved (1 completed, 1 cancelled). The list is cleared."
    )
    assert output.update == {"todos": []}
