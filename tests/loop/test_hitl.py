from __future__ import annotations

import copy
import pickle
import threading
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

import sagents_nb as sa
from sagents_nb.events import DecisionMade, ToolExecutionEnd
from tests.grammar import ungrammatical
from tests.talking import (
    PATIENCE,
    agent_of,
    call,
    in_threads,
    of,
    results,
    roles,
    session_of,
    unanswered,
    unbound,
)

RAN: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def read(path: str = "") -> str:
    """Read."""
    RAN.append(("read", path))
    return f"content of {path}"


@sa.tool(display_text=lambda a: f"Writing {a['path']}")
def write(path: str, text: str = "") -> str:
    """Write."""
    RAN.append(("write", path))
    return f"wrote {path}"


@sa.tool
def delete(path: str) -> str:
    """Delete."""
    RAN.append(("delete", path))
    return f"deleted {path}"


TOOLS = [read, write, delete]
GATED = {"write": True, "delete": {"allowed_decisions": ["approve", "reject"]}}
TURN = [
    call("read", "r", path="/r"),
    call("write", "w", path="/w"),
    call("delete", "d", path="/d"),
]


def waiting(turn: Any = TURN, *more: Any) -> tuple[sa.Agent, sa.RunResult]:
    agent = agent_of(turn, *(more or ["done"]), tools=TOOLS, interrupt_on=GATED)
    return agent, agent.run("go")


# what waits


@pytest.mark.spec("S1.3.3", "P3", "H3.2.1")
def test_one_gated_call_holds_the_whole_turn() -> None:
    _, result = waiting()
    assert result.status == "interrupted"
    assert RAN == []
    assert roles(result.messages) == ["user", "assistant"]
    interrupt = result.interrupt
    assert interrupt is not None
    assert interrupt.type == "hitl"
    assert [(r.tool_call_id, r.tool_name, r.arguments) for r in interrupt.action_requests] == [
        ("w", "write", {"path": "/w"}),
        ("d", "delete", {"path": "/d"}),
    ]
    assert interrupt.action_requests[0].display_text == "Writing /w"
    assert interrupt.review_configs == {
        "write": {"allowed_decisions": ["approve", "edit", "reject"]},
        "delete": {"allowed_decisions": ["approve", "reject"]},
    }


@pytest.mark.spec("S1.3.1")
@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (True, ("approve", "edit", "reject")),
        ({}, ("approve", "edit", "reject")),
        ({"allowed_decisions": ["approve"]}, ("approve",)),
        (["approve", "reject"], ("approve", "reject")),
        (False, None),
        ([], None),
        (None, None),
    ],
)
def test_what_a_value_of_interrupt_on_means(value: Any, allowed: Any) -> None:
    agent = agent_of(call("read"), "done", tools=TOOLS, interrupt_on={"read": value, "write": True})
    interrupt = agent.run("go").interrupt
    if allowed is None:
        assert interrupt is None
    else:
        assert interrupt is not None
        assert interrupt.action_requests[0].allowed_decisions == allowed


@pytest.mark.spec("S1.3.1", "H3.2.1")
def test_a_tool_that_is_not_listed_never_waits() -> None:
    _, result = waiting([call("read", "r", path="/r")])
    assert result.status == "completed"


@pytest.mark.parametrize("value", ["yes", {"allowed_decisions": ["aprove"]}, ["maybe"]])
def test_a_decision_that_does_not_exist_is_refused_at_once(value: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="interrupt_on"):
        agent_of(tools=TOOLS, interrupt_on={"write": value})


def test_a_gated_tool_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(sa.ConfigurationError, match="wirte"):
        agent_of(tools=TOOLS, interrupt_on={"wirte": True})


def test_arguments_that_do_not_fit_are_not_worth_a_persons_time() -> None:
    turn = [call("write", "w", path=5), call("delete", "d", path="/d")]
    agent, result = waiting(turn)
    assert result.interrupt is not None
    assert result.interrupt.tool_call_ids == ["d"]
    state = agent.resume(result, sa.Approve()).state
    assert "Invalid arguments" in results(state)[0]
    assert results(state)[1] == "deleted /d"


def test_nobody_is_asked_about_arguments_whose_own_check_breaks() -> None:
    def look_up(path: str) -> str:
        raise RuntimeError("no such shelf")

    @sa.tool
    def put(path: Annotated[str, AfterValidator(look_up)]) -> str:
        """Put."""
        RAN.append(("put", path))
        return "put"

    result = agent_of(
        call("put", "p", path="/x"), "sorry", tools=[put], interrupt_on={"put": True}
    ).run("go")
    assert result.interrupt is None
    assert results(result.state) == ["Invalid arguments: RuntimeError: no such shelf"]
    assert not RAN


@pytest.mark.spec("S1.3.2")
def test_only_calls_of_the_last_message_that_have_no_result_wait() -> None:
    answer = sa.Message.tool([sa.ToolResult("w", "write", "wrote /w")])
    history = [sa.Message.user("go"), sa.Message.assistant("", [TURN[1]]), answer]
    agent = agent_of("I see", [call("delete", "d", path="/d")], tools=TOOLS, interrupt_on=GATED)
    answered = agent.run([], state=sa.State(messages=history))
    assert (answered.status, answered.text, RAN) == ("completed", "I see", [])
    result = agent.run("and now?", state=answered.state)
    assert result.interrupt is not None
    assert result.interrupt.tool_call_ids == ["d"]


@pytest.mark.spec("S1.3.2")
def test_unanswered_calls_at_the_end_of_a_history_are_asked_about_before_the_model_is() -> None:
    history = [sa.Message.user("go"), sa.Message("assistant", tuple(TURN), stop_reason="tool_use")]
    agent = agent_of("done", tools=TOOLS, interrupt_on=GATED)
    result = agent.run([], state=sa.State(messages=history))
    assert result.interrupt is not None
    assert (result.interrupt.tool_call_ids, RAN) == (["w", "d"], [])
    assert agent.model.requests == []  # type: ignore[attr-defined]
    assert agent.resume(result, sa.Approve()).text == "done"
    assert sorted(name for name, _ in RAN) == ["delete", "read", "write"]


# deciding


@pytest.mark.spec("S1.3.7", "S1.3.8", "S1.3.4")
def test_approved_calls_run_with_the_free_ones_and_answer_in_order() -> None:
    agent, result = waiting()
    done = agent.resume(result, [sa.Approve(), sa.Approve()])
    assert (done.status, done.text) == ("completed", "done")
    assert results(done.state) == ["content of /r", "wrote /w", "deleted /d"]
    assert roles(done.state.messages) == ["user", "assistant", "tool", "assistant"]
    assert not unanswered(done.state.messages)


@pytest.mark.spec("S1.3.4")
@pytest.mark.parametrize("free", [0, 1, 2])
def test_decisions_count_gated_calls_wherever_the_free_one_stands(free: int) -> None:
    turn = [call("write", "a", path="/a"), call("write", "b", path="/b")]
    turn.insert(free, call("read", "r", path="/r"))
    agent, result = waiting(turn)
    for bad in ([sa.Approve()], [sa.Approve()] * 3):
        with pytest.raises(sa.InvalidDecision, match="2"):
            agent.resume(result, bad)
    done = agent.resume(result, [sa.Approve(), sa.Reject()])
    assert [name for name, _ in sorted(RAN)] == ["read", "write"]
    assert ("write", "/a") in RAN
    assert [r.tool_call_id for r in done.state.messages[2].tool_results] == [c.id for c in turn]


@pytest.mark.spec("S1.3.7", "P5", "H3.2.3")
def test_a_rejected_call_does_not_run_and_is_no_error_but_told_as_rejected() -> None:
    session = session_of([TURN[1]], "ok", tools=TOOLS, interrupt_on=GATED)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    session.reject(message="not there").result()  # type: ignore[union-attr]
    (result,) = session.messages[2].tool_results
    assert RAN == []
    assert not result.is_error
    assert "person rejected" in result.text
    assert "not there" in result.text
    assert [e.status for e in of(ToolExecutionEnd, heard)] == ["rejected"]


@pytest.mark.spec("S1.3.7", "P5")
def test_an_edited_call_runs_with_the_new_arguments_and_the_history_keeps_the_old() -> None:
    agent, result = waiting([TURN[1]])
    done = agent.resume(result, sa.Edit({"path": "/tmp/w", "text": "x"}))
    assert RAN == [("write", "/tmp/w")]
    assert done.state.messages[1].tool_calls[0].arguments == {"path": "/w"}
    (answer,) = done.state.messages[2].tool_results
    assert answer.metadata["edited_arguments"] == {"path": "/tmp/w", "text": "x"}


@pytest.mark.spec("P5", "S1.3.14")
def test_the_edit_is_remembered_also_when_the_tool_then_fails() -> None:
    @sa.tool
    def fragile(n: int) -> str:
        raise ValueError("broke")

    agent = agent_of(call("fragile", n=1), "ok", tools=[fragile], interrupt_on={"fragile": True})
    done = agent.resume(agent.run("go"), sa.Edit({"n": 2}))
    (answer,) = done.state.messages[2].tool_results
    assert (answer.is_error, answer.metadata["edited_arguments"]) == (True, {"n": 2})
    assert done.text == "ok"


@pytest.mark.spec("S1.3.10", "P3")
def test_decisions_by_id_do_not_depend_on_their_order() -> None:
    agent, result = waiting()
    agent.resume(result, {"d": {"type": "reject"}, "w": {"type": "approve"}})
    assert sorted(RAN) == [("read", "/r"), ("write", "/w")]


@pytest.mark.spec("S1.3.9")
def test_the_next_gated_call_waits_again() -> None:
    agent, result = waiting(
        [call("write", "w1", path="/1")], call("write", "w2", path="/2"), "done"
    )
    for expected in ("w1", "w2"):
        assert result.interrupt is not None
        assert result.interrupt.tool_call_ids == [expected]
        result = agent.resume(result, sa.Approve())
    assert result.text == "done"
    assert RAN == [("write", "/1"), ("write", "/2")]


TWO_WRITES_AND_A_DELETE = (
    [call("write", "w1", path="/1")],
    [call("write", "w2", path="/2")],
    [call("delete", "d", path="/3")],
    "done",
)


@pytest.mark.spec("S1.3.15", "P5")
def test_who_always_approves_a_tool_is_not_asked_about_it_again_but_about_others() -> None:
    agent, result = waiting(*TWO_WRITES_AND_A_DELETE)
    result = agent.resume(result, sa.Approve(always=True))
    assert result.interrupt is not None
    assert result.interrupt.tool_call_ids == ["d"]
    assert RAN == [("write", "/1"), ("write", "/2")]


@pytest.mark.spec("S1.3.15", "P5")
@pytest.mark.parametrize("how", ["restored", "replaced"])
def test_what_was_always_approved_is_not_taken_along_into_another_conversation(how: str) -> None:
    turns = (*TWO_WRITES_AND_A_DELETE[:3], [call("write", "w4", path="/4")])
    session = session_of(*turns, tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    session.resume({"type": "approve", "always": True}).result()
    state = session.export_state()
    if how == "restored":
        session = sa.Session.restore(state, agent=session.agent)
    else:
        session.replace(state=sa.Session.restore(state, agent=session.agent).state)
    assert session.interrupt is not None
    session.resume(sa.Reject()).result()
    assert session.interrupt is not None
    assert session.interrupt.tool_call_ids == ["w4"]
    assert ("write", "/4") not in RAN


def always_writing(then: sa.ToolCall) -> sa.Session:
    """A session that was always allowed to write, has done it once, and calls that next."""
    first = call("write", "w1", path="/1")
    session = session_of(first, "one", then, "two", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    session.resume(sa.Approve(always=True)).result()
    return session


ANEW = {
    "ask_again": lambda session: session.ask_again("write"),
    "ask_again of all": lambda session: session.ask_again(),
    "the same gates": lambda s: s.replace(s.agent.with_(interrupt_on=GATED)),
    "other gates": lambda s: s.replace(s.agent.with_(interrupt_on={"write": True})),
}


@pytest.mark.spec("S1.3.15", "P5")
@pytest.mark.parametrize("anew", ANEW.values(), ids=ANEW)
def test_the_newer_word_counts_and_people_are_asked_again(anew: Any) -> None:
    session = always_writing(call("write", "w2", path="/2"))
    assert session.always_allowed == ["write"]
    anew(session)
    assert session.always_allowed == []
    assert session.send("once more").result().status == "interrupted"
    assert RAN == [("write", "/1")]


@pytest.mark.spec("S1.3.15")
def test_what_is_said_of_other_things_leaves_the_permission() -> None:
    session = always_writing(call("write", "w2", path="/2"))
    session.ask_again("delete")
    session.replace(session.agent.with_(system_prompt="Be brief."))
    assert session.always_allowed == ["write"]
    assert session.send("once more").result().status == "completed"
    assert RAN == [("write", "/1"), ("write", "/2")]


@pytest.mark.spec("S1.3.15")
def test_the_result_of_what_ran_unasked_says_by_what_permission() -> None:
    session = always_writing(call("write", "w2", path="/2"))
    session.send("once more").result()
    made = [r.metadata.get("decision") for m in session.messages for r in m.tool_results]
    assert [(d["type"], d["always"], d["by"]) for d in made] == [
        ("approve", True, "user"),
        ("approve", True, "always"),
    ]
    assert set(session.to_frame("decisions")["by"]) == {"user", "always"}
    assert "always allowed" in session.to_markdown()


@pytest.mark.spec("S1.3.15")
def test_a_call_that_no_gate_holds_says_nothing_of_it() -> None:
    session = always_writing(call("read", "r"))
    session.send("read").result()
    read = session.messages[-2].tool_results[0]
    assert "decision" not in read.metadata


@pytest.mark.spec("S1.3.15")
def test_a_middleware_that_asks_by_itself_asks_on() -> None:
    class Payment(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return sa.Interrupt(type="payment", message="Pay?")

    agent = agent_of(*TWO_WRITES_AND_A_DELETE, tools=TOOLS, middleware=[Payment()])
    result = agent.run("go")
    assert result.interrupt is not None
    assert result.interrupt.type == "payment"
    result = agent.resume(result, sa.Approve(always=True))
    assert result.interrupt is not None
    assert result.interrupt.tool_call_ids == ["w2"]


@pytest.mark.spec("S1.3.6")
def test_resuming_what_does_not_wait_is_refused() -> None:
    agent, result = waiting(["just text"])
    with pytest.raises(sa.InvalidDecision, match="waits for nothing"):
        agent.resume(result, sa.Approve())


BAD = [
    [sa.Approve()],
    [sa.Approve()] * 3,
    [sa.Approve(), sa.Edit({"path": "/x"})],
    [sa.Edit({"path": 5}), sa.Approve()],
    [sa.Edit({"pth": "/x"}), sa.Approve()],
    {"w": sa.Approve()},
    {"w": sa.Approve(), "d": sa.Approve(), "r": sa.Approve()},
    [{"type": "aprove"}, sa.Approve()],
    "approve",
    None,
    sa.Respond("x"),
]


@pytest.mark.spec("S1.3.4", "S1.3.5", "S1.3.6", "P3")
@pytest.mark.parametrize("bad", BAD)
def test_after_bad_decisions_the_session_still_waits_and_can_be_answered(bad: Any) -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    before, heard = session.state, list[Any]()
    session.subscribe(heard.append)
    heard.clear()  # it was told how the session stands
    with pytest.raises(sa.InvalidDecision):
        session.resume(bad)
    assert session.status == "interrupted"
    assert session.state == before
    assert (RAN, heard) == ([], [])
    assert session.resume(sa.Approve()).result().text == "done"


# deciding bit by bit, and at once


def test_calls_may_be_decided_one_by_one_and_the_last_decision_goes_on() -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    assert session.approve("d", by="alice") is None
    assert session.status == "interrupted"
    with pytest.raises(sa.StaleApproval):
        session.reject("d")
    run = session.reject("w", by="bob")
    assert run is not None
    run.result()
    assert sorted(RAN) == [("delete", "/d"), ("read", "/r")]
    told = [(e.tool_call_id, e.decision, e.by) for e in of(DecisionMade, heard)]
    assert told == [("d", sa.Approve(), "alice"), ("w", sa.Reject(), "bob")]


@pytest.mark.spec("P4")
def test_an_approval_answered_by_four_threads_at_once_has_one_winner() -> None:
    for _ in range(200):
        RAN.clear()
        session = session_of([TURN[1]], "done", tools=TOOLS, interrupt_on=GATED)
        session.send("go").result()
        interrupt = session.interrupt
        assert interrupt is not None
        seen = {
            "interrupt_id": interrupt.id,
            "digests": {r.tool_call_id: r.digest for r in interrupt.action_requests},
        }

        def answer(index: int, session: sa.Session = session, seen: Any = seen) -> Any:
            if index % 2:
                return session.decide({"w": sa.Approve()}, by=str(index), **seen)
            return session.resume(sa.Approve(), by=str(index))

        outcomes = in_threads(4, answer)
        winners = [o for o in outcomes if isinstance(o, sa.Run)]
        assert len(winners) == 1
        losers = [o for o in outcomes if not isinstance(o, sa.Run)]
        assert all(isinstance(o, sa.StaleApproval | sa.NotRunning) for o in losers)
        assert winners[0].result().text == "done"
        assert RAN == [("write", "/w")]


@pytest.mark.spec("P4")
def test_an_approval_of_something_else_than_what_waits_is_stale() -> None:
    session = session_of([TURN[1]], [TURN[2]], "done", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    first = session.interrupt
    assert first is not None
    shown = {"interrupt_id": first.id, "by": "page"}
    digests = {"w": first.action_requests[0].digest}
    for bad in (
        {**shown, "digests": {"w": "0" * 64}},
        {**shown, "digests": {}},
        {**shown, "interrupt_id": "older", "digests": digests},
    ):
        with pytest.raises(sa.StaleApproval):
            session.decide({"w": sa.Approve()}, **bad)
    with pytest.raises(sa.InvalidDecision):
        session.decide({"d": sa.Approve()}, digests=digests, **shown)
    assert RAN == []
    run = session.decide({"w": sa.Approve()}, digests=digests, **shown)
    assert run is not None
    run.result()
    with pytest.raises(sa.StaleApproval):  # now another call waits
        session.decide({"w": sa.Approve()}, digests=digests, **shown)
    assert RAN == [("write", "/w")]


@pytest.mark.spec("P4")
def test_the_same_call_in_another_session_or_later_has_another_digest() -> None:
    def digest_in(session: sa.Session) -> str:
        session.send("go").result()
        assert session.interrupt is not None
        return session.interrupt.action_requests[0].digest

    one = session_of([TURN[1]], [TURN[1]], tools=TOOLS, interrupt_on=GATED)
    other = session_of([TURN[1]], tools=TOOLS, interrupt_on=GATED)
    assert len({digest_in(one), digest_in(one), digest_in(other)}) == 3


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    "other",
    [call("write", "x", path="/w"), call("delete", "w", path="/w"), call("write", "w", path="/x")],
    ids=["another call", "another tool", "other arguments"],
)
def test_an_approval_counts_for_the_call_the_tool_and_the_arguments_that_were_seen(
    other: sa.ToolCall,
) -> None:
    def asking(asked: sa.ToolCall) -> tuple[sa.Session, str]:
        """One in a session of the same name and epoch, and the digest of what it asks."""
        agent = agent_of(asked, "done", tools=TOOLS, interrupt_on=GATED)
        session = sa.Session(agent, "one-name")
        session.send("go").result()
        assert session.interrupt is not None
        return session, session.interrupt.action_requests[0].digest

    session, digest = asking(TURN[1])
    assert session.interrupt is not None
    seen = {"interrupt_id": session.interrupt.id, "by": "page"}
    with pytest.raises(sa.StaleApproval):
        session.decide({"w": sa.Approve()}, digests={"w": asking(other)[1]}, **seen)
    assert RAN == []
    assert asking(TURN[1])[1] == digest
    session.decide({"w": sa.Approve()}, digests={"w": digest}, **seen).result()  # type: ignore[union-attr]
    assert RAN == [("write", "/w")]


@pytest.mark.spec("P4")
def test_of_two_calls_that_wait_each_has_an_approval_of_its_own() -> None:
    turn = [call("write", "a", path="/a"), call("write", "b", path="/b")]
    session = session_of(turn, "done", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    assert session.interrupt is not None
    first, second = session.interrupt.action_requests
    swapped = {"a": second.digest, "b": first.digest}
    for decided in (["a"], ["b"], ["a", "b"]):
        with pytest.raises(sa.StaleApproval):
            session.decide(
                dict.fromkeys(decided, sa.Approve()),
                interrupt_id=session.interrupt.id,
                digests=swapped,
                by="page",
            )
    assert (session.status, RAN) == ("interrupted", [])


def test_what_waits_is_what_nobody_has_decided_yet() -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    asked = session.interrupt
    assert asked is not None
    for request in asked.action_requests:
        waiting = session.interrupt
        assert waiting is not None
        assert waiting.id == asked.id
        assert waiting.action_requests[0] == request
        running = session.approve(request.tool_call_id)
    assert running is not None
    assert running.result().text == "done"
    assert session.interrupt is None


@pytest.mark.spec("P4")
def test_a_call_that_was_decided_is_not_decided_again_while_others_still_wait() -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    interrupt = session.interrupt
    assert interrupt is not None
    digests = {request.tool_call_id: request.digest for request in interrupt.action_requests}

    def decide() -> None:
        session.decide({"w": sa.Approve()}, interrupt_id=interrupt.id, digests=digests, by="page")

    session.reject("w")
    for again in (
        decide,
        lambda: session.approve("w"),
        lambda: session.resume({"w": sa.Approve(), "d": sa.Approve()}),
    ):
        with pytest.raises(sa.StaleApproval):
            again()
    assert (session.status, RAN) == ("interrupted", [])
    session.approve("d").result()  # type: ignore[union-attr]
    assert sorted(RAN) == [("delete", "/d"), ("read", "/r")]


@pytest.mark.spec("P4")
def test_a_session_that_goes_on_from_a_state_takes_no_approval_of_where_it_was() -> None:
    session = session_of([TURN[1]], tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    old = session.interrupt
    assert old is not None
    fork = sa.Session.restore(session.export_state(), agent=session.agent)
    now = fork.interrupt
    assert now is not None
    digests = {"w": old.action_requests[0].digest}
    for interrupt_id in (old.id, now.id):
        with pytest.raises(sa.StaleApproval):
            fork.decide({"w": sa.Approve()}, interrupt_id=interrupt_id, digests=digests, by="page")
    assert (fork.status, RAN) == ("interrupted", [])


@pytest.mark.spec("P4")
def test_an_approval_does_not_cover_arguments_that_changed_since() -> None:
    class Moving(sa.Middleware):
        count = 0

        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> sa.ToolCall:
            self.count += 1
            return sa.ToolCall(call.id, call.name, {"path": f"/{self.count}"})

    agent = agent_of([TURN[1]], "ok", tools=TOOLS, interrupt_on=GATED, middleware=[Moving()])
    done = agent.resume(agent.run("go"), sa.Approve())
    assert RAN == []
    assert "changed after they were approved" in results(done.state)[0]


# what a call leaves out


@sa.tool
def ship(to: str, carrier: str = "DHL", weight: float = 2.0, then: tuple[str, ...] = ()) -> str:
    """Ship."""
    RAN.append(("ship", (to, carrier, weight, then)))
    return "shipped"


def shipping(*tools: sa.Tool) -> tuple[sa.Agent, sa.RunResult]:
    """An agent that asks before it ships, and its run that waits."""
    asked = call("ship", to="Oslo", weight=3.0)
    agent = agent_of(asked, "done", tools=tools or (ship,), interrupt_on=["ship"])
    return agent, agent.run("go")


def request_of(result: sa.RunResult) -> sa.ActionRequest:
    assert result.interrupt is not None
    (request,) = result.interrupt.action_requests
    return request


@pytest.mark.spec("S1.3.16")
def test_what_is_asked_tells_the_defaults_that_will_be_used_and_no_others() -> None:
    agent, result = shipping()
    assert request_of(result).arguments == {"to": "Oslo", "weight": 3.0}
    assert request_of(result).defaults == {"carrier": "DHL", "then": []}
    done = agent.resume(result, sa.Approve())
    assert RAN == [("ship", ("Oslo", "DHL", 3.0, ()))]
    (answer,) = done.state.messages[2].tool_results
    assert answer.metadata["defaults"] == {"carrier": "DHL", "then": []}
    assert "edited_arguments" not in answer.metadata


@pytest.mark.spec("S1.3.16")
def test_an_edit_leaves_the_defaults_of_what_it_does_not_name() -> None:
    agent, result = shipping()
    done = agent.resume(result, sa.Edit({"to": "Oslo", "carrier": "UPS"}))
    assert RAN == [("ship", ("Oslo", "UPS", 2.0, ()))]
    (answer,) = done.state.messages[2].tool_results
    assert answer.metadata["edited_arguments"] == {"to": "Oslo", "carrier": "UPS"}
    assert answer.metadata["defaults"] == {"weight": 2.0, "then": []}


@pytest.mark.spec("P4", "S1.3.16")
@pytest.mark.parametrize("decision", [sa.Approve(), sa.Edit({"to": "Rome"})])
def test_an_approval_does_not_cover_a_default_that_changed_since(decision: sa.Decision) -> None:
    @sa.tool(name="ship")
    def other(to: str, carrier: str = "UPS", weight: float = 2.0) -> str:
        """Ship."""
        RAN.append(("ship", (to, carrier, weight)))
        return "shipped"

    agent, result = shipping()
    done = agent.with_(tools=[other]).resume(result, decision)
    assert RAN == []
    assert "changed after they were approved" in results(done.state)[0]


def test_a_default_that_was_changed_in_place_is_not_what_was_shown() -> None:
    agent, result = shipping()
    request_of(result).defaults["carrier"] = "UPS"
    done = agent.resume(result, sa.Approve())
    assert RAN == []
    assert "changed after they were approved" in results(done.state)[0]


def test_a_rejected_call_took_no_default() -> None:
    agent, result = shipping()
    (answer,) = agent.resume(result, sa.Reject()).state.messages[2].tool_results
    assert "defaults" not in answer.metadata


def test_a_default_that_json_cannot_say_is_left_out() -> None:
    @sa.tool(name="ship")
    def odd(to: str, weight: float, how: Any = Ellipsis, carrier: str = "DHL") -> str:
        """Ship."""
        return "shipped"

    _, result = shipping(odd)
    assert request_of(result).defaults == {"carrier": "DHL"}


# tools that ask by themselves


@sa.tool
def ask(question: str) -> Any:
    """Ask a person."""
    return sa.Interrupt("tool", message=question)


@pytest.mark.spec("S1.3.11")
def test_a_tool_may_ask_by_itself_and_its_placeholder_becomes_the_answer() -> None:
    session = session_of(call("ask", question="Why?"), "I see", tools=[ask])
    session.send("go").result()
    interrupt = session.interrupt
    assert session.status == "interrupted"
    assert interrupt is not None
    assert (interrupt.type, interrupt.tool_call_ids) == ("tool", ["c1"])
    (placeholder,) = session.messages[-1].tool_results
    assert placeholder.is_interrupt
    assert session.resume(sa.Respond("Because.")).result().text == "I see"
    assert results(session.state) == ["Because."]
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant"]


@pytest.mark.spec("S1.3.11")
def test_several_that_ask_are_answered_each_by_its_own_id() -> None:
    turn = [
        call("ask", "a", question="A?"),
        call("read", "r", path="/r"),
        call("ask", "b", question="B?"),
    ]
    agent = agent_of(turn, "ok", tools=[ask, read])
    result = agent.run("go")
    assert result.interrupt is not None
    assert result.interrupt.tool_call_ids == ["a", "b"]
    with pytest.raises(sa.InvalidDecision, match="missing"):
        agent.resume(result, {"a": sa.Respond(1)})
    done = agent.resume(result, {"b": sa.Respond("to b"), "a": sa.Respond("to a")})
    assert results(done.state) == ["to a", "content of /r", "to b"]


# what else may happen while something waits


def test_a_message_to_a_waiting_session_answers_the_calls_and_goes_on() -> None:
    session = session_of(TURN, "fine, not that", tools=TOOLS, interrupt_on=GATED)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    assert session.send("never mind").result().text == "fine, not that"
    assert RAN == []
    assert not unanswered(session.messages)
    assert all("another message came" in text for text in results(session.state))


def test_cancelling_denies_what_waits() -> None:
    session = session_of(TURN, "next", tools=TOOLS, interrupt_on=GATED)
    session.send("go").result()
    session.cancel()
    assert (session.status, session.interrupt) == ("cancelled", None)
    assert not unanswered(session.messages)
    with pytest.raises(sa.NotRunning):
        session.approve()
    assert session.send("and now?").result().text == "next"
    assert RAN == []


def test_a_pending_approval_survives_export_and_restore() -> None:
    agent = agent_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    session = sa.Session(agent, id="s1")
    session.send("go").result()
    fork = sa.Session.restore(session.export_state(), agent=agent, id="s2")
    assert fork.status == "interrupted"
    assert unbound(fork.interrupt) == unbound(session.interrupt)
    assert fork.approve().result().text == "done"  # type: ignore[union-attr]
    assert ("write", "/w") in RAN


def test_the_events_of_an_interrupted_and_a_resumed_run_are_both_whole() -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    cut = len(heard)
    session.resume([sa.Approve(), sa.Reject()]).result()
    assert not ungrammatical(heard[:cut])
    assert not ungrammatical(heard[cut:])
    assert len({e.run_id for e in heard if e.type in ("agent_start", "agent_end")}) == 1


def test_a_person_may_decide_from_a_subscriber_the_moment_it_waits() -> None:
    session = session_of(TURN, "done", tools=TOOLS, interrupt_on=GATED)
    done = threading.Event()

    def decide(event: Any) -> None:
        if event.type == "status_changed" and event.status == "interrupted":
            session.approve()
        if event.type == "status_changed" and event.status == "idle":
            done.set()

    session.subscribe(decide)
    assert session.send("go").result().status == "interrupted"
    assert done.wait(PATIENCE)
    assert session.messages[-1].text == "done"


def test_a_result_that_was_pickled_is_resumed_once_with_the_one_it_was() -> None:
    _, result = waiting([call("write", "w", path="/w")])
    agent = agent_of("ok", "ok", "ok", tools=TOOLS, interrupt_on={"write": True})
    early = [pickle.loads(pickle.dumps(result)) for _ in range(2)]
    assert agent.resume(early[0], sa.Approve()).status == "completed"
    late = pickle.loads(pickle.dumps(result))
    for copied in (result, early[1], late):
        with pytest.raises(sa.StaleApproval):
            agent.resume(copied, sa.Approve())
    assert RAN == [("write", "/w")]


def asking_for_one() -> tuple[sa.Session, list[int]]:
    ran: list[int] = []

    @sa.tool(run_on="loop")
    def pay(amount: int) -> str:
        """Pay it."""
        ran.append(amount)
        return "paid"

    session = session_of(call("pay", amount=1), "done", tools=[pay], interrupt_on=["pay"])
    session.send("go").result()
    return session, ran


def test_what_cannot_be_written_is_no_decision_and_the_calls_still_wait() -> None:
    session, ran = asking_for_one()
    itself: dict[str, Any] = {"amount": 5}
    itself["more"] = itself
    for arguments in ({"amount": 10**5000}, itself):
        with pytest.raises(sa.InvalidDecision, match=r"cannot be kept|do not fit"):
            session.resume(sa.Edit(arguments))
    assert session.status == "interrupted"
    session.approve().result()  # type: ignore[union-attr]
    assert ran == [1]


def test_a_pickled_result_holds_no_secret_that_was_given_for_its_run() -> None:
    given = {
        "tool_context": {"database": "canary-one"},
        "options": {"user": "sk-proj-canary-two-0123456789", "seed": 7},
    }
    agent = agent_of(call("write", path="/w"), "ok", tools=TOOLS, interrupt_on={"write": True})
    result = agent.run("go", **given)
    assert b"canary" not in pickle.dumps(result)
    copied = pickle.loads(pickle.dumps(result))
    assert copied.overrides == {"options": {"seed": 7}}
    assert agent.resume(copied, sa.Approve()).status == "completed"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_result_is_resumed_with_what_was_given_for_its_run(copied: Any) -> None:
    seen: list[Any] = []

    @sa.tool
    def look(ctx: sa.ToolContext) -> str:
        """Look."""
        seen.append(ctx.values["database"])
        return "seen"

    agent = agent_of(call("look"), "ok", tools=[look], interrupt_on={"look": True})
    result = agent.run("go", tool_context={"database": "sales"})
    assert agent.resume(copied(result), sa.Approve()).status == "completed"
    assert seen == ["sales"]
