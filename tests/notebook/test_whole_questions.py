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
