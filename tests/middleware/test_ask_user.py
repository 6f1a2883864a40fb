from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import ToolExecutionEnd
from tests.middleware.calling import call as call_tool
from tests.middleware.calling import tool_of
from tests.talking import agent_of, call, of, results, roles, session_of, unanswered

COLOURS = [
    {"label": "Deep red", "value": "r"},
    {"label": "Blue", "value": "b", "description": "like the sea"},
    {"label": "green", "value": "green"},
]
ONE: dict[str, Any] = {
    "question": "Which colour?",
    "response_type": "single_select",
    "options": COLOURS,
}
SEVERAL = {**ONE, "response_type": "multi_select"}
FREE: dict[str, Any] = {"question": "What is it for?", "response_type": "freeform"}


def asking(arguments: dict[str, Any], *more: Any, **options: Any) -> sa.Session:
    """A session whose model has just asked that."""
    session = session_of(
        call("ask_user", **arguments), *(more or ["I see"]), middleware=[sa.AskUser(**options)]
    )
    session.send("go").result()
    return session


# asking


@pytest.mark.spec("S1.4.1")
def test_a_question_interrupts_the_run_and_says_all_that_people_need() -> None:
    session = asking({**ONE, "allow_other": True, "context": "For the door."})
    interrupt = session.interrupt
    assert session.status == "interrupted"
    assert interrupt is not None
    assert (interrupt.type, interrupt.message) == ("ask_user", "Which colour?")
    (request,) = interrupt.action_requests
    assert (request.tool_call_id, request.tool_name) == ("c1", "ask_user")
    assert request.display_text == "Which colour?"
    asked = {k: v for k, v in interrupt.data.items() if k != "by"}
    assert asked == request.arguments
    assert asked == {
        "question": "Which colour?",
        "response_type": "single_select",
        "options": [
            {"label": "Deep red", "value": "r"},
            {"label": "Blue", "value": "b", "description": "like the sea"},
            {"label": "green", "value": "green"},
        ],
        "allow_other": True,
        "allow_cancel": True,
        "context": "For the door.",
    }


@pytest.mark.spec("S1.4.1")
def test_other_words_are_not_allowed_and_cancelling_is_unless_the_model_says_otherwise() -> None:
    data = asking(FREE).interrupt.data  # type: ignore[union-attr]
    assert (data["allow_other"], data["allow_cancel"], data["context"]) == (False, True, None)


@pytest.mark.spec("S1.4.2")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": " "}, "question is empty"),
        ({"response_type": "yes_no"}, "single_select or multi_select or freeform"),
        ({"options": []}, "2 to 10 options, not 0"),
        ({"options": COLOURS[:1]}, "2 to 10 options, not 1"),
        (
            {"options": [{"label": str(n), "value": str(n)} for n in range(11)]},
            "2 to 10 options, not 11",
        ),
        ({"response_type": "freeform"}, "takes no options"),
        ({"options": [COLOURS[0], {"label": "", "value": "x"}]}, "label and a value"),
        ({"options": [COLOURS[0], {"label": "x", "value": " "}]}, "label and a value"),
        ({"options": [COLOURS[0], {"label": "other red", "value": "r"}]}, "same value"),
        ({"options": [{"label": "x"}]}, "Invalid arguments"),
    ],
)
@pytest.mark.parametrize("kind", ["single_select", "multi_select"])
def test_a_question_that_cannot_be_asked_is_an_error_for_the_model(
    change: dict[str, Any], said: str, kind: str
) -> None:
    session = asking({**ONE, "response_type": kind, **change})
    assert session.status == "idle"
    (result,) = session.messages[2].tool_results
    assert result.is_error
    assert said in result.text
    assert session.messages[-1].text == "I see"


@pytest.mark.spec("S1.4.2")
def test_a_type_that_is_not_enabled_is_an_error_for_the_model() -> None:
    session = asking(FREE, response_types=["single_select"])
    assert "response_type is single_select" in results(session.state)[0]


# options


@pytest.mark.spec("S1.4.3")
@pytest.mark.parametrize("types", [["yes_no"], ["freeform", "slider"], []])
def test_a_response_type_that_does_not_exist_is_refused_at_once(types: list[str]) -> None:
    with pytest.raises(sa.ConfigurationError, match="single_select"):
        sa.AskUser(response_types=types)


@pytest.mark.spec("S1.4.3")
def test_what_is_forced_is_not_the_models_to_say() -> None:
    def fields(**options: Any) -> set[str]:
        return set(tool_of(sa.AskUser(**options), "ask_user").schema["properties"])

    free = {"question", "response_type", "options", "allow_other", "allow_cancel", "context"}
    assert fields() == free
    assert fields(allow_other=True) == free - {"allow_other"}
    assert fields(allow_other=False, allow_cancel=False) == free - {"allow_other", "allow_cancel"}
    schema = tool_of(sa.AskUser(response_types=["freeform"]), "ask_user").schema
    assert schema["properties"]["response_type"]["enum"] == ["freeform"]


@pytest.mark.spec("S1.4.3")
def test_what_is_forced_holds_whatever_the_model_sends() -> None:
    tool = tool_of(sa.AskUser(allow_other=True, allow_cancel=False), "ask_user")
    arguments = tool.arguments.check({**ONE, "allow_other": False})
    assert tool.arguments.context_parameter == "ctx"
    interrupt = tool(**arguments, ctx=type("Context", (), {"tool_call_id": "c1"}))
    assert (interrupt.data["allow_other"], interrupt.data["allow_cancel"]) == (True, False)


def test_asking_wrongly_is_no_interrupt_also_outside_of_a_run() -> None:
    output = call_tool(tool_of(sa.AskUser(), "ask_user"), {**ONE, "question": ""})
    assert output.is_error


# answering


@pytest.mark.spec("S1.4.4", "S1.4.5")
@pytest.mark.parametrize(
    ("arguments", "answer", "text", "labels"),
    [
        (ONE, {"selected": ["b"]}, "The user chose: Blue (value 'b').", ["Blue"]),
        (ONE, {"selected": ["green"], "other_text": None}, "The user chose: green.", ["green"]),
        (ONE, "r", "The user chose: Deep red (value 'r').", ["Deep red"]),
        (
            {**ONE, "allow_other": True},
            {"selected": ["other"], "other_text": " teal "},
            "The user answered in their own words: teal",
            ["teal"],
        ),
        (
            {**ONE, "allow_other": True},
            {"other_text": "teal"},
            "The user answered in their own words: teal",
            ["teal"],
        ),
        (
            {**ONE, "allow_other": True},
            "teal",
            "The user answered in their own words: teal",
            ["teal"],
        ),
        (
            SEVERAL,
            {"selected": ["green", "b"]},
            "The user chose: green, Blue (value 'b').",
            ["green", "Blue"],
        ),
        (SEVERAL, ["b"], "The user chose: Blue (value 'b').", ["Blue"]),
        (
            {**SEVERAL, "allow_other": True},
            {"selected": ["b", "other"], "other_text": "teal"},
            "The user chose: Blue (value 'b').\nThe user answered in their own words: teal",
            ["Blue", "teal"],
        ),
        (
            FREE,
            {"other_text": "For the door"},
            "The user answered in their own words: For the door",
            ["For the door"],
        ),
        (
            FREE,
            "For the door",
            "The user answered in their own words: For the door",
            ["For the door"],
        ),
    ],
)
def test_an_answer_takes_the_place_of_the_question_and_the_agent_goes_on(
    arguments: dict[str, Any], answer: Any, text: str, labels: list[str]
) -> None:
    session = asking(arguments)
    (placeholder,) = session.messages[2].tool_results
    assert placeholder.is_interrupt
    heard: list[Any] = []
    session.subscribe(heard.append)
    assert session.resume(sa.Respond(answer)).result().text == "I see"
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant"]
    (result,) = session.messages[2].tool_results
    assert (result.text, result.metadata["answer"]) == (text, labels)
    assert (result.is_error, result.is_interrupt) == (False, False)
    assert [e.result for e in of(ToolExecutionEnd, heard)] == [result]
    assert not unanswered(session.messages)
    _, request = session.agent.model.requests  # type: ignore[attr-defined]
    assert [r for m in request.messages for r in m.tool_results] == [result]


@pytest.mark.spec("S1.4.4")
@pytest.mark.parametrize(
    ("arguments", "answer", "said"),
    [
        (ONE, {"selected": []}, "exactly one answer, not 0"),
        (ONE, {}, "exactly one answer, not 0"),
        (ONE, {"selected": ["r", "b"]}, "exactly one answer, not 2"),
        (ONE, {"selected": ["Blue"]}, "has no 'Blue'; it has r, b, green"),
        (ONE, {"selected": ["other"], "other_text": "teal"}, "takes only r, b, green"),
        (ONE, {"other_text": "teal"}, "takes only r, b, green"),
        (ONE, "teal", "has no 'teal'"),
        ({**ONE, "allow_other": True}, {"selected": ["other"]}, "needs 'other_text'"),
        (
            {**ONE, "allow_other": True},
            {"selected": ["other"], "other_text": " "},
            "needs 'other_text'",
        ),
        (
            {**ONE, "allow_other": True},
            {"selected": ["b"], "other_text": "teal"},
            "exactly one answer, not 2",
        ),
        (SEVERAL, {"selected": []}, "at least one answer"),
        (SEVERAL, {"selected": ["b", "b"]}, "one option twice"),
        (SEVERAL, {"selected": ["b", "x"]}, "has no 'x'"),
        (FREE, {"other_text": ""}, "give 'other_text'"),
        (FREE, "  ", "give 'other_text'"),
        (FREE, {"selected": ["b"], "other_text": "x"}, "give 'other_text'"),
        ({**ONE, "allow_cancel": False}, {"cancel": True}, "cannot be cancelled"),
        (ONE, {"chosen": ["b"]}, "'selected'"),
        (ONE, {"selected": "b"}, "'selected'"),
        (ONE, {"selected": [1]}, "'selected'"),
        (ONE, None, "'selected'"),
        (ONE, 3, "'selected'"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_question_still_waits(
    arguments: dict[str, Any], answer: Any, said: str
) -> None:
    session = asking(arguments)
    before = session.state
    with pytest.raises(sa.InvalidDecision, match="The question") as raised:
        session.resume(sa.Respond(answer))
    assert said in str(raised.value)
    assert raised.value.tool_call_id == session.interrupt.tool_call_ids[0]
    assert (session.status, session.state) == ("interrupted", before)
    right: Any = "For the door" if arguments is FREE else {"selected": ["b"]}
    assert session.resume(sa.Respond(right)).result().text == "I see"


@pytest.mark.spec("S1.4.4")
@pytest.mark.parametrize("decision", [sa.Approve(), sa.Edit({"question": "?"}), "r", True])
def test_a_question_is_answered_not_approved(decision: Any) -> None:
    session = asking(ONE)
    with pytest.raises(sa.InvalidDecision):
        session.resume(decision)
    assert session.status == "interrupted"


@pytest.mark.spec("S1.4.4")
@pytest.mark.parametrize(
    "decision", [sa.Respond({"cancel": True}), {"type": "respond", "answer": {"cancel": True}}]
)
def test_a_cancelled_question_tells_the_model_to_stop_and_wait(decision: Any) -> None:
    session = asking(ONE)
    assert session.resume(decision).result().text == "I see"
    (result,) = session.messages[2].tool_results
    assert "Stop here" in result.text
    assert "wait for the user" in result.text
    assert (result.is_error, result.metadata["answer"]) == (False, None)


def test_where_nobody_can_answer_the_question_is_left_unanswered() -> None:
    session = asking({**ONE, "allow_cancel": False})
    session.reject(message="Nobody is here.").result()  # type: ignore[union-attr]
    assert results(session.state)[0].endswith("They said: Nobody is here.")


@pytest.mark.spec("S1.3.12")
def test_several_questions_of_one_turn_are_answered_each_by_its_own_id() -> None:
    turn = [
        call("ask_user", "a", **ONE),
        call("ask_user", "b", **FREE),
        call("plain", "c", question="And?"),
    ]

    def plain(question: str) -> Any:
        return sa.Interrupt("tool", message=question)

    session = session_of(turn, "thanks", tools=[plain], middleware=[sa.AskUser()])
    session.send("go").result()
    assert session.interrupt is not None
    assert session.interrupt.tool_call_ids == ["a", "b", "c"]
    before = session.state
    answers = {"c": sa.Respond("yes"), "b": sa.Respond("a door"), "a": sa.Respond("b")}
    for bad in (
        {k: v for k, v in answers.items() if k != "b"},
        {**answers, "a": sa.Respond("nonsense")},
        {**answers, "d": sa.Respond("b")},
    ):
        with pytest.raises(sa.InvalidDecision):
            session.resume(bad)
        assert (session.status, session.state) == ("interrupted", before)
    assert session.resume(answers).result().text == "thanks"
    assert results(session.state) == [
        "The user chose: Blue (value 'b').",
        "The user answered in their own words: a door",
        "yes",
    ]


@pytest.mark.spec("S1.3.13")
def test_an_approved_question_is_then_asked_without_another_model_call() -> None:
    agent = agent_of(
        call("ask_user", **ONE),
        "thanks",
        middleware=[sa.AskUser()],
        interrupt_on={"ask_user": True},
    )
    gated = agent.run("go")
    assert gated.interrupt is not None
    assert gated.interrupt.type == "hitl"
    asked = agent.resume(gated, sa.Approve())
    assert asked.interrupt is not None
    assert asked.interrupt.type == "ask_user"
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]
    assert agent.resume(asked, sa.Respond("b")).text == "thanks"


def test_a_question_survives_a_restart_and_is_answered_there() -> None:
    session = asking(ONE)
    agent = agent_of("welcome back", middleware=[sa.AskUser()])
    fork = sa.Session.restore(session.export_state(), agent=agent)
    with pytest.raises(sa.InvalidDecision):
        fork.resume(sa.Respond("x"))
    assert fork.resume(sa.Respond("b")).result().text == "welcome back"
    assert results(fork.state) == ["The user chose: Blue (value 'b')."]


def test_a_question_that_a_crash_cut_off_is_asked_again_and_nobody_is_asked_whether_it_ran() -> (
    None
):
    (tool,) = sa.AskUser().tools()
    assert tool.idempotent
