"""No word of a question about data is dropped: its answer holds it, names it, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_first_questions import gives


def _orders() -> pd.DataFrame:
    chance = np.random.default_rng(7)
    count = 400
    days = pd.to_timedelta(chance.integers(0, 540, count), unit="D")
    return pd.DataFrame(
        {
            "order_id": np.arange(1001, 1001 + count),
            "order_date": pd.to_datetime("2024-01-03") + days,
            "customer": chance.choice(["Acme", "Bolt & Co", "Crown", "Delta"], count),
            "region": chance.choice(["North", "South", "East", "West"], count),
            "product": chance.choice(["Chair", "Desk", "Lamp", "Shelf"], count),
            "quantity": chance.integers(1, 12, count),
            "discount": chance.choice([0, 0.05, np.nan], count, p=[0.6, 0.3, 0.1]),
            "returned": chance.random(count) < 0.08,
            "revenue": np.round(chance.uniform(9, 2400, count), 2),
        }
    )


def _patients() -> pd.DataFrame:
    chance = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "patient": [f"P{n:03d}" for n in range(1, 61)],
            "Age": chance.permutation(np.arange(20, 80)),
            "sex": chance.choice(["F", "M"], 60),
            "arm": chance.choice(["placebo", "drug"], 60),
            "sbp before": chance.normal(150, 12, 60).round(),
            "sbp after": chance.normal(140, 15, 60).round(),
        }
    )
    frame.loc[[3, 9, 20], "sbp after"] = np.nan
    return frame


FRAMES = {
    "orders": _orders(),
    "patients": _patients(),
    "staff": pd.DataFrame(
        {
            "name": ["Ana", "Bo", "Cy", "Di", "Ed"],
            "dept": ["IT", "IT", "HR", "HR", "Ops"],
            "salary": [5200, 6100, 4800, 7000, 3900],
            "remote": [True, False, True, True, False],
        }
    ),
    "weather": pd.DataFrame(
        {
            "City": ["Oslo", "Lyon", "Rome"] * 2,
            "Year": [2023] * 3 + [2024] * 3,
            "Rain (mm)": [800, 650, 540, 910, np.nan, 495],
            "Sunny": ["yes", "no", "yes", "no", "no", "yes"],
        }
    ),
    "scores": pd.DataFrame(
        {"student": ["Al", "Bea", "Cem", "Dee"], "math": [71, 88, 88, 52], "art": [90, 45, 60, 77]}
    ).set_index("student"),
    "pct": pd.DataFrame({"team": ["A", "B", "C"], "wins": [10, 8, 12], "games": [20, 10, 30]}),
}
ORDERS, PATIENTS = FRAMES["orders"], FRAMES["patients"]
YEAR = ORDERS["order_date"].dt.year


pytestmark = pytest.mark.usefixtures("shell")


def ask(*questions: Any, **options: Any) -> Any:
    return ask_about(*questions, frames=FRAMES, **options)


# Groups


def test_two_years_are_groups_to_compare_and_no_condition_that_no_row_meets() -> None:
    told = ask("compare revenue 2024 vs 2025 in {orders}").text
    totals = ORDERS.groupby(YEAR)["revenue"].sum()
    assert gives(told, totals[2024])
    assert gives(told, totals[2025])
    assert "the difference is" in told


@pytest.mark.parametrize(
    ("question", "column", "statistic", "groups"),
    [
        ("total revenue of Acme, Crown and Delta in {orders}", "customer", "sum", 3),
        ("average revenue of North and South in {orders}", "region", "mean", 2),
        ("average revenue in North or South in {orders}", "region", "mean", 2),
        ("compare the revenue of chairs and desks in {orders}", "product", "sum", 2),
        ("revenue of Acme vs Crown in {orders}", "customer", "sum", 2),
    ],
)
def test_several_values_of_a_column_are_groups(
    question: str, column: str, statistic: str, groups: int
) -> None:
    told = ask(question).text
    named = [v for v in ORDERS[column].unique() if v.lower() in question.lower()]
    assert len(named) == groups
    right = ORDERS.groupby(column)["revenue"].agg(statistic)
    assert all(gives(told, right[name]) for name in named)


def test_months_are_groups_too_and_years_from_one_to_another_are_a_range() -> None:
    told = ask("how many orders were there in January and February 2024 in {orders}?").text
    months = ORDERS[YEAR == 2024]["order_date"].dt.month.value_counts()
    assert gives(told, int(months[1]))
    assert gives(told, int(months[2]))
    told = ask("total revenue from 2024 to 2025 in {orders}").text
    assert gives(told, ORDERS["revenue"].sum())


def test_a_difference_is_told_as_one() -> None:
    told = ask("what is the difference between average revenue of Acme and Crown in {orders}?").text
    means = ORDERS.groupby("customer")["revenue"].mean()
    assert gives(told, abs(means["Acme"] - means["Crown"]))


def test_the_average_drop_per_group_is_of_rows_that_have_both() -> None:
    told = ask("average drop from sbp before to sbp after per arm in {patients}?").text
    drops = (PATIENTS["sbp after"] - PATIENTS["sbp before"]).groupby(PATIENTS["arm"]).mean()
    assert all(gives(told, drop) for drop in drops)
    assert {"drug", "placebo"} <= set(told.replace(":", " ").split())


# What is counted, what is missing


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("how many cities are there in {weather}?", "`City` has 3 different values, in 6 rows."),
        ("how many sunny rows are there in {weather}?", "3 of 6 rows with `Sunny` yes (50.0 %)"),
        ("how many customers ordered a Lamp in {orders}?", "has 4 different values"),
        ("who got the best math score in {scores}?", "Bea and Cem have the highest `math`: 88"),
        ("average rain per city in {weather}", "Oslo (855), Lyon (650) and Rome (517.5)"),
        ("which city had the most rain in {weather}?", "Oslo has the highest total `Rain (mm)`"),
        ("average salary of people working remotely in {staff}", "is 5,667"),
        ("highest salary of people not working remotely in {staff}", "Bo has the highest"),
        ("how did rain change from 2023 to 2024 in {weather}?", "from 1,990 in 2023 to 1,405"),
        ("how many patients have an Age of 70 or more in {patients}?", "10 of 60 rows"),
        ("most frequent customer in {orders}", "by number of rows"),
        ("how much rain fell in Rome in 2024 in {weather}?", "495 in 2024; there is only one Year"),
        ("which year was wettest in {weather}?", "The wettest `Year` is 2023"),
    ],
)
def test_what_is_asked_for_is_what_is_told(question: str, said: str) -> None:
    assert said in ask(question).text


def test_a_missing_value_is_not_a_total_of_zero() -> None:
    told = ask("which city had the most rain in 2024 in {weather}?").text
    assert "Lyon (0)" not in told
    assert "Lyon has no value of `Rain (mm)`" in told
    large = pd.concat([FRAMES["weather"]] * 20, ignore_index=True)
    told = ask_about("total rain by city in 2024 in {large}", frames={"large": large}).text
    assert "Lyon has no value of `Rain (mm)`" in told


def test_totals_say_how_many_rows_they_lack() -> None:
    told = ask("total rain by year in {weather}").text
    assert "1 row without a `Rain (mm)` is left out of the totals." in told


def test_the_average_of_an_order_is_not_one_by_its_date() -> None:
    told = ask("average revenue per order in {orders}").text
    assert gives(told, ORDERS["revenue"].mean())
    assert "order_date" not in told


def test_two_questions_of_one_sentence_are_both_answered() -> None:
    told = ask("what columns does orders have and are there missing values? {orders}").text
    assert "`order_id` (int64)" in told
    assert gives(told, int(ORDERS["discount"].isna().sum()))


def test_a_correlation_is_one_of_the_columns_that_stand_between_and_and() -> None:
    told = ask("is there a correlation between quantity and revenue in {orders}?").text
    assert f"r = {ORDERS['quantity'].corr(ORDERS['revenue']):.3f}" in told


# What is not understood


@pytest.mark.parametrize(
    "question",
    [
        "which team has the best win rate in {pct}?",
        "wins per game by team in {pct}",
        "discount share by region in {orders}",
        "mean and median revenue by region in {orders}",
        "average quantity and total revenue by region in {orders}",
        "average revenue over time by region in {orders}",
        "average revenue of gadgets in {orders}",
        "minimum and maximum revenue by region in {orders}",
        "plot the top 2 customers by revenue in {orders}",
        "how many columns have missing values in {orders}?",
        "average revenue by region and missing values in {orders}",
        "orders from Acme or in the North in {orders}",
        "which region grew the most in {orders}?",
        "average revenue by week in {staff}",
        "second highest salary of each dept in {staff}",
        "sbp before minus sbp after in {patients}",
        "share of revenue of Acme and Crown in {orders}",
        "correlation of math and art by sex in {scores}",
        "delete all rows of {orders} where returned is true",
        "add a column to {staff} with the bonus",
        "rename salary to pay in {staff}",
    ],
)
def test_what_is_no_part_of_the_answer_is_no_answer(question: str) -> None:
    answer = ask(question)
    assert answer.text.startswith("I cannot answer “")
    assert answer.approved == []


def test_what_is_taken_for_the_rows_is_said() -> None:
    told = ask("how many people called employees are in IT, and how many dragons? {staff}").text
    assert "“dragons”" in told


# Several frames, several turns


def test_a_question_that_fits_another_frame_is_about_that_one() -> None:
    first = "mean of sbp before by arm in {patients}"
    told = ask(first, "top 3 customers by revenue").text
    best = ORDERS.groupby("customer")["revenue"].sum().nlargest(3)
    assert told.startswith("The top 3 of `customer` by total `revenue`")
    assert all(gives(told, total) for total in best)
    assert "`staff` has 5 rows and 4 columns" in ask(first, "describe staff").text
    assert "Di has the highest `salary`: 7,000" in ask(first, "who has the highest salary?").text
    told = ask("average discount in {orders}", "what columns does patients have").text
    assert told.startswith("`patients` has 60 rows and 6 columns")


def test_a_frame_is_found_by_a_superlative_alone() -> None:
    oldest = PATIENTS.loc[PATIENTS["Age"].idxmax()]
    assert ask("who is the oldest patient").text.startswith(f"{oldest['patient']} has the highest")


def test_the_last_frame_that_was_asked_of_goes_before_the_others() -> None:
    told = ask("average Age in {patients}", "who earns the most in {staff}?", "average salary").text
    assert told == "The average `salary` is 5,400."


def test_a_question_that_names_its_frame_is_no_follow_up() -> None:
    told = ask("how many cities are there in {weather}?", "In {scores}, who is best in math?").text
    assert "Bea and Cem" in told


def test_what_an_earlier_turn_found_answers_no_new_one() -> None:
    def doubled(namespace: dict[str, Any]) -> None:
        namespace["orders"]["revenue"] *= 2

    first = "average revenue by region in {orders}?"
    same = "Now the same by product"
    answer = ask(first, same, doubled, same)
    right = 2 * ORDERS.groupby("product")["revenue"].mean()
    assert all(gives(answer.text, mean) for mean in right)
    assert answer.calls.count("run_python") == 3


def test_what_a_prompt_showed_answers_no_later_one() -> None:
    def raised(namespace: dict[str, Any]) -> None:
        namespace["staff"]["salary"] += 100

    told = ask("how many rows has {staff}?", raised, "average salary").text
    assert told == "The average `salary` is 5,500."


def test_a_follow_up_for_another_statistic_changes_the_statistic() -> None:
    first = "average revenue by product in {orders}"
    told = ask(first, "and the maximum?").text
    assert told.startswith("Highest `revenue` by `product`")
    assert all(gives(told, most) for most in ORDERS.groupby("product")["revenue"].max())
    told = ask(first, "and the maximum?", "and for Crown only?").text
    crown = ORDERS[ORDERS["customer"] == "Crown"].groupby("product")["revenue"].max()
    assert all(gives(told, most) for most in crown)
    assert "I cannot answer" in ask(first, "sort them the other way round").text
