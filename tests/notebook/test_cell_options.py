"""What may stand behind ``%%agent``."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.error import UsageError

from sagents_nb.notebook.cell_options import OPTIONS, names, parse


@pytest.mark.parametrize(
    "line", ["What is in lakes?", "What's new?", "Hello", "--new Show me new rows", "Plot --new it"]
)
def test_a_prompt_on_the_line_of_options_is_told_its_place(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert str(caught.value) == (
        "%%agent: only options stand on this line; write the prompt below it."
    )


def test_nothing_is_the_default() -> None:
    options = vars(parse(""))
    assert not any(options.values())
    assert set(options) == {
        *("new", "name", "model", "approve", "tools", "cell", "background", "plain", "raw"),
        "no_wait",
    }


def test_all_at_once() -> None:
    options = parse(
        "--new --name 'my talk' --model demo --approve a,b --tools f --background --plain --raw "
        "--no-wait"
    )
    assert (options.name, options.model, options.approve) == ("my talk", "demo", "a,b")
    assert options.new
    assert options.background
    assert options.plain
    assert options.raw
    assert options.no_wait


@pytest.mark.parametrize(
    "line", ["--bogus", "word", "--name", "--name 'open", "--model", "--new=3", "-x", "--help",
     "--cell --background"],
)  # fmt: skip
def test_an_error_is_one_sentence_that_says_what_is_wrong(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    text = str(caught.value)
    assert text.startswith("%%agent: ")
    assert "\n" not in text
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("--modle x", "--model"),
        ("--modle=x", "--model"),
        ("--new talk --bakground", "--background"),
        ("-name a", "--name"),
        ("raw", "--raw"),
    ],
)
def test_an_option_that_is_nearly_one_says_which(line: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"^%%agent: unrecognized .*; did you mean {meant}\?$"):
        parse(line)


def test_every_option_has_a_help_text() -> None:
    assert all(option["help"] for option in OPTIONS.values())


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, []),
        ("", []),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a, b ,,c d", ["a", "b", "c", "d"]),
    ],
)
def test_names(value: Any, found: list[str]) -> None:
    assert names(value) == found


def test_an_option_is_written_out() -> None:
    with pytest.raises(UsageError, match="did you mean --name"):
        parse("--nam trip")
