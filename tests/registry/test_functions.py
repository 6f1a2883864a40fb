"""Functions that work as agents."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pandas as pd
import pytest

import sagents_nb as sa
from sagents_nb.tasks import Artifact
from tests.talking import PATIENCE, agent_of, call


@pytest.mark.spec("R4.3.2")
def test_a_plain_function_answers_with_what_it_returns(agents: sa.AgentRegistry) -> None:
    def shout(text: str) -> str:
        "Says it loudly."
        return text.upper()

    card = agents.add(shout)
    assert (card.name, card.description) == ("shout", "Says it loudly.")
    assert agents.delegate("hello", to="shout").wait(PATIENCE).text == "HELLO"


def test_beside_the_text_a_parameter_with_a_default_keeps_it(agents: sa.AgentRegistry) -> None:
    def report(text: str, style: str = "short", loud=False, *, task: sa.Task | None = None) -> str:  # type: ignore[no-untyped-def]
        return f"{text}, {style}, {loud}, {task is not None}"

    agents.add(report)
    agents.add(lambda prompt="nothing": prompt, name="first")
    assert agents.delegate("tides", to="report").wait(PATIENCE).text == "tides, short, False, True"
    assert agents.delegate("tides", to="first").wait(PATIENCE).text == "tides"


def test_data_that_is_returned_is_the_output(agents: sa.AgentRegistry) -> None:
    agents.add(lambda: {"high": [6, 18]}, name="tides")
    task = agents.delegate("When?", to="tides").wait(PATIENCE)
    assert task.output == (sa.JsonPart({"high": [6, 18]}),)
    assert agents.task(task.id).output == task.output


def test_a_function_runs_where_models_are_replayed(
    agents: sa.AgentRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def report(ctx: sa.TaskContext) -> str:
        return f"The tides of {await ctx.request_input('Which port?')}"

    agents.add(report)
    monkeypatch.setenv("SAGENTS_CASSETTE", str(tmp_path / "none.json"))
    monkeypatch.setenv("SAGENTS_REPLAY", "replay")
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    assert task.respond("Bergen").wait(PATIENCE).text == "The tides of Bergen"


@pytest.mark.spec("R4.3.2")
def test_what_a_function_raises_fails_the_task(agents: sa.AgentRegistry) -> None:
    def breaks() -> None:
        raise ValueError("no such port")

    agents.add(breaks)
    task = agents.delegate("Go.", to="breaks").wait(PATIENCE)
    assert task.state == "failed"
    assert "no such port" in (task.error or "")


@pytest.mark.spec("R4.3.4", "R4.3.1")
def test_a_function_asks_and_goes_on_with_the_answer(agents: sa.AgentRegistry) -> None:
    states: list[str] = []

    async def report(task: sa.Task, ctx: sa.TaskContext) -> str:
        states.append(task.state)
        port = await ctx.request_input("Which port?")
        states.append(task.state)
        day = await ctx.request_input("Which day?")
        return f"{port} on {day}"

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    assert (task.state, task.record.message) == ("input_required", "Which port?")
    task.respond("Bergen").wait(PATIENCE)
    assert (task.state, task.record.message) == ("input_required", "Which day?")
    assert task.respond("Monday").wait(PATIENCE).text == "Bergen on Monday"
    assert states == ["working", "working"]


@pytest.mark.spec("R4.3.4")
def test_a_function_that_waits_is_cancelled_with_its_task(agents: sa.AgentRegistry) -> None:
    ended = threading.Event()

    async def report(ctx: sa.TaskContext) -> None:
        try:
            await ctx.request_input("Which port?")
        except asyncio.CancelledError:
            ended.set()
            raise

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    task.cancel()
    assert ended.wait(PATIENCE)
    assert task.wait(PATIENCE).state == "canceled"


def test_a_function_without_async_asks_too(agents: sa.AgentRegistry) -> None:
    def report(ctx: sa.TaskContext) -> str:
        return str(ctx.request_input("Which port?").result())

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    assert task.respond("Bergen").wait(PATIENCE).text == "Bergen"


@pytest.mark.spec("R4.3.9")
def test_artifacts_are_numbered_told_and_kept(agents: sa.AgentRegistry) -> None:
    frame = pd.DataFrame({"port": ["Bergen"], "high": [6.5]})

    async def report(ctx: sa.TaskContext) -> str:
        for value in ("a text", frame, b"PDF", sa.JsonPart([1])):
            await ctx.emit_artifact("made", value, description="Something.")
        ctx.output("All ")
        ctx.output("is there.")
        return "All is there."

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    assert [(each.index, each.id) for each in task.artifacts] == [
        (n, f"{task.id}/{n}") for n in range(4)
    ]
    text, table, file, data = [each.parts[0] for each in agents.task(task.id).artifacts]
    assert text == sa.TextPart("a text")
    assert table == sa.JsonPart({"columns": ["port", "high"], "data": [["Bergen", 6.5]]})
    assert file == sa.FilePart("UERG")
    assert data == sa.JsonPart([1])
    assert task.session is not None
    events = task.session.to_frame("events")["type"].tolist()
    assert events.count("task_artifact") == 4
    assert events.count("task_output") == 2
    assert len(agents.store.to_frame("artifacts")) == 4


@pytest.mark.spec("R4.3.9")
def test_progress_is_from_0_to_1(agents: sa.AgentRegistry) -> None:
    def counts(ctx: sa.TaskContext) -> str:
        ctx.progress("Half.", 0.5)
        for wrong in (1.7, -0.1, float("nan"), "half", True):
            with pytest.raises(sa.ConfigurationError, match="from 0 to 1"):
                ctx.progress("Wrong.", wrong)  # type: ignore[arg-type]
        return "counted"

    agents.add(counts)
    assert agents.delegate("Count.", to="counts").wait(PATIENCE).text == "counted"


def test_the_end_of_its_process_fails_a_function(agents: sa.AgentRegistry) -> None:
    async def report(ctx: sa.TaskContext) -> str:
        return str(await ctx.request_input("Which port?"))

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    others = sa.AgentRegistry(agents.store)  # as another process would have it
    others.add(report)
    with pytest.raises(sa.NotRunning, match="The function was at work when its process ended"):
        others.task(task.id).respond("Bergen")
    assert others.task(task.id).state == "failed"


def test_a_function_is_a_delegate_like_any_other(agents: sa.AgentRegistry) -> None:
    async def report(text: str, ctx: sa.TaskContext) -> str:
        return f"{text} {await ctx.request_input('Which port?')}"

    agents.add(report)
    turns = [call("agent__report", instructions="The tides of"), "Thank you."]
    session = sa.Session(agent_of(*turns, name="host", middleware=[sa.Delegation(agents)]))
    result = session.send("Go.").result(PATIENCE)
    assert result.interrupt is not None
    assert (result.interrupt.type, result.interrupt.message) == ("task", "Which port?")
    assert session.resume(sa.Respond("Bergen")).result(PATIENCE).text == "Thank you."
    [answer] = session.messages[2].tool_results
    assert answer.text == "The tides of Bergen"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a, /: a, "by its place alone"),
        (lambda *all: all, "by its place alone"),
        (len, "cannot be read|by its place alone"),
    ],
)
def test_what_a_function_cannot_be_given_is_said(
    agents: sa.AgentRegistry, function: object, said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        agents.add(function, name="wrong")

    def takes_a_number(count: int) -> None: ...

    with pytest.raises(sa.ConfigurationError, match="takes_a_number takes count"):
        agents.add(takes_a_number)
    with pytest.raises(sa.ConfigurationError, match="lambda has no name"):
        agents.add(lambda: 1)
    assert len(agents) == 0


def test_an_artifact_that_is_no_json_is_refused(agents: sa.AgentRegistry) -> None:
    assert Artifact(parts=(sa.JsonPart(1), sa.JsonPart(2))).value == (
        sa.JsonPart(1),
        sa.JsonPart(2),
    )
