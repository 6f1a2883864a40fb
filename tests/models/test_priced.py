"""A model with prices says what its answers cost, wherever it stands and whoever asks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.models.base import tells_cost
from tests.models.loopback import Answer, Provider, ask, model_for, provider_of, recorded
from tests.talking import call

PRICES = {"input": 2.0, "output": 10.0, "cache_read": 0.5, "cache_write": 4.0}
# A thousand tokens of each kind.
USED = sa.Usage(1_000, 1_000, 1_000, 1_000)
COST = 0.0165


def answer(text: str = "Hello!", calls: Any = (), usage: sa.Usage | None = USED) -> sa.Message:
    return sa.Message.assistant(text, calls, usage=usage)


def scripted(*turns: Any) -> sa.ScriptedModel:
    return sa.ScriptedModel(turns or [answer()])


def priced(*turns: Any) -> sa.Priced:
    return sa.Priced(scripted(*turns), **PRICES)


def agent_with(model: sa.ChatModel, **options: Any) -> sa.Agent:
    return sa.Agent(model, replace_default_middleware=True, **options)


# What it costs


def test_each_kind_of_token_has_its_price() -> None:
    assert agent_with(priced()).run("hi").usage.cost_usd == pytest.approx(COST)


def test_the_cache_costs_as_much_as_the_input_unless_it_has_prices() -> None:
    model = sa.Priced(scripted(), input=2.0, output=10.0)
    assert agent_with(model).run("hi").usage.cost_usd == pytest.approx(0.016)
    free = sa.Priced(scripted(), input=2.0, output=10.0, cache_read=0)
    assert agent_with(free).run("hi").usage.cost_usd == pytest.approx(0.014)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [(sa.Usage(5, 5, cost_usd=0.25), 0.25), (sa.Usage(5, 5, cost_usd=0.0), 0.0)],
)
def test_an_answer_that_says_what_it_cost_is_believed(usage: sa.Usage, cost: float) -> None:
    assert agent_with(priced(answer(usage=usage))).run("hi").usage.cost_usd == cost


@pytest.mark.parametrize("usage", [None, sa.Usage()])
def test_an_answer_that_counts_no_tokens_is_not_said_to_be_free(usage: sa.Usage | None) -> None:
    agent = agent_with(priced(answer(usage=usage)), budget=sa.Budget(cost_usd=1))
    with pytest.raises(sa.BudgetExceeded, match="does not say what its calls cost"):
        agent.run("hi")


@pytest.mark.parametrize("much", [10**16, 10**400, float("inf")])
def test_more_tokens_than_can_be_have_the_price_of_as_many_as_count(much: Any) -> None:
    model = sa.Priced(scripted(answer(usage=sa.Usage(much, 0))), input=2.0, output=10.0)
    usage = agent_with(model, budget=sa.Budget(cost_usd=1)).run("hi").usage
    assert usage == sa.Usage(2**53, 0, cost_usd=2**53 * 2.0 / 1e6)


@pytest.mark.parametrize("wrong", [-5, float("nan"), "many"])
def test_only_what_is_a_number_of_tokens_has_a_price(wrong: Any) -> None:
    model = sa.Priced(scripted(answer(usage=sa.Usage(wrong, 100))), input=2.0, output=10.0)
    usage = agent_with(model, budget=sa.Budget(cost_usd=1)).run("hi").usage
    assert usage == sa.Usage(0, 100, cost_usd=0.001)


@pytest.mark.parametrize("cost", [float("nan"), -1.0, "much"])
def test_a_cost_that_is_no_number_has_the_prices_take_its_place(cost: Any) -> None:
    model = priced(answer(usage=sa.Usage(5, 100, cost_usd=cost)))
    usage = agent_with(model, budget=sa.Budget(cost_usd=1)).run("hi").usage
    assert usage.cost_usd == pytest.approx((5 * PRICES["input"] + 100 * PRICES["output"]) / 1e6)


# Of what a provider counts as input OpenAI's includes the cached tokens, and Anthropic's does not:
# the same counts are other tokens. The streams were recorded, and only such counts changed.
@pytest.mark.parametrize(
    ("stream", "counts", "usage", "millionths"),
    [
        (
            "openai_chat_text",
            {b'"cached_tokens":0': b'"cached_tokens":30,"cache_write_tokens":8'},
            sa.Usage(40, 9, 30, 8),  # of 78
            80 + 90 + 15 + 32,
        ),
        (
            "openai_responses_text",
            {b'"cached_tokens":0': b'"cached_tokens":200,"cache_write_tokens":8'},
            sa.Usage(70, 9, 200, 8),  # of 278
            140 + 90 + 100 + 32,
        ),
        (
            "anthropic_tool_use",
            {
                b'"cache_read_input_tokens":0': b'"cache_read_input_tokens":200',
                b'"cache_creation_input_tokens":0': b'"cache_creation_input_tokens":100',
            },
            sa.Usage(377, 65, 200, 100),
            754 + 650 + 100 + 400,
        ),
        ("anthropic_thinking", {}, sa.Usage(43, 282), 86 + 2820),  # thoughts are output already
    ],
)
def test_no_token_of_a_provider_is_paid_twice(
    provider: Provider,
    stream: str,
    counts: dict[bytes, bytes],
    usage: sa.Usage,
    millionths: float,
) -> None:
    body = recorded(stream)
    for old, new in counts.items():
        assert old in body
        body = body.replace(old, new)
    provider.answer = Answer(body, framing="chunked")
    model = sa.Priced(model_for(provider_of(stream), provider.url), **PRICES)
    message = ask(model).message
    assert message is not None
    assert message.usage is not None
    assert replace(message.usage, cost_usd=None) == usage
    assert message.usage.cost_usd == pytest.approx(millionths / 1_000_000)


# Where it stands

BUSY = sa.ModelError("Busy.", kind="overloaded", retry_after=0.0)


async def at_once(seconds: float) -> None:
    """Waits for nothing."""


@pytest.mark.parametrize(
    "made",
    [
        lambda at: sa.Limited(priced(), concurrent=1),
        lambda at: sa.Priced(sa.Limited(scripted(), concurrent=1), **PRICES),
        lambda at: sa.FallbackModel([priced(BUSY), priced()]),
        lambda at: sa.Priced(sa.FallbackModel([scripted(BUSY), scripted()]), **PRICES),
        lambda at: sa.RetryingModel(priced(BUSY, answer()), sleep=at_once),
        lambda at: sa.Priced(sa.RetryingModel(scripted(BUSY, answer()), sleep=at_once), **PRICES),
        lambda at: sa.RecordedModel(priced(), at),
        lambda at: sa.Priced(sa.RecordedModel(scripted(), at), **PRICES),
        lambda at: sa.Priced(priced(), input=50, output=50),
    ],
    ids=[
        *("in Limited", "around Limited", "in FallbackModel", "around FallbackModel"),
        *("in RetryingModel", "around RetryingModel", "in RecordedModel", "around RecordedModel"),
        "in another",
    ],
)
def test_it_is_paid_for_once_wherever_the_prices_are(made: Any, tmp_path: Path) -> None:
    model = made(tmp_path / "cache")
    assert tells_cost(model)
    result = agent_with(model, budget=sa.Budget(cost_usd=1)).run("hi")
    assert result.text == "Hello!"
    assert result.usage.cost_usd == pytest.approx(COST)


def test_prices_are_no_part_of_what_was_recorded(tmp_path: Path) -> None:
    place = tmp_path / "cassette.json"
    agent_with(sa.RecordedModel(scripted(), place)).run("hi")
    for model in (
        sa.RecordedModel(priced("never"), place, "replay"),
        sa.Priced(sa.RecordedModel(scripted("never"), place, "replay"), **PRICES),
    ):
        result = agent_with(model).run("hi")
        assert (result.text, result.usage.cost_usd) == ("Hello!", 0.0)


def test_an_agent_retries_a_priced_model_as_the_model_itself() -> None:
    patient = priced(BUSY, answer())
    assert agent_with(patient).run("hi").text == "Hello!"
    hasty = scripted(BUSY, answer())
    hasty.retries = 0
    with pytest.raises(sa.ModelError, match="Busy"):
        agent_with(sa.Priced(hasty, **PRICES)).run("hi")


def test_a_model_that_takes_the_place_of_another_has_its_own_prices() -> None:
    down = sa.ModelError("It is down.")
    other = sa.Priced(scripted(), input=1.0, output=1.0, cache_read=1.0, cache_write=1.0)
    agent = agent_with(priced(down), fallback_models=[other], budget=sa.Budget(cost_usd=1))
    assert agent.run("hi").usage.cost_usd == pytest.approx(0.004)


def test_sub_agents_are_paid_for_from_the_same_budget() -> None:
    helper = sa.Agent(priced(), name="helper", description="Helps.", defaults=False)
    asks = call("task", instructions="Help!", subagent_type="helper")
    model = priced(answer("", [asks]), answer("Done."))
    result = sa.Agent(model, subagents=[helper], budget=sa.Budget(cost_usd=1)).run("go")
    assert result.text == "Done."
    assert result.usage.cost_usd == pytest.approx(3 * COST)


def test_the_rows_of_a_map_say_what_they_cost_and_stop_at_their_budget() -> None:
    agent = agent_with(priced(*[answer()] * 3))
    money = sa.Budget(cost_usd=1.5 * COST)
    rows = agent.map(["a", "b", "c"], budget=money, concurrency=1, progress=False)
    assert list(rows.status) == ["completed", "completed", "not_run"]
    assert list(rows.cost_usd[:2]) == pytest.approx([COST] * 2)


def test_what_is_extracted_has_its_price() -> None:
    submits = answer("", [call("submit", value="Oslo")])
    result = agent_with(priced(submits)).extract("Where?", str, full=True)
    assert result.value == "Oslo"
    assert result.usage.cost_usd == pytest.approx(COST)


def test_the_column_of_a_session_is_filled() -> None:
    session = sa.Session(agent_with(priced(answer(), answer())))
    for prompt in ("hi", "ho"):
        session.send(prompt).result()
    assert list(session.to_frame("usage").cost_usd) == pytest.approx([COST] * 2)


# What it is


def test_it_is_its_model_by_name_errors_and_recordings() -> None:
    model = sa.Priced("openai-chat:gemma", input=0, output=0)
    assert (model.name, repr(model)) == ("gemma", "OpenAIChatModel('gemma')")
    assert model.identity() == model.inner.identity()
    known = sa.Priced("anthropic:claude-sonnet-5-5", input=0, output=0)
    assert known.inner.context_window is not None


@pytest.mark.parametrize(
    "wrong", [{"input": -1}, {"output": "10 $"}, {"cache_read": True}, {"cache_write": 1e999}]
)
def test_a_price_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(sa.ConfigurationError, match=rf"Priced\({name}=…\) is .*dollars"):
        sa.Priced("demo", **{**PRICES, **wrong})
