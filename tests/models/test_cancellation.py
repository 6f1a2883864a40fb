"""A cancelled call closes its connection at once."""

from __future__ import annotations

import asyncio

import pytest

from sagents_nb.messages import Message
from sagents_nb.models import ModelRequest
from sagents_nb.models.providers.clients import close_clients
from tests.models.loopback import MODELS, Answer, Provider, model_for, recorded
from tests.talking import PATIENCE

STREAMS = {
    "anthropic": "anthropic_thinking",
    "openai": "openai_responses_text",
    "openai-chat": "openai_chat_text",
}
REQUEST = ModelRequest([Message.user("hi")])


async def gone(provider: Provider) -> None:
    """The server has seen the connection close, which it keeps open as long as it can."""
    assert await asyncio.to_thread(provider.disconnected.wait, PATIENCE)


def half(provider: Provider, name: str) -> None:
    body = recorded(STREAMS[name])
    end = body.rfind(b"\n\n", 0, len(body) // 2) + 2
    provider.answer = Answer(body[:end], framing="chunked", end="stall")


@pytest.mark.parametrize("name", MODELS)
def test_cancelling_the_task_closes_the_connection(provider: Provider, name: str) -> None:
    half(provider, name)
    model = model_for(name, provider.url)

    async def listen(started: asyncio.Event) -> None:
        async for _ in model.stream(REQUEST):
            started.set()

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(listen(started))
        await started.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone(provider)
        await close_clients()

    asyncio.run(main())


@pytest.mark.parametrize("name", MODELS)
def test_closing_the_generator_closes_the_connection(provider: Provider, name: str) -> None:
    half(provider, name)
    model = model_for(name, provider.url)

    async def main() -> None:
        stream = model.stream(REQUEST)
        await anext(stream)
        await stream.aclose()
        await gone(provider)
        await close_clients()

    asyncio.run(main())


@pytest.mark.parametrize("name", MODELS)
def test_a_call_can_be_cancelled_before_the_server_has_answered(
    provider: Provider, name: str
) -> None:
    provider.answer = Answer(b"", hold=PATIENCE)
    model = model_for(name, provider.url)

    async def main() -> None:
        task = asyncio.ensure_future(anext(model.stream(REQUEST)))
        while not provider.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await close_clients()

    asyncio.run(main())


@pytest.mark.parametrize("name", MODELS)
def test_the_client_is_still_good_after_a_cancellation(provider: Provider, name: str) -> None:
    model = model_for(name, provider.url)

    async def main() -> None:
        for _ in range(3):
            half(provider, name)
            stream = model.stream(REQUEST)
            await anext(stream)
            await stream.aclose()
            provider.answer = Answer(recorded(STREAMS[name]), framing="chunked")
            items = [item async for item in model.stream(REQUEST)]
            assert isinstance(items[-1], Message)
        await close_clients()

    asyncio.run(main())
