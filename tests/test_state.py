from __future__ import annotations

import enum
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.state import numbered
from tests.test_messages import data, messages

todos = st.builds(
    sa.Todo,
    st.text(min_size=1, max_size=20),
    st.sampled_from(["pending", "in_progress", "completed", "cancelled"]),
    st.none() | st.integers(1, 9) | st.text("abc", min_size=1, max_size=2),
)
interrupts = st.builds(
    sa.Interrupt,
    st.sampled_from(["hitl", "tool", "multiple"]),
    st.lists(st.builds(sa.ActionRequest, st.text(), st.text(), data), max_size=2).map(tuple),
    st.none() | st.text(),
    data,
    st.text(),
)
states = st.builds(
    sa.State,
    messages=st.lists(messages, max_size=4),
    todos=st.lists(todos, max_size=4, unique_by=lambda todo: todo.id or object()),
    metadata=st.dictionaries(st.text(max_size=3), st.integers() | data, max_size=3),
    interrupt=st.none() | interrupts,
)
simple_states = st.builds(  # merging looks into metadata only
    sa.State,
    messages=st.lists(st.builds(sa.Message.user, st.sampled_from("abc")), max_size=3),
    todos=st.lists(st.builds(sa.Todo, st.sampled_from("abc")), max_size=2),
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
    assert merged.todos == right.todos
    assert set(merged.metadata) == set(left.metadata) | set(right.metadata)
    assert merged.interrupt == (right.interrupt or left.interrupt)


@given(simple_states, simple_states, simple_states)
def test_merging_can_be_grouped_in_any_way(a: sa.State, b: sa.State, c: sa.State) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


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
    waiting = sa.ToolResult("1", "a", "Waiting", is_interrupt=True)
    state = sa.State(messages=[sa.Message.tool([waiting])], interrupt=sa.Interrupt("tool"))
    clean = state.clean_stale_interrupts()
    (result,) = clean.messages[0].tool_results
    assert clean.interrupt is None
    assert (result.is_error, result.is_interrupt) == (True, False)
    assert "lost" in result.text


# exporting


@pytest.mark.spec("S1.10.1", "S1.10.2")
@given(states)
def test_what_was_exported_as_json_comes_back_the_same(state: sa.State) -> None:
    exported = json.loads(json.dumps(state.export()))
    restored = sa.State.restore(exported)
    assert restored == state
    assert json.loads(json.dumps(restored.export()))["state"] == exported["state"]


@pytest.mark.spec("S1.10.1")
def test_an_export_has_a_version_the_state_and_the_time() -> None:
    exported = sa.State().export()
    assert set(exported) == {"version", "state", "serialized_at"}
    assert exported["version"] == 1
    assert set(exported["state"]) == {"messages", "todos", "metadata", "interrupt"}
    assert datetime.fromisoformat(exported["serialized_at"]).tzinfo == UTC


class Colour(enum.Enum):
    RED = "red"


class Unknown:
    def __repr__(self) -> str:
        return "<something>"


@pytest.mark.spec("S1.10.3", "S1.10.1")
def test_anything_in_the_metadata_becomes_json() -> None:
    metadata = {
        "enum": Colour.RED,
        "function": print,
        "object": Unknown(),
        "set": {1},
        "nested": {"bytes": b"hi", "when": datetime(2026, 1, 2, tzinfo=UTC)},
        "keys": {1: "one", (1, 2): {None: [Unknown()]}},
    }
    exported = json.loads(json.dumps(sa.State(metadata=metadata).export()))
    kept = exported["state"]["metadata"]
    assert (kept["enum"], kept["function"], kept["object"]) == ("red", None, "<something>")
    assert kept["set"] == [1]
    assert kept["keys"] == {"1": "one", "(1, 2)": {"None": ["<something>"]}}


@pytest.mark.spec("S1.10.4")
@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"state": None}, {"state": []}, {"version": 1, "messages": []}]
)
def test_what_is_no_export_is_refused(data: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="no 'state'"):
        sa.State.restore(data)


@pytest.mark.spec("S1.10.4", "S1.9.4")
def test_restoring_forgives_missing_lists_and_unknown_words() -> None:
    loose = {"messages": None, "todos": None, "metadata": None}
    assert sa.State.restore({"state": loose}) == sa.State()
    assert sa.State.restore({"state": {}}) == sa.State()
    odd = {"todos": [{"content": "a", "status": "someday"}], "messages": "none"}
    assert list(sa.State.restore({"state": odd}).todos) == [sa.Todo("a", id=1)]


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_version_from_the_future_is_refused_with_advice(version: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="upgrade"):
        sa.State.restore({"version": version, "state": {}})


def test_a_broken_message_is_named() -> None:
    with pytest.raises(sa.ConfigurationError, match="cannot be read"):
        sa.State.restore({"state": {"messages": [{"role": 5}]}})


@pytest.mark.spec("S1.10.8")
def test_metadata_of_a_middleware_that_is_gone_is_kept() -> None:
    exported = sa.State(metadata={"OldMiddleware": {"n": 1}}).export()
    assert sa.State.restore(exported).metadata == {"OldMiddleware": {"n": 1}}
