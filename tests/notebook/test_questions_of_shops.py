"""What somebody types who has the sales of some shops: politely, in a hurry, one after another."""

from __future__ import annotations

import calendar

import numpy as np
import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_first_questions import gives


def _sales(count: int) -> pd.DataFrame:
    chance = np.random.default_rng(1)
    units, price = chance.integers(1, 40, count), chance.normal(5, 1, count).round(2)
    return pd.DataFrame(
        {
            "date": pd.date_range("2024-01-01", periods=count, freq="D"),
            "store": chance.choice(["North", "South", "East"], count),
            "product": chance.choice(["tea", "coffee", "cake"], count),
            "units": units,
            "price": price,
            "revenue": (units * price).round(2),
        }
    )


SALES = _sales(400)
TEA, SOUTH = SALES[SALES["product"] == "tea"], SALES[SALES["store"] == "South"]


def ask(*questions: str, sales: pd.DataFrame = SALES) -> str:
    return ask_about(*questions, frames={"sales": sales}).text


@pytest.mark.parametrize(
    "question",
    [
        "Could you kindly tell me the average price in {sales}?",
        "Hey! what's the average price in {sales}, thanks",
        "I'd like to know the average price in {sales}. Thank you",
        "do you know the average price in {sales}?",
    ],
)
def test_a_polite_question_is_the_same_question(question: str) -> None:
    assert gives(ask(question), SALES["price"].mean())


def test_a_misspelt_column_is_told_with_the_one_that_is_near() -> None:
    told = ask("mean revnue by product in {sales}")
    assert "I cannot tell what “revnue” means in `sales` (is `revenue` meant?)" in told
    assert "meant?" not in ask("mean zork by product in {sales}")


@pytest.mark.parametrize(
    ("question", "by"),
    [
        ("median revenue per store and product in {sales}", ["store", "product"]),
        ("median revenue by product and store in {sales}", ["product", "store"]),
        ("median revenue of each store in {sales}", ["store"]),
    ],
)
def test_a_store_is_a_shop_where_nothing_is_stored(question: str, by: list[str]) -> None:
    told = ask(question)
    assert all(gives(told, median) for median in SALES.groupby(by)["revenue"].median())


def test_what_is_to_be_stored_is_stored() -> None:
    answer = ask_about(
        "Store the total revenue per store of {sales} in /r.md", frames={"sales": SALES}
    )
    totals = SALES.groupby("store")["revenue"].sum()
    assert all(gives(answer.files["/r.md"], total) for total in totals)


@pytest.mark.parametrize("count", [400, 20], ids=["by code", "from what was shown"])
@pytest.mark.parametrize(
    "question", ["revenue by weekday {sales}", "count rows by weekday {sales}"]
)
def test_weekdays_stand_in_their_order(count: int, question: str) -> None:
    lines = ask(question, sales=_sales(count)).splitlines()
    days = [line.split()[1] for line in lines if line.startswith("|") and "day " in line][1:]
    assert days == list(calendar.day_name)


def test_weekdays_of_groups_and_of_plots_stand_in_their_order_too() -> None:
    told = ask("average units by weekday and store in {sales}")
    days = [line.split()[1] for line in told.splitlines() if "day | " in line][1:]
    assert list(dict.fromkeys(days)) == list(calendar.day_name)
    answer = ask_about("plot revenue by weekday of {sales}", frames={"sales": SALES})
    assert "calendar.day_name" in answer.approved[0]


def test_after_a_share_another_name_asks_for_its_share() -> None:
    first = "What share of revenue comes from North in {sales}?"
    total = SALES["revenue"].sum()
    for follow_up in ("and South?", "South?", "what about South?"):
        told = ask(first, follow_up)
        assert told.startswith(f"`store` is South in {100 * SOUTH['revenue'].sum() / total:.1f} %")
    late = SALES[SALES["date"].dt.year == 2025]
    share = late[late["store"] == "South"]["revenue"].sum() / late["revenue"].sum()
    assert f"{100 * share:.1f} %" in ask(first, "and South?", "and in 2025?")


def test_a_name_alone_asks_the_question_before_of_its_rows() -> None:
    coffee = SALES[SALES["product"] == "coffee"]["price"].mean()
    assert gives(ask("average price of tea in {sales}?", "coffee?"), coffee)
    assert ask("average price of tea in {sales}?", "show rows of tea").startswith(
        "The first 10 rows"
    )


@pytest.mark.parametrize(
    "question",
    ["Show me units over time for each store {sales}", "I want to see the price over time {sales}"],
)
def test_what_is_to_be_seen_over_time_is_drawn(question: str) -> None:
    assert ask(question).startswith("The line plot shows")


def test_a_number_is_the_same_in_the_sentence_and_in_the_table() -> None:
    towns = pd.DataFrame({"town": list("abcdef"), "revenue": [6268.46, 5e3, 4e3, 3e3, 2e3, 1e3]})
    twice = pd.concat([towns, towns.assign(revenue=0.0)])
    assert ask("total revenue by town in {sales}", sales=twice).count("6,268") == 2
