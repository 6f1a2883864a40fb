"""What stands before every request: who may ask, from where, and how much at once.

Plain ASGI, since a middleware of HTTP alone would let sockets through. The order is that of the
checks below; what is refused has changed nothing, and a socket is refused before it is one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from ...errors import SagentsError, StoreError
from ..agencies import digest_of, missing
from ..hub import Hub
from .call import problem
from .route import Needs
from .routes import Match, match
from .secret_watch import SecretWatch
from .settings import Settings
from .standstill import in_time

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

SUBPROTOCOL = "sagents.v1"
TOKEN_PROTOCOL = "sagents.token."
"""A page sends no headers with a socket: it offers its token as a protocol, never chosen."""

MATCH = "sagents.match"
"""In the scope of a request that was let through: the route that it is for."""

OWNER = "sagents.owner"
"""In the same: the id of the agency whose secret was shown, if one was."""

SECRET = "sagents.secret"
"""In the same: the digest of that secret."""

FORWARDED = "sagents.forwarded"
"""In the same: another hub sent it on, which had looked at who may."""

CHANGES = ("POST", "PUT", "PATCH", "DELETE")
"""Methods of requests that change something."""

_CREDENTIALS = (b"authorization", b"cookie", b"x-secret")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Refusal(NamedTuple):
    """Why a request is not let through."""

    status: int
    error: str
    headers: Mapping[str, str] = MappingProxyType({})


class TooLarge(SagentsError):
    """A body went on after its limit."""


class Guard:
    """Lets requests through to ``app`` that may be, as ``settings`` say, and refuses others."""

    def __init__(self, app: Any, hub: Hub, settings: Settings) -> None:
        self.app = app
        self.hub = hub
        self.settings = settings
        self._secrets = SecretWatch(lambda digest: hub.agency_of_secret(digest) is not None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request, or the server's own beginning and end."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if self._is_of_jupyter(scope) and scope["type"] == "http":
            receive = await _whole(receive, self.settings.limits.body_bytes)
        answer, shared = await self._answer(scope)
        if isinstance(answer, Response):
            await answer(scope, receive, send)
            return
        if answer is not None:
            await _refuse(answer, scope, receive, _with_headers(send, shared))
            return
        limited = _Limited(receive, self.settings.limits.body_bytes)
        sending = _with_headers(send, shared)
        if (digest := scope.get(SECRET)) is None:
            await self.app(scope, limited, sending)
        else:
            await self._while_it_opens(digest, scope, limited, sending)

    async def _answer(self, scope: Scope) -> tuple[Refusal | Response | None, str | None]:
        """What is answered at once, if anything; and the listed origin that it comes from.

        Nothing of what was looked at is kept for as long as a socket is open.
        """
        headers = _headers_of(scope)
        # Who asks is settled here: what they show goes no further.
        scope["headers"] = [each for each in scope["headers"] if each[0] not in _CREDENTIALS]
        shared = self._shared_with(headers)
        if refusal := self._of_a_stranger(scope, headers):
            return refusal, shared
        if shared and scope.get("method") == "OPTIONS":
            return Response(status_code=204, headers=_preflight(shared)), shared
        found = match(scope["type"], scope.get("method", "GET"), scope["path"])
        refused = await self._of_nobody(scope, headers, found)
        scope[MATCH] = found
        return refused or self._of_no_use(scope, headers, found), shared

    async def _while_it_opens(
        self, digest: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer as long as that secret is an agency's: another one ends what it had opened."""
        working = asyncio.ensure_future(self.app(scope, receive, send))
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            working.cancel()

        try:
            with self._secrets.watched(digest, end):
                await asyncio.wait({working})
            if is_over:
                if scope["type"] == "websocket":
                    with contextlib.suppress(RuntimeError):
                        await send({"type": "websocket.close", "code": 1008})
                return
            await working
        finally:
            working.cancel()

    # where it comes from

    def _of_a_stranger(self, scope: Scope, headers: dict[str, list[str]]) -> Refusal | None:
        hosts = headers.get("host", [])
        inside = self._is_of_jupyter(scope)
        if len(hosts) != 1 or not (inside or self._is_ours(hosts[0])):
            return Refusal(
                403,
                "This hub does not go by that name; list the host with --host-name to allow it.",
            )
        origins = headers.get("origin", [])
        secure = scope["scheme"] in ("https", "wss")
        # Behind Jupyter nobody says which it is. Of a page of the other one browsers say themselves
        # that it is another site.
        schemes = ("http", "https") if inside else ("https" if secure else "http",)
        own = [f"{scheme}://{hosts[0]}" for scheme in schemes]
        if len(origins) > 1 or (origins and origins[0] not in (*own, *self.settings.origins)):
            return Refusal(
                403, "Pages of that origin may not use this hub; list it with --origin to allow it."
            )
        # A browser has one cookie for all ports: it sends Jupyter's along, and with what its page
        # reads no origin, but the site, which is looked at next.
        says_site = "sec-fetch-site" in headers
        # Inside Jupyter the cookie comes with all that its own pages ask.
        spared = inside and (_only_reads(scope) or _is_of_script(headers))
        if not origins and "cookie" in headers and not (says_site or spared):
            return Refusal(403, "A request with a cookie has to say its origin.")
        if inside and _is_visit(scope, headers):
            return None  # by a link, or from where people log in: the page alone does nothing
        site = headers.get("sec-fetch-site", ["none"])
        listed = bool(origins) and origins[0] in self.settings.origins
        if not listed and (len(site) != 1 or site[0] not in ("none", "same-origin")):
            return Refusal(403, "Another site sent this request; open the hub's own page.")
        return None

    def _is_of_jupyter(self, scope: Scope) -> bool:
        """Whether it came by the socket of :attr:`Settings.behind_jupyter`, which has no port."""
        server = scope.get("server")
        return self.settings.behind_jupyter and server is not None and server[1] is None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if not name or host.endswith("]") or not port.isdigit():
            name = host
        door = self.hub.doors.own  # by which other processes call it
        known = self.settings.hosts if door is None else (*self.settings.hosts, door.host)
        return name.lower() in LOOPBACK or host.lower() in known

    def _shared_with(self, headers: dict[str, list[str]]) -> str | None:
        """The listed origin of elsewhere that it comes from."""
        origins = headers.get("origin", [])
        return origins[0] if len(origins) == 1 and origins[0] in self.settings.origins else None

    # whose it is

    async def _of_nobody(
        self, scope: Scope, headers: dict[str, list[str]], found: Match
    ) -> Refusal | None:
        needs = Needs.HUB if found.route is None else found.route.needs
        if needs is Needs.NOTHING:
            return None
        token = _token_of(scope, headers)
        inside = self._is_of_jupyter(scope)
        if token is None and not inside:
            return Refusal(
                401,
                "This needs the hub's token, as 'Authorization: Bearer …' or 'X-SECRET: …'.",
                {"WWW-Authenticate": "Bearer"},
            )
        digest = digest_of(token or "")
        door = self.hub.doors.own
        if door is not None and secrets.compare_digest(digest, digest_of(door.token)):
            scope[FORWARDED] = True
            return None
        if inside or secrets.compare_digest(digest, self.settings.token):
            return None  # what was shown to Jupyter, such as its own token, says nothing here
        # Of an agency, then: whatever is not its own is not there for it.
        asking = asyncio.ensure_future(asyncio.to_thread(self.hub.agency_of_secret, digest))
        try:
            owner = await in_time(asking, self.hub.store.database)
        except StoreError as error:
            return Refusal(503, str(error))
        if owner is None or (found.route is not None and needs is Needs.HUB):
            return Refusal(
                401,
                "That token opens nothing here; the hub printed its own when it began.",
                {"WWW-Authenticate": "Bearer"},
            )
        scope[OWNER], scope[SECRET] = owner, digest
        if found.route is None or found.malformed or needs is Needs.ANY:
            return None
        if found.parameters["agency"] == owner:
            return None
        return Refusal(404, str(missing(found.parameters["agency"])))

    # what it is

    def _of_no_use(
        self, scope: Scope, headers: dict[str, list[str]], found: Match
    ) -> Refusal | None:
        if found.route is None:
            if found.allowed:
                allowed = ", ".join(found.allowed)
                return Refusal(405, f"This takes {allowed}.", {"Allow": allowed})
            return Refusal(404, "There is no such route; /openapi.json lists them all.")
        if found.malformed:
            return Refusal(
                400,
                f"The {found.malformed} in the address is no id: it has 1 to 100 letters, digits, "
                "_ and -.",
            )
        if scope.get("method") not in CHANGES:
            return None
        lengths = headers.get("content-length", [])
        length = int(lengths[0]) if len(lengths) == 1 else None  # the server sees that it is one
        if length is not None and length > self.settings.limits.body_bytes:
            return Refusal(413, _too_large(self.settings.limits.body_bytes))
        kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
        is_empty = length == 0 or (length is None and "transfer-encoding" not in headers)
        if kind != "application/json" and not is_empty:
            return Refusal(415, "Send JSON, with 'Content-Type: application/json'.")
        return None


class _Limited:
    """What a client sends, as far as the limit."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._got = 0

    async def __call__(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        if message["type"] == "http.request":
            self._got += len(message.get("body", b""))
            if self._got > self._most:
                raise TooLarge(_too_large(self._most))
        return message


async def _whole(receive: Receive, most: int) -> Receive:
    """The same, once all of it is here: a proxy that cannot send it all passes no answer on."""
    here: list[MutableMapping[str, Any]] = []
    length, more = 0, True
    while more and length <= most:
        here.append(await receive())
        length += len(here[-1].get("body", b""))
        more = bool(here[-1].get("more_body"))

    async def receiving() -> MutableMapping[str, Any]:
        return here.pop(0) if here else await receive()

    return receiving


def _too_large(most: int) -> str:
    return f"The body has more than {most:,} bytes; send less at once."


def _headers_of(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _only_reads(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] not in CHANGES


def _is_of_script(headers: dict[str, list[str]]) -> bool:
    """Whether it shows Jupyter's token, which no browser does by itself, beside its cookie."""
    kinds = (value.partition(" ")[0].lower() for value in headers.get("authorization", ()))
    return any(kind in ("token", "bearer") for kind in kinds)


def _is_visit(scope: Scope, headers: dict[str, list[str]]) -> bool:
    """Whether a browser goes to the hub's page."""
    is_page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/"
    return is_page and headers.get("sec-fetch-mode") == ["navigate"]


def _token_of(scope: Scope, headers: dict[str, list[str]]) -> str | None:
    """The token that a request shows; none in an address, which would be in logs."""
    given = list(headers.get("x-secret", ()))
    for value in headers.get("authorization", ()):
        kind, _, token = value.partition(" ")
        given.append(token.strip() if kind.lower() == "bearer" else "")
    for protocol in scope.get("subprotocols", ()):
        if protocol.startswith(TOKEN_PROTOCOL):
            given.append(_decoded(protocol.removeprefix(TOKEN_PROTOCOL)))
    return given[0] if len(given) == 1 and given[0] else None


def _decoded(text: str) -> str:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.urlsafe_b64decode(padded).decode()
    except (binascii.Error, ValueError):
        return ""


def _preflight(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST, DELETE",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, X-SECRET, Last-Event-ID, "
        "Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }


def _with_headers(send: Send, shared: str | None) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            there = {name for name, _ in message.get("headers", ())}
            more = [each for each in _HEADERS if each[0] not in there]
            if shared is not None:
                more += [
                    (b"access-control-allow-origin", shared.encode("latin-1")),
                    (b"access-control-expose-headers", b"Mcp-Session-Id"),
                    (b"vary", b"Origin"),
                ]
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return sending


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    response = JSONResponse(
        problem(scope["path"], refusal.error), refusal.status, headers=refusal.headers
    )
    if scope["type"] == "websocket":
        await deny(WebSocket(scope, receive, send), response)
    else:
        await response(scope, receive, send)


async def deny(socket: WebSocket, response: Response) -> None:
    """Answer what would have been a socket."""
    await socket.send_denial_response(response)
    # uvicorn takes it for unanswered, and logs an error, until it has closed the connection.
    await asyncio.sleep(0)
