"""Chat completions of servers that are only nearly like OpenAI's are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.messages import ToolCall, Usage
from tests.models.loopback import Answer, Provider, message_of, model_for, say


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
    answer = message_of(say(provider, "openai-chat", events))
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
    answer = message_of(say(provider, "openai-chat", [*events, chunk("tool_calls"), DONE]))
    assert answer.tool_calls == [ToolCall("a", "f", {"n": 1}), ToolCall("b", "g", {"n": 2})]
    assert answer.stop_reason == "tool_use"


def test_a_call_without_an_id_is_given_one(provider: Provider) -> None:
    events = [chunk(tool_calls=[part("{}", index=0, name="f")]), chunk("tool_calls"), DONE]
    (call,) = message_of(say(provider, "openai-chat", events)).tool_calls
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
    assert message_of(say(provider, "openai-chat", events)).stop_reason == stop


def test_a_refusal_over_chat_is_told_apart(provider: Provider) -> None:
    events = [chunk(refusal="I cannot."), chunk("stop"), DONE]
    answer = message_of(say(provider, "openai-chat", events))
    assert answer.stop_reason == "refusal"
    assert answer.text == "I cannot."


def test_cached_input_over_chat_is_counted_apart(provider: Provider) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 90},
    }
    events = [chunk(content="x"), chunk("stop"), {"choices": [], "usage": usage}, DONE]
    assert message_of(say(provider, "openai-chat", events)).usage == Usage(10, 5, 90)


def test_a_server_that_never_says_done_is_read_to_its_end(provider: Provider) -> None:
    events = [chunk(content="x"), chunk("stop"), {"choices": None, "usage": None, "new": 1}]
    assert message_of(say(provider, "openai-chat", events)).text == "x"


def paid(provider: Provider, **usage: Any) -> Usage | None:
    used = {"prompt_tokens": 10, "completion_tokens": 5, **usage}
    events = [chunk(content="x"), chunk("stop"), {"choices": [], "usage": used}, DONE]
    return message_of(say(provider, "openai-chat", events)).usage


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.00014}, 0.00014),
        ({"cost": 0}, 0.0),
        ({"cost": 0.95, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.95}}, 0.95),
        # With a provider's key of one's own the server's part is the fee only.
        ({"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.95}}, 1.0),
        ({"cost": 0.05, "is_byok": True, "cost_details": None}, 0.05),
    ],
)
def test_what_a_server_says_it_took_is_the_cost(
    provider: Provider, usage: dict[str, Any], cost: float
) -> None:
    assert paid(provider, **usage) == Usage(10, 5, cost_usd=cost)


@pytest.mark.parametrize("odd", [None, "0.1", -1, True, {"total_cost": 1}, []])
def test_a_cost_that_is_no_number_of_dollars_is_none(provider: Provider, odd: Any) -> None:
    assert paid(provider, cost=odd) == Usage(10, 5)


@pytest.mark.parametrize("odd", [-100, "many", True, [], {"a": 1}])
def test_tokens_that_are_no_number_are_not_told(provider: Provider, odd: Any) -> None:
    assert paid(provider, prompt_tokens=odd) == Usage(0, 5)
    details = {"cached_tokens": odd}
    assert paid(provider, prompt_tokens_details=details) == Usage(10, 5)
    assert paid(provider, prompt_tokens_details=odd) == Usage(10, 5)


@pytest.mark.parametrize("much", [10**16, 2**60, 1e300])
def test_more_tokens_than_can_be_count_as_2_to_the_53(provider: Provider, much: Any) -> None:
    assert paid(provider, prompt_tokens=much) == Usage(2**53, 5)
    details = {"cached_tokens": much}
    assert paid(provider, prompt_tokens_details=details) == Usage(0, 5, 2**53)


@pytest.mark.parametrize("odd", [[5], "many", 7, True])
def test_usage_that_is_none_is_not_told(provider: Provider, odd: Any) -> None:
    events = [chunk(content="x"), chunk("stop"), {"choices": [], "usage": odd}, DONE]
    answer = message_of(say(provider, "openai-chat", events))
    assert (answer.text, answer.usage) == ("x", None)


def test_a_budget_of_money_is_kept_with_a_server_that_says_what_it_took(provider: Provider) -> None:
    used = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.6}
    events = [chunk(content="x"), chunk("stop"), {"choices": [], "usage": used}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + DONE
    provider.answer = Answer(body.encode(), framing="chunked")
    day = sa.Budget(cost_usd=1).shared()
    agent = sa.Agent(model_for("openai-chat", provider.url), defaults=False, budget=day)
    assert [agent.run("hi").text for _ in range(2)] == ["x", "x"]
    with pytest.raises(sa.BudgetExceeded, match="budget of 1 cost_usd is used up"):
        agent.run("hi")
    assert len(provider.requests) == 2
    assert day.meter.usage.cost_usd == pytest.approx(1.2)


def test_openais_own_server_is_not_asked_when_money_is_limited() -> None:
    agent = sa.Agent(sa.OpenAIChatModel("gpt-x", "k"), budget=sa.Budget(cost_usd=1))
    with pytest.raises(sa.BudgetExceeded, match=r"give its prices with Priced\(model"):
        agent.run("hi")
