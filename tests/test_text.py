"""Half characters: what stands for them, and what tells texts apart; and what else hides."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.text import (
    REPLACEMENT,
    brought_back,
    carried,
    digest,
    exact,
    logger_of,
    visible,
    whole,
    whole_data,
)

TEXT = st.text(st.characters(codec=None))  # any code point, halves of characters too
USED = TEXT.filter(lambda text: not re.search("[\U0010d800-\U0010dfff]", text))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | USED,
    lambda inner: st.lists(inner) | st.dictionaries(USED, inner),
)


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


@given(st.text())
def test_nothing_invisible_or_controlling_reaches_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    if text.isprintable():
        assert shown == text


def test_what_is_logged_moves_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    logger = logger_of("sagents_nb.test_text")
    try:
        raise ValueError("\x1b]0;mine\x07 \u202eevil")
    except ValueError:
        logger.warning("It said\n\x1b[2J%s", "\x9b2J", exc_info=True)
    assert "It said\n\\x1b[2J\\x9b2J" in caplog.text
    assert "\\x1b]0;mine\\x07 \\u202eevil" in caplog.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", caplog.text)


@given(DATA)
def test_what_goes_to_a_page_and_back_is_what_it_was(data: Any) -> None:
    shown = carried(data)
    json.dumps(shown, ensure_ascii=False).encode()  # as a message carries it
    assert brought_back(shown) == data
