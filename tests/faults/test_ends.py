"""How a run ended and what it used is what is said: faults that were seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.transcript import markdown
from tests.talking import PATIENCE, agent_of, call, session_of


def said(text: str, stop_reason: Any = None, **options: Any) -> sa.Message:
    return sa.Message.assistant(text, stop_reason=stop_reason, **options)


@pytest.mark.parametrize("reason", ["max_tokens", "context_window"])
def test_b18_an_answer_that_was_cut_says_so_wherever_it_is_read(reason: str) -> None:
    result = agent_of(said("half an", reason)).run("x")
    assert (result.status, result.text, result.stop_reason) == ("completed", "half an", reason)
    assert f"cut ({reason})" in repr(result)
    assert "**The answer was cut: " in markdown(result.state.messages)
    assert agent_of("whole").run("x").stop_reason == "end_turn"
    assert "cut" not in repr(agent_of("whole").run("x"))


def test_b18_a_refusal_is_an_error_of_its_own_kind_and_what_was_said_is_kept(
    tmp_path: Path,
) -> None:
    agent = agent_of(said("I would rather not.", "refusal"), "Fine.")
    with pytest.raises(sa.ModelError, match=r"declined to answer: I would rather not\.") as refused:
        agent.run("x")
    assert refused.value.kind == "refusal"
    assert refused.value.result.stop_reason == "refusal"

    agent = agent_of(said("I would rather not.", "refusal"), "Fine.")
    session = sa.Session(agent)
    with pytest.raises(sa.ModelError):
        session.send("x").result(PATIENCE)
    assert session.status == "error"
    assert "**The model declined to answer.**" in markdown(session.messages)
    assert session.retry().result(PATIENCE).text == "Fine."
    assert [m.text for m in session.messages] == ["x", "Fine."]


def test_b18_calls_of_a_refusal_do_not_run() -> None:
    ran: list[str] = []

    def act() -> str:
        ran.append("act")
        return "acted"

    refusal = said("No.", "refusal", tool_calls=[call("act")])
    with pytest.raises(sa.ModelError):
        agent_of(refusal, "never", tools=[act]).run("x")
    assert ran == []


def helper(*turns: Any) -> sa.SubAgentConfig:
    def look() -> str:
        return "seen"

    return sa.SubAgentConfig("helper", "Help.", "Help.", [look], model=sa.ScriptedModel(turns))


def parent(*turns: Any, config: sa.SubAgentConfig) -> sa.Agent:
    task = call("task", "t", instructions="do", subagent_type="helper")
    first = sa.Message.assistant("", [task], usage=sa.Usage(10, 5))
    return agent_of(first, *turns, middleware=[sa.SubAgents([config])])


def test_b18_a_sub_agents_cut_answer_says_so_to_its_parent() -> None:
    result = parent("top", config=helper(said("half an ans", "max_tokens"))).run("x")
    (answer,) = result.messages[2].tool_results
    assert answer.text.startswith("half an ans\n\n(The answer was cut: ")
    result = parent("top", config=helper(said("No.", "refusal"))).run("x")
    (answer,) = result.messages[2].tool_results
    assert answer.is_error
    assert "declined to answer" in answer.text


def test_b10_usage_counts_sub_agents(tmp_path: Path) -> None:
    working = helper(said("A", usage=sa.Usage(100, 50)))
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    agent = parent(said("top", usage=sa.Usage(1, 1)), config=working)
    session = sa.Session(agent, id="c", store=store)
    result = session.send("x").result(PATIENCE)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (111, 56)
    assert session.usage == result.usage
    assert session.to_frame("usage").input_tokens.sum() == 111
    session.close()
    assert sa.Session.open("c", agent=agent, store=store).usage == result.usage


def test_b10_a_sub_agent_that_is_stopped_has_used_what_it_used() -> None:
    def stop() -> str:
        session.cancel()
        return "stopped"

    config = sa.SubAgentConfig(
        "helper",
        "Help.",
        "Help.",
        [stop],
        model=sa.ScriptedModel(
            [sa.Message.assistant("", [call("stop", "s")], usage=sa.Usage(100, 50)), "never"]
        ),
    )
    session = sa.Session(parent("top", config=config))
    result = session.send("x").result(PATIENCE)
    assert result.status == "cancelled"
    assert (result.usage.input_tokens, result.usage.output_tokens) == (110, 55)


def test_b10_usage_counts_summaries() -> None:
    summary = sa.ScriptedModel([said("In short.", usage=sa.Usage(7, 3))])
    summing = sa.Summarization(model=summary, max_tokens=10, keep=1)
    turns = [said("one", usage=sa.Usage(1, 1)), said("two", usage=sa.Usage(2, 2))]
    session = session_of(*turns, middleware=[summing])
    session.send("word " * 40).result(PATIENCE)
    session.send("word " * 40).result(PATIENCE)
    assert len(summary.requests) == 1
    assert (session.usage.input_tokens, session.usage.output_tokens) == (10, 6)
