from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb import Message
from sagents_nb.middleware.summarization import estimated_tokens
from tests.middleware.histories import answered, calling, user


@pytest.mark.spec("S1.5.2")
def test_the_estimate_is_the_mean_of_words_and_characters() -> None:
    # 3 words × 1.3 → 4, 13 characters / 4 → 4; and 4 for the message
    assert estimated_tokens(user("one two three")) == 8
    assert estimated_tokens(user("")) == 4


@pytest.mark.spec("S1.5.2")
def test_calls_results_and_images_have_their_price() -> None:
    text = estimated_tokens(user("saw a")) - 4
    assert estimated_tokens(answered("a")) == 4 + 10 + text
    assert estimated_tokens(calling("a")) > 4 + 10
    assert estimated_tokens(Message.user(sa.ImagePart(url="http://x/y.png"))) == 1004
    assert estimated_tokens(Message.user(sa.FilePart(url="http://x/y.pdf"))) == 14
    parts = sa.ToolResult("a", "look", [sa.ImagePart(url="u"), sa.TextPart("saw a")])
    assert estimated_tokens(Message.tool([parts])) == 4 + 10 + 1000 + text


@pytest.mark.spec("S1.5.2")
@given(st.text(), st.text())
def test_more_text_never_takes_fewer_tokens(text: str, more: str) -> None:
    assert estimated_tokens(user(text + more)) >= estimated_tokens(user(text))
    assert estimated_tokens(calling(text)) >= 14
