"""A share is one of the rows that the question means: of all, of a part, or of each group."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask

LAKES = pd.DataFrame(
    [
        (lake, region, year, depth, state)
        for lake, region, depth, state in [
            ("Inari", "Lapland", 92, "clear"),
            ("Kemi", "Lapland", 24, "green"),
            ("Lokka", "Lapland", 12, "green"),
            ("Saimaa", "Savo", 85, "clear"),
        ]
        for year in (2020, 2021)
    ],
    columns=["lake", "region", "year", "depth_m", "state"],
)
PATIENTS = pd.DataFrame(
    {
        "sex": ["female"] * 6 + ["male"] * 4,
        "ward": ["A", "A", "A", "B", "B", "B", "A", "A", "B", "B"],
        "age": [30, 40, 50, 60, 70, 80, 35, 45, 55, 65],
        "recovered": [1, 1, 0, 1, 0, 0, 1, 0, 0, 0],
    }
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What fraction of the rows is green and from Lapland?", "4 of 8 rows"),
        ("What share of {lakes} is from Lapland and clear?", "2 of 8 rows"),
        ("What percentage of all rows is both green and in Lapland?", "4 of 8 rows"),
        ("What fraction of rows is green and deeper than 20 m?", "2 of 8 rows"),
        ("What percentage of rows are clear and in Savo and from 2020?", "1 of 8 rows"),
        ("What fraction of rows in 2020 is green and from Lapland?", "2020, 50.0 % are those with"),
        ("What share of {lakes} is Inari or Kemi?", "4 of 8 rows with `lake` Inari or Kemi"),
        ("What share of {lakes} is Inari or Kemi and green?", "2 of 8 rows"),
        ("What share of {lakes} in 2020 is Inari or Kemi?", "2020, 50.0 % are those with `lake`"),
        ("What percentage of {lakes} is green or in Savo?", "I cannot tell what “or” asks for"),
        ("What percentage of rows in Lapland are green?", "Lapland, 66.7 % are those with `state`"),
        ("Of the rows from Lapland, what fraction is green?", "Lapland, 66.7 % are those with"),
        ("What share of the green rows is from Lapland?", "green, 100.0 % are those with `region`"),
        ("What is the share of rows in Lapland with state green?", "of which rows the share is"),
    ],
)
def test_what_and_joins_is_told_of_the_rows_together(question: str, said: str) -> None:
    assert said in ask(question, frames={"lakes": LAKES}).text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What share of {patients} was female and recovered?", "3 of 10 rows"),
        ("What fraction of {patients} recovered and was female?", "3 of 10 rows"),
        ("What share of those recovered in {patients} was female?", "1, 75.0 % are those with"),
        ("What percentage of women recovered in {patients}?", "50.0 % of the rows with `sex`"),
        ("What share of {patients} is between 40 and 60 and female?", "3 of 10 rows"),
        ("What share of the recovered in ward A of {patients} was female?", "66.7 % are those"),
        (
            "What share of {patients} in each ward is female and recovered?",
            "`sex` female and `recovered` 1: A (40.0 %) and B (20.0 %)",
        ),
    ],
)
def test_a_column_of_yes_and_no_is_told_as_values_are(question: str, said: str) -> None:
    assert said in ask(question, frames={"patients": PATIENTS}).text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("In 2020, which lake was deepest?", "The deepest `lake` with `year` 2020 is Inari"),
        ("For each region, what is the mean depth?", "Average `depth_m` by `region`"),
        ("In Savo, how many rows are there and what is the mean depth?", "Savo is 85"),
        ("In one sentence, which lake is deepest?", "The deepest `lake` is Inari"),
        ("By the way, how many rows are there?", "`lakes` has 8 rows"),
    ],
)
def test_what_a_question_begins_with_is_a_part_of_it(question: str, said: str) -> None:
    text = ask(question, frames={"lakes": LAKES}).text
    assert said in text
    assert "I cannot" not in text
