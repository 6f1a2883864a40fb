"""What a provider says is kept, and what it is sent is all that was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.tools import ToolSpec
from tests.models.loopback import (
    ANSWERS,
    Answer,
    Provider,
    ask,
    message_of,
    model_for,
    recorded,
    say,
    sent,
)

PROVIDERS = ["anthropic", "openai", "openai-chat"]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
OWN = ToolSpec("read_file", "Read a file.", SCHEMA)
ASKED = [sa.Message.user("hi")]
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider on the loopback."""
    server = Provider()
    yield server
    server.close()


def names_of(body: dict[str, Any]) -> list[str]:
    """Of the tools that were sent."""
    return [tool.get("name") or tool["function"]["name"] for tool in body.get("tools", [])]


@pytest.mark.parametrize("name", PROVIDERS)
def test_b08_tools_of_the_provider_stand_beside_the_agents_own(
    provider: Provider, name: str
) -> None:
    assert names_of(sent(provider, name, ASKED, tools=(OWN,), options={"tools": [SEARCH]})) == [
        "read_file",
        "web_search",
    ]
    assert names_of(sent(provider, name, ASKED, options={"tools": [SEARCH]})) == ["web_search"]
    provider.answer = Answer(recorded(ANSWERS[name]), framing="chunked")
    ask(model_for(name, provider.url, tools=[SEARCH]), ModelRequest(ASKED, tools=(OWN,)))
    assert names_of(provider.requests[-1].body) == ["read_file", "web_search"]
    # None leaves a parameter out, as everywhere.
    assert "tools" not in sent(provider, name, ASKED, tools=(OWN,), options={"tools": None})


def test_b08_what_is_included_beside_reasoning_and_usage(provider: Provider) -> None:
    logprobs = "message.output_text.logprobs"
    body = sent(provider, "openai", ASKED, options={"include": [logprobs]})
    assert body["include"] == ["reasoning.encrypted_content", logprobs]
    options = {"stream_options": {"include_obfuscation": False}}
    body = sent(provider, "openai-chat", ASKED, options=options)
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}


CITATION = {
    "type": "url_citation",
    "url": "https://example.org",
    "title": "Source",
    "start_index": 0,
    "end_index": 2,
}
LOGPROB = {"token": "ok", "bytes": [111, 107], "logprob": -0.1, "top_logprobs": []}


def test_b22_responses_citations_and_logprobs_are_kept(provider: Provider) -> None:
    text = {
        "type": "output_text",
        "text": "ok",
        "annotations": [CITATION],
        "logprobs": [LOGPROB],
    }
    output = [{"type": "message", "id": "m1", "role": "assistant", "content": [text]}]
    response = {"status": "completed", "output": output}
    heard = say(provider, "openai", [{"type": "response.completed", "response": response}])
    message = message_of(heard)
    assert message.metadata["citations"] == [CITATION]
    assert message.metadata["logprobs"] == [LOGPROB]


def test_b22_chat_citations_and_logprobs_are_kept(provider: Provider) -> None:
    pieces = [
        {"index": 0, "delta": {"content": "o"}, "logprobs": {"content": [LOGPROB]}},
        {"index": 0, "delta": {"content": "k"}, "logprobs": {"content": [LOGPROB]}},
        {"index": 0, "delta": {"annotations": [CITATION]}, "logprobs": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    heard = say(provider, "openai-chat", [*({"choices": [p]} for p in pieces), "data: [DONE]\n\n"])
    message = message_of(heard)
    assert message.text == "ok"
    assert message.metadata["citations"] == [CITATION]
    assert message.metadata["logprobs"] == [LOGPROB, LOGPROB]


def test_b22_claudes_citations_are_found_in_the_same_place_and_are_sent_again(
    provider: Provider,
) -> None:
    citation = {"type": "web_search_result_location", "url": "https://example.org"}
    events = [
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": citation},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    message = message_of(say(provider, "anthropic", events))
    assert message.metadata["citations"] == [citation]
    body = sent(provider, "anthropic", [*ASKED, message, sa.Message.user("more")])
    block = {"type": "text", "text": "ok", "citations": [citation]}
    assert body["messages"][1]["content"] == [block]


@pytest.mark.parametrize(
    ("name", "id", "limit"),
    [
        ("anthropic", "request-id", "anthropic-ratelimit-requests-remaining"),
        ("openai", "x-request-id", "x-ratelimit-remaining-tokens"),
        ("openai-chat", "x-request-id", "x-ratelimit-remaining-tokens"),
    ],
)
def test_b22_request_ids_and_rate_limits_are_kept(
    provider: Provider, name: str, id: str, limit: str
) -> None:
    headers = {id: "req_1", limit: "99", "x-other": "1"}
    provider.answer = Answer(recorded(ANSWERS[name]), headers=headers, framing="chunked")
    message = message_of(ask(model_for(name, provider.url)))
    assert message.metadata["request_id"] == "req_1"
    assert message.metadata["rate_limits"] == {limit: "99"}
    provider.answer = Answer(recorded(ANSWERS[name]), framing="chunked")
    assert not {"request_id", "rate_limits"} & set(
        message_of(ask(model_for(name, provider.url))).metadata
    )


def test_b22_a_refused_request_can_be_asked_about(provider: Provider) -> None:
    provider.answer = Answer(b"{}", status=400, headers={"request-id": "req_2"}, framing="length")
    error = ask(model_for("anthropic", provider.url)).error
    assert isinstance(error, sa.ModelError)
    assert error.request_id == "req_2"


def calling(name: str, arguments: str) -> Answer:
    """Claude's answer of one call."""
    block = {"type": "tool_use", "id": "c1", "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    events = [
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    return Answer(body.encode(), framing="chunked")


def test_names_that_claude_refuses_are_sent_as_others_and_come_back(provider: Provider) -> None:
    inner = {"type": "object", "properties": {"straße": {"type": "string"}, "ort": {}}}
    schema = {
        "type": "object",
        "properties": {
            "größe": {"type": "integer"},
            "grosse": {"type": "integer"},
            "数": {"type": "integer"},
            "wo": {"$ref": "#/$defs/Über"},
        },
        "required": ["größe", "grosse"],
        "$defs": {"Über": inner},
    }
    tool = ToolSpec("messen", "Measure.", schema)
    text = '{"grosse_2": 1, "grosse": 2, "parameter": 3, "wo": {"strasse": "A", "ort": "B"}}'
    provider.answer = calling("messen", text)
    ours = {"größe": 1, "grosse": 2, "数": 3, "wo": {"straße": "A", "ort": "B"}}
    earlier = [
        *ASKED,
        sa.Message.assistant("", [sa.ToolCall("c0", "messen", ours)]),
        sa.Message.tool([sa.ToolResult("c0", "messen", "ok")]),
    ]
    heard = ask(model_for("anthropic", provider.url), ModelRequest(earlier, tools=(tool, OWN)))
    assert message_of(heard).tool_calls[0].arguments == ours
    asked = provider.requests[-1].body
    wire = asked["tools"][0]["input_schema"]
    assert list(wire["properties"]) == ["grosse_2", "grosse", "parameter", "wo"]
    assert wire["required"] == ["grosse_2", "grosse"]
    assert wire["properties"]["wo"] == {"$ref": "#/$defs/Über"}
    assert list(wire["$defs"]["Über"]["properties"]) == ["strasse", "ort"]
    assert asked["tools"][1]["input_schema"] == SCHEMA
    there = {"grosse_2": 1, "grosse": 2, "parameter": 3, "wo": {"strasse": "A", "ort": "B"}}
    assert asked["messages"][1]["content"][0]["input"] == there


def test_a_tool_with_such_a_name_runs(provider: Provider) -> None:
    taken: list[int] = []

    def messen(größe: int) -> str:
        """Measure."""
        taken.append(größe)
        return "ok"

    refusal = Answer(recorded("anthropic_refusal"), framing="chunked")
    answers = [calling("messen", '{"grosse": 3}'), refusal]
    provider.answer = lambda _: answers.pop(0)
    agent = sa.Agent(model_for("anthropic", provider.url), tools=[messen])
    with pytest.raises(sa.ModelError):  # what it says after that does not matter here
        agent.run("go")
    assert taken == [3]
