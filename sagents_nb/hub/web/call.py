"""One request, as a route's function sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from ..agencies import Agency
from ..hub import Hub
from ..limits import Beginning, Limits
from ..threads import Thread
from .codes import Codes
from .forwarding import OF_A_PAGE
from .settings import Settings


def problem(path: str, sentence: str) -> dict[str, Any]:
    """Why nothing was done, as the clients of that path read it."""
    if path.startswith("/v1/"):
        return {"error": {"message": sentence, "type": "invalid_request_error"}}
    if path.endswith("/mcp"):
        return {"error": {"code": -32600, "message": sentence}, "jsonrpc": "2.0", "id": None}
    return {"error": sentence}


class Call:
    """One request; ``body`` is the struct of its route.

    ``codes`` may be exchanged for the token, where there are any.
    ``owner`` is the id of the agency whose secret it shows, None where it is the hub's token.
    """

    def __init__(
        self,
        hub: Hub,
        settings: Settings,
        parameters: Mapping[str, str],
        *,
        codes: Codes | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        client: str,
        owner: str | None = None,
        body: Any = None,
    ) -> None:
        self.hub = hub
        self.settings = settings
        self.parameters = parameters
        self.codes = codes
        self.query = query
        self.headers = headers
        self.client = client
        self.owner = owner
        self.body = body

    @property
    def limits(self) -> Limits:
        """How much may be under way at once."""
        return self.settings.limits

    @cached_property
    def agency(self) -> Agency:
        """The agency in its path; raises :class:`~sagents_nb.errors.NotFound`."""
        id, thread_id = self.parameters["agency"], self.parameters.get("thread")
        return self.hub.agency(id) if thread_id is None else self.hub.agency_of(id, thread_id)

    @cached_property
    def thread(self) -> Thread:
        """The thread in its path, open; raises :class:`~sagents_nb.errors.NotFound`."""
        return self.hub.thread(self.agency, self.parameters["thread"])

    @property
    def origin(self) -> dict[str, str]:
        """Where it came from, as far as it says so: of a page without what follows its address.

        That may be anybody's secret, and this is kept and shown.
        """
        said = {
            "userAgent": self.headers.get("user-agent"),
            "ip": self.client,
            "referrer": re.split(r"[?#]", self.headers.get("referer", ""))[0],
            "origin": self.headers.get("origin"),
        }
        return {name: value for name, value in said.items() if value}

    @property
    def is_of_page(self) -> bool:
        """Whether a page sent it: what it approves has to be what it showed."""
        return "origin" in self.headers or OF_A_PAGE in self.headers

    def room(self, thread: Thread | None = None) -> AbstractContextManager[Beginning]:
        """Room for a run that is about to begin, of ``thread`` where there is one.

        Raises :class:`~sagents_nb.hub.limits.TooMany` where there is none.
        """
        return self.hub.room(self.agency, self.limits, thread)
