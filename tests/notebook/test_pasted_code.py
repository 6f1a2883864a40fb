"""A fenced block in a prompt is context: none of its lines is a step."""

from __future__ import annotations

import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_words_of_questions import FRAMES

pytestmark = pytest.mark.usefixtures("shell")

CODE = "total = staff['salary'].sum()\n\ncount the rows of staff\nwrite a report to /z.md"


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_no_line_of_it_is_a_step(fence: str) -> None:
    answer = ask_about(
        f"I tried this:\n{fence}python\n{CODE}\n{fence}\nWhat is the total salary in {{staff}}?",
        frames=FRAMES,
    )
    assert "The total `salary` is 27,000." in answer.text
    assert answer.files == {}
    assert "`staff` has" not in answer.text


def test_one_that_is_not_closed_goes_to_the_end() -> None:
    answer = ask_about(f"Explain this:\n```python\n{CODE}", frames=FRAMES)
    assert answer.text.startswith("I cannot do “Explain this”: none of my tools tells me that.")
    assert answer.calls == []


def test_it_alone_asks_for_nothing() -> None:
    answer = ask_about(f"```python\n{CODE}\n```", frames=FRAMES)
    assert answer.text.startswith("I take a code block as context")


@pytest.mark.parametrize("asked", ["Write this to /a.py:", "Save the following code as /a.py"])
def test_it_is_written_where_that_is_asked(asked: str) -> None:
    answer = ask_about(f"{asked}\n```python\nx = 1\n\nprint(x)\n```", frames=FRAMES)
    assert answer.files == {"/a.py": "x = 1\n\nprint(x)\n"}


def test_it_is_not_what_was_found() -> None:
    answer = ask_about(
        "What is the total salary in {staff}?\n```\nx\n```\nWrite it to /d.md", frames=FRAMES
    )
    assert "The total `salary` is 27,000." in answer.files["/d.md"]
