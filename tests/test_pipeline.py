from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import TodosUpdated, TurnEnd
from tests.talking import agent_of, call, of, results, roles, session_of, streamed, unanswered


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    return f"saw {at}"


@sa.tool
def fail() -> str:
    """Fail."""
    raise ValueError("cable out")


class Counting(sa.Middleware):
    """Counts its hooks, and may do something odd in one of them."""

    def __init__(self, told: list[str], id: str = "a", odd: str = "", does: Any = None) -> None:
        self.id = id
        self.told = told
        self.odd = odd
        self.does = does

    def _tell(self, hook: str) -> Any:
        self.told.append(f"{self.id}.{hook}")
        if hook == self.odd:
            if isinstance(self.does, Exception):
                raise self.does
            return self.does
        return None

    def before_run(self, state: sa.State, ctx: sa.RunContext) -> Any:
        return self._tell("before_run")

    def before_model(self, state: sa.State, ctx: sa.RunContext) -> Any:
        return self._tell("before_model")

    def after_model(self, state: sa.State, ctx: sa.RunContext) -> Any:
        return self._tell("after_model")

    def after_run(self, state: sa.State, ctx: sa.RunContext) -> Any:
        return self._tell("after_run")


STOP = sa.Interrupt("tool", (sa.ActionRequest("q", "quota"),), "Go on?")
THREE_ROUNDS = [*(call("look", f"c{n}") for n in range(3)), "done"]


# hooks


@pytest.mark.spec("P1", "S1.2.1", "S1.2.2")
def test_over_three_tool_rounds_run_hooks_are_called_once_and_model_hooks_each_time() -> None:
    told: list[str] = []
    agent_of(*THREE_ROUNDS, tools=[look], middleware=[Counting(told)]).run("go")
    assert told[0] == "a.before_run"
    assert told[-1] == "a.after_run"
    assert told[1:-1] == ["a.before_model", "a.after_model"] * 4


@pytest.mark.spec("P1", "S1.2.1")
def test_a_resumed_and_an_unpaused_run_call_the_run_hooks_again_each_once() -> None:
    told: list[str] = []
    options: dict[str, Any] = {"tools": [look], "middleware": [Counting(told)]}
    agent = agent_of(call("look"), "done", interrupt_on={"look": True}, **options)
    waiting = agent.run("go")
    assert told == ["a.before_run", "a.before_model", "a.after_model"]
    told.clear()
    agent.resume(waiting, sa.Approve())
    assert told == ["a.before_run", "a.before_model", "a.after_model", "a.after_run"]
    agent = agent_of(call("look"), "done", **options)
    paused = agent.run("go", should_pause=lambda: True)
    told.clear()
    agent.run([], paused.state)
    assert told == ["a.before_run", "a.before_model", "a.after_model", "a.after_run"]


@pytest.mark.spec("P1", "S1.2.2", "S1.2.3")
@pytest.mark.parametrize("does", [ValueError("no"), STOP])
@pytest.mark.parametrize("hook", ["before_run", "before_model", "after_model", "after_run"])
def test_a_hook_that_fails_or_interrupts_stops_those_after_it(hook: str, does: Any) -> None:
    told: list[str] = []
    stack = [Counting(told, "a"), Counting(told, "b", hook, does), Counting(told, "c")]
    agent = agent_of("done", middleware=stack)
    if isinstance(does, Exception):
        with pytest.raises(sa.MiddlewareError, match=rf"b\.{hook} failed: ValueError: no"):
            agent.run("go")
    else:
        assert agent.run("go").status == "interrupted"
    mine = [name for name in told if name.endswith(hook)]
    later = "c" if hook.startswith("before") else "a"
    assert mine[-1] == f"b.{hook}"
    assert f"{later}.{hook}" not in told
    assert len(agent.model.requests) == hook.startswith("after")  # type: ignore[attr-defined]
    if hook != "after_run":
        assert not any(name.endswith("after_run") for name in told)


@pytest.mark.spec("S1.2.4")
def test_who_comes_last_sees_once_in_a_run_what_all_the_others_prepared() -> None:
    seen: list[Any] = []

    class Prepares(sa.Middleware):
        def __init__(self, id: str) -> None:
            self.id = id

        async def before_run(self, state: sa.State, ctx: sa.RunContext) -> Any:
            return state.put_metadata("by", [*state.get_metadata("by", []), self.id])

    class Last(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            seen.append((state.metadata["by"], ctx.state is state))

    stack = [Prepares("a"), Counting([], "c"), Prepares("b"), Last()]
    agent = agent_of(*THREE_ROUNDS, "more", tools=[look], middleware=stack)
    result = agent.run("go")
    assert seen == [(["a", "b"], True)]
    assert result.state.metadata == {"by": ["a", "b"]}
    agent.run("on", result.state)
    assert seen[1:] == [(["a", "b", "a", "b"], True)]


@pytest.mark.spec("S1.1.7")
def test_hooks_that_are_not_there_are_passed_and_all_who_listen_hear() -> None:
    heard: dict[str, list[str]] = {"a": [], "b": [], "caller": []}

    class Listens(sa.Middleware):
        def __init__(self, id: str) -> None:
            self.id = id

        def on_event(self, event: Any, ctx: sa.RunContext) -> None:
            heard[self.id].append(event.type)

    class Nothing(sa.Middleware):
        pass

    stack = [Listens("a"), Nothing(), Listens("b")]
    session = session_of(call("look"), "done", tools=[look], middleware=stack)
    session.subscribe(lambda event: heard["caller"].append(event.type))
    session.send("go").result()
    told = [name for name in heard["caller"] if name != "status_changed"]
    assert heard["a"] == heard["b"] == told
    assert told[-1] == "agent_end"


@pytest.mark.spec("S1.1.3")
def test_own_tools_come_first_then_those_of_each_middleware_in_list_order() -> None:
    def named(*names: str) -> list[sa.Tool]:
        return [sa.Tool(lambda: "", name=name) for name in names]

    class Brings(sa.Middleware):
        def __init__(self, id: str, *names: str) -> None:
            self.id = id
            self.names = names

        def tools(self) -> list[sa.Tool]:
            return named(*self.names)

    stack = [Brings("one", "y", "c"), Brings("two", "b", "x")]
    agent = agent_of("ok", tools=named("z", "m"), middleware=stack)
    agent.run("go")
    (request,) = agent.model.requests  # type: ignore[attr-defined]
    for tools in (agent.tools, request.tools):
        assert [tool.name for tool in tools] == ["z", "m", "y", "c", "b", "x"]


HOOKS = [
    "on_session_start",
    "before_run",
    "before_model",
    "before_model_request",
    "after_model",
    "before_tool",
    "after_tool",
    "after_run",
    "on_event",
    "handle_message",
    "handle_resume",
]


@pytest.mark.spec("S1.1.3")
@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_finds_the_agents_id_model_and_scope_in_its_context(hook: str) -> None:
    found: list[Any] = []

    def finds(self: Any, *given: Any) -> None:
        ctx = given[-1]
        found.append((ctx.agent_id, ctx.model, ctx.agent.filesystem_scope))

    @sa.tool
    def ask() -> Any:
        return sa.Interrupt("tool", message="?")

    agent = agent_of(
        call("ask"),
        "done",
        tools=[ask],
        middleware=[type("Finds", (sa.Middleware,), {hook: finds})()],
        agent_id="mine",
        filesystem_scope=("user", 1),
    )
    session = sa.Session(agent, "another-id")
    session.notify_middleware("Finds", "hello")
    session.send("go").result()
    session.resume(sa.Respond("!")).result()
    session.close()
    assert found
    assert all(seen == ("mine", agent.model, ("user", 1)) for seen in found)


@pytest.mark.spec("S1.1.3")
def test_a_middleware_sees_whose_it_is_and_an_option_of_its_own_wins() -> None:
    seen: list[Any] = []

    class Own(sa.Middleware):
        def __init__(self, model: Any = None) -> None:
            self.model = model

        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            model = self.model or ctx.model
            seen.append((ctx.agent_id, model.name, ctx.agent.filesystem_scope))

        def tools(self) -> list[Any]:
            return [look]

    options: dict[str, Any] = {"filesystem_scope": ("user", 1), "agent_id": "mine"}
    agent = agent_of("x", tools=[fail], middleware=[Own()], **options)
    assert [tool.name for tool in agent.tools] == ["fail", "look"]
    agent.run("go")
    agent_of("x", middleware=[Own(sa.DemoModel())], **options).run("go")
    assert seen == [("mine", "scripted", ("user", 1)), ("mine", "demo", ("user", 1))]


@pytest.mark.spec("S1.1.3")
def test_the_model_that_a_hook_finds_is_the_one_that_answers_this_run() -> None:
    found: list[Any] = []

    class Finds(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            found.append(ctx.model)

    other = sa.ScriptedModel(["from the other"])
    agent = agent_of("from its own", middleware=[Finds()])
    assert agent.run("go", model=other).text == "from the other"
    assert agent.run("go").text == "from its own"
    assert found == [other, agent.model]


# one turn


@pytest.mark.spec("S1.2.5")
def test_a_turn_goes_through_its_stages_in_order() -> None:
    order: list[str] = []

    def model(request: Any) -> Any:
        order.append("model")
        return [call("free", "f"), call("gated", "g"), call("asks", "a"), call("submit", "s")]

    def tool(name: str, gives: Any) -> sa.Tool:
        def run() -> Any:
            order.append(name)
            return gives

        return sa.Tool(run, name=name, sequential=True)

    def pause() -> bool:
        order.append("pause?")
        return False

    tools = [
        tool("free", sa.ToolOutput("f", update={"metadata": {"k": 1}})),
        tool("gated", "g"),
        tool("asks", sa.Interrupt("tool", message="?")),
        tool("submit", "s"),
    ]
    agent = agent_of(model, tools=tools, interrupt_on={"gated": True}, until_tool="submit")
    gate = agent.run("go", should_pause=pause)
    assert (gate.status, order) == ("interrupted", ["model", "pause?"])
    asked = agent.resume(gate, sa.Approve())
    assert order[2:] == ["free", "gated", "asks", "submit"]
    assert (asked.status, asked.state.metadata) == ("interrupted", {"k": 1})
    done = agent.resume(asked, sa.Respond("!"))
    assert done.tool_result is not None
    assert order.count("model") == 1


@pytest.mark.spec("P2", "S1.2.9")
def test_max_runs_counts_model_calls_of_each_run_anew() -> None:
    assert agent_of().max_runs == 50
    assert agent_of("done", max_runs=1).run("go").text == "done"
    turns = [call("look", "a"), call("look", "b"), "done"]
    agent = agent_of(*turns, tools=[look], interrupt_on={"look": True}, max_runs=2)
    result = agent.run("go")
    result = agent.resume(result, sa.Approve())
    assert agent.resume(result, sa.Approve()).text == "done"
    with pytest.raises(sa.MaxRunsExceeded, match="continue") as raised:
        agent_of(*[call("look", f"c{n}") for n in range(9)], tools=[look]).run("go", max_runs=4)
    assert len([m for m in raised.value.result.messages if m.role == "assistant"]) == 4


@pytest.mark.spec("S1.2.7")
def test_a_model_error_leaves_the_callers_state_as_it_was() -> None:
    state = sa.State(messages=[sa.Message.user("a"), sa.Message.assistant("b")])
    before = state.export()["state"]
    with pytest.raises(sa.ModelError, match="ValueError: no"):
        agent_of(ValueError("no")).run("go", state)
    assert state.export()["state"] == before


@pytest.mark.spec("S1.2.7")
def test_a_model_that_fails_later_leaves_the_callers_state_and_gives_the_run_so_far() -> None:
    class Changes(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> Any:
            return state.put_metadata("asked", state.get_metadata("asked", 0) + 1)

    state = sa.State(messages=[sa.Message.user("a"), sa.Message.assistant("b")], metadata={"k": 1})
    before = state.export()["state"]
    agent = agent_of(call("look"), ValueError("no"), tools=[look], middleware=[Changes()])
    with pytest.raises(sa.ModelError, match="ValueError: no") as raised:
        agent.run("go", state)
    assert state.export()["state"] == before
    result = raised.value.result
    assert result.status == "error"
    assert roles(result.state.messages)[2:] == ["user", "assistant", "tool", "assistant"]
    assert result.state.metadata == {"k": 1, "asked": 2}


# failures


@pytest.mark.spec("S1.2.16")
def test_three_failing_turns_in_a_row_end_the_run_before_a_fourth_call() -> None:
    turns = [call("fail", "a"), call("nothing", "b"), [call("look", "c"), call("fail", "d")], "no"]
    agent = agent_of(*turns, tools=[look, fail])
    with pytest.raises(
        sa.FailuresExceeded, match=r"3 turns.*fail: ValueError: cable out"
    ) as raised:
        agent.run("go")
    assert len(agent.model.requests) == 3  # type: ignore[attr-defined]
    state = raised.value.result.state
    assert not unanswered(state.messages)
    assert agent.run("try otherwise", state).text == "no"


@pytest.mark.spec("S1.2.16")
def test_a_clean_turn_begins_the_count_anew() -> None:
    turns = [call("fail", "a"), call("fail", "b"), call("look", "c"), call("fail", "d"), "done"]
    result = agent_of(*turns, tools=[look, fail]).run("go")
    assert result.text == "done"
    errors = [r.is_error for m in result.messages for r in m.tool_results]
    assert errors == [True, True, False, True]


# changes of the state


@pytest.mark.spec("S1.2.18", "P15")
def test_a_change_is_seen_by_the_next_tool_also_of_the_same_turn() -> None:
    seen: list[Any] = []

    @sa.tool(sequential=True)
    def put(key: str, ctx: sa.ToolContext) -> Any:
        seen.append(dict(ctx.state.metadata))
        return sa.ToolOutput("ok", update={"metadata": {key: True}})

    turn = [call("put", "1", key="a"), call("put", "2", key="b")]
    result = agent_of(turn, call("put", "3", key="c"), "done", tools=[put]).run("go")
    assert seen == [{}, {"a": True}, {"a": True, "b": True}]
    assert result.state.metadata == {"a": True, "b": True, "c": True}
    assert len(result.state.messages) == 6


@pytest.mark.spec("P15")
@pytest.mark.parametrize("parallel", [1, 5])
def test_two_changes_of_the_todos_in_one_turn_are_both_kept(parallel: int) -> None:
    def write(id: str, merge: bool, *todos: dict[str, Any]) -> Any:
        return call("write_todos", id, merge=merge, todos=list(todos))

    turn = [
        write("1", False, {"content": "a"}, {"content": "b"}),
        call("look", "x"),
        write("2", True, {"id": 1, "status": "completed"}),
        write("3", True, {"content": "c", "status": "in_progress"}),
    ]
    agent = sa.Agent(
        sa.ScriptedModel([turn, "done"]),
        tools=[look],
        middleware=[sa.TodoList()],
        replace_default_middleware=True,
        max_parallel_tools=parallel,
    )
    events = streamed(agent)
    expected = [("a", "completed"), ("b", "pending"), ("c", "in_progress")]
    (told,) = of(TodosUpdated, events)
    assert [(t.content, t.status) for t in told.todos] == expected
    last = of(TurnEnd, events)[0].tool_results[-1].text
    assert last.startswith("3 todos: 1 pending, 1 in_progress, 1 completed.")


@pytest.mark.spec("S1.2.18")
def test_a_tool_that_asks_changes_nothing_and_wipes_nothing() -> None:
    @sa.tool
    def ask() -> Any:
        return sa.Interrupt("tool", message="?")

    state = sa.State(todos=[sa.Todo("a")], metadata={"k": 1})
    result = agent_of(call("ask"), tools=[ask]).run("go", state)
    assert (result.state.todos[:], result.state.metadata) == (state.todos[:], {"k": 1})
    quiet = agent_of(call("look"), "done", tools=[look]).run("go", state)
    assert quiet.state.todos[:] == state.todos[:]


# what the model is sent


@pytest.mark.spec("P16")
def test_within_a_run_the_history_only_grows() -> None:
    turns = [call("look", "a"), call("nothing", "b"), call("look", "c"), "done", "again"]
    agent = agent_of(*turns, tools=[look])
    agent.run("more", state=agent.run("go").state)
    requests = agent.model.requests  # type: ignore[attr-defined]
    for earlier, later in pairwise(requests):
        assert list(later.messages[: len(earlier.messages)]) == list(earlier.messages)


@pytest.mark.spec("P16")
def test_a_repair_is_appended_once_and_kept() -> None:
    state = sa.State(messages=[sa.Message.user("a"), sa.Message.assistant("", [call("look")])])
    agent = agent_of("one", "two", tools=[look])
    result = agent.run("never mind", state=state)
    result = agent.run("more", state=result.state)
    assert len(results(result.state)) == 1
    assert roles(result.state.messages)[:4] == ["user", "assistant", "tool", "user"]
    first, second = agent.model.requests  # type: ignore[attr-defined]
    assert list(second.messages[: len(first.messages)]) == list(first.messages)
