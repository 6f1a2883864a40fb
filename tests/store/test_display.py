"""One message as the rows that people see, and what a row may hold."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import Row, cancelled_row, error_row, rows_of
from sagents_nb.store.display import CONTENT_TYPES, checked

CONTENTS: dict[str, dict[str, Any]] = {
    "text": {"text": "hi"},
    "thinking": {"text": "hm"},
    "image": {"url": "https://example.org/a.png"},
    "file_reference": {"name": "report.pdf"},
    "structured_data": {"data": None},
    "notification": {"text": "cancelled"},
    "error": {"text": "overloaded"},
    "tool_call": {"call_id": "c1", "name": "ls", "arguments": {}},
    "tool_result": {"tool_call_id": "c1", "name": "ls", "content": "a b"},
    "todo_snapshot": {"todos": []},
}


TEXTS = {"text": "hi", "thinking": "hm", "notification": "cancelled", "error": "overloaded"}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_row_has_its_text_whatever_it_holds(store: sa.ConversationStore, kind: str) -> None:
    id = store.create_conversation().id
    shape = {"message_type": "assistant", "content_type": kind, "content": CONTENTS[kind]}
    row = store.append_display_message(id, shape)
    assert row.text == {**TEXTS, "tool_result": "a b"}.get(kind, "")
    more = {"text": ["none"], **CONTENTS["structured_data"]}
    odd = {**shape, "content_type": "structured_data", "content": more}
    assert store.append_display_message(id, odd).text == ""


def test_every_type_of_content_has_an_example_here() -> None:
    assert set(CONTENTS) == set(CONTENT_TYPES)


@pytest.mark.spec("S1.12.4")
@pytest.mark.parametrize("kind", CONTENTS)
def test_content_of_each_type_is_taken_with_more_fields_than_it_needs(kind: str) -> None:
    row = Row("assistant", kind, {**CONTENTS[kind], "more": [1]})
    assert checked(row) is row


@pytest.mark.spec("S1.12.4")
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind in CONTENTS for field in CONTENTS[kind]]
)
def test_a_missing_field_is_named_with_its_type(kind: str, field: str) -> None:
    content = {name: value for name, value in CONTENTS[kind].items() if name != field}
    with pytest.raises(sa.ConfigurationError) as told:
        checked(Row("assistant", kind, content))
    assert kind in str(told.value)
    assert field in str(told.value)


@pytest.mark.spec("S1.12.4")
@pytest.mark.parametrize(
    ("row", "told"),
    [
        (Row("assistant", "text", {"text": 1}), "'text' of type 'text' must be str, not int"),
        (Row("assistant", "tool_call", {**CONTENTS["tool_call"], "arguments": "{}"}), "arguments"),
        (Row("assistant", "image", {"data": b"x"}), "'url' or base64 'data'"),
        (Row("assistant", "video", {}), "no content_type 'video'"),
        (Row("assistant", "text", "hi"), "content must be a dict"),  # type: ignore[arg-type]
        (Row("assistant", "text", {"text": ""}, "done"), "no status 'done'"),
        (Row("", "text", {"text": ""}), "message_type"),
        (Row("assistant", "text", {"text": ""}, metadata=None), "metadata must be a dict"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_stored_is_told(row: Row, told: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=told):
        checked(row)


@pytest.mark.spec("S1.12.3")
def test_a_message_becomes_its_contents_then_its_calls() -> None:
    message = sa.Message(
        "assistant",
        (
            sa.ToolCall("c1", "ls", {"path": "/"}),
            sa.ThinkingPart("hm"),
            sa.TextPart(""),
            sa.TextPart("Let me look."),
            sa.ToolCall("c2", "ls"),
            sa.TextPart("And there."),
        ),
        stop_reason="tool_use",
    )
    assert rows_of(message) == [
        Row("assistant", "thinking", {"text": "hm"}),
        Row("assistant", "text", {"text": "Let me look."}),
        Row("assistant", "text", {"text": "And there."}),
        Row(
            "assistant",
            "tool_call",
            {"call_id": "c1", "name": "ls", "arguments": {"path": "/"}},
            "pending",
        ),
        Row("assistant", "tool_call", {"call_id": "c2", "name": "ls", "arguments": {}}, "pending"),
    ]


@pytest.mark.spec("S1.12.3")
def test_results_have_their_text_parts_joined_by_newlines() -> None:
    parts: Any = [sa.TextPart("a"), sa.TextPart("b"), sa.ImagePart(data="AAAA")]
    first = sa.ToolResult("c1", "plot", parts, metadata={"seconds": 2})
    second = sa.ToolResult("c2", "ask", "waits", is_interrupt=True)
    rows = rows_of(sa.Message.tool([first, second]))
    assert [row.content_type for row in rows] == ["tool_result", "tool_result"]
    assert rows[0].content == {
        "tool_call_id": "c1",
        "name": "plot",
        "content": "a\nb",
        "is_error": False,
        "attachments": [
            {"content_type": "image", "content": {"data": "AAAA", "mime_type": "image/png"}}
        ],
    }
    assert rows[0].metadata == {"seconds": 2}
    assert rows[1].content["is_interrupt"] is True


@pytest.mark.spec("S1.12.9")
def test_images_files_and_data_are_rows() -> None:
    message = sa.Message.user(
        [
            sa.ImagePart(url="https://example.org/a.png"),
            sa.ImagePart(data="AAAA", mime_type="image/jpeg"),
            sa.FilePart(data="AAAA", mime_type="application/pdf", name="report.pdf"),
            sa.FilePart(url="https://example.org/b.pdf"),
            sa.JsonPart({"a": [1, 2]}),
        ]
    )
    rows = rows_of(message)
    assert [checked(row).content for row in rows] == [
        {"url": "https://example.org/a.png", "mime_type": "image/png"},
        {"data": "AAAA", "mime_type": "image/jpeg"},
        {"name": "report.pdf", "mime_type": "application/pdf"},
        {
            "name": "https://example.org/b.pdf",
            "mime_type": "application/octet-stream",
            "url": "https://example.org/b.pdf",
        },
        {"data": {"a": [1, 2]}},
    ]


@pytest.mark.spec("S1.12.9")
def test_a_message_with_nothing_to_see_has_no_rows() -> None:
    assert rows_of(sa.Message.assistant("")) == []
    assert rows_of(sa.Message.assistant([sa.ProviderPart("anthropic", {"type": "x"})])) == []
    assert rows_of(sa.Message.assistant("", stop_reason="max_tokens")) == []


@pytest.mark.spec("S1.12.10")
@pytest.mark.parametrize(
    ("stop_reason", "shown"),
    [
        ("max_tokens", "length"),
        ("context_window", "length"),
        ("refusal", "content_filtered"),
        ("aborted", "cancelled"),
        ("error", "stream_error"),
    ],
)
def test_only_the_last_row_of_an_unfinished_message_says_why(stop_reason: Any, shown: str) -> None:
    details = {"type": "refusal", "category": "cyber"}
    parts = [sa.ThinkingPart("hm"), sa.TextPart("Well,")]
    message = sa.Message.assistant(parts, stop_reason=stop_reason, stop_details=details)
    thinking, text = rows_of(message)
    assert thinking.content == {"text": "hm"}
    assert text.content == {"text": "Well,", "stop_reason": shown, "stop_details": details}


@pytest.mark.spec("S1.12.10")
@pytest.mark.parametrize("stop_reason", ["end_turn", "tool_use", "stop_sequence", "pause_turn"])
def test_a_finished_message_has_no_stop_reason(stop_reason: Any) -> None:
    [row] = rows_of(sa.Message.assistant("Done.", stop_reason=stop_reason, stop_details={"a": 1}))
    assert row.content == {"text": "Done."}


@pytest.mark.spec("S1.12.11")
def test_what_a_dead_stream_had_said_is_kept_and_marked() -> None:
    message = sa.Message("assistant", (sa.TextPart("The sum is"),), None, "error", "cut off")
    assert [row.content for row in rows_of(message)] == [
        {"text": "The sum is", "stop_reason": "stream_error", "error": "cut off"}
    ]


@pytest.mark.spec("S1.12.11")
def test_cancelling_and_failing_are_rows_of_the_system() -> None:
    cancelled, failed = checked(cancelled_row()), checked(error_row("Try again.", "overloaded"))
    assert (cancelled.message_type, cancelled.content_type) == ("system", "notification")
    assert cancelled.content["stop_reason"] == "cancelled"
    assert (failed.message_type, failed.content_type) == ("system", "error")
    assert failed.content == {"text": "Try again.", "error_type": "overloaded"}
