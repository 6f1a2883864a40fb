"""How the demo model counts the things that rows are of, of which several rows may be."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask

LAKES = pd.DataFrame(
    [
        (lake, region, year, depth + year - 2020)
        for lake, region, depth in [
            ("Inari", "Lapland", 92),
            ("Kemi", "Lapland", 24),
            ("Lokka", "Lapland", 12),
            ("Saimaa", "Savo", 85),
        ]
        for year in (2019, 2020, 2021)
    ],
    columns=["lake", "region", "year", "depth_m"],
)
PATIENTS = pd.DataFrame(
    {
        "patient_id": [7, 7, 9, 9, 9, 12],
        "ward": ["A", "A", "A", "A", "A", "B"],
        "pulse": [60, 62, 71, 75, 80, 90],
    }
)


def of_lakes(question: str, frame: pd.DataFrame = LAKES, name: str = "lakes") -> str:
    return ask(question, frames={name: frame}).text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many lakes are in Lapland?", "has 3 different values"),
        ("How many lakes are there?", "`lake` has 4 different values, in 12 rows"),
        ("Count the lakes", "4 different values"),
        ("How many lakes are there per region?", "Lapland (3) and Savo (1)"),
        ("Which region has the most lakes?", "Lapland has the highest number of different `lake`"),
        ("Which region has the fewest lakes?", "Savo has the lowest number of different `lake`"),
        ("Does Lapland have more lakes than Savo?", "Yes: the number of different `lake` is 3"),
        ("How many lakes were measured in 2020?", "4 different values"),
        (
            "How many lakes are deeper than 50 m?",
            "2 different values. Each has at least one such ro",
        ),
        ("List the lakes", "Inari, Kemi, Lokka and Saimaa"),
        ("List the lakes in Lapland", "Inari, Kemi and Lokka"),
        ("Which lakes are in Lapland?", "Inari, Kemi and Lokka"),
        ("How did the number of lakes change?", "from 4 in 2019 to 4 in 2021"),
    ],
)
def test_things_with_several_rows_are_counted_once(question: str, said: str) -> None:
    assert said in of_lakes(question)


def test_a_frame_of_another_name_counts_the_same_things() -> None:
    said = of_lakes("Which region has the most lakes?", name="depths")
    assert "Lapland has the highest number of different `lake`: 3" in said


def test_things_that_a_number_tells_apart_are_counted_once() -> None:
    said = of_lakes("How many patients are in ward A?", PATIENTS, "visits")
    assert "`patient_id` with `ward` A has 2 different values" in said


def test_things_that_have_a_row_each_are_rows() -> None:
    first = LAKES[LAKES["year"] == 2020].reset_index(drop=True)
    assert "3 of 4 rows with `region` Lapland" in of_lakes("How many lakes are in Lapland?", first)


def test_names_that_most_rows_have_for_themselves_are_not_the_things() -> None:
    people = pd.DataFrame({"name": ["Ann", "Ann", "Ben", "Cat"], "city": ["X", "X", "X", "Y"]})
    said = of_lakes("How many people are in X?", people, "people")
    assert "3 of 4 rows" in said
    assert "`people` has 4 rows, and 3 different `name`" in said


def test_an_average_or_a_share_of_rows_says_that_they_are_rows() -> None:
    rows = "That is of rows: `lakes` has 12 rows, and 4 different `lake`."
    assert rows in of_lakes("What share of the lakes are in Lapland?")
    assert rows in of_lakes("What is the average depth of the lakes?")
    assert rows not in of_lakes("What is the average depth per lake?")


def test_a_column_of_yes_and_no_counts_no_things() -> None:
    frame = pd.DataFrame({"smoker": ["yes", "no", "yes", "yes"], "age": [30, 40, 50, 60]})
    assert "3 of 4 rows" in of_lakes("How many smokers are there?", frame, "patients")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the total amount?", "`lakes` has no column “amount”"),
        ("What is the average pay?", "`lakes` has no column “pay”"),
        ("How much is paid?", "`lakes` has no column “paid”"),
        ("How old is Inari?", "has no column of an age"),
        ("What is the weight of Inari?", "I cannot tell what “weight” means"),
        ("Is Inari saltier than Saimaa?", "I cannot tell what “saltier” means"),
        ("Sort by salinity", "“salinity”"),
    ],
)
def test_a_quantity_that_no_column_holds_is_said(question: str, said: str) -> None:
    assert said in of_lakes(question)


def test_how_deep_asks_for_the_depth() -> None:
    said = of_lakes("How deep is Saimaa?")
    assert "| Saimaa | Savo | 2019 | 84 |" in said


FILMS = pd.DataFrame(
    {
        "title": ["Ash", "Bay", "Cod"],
        "year": [1990, 2001, 2012],
        "runtime_min": [174, 90, 120],
        "director": ["Lee", "Kim", "Lee"],
    }
)
CITIES = pd.DataFrame(
    {"city": ["Oslo", "Rome"], "area_km2": [454, 1285], "country": ["Norway", "Italy"]}
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("List the films", "`title` has 3 different values: Ash, Bay and Cod"),
        ("List the films by Lee", "Ash and Cod"),
        ("What is the longest film?", "Ash has the highest `runtime_min`: 174"),
        ("What is the oldest film?", "Ash has the lowest `year`: 1990"),
        ("Films longer than 100 minutes", "`runtime_min` over 100"),
    ],
)
def test_things_of_a_row_each_are_listed_and_ranked(question: str, said: str) -> None:
    assert said in of_lakes(question, FILMS, "films")


def test_rows_of_one_thing_each_are_not_ranked_by_how_many_they_are() -> None:
    assert "Rome has the highest `area_km2`" in of_lakes("Which city is largest?", CITIES, "cities")
    said = of_lakes("Which city has the most people?", CITIES, "cities")
    assert "I cannot tell which column “most” is about" in said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many northern patients are there?", "“northern”"),
        ("How many female patients are there?", "has 2 different values"),
        ("List the patients in ward A", "9 and 7"),
        ("How many patients have no pulse?", "and not how many `patient_id` do"),
    ],
)
def test_patients_of_a_kind_are_counted_once(question: str, said: str) -> None:
    frame = PATIENTS.assign(sex=["female", "female", "male", "male", "male", "female"])
    assert said in of_lakes(question, frame, "visits")


def test_a_frame_named_like_its_column_is_grouped_by_it() -> None:
    said = of_lakes("What is the average depth per lake?", name="lake")
    assert "Average `depth_m` by `lake`: Inari (92)" in said


# Rankings


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Rank the lakes by depth", "Average `depth_m` by `lake`: Inari (92), Saimaa (85), Kemi"),
        ("Rank the lakes by maximum depth", "Highest `depth_m` by `lake`: Inari (93), Saimaa"),
        ("Sort the lakes by depth", "Average `depth_m` by `lake`: Lokka (12), Kemi (24), Saimaa"),
        ("Give me a ranking of the lakes by depth", "by `lake`: Inari (92), Saimaa (85), Kemi"),
        ("Top 3 lakes by depth", "The top 3 of `lake` by average `depth_m`: Inari (92), Saimaa"),
        ("the two deepest lakes", "The top 2 of `lake` by average `depth_m`: Inari (92) and Saim"),
        ("Rank the regions by depth", "Average `depth_m` by `region`: Savo (85) and Lapland (42.7"),
        ("Rank the years by depth", "Average `depth_m` by `year`: 2021 (54.3), 2020 (53.3) and 20"),
        ("Sort the rows by depth", "The first 10 rows by `depth_m`, ascending"),
        ("Sort {lakes} by depth", "The first 10 rows by `depth_m`, ascending"),
        ("Sort {lakes} by region and depth_m", "I sort by one column at a time"),
        ("Top 3 lakes by maximum depth", "I cannot tell what “maximum” means"),
    ],
)
def test_a_ranking_is_one_of_the_things_that_are_named(question: str, said: str) -> None:
    assert said in of_lakes(question)


def test_things_with_a_row_each_are_ranked_by_their_rows() -> None:
    said = of_lakes("Rank the lakes by depth", LAKES.drop_duplicates("lake"))
    assert "The first 4 rows by `depth_m`, descending" in said


# Things that are not there


@pytest.mark.parametrize(
    "question",
    [
        "Which lakes are missing for some year?",
        "Which lake is missing in 2020?",
        "Are there lakes missing in some years?",
        "Is any lake missing a year?",
        "Which years are missing for Kemi?",
        "How many lakes are missing in 2020?",
        "Which combinations of lake and year are missing?",
    ],
)
def test_rows_that_are_not_there_are_no_missing_values(question: str) -> None:
    assert "I find values that are missing, and no rows that are not there" in of_lakes(question)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Which lakes were measured in all years?", "years"),
        ("Which lakes appear in only some years?", "only"),
    ],
)
def test_in_how_many_of_the_years_is_not_left_out(question: str, word: str) -> None:
    assert f"I cannot tell what “{word}” asks for" in of_lakes(question)


def test_missing_values_are_told_as_before() -> None:
    gaps = LAKES.assign(depth_m=LAKES["depth_m"].where(LAKES["year"] != 2020))
    assert "4 rows with `year` 2020 have no value" in of_lakes(
        "How many depths are missing in 2020?", gaps
    )
    assert "No value is missing" in of_lakes("Which columns are missing values?")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many rentals cost less than 5 euros?", "I cannot tell what “5” and “euros” mean"),
        ("Which rentals cost more than 8.5?", "I cannot tell what “8.5” means"),
        ("How many rentals have a rental_id over 2?", "2 different values"),
        ("How many rentals have an id over 2?", "2 different values"),
    ],
)
def test_a_limit_is_none_of_the_numbers_that_tell_things_apart(question: str, said: str) -> None:
    price = ["€3.20", "€9.10", "€4.00", "€6.50", "€3.20"]
    rentals = pd.DataFrame({"rental_id": [1, 2, 3, 4, 1], "price": price})
    assert said in of_lakes(question, rentals, "rentals")
