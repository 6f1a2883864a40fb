from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb import budget as budget_module
from sagents_nb import messages as messages_module
from sagents_nb.budget import Meter, meter_of
from sagents_nb.events import ToolExecutionEnd
from tests.grammar import ungrammatical
from tests.talking import PATIENCE, agent_of, call, of, results, session_of, unanswered


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    RAN.append(at)
    return f"saw {at}"


RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


def costing(tokens: int = 0, cost: float | None = None, id: str = "c1") -> sa.Message:
    """A turn that wants a tool, and what it used."""
    usage = sa.Usage(tokens - tokens // 2, tokens // 2, cost_usd=cost)
    return sa.Message.assistant("", [call("look", id)], usage=usage)


def stopped(agent: sa.Agent, **options: Any) -> sa.RunResult:
    """The result so far of a run that its budget ends; its history is valid."""
    with pytest.raises(sa.BudgetExceeded) as raised:
        agent.run("go", **options)
    result: sa.RunResult = raised.value.result
    assert result.status == "error"
    assert not unanswered(result.state.messages)
    return result


def test_a_budget_of_model_calls_is_never_overshot() -> None:
    agent = agent_of(call("look"), call("look", "c2"), "never", tools=[look])
    with pytest.raises(sa.BudgetExceeded, match=r"2 model_calls.*Budget\(model_calls=…\)"):
        agent.run("go", budget=sa.Budget(model_calls=2))
    assert len(agent.model.requests) == 2  # type: ignore[attr-defined]
    assert len(RAN) == 2


def test_a_final_answer_on_the_last_call_is_a_success() -> None:
    agent = agent_of(call("look"), "done", tools=[look], budget=sa.Budget(model_calls=2))
    assert agent.run("go").text == "done"


@pytest.mark.parametrize("limit", [1, 10, 11, 19, 20])
def test_tokens_are_overshot_by_one_call_at_most(limit: int) -> None:
    agent = agent_of(*[costing(10, id=f"c{n}") for n in range(9)], tools=[look])
    result = stopped(agent, budget=sa.Budget(tokens=limit))
    assert limit <= result.usage.total_tokens < limit + 10


@pytest.mark.parametrize("limit", [0.5, 1.0, 1.5])
def test_money_is_overshot_by_one_call_at_most(limit: float) -> None:
    agent = agent_of(*[costing(1, 0.5, id=f"c{n}") for n in range(9)], tools=[look])
    result = stopped(agent, budget=sa.Budget(cost_usd=limit))
    assert result.usage.cost_usd == limit


def test_a_first_answer_without_a_price_stops_a_run_whose_money_is_limited() -> None:
    for turn in (costing(5), "an answer", [costing(1, 0.1), costing(5, id="c2")]):
        turns = turn if isinstance(turn, list) else [turn]
        agent = agent_of(*turns, "never", tools=[look], budget=sa.Budget(cost_usd=1))
        with pytest.raises(sa.BudgetExceeded, match=r"does not say what its calls cost.*tokens=…"):
            agent.run("go")
        assert len(agent.model.requests) == len(turns)  # type: ignore[attr-defined]


@pytest.mark.parametrize("parallel", [1, 2, 5])
@pytest.mark.parametrize("limit", [1, 3, 4])
def test_tool_calls_are_counted_inside_a_parallel_batch(limit: int, parallel: int) -> None:
    turn = [call("look", f"c{n}", at=str(n)) for n in range(5)]
    agent = agent_of(turn, "never", tools=[look], max_parallel_tools=parallel)
    session = sa.Session(agent.with_(budget=sa.Budget(tool_calls=limit)))
    heard: list[Any] = []
    session.subscribe(heard.append)
    with pytest.raises(sa.BudgetExceeded, match="tool_calls") as raised:
        session.send("go").result()
    assert sorted(RAN) == [str(n) for n in range(limit)]
    texts = results(raised.value.result.state)
    assert texts[:limit] == [f"saw {n}" for n in range(limit)]
    assert all(text.startswith("Not run: The budget") for text in texts[limit:])
    statuses = [e.status for e in of(ToolExecutionEnd, heard)]
    assert (statuses.count("completed"), statuses.count("skipped")) == (limit, 5 - limit)
    assert not ungrammatical(heard)
    assert not unanswered(session.messages)
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


def test_a_call_that_is_not_run_costs_nothing() -> None:
    turns = [[call("nothing", "a"), call("look", "b", town="x")], call("look"), "done"]
    assert agent_of(*turns, tools=[look], budget=sa.Budget(tool_calls=1)).run("go").text == "done"


def test_a_call_that_failed_has_no_price_to_tell() -> None:
    agent = agent_of(RuntimeError("bad"), costing(1, 0.1), "done", tools=[look])
    with pytest.raises(sa.ModelError, match="bad"):
        agent.run("go", budget=sa.Budget(cost_usd=1))
    turns = [costing(1, 0.1), RuntimeError("away"), costing(1, 0.2, id="c2"), "never"]
    session = session_of(*turns, tools=[look], budget=sa.Budget(cost_usd=0.2))
    with pytest.raises(sa.ModelError, match="away"):
        session.send("go").result()
    with pytest.raises(sa.BudgetExceeded, match=r"budget of 0\.2 cost_usd is used up"):
        session.retry().result()


@pytest.mark.parametrize("cost", [float("nan"), -1.0, float("-inf"), float("inf"), "much"])
def test_a_price_that_is_none_buys_nothing(cost: Any) -> None:
    turns = [costing(1, cost), *(costing(1, 5.0, id=f"c{n}") for n in range(2, 9))]
    agent = agent_of(*turns, tools=[look], budget=sa.Budget(cost_usd=1))
    with pytest.raises(sa.AgentError):
        agent.run("go")
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("tokens", [float("nan"), -5])
def test_tokens_are_never_paid_back(tokens: Any) -> None:
    odd = sa.Message.assistant("", [call("look", "c0")], usage=sa.Usage(tokens, 0))
    turns = [odd, *(costing(6, id=f"c{n}") for n in range(1, 9))]
    agent = agent_of(*turns, tools=[look], budget=sa.Budget(tokens=10))
    with pytest.raises(sa.BudgetExceeded, match="10 tokens"):
        agent.run("go")
    assert len(agent.model.requests) == 3  # type: ignore[attr-defined]


class Says(sa.ChatModel):
    """Says of each answer that it used that."""

    name = "says"

    def __init__(self, usage: Any) -> None:
        self.usage = usage

    async def stream(self, request: Any) -> Any:
        yield sa.Message("assistant", (sa.TextPart("Yes."),), self.usage, "end_turn")


NO_NUMBERS = [float("nan"), float("-inf"), -100, "many", None, True, [1]]
TOO_MUCH = [2**53 + 1, 10**16, 1e300, float("inf"), 10**400]


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=lambda wrong: repr(wrong)[:8])
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_tokens"])
def test_of_what_a_model_says_it_used_only_numbers_are_counted(name: str, wrong: Any) -> None:
    day = sa.Budget(tokens=10).shared()
    usage = sa.Usage(**{"input_tokens": 4, "output_tokens": 4, name: wrong})
    told = sa.Usage(**{"input_tokens": 4, "output_tokens": 4, name: 0})
    agent = sa.Agent(Says(usage), budget=day, defaults=False)
    needed = -(-10 // told.total_tokens)  # calls until it is used up
    results = [agent.run("?") for _ in range(needed)]
    assert day.meter.tokens == needed * told.total_tokens
    with pytest.raises(sa.BudgetExceeded, match="10 tokens is used up"):
        agent.run("?")
    assert {result.usage for result in results} == {told}
    assert {result.messages[-1].usage for result in results} == {told}


@pytest.mark.parametrize("much", TOO_MUCH, ids=lambda much: repr(much)[:8])
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_tokens"])
def test_more_tokens_than_can_be_use_up_a_budget(name: str, much: Any) -> None:
    agent = sa.Agent(Says(sa.Usage(**{name: much})), defaults=False)
    day = sa.Budget(tokens=10_000).shared()
    assert agent.run("?", budget=day).usage == sa.Usage(**{name: 2**53})
    assert day.meter.tokens == 2**53
    with pytest.raises(sa.BudgetExceeded, match="10,000 tokens is used up"):
        agent.run("?", budget=day)


@pytest.mark.parametrize("much", TOO_MUCH, ids=lambda much: repr(much)[:8])
def test_a_cost_of_more_dollars_than_can_be_uses_up_a_budget(much: Any) -> None:
    day = sa.Budget(cost_usd=5).shared()
    agent = sa.Agent(Says(sa.Usage(4, 4, cost_usd=much)), budget=day, defaults=False)
    assert agent.run("?").usage == sa.Usage(4, 4, cost_usd=2.0**53)
    with pytest.raises(sa.BudgetExceeded, match="5 cost_usd is used up"):
        agent.run("?")


@pytest.mark.parametrize("wrong", [*NO_NUMBERS[:4], True], ids=lambda wrong: repr(wrong)[:8])
def test_a_cost_that_is_no_number_is_not_told(wrong: Any) -> None:
    day = sa.Budget(tokens=100).shared()
    agent = sa.Agent(Says(sa.Usage(4, 4, cost_usd=wrong)), budget=day, defaults=False)
    assert agent.run("?").usage == sa.Usage(4, 4)
    assert (day.meter.tokens, day.meter.cost_usd) == (8, None)
    agent = agent.with_(budget=sa.Budget(cost_usd=1))
    with pytest.raises(sa.BudgetExceeded, match=r"give its prices with Priced\(model"):
        agent.run("?")


@pytest.mark.parametrize("usage", [None, sa.Usage(), sa.Usage(-5, 0), {"input_tokens": 5}])
def test_who_counts_no_tokens_is_not_told_to_give_their_prices(usage: Any) -> None:
    agent = sa.Agent(Says(usage), budget=sa.Budget(cost_usd=1), defaults=False)
    with pytest.raises(sa.BudgetExceeded, match=r"so limit Budget\(model_calls=…\) instead\."):
        agent.run("?")


def test_the_log_says_once_of_a_model_that_it_names_no_numbers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_module, "doubted", set())
    agent = sa.Agent(Says(sa.Usage(-5, float("nan"))), defaults=False)  # type: ignore[arg-type]
    for _ in range(3):
        agent.run("?")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "The model 'says' gave an answer whose input_tokens" in record.getMessage()


def test_the_log_says_that_so_many_tokens_could_not_be(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_module, "doubted", set())
    sa.Agent(Says(sa.Usage(10**16)), defaults=False).run("?")
    assert caplog.messages == [
        "The model 'says' gave an answer whose input_tokens is so much as could not be: it counts "
        "as 2**53."
    ]


def test_what_a_middleware_says_it_spent_is_looked_at_too() -> None:
    class Spends(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            ctx.spend(sa.Usage(-1000, 3))

    day = sa.Budget(tokens=100).shared()
    agent = sa.Agent(Says(sa.Usage(4, 4)), budget=day, middleware=[Spends()])
    assert agent.run("?").usage == sa.Usage(4, 7)
    assert day.meter.tokens == 11


class Clock:
    """Time that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(budget_module, "time", clock)
    return clock


def test_no_call_begins_after_the_time_is_up(clock: Clock) -> None:
    @sa.tool
    def wait(seconds: float) -> str:
        RAN.append("wait")
        clock.now += seconds
        return "waited"

    turns = [call("wait", f"c{n}", seconds=4.0) for n in range(9)]
    agent = agent_of(*turns, tools=[wait])
    result = stopped(agent, budget=sa.Budget(seconds=10))
    assert RAN == ["wait"] * 3
    assert len(agent.model.requests) == 3  # type: ignore[attr-defined]
    assert results(result.state) == ["waited"] * 3


def test_the_time_a_person_takes_is_not_the_runs(clock: Clock) -> None:
    agent = agent_of(call("look"), "done", tools=[look], interrupt_on={"look": True})
    waiting = agent.run("go", budget=sa.Budget(seconds=10))
    clock.now += 3600
    assert agent.resume(waiting, sa.Approve()).text == "done"


def test_a_clock_of_runs_inside_of_runs_counts_once(clock: Clock) -> None:
    meter = Meter(sa.Budget(seconds=100))
    meter.begin()
    meter.begin()
    clock.now += 2
    meter.end()
    clock.now += 2
    meter.end()
    clock.now += 50
    assert meter.seconds == 4


def test_real_time_counts_too() -> None:
    async def wait() -> None:
        await asyncio.sleep(0.02)

    agent = agent_of(*[call("wait", f"c{n}") for n in range(50)], tools=[wait])
    stopped(agent, budget=sa.Budget(seconds=0.03))
    assert len(agent.model.requests) <= 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["agent", "session"])
def test_a_budget_is_one_over_all_interruptions(kind: str) -> None:
    turns = [call("look", f"c{n}", at=str(n)) for n in range(9)]
    options: dict[str, Any] = {"tools": [look], "interrupt_on": {"look": True}}
    limit = sa.Budget(model_calls=3)
    goes_on: Any
    if kind == "agent":
        agent = agent_of(*turns, **options)
        result = agent.run("go", budget=limit)

        def goes_on() -> None:
            nonlocal result
            result = agent.resume(result, sa.Approve())
    else:
        session = session_of(*turns, budget=limit, **options)
        session.send("go").result()

        def goes_on() -> None:
            session.resume(sa.Approve()).result()

    goes_on()
    goes_on()
    with pytest.raises(sa.BudgetExceeded):
        goes_on()
    assert RAN == ["0", "1", "2"]


def test_a_budget_goes_on_over_a_pause_and_a_new_message_has_a_new_one() -> None:
    def pausing(request: Any) -> Any:
        session.pause()
        return call("look")

    limit = sa.Budget(model_calls=2)
    turns = [pausing, call("look", "c2"), call("look", "c3"), "done"]
    session = session_of(*turns, tools=[look], budget=limit)
    assert session.send("go").result().status == "paused"
    with pytest.raises(sa.BudgetExceeded):
        session.retry().result()
    assert session.send("go on").result().text == "done"


def test_after_a_budget_the_conversation_can_go_on_with_another() -> None:
    agent = agent_of(call("look"), "done", tools=[look])
    result = stopped(agent, budget=sa.Budget(model_calls=1))
    assert agent.run([], result.state, budget=sa.Budget(model_calls=1)).text == "done"


def test_a_shared_budget_is_of_all_runs_and_agents_together() -> None:
    day = sa.Budget(model_calls=3).shared()
    agents = [sa.Agent(sa.ScriptedModel(["x"] * 9), budget=day) for _ in range(2)]
    for agent in (*agents, agents[0]):
        assert agent.run("go").text == "x"
    with pytest.raises(sa.BudgetExceeded, match="3 model_calls"):
        agents[1].run("go")
    assert day.meter.model_calls == 3
    with pytest.raises(sa.BudgetExceeded):
        sa.Agent(sa.ScriptedModel(["x"])).run("go", budget=day)


def test_a_budget_that_is_not_shared_is_of_each_run() -> None:
    agent = sa.Agent(sa.ScriptedModel(["x"] * 9), budget=sa.Budget(model_calls=1))
    assert [agent.run("go").text for _ in range(3)] == ["x"] * 3


def test_rows_of_a_map_draw_on_a_shared_budget() -> None:
    day = sa.Budget(model_calls=3).shared()
    agent = sa.Agent(sa.ScriptedModel(["x"] * 9))
    first = agent.map(["a", "b"], progress=False, budget=day)
    assert list(first["status"]) == ["completed"] * 2
    second = agent.map(["a", "b"], progress=False, budget=day, concurrency=1)
    assert sorted(second["status"]) != ["completed"] * 2
    assert day.meter.model_calls == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [({"tokens": 1_234_567}, "1,234,567 tokens"), ({"cost_usd": 0.25}, "0.25 cost_usd")],
)
def test_a_limit_is_said_in_whole_digits(given: dict[str, Any], said: str) -> None:
    meter = Meter(sa.Budget(**given))
    meter.add(sa.Usage(1_234_567, cost_usd=0.25))
    with pytest.raises(sa.BudgetExceeded, match=f"The budget of {said} is used up"):
        meter.before_model()


def test_who_tries_again_has_what_the_sentence_says() -> None:
    """A budget of its own as much again; of one that is shared, or of none, nothing more."""

    def told(budget: sa.Budget, *turns: str) -> list[str]:
        session = sa.Session(sa.Agent(sa.ScriptedModel(turns), budget=budget))
        said = []
        for go in (lambda: session.send("Go"), lambda: session.send("On"), session.retry):
            try:
                said.append(go().result().text)
            except sa.BudgetExceeded as error:
                said.append(str(error))
        return said

    one = "The budget of 1 model_calls is used up; "
    assert told(sa.Budget(model_calls=1).shared(), "Yes.") == [
        "Yes.",
        *[f"{one}raise it with Budget(model_calls=…) to go on."] * 2,
    ]
    none = "The budget of 0 model_calls is used up; raise it with Budget(model_calls=…) to go on."
    assert told(sa.Budget(model_calls=0)) == [none] * 3

    def step() -> str:
        """Step."""
        return "done"

    agent = sa.Agent(
        sa.ScriptedModel([sa.ToolCall("c1", "step", {}), "Done."]),
        tools=[step],
        budget=sa.Budget(model_calls=1),
    )
    session = sa.Session(agent)
    with pytest.raises(sa.BudgetExceeded) as caught:
        session.send("Go").result()
    assert (
        str(caught.value)
        == f"{one}going on has as much again, and more with Budget(model_calls=…)."
    )
    assert session.retry().result().text == "Done."


def test_a_run_of_a_shared_budget_counts_what_it_used_itself() -> None:
    heard: list[tuple[int, int, int]] = []

    class Counting(sa.Middleware):
        def after_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            meter = ctx.meter
            heard.append((meter.model_calls, meter.tool_calls, meter.tokens))

    @sa.tool
    def look() -> str:
        """Look."""
        return "seen"

    day = sa.Budget(model_calls=4).shared()
    asks = sa.Message.assistant(tool_calls=[sa.ToolCall("c1", "look", {})], usage=sa.Usage(1))
    model = sa.ScriptedModel([asks, "x"] * 2)
    agent = sa.Agent(model, tools=[look], middleware=[Counting()], defaults=False, budget=day)
    agent.run("one")
    agent.run("two")
    assert heard == [(2, 1, 1)] * 2
    assert (day.meter.model_calls, day.meter.tool_calls, day.meter.tokens) == (4, 2, 2)
    with pytest.raises(sa.BudgetExceeded):
        agent.run("three")


# agents that work for others


def delegating(*turns: Any, of: sa.Agent, **options: Any) -> sa.Agent:
    """An agent with one sub-agent, which was made before."""
    stack = [sa.SubAgents([of])]
    return sa.Agent(sa.ScriptedModel(turns), middleware=stack, defaults=False, **options)


def work(id: str = "t1") -> sa.ToolCall:
    return call("task", id, instructions="Look.", subagent_type="scout")


def scout(*turns: Any, **options: Any) -> sa.Agent:
    model = sa.ScriptedModel(turns)
    return sa.Agent(
        model, tools=[look], name="scout", description="Looks.", defaults=False, **options
    )


@pytest.mark.spec("R4.3.6")
def test_the_own_budget_of_a_sub_agent_holds() -> None:
    wants = [call("look", f"c{n}") for n in range(4)]
    child = scout(*wants, "never", budget=sa.Budget(model_calls=1))
    result = delegating(work(), "Done.", of=child).run("go")
    assert result.text == "Done."
    (answer,) = results(result.state)
    assert "The budget of 1 model_calls is used up" in answer
    assert len(child.model.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.spec("R4.3.6")
def test_what_a_sub_agent_uses_is_used_of_its_parents_budget_too() -> None:
    child = scout(call("look"), "Seen.", budget=sa.Budget(model_calls=5))
    agent = delegating(work(), "never", of=child, budget=sa.Budget(model_calls=3))
    result = stopped(agent)
    assert result.meter is not None
    assert result.meter.model_calls == 3


@pytest.mark.spec("R4.3.6")
def test_a_sub_agent_may_use_no_more_than_its_parent_has_left() -> None:
    child = scout(*[call("look", f"c{n}") for n in range(9)], budget=sa.Budget(model_calls=9))
    stopped(delegating(work(), "never", of=child, budget=sa.Budget(model_calls=3)))
    assert len(child.model.requests) == 2  # type: ignore[attr-defined]


def test_the_budget_of_a_sub_agent_is_one_over_the_approvals_it_asks_for() -> None:
    wants = [call("look", f"c{n}") for n in range(3)]
    child = scout(*wants, "never", budget=sa.Budget(model_calls=2), interrupt_on=["look"])
    agent = delegating(work(), "Done.", of=child)
    result = agent.run("go")
    while result.status == "interrupted":
        result = agent.resume(result, sa.Approve())
    assert result.text == "Done."
    assert len(child.model.requests) == 2  # type: ignore[attr-defined]


def test_a_shared_budget_of_both_counts_each_call_once() -> None:
    day = sa.Budget(model_calls=10).shared()
    child = scout("Seen.", budget=day)
    delegating(work(), "Done.", of=child, budget=day).run("go")
    assert day.meter.model_calls == 3
    assert day.meter.usage == sa.Usage() + day.meter.usage
    free = delegating(work(), "Done.", of=scout("Seen.", budget=day))
    free.run("go")
    assert day.meter.model_calls == 4


@pytest.mark.spec("R4.3.6")
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_in_a_tree_of_meters_nobody_uses_more_than_all_above_have_left(data: st.DataObject) -> None:
    """Child and siblings together stay within the parent's, of model calls and of tokens."""
    limits = st.one_of(st.none(), st.integers(0, 12))
    budgets = st.builds(sa.Budget, model_calls=limits, tokens=limits)
    meters = [(meter_of(data.draw(budgets)), None)]
    for _ in range(data.draw(st.integers(0, 7))):
        above = data.draw(st.integers(0, len(meters) - 1))
        own = data.draw(st.one_of(st.none(), budgets))
        meters.append((meter_of(own, meters[above][0]), above))
    made = [0] * len(meters)
    for number in data.draw(st.lists(st.integers(0, len(meters) - 1), max_size=60)):
        meter = meters[number][0]
        try:
            meter.before_model()
        except sa.BudgetExceeded:
            continue
        meter.add(sa.Usage(1, 1))
        above: int | None = number
        while above is not None:
            made[above] += 1
            above = meters[above][1]
    for (meter, _), calls in zip(meters, made, strict=True):
        limit = meter.budget
        assert limit.model_calls is None or calls <= limit.model_calls
        assert limit.tokens is None or 2 * calls <= limit.tokens + 1  # the last call may overshoot


# time


@pytest.mark.spec("R4.3.6")
def test_an_async_tool_ends_with_the_time_of_the_budget() -> None:
    ended: list[str] = []

    @sa.tool
    async def linger() -> str:
        """Linger."""
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            ended.append("told")
            raise
        return "never"

    agent = agent_of(call("linger"), "never", tools=[linger], budget=sa.Budget(seconds=0.05))
    result = stopped(agent)
    assert ended == ["told"]
    (answer,) = result.tool_calls
    assert answer.status == "failed"
    assert "0.05 seconds is used up" in results(result.state)[0]


def test_a_sub_agent_at_work_ends_with_the_time_of_its_parent() -> None:
    @sa.tool
    async def linger() -> str:
        """Linger."""
        await asyncio.sleep(PATIENCE)
        return "never"

    child = sa.Agent(
        sa.ScriptedModel([call("linger"), "never"]),
        tools=[linger],
        name="scout",
        description="Looks.",
        defaults=False,
    )
    result = stopped(delegating(work(), "never", of=child, budget=sa.Budget(seconds=0.05)))
    assert [made.status for made in result.tool_calls] == ["failed"]


def test_a_tool_with_a_shorter_time_of_its_own_fails_and_the_run_goes_on() -> None:
    @sa.tool(timeout=0.01)
    async def linger() -> str:
        """Linger."""
        await asyncio.sleep(PATIENCE)
        return "never"

    agent = agent_of(call("linger"), "Done.", tools=[linger], budget=sa.Budget(seconds=PATIENCE))
    result = agent.run("go")
    assert result.text == "Done."
    assert "Timed out after 0.01 seconds" in results(result.state)[0]
