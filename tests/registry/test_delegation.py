"""Agents of a registry as tools of another one."""

from __future__ import annotations

import gc

import pytest

import sagents_nb as sa
from sagents_nb.events import SubagentEvent
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call


def pay(amount: int) -> str:
    "Pay an amount."
    return f"paid {amount}"


def hosted(agents: sa.AgentRegistry, *turns: object, **options: object) -> sa.Agent:
    return agent_of(*turns, name="host", middleware=[sa.Delegation(agents, **options)])  # type: ignore[arg-type]


def payer() -> sa.Agent:
    turns = [call("pay", amount=5), "It is paid."]
    return agent_of(*turns, name="payer", tools=[pay], interrupt_on=["pay"])


def test_a_call_is_a_task_whose_answer_is_its_result(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of("Sun.", name="weather", description="Forecasts."))
    result = hosted(agents, call("agent__weather", instructions="Tomorrow?"), "Good.").run("Go.")
    [answer] = result.messages[2].tool_results
    [record] = agents.store.tasks.list()
    assert (answer.text, record.text, record.caller) == ("Sun.", "Sun.", "host")
    assert answer.metadata["task"]["id"] == record.id


def test_its_result_names_what_the_task_has_made(agents: sa.AgentRegistry) -> None:
    async def count(text: str, ctx: sa.TaskContext) -> str:
        "Count."
        await ctx.emit_artifact("counts", [1, 2])
        return "Counted."

    agents.add(count)
    result = hosted(agents, call("agent__count", instructions="All."), "Good.").run("Go.")
    [answer] = result.messages[2].tool_results
    assert answer.metadata["task"]["artifacts"] == ["counts"]


def test_a_failure_is_an_error_for_the_model(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(sa.ModelError("Down.", kind="authentication"), name="weather"))
    result = hosted(agents, call("agent__weather", instructions="Tomorrow?"), "Bad.").run("Go.")
    [answer] = result.messages[2].tool_results
    assert answer.is_error
    assert "The task failed: Down." in answer.text


def test_each_call_is_a_task_of_its_own(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(*["Sun."] * 4, name="weather"))
    agent = hosted(
        agents,
        [call("agent__weather", f"c{n}", instructions=f"Day {n}?") for n in range(2)],
        "Good.",
        call("agent__weather", "c0", instructions="Day 0?"),  # providers reuse ids
        "Good.",
    )
    session = sa.Session(agent)
    for _ in range(2):
        session.send("Go.").result(PATIENCE)
    assert len(agents.store.tasks.list(context=session.id)) == 3
    agent_of_runs = hosted(agents, *[call("agent__weather", instructions="?"), "Good."] * 2)
    agents.add(agent_of(*["Sun."] * 4, name="weather"))
    for _ in range(2):
        agent_of_runs.run("Go.")
    assert len(agents.store.tasks.list()) == 5


@pytest.mark.spec("R4.3.8")
def test_what_a_delegate_does_is_told_as_it_happens(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(call("pay", amount=5), "It is paid.", name="payer", tools=[pay]))
    agent = hosted(agents, call("agent__payer", instructions="Pay."), "Good.")
    inner = [e.event for e in agent.stream("Go.") if isinstance(e, SubagentEvent)]
    types = [event.type for event in inner]
    order = ["message_end", "tool_execution_start", "tool_execution_end", "agent_end"]
    assert [types.index(each) for each in order] == sorted(types.index(each) for each in order)
    assert types.count("tool_execution_end") == 1
    seqs = [event.seq for event in inner if event.seq]
    assert seqs == sorted(set(seqs))


@pytest.mark.spec("R4.3.4")
def test_its_question_is_asked_in_the_name_of_the_parent(agents: sa.AgentRegistry) -> None:
    agents.add(payer())
    session = sa.Session(hosted(agents, call("agent__payer", instructions="Pay."), "Good."))
    interrupt = session.send("Go.").result(PATIENCE).interrupt
    assert interrupt is not None
    assert (interrupt.type, interrupt.restorable) == ("task", True)
    [request] = interrupt.action_requests
    assert (request.tool_name, request.arguments) == ("pay", {"amount": 5})
    with pytest.raises(sa.InvalidDecision):
        session.resume(sa.Edit({"amount": "many"}))
    assert session.status == "interrupted"
    assert session.resume(sa.Edit({"amount": 7})).result(PATIENCE).text == "Good."
    [record] = agents.store.tasks.list()
    state = sa.State.restore(agents.store.load_agent_state(record.id))
    assert state.messages[2].tool_results[0].text == "paid 7"


@pytest.mark.spec("R4.3.4")
def test_its_question_is_answered_in_another_process(agents: sa.AgentRegistry) -> None:
    agents.add(payer())
    store = agents.store
    first = sa.Session(
        hosted(agents, call("agent__payer", instructions="Pay.")), id="parent", store=store
    )
    first.send("Go.").result(PATIENCE)
    for id in ("parent", store.tasks.list()[0].id):
        sa.Session.open(id, agent=payer(), store=store, create=True).close()
    others = sa.AgentRegistry(store)  # as the next process has it
    others.add(agent_of("It is paid.", name="payer", tools=[pay], interrupt_on=["pay"]))
    session = sa.Session.open("parent", agent=hosted(others, "Good."), store=store)
    assert session.status == "interrupted"
    assert session.resume(sa.Approve()).result(PATIENCE).text == "Good."
    assert session.messages[2].tool_results[0].text == "It is paid."


def test_what_people_reject_is_told_to_the_delegate(agents: sa.AgentRegistry) -> None:
    agents.add(payer())
    agent = hosted(agents, call("agent__payer", instructions="Pay."), "Good.")
    result = agent.resume(agent.run("Go."), sa.Reject("Too much."))
    assert result.text == "Good."
    [record] = agents.store.tasks.list()
    state = sa.State.restore(agents.store.load_agent_state(record.id))
    assert "Too much." in state.messages[2].tool_results[0].text


@pytest.mark.spec("R4.3.4")
def test_a_cancelled_parent_stops_its_delegates(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "Held.", name="holds", tools=[gate.tool]))
    session = sa.Session(hosted(agents, call("agent__holds", instructions="Hold."), "Good."))
    run = session.send("Go.")
    gate.wait()
    run.cancel()
    assert run.result(PATIENCE).status == "cancelled"
    [record] = agents.store.tasks.list()
    assert record.state == "canceled"


def test_a_closed_parent_leaves_its_delegate_at_work(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "Held.", name="holds", tools=[gate.tool]))
    agent = hosted(agents, call("agent__holds", instructions="Hold."), "Good.", "Good.")
    session = sa.Session(agent, id="parent", store=agents.store)
    session.send("Go.")
    gate.wait()
    session.close()
    [record] = agents.store.tasks.list()
    task = agents.task(record.id)
    gate.open()
    assert task.wait(PATIENCE).text == "Held."
    again = sa.Session.open("parent", agent=agent, store=agents.store)
    assert again.status == "paused"
    assert again.retry().result(PATIENCE).text == "Good."
    assert again.messages[2].tool_results[0].text == "Held."
    assert len(agents.store.tasks.list()) == 1


@pytest.mark.spec("R4.3.6")
def test_a_task_draws_on_the_budget_of_its_parent(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(call("pay", amount=5), "Paid.", name="payer", tools=[pay]))
    agent = hosted(agents, call("agent__payer", instructions="Pay."), "Good.")
    with pytest.raises(sa.BudgetExceeded):
        agent.with_(budget=sa.Budget(model_calls=2)).run("Go.")  # one of its own, one of the payer
    assert agents.store.tasks.list()[0].state == "failed"


@pytest.mark.spec("R4.3.6")
def test_each_task_has_the_budget_of_the_delegation(agents: sa.AgentRegistry) -> None:
    turns = [call("pay", amount=5), "Paid."] * 3
    agents.add(agent_of(*turns, name="payer", tools=[pay]))
    calls = [call("agent__payer", f"c{n}", instructions="Pay.") for n in range(3)]
    agent = hosted(agents, *calls, "Good.", budget=sa.Budget(model_calls=2))
    results = [r for m in agent.run("Go.").messages for r in m.tool_results]
    assert [r.text for r in results] == ["Paid."] * 3
    shared = sa.Budget(model_calls=3).shared()
    agents.add(agent_of(*turns, name="payer", tools=[pay]))
    agent = hosted(agents, *calls, "Good.", budget=shared)
    results = [r for m in agent.run("Go.").messages for r in m.tool_results]
    assert [r.is_error for r in results] == [False, True, True]
    assert shared.meter.model_calls == 3


@pytest.mark.spec("R4.3.6")
def test_a_budget_counts_what_was_used_before_a_question(agents: sa.AgentRegistry) -> None:
    turns = [call("pay", "c1", amount=5), call("pay", "c2", amount=5), "Paid."]
    agents.add(agent_of(*turns, name="payer", tools=[pay], interrupt_on=["pay"]))
    agent = hosted(
        agents, call("agent__payer", instructions="Pay."), "Good.", budget=sa.Budget(model_calls=2)
    )
    result = agent.run("Go.")
    while result.interrupt is not None:
        gc.collect()  # nobody holds the task while people are asked: it is opened again
        result = agent.resume(result, sa.Approve())
    assert "The budget of 2 model_calls is used up" in agents.store.tasks.list()[0].message


@pytest.mark.spec("R4.3.7")
def test_context_is_shared_with_those_that_accept_it(agents: sa.AgentRegistry) -> None:
    models = {name: sa.ScriptedModel(["Fine."]) for name in ("open", "shut")}
    for name, model in models.items():
        agent = sa.Agent(model, name=name, replace_default_middleware=True)
        agents.add(agent, accepts_context=name == "open")
    calls = [call(f"agent__{name}", f"c-{name}", instructions="Do it.") for name in models]
    hosted(agents, calls, "Good.", share_context=True).run("In Bergen, please.")
    asked = {name: model.requests[0].messages[0].text for name, model in models.items()}
    assert asked["shut"] == "Do it."
    assert "user: In Bergen, please." in asked["open"]
    assert asked["open"].endswith("Do it.")


@pytest.mark.spec("R4.3.3")
def test_of_many_agents_those_are_offered_that_fit(agents: sa.AgentRegistry) -> None:
    for name in ("weather", "tides", "ferries", "museums", "hotels"):
        agents.add(agent_of("Fine.", name=name, description=f"Knows all about {name}."))
    agents.add(agent_of(name="secret", description="Knows all about museums."), delegable=False)
    model = sa.ScriptedModel(
        [
            "Fine.",
            call("search_agents", query="hotels"),
            call("agent__hotels", instructions="Go."),
            "Fine.",
        ]
    )
    middleware = [sa.Delegation(agents, limit=2)]
    agent = sa.Agent(model, name="host", middleware=middleware, replace_default_middleware=True)
    session = sa.Session(agent)
    session.send("Which museums are open?").result(PATIENCE)
    session.send("And then?").result(PATIENCE)
    offered = [[tool.name for tool in request.tools] for request in model.requests]
    museums = ["search_agents", "agent__museums"]
    hotels = ["search_agents", "agent__hotels", "agent__museums"]
    assert offered == [museums, museums, hotels, hotels]
    assert agents.records()["hotels"].calls == 1


def test_who_is_added_later_is_called_in_the_next_run(agents: sa.AgentRegistry) -> None:
    model = sa.ScriptedModel(["Nobody is there.", "Now there is."])
    middleware = [sa.Delegation(agents)]
    agent = sa.Agent(model, name="host", middleware=middleware, replace_default_middleware=True)
    session = sa.Session(agent)
    session.send("Hi").result(PATIENCE)
    agents.add(agent_of(name="weather", description="Forecasts."))
    session.send("Hi").result(PATIENCE)
    assert [[t.name for t in r.tools] for r in model.requests] == [[], ["agent__weather"]]
    assert model.requests[1].tools[0].description == "Forecasts."


def test_who_was_removed_takes_no_task(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(name="weather"))
    session = sa.Session(
        hosted(agents, "Hi.", call("agent__weather", instructions="Tomorrow?"), "Bad.")
    )
    session.send("Hi").result(PATIENCE)
    agents.remove("weather")
    session.send("Go.").result(PATIENCE)
    [answer] = session.messages[-2].tool_results
    assert answer.is_error
    assert "No agent 'weather' is registered" in answer.text
    assert agents.store.tasks.list() == []


def test_empty_instructions_begin_nothing(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(name="weather"))
    result = hosted(agents, call("agent__weather", instructions=" "), "Bad.").run("Go.")
    assert "instructions are empty" in result.messages[2].tool_results[0].text
    assert agents.store.tasks.list() == []
