from __future__ import annotations

from typing import Any

import pytest

from sagents_nb.search.words import MOST_WORDS, query_words, schema_words, spaced


def test_what_says_nothing_is_not_looked_for() -> None:
    assert query_words("Could you please show me what it is?") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wie hoch ist die Flut in Tromsø?", ["wie", "hoch", "ist", "die", "flut", "tromsø"]),
        ("東京の天気", ["東京の天気"]),
        ('"quoted" OR NEAR(a b) -- *', ["quoted", "near", "b"]),
        ("", []),
        ("Oslo oslo OSLO", ["oslo"]),
    ],
)
def test_words_of_any_language_and_of_any_marks(text: str, words: list[str]) -> None:
    assert query_words(text) == words


def test_of_a_long_text_the_first_words_are_looked_for() -> None:
    assert len(query_words(" ".join(f"w{n}" for n in range(10_000)))) == MOST_WORDS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getWeather", "get Weather"),
        ("math.toolkit.sum_of", "math toolkit sum of"),
        ("HTTP", "HTTP"),
    ],
)
def test_names_of_code_are_words(name: str, words: str) -> None:
    assert spaced(name) == words


def test_a_schema_says_its_names_descriptions_and_choices_at_any_depth() -> None:
    inner = {"type": "object", "properties": {"sea_level": {"description": "in metres"}}}
    schema = {
        "properties": {
            "unit": {"enum": ["metre", 3]},
            "at": {"type": "array", "items": inner},
            "port": {"anyOf": [{"description": "its name"}, {"type": "null"}]},
        }
    }
    said = schema_words(schema)
    for words in ("unit", "metre", "sea level", "in metres", "its name"):
        assert words in said


@pytest.mark.parametrize("odd", [None, 3, [], {"properties": 3}, {"enum": 3}, {"anyOf": 1}])
def test_a_schema_that_is_none_says_nothing(odd: Any) -> None:
    assert schema_words(odd) == ""


def test_a_schema_without_an_end_is_read_to_a_depth() -> None:
    endless: dict[str, Any] = {"properties": {}}
    endless["properties"]["again"] = endless
    assert schema_words(endless).split() == ["again"] * 4
