"""Server-sent events: what is told as it happens, for whoever only listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TypeVar

from starlette.responses import StreamingResponse

T = TypeVar("T")

HEARTBEAT = 15.0
"""Seconds without an event after which a stream says that it is alive."""

ALIVE = b": alive\n\n"


def frame_of(data: bytes, kind: str, id: int | None) -> bytes:
    """One event; whoever is cut off says the ``id`` of the last when it comes again."""
    number = b"" if id is None else b"id: %d\n" % id
    return b"%sevent: %s\ndata: %s\n\n" % (number, kind.encode(), data)


def streamed(things: AsyncIterable[T], frame: Callable[[T], bytes]) -> StreamingResponse:
    """An answer of the ``frame`` of each of these, as they come."""
    return StreamingResponse(_frames(things, frame), media_type="text/event-stream")


async def _frames(things: AsyncIterable[T], frame: Callable[[T], bytes]) -> AsyncIterator[bytes]:
    coming = aiter(things)
    following = asyncio.ensure_future(anext(coming))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=HEARTBEAT)
            if not done:
                yield ALIVE
                continue
            try:
                thing = following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(anext(coming))
            yield frame(thing)
    finally:
        following.cancel()
