"""The dialogue, in the form that each provider wants; thinking goes back to whom it came from."""

from __future__ import annotations

from sagents_nb.messages import Message, ProviderPart, TextPart, ThinkingPart, ToolCall, ToolResult
from sagents_nb.tools import ToolSpec
from tests.models.loopback import Answer, Provider, ask, model_for, recorded, sent

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = ToolSpec("read_file", "Read a file.", SCHEMA)

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
