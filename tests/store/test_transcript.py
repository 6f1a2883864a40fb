"""Transcripts: rows as they were given, in order, and what a search finds in them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import rows_of
from sagents_nb.store.store import ScopedStore


@pytest.fixture
def id(mine: ScopedStore) -> str:
    return mine.create_conversation(id="trip").id


@pytest.mark.spec("S1.12.10")
def test_content_and_metadata_are_kept_word_for_word(mine: ScopedStore, id: str) -> None:
    content = {"text": "Hi", "stop_details": {"b": [1, 2.5, None, True], "a": {}}, "nächstes": "Ä"}
    row = {
        "message_type": "assistant",
        "content_type": "text",
        "content": content,
        "metadata": {"token_usage": {"input": 12}},
    }
    saved = mine.append_display_message(id, row)
    assert (saved.content, saved.metadata) == (content, {"token_usage": {"input": 12}})
    assert (saved.conversation_id, saved.status, saved.sequence) == (id, "completed", 0)
    assert saved.inserted_at.tzinfo is UTC
    assert abs(saved.inserted_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert mine.load_display_messages(id) == [saved]


@pytest.mark.spec("S1.12.4")
@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({}, "message_type, content_type, content"),
        ({"message_type": "user", "content_type": "text"}, "message_type, content_type"),
        (
            {"message_type": "user", "content_type": "text", "content": {"text": ""}, "id": 7},
            "content, id",
        ),
        (
            {"message_type": "user", "content_type": "text", "content": {"txt": ""}},
            "content of type 'text' needs 'text'",
        ),
    ],
)
def test_a_row_that_cannot_be_stored_changes_nothing(
    mine: ScopedStore, id: str, row: dict[str, Any], told: str
) -> None:
    before = mine.get_conversation(id)
    with pytest.raises(sa.ConfigurationError, match=told):
        mine.append_display_message(id, row)
    assert mine.load_display_messages(id) == []
    assert mine.get_conversation(id) == before


@pytest.mark.spec("S1.12.3", "S1.12.6", "S1.12.9")
def test_the_rows_of_a_message_stay_together_and_in_order(mine: ScopedStore, id: str) -> None:
    async def scenario() -> None:
        calls = [sa.ToolCall(f"c{n}", "ls") for n in range(3)]
        messages = [
            sa.Message.user("Look."),
            sa.Message.assistant([sa.ThinkingPart("hm"), sa.TextPart("I will.")], calls),
            sa.Message.tool([sa.ToolResult(call.id, "ls", "a") for call in calls]),
            sa.Message.assistant("Done."),
        ]
        saved = []
        for message in messages:
            saved += await mine.save_message(None, id, message)
        loaded = mine.load_display_messages(id)
        assert loaded == saved
        assert [row.sequence for row in loaded] == [0, 0, 1, 2, 3, 4, 0, 1, 2, 0]
        assert [row.content for row in loaded] == [r.content for m in messages for r in rows_of(m)]
        assert len({row.inserted_at for row in loaded}) == len(messages)

    asyncio.run(scenario())


def test_a_clock_that_is_set_back_changes_no_order(
    mine: ScopedStore, id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        at = datetime(2026, 3, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            cls.at -= timedelta(hours=1)
            return cls.at

    monkeypatch.setattr("sagents_nb.store.display_rows.datetime", Clock)
    for n in range(5):
        mine.append_text_message(id, "user", str(n))
    assert [row.content["text"] for row in mine.load_display_messages(id)] == list("01234")


@pytest.mark.spec("S1.12.6")
@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("Fly to Oslo", "OSLO"),
        ("Größe ÄÖÜ", "größe äöü"),
        ("STRASSE", "straße"),
        ("Ελλάς", "ΕΛΛΆΣ"),
        ("Привет, мир", "ПРИВЕТ"),
        ("100% sure", "0% S"),
        ("snake_case", "e_c"),
        ("a\\b/c", "\\B/"),
        ('it\'s "quoted"', "'s \""),
        ("a\0b", "A\0B"),
        ("left\ud800right", "T\ud800r"),
        ("\u202eabc", "\u202eABC"),
    ],
)
def test_a_search_takes_every_character_as_itself_in_whatever_case(
    mine: ScopedStore, id: str, text: str, term: str
) -> None:
    saved = mine.append_text_message(id, "user", text)
    mine.append_text_message(id, "user", "100x sure, snakeXcase")
    assert mine.search_messages(term) == [saved]


@pytest.mark.spec("S1.12.6")
def test_a_search_is_in_ones_own_texts_newest_first(mine: ScopedStore, theirs: ScopedStore) -> None:
    texts = []
    for n in range(4):
        id = mine.create_conversation().id
        texts.append(mine.append_text_message(id, "user", f"Oslo {n}"))
    call = {"call_id": "oslo", "name": "oslo", "arguments": {"to": "oslo"}}
    row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
    mine.append_display_message(id, row)
    theirs.append_text_message(theirs.create_conversation().id, "user", "Oslo")
    assert mine.search_messages("oslo") == texts[::-1]
    assert mine.search_messages("oslo", limit=2) == texts[:1:-1]
    assert mine.search_messages("Bergen") == []


@pytest.mark.parametrize("term", ["", "x" * 1001, None, b"oslo"])
def test_a_term_that_cannot_be_searched_for_is_refused(mine: ScopedStore, term: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"1 to 1,000 characters|is text; not"):
        mine.search_messages(term)


def test_the_longest_term_is_found(mine: ScopedStore, id: str) -> None:
    term = "%" * 500 + "\U0001f9ed" * 500  # what takes the most bytes
    saved = mine.append_text_message(id, "user", f"x{term}x")
    assert mine.search_messages(term) == [saved]
