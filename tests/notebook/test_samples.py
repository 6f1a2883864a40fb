"""Of a frame of samples, each with its date, what strangers ask is right or refused."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.notebook.test_first_questions import Answer
from tests.notebook.test_first_questions import ask as ask_about

mpl.use("Agg")
from matplotlib import pyplot as plt


def _lakes() -> pd.DataFrame:
    chance = np.random.default_rng(7)
    oxygen = np.round(chance.normal(8, 2, 200), 2)
    oxygen[::17] = np.nan
    days = pd.to_timedelta(chance.integers(0, 700, 200), "D")
    return pd.DataFrame(
        {
            "lake": chance.choice(["Bled", "Como", "Inari", "Ohrid"], 200),
            "sampled": pd.Timestamp("2023-01-03") + days,
            "depth_m": np.round(chance.uniform(0, 30, 200), 1),
            "temp_c": np.round(chance.normal(12, 5, 200), 1),
            "o2_mg_l": oxygen,
            "chl_ug_l": np.round(chance.gamma(2, 2, 200), 2),
            "method": chance.choice(["bottle", "probe"], 200),
        }
    )


LAKES = _lakes()


@pytest.fixture(autouse=True)
def _notebook(shell: InteractiveShell) -> None:
    """The notebook that is asked about."""


def ask(*questions: str, frame: pd.DataFrame = LAKES) -> Answer:
    """What is said of the samples."""
    return ask_about(*questions, frames={"lakes": frame})


def drawn(answer: Answer) -> list[Any]:
    """The axes that the code of an answer draws, as a kernel closes figures that it showed."""
    plt.close("all")
    exec(answer.approved[-1], {"lakes": LAKES})
    return list(plt.figure(plt.get_fignums()[-1]).axes)


# Plots


@pytest.mark.parametrize(
    "question",
    [
        "Show me the distribution of depth_m per lake in {lakes}",
        "histogram of depth_m by lake in {lakes}",
    ],
)
def test_a_distribution_per_group_is_a_histogram_for_each(question: str) -> None:
    answer = ask(question)
    assert answer.text == "The histograms show: depth_m of lakes by lake."
    counts = {a.get_title(): sum(bar.get_height() for bar in a.patches) for a in drawn(answer)}
    assert counts == LAKES["lake"].value_counts().to_dict()


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("histogram of temp_c per month in {lakes}", "one for each value of one column"),
        ("histogram of temp_c by lake and method in {lakes}", "one for each value of one column"),
        ("histogram of temp_c by sampled in {lakes}", "more values than 12 histograms"),
        ("pie chart of temp_c by lake and method in {lakes}", "one column in a pie"),
    ],
)
def test_a_plot_of_groups_that_it_cannot_show_is_refused(question: str, reason: str) -> None:
    answer = ask(question)
    assert reason in answer.text
    assert answer.approved == []


@pytest.mark.parametrize(
    ("question", "boxes"),
    [
        (
            "box plot of temp_c by lake and method in {lakes}",
            len(LAKES.groupby(["lake", "method"])),
        ),
        (
            "box plot of temp_c per quarter in {lakes}",
            LAKES["sampled"].dt.to_period("Q").nunique(),
        ),
    ],
)
def test_a_box_plot_has_a_box_for_each_of_its_groups(question: str, boxes: int) -> None:
    (axes,) = drawn(ask(question))
    assert len(axes.get_xticklabels()) == boxes


def test_a_line_shows_points_that_have_a_gap_on_both_sides() -> None:
    (axes,) = drawn(ask("Plot the monthly mean of temp_c per lake in {lakes}"))
    assert [line.get_marker() for line in axes.lines] == ["."] * LAKES["lake"].nunique()


# What a noun for the rows says


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "What share of the samples were taken with a bottle? {lakes}",
            f"({(LAKES['method'] == 'bottle').sum()} of 200)",
        ),
        (
            "How many samples have chl_ug_l above 5 and temp_c below 8 in {lakes}?",
            f"{((LAKES['chl_ug_l'] > 5) & (LAKES['temp_c'] < 8)).sum()} of 200 rows",
        ),
        (
            "Which lake has the most samples? {lakes}",
            f"{LAKES['lake'].value_counts().idxmax()} has the highest number of rows",
        ),
    ],
)
def test_samples_are_rows_and_not_the_column_of_when_they_were_sampled(
    question: str, said: str
) -> None:
    assert said in ask(question).text


def test_when_something_was_sampled_is_asked_of_that_column() -> None:
    first = LAKES.loc[LAKES["lake"] == "Bled", "sampled"].min()
    assert f"is of {first:%Y-%m-%d}" in ask("When was Bled sampled first? {lakes}").text


@pytest.mark.parametrize("noun", ["samples", "readings"])
def test_a_number_of_rows_is_plotted_under_the_noun_that_people_use(noun: str) -> None:
    answer = ask(f"Plot the number of {noun} per month in {{lakes}}")
    (axes,) = drawn(answer)
    counts = LAKES.groupby(LAKES["sampled"].dt.to_period("M")).size()
    assert [*axes.lines[0].get_ydata()] == [*counts]
    assert ("I took “readings” for the rows" in answer.text) == (noun == "readings")


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("What was the warmest sample of 2024, and where was it taken? {lakes}", 2024),
        ("warmest sample of 2023 in {lakes}", 2023),
        ("What was the warmest sample in {lakes}?", 0),
    ],
)
def test_the_row_of_an_extreme_is_told_with_its_date(question: str, rows: int) -> None:
    those = LAKES[LAKES["sampled"].dt.year == rows] if rows else LAKES
    warmest = those.loc[those["temp_c"].idxmax()]
    said = ask(question).text
    for fact in (f"{warmest['sampled']:%Y-%m-%d}", warmest["lake"], f"{warmest['temp_c']}"):
        assert fact in said


# Missing values


@pytest.mark.parametrize("size", [200, 40])
@pytest.mark.parametrize(
    "question",
    [
        "How many rows have no o2_mg_l in each lake? {lakes}",
        "How many o2_mg_l are missing per lake in {lakes}?",
        "missing o2_mg_l by lake in {lakes}",
    ],
)
def test_missing_values_are_counted_in_each_group(question: str, size: int) -> None:
    frame = LAKES.head(size)
    said = ask(question, frame=frame).text
    for lake, gaps in frame["o2_mg_l"].isna().groupby(frame["lake"]).sum().items():
        assert f"{lake} ({gaps})" in said


def test_a_share_of_missing_values_is_one_of_the_rows_of_each_group() -> None:
    said = ask("What share of rows have no o2_mg_l per lake in {lakes}?").text
    for lake, share in LAKES["o2_mg_l"].isna().groupby(LAKES["lake"]).mean().items():
        assert f"{lake} ({100 * share:.1f} %)" in said


@pytest.mark.parametrize(
    "question",
    ["missing values per lake in {lakes}", "Which lake has the most missing o2_mg_l? {lakes}"],
)
def test_of_missing_values_in_groups_what_it_does_not_tell_is_refused(question: str) -> None:
    assert ask(question).text.startswith("I cannot answer")


# What is asked beside


@pytest.mark.parametrize(
    "question",
    [
        "Which columns of {lakes} have missing values, and how many?",
        "Which columns in {lakes} have missing values, and how many are there?",
    ],
)
def test_how_many_asks_for_no_more_where_the_answer_tells_it(question: str) -> None:
    said = ask(question).text
    assert said == "12 values are missing: `o2_mg_l` in 12 rows."


@pytest.mark.parametrize(
    "question",
    [
        "Which methods are there in {lakes}, and how many samples of each?",
        "Which methods are there in {lakes}, and how many?",
    ],
)
def test_which_there_are_and_how_many_is_a_count_of_each(question: str) -> None:
    said = ask(question).text
    for method, count in LAKES["method"].value_counts().items():
        assert f"{method} ({count})" in said
    assert "200" not in said


@pytest.mark.parametrize(
    "question",
    [
        "Which lake is the warmest in {lakes}, and how many samples does it have?",
        "Which lake has the warmest sample in {lakes}, and how many samples?",
    ],
)
def test_what_is_warmest_and_how_many_samples_it_has_are_not_mixed_up(question: str) -> None:
    assert "and not both at once" in ask(question).text


# From when to when

AS_TEXT = LAKES.assign(sampled=LAKES["sampled"].dt.strftime("%Y-%m-%d"))


@pytest.mark.parametrize("frame", [LAKES, AS_TEXT, LAKES.head(40)])
@pytest.mark.parametrize(
    "question",
    [
        "How many samples of {lakes} are there per lake, and between which dates?",
        "How many samples are there per lake in {lakes}, and from when to when?",
    ],
)
def test_of_each_group_the_count_and_the_first_and_last_date_are_told(
    question: str, frame: pd.DataFrame
) -> None:
    said = ask(question, frame=frame).text
    for lake, dates in frame.groupby("lake")["sampled"]:
        first, last = (str(day)[:10] for day in (dates.min(), dates.max()))
        assert f"| {lake} | {len(dates)} | {first} | {last} |" in said


@pytest.mark.parametrize("frame", [LAKES, AS_TEXT, LAKES.head(40)])
def test_of_all_that_are_meant_it_is_told_in_a_sentence(frame: pd.DataFrame) -> None:
    warm = frame[frame["temp_c"] > 12]["sampled"]
    question = "How many samples in {lakes} have temp_c above 12, and between which dates?"
    first, last = (str(day)[:10] for day in (warm.min(), warm.max()))
    assert ask(question, frame=frame).text == (
        f"`sampled` with `temp_c` over 12 goes from {first} to {last}, in {len(warm)} rows."
    )


def test_between_which_dates_asks_for_the_first_and_the_last() -> None:
    said = ask("Between which dates were the samples taken in {lakes}?").text
    days = LAKES["sampled"]
    assert said == f"`sampled` goes from {days.min():%Y-%m-%d} to {days.max():%Y-%m-%d}."


@pytest.mark.parametrize(
    "question",
    [
        "How many samples per month and between which dates in {lakes}?",
        "average temp_c per lake and between which dates in {lakes}",
    ],
)
def test_what_is_asked_beside_the_dates_is_refused(question: str) -> None:
    assert "and nothing beside" in ask(question).text


def test_what_names_a_column_that_was_asked_of_is_asked_of_its_frame() -> None:
    answer = ask("average o2_mg_l by lake in {lakes}", "Are there outliers in o2_mg_l?")
    assert "as I cannot tell what “outliers” means in `lakes`" in answer.text
