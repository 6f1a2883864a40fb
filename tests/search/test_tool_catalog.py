"""Tools found by what they are for: in the same order each time, and better for what was asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.search.lexical import LexicalIndex
from sagents_nb.search.tool_catalog import MOST_QUERIES, ToolCatalog
from sagents_nb.search.vectors import VectorIndex
from sagents_nb.tools import ToolSpec


def spec(name: str, description: str, *parameters: str) -> ToolSpec:
    return ToolSpec(name, description, {"properties": {name: {} for name in parameters}})


TOOLS = [
    spec("tides", "When the tide is high.", "port"),
    spec("find_city", "Where a city is.", "name"),
    spec("order_lamp", "Order lamps.", "count", "colour"),
    spec("boil", "Boil water.", "litres"),
]


def found(catalog: ToolCatalog, query: str, **options: object) -> list[str]:
    return [hit.id for hit in catalog.search(query, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("When is high tide in Bergen?", "tides"),
        ("ordering 3 red lamps", "order_lamp"),
        ("which colours are there?", "order_lamp"),
        ("cities", "find_city"),
        ("I want some tea, boiling hot", "boil"),
    ],
)
def test_a_tool_is_found_by_its_name_description_and_parameters(query: str, first: str) -> None:
    assert found(ToolCatalog(TOOLS), query)[0] == first


@pytest.mark.parametrize("query", ["", "the and of", "?!", "xyzzy", '"', "a" * 10_000, "\0", "NOT"])
def test_where_nothing_fits_nothing_is_found(query: str) -> None:
    assert found(ToolCatalog(TOOLS), query) == []


@pytest.mark.spec("R4.1.2")
def test_those_below_the_minimum_share_of_the_best_score_are_left_out_and_equals_kept() -> None:
    catalog = ToolCatalog([spec("tide_a", "Tide."), spec("tide_b", "Tide."), *TOOLS])
    all_ = catalog.search("tide high port", min_score=0)
    assert all_[0].score == 1
    least = all_[-1].score
    assert len(catalog.search("tide high port", min_score=least)) == len(all_)
    assert len(catalog.search("tide high port", min_score=least + 1e-9)) < len(all_)


@pytest.mark.spec("R4.4.7")
def test_known_tools_are_left_out_and_others_take_their_places() -> None:
    catalog = ToolCatalog([spec(f"tide_{n}", "Tide.") for n in range(9)])
    assert found(catalog, "tide", limit=2) == ["tide_0", "tide_1"]
    assert found(catalog, "tide", limit=2, without=["tide_0"]) == ["tide_1", "tide_2"]
    assert found(catalog, "tide", without=["nobody"], limit=1) == ["tide_0"]


@pytest.mark.spec("R4.1.12")
def test_a_tool_that_answered_a_question_is_found_for_others_like_it() -> None:
    catalog = ToolCatalog(TOOLS)
    assert found(catalog, "fancy a cuppa") == []
    catalog.answered("Please make me a cuppa", "boil")
    assert found(catalog, "fancy a cuppa") == ["boil"]
    catalog.answered("cuppa", "nobody")


def test_of_each_tool_the_newest_questions_are_remembered() -> None:
    catalog = ToolCatalog(TOOLS)
    for number in range(MOST_QUERIES + 1):
        catalog.answered(f"word{number}", "boil")
    assert found(catalog, "word0") == []
    assert found(catalog, f"word{MOST_QUERIES}") == ["boil"]


@given(st.permutations(TOOLS), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_order_in_which_tools_were_given_does_not_matter(
    tools: Sequence[ToolSpec], query: str
) -> None:
    assert found(ToolCatalog(tools), query) == found(ToolCatalog(TOOLS), query)


def test_several_threads_may_ask_at_once() -> None:
    catalog = ToolCatalog(TOOLS)
    wrong: list[object] = []

    def ask() -> None:
        for number in range(50):
            catalog.answered(f"cuppa {number}", "boil")
            if found(catalog, "high tide")[0] != "tides":
                wrong.append(number)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# by meaning


def embedded(texts: Sequence[str]) -> list[list[float]]:
    """A vector of two subjects: water, and anything else."""
    wet = ("water", "tea", "tide", "boil", "kettle")
    return [[float(any(word in text.lower() for word in wet)), 0.1] for text in texts]


def test_what_says_it_in_other_words_is_found_by_its_meaning() -> None:
    catalog = ToolCatalog(TOOLS, embedded)
    by_words = [hit.id for hit in catalog.search("put the kettle on")]
    by_meaning = [hit.id for hit in catalog.search_by_meaning("put the kettle on", limit=2)]
    assert by_words == []
    assert set(by_meaning) == {"tides", "boil"}


def test_who_is_found_both_ways_comes_first() -> None:
    catalog = ToolCatalog(TOOLS, embedded)
    assert catalog.search_by_meaning("boil water for tea")[0].id == "boil"


@pytest.mark.parametrize("given", [[[1.0]], [1.0, 2.0], [[float("nan")], [1.0]]])
def test_an_embedder_that_gives_no_vectors_is_told_so(given: list[object]) -> None:
    with pytest.raises(sa.ConfigurationError, match="a vector of numbers for each"):
        VectorIndex(lambda texts: given, ["a", "b"], ["a", "b"])


def test_texts_put_again_take_the_place_of_those_before() -> None:
    index = LexicalIndex({"text": 1})
    index.put({"a": {"text": "tide"}})
    index.put({"a": {"text": "lamp"}})
    assert index.search("tide", 5) == []
    assert [hit.id for hit in index.search("lamps", 5)] == ["a"]
