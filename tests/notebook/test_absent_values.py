"""What a frame does not have is said not to be there: rows, values, times."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask
from tests.notebook.test_whole_questions import CAFE


def test_where_no_row_is_so_that_is_said() -> None:
    answer = ask("List the days with more than 500 cups in {cafe}.", frames={"cafe": CAFE})
    assert answer.text.startswith("There is no row of `cafe` with `cups` over 500.")


def test_rows_without_what_is_asked_for_are_not_said_to_be_missing() -> None:
    frame = pd.DataFrame({"name": ["a", "b", "c"], "note": [None, None, None], "x": [1, 2, 3]})
    answer = ask("List the note of {notes} with x over 1", frames={"notes": frame})
    assert answer.text.startswith("No row of `notes` with `x` over 1 has a value there.")


@pytest.mark.parametrize(
    "question",
    [
        "What is the highest note in {notes}?",
        "Which row has the highest note in {notes}?",
        "Which kind has the highest note in {notes}?",
        "What is the average note by kind in {notes}?",
        "Show the 2 rows of {notes} with the highest note.",
    ],
)
def test_of_a_column_without_a_value_it_is_said_that_there_is_none(question: str) -> None:
    frame = pd.DataFrame({"kind": ["a", "b", "a"], "note": [float("nan")] * 3, "x": [1, 2, 3]})
    answer = ask(question, frames={"notes": frame})
    assert answer.text == "No row of `notes` has a value there."


@pytest.mark.parametrize(
    "question",
    [
        "What is the average cups up to 2024-03-01 in {cafe}?",
        "How many rows of {cafe} have cups over 2024-03-01?",
        "How many rows of {cafe} have cups between 9am and 5pm?",
    ],
)
def test_what_is_no_number_is_not_compared_with_one(question: str) -> None:
    answer = ask(question, frames={"cafe": CAFE.drop(columns="date")})
    assert answer.text.startswith("I cannot answer")


@pytest.mark.parametrize(
    "request_",
    [
        "Are cups significantly different between the branches? Do a t-test.",
        "Fit a linear regression of cups on date and tell me the slopes",
    ],
)
def test_what_was_not_done_is_not_ticked_and_refused(request_: str) -> None:
    answer = ask("How many rows has {cafe}?", request_, frames={"cafe": CAFE})
    assert set(answer.todos.values()) == {"cancelled"}
    assert len(re.findall(r"^I cannot (?:answer|do) ", answer.text, re.MULTILINE)) == 2
