"""A history that OpenAI's or Anthropic's SDK made is a prompt and a state, with nothing lost."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.foreign_messages import messages_from
from tests.talking import agent_of

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CUT = {"name": "add", "arguments": "{"}
DEEP = {"name": "add", "arguments": "[" * 3000}
NESTED = {"name": "add", "input": {"a": reduce(lambda inner, _: [inner], range(3000), [])}}
CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Add."}]},
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [CALL, CALL | {"id": "c2"}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
    {"role": "tool", "tool_call_id": "c2", "content": "2"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Again."},
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "Add."}]},
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
    {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "1"},
    {"type": "function_call_output", "call_id": "c2", "output": "2"},
    {
        "type": "message",
        "id": "m1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    },
]
TEXT = {"type": "text", "text": "1"}
BLOCKS: list[dict[str, Any]] = [
    {"role": "user", "content": "Add."},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
            {"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [{"type": "text", "text": "1"}],
            },
            {"type": "text", "text": "Go on."},
        ],
    },
]


def told(messages: list[sa.Message]) -> list[tuple[str, str]]:
    """The role of each, and its text or the calls and results that it has."""
    said = []
    for message in messages:
        calls = ", ".join(f"{c.name}({c.arguments})" for c in message.tool_calls)
        results = ", ".join(f"{r.name}: {r.text}" for r in message.tool_results)
        said.append((message.role, " ".join(filter(None, (message.text, calls, results)))))
    return said


def test_chat_completions_are_read_with_their_calls_and_results() -> None:
    assert told(messages_from(CHAT)) == [
        ("system", "Be brief."),
        ("user", "Add."),
        ("assistant", "add({'a': 1}), add({'a': 1})"),
        ("tool", "add: 1, add: 2"),
        ("assistant", "Done."),
        ("user", "Again."),
    ]


def test_items_of_responses_are_turns() -> None:
    messages = messages_from(RESPONSES)
    assert told(messages) == [
        ("user", "Add."),
        ("assistant", "add({'a': 1}), add({})"),
        ("tool", "add: 1, add: 2"),
        ("assistant", "Done."),
    ]
    assert [m.stop_reason for m in messages] == [None, "tool_use", None, "end_turn"]


def test_blocks_of_anthropic_are_parts_and_results_come_before_what_is_said() -> None:
    messages = messages_from(BLOCKS)
    assert told(messages) == [
        ("user", "Add."),
        ("assistant", "I add. add({'a': 1})"),
        ("tool", "add: 1"),
        ("user", "Go on."),
    ]
    assert messages[1].parts[0] == sa.ThinkingPart("Hm.", "s1", "anthropic")


@pytest.mark.parametrize("history", [CHAT, BLOCKS], ids=["OpenAI", "Anthropic"])
def test_a_run_goes_on_with_it_as_prompt_and_as_state(history: list[dict[str, Any]]) -> None:
    agent = agent_of("As you like.", "As you like.")
    assert agent.run(history).text == "As you like."
    state = sa.State(messages=history[:-1])
    asked = agent.run("Go on.", state)
    assert asked.text == "As you like."
    assert [m.role for m in asked.state.messages[:2]] == [
        m.role for m in messages_from(history)[:2]
    ]
    assert sa.State().add_messages(history[:1]).messages[0].text


def test_what_the_sdks_give_is_read_as_it_is() -> None:
    openai = pytest.importorskip("openai.types.chat")
    anthropic = pytest.importorskip("anthropic.types")
    answer = openai.ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": None, "tool_calls": [CALL]}
    )
    blocks = [
        anthropic.TextBlock(type="text", text="I add."),
        anthropic.ToolUseBlock(type="tool_use", id="c1", name="add", input={"a": 1}),
    ]
    assert told(messages_from([answer])) == [("assistant", "add({'a': 1})")]
    mixed = {"role": "assistant", "content": blocks}
    assert told(messages_from([mixed])) == [("assistant", "I add. add({'a': 1})")]


def test_a_session_writes_what_is_read_again() -> None:
    state = sa.State(messages=CHAT[:-2])
    session = sa.Session(agent_of("Done."), state=state)
    session.retry().result()
    written = session.to_openai()
    assert [m["role"] for m in written] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert written[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    assert told(messages_from(written)) == told(list(session.messages))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"role": "assistant", "tool_calls": [{"id": "c1"}]}, "'function'"),
        ({"role": "tool", "content": "1"}, "'tool_call_id'"),
        (
            {"role": "assistant", "tool_calls": [CALL | {"function": CUT}]},
            "Message 2 cannot be read",
        ),
        ({"role": "assistant", "tool_calls": [CALL | {"id": 5}]}, "is text, not 5"),
        ({"role": "user", "content": "x", "colour": "red"}, "'colour'"),
        ({"role": "robot", "content": "x"}, "'robot'"),
        ({"role": "user", "content": [{"type": "hologram"}]}, "hologram"),
        ({"role": "user", "content": 5}, "Message 2 cannot be read"),
        ({"role": "user"}, "'content'"),
        *(
            ({"role": "assistant", "content": [block]}, "Message 2 cannot be read .*Expected `str`")
            for odd in (None, 5, [], {})
            for block in (
                {"type": "thinking", "thinking": odd, "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": odd, "input": {}},
            )
        ),
        *(
            ({"role": "assistant", "tool_calls": [CALL | {"function": named}]}, "Expected `str`")
            for named in ({"name": odd, "arguments": "{}"} for odd in (None, 5, {}))
        ),
        (
            {"role": "assistant", "tool_calls": [CALL | {"function": DEEP}]},
            "Message 2 cannot be read: its data are nested too deep",
        ),
        ({"type": "function_call", "call_id": "c1", **DEEP}, "nested too deep"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", **NESTED}]},
            "nested too deep",
        ),
    ],
)
def test_what_cannot_be_read_is_named(message: dict[str, Any], why: str) -> None:
    history = [{"role": "user", "content": "a"}, message]
    for take in (lambda: agent_of("x").run(history), lambda: sa.State(messages=history)):  # type: ignore[arg-type]
        with pytest.raises(sa.ConfigurationError, match=why) as refused:
            take()
        assert "\n" not in str(refused.value)
