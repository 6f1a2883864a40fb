"""Histories that no provider would take become requests that all take."""

from __future__ import annotations

from typing import Any

import pytest

from sagents_nb.messages import (
    JsonPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from tests.models.loopback import MODELS, Provider, sent


@pytest.mark.parametrize("name", MODELS)
def test_broken_and_foreign_messages_are_not_sent(provider: Provider, name: str) -> None:
    history = [
        Message.user("hi"),
        Message("note", (TextPart("for people"),)),
        Message.assistant("", stop_reason="error"),
        Message.assistant(
            [ThinkingPart("t", "sig", "anthropic"), TextPart("partial")],
            [ToolCall("c9", "rm", {})],
            stop_reason="aborted",
        ),
        Message.tool([ToolResult("c9", "rm", "cancelled")]),
        Message.user("again"),
    ]
    sent(provider, name, history)
    raw = provider.requests[-1].raw.decode()
    assert "partial" in raw
    assert "again" in raw
    for absent in ("for people", "c9", "sig", "cancelled"):
        assert absent not in raw


def test_claude_is_sent_no_answer_of_thoughts_alone(provider: Provider) -> None:
    thought = ThinkingPart("Hm.", "signature", "anthropic")
    hidden = ProviderPart("anthropic", {"type": "redacted_thinking", "data": "…"})
    for blank in ([thought], [hidden], [thought, TextPart(" ")]):
        history = [Message.user("hi"), Message("assistant", tuple(blank), stop_reason="end_turn")]
        (only,) = sent(provider, "anthropic", history)["messages"]
        assert (only["role"], only["content"][0]["text"]) == ("user", "hi")
        (only,) = sent(provider, "anthropic", [*history, Message.user("So?")])["messages"]
        assert [block["text"] for block in only["content"]] == ["hi", "So?"]


@pytest.mark.parametrize("name", MODELS)
def test_what_json_cannot_carry_is_replaced_and_nothing_crashes(
    provider: Provider, name: str
) -> None:
    odd = "half \ud83d, whole \ud83d\ude00, nul \x00"
    history = [
        Message.user([TextPart(odd), JsonPart({"x": float("nan"), 1: {2}, "o": object})]),
        Message.assistant("", [ToolCall("c1", "f", {"n": 2**80, "s": odd})]),
        Message.tool([ToolResult("c1", "f", "")]),
        Message.assistant(""),
        Message.user(""),
        Message.tool([ToolResult("c1", "f", [])]),
    ]
    sent(provider, name, history, system=odd)
    raw = provider.requests[-1].raw.decode()
    assert "half \ufffd, whole 😀, nul \\u0000" in raw
    assert str(2**80) in raw


@pytest.mark.parametrize("name", MODELS)
def test_ids_and_names_that_no_provider_takes_are_replaced_the_same_in_call_and_result(
    provider: Provider, name: str
) -> None:
    id = "call|" + "x" * 100
    history = [
        Message.user("hi"),
        Message.assistant("", [ToolCall(id, "my tool.v2", {})]),
        Message.tool([ToolResult(id, "my tool.v2", "ok")]),
    ]
    sent(provider, name, history)
    raw = provider.requests[-1].raw.decode()
    assert "call|" not in raw
    assert "my_tool_v2" in raw
    assert raw.count(':"call_') == 2


@pytest.mark.parametrize("name", MODELS)
def test_a_request_extends_the_one_before_it(provider: Provider, name: str) -> None:
    """Append-only: the providers' caches and Claude's checks of thinking depend on it."""
    key = "input" if name == "openai" else "messages"
    before: list[Any] = []
    history: list[Message] = []
    for turn in range(5):
        history += [
            Message.user(f"question {turn}"),
            Message.assistant("hm", [ToolCall(f"c{turn}", "f", {"n": turn})]),
            Message.tool([ToolResult(f"c{turn}", "f", "ok")]),
            Message.assistant(f"answer {turn}"),
        ]
        now = sent(provider, name, history)[key]
        assert now[: len(before)] == before
        before = now
