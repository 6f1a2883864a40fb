"""Asking a model by hand, and answers to store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import sagents_nb as sa
from sagents_nb.messages import Delta
from sagents_nb.models import ChatModel, ModelRequest
from sagents_nb.models.cache import Asked, Recording, asked
from sagents_nb.models.cache.recording import recording_of

CANARY = "sk-canary-5e21c0ffee99-never-to-be-written"


def request(text: str = "hi", **fields: Any) -> ModelRequest:
    """A request with that one message."""
    return ModelRequest([sa.Message.user(text)], **fields)


def answered(model: ChatModel, what: ModelRequest) -> tuple[list[Delta], sa.Message]:
    """The deltas and the message of one answer."""

    async def collect() -> list[Any]:
        stream: Any = model.stream(what)
        async with aclosing(stream):
            return [item async for item in stream]

    *deltas, message = asyncio.run(collect())
    assert isinstance(message, sa.Message)
    return deltas, message


def say(model: ChatModel, text: str = "hi") -> str:
    """The text of the answer to that."""
    return answered(model, request(text))[1].text


def key(text: str) -> Asked:
    """What is asked by a request of that text."""
    return asked(sa.ScriptedModel([]), request(text))


def recording(text: str = "hi", answer: str = "Hello!") -> Recording:
    """A recording of that answer to that text."""
    return recording_of(key(text), sa.Message.assistant(answer), "t6")


def turns(number: int, system: str = "Be brief.", words: int = 1) -> Iterator[Recording]:
    """The answers of a conversation, each to all that was said before."""
    history: list[sa.Message] = []
    for turn in range(100, 100 + number):
        history.append(sa.Message.user(f"Question {turn}é" + " and" * words))
        answer = sa.Message.assistant(f"Answer {turn}é" + " so" * words)
        what = asked(sa.ScriptedModel([]), ModelRequest(list(history), system))
        yield recording_of(what, answer, "t3*4")
        history.append(answer)
