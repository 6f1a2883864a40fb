"""Which tool the demo model takes in a notebook: one of one's own, a frame's, or a sub-agent."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb.models.demo import model
from tests.notebook.test_first_questions import notebook_of
from tests.notebook.test_thing_questions import LAKES


def lake_area(name: str) -> str:
    """The area of a lake in square kilometres."""
    return f"{name} has 1043."


@pytest.fixture(autouse=True)
def _notebook(shell: InteractiveShell) -> None:
    notebook_of({"lakes": LAKES})


def run(task: str, **options: Any) -> tuple[str, list[str], list[Any]]:
    """The answer, the calls by name, and the to-do list of one question."""
    agent = sa.Agent(sa.DemoModel(), tools=[lake_area], middleware=[sa.NotebookTools()], **options)
    result = agent.run(task)
    assert result.status == "completed"
    assert not (result.text or "").startswith(model.LOST)
    calls = [call.name for message in result.messages for call in message.tool_calls]
    return result.text or "", calls, list(result.state.todos)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which lake is deepest?", "The deepest `lake` is Inari"),
        ("How many lakes are in Lapland?", "3 different values"),
        ("Find the deepest lake", "The deepest `lake` is Inari"),
        ("Compute the average depth_m by region", "Savo (85) and Lapland (42.7)"),
    ],
)
def test_a_question_for_data_goes_to_the_frame(question: str, said: str) -> None:
    text, calls, _ = run(question)
    assert said in text
    assert "lake_area" not in calls


@pytest.mark.parametrize(
    "question", ["What is the area of Inari?", "Find the area of Inari", "Use lake_area for Inari"]
)
def test_a_tool_is_taken_where_the_question_names_what_it_does(question: str) -> None:
    text, calls, _ = run(question)
    assert "Inari has 1043." in text
    assert "lake_area" in calls


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Ask a helper to find which lake in `lakes` is deepest", "deepest `lake` is Inari"),
        ("Ask a sub-agent which region has the most lakes", "Lapland has the highest number"),
        ("Delegate to a sub-agent: find the average depth by region", "Savo (85)"),
        ("Let a sub-agent write a poem about lakes", "I write no texts of my own: choose a model"),
    ],
)
def test_a_sub_agent_does_its_task_or_says_what_it_cannot(task: str, said: str) -> None:
    text, calls, _ = run(task)
    assert calls == ["task"]
    assert said in text


def test_a_task_as_models_write_them_to_sub_agents_is_planned() -> None:
    text, _, todos = run(
        "You are given the data frame `lakes` in the notebook.\nTask: Find out which lake is "
        "deepest. Return only the name of the lake and its depth."
    )
    assert text.startswith("The deepest `lake` is Inari")
    assert "cannot" not in text
    assert todos == []


def test_a_plan_of_one_step_is_no_list() -> None:
    text, calls, _ = run("Make a plan. Which lake is deepest?")
    assert "The deepest `lake` is Inari" in text
    assert "write_todos" not in calls
    _, calls, _ = run("Make a plan. Which lake is deepest? How many rows are there?")
    assert "write_todos" in calls
