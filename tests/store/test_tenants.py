"""Two owners with the same titles, texts and calls in one database: neither sees the other's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.serialization import to_data
from sagents_nb.store.display import Row
from sagents_nb.store.frames import KINDS
from sagents_nb.store.store import ScopedStore

SECRET = "Svalbard"
CALL = {"call_id": "c1", "name": "look", "arguments": {"where": SECRET}}

# Every public method of a store, with what somebody may ask of a conversation of that id.
ASKED: dict[str, Callable[[ScopedStore, str], Any]] = {
    "add_tool_feedback": lambda s, id: s.add_tool_feedback({"look": ["mine"]}),
    "append_display_message": lambda s, id: s.append_display_message(
        id, {"message_type": "user", "content_type": "text", "content": {"text": "mine"}}
    ),
    "append_text_message": lambda s, id: s.append_text_message(id, "user", "mine"),
    "cancel_tool_call": lambda s, id: s.cancel_tool_call("c1", conversation_id=id),
    "complete_tool_call": lambda s, id: s.complete_tool_call("c1", conversation_id=id),
    "create_conversation": lambda s, id: s.create_conversation(id=id),
    "delete_conversation": lambda s, id: s.delete_conversation(id),
    "fail_tool_call": lambda s, id: s.fail_tool_call("c1", conversation_id=id),
    "find_conversation": lambda s, id: s.find_conversation(id),
    "get_conversation": lambda s, id: s.get_conversation(id),
    "history": lambda s, id: s.history(id),
    "interrupt_tool_call": lambda s, id: s.interrupt_tool_call("c1", conversation_id=id),
    "list_conversations": lambda s, id: s.list_conversations(1000),
    "open_conversations": lambda s, id: s.open_conversations(),
    "load_agent_state": lambda s, id: s.load_agent_state(id),
    "load_display_messages": lambda s, id: s.load_display_messages(id),
    "load_interrupt": lambda s, id: s.load_interrupt(id),
    "load_state": lambda s, id: s.load_state(None, id),
    "load_todos": lambda s, id: s.load_todos(id),
    "load_tool_feedback": lambda s, id: s.load_tool_feedback(),
    "mark_tool_executing": lambda s, id: s.mark_tool_executing("c1", conversation_id=id),
    "record_decision": lambda s, id: s.record_decision(None, id, "c1", "approved", {}),
    "record_hitl_decision": lambda s, id: s.record_hitl_decision(
        "c1", "approved", conversation_id=id
    ),
    "resolve_interrupted_tool_result": lambda s, id: s.resolve_interrupted_tool_result(
        "c1", "mine", conversation_id=id
    ),
    "resolve_tool_result": lambda s, id: s.resolve_tool_result(None, id, "c1", "mine"),
    "save_agent_state": lambda s, id: s.save_agent_state(id, sa.State().export()),
    "save_message": lambda s, id: s.save_message(None, id, sa.Message.user("mine")),
    "save_row": lambda s, id: s.save_row(None, id, Row("user", "text", {"text": "mine"})),
    "save_state": lambda s, id: s.save_state(None, id, sa.State().export(), "on_error"),
    "search_messages": lambda s, id: s.search_messages(SECRET.lower()),
    "tasks": lambda s, id: s.tasks.list(),
    "to_frame": lambda s, id: [s.to_frame(kind).to_dict() for kind in KINDS],
    "to_html": lambda s, id: s.to_html(id),
    "to_markdown": lambda s, id: s.to_markdown(id),
    "to_notebook": lambda s, id: s.to_notebook(id),
    "update_conversation": lambda s, id: s.update_conversation(id, title="mine"),
    "update_tool_status": lambda s, id: s.update_tool_status(None, id, "c1", "completed", {}),
}
# What needs no conversation, or is asked of by a session that has one.
OTHERS = {"creation_of", "work_of"}


def begun(store: ScopedStore, id: str) -> None:
    """A conversation with the secret in all that one holds."""
    store.create_conversation(f"Trip to {SECRET}", {"where": SECRET}, id)
    store.append_text_message(id, "user", f"To {SECRET}")
    call = {"message_type": "assistant", "content_type": "tool_call", "content": CALL}
    store.append_display_message(id, call | {"status": "pending"})
    state = sa.State(messages=[sa.Message.user(f"To {SECRET}")], todos=[sa.Todo(SECRET)])
    store.save_agent_state(id, state.export())


def everything(store: ScopedStore, id: str) -> Any:
    """All that its owner sees of it."""
    reads = ("get_conversation", "load_agent_state", "load_display_messages", "load_todos")
    return [to_data(ASKED[name](store, id)) for name in reads]


@pytest.mark.parametrize("name", ASKED)
def test_what_somebody_asks_of_a_foreign_conversation_shows_and_changes_nothing(
    mine: ScopedStore, theirs: ScopedStore, name: str
) -> None:
    begun(theirs, "theirs")
    before = everything(theirs, "theirs")

    async def ask() -> Any:
        found = await asyncio.to_thread(ASKED[name], mine, "theirs")
        return await found if inspect.isawaitable(found) else found

    try:
        told = repr(asyncio.run(ask()))
    except (sa.NotFound, sa.ConfigurationError) as error:  # the id of a new one is taken
        told = str(error)
    assert SECRET not in told
    assert everything(theirs, "theirs") == before


def test_who_has_the_same_sees_it_once(mine: ScopedStore, theirs: ScopedStore) -> None:
    begun(mine, "mine")
    begun(theirs, "theirs")
    for store, id in ((mine, "mine"), (theirs, "theirs")):
        assert [found.id for found in store.list_conversations()] == [id]
        assert {row.conversation_id for row in store.search_messages(SECRET)} == {id}
        assert set(store.to_frame("messages")["session_id"]) == {id}
        assert store.mark_tool_executing("c1").conversation_id == id


def test_every_public_method_is_asked() -> None:
    public = {name for name in vars(ScopedStore) if not name.startswith("_")}
    assert public == set(ASKED) | OTHERS
