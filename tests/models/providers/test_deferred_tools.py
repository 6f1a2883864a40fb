"""A provider that finds tools by itself is sent all, and what it found goes back as it came."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from tests.models.loopback import Answer, Provider, Recorded, model_for

REFERENCE = {"type": "tool_reference", "tool_name": "tides"}
SEARCHED: list[dict[str, Any]] = [
    {
        "type": "server_tool_use",
        "id": "srvtoolu_01",
        "name": "tool_search_tool_bm25",
        "input": {"query": "tide tables"},
    },
    {
        "type": "tool_search_tool_result",
        "tool_use_id": "srvtoolu_01",
        "content": {"type": "tool_search_tool_search_result", "tool_references": [REFERENCE]},
    },
]
USE = {"type": "tool_use", "id": "toolu_01", "name": "tides", "input": {"port": "Bergen"}}
FOUND: list[dict[str, Any]] = [
    {
        "type": "tool_search_call",
        "id": "tsc_01",
        "execution": "server",
        "call_id": None,
        "status": "completed",
        "arguments": {"paths": ["tides"]},
    },
    {
        "type": "tool_search_output",
        "id": "tso_01",
        "execution": "server",
        "call_id": None,
        "status": "completed",
        "tools": [{"type": "function", "name": "tides", "parameters": {}, "strict": False}],
    },
]
CALL = {
    "type": "function_call",
    "id": "fc_01",
    "call_id": "call_01",
    "name": "tides",
    "arguments": '{"port":"Bergen"}',
    "status": "completed",
}


def tides(port: str = "") -> str:
    """When the tide is high in a port."""
    return "At 6."


def find_city(name: str = "") -> str:
    """Where a city is."""
    return "There."


def now() -> str:
    """What time it is."""
    return "5"


TOOLS = [
    now,
    sa.tool(defer_loading=True)(tides),
    sa.tool(defer_loading=True)(find_city),
]


def events(some: list[dict[str, Any]]) -> bytes:
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in some).encode()


def of_claude(blocks: list[dict[str, Any]], stop: str) -> bytes:
    some: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {}}}
    ]
    for index, block in enumerate(blocks):
        start, given = dict(block), block.get("input")
        if given is not None:
            start["input"] = {}
        some.append({"type": "content_block_start", "index": index, "content_block": start})
        if given is not None:  # in pieces, as all input comes
            text = json.dumps(given)
            for piece in (text[:7], text[7:]):
                delta = {"type": "input_json_delta", "partial_json": piece}
                some.append({"type": "content_block_delta", "index": index, "delta": delta})
        some.append({"type": "content_block_stop", "index": index})
    some.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {}})
    return events([*some, {"type": "message_stop"}])


def of_openai(items: list[dict[str, Any]], stop: str) -> bytes:
    some: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        some.append({"type": "response.output_item.added", "output_index": index, "item": item})
        some.append({"type": "response.output_item.done", "output_index": index, "item": item})
    response = {"id": "resp_1", "model": "m", "status": "completed", "output": items}
    return events([*some, {"type": "response.completed", "response": response}])


SAID = {
    "anthropic": [{"type": "text", "text": "At 6."}],
    "openai": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "6"}]}
    ],
}
SHAPES: dict[str, Callable[[list[dict[str, Any]], str], bytes]] = {
    "anthropic": of_claude,
    "openai": of_openai,
}
WENT = {"anthropic": [*SEARCHED, USE], "openai": [*FOUND, CALL]}
both = pytest.mark.parametrize("name", ["anthropic", "openai"])


def answering(name: str) -> Callable[[Recorded], Answer]:
    """The model looks for a tool and calls it, and then answers whatever is asked."""
    asked: list[Recorded] = []

    def answer(request: Recorded) -> Answer:
        asked.append(request)
        first = len(asked) == 1
        body = SHAPES[name](
            WENT[name] if first else SAID[name], "tool_use" if first else "end_turn"
        )
        return Answer(body, framing="chunked")

    return answer


def model_of(provider: Provider, name: str) -> Any:
    provider.answer = answering(name)
    model = model_for(name, provider.url)
    model.defers_tools = True  # as the provider's own would say
    return model


def agent_of(model: Any, **options: Any) -> sa.Agent:
    search = sa.ToolSearch(**options)
    return sa.Agent(model, tools=TOOLS, middleware=[search], defaults=False)


def names(body: dict[str, Any], deferred: bool) -> list[str]:
    return [
        t["name"]
        for t in body["tools"]
        if t.get("defer_loading", False) is deferred and "name" in t
    ]


def history(body: dict[str, Any]) -> list[Any]:
    items: list[Any] = body.get("messages") or body["input"]
    return items


@both
def test_all_tools_are_sent_the_deferred_marked_and_its_own_search_beside_them(
    provider: Provider, name: str
) -> None:
    agent_of(model_of(provider, name)).run("High tide?")
    body = provider.requests[0].body
    assert names(body, True) == ["tides", "find_city"]
    assert "now" in names(body, False)
    assert "search_tools" not in names(body, False)
    own = {"anthropic": "tool_search_tool_bm25_20251119", "openai": "tool_search"}[name]
    assert [tool["type"] for tool in body["tools"] if "search" in tool.get("type", "")] == [own]


@both
def test_a_tool_that_it_found_is_called_and_the_finding_goes_back_as_it_came(
    provider: Provider, name: str
) -> None:
    result = agent_of(model_of(provider, name)).run("High tide?")
    assert [(c.call.name, c.status) for c in result.tool_calls] == [("tides", "completed")]
    items = history(provider.requests[1].body)
    if name == "anthropic":
        assert items[1] == {"role": "assistant", "content": [*SEARCHED, USE]}
    else:
        assert items[1:4] == [*FOUND, CALL]


@both
def test_nothing_of_the_tools_changes_in_a_conversation(provider: Provider, name: str) -> None:
    agent = agent_of(model_of(provider, name))
    agent.run("Which city?", state=agent.run("High tide?"))
    first, *others = [request.body["tools"] for request in provider.requests]
    assert len(others) == 2
    assert all(tools == first for tools in others)


@both
def test_of_a_conversation_that_is_opened_again_the_same_bytes_are_sent(
    provider: Provider, name: str
) -> None:
    store = sa.ConversationStore("sqlite://")
    model = model_of(provider, name)
    session = sa.Session(agent_of(model), store=store, id="talk")
    session.send("High tide?").result()
    session.send("And now?").result()
    session.close()
    before = provider.requests[-1]
    session = sa.Session.open("talk", agent=agent_of(model), store=store)
    session.send("Again?").result()
    session.close()
    store.close()
    start = history(before.body)
    again = provider.requests[-1]
    assert history(again.body)[: len(start)] == start
    key = b'"messages":[' if name == "anthropic" else b'"input":['
    sent = before.raw.partition(key)[2].partition(b"And now?")[0]
    assert again.raw.partition(key)[2].startswith(sent)


@both
def test_a_recorded_conversation_is_replayed_without_the_provider(
    provider: Provider, name: str, tmp_path: Path
) -> None:
    def talk(model: Any) -> list[str]:
        agent = agent_of(model)
        result = agent.run("High tide?")
        return [result.text, agent.run("And now?", state=result).text]

    path = tmp_path / "talk.json"
    first = talk(sa.RecordedModel(model_of(provider, name), path))
    asked = len(provider.requests)
    assert talk(sa.RecordedModel(model_of(provider, name), path, "replay")) == first
    assert len(provider.requests) == asked


def test_with_an_embedder_the_search_is_ours(provider: Provider) -> None:
    def embedded(texts: Any) -> list[list[float]]:
        return [[1.0, 0.0]] * len(texts)

    agent_of(model_of(provider, "anthropic"), embedder=embedded, limit=1).run("High tide?")
    body = provider.requests[0].body
    assert names(body, True) == []
    assert "search_tools" in names(body, False)


@both
def test_another_model_of_the_same_request_is_sent_all_as_ordinary_tools(
    provider: Provider, name: str
) -> None:
    other = model_for(name, provider.url)
    provider.answer = Answer(SHAPES[name](SAID[name], "end_turn"), framing="chunked")
    broken = sa.ScriptedModel([sa.ModelError("It is down.")])
    broken.defers_tools = True
    agent = agent_of(broken).with_(fallback_models=[other])
    agent.run("High tide?")
    assert names(provider.requests[0].body, False) == ["now", "tides", "find_city"]


@pytest.mark.parametrize(
    ("model", "finds"),
    [
        (sa.AnthropicModel("claude-sonnet-5-5"), True),
        (sa.AnthropicModel("claude-opus-4-5-20251101"), True),
        (sa.AnthropicModel("claude-haiku-4-5"), False),
        (sa.AnthropicModel("claude-sonnet-4-20250514"), False),
        (sa.AnthropicModel("claude-sonnet-5-5", base_url="http://gateway"), False),
        (sa.OpenAIModel("gpt-6.1-sol"), True),
        (sa.OpenAIModel("gpt-5.4-mini"), True),
        (sa.OpenAIModel("gpt-5.3"), False),
        (sa.OpenAIModel("o3"), False),
        (sa.OpenAIModel("gpt-6.1-sol", base_url="http://gateway"), False),
        (sa.OpenAIChatModel("gpt-6.1-sol"), False),
    ],
)
def test_which_models_find_tools_by_themselves(model: sa.ChatModel, finds: bool) -> None:
    assert model.defers_tools is finds
