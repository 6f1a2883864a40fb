"""The hub as an ASGI application: what the guard lets through is read, done and answered."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
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
from ...serialization import encoded
from ...text import logger_of
from ..agencies import NameTaken
from ..dialects.openai_chat import Completion
from ..doors import Door, NoDoor
from ..hub import Hub
from ..limits import TooMany
from ..threads import NoKernel, Thread
from .access import Access
from .agent_routes import since_of
from .agui_routes import AgentRun
from .bodies import body_of
from .call import Call, problem
from .codes import Codes, WrongCode
from .feed import Channel, Feed, Told
from .forwarding import forwarded, joined
from .guard import (
    FORWARDED,
    MATCH,
    OWNER,
    SUBPROTOCOL,
    Guard,
    Receive,
    Scope,
    Send,
    TooLarge,
    deny,
)
from .patience import Patience
from .route import Route
from .routes import Match
from .settings import Settings
from .sse import frame_of, streamed
from .standstill import in_time
from .stream import Frame, KeptStream, Stream

if TYPE_CHECKING:
    from .mcp_tools import Exchange, ToolServers

logger = logger_of(__name__)

T = TypeVar("T")

_Doing = Callable[[], Coroutine[Any, Any, None]]

WORKERS = 16
"""Threads that wait for the store and for sessions, so that an answer means that it is kept."""

STALLED_SECONDS = 30.0
"""Without progress after which a client is let go of."""

_STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (WrongCode, 401),
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


class App:
    """Answers what the guard let through; ``codes`` may be exchanged for the token."""

    def __init__(self, hub: Hub, settings: Settings, codes: Codes | None = None) -> None:
        self.hub = hub
        self.settings = settings
        self.codes = codes
        self.draining = False
        self._ended = False
        self._answering: set[asyncio.Task[Any]] = set()
        self._workers = ThreadPoolExecutor(WORKERS, "sagents-hub")
        # As many as may listen: what is heard of another process may be for one who does.
        self._forwarding = ThreadPoolExecutor(settings.limits.sockets, "sagents-forwarding")
        self._sockets: Counter[str] = Counter()
        self._tools: ToolServers | None = None
        self._channels: dict[Thread, Channel] = {}
        self._patience = Patience(STALLED_SECONDS)
        hub.figures.gauge("sagents_hub_clients", "Clients that listen.", self._sockets.total)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        found: Match = scope[MATCH]
        assert found.route is not None
        if scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, self._patience.sends(send)), found)
            return
        answering = asyncio.current_task()
        assert answering is not None
        self._answering.add(answering)
        has_begun = False
        patient = self._patience.sends(send)

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await patient(message)

        try:
            await self._answered(scope, receive, sending, found)
        except asyncio.CancelledError:
            if not self._ended:
                raise
            if has_begun:
                last = {"type": "http.response.body", "body": b"", "more_body": False}
                with contextlib.suppress(Exception):  # it was to have more
                    await patient(last)
            else:
                await _ending(scope["path"])(scope, receive, patient)
        finally:
            self._answering.discard(answering)

    def end(self) -> None:
        """Let go of who still waits for an answer, or for more of one."""
        self._ended = True
        for answering in self._answering:
            answering.cancel()

    async def _answered(self, scope: Scope, receive: Receive, send: Send, found: Match) -> None:
        assert found.route is not None
        request = Request(scope, receive)
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await self._answer(request, found, found.route, stack)
            except ClientDisconnect:
                return
            except Owned as owned:
                response = await self._elsewhere(request, owned)
            except Exception as error:  # one request must not end the others
                response = _failure(error, scope["path"])
            with contextlib.suppress(ClientDisconnect, TimeoutError):
                await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._tools is not None:
            await self._tools.end()
        for threads in (self._workers, self._forwarding):
            threads.shutdown(wait=False, cancel_futures=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _work(self, function: Any, *args: Any) -> Any:
        loop = asyncio.get_running_loop()
        working = loop.run_in_executor(self._workers, partial(function, *args))
        return await in_time(working, self.hub.store.database)

    async def _answer(
        self, request: Request, found: Match, route: Route, stack: contextlib.AsyncExitStack
    ) -> Response | Exchange:
        """What is answered; ``stack`` is left once it is."""
        if self.draining and (route.method != "GET" or route.tells_whether_ready):
            return _ending(route.path)
        if route.kind == "mcp":
            return await self._exchange(request, found, stack)
        body = None
        if route.body is not None:
            body = body_of(await request.body(), route.body)
        call = self._call(request, found, body)
        accepts = "text/event-stream" in call.headers.get("accept", "")
        if route.tells is not None and accepts and request.method == "GET":
            return await self._told(route, call, stack)
        if route.handle is None:
            stream = await self._stream(call, stack)
            stream.hello(since_of(call))
            frame = await anext(stream.frames())
            return Response(frame.data, media_type="application/json")
        if route.streams:
            stack.enter_context(self._room(call.parameters["agency"]))
            run: AgentRun = await self._work(route.handle, call)
            stack.callback(run.close)
            return StreamingResponse(run.chunks(), media_type="text/event-stream")
        reply = route.handle(call) if route.at_once else await self._work(route.handle, call)
        if isinstance(reply, Response):
            return reply
        if isinstance(reply, str):
            return Response(reply, media_type=route.media)
        if isinstance(reply, Completion):
            return await self._completed(reply, request, streamed=call.body.stream)
        return Response(encoded(reply), route.status, media_type="application/json")

    async def _exchange(
        self, request: Request, found: Match, stack: contextlib.AsyncExitStack
    ) -> Response | Exchange:
        """What an MCP client says, of the agency in the address, or of that whose secret it has."""
        body, path = await request.body(), request.scope["path"]
        id = found.parameters.get("agency") or request.scope.get(OWNER)
        if id is None:
            raise ConfigurationError(
                "The hub's token is of no agency; name one, as /agency/{id}/mcp, or use its secret."
            )
        request.scope["path"] = f"/agency/{id}/mcp"  # also for who has a thread open elsewhere
        call = self._call(request, found._replace(parameters={"agency": id}))
        agency = await self._work(lambda: call.agency)
        if request.method == "DELETE" and "mcp-session-id" not in call.headers:
            raise ConfigurationError("This ends the session that Mcp-Session-Id names; send one.")
        stack.enter_context(self._room(call.parameters["agency"]))
        try:
            module = await self._work(importlib.import_module, f"{__package__}.mcp_tools")
        except ModuleNotFoundError as error:
            needs = f"Agents are tools of MCP's clients with {error.name or 'mcp'}"
            return _error(path, 501, f"{needs}: pip install 'sagents-nb[mcp]'.")
        if self._tools is None:
            self._tools = module.ToolServers(self.hub, self._work, self._workers.submit)
        server = await self._tools.of(agency, self.settings.limits.sockets)
        exchange: Exchange = module.Exchange(server, call, body)
        if (thread_id := exchange.thread_id) is not None:
            with contextlib.suppress(NotFound):  # which is told as a result
                await self._work(self.hub.thread, agency, thread_id)
        return exchange

    async def _told(
        self, route: Route, call: Call, stack: contextlib.AsyncExitStack
    ) -> StreamingResponse:
        """What is told of a thread, as it happens."""
        stack.enter_context(self._room(call.parameters["agency"]))  # refused before it begins
        if route.tells == "events":
            return streamed(await self._feed(call, stack), _frame_of_event)
        stream = await self._stream(call, stack)
        stream.hello(since_of(call))
        return streamed(stream.frames(), _frame_of_message)

    async def _door(self, owned: Owned, scope: Scope) -> Door:
        """Where the process is asked that has a thread open; raises :class:`NoDoor`."""
        door: Door | None = None
        if not scope.get(FORWARDED):  # else it was somebody else's a moment ago: in no circle
            door = await self._work(self.hub.doors.of, owned.owner)
        if door is None:
            raise NoDoor(owned)
        return door

    async def _elsewhere(self, request: Request, owned: Owned) -> Response:
        try:
            door = await self._door(owned, request.scope)
            return await forwarded(request, await request.body(), door, self._forwarding)
        except Exception as error:
            return _failure(error, request.url.path)

    async def _completed(
        self, completion: Completion, request: Request, *, streamed: bool
    ) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in completion.chunks():
                    yield chunk
            finally:
                self._workers.submit(completion.close)  # nothing is awaited once a client has left

        if streamed:
            return StreamingResponse(chunks(), media_type="text/event-stream")
        try:
            reply = await _while_there(request, completion.reply())
        except AgentError as error:  # of its run; clients ask again by themselves after 409 and 5xx
            return _error(request.url.path, 422, str(error))
        finally:
            self._workers.submit(completion.close)
        return Response(encoded(reply), media_type="application/json")

    def _call(self, request: Request | WebSocket, found: Match, body: Any = None) -> Call:
        return Call(
            self.hub,
            self.settings,
            found.parameters,
            codes=self.codes,
            query=dict(request.query_params),
            headers={name.lower(): value for name, value in request.headers.items()},
            client=request.client.host if request.client else "",
            owner=request.scope.get(OWNER),
            body=body,
        )

    # what goes on

    @contextlib.contextmanager
    def _room(self, agency: str) -> Iterator[None]:
        """Room for one more who listens; raises :class:`TooMany`."""
        limits = self.settings.limits
        if (
            self._sockets.total() >= limits.sockets
            or self._sockets[agency] >= limits.sockets_of_agency
        ):
            raise TooMany("So many clients listen that there is room for no more; try again later.")
        self._sockets[agency] += 1
        try:
            yield
        finally:
            self._sockets -= Counter([agency])

    async def _feed(self, call: Call, stack: contextlib.AsyncExitStack) -> Feed:
        """What is told of the thread of ``call``, until ``stack`` is left."""
        since = since_of(call)
        thread: Thread = await self._work(lambda: call.thread)
        if (channel := self._channels.get(thread)) is None:
            channel = self._channels[thread] = Channel(thread, asyncio.get_running_loop())
        feed = Feed(channel, since, partial(self.hub.events, call.agency, thread.record.id))
        stack.callback(self._leave, thread, feed)
        await channel.begun.wait()
        return feed

    def _leave(self, thread: Thread, feed: Feed) -> None:
        feed.end()
        if not self._channels[thread].readers:
            del self._channels[thread]

    async def _stream(self, call: Call, stack: contextlib.AsyncExitStack) -> Stream | KeptStream:
        """The thread of ``call``, as a page of a panel sees it, until ``stack`` is left."""
        loop = asyncio.get_running_loop()
        stream: Stream | KeptStream = await self._work(_stream_of, call, loop)
        stack.callback(stream.end)
        return stream

    async def _socket(self, socket: WebSocket, found: Match) -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                telling, hearing = await self._opened(socket, found, stack)
            except Owned as owned:
                await self._socket_elsewhere(socket, owned)
                return
            except Exception as error:
                await deny(socket, _failure(error, socket.url.path))
                return
            await socket.accept(_subprotocol(socket))
            await _both(socket, telling, hearing)

    async def _opened(
        self, socket: WebSocket, found: Match, stack: contextlib.AsyncExitStack
    ) -> tuple[_Doing, _Doing]:
        """What tells and what hears, until ``stack`` is left; a socket keeps no more than these."""
        call = self._call(socket, found)
        assert found.route is not None
        stack.enter_context(self._room(call.parameters["agency"]))
        if found.route.tells == "panel":
            stream = await self._stream(call, stack)
            return partial(stream.tell, socket), partial(stream.hear, socket)
        feed = await self._feed(call, stack)
        return partial(_tell, socket, feed), partial(_hear, socket)

    async def _socket_elsewhere(self, socket: WebSocket, owned: Owned) -> None:
        try:
            door = await self._door(owned, socket.scope)
            await joined(socket, door, _subprotocol(socket))
        except Exception as error:
            await deny(socket, _failure(error, socket.url.path))


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` gives; a client that leaves meanwhile has it stopped."""

    async def leaving() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, left = asyncio.ensure_future(work), asyncio.ensure_future(leaving())
    try:
        await asyncio.wait({working, left}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        left.cancel()


def _stream_of(call: Call, loop: asyncio.AbstractEventLoop) -> Stream | KeptStream:
    try:
        return Stream(call.thread, loop, partial(call.room, call.thread))
    except NoKernel:
        kept = call.hub.kept(call.agency, call.parameters["thread"])
        return KeptStream(kept.snapshot())


def _subprotocol(socket: WebSocket) -> str | None:
    return SUBPROTOCOL if SUBPROTOCOL in socket.scope.get("subprotocols", ()) else None


async def _both(
    socket: WebSocket,
    telling: _Doing,
    hearing: _Doing,
) -> None:
    """Tell and hear, until the page is gone, or there is nothing more to tell."""
    tells, hears = asyncio.create_task(telling()), asyncio.create_task(hearing())
    done, left = await asyncio.wait({tells, hears}, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(tells, hears, return_exceptions=True)
    if tells in done:
        await _close(socket, tells.exception())


async def _tell(socket: WebSocket, feed: Feed) -> None:
    async for told in feed:
        await socket.send_text(told.json)


async def _close(socket: WebSocket, failed: BaseException | None) -> None:
    if isinstance(failed, WebSocketDisconnect):
        return
    if failed is not None and not isinstance(failed, TimeoutError):  # else it read too slowly
        logger.error("A socket failed", exc_info=failed)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        if failed is None:
            await socket.close(1001, "The thread is closed.")
        else:
            await socket.close(1011, "The hub failed at this; its log says why.")


async def _hear(socket: WebSocket) -> None:
    """Until it is gone; what it says is nothing that is known here."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def _frame_of_event(told: Told) -> bytes:
    return frame_of(told.json.encode(), told.event.type, told.event.seq)


def _frame_of_message(frame: Frame) -> bytes:
    return frame_of(frame.data, frame.kind, frame.seq)


def _error(path: str, status: int, sentence: str) -> Response:
    return Response(encoded(problem(path, sentence)), status, media_type="application/json")


def _ending(path: str) -> Response:
    return _error(path, 503, "This hub is about to end; try again in a moment.")


def _failure(error: Exception, path: str) -> Response:
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return _error(path, status, str(error))
    if isinstance(error, SagentsError):
        return _error(path, 400, str(error))
    logger.error("A request failed", exc_info=error)
    return _error(path, 500, "The hub failed at this; its log says why.")


def guarded(app: App) -> Access:
    """The application behind its guard; each request is counted, and has its line of the log."""
    return Access(Guard(app, app.hub, app.settings), app.hub)


def app(hub: Hub, settings: Settings, codes: Codes | None = None) -> Access:
    """The application of a ``hub``."""
    return guarded(App(hub, settings, codes))
