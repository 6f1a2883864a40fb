"""What Responses, or a server that is nearly like them, do their own way is read."""

from __future__ import annotations

from sagents_nb.messages import (
    ProviderPart,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from sagents_nb.models import ModelRequest
from tests.models.loopback import Provider, message_of, model_for, say

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
    answer = message_of(heard)
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
    answer = message_of(heard)
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
    assert message_of(heard).stop_reason == "refusal"
    assert message_of(heard).metadata["stop_details"]["explanation"] == "I cannot."
    assert not heard.may_run


def test_an_incomplete_response_keeps_its_partial_text(provider: Provider) -> None:
    added = {"type": "message", "id": "m", "role": "assistant", "content": []}
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "half an ans"},
        {"type": "response.incomplete", "response": ended},
    ]
    answer = message_of(say(provider, "openai", events))
    assert answer.stop_reason == "max_tokens"
    assert answer.text == "half an ans"
