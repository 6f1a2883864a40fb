from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

import sagents_nb as sa

pydantic = pytest.importorskip("pydantic")


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    unit: str


class Range(msgspec.Struct):
    low: int
    high: int


class City(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    name: str
    people: int = pydantic.Field(ge=0)


@sa.tool
def everything(
    place: str,
    days: Annotated[int, Meta(ge=1, le=14, description="How far ahead.")],
    unit: Literal["C", "F"] = "C",
    at: Point | None = None,
    options: Options | None = None,
    span: Range | None = None,
    tags: list[str] = [],  # noqa: B006
    city: City | None = None,
) -> str:
    """Look at everything.

    And more of it.

    Args:
        place: Where to look.
        unit: Of the temperature.
    """
    return f"{place} {days} {unit} {at} {options} {span} {tags} {city}"


def schema_of(name: str) -> Any:
    return everything.schema["properties"][name]


def test_what_has_no_default_is_required() -> None:
    assert everything.schema["type"] == "object"
    assert everything.schema["required"] == ["place", "days"]
    assert everything.schema["additionalProperties"] is False


def test_constraints_and_choices_reach_the_schema() -> None:
    assert schema_of("days") == {
        "type": "integer",
        "minimum": 1,
        "maximum": 14,
        "description": "How far ahead.",
    }
    assert schema_of("unit")["enum"] == ["C", "F"]
    assert schema_of("unit")["default"] == "C"


def test_descriptions_come_from_the_docstring() -> None:
    assert everything.description == "Look at everything.\n\nAnd more of it."
    assert schema_of("place")["description"] == "Where to look."
    assert schema_of("unit")["description"] == "Of the temperature."


def test_structured_types_are_described_by_definitions() -> None:
    assert {"Point", "Options", "Range"} <= set(everything.schema["$defs"])
    assert everything.schema["$defs"]["Point"]["required"] == ["x"]


def test_arguments_arrive_as_the_annotated_types() -> None:
    checked = everything.arguments.check(
        {
            "place": "Oslo",
            "days": 2,
            "at": {"x": 1},
            "options": {"unit": "K"},
            "span": {"low": 1, "high": 2},
            "city": {"name": "Oslo", "people": 3},
        }
    )
    assert checked["at"] == Point(1, 0)
    assert checked["options"] == {"unit": "K"}
    assert checked["span"] == Range(1, 2)
    assert checked["city"] == City(name="Oslo", people=3)
    assert checked["tags"] == []


def test_a_default_list_is_not_shared_between_calls() -> None:
    first = everything.arguments.check({"place": "a", "days": 1})
    first["tags"].append("x")
    assert everything.arguments.check({"place": "a", "days": 1})["tags"] == []


def test_numbers_and_truth_may_come_as_text() -> None:
    @sa.tool
    def f(n: int, x: float, yes: bool) -> str:
        return ""

    assert f.arguments.check({"n": "10", "x": "1.5", "yes": "true"}) == {
        "n": 10,
        "x": 1.5,
        "yes": True,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing required field `place`"),
        ({"place": "a", "days": 0}, ">= 1.*days"),
        ({"place": "a", "days": "many"}, "days"),
        ({"place": "a", "days": 1, "unit": "K"}, "unit"),
        ({"place": 5, "days": 1}, "place"),
        ({"place": "a", "days": 1, "plaice": 1}, "unknown field `plaice`"),
        ({"place": "a", "days": 1, "city": {"name": "b", "people": -1}}, "people"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence_that_names_them(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=f"(?s)Invalid arguments: .*{said}"):
        everything.arguments.check(arguments)


@given(
    st.dictionaries(
        st.sampled_from(["place", "days", "unit", "at", "other"]),
        st.none() | st.integers() | st.text() | st.lists(st.integers()) | st.booleans(),
    )
)
def test_any_arguments_are_either_refused_or_make_the_function_run(given: dict[str, Any]) -> None:
    try:
        checked = everything.arguments.check(given)
    except ValueError:
        return
    assert 1 <= checked["days"] <= 14
    assert everything(**checked)


def test_the_context_parameter_is_left_out_wherever_it_stands() -> None:
    def first(ctx: sa.ToolContext, a: int) -> str:
        return ""

    def last(a: int, told: Annotated[sa.ToolContext, "x"]) -> str:
        return ""

    def optional(a: int, ctx: sa.ToolContext | None = None) -> str:
        return ""

    for function, name in ((first, "ctx"), (last, "told"), (optional, "ctx")):
        made = sa.tool(function)
        assert made.arguments.context_parameter == name
        assert list(made.schema["properties"]) == ["a"]


def test_methods_partials_and_callable_objects_are_tools_too() -> None:
    class Adder:
        def add(self, a: int, b: int) -> int:
            return a + b

        async def __call__(self, a: int) -> int:
            return a

    made = [
        sa.tool(Adder().add),
        sa.tool(name="two_more")(functools.partial(Adder().add, b=2)),
        sa.tool(name="same")(Adder()),
    ]
    assert [t.schema["required"] for t in made] == [["a", "b"], ["a"], ["a"]]


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    @sa.tool
    def now() -> str:
        return ""

    assert now.schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert now.arguments.check({}) == {}


def no_annotation(a) -> str:  # type: ignore[no-untyped-def]
    return ""


def many(*names: str) -> str:
    return ""


def options_of(**options: str) -> str:
    return ""


def before_the_slash(a: int, /) -> str:
    return ""


def of_an_unknown_type(a: Nowhere) -> str:  # type: ignore[name-defined] # noqa: F821
    return ""


def of_something_indescribable(a: object()) -> str:  # type: ignore[valid-type]
    return ""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_annotation, "'a' has no annotation"),
        (many, r"\*names"),
        (options_of, r"\*options"),
        (before_the_slash, "'a'.*slash"),
        (of_an_unknown_type, "Nowhere"),
        (of_something_indescribable, "cannot be described"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_when_it_is_decorated(
    function: Any, said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        sa.tool(function)
