"""How the demo model tells what changed from one time to the next, or says that it cannot."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import sagents_nb as sa
from sagents_nb.models.demo import model
from tests.notebook.test_first_questions import ask

LAKES = ["Inari", "Saimaa", "Puula"]
FRAMES = {
    "temps": pd.DataFrame(
        {
            "lake": LAKES * 3,
            "region": ["N", "S", "S"] * 3,
            "depth": [92, 85, 60, 91, 80, 61, 90, 88, 59],
            "year": [2022] * 3 + [2023] * 3 + [2024] * 3,
            "fish_count": [10, 20, 30, 11, 25, 28, 9, None, 40],
        }
    ),
    "rains": pd.DataFrame(
        {"city": ["A", "B"] * 2, "rain": [10, 20, 12, 30], "year": [2023] * 2 + [2024] * 2}
    ),
    "visits": pd.DataFrame(
        {
            "lake": ["Inari", "Saimaa"] * 4,
            "visited": pd.to_datetime(
                [
                    f"{year}-{month}-05"
                    for year in (2022, 2023)
                    for month in ("01", "07")
                    for _ in LAKES[:2]
                ]
            ),
            "temp_c": [1, 3, 20, 16, 2, 4, 21, 17],
        }
    ),
}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How did rain change from year to year in {rains}?", "from 30 in 2023 to 42 in 2024"),
        ("How did rain change year over year in {rains}?", "from 30 in 2023 to 42 in 2024"),
        ("How did rain change from year to year per city in {rains}?", "B +50.0 % (20 → 30)"),
        ("How did depth change from year to year in {temps}?", "from 79 in 2022 to 79 in 2024"),
        ("How did temperature grow from year to year in {visits}?", "from 10 in 2022 to 11 in"),
        ("How did rain change from month to month in {rains}?", "does not say of which month"),
        ("How did the temperature of {temps} change from year to year?", "no column “temperature”"),
    ],
)
def test_from_year_to_year_names_the_time(question: str, said: str) -> None:
    assert said in ask(question, frames=FRAMES).text


def test_the_growth_from_one_column_to_another_is_told_of_many_rows() -> None:
    answer = ask("How did it change from depth to fish_count in {temps}?", frames=FRAMES)
    assert "From depth to fish_count" in answer.text


def test_a_fault_of_its_planning_ends_no_conversation(monkeypatch: Any) -> None:
    def fail(request: Any) -> None:
        raise IndexError("list index out of range")

    with monkeypatch.context() as patched:
        patched.setattr(model, "decide", fail)
        result = sa.Agent(sa.DemoModel()).run("Hello")
    assert (result.text or "").startswith(model.LOST)
    assert sa.Agent(sa.DemoModel()).run("Hello", state=result.state).status == "completed"
