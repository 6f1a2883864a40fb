from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import agent_of, call, results, roles, session_of, unanswered


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    return f"saw {at}"


@sa.tool
def ask(question: str = "?") -> Any:
    """Ask a person."""
    return sa.Interrupt("tool", message=question)


@sa.tool
def submit(answer: str = "") -> str:
    """Submit."""
    if answer == "bad":
        raise ValueError("not good enough")
    return f"submitted {answer}"


@sa.tool
def hand_in(answer: str = "") -> str:
    """Hand in."""
    return f"handed in {answer}"


TOOLS = [look, ask, submit, hand_in]


def until(*turns: Any, names: Any = "submit", **options: Any) -> sa.Agent:
    return agent_of(*turns, tools=TOOLS, until_tool=names, **options)


def hit(result: sa.RunResult) -> str:
    assert result.status == "completed"
    assert result.tool_result is not None
    return result.tool_result.text


@pytest.mark.spec("S1.2.11")
@pytest.mark.parametrize("names", [None, [], ()])
def test_without_names_it_is_off(names: Any) -> None:
    result = until(call("submit", answer="1"), "done", names=names).run("go")
    assert (result.text, result.tool_result) == ("done", None)


@pytest.mark.spec("S1.2.11")
def test_of_several_in_one_turn_the_first_in_call_order_counts() -> None:
    turn = [call("look", "l"), call("hand_in", "h", answer="1"), call("submit", "s", answer="2")]
    result = until(turn, names=["submit", "hand_in"]).run("go")
    assert hit(result) == "handed in 1"
    assert results(result.state) == ["saw ", "handed in 1", "submitted 2"]
    assert not unanswered(result.state.messages)


@pytest.mark.spec("S1.2.11")
def test_a_refused_name_lists_what_is_missing_and_what_there_is() -> None:
    for option in ("until_tool", "until_tool_success"):
        with pytest.raises(sa.ConfigurationError, match=r"nothing, never.*look, ask, submit"):
            agent_of("x", tools=TOOLS, **{option: ["nothing", "submit", "never"]})


@pytest.mark.spec("S1.2.12")
def test_a_run_that_waited_for_another_gate_still_ends_at_its_tool() -> None:
    agent = until(
        call("look", "l", at="sky"), call("submit", "s", answer="42"), interrupt_on={"look": True}
    )
    waiting = agent.run("go")
    done = agent.resume(waiting, sa.Approve())
    assert hit(done) == "submitted 42"
    assert results(done.state) == ["saw sky", "submitted 42"]
    session = session_of(
        call("look", "l"),
        call("submit", "s", answer="1"),
        tools=TOOLS,
        until_tool="submit",
        interrupt_on={"look": True},
    )
    session.send("go").result()
    assert hit(session.resume(sa.Approve()).result()) == "submitted 1"


@pytest.mark.spec("S1.2.12")
def test_a_run_that_was_asked_something_still_ends_at_its_tool() -> None:
    agent = until(call("ask"), call("submit", "s", answer="42"))
    assert hit(agent.resume(agent.run("go"), sa.Respond("!"))) == "submitted 42"


@pytest.mark.spec("S1.2.13")
def test_an_approved_tool_ends_the_run_at_once_and_a_rejected_one_does_not_count() -> None:
    options: dict[str, Any] = {"interrupt_on": {"submit": True}}
    agent = until(call("submit", answer="1"), **options)
    done = agent.resume(agent.run("go"), sa.Approve())
    assert hit(done) == "submitted 1"
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]
    agent = until(call("submit", answer="1"), **options)
    assert hit(agent.resume(agent.run("go"), sa.Edit({"answer": "2"}))) == "submitted 2"

    agent = until(call("submit", answer="1"), call("submit", "c2", answer="2"), **options)
    again = agent.resume(agent.run("go"), sa.Reject("better"))
    assert again.status == "interrupted"
    assert hit(agent.resume(again, sa.Approve())) == "submitted 2"


@pytest.mark.spec("S1.2.13")
def test_a_rejected_call_does_not_count_later_either() -> None:
    turn = [call("submit", "s", answer="1"), call("ask", "a")]
    agent = until(turn, call("submit", "c2", answer="2"), interrupt_on={"submit": True})
    asked = agent.resume(agent.run("go"), sa.Reject())
    assert asked.interrupt is not None
    assert asked.interrupt.tool_call_ids == ["a"]
    again = agent.resume(asked, sa.Respond("!"))
    assert again.status == "interrupted"  # the next submit waits: the first was never run


@pytest.mark.spec("S1.2.12", "S1.2.5")
def test_a_hit_beside_a_question_counts_once_the_question_is_answered() -> None:
    turn = [call("submit", "s", answer="1"), call("ask", "a")]
    agent = until(turn)
    waiting = agent.run("go")
    assert (waiting.status, waiting.tool_result) == ("interrupted", None)
    done = agent.resume(waiting, sa.Respond("!"))
    assert hit(done) == "submitted 1"
    assert results(done.state) == ["submitted 1", "!"]


def test_a_tool_that_asks_ends_the_run_with_the_answer() -> None:
    agent = until(call("ask"), names="ask")
    assert hit(agent.resume(agent.run("go"), sa.Respond("because"))) == "because"


@pytest.mark.spec("P17")
def test_a_call_that_was_cut_does_not_count() -> None:
    cut = sa.Message.assistant("", [call("submit")], stop_reason="max_tokens")
    assert hit(until(cut, call("submit", "c2", answer="2")).run("go")) == "submitted 2"


def test_a_refusal_is_not_a_hit() -> None:
    refused = sa.Message.assistant("", [call("look")], stop_reason="refusal")
    with pytest.raises(sa.ModelError, match="declined to answer") as raised:
        until(refused).run("go")
    assert raised.value.result.tool_result is None


@pytest.mark.spec("S1.2.14")
def test_only_success_ends_the_run_and_the_limit_still_holds() -> None:
    tries = [call("submit", f"c{n}", answer="bad") for n in range(9)]
    agent = agent_of(*tries, tools=TOOLS, until_tool_success="submit", max_runs=5)
    with pytest.raises(sa.MaxRunsExceeded) as raised:  # and not the failure count
        agent.run("go")
    assert len(agent.model.requests) == 5  # type: ignore[attr-defined]
    assert not unanswered(raised.value.result.state.messages)
    with pytest.raises(sa.ConfigurationError, match="exclude each other"):
        agent_of("x", tools=TOOLS, until_tool="look", until_tool_success="submit")


@pytest.mark.spec("S1.2.14")
def test_of_two_tries_in_one_turn_the_good_one_counts() -> None:
    turn = [call("submit", "a", answer="bad"), call("submit", "b", answer="good")]
    result = agent_of(turn, tools=TOOLS, until_tool_success=["submit"]).run("go")
    assert hit(result) == "submitted good"
    assert roles(result.messages) == ["user", "assistant", "tool"]


@pytest.mark.spec("A2.3.7")
def test_a_turn_whose_tools_all_say_so_ends_the_run() -> None:
    @sa.tool
    def leave(really: bool = True) -> Any:
        return sa.ToolOutput("bye", terminate=really)

    def run(*really: bool) -> sa.RunResult:
        turn = [call("leave", f"c{n}", really=value) for n, value in enumerate(really)]
        return agent_of(turn, "still here", tools=[leave]).run("go")

    for together in ((True,), (True, True)):
        ended = run(*together)
        assert roles(ended.messages) == ["user", "assistant", "tool"]
        assert ended.status == "completed"
    for apart in ((True, False), (False, True), (False, False), (True, False, True)):
        assert run(*apart).text == "still here"
