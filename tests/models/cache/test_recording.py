"""A recording is found by all that changes an answer, and by nothing else."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb import messages
from sagents_nb.messages import Message, ToolCall, ToolResult
from sagents_nb.models import ChatModel, ModelRequest
from sagents_nb.models.cache import asked
from sagents_nb.models.cache import recording as recording_module
from sagents_nb.models.cache.recording import IGNORED, KEYED
from sagents_nb.tools import ToolSpec

HISTORY = (
    sa.Message.user(["Look at", sa.ImagePart("aW1n"), sa.FilePart("ZmlsZQ==", name="a.pdf")][1:]),
    Message(
        "assistant",
        (
            sa.ThinkingPart("hm", signature="s1", provider="anthropic"),
            sa.TextPart("I look."),
            ToolCall("c1", "look", {"at": "the sky", "times": 2}),
        ),
        sa.Usage(1, 2),
        "tool_use",
        metadata={"provider": "anthropic", "extras": {"parts": 3, "0": {"x": 1}}},
    ),
    Message.tool([ToolResult("c1", "look", "blue", metadata={"duration": 0.1})]),
    Message.user("And now?"),
)
TOOL = ToolSpec("look", "Look at something.", {"type": "object", "properties": {}})
OPTIONS = {"temperature": 0.5, "thinking": "low", "extra_headers": {"anthropic-beta": "a"}}
REQUEST = ModelRequest(HISTORY, "Be brief.", (TOOL,), OPTIONS, "claude")


def model(name: str = "claude", key: str = "sk-one-0123456789abcdef", **options: Any) -> ChatModel:
    return sa.AnthropicModel(name, api_key=key, max_tokens=100, **options)


def key(request: ModelRequest = REQUEST, asks: ChatModel | None = None) -> str:
    return asked(asks or model(), request).key


def changed(**fields: Any) -> ModelRequest:
    return msgspec.structs.replace(REQUEST, **fields)


def with_message(index: int, **fields: Any) -> ModelRequest:
    history = list(HISTORY)
    history[index] = msgspec.structs.replace(history[index], **fields)
    return changed(messages=history)


def with_part(index: int, part: int, **fields: Any) -> ModelRequest:
    parts = list(HISTORY[index].parts)
    parts[part] = msgspec.structs.replace(parts[part], **fields)
    return with_message(index, parts=tuple(parts))


def with_option(**options: Any) -> ModelRequest:
    return changed(options={**OPTIONS, **options})


ANOTHER_REQUEST = {
    "the system prompt": changed(system="Be long."),
    "one message less": changed(messages=HISTORY[:-1]),
    "the order of messages": changed(messages=(HISTORY[3], *HISTORY[:3])),
    "a message's text": with_part(3, 0, text="And then?"),
    "a message's role": with_message(3, role="system"),
    "whether a message is whole": with_message(1, stop_reason="aborted"),
    "an image": with_part(0, 0, data="aW1nMg=="),
    "a file's name": with_part(0, 1, name="b.pdf"),
    "thinking": with_part(1, 0, text="hm!"),
    "a signature of thinking": with_part(1, 0, signature="s2"),
    "a call's id": with_part(1, 2, id="c2"),
    "a call's arguments": with_part(1, 2, arguments={"at": "the sky", "times": 3}),
    "the type of an argument": with_part(1, 2, arguments={"at": "the sky", "times": "2"}),
    "a result": with_part(2, 0, content="grey"),
    "whether a result is an error": with_part(2, 0, is_error=True),
    "what a provider reads of the metadata": with_message(1, metadata={"provider": "openai"}),
    "no tools": changed(tools=()),
    "a tool's name": changed(tools=(msgspec.structs.replace(TOOL, name="see"),)),
    "a tool's description": changed(tools=(msgspec.structs.replace(TOOL, description="Look."),)),
    "a tool's schema": changed(tools=(msgspec.structs.replace(TOOL, schema={"type": "object"}),)),
    "the temperature": with_option(temperature=0.6),
    "the most tokens": with_option(max_tokens=101),
    "thinking effort": with_option(thinking="high"),
    "the choice of tools": with_option(tool_choice={"type": "any"}),
    "a beta header": with_option(extra_headers={"anthropic-beta": "b"}),
    "the query": with_option(extra_query={"version": "2"}),
    "the body": with_option(extra_body={"x": 1}),
    "the name it is asked by": changed(model="claude-2"),
}


@pytest.mark.parametrize("what", ANOTHER_REQUEST)
def test_another_request_is_a_miss(what: str) -> None:
    assert key(ANOTHER_REQUEST[what]) != key()


ANOTHER_MODEL: dict[str, ChatModel] = {
    "its name": model("claude-2"),
    "its class": sa.OpenAIModel("claude", max_tokens=100),
    "its address": model(base_url="https://example.com/v1"),
    "its options": model(top_k=3),
    "another of the same company": sa.OpenAIChatModel("claude", max_tokens=100),
}


@pytest.mark.parametrize("what", ANOTHER_MODEL)
def test_another_model_is_a_miss(what: str) -> None:
    assert key(asks=ANOTHER_MODEL[what]) != key()


def test_all_these_are_different_from_each_other() -> None:
    keys = [key(r) for r in ANOTHER_REQUEST.values()]
    keys += [key(asks=m) for m in ANOTHER_MODEL.values()]
    assert len(set(keys)) == len(keys) >= 15


def test_an_address_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example.com")
    assert key() != before
    assert key() == key(asks=model(base_url="https://gateway.example.com/"))


THE_SAME: dict[str, Callable[[], str]] = {
    "the model's key": lambda: key(asks=model(key="sk-two-0123456789abcdef")),
    "the request's key": lambda: key(changed(api_key="sk-three-0123456789abcdef")),
    "the session": lambda: key(changed(session_id="s-2")),
    "a time-out": lambda: key(with_option(timeout=3)),
    "an option that is left out": lambda: key(with_option(top_p=None)),
    "the usage of a message": lambda: key(with_message(1, usage=None)),
    "metadata that nobody is sent": lambda: key(
        with_message(1, metadata={**HISTORY[1].metadata, "replayed": True, "request_id": "r2"})
    ),
    "metadata of a result": lambda: key(with_part(2, 0, metadata={})),
    "a message for people alone": lambda: key(
        changed(messages=(*HISTORY, Message("note", (sa.TextPart("for me"),))))
    ),
    "the order of arguments": lambda: key(with_part(1, 2, arguments={"times": 2, "at": "the sky"})),
    "the order of options": lambda: key(changed(options=dict(reversed(OPTIONS.items())))),
    "how a header is written": lambda: key(with_option(extra_headers={"Anthropic-Beta": "a"})),
    "a header that holds a key": lambda: key(
        with_option(extra_headers={"authorization": "Bearer x", "anthropic-beta": "a"})
    ),
    "a retry around it": lambda: key(asks=sa.RetryingModel(model())),
    "a name and password in the address": lambda: key(
        asks=model(base_url="https://me:secret@api.test")
    ),
}


@pytest.mark.parametrize("what", THE_SAME)
def test_the_same_request_is_a_hit(what: str) -> None:
    plain = model(base_url="https://api.test") if "password" in what else model()
    assert THE_SAME[what]() == key(asks=plain)


@pytest.mark.parametrize("name", KEYED)
def test_no_field_is_forgotten(name: str) -> None:
    """A new field fails here until ``keys.py`` says whether it changes an answer."""
    struct = {"ModelRequest": ModelRequest, "ToolSpec": ToolSpec}.get(name) or vars(messages)[name]
    known = KEYED[name] | IGNORED.get(name, set())
    assert known == set(struct.__struct_fields__)
    assert not KEYED[name] & IGNORED.get(name, set())


def test_no_kind_of_part_is_forgotten() -> None:
    assert {part.__name__ for part in messages.Part.__args__} <= set(KEYED)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4), st.text())
def test_equal_content_has_an_equal_key(arguments: dict[str, Any], text: str) -> None:
    def made(arguments: dict[str, Any]) -> ModelRequest:
        calls = [ToolCall("c", "f", arguments)]
        return ModelRequest([Message.user(text), Message.assistant(text, calls)])

    assert key(made(arguments)) == key(made(dict(reversed(arguments.items()))))


@pytest.mark.parametrize("odd", ["\ud800", "\0", math.nan, 10**40, {1: 2}, {"a"}, object])
def test_odd_content_has_a_key_as_well(odd: Any) -> None:
    request = ModelRequest([Message.user([sa.JsonPart(odd)])], options={"x": odd})
    assert key(request) == key(request) != key()


# Secrets in a long history

SECRET = "canary-5e21c0ffee99-of-nobody"


def long_history(*last: str) -> list[Message]:
    return [Message.user(f"{turn} " + "words " * 40) for turn in range(100)] + [
        Message.user(text) for text in last
    ]


@pytest.mark.parametrize("quoted", [SECRET, "sk-0123456789abcdef0123", f'"{SECRET}"', SECRET[:8]])
def test_a_secret_that_is_said_late_is_left_out(quoted: str) -> None:
    asks = model(key=SECRET)
    for _ in range(2):
        before = asked(asks, ModelRequest(long_history()))
        with_it = asked(asks, ModelRequest(long_history(f"Use {quoted} now.", "And?")))
        assert b"[redacted]" not in before.text
        assert b"[redacted]" in with_it.text
        assert SECRET.encode() not in with_it.text
        assert with_it.key == hashlib.sha256(with_it.text).hexdigest()


def test_a_secret_is_left_out_of_what_is_as_long_as_a_request_without() -> None:
    asks = model(key=SECRET)
    asked(asks, ModelRequest(long_history("x" * len(SECRET))))
    assert SECRET.encode() not in asked(asks, ModelRequest(long_history(SECRET))).text


def test_what_is_no_secret_of_one_model_may_be_one_of_another() -> None:
    history = ModelRequest(long_history(f"Use {SECRET} now."))
    assert SECRET.encode() in asked(model(), history).text
    assert SECRET.encode() not in asked(model(key=SECRET), history).text
    assert SECRET.encode() in asked(model(), history).text


def test_a_request_that_goes_on_is_looked_through_from_where_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_through: list[int] = []
    redact = recording_module.redacted_json

    def noted(text: bytes, *secrets: Any) -> bytes:
        looked_through.append(len(text))
        return redact(text, *secrets)

    monkeypatch.setattr(recording_module, "redacted_json", noted)
    history = long_history("A history of this test's own.")
    for turn in range(5):
        key(ModelRequest(history))
        history.append(Message.user(f"Turn {turn}"))
    assert looked_through[0] > 20_000
    assert max(looked_through[1:]) < 1_000
