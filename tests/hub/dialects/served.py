"""A hub on a real server in a thread, for clients that are no part of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import httpx2
import uvicorn

from sagents_nb.hub import Hub
from sagents_nb.hub.agencies import digest_of
from sagents_nb.hub.web.app import app
from sagents_nb.hub.web.guard import Settings
from tests.talking import PATIENCE, until

TOKEN = "a token of the hub for tests, which is long enough"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Served(NamedTuple):
    """A ``hub`` at ``url``, which ``TOKEN`` opens."""

    hub: Hub
    url: str

    def post(self, path: str, body: Any) -> httpx2.Response:
        """What is answered to ``body``, once all of it has come."""
        return httpx2.post(self.url + path, json=body, headers=HEADERS, timeout=PATIENCE)

    def posting(self, path: str, body: Any) -> AbstractContextManager[httpx2.Response]:
        """The same, as it comes."""
        return httpx2.stream("POST", self.url + path, json=body, headers=HEADERS, timeout=PATIENCE)


@contextmanager
def served(hub: Hub) -> Iterator[Served]:
    """``hub`` on a port of its own."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    settings = Settings(token=digest_of(TOKEN))
    config = uvicorn.Config(
        app(hub, settings), lifespan="on", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until(lambda: server.started)
        yield Served(hub, f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
