"""What a row of the table of routes says."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, NamedTuple

import msgspec

from .call import Call


class Needs(Enum):
    """Whose token a route takes."""

    NOTHING = "nothing"
    HUB = "the hub's"
    AGENCY = "the hub's or the agency's"
    ANY = "the hub's or any agency's"


Kind = Literal["http", "websocket", "page", "mcp"]


class Route(NamedTuple):
    """One row; ``handle`` is called in a thread with a :class:`Call`, and gives the ``reply``.

    That is sent as JSON, or it is text of another ``media`` type.

    What ``tells`` of a thread says it in the words of its events or of a panel, as it happens: over
    a socket, or as an event stream to who accepts one; to others what ``handle`` gives, or the
    first message of a panel. One that ``streams`` is told so always, and gives what has
    :meth:`chunks` and is closed. The kind "mcp" is JSON-RPC, for which OpenAPI has no word.

    What is answered ``at_once`` waits for neither the store nor a session: its ``handle`` is called
    on the loop. One that ``tells_whether_ready`` is refused while the hub ends, as all that changes
    something is.
    """

    method: str
    path: str
    needs: Needs
    summary: str
    handle: Callable[[Call], Any] | None = None
    body: type[msgspec.Struct] | None = None
    reply: type[msgspec.Struct] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    kind: Kind = "http"
    tells: Literal["events", "panel"] | None = None
    streams: bool = False
    media: str = "application/json"
    at_once: bool = False
    tells_whether_ready: bool = False

    @property
    def parameters(self) -> list[str]:
        """The names in its path."""
        return re.findall(r"{(\w+)}", self.path)
