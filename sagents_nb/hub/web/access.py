"""Each request, once it is answered: a figure and a line of the log, with an id to find it by."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Iterable, MutableMapping
from typing import Any

from ..hub import Hub
from ..operations import line
from .guard import CHANGES, MATCH, Receive, Scope, Send
from .routes import Match

REQUEST_ID = b"x-request-id"
"""A header: the id that a client gives a request, or else is told of it."""

REQUEST = "sagents.request"
"""In the scope of a request: that id."""

SWITCHED = 101
"""What the answer to a socket that is one would be."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STARTS = ("http.response.start", "websocket.http.response.start")
_OF_A_STRANGER = (400, 401, 403, 404)  # whose address may have anything in it


class Access:
    """Passes requests on to ``app``, and tells the ``hub`` what came of each."""

    def __init__(self, app: Any, hub: Hub) -> None:
        self.app = app
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request, or the server's own beginning and end."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        id, began, status = _id_of(scope), time.monotonic(), 0
        scope[REQUEST] = id

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] in _STARTS:
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = SWITCHED
            if message["type"] in _STARTS:
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            self._tell(scope, id, status, time.monotonic() - began)

    def _tell(self, scope: Scope, id: str, status: int, seconds: float) -> None:
        found: Match | None = scope.get(MATCH)
        route = None if found is None else found.route
        method = "WS" if scope["type"] == "websocket" else scope["method"]
        known = method if route is not None else "other"  # clients may make up any
        path = "other" if route is None else route.path
        self.hub.figures.count(
            "sagents_hub_requests_total", method=known, route=path, status=status
        )
        ids = {} if found is None or status in _OF_A_STRANGER else found.parameters
        level = logging.INFO if status >= 400 or method in (*CHANGES, "WS") else logging.DEBUG
        line(
            "request",
            level=logging.WARNING if status == 500 else level,
            method=known,
            route=path,
            status=status,
            ms=round(1000 * seconds),
            agency=ids.get("agency"),
            thread=ids.get("thread"),
            client=scope["client"][0] if scope.get("client") else None,
            request=id,
        )


def _id_of(scope: Scope) -> str:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    given = [value.decode("latin-1") for name, value in headers if name == REQUEST_ID]
    if len(given) == 1 and _ID.fullmatch(given[0]):
        return given[0]
    return secrets.token_hex(6)
