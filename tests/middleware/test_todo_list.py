from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import ConfigurationError
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


@pytest.mark.spec("H3.4.1")
def test_a_list_that_is_only_replaced_has_no_merge() -> None:
    tool = tool_of(TodoList(replace_only=True), "write_todos")
    assert tool.schema["required"] == ["todos"]
    assert "merge" not in f"{tool.schema} {tool.description}"
    state = State(todos=[Todo("a"), Todo("b")])
    output = tool(**tool.arguments.check({"todos": [{"content": "new", "status": "?"}]}))
    assert after(output, state) == [Todo("new", "pending", 1)]
    assert output.content == "1 todo: 1 pending.\n1. [pending] new"


@pytest.mark.spec("H3.4.1")
def test_an_item_can_be_cut_instead_of_refused() -> None:
    tool = tool_of(TodoList(max_content=2000), "write_todos")
    todos = [{"content": "x" * 2001}, {"content": "y" * 1001}, {"content": "z"}]
    output = call(tool, {"merge": False, "todos": todos})
    assert [len(t.content) for t in after(output)] == [2000, 1001, 1]
    kept = State.restore(State().update(output.update).export())
    assert list(kept.todos) == after(output)
    tool = tool_of(TodoList(max_content=3), "write_todos")
    assert after(call(tool, {"merge": False, "todos": todos}))[0].content == "xxx"
    empty = call(tool, {"merge": False, "todos": [{"content": ""}]})
    assert (empty.is_error, empty.update) == (True, {})


@pytest.mark.spec("S1.9.4")
@pytest.mark.parametrize("max_content", [0, 2001, True, "many"])
def test_no_item_is_longer_than_people_read(max_content: Any) -> None:
    said = r"max_content=…\) is a whole number from 1 to 2,000, or None"
    with pytest.raises(ConfigurationError, match=said):
        TodoList(max_content=max_content)


@pytest.mark.spec("H3.4.1")
def test_a_list_of_which_all_is_done_can_stay() -> None:
    tool = tool_of(TodoList(keep_done=True), "write_todos")
    output = call(tool, {"merge": False, "todos": [{"content": "a", "status": "completed"}]})
    assert after(output) == [Todo("a", "completed", 1)]
    assert output.content == "1 todo: 1 completed.\n1. [completed] a"
    assert "cleared" not in f"{output.metadata} {tool.description}"


def test_long_items_are_kept_with_their_conversation(tmp_path: Path) -> None:
    options = {"replace_only": True, "max_content": 2000, "keep_done": True}
    todos = {"todos": [{"content": "x" * 1500, "status": "completed"}]}
    model = sa.ScriptedModel([sa.ToolCall("c1", "write_todos", todos), "done"])
    agent = sa.Agent(model, todo_options=options)
    store = sa.ConversationStore(tmp_path / "agents.db")
    with sa.Session(agent, "c1", store=store) as session:
        session.send("go").result()
    with sa.Session.open("c1", agent=agent, store=store) as session:
        assert [(len(t.content), t.status) for t in session.todos] == [(1500, "completed")]
    store.close()
