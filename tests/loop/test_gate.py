"""What people approve is what runs, whoever else has a say in the call."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa

ran: list[str] = []


@sa.tool
def write(text: str) -> str:
    """Write."""
    ran.append(text)
    return "written"


class Shout(sa.Middleware):
    def before_tool(self, call: sa.ToolCall, ctx: Any) -> sa.ToolCall:
        return replace(call, arguments={"text": call.arguments["text"].upper()})


class Careful(sa.Middleware):
    def before_tool(self, call: sa.ToolCall, ctx: Any) -> sa.Interrupt:
        request = sa.ActionRequest(
            call.id, call.name, call.arguments, allowed_decisions=("reject", "approve")
        )
        return sa.Interrupt("hitl", (request,))


def held(*middleware: sa.Middleware) -> tuple[sa.Agent, sa.RunResult]:
    ran.clear()
    model = sa.ScriptedModel([sa.ToolCall("c1", "write", {"text": "hello"}), "done"])
    agent = sa.Agent(model, tools=[write], middleware=middleware, interrupt_on={"write": True})
    return agent, agent.run("go")


@pytest.mark.spec("P4")
def test_what_a_hook_made_of_a_call_is_what_people_see_and_what_runs() -> None:
    agent, result = held(Shout())
    assert result.interrupt is not None
    assert result.interrupt.action_requests[0].arguments == {"text": "HELLO"}
    agent.resume(result, sa.Approve())
    assert ran == ["HELLO"]


def test_a_call_with_half_a_character_can_be_approved_and_runs_as_it_was_sent() -> None:
    ran.clear()
    model = sa.ScriptedModel([sa.ToolCall("c1", "write", {"text": "odd \ud800"}), "done"])
    session = sa.Session(sa.Agent(model, tools=[write], interrupt_on={"write": True}))
    session.send("go").result()
    assert session.interrupt is not None
    assert session.interrupt.action_requests[0].digest
    assert session.resume(sa.Approve()).result().text == "done"
    assert ran == ["odd \ud800"]


def test_two_gates_ask_once_and_allow_only_what_both_allow() -> None:
    agent, result = held(Careful())
    assert result.interrupt is not None
    (request,) = result.interrupt.action_requests
    assert set(request.allowed_decisions) == {"approve", "reject"}
    with pytest.raises(sa.InvalidDecision):
        agent.resume(result, sa.Edit({"text": "other"}))
    agent.resume(result, sa.Approve())
    assert ran == ["hello"]


def test_a_gate_before_the_own_one_does_not_open_it() -> None:
    agent, result = held(Careful())
    final = agent.resume(result, sa.Reject("no"))
    assert ran == []
    assert final.status == "completed"
