"""A store's conversations as frames."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.frames import COLUMNS, to_frame
from sagents_nb.serialization import to_data
from sagents_nb.store import frames as framing
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from sagents_nb.store.store import ScopedStore
from tests.talking import agent_of, call

Store = sa.ConversationStore

ASKED = sa.Message.assistant(
    "I look.",
    [sa.ToolCall("c1", "ls", {"path": "/"}), sa.ToolCall("c2", "rm")],
    usage=sa.Usage(10, 4),
    model="demo",
)
NOT_RUN = {"not_run": "rejected"}
RESULTS = sa.Message.tool(
    [sa.ToolResult("c1", "ls", "a"), sa.ToolResult("c2", "rm", "No.", metadata=NOT_RUN)]
)
STATE = sa.State(
    messages=[sa.Message.user("What is there?"), ASKED, RESULTS], todos=[sa.Todo("look")]
)


@pytest.fixture
def journaled(store: Store, mine: ScopedStore) -> str:
    id = mine.create_conversation(id="journaled").id
    journal, _, _ = Journal.open(store.database, id)
    entries = [Entry("begin", {"version": 1})]
    for n, message in enumerate(STATE.messages, start=1):
        entries.append(Entry("message", {"n": n, **to_data(message)}))
    entries.append(Entry("todos", [to_data(todo) for todo in STATE.todos]))
    journal.append(entries).result()
    journal.release().result()
    return id


def test_the_frames_of_a_store_are_those_of_all_its_conversations(
    store: Store, mine: ScopedStore, theirs: ScopedStore, journaled: str
) -> None:
    mine.create_conversation(id="empty")
    mine.create_conversation(id="saved")
    mine.save_agent_state("saved", STATE.export())
    theirs.create_conversation(id="foreign")
    theirs.save_agent_state("foreign", STATE.export())
    messages = store.to_frame("messages", scope=sa.Scope(user="alice"))
    assert messages["session_id"].tolist() == ["journaled"] * 3 + ["saved"] * 3
    assert messages["text"].tolist() == ["What is there?", "I look.", "a\nNo."] * 2
    times = messages["time"]
    assert abs(times[0] - datetime.now(UTC)) < timedelta(minutes=1)
    assert times.isna().tolist() == [False] * 3 + [True] * 3
    todos = mine.to_frame("todos")
    assert todos[["session_id", "content"]].values.tolist() == [
        ["journaled", "look"],
        ["saved", "look"],
    ]
    usage = mine.to_frame("usage")
    assert usage[["model", "input_tokens"]].values.tolist() == [["demo", 10]] * 2
    assert store.to_frame("messages").empty  # nobody's


def test_calls_end_as_the_transcript_says(mine: ScopedStore, journaled: str) -> None:
    asyncio.run(mine.save_message(None, journaled, ASKED))
    mine.complete_tool_call("c1", {"duration": 1.5})
    mine.record_hitl_decision("c2", "rejected")
    mine.fail_tool_call("c2")
    calls = mine.to_frame("tool_calls")
    assert calls["status"].tolist() == ["completed", "rejected"]
    assert calls["duration"].tolist()[0] == 1.5
    assert calls["duration"].isna().tolist() == [False, True]
    assert calls["result"].tolist() == ["a", "No."]
    assert not calls["time"].isna().any()


@pytest.mark.parametrize("kind", ["messages", "tool_calls", "todos", "usage"])
def test_frames_have_the_same_columns_also_when_empty(mine: ScopedStore, kind: str) -> None:
    assert list(mine.to_frame(kind).columns) == list(COLUMNS[kind])
    assert to_frame(kind, [mine, mine]).empty


@pytest.mark.parametrize("kind", ["events", "files"])
def test_what_only_a_session_knows_is_refused(store: Store, kind: str) -> None:
    told = rf"A store has the frames messages, .*, not '{kind}', which only a session has\.$"
    with pytest.raises(sa.ConfigurationError, match=told):
        store.to_frame(kind)


@pytest.mark.parametrize("kind", ["conversations", "map", "nothing"])
def test_what_a_session_does_not_know_either_is_not_asked_of_one(store: Store, kind: str) -> None:
    for source in (store.to_frame, lambda kind: to_frame(kind, store)):
        with pytest.raises(sa.ConfigurationError) as refused:
            source(kind)
        assert "session" not in str(refused.value)
    told = rf"A store has the frames messages, tool_calls, .*, not '{kind}'\.$"
    with pytest.raises(sa.ConfigurationError, match=told):
        store.to_frame(kind)


@sa.tool
def look(where: str) -> str:
    """Look there."""
    return f"{where} is fine"


@pytest.mark.parametrize("kind", framing.KINDS)
def test_of_many_conversations_some_are_read_in_each_transaction(
    store: Store,
    mine: ScopedStore,
    kind: str,
    works: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in range(5):
        session = sa.Session(
            agent_of(call("look", where="x"), f"answer {n}", tools=[look]),
            id=f"m{n}", store=store, scope=sa.Scope(user="alice"),
        )  # fmt: skip
        session.send(f"question {n}").result()
        session.close()
    at_once = mine.to_frame(kind)
    works.clear()
    monkeypatch.setattr(framing, "AT_ONCE", 2)
    assert mine.to_frame(kind).equals(at_once)
    assert len(works) == 1 + 3
