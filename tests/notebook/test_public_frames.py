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


def test_an_average_of_a_column_that_is_named_total_is_no_total() -> None:
    dinners = TIPS[(TIPS["time"] == "Dinner") & (TIPS["day"] == "Sat")]
    check(
        "average total bill for dinner on Saturday in {tips}",
        dinners["total_bill"].mean(),
        "average",
    )


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        (
            "average life expectancy by continent in 2007 in {gapminder}",
            IN_2007.groupby("continent")["lifeExp"].mean(),
        ),
        (
            "average GDP per capita by continent in 2007 in {gapminder}",
            IN_2007.groupby("continent")["gdpPercap"].mean(),
        ),
        (
            "Which continent had the largest population in 2007? {gapminder}",
            IN_2007.groupby("continent")["pop"].sum(),
        ),
        ("population by year in {gapminder}", GAPMINDER.groupby("year")["pop"].sum()),
        (
            "Which port had the most passengers in {titanic}?",
            TITANIC["Embarked"].value_counts(),
        ),
        (
            "How many lunches on Fridays in {tips}?",
            TIPS.groupby(["time", "day"]).size()["Lunch"][["Fri"]],
        ),
        (
            "How many rows have a total bill between 20 and 30 dollars in {tips}?",
            [int(TIPS["total_bill"].between(20, 30).sum())],
        ),
        (
            "How many countries had a population over 0.1 billion in 2007? {gapminder}",
            [int((IN_2007["pop"] > 1e8).sum())],
        ),
        (
            "Which country has the largest population in {gapminder}?",
            ["China", 2007, int(IN_2007["pop"].max())],
        ),
        (
            "What percentage of the cabin values are missing in {titanic}?",
            [100 * TITANIC["Cabin"].isna().mean()],
        ),
        (
            "What percentage of rows have missing values in {titanic}?",
            [100 * TITANIC.isna().any(axis=1).mean()],
        ),
        (
            "How many missing values are there in each column of {titanic}?",
            [int(TITANIC[name].isna().sum()) for name in ("Age", "Cabin")],
        ),
    ],
)
def test_what_is_asked_in_words_that_a_column_abbreviates_is_right(
    question: str, facts: Any
) -> None:
    check(question, *(int(f) if isinstance(f, np.integer) else f for f in facts))


def test_the_most_passengers_are_at_the_port_that_is_named_first() -> None:
    assert ask("Which port had the most passengers in {titanic}?").startswith("S has")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What is the total population in {gapminder}?", "does not add up"),
        ("Which continent has the largest population in {gapminder}?", "does not add up"),
        ("What percentage of values are missing in {titanic}?", "which share of all the rows"),
        ("Which countries are older than 5 in {gapminder}?", "“older” and “5” mean"),
    ],
)
def test_what_would_be_a_wrong_number_is_refused(question: str, reason: str) -> None:
    said = ask(question)
    assert said.startswith("I cannot answer")
    assert reason in said


def test_the_oldest_by_a_year_is_the_one_of_the_first() -> None:
    cars = pd.DataFrame(
        {"car": [f"c{n}" for n in range(60)], "year": [1950 + n for n in range(60)]}
    )
    said = ask_about("Which is the oldest car in {cars}?", frames={"cars": cars}).text
    assert said.startswith("c0 has")


def test_a_plot_over_time_has_the_years_along_its_axis() -> None:
    answer = ask_about("plot life expectancy over time by continent in {gapminder}", frames=FRAMES)
    assert "line plot" in answer.text
    assert "by year and continent" in answer.text
    assert "pivot_table(index='year', columns='continent'" in answer.approved[0]


FARES = sorted(TITANIC["Fare"], reverse=True)
LENGTHS = sorted(IRIS["petal_length"].unique(), reverse=True)
PEOPLE = IN_2007.sort_values("pop", ascending=False)


@pytest.mark.parametrize(
    ("question", "lead", "facts"),
    [
        ("What is the second highest fare in {titanic}?", "Braund", FARES[:2]),
        ("second longest petal length in {iris}", "The second highest", LENGTHS[:2]),
        (
            "Which country had the 3rd largest population in 2007? {gapminder}",
            f"{PEOPLE['country'].iloc[2]} has the third highest",
            [int(number) for number in PEOPLE["pop"].head(3)],
        ),
        (
            "Which day had the second lowest average tip in {tips}?",
            f"{TIPS.groupby('day')['tip'].mean().nsmallest(2).index[1]} has the second lowest",
            [*TIPS.groupby("day")["tip"].mean().nsmallest(2)],
        ),
        ("Which sex has the third highest survival rate in {titanic}?", "I cannot tell", []),
        ("second highest tip of each day in {tips}", "I cannot answer", []),
    ],
)
def test_a_later_place_of_a_ranking_is_told_with_those_before_it(
    question: str, lead: str, facts: Any
) -> None:
    said = ask(question)
    assert said.startswith(lead)
    assert all(gives(said, fact) for fact in facts), said


def test_a_later_place_counts_values_and_tells_how_many_rows_have_those_before_it() -> None:
    ages = pd.DataFrame({"age": [70] * 3 + [60] * 2 + list(range(55))})
    said = ask_about("What is the second highest age in {ages}?", frames={"ages": ages}).text
    assert said == "The second highest `age` is 60, in 2 rows.\n\nBefore it is 70 (3 rows)."


def _ends(
    frame: pd.DataFrame, measure: str, by: str, first: int, last: int, statistic: str
) -> pd.DataFrame:
    """What groups have in two years, those that grew most first."""
    table = frame.groupby([by, "year"])[measure].agg(statistic).unstack()[[first, last]]
    return table.assign(grown=100 * (table[last] / table[first] - 1)).sort_values(
        "grown", ascending=False
    )


@pytest.mark.parametrize("frames", [FRAMES, {"gapminder": GAPMINDER.iloc[:48]}])
@pytest.mark.parametrize(
    ("question", "first", "ends"),
    [
        (
            "Which country's population grew the most in {gapminder}?",
            "{} grew most in total `pop` from the first year to the last",
            ("pop", "country", 1952, 2007, "sum"),
        ),
        (
            "Which country grew most in life expectancy from 1972 to 1997 in {gapminder}?",
            "{} grew most in average `lifeExp` from 1972 to 1997",
            ("lifeExp", "country", 1972, 1997, "mean"),
        ),
        (
            "growth of GDP per capita by continent in {gapminder}",
            "Change of average `gdpPercap` from the first year to the last: {}",
            ("gdpPercap", "continent", 1952, 2007, "mean"),
        ),
    ],
)
def test_groups_grow_from_year_to_year_of_a_column_of_years(
    question: str, first: str, ends: Any, frames: Any
) -> None:
    right = _ends(frames["gapminder"], *ends)
    said = ask_about(question, frames=frames).text
    assert said.startswith(first.format(right.index[0]))
    assert all(gives(said, fact) for fact in right["grown"].head(3)), said


@pytest.mark.parametrize(
    "question",
    [
        "growth of life expectancy by country from 1970 to 1997 in {gapminder}",
        "How much did life expectancy grow in each continent in 2007? {gapminder}",
    ],
)
def test_a_growth_without_two_years_has_no_number(question: str) -> None:
    assert "%" not in ask(question)


def test_the_growth_of_all_is_told_of_every_year() -> None:
    totals = GAPMINDER.groupby("year")["pop"].sum()
    grown = 100 * (totals.iloc[-1] / totals.iloc[0] - 1)
    check("How much did the population grow in {gapminder}?", *map(int, totals), grown)


QUARTERS = pd.DataFrame(
    {
        "date": pd.date_range("2024-01-15", periods=90, freq="8D"),
        "revenue": [100 + 7 * n % 31 for n in range(90)],
    }
)
REVENUE = QUARTERS.groupby(QUARTERS["date"].dt.to_period("Q"))["revenue"].sum()
ALL_OF = QUARTERS.groupby(QUARTERS["date"].dt.quarter)["revenue"].sum()


@pytest.mark.parametrize("rows", [90, 46])
@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What was the total revenue in Q3 2024 in {shop}?", ["2024Q3"]),
        ("total revenue in the second quarter of 2024 in {shop}", ["2024Q2"]),
        ("Compare the revenue of Q1 and Q3 in 2024 in {shop}", ["2024Q1", "2024Q3"]),
        ("Did revenue grow from Q1 to Q3 2024 in {shop}?", ["2024Q1", "2024Q2", "2024Q3"]),
    ],
)
def test_a_quarter_is_one_of_its_year(question: str, names: list[str], rows: int) -> None:
    said = ask_about(question, frames={"shop": QUARTERS.head(rows)}).text
    assert all(gives(said, int(REVENUE[name])) for name in names), said


def test_quarters_of_no_year_are_of_every_year_and_have_no_growth() -> None:
    said = ask_about("total revenue from Q1 to Q2 in {shop}", frames={"shop": QUARTERS}).text
    assert gives(said, int(ALL_OF[1] + ALL_OF[2])), said
    said = ask_about("Did revenue grow from Q1 to Q2 in {shop}?", frames={"shop": QUARTERS}).text
    assert said == "I cannot tell of which year these quarters are: name it with them."


ABOVE = IN_2007[IN_2007["lifeExp"] > IN_2007["lifeExp"].mean()]
WOMEN = TITANIC[TITANIC["Sex"] == "female"]


@pytest.mark.parametrize("rows", [300, 48])
@pytest.mark.parametrize(
    ("question", "right"),
    [
        (
            "How many passengers paid more than the average fare in {titanic}?",
            lambda f: int((f["Fare"] > f["Fare"].mean()).sum()),
        ),
        (
            "How many passengers in third class paid less than the median fare in {titanic}?",
            lambda f: int(((f["Fare"] < f["Fare"].median()) & (f["Pclass"] == 3)).sum()),
        ),
        (
            "survival rate of passengers with an above average fare in {titanic}",
            lambda f: 100 * f[f["Fare"] > f["Fare"].mean()]["Survived"].mean(),
        ),
        (
            "What percentage of women were older than average in {titanic}?",
            lambda f: 100 * (f[f["Sex"] == "female"]["Age"] > f["Age"].mean()).mean(),
        ),
    ],
)
def test_rows_are_compared_with_the_average_of_all(question: str, right: Any, rows: int) -> None:
    frame = TITANIC.head(rows)
    said = ask_about(question, frames={"titanic": frame}).text
    assert gives(said, right(frame)), said
    assert "of all rows" in said


def test_the_countries_above_average_in_a_year_are_so_among_those_of_that_year() -> None:
    said = ask("Which countries are above average in life expectancy in 2007? {gapminder}")
    assert "over the average of that time" in said
    assert {name for name in IN_2007["country"] if name in said} == {*ABOVE["country"]}


@pytest.mark.parametrize(
    "question",
    [
        "Which species has above average petal length in {iris}?",
        "Are setosa flowers longer than average in petal length in {iris}?",
        "Is the tip of Sundays above the average tip of men in {tips}?",
        "Which countries are above average in life expectancy? {gapminder}",
    ],
)
def test_groups_are_not_compared_with_an_average_of_rows(question: str) -> None:
    assert ask(question).startswith("I cannot answer")


@pytest.mark.parametrize(
    ("question", "share"),
    [
        (
            "What percentage of bills are over 30 on Sundays in {tips}?",
            (TIPS[TIPS["day"] == "Sun"]["total_bill"] > 30).mean(),
        ),
        (
            "What percentage of women were older than 40 in {titanic}?",
            (WOMEN["Age"] > 40).mean(),
        ),
        (
            "What percentage of passengers older than 40 were women in {titanic}?",
            (TITANIC[TITANIC["Age"] > 40]["Sex"] == "female").mean(),
        ),
        (
            "What percentage of passengers are women in first class in {titanic}?",
            (TITANIC[TITANIC["Pclass"] == 1]["Sex"] == "female").mean(),
        ),
    ],
)
def test_a_percentage_is_of_those_that_are_named_and_tells_what_they_are(
    question: str, share: float
) -> None:
    check(question, 100 * share)


def test_whether_an_average_is_over_a_number_is_told_by_the_average() -> None:
    check("Is the average age above 30 in {titanic}?", TITANIC["Age"].mean())


BY_CONTINENT = IN_2007.groupby("continent")["lifeExp"].mean()


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("What are the lowest and highest fares in {titanic}?", [FARES[-1], FARES[0]]),
        ("min and max tip in {tips}", [TIPS["tip"].min(), TIPS["tip"].max()]),
        (
            "What is the average bill when the tip is more than 5 in {tips}?",
            [TIPS[TIPS["tip"] > 5]["total_bill"].mean()],
        ),
        (
            "What was Japan's population in 1977 in {gapminder}?",
            [int(GAPMINDER[GAPMINDER["year"] == 1977].set_index("country")["pop"]["Japan"])],
        ),
        (
            "What is the gap in life expectancy between Europe and Africa in 2007 in {gapminder}?",
            [BY_CONTINENT["Europe"], BY_CONTINENT["Europe"] - BY_CONTINENT["Africa"]],
        ),
        (
            "What share of the bills are from dinner in {tips}?",
            [100 * (TIPS["time"] == "Dinner").mean()],
        ),
        (
            "What share of the total bill is from dinner in {tips}?",
            [100 * TIPS[TIPS["time"] == "Dinner"]["total_bill"].sum() / TIPS["total_bill"].sum()],
        ),
    ],
)
def test_what_is_said_in_other_words_is_right(question: str, facts: list[Any]) -> None:
    check(question, *facts)


@pytest.mark.parametrize(
    "question", ["first 5 rows of {iris}", "show the first five rows of {iris}"]
)
def test_the_first_rows_are_shown(question: str) -> None:
    said = ask(question)
    assert "The first 5 of them" in said
    assert len(said.splitlines()) == 2 + 2 + 5


@pytest.mark.parametrize("question", ["last 3 rows of {iris}", "show the last 5 rows of {iris}"])
def test_the_last_rows_are_refused_and_not_the_first_ones_shown(question: str) -> None:
    assert "I show rows from the first one on" in ask(question)


SURVIVORS = TITANIC[TITANIC["Survived"] == 1]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        (
            "How many passengers under 18 survived in {titanic}?",
            int((SURVIVORS["Age"] < 18).sum()),
        ),
        (
            "What percentage of passengers over 40 survived in {titanic}?",
            100 * TITANIC[TITANIC["Age"] > 40]["Survived"].mean(),
        ),
        (
            "What percentage of survivors were women in {titanic}?",
            100 * (SURVIVORS["Sex"] == "female").mean(),
        ),
        (
            "What percentage of women survived in {titanic}?",
            100 * WOMEN["Survived"].mean(),
        ),
        (
            "How many flowers have petals longer than 5 in {iris}?",
            int((IRIS["petal_length"] > 5).sum()),
        ),
        ("How many years of data are there in {gapminder}?", GAPMINDER["year"].nunique()),
    ],
)
def test_a_condition_is_one_of_the_column_that_can_be_meant(question: str, fact: Any) -> None:
    check(question, fact)


def test_the_survivors_that_are_shown_have_survived() -> None:
    said = ask("Which survivors are older than 55 in {titanic}?")
    old = SURVIVORS[SURVIVORS["Age"] > 55]
    assert 0 < len(old) < 10
    assert [name for name in TITANIC["Name"] if f"{name} |" in said] == [*old["Name"]]


def test_no_other_number_is_told_for_years() -> None:
    said = ask("How many years old is the oldest passenger in {titanic}?")
    assert said.startswith("I cannot answer")


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("total tips per day in {tips}", TIPS.groupby("day")["tip"].sum()),
        ("total tips per day", TIPS.groupby("day")["tip"].sum()),
        ("average tips by sex in {tips}", TIPS.groupby("sex")["tip"].mean()),
        ("top 3 tips in {tips}", TIPS["tip"].nlargest(3)),
        ("How many tips are in {tips}?", [len(TIPS)]),
        ("Which day has the most tips in {tips}?", TIPS["day"].value_counts()),
    ],
)
def test_the_name_of_a_frame_is_also_that_of_its_column_where_something_is_computed(
    question: str, facts: Any
) -> None:
    said = ask_about(question, frames={"tips": TIPS}).text
    assert all(gives(said, fact) for fact in facts), said


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (
            "Which 3 countries have the highest population in 2007? {gapminder}",
            IN_2007.nlargest(3, "pop")["country"],
        ),
        (
            "Which two countries had the lowest life expectancy in 2007 in {gapminder}?",
            IN_2007.nsmallest(2, "lifeExp")["country"],
        ),
    ],
)
def test_which_of_so_many_asks_for_that_many_places(question: str, names: Any) -> None:
    said = ask(question)
    assert {name for name in GAPMINDER["country"].unique() if name in said} == set(names)
