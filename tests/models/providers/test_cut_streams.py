"""Nothing runs on a stream that was cut, wherever and however it was cut."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.messages import Message, ToolCall
from sagents_nb.models.providers.clients import close_clients
from tests.models.loopback import (
    RECORDED,
    Answer,
    Heard,
    Provider,
    ask,
    hear,
    model_for,
    provider_of,
    recorded,
)
from tests.talking import PATIENCE

pytestmark = pytest.mark.spec("P17")

HOW = {
    "closed": ("close", "eof", b""),  # the end of the connection is the end of the body
    "ended": ("chunked", "eof", b""),  # a proxy that ends neatly what it got
    "reset": ("chunked", "reset", b""),
    "garbage": ("chunked", "eof", b'\xff\xfe{"}]\n\n\x00data: {"type": '),
}


def announced(body: bytes) -> int:
    """The offset at which the provider has said that, and why, the answer is over."""
    ends = (
        rb'data: \{"type":"message_stop" *\}',
        rb'data: \{[^\n]*"finish_reason":"[^\n]*\}',
        rb'data: \{"type":"response\.completed"[^\n]*\}',
    )
    (match,) = [m for end in ends if (m := re.search(end, body))]
    return match.end()


def boundaries(body: bytes) -> list[int]:
    return [0, *(m.end() for m in re.finditer(rb"\n\n", body))]


def check(heard: Heard, whole: Message, over: bool, what: str) -> None:
    if over:
        assert heard.message is not None, (what, heard.error)
        assert heard.message.parts == whole.parts, what
        assert heard.message.stop_reason == whole.stop_reason, what
    else:
        assert heard.message is None, what
        assert isinstance(heard.error, ModelError), what
        assert heard.error.kind == "cut_stream", (what, heard.error)


async def cut(provider: Provider, name: str, offsets: Iterable[int], how: str) -> None:
    body, (framing, end, junk) = recorded(name), HOW[how]
    model = model_for(provider_of(name), provider.url, timeout=PATIENCE)
    provider.answer = Answer(body, framing="chunked")
    whole = (await hear(model)).message
    assert whole is not None
    for offset in offsets:
        provider.answer = Answer(body[:offset] + junk, framing=framing, end=end)
        heard = await hear(model)
        if how == "reset" and heard.message is None and offset >= announced(body):
            # A reset may overtake bytes that were sent before it.
            assert isinstance(heard.error, ModelError)
            continue
        # Bytes right behind half a line belong to it, so they can only spoil it.
        spoilt = bool(junk) and offset < announced(body) + 2 and offset >= announced(body)
        if not spoilt or heard.message is not None:
            check(heard, whole, offset >= announced(body), f"{name} {how} at {offset}")
    await close_clients()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", RECORDED)
def test_a_cut_after_any_event_runs_nothing(provider: Provider, name: str, how: str) -> None:
    asyncio.run(cut(provider, name, boundaries(recorded(name)), how))


@pytest.mark.parametrize("name", RECORDED)
def test_a_cut_at_sampled_bytes_runs_nothing(provider: Provider, name: str) -> None:
    size = len(recorded(name))
    offsets = {*range(0, size, max(1, size // 150)), *range(max(0, size - 40), size + 1)}
    asyncio.run(cut(provider, name, sorted(offsets), "closed"))
    asyncio.run(cut(provider, name, sorted(offsets)[::3], "garbage"))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", RECORDED)
def test_a_cut_at_every_byte_runs_nothing(provider: Provider, name: str, how: str) -> None:
    asyncio.run(cut(provider, name, range(len(recorded(name)) + 1), how))


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_said_before_the_cut_was_handed_out(provider: Provider, name: str) -> None:
    body = recorded(name)
    provider.answer = Answer(body, framing="chunked")
    model = model_for(provider_of(name), provider.url)
    whole = ask(model)
    end = body.rfind(b"\n\n", 0, announced(body) - 1) + 2
    provider.answer = Answer(body[:end])
    heard = ask(model)
    assert heard.deltas == whole.deltas
    assert heard.error is not None


@pytest.mark.parametrize("name", RECORDED)
def test_a_stall_is_a_timeout_and_not_an_end(provider: Provider, name: str) -> None:
    body = recorded(name)
    provider.answer = Answer(body[: announced(body) // 2], framing="chunked", end="stall")
    heard = ask(model_for(provider_of(name), provider.url, timeout=0.2))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "timeout"


@pytest.mark.parametrize("name", RECORDED)
def test_a_stall_after_the_end_was_announced_does_not_hold_the_answer_up(
    provider: Provider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.streaming.AFTER_END", 0.2)
    body = recorded(name)
    end = announced(body)
    provider.answer = Answer(body[:end] + b"\n\n", framing="chunked", end="stall")
    heard = ask(model_for(provider_of(name), provider.url))
    assert heard.message is not None


def test_message_stop_without_a_reason_is_a_cut(provider: Provider) -> None:
    body = recorded("anthropic_tool_use")
    body = re.sub(rb"event: message_delta\n.*\n\n", b"", body)
    assert b"message_delta" not in body
    provider.answer = Answer(body)
    heard = ask(model_for("anthropic", provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "cut_stream"


def test_done_without_a_finish_reason_is_a_cut(provider: Provider) -> None:
    body = recorded("openai_chat_tool_call").replace(b'"tool_calls"}', b"null}")
    body = re.sub(rb'"finish_reason":"[a-z_]+"', b'"finish_reason":null', body)
    provider.answer = Answer(body)
    heard = ask(model_for("openai-chat", provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "cut_stream"


BAD = ['{"country":"U', '{"country":NaN}', '{"country":"a","country":"b"}', '["UK"]', '"UK"', ""]


@pytest.mark.parametrize("arguments", BAD)
def test_bad_arguments_are_an_error_on_the_call_and_never_repaired(
    provider: Provider, arguments: str
) -> None:
    import json

    text = json.dumps(arguments)[1:-1]
    chat = (
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":'
        f'{{"name":"f","arguments":"{text}"}}}}]}},"finish_reason":null}}]}}\n\n'
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
        "data: [DONE]\n\n"
    )
    responses = (
        'data: {"type":"response.output_item.done","output_index":0,"item":{"type":'
        f'"function_call","call_id":"c1","name":"f","arguments":"{text}","status":"completed"}}}}'
        '\n\ndata: {"type":"response.completed","response":{"status":"completed"}}\n\n'
    )
    claude = (
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        '"content_block":{"type":"tool_use","id":"c1","name":"f","input":null}}\n\n'
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        f'{{"type":"input_json_delta","partial_json":"{text}"}}}}\n\n'
        'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}'
        '\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    for name, body in (("openai-chat", chat), ("openai", responses), ("anthropic", claude)):
        provider.answer = Answer(body.encode())
        heard = ask(model_for(name, provider.url))
        assert heard.message is not None, heard.error
        (call,) = heard.message.tool_calls
        assert call == ToolCall("c1", "f", {}, error=call.error)
        assert call.error
        assert not heard.may_run


def test_a_call_that_responses_calls_incomplete_is_not_run_though_its_json_is_whole(
    provider: Provider,
) -> None:
    body = (
        b'data: {"type":"response.output_item.done","output_index":0,"item":{"type":'
        b'"function_call","call_id":"c1","name":"f","arguments":"{}","status":"incomplete"}}\n\n'
        b'data: {"type":"response.incomplete","response":{"status":"incomplete",'
        b'"incomplete_details":{"reason":"max_output_tokens"}}}\n\n'
    )
    provider.answer = Answer(body)
    heard = ask(model_for("openai", provider.url))
    assert heard.message is not None
    assert heard.message.stop_reason == "max_tokens"
    assert heard.message.tool_calls[0].error
