from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from tests.grammar import ungrammatical
from tests.talking import agent_of, call, results, roles, session_of, streamed, unanswered


@sa.tool
def stop(why: str | None = "The disk is full.") -> Any:
    """Stop everything."""
    return sa.Interrupt("halt", message=why, data={"source_tool": "stop"})


@sa.tool
def ask(question: str) -> Any:
    """Ask a person."""
    return sa.Interrupt("tool", message=question)


@sa.tool
def look() -> str:
    """Look."""
    return "saw it"


def halted(turn: Any = None, *more: Any, **options: Any) -> sa.Session:
    session = session_of(turn or call("stop"), *more, tools=[stop, ask, look], **options)
    session.send("go").result()
    return session


@pytest.mark.spec("S1.4.6")
def test_a_halt_stops_the_loop_and_its_message_is_said_once() -> None:
    session = halted()
    assert session.status == "interrupted"
    interrupt = session.interrupt
    assert interrupt is not None
    assert (interrupt.type, interrupt.message) == ("halt", "The disk is full.")
    assert interrupt.data == {"source_tool": "stop"}
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant"]
    texts = [m.text for m in session.messages] + results(session.state)
    assert texts.count("The disk is full.") == 1
    assert session.messages[-1].text == "The disk is full."
    assert session.messages[-1].metadata == {"halt": True}  # no model has said it
    assert len(session.agent.model.requests) == 1  # type: ignore[attr-defined]
    assert not unanswered(session.messages)


@pytest.mark.spec("S1.4.6")
@pytest.mark.parametrize("why", [None, ""])
def test_a_halt_without_a_message_says_nothing(why: Any) -> None:
    session = halted(call("stop", why=why))
    assert roles(session.messages) == ["user", "assistant", "tool"]
    assert session.status == "interrupted"


@pytest.mark.spec("S1.4.6")
def test_a_dismissed_halt_leaves_the_session_idle() -> None:
    session = halted(None, "and on")
    session.dismiss()
    assert (session.status, session.interrupt) == ("idle", None)
    assert session.messages[-1].text == "The disk is full."
    assert session.send("and now?").result().text == "and on"
    assert not unanswered(session.messages)


@pytest.mark.spec("S1.4.6")
def test_the_next_message_supersedes_a_halt() -> None:
    session = halted(None, "and on")
    assert session.send("go on").result().text == "and on"
    assert (session.status, session.interrupt) == ("idle", None)
    texts = [m.text for m in session.messages if m.role != "tool"]
    assert texts == ["go", "", "The disk is full.", "go on", "and on"]

    agent = agent_of(call("stop"), "and on", tools=[stop])
    first = agent.run("go")
    assert (first.status, first.text) == ("interrupted", "The disk is full.")
    assert agent.run("go on", state=first.state).status == "completed"


@pytest.mark.spec("S1.4.6")
def test_only_a_halt_can_be_dismissed() -> None:
    session = halted(call("ask", question="Why?"))
    with pytest.raises(sa.NotRunning, match="needs an answer"):
        session.dismiss()
    assert session.status == "interrupted"
    gated = halted(call("look"), interrupt_on={"look": True})
    with pytest.raises(sa.NotRunning, match="hitl interrupt needs an answer"):
        gated.dismiss()
    with pytest.raises(sa.NotRunning, match="Nothing waits"):
        session_of().dismiss()


@pytest.mark.parametrize(
    "decide",
    [
        lambda session: session.resume(sa.Approve()),
        lambda session: session.resume(sa.Respond("yes")),
        lambda session: session.approve(),
        lambda session: session.reject(),
    ],
)
def test_a_halt_is_not_answered(decide: Any) -> None:
    session = halted()
    before = session.state
    with pytest.raises(sa.InvalidDecision):
        decide(session)
    assert (session.status, session.state) == ("interrupted", before)
    agent = agent_of(call("stop"), tools=[stop])
    with pytest.raises(sa.InvalidDecision, match=r"dismiss\(\) it, or send a message"):
        agent.resume(agent.run("go"), sa.Approve())


@pytest.mark.spec("S1.4.6")
@pytest.mark.parametrize("first", [True, False])
def test_a_halt_beats_other_interrupts_of_the_turn(first: bool) -> None:
    turn = [call("ask", "a", question="Why?"), call("look", "l"), call("stop", "s")]
    session = halted(list(reversed(turn)) if first else turn, "and on")
    interrupt = session.interrupt
    assert interrupt is not None
    assert (interrupt.type, interrupt.action_requests) == ("halt", ())
    assert interrupt.message == "The disk is full."
    session.dismiss()
    assert session.status == "idle"
    answered = {r.tool_call_id: r for r in session.messages[2].tool_results}
    assert answered["a"].is_error
    assert answered["l"].text == "saw it"
    assert not any(r.is_interrupt for r in answered.values())
    assert session.send("go on").result().text == "and on"


@pytest.mark.spec("S1.4.6")
@pytest.mark.parametrize("hook", ["before_run", "before_model", "after_model", "before_tool"])
def test_a_hook_may_halt_too(hook: str) -> None:
    def halt(self: Any, *rest: Any) -> Any:
        return sa.Interrupt("halt", message="The quota is used up.")

    kind = type("Quota", (sa.Middleware,), {hook: halt})
    agent = agent_of(call("look"), "never", tools=[look], middleware=[kind()])
    events = streamed(agent)
    assert not ungrammatical(events)
    assert events[-1].status == "interrupted"  # type: ignore[attr-defined]
    session = sa.Session(agent_of(call("look"), "never", tools=[look], middleware=[kind()]))
    session.send("precious words").result()
    assert session.messages[-1].text == "The quota is used up."
    assert session.messages[0].text == "precious words"
    assert not unanswered(session.messages)
    session.dismiss()
    assert session.status == "idle"


@pytest.mark.spec("S1.4.6")
def test_a_halt_survives_a_restart() -> None:
    session = halted()
    fork = sa.Session.restore(session.export_state(), agent=agent_of("and on", tools=[stop]))
    assert fork.status == "interrupted"
    fork.dismiss()
    assert fork.send("go on").result().text == "and on"
