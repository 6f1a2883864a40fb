"""Who gets through to a route, and from where: every route, walked from the table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sagents_nb.errors import ConfigurationError
from sagents_nb.hub import Hub
from sagents_nb.hub.web.guard import MATCH, Guard
from sagents_nb.hub.web.route import Needs, Route
from sagents_nb.hub.web.routes import ROUTES, check, match
from sagents_nb.hub.web.settings import Settings
from tests.hub.web.served import (
    LISTED_HOST,
    LISTED_ORIGIN,
    TOKEN,
    Served,
    kept,
    protocol_of,
    request_of,
    serving,
)

HTTP, SSE, WS = "HTTP", "SSE", "WS"
TOKENS = ("none", "wrong", "the hub's", "another agency's", "its own")
ORIGINS = ("absent", "own", "listed", "evil", "null")
HOSTS = ("localhost", "127.0.0.1", "[::1]", "listed", "evil", "none", "two")
THROUGH = "through"

BODIES = {
    "/auth/exchange": lambda served: {"code": served.codes.new()},
    "/agencies": lambda served: {},
    "/agency/{agency}/blueprints": lambda served: {"name": "made", "prompt": "Be kind."},
    "/agency/{agency}/agents": lambda served: {"agentType": "guide"},
    "/agency/{agency}/schedules": lambda served: {
        "name": "Seldom",
        "agentType": "guide",
        "type": "interval",
        "intervalMs": 1e9,
    },
    "/agency/{agency}/schedule_preview": lambda served: {"type": "interval", "intervalMs": 1e9},
    "/agency/{agency}/vars": lambda served: {"vars": {"city": "Oslo"}},
    "/agency/{agency}/agui/{name}": lambda served: {
        "threadId": "tab",
        "runId": "run",
        "messages": [{"id": "u0", "role": "user", "content": "Hello"}],
    },
    "/v1/chat/completions": lambda served: {
        "model": f"{served.agency.id}/guide",
        "messages": [{"role": "user", "content": "Hello"}],
    },
    "/agency/{agency}/agent/{thread}/child_result": lambda served: {
        "token": "none",
        "childThreadId": "none",
        "report": "Nothing.",
    },
    "/agency/{agency}/agent/{thread}/approve": lambda served: {
        "approved": True,
        "interruptId": "none",
        "digests": {},
    },
}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
BODIES |= dict.fromkeys(("/mcp", "/agency/{agency}/mcp"), lambda served: HELLO)
REFUSED = {  # there is nothing that they could do
    ("POST", "/agency/{agency}/agent/{thread}/approve"),
    ("POST", "/agency/{agency}/agent/{thread}/child_result"),
    ("DELETE", "/mcp"),
    ("DELETE", "/agency/{agency}/mcp"),
}


class Cell(NamedTuple):
    """One request of the matrix."""

    route: Route
    way: str
    token: str
    origin: str
    host: str

    @property
    def expected(self) -> Any:
        """What the table says to it: the status of a refusal, or that it gets through."""
        if self.host in ("none", "two", "evil") or self.origin in ("evil", "null"):
            return 403
        there = [each for each in ROUTES if each[:2] == self.route[:2]]
        is_there = (self.way == WS) in {each.kind == "websocket" for each in there}
        needs = self.route.needs if is_there else Needs.HUB
        if needs is not Needs.NOTHING:
            if self.token in ("none", "wrong"):
                return 401
            if needs is Needs.HUB and is_there and self.token != "the hub's":
                return 401
            if self.token == "another agency's" and needs is Needs.AGENCY:
                return 404
        return THROUGH if is_there else 404


def cells(routes: Iterable[Route] = ROUTES) -> Iterator[Cell]:
    for route in routes:
        ways = [WS, HTTP, *([SSE] if route.method == "GET" else [])]
        for way, *rest in itertools.product(ways, TOKENS, ORIGINS, HOSTS):
            yield Cell(route, way, *rest)


class Walk:
    """Asks what the cells say of one hub, with an agency, a thread and a blueprint of its own."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.other = served.hub.create_agency()[1]
        self.thread = served.thread()
        served.hub.save_blueprint(served.agency, {"name": "kept", "prompt": "Be brief."})

    def request(self, cell: Cell, **parameters: str) -> bytes:
        route = cell.route
        there = self.served.places(thread=self.thread, name="kept")
        path = route.path.format(**there | parameters)
        host = {"listed": LISTED_HOST, "evil": "evil.example"}.get(cell.host, cell.host)
        if cell.host != "listed" and ":" not in host.rpartition("]")[2]:
            host = f"{host}:{self.served.port}"
        origin = {
            "own": f"http://{host}",
            "listed": LISTED_ORIGIN,
            "evil": "https://evil.example",
            "null": "null",
        }.get(cell.origin)
        token = {
            "wrong": "x" * 43,
            "the hub's": TOKEN,
            "another agency's": self.other,
            "its own": self.served.secret,
        }.get(cell.token)
        headers = [("Host", host)] * {"none": 0, "two": 2}.get(cell.host, 1)
        if cell.host in ("none", "two"):
            headers = [("Host", f"localhost:{self.served.port}")] * len(headers)
        if origin is not None:
            headers.append(("Origin", origin))
        if cell.way == WS:
            headers += [
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]
            if token is not None:
                headers.append(("Sec-WebSocket-Protocol", protocol_of(token)))
            return request_of("GET", path, *headers)
        headers.append(("Connection", "close"))
        if token is not None:
            headers.append(("Authorization", f"Bearer {token}"))
        if cell.way == SSE:
            headers.append(("Accept", "text/event-stream"))
        if route.kind == "mcp":
            headers.append(("Accept", "application/json, text/event-stream"))
        body = None
        if route.method == "POST":
            said = BODIES.get(route.path, lambda served: {})(self.served)
            if route.path.endswith("/completions") and cell.token != "the hub's":
                said = {**said, "model": "guide"}  # of the agency whose secret it is
            if route.path.endswith("/register"):
                said = {"id": {"thread": self.thread, **parameters}["thread"]}
            body = json.dumps(said).encode()
            headers.append(("Content-Type", "application/json"))
        return request_of(route.method, path, *headers, body=body)

    def fresh(self, route: Route) -> dict[str, str]:
        """What a request that gets through may delete, or close to others."""
        hub, agency = self.served.hub, self.served.agency
        if route.needs is Needs.HUB and route.parameters:
            return {"agency": hub.create_agency()[0].id}
        if route.kind == "mcp":
            return {}
        if route.method == "DELETE" and route.parameters[-1] == "thread":
            return {"thread": self.served.thread()}
        if route.method == "DELETE" and route.parameters[-1] == "schedule":
            return {"schedule": self.served.new_schedule()}
        if route.method == "DELETE" and "/vars/" in route.path:
            hub.save_variables(agency, {"gone": 1})
            return {"name": "gone"}
        if route.method == "DELETE":
            hub.save_blueprint(agency, {"name": "gone", "prompt": "Be brief."})
            return {"name": "gone"}
        return {}

    def wrong(self, cell: Cell) -> str | None:
        """What is not as the table says, None where it is."""
        route, expected = cell.route, cell.expected
        if expected != THROUGH:
            answer = self.served.raw(self.request(cell))
            # Of a request whose hosts nobody can read the server itself says so.
            allowed = (400, 403) if cell.host in ("none", "two") else (expected,)
            return None if answer.status in allowed else f"{cell}: {answer}"
        answer = self.served.raw(self.request(cell, **self.fresh(route)))
        of_no_agency = route.path == "/mcp" and cell.token == "the hub's"
        refused = of_no_agency or (route.method, route.path) in REFUSED
        status = 101 if cell.way == WS else 400 if refused else route.status
        return None if answer.status == status else f"{cell}, not {status}: {answer}"


def test_each_route_is_open_for_those_that_the_table_names_and_for_nobody_else(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "hub.db") as served:
        walk = Walk(served)
        refused = [cell for cell in cells() if cell.expected != THROUGH]
        through = [cell for cell in cells() if cell.expected == THROUGH]
        before = kept(tmp_path / "hub.db")
        assert not list(filter(None, map(walk.wrong, refused)))
        assert kept(tmp_path / "hub.db") == before
        assert not list(filter(None, map(walk.wrong, through)))
    assert len(refused) > 5_000
    assert len(through) > 500
    assert {cell.route for cell in through} == set(ROUTES)


class _LetsSocketsThrough(Guard):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            scope[MATCH] = match("websocket", "GET", scope["path"])
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _without(name: bytes) -> type[Guard]:
    class Blind(Guard):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if "headers" in scope:
                scope["headers"] = [each for each in scope["headers"] if each[0] != name]
                if name == b"host":
                    scope["headers"].append((b"host", b"localhost"))
            await super().__call__(scope, receive, send)

    return Blind


def _takes_any_secret(app: Any, hub: Hub, settings: Settings) -> Guard:
    class Trusting(Guard):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            found = match(scope["type"], scope.get("method", "GET"), scope.get("path", ""))
            hub.agency_of_secret = lambda digest: found.parameters.get("agency")  # type: ignore
            await super().__call__(scope, receive, send)

    return Trusting(app, hub, settings)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (_LetsSocketsThrough, lambda cell: cell.way == WS and cell.route.kind == "websocket"),
        (_without(b"origin"), lambda cell: cell.origin == "evil"),
        (_without(b"host"), lambda cell: cell.host == "evil"),
        (_takes_any_secret, lambda cell: cell.token == "another agency's"),
    ],
)
def test_the_walk_finds_a_guard_that_is_broken(tmp_path: Path, broken: Any, told: Any) -> None:
    routes = [route for route in ROUTES if route.path.endswith(("/ws", "/state", "/agents"))]
    some = [cell for cell in cells(routes) if cell.host in ("localhost", "evil")]
    with serving(tmp_path / "hub.db", guard=broken) as served:
        walk = Walk(served)
        found = [cell for cell in some if cell.expected != THROUGH and walk.wrong(cell)]
    assert [cell for cell in found if told(cell)]


def test_a_route_of_which_nobody_said_who_may_is_refused() -> None:
    check(ROUTES)
    with pytest.raises(ConfigurationError, match="GET /open does not say whose token it needs"):
        check((Route("GET", "/open", None, "Open to all."),))  # type: ignore[arg-type]


def test_each_path_and_method_is_in_the_table_once() -> None:
    named = [(route.method, route.path, route.kind == "websocket") for route in ROUTES]
    assert len(set(named)) == len(named)


@pytest.mark.spec("H3.5.1")
def test_a_wrong_method_is_told_which_are_right(served: Served) -> None:
    for route in ROUTES:
        there = served.places()
        path = route.path.format(**there)
        own = {
            each.method for each in ROUTES if each.path == route.path and each.kind != "websocket"
        }
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - own:
            answer = served.client.request(method, path)
            assert answer.status_code == (405 if own else 404), (method, path)
            assert "error" in answer.json()
            assert set(answer.headers.get("allow", "").split(", ")) - {""} == own


@pytest.mark.spec("H3.5.1")
def test_what_is_no_route_is_not_there(served: Served) -> None:
    paths = ["/nothing", "/agencies/", "//agencies", "/agency/a", "/agency/a/nothing", "/Agencies"]
    for path in (
        *paths,
        "/agency/a%2Fblueprints",
        "/agency/a/agent/b/state/../state",
        "/%61gencies/x",
    ):
        answer = served.raw(
            request_of("GET", path, ("Host", "localhost"), ("Authorization", f"Bearer {TOKEN}"))
        )
        assert answer.status in (404, 405), path
        assert answer.error


def test_what_can_be_nobodys_id_is_said_to_be_malformed(served: Served) -> None:
    ids = ["%00", "a.b", "a%20b", "%2E%2E", "%C3%A9", "x" * 101, "", "a%0A", "'--"]
    for route, id in itertools.product(ROUTES, ids):
        for name in route.parameters:
            there = served.places(**{name: id})
            if route.kind == "websocket":
                continue
            answer = served.client.request(route.method, route.path.format(**there))
            assert answer.status_code == 400, (route, id)
            told = answer.json()["error"]
            sentence = told["message"] if route.kind == "mcp" else told
            assert sentence.startswith(f"The {name} in the address is no id")


def test_the_head_of_what_can_be_got_is_as_its_answer_without_the_body(served: Served) -> None:
    for route in ROUTES:
        if route.method == "GET" and route.kind != "websocket":
            there = served.places(thread=served.thread())
            path = route.path.format(**there)
            head = served.client.head(path, headers={"Accept": "text/event-stream"})
            assert head.status_code == 200, path
            assert not head.content
