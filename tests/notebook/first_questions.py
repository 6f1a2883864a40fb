"""Five data sets, and first questions that strangers would ask of them, with what is right.

The questions were written before the planner was read that answers them. What is right is
computed by pandas from the frames: numbers that the answer has to give, and names, the first of
which has to stand first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pandas as pd

from sagents_nb.tour import load_penguins

Frames = dict[str, pd.DataFrame]


class Plot(msgspec.Struct):
    """What a plot has to show: the values of each line, or of all bars, in their order."""

    series: list[list[float]]
    bins: bool = False  # of a histogram, whose bars add up to these many


class Question(msgspec.Struct):
    """What is asked, and of the frames what is right.

    ``right`` gives numbers and names, or a :class:`Plot`; ``rivals`` are names that must not
    stand before the first of them.
    """

    text: str
    right: Callable[[Frames], Sequence[Any] | Plot]
    rivals: Sequence[str] = ()
    file: str = ""


def frames() -> Frames:
    """The data sets, the same every time."""
    return {
        "penguins": load_penguins(),
        "sales": pd.DataFrame(
            {"region": ["north", "south"], "2024": [310, 290], "2025": [402, 301]}
        ),
        "orders": _orders(),
        "titanic": _titanic(),
        "weather": _weather(),
        "stocks": _stocks(),
    }


def _row_of_least(frame: pd.DataFrame, measure: str, when: str) -> tuple[str, float]:
    row = frame.loc[frame[measure].idxmin()]
    return f"{row[when]:%Y-%m-%d}" if hasattr(row[when], "year") else row[when], row[measure]


def _orders() -> pd.DataFrame:
    chance = random.Random(1)
    prices = {"chair": 49.5, "desk": 199.0, "lamp": 24.9, "shelf": 89.0, "sofa": 640.0}
    rows = []
    for day in sorted(chance.choices(range(730), k=600)):
        product = chance.choice([*prices, "chair", "lamp"])
        units = chance.randint(1, 6)
        date = f"{pd.Timestamp('2024-01-01') + pd.Timedelta(days=day):%Y-%m-%d}"
        region = chance.choice(["north", "south", "east"])
        rows.append((date, region, product, units, prices[product], units * prices[product]))
    columns = ["date", "region", "product", "units", "price", "revenue"]
    return pd.DataFrame(rows, columns=columns)


def _titanic() -> pd.DataFrame:
    chance = random.Random(2)
    rows = []
    for number in range(1, 501):
        sex = chance.choices(["male", "female"], [0.65, 0.35])[0]
        pclass = chance.choices([1, 2, 3], [0.25, 0.2, 0.55])[0]
        likely = (0.7 if sex == "female" else 0.2) + (0.15 if pclass == 1 else 0.0)
        age = None if chance.random() < 0.2 else round(min(80, max(1, chance.gauss(34, 15))), 1)
        fare = round(chance.lognormvariate({1: 4.2, 2: 3.0, 3: 2.3}[pclass], 0.5), 4)
        port = chance.choices(["S", "C", "Q", None], [0.7, 0.2, 0.09, 0.01])[0]
        survived = int(chance.random() < likely)
        rows.append((number, survived, pclass, f"Passenger {number:03}", sex, age, fare, port))
    columns = ["passenger_id", "survived", "pclass", "name", "sex", "age", "fare", "embarked"]
    return pd.DataFrame(rows, columns=columns)


def _weather() -> pd.DataFrame:
    chance = random.Random(3)
    rows = []
    for date in pd.date_range("2012-01-01", "2013-12-31"):
        season = 12 - 10 * abs((date.day_of_year - 200) / 183)
        high = round(season + 8 + chance.gauss(0, 3), 1)
        rain = round(max(0.0, chance.gauss(1, 6)), 1)
        sky = "rain" if rain else chance.choice(["sun", "fog", "sun", "drizzle"])
        low, wind = round(high - chance.uniform(4, 9), 1), round(chance.uniform(0.5, 9), 1)
        rows.append((date, rain, high, low, wind, sky))
    columns = ["date", "precipitation", "temp_max", "temp_min", "wind", "weather"]
    return pd.DataFrame(rows, columns=columns)


def _stocks() -> pd.DataFrame:
    chance = random.Random(4)
    rows = []
    for symbol, start, drift in [("AAPL", 180.0, 0.3), ("MSFT", 370.0, 0.1), ("NVDA", 48.0, 0.25)]:
        price = start
        for date in pd.bdate_range("2024-01-01", "2024-12-31"):
            price = round(max(5.0, price + drift + chance.gauss(0, start / 90)), 2)
            volume = chance.randint(900_000, 9_000_000)
            rows.append((date, symbol, round(price * 0.99, 2), price, volume))
    return pd.DataFrame(rows, columns=["date", "symbol", "open", "close", "volume"])


def _month(frame: pd.DataFrame) -> Any:
    return pd.to_datetime(frame["date"]).dt.to_period("M")


def _year(frame: pd.DataFrame) -> Any:
    return pd.to_datetime(frame["date"]).dt.year


def _mean_by(frame: pd.DataFrame, by: Any, column: str) -> Any:
    return frame.groupby(by)[column].mean()


def _sum_by(frame: pd.DataFrame, by: Any, column: str) -> Any:
    return frame.groupby(by)[column].sum()


SPECIES = ("Adelie", "Chinstrap", "Gentoo")
PRODUCTS = ("chair", "desk", "lamp", "shelf", "sofa")
SYMBOLS = ("AAPL", "MSFT", "NVDA")

FIRST = [
    # Penguins
    Question(
        "Which species is heaviest on average in {penguins}?",
        lambda f: (
            _mean_by(f["penguins"], "species", "body_mass_g").idxmax(),
            _mean_by(f["penguins"], "species", "body_mass_g").max(),
        ),
        SPECIES,
    ),
    Question(
        "what's the average bill length in penguins?",
        lambda f: [f["penguins"]["bill_length_mm"].mean()],
    ),
    Question(
        "How many penguins of each species are there in {penguins}?",
        lambda f: [x for pair in f["penguins"]["species"].value_counts().items() for x in pair],
    ),
    Question(
        "How many rows of {penguins} have missing sex?",
        lambda f: [int(f["penguins"]["sex"].isna().sum())],
    ),
    Question(
        "Is there a correlation between flipper length and body mass in {penguins}?",
        lambda f: [f["penguins"]["flipper_length_mm"].corr(f["penguins"]["body_mass_g"])],
    ),
    Question(
        "What are the unique islands in {penguins}?",
        lambda f: [*f["penguins"]["island"].unique()],
    ),
    Question(
        "summarise {penguins} and save a report to /report.md",
        lambda f: [
            len(f["penguins"]),
            f["penguins"].shape[1],
            f["penguins"]["body_mass_g"].mean(),
            "Gentoo",
            int(f["penguins"]["sex"].isna().sum()),
        ],
        file="/report.md",
    ),
    Question(
        "Are male penguins heavier than female ones on average? {penguins}",
        lambda f: ["Yes", *_mean_by(f["penguins"], "sex", "body_mass_g")],
        ("No",),
    ),
    # Sales
    Question(
        "Show me {sales}, then save a short report of it to /report.md.",
        lambda f: ["north", "south", 310, 290, 402, 301, 100 * (703 / 600 - 1)],
        file="/report.md",
    ),
    Question(
        "did sales grow from 2024 to 2025? {sales}",
        lambda f: [
            "Yes",
            int(f["sales"]["2024"].sum()),
            int(f["sales"]["2025"].sum()),
            100 * (f["sales"]["2025"].sum() / f["sales"]["2024"].sum() - 1),
        ],
        ("No",),
    ),
    Question(
        "Which region grew the most in {sales}?",
        lambda f: ["north", 100 * (402 / 310 - 1)],
        ("south",),
    ),
    Question(
        "What share of the 2025 total does each region have in {sales}?",
        lambda f: [*(100 * f["sales"]["2025"] / f["sales"]["2025"].sum())],
    ),
    Question(
        "top 3 products by revenue in {orders}",
        lambda f: [
            x
            for pair in _sum_by(f["orders"], "product", "revenue").nlargest(3).items()
            for x in pair
        ],
        PRODUCTS,
    ),
    Question(
        "plot revenue by month from {orders}",
        lambda f: Plot([[*_sum_by(f["orders"], _month(f["orders"]), "revenue")]]),
    ),
    Question(
        "What was the total revenue in 2025 in {orders}?",
        lambda f: [f["orders"]["revenue"][_year(f["orders"]) == 2025].sum()],
    ),
    Question(
        "Which month had the highest revenue in {orders}?",
        lambda f: [
            str(_sum_by(f["orders"], _month(f["orders"]), "revenue").idxmax()),
            _sum_by(f["orders"], _month(f["orders"]), "revenue").max(),
        ],
    ),
    # Titanic
    Question(
        "What percentage of passengers survived in {titanic}?",
        lambda f: [100 * f["titanic"]["survived"].mean()],
    ),
    Question(
        "how many rows have missing age in titanic?",
        lambda f: [int(f["titanic"]["age"].isna().sum())],
    ),
    Question(
        "Did women survive more often than men in {titanic}?",
        lambda f: ["Yes", *(100 * _mean_by(f["titanic"], "sex", "survived"))],
        ("No",),
    ),
    Question("What's the median fare in {titanic}?", lambda f: [f["titanic"]["fare"].median()]),
    Question(
        "average age by class in {titanic}", lambda f: [*_mean_by(f["titanic"], "pclass", "age")]
    ),
    Question(
        "Who paid the highest fare in {titanic}?",
        lambda f: [
            f["titanic"].loc[f["titanic"]["fare"].idxmax(), "name"],
            f["titanic"]["fare"].max(),
        ],
    ),
    Question(
        "How many passengers were older than 60 in {titanic}?",
        lambda f: [int((f["titanic"]["age"] > 60).sum())],
    ),
    Question(
        "Show a histogram of age from {titanic}",
        lambda f: Plot([[float(f["titanic"]["age"].count())]], bins=True),
    ),
    # Weather
    Question(
        "What was the hottest day in {weather}?",
        lambda f: [
            f"{f['weather'].loc[f['weather']['temp_max'].idxmax(), 'date']:%Y-%m-%d}",
            f["weather"]["temp_max"].max(),
        ],
    ),
    Question(
        "average max temperature by month in {weather}",
        lambda f: [
            x
            for month, mean in _mean_by(f["weather"], _month(f["weather"]), "temp_max").items()
            for x in (str(month), mean)
        ],
    ),
    Question(
        "How many rainy days were there in {weather}?",
        lambda f: [int((f["weather"]["weather"] == "rain").sum())],
    ),
    Question(
        "How much precipitation was there in 2013? {weather}",
        lambda f: [f["weather"]["precipitation"][f["weather"]["date"].dt.year == 2013].sum()],
    ),
    Question(
        "plot the temperature over time in {weather}",
        lambda f: Plot([[*f["weather"]["temp_max"]], [*f["weather"]["temp_min"]]]),
    ),
    Question(
        "Is wind related to precipitation in {weather}?",
        lambda f: [f["weather"]["wind"].corr(f["weather"]["precipitation"])],
    ),
    Question(
        "What was the windiest month in {weather}?",
        lambda f: [
            str(_mean_by(f["weather"], _month(f["weather"]), "wind").idxmax()),
            _mean_by(f["weather"], _month(f["weather"]), "wind").max(),
        ],
    ),
    Question("Are there any missing values in weather?", lambda f: ["No"]),
    # Stocks
    Question(
        "What's the highest closing price of each symbol in {stocks}?",
        lambda f: [
            x for pair in f["stocks"].groupby("symbol")["close"].max().items() for x in pair
        ],
    ),
    Question(
        "What was the lowest closing price in {stocks}, and when?",
        lambda f: [*_row_of_least(f["stocks"], "close", "date")],
    ),
    Question(
        "{weather} what was the lowest temperature and when",
        lambda f: [*_row_of_least(f["weather"], "temp_min", "date")],
    ),
    Question(
        "Which stock gained the most over the whole period in {stocks}?",
        lambda f: [_gains(f).idxmax(), _gains(f).max()],
        SYMBOLS,
    ),
    Question(
        "How many trading days are there for AAPL in {stocks}?",
        lambda f: [int((f["stocks"]["symbol"] == "AAPL").sum())],
    ),
    Question(
        "plot the price of every symbol over time in {stocks}",
        lambda f: Plot([[*g["close"]] for _, g in f["stocks"].groupby("symbol")]),
    ),
    Question(
        "What's the average volume of MSFT in {stocks}?",
        lambda f: [f["stocks"]["volume"][f["stocks"]["symbol"] == "MSFT"].mean()],
    ),
    Question(
        "On which date did AAPL close at its lowest in {stocks}?",
        lambda f: [_lowest(f, "date").strftime("%Y-%m-%d"), _lowest(f, "close")],
    ),
    Question(
        "What date range does {stocks} cover?",
        lambda f: [f"{f['stocks']['date'].agg(end):%Y-%m-%d}" for end in ("min", "max")],
    ),
    Question(
        "sort {stocks} by volume and show me the top 5",
        lambda f: [*f["stocks"]["volume"].nlargest(5)],
    ),
]


# Written when the planner was done, and not used to change it.
HELD_OUT = [
    Question(
        "Which island has the fewest penguins? {penguins}",
        lambda f: ["Torgersen", int((f["penguins"]["island"] == "Torgersen").sum())],
        ("Biscoe", "Dream"),
    ),
    Question(
        "how much heavier are Gentoo penguins than Adelie penguins in {penguins}?",
        lambda f: [
            _mean_by(f["penguins"], "species", "body_mass_g")["Gentoo"],
            _mean_by(f["penguins"], "species", "body_mass_g")["Adelie"],
        ],
    ),
    Question(
        "average flipper length per species and sex in {penguins}",
        lambda f: [*_mean_by(f["penguins"], ["species", "sex"], "flipper_length_mm")],
    ),
    Question(
        "what was the number of penguins observed in 2008 in {penguins}",
        lambda f: [int((f["penguins"]["year"] == 2008).sum())],
    ),
    Question("By how much did the south grow in {sales}?", lambda f: [100 * (301 / 290 - 1)]),
    Question(
        "Which product had the lowest revenue in 2024? {orders}",
        lambda f: [
            _sum_by(f["orders"][_year(f["orders"]) == 2024], "product", "revenue").idxmin(),
            _sum_by(f["orders"][_year(f["orders"]) == 2024], "product", "revenue").min(),
        ],
        PRODUCTS,
    ),
    Question(
        "How many units of lamps were sold in {orders}?",
        lambda f: [int(_sum_by(f["orders"], "product", "units")["lamp"])],
    ),
    Question(
        "Show revenue by region as a bar chart {orders}",
        lambda f: Plot([[*_sum_by(f["orders"], "region", "revenue")]]),
    ),
    Question(
        "What's the average price per product in {orders}?",
        lambda f: [x for pair in _mean_by(f["orders"], "product", "price").items() for x in pair],
    ),
    Question(
        "What was the average age of passengers who survived? {titanic}",
        lambda f: [f["titanic"]["age"][f["titanic"]["survived"] == 1].mean()],
    ),
    Question(
        "How many passengers embarked at each port in {titanic}?",
        lambda f: [x for pair in f["titanic"]["embarked"].value_counts().items() for x in pair],
    ),
    Question(
        "Is the fare correlated with class? {titanic}",
        lambda f: [f["titanic"]["fare"].corr(f["titanic"]["pclass"])],
    ),
    Question(
        "What is the youngest passenger's age in {titanic}?",
        lambda f: [f["titanic"]["age"].min()],
    ),
    Question(
        "How many first class passengers are in {titanic}?",
        lambda f: [int((f["titanic"]["pclass"] == 1).sum())],
    ),
    Question(
        "On how many days did it rain more than 10 mm in {weather}?",
        lambda f: [int((f["weather"]["precipitation"] > 10).sum())],
    ),
    Question(
        "which month of 2013 was the coldest in {weather}",
        lambda f: [
            str(
                _mean_by(
                    f["weather"][f["weather"]["date"].dt.year == 2013],
                    _month(f["weather"]),
                    "temp_min",
                ).idxmin()
            )
        ],
    ),
    Question("What's the maximum wind speed in {weather}?", lambda f: [f["weather"]["wind"].max()]),
    Question(
        "Compare the average close of AAPL and MSFT in {stocks}",
        lambda f: [
            _mean_by(f["stocks"], "symbol", "close")["AAPL"],
            _mean_by(f["stocks"], "symbol", "close")["MSFT"],
        ],
    ),
    Question(
        "plot monthly trading volume of NVDA from {stocks}",
        lambda f: Plot([[*_sum_by(_of(f, "NVDA"), _month(_of(f, "NVDA")), "volume")]]),
    ),
    Question(
        "When was the price of NVDA the highest in {stocks}?",
        lambda f: [
            f"{_of(f, 'NVDA').loc[_of(f, 'NVDA')['close'].idxmax(), 'date']:%Y-%m-%d}",
            _of(f, "NVDA")["close"].max(),
        ],
    ),
]


def _of(f: Frames, symbol: str) -> pd.DataFrame:
    return f["stocks"][f["stocks"]["symbol"] == symbol]


def _gains(f: Frames) -> Any:
    ends = f["stocks"].sort_values("date").groupby("symbol")["close"].agg(["first", "last"])
    return 100 * (ends["last"] / ends["first"] - 1)


def _lowest(f: Frames, column: str) -> Any:
    apple = f["stocks"][f["stocks"]["symbol"] == "AAPL"]
    return apple.loc[apple["close"].idxmin(), column]
