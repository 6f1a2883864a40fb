"""A scripted model says one turn after the other, and how many there were when asked for more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import sagents_nb as sa


def test_an_endless_script_is_read_as_it_is_asked() -> None:
    read: list[int] = []

    def turns() -> Iterator[str]:
        for number in itertools.count():
            read.append(number)
            yield f"turn {number}"

    agent = sa.Agent(sa.ScriptedModel(turns()))
    assert read == []
    assert [agent.run("go on").text for _ in range(3)] == ["turn 0", "turn 1", "turn 2"]
    assert read == [0, 1, 2]


def test_a_script_that_an_iterator_ends_says_how_long_it_was() -> None:
    model = sa.ScriptedModel(iter(["only"]))
    assert sa.Agent(model).run("?").text == "only"
    with pytest.raises(sa.ModelError, match=r"The script has 1 turns, .* turn 2"):
        sa.Agent(model).run("?")
