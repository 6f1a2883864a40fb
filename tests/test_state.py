from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.state import numbered

todos = st.builds(
    sa.Todo,
    st.text(min_size=1, max_size=20),
    st.sampled_from(["pending", "in_progress", "completed", "cancelled"]),
    st.none() | st.integers(1, 9) | st.text("abc", min_size=1, max_size=2),
)
simple_states = st.builds(  # merging looks into metadata only
    sa.State,
    messages=st.lists(st.builds(sa.Message.user, st.sampled_from("abc")), max_size=3),
    todos=st.none() | st.lists(st.builds(sa.Todo, st.sampled_from("abc")), max_size=2),
    metadata=st.dictionaries(
        st.sampled_from("xy"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 3))
    ),
    interrupt=st.none() | st.builds(sa.Interrupt, st.sampled_from(["hitl", "tool"])),
)


def test_every_change_gives_a_new_state() -> None:
    empty = sa.State()
    full = empty.add_message(sa.Message.user("a")).put_todo(sa.Todo("t")).put_metadata("k", 1)
    assert (len(empty.messages), len(empty.todos), empty.metadata) == (0, 0, {})
    assert (len(full.messages), len(full.todos), full.get_metadata("k")) == (1, 1, 1)
    with pytest.raises(AttributeError):
        full.metadata = {}  # type: ignore[misc]


@pytest.mark.parametrize("bad", [["text"], [None], [{"role": "user"}]])
@pytest.mark.spec("S1.1.8")
def test_what_is_no_message_is_refused_at_once(bad: Any) -> None:
    for attempt in (
        lambda: sa.State(messages=bad),
        lambda: sa.State().add_messages(bad),
        lambda: sa.State().set_messages(bad),
        lambda: sa.State(todos=bad),
    ):
        with pytest.raises(sa.ConfigurationError):
            attempt()


# todos


@pytest.mark.spec("S1.9.2")
def test_putting_a_todo_replaces_the_one_with_its_id_or_appends() -> None:
    state = sa.State(todos=[sa.Todo("a", id=1), sa.Todo("b", id="own")])
    state = state.put_todo(sa.Todo("a!", "completed", 1)).put_todo(sa.Todo("c"))
    assert list(state.todos) == [
        sa.Todo("a!", "completed", 1),
        sa.Todo("b", id="own"),
        sa.Todo("c", id=2),
    ]
    assert state.get_todo("own") == sa.Todo("b", id="own")
    assert state.get_todo(99) is None
    assert [t.content for t in state.delete_todo(1).todos] == ["b", "c"]
    assert state.delete_todo(99).todos == state.todos
    assert [t.id for t in state.todos_by_status("completed")] == [1]


@pytest.mark.spec("P7", "S1.9.4", "S1.9.6")
def test_ids_are_small_numbers_in_declared_order_also_past_nine() -> None:
    state = sa.State(todos=[sa.Todo(f"t{n}") for n in range(1, 13)])
    assert [t.id for t in state.todos] == list(range(1, 13))
    assert [t.content for t in state.todos][8:11] == ["t9", "t10", "t11"]


@pytest.mark.spec("S1.9.4", "P7")
@pytest.mark.parametrize("status", ["done", "", None, 3])
def test_an_unknown_status_becomes_pending(status: Any) -> None:
    assert sa.Todo("a", status).status == "pending"


@pytest.mark.spec("S1.9.4")
@pytest.mark.parametrize("content", ["", "x" * 1001, None, 5])
def test_a_todo_is_text_of_one_to_a_thousand_characters(content: Any) -> None:
    with pytest.raises(sa.ConfigurationError):
        sa.Todo(content)
    assert sa.Todo("x" * 1000)


@pytest.mark.spec("S1.9.4")
def test_numeric_text_is_taken_as_a_number() -> None:
    assert sa.Todo("a", id="7").id == 7


@given(st.lists(todos, max_size=8))
def test_numbering_keeps_order_and_given_ids_and_takes_none_twice(items: list[sa.Todo]) -> None:
    result = numbered(items)
    assert [t.content for t in result] == [t.content for t in items]
    given_ids = {t.id for t in items if t.id is not None}
    fresh = [r.id for r, t in zip(result, items, strict=True) if t.id is None]
    assert len(set(fresh)) == len(fresh)
    assert not set(fresh) & given_ids


# merging


@pytest.mark.spec("S1.9.1")
@given(simple_states, simple_states)
def test_merging_adds_messages_and_lets_the_right_side_win(left: sa.State, right: sa.State) -> None:
    merged = left.merge(right)
    assert merged.messages == [*left.messages, *right.messages]
    assert merged.todos in (right.todos, left.todos)
    assert set(merged.metadata) == set(left.metadata) | set(right.metadata)
    assert merged.interrupt == (right.interrupt or left.interrupt)


@pytest.mark.spec("S1.9.1")
@given(simple_states, simple_states, simple_states)
def test_merging_can_be_grouped_in_any_way(a: sa.State, b: sa.State, c: sa.State) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@pytest.mark.spec("S1.9.1")
@given(simple_states)
def test_merging_with_nothing_changes_nothing(state: sa.State) -> None:
    assert sa.State().merge(state) == state
    assert state.merge(sa.State(todos=None)) == state  # type: ignore[arg-type]


@pytest.mark.spec("S1.9.1")
def test_an_empty_list_of_todos_wins_and_none_says_nothing() -> None:
    left = sa.State(todos=[sa.Todo("a", id=1)])
    silent = sa.State(todos=None, metadata={"k": 1})  # type: ignore[arg-type]
    assert left.merge(sa.State(todos=[])).todos == []
    assert left.merge(sa.State()).todos == []
    assert left.merge(silent).todos == left.todos
    assert left.merge(silent.put_metadata("l", 2)).todos == left.todos
    assert left.merge(silent.set_todos([])).todos == []
    assert silent.todos == []
    assert silent.put_todo(sa.Todo("b")).todos == [sa.Todo("b", id=1)]


@pytest.mark.spec("S1.9.1")
def test_metadata_merges_deeply() -> None:
    left = sa.State(metadata={"a": {"x": 1, "y": 1}, "b": 1})
    right = sa.State(metadata={"a": {"y": 2}, "b": {"z": 3}})
    assert left.merge(right).metadata == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}
    assert left.metadata == {"a": {"x": 1, "y": 1}, "b": 1}


@pytest.mark.spec("P15", "S1.2.18")
def test_a_tools_update_is_partial_and_never_touches_the_history() -> None:
    state = sa.State(
        messages=[sa.Message.user("a")], todos=[sa.Todo("t")], metadata={"k": {"x": 1}}
    )
    changed = state.update({"metadata": {"k": {"y": 2}}})
    assert changed.todos == state.todos
    assert changed.metadata == {"k": {"x": 1, "y": 2}}
    assert state.update({"todos": []}).todos == []
    with pytest.raises(sa.ConfigurationError, match="messages"):
        state.update({"messages": []})


@pytest.mark.spec("P12", "S1.9.3")
def test_reset_leaves_nothing() -> None:
    assert sa.State(messages=[sa.Message.user("a")], metadata={"k": 1}).reset() == sa.State()


# results


def test_replacing_a_result_touches_only_that_result() -> None:
    first, second = sa.ToolResult("1", "a", "x"), sa.ToolResult("2", "b", "y")
    state = sa.State(messages=[sa.Message.tool([first, second]), sa.Message.user("z")])
    new = state.replace_tool_result("2", sa.ToolResult("2", "b", "new"))
    assert [r.text for r in new.messages[0].tool_results] == ["x", "new"]
    assert new.messages[1] == state.messages[1]
    assert state.replace_tool_result("9", second) is state


def test_cleaning_turns_placeholders_into_clear_errors() -> None:
    waiting = sa.ToolResult("1", "a", "Waiting", is_interrupt=True, metadata={"k": 1})
    done = sa.ToolResult("2", "b", "fine")
    state = sa.State(
        messages=[
            sa.Message.tool([waiting, done]),
            sa.Message.user("x"),
            sa.Message.tool([waiting]),  # providers use an id twice
        ],
        todos=[sa.Todo("t")],
        interrupt=sa.Interrupt("tool"),
    )
    clean = state.clean_stale_interrupts()
    assert clean.interrupt is None
    for position in (0, 2):
        result = clean.messages[position].tool_results[0]
        assert (result.is_error, result.is_interrupt) == (True, False)
        assert "lost" in result.text
        assert (result.tool_call_id, result.name, result.metadata) == ("1", "a", {"k": 1})
    assert clean.messages[0].tool_results[1] is done
    assert clean.messages[1] is state.messages[1]
    assert clean.todos == state.todos
    assert state.interrupt is not None


def test_cleaning_what_is_clean_gives_the_same_state() -> None:
    state = sa.State(messages=[sa.Message.tool([sa.ToolResult("1", "a", "x")])])
    assert state.clean_stale_interrupts() is state
    waiting = state.with_interrupt(sa.Interrupt("subagent_hitl"))
    assert waiting.clean_stale_interrupts() == state
