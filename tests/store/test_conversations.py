"""Conversations: made, found, changed, listed and deleted, each by its owner alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.store import conversations
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from sagents_nb.store.store import ScopedStore
from tests.store.conftest import Selected
from tests.talking import agent_of

Store = sa.ConversationStore


def test_a_conversation_is_what_it_was_made_as(mine: ScopedStore) -> None:
    before = datetime.now(UTC)
    made = mine.create_conversation(title="Trip", metadata={"pinned": True})
    assert (made.title, made.metadata) == ("Trip", {"pinned": True})
    assert before <= made.created_at == made.updated_at <= datetime.now(UTC)
    assert made.created_at.tzinfo is UTC
    assert mine.get_conversation(made.id) == made == mine.find_conversation(made.id)
    with pytest.raises(AttributeError):
        made.title = "Fall"  # type: ignore[misc]


def test_a_conversation_may_have_an_id_of_its_own_which_is_then_taken(
    mine: ScopedStore, theirs: ScopedStore
) -> None:
    assert mine.create_conversation(id="conversation-1").id == "conversation-1"
    for store in (mine, theirs):
        with pytest.raises(sa.ConfigurationError, match="'conversation-1' is taken"):
            store.create_conversation(id="conversation-1")
    assert theirs.list_conversations() == []


def test_those_that_a_living_session_has_are_told_of_to_their_owner_alone(
    store: sa.ConversationStore, mine: ScopedStore, theirs: ScopedStore
) -> None:
    mine.create_conversation(id="nobody has it")
    session = sa.Session(agent_of(), id="open", store=store, scope=sa.Scope(user="alice"))
    assert mine.open_conversations() == {"open"}
    assert theirs.open_conversations() == set()
    session.close()
    assert mine.open_conversations() == set()


@pytest.mark.parametrize("id", ["", "x" * 256, 7, b"x"])
def test_an_id_that_cannot_be_kept_is_refused(mine: ScopedStore, id: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"id of a conversation|\(id=…\) is text"):
        mine.create_conversation(id=id)
    assert mine.list_conversations() == []


def test_a_title_and_metadata_change_apart(mine: ScopedStore) -> None:
    made = mine.create_conversation(title="Trip", metadata={"a": 1})
    changed = mine.update_conversation(made.id, title=None)
    assert (changed.title, changed.metadata) == (None, {"a": 1})
    assert changed.updated_at > made.updated_at
    assert changed.created_at == made.created_at
    assert mine.update_conversation(made.id, metadata={"b": 2}).metadata == {"b": 2}


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"title": 1}, "title"), ({"metadata": []}, "metadata"), ({"owner": "bob"}, "owner")],
)
def test_what_a_conversation_has_not_cannot_be_changed(
    mine: ScopedStore, changes: dict[str, Any], told: str
) -> None:
    made = mine.create_conversation(title="Trip")
    with pytest.raises(sa.ConfigurationError, match=told):
        mine.update_conversation(made.id, **changes)
    assert mine.get_conversation(made.id) == made


# Everything that is told a conversation's id, with what it is worth for one that is not there.
ASKING: dict[str, tuple[Callable[[ScopedStore, str], Any], Any]] = {
    "get": (lambda store, id: store.get_conversation(id), sa.NotFound),
    "find": (lambda store, id: store.find_conversation(id), None),
    "update": (lambda store, id: store.update_conversation(id, title="x"), sa.NotFound),
    "delete": (lambda store, id: store.delete_conversation(id), sa.NotFound),
    "save": (lambda store, id: store.save_agent_state(id, sa.State().export()), sa.NotFound),
    "load": (lambda store, id: store.load_agent_state(id), sa.NotFound),
    "todos": (lambda store, id: store.load_todos(id), []),
    "append": (lambda store, id: store.append_text_message(id, "user", "x"), sa.NotFound),
    "rows": (lambda store, id: store.load_display_messages(id), []),
    "executing": (lambda s, id: s.mark_tool_executing("c1", conversation_id=id), sa.NotFound),
    "anywhere": (lambda store, id: store.mark_tool_executing("c1"), sa.NotFound),
    "decision": (lambda store, id: store.record_hitl_decision("c1", "approved"), sa.NotFound),
    "resolve": (lambda s, id: s.resolve_interrupted_tool_result("c2", "x"), sa.NotFound),
    "search": (lambda store, id: store.search_messages("hello"), []),
    "list": (lambda store, id: store.list_conversations(), []),
}


@pytest.mark.spec("S1.12.6", "S1.12.7", "S1.12.8")
@pytest.mark.parametrize("name", ASKING)
def test_what_is_foreign_is_as_if_it_were_missing(
    store: Store, mine: ScopedStore, theirs: ScopedStore, name: str
) -> None:
    ask, answer = ASKING[name]
    id = _full(mine).id
    before = _everything(store)

    def told(asker: ScopedStore, id: str) -> str | None:
        if answer is not sa.NotFound:
            assert ask(asker, id) == answer
            return None
        with pytest.raises(sa.NotFound) as refused:
            ask(asker, id)
        return str(refused.value).replace(repr(id), "…")

    foreign, missing = told(theirs, id), told(theirs, "no-such-id")
    assert foreign == missing
    assert foreign == told(store, id)  # nobody is not everybody
    assert _everything(store) == before


def _full(store: ScopedStore) -> Any:
    """A conversation with something in every table but those of its session."""
    made = store.create_conversation(title="Trip")
    store.save_agent_state(made.id, sa.State(todos=[sa.Todo("pack")]).export())
    store.append_text_message(made.id, "user", "Hello")
    call = {"call_id": "c1", "name": "ls", "arguments": {}}
    row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
    store.append_display_message(made.id, {**row, "status": "pending"})
    result = {"tool_call_id": "c2", "name": "ask", "content": "", "is_interrupt": True}
    row = {"message_type": "tool", "content_type": "tool_result", "content": result}
    store.append_display_message(made.id, row)
    return made


def _everything(store: Store) -> dict[str, list[Any]]:
    tables = store.database.tables.metadata.sorted_tables
    return store.database.run(
        lambda c: {t.name: list(c.execute(sql.select(t))) for t in tables if "lease" not in t.name}
    )


@pytest.mark.spec("S1.12.6")
def test_conversations_are_listed_by_when_they_went_on(mine: ScopedStore) -> None:
    ids = [mine.create_conversation().id for _ in range(4)]
    mine.append_text_message(ids[1], "user", "x")
    mine.save_agent_state(ids[0], sa.State().export())
    newest_first = [ids[0], ids[1], ids[3], ids[2]]
    assert [c.id for c in mine.list_conversations()] == newest_first
    assert [c.id for c in mine.list_conversations(limit=2)] == newest_first[:2]
    assert [c.id for c in mine.list_conversations(limit=2, offset=1)] == newest_first[1:3]
    assert mine.list_conversations(offset=9) == mine.list_conversations(limit=0) == []


@pytest.mark.spec("S1.12.6")
def test_50_conversations_are_listed_unless_more_are_asked_for(mine: ScopedStore) -> None:
    for _ in range(51):
        mine.create_conversation()
    assert len(mine.list_conversations()) == 50
    assert len(mine.list_conversations(limit=2**70)) == 51


@pytest.mark.parametrize("numbers", [{"limit": -1}, {"offset": -1}, {"limit": "1; drop"}])
def test_a_limit_that_is_no_number_of_rows_is_refused(
    mine: ScopedStore, numbers: dict[str, Any]
) -> None:
    with pytest.raises(sa.ConfigurationError, match="whole number from 0"):
        mine.list_conversations(**numbers)


def test_a_journal_that_goes_on_brings_its_conversation_to_the_top(
    store: Store, mine: ScopedStore
) -> None:
    first, second = mine.create_conversation().id, mine.create_conversation().id
    journal, _, _ = Journal.open(store.database, first)
    journal.append([Entry("message", {"role": "user"})]).result()
    found = mine.list_conversations()
    assert [c.id for c in found] == [first, second]
    assert found[0] == mine.get_conversation(first)
    assert found[0].updated_at > found[0].created_at


@pytest.mark.parametrize("end", ["release", "close", "crash"])
def test_what_a_journal_did_last_counts_after_its_end(url: str, end: str) -> None:
    store = Store(url)
    first, second = store.create_conversation().id, store.create_conversation().id
    journal, _, _ = Journal.open(store.database, first)
    journal.append([Entry("message", {"role": "user"})]).result()
    went_on = store.get_conversation(first).updated_at
    if end == "release":
        journal.release().result()
    elif end == "crash":  # as if another process had it, of which nothing is heard any more
        leases = store.database.tables.leases
        dead = leases.update().where(leases.c.epoch > 0).values(owner="elsewhere 1 1 1")
        store.database.run(lambda connection: connection.execute(dead))
    store.close()
    again = Store(url)
    found = again.list_conversations()
    assert [c.id for c in found] == [first, second]
    assert found[0].updated_at == went_on == again.get_conversation(first).updated_at
    kept = sql.select(again.database.tables.conversations.c.updated_at).where(
        again.database.tables.conversations.c.id == first
    )
    is_kept = again.database.run(lambda connection: connection.scalar(kept)) == went_on
    assert is_kept is (end != "crash"), "a list looks into the journals of open ones alone"
    again.close()


def test_pages_of_open_and_shut_conversations_are_one_list(store: Store, mine: ScopedStore) -> None:
    ids = [mine.create_conversation().id for _ in range(12)]
    open_ones = [ids[n] for n in (7, 0, 3)]
    journals = [Journal.open(store.database, id)[0] for id in open_ones]
    for journal in journals[:2]:
        journal.append([Entry("message", {"role": "user"})]).result()
    shut = [id for id in ids if id not in open_ones[:2]]
    newest_first = [*open_ones[1::-1], *shut[::-1]]
    for size in (1, 2, 5, 12):
        pages = [mine.list_conversations(size, offset) for offset in range(0, 12, size)]
        assert [c.id for page in pages for c in page] == newest_first
    for journal in journals:
        journal.release().result()
    assert [c.id for c in mine.list_conversations()] == newest_first


def test_a_list_reads_no_more_rows_where_there_are_many_conversations(
    sqlite_url: str, selected: Selected
) -> None:
    store = Store(sqlite_url)
    mine = store.scoped(sa.Scope(user="alice"))
    asked: list[set[str]] = []
    for count in (5, 100):
        for _ in range(count):
            mine.create_conversation()
        with selected(store) as plans:
            mine.list_conversations(5)
        asked.append(set(plans))
        steps = [step for plan in plans.values() for step in plan]
        assert len(plans) == 2
        scans = [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step]
        # That has no more entries than are open.
        assert set(scans) == {"SCAN sagents_leases USING COVERING INDEX ix_sagents_leases_held"}
        assert any("ix_sagents_conversations_newest (owner=?)" in step for step in steps)
    assert asked[0] == asked[1]
    store.close()


@pytest.mark.spec("S1.12.6")
def test_deleting_a_conversation_leaves_nothing_of_it(store: Store, mine: ScopedStore) -> None:
    kept = _full(mine).id
    before = _everything(store)
    gone = _full(mine).id
    journal, _, _ = Journal.open(store.database, gone)
    journal.append([Entry("message", {"role": "user"})]).result()
    tables = store.database.tables
    damaged = tables.journal_damaged.insert().values(
        conversation_id=gone, seq=7, reason="burnt", at=datetime.now(UTC)
    )
    store.database.run(lambda connection: connection.execute(damaged))
    journal.release().result()
    mine.delete_conversation(gone)
    assert _everything(store) == before
    lease = sql.select(tables.leases.c.conversation_id)
    assert gone not in store.database.run(lambda c: list(c.execute(lease).scalars()))
    assert [c.id for c in mine.list_conversations()] == [kept]


def test_an_open_conversation_is_not_deleted(store: Store, mine: ScopedStore) -> None:
    id = mine.create_conversation().id
    journal, _, _ = Journal.open(store.database, id)
    with pytest.raises(sa.Busy, match=r"is open in process \d+ on .*; close it there"):
        mine.delete_conversation(id)
    assert store.delete_older_than(days=0) == 0
    journal.append([Entry("message", {"role": "user"})]).result()
    journal.release().result()
    mine.delete_conversation(id)
    with pytest.raises(sa.NotFound):
        mine.get_conversation(id)


def test_what_is_old_is_deleted_whosever_it_is(
    store: Store, mine: ScopedStore, theirs: ScopedStore
) -> None:
    old, new = [mine.create_conversation().id for _ in range(2)]
    foreign = theirs.create_conversation().id
    going_on = theirs.create_conversation().id
    _age(store, [old, foreign, going_on], days=31)
    journal, _, _ = Journal.open(store.database, going_on)
    journal.append([Entry("message", {"role": "user"})]).result()
    journal.release().result()
    assert store.delete_older_than(days=32) == 0
    assert store.delete_older_than() == 2
    assert [c.id for c in mine.list_conversations()] == [new]
    assert [c.id for c in theirs.list_conversations()] == [going_on]


def test_what_is_old_is_deleted_some_in_each_transaction(
    store: Store, mine: ScopedStore, works: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [mine.create_conversation().id for _ in range(5)]
    _age(store, old, days=31)
    works.clear()
    monkeypatch.setattr(conversations, "OLD_AT_ONCE", 2)
    assert store.delete_older_than() == 5
    assert len(works) == 1 + 3


@pytest.mark.parametrize("days", [-1, "30", None, float("nan"), 10**9, True])
def test_days_that_make_no_sense_delete_nothing(mine: ScopedStore, store: Store, days: Any) -> None:
    id = mine.create_conversation().id
    with pytest.raises(sa.ConfigurationError, match="days"):
        store.delete_older_than(days)
    assert mine.get_conversation(id).id == id


def _age(store: Store, ids: list[str], days: int) -> None:
    table = store.database.tables.conversations
    then = datetime.now(UTC) - timedelta(days=days)
    aging = table.update().where(table.c.id.in_(ids)).values(updated_at=then)
    store.database.run(lambda connection: connection.execute(aging))


def test_two_prefixes_are_two_stores_in_one_database(url: str) -> None:
    first, second = Store(url, table_prefix="a_"), Store(url, table_prefix="b_")
    first.create_conversation(id="x")
    assert second.list_conversations() == []
    second.create_conversation(id="x", title="second")
    assert first.get_conversation("x").title is None
    first.close()
    second.close()


def test_what_was_kept_is_there_when_the_store_is_opened_again(url: str) -> None:
    store = Store(url)
    made = store.scoped(sa.Scope(user=1)).create_conversation(title="Trip")
    store.close()
    with pytest.raises(sa.AgentError, match="is closed"):
        store.list_conversations()
    again = Store(url)
    assert again.scoped(sa.Scope(user=1)).list_conversations() == [made]
    again.close()
