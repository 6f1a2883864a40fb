from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.transcript import folded, markdown, run_summary, visible
from tests.talking import agent_of, call

CALL = sa.ToolCall("c1", "look", {"at": "sky"})


def conversation(result: sa.ToolResult | None) -> list[sa.Message]:
    said = [sa.Message.user("what?\nnow"), sa.Message.assistant("Let me see.", [CALL])]
    return [*said, sa.Message.tool([result])] if result else said


def test_a_conversation_reads_as_markdown() -> None:
    text = markdown(
        [*conversation(sa.ToolResult("c1", "look", "blue")), sa.Message.assistant("It is blue.")]
    )
    assert text == (
        "> what?\n> now\n\n"
        "Let me see.\n\n"
        "- `look(at='sky')` gave\n\n  ```text\n  blue\n  ```\n\n"
        "It is blue."
    )


def test_what_failed_and_what_waits_is_said() -> None:
    failed = markdown(conversation(sa.ToolResult("c1", "look", "clouds", is_error=True)))
    assert "- `look(at='sky')` failed" in failed
    assert markdown(conversation(None)).endswith("- `look(at='sky')` waits for a decision")
    broken = sa.Message("assistant", (sa.TextPart("Hal"),), error="The stream was cut.")
    assert markdown([broken]) == "Hal\n\n**The stream was cut.**"


def test_backticks_in_a_result_cannot_end_its_block() -> None:
    text = markdown(conversation(sa.ToolResult("c1", "look", "a\n````\nb")))
    assert "  `````text\n  a\n  ````\n  b\n  `````" in text


def test_long_results_and_arguments_are_cut() -> None:
    long = sa.ToolCall("c1", "look", {"at": "x" * 500})
    text = markdown(
        [
            sa.Message.assistant("", [long]),
            sa.Message.tool([sa.ToolResult("c1", "look", "y" * 5000)]),
        ]
    )
    assert "3,000 more characters" in text
    assert "x" * 61 not in text


@given(st.text())
def test_nothing_invisible_or_controlling_reaches_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    if text.isprintable():
        assert shown == text


def test_a_tool_name_that_a_model_made_up_is_made_visible_too() -> None:
    odd = sa.ToolCall("c1", "x\x1b[2J`y", {"\x07": "\x1b"})
    text = markdown([sa.Message.assistant("", [odd])])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("`") == 2


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "</pre>", "&amp;"])
def test_the_html_is_escaped_text(text: str) -> None:
    shown = folded(text, [sa.Message.user(text), sa.Message.assistant(text)])
    assert shown.count(html.escape(text)) == 3
    assert "<script" not in shown
    assert shown.count("</pre>") == 1


def test_the_summary_is_one_stable_line() -> None:
    messages = [*conversation(sa.ToolResult("c1", "look", "x")), sa.Message.assistant("y")]
    assert run_summary("completed", messages) == "Agent run completed: 2 turns, 1 tool call"
    assert run_summary("cancelled", []) == "Agent run cancelled: 0 turns"


def test_a_result_shows_its_summary_and_the_transcript_folded_under_it() -> None:
    def look() -> str:
        return "blue"

    result = agent_of(call("look"), "It is blue.", tools=[look]).run("what?")
    assert repr(result) == "Agent run completed: 2 turns, 1 tool call"
    shown = result._repr_mimebundle_()
    assert shown["text/plain"] == repr(result)
    assert shown["text/html"].startswith("<details><summary>Agent run completed")
    assert "It is blue." in shown["text/html"]
