"""The words of questions about data frames: what to do, what says nothing, what means the same."""

from __future__ import annotations

from .queries import Order, Period, Statistic
from .words import stem, word_set

# Words that say what to do. Each is only read as a column's where nothing else is left.
STATISTICS: dict[str, Statistic] = {
    **dict.fromkeys(
        ("average", "averages", "mean", "means", "avg", "typical", "typically"), "mean"
    ),
    **dict.fromkeys(("median", "medians"), "median"),
    **dict.fromkeys(("total", "totals", "sum", "altogether", "combined"), "sum"),
    **dict.fromkeys(("std", "deviation", "spread", "variation", "varies"), "std"),
}
EXTREMES: dict[str, Statistic] = {
    **dict.fromkeys(("maximum", "max"), "max"),
    **dict.fromkeys(("minimum", "min"), "min"),
}
UP = word_set("highest maximum max largest biggest greatest most top peak best record")
DOWN = word_set("lowest minimum min smallest least fewest bottom worst")
PLOT = word_set(
    "plot plots graph chart draw visualise visualize histogram hist scatter scatterplot bar bars "
    "barplot line boxplot box pie distribution distributed lineplot"
)
MISSING = word_set("missing null nulls nan nans na empty blank incomplete gaps")
DISTINCT = word_set("unique distinct different")
SHARE = word_set(
    "percentage percentages percent share shares proportion proportions fraction rate rates %"
)
RELATION = word_set(
    "correlation correlate correlated correlates related relation relationship relate association "
    "associated depend depends linked"
)
GROWTH = word_set(
    "grow grew grown growth grows growing increase increased increases rise rose risen gain gained "
    "gains improve improved change changed changes rises trend went "
    "go goes going return returns developed"
)
SHRINK = word_set(
    "decrease decreased fall fell fallen drop dropped decline declined shrink lost lose down"
)
CHANGES = word_set(
    "delete remove drop fill replace rename add insert update clean edit change set append merge "
    "join convert"
)
ORDERS: dict[str, Order] = {
    **dict.fromkeys(("descending", "decreasing", "desc"), "descending"),
    **dict.fromkeys(("ascending", "increasing", "asc"), "ascending"),
}
SORT = word_set("sort sorted order ordered rank ranked ranking")
SUMMARY = word_set(
    "summarise summarize summary summaries describe overview analyse analyze explore"
)
SHOW = word_set("show display print see look view head preview open peek")
ENDS = (word_set("min minimum lowest smallest"), word_set("max maximum highest largest"))
RANGE = (
    ENDS[0]
    | ENDS[1]
    | word_set("range cover covers covered span spans spanning period earliest latest start end")
)
SHAPE = word_set("shape size big large columns column variables fields features dimensions long")
COUNT = word_set("count counts number many frequency")
EACH = word_set("by per each every across within")
THAN = word_set("than vs versus compared or between difference")
COMPARE = word_set("compare compared comparison vs versus difference differ differs")
MORE = word_set("more greater higher larger bigger longer over above exceeding exceeds after since")
LESS = word_set("less fewer lower smaller shorter under below before")
AFTER_VERB = word_set("often likely frequently")
YES_NO = word_set("did do does has have is are was were")
LATEST = word_set("latest last newest recent current earliest oldest first")
NEGATIONS = word_set(
    "not never without except excepting excluding exclude excludes outside no nobody none neither "
    "non didn't doesn't don't isn't wasn't aren't weren't"
)
# What leaves out the value that follows.
EXCLUDING = word_set(
    "not excluding except excepting excludes exclude without outside isn't wasn't aren't weren't "
    "don't doesn't didn't but non"
)

PERIODS: dict[str, Period] = {
    **dict.fromkeys(("day", "days", "daily", "date", "dates", "when"), "day"),
    **dict.fromkeys(("week", "weeks", "weekly"), "week"),
    **dict.fromkeys(("month", "months", "monthly"), "month"),
    **dict.fromkeys(("quarter", "quarters", "quarterly"), "quarter"),
    **dict.fromkeys(("year", "years", "yearly", "annual", "annually"), "year"),
    **dict.fromkeys(("weekday", "weekdays"), "weekday"),
    **dict.fromkeys(("hour", "hours", "hourly"), "hour"),
}
ORDINAL_NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
ORDINALS = {w: n for n, w in enumerate(ORDINAL_NAMES, 1)}
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = {w: n for n, w in enumerate(_NUMBERS, 2)}
SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
UNITS = word_set(
    "mm cm m km g kg lb lbs usd eur gbp pct percent c f mph kmh s sec ms hours hour years year "
    "minutes seconds euros dollars degrees grams meters metres old"
)
# What is most often meant by a word that nobody knows.
ASKING = frozenset().union(
    *(
        STATISTICS,
        UP,
        DOWN,
        MISSING,
        DISTINCT,
        SHARE,
        RELATION,
        GROWTH,
        PLOT,
        SORT,
        COMPARE,
        PERIODS,
    )
)
# "From year to year", "year over year": such a word between a period and itself.
STEPS = word_set("to over on by after")
# What people call the rows of a frame, whatever these are of.
ROWS = word_set(
    "row rows record records entry entries sample samples measurement measurements reading "
    "readings observation observations"
)
# What stands between the rows and what they have most of: "the patients with the highest age".
HAVING = word_set("with has have had the that which")
# "The warmest single sample" is the warmest sample.
SINGLE = word_set("single individual")
# They change nothing of what is asked.
FILLERS = word_set(
    "a an the of in for is are was were be been being do does did has have had having get got i "
    "me my we our us you your it its it's this that that's these those them they their there here "
    "what whats what's which who whose how much please tell give find list all any some and or to "
    "from on at as with into over during through across between than then so if whether can could "
    "would will should let want need know like just only also about out up again short quick "
    "small nice brief simple good data dataset frame dataframe table row rows record records "
    "entry entries observation observations value values item items one ones average overall "
    "whole entire full time period where when while many number amount amounts level levels "
    "figure figures calculate compute compare compared comparison work say answer question "
    "results result using use make create column columns variable field type types kind kinds "
    "group groups grouped per each every by both two most often likely more less same paid pay "
    "pays made sold sell sells occur occurred happen happened happens appear appears come comes "
    "belong live lives lived living working works recorded measured observed seen day days trading "
    "came more's "
    "people there's there're contain contains include includes exist statistics stats numbers "
    "breakdown break down split difference differ differs vs versus standard board aboard old "
    "first last total altogether report together fit among aged placed scored "
    "took taken gives gave kindly thanks thank thx pls plz"
)
# Words that mean the same where a column is looked for.
_SAME = [
    set(words.split())
    for words in (
        "price cost fare close",
        "mass weight",
        "revenue sales turnover income earnings amount",
        "sales units quantity",
        "sex gender",
        "symbol ticker stock stocks share company",
        "quantity units qty",
        "precipitation rain rainfall precip",
        "date day time timestamp datetime",
        "temperature temp",
        "survived survival survivors",
        "customer client buyer",
        "country nation",
        "profit margin",
        "employee staff worker",
        "salary wage pay income",
        "department dept team",
        "score rating grade mark",
        "embarked port",
    )
]
SYNONYMS: dict[str, set[int]] = {}
for _index, _words in enumerate(_SAME):
    for _word in _words:
        SYNONYMS.setdefault(stem(_word), set()).add(_index)
ALIASES = {
    "max": {"maximum", "max", "high"},
    "min": {"minimum", "min", "low"},
    "avg": {"average", "mean"},
    "pop": {"population"},
    "exp": {"expectancy", "experience"},
    "percap": {"capita"},
}
_FEMALE, _MALE = word_set("female f woman"), word_set("male m man")
VALUES_SAME = {
    **dict.fromkeys(("women", "woman", "female", "females", "girls"), _FEMALE),
    **dict.fromkeys(("men", "man", "male", "males", "boys"), _MALE),
}
MEANT_BY = {
    **dict.fromkeys(("paid", "pay", "pays", "cost", "costs"), "fare price amount cost total"),
    **dict.fromkeys(("weigh", "weighs", "weighed"), "mass weight"),
    **dict.fromkeys(("sell", "sells", "sold"), "units quantity sold sales revenue"),
    **dict.fromkeys(("buy", "buys", "bought"), "units quantity bought revenue"),
    **dict.fromkeys(("earn", "earns", "earned"), "salary income wage revenue"),
    **dict.fromkeys(("spent", "spend", "spends"), "spend spending amount cost total revenue"),
}
CHARTS = {
    "hist": word_set("hist histogram distribution distributed"),
    "scatter": word_set("scatter scatterplot"),
    "bar": word_set("bar bars barplot"),
    "line": word_set("line lineplot"),
    "box": word_set("boxplot box"),
    "pie": word_set("pie"),
}
# What is added up rather than averaged where nothing is said.
ADDED = word_set(
    "revenue sales amount units quantity qty cost costs profit income turnover spend spending "
    "precipitation rain rainfall snow snowfall population pop budget orders visits clicks goals "
    "points volume passengers expenses earnings sold count downloads views cases deaths births "
    "rides trips tickets visitors riders"
)
# What is there at a time, so that those of several times are not added up.
STOCKS = word_set("population pop inhabitants")
# Verbs that say no more than that a thing has an amount, of all its rows: "used the most kwh".
CONSUMING = word_set("used consumed needed")
