"""The hub as an ASGI application: what the guard lets through is read, done and answered."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from ...errors import (
    AgentError,
    Busy,
    ConfigurationError,
    InvalidDecision,
    NotFound,
    NotRunning,
    Owned,
    SagentsError,
    StaleApproval,
    StoreError,
)
from ...files import FileError
from ...text import logger_of
from ..agencies import NameTaken
from ..event_log import ThreadEvent
from ..hub import Hub
from .agent_routes import since_of
from .call import Call, TooMany
from .feed import Feed
from .guard import MATCH, SUBPROTOCOL, Guard, Receive, Scope, Send, Settings, TooLarge
from .openapi import document
from .pages import PAGE, POLICY, asset
from .routes import Match, Route
from .stream import TRY_LATER, Stream

logger = logger_of(__name__)

WORKERS = 16
"""Threads that wait for the store and for sessions, so that an answer means that it is kept."""

HEARTBEAT = 15.0
"""Seconds without an event after which a stream says that it is alive."""

CODE_SECONDS = 60.0

_STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (NotFound, 404),
    (NameTaken, 409),
    (StaleApproval, 409),
    (Owned, 409),
    (Busy, 409),
    (TooMany, 429),
    (TooLarge, 413),
    (InvalidDecision, 400),
    (ConfigurationError, 400),
    (FileError, 400),
    (StoreError, 503),
    (NotRunning, 400),
    (AgentError, 409),
)


class Codes:
    """Codes that stand for the token, for an address: each once, and for a minute."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._until: dict[str, float] = {}

    def new(self) -> str:
        """A further one."""
        code = secrets.token_urlsafe(24)
        self._until[code] = time.monotonic() + CODE_SECONDS
        return code

    def exchanged(self, code: str) -> str | None:
        """The token, if the code is one of these, and stands for it still."""
        until = self._until.pop(code, 0.0)
        return self._token if time.monotonic() < until else None


class App:
    """Answers what the guard let through; ``codes`` may be exchanged for the token."""

    def __init__(self, hub: Hub, settings: Settings, codes: Codes | None = None) -> None:
        self.hub = hub
        self.settings = settings
        self.codes = codes
        self.draining = False
        self._workers = ThreadPoolExecutor(WORKERS, "sagents-hub")
        self._sockets: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        found: Match = scope[MATCH]
        assert found.route is not None
        if scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, send), found)
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request, found, found.route)
        except Exception as error:  # one request must not end the others
            response = _failure(error)
        await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._workers.shutdown(wait=False, cancel_futures=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _work(self, function: Any, *args: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, partial(function, *args))

    async def _answer(self, request: Request, found: Match, route: Route) -> Response:
        if route.kind == "page":
            if route.path == "/":
                return Response(PAGE, media_type="text/html", headers=POLICY)
            content, kind = asset(route.path.rpartition("/")[2])
            return Response(content, media_type=kind)
        if route.path == "/healthz":
            status = "draining" if self.draining else "ok"
            return JSONResponse({"status": status}, 503 if self.draining else 200)
        if route.path == "/openapi.json":
            return JSONResponse(document())
        body = None
        if route.body is not None:
            body = _body(await request.body(), route.body)
        if route.path == "/auth/exchange":
            token = self.codes.exchanged(body.code) if self.codes and body else None
            if token is None:
                return _error(401, "That code is used or too old; start the hub's page again.")
            return JSONResponse({"token": token})
        if self.draining and request.method != "GET":
            return _error(503, "This hub is about to end; try again in a moment.")
        call = self._call(request, found, body)
        if route.path.endswith("/events") and "text/event-stream" in call.headers.get("accept", ""):
            return await self._events(call)
        assert route.handle is not None
        reply = await self._work(route.handle, call)
        return Response(msgspec.json.encode(reply), route.status, media_type="application/json")

    def _call(self, request: Request | WebSocket, found: Match, body: Any = None) -> Call:
        return Call(
            hub=self.hub,
            limits=self.settings.limits,
            parameters=found.parameters,
            query=dict(request.query_params),
            headers={name.lower(): value for name, value in request.headers.items()},
            client=request.client.host if request.client else "",
            body=body,
        )

    # what goes on

    @contextlib.contextmanager
    def _room(self, call: Call) -> Iterator[None]:
        """Room for one more who listens; raises :class:`TooMany`."""
        agency, limits = call.parameters["agency"], self.settings.limits
        if (
            self._sockets.total() >= limits.sockets
            or self._sockets[agency] >= limits.sockets_of_agency
        ):
            raise TooMany("So many clients listen that there is room for no more; try again later.")
        self._sockets[agency] += 1
        try:
            yield
        finally:
            self._sockets[agency] -= 1

    @contextlib.asynccontextmanager
    async def _feed(self, call: Call) -> AsyncIterator[Feed]:
        """What is told of the thread of ``call``."""
        since = since_of(call)
        agency, thread = await self._work(lambda: (call.agency, call.thread))
        id = thread.record.id
        feed = Feed(thread, since, lambda after: self.hub.events(agency, id, after))
        try:
            await self._work(feed.begin)
            yield feed
        finally:
            feed.end()

    async def _events(self, call: Call) -> Response:
        stack = contextlib.AsyncExitStack()
        stack.enter_context(self._room(call))
        try:
            feed = await stack.enter_async_context(self._feed(call))
        except BaseException:
            await stack.aclose()
            raise

        async def frames() -> AsyncIterator[bytes]:
            async with stack:
                async for event in _with_heartbeat(feed):
                    yield b": alive\n\n" if event is None else _frame(event)

        return StreamingResponse(frames(), media_type="text/event-stream")

    async def _socket(self, socket: WebSocket, found: Match) -> None:
        call = self._call(socket, found)
        assert found.route is not None
        async with contextlib.AsyncExitStack() as stack:
            try:
                stack.enter_context(self._room(call))
                if found.route.path.endswith("/stream"):
                    thread = await self._work(lambda: call.thread)
                    stream = Stream(socket, thread)
                    stack.callback(stream.end)
                    telling, hearing = stream.tell, stream.hear
                else:
                    feed = await stack.enter_async_context(self._feed(call))
                    telling, hearing = partial(_tell, socket, feed), partial(_hear, socket)
            except Exception as error:
                await socket.send_denial_response(_failure(error))
                return
            offered = socket.scope.get("subprotocols", ())
            await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
            await _both(socket, telling, hearing)


async def _both(
    socket: WebSocket,
    telling: Callable[[], Coroutine[Any, Any, None]],
    hearing: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Tell and hear, until the page is gone, or there is nothing more to tell."""
    tells, hears = asyncio.create_task(telling()), asyncio.create_task(hearing())
    _, left = await asyncio.wait({tells, hears}, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(tells, hears, return_exceptions=True)
    if hears in left:
        slow = not tells.cancelled() and isinstance(tells.exception(), TimeoutError)
        code, why = (TRY_LATER, "It was not read.") if slow else (1001, "The thread is closed.")
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
            await asyncio.wait_for(socket.close(code, why), 1.0)


async def _tell(socket: WebSocket, feed: Feed) -> None:
    async for event in feed:
        await socket.send_text(msgspec.json.encode(event).decode())


async def _hear(socket: WebSocket) -> None:
    """Until it is gone; what it says is nothing that is known here."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _with_heartbeat(feed: Feed) -> AsyncIterator[ThreadEvent | None]:
    events = aiter(feed)
    following = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=HEARTBEAT)
            if not done:
                yield None
                continue
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            following = asyncio.ensure_future(anext(events))
            yield event
    finally:
        following.cancel()


def _frame(event: ThreadEvent) -> bytes:
    data = msgspec.json.encode(event)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), data)


def _body(raw: bytes, kind: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"The body does not fit: {error}.") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise ConfigurationError("The body is no JSON; send an object.") from None


def _error(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def _failure(error: Exception) -> JSONResponse:
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return _error(status, str(error))
    if isinstance(error, SagentsError):
        return _error(400, str(error))
    logger.error("A request failed", exc_info=error)
    return _error(500, "The hub failed at this; its log says why.")


def app(hub: Hub, settings: Settings, codes: Codes | None = None) -> Guard:
    """The application of a ``hub``, behind its guard."""
    return Guard(App(hub, settings, codes), hub, settings)
