"""``{name}`` in a message: what the model is sent, and what people see."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.messages import Field, brief_of, fields_of, filled, message_of
from sagents_nb.transcript import markdown

FRAME = Field("df", "500 rows × 6 columns", "DataFrame, 500 rows\n- a: int64", appended=True)
NUMBER = Field("n", "3", "3")
KNOWN = {"df": FRAME, "n": NUMBER}
TYPED = "Plot {df} {n} times, {{so}} {unknown}."


def test_the_model_is_sent_what_the_names_stand_for_and_people_see_what_was_typed() -> None:
    message = message_of(TYPED, KNOWN)
    asked = "Plot `df` 3 times, {so} {unknown}.\n\n`df` is a DataFrame, 500 rows\n- a: int64"
    assert message.text == asked
    assert message.shown.text == TYPED
    assert fields_of(message) == [FRAME, NUMBER]
    assert brief_of(fields_of(message)) == "with df: 500 rows × 6 columns, n: 3"


def test_only_what_the_message_names_is_kept_with_it() -> None:
    assert fields_of(message_of("{n}", KNOWN)) == [NUMBER]
    assert filled("No braces", KNOWN) == "No braces"


def test_other_parts_are_seen_by_both() -> None:
    image = sa.ImagePart("QUFB", "image/png")
    message = message_of("{n}", KNOWN, [image])
    assert message.parts[1] == message.shown.parts[1] == image


@pytest.mark.parametrize("kept", [None, 3, [1], [{"name": "n"}], "x"])
def test_metadata_of_others_with_such_a_name_are_no_fields(kept: Any) -> None:
    assert fields_of(sa.Message.user("Hi", fields=kept)) == []


def test_a_transcript_says_in_a_line_what_they_stood_for() -> None:
    odd = Field("n", "3\u200b", "3")
    assert markdown([message_of("{n}?", {"n": odd})]) == "> {n}?\n> \n> (with n: 3\\u200b)"
