"""What somebody else wrote into the database: the rest of it can be read all the same."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store.store import ScopedStore

DAMAGE = ["", "{", "[1]", "\ufffe[", "NaN", "[" * 100_000, "\x80\x04."]


def overwrite(store: sa.ConversationStore, table: str, column: str, value: Any) -> None:
    name = store.database.tables.metadata.tables[f"sagents_{table}"].name
    statement = f"UPDATE {name} SET {column} = %s"
    if store.database.url.get_backend_name() == "sqlite":
        statement = statement.replace("%s", "?")
    store.database.run(lambda connection: connection.exec_driver_sql(statement, (value,)))


@pytest.mark.parametrize("column", ["content", "metadata"])
def test_a_damaged_row_is_shown_as_one(
    store: sa.ConversationStore, mine: ScopedStore, column: str
) -> None:
    mine.create_conversation(id="c")
    first = mine.append_text_message("c", "user", "Hello")
    for damage in DAMAGE:
        overwrite(store, "display_messages", column, damage)
        [damaged] = mine.load_display_messages("c")
        assert (damaged.id, damaged.content_type) == (first.id, "error"), damage
        assert damaged.content["error_type"] == "damaged"
    second = mine.append_text_message("c", "user", "Hello again")
    assert mine.load_display_messages("c") == [damaged, second]
    assert mine.search_messages("hello") == [second, damaged]


@pytest.mark.parametrize("column", ["created_at", "updated_at"])
@pytest.mark.parametrize("damage", ["", "garbage", "2026-13-45 99:99:99", 5, -1.5, b"\x80", "0"])
def test_a06_a_time_that_is_none_breaks_no_list(
    store: sa.ConversationStore, mine: ScopedStore, column: str, damage: Any
) -> None:
    if store.database.url.get_backend_name() != "sqlite":
        return  # which takes times only
    made = mine.create_conversation("Trip", {"a": 1})
    mine.append_text_message(made.id, "user", "Hello")
    overwrite(store, "conversations", column, damage)
    [found] = mine.list_conversations()
    assert (found.id, getattr(found, column).year) == (made.id, 1970)
    assert len(mine.search_messages("hello")) == 1
    overwrite(store, "display_messages", "inserted_at", damage)
    [message] = mine.load_display_messages(made.id)
    assert message.content == {"text": "Hello"}


def test_damaged_metadata_are_left_out(store: sa.ConversationStore, mine: ScopedStore) -> None:
    made = mine.create_conversation("Trip", {"a": 1})
    for damage in DAMAGE:
        overwrite(store, "conversations", "metadata", damage)
        [found] = mine.list_conversations()
        assert (found.id, found.title, found.metadata) == (made.id, "Trip", {}), damage
    assert mine.update_conversation(made.id, metadata={"b": 2}).metadata == {"b": 2}


def test_a_damaged_state_is_told_and_can_be_replaced(
    store: sa.ConversationStore, mine: ScopedStore
) -> None:
    mine.create_conversation(id="c")
    mine.save_agent_state("c", sa.State().export())
    for damage in DAMAGE:
        overwrite(store, "agent_states", "data", damage)
        for ask in (mine.load_agent_state, mine.load_todos):
            with pytest.raises(sa.ConfigurationError, match="saved state of conversation 'c' is"):
                ask("c")
    exported = sa.State(todos=[sa.Todo("go on")]).export()
    mine.save_agent_state("c", exported)
    assert mine.load_agent_state("c") == exported


@pytest.mark.parametrize("value", [7, 1.5, b"\x80\x04."])
def test_a_column_of_another_type_is_damage_too(sqlite_url: str, value: Any) -> None:
    store = sa.ConversationStore(sqlite_url)
    store.create_conversation(id="c")
    store.append_text_message("c", "user", "Hello")
    overwrite(store, "display_messages", "content", value)
    overwrite(store, "conversations", "metadata", value)
    assert store.load_display_messages("c")[0].content_type == "error"
    assert store.list_conversations()[0].metadata == {}
    store.close()


def test_a_byte_of_the_schema_that_is_no_text_is_told_as_damage(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    store = sa.ConversationStore(path)
    store.create_conversation(id="c")
    store.close()
    whole = path.read_bytes()
    names = [found.start() for found in re.finditer(b"(table|index)sagents_", whole)]
    told: list[str] = []
    for place in (name + further for name in names for further in range(0, 60, 5)):
        path.write_bytes(whole[:place] + b"\x80" + whole[place + 1 :])
        for use in (lambda: sa.ConversationStore(path).to_frame("messages"), copy_of(path)):
            with contextlib.suppress(sa.ConfigurationError):  # a table of another name is none
                try:
                    use()
                except sa.StoreError as error:
                    told.append(str(error))
    assert any("the file is damaged; keep a copy of it" in problem for problem in told)
    assert not [problem for problem in told if "decode" in problem]


def copy_of(path: Path) -> Callable[[], None]:
    def copy() -> None:
        to = path.with_name("copy.db")
        to.unlink(missing_ok=True)
        sa.ConversationStore.backup(path, to)

    return copy


def test_a_text_that_is_none_is_told_as_damage(sqlite_url: str) -> None:
    store = sa.ConversationStore(sqlite_url)
    store.create_conversation("Trip", id="c")
    change = "UPDATE sagents_conversations SET title = CAST(x'63ff' AS TEXT)"
    store.database.run(lambda connection: connection.exec_driver_sql(change))
    for ask in (store.list_conversations, lambda: store.get_conversation("c")):
        with pytest.raises(sa.StoreError, match="cannot be used: the file is damaged; keep a copy"):
            ask()
    store.close()


def test_a_conversation_whose_id_is_damaged_is_missing_in_frames_and_no_other(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    store = sa.ConversationStore(path)
    for id in ("c1", "c2"):
        sa.Session(sa.Agent(sa.ScriptedModel(["fine"])), id, store=store).send("hi").result()
    store.close()
    untyped = 'UPDATE sqlite_master SET sql = replace(sql, "id" || ?, "id" || ?) WHERE name = ?'
    kinds = [" VARCHAR(255)", " BLOB"]
    for kind, other in (kinds, kinds[::-1]):  # a column of text would make a text of it
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute(untyped, (kind, other, "sagents_conversations"))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE sagents_conversations SET id = 99 WHERE id = 'c1'")
    store = sa.ConversationStore(path)
    for kind in ("messages", "tool_calls", "todos", "usage", "decisions"):
        assert set(store.to_frame(kind)["session_id"]) <= {"c2"}
    assert len(store.to_frame("messages")) == 2
    assert "A conversation with the damaged id 99 is in no frame." in caplog.text
    store.close()
