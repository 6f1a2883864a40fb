"""Vectors of texts, from OpenAI and every server that has its endpoint for them."""

from __future__ import annotations

import asyncio
import base64
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

from ...errors import ModelError
from ...redaction import Unshown
from . import clients
from .clients import Secret
from .errors import Where, from_exception
from .history import encode_body
from .streaming import LONGEST_BODY, LONGEST_CALL, ProviderModel, request_options

PATH = "/embeddings"


class _Vector(msgspec.Struct):
    embedding: str | list[float]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Vector]


_decode = msgspec.json.Decoder(_Answer).decode


async def embedded(
    model: ProviderModel, texts: Sequence[str], dimensions: int | None
) -> list[array[float]]:
    """The vectors of ``texts``, in one request; raises :class:`~sagents_nb.errors.ModelError`."""
    client = await clients.client(model.sdk, model.key, Secret(model.base_url))
    options = Unshown(model.options)
    where = model.where(client, options)
    transport = request_options(options)
    patience = clients.take_reading_time(client, transport, LONGEST_CALL)
    # Base64 is a quarter of the digits, and what the SDK itself asks every server for.
    body: dict[str, Any] = {"model": model.name, "input": list(texts), "encoding_format": "base64"}
    body |= {"dimensions": dimensions} if dimensions else {}
    body |= options.get("extra_body") or {}
    data, failure = await _posted(client, encode_body(body), transport, where, patience)
    del client, options, transport, body
    if failure is None:
        vectors = _vectors(data, len(texts))
        if vectors is not None:
            return vectors
        failure = ModelError(
            f"{where.provider} at {where.host} gave no vector for each of {len(texts)} texts; "
            f"check that {where.model!r} is a model for embeddings, and base_url.",
            kind="server",
        )
    raise failure


async def _posted(
    client: Any, body: bytes, transport: dict[str, Any], where: Where, patience: float
) -> tuple[bytes, ModelError | None]:
    """The body of the answer, or what went wrong: our error carries none of the SDK's."""
    response: Any = None
    try:
        async with asyncio.timeout(patience):
            response = await clients.post(client, PATH, body, transport, where.secrets)
            whole = bytearray()
            async for piece in clients.pieces(response.aiter_raw(), response.headers):
                whole += piece
                if len(whole) > LONGEST_BODY:
                    raise ValueError(f"it has over {LONGEST_BODY:,} bytes")
        return bytes(whole), None
    except Exception as error:
        return b"", from_exception(error, where)
    finally:
        if response is not None:
            await response.aclose()


def _vectors(data: bytes, count: int) -> list[array[float]] | None:
    """The vectors in the order of the texts, or None for anything else."""
    try:
        found = _decode(data).data
        order = [vector.index for vector in found]
        if None in order:
            order = list(range(len(found)))
        if sorted(order) != list(range(count)):  # type: ignore[type-var]
            return None
        by_index = dict(zip(order, found, strict=True))
        vectors = [_numbers(by_index[index].embedding) for index in range(count)]
    except (ValueError, OverflowError):  # no JSON, no Base64, half a number
        return None
    same = len({len(vector) for vector in vectors}) <= 1
    return vectors if same and all(len(v) and all(map(math.isfinite, v)) for v in vectors) else None


def _numbers(embedding: str | list[float]) -> array[float]:
    if isinstance(embedding, list):
        return array("f", embedding)
    return unpacked(embedding)


def packed(vector: array[float]) -> str:
    """A vector as Base64 of 32-bit floats, the lowest byte first."""
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return base64.b64encode(vector.tobytes()).decode()


def unpacked(text: str) -> array[float]:
    """What :func:`packed` gave; raises ValueError for anything else.

    >>> unpacked(packed(array("f", [0.5, -1.0]))).tolist()
    [0.5, -1.0]
    """
    vector = array("f")
    vector.frombytes(base64.b64decode(text, validate=True))
    if sys.byteorder == "big":
        vector.byteswap()
    return vector
