from __future__ import annotations

import asyncio
import enum
import gc
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
import pydantic
import pytest

import sagents_nb as sa
from sagents_nb.batch import Answer, Row, run_row
from sagents_nb.batch.table import tabled
from sagents_nb.files import FileSystem
from sagents_nb.frames import COLUMNS
from sagents_nb.models.output_type import Output
from tests.batch.models import Replying, replying
from tests.talking import call, run

pd = pytest.importorskip("pandas")


def mapped(agent: sa.Agent, inputs: Any, *args: Any, **options: Any) -> Any:
    return agent.map(inputs, *args, progress=False, **options)


def test_each_row_of_a_series_is_a_run_and_the_frame_has_its_index() -> None:
    questions = pd.Series(["one", "two", "three"], index=[7, 3, 3], name="q")
    frame = mapped(replying(), questions)
    assert list(frame.index) == [7, 3, 3]
    assert list(frame.text) == ["ONE", "TWO", "THREE"]
    assert set(frame.status) == {"completed"}
    assert set(frame.model) == {"replying"}
    assert frame.cost_usd.sum() == pytest.approx(0.03)
    assert list(frame.model_calls) == [1, 1, 1]
    assert not frame.kept.any()
    assert (frame.duration > 0).all()


def test_a_row_of_the_frame_tells_what_it_was_asked() -> None:
    people = pd.DataFrame({"name": ["Ada", None], "age": [36, 8]}, index=["x", "y"])
    frame = mapped(replying(str.title), people, "{name} is {age}")
    assert list(frame.columns[:3]) == ["prompt", "text", "status"]
    assert frame.loc["x", ["prompt", "text"]].tolist() == ["Ada is 36", "Ada Is 36"]
    assert frame.prompt.isna().tolist() == [False, True]  # it was asked nothing
    said = [[sa.Message.user("b"), sa.Message.user("c")], 3]
    assert list(mapped(replying(), said).prompt) == ["c", "3"]


def test_a_kept_answer_stands_beside_its_prompt(tmp_path: Path) -> None:
    mapped(replying(), ["a", "b"], cache=tmp_path / "rows")
    frame = mapped(replying(), ["b", "c", "a"], cache=tmp_path / "rows")
    assert list(zip(frame.prompt, frame.text, frame.kept, strict=True)) == [
        ("b", "B", True),
        ("c", "C", False),
        ("a", "A", True),
    ]


def test_columns_and_dtypes_do_not_depend_on_the_rows() -> None:
    full, empty = mapped(replying(), ["a", None]), mapped(replying(), [])
    assert len(empty) == 0
    for frame in (full, empty):
        assert {n: str(t) for n, t in frame.dtypes.items()} == {
            name: column.dtype for name, column in COLUMNS["map"].items()
        }
        assert tuple(frame.status.cat.categories) == COLUMNS["map"]["status"].categories


def test_a_frame_fills_in_a_prompt_and_can_be_joined() -> None:
    people = pd.DataFrame({"name": ["Ada", "Bo"], "age": [36, 8]}, index=["x", "y"])
    frame = people.join(mapped(replying(str), people, "{name} is {age:03d}"))
    assert list(frame.text) == ["Ada is 036", "Bo is 008"]


def test_a_prompt_can_be_filled_with_values_and_with_dicts() -> None:
    assert list(mapped(replying(str), ["Oslo"], "Where is {value}, {}?").text) == [
        "Where is Oslo, Oslo?"
    ]
    assert list(mapped(replying(str), [{"a": 1}], "a={a}").text) == ["a=1"]


def test_the_values_of_a_series_go_by_its_name_too() -> None:
    bodies = pd.DataFrame({"id": [1, 2], "body": ["Hi", "Ho"]}, index=["x", "y"])["body"]
    frame = mapped(replying(str), bodies, "Sort this: {body}, {}, {value}")
    assert list(frame.text) == [f"Sort this: {b}, {b}, {b}" for b in ("Hi", "Ho")]
    assert list(frame.index) == ["x", "y"]
    assert mapped(replying(str), pd.Series(["Hi"], name=0), "{0}").text[0] == "Hi"


@pytest.mark.parametrize(
    "inputs", [pd.DataFrame({"body": ["Hi", None]}), [{"body": "Hi"}, {"body": None}]]
)
def test_braces_without_a_name_are_the_only_column(inputs: Any) -> None:
    frame = mapped(replying(str), inputs, "{}, {body}")
    assert frame.text[0] == "Hi, Hi"
    assert frame.error[1] == "This row has no value, body."
    assert mapped(replying(str), inputs, "It is {}").text[0] == "It is Hi"


def test_columns_whose_names_are_numbers_fill_in_a_prompt() -> None:
    numbered = pd.DataFrame([["Oslo", 3], ["Bergen", None]])
    frame = mapped(replying(str), numbered, "{0}, {1:.0f} days")
    assert frame.text[0] == "Oslo, 3 days"
    assert frame.error[1] == "This row has no 1."
    assert mapped(replying(str), [{2: "two"}], "{2}").text[0] == "two"


def test_the_one_value_of_a_row_is_not_a_column_of_that_number() -> None:
    rows = [{"": "mine", 0: "zero", 1: "one"}]
    assert mapped(replying(str), rows, "{} {}").text[0] == "mine mine"


def test_the_width_in_a_format_is_a_column_too() -> None:
    table = pd.DataFrame({"a": ["x", "y"], "width": [3, None]})
    frame = mapped(replying(str), table.astype({"width": "Int64"}), "{a:>{width}}")
    assert frame.text[0] == "  x"
    assert frame.error[1] == "This row has no width."


@pytest.mark.parametrize(
    "name",
    ["a.b", "price: EUR", "50%!", "50%!r", "a[0]", "a.__class__", "a:>99999", "a {b}", " a "],
)
def test_any_column_can_be_named_whatever_is_in_its_name(name: str) -> None:
    table = pd.DataFrame({"a": ["short"], name: ["whole"]})
    assert mapped(replying(str), table, f"{{{name}}} {{a}}").text[0] == "whole short"
    assert mapped(replying(str), table, f"{{{name}:>7}} {{a}}").text[0] == "  whole short"


def test_a_value_is_written_as_the_prompt_says() -> None:
    row = {"a": "x", "price": 1234.5, "day": datetime(2024, 5, 17), "long": "y" * 3000}
    prompt = "{a!r:>5} {a!s} {price:,.2f} {day:%d.%m.%Y} {{a}} {{{a}}} {long:.2000}"
    text = mapped(replying(str), [row], prompt).text[0]
    assert text == f"  'x' x 1,234.50 17.05.2024 {{a}} {{x}} {'y' * 2000}"


class Told:
    """A value that has what nobody may be shown."""

    secret = "hidden"
    words: ClassVar[list[str]] = ["hidden"]

    def __str__(self) -> str:
        return "told"


@pytest.mark.parametrize(
    "field",
    [
        *("o.secret", "o.__init__.__globals__[sys]", "o.words[0]", "o[x]", "o.secret!r"),
        *("o.words:>3", "a:>{o.secret}"),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, list])
def test_attributes_and_items_of_values_are_refused(field: str, kind: Any) -> None:
    agent = replying(str)
    rows = kind([{"o": Told(), "a": "x"}])
    with pytest.raises(sa.ConfigurationError, match=r"write \{o\}, or give a function") as told:
        mapped(agent, rows, f"{{{field}}}")
    assert "attributes and items of values are not looked up" in str(told.value)
    assert agent.model.asked == []  # type: ignore[attr-defined]
    assert mapped(agent, rows, "{o}").text[0] == "told"


@pytest.mark.parametrize(
    "field",
    ["text:>99999999999", "text:1001", "n:.5000f", "n:>{n}", "text:>١٠٠١", "n:0" + "9" * 5000],
)
def test_a_width_beyond_bounds_is_refused_before_a_row_is_asked(field: str) -> None:
    agent = replying(str)
    rows = [{"text": "a", "n": 1}, {"text": "b", "n": 10**9}]
    with pytest.raises(sa.ConfigurationError, match=r"a width or precision is at most 1,000\."):
        mapped(agent, rows, f"{{{field}}}")
    assert agent.model.asked == []  # type: ignore[attr-defined]
    assert len(mapped(agent, rows, "{text:>1000}").text[0]) == 1000


@pytest.mark.parametrize("names", [["a", "b", "b"], ["a", 1, "1"]])
def test_a_prompt_cannot_name_one_of_two_columns_of_the_same_name(names: list[Any]) -> None:
    table = pd.DataFrame([["x", "y", "z"]], columns=names)
    agent = replying(str)
    with pytest.raises(sa.ConfigurationError, match=r"several columns are called so; rename"):
        mapped(agent, table, f"{{{names[1]}}}")
    assert agent.model.asked == []  # type: ignore[attr-defined]
    assert mapped(agent, table, "{a}").text[0] == "x"


QUESTIONS = pd.DataFrame({"id": [1, 2], "text": ["a", "b"]})


@pytest.mark.parametrize(
    ("inputs", "prompt", "told"),
    [
        (QUESTIONS, "text", r"names none of the columns \(id, text\).*'\{text\}'.*\['text'\]"),
        (QUESTIONS, "Translate", r"names none of the columns \(id, text\).*'\{id\}'.*\['id'\]"),
        (QUESTIONS, "{{text}}", r"names none of the columns"),
        (QUESTIONS, "", r"names none of the columns"),
        (QUESTIONS[:0], "text", r"names none of the columns"),
        (pd.DataFrame([["a", "b"]]), "1", r"columns \(0, 1\).*'\{1\}'.*\[1\]"),
        (pd.DataFrame(index=[1, 2]), "go", r"each row would be asked the same"),
        ([{"id": 1}, {"text": "a"}], "text", r"names none of the columns \(id, text\).*'\{text\}'"),
        (["a", "b"], "text", r"does not say where the values go.*'\{\}'"),
        (QUESTIONS["text"], "text", r"does not say where the values go.*'\{\}'"),
    ],
)
def test_a_prompt_that_would_be_the_same_for_each_row_is_refused(
    inputs: Any, prompt: str, told: str
) -> None:
    agent = replying(str)
    with pytest.raises(sa.ConfigurationError, match=told):
        mapped(agent, inputs, prompt)
    with pytest.raises(sa.ConfigurationError, match=told):
        run(agent.amap(inputs, prompt, progress=False))
    assert agent.model.asked == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("inputs", [[], pd.Series([], dtype=object), QUESTIONS[:0]])
def test_no_rows_are_no_answers_also_with_a_prompt(inputs: Any) -> None:
    prompt = "{text}" if isinstance(inputs, pd.DataFrame) else "Where is {}?"
    assert mapped(replying(), inputs, prompt).empty


def test_messages_and_numbers_are_prompts_too() -> None:
    said = [sa.Message.user("a"), [sa.Message.user("b"), sa.Message.user("c")], 3]
    assert list(mapped(replying(), said).text) == ["A", "C", "3"]
    assert list(mapped(replying(), pd.Series([1, 2])).text) == ["1", "2"]


def test_a_row_without_a_prompt_fails_alone_and_asks_no_model() -> None:
    agent = replying()
    frame = mapped(agent, pd.Series(["a", None, float("nan"), "", pd.NA]))
    assert list(frame.status) == ["completed", *["failed"] * 4]
    assert set(frame.error[1:]) == {"This row has no prompt."}
    assert agent.model.asked == ["a"]  # type: ignore[attr-defined]
    table = pd.DataFrame({"a": ["x", None], "b": [1, 2]})
    assert mapped(replying(), table, "{a}{b}").error[1] == "This row has no a."


@pytest.mark.parametrize(
    ("inputs", "prompt", "told"),
    [
        (pd.DataFrame({"q": ["a"]}), None, r"columns \(q\)"),
        (pd.DataFrame({"q": ["a"]}), "{question}", "names question, but the columns are q"),
        (pd.DataFrame({"q": ["a"]}), "{q", "no template"),
        (
            QUESTIONS,
            "Sort {}",
            r"says '\{\}', but .* several columns \(id, text\).*'\{id\}'",
        ),
        ([{"a": 1, "b": 2}], "{}", r"several columns \(a, b\); write the name of one"),
        (pd.DataFrame([[1, 2]], columns=["b", "b"]), "{}", r"several columns \(b\)"),
        (pd.DataFrame(index=[1]), "{}", r"names \{\}, but the columns are none"),
        (QUESTIONS["text"], "{body}", r"names body, .* name text; write '\{\}' or '\{text\}'"),
        (["a"], "{body}", r"names body, .* write '\{\}' or '\{value\}' where they go"),
        (pd.DataFrame({"q": ["a"]}), "q}", r"no template \('\}' stands alone\)"),
        (pd.DataFrame({"q": ["a"]}), "{q.z}", r"says \{q\.z\}, and attributes and items"),
        (pd.DataFrame({"q": ["a"]}), "{q!x}", r"says \{q!x\}, and behind q may stand !r, !s or"),
        (pd.DataFrame({"q": ["a"]}), "{q:d}", r"q cannot be written as 'd' \(ValueError"),
        ("one prompt", None, r"agent\.run"),
        (17, None, "not int"),
        ([object()], None, "not object"),
    ],
)
def test_what_no_prompts_can_be_made_of_is_refused_before_anything_runs(
    inputs: Any, prompt: str | None, told: str
) -> None:
    agent = replying()
    with pytest.raises(sa.ConfigurationError, match=told):
        mapped(agent, inputs, prompt)
    assert agent.model.asked == []  # type: ignore[attr-defined]


def test_an_error_is_in_its_row_and_the_others_go_on() -> None:
    def reply(text: str) -> Any:
        return sa.ModelError("no such luck", kind="invalid_request") if text == "b" else text

    frame = mapped(replying(reply), ["a", "b", "c"])
    assert list(frame.status) == ["completed", "failed", "completed"]
    assert "no such luck" in frame.error[1]
    assert frame.error_type[1] == "ModelError"
    assert frame.error.isna().tolist() == [True, False, True]


def test_what_fails_for_every_row_is_raised_at_once() -> None:
    agent = replying(lambda _: sa.ModelError("no key", kind="missing_key"))
    with pytest.raises(sa.ModelError, match="no key"):
        mapped(agent, ["a"] * 50, concurrency=2)
    assert len(agent.model.asked) <= 4  # type: ignore[attr-defined]


def test_a_row_that_waits_for_people_says_so() -> None:
    def wipe() -> None: ...

    agent = sa.Agent(
        Replying(lambda _: sa.Message.assistant("", [call("wipe")])),
        tools=[wipe],
        interrupt_on={"wipe": True},
        replace_default_middleware=True,
    )
    frame = mapped(agent, ["a"])
    assert list(frame.status) == ["interrupted"]
    assert "wipe" in frame.error[0]


def test_no_more_rows_run_at_once_than_allowed() -> None:
    agent = replying(delay=0.002)
    mapped(agent, [str(n) for n in range(40)], concurrency=7)
    assert agent.model.most == 7  # type: ignore[attr-defined]
    with pytest.raises(sa.ConfigurationError, match="concurrency"):
        mapped(agent, ["a"], concurrency=0)


def test_the_files_that_a_row_writes_are_its_own() -> None:
    def reply(text: str) -> Any:
        if text:
            arguments = {"file_path": "/note.md", "content": text}
            return sa.Message.assistant("", [sa.ToolCall("c1", "write_file", arguments)])
        return "done"

    agent = sa.Agent(Replying(reply))
    frame = mapped(agent, ["a", "b", "c"])
    assert list(frame.status) == ["completed"] * 3
    assert list(frame.tool_calls) == [1, 1, 1]
    assert list(frame.model_calls) == [2, 2, 2]


def test_a_row_has_files_only_once_it_asks_for_them() -> None:
    found: list[int] = []

    def reply(text: str) -> Any:
        scopes = [o.scope for o in gc.get_objects() if isinstance(o, FileSystem)]
        found.append(sum(scope is not None and scope[0] == "map" for scope in scopes))
        calls = [call("look", id=f"c{n}") for n in range(3)] if text == "look" else []
        return sa.Message.assistant("done", calls)

    def look(ctx: sa.ToolContext) -> str:
        seen.append(ctx.files)
        return "seen"

    gc.collect()
    seen: list[Any] = []
    agent = sa.Agent(Replying(reply), tools=[look])
    mapped(agent, ["a", "look", "b"], concurrency=1)
    assert found[:2] == [0, 0]
    assert len(seen) == 3
    assert len(set(map(id, seen))) == 1  # tools in three threads
    assert isinstance(seen[0], FileSystem)


@dataclass
class Verdict:
    mood: Literal["good", "bad"]
    stars: int
    sure: bool = True
    score: float | None = None
    words: list[str] | None = None
    text: str = ""


def test_the_fields_of_the_output_are_columns_with_dtypes_of_their_own() -> None:
    def reply(text: str) -> Any:
        arguments = {"mood": "good", "stars": 5, "words": [text], "score": 0.5}
        return sa.Message.assistant("", [sa.ToolCall("c1", "submit", arguments)])

    frame = mapped(replying(reply), ["a", None], output=Verdict)
    assert list(frame.columns[:9]) == [
        "prompt",
        "text",
        "mood",
        "stars",
        "sure",
        "score",
        "words",
        "output_text",
        "status",
    ]
    assert tuple(frame.mood.cat.categories) == ("good", "bad")
    found = {n: str(frame[n].dtype) for n in ("stars", "sure", "score", "words", "output_text")}
    assert found == {
        "stars": "Int64",
        "sure": "boolean",
        "score": "float64",
        "words": "object",
        "output_text": "string",
    }
    assert frame.words[0] == ["a"]
    assert frame.iloc[1][["mood", "stars", "words"]].isna().all()
    assert list(frame.status) == ["completed", "failed"]


def test_a_plain_type_is_the_column_value() -> None:
    def reply(text: str) -> Any:
        return sa.Message.assistant("", [sa.ToolCall("c1", "submit", {"value": 10 ** int(text)})])

    assert list(mapped(replying(reply), ["1", "2"], output=int).value) == [10, 100]
    assert list(mapped(replying(reply), ["30"], output=int).value) == [10**30]


class Twin(pydantic.BaseModel):
    name: str = pydantic.Field(alias="cityName")
    shared: bool = True


class City(pydantic.BaseModel):
    name: str = pydantic.Field(alias="cityName")
    people: int = pydantic.Field(7, exclude=True)
    twin: Twin | None = None


@dataclass
class Area:
    size: int = 2
    unit: str = "km"


@dataclass
class Place:
    name: str
    people: int = 7
    area: Area = field(default_factory=Area)
    areas: list[Area] = field(default_factory=list)


class Camel(msgspec.Struct, rename="camel", omit_defaults=True):
    city_name: str
    people: int = 7


@dataclass
class Aliased:
    name: Annotated[str, pydantic.Field(alias="cityName")]
    people: int = 7


T = TypeVar("T")


@dataclass
class Pair(Generic[T]):
    left: T
    right: int = 7


AREA = {"size": 2, "unit": "km"}


@pytest.mark.parametrize(
    ("kind", "arguments", "columns"),
    [
        (
            City,
            {"cityName": "Oslo", "twin": {"cityName": "Bergen"}},
            {"name": "Oslo", "people": 7, "twin": {"name": "Bergen", "shared": True}},
        ),
        (
            Place,
            {"name": "Oslo", "areas": [{}]},
            {"name": "Oslo", "people": 7, "area": AREA, "areas": [AREA]},
        ),
        (Camel, {"cityName": "Oslo"}, {"city_name": "Oslo", "people": 7}),
        (Aliased, {"cityName": "Oslo"}, {"name": "Oslo", "people": 7}),
        (Pair[int], {"left": 1}, {"left": 1, "right": 7}),
        (
            Annotated[Place, msgspec.Meta(description="Where.")],
            {"name": "Oslo"},
            {"name": "Oslo", "people": 7, "area": AREA, "areas": []},
        ),
        (list[Area], {"value": [{"size": 1}]}, {"value": [{"size": 1, "unit": "km"}]}),
    ],
    ids=str,
)
def test_the_columns_are_the_fields_of_the_value_that_extract_gives(
    kind: Any, arguments: dict[str, Any], columns: dict[str, Any], tmp_path: Path
) -> None:
    agent = replying(lambda _: sa.Message.assistant("", [sa.ToolCall("c1", "submit", arguments)]))
    for _ in range(2):  # and again when it comes from the cache
        frame = mapped(agent, ["q"], output=kind, cache=tmp_path / "rows")
        assert list(frame.columns[2 : list(frame.columns).index("status")]) == list(columns)
        assert frame.iloc[0][list(columns)].to_dict() == columns
    assert frame.kept[0]


@pytest.mark.parametrize(
    ("kind", "kept", "columns"),
    [
        (City, {"name": "Oslo", "twin": None}, {"name": "Oslo"}),
        (Place, {"name": "Oslo", "area": AREA, "areas": []}, {"name": "Oslo", "people": 7}),
        (Camel, {"cityName": "Oslo"}, {"city_name": "Oslo", "people": 7}),
        (Verdict, {"mood": "bad", "stars": 1, "words": None}, {"mood": "bad", "sure": True}),
    ],
    ids=str,
)
def test_answers_in_older_caches_are_read(
    kind: Any, kept: dict[str, Any], columns: dict[str, Any]
) -> None:
    answer = Answer("key", "completed", fields=kept)
    rows = [Row("key", (sa.Message.user("q"),)), Row("other", ())]
    frame = tabled(rows, [answer, Answer("other", "failed")], Output(kind), None, ())
    assert frame.iloc[0][list(columns)].to_dict() == columns
    assert frame.iloc[1][list(columns)].isna().all()


class Size(enum.Enum):
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


@dataclass
class Shirt:
    size: Size
    other: Size | None = Size.LARGE


class Coat(pydantic.BaseModel):
    size: Size = pydantic.Field(alias="coatSize", default=Size.SMALL)
    other: Size | None = Size.LARGE


@pytest.mark.parametrize("kind", [Shirt, Coat, Size])
def test_the_words_of_an_enum_are_categories_in_the_order_written(kind: Any) -> None:
    name = "value" if kind is Size else "coatSize" if kind is Coat else "size"
    agent = replying(
        lambda _: sa.Message.assistant("", [sa.ToolCall("c1", "submit", {name: "medium"})])
    )
    frame = mapped(agent, ["q"], output=kind)
    columns = {"value": "medium"} if kind is Size else {"size": "medium", "other": "large"}
    for column, word in columns.items():
        assert list(frame[column].cat.categories) == ["small", "medium", "large"]
        assert frame[column][0] == word


def test_an_answer_that_never_fits_fails_its_row_after_five_tries() -> None:
    wrong = sa.Message.assistant("", [sa.ToolCall("c1", "submit", {"value": "much"})])
    agent = replying(lambda _: wrong)
    frame = mapped(agent, ["a"], output=int)
    assert frame.error_type[0] == "MaxRunsExceeded"
    assert "Expected `int`" in frame.error[0]
    assert frame.model_calls[0] == 5


@pytest.mark.parametrize(
    "budget", [sa.Budget(cost_usd=0.095), sa.Budget(tokens=145), sa.Budget(model_calls=10)]
)
def test_a_budget_for_all_rows_is_overshot_by_the_running_ones_at_most(budget: sa.Budget) -> None:
    agent = replying(delay=0.001)
    frame = mapped(agent, [str(n) for n in range(50)], concurrency=4, budget=budget)
    done = (frame.status == "completed").sum()
    assert 10 <= done <= 13
    assert set(frame.status) == {"completed", "not_run"}
    left = frame[frame.status == "not_run"]
    assert left.error.str.contains("is used up").all()
    assert set(left.error_type) == {"BudgetExceeded"}
    assert left.text.isna().all()


def test_it_can_be_awaited_on_any_loop() -> None:
    frame = run(replying().amap(["a", "b"], progress=False))
    assert list(frame.text) == ["A", "B"]


def test_in_a_tool_it_has_to_be_awaited() -> None:
    async def study() -> str:
        return str(mapped(replying(), ["a"]))

    agent = sa.Agent(
        sa.ScriptedModel([call("study"), "ok"]), tools=[study], replace_default_middleware=True
    )
    told = agent.run("go").messages[-2].tool_results[0].text
    assert "await agent.amap" in told


class Elsewhere:
    """An engine that sends rows away as JSON, as one with other machines would."""

    def __init__(self, remote: sa.Agent) -> None:
        self.remote = remote
        self.sent: list[bytes] = []

    async def run(self, rows: Any, work: Any) -> AsyncIterator[Answer]:
        for row in rows:
            self.sent.append(msgspec.json.encode(row))
            there = msgspec.json.decode(self.sent[-1], type=Row)
            answer = await run_row(self.remote, there)
            await asyncio.sleep(0)
            yield msgspec.json.decode(msgspec.json.encode(answer), type=Answer)


def test_an_engine_takes_the_rows_as_plain_data() -> None:
    here, there = replying(), replying(str.title)
    engine = Elsewhere(there)
    frame = mapped(here, ["a b", "c d", "e f"], engine=engine, budget=sa.Budget(model_calls=2))
    assert list(frame.text.fillna("")) == ["A B", "C D", ""]
    assert here.model.asked == []  # type: ignore[attr-defined]
    assert len(engine.sent) == 2


def test_a_row_that_the_engine_forgets_is_not_run() -> None:
    class Lazy:
        async def run(self, rows: Any, work: Any) -> AsyncIterator[Answer]:
            yield await work(next(rows))

    frame = mapped(replying(), ["a", "b"], engine=Lazy())
    assert list(frame.status) == ["completed", "not_run"]


def test_the_bar_tells_rows_failures_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")

    def reply(text: str) -> Any:
        return sa.ModelError("no", kind="invalid_request") if text == "b" else text

    replying(reply).map(["a", "b", "c"])
    told = capsys.readouterr().err
    assert "3/3" in told
    assert "$0.0200, 1 failed" in told


def test_without_tqdm_there_is_no_bar_and_no_complaint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(replying().map(["a"])) == 1
    assert capsys.readouterr().err == ""


def test_an_address_is_no_cache_and_is_not_shown() -> None:
    agent = sa.Agent(sa.ScriptedModel(["x"]))
    with pytest.raises(sa.ConfigurationError, match="no address") as raised:
        agent.map(["a"], cache="postgresql://me:hunter2@host/db", progress=False)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("whose", ["the agent's", "the map's", "both"])
def test_each_row_tells_what_it_used_itself_of_a_budget_that_is_shared(whose: str) -> None:
    day = sa.Budget(model_calls=20, tool_calls=20).shared()
    used = sa.Usage(10, 5, cost_usd=0.5)
    said = sa.Message.assistant("x", usage=used)
    agent = sa.Agent(sa.ScriptedModel([said] * 4), defaults=False)
    agent.run("before", budget=day)
    if whose != "the map's":
        agent = agent.with_(budget=day)
    frame = agent.map(
        ["a", "b", "c"],
        budget=None if whose == "the agent's" else day,
        concurrency=1,
        progress=False,
    )
    assert frame.model_calls.tolist() == [1] * 3
    assert frame.input_tokens.tolist() == [10] * 3
    assert frame.cost_usd.tolist() == [0.5] * 3
    assert (day.meter.model_calls, day.meter.usage.cost_usd) == (4, 2.0)
