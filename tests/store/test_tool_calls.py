"""The life of a tool call in a transcript."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import DisplayMessage
from sagents_nb.store.store import ScopedStore

STEPS: dict[str, Callable[[ScopedStore, str], DisplayMessage]] = {
    "executing": lambda store, id: store.mark_tool_executing(id),
    "completed": lambda store, id: store.complete_tool_call(id, {"seconds": 2}),
    "failed": lambda store, id: store.fail_tool_call(id, {"error": "no such file"}),
    "interrupted": lambda store, id: store.interrupt_tool_call(id, {"type": "hitl"}),
    "cancelled": lambda store, id: store.cancel_tool_call(id),
}
ENDS = {"completed", "failed", "cancelled"}
# From what, to what: all that may happen.
ALLOWED = (
    {("pending", "executing"), ("pending", "interrupted"), ("executing", "interrupted")}
    | {("pending", end) for end in ENDS}
    | {("executing", end) for end in ENDS}
    | {("interrupted", end) for end in ENDS}
)


def call(store: ScopedStore, id: str = "trip", call_id: str = "c1", **more: Any) -> DisplayMessage:
    if store.find_conversation(id) is None:
        store.create_conversation(id=id)
    content = {"call_id": call_id, "name": "ls", "arguments": {}}
    row = {"message_type": "assistant", "content_type": "tool_call", "content": content}
    return store.append_display_message(id, {**row, "status": "pending", **more})


def result(
    store: ScopedStore, id: str = "trip", call_id: str = "c1", **more: Any
) -> DisplayMessage:
    content = {"tool_call_id": call_id, "name": "ls", "content": "waits", **more}
    row = {"message_type": "tool", "content_type": "tool_result", "content": content}
    return store.append_display_message(id, row)


@pytest.mark.spec("S1.12.5")
@pytest.mark.parametrize("after", STEPS)
@pytest.mark.parametrize("before", ["pending", *STEPS])
def test_a_call_takes_the_steps_that_make_sense(mine: ScopedStore, before: str, after: str) -> None:
    row = call(mine, status=before, metadata={"kept": 1})
    if (before, after) in ALLOWED:
        changed = STEPS[after](mine, "c1")
        assert changed.status == after
        assert changed.metadata["kept"] == 1
        assert (changed.id, changed.content, changed.sequence) == (row.id, row.content, 0)
    else:
        with pytest.raises(sa.NotFound, match="no tool call 'c1' that is"):
            STEPS[after](mine, "c1")
        changed = row
    assert mine.load_display_messages("trip") == [changed]


@pytest.mark.spec("S1.12.5")
def test_what_is_said_about_a_call_adds_up(mine: ScopedStore) -> None:
    call(mine)
    mine.interrupt_tool_call("c1", {"type": "hitl"})
    mine.record_hitl_decision("c1", "approved")
    done = mine.complete_tool_call("c1", {"seconds": 2})
    assert done.metadata == {"type": "hitl", "hitl_decision": "approved", "seconds": 2}


@pytest.mark.spec("S1.12.5")
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_a_decision_is_stamped_on_the_call_and_on_its_result(
    mine: ScopedStore, decision: Any
) -> None:
    call(mine)
    other = call(mine, call_id="c2")
    result(mine)
    answered = mine.record_hitl_decision("c1", decision)
    rows = mine.load_display_messages("trip")
    assert rows[0] == answered
    assert [row.metadata.get("hitl_decision") for row in rows] == [decision, None, decision]
    assert rows[0].status == "pending"
    assert rows[1] == other


def test_a_decision_is_one_of_two_words(mine: ScopedStore) -> None:
    row = call(mine)
    with pytest.raises(sa.ConfigurationError, match="'approved' or 'rejected'; not 'perhaps'"):
        mine.record_hitl_decision("c1", "perhaps")  # type: ignore[arg-type]
    assert mine.load_display_messages("trip") == [row]


@pytest.mark.spec("S1.12.5")
def test_only_an_interrupted_result_is_resolved_and_once(mine: ScopedStore) -> None:
    call(mine)
    result(mine, is_interrupt=True, more=[1])
    changed = mine.resolve_interrupted_tool_result("c1", "a b")
    assert changed.content == {
        "tool_call_id": "c1",
        "name": "ls",
        "content": "a b",
        "more": [1],
    }
    for id in ("c1", "c2"):
        with pytest.raises(sa.NotFound, match=f"no interrupted result of tool call '{id}'"):
            mine.resolve_interrupted_tool_result(id, "other")
    assert mine.load_display_messages("trip")[1] == changed


def test_a_resolved_result_is_text(mine: ScopedStore) -> None:
    call(mine)
    result(mine, is_interrupt=True)
    with pytest.raises(sa.ConfigurationError, match="text; not list"):
        mine.resolve_interrupted_tool_result("c1", ["a"])  # type: ignore[arg-type]


def test_an_id_that_a_provider_used_again_is_the_newest_call(mine: ScopedStore) -> None:
    first = call(mine)
    second = call(mine)
    assert mine.mark_tool_executing("c1").id == second.id
    assert mine.mark_tool_executing("c1").id == first.id  # the newest that is pending
    assert mine.complete_tool_call("c1").id == second.id


def test_an_id_is_looked_for_in_the_conversation_that_is_named(
    mine: ScopedStore, theirs: ScopedStore
) -> None:
    here, there = call(mine), call(mine, "tour")
    theirs.create_conversation(id="foreign")
    call(theirs, "foreign")
    assert mine.mark_tool_executing("c1", conversation_id="trip").id == here.id
    with pytest.raises(sa.NotFound):
        mine.mark_tool_executing("c1", conversation_id="trip")
    with pytest.raises(sa.NotFound):
        mine.mark_tool_executing("c1", conversation_id="foreign")
    assert mine.mark_tool_executing("c1").id == there.id
    assert theirs.load_display_messages("foreign")[0].status == "pending"


@pytest.mark.parametrize("call_id", ["x" * 100_000, "\0" * 200, "\ud800'; drop table x; --", ""])
def test_an_id_may_be_anything_that_a_provider_makes_up(mine: ScopedStore, call_id: str) -> None:
    row = call(mine, call_id=call_id)
    call(mine, call_id=call_id + "y")
    changed = mine.mark_tool_executing(call_id)
    assert (changed.id, changed.content["call_id"]) == (row.id, call_id)


@pytest.mark.parametrize("call_id", [None, 7, b"c1"])
def test_an_id_that_is_no_text_is_refused(mine: ScopedStore, call_id: Any) -> None:
    call(mine)
    with pytest.raises(sa.ConfigurationError, match="is text; not"):
        mine.mark_tool_executing(call_id)


def test_of_many_who_end_a_call_at_once_one_does(url: str) -> None:
    """Two stores, as of two processes: each has a connection of its own."""
    stores = [sa.ConversationStore(url) for _ in range(2)]
    call(stores[0])

    def end(n: int) -> bool:
        try:
            STEPS[("completed", "failed", "cancelled")[n % 3]](stores[n % 2], "c1")
        except sa.NotFound:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            assert sum(pool.map(end, range(8))) == 1
            call(stores[0])
    for store in stores:
        store.close()
