"""What runs is what was shown to people, and nothing dangerous runs unseen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.interrupts import ActionRequest, canonical_json, digest_of
from tests.session.stored import disk
from tests.talking import PATIENCE, agent_of, call, results

CHANGED = "Not run: the arguments changed after they were approved."


class Deleting:
    """A tool, and what it was called with."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

        def delete(path: str, more: dict[str, Any] | None = None) -> str:
            self.ran.append(path if more is None else more)
            return "gone"

        self.tool = sa.tool(delete)


@pytest.fixture
def deleting() -> Deleting:
    return Deleting()


def asking(deleting: Deleting, **options: Any) -> sa.Agent:
    turns = [call("delete", "c", path="/safe", more={"at": ["/safe"]}), "done"]
    options = {"interrupt_on": {"delete": True}, **options}
    return agent_of(*turns, tools=[deleting.tool], **options)


# a01: the call that runs is the one that was shown


class Later(sa.Middleware):
    """Changes a call in place, or as another one, once it was approved."""

    def __init__(self, change: Any) -> None:
        self.change = change
        self.times = 0

    def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
        self.times += 1
        return self.change(call) if self.times == 2 else None


def in_place(call: sa.ToolCall) -> None:
    call.arguments["path"] = "/danger"


def deep_inside(call: sa.ToolCall | ActionRequest) -> None:
    call.arguments["more"]["at"].append("/danger")


def as_another(call: sa.ToolCall) -> sa.ToolCall:
    return replace(call, arguments={"path": "/danger"})


def as_its_equal(call: sa.ToolCall) -> sa.ToolCall:
    return replace(call, arguments={**call.arguments, "more": {"at": ["/safe"], "n": True}})


@pytest.mark.parametrize("change", [in_place, deep_inside, as_another, as_its_equal])
@pytest.mark.parametrize("decision", [sa.Approve(), sa.Edit({"path": "/e", "more": {"at": []}})])
def test_a01_what_a_hook_changes_after_the_decision_does_not_run(
    change: Any, decision: Any, deleting: Deleting
) -> None:
    agent = asking(deleting, middleware=[Later(change)])
    result = agent.resume(agent.run("go"), decision)
    assert deleting.ran == []
    assert results(result.state) == [CHANGED]


@pytest.mark.parametrize("kept", ["gate", "opened"])
def test_a01_what_changes_in_the_history_while_it_waits_does_not_run(
    kept: str, deleting: Deleting
) -> None:
    session = sa.Session(asking(deleting))
    session.send("go").result(PATIENCE)
    interrupt = session.interrupt
    assert interrupt is not None
    (request,) = interrupt.action_requests
    deep_inside(session.messages[-1].tool_calls[0])
    assert request.arguments["more"] == {"at": ["/safe"]}
    if kept == "opened":
        session.replace(agent=agent_of("done", tools=[deleting.tool]))
    run = session.decide(
        {"c": sa.Approve()}, interrupt_id=interrupt.id, digests={"c": request.digest}, by="ann"
    )
    assert run is not None
    run.result(PATIENCE)
    assert deleting.ran == []
    assert results(session.state) == [CHANGED]


@pytest.mark.parametrize("answer", ["session", "panel", "agent"])
def test_a01_who_changes_the_call_and_what_is_asked_has_approved_neither(answer: str) -> None:
    deleting = Deleting()
    agent = asking(deleting)
    session = sa.Session(agent)
    result = session.send("go").result(PATIENCE) if answer != "agent" else agent.run("go")
    interrupt = session.interrupt if answer != "agent" else result.interrupt
    assert interrupt is not None
    (request,) = interrupt.action_requests
    deep_inside(result.state.messages[-1].tool_calls[0])
    deep_inside(request)
    if answer == "agent":
        state = agent.resume(result, sa.Approve()).state
    else:
        if answer == "panel":
            run = session.decide(
                {"c": sa.Approve()}, interrupt_id=interrupt.id, digests={"c": request.digest},
                by="ann",
            )  # fmt: skip
        else:
            run = session.approve()
        assert run is not None
        state = run.result(PATIENCE).state
    assert deleting.ran == []
    assert results(state) == [CHANGED]


def test_a01_who_keeps_a_call_cannot_change_it_while_it_is_written_down() -> None:
    class Keeps(sa.Middleware):
        kept: Any = None

        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            self.kept = call

    deleting, keeps = Deleting(), Keeps()
    ran = deleting.tool.arguments.check

    def checked(arguments: Any) -> Any:
        found = ran(arguments)
        if keeps.kept is not None:
            deep_inside(keeps.kept)
        return found

    deleting.tool.arguments.check = checked  # type: ignore[method-assign]
    agent = asking(deleting, middleware=[keeps])
    agent.resume(agent.run("go"), sa.Approve())
    assert deleting.ran in ([], [{"at": ["/safe"]}])


# a02: ids of calls inside of sub-agents


def helper(name: str, inner: str, ran: list[str]) -> sa.SubAgentConfig:
    def work(path: str) -> str:
        ran.append(path)
        return "worked"

    model = sa.ScriptedModel([sa.ToolCall(inner, "work", {"path": name}), "ok"])
    tool = sa.tool(work)
    return sa.SubAgentConfig(name, "d", "p", [tool], model=model, interrupt_on={"work": True})


def task(id: str, name: str) -> sa.ToolCall:
    return sa.ToolCall(id, "task", {"instructions": "do", "subagent_type": name})


@pytest.mark.parametrize(
    "ids", [("t", "t/c", "t/t", "c"), ("t", "t/c", "t~1t", "c"), ("a~", "1/c", "a", "~1/c")]
)
def test_a02_no_two_calls_of_sub_agents_wait_under_one_id(ids: tuple[str, str, str, str]) -> None:
    one, inner, other, another = ids
    ran: list[str] = []
    helpers = [helper("danger", inner, ran), helper("safe", another, ran)]
    session = sa.Session(
        sa.Agent(
            sa.ScriptedModel([[task(one, "danger"), task(other, "safe")], "done"]),
            subagent_options={"subagents": helpers},
        )
    )
    waiting = session.send("go").result(PATIENCE).interrupt
    assert waiting is not None
    assert len(set(waiting.tool_call_ids)) == 2
    session.resume([sa.Reject(), sa.Approve()]).result(PATIENCE)
    assert ran == ["safe"]


def test_a02_a_question_beside_a_sub_agents_is_answered_by_itself() -> None:
    def ask(question: str) -> object:
        return sa.Interrupt("tool", message=question)

    ran: list[str] = []
    turn = [task("t", "danger"), sa.ToolCall("t/c", "ask", {"question": "?"})]
    agent = sa.Agent(
        sa.ScriptedModel([turn, "done"]),
        tools=[ask],
        subagent_options={"subagents": [helper("danger", "c", ran)]},
    )
    session = sa.Session(agent)
    session.send("go").result(PATIENCE)
    session.resume([sa.Approve(), sa.Respond("yes")]).result(PATIENCE)
    assert ran == ["danger"]
    assert results(session.state) == ["ok", "yes"]


# a03: a gate that is tighter by now


def test_a03_a_decision_that_the_gate_allows_no_more_is_refused(deleting: Deleting) -> None:
    with disk() as place:
        store = place.store()
        session = sa.Session(asking(deleting), id="c1", store=store)
        session.send("go").result(PATIENCE)
        session.close()
        gate = {"delete": {"allowed_decisions": ["reject"]}}
        agent = agent_of("done", tools=[deleting.tool], interrupt_on=gate)
        session = sa.Session.open("c1", agent=agent, store=store)
        for refused in (session.approve, lambda: session.resume(sa.Edit({"path": "/x"}))):
            with pytest.raises(sa.InvalidDecision, match="take reject only by now, not"):
                refused()
        session.reject().result(PATIENCE)  # type: ignore[union-attr]
        assert deleting.ran == []


# a04: digests


ODD = [
    math.nan, math.inf, -math.inf, None, b"aa", "YWE=", "aa", 0, 0.0, -0.0, 1, 1.0, True, "1",
    [], {}, "NaN", "Infinity", "null", "\ud800", "?", b"", "", [None], {"a": None}, {"a": math.nan},
]  # fmt: skip


@pytest.mark.parametrize("where", [lambda v: v, lambda v: {"x": v}, lambda v: [[v]]])
def test_a04_values_that_differ_have_digests_that_differ(where: Any) -> None:
    digests = {digest_of("s", 1, "c", "w", where(value)) for value in ODD}
    assert len(digests) == len(ODD)


def test_a04_what_is_json_has_the_digest_that_it_had() -> None:
    """Requests that wait in a store were bound by it."""
    assert canonical_json({"b": [1, 1.5, None, "ä"], "a": True}) == (
        '{"a":true,"b":[1,1.5,null,"ä"]}'.encode()
    )


# a13: options of a gate


@pytest.mark.spec("S1.3.1")
def test_a13_an_option_of_a_gate_that_is_none_is_refused(deleting: Deleting) -> None:
    with pytest.raises(sa.ConfigurationError, match="its one key is allowed_decisions"):
        asking(deleting, interrupt_on={"delete": {"allowed_decision": ["reject"]}})


# a16: a tool that carries its gate


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    yield shell
    shell.user_ns.pop("owned", None)


PYTHON = call("run_python", code="owned = 41 + 1")


@pytest.mark.spec("S1.1.6")
def test_a16_the_models_python_asks_people_first(shell: InteractiveShell) -> None:
    agent = agent_of(PYTHON, "done", middleware=[sa.NotebookTools(shell)])
    result = agent.run("go")
    assert result.status == "interrupted"
    assert "owned" not in shell.user_ns
    assert agent.resume(result, sa.Approve()).text == "done"
    assert shell.user_ns["owned"] == 42


@pytest.mark.spec("S1.1.6")
def test_a16_only_a_false_opens_it(shell: InteractiveShell) -> None:
    tools = sa.NotebookTools(shell)
    agent = agent_of(PYTHON, "done", middleware=[tools], interrupt_on={"run_python": False})
    assert agent.run("go").status == "completed"
    assert shell.user_ns["owned"] == 42


@pytest.mark.parametrize("gate", [{"inspect_variables": True}, {}])
def test_a16_a_gate_over_other_tools_does_not_open_it(gate: Any, shell: InteractiveShell) -> None:
    for options in ({"interrupt_on": gate}, {"extra": [sa.HumanInTheLoop(gate)]}):
        extra = options.pop("extra", [])
        agent = agent_of(PYTHON, "done", middleware=[sa.NotebookTools(shell), *extra], **options)
        assert agent.run("go").status == "interrupted"


def dangerous(ran: list[str]) -> sa.Tool:
    def fire() -> str:
        ran.append("fired")
        return "fired"

    return sa.tool(needs_approval=True)(fire)


def test_a16_a_sub_agent_asks_for_a_tool_that_carries_its_gate() -> None:
    ran: list[str] = []
    model = sa.ScriptedModel([call("fire"), "ok"])
    config = sa.SubAgentConfig("helper", "d", "p", [dangerous(ran)], model=model)
    agent = sa.Agent(
        sa.ScriptedModel([task("t", "helper"), "done"]),
        subagent_options={"subagents": [config]},
    )
    result = agent.run("go")
    assert (result.status, ran) == ("interrupted", [])
    assert agent.resume(result, sa.Approve()).text == "done"
    assert ran == ["fired"]


def test_a16_the_general_sub_agent_asks_too(shell: InteractiveShell) -> None:
    agent = sa.Agent(
        sa.ScriptedModel([task("t", "general-purpose"), PYTHON, "ok", "done"]),
        subagent_options={"middleware": [sa.NotebookTools(shell)]},
    )
    assert agent.run("go").status == "interrupted"
    assert "owned" not in shell.user_ns


@pytest.mark.spec("S1.13.3")
@pytest.mark.parametrize("options", [{"interrupt_on": {"write_file": True}}, {}])
def test_a16_a_gate_cannot_be_kept_from_who_has_its_tools(
    options: Any, shell: InteractiveShell
) -> None:
    middleware = [] if options else [sa.NotebookTools(shell)]
    with pytest.raises(sa.ConfigurationError, match="so nobody would be asked; block what brings"):
        sa.Agent(
            sa.ScriptedModel(["done"]),
            middleware=middleware,
            subagent_options={"block_middleware": [sa.HumanInTheLoop]},
            **options,
        )


def test_a16_a_gate_over_the_agents_own_tools_can_be_kept_from_others(deleting: Deleting) -> None:
    sa.Agent(
        sa.ScriptedModel(["done"]),
        tools=[deleting.tool],
        interrupt_on={"delete": True},
        subagent_options={"block_middleware": [sa.HumanInTheLoop]},
    )


# decisions as data


@pytest.mark.parametrize(
    "decision",
    [
        {"type": "approve", "arguments": {"path": "/danger"}},
        {"type": "approve", "digest": "0" * 64},
        {"type": "reject", "arguments": {}},
        {"type": "edit", "arguments": {"path": "/x"}, "message": "why"},
    ],
)
def test_a_decision_that_says_more_than_it_can_mean_is_refused(
    decision: Any, deleting: Deleting
) -> None:
    agent = asking(deleting)
    result = agent.run("go")
    with pytest.raises(sa.InvalidDecision, match="unknown field"):
        agent.resume(result, decision)
    assert agent.resume(result, sa.Approve()).text == "done"
