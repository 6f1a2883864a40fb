"""For which questions tools were of use is kept: the newest, and for each owner apart."""

from __future__ import annotations

import pytest

import sagents_nb as sa
from sagents_nb.store.tool_feedback import LONGEST, MOST
from tests.talking import in_threads


def test_of_each_tool_the_newest_are_kept_in_order(store: sa.ConversationStore) -> None:
    for n in range(MOST + 3):
        store.add_tool_feedback({"tides": [f"question {n}"]})
    store.add_tool_feedback({"tides": ["question 5"], "lamps": ["a", "b", "a"]})
    known = store.load_tool_feedback()
    assert known["lamps"] == ["a", "b"]
    assert len(known["tides"]) == MOST
    assert known["tides"][0] == "question 3"
    assert known["tides"][-2:] == [f"question {MOST + 2}", "question 5"]


def test_no_owner_knows_of_another(store: sa.ConversationStore) -> None:
    mine, theirs = store.scoped(sa.Scope(user=1)), store.scoped(sa.Scope(user=2))
    mine.add_tool_feedback({"tides": ["mine"]})
    assert theirs.load_tool_feedback() == store.load_tool_feedback() == {}
    theirs.add_tool_feedback({"tides": ["theirs"]})
    assert mine.load_tool_feedback() == {"tides": ["mine"]}


def test_nothing_is_lost_of_those_who_write_at_once(store: sa.ConversationStore) -> None:
    in_threads(12, lambda n: store.add_tool_feedback({"tides": [f"{n}"]}))
    assert sorted(store.load_tool_feedback()["tides"], key=int) == [str(n) for n in range(12)]


@pytest.mark.parametrize("text", ["\0 and \ud800", "x" * (LONGEST + 1)])
def test_any_text_can_be_kept(store: sa.ConversationStore, text: str) -> None:
    store.add_tool_feedback({"tides": [text]})
    assert store.load_tool_feedback() == {"tides": [text[:LONGEST]]}
