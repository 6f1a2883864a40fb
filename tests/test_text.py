"""Half characters: what stands for them, and what tells texts apart that hold them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.text import REPLACEMENT, digest, exact, whole, whole_data

TEXT = st.text(st.characters(codec=None))  # any code point, halves of characters too


@given(TEXT)
def test_any_text_becomes_one_that_utf_8_takes(text: str) -> None:
    assert whole(whole(text).encode().decode()) == whole(text)


@given(st.text())
def test_whole_text_stays_as_it_is(text: str) -> None:
    assert whole(text) is text


def test_two_halves_are_one_character_and_one_is_a_mark() -> None:
    assert whole("\ud83d\ude00 \ude00\ud83d") == "😀 ??"
    assert whole("a\ud83d", REPLACEMENT) == "a\ufffd"


def test_keys_and_what_is_deep_in_data_become_whole() -> None:
    assert whole_data({"\udcff": [("\ud800", 1)], 2: None}) == {"?": [["?", 1]], "2": None}


@given(TEXT, TEXT)
def test_different_texts_have_different_bytes(one: str, other: str) -> None:
    assert (exact(one) == exact(other)) == (one == other)
    assert (digest(one) == digest(other)) == (one == other)
