"""How many tokens a model takes: known by its name, said by whoever made it, or not known."""

from __future__ import annotations

import pytest

import sagents_nb as sa
from sagents_nb.models.base import context_window
from sagents_nb.models.named import model_choices, named_model


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("anthropic:claude-sonnet-5-5", 1_000_000),
        ("anthropic:claude-opus-4-6", 1_000_000),
        ("anthropic:claude-opus-4-20250514", 200_000),
        ("anthropic:claude-3-5-haiku-latest", 200_000),
        ("openai:gpt-6.1-sol", 1_050_000),
        ("openai:gpt-4o-2024-11-20", 128_000),
        ("openai-chat:gpt-4.1", 1_047_576),
        ("openai:gpt-5.1-chat-latest", None),
        ("openai:gpt-6.1-sol-mini", None),
        ("anthropic:claude-opus-9", None),
        ("demo", None),
    ],
)
def test_a_model_that_is_listed_is_known_and_no_other_is_guessed(
    name: str, tokens: int | None
) -> None:
    assert context_window(named_model(name)) == tokens


def test_the_models_that_people_need_not_name_are_known() -> None:
    offered = [choice.name for choice in model_choices() if ":" in choice.name]
    assert offered
    assert all(context_window(named_model(name)) for name in offered)


def test_who_makes_a_model_may_say_it() -> None:
    model = sa.OpenAIChatModel("gemma", base_url="http://127.0.0.1:1/v1", context_window=8_192)
    assert context_window(model) == 8_192
    assert "context_window" not in model.options
    own = sa.ScriptedModel(["Hello."])
    own.context_window = 100
    assert context_window(own) == 100


def test_a_wrapped_model_has_that_of_the_one_it_asks_first() -> None:
    small, large = sa.ScriptedModel([]), sa.ScriptedModel([])
    small.context_window, large.context_window = 100, 200
    wrapped = sa.RecordedModel(sa.RetryingModel(sa.FallbackModel([small, large])), mode="off")
    assert context_window(wrapped) == 100
    wrapped.context_window = 50
    assert context_window(wrapped) == 50
