"""Tools of a JSON Schema that was there before: what a model sends is checked by all of it."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.json_schema import JSONSchema
from tests.talking import call

PORT = {
    "type": "object",
    "properties": {
        "port": {"type": "string", "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
        "units": {"enum": ["m", "ft"]},
        "at": {"type": "array", "items": {"$ref": "#/$defs/hour"}, "maxItems": 3},
    },
    "required": ["port"],
    "$defs": {"hour": {"type": "integer", "minimum": 0, "exclusiveMaximum": 24}},
}


def ran(arguments: dict[str, Any], schema: dict[str, Any] = PORT) -> tuple[Any, list[Any]]:
    """What the model read, and what the handler was given."""
    given: list[Any] = []
    tides = sa.Tool.from_schema("tides", "Tides.", schema, lambda **all: given.append(all))
    model = sa.ScriptedModel([call("tides", **arguments), "Done."])
    result = sa.Agent(model, tools=[tides], defaults=False).run("go")
    return result.tool_calls[0].result, given


@pytest.mark.spec("R4.4.5")
@pytest.mark.parametrize(
    "arguments",
    [{"port": "Bergen"}, {"port": "Bergen", "days": 7, "units": "m", "at": [0, 23]}, {"port": "B"}],
)
def test_what_the_schema_allows_reaches_the_handler_as_it_is(arguments: dict[str, Any]) -> None:
    result, given = ran(arguments)
    assert not result.is_error
    assert given == [arguments]


@pytest.mark.spec("R4.4.5", "R4.1.8")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing required field `port`"),
        ({"port": "bergen"}, "does not match"),
        ({"port": 3}, "'string' - at `$.port`"),
        ({"port": "B", "days": 8}, "maximum of 7 - at `$.days`"),
        ({"port": "B", "days": "many"}, "'integer' - at `$.days`"),
        ({"port": "B", "units": "miles"}, "['m', 'ft']"),
        ({"port": "B", "at": [1, 24]}, "`$.at[1]`"),
        ({"port": "B", "at": [1, 2, 3, 4]}, "$.at"),
    ],
)
def test_what_it_does_not_is_said_to_the_model_and_nothing_runs(
    arguments: dict[str, Any], said: str
) -> None:
    result, given = ran(arguments)
    assert result.is_error
    assert result.text.startswith("Invalid arguments: ")
    assert said in result.text
    assert given == []


def test_what_is_no_text_may_come_as_one() -> None:
    result, given = ran({"port": "B", "days": "3", "at": "[1, 2]"})
    assert not result.is_error
    assert given == [{"port": "B", "days": 3, "at": [1, 2]}]


def test_a_text_stays_one_where_texts_are_allowed() -> None:
    either = {"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}
    assert ran({"a": "3"}, either)[1] == [{"a": "3"}]


@pytest.mark.parametrize(
    "wrong", [{"type": "object", "properties": {"a": {"type": "text"}}}, {"type": "array"}]
)
def test_a_schema_that_is_none_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match="'tides'"):
        sa.Tool.from_schema("tides", "Tides.", wrong, lambda: None)


def test_a_schema_may_say_its_draft() -> None:
    old = "http://json-schema.org/draft-04/schema#"
    over = {"minimum": 3, "exclusiveMinimum": True}
    schema = {"$schema": old, "type": "object", "properties": {"a": over}}
    assert ran({"a": 3}, schema)[0].is_error
    assert not ran({"a": 4}, schema)[0].is_error


def test_a_pattern_cannot_hang_the_process() -> None:
    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    result, given = ran({"a": "a" * 40 + "!"}, slow)
    assert result.is_error
    assert given == []


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: Any) -> Any:
        raise AssertionError("it went to the network")

    monkeypatch.setattr("socket.socket.connect", connect)
    there = {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}
    result, given = ran({"a": 1}, there)
    assert "refers to what is not in it" in result.text
    assert given == []


def test_values_nested_too_deep_are_refused() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    nested = {"items": {"$ref": "#/$defs/nested"}}
    schema = {"properties": {"a": nested}, "$defs": {"nested": nested}}
    with pytest.raises(ValueError, match="nested too deeply"):
        JSONSchema(schema, "It").checked({"a": deep})


def test_names_of_a_pattern_are_checked_too() -> None:
    named = {
        "type": "object",
        "patternProperties": {"^n_": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert not ran({"n_a": 3}, named)[0].is_error
    assert ran({"n_a": "x"}, named)[0].is_error
