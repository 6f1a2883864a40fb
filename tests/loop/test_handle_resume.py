from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import sagents_nb as sa
from tests.grammar import ungrammatical
from tests.talking import agent_of, call, results, session_of


@sa.tool
def ask(question: str = "?") -> Any:
    """Ask a person."""
    return sa.Interrupt("tool", message=question, data={"question": question})


class Claims(sa.Middleware):
    """Says this when a run is resumed."""

    def __init__(self, id: str, told: list[str], *says: Any) -> None:
        self.id = id
        self.told = told
        self.says = list(says)

    def handle_resume(
        self, interrupt: Any, decisions: Mapping[str, Any], state: sa.State, ctx: sa.RunContext
    ) -> Any:
        self.told.append(self.id)
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        return said(interrupt, decisions, state) if callable(said) else said


def resolves(interrupt: Any, decisions: Any, state: sa.State) -> sa.State:
    for id, decision in decisions.items():
        answer = sa.ToolResult(id, "ask", f"{interrupt.message} {decision.answer}")
        state = state.replace_tool_result(id, answer)
    return state


@pytest.mark.spec("S1.3.13")
def test_the_first_middleware_that_claims_an_interrupt_resolves_it() -> None:
    told: list[str] = []
    stack = [Claims("a", told), Claims("b", told, resolves), Claims("c", told, resolves)]
    agent = agent_of(call("ask"), "I see", tools=[ask], middleware=stack)
    done = agent.resume(agent.run("go"), sa.Respond("yes"))
    assert (told, done.text, results(done.state)) == (["a", "b"], "I see", ["? yes"])


@pytest.mark.spec("S1.3.12", "S1.3.13")
def test_what_still_waits_interrupts_again_without_a_model_call_and_the_rest_is_kept() -> None:
    told: list[str] = []
    again = sa.Interrupt("tool", (sa.ActionRequest("b", "ask", allowed_decisions=("respond",)),))
    stack = [Claims("m", told, resolves, again, resolves)]
    turn = [call("ask", "a", question="A?"), call("ask", "b", question="B?")]
    session = session_of(turn, "I see", tools=[ask], middleware=stack)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    cut = len(heard)
    result = session.resume({"b": sa.Respond("2"), "a": sa.Respond("1")}).result()
    assert (result.status, session.status) == ("interrupted", "interrupted")
    assert session.interrupt is not None
    assert session.interrupt.tool_call_ids == ["b"]
    assert results(session.state) == ["A? 1", "B?"]
    assert len(session.agent.model.requests) == 1  # type: ignore[attr-defined]
    assert not ungrammatical(heard[cut:], {"a", "b"})
    assert session.resume(sa.Respond("3")).result().text == "I see"


@pytest.mark.spec("S1.3.13")
@pytest.mark.parametrize(
    ("says", "error"),
    [
        (ValueError("lost"), r"m\.handle_resume failed: ValueError: lost"),
        ("text", r"m\.handle_resume returned str; return None, a State or an Interrupt"),
        (sa.InvalidDecision("Not like that."), "Not like that"),
    ],
)
def test_an_error_is_told_and_what_was_asked_still_waits(says: Any, error: str) -> None:
    told: list[str] = []
    says_text = (lambda *rest: says) if isinstance(says, str) else says
    stack = [Claims("m", told, resolves, says_text, resolves)]
    turn = [call("ask", "a", question="A?"), call("ask", "b", question="B?")]
    session = session_of(turn, "I see", tools=[ask], middleware=stack)
    session.send("go").result()
    with pytest.raises(sa.AgentError, match=error):
        session.resume([sa.Respond("1"), sa.Respond("2")]).result()
    assert session.status == "interrupted"
    assert session.interrupt is not None
    assert session.interrupt.tool_call_ids == ["b"]
    assert results(session.state) == ["A? 1", "B?"]
    assert session.resume(sa.Respond("3")).result().text == "I see"


@pytest.mark.spec("S1.3.13")
@pytest.mark.parametrize("hook", ["before_run", "before_model"])
def test_what_a_hook_asks_goes_to_its_handle_resume_and_is_an_error_if_none_claims(
    hook: str,
) -> None:
    def once(self: Any, state: sa.State, ctx: sa.RunContext) -> Any:
        if state.get_metadata("paid"):
            return None
        return sa.Interrupt("tool", (sa.ActionRequest("q", "quota"),), "Pay?")

    def pay(self: Any, interrupt: Any, decisions: Any, state: sa.State, ctx: Any) -> Any:
        return state.put_metadata("paid", True)

    silent = agent_of("done", middleware=[type("Quota", (sa.Middleware,), {hook: once})()])
    waiting = silent.run("go")
    assert (waiting.status, waiting.state.messages[0].text) == ("interrupted", "go")
    if hook == "before_model":  # before_run would only ask again
        with pytest.raises(sa.InvalidDecision, match="needs a handle_resume"):
            silent.resume(waiting, sa.Approve())
    kind = type("Quota", (sa.Middleware,), {"before_model": once, "handle_resume": pay})
    session = session_of("done", middleware=[kind()])
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    assert session.interrupt is not None
    assert session.interrupt.action_requests[0].digest
    assert session.approve().result().text == "done"  # type: ignore[union-attr]
    assert [m.text for m in session.messages] == ["go", "done"]


def test_when_before_run_fails_on_a_resume_the_question_still_waits() -> None:
    broken = [False]

    class Checks(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            if broken[0]:
                raise ValueError("no database")

    session = session_of(call("ask"), "I see", tools=[ask], middleware=[Checks()])
    session.send("go").result()
    broken[0] = True
    with pytest.raises(sa.MiddlewareError, match="no database"):
        session.resume(sa.Respond("1")).result()
    assert session.status == "interrupted"
    broken[0] = False
    assert session.resume(sa.Respond("2")).result().text == "I see"
    assert results(session.state) == ["2"]
