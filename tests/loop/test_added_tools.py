"""Tools that a run is given while it is under way, and the gates before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from tests.talking import agent_of, call, in_threads, results, session_of

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def mcp_read(path: str = "") -> str:
    """Read."""
    RAN.append("read")
    return "read it"


@sa.tool
def mcp_write(path: str = "") -> str:
    """Write."""
    RAN.append("write")
    return "wrote it"


@sa.tool(needs_approval=True)
def remove(path: str = "") -> str:
    """Remove."""
    RAN.append("remove")
    return "removed it"


class Adds(sa.Middleware):
    """A hook that adds tools; by default before each run."""

    def __init__(self, *tools: Any, hook: str = "before_run", **gates: Any) -> None:
        self.made: tuple[Any, ...] = (tools, gates)
        self.hook = hook

    def add(self, hook: str, ctx: sa.RunContext) -> None:
        if hook == self.hook:
            ctx.add_tools(*self.made[:1], **self.made[1])

    def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
        self.add("before_run", ctx)

    def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
        self.add("before_model", ctx)

    def on_session_start(self, state: sa.State, ctx: sa.RunContext) -> None:
        self.add("on_session_start", ctx)


def offered(agent: sa.Agent) -> list[list[str]]:
    """The names of the tools in each request."""
    return [[t.name for t in request.tools] for request in agent.model.requests]  # type: ignore[attr-defined]


# what the model may call


@pytest.mark.spec("H3.4.5")
@pytest.mark.parametrize("hook", ["before_run", "before_model"])
def test_a_tool_that_a_hook_adds_before_a_model_call_is_there_in_that_call(hook: str) -> None:
    agent = agent_of(
        call("mcp_read"), "done", tools=[remove], middleware=[Adds(mcp_read, hook=hook)]
    )
    assert results(agent.run("go").state) == ["read it"]
    assert offered(agent) == [["remove", "mcp_read"]] * 2
    assert [tool.name for tool in agent.tools] == ["remove"]  # agents do not change


@pytest.mark.spec("H3.4.5")
def test_a_tool_adds_tools_for_the_next_model_call_and_the_rest_of_the_conversation() -> None:
    @sa.tool
    def discover(ctx: sa.ToolContext) -> str:
        """Find tools."""
        ctx.run.add_tools([mcp_read])
        return "found"

    turns = [call("discover"), call("mcp_read"), "one", "two", "three"]
    session = session_of(*turns, tools=[discover])
    assert session.send("go").result().text == "one"
    assert session.send("on").result().text == "two"
    assert offered(session.agent) == [["discover"], *[["discover", "mcp_read"]] * 3]
    session.reset()
    session.send("again").result()
    assert offered(session.agent)[4:] == [["discover"]]


def test_another_agent_has_none_of_them() -> None:
    session = session_of("one", middleware=[Adds(mcp_read)])
    session.send("go").result()
    session.replace(agent_of("two"))
    session.send("go").result()
    assert offered(session.agent) == [[]]


def test_a_hook_of_the_beginning_of_a_session_adds_tools_to_all_its_runs() -> None:
    session = session_of(
        call("mcp_read"), "done", middleware=[Adds(mcp_read, hook="on_session_start")]
    )
    assert results(session.send("go").result().state) == ["read it"]


def test_a_tool_that_is_added_again_takes_the_place_of_the_one_before() -> None:
    numbers = iter(range(9))

    class Again(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            number = next(numbers)
            ctx.add_tools([sa.Tool(lambda: f"from {number}", name="look")])

    agent = agent_of(call("look", "c1"), call("look", "c2"), "done", middleware=[Again()])
    assert results(agent.run("go").state) == ["from 0", "from 1"]
    assert offered(agent) == [["look"]] * 3


def test_tools_in_threads_add_tools_at_once() -> None:
    contexts: list[sa.RunContext] = []

    class Keeps(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            contexts.append(ctx)

    agent_of("done", middleware=[Keeps()]).run("go")
    (ctx,) = contexts

    def add(index: int) -> None:
        ctx.add_tools([sa.Tool(lambda: "", name=f"t{index}")])

    assert in_threads(16, add) == [None] * 16
    assert sorted(ctx.tools) == sorted(f"t{n}" for n in range(16))


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda ctx: ctx.add_tools([remove]), "Two tools are called 'remove'"),
        (lambda ctx: ctx.add_tools([mcp_read, mcp_read]), "Two tools are called 'mcp_read'"),
        (lambda ctx: ctx.add_tools(["mcp_read"]), "is no tool"),
        (lambda ctx: ctx.add_tools(mcp_read), "tools=…. is a list"),
        (lambda ctx: ctx.add_tools([mcp_read], ["mcp_wirte"]), "interrupt_on names mcp_wirte"),
        (lambda ctx: ctx.add_tools([mcp_read], {"mcp_read": "maybe"}), "interrupt_on.'mcp_read'"),
        (lambda ctx: ctx.add_tools([mcp_read], 5), "interrupt_on=…"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(
    add: Callable[[sa.RunContext], None], said: str
) -> None:
    class Wrong(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            with pytest.raises(sa.ConfigurationError, match=said):
                add(ctx)
            assert list(ctx.tools) == ["remove"]

    assert agent_of("done", tools=[remove], middleware=[Wrong()]).run("go").text == "done"


def test_a_run_of_no_agent_has_the_tools_that_it_began_with() -> None:
    with pytest.raises(sa.ConfigurationError, match="of no Agent"):
        sa.RunContext(emitter=sa.events.Emitter()).add_tools([mcp_read])


# what asks people first


@pytest.mark.spec("H3.4.5", "S1.3.1")
def test_a_glob_holds_for_tools_that_nobody_knew_when_the_agent_was_made() -> None:
    gates = {"mcp_read": False, "mcp_*": {"allowed_decisions": ["approve", "reject"]}}
    agent = agent_of(
        [call("mcp_read", "c1"), call("mcp_write", "c2")],
        "done",
        interrupt_on=gates,
        middleware=[Adds(mcp_read, mcp_write)],
    )
    waiting = agent.run("go")
    assert waiting.interrupt is not None
    (request,) = waiting.interrupt.action_requests
    assert (request.tool_name, request.allowed_decisions) == ("mcp_write", ("approve", "reject"))
    assert RAN == []
    assert agent.resume(waiting, sa.Approve()).text == "done"
    assert sorted(RAN) == ["read", "write"]


@pytest.mark.spec("S1.3.1")
def test_a_name_wins_over_globs_and_the_first_glob_over_the_others() -> None:
    gates = {"mcp_w*": False, "mcp_*": True, "mcp_read": False, "?emove": ["reject"]}
    turn = [call("mcp_read", "c1"), call("mcp_write", "c2"), call("remove", "c3")]
    tools = [mcp_read, mcp_write, remove]
    waiting = agent_of(turn, tools=tools, interrupt_on=gates).run("go").interrupt
    assert waiting is not None
    assert [(r.tool_name, r.allowed_decisions) for r in waiting.action_requests] == [
        ("remove", ("reject",))
    ]
    free = agent_of(call("remove"), "done", tools=[remove], interrupt_on={"r*": False})
    assert free.run("go").text == "done"  # as where it is named: somebody said so
    with pytest.raises(sa.ConfigurationError, match=r"allows .'maybe'"):
        agent_of(interrupt_on={"mcp_*": ["maybe"]})


@pytest.mark.spec("S1.3.1")
def test_a_tool_that_is_always_allowed_by_a_glob_can_be_asked_about_again_by_it() -> None:
    turns = [call("mcp_write", f"c{n}") for n in range(3)]
    session = session_of(
        turns[0], turns[1], "one", turns[2], "two", tools=[mcp_write], interrupt_on=["mcp_*"]
    )
    session.send("go").result()
    assert session.resume(sa.Approve(always=True)).result().text == "one"
    assert session.always_allowed == ["mcp_write"]
    session.ask_again("mcp_*")
    assert session.send("go").result().status == "interrupted"


@pytest.mark.spec("H3.4.5")
def test_a_tool_that_needs_approval_has_it_wherever_it_is_added() -> None:
    turns = [call("remove"), "done"]
    assert agent_of(*turns, middleware=[Adds(remove)]).run("go").status == "interrupted"
    assert RAN == []
    free = agent_of(*turns, interrupt_on={"r*": False}, middleware=[Adds(remove)])
    assert free.run("go").text == "done"  # somebody said so of tools called that
    assert RAN == ["remove"]


@pytest.mark.spec("H3.4.5")
def test_a_gate_travels_with_its_tool() -> None:
    other = agent_of(tools=[mcp_write, mcp_read], interrupt_on={"mcp_w*": ["approve", "reject"]})
    agent = agent_of(
        call("mcp_write"),
        "done",
        interrupt_on={"mcp_*": False},  # which cannot take it away
        middleware=[Adds(*other.own_tools, interrupt_on=other.interrupt_on)],
    )
    waiting = agent.run("go")
    assert (waiting.status, RAN) == ("interrupted", [])
    assert waiting.interrupt is not None
    assert waiting.interrupt.action_requests[0].allowed_decisions == ("approve", "reject")
    with pytest.raises(sa.InvalidDecision):
        agent.resume(waiting, sa.Edit({"path": "/b"}))
    assert agent.resume(waiting, sa.Reject("no")).text == "done"
    assert RAN == []


@pytest.mark.spec("H3.4.5")
def test_where_both_ask_people_may_decide_what_both_allow() -> None:
    agent = agent_of(
        call("mcp_write"),
        interrupt_on={"mcp_*": ["approve", "edit"]},
        middleware=[Adds(mcp_write, interrupt_on={"mcp_write": ["approve", "reject"]})],
    )
    waiting = agent.run("go").interrupt
    assert waiting is not None
    assert waiting.action_requests[0].allowed_decisions == ("approve",)


@pytest.mark.spec("P3")
def test_an_edit_that_does_not_fit_an_added_tool_is_refused_and_changes_nothing() -> None:
    turns = [call("mcp_write"), "done"]
    wrong, adds = sa.Edit({"path": 5}), Adds(mcp_write, interrupt_on=["mcp_write"])
    agent = agent_of(*turns, middleware=[adds])
    waiting = agent.run("go")
    with pytest.raises(sa.InvalidDecision, match="do not fit mcp_write"):
        agent.resume(waiting, wrong)
    session = session_of(*turns, middleware=[adds])
    session.send("go").result()
    with pytest.raises(sa.InvalidDecision, match="do not fit mcp_write"):
        session.resume(wrong)
    assert session.resume(sa.Edit({"path": "/b"})).result().text == "done"
    assert RAN == ["write"]


def test_an_added_tool_that_is_always_allowed_is_asked_about_no_more() -> None:
    session = session_of(
        call("remove", "c1"), call("remove", "c2"), "done", middleware=[Adds(remove)]
    )
    session.send("go").result()
    result = session.resume(sa.Approve(always=True)).result()
    assert (result.text, RAN) == ("done", ["remove", "remove"])
    said = [r.metadata["decision"]["by"] for m in session.messages for r in m.tool_results]
    assert said == ["user", "always"]


@pytest.mark.spec("H3.4.5")
@pytest.mark.parametrize("gated", [True, False])
def test_what_waits_for_an_added_tool_goes_on_after_the_conversation_was_opened_again(
    tmp_path: Any, gated: bool
) -> None:
    """The gate is asked before anything of the turn is written down as begun."""
    adds = Adds(mcp_write, interrupt_on=["mcp_write"] if gated else None)
    store = ConversationStore(tmp_path / "agents.db")
    agent = agent_of(call("mcp_write"), "done", "never", middleware=[adds])
    session = sa.Session(agent, "c1", store=store)
    session.send("go").result()
    assert (session.status, RAN) == (("interrupted", []) if gated else ("idle", ["write"]))
    if gated:
        session.close()
        agent = agent_of("done", middleware=[adds])
        session = sa.Session.open("c1", agent=agent, store=store)
        assert session.resume(sa.Approve()).result().text == "done"
    assert RAN == ["write"]
    session.close()
    store.close()
