"""What a provider adds, or a compatible server does its own way, passes through unharmed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sagents_nb.errors import ModelError
from sagents_nb.messages import (
    Message,
    ProviderPart,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from sagents_nb.models import ModelRequest
from tests.models.loopback import Answer, Heard, Provider, ask, model_for


def say(provider: Provider, name: str, events: list[Any], names: bool = True) -> Heard:
    """What the model makes of these events; text is sent as it is."""
    body = ""
    for event in events:
        if isinstance(event, str):
            body += event
        else:
            head = f"event: {event['type']}\n" if names and "type" in event else ""
            body += f"{head}data: {json.dumps(event)}\n\n"
    provider.answer = Answer(body.encode(), framing="chunked")
    return ask(model_for(name, provider.url))


def message(heard: Heard) -> Message:
    assert heard.error is None
    assert heard.message is not None
    # It survives the store, byte for byte.
    data = msgspec.json.encode(heard.message)
    assert msgspec.json.decode(data, type=Message) == heard.message
    return heard.message


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
    answer = message(say(provider, "anthropic", events))
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
    assert message(heard).stop_reason == ours
    assert not heard.may_run
    if theirs in ("brand_new", "compaction"):
        assert message(heard).metadata["provider_stop_reason"] == theirs


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
    assert message(say(provider, "anthropic", events)).text == "hi"


def test_events_without_names_are_read_by_their_type(provider: Provider) -> None:
    text = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "hi"}])
    heard = say(provider, "anthropic", claude(text), names=False)
    assert message(heard).text == "hi"


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}],
    "encrypted_content": "whole==",
}


def test_reasoning_is_taken_from_where_it_is_whole(provider: Provider) -> None:
    added = {**REASONING, "encrypted_content": "half", "summary": []}
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    }
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 5,
    }
    thought = "response.reasoning_summary_text.delta"
    events = [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.brand_new", "output_index": "x"},
        {"type": "response.brand_new.delta", "delta": {"x": 1}},
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0},
        {"type": thought, "output_index": 0, "summary_index": 0, "delta": "A"},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
        {"type": thought, "output_index": 0, "summary_index": 1, "delta": "B"},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
        {"type": "response.output_item.done", "output_index": 1, "item": search},
        {
            "type": "response.completed",
            "response": {
                "id": "r1",
                "status": "completed",
                "output": [REASONING, search, said],
                "usage": usage,
            },
        },
    ]
    heard = say(provider, "openai", events)
    answer = message(heard)
    assert answer.parts == (
        ThinkingPart("A\n\nB", None, "openai", REASONING),
        ProviderPart("openai", search),
        TextPart("done"),
    )
    assert [d.text for d in heard.deltas if isinstance(d, ThinkingDelta)] == ["A", "\n\n", "B"]
    assert answer.usage == Usage(10, 5, 60, 30)
    body = model_for("openai", provider.url).body(ModelRequest([answer]), {})
    assert body["input"] == [REASONING, search, said]


def test_items_without_an_index_are_told_apart_by_their_ids(provider: Provider) -> None:
    """As llama.cpp sends them."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    first = {"type": "function_call", "call_id": "fc_a", "name": "f", "arguments": ""}
    second = {"type": "function_call", "call_id": "fc_b", "name": "g", "arguments": ""}
    added, done = "response.output_item.added", "response.output_item.done"
    arguments = "response.function_call_arguments.delta"
    text = [{"type": "output_text", "text": "yes"}]
    thinking = [{"type": "reasoning_text", "text": "hm"}]
    events = [
        {"type": added, "item": thought},
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "hm"},
        {"type": added, "item": said},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "yes"},
        {"type": added, "item": first},
        {"type": arguments, "item_id": "fc_a", "delta": '{"n"'},
        {"type": added, "item": second},
        {"type": arguments, "item_id": "fc_b", "delta": "{}"},
        {"type": arguments, "item_id": "fc_a", "delta": ":1}"},
        {"type": done, "item": {**thought, "content": thinking}},
        {"type": done, "item": {**said, "content": text}},
        {"type": done, "item": {**first, "arguments": '{"n":1}'}},
        {"type": done, "item": {**second, "arguments": "{}"}},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    heard = say(provider, "openai", events)
    answer = message(heard)
    assert answer.thinking == "hm"
    assert answer.text == "yes"
    assert answer.tool_calls == [ToolCall("fc_a", "f", {"n": 1}), ToolCall("fc_b", "g", {})]
    pieces = [(d.index, d.text) for d in heard.deltas if isinstance(d, ToolCallDelta) and d.text]
    assert pieces == [(0, '{"n"'), (1, "{}"), (0, ":1}")]


def test_a_refusal_over_responses_is_told_apart(provider: Provider) -> None:
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I cannot."}],
    }
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    heard = say(provider, "openai", events)
    assert message(heard).stop_reason == "refusal"
    assert message(heard).metadata["stop_details"]["explanation"] == "I cannot."
    assert not heard.may_run


def test_an_incomplete_response_keeps_its_partial_text(provider: Provider) -> None:
    added = {"type": "message", "id": "m", "role": "assistant", "content": []}
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "half an ans"},
        {"type": "response.incomplete", "response": ended},
    ]
    answer = message(say(provider, "openai", events))
    assert answer.stop_reason == "max_tokens"
    assert answer.text == "half an ans"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def part(text: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    function = {"arguments": text} | ({"name": name} if name else {})
    return {**more, "function": function}


DONE = "data: [DONE]\n\n"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_of_compatible_servers_is_thinking(provider: Provider, field: str) -> None:
    events = [chunk(**{field: "hm"}), chunk(content="yes"), chunk("stop"), DONE]
    answer = message(say(provider, "openai-chat", events))
    assert answer.thinking == "hm"
    assert answer.text == "yes"


@pytest.mark.parametrize(
    "pieces",
    [
        # as OpenAI does it
        [
            part("", index=0, id="a", name="f"),
            part('{"n":1}', index=0),
            part("", index=1, id="b", name="g"),
            part('{"n":2}', index=1),
        ],
        # interleaved
        [
            part('{"n"', index=0, id="a", name="f"),
            part('{"n"', index=1, id="b", name="g"),
            part(":1}", index=0),
            part(":2}", index=1),
        ],
        # the same index for all, told apart by their ids
        [part('{"n":1}', index=0, id="a", name="f"), part('{"n":2}', index=0, id="b", name="g")],
        # no index at all
        [part('{"n":1}', id="a", name="f"), part('{"n":2}', id="b", name="g")],
        # id and name in every piece
        [
            part('{"n":', index=0, id="a", name="f"),
            part("1}", index=0, id="a", name="f"),
            part('{"n":2}', index=1, id="b", name="g"),
        ],
        # arguments that are no text
        [part({"n": 1}, index=0, id="a", name="f"), part({"n": 2}, index=1, id="b", name="g")],  # type: ignore[arg-type]
    ],
)
def test_calls_are_put_together_however_a_server_splits_them(
    provider: Provider, pieces: list[dict[str, Any]]
) -> None:
    events = [chunk(tool_calls=[piece]) for piece in pieces]
    answer = message(say(provider, "openai-chat", [*events, chunk("tool_calls"), DONE]))
    assert answer.tool_calls == [ToolCall("a", "f", {"n": 1}), ToolCall("b", "g", {"n": 2})]
    assert answer.stop_reason == "tool_use"


def test_a_call_without_an_id_is_given_one(provider: Provider) -> None:
    events = [chunk(tool_calls=[part("{}", index=0, name="f")]), chunk("tool_calls"), DONE]
    (call,) = message(say(provider, "openai-chat", events)).tool_calls
    assert call.id.startswith("call_")


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("brand_new", "end_turn"),
        ("stop", "tool_use"),  # a normal end, which a forced tool_choice has too
    ],
)
def test_the_reason_to_stop_decides_and_not_the_presence_of_calls(
    provider: Provider, finish: str, stop: str
) -> None:
    events = [chunk(tool_calls=[part("{}", index=0, id="a", name="f")]), chunk(finish), DONE]
    assert message(say(provider, "openai-chat", events)).stop_reason == stop


def test_a_refusal_over_chat_is_told_apart(provider: Provider) -> None:
    events = [chunk(refusal="I cannot."), chunk("stop"), DONE]
    answer = message(say(provider, "openai-chat", events))
    assert answer.stop_reason == "refusal"
    assert answer.text == "I cannot."


def test_cached_input_over_chat_is_counted_apart(provider: Provider) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 90},
    }
    events = [chunk(content="x"), chunk("stop"), {"choices": [], "usage": usage}, DONE]
    assert message(say(provider, "openai-chat", events)).usage == Usage(10, 5, 90)


def test_a_server_that_never_says_done_is_read_to_its_end(provider: Provider) -> None:
    events = [chunk(content="x"), chunk("stop"), {"choices": None, "usage": None, "new": 1}]
    assert message(say(provider, "openai-chat", events)).text == "x"


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
