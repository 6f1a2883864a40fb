"""Requests in plain words: a text after a colon, one word for another, code in a block."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask

FRAMES = {"t": pd.DataFrame({"x": [10.25, 10.25, 9.5], "g": ["a", "b", "b"]})}


def test_the_colon_before_a_text_is_no_part_of_it() -> None:
    answer = ask("Write to /notes/a.md with the text: sample 1", frames=FRAMES)
    assert answer.files == {"/notes/a.md": "sample 1"}


def test_one_word_is_replaced_by_another_without_quotes() -> None:
    first = "Write to /notes/a.md with the text: hello you"
    answer = ask(first, "Replace hello by bye in /notes/a.md", "Read /notes/a.md", frames=FRAMES)
    assert "edit_file" in answer.calls
    assert answer.text.endswith("bye you")


@pytest.mark.parametrize("lead", ["Run this code:", "Run the following code:", "Execute this:"])
def test_the_code_of_a_block_is_run_where_it_is_asked_for(lead: str) -> None:
    answer = ask(f"{lead}\n```python\nx = 5\nprint(x)\n```", frames=FRAMES)
    assert (answer.text, answer.approved) == ("5", ["x = 5\nprint(x)"])


def test_of_two_blocks_none_is_run() -> None:
    block = "```\nprint(2)\n```"
    assert ask(f"Run this code:\n{block}\n{block}", frames=FRAMES).approved == []


def test_a_half_is_rounded_up_as_it_is_written() -> None:
    text = ask("What is the highest x in {t}?", frames=FRAMES).text
    assert "10.3" in text
    text = ask("How many different g are there in {t} with x over 9?", frames=FRAMES).text
    assert text == "`g` with `x` over 9 has 2 different values. Each has at least one such row."


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        (["Which g has the highest average x in {t}?", "plot that"], "bar chart: average x by g"),
        (["average x by g in {t}", "plot it as bars"], "bar chart: average x by g"),
        (["plot mean x by g in {t}", "now as a pie"], "pie plot: average x by g"),
        (
            ["how many rows per g in {t}", "show that as a bar chart"],
            "bar chart: number of rows by",
        ),
        (["average x in {t}", "plot it by g"], "bar chart: average x by g"),
    ],
)
def test_what_was_told_is_drawn(turns: list[str], shown: str) -> None:
    chart, title = shown.split(": ")
    answer = ask(*turns, frames=FRAMES)
    assert f"The {chart} shows: {title}" in answer.text
    assert "plt" in answer.approved[-1]


def test_what_is_no_groups_is_not_drawn_as_something_else() -> None:
    answer = ask("What is the average x in {t}?", "plot that", frames=FRAMES)
    assert "I draw what groups come to" in answer.text
    assert answer.approved == []


def test_a_file_is_replaced_where_that_is_said_and_told() -> None:
    first = "Write to /notes/a.md with the text: hello you"
    answer = ask(first, "Overwrite /notes/a.md with 'bye'", frames=FRAMES)
    assert answer.files == {"/notes/a.md": "bye"}
    assert answer.text == "I replaced /notes/a.md."
