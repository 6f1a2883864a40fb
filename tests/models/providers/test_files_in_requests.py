"""Images and files reach the providers, from people and from tools."""

from __future__ import annotations

import base64

from sagents_nb.messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    TextPart,
    ToolCall,
    ToolResult,
)
from tests.models.loopback import Provider, sent

PNG = base64.b64encode(b"\x89PNG").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
NOTE = base64.b64encode("Grüße".encode()).decode()


FILES = Message.user(
    [
        TextPart("Look:"),
        ImagePart(PNG),
        ImagePart(url="https://example.org/a.jpg"),
        FilePart(PDF, "application/pdf", "a.pdf"),
        FilePart(NOTE, "text/plain", "note.txt"),
        JsonPart({"n": 1}),
    ]
)


def test_claude_is_sent_images_and_documents(provider: Provider) -> None:
    (message,) = sent(provider, "anthropic", [FILES])["messages"]
    assert message["content"] == [
        {"type": "text", "text": "Look:"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.jpg"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"},
            "title": "note.txt",
        },
        {"type": "text", "text": '{"n":1}'},
    ]


def test_responses_is_sent_images_and_files(provider: Provider) -> None:
    (item,) = sent(provider, "openai", [FILES])["input"]
    image = {"type": "input_image", "detail": "auto"}
    assert item["content"] == [
        {"type": "input_text", "text": "Look:"},
        {**image, "image_url": f"data:image/png;base64,{PNG}"},
        {**image, "image_url": "https://example.org/a.jpg"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": f"data:application/pdf;base64,{PDF}",
        },
        {
            "type": "input_file",
            "filename": "note.txt",
            "file_data": f"data:text/plain;base64,{NOTE}",
        },
        {"type": "input_text", "text": '{"n":1}'},
    ]


def test_chat_is_sent_images_and_files(provider: Provider) -> None:
    (message,) = sent(provider, "openai-chat", [FILES])["messages"]
    assert message["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
        },
        {"type": "text", "text": "note.txt:\nGrüße"},
        {"type": "text", "text": '{"n":1}'},
    ]


RESULTS = [
    Message.user("Draw"),
    Message.assistant("", [ToolCall("c1", "plot", {}), ToolCall("c2", "plot", {})]),
    Message.tool(
        [
            ToolResult("c1", "plot", [TextPart("drawn"), ImagePart(PNG)]),
            ToolResult("c2", "plot", "no display", is_error=True),
        ]
    ),
    Message.user("And?"),
]


def test_claude_is_sent_results_first_in_one_user_message(provider: Provider) -> None:
    body = sent(provider, "anthropic", RESULTS)
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    image = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert body["messages"][2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "drawn"}, {"type": "image", "source": image}],
        },
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "content": "no display",
            "is_error": True,
        },
        {"type": "text", "text": "And?"},
    ]


def test_responses_is_sent_images_inside_of_results(provider: Provider) -> None:
    body = sent(provider, "openai", RESULTS)
    assert body["input"][3]["output"] == [
        {"type": "input_text", "text": "drawn"},
        {
            "type": "input_image",
            "image_url": f"data:image/png;base64,{PNG}",
            "detail": "auto",
        },
    ]
    assert body["input"][4]["output"] == "no display"


def test_chat_is_sent_images_of_results_after_all_tool_messages(provider: Provider) -> None:
    body = sent(provider, "openai-chat", RESULTS)
    roles = [m["role"] for m in body["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user"]
    assert body["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "drawn"}
    assert body["messages"][4]["content"][1]["type"] == "image_url"
