"""What the providers are sent."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from sagents_nb.messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from sagents_nb.models import ModelRequest
from sagents_nb.tools import ToolSpec
from tests.models.loopback import MODELS, Answer, Provider, ask, model_for, recorded

STREAMS = {
    "anthropic": "anthropic_tool_use",
    "openai": "openai_responses_text",
    "openai-chat": "openai_chat_text",
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = ToolSpec("read_file", "Read a file.", SCHEMA)
PNG = base64.b64encode(b"\x89PNG").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
NOTE = base64.b64encode("Grüße".encode()).decode()


def sent(provider: Provider, name: str, messages: list[Message], **more: Any) -> dict[str, Any]:
    """The body that the server received."""
    options = more.pop("options", {})
    request = ModelRequest(messages, more.pop("system", ""), more.pop("tools", ()), options)
    before = copy.deepcopy(request)
    provider.answer = Answer(recorded(STREAMS[name]), framing="chunked")
    heard = ask(model_for(name, provider.url, **more), request)
    assert heard.error is None
    assert request == before
    body = provider.requests[-1].body
    assert body.pop("stream") is True
    return body


DIALOGUE = [
    Message.user("Read a.txt"),
    Message.assistant("I will.", [ToolCall("c1", "read_file", {"path": "a.txt"})]),
    Message.tool([ToolResult("c1", "read_file", "hello")]),
]


def test_claude_is_sent_the_dialogue_in_its_form(provider: Provider) -> None:
    body = sent(provider, "anthropic", DIALOGUE, system="Be brief.", tools=(TOOL,))
    assert provider.requests[0].path == "/v1/messages"
    assert provider.requests[0].headers["anthropic-version"]
    assert provider.requests[0].headers["content-type"] == "application/json"
    assert body == {
        "model": "some-model",
        "max_tokens": 8192,
        "system": "Be brief.",
        "cache_control": {"type": "ephemeral"},
        "tools": [{"name": "read_file", "description": "Read a file.", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Read a.txt"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {
                        "type": "tool_use",
                        "id": "c1",
                        "name": "read_file",
                        "input": {"path": "a.txt"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "hello"}],
            },
        ],
    }


def test_responses_is_sent_the_dialogue_in_its_form(provider: Provider) -> None:
    body = sent(provider, "openai", DIALOGUE, system="Be brief.", tools=(TOOL,))
    assert provider.requests[0].path == "/v1/responses"
    assert body == {
        "model": "some-model",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read a file.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Read a.txt"}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I will.", "annotations": []}],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "read_file",
                "arguments": '{"path":"a.txt"}',
            },
            {"type": "function_call_output", "call_id": "c1", "output": "hello"},
        ],
    }


def test_chat_is_sent_the_dialogue_in_its_form(provider: Provider) -> None:
    body = sent(provider, "openai-chat", DIALOGUE, system="Be brief.", tools=(TOOL,))
    assert provider.requests[0].path == "/v1/chat/completions"
    function = {"name": "read_file", "description": "Read a file.", "parameters": SCHEMA}
    assert body == {
        "model": "some-model",
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Read a.txt"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "hello"},
        ],
    }


def test_thinking_goes_back_to_claude_byte_for_byte(provider: Provider) -> None:
    provider.answer = Answer(recorded("anthropic_thinking"))
    answer = ask(model_for("anthropic", provider.url)).message
    assert answer is not None
    body = sent(provider, "anthropic", [Message.user("hi"), answer, Message.user("go on")])
    thinking = body["messages"][1]["content"][0]
    stream = recorded("anthropic_thinking").decode()
    assert thinking["type"] == "thinking"
    assert thinking["signature"]
    assert f'"signature":"{thinking["signature"]}"' in stream
    assert thinking["thinking"] == answer.thinking
    assert set(thinking) == {"type", "thinking", "signature"}


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "gAAA==",
}


def test_reasoning_goes_back_to_openai_verbatim_and_other_thinking_to_nobody(
    provider: Provider,
) -> None:
    redacted = {"type": "redacted_thinking", "data": "xyz="}
    answer = Message.assistant(
        [
            ThinkingPart("hm", None, "openai", REASONING),
            ThinkingPart("by claude", "sig", "anthropic"),
            ThinkingPart("unsigned", None, "anthropic"),
            ThinkingPart("by a server", None, "openai-chat", {"reasoning_content": "by a server"}),
            ProviderPart("anthropic", redacted),
            ProviderPart("openai", {"type": "web_search_call", "id": "ws_1"}),
            TextPart("done"),
        ]
    )
    history = [Message.user("hi"), answer, Message.user("go on")]
    body = sent(provider, "openai", history)
    assert body["input"][1:4] == [
        REASONING,
        {"type": "web_search_call", "id": "ws_1"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        },
    ]
    body = sent(provider, "anthropic", history)
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "by claude", "signature": "sig"},
        redacted,
        {"type": "text", "text": "done"},
    ]
    body = sent(provider, "openai-chat", history)
    assert body["messages"][1] == {"role": "assistant", "content": "done"}
    body = sent(provider, "openai-chat", history, send_thinking=True)
    assert body["messages"][1]["reasoning_content"] == "by a server"


def test_items_of_responses_keep_their_ids_when_sent_back(provider: Provider) -> None:
    provider.answer = Answer(recorded("openai_responses_function_call"))
    answer = ask(model_for("openai", provider.url)).message
    assert answer is not None
    (call,) = answer.tool_calls
    history = [Message.user("hi"), answer, Message.tool([ToolResult(call.id, call.name, "Paris")])]
    body = sent(provider, "openai", history)
    assert body["input"][1] == {
        "type": "function_call",
        "id": "fc_67e554a1de488191af0831d35cbe082e0794405d35281ae2",
        "call_id": "call_kL0PCQV7M2WMoVX8V8OtYSAL",
        "name": "get_capital",
        "arguments": '{"country":"France"}',
        "status": "completed",
    }
    body = sent(provider, "anthropic", history)
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": call.id, "name": "get_capital", "input": call.arguments}
    ]


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


@pytest.mark.parametrize("name", MODELS)
def test_broken_and_foreign_messages_are_not_sent(provider: Provider, name: str) -> None:
    history = [
        Message.user("hi"),
        Message("note", (TextPart("for people"),)),
        Message.assistant("", stop_reason="error"),
        Message.assistant(
            [ThinkingPart("t", "sig", "anthropic"), TextPart("partial")],
            [ToolCall("c9", "rm", {})],
            stop_reason="aborted",
        ),
        Message.tool([ToolResult("c9", "rm", "cancelled")]),
        Message.user("again"),
    ]
    sent(provider, name, history)
    raw = provider.requests[-1].raw.decode()
    assert "partial" in raw
    assert "again" in raw
    for absent in ("for people", "c9", "sig", "cancelled"):
        assert absent not in raw


@pytest.mark.parametrize("name", MODELS)
def test_what_json_cannot_carry_is_replaced_and_nothing_crashes(
    provider: Provider, name: str
) -> None:
    odd = "half \ud83d, whole \ud83d\ude00, nul \x00"
    history = [
        Message.user([TextPart(odd), JsonPart({"x": float("nan"), 1: {2}, "o": object})]),
        Message.assistant("", [ToolCall("c1", "f", {"n": 2**80, "s": odd})]),
        Message.tool([ToolResult("c1", "f", "")]),
        Message.assistant(""),
        Message.user(""),
        Message.tool([ToolResult("c1", "f", [])]),
    ]
    sent(provider, name, history, system=odd)
    raw = provider.requests[-1].raw.decode()
    assert "half \ufffd, whole 😀, nul \\u0000" in raw
    assert str(2**80) in raw


@pytest.mark.parametrize("name", MODELS)
def test_ids_and_names_that_no_provider_takes_are_replaced_the_same_in_call_and_result(
    provider: Provider, name: str
) -> None:
    id = "call|" + "x" * 100
    history = [
        Message.user("hi"),
        Message.assistant("", [ToolCall(id, "my tool.v2", {})]),
        Message.tool([ToolResult(id, "my tool.v2", "ok")]),
    ]
    sent(provider, name, history)
    raw = provider.requests[-1].raw.decode()
    assert "call|" not in raw
    assert "my_tool_v2" in raw
    assert raw.count(':"call_') == 2


@pytest.mark.parametrize("name", MODELS)
def test_a_request_extends_the_one_before_it(provider: Provider, name: str) -> None:
    """Append-only: the providers' caches and Claude's checks of thinking depend on it."""
    key = "input" if name == "openai" else "messages"
    before: list[Any] = []
    history: list[Message] = []
    for turn in range(5):
        history += [
            Message.user(f"question {turn}"),
            Message.assistant("hm", [ToolCall(f"c{turn}", "f", {"n": turn})]),
            Message.tool([ToolResult(f"c{turn}", "f", "ok")]),
            Message.assistant(f"answer {turn}"),
        ]
        now = sent(provider, name, history)[key]
        assert now[: len(before)] == before
        before = now
