"""Searching a text as a whole first never misses a line."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sagents_nb.files import Expression, FileError, split_lines
from tests.talking import PATIENCE

PIECES = (
    r"a b \s \S . [^a] [ab] ^ $ \b \B a* b+ \s* (a|b) (b)\1 a{1,2} .* \. b? \W+ a*? a*+ (?=a) "
    r"(?!\s) \A \Z (?<!a) (?i) | \w+ [*+] (?:a)"
)
pieces = st.sampled_from(PIECES.split())
patterns = st.lists(pieces, min_size=1, max_size=5).map("".join)
texts = st.text(alphabet="ab \n\r.\t", max_size=30)


@pytest.mark.spec("S1.7.5")
@settings(max_examples=400)
@given(patterns, texts, st.booleans())
@example("a$", "a\r\nb", False)
@example("a$", "b\na\r", False)
@example("a(?!\\s)", "a\nb", False)
@example("a\\s*+$", "a\n b", False)
@example("\\Ab", "a\nb", False)
def test_what_is_in_a_line_may_be_in_the_text(source: str, text: str, ignore_case: bool) -> None:
    try:
        expression = Expression(source, ignore_case=ignore_case)
    except FileError:
        return
    lines = [line.removesuffix("\r") for line in split_lines(text)]
    if expression.lines_found(lines):
        assert expression.may_be_in(text)


@pytest.mark.parametrize("source", ["needle", r"\bneedle\d+$", "(?i)NEEDLE", "[xyz]{3}", r"a\.b"])
def test_plain_patterns_are_looked_for_in_the_whole(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.files.patterns.WHOLE_SECONDS", PATIENCE)
    assert not Expression(source).may_be_in("nothing\nof it\n" * 100)


def test_what_is_quick_on_lines_and_slow_on_a_text_is_searched_by_line() -> None:
    # There are more ways to divide a run of such characters than any machine can try in the
    # text, and few in a line.
    expression = Expression(r"([a\s]|[a\s]{2})+c\d")
    text = "aaa\n" * 100 + "c"
    assert expression.may_be_in(text)
    assert expression.may_be_in("also this")
    assert expression.lines_found(split_lines(text)) == []
