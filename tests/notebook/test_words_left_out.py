"""A word that changes what is asked is computed, or it is said that it is not understood."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from tests.notebook.test_first_questions import ask

HOURS = pd.date_range("2024-03-01", periods=24 * 14, freq="h")
SENSORS = pd.DataFrame(
    {
        "time": HOURS,
        "room": ["lab" if n % 2 else "office" for n in range(len(HOURS))],
        "co2_ppm": [400.0 + n % 24 * 10 + n // 24 for n in range(len(HOURS))],
    }
)
LAKES = pd.DataFrame(
    {
        "lake": ["Inari", "Inari", "Kemi", "Kemi", "Lokka", "Lokka"],
        "year": [2020, 2021] * 3,
        "region": ["north"] * 4 + ["south"] * 2,
        "state": ["clear", "green"] * 3,
        "fish": [200.0, 210.0, 100.0, 180.0, 20.0, None],
        "ph": [7.0, 7.1, None, 6.5, 6.0, 6.4],
    }
)
FRAMES = {"sensors": SENSORS, "lakes": LAKES}


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("How many rows of {lakes} have both fish and ph missing?", "both"),
        ("What was the mean co2_ppm of the lab on weekdays in {sensors}?", "weekdays"),
        ("What was the daily maximum co2_ppm of the lab in {sensors}?", "daily"),
        ("What is the hourly minimum co2_ppm of the lab in {sensors}?", "hourly"),
        ("Which lake in {lakes} has the most variable ph?", "variable"),
        ("What is the average fish in the north and south together in {lakes}?", "together"),
        ("In which year did the ph in {lakes} fall below 6.5?", "fall"),
    ],
)
def test_what_is_not_computed_is_refused_by_its_word(question: str, word: str) -> None:
    said = ask(question, frames=FRAMES).text
    assert "I cannot tell what" in said
    assert f"“{word}”" in said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Except for Inari, which lake in {lakes} has the highest mean fish?",
            "Kemi has the highe",
        ),
        ("Excluding Inari, which lake in {lakes} has the highest mean fish?", "Kemi has the highe"),
        ("What was the maximum co2_ppm per day in {sensors}?", "2024-03-14"),
    ],
)
def test_what_is_computed_has_it_in(question: str, said: str) -> None:
    answer = ask(question, frames=FRAMES).text
    assert said in answer
    assert "I cannot" not in answer


@pytest.mark.parametrize(
    "questions",
    [
        ["When was the co2_ppm of {sensors} highest, and what was its room then?"],
        ["Which room of {sensors} has the highest co2_ppm and what was the time then?"],
        ["Which lake in {lakes} has the highest mean fish, and what is its average ph?"],
        ["Which lake in {lakes} has the most fish, and what is their mean ph?"],
        ["Which year in {lakes} has the most fish, and how much ph was in it?"],
        ["Which lake in {lakes} has the highest mean fish?", "And its average ph?"],
        ["Which lake in {lakes} has the highest mean fish?", "average ph there"],
    ],
)
def test_of_what_was_found_nothing_of_all_rows_is_told(questions: list[str]) -> None:
    said = ask(*questions, frames=FRAMES).text
    assert "I do not go on from what I found: name it in the question" in said
    assert "average `ph`" not in said
    assert "| column |" not in said


@pytest.mark.parametrize(
    ("follow_up", "said"),
    [
        ("Plot them as bars.", "The bar chart shows: average fish by lake."),
        ("How many lakes are there?", "`lake` has 3 different values"),
        ("And the lowest?", "Lokka has the lowest average `fish`"),
    ],
)
def test_what_was_asked_before_is_gone_on_with(follow_up: str, said: str) -> None:
    asked = "Which lake in {lakes} has the highest mean fish?"
    assert said in ask(asked, follow_up, frames=FRAMES).text


def test_of_several_frames_the_one_whose_column_is_named_says_what_is_not_understood() -> None:
    said = ask("Which lake has the most wobbly ph?", frames=FRAMES).text
    assert "in `lakes`" in said
    assert "which is meant" not in said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the mean {lakes.fish}?", "The average `fish` is 142 (1 row"),
        ("What is the highest value of {sensors.co2_ppm}?", "643"),
    ],
)
def test_a_column_that_is_handed_over_by_its_name_is_asked_of_its_frame(
    question: str, said: str
) -> None:
    assert said in ask(question, frames=FRAMES).text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("average recovery_% by analyst in {icp}", "b (99) and a (95)"),
        ("What is the mean {icp.recovery_%}?", "The average `recovery_%` is 97."),
        ("What percentage of {icp} is spiked?", "25.0 % of 4 rows"),
    ],
)
def test_a_sign_in_the_name_of_a_column_is_no_word(question: str, said: str) -> None:
    icp = pd.DataFrame(
        {"analyst": list("abab"), "recovery_%": [94, 98, 96, 100], "spiked": [True] + [False] * 3}
    )
    assert said in ask(question, frames={"icp": icp}).text


def test_what_is_left_out_before_a_question_is_no_question_of_its_own() -> None:
    said = ask("Apart from Inari, which lake in {lakes} has the highest mean ph?", frames=FRAMES)
    assert "Inari has" not in said.text


def test_a_word_of_letters_and_digits_is_the_one_column_that_it_begins() -> None:
    assert (
        "The average `co2_ppm` is" in ask("What is the mean co2 in {sensors}?", frames=FRAMES).text
    )
    two = {"sensors": SENSORS.assign(co2_raw=1.0)}
    said = ask("What is the mean co2 in {sensors}?", frames=two).text
    assert "I cannot tell what “co2” means" in said


def test_what_it_can_do_is_said_once_in_a_conversation() -> None:
    question = "Which room in {sensors} smells worst?"
    assert ask(question, frames=FRAMES).text.count("Offline, I count, average") == 1
    again = ask(question, question, frames=FRAMES).text
    assert "I cannot answer" in again
    assert "Offline" not in again


def test_a_box_plot_has_one_title() -> None:
    (code,) = ask("box plot of co2_ppm by room in {sensors}", frames=FRAMES).approved
    exec(code, {"sensors": SENSORS})
    assert [axes.get_title() for axes in plt.gcf().axes] == ["Co2_ppm by room"]
    assert plt.gcf().get_suptitle() == ""
