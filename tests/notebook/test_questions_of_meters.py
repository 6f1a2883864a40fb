"""What people ask of readings that were taken each day at several places."""

from __future__ import annotations

import random
import re

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


@pytest.mark.parametrize("month", ["March", "march", "mar"])
def test_a_month_is_one_however_it_is_written(month: str) -> None:
    march = METER[METER["day"].dt.month == 3]["kwh"].sum()
    assert gives(ask(f"total kwh in {month} in {{meter}}"), march)


def test_may_is_a_month_only_where_it_stands_as_one() -> None:
    may = pd.concat([METER, METER.assign(day=METER["day"] + pd.Timedelta(days=120))])
    told = ask_about("total kwh in may in {meter}", frames={"meter": may}).text
    assert gives(told, may[may["day"].dt.month == 5]["kwh"].sum())
    assert "“may”" in ask("which kwh may be wrong in {meter}?")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("averge kwh", "average"), ("mising kwh", "missing"), ("histgram of kwh", "histogram")],
)
def test_a_word_with_a_letter_missing_is_told_with_the_one_that_is_meant(
    typed: str, meant: str
) -> None:
    assert f"(is “{meant}” meant?)" in ask(f"{typed} in {{meter}}")


def test_rows_that_are_said_to_be_the_first_ones_are() -> None:
    told = ask("kwh of the barn in {meter}")
    assert told.startswith("The first 10 rows with `site` barn; there may be more:")
    days = METER[METER["site"] == "barn"]["day"].head(10)
    assert all(f"| {day:%Y-%m-%d} |" in told for day in days)


@pytest.mark.parametrize(
    ("word", "end"), [("newest", "max"), ("latest", "max"), ("earliest", "min")]
)
def test_the_newest_of_the_rows_is_the_last_in_time(word: str, end: str) -> None:
    days = pd.to_datetime(["1999-01-05", "2020-03-09", "1987-04-01"])
    films = pd.DataFrame({"title": ["Ada", "Bea", "Cor"], "released": days})
    told = ask_about(f"{word} film in {{films}}", frames={"films": films}).text
    assert f"{getattr(days, end)():%Y-%m-%d}" in told


@pytest.mark.parametrize(
    ("said", "ascending"), [("highest first", False), ("lowest first", True), ("descending", False)]
)
def test_groups_are_in_the_order_that_is_said(said: str, ascending: bool) -> None:
    told = ask(f"total kwh by month in {{meter}}, {said}")
    months = METER.groupby(METER["day"].dt.strftime("%Y-%m"))["kwh"].sum()
    rows = re.findall(r"20\d\d-\d\d", told)
    assert rows == list(months.sort_values(ascending=ascending).index)


def test_times_begin_with_the_oldest_and_no_other_order_is_made_up() -> None:
    told = ask("total kwh by month in {meter}, oldest first")
    rows = re.findall(r"20\d\d-\d\d", told)
    assert rows == sorted(rows) != []
    assert "as I tell times from the first one on" in ask(
        "total kwh by month in {meter}, newest first"
    )


def test_years_and_ids_are_written_as_the_names_that_they_are() -> None:
    films = pd.DataFrame({"film_id": [10353, 10354], "year": [1979, 2020], "stars": [8.5, 7.25]})
    told = ask_about("describe {films}", frames={"films": films}).text
    assert "10353 to 10354 |" in told
    assert "1979 to 2020 |" in told
    assert "7.25 to 8.5; mean 7.875" in told
