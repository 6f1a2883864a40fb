"""The real SDKs read every recorded stream, through our models, into the right message."""

from __future__ import annotations

import pytest

from sagents_nb.messages import (
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from tests.models.loopback import (
    RECORDED,
    Answer,
    Heard,
    Provider,
    ask,
    model_for,
    provider_of,
    recorded,
)


def play(provider: Provider, name: str, framing: str = "chunked") -> Heard:
    provider.answer = Answer(recorded(name), framing=framing)
    return ask(model_for(provider_of(name), provider.url))


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("name", RECORDED)
def test_every_recording_ends_in_one_message_whose_text_is_that_of_its_deltas(
    provider: Provider, name: str, framing: str
) -> None:
    heard = play(provider, name, framing)
    assert heard.error is None
    assert heard.message is not None
    assert heard.message.role == "assistant"
    texts = [d.text for d in heard.deltas if isinstance(d, TextDelta)]
    assert "".join(texts) == heard.message.text
    thoughts = [d.text for d in heard.deltas if isinstance(d, ThinkingDelta)]
    assert "".join(thoughts) == heard.message.thinking
    assert heard.message.metadata["response_id"]
    assert heard.message.metadata["model"]


def test_thinking_keeps_its_signature_and_comes_before_the_text(provider: Provider) -> None:
    message = play(provider, "anthropic_thinking").message
    assert message is not None
    thinking, text = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert thinking.provider == "anthropic"
    assert thinking.text.startswith("This is a straightforward question about pedestrian safety")
    assert thinking.signature is not None
    assert len(thinking.signature) > 100
    assert isinstance(text, TextPart)
    assert message.stop_reason == "end_turn"
    assert message.usage is not None
    assert message.usage.input_tokens == 43


def test_a_call_of_claude_is_read_with_its_text_and_usage(provider: Provider) -> None:
    heard = play(provider, "anthropic_tool_use")
    assert heard.message is not None
    assert heard.message.stop_reason == "tool_use"
    (call,) = heard.message.tool_calls
    assert call.error is None
    assert call.arguments
    first, *rest = [d for d in heard.deltas if isinstance(d, ToolCallDelta)]
    assert (first.id, first.name, first.text) == (call.id, call.name, "")
    assert "".join(d.text for d in rest).startswith("{")


@pytest.mark.spec("P17")
def test_the_recording_with_cut_arguments_gives_no_call_that_may_run(provider: Provider) -> None:
    heard = play(provider, "anthropic_cut_tool_json")
    assert heard.message is not None
    assert heard.message.stop_reason == "max_tokens"
    (call,) = heard.message.tool_calls
    assert call.name == "make_file"
    assert call.arguments == {}
    assert call.error is not None
    assert not heard.may_run
    assert heard.message.text.startswith("I'll create a comprehensive tax guide")


@pytest.mark.spec("P17")
def test_a_refusal_is_told_apart_and_runs_nothing(provider: Provider) -> None:
    heard = play(provider, "anthropic_refusal")
    assert heard.message is not None
    assert heard.message.stop_reason == "refusal"
    assert heard.message.metadata["stop_details"]["category"] == "cyber"
    assert not heard.may_run


def test_a_call_over_chat_completions_is_put_together(provider: Provider) -> None:
    message = play(provider, "openai_chat_tool_call").message
    assert message is not None
    assert message.stop_reason == "tool_use"
    assert message.tool_calls == [
        ToolCall("call_ZR5UUuTt3pf61kjwAJIYdVMj", "get_capital", {"country": "UK"})
    ]
    assert message.usage == Usage(53, 15)


def test_an_answer_over_chat_completions_is_put_together(provider: Provider) -> None:
    message = play(provider, "openai_chat_text").message
    assert message is not None
    assert message.stop_reason == "end_turn"
    assert message.text.endswith("London.")
    assert message.usage == Usage(78, 9)


def test_a_call_over_responses_is_put_together(provider: Provider) -> None:
    heard = play(provider, "openai_responses_function_call")
    message = heard.message
    assert message is not None
    assert message.stop_reason == "tool_use"
    assert message.tool_calls == [
        ToolCall("call_kL0PCQV7M2WMoVX8V8OtYSAL", "get_capital", {"country": "France"})
    ]
    assert message.usage == Usage(255, 16)
    deltas = [d for d in heard.deltas if isinstance(d, ToolCallDelta)]
    assert deltas[0].id == "call_kL0PCQV7M2WMoVX8V8OtYSAL"
    assert "".join(d.text for d in deltas) == '{"country":"France"}'


def test_an_answer_over_responses_is_put_together(provider: Provider) -> None:
    message = play(provider, "openai_responses_text").message
    assert message is not None
    assert message.stop_reason == "end_turn"
    assert message.text == "The capital of France is Paris."


@pytest.mark.parametrize("name", RECORDED)
def test_the_connection_is_used_again_for_the_next_request(provider: Provider, name: str) -> None:
    import asyncio

    from sagents_nb.models.providers.clients import close_clients
    from tests.models.loopback import hear

    provider.answer = Answer(recorded(name), framing="chunked")
    model = model_for(provider_of(name), provider.url)
    seen: list[int] = []
    original = provider.serve
    provider.serve = lambda connection: (seen.append(1), original(connection))[1]  # type: ignore[method-assign]

    async def main() -> None:
        for _ in range(3):
            assert (await hear(model)).message is not None
        await close_clients()

    asyncio.run(main())
    assert len(provider.requests) == 3
    assert len(seen) == 1
