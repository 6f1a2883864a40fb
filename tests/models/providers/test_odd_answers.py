"""What Claude adds passes through unharmed, and what cannot be read is a cut."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.messages import Message, ProviderPart, TextPart, ThinkingPart, ToolCall, Usage
from sagents_nb.models import ModelRequest
from tests.models.loopback import (
    Answer,
    Provider,
    ask,
    message_of,
    model_for,
    provider_of,
    recorded,
    say,
)


def claude(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn") -> list:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 3_000,
        "output_tokens": 1,
    }
    events: list[Any] = [{"type": "message_start", "message": {"id": "m1", "usage": usage}}]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}
    )
    return [*events, {"type": "message_stop"}]


SEARCH = {"type": "server_tool_use", "id": "st1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "st1", "content": [{"url": "x"}]}
CITATION = {"type": "web_search_result_location", "url": "x", "cited_text": "y"}


def test_blocks_of_claude_that_we_do_not_know_go_back_as_they_came(provider: Provider) -> None:
    redacted = {"type": "redacted_thinking", "data": "opaque=="}
    future = {"type": "hologram", "shape": "", "size": 3}
    events = claude(
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "signature_delta", "signature": "sig=="}],
        ),
        (redacted, []),
        (SEARCH, [{"type": "input_json_delta", "partial_json": '{"query":"q"}'}]),
        (FOUND, []),
        (
            {"type": "text", "text": "", "citations": []},
            [
                {"type": "text_delta", "text": "Because"},
                {"type": "citations_delta", "citation": CITATION},
            ],
        ),
        (future, [{"type": "shape_delta", "shape": "cu"}, {"type": "shape_delta", "shape": "be"}]),
        (
            {
                "type": "tool_use",
                "id": "c1",
                "name": "f",
                "input": {},
                "caller": {"type": "direct"},
            },
            [{"type": "input_json_delta", "partial_json": ""}],
        ),
        stop="tool_use",
    )
    answer = message_of(say(provider, "anthropic", events))
    assert answer.parts == (
        ThinkingPart("", "sig==", "anthropic"),
        ProviderPart("anthropic", redacted),
        ProviderPart("anthropic", {**SEARCH, "input": {"query": "q"}}),
        ProviderPart("anthropic", FOUND),
        TextPart("Because"),
        ProviderPart("anthropic", {**future, "shape": "cube"}),
        ToolCall("c1", "f", {}),
    )
    assert answer.stop_reason == "tool_use"
    assert answer.usage == Usage(10, 7, 200, 3_000)
    body = model_for("anthropic", provider.url).body(ModelRequest([Message.user("a"), answer]), {})
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "sig=="},
        redacted,
        {**SEARCH, "input": {"query": "q"}},
        FOUND,
        {"type": "text", "text": "Because", "citations": [CITATION]},
        {**future, "shape": "cube"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "caller": {"type": "direct"}},
    ]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("pause_turn", "pause_turn"),
        ("compaction", "pause_turn"),
        ("model_context_window_exceeded", "context_window"),
        ("stop_sequence", "stop_sequence"),
        ("brand_new", "end_turn"),
    ],
)
@pytest.mark.spec("P17")
def test_reasons_to_stop_are_ours_and_only_tool_use_runs_tools(
    provider: Provider, theirs: str, ours: str
) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    heard = say(provider, "anthropic", claude((call, []), stop=theirs))
    assert message_of(heard).stop_reason == ours
    assert not heard.may_run
    if theirs in ("brand_new", "compaction"):
        assert message_of(heard).metadata["provider_stop_reason"] == theirs


def test_unknown_events_of_claude_are_passed_over(provider: Provider) -> None:
    text = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "hi", "new": 1}])
    events = claude(text)
    events[2:2] = [
        {"type": "brand_new_event", "index": "x", "delta": 3},
        "event: not_even_json\ndata: <hello>\n\n",
        "event: ping\ndata: \n\n",
        ": comment\n\n",
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "text": [1]}},
        {"type": "content_block_delta", "index": 99, "delta": {"type": "text_delta", "text": "x"}},
    ]
    assert message_of(say(provider, "anthropic", events)).text == "hi"


def test_events_without_names_are_read_by_their_type(provider: Provider) -> None:
    text = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "hi"}])
    heard = say(provider, "anthropic", claude(text), names=False)
    assert message_of(heard).text == "hi"


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("anthropic", {"type": "content_block_start", "index": "x", "content_block": []}),
        ("anthropic", {"type": "message_start", "message": 3}),
        ("openai", {"type": "response.output_item.done", "output_index": 0, "item": "x"}),
        ("openai", {"type": "response.completed", "response": [1]}),
        ("openai-chat", {"choices": [{"index": 0, "delta": {"tool_calls": 3}}]}),
        ("openai-chat", "data: \xff\xfe\n\n"),
        ("openai-chat", "data: {\n\n"),
    ],
)
def test_an_event_we_need_in_a_shape_we_cannot_read_is_a_cut(
    provider: Provider, name: str, event: Any
) -> None:
    heard = say(provider, name, [event])
    assert heard.message is None
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "cut_stream"


@pytest.mark.parametrize("odd", [b"-9", b'"many"', b"[]", b"true"])
@pytest.mark.parametrize(
    ("stream", "usage"),
    [
        ("anthropic_tool_use", Usage(0, 65)),
        ("openai_responses_text", Usage(0, 9)),
        ("openai_chat_text", Usage(0, 9)),
    ],
)
def test_a_count_that_is_no_number_of_tokens_is_not_told(
    provider: Provider, stream: str, usage: Usage, odd: bytes
) -> None:
    body = re.sub(rb'"(input|prompt)_tokens":\d+', rb'"\1_tokens":' + odd, recorded(stream))
    provider.answer = Answer(body, framing="chunked")
    answer = message_of(ask(model_for(provider_of(stream), provider.url)))
    assert answer.usage == usage
