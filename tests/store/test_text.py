"""Whatever people, models and attackers write is kept as it is, and is never SQL."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.store.store import ScopedStore

Store = sa.ConversationStore

# All characters, and more than their share of those that make trouble somewhere.
trouble = st.sampled_from(
    "\0\ud800\udfff\ufffe\u202e\u2066\u200b'\"`;%_\\/$?:-[]{}İßΣ\U0001f9ed\n\r"
)
words = st.text(trouble | st.characters(codec=None), max_size=40)
some_words = st.text(trouble | st.characters(codec=None), min_size=1, max_size=40)
ids = some_words.map(lambda text: f"{uuid4().hex}{text}")
numbers = st.integers() | st.floats(allow_nan=False)
data = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=10,
)


def check_text_comes_back(
    store: Store, id: str, owner: str, title: str, text: str, more: Any
) -> None:
    mine = store.scoped(SimpleNamespace(owner_id=owner))
    metadata = {"more": more, title: text}
    made = mine.create_conversation(title=title, metadata=metadata, id=id)
    assert (made.id, made.title, made.metadata) == (id, title, metadata)
    assert mine.list_conversations(limit=1) == [made]
    content = {**metadata, "text": text}
    row = {"message_type": owner, "content_type": "text", "content": content, "metadata": metadata}
    saved = mine.append_display_message(id, row)
    assert (saved.message_type, saved.content, saved.metadata) == (owner, content, metadata)
    assert mine.load_display_messages(id) == [saved]
    state = sa.State(messages=[sa.Message.user(text)], metadata=metadata)
    mine.save_agent_state(id, state.export())
    assert sa.State.restore(mine.load_agent_state(id)) == state
    for term in (text, text[1:3], text.upper()):
        if term.casefold() and term.casefold() in text.casefold():
            assert saved in mine.search_messages(term, limit=1000)


@settings(max_examples=60)
@given(ids, some_words, words, words, data)
def test_any_text_comes_back(
    open_store: Store, id: str, owner: str, title: str, text: str, more: Any
) -> None:
    check_text_comes_back(open_store, id, owner, title, text, more)


@pytest.mark.soak
@settings(max_examples=2000)
@given(ids, some_words, words, words, data)
def test_any_of_2000_texts_comes_back(
    open_store: Store, id: str, owner: str, title: str, text: str, more: Any
) -> None:
    check_text_comes_back(open_store, id, owner, title, text, more)


@pytest.mark.parametrize("piece", ["a", "\0\0\ud800\udfff\ufffe\u202eÄ\U0001f9ed"])
def test_a_text_of_a_megabyte_comes_back(mine: ScopedStore, piece: str) -> None:
    text = piece * (1_000_000 // len(piece.encode("utf-8", "surrogatepass")))
    mine.create_conversation(id="big")
    saved = mine.append_text_message("big", "user", text)
    assert mine.load_display_messages("big") == [saved]
    assert saved.content["text"] == text
    assert mine.search_messages(text[:1000].swapcase()) == [saved]
    state = sa.State(messages=[sa.Message.user(text)])
    mine.save_agent_state("big", state.export())
    assert sa.State.restore(mine.load_agent_state("big")) == state


HOSTILE = [
    "' OR '1'='1",
    "'; DROP TABLE sagents_conversations; --",
    '" OR ""="',
    "%",
    "_",
    "\\",
    "$1",
    ":id",
    "%(id)s",
    "?",
    "1 OR 1=1",
    "\0' OR 1=1 --",
    "') UNION SELECT * FROM sagents_leases --",
    "{{7*7}}",
    "../../etc/passwd",
]


@pytest.mark.spec("S1.12.6")
@pytest.mark.parametrize("attack", HOSTILE)
def test_an_attack_is_text_like_any_other(store: Store, theirs: ScopedStore, attack: str) -> None:
    kept = theirs.create_conversation(title="Secret", id="secret")
    secret = theirs.append_text_message("secret", "user", "a secret")
    for owner in (attack, (attack, 1)):
        mine = store.scoped(SimpleNamespace(owner_id=owner))
        assert mine.list_conversations() == []
        assert mine.search_messages("secret") == mine.search_messages(attack) == []
        assert mine.find_conversation(attack) is None
        assert mine.load_todos(attack) == mine.load_display_messages(attack) == []
        with pytest.raises(sa.NotFound):
            mine.delete_conversation(attack)
        with pytest.raises(sa.NotFound):
            mine.mark_tool_executing(attack)
    made = mine.create_conversation(title=attack, id=attack)
    row = mine.append_text_message(attack, attack, attack)
    assert mine.list_conversations() == [mine.get_conversation(attack)]
    assert made.title == attack
    assert mine.search_messages(attack) == [row]
    mine.delete_conversation(attack)
    assert [c.id for c in theirs.list_conversations()] == [kept.id]
    assert theirs.load_display_messages("secret") == [secret]


def test_numbers_that_no_database_has_come_back(mine: ScopedStore) -> None:
    metadata = {"huge": 2**200, "small": 5e-324, "inf": float("inf"), "-": -0.0}
    made = mine.create_conversation(metadata=metadata)
    assert made.metadata == metadata
    nan = mine.create_conversation(metadata={"nan": float("nan")}).metadata["nan"]
    assert math.isnan(nan)


def test_what_is_no_json_is_kept_as_what_it_says(mine: ScopedStore) -> None:
    metadata: Any = {"todo": sa.Todo("pack"), "tuple": (1, 2), 7: "seven", "object": object()}
    kept = mine.create_conversation(metadata=metadata).metadata
    assert kept["todo"] == {"content": "pack"}
    assert (kept["tuple"], kept["7"]) == ([1, 2], "seven")
    assert kept["object"].startswith("<object object")


def test_what_is_stored_is_json_for_any_parser(sqlite_url: str) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store:
        store.create_conversation(metadata={"number": math.nan, "list": [math.inf]})
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database:
        [(text,)] = database.execute("SELECT metadata FROM sagents_conversations")
    assert "NaN" not in text
    assert "Infinity" not in text
