"""Of frames that everybody knows, what strangers type gets what pandas gives, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_first_questions import gives


def _iris() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    middles = {"setosa": (5, 3.4, 1.5, 0.2), "virginica": (6.6, 3, 5.5, 2)}
    rows = [
        (*(round(chance.normal(middle, 0.3), 1) for middle in middles[species]), species)
        for species in ("setosa", "virginica")
        for _ in range(50)
    ]
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
    return pd.DataFrame(rows, columns=names)


def _tips() -> pd.DataFrame:
    chance = np.random.default_rng(2)
    bill = np.round(chance.gamma(5, 4, 200) + 3, 2)
    return pd.DataFrame(
        {
            "total_bill": bill,
            "tip": np.round(bill * chance.uniform(0.08, 0.25, 200), 2),
            "sex": chance.choice(["Male", "Female"], 200, p=[0.64, 0.36]),
            "smoker": chance.choice(["Yes", "No"], 200, p=[0.38, 0.62]),
            "day": chance.choice(["Thur", "Fri", "Sat", "Sun"], 200),
            "time": chance.choice(["Lunch", "Dinner"], 200),
            "size": chance.choice([1, 2, 3, 4], 200),
        }
    )


def _titanic() -> pd.DataFrame:
    chance = np.random.default_rng(4)
    age = np.round(np.clip(chance.normal(30, 14, 300), 1, 80))
    frame = pd.DataFrame(
        {
            "PassengerId": np.arange(1, 301),
            "Survived": (chance.random(300) < 0.4).astype(int),
            "Pclass": chance.choice([1, 2, 3], 300),
            "Name": [f"Braund, Mr. No {number}" for number in range(300)],
            "Sex": chance.choice(["male", "female"], 300),
            "Age": np.where(chance.random(300) < 0.2, np.nan, age),
            "Fare": np.round(chance.lognormal(2.8, 0.8, 300), 4),
            "Embarked": chance.choice(["S", "C", "Q"], 300, p=[0.7, 0.2, 0.1]),
        }
    )
    frame["Cabin"] = pd.Series(["C85", None, None, None] * 75)
    return frame


def _gapminder() -> pd.DataFrame:
    chance = np.random.default_rng(5)
    countries = {
        "China": ("Asia", 44, 556e6, 400), "Japan": ("Asia", 63, 86e6, 3216),
        "India": ("Asia", 37, 372e6, 546), "Germany": ("Europe", 67.5, 69e6, 7144),
        "Spain": ("Europe", 65, 28e6, 3834), "Egypt": ("Africa", 41, 22e6, 1418),
        "Kenya": ("Africa", 42, 6e6, 853),
    }  # fmt: skip
    rows = [
        (name, continent, 1952 + 5 * step, round(life + step * chance.uniform(1, 2.2), 3),
         int(people * 1.09**step), round(gdp * chance.uniform(1, 1.2) ** step, 4))
        for name, (continent, life, people, gdp) in countries.items()
        for step in range(12)
    ]  # fmt: skip
    names = ["country", "continent", "year", "lifeExp", "pop", "gdpPercap"]
    return pd.DataFrame(rows, columns=names)


FRAMES = {"iris": _iris(), "tips": _tips(), "titanic": _titanic(), "gapminder": _gapminder()}
IRIS, TIPS, TITANIC, GAPMINDER = FRAMES.values()
IN_2007 = GAPMINDER[GAPMINDER["year"] == 2007]


def ask(question: str) -> str:
    """What is said of these frames."""
    return ask_about(question, frames=FRAMES).text


def check(question: str, *facts: Any) -> None:
    """The answer begins with the first name and gives every fact."""
    said = ask(question)
    for fact in facts:
        assert gives(said, fact), said


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        (
            "average tip by sex and smoker in {tips}",
            [
                f"{sex}, {smoker} ({mean:,.4g})"
                for (sex, smoker), mean in TIPS.groupby(["sex", "smoker"])["tip"].mean().items()
            ],
        ),
        (
            "average tip by day and time in {tips}",
            TIPS.groupby(["day", "time"])["tip"].mean(),
        ),
        (
            "survival rate by sex and class in {titanic}",
            100 * TITANIC.groupby(["Sex", "Pclass"])["Survived"].mean(),
        ),
        (
            "average fare by class and survived in {titanic}",
            TITANIC.groupby(["Pclass", "Survived"])["Fare"].mean(),
        ),
    ],
)
def test_two_groups_that_are_joined_are_both_grouped_by(question: str, facts: Any) -> None:
    said = ask(question)
    if isinstance(facts, list):
        assert all(fact in said for fact in facts), said
        return
    for (one, other), value in facts.items():
        (line,) = [line for line in said.splitlines() if line.startswith(f"| {one} | {other} |")]
        assert gives(line, value), line


def test_of_the_columns_of_sepals_the_widest_is_the_one_of_a_width() -> None:
    widths = IRIS.groupby("species")["sepal_width"].mean()
    check("Which species has the widest sepals in {iris}?", widths.idxmax(), *widths)


BIGGEST = TIPS.loc[TIPS["tip"].idxmax()]
CHEAPEST = TITANIC.loc[TITANIC["Fare"].idxmin()]


@pytest.mark.parametrize(
    ("question", "lead", "value"),
    [
        (
            "What is the biggest tip in {tips} and on which day was it?",
            f"{BIGGEST['day']} has",
            BIGGEST["tip"],
        ),
        (
            "What was the lowest fare and which class paid it in {titanic}?",
            f"`Pclass` {CHEAPEST['Pclass']} has",
            CHEAPEST["Fare"],
        ),
    ],
)
def test_which_it_was_asks_for_the_row_and_for_no_group(
    question: str, lead: str, value: float
) -> None:
    said = ask(question)
    assert said.startswith(lead)
    assert gives(said, float(value)), said


def test_the_oldest_survivor_is_the_oldest_of_those_who_survived() -> None:
    oldest = TITANIC[TITANIC["Survived"] == 1]["Age"].max()
    check("How old was the oldest survivor in {titanic}?", oldest)
