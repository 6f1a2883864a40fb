"""A hub on a real server, and what can be said to it, byte by byte where no client would."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
from sagents_nb.hub.agencies import Agency, digest_of
from sagents_nb.hub.limits import Limits
from sagents_nb.hub.web.app import App
from sagents_nb.hub.web.codes import Codes
from sagents_nb.hub.web.guard import SUBPROTOCOL, TOKEN_PROTOCOL
from sagents_nb.hub.web.serving import Server, listening_socket
from sagents_nb.hub.web.settings import Settings
from tests.talking import PATIENCE, call

TOKEN = "the-canary-that-opens-this-hub-and-is-told-to-nobody"
MANY_WAIT = Limits(approvals=1_000)
"""For the one agency of many tests, of which few answer what waits."""

LISTED_HOST = "agents.example.org"
LISTED_ORIGIN = "https://listed.example.org"


class Answer(NamedTuple):
    """What was answered; status 0 is a connection that was closed without a word."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The sentence of a refusal; fails where it is something else."""
        said = json.loads(self.body)
        assert list(said) == ["error"], said
        return str(said["error"])


class Served:
    """``hub`` at ``url``; a ``client`` has its token, ``agency`` and ``secret`` are one of many."""

    def __init__(self, hub: Hub, port: int, app: App, codes: Codes) -> None:
        self.hub = hub
        self.port = port
        self.app = app
        self.codes = codes
        self.url = f"http://127.0.0.1:{port}"
        self.agency, self.secret = hub.create_agency()
        self.schedule = self.new_schedule()
        self.client = self.client_of(TOKEN)

    def new_schedule(self) -> str:
        """The id of one that begins nothing while the test lasts."""
        seldom = Schedule(name="Seldom", agent_type="guide", type="interval", interval=1e6)
        return self.hub.scheduler.create(self.agency, seldom).id

    def places(self, **known: str) -> dict[str, str]:
        """What stands in the paths of routes: ``known``, and for others what is there."""
        there = {"agency": self.agency.id, "thread": "t", "name": "guide"}
        return {**there, "schedule": self.schedule, **known}

    def client_of(self, token: str | None, **headers: str) -> httpx2.Client:
        """One that shows ``token``."""
        shown = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, headers={**shown, **headers}, timeout=PATIENCE)

    def path(self, thread: str = "", rest: str = "", agency: Agency | None = None) -> str:
        """Of the agency, or of a ``thread`` of it."""
        at = f"/agency/{(agency or self.agency).id}"
        return f"{at}/agent/{thread}{rest}" if thread else f"{at}{rest}"

    def thread(self, type: str = "guide", agency: Agency | None = None) -> str:
        """The id of a new one."""
        return self.hub.create_thread(agency or self.agency, type).record.id

    def socket(self, path: str, token: str | None = TOKEN) -> ClientConnection:
        """A socket, with the token as a page shows it."""
        protocols = [SUBPROTOCOL, *([] if token is None else [protocol_of(token)])]
        return connect(
            f"ws://127.0.0.1:{self.port}{path}",
            subprotocols=protocols,  # type: ignore[arg-type]
            open_timeout=PATIENCE,
            max_size=None,
            max_queue=None,  # with frames that nobody has read it would wait when it is closed
        )

    def stream(self, path: str, **headers: str) -> contextlib.AbstractContextManager[Any]:
        """An event stream."""
        return self.client.stream("GET", path, headers={"Accept": "text/event-stream", **headers})

    def raw(
        self, request: bytes, *, more: Callable[[socket.socket], object] | None = None
    ) -> Answer:
        """What is answered to these bytes; of a body that has no end only what is there at once."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(request)
            if more is not None:
                more(connection)
            return answer_from(connection)

    def wait(self, thread: str, status: str = "completed") -> None:
        """Until it is so."""
        told = threading.Event()
        live = self.hub.thread(self.agency, thread)
        while live.status != status:
            told.wait(0.01)


def protocol_of(token: str) -> str:
    """A token as a subprotocol."""
    return TOKEN_PROTOCOL + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def request_of(
    method: str, path: str, *headers: tuple[str, str], body: bytes | None = None
) -> bytes:
    """The bytes of a request with just these headers."""
    more = [] if body is None else [("Content-Length", str(len(body)))]
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in (*headers, *more)),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def answer_from(connection: socket.socket) -> Answer:
    """The next answer on a connection."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = _received(connection)
        if not piece:
            return Answer(0, {}, got)
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    while len(body) < length and (piece := _received(connection)):
        body += piece
    return Answer(int(first.split()[1]), headers, body)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


def frames_of(connection: ClientConnection) -> list[Any]:
    """What a socket tells until it is closed."""
    told = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            told.append(json.loads(connection.recv(PATIENCE)))
    return told


def kept(path: Path) -> dict[str, list[Any]]:
    """All that the store of a hub has, but for who has what open."""
    with sqlite3.connect(path) as connection:
        names = [
            name
            for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
            if "lease" not in name
        ]
        return {name: connection.execute(f'select * from "{name}"').fetchall() for name in names}


def note(text: str) -> str:
    """Keep a note."""
    return f"noted {text}"


def spoken(request: Any) -> Any:
    """Says what it was told, asks for a note where it is told to, and says then that it has it."""
    last = request.messages[-1] if request.messages else sa.Message.user("nothing")
    if last.role == "tool":
        return "done"
    if last.text.startswith("note"):
        return call("note", f"call-{len(request.messages)}", text=last.text)
    return f"You said: {last.text}"


def system_of() -> AgentSystem:
    """The guide answers at once; of the clerk's notes somebody is asked."""
    model = sa.ScriptedModel(iter(lambda: spoken, None))
    system = AgentSystem(model).add_tool(note)
    system.add_agent(Blueprint("guide", "Be brief."))
    return system.add_agent(Blueprint("clerk", "Take notes.", config={"hitl": {"tools": ["note"]}}))


@contextlib.contextmanager
def serving(
    store: Path | str | Hub,
    system: AgentSystem | None = None,
    limits: Limits | None = None,
    guard: Callable[[App, Hub, Settings], Any] | None = None,
) -> Iterator[Served]:
    """A hub over ``store``, or that one, served in a thread; another ``guard`` may be before it."""
    settings = Settings(
        token=digest_of(TOKEN),
        hosts=(LISTED_HOST,),
        origins=(LISTED_ORIGIN,),
        limits=limits or MANY_WAIT,
    )
    hub = store if isinstance(store, Hub) else Hub(system or system_of(), store)
    codes, begun = Codes(TOKEN), threading.Event()
    app = App(hub, settings, codes)
    server = Server(app, begun.set)
    if guard is not None:
        server.config.app = guard(app, hub, settings)
    with listening_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert begun.wait(PATIENCE)
            served = Served(hub, listening.getsockname()[1], app, codes)
            with served.client:
                yield served
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            hub.close()
    assert not thread.is_alive(), "The server did not end."
