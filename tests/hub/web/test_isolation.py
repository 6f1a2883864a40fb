"""To an agency all that another has is as what is not there: every route, walked from the table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

import sagents_nb as sa
from sagents_nb.hub import Schedule
from sagents_nb.hub.web.route import Needs, Route
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.served import LISTED_ORIGIN, Served, kept, serving

MISSING = {"agency": "0" * 16, "thread": "1" * 32, "schedule": "2" * 32, "name": "nothing"}

BODIES: dict[str, dict[str, Any]] = {
    "/agency/{agency}/blueprints": {"name": "made", "prompt": "Be kind."},
    "/agency/{agency}/agents": {"agentType": "{name}"},
    "/agency/{agency}/schedules": {
        "name": "Seldom",
        "agentType": "{name}",
        "type": "interval",
        "intervalMs": 1e9,
    },
    "/agency/{agency}/schedules/{schedule}": {"agentType": "{name}"},
    "/agency/{agency}/vars": {"vars": {"city": "Bergen"}},
    "/agency/{agency}/agui/{name}": {
        "threadId": "tab",
        "runId": "run",
        "messages": [{"id": "u0", "role": "user", "content": "Hello"}],
    },
    "/v1/chat/completions": {
        "model": "{agency}/{name}",
        "messages": [{"role": "user", "content": "Hello"}],
    },
    "/agency/{agency}/agent/{thread}/invoke": {
        "messages": [{"content": "Hello"}],
        "files": {"a.md": "mine"},
        "vars": {"city": "Bergen"},
        "idempotencyKey": "k1",
    },
    "/agency/{agency}/agent/{thread}/child_result": {
        "token": "none",
        "childThreadId": "{thread}",
        "report": "Nothing.",
    },
    "/agency/{agency}/agent/{thread}/approve": {
        "approved": True,
        "interruptId": "none",
        "digests": {},
    },
    "/agency/{agency}/agent/{thread}/register": {"id": "{thread}", "vars": {"city": "Bergen"}},
}


class Neighbours:
    """``served.agency`` has one of everything; ``other`` is who asks, and has nothing."""

    def __init__(self, served: Served) -> None:
        hub, agency = served.hub, served.agency
        self.served = served
        self.other, secret = hub.create_agency()
        self.client = served.client_of(secret)
        self.secret = secret
        thread = hub.create_thread(agency, "clerk")
        thread.invoke([sa.Message.user("note this")], {"/a.md": "A"}, "k1")
        served.wait(thread.record.id, "paused")
        hub.save_blueprint(agency, {"name": "own", "prompt": "Be."})
        hub.save_variables(agency, {"own": "secret city"})
        tab = hub.named_thread(agency, "guide", "tab")
        tab.invoke([sa.Message.user("hi")])
        served.wait(tab.record.id)
        tab.log.wait()
        thread.log.wait()
        often = Schedule(name="Own", agent_type="own", type="interval", interval=1e6)
        self.theirs = {
            "agency": agency.id,
            "thread": thread.record.id,
            "schedule": hub.scheduler.create(agency, often).id,
            "name": "own",
        }

    def places(self, route: Route) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """What stands in an address and a body: of theirs, and the same of nobody's."""
        body = json.dumps(BODIES.get(route.path, {})) if route.body is not None else ""
        names = [name for name in MISSING if f"{{{name}}}" in f"{route.path} {body}"]
        mine = {**MISSING, "agency": self.other.id, "name": "guide"}
        for count in range(1, len(names) + 1):
            for changed in itertools.combinations(names, count):
                there = {**mine, **{name: self.theirs[name] for name in changed}}
                nowhere = {**mine, **{name: MISSING[name] for name in changed}}
                yield there, nowhere

    def answer(self, route: Route, places: dict[str, str], method: str, accept: str) -> Any:
        """What is said to them, without the ids that they named."""
        path = route.path.format(**places)
        if route.kind == "websocket":
            with pytest.raises(InvalidStatus) as refused:
                self.served.socket(path, self.secret).__enter__()
            response = refused.value.response
            headers, status = response.headers.keys(), response.status_code
            text = (response.body or b"").decode()
        else:
            said: dict[str, Any] = {"headers": {"Accept": accept, "Origin": LISTED_ORIGIN}}
            if route.body is not None:
                content = json.dumps(BODIES.get(route.path, {}))
                for name, value in places.items():
                    content = content.replace(f"{{{name}}}", value)
                said["content"] = content
                said["headers"]["Content-Type"] = "application/json"
            answer: httpx2.Response = self.client.request(method, path, **said)
            headers, status, text = answer.headers.keys(), answer.status_code, answer.text
        for name, value in places.items():
            text = text.replace(value, f"<{name}>")
        return status, sorted(map(str.lower, headers)), text


def test_what_is_anothers_is_answered_as_what_is_nobodys(tmp_path: Path) -> None:
    path, asked = tmp_path / "hub.db", 0
    with serving(path) as served:
        neighbours = Neighbours(served)
        before = kept(path)
        for route in ROUTES:
            for theirs, nobodys in neighbours.places(route):
                methods = [route.method, *(["HEAD"] if route.method == "GET" else [])]
                for method, accept in itertools.product(methods, ["*/*", "text/event-stream"]):
                    there = neighbours.answer(route, theirs, method, accept)
                    nowhere = neighbours.answer(route, nobodys, method, accept)
                    assert there == nowhere, (route, theirs)
                    assert there[0] == (401 if route.needs is Needs.HUB else 404), route
                    asked += 1
        assert kept(path) == before
        neighbours.client.close()
    assert asked > 150


def test_a_name_that_another_uses_for_a_thread_is_a_thread_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path / "hub.db") as served:
        neighbours = Neighbours(served)
        theirs = {record.id for record in served.hub.threads(served.agency)}
        path = f"/agency/{neighbours.other.id}/agui/guide"
        said = BODIES["/agency/{agency}/agui/{name}"]
        assert neighbours.client.post(path, json=said).status_code == 200
        (mine,) = served.hub.threads(neighbours.other)
        assert mine.id not in theirs
        assert {record.id for record in served.hub.threads(served.agency)} == theirs
        neighbours.client.close()
