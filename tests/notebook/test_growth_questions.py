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


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the change in temperature in {visits}?", "from 10 in 2022 to 11 in 2023"),
        ("Did the temperature increase in {visits}?", "Yes: average `temp_c` went from 10"),
        ("How did the depth and the fish_count change in {temps}?", "growth of one column at a ti"),
        ("How did the number of lakes change in {temps}?", "`lake` went from 3 in 2022 to 3 in"),
    ],
)
def test_of_several_rows_of_a_time_none_is_the_first(question: str, said: str) -> None:
    assert said in ask(question, frames=FRAMES).text


def test_groups_with_several_rows_of_a_time_have_no_first_one() -> None:
    twice = pd.concat([FRAMES["visits"]] * 2, ignore_index=True)
    said = ask("How did the temperature change by lake in {v}?", frames={"v": twice}).text
    assert "`v` has several rows of one `lake` and time" in said


def test_the_time_of_a_change_is_a_month_where_there_is_one_year() -> None:
    visits = FRAMES["visits"]
    frame = visits[visits["visited"] < "2023"].reset_index(drop=True)
    said = ask("How did the temperature change in {v}?", frames={"v": frame}).text
    assert "from 2 in 2022-01 to 18 in 2022-07" in said


def test_whether_something_grew_is_said_of_its_first_and_last_value() -> None:
    days = pd.date_range("2024-01-01", periods=12, freq="6D")
    frame = pd.DataFrame({"day": days, "nitrate": [3.0, *range(9, 0, -1), 0.5, 3.5]})
    said = ask("Does nitrate increase over time in {v}?", frames={"v": frame}).text
    assert said == "Yes: `nitrate` went from 3 to 3.5 (+16.7 %), its first and its last value."


def test_a_fault_of_its_planning_ends_no_conversation(monkeypatch: Any) -> None:
    def fail(request: Any) -> None:
        raise IndexError("list index out of range")

    with monkeypatch.context() as patched:
        patched.setattr(model, "decide", fail)
        result = sa.Agent(sa.DemoModel()).run("Hello")
    assert (result.text or "").startswith(model.LOST)
    assert sa.Agent(sa.DemoModel()).run("Hello", state=result.state).status == "completed"
