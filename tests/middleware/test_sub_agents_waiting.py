"""Sub-agents that ask people, in their parent's name."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import StatusChanged, ToolExecutionEnd
from sagents_nb.middleware.sub_agent_runs import SubAgentRun
from tests.grammar import ungrammatical
from tests.middleware.delegating import helper, parent_of, requests_of, task, wrapped
from tests.talking import agent_of, call, of, results, roles, streamed, unanswered, unbound

RAN: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def write(path: str, text: str = "") -> str:
    """Write."""
    RAN.append(("write", path))
    return f"wrote {path}"


@sa.tool
def read(path: str = "") -> str:
    """Read."""
    RAN.append(("read", path))
    return f"content of {path}"


def gated(*turns: Any, name: str = "helper", **options: Any) -> sa.SubAgentConfig:
    """A sub-agent whose writing waits for people."""
    given = {"tools": [write, read], "interrupt_on": {"write": True}}
    return helper(*turns, name=name, **{**given, **options})


def writing(id: str = "w", path: str = "/w") -> sa.ToolCall:
    return call("write", id, path=path)


def ids(result: Any) -> list[str]:
    assert result.interrupt is not None
    return list(result.interrupt.tool_call_ids)


# one that asks


@pytest.mark.spec("S1.13.8")
def test_what_a_sub_agent_asks_is_asked_by_its_parent() -> None:
    config = gated([call("read", "r", path="/r"), writing()], "written")
    session = sa.Session(parent_of(task(), "done", subagents=[config]), id="s")
    result = session.send("go").result()
    interrupt = result.interrupt
    assert interrupt is not None
    assert (session.status, interrupt.type) == ("interrupted", "subagent_hitl")
    (request,) = interrupt.action_requests
    assert (request.tool_call_id, request.tool_name) == ("t1/w", "write")
    assert request.arguments == {"path": "/w"}
    assert interrupt.review_configs == {
        "write": {"allowed_decisions": ["approve", "edit", "reject"]}
    }
    about = {"sub_agent_id": "s-sub-1", "subagent_type": "helper", "tool_call_id": "t1"}
    assert about.items() <= interrupt.data.items()
    assert interrupt.data["interrupt"]["type"] == "hitl"
    (placeholder,) = session.messages[-1].tool_results
    assert placeholder.is_interrupt
    assert "needs approval" in placeholder.text
    assert RAN == []
    done = session.approve().result()  # type: ignore[union-attr]
    assert done.text == "done"
    assert sorted(RAN) == [("read", "/r"), ("write", "/w")]
    assert results(session.state) == ["written"]
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant"]


@pytest.mark.spec("S1.13.3")
def test_the_general_one_asks_for_what_its_parent_asks_for() -> None:
    agent = sa.Agent(
        sa.ScriptedModel(
            [
                task(kind="general-purpose"),
                call("write_file", "w", file_path="/a", content="x"),
                "written",
                "done",
            ]
        ),
        interrupt_on={"write_file": True},
    )
    waiting = agent.run("go")
    assert ids(waiting) == ["t1/w"]
    assert agent.resume(waiting, sa.Approve()).text == "done"


@pytest.mark.spec("S1.13.8", "P5")
@pytest.mark.parametrize(
    ("decision", "ran", "told"),
    [
        (sa.Reject("not there"), [], "not there"),
        (sa.Edit({"path": "/e"}), [("write", "/e")], "wrote /e"),
        ({"type": "approve"}, [("write", "/w")], "wrote /w"),
    ],
)
def test_every_decision_reaches_the_sub_agent(decision: Any, ran: Any, told: str) -> None:
    config = gated(writing(), "over")
    agent = parent_of(task(), "done", subagents=[config])
    agent.resume(agent.run("go"), decision)
    assert ran == RAN
    (answer,) = requests_of(config)[1].messages[-1].tool_results
    assert told in answer.text


@pytest.mark.spec("S1.13.8")
def test_it_may_ask_again_and_again() -> None:
    config = gated(*(writing(str(n), f"/{n}") for n in range(3)), "all written")
    session = sa.Session(parent_of(task(), "done", subagents=[config]))
    heard: list[Any] = []
    session.subscribe(heard.append)
    run = session.send("go")
    for n in range(3):
        assert ids(run.result()) == [f"t1/{n}"]
        run = session.resume(sa.Approve())
    assert run.result().text == "done"
    assert [path for _, path in RAN] == ["/0", "/1", "/2"]
    statuses = [e.status for e in wrapped(heard) if e.type == "status_changed"]
    assert statuses == ["running", "interrupted"] * 3 + ["running", "completed"]
    ends = [(e.tool_call_id, e.status) for e in of(ToolExecutionEnd, heard)]
    assert ends == [("t1", "interrupted"), ("t1", "completed")]
    cuts = [i + 1 for i, e in enumerate(heard) if e.type == "agent_end"]
    asked: set[str] = set()
    for start, end in zip([0, *cuts], cuts, strict=False):
        assert not ungrammatical(heard[start:end], asked)


@pytest.mark.spec("S1.13.10", "S1.13.8")
def test_until_tool_and_extract_result_hold_after_a_pause_too() -> None:
    config = gated(writing(), call("read", "r", path="/end"), name="one", until_tool="read")
    whole = sa.CompiledSubAgent(
        "two",
        "Two.",
        agent_of(writing(), "over", tools=[write], interrupt_on={"write": True}),
        extract_result=lambda state: [m.role for m in state.messages],
    )
    agent = parent_of([task("a", "one"), task("b", "two")], "done", subagents=[config, whole])
    done = agent.resume(agent.run("go"), sa.Approve())
    assert results(done.state) == ["content of /end", '["user","assistant","tool","assistant"]']


def test_a_parent_whose_until_tool_is_the_task_ends_with_its_answer() -> None:
    agent = parent_of(task(), "never", subagents=[gated(writing(), "over")], until_tool="task")
    done = agent.resume(agent.run("go"), sa.Approve())
    assert done.status == "completed"
    assert done.tool_result is not None
    assert done.tool_result.text == "over"
    assert len(requests_of(agent)) == 1


@pytest.mark.spec("S1.13.11", "S1.13.8")
def test_one_that_fails_after_a_pause_is_an_error_the_parent_goes_on_from() -> None:
    agent = parent_of(task(), "I see", subagents=[gated(writing(), RuntimeError("boom"))])
    done = agent.resume(agent.run("go"), sa.Approve())
    (answer,) = done.state.messages[2].tool_results
    assert answer.is_error
    assert "boom" in answer.text
    assert done.text == "I see"


# several


@pytest.mark.spec("S1.13.8", "S1.3.12")
def test_siblings_keep_their_results_and_each_decision_reaches_its_own() -> None:
    free = helper(call("read", "r", path="/free"), "free is done", name="free", tools=[read])
    one = gated(writing("w", "/one"), "one is done", name="one")
    two = gated(writing("w", "/two"), "two is done", name="two")
    turn = [task("a", "one"), task("f", "free"), task("b", "two")]
    agent = parent_of(turn, "done", subagents=[free, one, two])
    waiting = agent.run("go")
    assert ids(waiting) == ["a/w", "b/w"]
    assert RAN == [("read", "/free")]
    done = agent.resume(waiting, {"b/w": sa.Reject(), "a/w": sa.Approve()})
    assert results(done.state) == ["one is done", "free is done", "two is done"]
    assert RAN == [("read", "/free"), ("write", "/one")]
    assert len(requests_of(free)) == 2


@pytest.mark.spec("S1.3.12", "S1.13.8")
def test_one_may_be_done_while_the_other_asks_again() -> None:
    one = gated(writing("w", "/1"), writing("again", "/2"), "one", name="one")
    two = gated(writing("w", "/3"), "two", name="two")
    agent = parent_of([task("a", "one"), task("b", "two")], "done", subagents=[one, two])
    waiting = agent.resume(agent.run("go"), sa.Approve())
    assert ids(waiting) == ["a/again"]
    assert results(waiting.state)[1] == "two"
    assert results(agent.resume(waiting, sa.Approve()).state) == ["one", "two"]
    assert [path for _, path in RAN] == ["/1", "/3", "/2"]
    assert len(requests_of(two)) == 2


@pytest.mark.spec("S1.3.12")
def test_tasks_and_a_question_of_the_parent_are_answered_each_by_its_own_id() -> None:
    question = call("ask_user", "q", question="Why?", response_type="freeform")
    agent = parent_of(
        [task("a"), question, task("b", "free")],
        "done",
        subagents=[gated(writing(), "written"), helper("free", name="free")],
        middleware=[sa.AskUser()],
    )
    session = sa.Session(agent)
    waiting = session.send("go").result()
    assert waiting.interrupt is not None
    assert waiting.interrupt.type == "multiple"
    assert {part.type for part in waiting.interrupt.parts} == {"subagent_hitl", "ask_user"}
    assert ids(waiting) == ["a/w", "q"]
    answer = sa.Respond({"other_text": "Because."})
    with pytest.raises(sa.InvalidDecision) as refused:
        session.resume({"a/w": sa.Approve(), "q": sa.Respond({"selected": ["x"]})})
    assert refused.value.tool_call_id == "q"
    with pytest.raises(sa.InvalidDecision) as refused:
        session.resume({"a/w": sa.Edit({"path": 5}), "q": answer})
    assert refused.value.tool_call_id == "a/w"
    assert RAN == []
    assert session.resume({"q": answer, "a/w": sa.Approve()}).result().text == "done"
    first, second, third = results(session.state)
    assert (first, third) == ("written", "free")
    assert "Because." in second


def test_a_sub_agent_of_its_own_right_may_ask_a_question_through_its_parent() -> None:
    question = call("ask_user", "q", question="Which?", response_type="freeform")
    config = helper(question, "thanks", middleware=[sa.AskUser()])
    agent = parent_of(task(), "done", subagents=[config])
    waiting = agent.run("go")
    assert waiting.interrupt is not None
    assert waiting.interrupt.message == "Which?"
    assert waiting.interrupt.data["interrupt"]["data"]["question"] == "Which?"
    with pytest.raises(sa.InvalidDecision):
        agent.resume(waiting, sa.Respond({"selected": ["x"]}))
    agent.resume(waiting, sa.Respond({"other_text": "That one."}))
    (answer,) = requests_of(config)[1].messages[-1].tool_results
    assert "That one." in answer.text


def test_a_hook_that_stops_a_sub_agent_hears_the_answer_as_a_message() -> None:
    class Check(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> Any:
            return sa.Interrupt("tool", message="Sure?") if len(state.messages) == 1 else None

    config = helper("going on", middleware=[Check()])
    agent = parent_of(task(), "done", subagents=[config])
    waiting = agent.run("go")
    assert ids(waiting) == ["t1/Check.before_model"]
    assert results(agent.resume(waiting, sa.Respond("yes, go")).state) == ["going on"]
    assert requests_of(config)[0].messages[-1].text == "yes, go"


def test_two_levels_down_the_right_one_hears() -> None:
    inner = gated(writing(), "inner is done", name="inner")
    middle = sa.CompiledSubAgent(
        "middle", "Middle.", parent_of(task("t2", "inner"), "middle is done", subagents=[inner])
    )
    agent = parent_of(task("t1", "middle"), "done", subagents=[middle], max_depth=2)
    waiting = agent.run("go")
    assert ids(waiting) == ["t1/t2/w"]
    with pytest.raises(sa.InvalidDecision, match="write") as refused:
        agent.resume(waiting, sa.Edit({"path": 5}))
    assert refused.value.tool_call_id == "t1/t2/w"
    done = agent.resume(waiting, sa.Approve())
    assert (done.text, results(done.state)) == ("done", ["middle is done"])
    assert RAN == [("write", "/w")]


# bad answers


@pytest.mark.spec("S1.13.8", "P3")
@pytest.mark.parametrize(
    "bad",
    [
        [],
        [sa.Approve()] * 2,
        sa.Edit({"path": 5}),
        sa.Edit({"nowhere": "/x"}),
        sa.Respond("x"),
        {"w": sa.Approve()},
        {"t1": sa.Approve()},
    ],
)
def test_after_bad_decisions_it_still_waits(bad: Any) -> None:
    @sa.tool(name="write")
    def other(file: int) -> str:
        """Another tool of that name, of the parent."""
        return "other"

    session = sa.Session(
        parent_of(task(), "done", subagents=[gated(writing(), "written")], tools=[other])
    )
    session.send("go").result()
    before = session.state
    with pytest.raises(sa.InvalidDecision):
        session.resume(bad)
    assert (session.status, session.state, RAN) == ("interrupted", before, [])
    assert session.resume(sa.Edit({"path": "/mine"})).result().text == "done"
    assert RAN == [("write", "/mine")]


def test_calls_of_several_sub_agents_may_be_decided_one_by_one() -> None:
    one = gated(writing("w", "/1"), "one", name="one")
    two = gated([writing("w", "/2"), writing("v", "/3")], "two", name="two")
    agent = parent_of([task("a", "one"), task("b", "two")], "done", subagents=[one, two])
    session = sa.Session(agent)
    session.send("go").result()
    assert session.approve("b/v") is None
    assert session.reject("a/w") is None
    assert RAN == []
    run = session.approve("b/w")
    assert run is not None
    run.result()
    assert sorted(path for _, path in RAN) == ["/2", "/3"]


# what may happen meanwhile


@pytest.mark.spec("S1.13.8")
def test_a_parent_goes_on_without_the_sub_agent_that_is_gone() -> None:
    config = gated(writing(), "written")
    agent = parent_of(task(), "I try it myself", subagents=[config])
    session = sa.Session(agent)
    session.send("go").result()
    fork = sa.Session(agent, id="fork")
    fork.replace(state=session.state)
    assert unbound(fork.interrupt) == unbound(session.interrupt)
    result = fork.approve().result()  # type: ignore[union-attr]
    (answer,) = fork.messages[2].tool_results
    assert answer.is_error
    assert "gone" in answer.text
    assert (result.text, RAN) == ("I try it myself", [])


def test_who_was_given_up_is_not_kept() -> None:
    config = gated(writing(), writing("w2", "/2"), "written")
    agent = parent_of(task(), "never mind", task("t2"), "done", subagents=[config])
    session = sa.Session(agent)
    session.send("go").result()
    assert session.send("stop that").result().text == "never mind"
    assert results(session.state)[0] == "Cancelled: another message came."
    session.send("again").result()
    team = session.actor.local["sub_agents"]
    assert [work.id for work in team.waiting.values()] == [f"{session.id}-sub-2"]
    session.approve().result()  # type: ignore[union-attr]
    assert team.waiting == {}
    assert RAN == [("write", "/2")]


@pytest.mark.spec("S1.13.12")
def test_cancelling_while_a_sub_agent_goes_on_leaves_nothing_open() -> None:
    class Slow(sa.ChatModel):
        name = "slow"
        turns = 0

        async def stream(self, request: Any) -> Any:
            self.turns += 1
            if self.turns > 1:
                session.cancel()
                await asyncio.sleep(3600)
            yield sa.Message.assistant(tool_calls=[writing()])

    config = gated(model=Slow())
    session = sa.Session(parent_of(task(), "next", subagents=[config]))
    session.send("go").result()
    assert session.resume(sa.Approve()).result().status == "cancelled"
    assert session.interrupt is None
    assert not unanswered(session.messages)
    assert not any(r.is_interrupt for m in session.messages for r in m.tool_results)
    assert session.to_frame("tool_calls").status.tolist()[0] == "failed"
    assert session.send("and now?").result().text == "next"


class Driver:
    """Starts and resumes one sub-agent from inside a tool, as the tool ``task`` does."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.heard: list[Any] = []
        self.work = SubAgentRun(agent_of(*turns, agent_id="x", **options), "kind", sa.State())
        self.refused: list[str] = []

    def drive(self, body: Any) -> list[str]:
        """Run ``body(ctx)`` inside a run; the changes of the status, as they were told."""

        @sa.tool
        async def drive(ctx: sa.ToolContext) -> str:
            """Drive."""
            await body(ctx.run)
            return "ok"

        agent = agent_of(call("drive"), "done", tools=[drive])
        events = streamed(agent)
        assert [e.result.text for e in of(ToolExecutionEnd, events)] == ["ok"]
        changes = of(StatusChanged, wrapped(events))
        assert all(earlier.status == later.previous for earlier, later in pairwise(changes))
        return [changes[0].previous or "", *(change.status for change in changes)]

    async def start(self, ctx: sa.RunContext) -> Any:
        return await self.work.start(ctx, "c", [sa.Message.user("go")], self.heard.append)

    async def resume(self, ctx: sa.RunContext, **decisions: Any) -> Any:
        given = {f"c/{id}": decision for id, decision in decisions.items()}
        return await self.work.resume(ctx, "c", given, self.heard.append)

    async def refuses_to(self, ctx: sa.RunContext, *what: str) -> None:
        """It does none of that, and says in which status it is."""
        for name in what:
            before = len(requests_of(self.work.agent))
            with pytest.raises(sa.NotRunning, match=f"'x' is {self.work.status}"):
                await getattr(self, name)(ctx)
            assert len(requests_of(self.work.agent)) == before


@pytest.mark.spec("S1.13.9")
@pytest.mark.parametrize(("turn", "status"), [("hi", "completed"), (ValueError("cable"), "error")])
def test_a_sub_agent_starts_once_and_a_finished_one_is_over(turn: Any, status: str) -> None:
    driver = Driver(turn)

    async def body(ctx: sa.RunContext) -> None:
        assert driver.work.status == "idle"
        await driver.refuses_to(ctx, "resume")
        await driver.start(ctx)
        assert driver.work.status == status
        await driver.refuses_to(ctx, "start", "resume")

    assert driver.drive(body) == ["idle", "running", status]


@pytest.mark.spec("S1.13.9")
def test_a_sub_agent_that_waits_resumes_and_does_not_start_again() -> None:
    driver = Driver(
        *(writing(), writing("w2", "/2"), "done"), tools=[write], interrupt_on={"write": True}
    )

    async def body(ctx: sa.RunContext) -> None:
        for id in ("w", "w2"):
            asked = await (driver.start(ctx) if id == "w" else driver.resume(ctx, w=sa.Approve()))
            assert isinstance(asked, sa.Interrupt)
            assert driver.work.status == "interrupted"
            await driver.refuses_to(ctx, "start")
        await driver.resume(ctx, w2=sa.Reject())
        await driver.refuses_to(ctx, "start", "resume")

    changes = driver.drive(body)
    assert changes == ["idle", *["running", "interrupted"] * 2, "running", "completed"]
    assert RAN == [("write", "/w")]


@pytest.mark.spec("S1.13.9")
def test_a_sub_agent_at_work_neither_starts_nor_resumes() -> None:
    inside: list[str] = []

    @sa.tool
    async def look() -> str:
        """Look."""
        assert driver.work.status == "running"
        await driver.refuses_to(run, "start", "resume")
        inside.append("refused")
        return "saw"

    driver = Driver(call("look"), "done", tools=[look])

    async def body(ctx: sa.RunContext) -> None:
        nonlocal run
        run = ctx
        await driver.start(ctx)

    run: Any = None
    assert driver.drive(body) == ["idle", "running", "completed"]
    assert inside == ["refused"]


@pytest.mark.spec("S1.13.9")
def test_a_sub_agent_whose_parent_is_cancelled_says_so_and_is_over() -> None:
    began = asyncio.Event()

    async def forever(request: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    driver = Driver(forever)

    async def body(ctx: sa.RunContext) -> None:
        work = asyncio.ensure_future(driver.start(ctx))
        await began.wait()
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()
        await driver.refuses_to(ctx, "start", "resume")

    assert driver.drive(body) == ["idle", "running", "cancelled"]


# halt


@sa.tool
def stop(why: str = "") -> Any:
    """Stop everything."""
    return sa.Interrupt("halt", message=why or None)


@pytest.mark.spec("S1.4.6")
@pytest.mark.parametrize("paused", [False, True])
def test_a_halt_inside_a_sub_agent_halts_its_parent(paused: bool) -> None:
    first = [writing()] if paused else []
    config = gated(*first, call("stop", "s", why="Too hot."), tools=[stop, write])
    agent = parent_of(task(), "next", subagents=[config])
    session = sa.Session(agent)
    result = session.send("go").result()
    if paused:
        result = session.resume(sa.Approve()).result()
    assert result.interrupt is not None
    assert (result.interrupt.type, result.interrupt.message) == ("halt", "Too hot.")
    assert result.interrupt.data["subagent_type"] == "helper"
    assert [m.text for m in session.messages if m.role == "assistant"][1:] == ["Too hot."]
    assert len(requests_of(agent)) == 1
    assert not unanswered(session.messages)
    assert session.actor.local["sub_agents"].waiting == {}
    session.dismiss()
    assert session.status == "idle"
    assert session.send("go on").result().text == "next"


@pytest.mark.spec("S1.4.6")
def test_a_halt_beats_what_a_sibling_asks() -> None:
    one = gated(writing(), name="one")
    two = helper(call("stop", why="Stop."), name="two", tools=[stop])
    agent = parent_of([task("a", "one"), task("b", "two")], "next", subagents=[one, two])
    session = sa.Session(agent)
    result = session.send("go").result()
    assert result.interrupt is not None
    assert result.interrupt.type == "halt"
    assert session.send("go on").result().text == "next"
    assert RAN == []
    assert not unanswered(session.messages)


def test_the_end_of_a_question_that_nobody_can_answer_any_more_is_told() -> None:
    parent = parent_of(task("t1"), "on my own", subagents=[gated(writing(), "written")])
    asked = parent.run("go")
    [end] = of(ToolExecutionEnd, streamed(parent, "Never mind.", state=asked.state))
    assert (end.tool_call_id, end.status) == ("t1", "failed")
    assert "its work was lost" in end.result.text
    assert RAN == []
