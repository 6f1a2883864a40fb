"""What people ask of readings that were taken each day at several places."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_first_questions import gives


def _meter() -> pd.DataFrame:
    chance = random.Random(7)
    days = pd.date_range("2025-01-01", periods=120)
    rows = [(day, site) for day in days for site in ("barn", "house", "shop")]
    frame = pd.DataFrame(rows, columns=["day", "site"])
    frame["kwh"] = [number / 100 for number in chance.sample(range(300, 4000), len(rows))]
    frame.loc[[4, 50, 77], "kwh"] = None
    return frame


METER = _meter()
TOTALS = METER.groupby("day")["kwh"].sum()


def ask(*questions: str) -> str:
    return ask_about(*questions, frames={"meter": METER}).text


@pytest.mark.parametrize(
    "question",
    ["top 3 days by total kwh in {meter}", "which 3 days have the highest total kwh in {meter}?"],
)
def test_days_are_ranked_by_their_totals_where_those_are_asked_for(question: str) -> None:
    told = ask(question)
    for day, kwh in TOTALS.nlargest(3).items():
        assert f"{day:%Y-%m-%d}" in told
        assert gives(told, kwh)


def test_where_a_day_has_one_reading_nothing_is_averaged() -> None:
    barn = METER[METER["site"] == "barn"]
    highest = barn.loc[barn["kwh"].idxmax()]
    told = ask("on which day was the kwh of the barn highest in {meter}?")
    assert told.startswith(f"{highest['day']:%Y-%m-%d} has the highest `kwh` with `site` barn: ")
    assert gives(told, highest["kwh"])


@pytest.mark.parametrize("what", ["total", "average", "median"])
def test_rows_without_a_value_are_told_of_what_is_made_of_the_others(what: str) -> None:
    told = ask(f"{what} kwh by site in {{meter}}")
    assert f"3 rows without a `kwh` are left out of the {what}s." in told


@pytest.mark.parametrize(
    "question",
    [
        "which site used the most kwh in total in {meter}?",
        "which site consumed most kwh {meter} pls",
    ],
)
def test_a_verb_that_says_no_more_than_has_needs_no_column(question: str) -> None:
    told = ask(question)
    assert told.startswith(f"{METER.groupby('site')['kwh'].sum().idxmax()} has the highest total ")


def test_a_sentence_and_its_table_round_alike() -> None:
    rows = pd.DataFrame(
        {"day": pd.date_range("2025-01-01", periods=4), "kwh": [38.25, 33.25, 9, 8]}
    )
    told = ask_about("sort {rows} by kwh", "which day has the highest kwh?", frames={"rows": rows})
    assert "38.3" in told.text
    assert "38.2" not in told.text
