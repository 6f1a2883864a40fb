"""A recorded answer streams in the pieces in which it came."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from sagents_nb.models.replay import Shape, deltas_of, pieces, streamed
from tests.session.hours import Hours


def collect(message: sa.Message, shape: str, paced: bool = False) -> list[Delta]:
    async def run() -> list[Delta]:
        return [delta async for delta in streamed(message, shape, paced=paced)]

    return asyncio.run(run())


def noted(deltas: list[Any]) -> str:
    shape = Shape()
    for delta in deltas:
        shape.add(delta)
    return shape.text()


arguments = st.dictionaries(st.text(), st.integers(-9, 9) | st.text(), max_size=3)
parts = st.lists(
    st.text(min_size=1).map(sa.TextPart)
    | st.text(min_size=1).map(sa.ThinkingPart)
    | st.builds(sa.ToolCall, st.text(min_size=1), st.text(min_size=1), arguments),
    max_size=5,
)


@given(parts, st.integers(1, 7))
def test_the_deltas_are_those_of_the_recording(found: list[Any], size: int) -> None:
    message = sa.Message("assistant", tuple(found))

    def split(text: str) -> list[str]:
        return [text[i : i + size] for i in range(0, len(text), size)]

    deltas = list(deltas_of(message, split))
    assert collect(message, noted(deltas)) == deltas


@given(parts, st.text(alphabet="tkca0123456789@* x-", max_size=60))
def test_whatever_the_shape_says_the_texts_are_those_of_the_message(
    found: list[Any], shape: str
) -> None:
    message = sa.Message("assistant", tuple(found))
    told: dict[type, str] = {TextDelta: "", ThinkingDelta: "", ToolCallDelta: ""}
    for delta in collect(message, shape):
        told[type(delta)] += delta.text
    calls = "".join(msgspec.json.encode(call.arguments).decode() for call in message.tool_calls)
    assert told == {TextDelta: message.text, ThinkingDelta: message.thinking, ToolCallDelta: calls}


def test_a_shape_that_claims_a_lot_takes_no_memory() -> None:
    assert len(pieces("t1*999999 " * 10_000)) <= 500_000


def test_plain_text_counts_as_text(hours: Hours, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sagents_nb.models.replay.time", hours)
    assert noted(["Hello", ", ", "you"]) == "t5 t2 t3"
    assert noted(["abcd"] * 120) == "t4*120"


@pytest.mark.parametrize("paced", [True, False])
def test_pauses_are_kept_only_if_they_are_wanted(
    paced: bool, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.models.replay.time", hours)
    monkeypatch.setattr("sagents_nb.models.replay.asyncio", hours)
    shape = Shape()
    shape.add("first")
    hours.pass_by(0.1)
    shape.add("second")
    assert len(collect(sa.Message.assistant("firstsecond"), shape.text(), paced)) == 2
    assert hours.slept == [0.1] * paced
