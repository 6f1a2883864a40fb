"""MCP: what waits for people as forms, and what is filled in as answers; a map."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.types import CallToolResult, ElicitRequestFormParams, Tool

from sagents_nb.errors import ConfigurationError, InvalidDecision, StaleApproval
from sagents_nb.hub import Blueprint
from sagents_nb.hub.dialects.mcp import (
    Filled,
    Form,
    answers_of,
    arguments_of,
    forms_of,
    refusal_of,
    result_of,
    tool_of,
    waits_text,
)
from sagents_nb.hub.vocabulary import SUB_AGENTS
from sagents_nb.interrupts import ActionRequest, Approve, Edit, Interrupt, Reject, Respond

LONELY = "half a \ud83d"


def asking(
    arguments: dict[str, Any] | None = None,
    allowed: tuple[str, ...] = ("approve", "edit", "reject"),
    type: str = "hitl",
    **more: Any,
) -> Interrupt:
    """One call "c1" of the tool "pay" that waits."""
    request = ActionRequest(
        "c1", "pay", arguments or {"amount": 5}, None, allowed, "d1", more.pop("defaults", {})
    )
    return Interrupt(type, (request,), id="a1", **more)


def form_of(waiting: Interrupt) -> Form:
    """The only one, which the SDK takes."""
    (form,) = forms_of(waiting).values()
    ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
    json.dumps(form.message).encode()
    return form


def answered(waiting: Interrupt, action: str = "accept", **content: Any) -> Any:
    """What was decided on the call."""
    answers = answers_of(waiting, {"a1.d1": Filled(action, content)})
    assert answers is not None
    assert (answers.id, answers.digests) == ("a1", {"c1": "d1"})
    return answers.decisions["c1"]


def test_a_form_shows_first_what_would_run_and_then_what_is_said_of_it() -> None:
    form = form_of(asking(defaults={"currency": "EUR"}, message="It is only a small amount."))
    assert form.message.split("\n") == [
        "Run pay?",
        *("{", '  "amount": 5', "}"),
        *("And what the call leaves out: {", '  "currency": "EUR"', "}"),
        "It is only a small amount.",
    ]


def test_a_form_offers_what_is_allowed() -> None:
    offered = [
        list(form_of(asking(allowed=allowed)).schema["properties"])
        for allowed in (("approve", "edit", "reject"), ("approve", "reject"), ("approve",))
    ]
    assert offered == [["approved", "reason", "arguments"], ["approved", "reason"], ["approved"]]


def test_half_characters_are_shown_and_told_as_what_can_be() -> None:
    assert "half a ?" in form_of(asking({"to": LONELY})).message
    for told in (result_of(LONELY, "t", "completed"), refusal_of(LONELY)):
        CallToolResult.model_validate(told).model_dump_json()


def test_an_approval_is_taken_for_what_it_is() -> None:
    assert answered(asking(), approved=True) == Approve()
    assert answered(asking(), approved=True, arguments='{"amount": 5}') == Approve()
    assert answered(asking(), approved=True, arguments='{"amount": 6}') == Edit({"amount": 6})
    assert answered(asking(), approved=False, reason="No.") == Reject("No.")
    # Who rejects it has nothing run, whatever else is in the form.
    assert answered(asking(), approved=False, arguments='{"amount": 6}') == Reject("Rejected.")
    assert answered(asking(), "decline") == Reject("Declined.")


@pytest.mark.parametrize("approved", [None, "yes", "true", 1, "approved"])
def test_nothing_but_true_approves(approved: Any) -> None:
    with pytest.raises(InvalidDecision, match="payload for pay"):
        answered(asking(), approved=approved)


def test_a_change_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(InvalidDecision, match="cannot be changed"):
        answered(asking(allowed=("approve", "reject")), approved=True, arguments="{}")


@pytest.mark.parametrize("text", ["[1]", "Grace", "{", "[" * 100_000, "1" * 5_000])
def test_other_arguments_are_a_json_object(text: str) -> None:
    with pytest.raises(InvalidDecision, match="are no JSON object"):
        answered(asking(), approved=True, arguments=text)


def test_whether_a_call_ran_is_one_of_three_answers_and_is_not_declined() -> None:
    waiting = asking(allowed=("respond",), type="in_doubt")
    schema = form_of(waiting).schema
    assert schema["properties"]["answer"]["enum"] == ["ran", "did not run", "retry"]
    assert answered(waiting, answer="ran") == Respond("ran")
    assert answers_of(waiting, {"a1.d1": Filled("decline")}) is None


def test_a_question_of_a_tool_is_answered_in_words_or_declined() -> None:
    waiting = asking(allowed=("respond", "reject"), type="payment", message="How?")
    form = form_of(waiting)
    assert form.message.startswith("pay waits for an answer.\n")
    assert form.message.endswith("How?")
    assert answered(waiting, answer="cash") == Respond("cash")
    assert answered(waiting, "decline") == Reject("Cancelled.")
    with pytest.raises(InvalidDecision):
        answered(waiting)


def question(**more: Any) -> Interrupt:
    """Which of two colours?"""
    options = [{"label": "Dark red", "value": "red"}, {"label": "blue", "value": "blue"}]
    data = {"question": "Which?", "response_type": "single_select", "options": options, **more}
    return asking(data, ("respond", "reject"), "ask_user", data={**data, "by": "AskUser"})


def test_a_question_shows_what_its_options_mean() -> None:
    form = form_of(question(context="For the wall."))
    assert form.message == "Which?\nFor the wall.\nred: Dark red"
    assert form.schema["properties"]["answer"]["enum"] == ["red", "blue"]
    assert form.schema["required"] == ["answer"]


def test_an_answer_in_other_words_is_one_where_it_is_offered() -> None:
    asked = question(allow_other=True)
    assert form_of(asked).schema["required"] == []
    said = answered(asked, other="Teal.").answer
    assert said == {"selected": ["other"], "other_text": "Teal."}
    assert answered(asked, answer="red").answer == {"selected": ["red"], "other_text": None}


def test_what_other_threads_are_waited_for_is_asked_nobody() -> None:
    waiting = asking(type="tool", data={SUB_AGENTS: {"childThreadId": "t"}})
    assert forms_of(waiting) == {}
    assert forms_of(Interrupt("halt", message="Closed.", id="a1")) == {}
    told = waits_text(Interrupt("halt", message="Closed.", id="a1"), "POST /there")
    assert "Closed." in told
    assert "POST /there" in told


def test_an_answer_to_what_waits_no_more_decides_nothing() -> None:
    with pytest.raises(StaleApproval):
        answers_of(asking(), {"a0.d0": Filled("accept", {"approved": True})})
    with pytest.raises(InvalidDecision, match="answered at once"):
        answers_of(asking(), {})


def test_a_tool_says_what_it_is_for_and_how_to_go_on() -> None:
    tool = Tool.model_validate(tool_of(Blueprint("clerk", "Secret words.")))
    assert tool.description is not None
    assert tool.description.startswith("Ask the agent clerk.\n")
    assert "thread_id" in tool.description
    assert "Secret" not in tool.model_dump_json()


@pytest.mark.parametrize("given", [None, {}, {"message": "  "}, {"message": 1}, {"text": "Hi"}])
def test_arguments_that_say_nothing_are_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        arguments_of(given)
