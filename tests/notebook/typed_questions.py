"""Data sets of a shop, a laboratory, a clinic, a school and others, and what people type of them.

What is right is computed by pandas, as in :mod:`first_questions`. What they ask for is what is
easily taken for something else: counts and shares, ties, times, values that are left out, gaps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.notebook.first_questions import Frames, Question


def _shop() -> pd.DataFrame:
    chance = np.random.default_rng(3)
    count = 260
    prices = {"chair": 49.5, "desk": 199.0, "lamp": 24.9, "sofa": 640.0}
    days = pd.to_timedelta(np.sort(chance.integers(0, 700, count)), unit="D")
    city = chance.choice(["Berlin", "Hamburg", "Munich", "Cologne"], count, p=[0.5, 0.2, 0.2, 0.1])
    product = chance.choice([*prices], count)
    units = chance.integers(1, 6, count)
    frame = pd.DataFrame(
        {
            "order_id": np.arange(1, count + 1),
            "date": pd.to_datetime("2023-11-01") + days,
            "city": city,
            "product": product,
            "customer": chance.choice(["Ann", "Bob", "Cleo", "Dan", "Eve"], count),
            "units": units,
            "revenue": units * np.array([prices[name] for name in product]),
        }
    )
    # Few of many orders, and many of few: the most returned orders are no largest share.
    rates = {"Berlin": 0.15, "Hamburg": 0.05, "Munich": 0.2, "Cologne": 0.4}
    frame["returned"] = chance.random(count) < np.array([rates[name] for name in city])
    return frame


def _sensors() -> pd.DataFrame:
    chance = np.random.default_rng(4)
    count = 400
    frame = pd.DataFrame(
        {
            "time": np.repeat(pd.date_range("2024-03-01", periods=count // 2, freq="3h"), 2),
            "sensor": ["A1", "B2"] * (count // 2),
            "temperature_c": (15 + 5 * np.sin(np.arange(count) / 20)).round(1),
            "humidity": chance.uniform(30, 80, count).round(),
            "status": chance.choice(["ok", "warning", "error"], count, p=[0.8, 0.15, 0.05]),
        }
    )
    frame.loc[chance.random(count) < 0.08, "temperature_c"] = np.nan
    return frame.drop(index=range(120, 160)).reset_index(drop=True)


def _patients() -> pd.DataFrame:
    chance = np.random.default_rng(5)
    count = 120
    days = pd.to_timedelta(chance.integers(0, 365, count), unit="D")
    diagnoses = np.array(["asthma", "diabetes", "hypertension", None], dtype=object)
    return pd.DataFrame(
        {
            "patient_id": [f"P{number:03}" for number in range(count)],
            "age": chance.integers(20, 85, count),
            "sex": chance.choice(["female", "male"], count),
            "group": chance.choice(["control", "treatment"], count),
            "smoker": chance.choice(["yes", "no"], count, p=[0.3, 0.7]),
            "bmi": np.where(chance.random(count) < 0.1, np.nan, chance.normal(26, 4, count)),
            "diagnosis": chance.choice(diagnoses, count, p=[0.3, 0.3, 0.25, 0.15]),
            "visit_date": pd.to_datetime("2024-01-01") + days,
            "recovered": chance.random(count) < 0.6,
        }
    )


def _countries() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "country": ["Norway", "France", "Kenya", "Japan", "Chile", "Ghana"],
            "continent": ["Europe", "Europe", "Africa", "Asia", "America", "Africa"],
            "2019": [5.3, 65.1, 52.6, 126.3, 18.9, 30.4],
            "2021": [5.4, 65.4, 55.0, 125.7, 19.2, 31.7],
            "2023": [5.5, 65.7, 57.4, 124.5, 19.2, 33.1],
        }
    )


def _exam() -> pd.DataFrame:
    chance = np.random.default_rng(10)
    count = 80
    return pd.DataFrame(
        {
            "student": [f"S{number:02}" for number in range(count)],
            "class": chance.choice(["9a", "9b", "10a"], count),
            "gender": chance.choice(["F", "M"], count),
            "math": chance.integers(30, 100, count),
            "passed": chance.choice(["Yes", "No"], count, p=[0.7, 0.3]),
        }
    )


def _reactor() -> pd.DataFrame:
    chance = np.random.default_rng(11)
    count = 90
    return pd.DataFrame(
        {
            "run": range(count),
            "catalyst": chance.choice(["Pd", "Pt", "Ni"], count),
            "yield_pct": chance.uniform(20, 95, count).round(1),
            "failed": chance.integers(0, 2, count),
        }
    )


def _log() -> pd.DataFrame:
    chance = np.random.default_rng(9)
    count = 150
    minutes = pd.to_timedelta(chance.integers(0, 60 * 24 * 40, count), unit="min")
    return pd.DataFrame(
        {
            "timestamp": (pd.Timestamp("2024-05-01") + minutes).strftime("%Y-%m-%d %H:%M"),
            "station": chance.choice(["North", "South", "East"], count),
            "value": chance.normal(50, 10, count).round(2),
            "level": chance.choice(["low", "medium", "high"], count),
        },
        index=[1] * count,  # as of frames put together
    )


def typed_frames() -> Frames:
    """The data sets, the same every time."""
    return {
        "shop": _shop(),
        "sensors": _sensors(),
        "patients": _patients(),
        "countries": _countries(),
        "exam": _exam(),
        "reactor": _reactor(),
        "log": _log(),
    }


CITIES = ("Berlin", "Hamburg", "Munich", "Cologne")


def _counts(frame: pd.DataFrame, that: Any, by: str) -> Any:
    return that.groupby(frame[by]).sum()


def _returned(f: Frames, by: str) -> Any:
    return _counts(f["shop"], f["shop"]["returned"], by)


def _year(f: Frames) -> Any:
    return f["shop"]["date"].dt.year


def _most(counts: Any) -> list[Any]:
    """All that are first, and how many they have."""
    return [*counts[counts == counts.max()].index, int(counts.max())]


def _fewest(counts: Any) -> list[Any]:
    return [*counts[counts == counts.min()].index, int(counts.min())]


def _orders(f: Frames, first: str, last: str) -> int:
    return int(f["shop"]["date"].between(first, last).sum())


TYPED = [
    # Counts and shares
    Question(
        "Which city has the most returned orders in {shop}?",
        lambda f: _most(_returned(f, "city")),
        CITIES,
    ),
    Question(
        "Which city has the most returns in {shop}?", lambda f: _most(_returned(f, "city")), CITIES
    ),
    Question(
        "Which city has the highest return rate in {shop}?",
        lambda f: [
            f["shop"].groupby("city")["returned"].mean().idxmax(),
            100 * f["shop"].groupby("city")["returned"].mean().max(),
        ],
        CITIES,
    ),
    Question(
        "Which city had the fewest returned orders in 2024 in {shop}?",
        lambda f: _fewest(
            _counts(f["shop"], f["shop"]["returned"] & (_year(f) == 2024), "city"),
        ),
        CITIES,
    ),
    Question(
        "Which city has the most returned orders, and which product has the fewest in {shop}?",
        lambda f: [*_most(_returned(f, "city")), *_fewest(_returned(f, "product"))],
    ),
    Question(
        "Which group has the most recovered patients in {patients}?",
        lambda f: _most(_counts(f["patients"], f["patients"]["recovered"], "group")),
    ),
    Question(
        "recovery rate by group in {patients}",
        lambda f: [*(100 * f["patients"].groupby("group")["recovered"].mean())],
    ),
    Question(
        "How many women and how many men recovered in {patients}?",
        lambda f: [*map(int, _counts(f["patients"], f["patients"]["recovered"], "sex"))],
    ),
    Question(
        "Did more women than men recover in {patients}?",
        lambda f: [
            "Yes"
            if np.subtract(*_counts(f["patients"], f["patients"]["recovered"], "sex")) > 0
            else "No",
            *map(int, _counts(f["patients"], f["patients"]["recovered"], "sex")),
        ],
    ),
    Question(
        "What percentage of readings have status error per sensor in {sensors}?",
        lambda f: [
            *(100 * (f["sensors"]["status"] == "error").groupby(f["sensors"]["sensor"]).mean())
        ],
    ),
    Question(
        "What share of women have diabetes in {patients}?",
        lambda f: [
            100
            * (f["patients"]["diagnosis"] == "diabetes")[f["patients"]["sex"] == "female"].mean()
        ],
    ),
    Question(
        "What percentage of patients are older than 65 in {patients}?",
        lambda f: [100 * (f["patients"]["age"] > 65).mean()],
    ),
    Question(
        "How often was the status error in {sensors}?",
        lambda f: [int((f["sensors"]["status"] == "error").sum())],
    ),
    Question(
        "how many lamps and chairs were sold in {shop}?",
        lambda f: [
            int(f["shop"]["units"][f["shop"]["product"] == name].sum())
            for name in ("lamp", "chair")
        ],
    ),
    # Yes and no in words
    Question(
        "How many smokers are there per group in {patients}?",
        lambda f: [
            *map(int, _counts(f["patients"], f["patients"]["smoker"] == "yes", "group")),
        ],
    ),
    Question(
        "how many patients do not smoke in {patients}?",
        lambda f: [int((f["patients"]["smoker"] == "no").sum())],
    ),
    Question(
        "average bmi of smokers and non-smokers in {patients}",
        lambda f: [*f["patients"].groupby("smoker")["bmi"].mean()],
    ),
    Question(
        "Is bmi related to age among smokers in {patients}?",
        lambda f: [
            f["patients"][f["patients"]["smoker"] == "yes"][["bmi", "age"]].corr().iloc[0, 1]
        ],
    ),
    # Times
    Question(
        "How many orders in 2024, and in 2023 in {shop}?",
        lambda f: [int((_year(f) == year).sum()) for year in (2023, 2024)],
    ),
    Question(
        "How many orders were there between November and December 2023 in {shop}?",
        lambda f: [_orders(f, "2023-11-01", "2023-12-31")],
    ),
    Question(
        "How many orders from 2023-11-20 to 2024-01-05 in {shop}?",
        lambda f: [_orders(f, "2023-11-20", "2024-01-05")],
    ),
    Question(
        "How many orders were there between November and February 2024 in {shop}?",
        lambda f: [_orders(f, "2023-11-01", "2024-02-29")],
    ),
    Question(
        "How many orders since December 2023 in {shop}?",
        lambda f: [_orders(f, "2023-12-01", "2099-01-01")],
    ),
    Question(
        "total revenue since 2024 in {shop}",
        lambda f: [f["shop"]["revenue"][_year(f) >= 2024].sum()],
    ),
    Question(
        "average temperature on 2024-03-02 in {sensors}",
        lambda f: [
            f["sensors"]["temperature_c"][
                f["sensors"]["time"].dt.normalize() == pd.Timestamp("2024-03-02")
            ].mean()
        ],
    ),
    Question(
        "How many visits were in October in {patients}?",
        lambda f: [int((f["patients"]["visit_date"].dt.month == 10).sum())],
    ),
    Question(
        "When was the last return in {shop}?",
        lambda f: [f"{f['shop']['date'][f['shop']['returned']].max():%Y-%m-%d}"],
    ),
    # What is left out
    Question(
        "total revenue excluding Berlin in {shop}",
        lambda f: [f["shop"]["revenue"][f["shop"]["city"] != "Berlin"].sum()],
    ),
    Question(
        "How many orders from cities other than Berlin and Munich in {shop}?",
        lambda f: [int((~f["shop"]["city"].isin(["Berlin", "Munich"])).sum())],
    ),
    Question(
        "mean temperature when status is not ok in {sensors}",
        lambda f: [f["sensors"]["temperature_c"][f["sensors"]["status"] != "ok"].mean()],
    ),
    Question(
        "average age excluding patients with diabetes in {patients}",
        lambda f: [f["patients"]["age"][f["patients"]["diagnosis"] != "diabetes"].mean()],
    ),
    Question(
        "How many orders were not returned in Berlin in {shop}?",
        lambda f: [int((~f["shop"]["returned"] & (f["shop"]["city"] == "Berlin")).sum())],
    ),
    Question(
        "How many patients have asthma or diabetes in {patients}?",
        lambda f: [int(f["patients"]["diagnosis"].isin(["asthma", "diabetes"]).sum())],
    ),
    Question(
        "How many male smokers over 50 are there in {patients}?",
        lambda f: [
            int(
                (
                    (f["patients"]["sex"] == "male")
                    & (f["patients"]["smoker"] == "yes")
                    & (f["patients"]["age"] > 50)
                ).sum()
            )
        ],
    ),
    # Rows, groups and words that are names of values
    Question(
        "lowest value per station in {log}",
        lambda f: [*f["log"].groupby("station")["value"].min()],
    ),
    Question(
        "average value by month of station North in {log}",
        lambda f: [
            *f["log"]
            .groupby([f["log"]["timestamp"].str[:7], "station"])["value"]
            .mean()
            .xs("North", level=1)
        ],
    ),
    Question(
        "Which station has the highest share of high level in {log}?",
        lambda f: [
            (f["log"]["level"] == "high").groupby(f["log"]["station"].array).mean().idxmax(),
            100 * (f["log"]["level"] == "high").groupby(f["log"]["station"].array).mean().max(),
        ],
        ("North", "South", "East"),
    ),
    Question(
        "average yield of runs that did not fail in {reactor}",
        lambda f: [f["reactor"]["yield_pct"][f["reactor"]["failed"] == 0].mean()],
    ),
    Question("How many runs failed in {reactor}?", lambda f: [int(f["reactor"]["failed"].sum())]),
    Question(
        "median yield of Pd vs Pt in {reactor}",
        lambda f: [*f["reactor"].groupby("catalyst")["yield_pct"].median()[["Pd", "Pt"]]],
    ),
    Question(
        "How many students are in class 9a in {exam}?",
        lambda f: [int((f["exam"]["class"] == "9a").sum())],
    ),
    Question(
        "pass rate by class in {exam}",
        lambda f: [*(100 * (f["exam"]["passed"] == "Yes").groupby(f["exam"]["class"]).mean())],
    ),
    Question(
        "Did more girls than boys pass in {exam}?",
        lambda f: [*map(int, _counts(f["exam"], f["exam"]["passed"] == "Yes", "gender"))],
    ),
    # Growth
    Question("Which countries declined in {countries}?", lambda _: ["1 of 6", "Japan"], ("Kenya",)),
    Question(
        "Which country grew the least in {countries}?", lambda _: ["Japan grew least"], ("France",)
    ),
]
