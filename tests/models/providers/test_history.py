"""A message is made JSON once; a request is a join of what its messages are."""

from __future__ import annotations

import copy
import gc
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.frozenlist import FrozenList
from sagents_nb.messages import (
    FilePart,
    ImagePart,
    JsonPart,
    Message,
    Part,
    ProviderPart,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from sagents_nb.models import ModelRequest
from sagents_nb.models.providers import history
from sagents_nb.models.providers.arguments import ParameterNames
from sagents_nb.models.providers.history import Items, encode_body, joined, sendable
from sagents_nb.models.providers.streaming import ProviderModel
from sagents_nb.tools import ToolSpec
from tests.models.loopback import MODELS, Answer, Provider, ask, model_for, recorded
from tests.talking import in_threads

NOWHERE = "http://127.0.0.1:1"


def members_of(model: ProviderModel, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
    request = ModelRequest(messages, **more)
    names = ParameterNames(request.tools if model.plain_parameters else ())
    return model.encoded_body(request, {}, names)


def items_of(members: dict[str, Any]) -> Items:
    (items,) = (value for value in members.values() if isinstance(value, Items))
    return items


def sent(model: ProviderModel, messages: Sequence[Message], **more: Any) -> bytes:
    """The bytes of the body."""
    return joined(members_of(model, messages, **more))


class Counted:
    """Something that JSON does not know, so that its repr is asked for: how often is counted."""

    def __init__(self, name: str, counts: Counter[str]) -> None:
        self.name = name
        self.counts = counts

    def __repr__(self) -> str:
        self.counts[self.name] += 1
        return self.name


def counted_turn(turn: int, counts: Counter[str]) -> Iterator[Message]:
    """Four messages, each with one thing that counts."""

    def thing(what: str) -> Counted:
        return Counted(f"{what} {turn}", counts)

    call = ToolCall(f"c{turn}", "f", {"n": thing("call")})
    yield Message.user([TextPart("Look"), JsonPart(thing("question"))])
    yield Message.assistant("", [call])
    yield Message.tool([ToolResult(call.id, "f", [JsonPart(thing("result"))])])
    yield Message.assistant([JsonPart(thing("answer"))])


@pytest.mark.parametrize("name", MODELS)
def test_no_message_of_a_growing_conversation_is_encoded_twice(name: str) -> None:
    counts: Counter[str] = Counter()
    model = model_for(name, NOWHERE)
    messages: FrozenList[Message] = FrozenList()
    for turn in range(100):
        for message in counted_turn(turn, counts):
            messages = messages.append(message)
            body = sent(model, messages)
    assert b"question 99" in body
    assert b"answer 99" in body
    assert len(counts) == 400
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("name", MODELS)
def test_a_message_that_a_hook_leaves_is_not_encoded_again_and_one_that_it_replaces_is(
    name: str,
) -> None:
    """As transform_context, before_model_request and summaries do: they give other lists."""
    counts: Counter[str] = Counter()
    model = model_for(name, NOWHERE)
    messages = [m for turn in range(10) for m in counted_turn(turn, counts)]
    cut = Message.assistant("cut", [ToolCall("x", "f", {})], stop_reason="aborted")
    messages += [cut, Message.user(JsonPart(Counted("after it", counts)))]
    sent(model, FrozenList(messages))
    hidden = Message.user("replaced")
    for changed in (
        messages[:],
        messages[20:],
        [hidden, *messages[1:]],
        FrozenList([Message.user("a summary"), *messages[-8:]]),
        FrozenList(messages)[:-1],
    ):
        sent(model, changed)
    assert set(counts.values()) == {1}
    body = sent(model, [hidden, *messages[1:]])
    assert b"replaced" in body
    assert b"question 0" not in body
    sent(model, [copy.copy(messages[0]), *messages[1:]])
    assert {name for name, count in counts.items() if count > 1} == {"question 0"}


def test_providers_of_one_kind_share_what_they_encoded_and_each_dialect_has_its_own() -> None:
    counts: Counter[str] = Counter()
    messages = FrozenList(counted_turn(0, counts))
    for name in MODELS:
        sent(model_for(name, NOWHERE), messages)
        sent(model_for(name, NOWHERE, temperature=1), messages)
    assert set(counts.values()) == {len(MODELS)}
    thought = ThinkingPart("by a server", None, "openai-chat", {"reasoning_content": "thought"})
    messages = messages.append(Message.assistant([thought, TextPart("done")]))
    model = model_for("openai-chat", NOWHERE)
    for thinking in (False, True, False):
        request = ModelRequest(messages)
        body = model.body(request, {"send_thinking": thinking})
        assert ("reasoning_content" in body["messages"][-1]) is thinking


@pytest.mark.parametrize("name", MODELS)
def test_each_request_begins_with_the_bytes_of_the_one_before(name: str) -> None:
    """From its first byte to the end of its messages: what a provider caches stays what it is.

    Only these may differ: the end of the last message, ``]}``, where the next one is part of the
    same turn; and what stands behind the messages. That is where Claude's cache mark is, once for
    the whole request: no message ever has one, so none changes when the mark moves on.
    """
    model = model_for(name, NOWHERE)
    messages: FrozenList[Message] = FrozenList()
    tools = (ToolSpec("f", "Does it.", {"type": "object"}),)
    before = b""
    for turn in range(1_000):
        call = ToolCall(f"c{turn}", "f", {"n": turn})
        result = ToolResult(call.id, "f", f"result {turn}", is_error=turn % 7 == 0)
        cut: StopReason | None = "aborted" if turn % 50 == 49 else None
        for new in (
            [Message.user(f"question {turn}")],
            [Message.assistant("hm", [call], stop_reason=cut), Message.tool([result])],
            # Somebody's word while the tool was at work, which Claude is told in the same turn.
            [Message.user([f"and {turn}", ImagePart("aGk=")])] if turn % 3 == 0 else [],
            [Message.assistant([ThinkingPart("t", "sig", "anthropic"), f"answer {turn}"])],
        ):
            messages = messages.extend(new)
        members = members_of(model, messages, system="Be brief.", tools=tools)
        now, items = joined(members), b",".join(items_of(members).pieces())
        assert now.startswith(before)
        assert b"cache_control" not in items
        before = now[: now.index(items) + len(items)].removesuffix(b"]}")
    assert b"question 999" in before


def test_claude_is_told_results_first_in_a_turn_of_several_messages() -> None:
    model = model_for("anthropic", NOWHERE)
    said = [
        Message.user("a"),
        Message("tool", (ToolResult("1", "f", "x"), TextPart("b"))),
        Message.user(""),
        Message("user", (TextPart("c"), ToolResult("2", "f", "y"))),
        Message.assistant("d"),
        Message.assistant("e"),
    ]
    messages: FrozenList[Message] = FrozenList()
    for message in said:
        messages = messages.append(message)
        members = members_of(model, messages)
    user, assistant = items_of(members).plain()
    told = [block.get("text") or block["content"] for block in user["content"]]
    assert told == ["x", "y", "a", "b", "c"]
    assert [block["text"] for block in assistant["content"]] == ["d", "e"]


# Random histories

TEXTS = st.sampled_from(["", "  ", "hi", "Grüße", "half \ud83d", "nul \x00"])
EXTRA = {"type": "thinking", "thinking": "t", "signature": "s", "more": 1}
REASONING = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gA"}
CONTENT: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(JsonPart, st.sampled_from([{"x": float("nan")}, {1: {2}}, [1, 2.5], None])),
    st.sampled_from(
        [
            ImagePart("aGk="),
            ImagePart(url="https://example.org/a.png"),
            ImagePart("aGk=", "image/tiff"),
            FilePart("aGk=", "text/plain", "a.txt"),
            FilePart("aGk=", "application/pdf"),
            FilePart(None, "application/zip", "z.zip"),
            ThinkingPart("t", "sig", "anthropic"),
            ThinkingPart("t", None, "anthropic"),
            ThinkingPart("t", "s", "anthropic", EXTRA),
            ThinkingPart("t", None, "openai", REASONING),
            ThinkingPart("t", None, "openai-chat", {"reasoning_content": "t"}),
            ProviderPart("anthropic", {"type": "redacted_thinking", "data": "x="}),
            ProviderPart("openai", {"type": "web_search_call", "id": "w"}),
        ]
    ),
)
IDS = st.sampled_from(["c1", "c2", "c|3"])
NAMES = st.sampled_from(["f", "my tool", "größer"])
ARGUMENTS = st.sampled_from([{}, {"größe": 1, "path": "ü"}, {"n": 2**80}, {"s": "\ud83d"}])
CALLS = st.builds(ToolCall, IDS, NAMES, ARGUMENTS)
RESULTS = st.builds(
    ToolResult, IDS, NAMES, TEXTS | st.lists(CONTENT, max_size=2), is_error=st.booleans()
)
STOPS: st.SearchStrategy[StopReason | None] = st.sampled_from(
    [None, None, "tool_use", "error", "aborted"]
)


@st.composite
def answers(draw: st.DrawFn) -> Message:
    parts = tuple(draw(st.lists(CONTENT | CALLS, max_size=3)))
    provider = draw(st.sampled_from(["", "anthropic", "openai"]))
    metadata = {"provider": provider, "extras": {"parts": len(parts), "0": {"id": "x"}}}
    return Message("assistant", parts, None, draw(STOPS), None, metadata if provider else {})


MESSAGES = st.one_of(
    answers(),
    st.builds(lambda parts: Message("user", tuple(parts)), st.lists(CONTENT, max_size=3)),
    st.builds(lambda parts: Message("tool", tuple(parts)), st.lists(RESULTS, max_size=3)),
    st.builds(lambda parts: Message("user", tuple(parts)), st.lists(CONTENT | RESULTS, max_size=3)),
    st.builds(Message.system, TEXTS),
    st.builds(lambda text: Message("note", (TextPart(text),)), TEXTS),
)
SIZED = {"type": "object", "properties": {"größe": {"type": "integer"}}, "required": ["größe"]}
TOOLS = (ToolSpec("größer", "Grows.", SIZED), ToolSpec("f", "Does it.", {"type": "object"}))


def one_by_one(model: ProviderModel, messages: list[Message], **more: Any) -> list[Any]:
    """What is sent of the turns, each put in alone, and Claude's turns made of them on dicts."""
    items: list[Any] = []
    for turn in sendable(messages):
        alone = Message(turn.role, turn.parts, metadata=turn.message.metadata if turn.whole else {})
        items += items_of(members_of(model, [alone], **more)).plain()
    if model.provider != "anthropic":
        return items
    turns: list[Any] = []
    for item in items:
        if turns and turns[-1]["role"] == item["role"]:
            turns[-1]["content"] += item["content"]
        else:
            turns.append(item)
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


@settings(max_examples=150)
@given(st.lists(st.lists(MESSAGES, max_size=3), min_size=1, max_size=5), st.booleans())
def test_a_body_is_what_each_of_its_messages_is_however_it_came_to_be(
    turns: list[list[Message]], is_list: bool
) -> None:
    tools = TOOLS if len(turns) % 2 else TOOLS[1:]
    for name in MODELS:
        model = model_for(name, NOWHERE)
        messages: FrozenList[Message] = FrozenList()
        for new in turns:
            messages = messages.extend(new)
            asked = list(messages) if is_list else messages
            body = json.loads(sent(model, asked, system="Be brief.", tools=tools))
            plain = model.body(ModelRequest(asked, "Be brief.", tools), {})
            assert body == json.loads(encode_body(plain))
            again = copy.deepcopy(list(messages))  # other messages, of which nothing is known yet
            assert body == json.loads(sent(model, again, system="Be brief.", tools=tools))
            items = one_by_one(model, again, tools=tools)
            texts = ["Be brief.", *(m.text for m in messages if m.role == "system")]
            system = "\n\n".join(filter(None, texts)).replace("\ud83d", "\ufffd")
            if name == "openai-chat":
                items.insert(0, {"role": "system", "content": system})
            else:
                assert body["system" if name == "anthropic" else "instructions"] == system
            assert body["input" if name == "openai" else "messages"] == items


def test_calls_have_the_names_that_the_tools_of_their_request_have() -> None:
    model = model_for("anthropic", NOWHERE)
    messages = FrozenList(
        [Message.user("hi"), Message.assistant("", [ToolCall("c", "größer", {"größe": 1})])]
    )
    for tools, argument in ((TOOLS, "grosse"), (TOOLS[1:], "größe"), (TOOLS, "grosse")):
        body = model.body(ModelRequest(messages, tools=tools), {})
        assert body["messages"][1]["content"][0]["input"] == {argument: 1}


def test_an_earlier_state_can_be_asked_for_again_and_forks_have_bodies_of_their_own() -> None:
    model = model_for("anthropic", NOWHERE)
    first = FrozenList([Message.user("a"), Message.assistant("b")])
    longer = first.append(Message.user("c"))
    fork = first.append(Message.user("d"))

    def texts(messages: Sequence[Message]) -> list[str]:
        items = items_of(members_of(model, messages)).plain()
        return [block["text"] for item in items for block in item["content"]]

    for _ in range(2):
        assert texts(longer) == ["a", "b", "c"]
        assert texts(first) == ["a", "b"]
        assert texts(fork) == ["a", "b", "d"]


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.parametrize("name", MODELS)
def test_threads_that_ask_at_once_are_all_told_the_same(name: str) -> None:
    model = model_for(name, NOWHERE)
    snapshots: list[FrozenList[Message]] = [FrozenList([Message.user("go")])]
    for turn in range(30):
        last = snapshots[-1]
        snapshots.append(last.extend([Message.assistant(f"a{turn}"), Message.user(f"q{turn}")]))
    expected = [sent(model, copy.deepcopy(list(each))) for each in snapshots]
    for bodies in in_threads(4, lambda index: [sent(model, each) for each in snapshots]):
        assert bodies == expected


class Watched(FrozenList[Message]):
    """A list that counts which of its messages anybody takes out."""

    taken = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.taken += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Iterator[Message]:
        self.taken += len(self)
        return super().__iter__()


@pytest.mark.parametrize("name", MODELS)
def test_only_the_new_messages_of_a_history_are_looked_at(name: str) -> None:
    model = model_for(name, NOWHERE)
    messages = FrozenList([Message.user("a"), Message.assistant("b")] * 500)
    sent(model, messages)
    watched = Watched(messages.extend([Message.user("c"), Message.assistant("d")]))
    sent(model, watched)
    assert watched.taken == 2


@pytest.mark.parametrize("name", MODELS)
def test_results_are_left_out_only_behind_the_call_that_was_cut(name: str) -> None:
    model = model_for(name, NOWHERE)
    calls = [ToolCall("c", "f", {})]
    result = Message.tool([ToolResult("c", "f", "cancelled")])
    after_cut = FrozenList([Message.assistant("cut", calls, stop_reason="aborted")])
    sent(model, after_cut)
    after_cut = after_cut.append(result)
    after_call = [Message.assistant("whole", calls), result]
    for _ in range(2):
        assert b"cancelled" not in sent(model, after_cut)
        assert b"cancelled" not in sent(model, list(after_cut))
        assert b"cancelled" in sent(model, after_call)


# What is kept


def holders(piece: bytes) -> int:
    """How many hold these bytes beside the test."""
    return sys.getrefcount(piece) - 3  # the test, our argument, and that of getrefcount


@pytest.mark.parametrize("kind", [list, FrozenList])
def test_the_bytes_of_a_message_go_with_it(kind: type) -> None:
    model = model_for("openai", NOWHERE)
    messages = kind([Message.user("soon gone"), Message.user("too")])
    piece = items_of(members_of(model, messages)).pieces()[0]
    assert holders(piece) >= 1
    del messages
    gc.collect()
    assert holders(piece) == 0


def test_what_is_kept_in_all_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_for("openai", NOWHERE)
    monkeypatch.setattr(history, "LARGEST_CACHE", 100_000)
    messages = FrozenList([Message.user("first")])
    piece = items_of(members_of(model, messages)).pieces()[0]
    assert holders(piece) >= 1
    others = [FrozenList([Message.user("x" * 1_000)]) for _ in range(200)]
    for other in others:
        sent(model, other)
    gc.collect()
    assert holders(piece) == 0
    assert b"first" in sent(model, messages)


def test_many_tools_with_names_of_their_own_leave_no_more_than_some_dialects() -> None:
    model = model_for("anthropic", NOWHERE)
    messages = FrozenList([Message.user("hi")])
    piece = items_of(members_of(model, messages)).pieces()[0]
    for n in range(100):
        sized = {"type": "object", "properties": {f"größe{n}": {"type": "integer"}}}
        sent(model, messages, tools=(ToolSpec("größer", "Grows.", sized),))
    gc.collect()
    assert holders(piece) == 0


def test_a_message_where_another_was_in_memory_is_sent_as_what_it_is() -> None:
    model = model_for("openai", NOWHERE)
    places: set[int] = set()
    for n in range(500):
        messages = [Message.user(f"number {n}")]
        places.add(id(messages[0]))
        (item,) = items_of(members_of(model, messages)).plain()
        assert item["content"][0]["text"] == f"number {n}"
        del messages
    assert len(places) < 500


def test_a_model_of_somebodys_own_may_change_its_body(provider: Provider) -> None:
    class Marked(sa.AnthropicModel):
        def body(self, request: ModelRequest, options: dict[str, Any]) -> dict[str, Any]:
            made = super().body(request, options)
            made["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
            return made

    provider.answer = Answer(recorded("anthropic_tool_use"), framing="chunked")
    model = Marked("m", api_key="k", base_url=provider.url)
    assert ask(model, ModelRequest([Message.user("hi")])).error is None
    (block,) = provider.requests[-1].body["messages"][0]["content"]
    assert block == {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
