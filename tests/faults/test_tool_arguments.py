"""What a tool takes is what its annotations say: faults that were seen from outside."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import sagents_nb as sa
from tests.talking import agent_of, call


class Cat(pydantic.BaseModel):
    lives: int


class Dog(pydantic.BaseModel):
    name: str


@dataclasses.dataclass
class Point:
    x: Annotated[int, pydantic.Field(ge=0)]


@dataclasses.dataclass
class Label:
    text: str


def given(tool: Any, **arguments: Any) -> tuple[list[Any], str]:
    """What a tool was given of these arguments of the model's, and what the model was told."""
    taken: list[Any] = []

    def take(value: Any) -> None:
        taken.append(value)

    agent = agent_of(call("f", **arguments), "done", tools=[tool], tool_context={"take": take})
    result = agent.run("go").messages[2].tool_results[0]
    assert result.is_error is not bool(taken)
    return taken, result.text


def taking(annotation: Any, default: Any = ...) -> sa.Tool:
    """A tool ``f`` with one parameter of that type."""

    def f(value: Any, context: sa.ToolContext) -> str:
        context.values["take"](value)
        return "taken"

    f.__annotations__["value"] = annotation
    if default is not ...:
        f.__defaults__ = (default, None)
    return sa.tool(f)


HOW_MANY = {"description": "how many", "maximum": 5, "minimum": 1, "type": "integer"}


def test_b12_fields_of_pydantic_are_shown_and_kept_to() -> None:
    tool = taking(Annotated[int, pydantic.Field(ge=1, le=5, description="how many")])
    assert tool.schema["properties"] == {"value": HOW_MANY}
    assert tool.schema["required"] == ["value"]
    assert given(tool, value="3") == ([3], "taken")
    assert given(tool, value=99) == (
        [],
        "Invalid arguments: Input should be less than or equal to 5 - at `$.value`",
    )


def test_b12_a_field_may_stand_as_the_default() -> None:
    tool = taking(int, pydantic.Field(default=2, ge=1, le=5, description="how many"))
    assert tool.schema["properties"] == {"value": {**HOW_MANY, "default": 2}}
    assert tool.schema["required"] == []
    assert given(tool) == ([2], "taken")
    assert given(tool, value=0)[0] == []
    assert taking(int, pydantic.Field(ge=1)).schema["required"] == ["value"]
    made = taking(list[int], pydantic.Field(default_factory=list))
    assert given(made) == ([[]], "taken")


def test_b12_a_text_beside_the_type_describes_it() -> None:
    described = {"type": "integer", "description": "how many"}
    assert taking(Annotated[int, "how many"]).schema["properties"]["value"] == described
    in_words = Annotated[int, msgspec.Meta(description="how many")]
    assert taking(in_words).schema["properties"]["value"] == described


def test_b12_what_pydantic_says_deep_inside_a_type_is_kept_to() -> None:
    tool = taking(list[Annotated[int, pydantic.Field(gt=0)]])
    assert given(tool, value=[1, "2"]) == ([[1, 2]], "taken")
    assert given(tool, value=[1, 0])[1] == (
        "Invalid arguments: Input should be greater than 0 (at 1) - at `$.value`"
    )
    assert given(taking(Point), value={"x": -1})[0] == []
    assert given(taking(Point), value={"x": 1})[0] == [Point(1)]
    checked = taking(Annotated[str, pydantic.AfterValidator(str.upper)])
    assert given(checked, value="a")[0] == ["A"]


@pytest.mark.parametrize(
    ("annotation", "sent", "taken"),
    [
        (Cat | Dog, {"name": "Rex"}, Dog(name="Rex")),
        (Cat | Dog | None, {"lives": 9}, Cat(lives=9)),
        (Cat | Dog | None, None, None),
        (list[Cat | Dog], [{"lives": 9}, {"name": "Rex"}], [Cat(lives=9), Dog(name="Rex")]),
        (Point | Label, {"text": "a"}, Label("a")),
        (Path, "a/b", Path("a/b")),
        (list[Path], ["a"], [Path("a")]),
        (datetime.date | str, "2026-11-22", datetime.date(2026, 11, 22)),
        (datetime.date | str, "soon", "soon"),
        (str | datetime.date, "soon", "soon"),
        (pydantic.PositiveInt, 3, 3),
        (datetime.timedelta, "PT5S", datetime.timedelta(seconds=5)),
    ],
)
def test_b12_types_that_people_write_are_taken(annotation: Any, sent: Any, taken: Any) -> None:
    tool = taking(annotation)
    assert tool.schema["properties"]["value"]
    assert given(tool, value=sent) == ([taken], "taken")


def test_b12_models_of_a_union_are_described_once() -> None:
    schema = taking(Cat | Dog).schema
    references = [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert schema["properties"]["value"]["anyOf"] == references
    assert set(schema["$defs"]) == {"Cat", "Dog"}


@pytest.mark.parametrize(
    ("annotation", "sent", "taken"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], ' {"a": 1}', {"a": 1}),
        (Label, '{"text": "a"}', Label("a")),
        (list[int] | None, "[1]", [1]),
        # These take the text itself.
        (str, "[1, 2]", "[1, 2]"),
        (str | list[int], "[1, 2]", "[1, 2]"),
    ],
)
def test_b12_a_list_may_come_as_json_text(annotation: Any, sent: str, taken: Any) -> None:
    assert given(taking(annotation), value=sent) == ([taken], "taken")


def test_b12_text_that_is_no_such_list_is_refused_as_it_came() -> None:
    for sent in ("[1, 2", '["a"]', "1, 2"):
        _, told = given(taking(list[int]), value=sent)
        assert told == "Invalid arguments: Expected `array`, got `str` - at `$.value`"


def test_b12_annotations_may_name_what_the_function_around_them_defines() -> None:
    @dataclasses.dataclass
    class Local:
        n: int

    @sa.tool
    def f(value: Local, context: sa.ToolContext) -> str:
        context.values["take"](value)
        return "taken"

    assert given(f, value={"n": 1})[0] == [Local(1)]

    def g(value: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    with pytest.raises(sa.ConfigurationError, match="names something that is not there"):
        sa.tool(g)


class Shop:
    def __init__(self, prices: dict[str, int]) -> None:
        self.prices = prices

    @sa.tool(name="f")
    def price(self, of: str) -> int:
        """What something costs."""
        return self.prices[of]

    @classmethod
    @sa.tool
    def kind(cls, n: int) -> str:
        """What it is."""
        return f"{cls.__name__} {n}"


def test_b12_a_method_is_a_tool_of_its_object() -> None:
    cheap, dear = Shop({"tea": 1}), Shop({"tea": 9})
    assert list(cheap.price.schema["properties"]) == ["of"]
    assert cheap.price(of="tea") == cheap.price("tea") == 1
    for shop, cost in ((cheap, "1"), (dear, "9")):
        result = agent_of(call("f", of="tea"), "done", tools=[shop.price]).run("go")
        assert result.messages[2].tool_results[0].text == cost
    result = agent_of(call("kind", n=2), "done", tools=[Shop.kind]).run("go")
    assert result.messages[2].tool_results[0].text == "Shop 2"
    with pytest.raises(
        sa.ConfigurationError, match=r"'f' is a method of Shop; .* Shop\(…\)\.price"
    ):
        agent_of(tools=[Shop.price])


def test_b12_what_neither_can_read_is_said_with_the_parameters_name() -> None:
    for annotation in (Shop, list[Shop], Annotated[Shop, pydantic.Field()]):
        with pytest.raises(sa.ConfigurationError, match="'f': 'value' cannot be described"):
            taking(annotation)
    mixed = list[Annotated[int, msgspec.Meta(ge=1)]]
    with pytest.raises(sa.ConfigurationError, match=r"mixes msgspec\.Meta"):
        taking(Annotated[mixed, pydantic.Field(min_length=1)])


def test_b12_meta_beside_a_type_that_pydantic_reads_is_kept_to() -> None:
    tool = taking(Annotated[list[Path], msgspec.Meta(max_length=1, description="where")])
    assert tool.schema["properties"]["value"]["maxItems"] == 1
    assert tool.schema["properties"]["value"]["description"] == "where"
    assert given(tool, value=["a", "b"])[0] == []


def test_a_default_that_json_has_is_shown() -> None:
    assert taking(Path, Path("a")).schema["properties"]["value"]["default"] == "a"
    assert taking(int, 3).schema["properties"]["value"]["default"] == 3
    assert given(taking(Path, Path("a")))[0] == [Path("a")]


def test_a_schema_that_is_there_already_makes_a_tool() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }

    async def forecast(context: sa.ToolContext, **arguments: Any) -> str:
        context.values["take"](arguments)
        return "sun"

    tool = sa.Tool.from_schema("f", "Look ahead.", schema, forecast, timeout=5, idempotent=True)
    assert (tool.schema, tool.description, tool.timeout, tool.run_on) == (
        schema,
        "Look ahead.",
        5,
        "loop",
    )
    assert given(tool, city="Rome", days=2) == ([{"city": "Rome", "days": 2}], "sun")
    assert "missing required field `city`" in given(tool, days=2)[1]
    assert "unknown field `when`" in given(tool, city="Rome", when="now")[1]
    with pytest.raises(sa.ConfigurationError, match="a tool's schema is that of an object"):
        sa.Tool.from_schema("f", "", {"type": "string"}, forecast)


def test_extract_reads_what_tools_read() -> None:
    animal = agent_of(call("submit", value={"name": "Rex"})).extract("which?", Cat | Dog)  # type: ignore[arg-type]
    assert animal == Dog(name="Rex")
    many = agent_of(call("submit", value='[{"lives": 9}]')).extract("which?", list[Cat | Dog])
    assert many == [Cat(lives=9)]
    count = Annotated[int, pydantic.Field(ge=1)]
    agent = agent_of(call("submit", value=0), call("submit", "c2", value=1))
    assert agent.extract("how many?", count) == 1  # type: ignore[arg-type]
