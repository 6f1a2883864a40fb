"""The state of a conversation: saved as a whole, or what the journal of its session says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.messages import TextPart
from sagents_nb.serialization import to_data
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from sagents_nb.store.store import ScopedStore

STATE = sa.State(
    messages=[sa.Message.user("a\0b \ud800"), sa.Message.assistant("Fine.")],
    todos=[sa.Todo("pack"), sa.Todo("go", "in_progress")],
    metadata={"conversation_title": "Trip", "ratio": float("inf")},
)


@pytest.fixture
def id(mine: ScopedStore) -> str:
    return mine.create_conversation().id


@pytest.mark.spec("S1.12.6")
def test_a_saved_state_comes_back_and_the_newest_counts(mine: ScopedStore, id: str) -> None:
    with pytest.raises(sa.NotFound, match="has no state yet"):
        mine.load_agent_state(id)
    for state in (sa.State(), STATE):
        exported = state.export()
        mine.save_agent_state(id, exported)
        assert mine.load_agent_state(id) == exported
        assert sa.State.restore(mine.load_agent_state(id)) == state


@pytest.mark.spec("S1.12.8")
def test_todos_are_read_without_an_agent(mine: ScopedStore, id: str) -> None:
    assert mine.load_todos(id) == mine.load_todos("unknown") == []
    mine.save_agent_state(id, STATE.export())
    assert mine.load_todos(id) == list(STATE.todos)


def test_what_waits_is_read_without_an_agent(mine: ScopedStore, id: str) -> None:
    assert mine.load_interrupt(id) is mine.load_interrupt("unknown") is None
    asked = sa.Interrupt("hitl", action_requests=(sa.ActionRequest("c1", "book", {"room": 7}),))
    mine.save_agent_state(id, sa.State(interrupt=asked).export())
    assert mine.load_interrupt(id) == asked


def test_of_a_session_what_waits_is_read_until_it_is_answered(
    store: sa.ConversationStore,
) -> None:
    def book(room: int) -> str:
        "Book a room."
        return "Booked."

    model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"room": 7}), "It is booked."])
    agent = sa.Agent(model, tools=[book], interrupt_on=["book"])
    with sa.sessions.start(agent, "trip", store=store) as session:
        asked = session.send("Book it.").result().interrupt
        waiting = store.load_interrupt("trip")
        assert waiting is not None
        assert asked is not None
        assert waiting.action_requests == asked.action_requests
        session.approve().result()
    assert store.load_interrupt("trip") is None


@pytest.mark.parametrize("exported", [None, {}, {"state": []}, "{}", sa.State()])
def test_what_is_no_exported_state_is_refused(mine: ScopedStore, id: str, exported: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"pass what State|is a dict"):
        mine.save_agent_state(id, exported)
    with pytest.raises(sa.NotFound):
        mine.load_agent_state(id)


@pytest.mark.spec("S1.12.8")
def test_where_there_is_a_journal_it_is_the_state(
    store: sa.ConversationStore, mine: ScopedStore, id: str
) -> None:
    mine.save_agent_state(id, sa.State(todos=[sa.Todo("old")]).export())
    journal, _, _ = Journal.open(store.database, id)
    assert mine.load_todos(id)[0].content == "old"  # nothing is written yet
    entries = [Entry("begin", {"version": 1})]
    for n, message in enumerate(STATE.messages):
        entries.append(Entry("message", {"n": n, **to_data(message)}))
    entries.append(Entry("todos", [to_data(todo) for todo in STATE.todos]))
    journal.append(entries).result()
    for when in ("while it is open", "when it is closed"):
        restored = sa.State.restore(mine.load_agent_state(id))
        assert restored.messages == STATE.messages, when
        assert restored.todos == STATE.todos, when
        assert mine.load_todos(id) == list(STATE.todos), when
        journal.release().result()


def test_a_state_is_not_saved_beside_a_journal_which_would_hide_it(
    store: sa.ConversationStore, mine: ScopedStore, id: str
) -> None:
    journal, _, _ = Journal.open(store.database, id)
    journal.append([Entry("begin", {"version": 1})]).result()
    with pytest.raises(sa.ConfigurationError, match="restore this one into another conversation"):
        mine.save_agent_state(id, STATE.export())
    assert mine.load_agent_state(id)["state"]["messages"] == []
    journal.release().result()


@pytest.mark.spec("S1.12.2")
def test_a_session_keeps_its_state_and_its_title(mine: ScopedStore, id: str) -> None:
    async def scenario() -> None:
        scope = sa.Scope(user="alice")
        assert await mine.load_state(scope, id) is None
        await mine.save_state(scope, id, STATE.export(), "on_completion")
        assert mine.get_conversation(id).title is None
        await mine.save_state(scope, id, STATE.export(), "on_title_generated")
        assert mine.get_conversation(id).title == "Trip"
        kept = await mine.load_state(scope, id)
        assert sa.State.restore(kept) == STATE

    asyncio.run(scenario())


@pytest.mark.spec("S1.12.7")
def test_a_session_of_another_scope_gets_nothing(mine: ScopedStore, id: str) -> None:
    async def scenario() -> None:
        mine.save_agent_state(id, STATE.export())
        bob = sa.Scope(user="bob")
        message = sa.Message.user([TextPart("hi")])
        for attempt in (
            mine.load_state(bob, id),
            mine.save_state(bob, id, sa.State().export(), "on_completion"),
            mine.save_message(bob, id, message),
            mine.update_tool_status(bob, id, "c1", "executing", {}),
            mine.resolve_tool_result(bob, id, "c1", "x"),
        ):
            with pytest.raises(sa.NotFound, match="another scope"):
                await attempt
        assert sa.State.restore(mine.load_agent_state(id)) == STATE
        assert mine.load_display_messages(id) == []

    asyncio.run(scenario())


@pytest.mark.spec("S1.12.5")
def test_a_session_is_told_which_row_changed_or_that_none_did(mine: ScopedStore, id: str) -> None:
    async def scenario() -> None:
        message = sa.Message.assistant("", [sa.ToolCall("c1", "ask")])
        [call] = await mine.save_message(None, id, message)
        waits = sa.Message.tool([sa.ToolResult("c1", "ask", "waits", is_interrupt=True)])
        await mine.save_message(None, id, waits)
        running = await mine.update_tool_status(None, id, "c1", "executing", {"at": 1})
        assert running is not None
        assert (running.id, running.status, running.metadata) == (call.id, "executing", {"at": 1})
        assert await mine.update_tool_status(None, id, "c1", "executing", {}) is None
        assert await mine.update_tool_status(None, id, "c9", "completed", {}) is None
        resolved = await mine.resolve_tool_result(None, id, "c1", "done")
        assert resolved is not None
        assert resolved.content["content"] == "done"
        assert await mine.resolve_tool_result(None, id, "c1", "again") is None

    asyncio.run(scenario())
