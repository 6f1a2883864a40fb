from __future__ import annotations

import enum
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.serialization import to_data
from tests.test_state import todos

# Text as models, tools and files give it: also what databases and encoders refuse.
ODD = ["\0", "\ud800", "\udfff", "\ud83d\ude00", "\u202e", "\u2066", "\ufffe", "\ufffe0000", "😀"]
texts = st.lists(
    st.text(st.characters(exclude_categories=()), max_size=5) | st.sampled_from(ODD), max_size=4
).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
data = st.dictionaries(texts, values, max_size=3)
content = (
    st.builds(sa.TextPart, texts)
    | st.builds(sa.ThinkingPart, texts, st.none() | texts, st.none() | texts, st.none() | data)
    | st.builds(sa.ImagePart, st.none() | texts, texts, st.none() | texts)
    | st.builds(sa.FilePart, st.none() | texts, texts, st.none() | texts, st.none() | texts)
    | st.builds(sa.JsonPart, values)
    | st.builds(sa.ProviderPart, texts, data)
)
calls = st.builds(sa.ToolCall, texts, texts, data, st.none() | texts)
results = st.builds(
    sa.ToolResult,
    texts,
    texts,
    texts | st.lists(content, max_size=3),
    st.booleans(),
    st.booleans(),
    data,
)
usages = st.builds(
    sa.Usage, *[st.integers(0, 10**9)] * 4, st.none() | st.floats(0, allow_nan=False)
)
messages = st.builds(
    sa.Message,
    st.sampled_from(["user", "assistant", "system", "tool"]) | texts,
    st.lists(content | calls | results, max_size=4).map(tuple),
    st.none() | usages,
    st.none() | st.sampled_from(["end_turn", "tool_use", "refusal", "error", "aborted"]),
    st.none() | texts,
    data,
)
requests = st.builds(sa.ActionRequest, texts, texts, data, st.none() | texts)
interrupts = st.builds(
    sa.Interrupt,
    st.sampled_from(["hitl", "subagent_hitl", "ask_user", "tool", "multiple", "halt"]),
    st.lists(requests, max_size=2).map(tuple),
    st.none() | texts,
    data,
    texts,
)
states = st.builds(
    sa.State,
    messages=st.lists(messages, max_size=4),
    todos=st.lists(todos, max_size=4, unique_by=lambda todo: todo.id or object()),
    metadata=data,
    interrupt=st.none() | interrupts,
)


def through_json(state: sa.State) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(state.export()))
    return loaded


def said(text: str) -> sa.State:
    return sa.State(messages=[sa.Message.user(text)])


@pytest.mark.spec("S1.10.1", "S1.10.2")
@given(states)
@example(said("\ud83d\ude00"))  # two lone surrogates, which json.loads would join
@example(said("\ufffe0000"))
@example(sa.State(metadata={"\0": math.inf, "\ufffeinf": "\ufffenan"}))
def test_any_state_comes_back_the_same_through_json(state: sa.State) -> None:
    restored = sa.State.restore(through_json(state))
    assert restored == state
    assert sa.State.restore(state.export()) == state
    assert restored.export()["state"] == state.export()["state"] == through_json(state)["state"]


@pytest.mark.spec("S1.10.1", "S1.10.3")
@given(states)
def test_an_export_is_what_any_database_and_any_parser_takes(state: sa.State) -> None:
    text = json.dumps(state.export(), ensure_ascii=False, allow_nan=False)
    assert text.encode().decode() == text, "SQLite refuses lone surrogates"
    assert "\\u0000" not in text.replace("\\\\", ""), "PostgreSQL refuses NUL"


@pytest.mark.spec("S1.10.2")
def test_every_kind_of_part_and_every_field_is_kept() -> None:
    content: list[Any] = [
        sa.TextPart("text\0"),
        sa.ThinkingPart("hm", "signature", "anthropic", {"type": "redacted", "data": "\ud800"}),
        sa.ImagePart("aGk=", "image/jpeg"),
        sa.ImagePart(url="https://example.org/a.png"),
        sa.FilePart("aGk=", "application/pdf", "report\u202efdp.exe"),
        sa.FilePart(url="https://example.org/a.pdf"),
        sa.JsonPart([1, 2.5, None, {"a": [True]}]),
        sa.ProviderPart("openai", {"type": "never_heard_of", "nested": [{"x": "\ud83d"}]}),
    ]
    state = sa.State(
        messages=[
            sa.Message("assistant", (*content, sa.ToolCall("1", "ls", {"a": 2**70}, "cut"))),
            sa.Message.tool([sa.ToolResult("1", "ls", content, True, True, {"edited": {}})]),
            sa.Message("note", (), sa.Usage(1, 2, 3, 4, 0.5), "max_tokens", "an error", {"k": [1]}),
        ]
    )
    assert sa.State.restore(through_json(state)) == state


@pytest.mark.spec("S1.10.1")
def test_an_export_has_a_version_the_state_and_the_time() -> None:
    exported = sa.State().export()
    assert set(exported) == {"version", "state", "serialized_at"}
    assert exported["version"] == 1
    assert set(exported["state"]) == {"messages", "todos", "metadata", "interrupt"}
    assert datetime.fromisoformat(exported["serialized_at"]).tzinfo == UTC


def test_ordinary_text_is_readable_in_the_export() -> None:
    exported = said("Grüße 😀 \u202e \\u0000x").export()
    # A backslash before a u is ordinary; looking closely at it once costs nothing but time.
    (message,) = exported["state"]["messages"]
    assert message["parts"] == [{"type": "text", "text": "Grüße 😀 \u202e \\u0000x"}]
    assert "escaped" not in said("Grüße 😀").export()


@pytest.mark.spec("S1.10.1", "S1.10.7")
def test_what_belongs_to_the_process_and_its_user_is_never_exported() -> None:
    agent = sa.Agent(
        sa.ScriptedModel(["hello"]),
        agent_id="canary-id",
        tool_context={"key": "canary-key"},
        filesystem_scope=("user", "canary-scope"),
        options={"api": "canary-option"},
        otel_attributes={"team": "canary-team"},
        system_prompt="canary-prompt",
    )
    given = {"tool_context": {"key": "canary-too"}, "options": {"api": "canary-too"}}
    text = json.dumps(agent.run("hi", **given).state.export())
    assert "hello" in text
    assert "canary" not in text


# odd values


class Colour(enum.Enum):
    RED = "red"
    ODD = object()


class Text(str):
    pass


class Unknown:
    def __repr__(self) -> str:
        return "<something>"


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@dataclass
class Point:
    x: Any


class Labels(msgspec.Struct):
    by: dict[Any, Any]


@pytest.mark.spec("S1.10.3")
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Colour.RED, "red"),
        (Text("a"), "a"),
        (print, None),
        (lambda: 1, None),
        (Unknown, None),
        (Unknown(), "<something>"),
        (Silent(), "<Silent>"),
        ({1}, [1]),
        ((1, (2,)), [1, [2]]),
        (b"hi", "aGk="),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (Point(Unknown()), {"x": "<something>"}),
        (Labels({(1, 2): {None: Unknown()}}), {"by": {"(1, 2)": {"None": "<something>"}}}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (
            {1: "one", (1, 2): {None: [Unknown()]}},
            {"1": "one", "(1, 2)": {"None": ["<something>"]}},
        ),
        ({True: 1, Colour.RED: 2}, {"True": 1, "red": 2}),
    ],
)
def test_anything_in_the_metadata_becomes_json(value: Any, kept: Any) -> None:
    state = sa.State(metadata={"k": value})
    exported = through_json(state)
    assert exported["state"]["metadata"] == {"k": kept}
    assert through_json(sa.State.restore(exported))["state"] == exported["state"]


@pytest.mark.spec("S1.10.3")
def test_an_enum_of_objects_becomes_text() -> None:
    kept = through_json(sa.State(metadata={"k": Colour.ODD, "n": math.inf}))["state"]["metadata"]
    assert kept["k"].startswith("<object")


@pytest.mark.spec("S1.10.3")
def test_numbers_of_numpy_become_plain_ones() -> None:
    numpy = pytest.importorskip("numpy")
    metadata = {"i": numpy.int64(3), "f": numpy.float32(0.5), "nan": numpy.float64("nan")}
    kept = sa.State.restore(through_json(sa.State(metadata=metadata))).metadata
    assert (kept["i"], kept["f"], math.isnan(kept["nan"])) == (3, 0.5, True)


@pytest.mark.spec("S1.10.3")
def test_circles_and_endless_depth_are_cut() -> None:
    circle: dict[str, Any] = {"a": 1}
    circle["self"] = [circle]
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    shallow: Any = "x"
    for _ in range(400):  # more than json, less than msgspec, can take
        shallow = [shallow]
    json.dumps(to_data(circle))
    for value in (circle, deep, shallow):
        exported = through_json(sa.State(metadata={"k": value}))
        assert sa.State.restore(exported).get_metadata("k") is not None
