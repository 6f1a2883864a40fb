"""Three who use one store see what each of them would see alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import sagents_nb as sa
from sagents_nb.store.display import STATUSES
from sagents_nb.store.store import ScopedStore

IDS = [f"c{n}" for n in range(4)]
OWNERS: list[Any] = [sa.Scope(user="alice"), sa.Scope(user="bob"), None]

owners = st.integers(0, 2)
ids = st.sampled_from(IDS)
call_ids = st.sampled_from(["k1", "k2"])
texts = st.sampled_from(["Oslo", "oslo fjord", "100%", ""])


class Users(RuleBasedStateMachine):
    """A dict of conversations is the model: owner, title, rows and todos of each."""

    def __init__(self, store: sa.ConversationStore) -> None:
        super().__init__()
        empty = store.database.tables.conversations.delete()
        store.database.run(lambda connection: connection.execute(empty))
        self.store = [store.scoped(owner) if owner else store for owner in OWNERS]
        self.model: dict[str, dict[str, Any]] = {}
        self.newest: list[str] = []  # ids, as they went on
        self.calls: list[dict[str, Any]] = []  # in the order in which they were added

    def attempt(self, owner: int, id: str, do: Callable[[ScopedStore], Any]) -> Any:
        """``do`` as that owner; NotFound exactly if the conversation is not theirs."""
        if self.model.get(id, {}).get("owner") == owner:
            return do(self.store[owner])
        with pytest.raises(sa.NotFound):
            do(self.store[owner])
        return None

    def went_on(self, id: str) -> None:
        self.newest = [id, *(other for other in self.newest if other != id)]

    @rule(owner=owners, id=ids, title=texts)
    def create(self, owner: int, id: str, title: str) -> None:
        if id in self.model:
            with pytest.raises(sa.ConfigurationError, match="taken"):
                self.store[owner].create_conversation(title, id=id)
            return
        self.store[owner].create_conversation(title, id=id)
        self.model[id] = {"owner": owner, "title": title, "texts": [], "todos": []}
        self.went_on(id)

    @rule(owner=owners, id=ids, title=texts)
    def update(self, owner: int, id: str, title: str) -> None:
        if self.attempt(owner, id, lambda store: store.update_conversation(id, title=title)):
            self.model[id]["title"] = title
            self.went_on(id)

    @rule(owner=owners, id=ids)
    def delete(self, owner: int, id: str) -> None:
        mine = self.model.get(id, {}).get("owner") == owner
        self.attempt(owner, id, lambda store: store.delete_conversation(id))
        if mine:
            del self.model[id]
            self.newest.remove(id)
            self.calls = [call for call in self.calls if call["in"] != id]

    @rule(owner=owners, id=ids, text=texts)
    def say(self, owner: int, id: str, text: str) -> None:
        if self.attempt(owner, id, lambda store: store.append_text_message(id, "user", text)):
            self.model[id]["texts"].append(text)
            self.went_on(id)

    @rule(owner=owners, id=ids, count=st.integers(0, 2))
    def plan(self, owner: int, id: str, count: int) -> None:
        todos = [sa.Todo(f"step {n}", id=n + 1) for n in range(count)]
        exported = sa.State(todos=todos).export()
        self.attempt(owner, id, lambda store: store.save_agent_state(id, exported))
        if self.model.get(id, {}).get("owner") == owner:
            self.model[id]["todos"] = todos
            self.went_on(id)

    @rule(owner=owners, id=ids, call_id=call_ids)
    def call(self, owner: int, id: str, call_id: str) -> None:
        content = {"call_id": call_id, "name": "ls", "arguments": {}}
        row = {"message_type": "assistant", "content_type": "tool_call", "content": content}
        row["status"] = "pending"
        saved = self.attempt(owner, id, lambda store: store.append_display_message(id, row))
        if saved:
            known = {"id": call_id, "owner": owner, "in": id, "row": saved.id, "status": "pending"}
            self.calls.append(known)
            self.went_on(id)

    @rule(owner=owners, call_id=call_ids, status=st.sampled_from(list(STATUSES)))
    def step(self, owner: int, call_id: str, status: str) -> None:
        method = {
            "executing": ScopedStore.mark_tool_executing,
            "completed": ScopedStore.complete_tool_call,
            "failed": ScopedStore.fail_tool_call,
            "cancelled": ScopedStore.cancel_tool_call,
            "interrupted": ScopedStore.interrupt_tool_call,
        }[status]
        for call in reversed(self.calls):
            mine = (call["id"], call["owner"]) == (call_id, owner)
            if mine and call["status"] in STATUSES[status]:
                assert method(self.store[owner], call_id).id == call["row"]
                call["status"] = status
                return
        with pytest.raises(sa.NotFound):
            method(self.store[owner], call_id)

    @invariant()
    def everybody_sees_their_own(self) -> None:
        for owner, store in enumerate(self.store):
            mine = [id for id in self.newest if self.model[id]["owner"] == owner]
            listed = store.list_conversations()
            assert [(c.id, c.title) for c in listed] == [
                (id, self.model[id]["title"]) for id in mine
            ]
            said = [t for id in mine for t in self.model[id]["texts"] if "oslo" in t.lower()]
            found = [row.content["text"] for row in store.search_messages("OSLO")]
            assert sorted(found) == sorted(said)

    def teardown(self) -> None:
        for id in IDS:
            for owner, store in enumerate(self.store):
                mine = self.model.get(id, {}).get("owner") == owner
                rows = store.load_display_messages(id)
                kept = [call for call in self.calls if call["in"] == id] if mine else []
                assert store.load_todos(id) == (self.model[id]["todos"] if mine else [])
                assert [r.content["text"] for r in rows if r.content_type == "text"] == (
                    self.model[id]["texts"] if mine else []
                )
                assert [(r.id, r.status) for r in rows if r.content_type == "tool_call"] == [
                    (call["row"], call["status"]) for call in kept
                ]


def test_nobody_sees_or_changes_what_is_not_theirs(open_store: sa.ConversationStore) -> None:
    quick = settings(max_examples=10, stateful_step_count=25)
    run_state_machine_as_test(lambda: Users(open_store), settings=quick)


@pytest.mark.soak
def test_nobody_ever_sees_or_changes_what_is_not_theirs(open_store: sa.ConversationStore) -> None:
    long = settings(max_examples=100, stateful_step_count=50)
    run_state_machine_as_test(lambda: Users(open_store), settings=long)
