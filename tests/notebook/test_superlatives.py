"""A superlative belongs to a column of its own: other columns are told of the first rows."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask


def _samples() -> pd.DataFrame:
    chance = random.Random(5)
    rows = [
        (lake, f"{day:%Y-%m-%d}", depth, chance.choice(["Ann", "Bo"]))
        for lake in ["Inari", "Pielinen", "Saimaa", "Orivesi"]
        for day in pd.date_range("2024-01-15", periods=12, freq="MS")
        for depth in [1, 5, 10, 15, 20]
    ]
    frame = pd.DataFrame(rows, columns=["lake", "date", "depth_m", "observer"])
    frame["temp_C"] = [number / 100 for number in chance.sample(range(400, 2200), len(rows))]
    for name, least, most in [("oxygen", 3, 14), ("chl_a", 1, 30)]:
        frame[name] = [chance.uniform(least, most) for _ in rows]
    return frame.round({"oxygen": 2, "chl_a": 2})


def _patients() -> pd.DataFrame:
    chance = random.Random(6)
    ages = chance.sample(range(200, 900), 120)
    return pd.DataFrame(
        {
            "patient": range(1, 121),
            "arm": chance.choices(["drug", "placebo"], k=120),
            "age": [age / 10 for age in ages],
            "weight_kg": [weight / 10 for weight in chance.sample(range(450, 1200), 120)],
            "sex": chance.choices(["f", "m"], k=120),
            "sbp_before": chance.choices(range(110, 190), k=120),
        }
    )


LAKES, TRIAL = _samples(), _patients()
FRAMES = {"lakes": LAKES, "trial": TRIAL}
OLDEST, HEAVIEST = TRIAL.nlargest(10, "age"), TRIAL.nlargest(5, "weight_kg")
WARMEST, COLDEST = LAKES.loc[LAKES.temp_C.idxmax()], LAKES.loc[LAKES.temp_C.idxmin()]
WOMEN = TRIAL[TRIAL.sex == "f"]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How old is the heaviest patient in {trial}?", {"age": HEAVIEST.iloc[0].age}),
        (
            "How old is the lightest patient in {trial}?",
            {"age": TRIAL.loc[TRIAL.weight_kg.idxmin()].age},
        ),
        (
            "How old is the heaviest female patient in {trial}?",
            {"age": WOMEN.loc[WOMEN.weight_kg.idxmax()].age},
        ),
        (
            "What is the weight_kg of the oldest patient in {trial}?",
            {"weight_kg": OLDEST.iloc[0].weight_kg},
        ),
        (
            "How much does the youngest patient in {trial} weigh?",
            {"weight_kg": TRIAL.loc[TRIAL.age.idxmin()].weight_kg},
        ),
        ("What is the sex of the oldest patient in {trial}?", {"sex": OLDEST.iloc[0].sex}),
        (
            "What is the age of the patient with the highest weight_kg in {trial}?",
            {"age": HEAVIEST.iloc[0].age},
        ),
        ("How much oxygen had the warmest sample in {lakes}?", {"oxygen": WARMEST.oxygen}),
        ("How deep was the coldest sample in {lakes}?", {"depth_m": COLDEST.depth_m}),
        ("Which lake has the warmest single sample in {lakes}?", {"lake": WARMEST.lake}),
    ],
)
def test_of_the_first_row_another_column_is_told(question: str, right: dict[str, object]) -> None:
    text = ask(question, frames=FRAMES).text.split("\n")[0]
    assert text.startswith("The row with the ")
    for name, value in right.items():
        told = value if isinstance(value, str) else f"{value:.3g}"
        assert f"has `{name}` {told}." in text


@pytest.mark.parametrize(
    ("question", "right"),
    [
        (
            "What is the average weight_kg of the 10 oldest patients in {trial}?",
            OLDEST.weight_kg.mean(),
        ),
        ("Mean sbp_before of the 5 heaviest patients in {trial}", HEAVIEST.sbp_before.mean()),
        ("What are the 10 oldest patients' average weight_kg in {trial}?", OLDEST.weight_kg.mean()),
        ("What is the median age of the 5 heaviest patients in {trial}?", HEAVIEST.age.median()),
        ("What is the average age of the 10 oldest patients in {trial}?", OLDEST.age.mean()),
        (
            "Mean age of the 3 heaviest patients with sbp_before over 150 in {trial}?",
            TRIAL[TRIAL.sbp_before > 150].nlargest(3, "weight_kg").age.mean(),
        ),
    ],
)
def test_a_statistic_of_the_first_rows(question: str, right: float) -> None:
    text = ask(question, frames=FRAMES).text
    assert text.startswith("The ")
    assert f" is {right:.3g}." in text


def test_that_more_rows_are_as_good_as_the_last_is_said() -> None:
    frame = pd.DataFrame({"name": list("abcdef"), "age": [9, 8, 7, 7, 2, 1], "score": range(6)})
    text = ask("What is the average score of the 3 oldest rows in {people}?",
               frames={"people": frame}).text  # fmt: skip
    assert text == (
        "The average `score` of the 3 rows with the highest `age` is 1. "
        "Which rows are the last of them is chance: 1 more row has the same `age`."
    )


def test_the_rows_with_the_highest_are_rows_and_show_what_is_asked_for() -> None:
    question = "List the 5 samples with the highest chl_a in {lakes}, with lake and date"
    text = ask(question, frames=FRAMES).text
    shown = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| 2")]
    top = LAKES.nlargest(5, "chl_a")
    assert [[cell.strip() for cell in row[:2]] for row in shown] == top[
        ["date", "lake"]
    ].to_numpy().tolist()


def test_when_and_at_which_depth_are_both_told() -> None:
    question = "When was the coldest sample in {lakes} taken, and at which depth?"
    text = ask(question, frames=FRAMES).text
    assert f"`date` {COLDEST.date} and `depth_m` {COLDEST.depth_m}." in text


@pytest.mark.parametrize(
    "question",
    [
        "How old is the tallest patient in {trial}?",
        "How old is the heaviest patient in each arm of {trial}?",
        "How much oxygen has the warmest lake in {lakes}?",
        "What is the average weight_kg of the oldest patients in {trial}?",
        "What is the average weight_kg of the 60 oldest patients in {trial}?",
        "Which patient is the tallest in {trial}?",
        "How many of the 10 oldest patients in {trial} are female?",
        "What is the age of the biggest patient in {trial}?",
        "Sort the 5 oldest patients in {trial} by weight_kg",
    ],
)
def test_what_cannot_be_told_of_a_superlative_is_refused(question: str) -> None:
    assert ask(question, frames=FRAMES).text.startswith("I cannot answer")


def test_a_number_of_each_row_is_its_name() -> None:
    text = ask("Which patient is the oldest in {trial}?", frames=FRAMES).text
    assert text.startswith(f"`patient` {OLDEST.iloc[0].patient} has the highest `age`")


def test_of_groups_with_the_oldest_patients_the_average_is_told() -> None:
    text = ask("Which arm has the oldest patients in {trial}?", frames=FRAMES).text
    assert text.startswith(f"The oldest `arm` is {TRIAL.groupby('arm').age.mean().idxmax()}, by")


@pytest.mark.parametrize(
    "question",
    [
        "Which are the warmest 7 samples in {lakes}?",
        "top 7 warmest samples in {lakes}",
        "the warmest seven samples of {lakes}",
    ],
)
def test_the_number_may_stand_behind_the_superlative_or_top_before_it(question: str) -> None:
    text = ask(question, frames=FRAMES).text
    shown = [line.strip("|").split("|") for line in text.splitlines() if "| 20" in line]
    dates = [next(cell.strip() for cell in row if cell.strip().startswith("20")) for row in shown]
    assert dates == LAKES.nlargest(7, "temp_C").date.to_list()


def test_people_over_a_number_without_a_unit_are_of_that_age() -> None:
    for question in (
        "Median weight_kg of women over 50 in {trial}",
        "What is the median weight_kg of females over 50 years in {trial}?",
    ):
        right = WOMEN[WOMEN.age > 50].weight_kg.median()
        assert f"`age` over 50 is {right:.3g}" in ask(question, frames=FRAMES).text
    heavy = ask("How many women over 60 kg are in {trial}?", frames=FRAMES).text
    assert heavy.startswith(f"{len(WOMEN[WOMEN.weight_kg > 60])} of 120 rows")
