"""Requests for threads that another process has open: they go on to its door, answers come back."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ..doors import Door, Unreachable, is_stream

OF_A_PAGE = "x-sagents-page"
"""A header of what was forwarded: a page sent it, so that it approves only what it showed."""

_PASSED_ON = (
    *("content-type", "accept", "last-event-id", "user-agent", "x-request-id"),
    *("mcp-protocol-version", "mcp-method", "mcp-name"),
)
SOCKET_SECONDS = 8.0
"""That a process has for taking a socket."""

_PIECE = 65_536


async def forwarded(request: Request, body: bytes, door: Door, threads: Executor) -> Response:
    """The answer of that process; a stream is passed on as it comes.

    ``threads`` wait for it: as many as there are requests, since each of these may be a stream.
    Raises :class:`~sagents_nb.hub.doors.Unreachable`.
    """
    loop = asyncio.get_running_loop()
    headers = _headers(request.headers)
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    asking = partial(door.ask, request.method, target, headers, body)
    answer = await loop.run_in_executor(threads, asking)
    kind = answer.getheader("content-type", "application/json")
    if is_stream(answer):
        return StreamingResponse(_pieces(answer, threads), answer.status, media_type=kind)
    try:
        content = await loop.run_in_executor(threads, answer.read)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable() from error
    return Response(content, answer.status, media_type=kind)


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    headers = {name: given[name] for name in _PASSED_ON if name in given}
    if "origin" in given:
        headers[OF_A_PAGE] = "1"
    return headers


async def _pieces(answer: http.client.HTTPResponse, threads: Executor) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    try:
        while piece := await loop.run_in_executor(threads, answer.read1, _PIECE):
            yield piece
    except (OSError, http.client.HTTPException):
        return  # it is cut off: the client comes again
    finally:
        answer.close()


async def joined(socket: WebSocket, door: Door, subprotocol: str | None) -> None:
    """Carry frames between a client and that process until one of them is gone."""
    query = f"?{socket.url.query}" if socket.url.query else ""
    address = f"ws://{door.host}{socket.url.path}{query}"
    headers = {**_headers(socket.headers), "Authorization": f"Bearer {door.token}"}
    protocols = None if subprotocol is None else [subprotocol]
    way = connect if door.path is None else partial(unix_connect, door.path)
    try:
        there = await way(
            address,
            additional_headers=headers,
            subprotocols=protocols,  # type: ignore[arg-type]
            open_timeout=SOCKET_SECONDS,
            max_size=None,
            proxy=None,
        )
    except (OSError, TimeoutError, InvalidStatus) as error:
        raise Unreachable() from error
    async with there:
        await socket.accept(subprotocol)
        carrying = [
            asyncio.create_task(_carry_there(socket, there)),
            asyncio.create_task(_carry_here(there, socket)),
        ]
        _, left = await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
    code, reason = there.close_code or 1001, there.close_reason or ""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(code if code not in (1005, 1006) else 1001, reason)


async def _carry_there(socket: WebSocket, there: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            await there.send(message.get("text") or message.get("bytes") or "")


async def _carry_here(there: ClientConnection, socket: WebSocket) -> None:
    with contextlib.suppress(ConnectionClosed, WebSocketDisconnect):
        async for message in there:
            await socket.send_text(message if isinstance(message, str) else message.decode())
