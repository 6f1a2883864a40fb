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


# Numbers that are said


def order(item: str, count: int = 1) -> str:
    """Order an item."""
    return f"ordered {count} x {item}"


def book(room: str, nights: int = 1, guests: int = 1) -> str:
    """Book a room."""
    return f"booked {room} for {nights} nights and {guests} guests"


def ship(item: str, to: str = "", weight_kg: float = 1.0) -> str:
    """Ship an item to somebody."""
    return f"shipped {item} of {weight_kg} kg to {to}"


def said_of(task: str) -> str:
    tools = [order, book, ship]
    agent = sa.Agent(sa.DemoModel(), tools=tools, middleware=[sa.NotebookTools()])
    return agent.run(task).text or ""


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Order 4 bottles", "ordered 4 x bottles"),
        ("Please order two lamps", "ordered 2 x lamps"),
        ("Order a dozen eggs", "ordered 12 x eggs"),
        ("Order the 4 green bottles", "ordered 4 x green bottles"),
        ('order 3 "red wine"', "ordered 3 x red wine"),
        ("Order bottles, count 7", "ordered 7 x bottles"),
        ("Order item 4711", "ordered 1 x 4711"),
        ("Order bottles", "ordered 1 x bottles"),
        ("Book the Aurora room for 3 nights and two guests", "booked Aurora for 3 nights and 2 gu"),
        ("Ship the lamp to Anna with weight 2.5", "shipped lamp of 2.5 kg to Anna"),
    ],
)
def test_a_number_that_is_said_stands_in_the_call(task: str, said: str) -> None:
    assert said_of(task).startswith(said)


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("Order 2.5 bottles", "2.5"),
        ("Order 4 bottles and 3 lamps", "4"),
        ("Book Aurora for 3", "3"),
        ("Ship 3 lamps to Anna", "3"),
        ("Order 4 bottles for Anna", "Anna"),
    ],
)
def test_what_has_no_place_in_the_call_is_told_and_nothing_is_done(task: str, left: str) -> None:
    said = said_of(task)
    assert f"I cannot tell what “{left}” is for" in said
    assert not said.startswith(("ordered", "booked", "shipped"))


# A tool and a frame of one name


def lakes(region: str) -> str:
    """The lakes of a region."""
    return f"{region} has many."


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("How many lakes are in Lapland?", "3 different values"),
        ("Show the lakes", "`lakes` has 12 rows"),
        ("Which lakes does Karelia have?", "Karelia has many."),
        ("`lakes` of Karelia", "Karelia has many."),
    ],
)
def test_a_tool_that_is_called_as_a_frame_answers_what_the_frame_cannot(
    task: str, said: str
) -> None:
    agent = sa.Agent(sa.DemoModel(), tools=[lakes], middleware=[sa.NotebookTools()])
    assert said in (agent.run(task).text or "")


def test_a_superlative_is_no_name() -> None:
    text, calls, _ = run("What is the lake_area of the deepest lake?")
    assert "lake_area" not in calls
    assert "needs a value for 'name'" in text
