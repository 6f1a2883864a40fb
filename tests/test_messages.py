from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.messages import parts_text
from sagents_nb.serialization import to_data


@pytest.mark.spec("R4.4.3")
def test_text_becomes_one_part_and_no_text_none() -> None:
    assert sa.Message.user("hi").parts == (sa.TextPart("hi"),)
    assert sa.Message.user("").parts == ()


def test_a_message_takes_a_part_or_several_parts() -> None:
    image = sa.ImagePart(data="aGk=")
    assert sa.Message.user(image).parts == (image,)
    assert sa.Message.user([sa.TextPart("look:"), image]).parts == (sa.TextPart("look:"), image)


def test_a_message_that_is_made_by_its_class_takes_the_same() -> None:
    image = sa.ImagePart(url="https://example.org/a.png")
    assert sa.Message("assistant", "hi") == sa.Message("assistant", (sa.TextPart("hi"),))
    assert sa.Message("user", ["see", image]).parts == (sa.TextPart("see"), image)
    assert sa.Message("user", "").parts == ()
    for nothing in (5, None, [None], {"a": 1}):
        with pytest.raises(sa.ConfigurationError, match="text, a part such as"):
            sa.Message("user", nothing)


@pytest.mark.parametrize("part", [sa.ImagePart, sa.FilePart])
def test_an_image_and_a_file_give_their_bytes(part: Any) -> None:
    data = bytes(range(256))
    assert part(base64.b64encode(data).decode()).bytes == data
    assert part(base64.encodebytes(data).decode()).bytes == data  # in lines
    assert part("").bytes == b""
    with pytest.raises(sa.ConfigurationError, match=r"not here; fetch them from its url"):
        _ = part(url="https://example.org/a").bytes
    for wrong in ("€", "abc", "a-_b"):
        with pytest.raises(sa.ConfigurationError, match="are no base64"):
            _ = part(wrong).bytes
    for wrong in (5, data, ["aGk="]):
        with pytest.raises(
            sa.ConfigurationError, match=rf"{part.__name__}\(data=…\) is base64 text"
        ):
            _ = part(wrong).bytes


def test_an_assistant_message_with_calls_stopped_for_tools() -> None:
    assert sa.Message.assistant("a").stop_reason == "end_turn"
    assert sa.Message.assistant(tool_calls=[sa.ToolCall("1", "ls")]).stop_reason == "tool_use"
    assert sa.Message.assistant("a", stop_reason="max_tokens").stop_reason == "max_tokens"


@pytest.mark.spec("R4.4.3")
def test_as_data_bytes_are_base64_and_what_is_empty_is_left_out() -> None:
    message = sa.Message.user(["see", sa.ImagePart.of(b"\x89PNG\r\n\x1a\n")])
    data = to_data(message)
    assert data["role"] == "user"
    assert data["parts"][0] == {"type": "text", "text": "see"}
    assert base64.b64decode(data["parts"][1]["data"]) == b"\x89PNG\r\n\x1a\n"
    assert data.keys() == {"role", "parts"}


@pytest.mark.spec("R4.4.3")
def test_text_leaves_out_thinking_calls_and_results() -> None:
    message = sa.Message.assistant(
        [sa.ThinkingPart("hm"), sa.TextPart("a"), sa.TextPart("b")], [sa.ToolCall("1", "ls")]
    )
    assert (message.text, message.thinking) == ("ab", "hm")
    assert [c.name for c in message.tool_calls] == ["ls"]


def test_a_tool_message_holds_the_results_in_order() -> None:
    message = sa.Message.tool([sa.ToolResult("1", "a", "x"), sa.ToolResult("2", "b", "y")])
    assert (message.role, [r.text for r in message.tool_results]) == ("tool", ["x", "y"])


def test_a_result_of_parts_reads_as_their_text_with_json_as_json() -> None:
    result = sa.ToolResult("1", "a", [sa.TextPart("rows:"), sa.JsonPart({"n": 1})])
    assert result.text == parts_text(result.content) == 'rows:\n{"n":1}'  # type: ignore[arg-type]


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        sa.Message.user("a").role = "system"  # type: ignore[misc]


def test_metadata_is_given_by_name_and_not_shared() -> None:
    assert sa.Message.user("a", source="cell 3").metadata == {"source": "cell 3"}
    sa.Message.user("a").metadata["leak"] = 1
    assert sa.Message.user("b").metadata == {}


usages = st.builds(
    sa.Usage, *[st.integers(0, 10**9)] * 4, cost_usd=st.none() | st.integers(0, 100).map(float)
)


@given(usages, usages, usages)
def test_usage_adds_up_in_any_grouping(a: sa.Usage, b: sa.Usage, c: sa.Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + sa.Usage() == a
    assert (a + b).total_tokens == a.total_tokens + b.total_tokens


def test_a_known_price_survives_an_unknown_one() -> None:
    assert (sa.Usage() + sa.Usage()).cost_usd is None
    assert (sa.Usage(cost_usd=0.5) + sa.Usage()).cost_usd == 0.5


texts = st.text(max_size=20)
data = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts)
content = (
    st.builds(sa.TextPart, texts)
    | st.builds(sa.ThinkingPart, texts, st.none() | texts, st.none() | texts, st.none() | data)
    | st.builds(sa.ImagePart, st.none() | texts, texts, st.none() | texts)
    | st.builds(sa.FilePart, st.none() | texts, texts, st.none() | texts, st.none() | texts)
    | st.builds(sa.JsonPart, data)
    | st.builds(sa.ProviderPart, texts, data)
)
calls = st.builds(sa.ToolCall, texts, texts, data, st.none() | texts)
tool_results = st.builds(
    sa.ToolResult,
    texts,
    texts,
    texts | st.lists(content, max_size=3),
    st.booleans(),
    st.booleans(),
    data,
)
messages = st.builds(
    sa.Message,
    st.sampled_from(["user", "assistant", "system", "tool", "note"]),
    st.lists(content | calls | tool_results, max_size=4).map(tuple),
    st.none() | usages,
    st.none() | st.sampled_from(["end_turn", "tool_use", "error", "aborted", "max_tokens"]),
    st.none() | texts,
    data,
)


@pytest.mark.spec("S1.10.2")
@given(messages)
def test_every_field_of_a_message_survives_json(message: sa.Message) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=sa.Message) == message
