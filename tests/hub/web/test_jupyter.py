"""A hub in a real Jupyter server: its cookie opens it to its own pages, and to no others."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from sagents_nb.hub.web.codes import Codes
from sagents_nb.hub.web.route import Route
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.jupyter import (
    BASE,
    JupyterServer,
    command_of,
    environment_of,
    hub_processes,
    processes,
)
from tests.hub.web.served import Answer, kept
from tests.hub.web.test_routes import BODIES, HTTP, REFUSED, SSE, WS
from tests.talking import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")

SHOWN = ("cookie", "token", "nothing")
ORIGINS = ("absent", "own", "evil", "same site", "null", "two")
HOSTS = ("own", "localhost", "evil", "none", "two")
CLOSE = b"\x88"
"""How a frame begins that closes a socket."""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    server = JupyterServer(tmp_path_factory.mktemp("jupyter"))
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


class Cell(NamedTuple):
    """One request of the matrix."""

    route: Route
    way: str
    shown: str
    origin: str
    host: str

    @property
    def is_let_through(self) -> bool:
        """Whether it may be: by Jupyter, by where it comes from, or by what it shows."""
        if self.host not in ("own", "localhost") or self.shown == "nothing":
            return False
        only_reads = self.way != WS and self.route.method == "GET"
        by_script = self.origin == "absent" and (self.shown == "token" or only_reads)
        return self.origin == "own" or by_script


def cells(routes: Iterable[Route] = ROUTES) -> Iterator[Cell]:
    for route in routes:
        ways = [WS, HTTP, *([SSE] if route.method == "GET" else [])]
        for way, *rest in itertools.product(ways, SHOWN, ORIGINS, HOSTS):
            yield Cell(route, way, *rest)


class Walk:
    """Asks what the cells say, of an agency that has one of each."""

    def __init__(self, jupyter: JupyterServer) -> None:
        self.jupyter = jupyter
        self.cookies = {host: jupyter.cookie(host) for host in self.names.values()}
        with jupyter.client() as script:
            self.agency = script.post("/agencies", json={}).json()["id"]
            at = f"/agency/{self.agency}"
            self.made = {
                "agency": self.agency,
                "thread": self.new("agents", {"agentType": "guide", "input": "Hello"}),
                "schedule": self.new("schedules", self.body("/agency/{agency}/schedules")),
                "name": "kept",
            }
            script.post(f"{at}/blueprints", json={"name": "kept", "prompt": "Be brief."})
            state = f"{at}/agent/{self.made['thread']}/state"
            until(lambda: script.get(state).json()["run"]["status"] == "completed")

    @property
    def names(self) -> dict[str, str]:
        port = self.jupyter.port
        return {"own": f"127.0.0.1:{port}", "localhost": f"localhost:{port}"}

    def new(self, kind: str, body: Any) -> str:
        """The id of a further one."""
        with self.jupyter.client() as script:
            return str(script.post(f"/agency/{self.agency}/{kind}", json=body).json()["id"])

    def body(self, path: str) -> Any:
        served = SimpleNamespace(agency=SimpleNamespace(id=self.agency), codes=Codes("none"))
        return BODIES.get(path, lambda served: {})(served)

    def ask(self, cell: Cell, **fresh: str) -> Answer:
        route, name = cell.route, self.names.get(cell.host, self.names["own"])
        hosts = {"none": [], "two": [name, name], "evil": ["evil.example"]}.get(cell.host, [name])
        origins = {
            "own": [f"http://{name}"],
            "evil": ["https://evil.example"],
            "same site": [f"http://{name.partition(':')[0]}:1"],  # with which a cookie is sent
            "null": ["null"],
            "two": [f"http://{name}", "https://evil.example"],
        }.get(cell.origin, [])
        headers = [*(("Host", each) for each in hosts), *(("Origin", each) for each in origins)]
        if cell.shown == "cookie":
            headers.append(("Cookie", self.cookies[name]))
        elif cell.shown == "token":
            headers.append(("Authorization", f"token {self.jupyter.token}"))
        method, body = route.method, None
        if cell.way == WS:
            method = "GET"
            headers += [
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ("Sec-WebSocket-Protocol", "sagents.v1"),
            ]
        elif method in ("POST", "PATCH"):
            said = self.body(route.path)
            if route.path.endswith("/register"):
                said = {"id": {**self.made, **fresh}["thread"]}
            body = json.dumps(said).encode()
            headers.append(("Content-Type", "application/json"))
        if cell.way == SSE:
            headers.append(("Accept", "text/event-stream"))
        if route.kind == "mcp":
            headers.append(("Accept", "application/json, text/event-stream"))
        place = route.path.format(**self.made | fresh).lstrip("/")
        return self.jupyter.ask(method, f"sagents/{place}", *headers, body=body)

    def fresh(self, route: Route) -> dict[str, str]:
        """What a request that gets through may delete."""
        if route.kind == "mcp":
            return {}
        if route.method != "DELETE" and not route.path.endswith("/secret"):
            return {}
        with self.jupyter.client() as script:
            if route.parameters == ["agency"]:
                return {"agency": script.post("/agencies", json={}).json()["id"]}
            at = f"/agency/{self.agency}"
            if route.parameters[-1] == "thread":
                return {"thread": self.new("agents", {"agentType": "guide"})}
            if route.parameters[-1] == "schedule":
                return {"schedule": self.new("schedules", self.body(f"{A}/schedules"))}
            script.post(f"{at}/vars", json={"vars": {"gone": 1}})
            script.post(f"{at}/blueprints", json={"name": "gone", "prompt": "Be brief."})
            return {"name": "gone"}

    def wrong(self, cell: Cell) -> str | None:
        """What is not as it should be, None where it is."""
        if not cell.is_let_through:
            answer = self.ask(cell)
            refused = answer.status in (302, 400, 403) or _is_closed(answer)
            return None if refused else f"{cell}: {answer}"
        answer = self.ask(cell, **self.fresh(cell.route))
        there = {each.kind == "websocket" for each in ROUTES if each[:2] == cell.route[:2]}
        if (cell.way == WS) not in there:
            right = _is_closed(answer) if cell.way == WS else answer.status == 404
        elif cell.way == WS:
            right = answer.status == 101 and answer.body[:1] == b"\x81"
        elif cell.route.path == "/auth/exchange":
            right = answer.status == 401
        else:
            of_no_agency = cell.route.path == "/mcp"
            refused = of_no_agency or (cell.route.method, cell.route.path) in REFUSED
            status = 400 if refused else cell.route.status
            right = answer.status == status
        return None if right else f"{cell}: {answer}"


A = "/agency/{agency}"


def _is_closed(answer: Answer) -> bool:
    """Whether it was a socket that told nothing: Jupyter opens it before it asks the hub."""
    return answer.status == 101 and answer.body[:1] in (b"", CLOSE)


def walk(jupyter: JupyterServer, chosen: Iterable[Cell]) -> tuple[int, int]:
    """Ask them all; gives how many were refused and let through."""
    walk = Walk(jupyter)
    chosen = list(chosen)
    refused = [cell for cell in chosen if not cell.is_let_through]
    through = [cell for cell in chosen if cell.is_let_through]
    before = kept(jupyter.hub_store)
    assert not list(filter(None, map(walk.wrong, refused)))
    assert kept(jupyter.hub_store) == before
    assert not list(filter(None, map(walk.wrong, through)))
    return len(refused), len(through)


def test_what_a_page_of_elsewhere_asks_with_jupyters_cookie_changes_nothing(
    jupyter: JupyterServer,
) -> None:
    some = [
        cell
        for cell in cells(route for route in ROUTES if route.kind != "page")
        if (cell.shown, cell.host) == ("cookie", "own") and cell.way in (HTTP, WS)
    ]
    refused, through = walk(jupyter, some)
    assert refused > 300
    assert through > 80


@pytest.mark.soak
def test_each_route_is_open_to_whom_jupyter_lets_in_and_to_its_own_pages(
    jupyter: JupyterServer,
) -> None:
    refused, through = walk(jupyter, cells())
    assert refused > 7_000
    assert through > 400


def test_no_token_and_no_cookie_is_where_others_could_read_it(jupyter: JupyterServer) -> None:
    walk = Walk(jupyter)
    cookie = walk.cookies[walk.names["own"]]
    (row,) = (rows for name, rows in kept(jupyter.hub_store).items() if name.endswith("hub_doors"))
    door = next(value for value in row[0] if len(str(value)) == 43)
    (hub,) = hub_processes(jupyter)
    own = [("Host", walk.names["own"]), ("Origin", f"http://{walk.names['own']}")]
    shown = [("Cookie", cookie), ("Referer", f"http://localhost/lab?token={jupyter.token}")]
    answers = []
    for route in ROUTES:
        path = route.path.format(**walk.made).lstrip("/")
        body = b'{"wrong": 1}' if route.method in ("POST", "PATCH") else None
        kind = [("Content-Type", "application/json")]
        for method in (route.method, "POST"):
            if method != "DELETE":
                where = f"sagents/{path}?token={jupyter.token}"
                answers.append(jupyter.ask(method, where, *own, *shown, *kind, body=body))
    for place in ("sagents", "sagents/nothing", "sagents/../lab", "server-proxy/servers-info"):
        answers.append(jupyter.ask("GET", place, *own, *shown))
    said = "".join(f"{answer.headers} {answer.body!r}" for answer in answers) + jupyter.log()
    public = [read(pid) for pid in processes() for read in (command_of, environment_of)]
    assert door not in said
    assert not [each for each in public if door.encode() in each]
    assert not [each for each in map(command_of, processes()) if jupyter.token.encode() in each]
    # The hub keeps nothing of what opened Jupyter to whoever asked.
    secrets = (jupyter.token, cookie.partition("=")[2])
    for file in jupyter.hub_store.parent.iterdir():
        assert not [each for each in secrets if each.encode() in file.read_bytes()], file
    for file in filter(Path.is_file, jupyter.root.parent.rglob("*")):
        assert file.stat().st_mode & 0o077 == 0 or door.encode() not in file.read_bytes(), file
    place = Path(os.fsdecode(command_of(hub).split(b"\0")[-2]))
    assert place.parent.stat().st_mode & 0o077 == 0
    assert place.stat().st_mode & 0o077 == 0


def test_the_address_without_a_slash_leads_to_the_page(jupyter: JupyterServer) -> None:
    own = (("Host", "127.0.0.1"), ("Authorization", f"token {jupyter.token}"))
    assert jupyter.ask("GET", "sagents", *own).headers["location"] == f"{BASE}sagents/"


@pytest.mark.soak
def test_why_there_is_no_hub_is_said_in_jupyter_and_each_visit_tries_anew(tmp_path: Path) -> None:
    server = JupyterServer(tmp_path, system="shop:system")
    try:
        server.wait_until_ready()
        with server.client() as script:
            answer = script.get("/")
            assert answer.status_code == 503
            assert answer.text.startswith("The hub could not begin: There is no shop:system: ")
            (server.root / "agents.py").rename(server.root / "shop.py")
            until(lambda: script.get("/agencies").status_code == 200)
    finally:
        server.stop()


def test_a_hub_that_is_killed_is_begun_anew_and_ends_with_jupyter(jupyter: JupyterServer) -> None:
    """The last of this file: there is no Jupyter afterwards."""
    with jupyter.client() as script:
        agency = script.post("/agencies", json={}).json()["id"]
        (first,) = hub_processes(jupyter)
        os.kill(first, signal.SIGKILL)
        until(lambda: hub_processes(jupyter) not in ([], [first]))
        until(lambda: script.get("/agencies").status_code == 200)
        assert script.get("/agencies").json()["agencies"][0]["id"] == agency
    (second,) = hub_processes(jupyter)
    jupyter.kill()
    until(lambda: not command_of(second))
