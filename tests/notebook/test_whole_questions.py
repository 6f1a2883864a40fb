"""What is a whole question takes nothing from the one before it that it does not ask for."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask

DAYS = pd.date_range("2024-12-01", "2025-01-31", freq="D")
CAFE = pd.DataFrame(
    {
        "date": DAYS.repeat(2),
        "branch": ["Harbour", "Station"] * len(DAYS),
        "weather": ["sun", "rain", "rain", "snow"] * (len(DAYS) // 2),
        "cups": [70 + (7 * n) % 31 + 30 * (n % 2) for n in range(2 * len(DAYS))],
    }
)


@pytest.mark.parametrize(
    ("before", "question", "said"),
    [
        (
            "What is the average cups in {cafe} when it snows?",
            "Which weather has the fewest days?",
            "I cannot answer “Which weather has the fewest days”",
        ),
        (
            "What is the average cups by weather in {cafe}?",
            "Which branch has the most cups?",
            "Station has the highest total `cups`",
        ),
        (
            "What is the standard deviation of cups by branch in {cafe}?",
            "Compare both branches in 2025",
            "standard deviation of `cups` in 2025: 9.092 (Harbour and Station).",
        ),
    ],
)
def test_nothing_is_taken_over_that_changes_what_is_asked(
    before: str, question: str, said: str
) -> None:
    assert said in ask(before, question, frames={"cafe": CAFE}).text


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
