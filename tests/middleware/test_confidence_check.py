"""Answers of low confidence: the model is told to use its tools, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.middleware.confidence_check import stated_confidence
from tests.talking import call


@sa.tool
def look_up() -> str:
    """Look something up."""
    return "1048"


def agent_of(*turns: Any, minimum: float = 80, tools: Any = (look_up,), **options: Any) -> sa.Agent:
    check = sa.ConfidenceCheck(minimum)
    model = sa.ScriptedModel(turns)
    return sa.Agent(model, tools=tools, middleware=[check], defaults=False, **options)


@pytest.mark.spec("R4.1.3")
@pytest.mark.parametrize("answer", ["Yes. Confidence: 80", "Yes. Confidence: 100 %", "Yes."])
def test_an_answer_that_is_sure_enough_or_says_nothing_of_it_is_final(answer: str) -> None:
    result = agent_of(answer, "never").run("go")
    assert result.text == answer
    assert result.model_calls == 1


@pytest.mark.spec("R4.1.3")
def test_one_that_is_not_is_followed_by_one_more_prompt_which_counts() -> None:
    result = agent_of("1050? Confidence: 50", call("look_up"), "1048. Confidence: 90").run("go")
    assert [m.role for m in result.messages] == [
        *("user", "assistant", "user", "assistant", "tool", "assistant")
    ]
    assert "50 of 100" in result.messages[2].text
    assert result.model_calls == 3


@pytest.mark.spec("R4.1.3")
def test_without_a_tool_nobody_is_asked_again() -> None:
    assert agent_of("1050? Confidence: 50", "never", tools=()).run("go").model_calls == 1


def test_who_uses_no_tool_in_between_is_not_asked_again() -> None:
    assert agent_of(*["1050? Confidence: 50"] * 2, "never").run("go").model_calls == 2


@pytest.mark.spec("R4.1.3")
def test_it_ends_with_the_limit_of_model_calls() -> None:
    unsure = "1050? Confidence: 50"
    turns = [turn for n in range(9) for turn in (unsure, call("look_up", f"c{n}"))]
    result = agent_of(*turns, max_runs=5).run("go")
    assert result.model_calls == 5
    assert result.status == "completed"


def test_an_earlier_conversation_has_no_say() -> None:
    agent = agent_of(*["1050? Confidence: 50"] * 2, "Yes. Confidence: 10", "Still. Confidence: 10")
    first = agent.run("go")
    again = agent.run("and now?", state=first)
    assert first.model_calls == again.model_calls == 2


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("It is so.\n\n**Confidence:** 95 %", 95),
        ("confidence = 7/100", 7),
        ("Confidence: 300", 100),
        ("Confidence: 87.5", 87),
        ("My confidence is high.", None),
        ("Confidence: 20 at first, then … Confidence: 90", 90),
        ("Confidence: 20. " + "x" * 300, None),
        ("", None),
    ],
)
def test_how_sure_an_answer_is_stands_at_its_end(text: str, stated: int | None) -> None:
    assert stated_confidence(text) == stated


@pytest.mark.parametrize("wrong", [-1, 101, "80", True])
def test_a_minimum_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="minimum"):
        sa.ConfidenceCheck(wrong)
