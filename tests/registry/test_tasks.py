"""A task: what it is at each moment, and what may be done to it then."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.tasks import NEXT, STATES, TERMINAL
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, run


def asking(name: str = "asks", **options: Any) -> sa.Agent:
    """An agent that wants to pay, which people approve."""

    def pay(amount: int) -> str:
        "Pay."
        return f"paid {amount}"

    turns = [call("pay", amount=5), "It is paid."]
    return agent_of(*turns, name=name, tools=[pay], interrupt_on=["pay"], **options)


def holding(gate: Gate, name: str = "holds") -> sa.Agent:
    return agent_of(call("hold"), "It is done.", name=name, tools=[gate.tool])


@pytest.mark.spec("R4.3.2")
def test_a_task_has_begun_when_delegating_returns(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(holding(gate))
    task = agents.delegate("Do it.", to="holds")
    assert task.state in ("submitted", "working")
    gate.wait()
    assert task.state == agents.store.tasks.get(task.id).state == "working"
    gate.open()
    assert task.wait(PATIENCE).text == "It is done."


@pytest.mark.spec("R4.3.1")
def test_states_end_where_nothing_follows() -> None:
    assert {"completed", "failed", "canceled", "rejected"} == TERMINAL
    assert set(NEXT) == set(STATES) - TERMINAL
    assert "submitted" not in {state for following in NEXT.values() for state in following}


@pytest.mark.spec("R4.3.1")
def test_times_tell_what_happened(agents: sa.AgentRegistry) -> None:
    agents.add(asking())
    waiting = agents.delegate("Pay.", to="asks").wait(PATIENCE).record
    assert waiting.created_at is not None
    assert waiting.updated_at is not None
    assert waiting.updated_at > waiting.created_at
    assert waiting.completed_at is None
    task = agents.task(waiting.id)
    done = task.respond(sa.Approve()).wait(PATIENCE).record
    assert done.completed_at == done.updated_at
    assert done.updated_at is not None
    assert done.updated_at > waiting.updated_at
    with pytest.raises(sa.NotRunning):
        task.cancel()
    assert agents.store.tasks.get(task.id) == done


@pytest.mark.spec("R4.3.2")
def test_a_failed_run_is_a_failed_task(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(sa.ModelError("The server is down.", kind="authentication"), name="broken"))
    task = agents.delegate("Do it.", to="broken").wait(PATIENCE)
    assert task.state == "failed"
    assert "The server is down." in (task.error or "")
    assert task.output == ()


@pytest.mark.spec("R4.3.3")
def test_where_nobody_fits_nothing_is_delegated(agents: sa.AgentRegistry) -> None:
    with pytest.raises(sa.NotFound, match="No agent fits"):
        agents.delegate("Forecast the weather.")
    with pytest.raises(sa.NotFound, match="No agent 'weather' is registered; there is none"):
        agents.delegate("Forecast.", to="weather")
    agents.add(agent_of(name="weather", description="Forecasts."), delegable=False)
    with pytest.raises(sa.NotFound):
        agents.delegate("Forecast the weather.")
    assert agents.store.tasks.list() == []
    assert agents.store.list_conversations() == []


@pytest.mark.spec("R4.3.4")
def test_an_approval_is_given_to_the_task(agents: sa.AgentRegistry) -> None:
    agents.add(asking())
    task = agents.delegate("Pay.", to="asks").wait(PATIENCE)
    assert task.state == "input_required"
    assert task.question is not None
    assert task.question.action_requests[0].arguments == {"amount": 5}
    with pytest.raises(sa.InvalidDecision):
        task.respond("yes")
    assert task.refresh().state == "input_required"
    assert task.respond({"type": "approve"}).wait(PATIENCE).text == "It is paid."


@pytest.mark.spec("R4.3.4")
def test_nothing_but_a_question_is_answered(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(holding(gate))
    task = agents.delegate("Do it.", to="holds")
    gate.wait()
    with pytest.raises(sa.NotRunning, match="asks nothing: it is working"):
        task.respond("Bergen")
    gate.open()
    task.wait(PATIENCE)
    for act in (lambda: task.respond("Bergen"), task.cancel, task.retry):
        with pytest.raises(sa.NotRunning):
            act()
    assert task.refresh().state == "completed"


def test_of_two_who_answer_one_does(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(*[call("pay"), "Paid."] * 20, name="asks", tools=[pay], interrupt_on="pay"))
    for _ in range(20):
        task = agents.delegate("Pay.", to="asks").wait(PATIENCE)
        taken: list[bool] = []
        barrier = threading.Barrier(2)

        def answer(task: sa.Task = task, taken: list[bool] = taken, barrier: Any = barrier) -> None:
            barrier.wait(PATIENCE)
            try:
                task.respond(sa.Approve())
                taken.append(True)
            except sa.NotRunning:
                taken.append(False)

        threads = [threading.Thread(target=answer) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(taken) == [False, True]
        assert task.wait(PATIENCE).text == "Paid."


def pay() -> str:
    "Pay."
    return "paid"


@pytest.mark.spec("R4.3.4")
def test_cancelling_stops_the_run(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(holding(gate))
    task = agents.delegate("Do it.", to="holds")
    gate.wait()
    task.cancel()
    assert task.state == "canceled"
    assert task.wait(PATIENCE).state == "canceled"
    assert agents.store.tasks.get(task.id).state == "canceled"
    assert task.session is not None
    assert task.session.status == "closed"


@pytest.mark.spec("R4.3.4")
def test_one_that_waits_for_people_can_be_canceled(agents: sa.AgentRegistry) -> None:
    agents.add(asking())
    task = agents.delegate("Pay.", to="asks").wait(PATIENCE)
    task.cancel()
    assert task.wait(PATIENCE).state == "canceled"
    with pytest.raises(sa.NotRunning, match="asks nothing: it is canceled"):
        task.respond(sa.Approve())


@pytest.mark.spec("R4.3.6")
def test_a_task_that_takes_too_long_fails_and_its_run_stops(
    agents: sa.AgentRegistry, gate: Gate
) -> None:
    agents.add(holding(gate))
    task = agents.delegate("Do it.", to="holds", timeout=0.05).wait(PATIENCE)
    assert task.state == "failed"
    assert "timeout" in (task.error or "")
    assert task.session is not None
    assert task.session.status == "closed"


@pytest.mark.spec("R4.3.6")
def test_a_budget_that_is_used_up_fails_the_task(agents: sa.AgentRegistry) -> None:
    turns = [call("pay", "c1"), call("pay", "c2"), "Paid."]
    agents.add(agent_of(*turns, name="pays", tools=[pay]))
    budget = sa.Budget(model_calls=2)
    task = agents.delegate("Pay twice.", to="pays", budget=budget).wait(PATIENCE)
    assert task.state == "failed"
    assert "The budget of 2 model_calls is used up" in (task.error or "")


@pytest.mark.spec("R4.3.7")
def test_a_prompt_is_the_first_part(agents: sa.AgentRegistry) -> None:
    model = sa.ScriptedModel(["A cat."])
    agents.add(sa.Agent(model, name="looks", replace_default_middleware=True))
    image = sa.ImagePart(url="https://example.org/cat.png")
    task = agents.delegate(["What is it?", image], to="looks").wait(PATIENCE)
    assert task.input == (sa.TextPart("What is it?"), image)
    assert model.requests[0].messages[0].parts == task.input
    assert agents.task(task.id).input == task.input


@pytest.mark.spec("R4.3.8")
def test_events_come_in_order_and_its_end_last(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(call("pay"), "It is paid.", name="pays", tools=[pay]))
    task = agents.delegate("Pay.", to="pays")

    async def read() -> list[str]:
        return [event.type async for event in task]

    types = run(read())
    order = ["message_end", "tool_execution_start", "tool_execution_end", "agent_end"]
    found = [types.index(each) for each in order]
    assert found == sorted(found)
    assert types[-1] == "task_updated"
    assert task.wait(PATIENCE).state == "completed"


def test_who_comes_late_reads_its_events_too(agents: sa.AgentRegistry) -> None:
    async def report(ctx: sa.TaskContext) -> str:
        return f"The tides of {await ctx.request_input('Which port?')}"

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)

    async def states() -> list[str]:
        found = [event async for event in task]
        return [event.state for event in found if isinstance(event, sa.events.TaskUpdated)]

    async def read() -> list[str]:
        return await asyncio.wait_for(states(), PATIENCE)

    assert run(read())[-1] == "input_required"
    assert run(read())[-1] == "input_required", "they can be read again"
    task.respond("Bergen")
    assert run(read()) == ["working", "completed"]
    assert run(read()) == ["working", "completed"]


def test_who_comes_after_its_cancellation_reads_of_that(agents: sa.AgentRegistry) -> None:
    agents.add(asking())
    task = agents.delegate("Pay.", to="asks").wait(PATIENCE)
    task.cancel()
    task.wait(PATIENCE)

    async def states() -> list[str]:
        found = [event async for event in task]
        return [event.state for event in found if isinstance(event, sa.events.TaskUpdated)]

    async def read() -> list[str]:
        return await asyncio.wait_for(states(), PATIENCE)

    assert run(read()) == ["canceled"]


def test_a_limit_beyond_what_a_database_counts_lists_all(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of("Sun.", name="weather"))
    task = agents.delegate("Today?", to="weather").wait(PATIENCE)
    assert [each.id for each in agents.store.tasks.list(limit=10**30)] == [task.id]


def test_it_can_be_awaited_on_any_loop(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of("Sun.", "Rain.", name="weather"))

    async def both() -> list[str]:
        tasks = [agents.delegate("Today?", to="weather"), agents.delegate("Then?", to="weather")]
        return [task.text for task in await asyncio.gather(*tasks)]

    assert sorted(run(both())) == ["Rain.", "Sun."]


def test_a_question_is_answered_in_another_registry(agents: sa.AgentRegistry) -> None:
    agents.add(asking())
    task = agents.delegate("Pay.", to="asks").wait(PATIENCE)
    assert task.session is not None
    task.session.close()
    others = sa.AgentRegistry(agents.store)
    others.add(agent_of("It is paid.", name="asks", tools=[pay_amount], interrupt_on=["pay"]))
    again = others.task(task.id)
    assert again.question == task.question
    assert again.respond(sa.Approve()).wait(PATIENCE).text == "It is paid."


@sa.tool(name="pay")
def pay_amount(amount: int) -> str:
    "Pay."
    return f"paid {amount}"


def test_tasks_of_others_are_not_there(agents: sa.AgentRegistry) -> None:
    theirs = sa.AgentRegistry(agents.store, scope=sa.Scope(user="bob"))
    theirs.add(agent_of("Sun.", name="weather"))
    task = theirs.delegate("Tomorrow?", to="weather").wait(PATIENCE)
    with pytest.raises(sa.NotFound, match="There is no task"):
        agents.task(task.id)
    assert agents.store.tasks.list() == []
    assert theirs.records()["weather"].calls == 1
    assert agents.records() == {}
