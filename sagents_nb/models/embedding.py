"""Vectors of texts: in what portions a model is asked for them, and how they are recorded."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from ..messages import Message, ProviderPart
from .base import ChatModel, ModelRequest
from .providers.embeddings import packed, unpacked
from .retry import retried

MOST_TEXTS = 256
"""Texts of one request,"""
MOST_CHARACTERS = 250_000
"""and their characters, of which none has more than a token: OpenAI takes 300,000."""

_PROVIDER = "embedding"  # whose part a recorded vector is


def portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """``texts`` in order, as many at a time as a request may have.

    >>> [len(portion) for portion in portions(["a"] * 300)]
    [256, 44]
    """
    portion: list[str] = []
    size = 0
    for text in texts:
        if portion and (len(portion) == MOST_TEXTS or size + len(text) > MOST_CHARACTERS):
            yield portion
            portion, size = [], 0
        portion.append(text)
        size += len(text)
    if portion:
        yield portion


async def embedded(
    model: ChatModel, texts: Sequence[str], dimensions: int | None
) -> list[Sequence[float]]:
    """The vectors of ``texts``, each different one asked for once."""
    asked = retried(model)
    known: dict[str, Sequence[float]] = {}
    for portion in portions(list(dict.fromkeys(texts))):
        known |= zip(portion, await asked.vectors(portion, dimensions), strict=True)
    return [known[text] for text in texts]


# A vector as a recording: each text is a request of its own, so that of a longer list of texts
# only the new ones are asked for.


def request_for(model: ChatModel, text: str, dimensions: int | None) -> ModelRequest:
    """What a vector's recording is found by."""
    options = {"embedding": True, "dimensions": dimensions}
    return ModelRequest([Message.user(text)], options=options, model=model.name)


def message_of(vector: Sequence[float]) -> Message:
    """The message that is recorded for a vector."""
    part = ProviderPart(_PROVIDER, {"float32": packed(array("f", vector))})
    return Message("assistant", (part,), stop_reason="end_turn")


def vector_in(message: Message) -> Sequence[float] | None:
    """The vector of a recorded message, or None if it has none."""
    part = message.parts[0] if message.parts else None
    if not isinstance(part, ProviderPart) or part.provider != _PROVIDER:
        return None
    try:
        return unpacked(part.data["float32"])
    except (KeyError, TypeError, ValueError):
        return None
