"""What people decided is what runs, once: faults that were seen from outside."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import AgentEnd
from tests.talking import PATIENCE, agent_of, call, in_threads, run, session_of, unanswered

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@sa.tool
def delete(path: str) -> str:
    """Delete."""
    RAN.append(path)
    return f"deleted {path}"


def gated(*turns: Any, **options: Any) -> sa.Agent:
    return agent_of(*turns, tools=[delete], interrupt_on={"delete": True}, **options)


TWO = [call("delete", "c1", path="/danger"), call("delete", "c2", path="/other")]


def store_in(folder: Path) -> sa.ConversationStore:
    return sa.ConversationStore(f"sqlite:///{folder / 'c.db'}")


@pytest.mark.parametrize("given", [sa.Approve(), [sa.Approve()], {"c2": sa.Approve()}])
def test_b04_a_rejected_call_does_not_run_when_the_rest_is_approved(given: Any) -> None:
    session = sa.Session(gated(TWO, "ok"))
    session.send("go").result()
    session.reject("c1", by="ann")
    result = session.resume(given, by="bob").result(PATIENCE)
    assert RAN == ["/other"]
    assert "rejected" in result.messages[0].tool_results[0].text


@pytest.mark.parametrize("named", [["c1"], ["c1", "c2"]])
def test_b04_who_names_a_decided_call_is_told_and_nothing_changes(named: list[str]) -> None:
    session = sa.Session(gated(TWO, "ok"))
    session.send("go").result()
    session.reject("c1", by="ann")
    with pytest.raises(sa.StaleApproval, match="c1"):
        session.resume(dict.fromkeys(named, sa.Approve()), by="bob")
    assert (session.status, RAN) == ("interrupted", [])
    with pytest.raises(sa.InvalidDecision, match="1 call waits"):
        session.resume([sa.Approve(), sa.Approve()])
    session.approve("c2").result(PATIENCE)  # type: ignore[union-attr]
    assert RAN == ["/other"]


def test_b04_what_was_rejected_before_a_reopening_stays_so(tmp_path: Path) -> None:
    store, agent = store_in(tmp_path), gated(TWO, "ok")
    session = sa.Session(agent, id="c", store=store)
    session.send("go").result()
    session.reject("c1", by="ann")
    session.close()
    again = sa.Session.open("c", agent=agent, store=store)
    again.resume(sa.Approve(), by="bob").result(PATIENCE)
    assert RAN == ["/other"]


@pytest.mark.spec("P4")
def test_b05_a_result_is_resumed_once() -> None:
    agent = gated(call("delete", path="/a"), "one", "two")
    result = agent.run("go")
    assert agent.resume(result, sa.Approve()).text == "one"
    for decision in (sa.Approve(), sa.Reject()):
        with pytest.raises(sa.StaleApproval, match="resumed before"):
            agent.resume(result, decision)
    assert RAN == ["/a"]


@pytest.mark.spec("P4")
def test_b05_of_three_threads_one_resumes_it() -> None:
    agent = gated(call("delete", path="/a"), *["done"] * 3)
    result = agent.run("go")
    start = threading.Barrier(3)

    def resume(index: int) -> str:
        start.wait(PATIENCE)
        try:
            return agent.resume(result, sa.Approve()).text
        except sa.StaleApproval:
            return "stale"

    assert sorted(in_threads(3, resume)) == ["done", "stale", "stale"]
    assert RAN == ["/a"]


@pytest.mark.spec("P4")
def test_b05_a_wrong_decision_takes_nothing_away_and_equal_runs_are_two() -> None:
    agent = gated(call("delete", path="/a"), call("delete", path="/a"), "one", "two")
    first, second = agent.run("go"), agent.run("go")
    with pytest.raises(sa.InvalidDecision):
        agent.resume(first, {"other": sa.Approve()})
    agent.resume(first, sa.Approve())
    agent.resume(second, sa.Approve())
    assert RAN == ["/a", "/a"]


def test_b05_one_goes_on_from_what_the_resumption_gave() -> None:
    agent = gated(call("delete", path="/a"), call("delete", "c2", path="/b"), "done")
    result = agent.run("go")
    again = agent.resume(result, sa.Approve())
    with pytest.raises(sa.StaleApproval):
        agent.resume(result, sa.Approve())
    assert agent.resume(again, sa.Approve()).text == "done"
    assert RAN == ["/a", "/b"]


def test_b05_after_an_error_one_goes_on_from_its_result() -> None:
    agent = gated(call("delete", path="/a"), sa.ModelError("down"), "done")
    result = agent.run("go")
    with pytest.raises(sa.ModelError) as failed:
        agent.resume(result, sa.Approve())
    with pytest.raises(sa.StaleApproval):
        agent.resume(result, sa.Approve())
    assert agent.run("go on", state=failed.value.result.state).text == "done"
    assert RAN == ["/a"]


def test_b13_a_question_of_a_tools_own_type_is_there_after_reopening(tmp_path: Path) -> None:
    def pay() -> Any:
        return sa.Interrupt("payment_confirmation", message="Pay?", data={"eur": 5})

    store, agent = store_in(tmp_path), agent_of(call("pay"), "thanks", tools=[pay])
    session = sa.Session(agent, id="c", store=store)
    session.send("go").result()
    asked = session.interrupt
    session.close()
    again = sa.Session.open("c", agent=agent, store=store)
    assert (again.status, again.interrupt, again.info()["problems"]) == ("interrupted", asked, [])
    assert asked is not None
    assert (asked.type, asked.data) == ("payment_confirmation", {"eur": 5})
    result = again.resume(sa.Respond("yes")).result(PATIENCE)
    assert result.text == "thanks"
    assert again.messages[2].tool_results[0].text == "yes"


class Asks(sa.Middleware):
    """Asks in one hook until it was answered; ``takes`` says whether it hears that itself."""

    def __init__(self, hook: str, takes: bool) -> None:
        self.heard: list[Any] = []
        self.hook, self.takes = hook, takes

    def ask(self, hook: str, state: sa.State) -> Any:
        answered = self.heard or any(message.text == "Yes." for message in state.messages)
        return None if hook != self.hook or answered else sa.Interrupt("budget", message="May I?")

    def before_run(self, state: sa.State, ctx: Any) -> Any:
        return self.ask("before_run", state)

    def before_model(self, state: sa.State, ctx: Any) -> Any:
        return self.ask("before_model", state)

    def after_model(self, state: sa.State, ctx: Any) -> Any:
        return self.ask("after_model", state)

    def after_run(self, state: sa.State, ctx: Any) -> Any:
        return self.ask("after_run", state)

    def handle_resume(self, interrupt: Any, decisions: Any, state: sa.State, ctx: Any) -> Any:
        if not self.takes:
            return None
        self.heard += decisions.values()
        return state.put_metadata("allowed", True)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("hook", ["before_run", "before_model", "after_model", "after_run"])
def test_b14_a_hooks_question_is_answered_to_its_middleware(
    hook: str, stored: bool, tmp_path: Path
) -> None:
    middleware = Asks(hook, takes=True)
    agent = agent_of("hello", middleware=[middleware])
    store = store_in(tmp_path) if stored else None
    session = sa.Session(agent, id="c", store=store)
    session.send("go").result(PATIENCE)
    assert session.status == "interrupted"
    assert session.interrupt is not None
    (request,) = session.interrupt.action_requests
    assert request.allowed_decisions == ("approve", "reject", "respond")
    if stored:
        session.close()
        session = sa.Session.open("c", agent=agent, store=store)
    result = session.resume(sa.Respond("fine")).result(PATIENCE)
    assert middleware.heard == [sa.Respond("fine")]
    assert (result.status, session.messages[-1].text) == ("completed", "hello")
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]
    assert session.state.metadata["allowed"] is True


@pytest.mark.parametrize("hook", ["before_run", "before_model"])
def test_b14_what_no_middleware_takes_the_user_has_said(hook: str) -> None:
    session = session_of("hello", middleware=[Asks(hook, takes=False)])
    session.send("go").result(PATIENCE)
    assert session.approve().result(PATIENCE).text == "hello"  # type: ignore[union-attr]
    assert [m.text for m in session.messages] == ["go", "Yes.", "hello"]


@pytest.mark.parametrize("decision", [sa.Approve(), sa.Reject("Stop it."), sa.Respond("Wait.")])
def test_b14_yes_to_calls_that_wait_runs_them_and_anything_else_does_not(decision: Any) -> None:
    class Checks(sa.Middleware):
        asked = False

        def after_model(self, state: sa.State, ctx: Any) -> Any:
            if self.asked:
                return None
            self.asked = True
            return sa.Interrupt("check", message="Run these?")

    agent = agent_of(call("delete", path="/a"), "done", tools=[delete], middleware=[Checks()])
    session = sa.Session(agent)
    session.send("go").result(PATIENCE)
    assert (session.status, RAN) == ("interrupted", [])
    assert session.resume(decision).result(PATIENCE).text == "done"
    approved = decision == sa.Approve()
    assert ["/a"][:approved] == RAN
    roles = ["user", "assistant", "tool", "user", "assistant"]
    if approved:
        roles.remove("user")
    assert sorted(m.role for m in session.messages) == sorted(roles)
    assert not unanswered(session.messages)


@pytest.mark.parametrize("way", ["restore", "state", "replace"])
def test_b17_the_approval_of_an_original_does_not_count_in_its_fork(way: str) -> None:
    session = sa.Session(gated(call("delete", path="/a"), "done"), id="one")
    session.send("go").result(PATIENCE)
    asked = session.interrupt
    assert asked is not None
    if way == "restore":
        fork = sa.Session.restore(session.export_state(), agent=gated("done"), id="fork")
    elif way == "state":
        fork = sa.Session(gated("done"), state=session.state)
    else:
        fork = sa.Session(gated("done"))
        fork.replace(state=session.state)
    assert fork.status == "interrupted"
    assert fork.interrupt is not None

    def approve(id: str, seen: sa.Interrupt) -> Any:
        digests = {r.tool_call_id: r.digest for r in seen.action_requests}
        return fork.decide({"c1": sa.Approve()}, interrupt_id=id, digests=digests, by="ann")

    for id in (asked.id, fork.interrupt.id):
        with pytest.raises(sa.StaleApproval):
            approve(id, asked)
    assert RAN == []
    assert approve(fork.interrupt.id, fork.interrupt).result(PATIENCE).text == "done"
    assert RAN == ["/a"]


def test_b21_a_streamed_run_that_is_interrupted_has_a_result_to_resume_with() -> None:
    agent = gated(call("delete", path="/a"), "done")

    async def streamed() -> sa.RunResult:
        events = agent.stream("go")
        with pytest.raises(sa.NotRunning, match="read its events to the end"):
            _ = events.result
        seen = [event async for event in events]
        assert isinstance(seen[-1], AgentEnd)
        return events.result

    result = run(streamed())
    assert result.status == "interrupted"
    assert agent.resume(result, sa.Approve()).text == "done"
    assert RAN == ["/a"]


def test_b21_a_streamed_run_is_stopped_by_whoever_lets_go_of_it() -> None:
    started, stopped = threading.Event(), threading.Event()

    async def slow() -> str:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()
        return "never"

    async def leave() -> None:
        async for event in agent_of(call("slow"), "done", tools=[slow]).stream("go"):
            if event.type == "tool_execution_start":
                await asyncio.to_thread(started.wait, PATIENCE)
                break

    run(leave())
    assert stopped.wait(PATIENCE)
