"""Tasks in the background: whoever started them goes on, and is told once of what comes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from sagents_nb.store import tasks as rows
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, until


def starting(agents: sa.AgentRegistry, *turns: Any) -> sa.Agent:
    return agent_of(*turns, name="host", middleware=[sa.Delegation(agents, background=True)])


def start(to: str, id: str = "c1") -> sa.ToolCall:
    return call("start_task", id, agent=to, instructions="Do it.")


def on(tool: str, id: str = "c2") -> Callable[[ModelRequest], sa.ToolCall]:
    """A call about the task that was begun first."""

    def turn(request: ModelRequest) -> sa.ToolCall:
        said = " ".join(r.text for m in request.messages for r in m.tool_results)
        found = re.search(r"task-\w+", said)
        assert found is not None
        return call(tool, id, task_id=found[0])

    return turn


def told(session: sa.Session) -> list[str]:
    return [m.metadata["task"]["state"] for m in session.messages if "task" in m.metadata]


def test_the_parent_goes_on_and_is_woken_at_the_end(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "It is done.", name="holds", tools=[gate.tool]))
    session = sa.Session(starting(agents, start("holds"), "Begun.", "Good."))
    assert session.send("Go.").result(PATIENCE).text == "Begun."
    gate.wait()
    assert session.status == "idle"
    gate.open()
    until(lambda: session.messages[-1].text == "Good.")
    assert told(session) == ["completed"]
    assert "It is done." in session.messages[-2].text


def test_a_failure_wakes_it_too(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(sa.ModelError("Down.", kind="authentication"), name="broken"))
    session = sa.Session(starting(agents, start("broken"), "Begun.", "Bad."))
    session.send("Go.")
    until(lambda: session.messages[-1:] and session.messages[-1].text == "Bad.")
    assert told(session) == ["failed"]


def test_a_question_wakes_it_and_people_answer_it_there(agents: sa.AgentRegistry) -> None:
    async def report(ctx: sa.TaskContext) -> str:
        return f"The tides of {await ctx.request_input('Which port?')}"

    agents.add(report)

    turns = [start("report"), "Begun.", on("check_task"), "It is asked.", "Good."]
    session = sa.Session(starting(agents, *turns))
    session.send("Go.")
    until(lambda: session.status == "interrupted")
    assert session.interrupt is not None
    assert session.interrupt.message == "Which port?"
    session.resume(sa.Respond("Bergen"))
    until(lambda: session.messages[-1].text == "Good.")
    assert told(session) == ["input_required", "completed"]
    results = [r.text for m in session.messages for r in m.tool_results]
    assert results[-1] == "The tides of Bergen"


def test_news_do_not_answer_what_waits_for_people(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "It is done.", name="holds", tools=[gate.tool]))

    def pay() -> str:
        "Pay."
        return "paid"

    turns = [start("holds"), "Begun.", call("pay", "c2"), "Paid.", "Good."]
    agent = agent_of(
        *turns,
        name="host",
        middleware=[sa.Delegation(agents, background=True)],
        tools=[pay],
        interrupt_on=["pay"],
    )
    session = sa.Session(agent)
    session.send("Go.").result(PATIENCE)
    session.send("Pay.").result(PATIENCE)
    gate.wait()
    gate.open()
    until(lambda: session.queued)
    assert session.status == "interrupted"
    session.resume(sa.Approve()).result(PATIENCE)
    until(lambda: session.messages[-1].text == "Good.")
    assert told(session) == ["completed"]


def test_completions_that_race_turns_are_each_told_once(agents: sa.AgentRegistry) -> None:
    race(agents, turns=12)


@pytest.mark.soak
def test_a_thousand_completions_that_race_turns_are_each_told_once(
    agents: sa.AgentRegistry,
) -> None:
    race(agents, turns=200)


def race(agents: sa.AgentRegistry, turns: int) -> None:
    """Turns that start five tasks each, while those that were begun before come to their end."""
    tasks_begun = 5 * turns
    agents.add(agent_of(*["Done."] * tasks_begun, name="quick"))

    def answer(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role == "tool" or "Background" in last.text:
            return "Fine."
        return [start("quick", f"c{n}") for n in range(5)]

    session = sa.Session(starting(agents, *[answer] * (20 * turns)))
    for _ in range(turns):
        session.send("Go.").result(PATIENCE)
    tasks = agents.store.tasks.list(context=session.id, limit=tasks_begun + 1)
    assert len(tasks) == tasks_begun
    until(lambda: len(told(session)) == tasks_begun and session.status == "idle")
    ids = [m.metadata["task"]["id"] for m in session.messages if "task" in m.metadata]
    assert sorted(ids) == sorted(task.id for task in tasks)


def test_one_that_is_recovered_by_many_is_told_once(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "It is done.", name="holds", tools=[gate.tool]))
    session = sa.Session(starting(agents, start("holds"), *["Begun."] * 20), store=agents.store)
    session.send("Go.").result(PATIENCE)
    threads = [threading.Thread(target=agents.recover, args=[session]) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.open()
    until(lambda: told(session))
    for thread in threads:
        thread.join()
    for _ in range(3):
        agents.recover(session)
        session.send("Hi.").result(PATIENCE)
    assert told(session) == ["completed"]


def test_news_that_a_run_has_just_taken_are_not_told_again(
    agents: sa.AgentRegistry, gate: Gate
) -> None:
    """As after a process that ended between telling and noting that."""
    agents.add(agent_of("Done.", name="quick"))
    session = sa.Session(starting(agents, start("quick"), "Begun.", "Good."), store=agents.store)
    session.send("Go.").result(PATIENCE)
    until(lambda: told(session) and session.status == "idle")
    news = next(m for m in session.messages if "task" in m.metadata)
    others = sa.AgentRegistry(agents.store)
    others.add(agent_of(name="quick"))
    again = sa.Session(starting(others, "Good."), id="again", store=agents.store)
    tasks = agents.store.tasks
    record = tasks.list()[0]

    tasks.run(rows.create, replace(record, id="task-again", context="again", told=0))
    metadata = {"task": {**news.metadata["task"], "id": "task-again"}}
    again.send(replace(news, metadata=metadata)).result(PATIENCE)
    until(lambda: others.store.tasks.get("task-again").told == record.change)
    assert [m.text for m in again.said() if "task" in m.metadata] == [news.text]


def test_tasks_are_listed_checked_and_canceled(agents: sa.AgentRegistry, gate: Gate) -> None:
    agents.add(agent_of(call("hold"), "Held.", name="holds", tools=[gate.tool]))

    turns = [
        start("holds"),
        call("list_tasks", "c2"),
        on("check_task", "c3"),
        on("cancel_task", "c4"),
        on("cancel_task", "c5"),
        call("check_task", "c6", task_id="task-of-others"),
        *["Fine."] * 3,
    ]
    session = sa.Session(starting(agents, *turns))
    session.send("Go.").result(PATIENCE)
    results = [r for m in session.messages for r in m.tool_results]
    id = agents.store.tasks.list()[0].id
    assert f"{id}, holds: " in results[1].text
    assert "is working" in results[2].text or "is submitted" in results[2].text
    assert results[3].text == f"Task {id} is canceled."
    assert results[4].is_error
    assert results[5].is_error
    until(lambda: told(session) == ["canceled"])


def test_without_a_session_nothing_is_started(agents: sa.AgentRegistry) -> None:
    agents.add(agent_of(name="quick"))
    result = starting(agents, start("quick"), "Fine.").run("Go.")
    assert "There is no session" in result.messages[2].tool_results[0].text
    assert agents.store.tasks.list() == []


@pytest.mark.spec("R4.3.5")
def test_a_circle_is_refused_in_the_background_too(agents: sa.AgentRegistry) -> None:
    agent = starting(agents, start("host"), "Fine.")
    agents.add(agent)
    session = sa.Session(agent)
    session.send("Go.").result(PATIENCE)
    assert "host → host" in session.messages[2].tool_results[0].text
    assert agents.store.tasks.list() == []
