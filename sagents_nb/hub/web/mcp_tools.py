"""Agents as tools of MCP's clients, over that protocol's own SDK: imported when a client comes.

Clients of before 2026-07-28 have a session, and are asked while their call is under way; later ones
get what is asked as the result of their call, and call again with the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    Tool,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ...errors import ConfigurationError, InvalidDecision, Owned, SagentsError, StaleApproval
from ...interrupts import Interrupt as Waiting
from ...messages import Message
from ...text import logger_of
from ..agencies import Agency
from ..dialects.agui import Answers
from ..dialects.mcp import (
    INPUT,
    Filled,
    Form,
    ToolArguments,
    answers_of,
    arguments_of,
    forms_of,
    progress_of,
    refusal_of,
    result_of,
    tool_of,
    waits_text,
)
from ..doors import NoDoor, Unreachable
from ..hub import Hub
from ..threads import Thread
from ..vocabulary import reason_of
from .call import Call
from .feed import Feed

logger = logger_of(__name__)

Context = ServerRequestContext[Any, Any]
Work = Callable[..., Awaitable[Any]]

EXCHANGE = "sagents.exchange"
"""In the scope of a request to an MCP server: the :class:`Exchange` that it is."""

ANSWER_SECONDS = 86_400.0
"""In which what a client of 2026-07-28 is asked can be answered by calling again."""

IDLE_SECONDS = 1_800.0
"""After which a session of an older client ends in which nothing was said."""

_LATE = "Somebody had answered that before: the answer given here was not used."


class Exchange:
    """One request of an MCP client, whose ``body`` is read: an answer as Starlette has them.

    ``left`` once the client wants the result no more. ``session`` is that of an older client.
    """

    def __init__(self, server: ToolServer, call: Call, body: bytes) -> None:
        self.call = call
        self.left = False
        later = call.headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS
        self.session = None if later else call.headers.get("mcp-session-id")
        self._server = server
        self._body = body
        try:
            said = json.loads(body or b"null")
        except (ValueError, RecursionError):
            said = None  # the SDK says what is wrong with it
        self._said: Mapping[str, Any] = said if isinstance(said, dict) else {}

    @property
    def thread_id(self) -> str | None:
        """The thread that it is for, where it can be sent on as it is: not within a session."""
        parameters = self._said.get("params")
        if self.session is not None or not isinstance(parameters, dict):
            return None
        arguments = parameters.get("arguments")
        named = arguments.get("thread_id") if isinstance(arguments, dict) else None
        return named if isinstance(named, str) else None

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer it."""
        given, parameters = iter((self._body,)), self._said.get("params")
        if self._said.get("method") == "notifications/cancelled" and isinstance(parameters, dict):
            self._server.leave(self.session, parameters.get("requestId"))

        async def receiving() -> MutableMapping[str, Any]:
            if (body := next(given, None)) is not None:
                return {"type": "http.request", "body": body, "more_body": False}
            message = await receive()
            # An older client says that it leaves; that its connection is lost means nothing.
            if message["type"] == "http.disconnect" and self.session is None:
                self.left = True
            return message

        scope[EXCHANGE] = self
        await self._server.handle(scope, receiving, send)


class ToolServer:
    """The agents of an ``agency`` as tools; its sessions are no other agency's.

    ``work`` runs a function in a thread, and ``soon`` does without anybody waiting for it.
    """

    def __init__(self, hub: Hub, agency: Agency, work: Work, soon: Callable[..., object]) -> None:
        self._hub = hub
        self._agency_id = agency.id
        self._work = work
        self._soon = soon
        self._under_way: dict[tuple[str | None, Any], Exchange] = {}
        server: Server[Any] = Server(
            "sagents-nb",
            version=importlib.metadata.version("sagents-nb"),
            title=agency.name,
            instructions="Each tool is an agent that works by itself, and may ask people first.",
            get_tool_input_schema=lambda name: INPUT,
            on_list_tools=self._tools,
            on_call_tool=self._call,
        )
        self._server = server
        self._ended = asyncio.Event()

    async def begin(self, sessions: int) -> None:
        """Be ready for requests, and for so many ``sessions`` of older clients."""
        key = await self._work(self._hub.signed, f"mcp {self._agency_id}")
        security = RequestStateSecurity(keys=[key], ttl=ANSWER_SECONDS, bind_principal=None)
        self._server.middleware.append(RequestStateBoundary(security, default_audience=None))
        self._sessions = StreamableHTTPSessionManager(
            self._server, session_idle_timeout=IDLE_SECONDS, max_sessions=sessions
        )
        begun = asyncio.Event()
        self._living = asyncio.create_task(self._live(begun))
        await begun.wait()

    async def _live(self, begun: asyncio.Event) -> None:
        async with self._sessions.run():  # which has to end where it began
            begun.set()
            await self._ended.wait()

    async def end(self) -> None:
        """End all sessions; what runs goes on."""
        self._ended.set()
        await asyncio.wait({self._living})

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._sessions.handle_request(scope, receive, send)

    def leave(self, session: str | None, request_id: Any) -> None:
        """An older client says that it does not want the result of a call any more."""
        with contextlib.suppress(TypeError):  # what is no id is nobody's
            if (exchange := self._under_way.get((session, request_id))) is not None:
                exchange.left = True

    # what the SDK asks

    async def _tools(self, context: Context, parameters: Any) -> ListToolsResult:
        kept = await self._work(lambda: self._hub.blueprints(self._hub.agency(self._agency_id)))
        return ListToolsResult(
            tools=[Tool.model_validate(tool_of(each.blueprint)) for each in kept]
        )

    async def _call(
        self, context: Context, parameters: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        assert context.request is not None
        exchange: Exchange = context.request.scope[EXCHANGE]
        # Its connection may be lost before the client says that it leaves.
        key = (exchange.session, context.request_id)
        if exchange.session is not None:
            self._under_way[key] = exchange
        try:
            try:
                return await self._answer(context, parameters, exchange)
            except Owned as owned:
                return await self._elsewhere(context, parameters, owned)
        except SagentsError as error:
            sentence = str(error)
        except MCPError:
            raise
        except Exception:
            logger.exception("A call of a tool failed")
            sentence = "The hub failed at this; its log says why."
        finally:
            if self._under_way.get(key) is exchange:
                del self._under_way[key]
        return CallToolResult.model_validate(refusal_of(sentence))

    async def _answer(
        self, context: Context, parameters: CallToolRequestParams, exchange: Exchange
    ) -> CallToolResult | InputRequiredResult:
        loop = asyncio.get_running_loop()
        beginning = asyncio.ensure_future(self._work(self._begin, exchange.call, parameters, loop))
        try:
            turn: Turn = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(partial(self._abandon, exchange))
            raise
        turn.filled = {
            id: Filled(given.action, given.content)
            for id, given in (parameters.input_responses or {}).items()
            if isinstance(given, ElicitResult)
        }
        following = asyncio.create_task(turn.follow(context))
        try:
            return await turn.result(context, self._work)
        except asyncio.CancelledError:
            if exchange.left:
                self._soon(self._cancel, turn.thread)
            raise
        finally:
            following.cancel()  # nothing is told after the result
            turn.feed.end()

    def _begin(
        self, call: Call, parameters: CallToolRequestParams, loop: asyncio.AbstractEventLoop
    ) -> Turn:
        """Say it to its thread; in a thread of the hub."""
        hub, agency, name = self._hub, self._hub.agency(self._agency_id), parameters.name
        if name not in {kept.blueprint.name for kept in hub.blueprints(agency)}:
            raise MCPError(
                INVALID_PARAMS, f"This agency has no agent {name!r:.110}; tools/list names them."
            )
        if parameters.request_state is None:
            asked = arguments_of(parameters.arguments)
        else:  # what was said is said already; nobody else can have written the state
            asked = ToolArguments(thread_id=json.loads(parameters.request_state)["thread_id"])
        if asked.thread_id is None:
            with call.room() as beginning:
                thread = hub.create_thread(agency, name, request=call.origin)
                beginning.thread_id = thread.record.id
                return self._turn(call, thread, asked, loop)
        thread = hub.thread(agency, asked.thread_id)
        if thread.record.type != name:
            raise ConfigurationError(
                f"The thread {asked.thread_id!r:.110} is of the agent {thread.record.type!r}; "
                "go on with it by the tool of that name."
            )
        if not asked.message:
            return self._turn(call, thread, asked, loop)
        with call.room(thread):
            return self._turn(call, thread, asked, loop)

    def _turn(
        self, call: Call, thread: Thread, asked: ToolArguments, loop: asyncio.AbstractEventLoop
    ) -> Turn:
        """What is heard of a thread from now on, to which that is said."""
        read = partial(self._hub.events, call.agency, thread.record.id)
        following = Feed.alone(thread, thread.log.last, read)
        turn = Turn(thread, asyncio.run_coroutine_threadsafe(following, loop).result())
        try:
            if asked.message:
                thread.invoke([Message.user(asked.message)])
        except BaseException:
            loop.call_soon_threadsafe(turn.feed.end)
            raise
        return turn

    async def _elsewhere(
        self, context: Context, parameters: CallToolRequestParams, owned: Owned
    ) -> CallToolResult:
        """What the process answers that has the thread; who is asked, is asked in the session."""
        door = await self._work(self._hub.doors.of, owned.owner)
        if door is None:
            raise NoDoor(owned)
        if not await self._work(door.answers):  # else nothing says when it does
            raise Unreachable
        await self._work(importlib.import_module, "jsonschema")  # a second, for the client here
        session, request_id = context.session, context.request_id

        async def ask(context: Any, params: ElicitRequestParams) -> ElicitResult:
            assert isinstance(params, ElicitRequestFormParams)
            return await session.elicit_form(params.message, params.requested_schema, request_id)

        shown = {"Authorization": f"Bearer {door.token}"}
        way = None if door.path is None else httpx2.AsyncHTTPTransport(uds=door.path)
        async with httpx2.AsyncClient(
            headers=shown, timeout=None, trust_env=False, transport=way
        ) as http:
            over = streamable_http_client(
                f"http://{door.host}/agency/{self._agency_id}/mcp", http_client=http
            )
            asks = ask if _can_be_asked(context) else None
            async with Client(over, mode=LATEST_MODERN_VERSION, elicitation_callback=asks) as there:
                return await there.call_tool(
                    parameters.name,
                    parameters.arguments,
                    progress_callback=session.report_progress,
                )

    def _abandon(self, exchange: Exchange, beginning: asyncio.Future[Turn]) -> None:
        """A client left while its thread was begun."""
        if not beginning.cancelled() and beginning.exception() is None:
            beginning.result().feed.end()
            if exchange.left:
                self._soon(self._cancel, beginning.result().thread)

    def _cancel(self, thread: Thread) -> None:
        with contextlib.suppress(SagentsError):  # it is deleted, or the hub ends
            self._hub.cancel(self._hub.agency(self._agency_id), thread)


class Turn:
    """What is done for one call of a tool: a ``thread`` goes on until it rests, or asks people."""

    def __init__(self, thread: Thread, feed: Feed) -> None:
        self.thread = thread
        self.feed = feed
        self.filled: Mapping[str, Filled] = {}
        self._changed = asyncio.Event()
        self._gone = False
        self._note = ""

    async def follow(self, context: Context) -> None:
        """Tell of its progress who wants to know, and look at it anew whenever it has changed."""
        told = 1
        try:
            await _tell(context, told, f"Thread {self.thread.record.id}.")
            async for heard in self.feed:
                self._changed.set()
                if (message := progress_of(heard.event)) is not None:
                    told += 1
                    await _tell(context, told, message)
        finally:
            self._gone = True
            self._changed.set()

    async def result(self, context: Context, work: Work) -> CallToolResult | InputRequiredResult:
        """What it comes to."""
        while True:
            self._changed.clear()
            if self._gone:
                why = "It was closed here; call this tool again with its thread_id."
                return self._told(why, self.thread.status, is_error=True)
            if (waiting := self._waiting) is not None:
                try:
                    asked = await self._ask(context, waiting)
                    if isinstance(asked, CallToolResult | InputRequiredResult):
                        return asked
                    if asked is not None:
                        await self._decide(asked, work)
                except StaleApproval:  # somebody else answered: whatever it is now counts
                    self._note = _LATE
                except InvalidDecision as error:
                    return self._paused(waiting, f"{error}\n\n")
            elif self._rests:
                return self._told(*self._end)
            else:
                await self._changed.wait()

    @property
    def _waiting(self) -> Waiting | None:
        """What people are asked now."""
        if self.thread.status != "paused":
            return None
        waiting = self.thread.session.interrupt
        return waiting if waiting is not None and forms_of(waiting) else None

    @property
    def _rests(self) -> bool:
        thread = self.thread
        status = thread.status
        if status == "paused":
            waiting = thread.session.interrupt
            if waiting is None:  # all of it is answered, or it was cut off
                return thread.session.state.interrupt is None
            return reason_of(waiting) != "subagent"
        # What was said as a run ended is heard by the next one.
        unheard = status != "canceled" and bool(thread.session.queued)
        return status != "running" and not unheard

    @property
    def _end(self) -> tuple[str, str, bool]:
        """What it is now: the answer or why there is none, the status, and whether it failed."""
        session, status = self.thread.session, self.thread.status
        if status == "completed":
            said = (m.text for m in reversed(session.messages) if m.role == "assistant")
            return next(said, ""), status, False
        if status == "paused" and (halted := session.state.interrupt) is not None:
            why = halted.message or "It was halted."
            return f"{why}\n\nOnly people go on with this, on the hub's page.", status, False
        if status == "paused":
            why = "It was cut off; call this tool again with its thread_id and a message."
            return why, status, True
        if status == "error":
            return session.error or "The run failed.", status, True
        if status == "canceled":
            return "It was cancelled.", status, True
        return "It goes on elsewhere; call this tool again with its thread_id.", status, True

    def _told(self, answer: str, status: str, is_error: bool = False) -> CallToolResult:
        if self.filled and not self._note:
            self._note = _LATE
        id = self.thread.record.id
        told = result_of(answer, id, status, is_error=is_error, note=self._note)
        return CallToolResult.model_validate(told)

    # who is asked

    async def _ask(
        self, context: Context, waiting: Waiting
    ) -> Answers | CallToolResult | InputRequiredResult | None:
        """What people decided; or what the client is told instead, since nobody can be asked."""
        forms = forms_of(waiting)
        if not _can_be_asked(context):
            return self._paused(waiting)
        filled: Mapping[str, Filled] | None
        if context.session.can_send_request:
            filled = await self._ask_now(context, forms, waiting)
            if filled is None:
                return None
        else:
            filled, self.filled = self.filled, {}
            if forms.keys() - filled.keys():
                self._note = _LATE if filled.keys() - forms.keys() else self._note
                return _to_be_asked(forms, self.thread)
        answers = answers_of(waiting, {id: filled[id] for id in forms})
        return self._paused(waiting) if answers is None else answers

    async def _ask_now(
        self, context: Context, forms: Mapping[str, Form], waiting: Waiting
    ) -> dict[str, Filled] | None:
        """What people fill in, of one form after the other; None where others were faster."""
        filled: dict[str, Filled] = {}
        for id, form in forms.items():
            asking = asyncio.ensure_future(
                context.session.elicit_form(
                    form.message, form.schema, related_request_id=context.request_id
                )
            )
            try:
                while not asking.done():
                    now = self._waiting
                    if now is None or now.id != waiting.id or self._gone:
                        return None
                    self._changed.clear()
                    changing = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait({asking, changing}, return_when=asyncio.FIRST_COMPLETED)
                    changing.cancel()
                given = asking.result()
                filled[id] = Filled(given.action, given.content)
            except (MCPError, ValidationError):  # it cannot be asked after all
                filled[id] = Filled("cancel")
            finally:
                asking.cancel()
        return filled

    async def _decide(self, answers: Answers, work: Work) -> None:
        await work(
            partial(
                self.thread.decide,
                answers.decisions,
                interrupt_id=answers.id,
                digests=answers.digests,
                by="mcp",
            )
        )

    def _paused(self, waiting: Waiting, why: str = "") -> CallToolResult:
        record = self.thread.record
        where = f"POST /agency/{record.agency_id}/agent/{record.id}/approve"
        return self._told(why + waits_text(waiting, where), "paused")


async def _tell(context: Context, told: int, message: str) -> None:
    with contextlib.suppress(Exception):  # a client that hears nothing gets its result, or leaves
        await context.session.report_progress(told, message=message)


def _can_be_asked(context: Context) -> bool:
    """Whether the client said that it shows forms; one that says nothing more does."""
    capabilities = context.session.client_capabilities
    able = None if capabilities is None else capabilities.elicitation
    return able is not None and (able.form is not None or able.url is None)


def _to_be_asked(forms: Mapping[str, Form], thread: Thread) -> InputRequiredResult:
    return InputRequiredResult(
        input_requests={
            id: ElicitRequest(
                params=ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
            )
            for id, form in forms.items()
        },
        request_state=json.dumps({"thread_id": thread.record.id}),
    )


class ToolServers:
    """The servers of all agencies whose clients have come."""

    def __init__(self, hub: Hub, work: Work, soon: Callable[..., object]) -> None:
        self._make = partial(ToolServer, hub, work=work, soon=soon)
        self._servers: dict[str, ToolServer] = {}
        self._lock = asyncio.Lock()

    async def of(self, agency: Agency, sessions: int) -> ToolServer:
        """That of an ``agency``, ready for so many ``sessions``."""
        async with self._lock:
            if (server := self._servers.get(agency.id)) is None:
                server = self._make(agency)
                await server.begin(sessions)
                self._servers[agency.id] = server
            return server

    async def end(self) -> None:
        """End all sessions."""
        for server in self._servers.values():
            await server.end()
