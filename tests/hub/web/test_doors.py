"""Two hubs over one store: every route, walked from the table, answers the same at both doors."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from sagents_nb.hub.web.route import Route
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.processes import HubProcess, a_hub_process
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

SITUATIONS = ("new", "completed", "paused")

T = "/agency/{agency}/agent/{thread}"
BODIES: dict[str, list[Any]] = {
    f"{T}/invoke": [
        {"messages": [{"content": "look again"}]},
        {"messages": [{"content": "look again"}], "files": {"a.md": "A"}, "idempotencyKey": "k"},
        {"messages": [{"content": "look again"}], "vars": {"city": "Oslo"}},
        {"messages": [{"content": 7}]},
        {},
    ],
    f"{T}/approve": [
        {"approved": True},
        {"approved": False},
        {"approved": True, "modifiedToolCalls": [{"id": "pay-it", "args": {"what": "less"}}]},
        {"approved": True, "modifiedToolCalls": [{"id": "other", "args": {}}]},
        {"approved": True, "interruptId": "old", "digests": {"pay-it": "old"}},
        {"approved": True, "answers": {"pay-it": "ran"}},
    ],
    f"{T}/child_result": [{"token": "x", "childThreadId": "x", "report": "It is done."}],
    f"{T}/register": [{"id": "{thread}", "vars": {"city": "Oslo"}}, {"id": "other"}],
}
KEYS = {"createdAt", "updatedAt", "since", "ts", "at", "ip"}
VARYING = re.compile(r"[0-9a-f]{8,}|\d{4}-\d\d-\d\dT[0-9:.+]+|python-httpx2?/[0-9.]+|\d{10}\.\d+")


def alike(said: Any, known: dict[str, str]) -> Any:
    """What was said, with what is another each time as a word."""
    if isinstance(said, dict):
        return {
            VARYING.sub("#", key): "#" if key in KEYS else alike(value, known)
            for key, value in said.items()
        }
    if isinstance(said, list):
        return [alike(each, known) for each in said]
    if isinstance(said, str):
        for name, value in known.items():
            said = said.replace(value, f"<{name}>")
        return VARYING.sub("#", said)
    return said if not isinstance(said, float) else "#"


class Doors:
    """``right`` is the hub that has a thread open, ``wrong`` another one over the same store."""

    def __init__(self, right: HubProcess, wrong: HubProcess, stack: ExitStack) -> None:
        self.right = right
        self.clients = {
            "right": stack.enter_context(right.client()),
            "wrong": stack.enter_context(wrong.client()),
        }
        self.hubs = {"right": right, "wrong": wrong}
        self.begin_agency()

    def begin_agency(self) -> None:
        """Have what follows be of a new agency: in one few threads may wait for people."""
        self.agency = self.clients["right"].post("/agencies").json()["id"]

    def thread(self, situation: str) -> str:
        """A new thread, which the right hub has open."""
        here = self.clients["right"]
        at = f"/agency/{self.agency}"
        id = str(here.post(f"{at}/agents", json={"agentType": "clerk"}).json()["id"])
        if situation != "new":
            text = "look here" if situation == "completed" else "pay it"
            said = {"messages": [{"content": text}]}
            assert here.post(f"{at}/agent/{id}/invoke", json=said).status_code == 202
            self.wait(id, situation)
        return id

    def wait(self, id: str, *statuses: str) -> dict[str, Any]:
        """The state of the thread, once it is at rest."""
        end = time.monotonic() + PATIENCE
        while True:
            path = f"/agency/{self.agency}/agent/{id}/state"
            answer = self.clients["right"].get(path)
            if answer.status_code == 404:
                return {}
            state: dict[str, Any] = answer.json()
            if state["run"]["status"] in (
                statuses or ("registered", "completed", "paused", "canceled")
            ):
                return state
            assert time.monotonic() < end, state["run"]
            time.sleep(0.01)

    def outcome(self, door: str, route: Route, situation: str, body: Any, origin: bool) -> Any:
        """What is answered at that door, and what the thread is then."""
        self.begin_agency()
        id = self.thread(situation)
        known = {"thread": id, "agency": self.agency, "hub": self.hubs[door].url}
        path = route.path.format(agency=self.agency, thread=id)
        sent: dict[str, Any] = {"headers": {"User-Agent": "test"}}
        if origin:
            sent["headers"]["Origin"] = self.hubs[door].url
        if body is not None:
            sent["content"] = json.dumps(body).replace("{thread}", id)
            sent["headers"]["Content-Type"] = "application/json"
        answer = self.clients[door].request(route.method, path, **sent)
        reply = alike(answer.json(), known)
        if answer.status_code == 202:
            reply.pop("status")  # it may be over by then
        said = answer.status_code, answer.headers["content-type"], reply
        goes_on = (answer.status_code == 202 and situation != "paused") or (
            answer.status_code == 200 and route.path.endswith("/approve")
        )
        after = alike(self.wait(id, *(["completed", "error"] if goes_on else [])), known)
        after.get("run", {}).pop("runId", None)
        events = self.clients["right"].get(f"/agency/{self.agency}/agent/{id}/events")
        return said, after, alike(events.json(), known)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("doors")
    url = f"sqlite:///{folder}/hub.db"
    with (
        a_hub_process(url, folder) as right,
        a_hub_process(url, folder) as wrong,
        ExitStack() as stack,
    ):
        yield Doors(right, wrong, stack)


OF_A_THREAD = [route for route in ROUTES if route.path.startswith(T) and route.kind == "http"]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize("route", OF_A_THREAD, ids=lambda route: f"{route.method}{route.path[31:]}")
def test_each_route_of_a_thread_does_the_same_at_the_wrong_door(
    doors: Doors, route: Route, whole: bool
) -> None:
    bodies = BODIES[route.path] if route.body is not None else [None]
    situations, origins = (SITUATIONS, (False, True)) if whole else (SITUATIONS[1:], (False,))
    for situation, body, origin in itertools.product(
        situations, bodies if whole else bodies[:2], origins
    ):
        right = doors.outcome("right", route, situation, body, origin)
        wrong = doors.outcome("wrong", route, situation, body, origin)
        assert wrong == right, (situation, body, origin)


def test_every_route_of_a_thread_with_a_body_has_bodies_here() -> None:
    assert {route.path for route in OF_A_THREAD if route.body is not None} == set(BODIES)


def frames(doors: Doors, door: str, rest: str, situation: str) -> Any:
    """What a socket tells of a thread that goes on, until that is over."""
    id = doors.thread(situation)
    known = {"thread": id, "agency": doors.agency}
    path = f"/agency/{doors.agency}/agent/{id}"
    told = []
    with doors.hubs[door].socket(f"{path}{rest}") as live:
        if rest == "/stream":
            live.send(json.dumps({"type": "hello", "have": 0}))
            told.append(json.loads(live.recv(PATIENCE)))
            live.send(json.dumps({"type": "send", "id": "s1", "text": "look twice"}))
            while told[-1].get("id") != "s1":
                told.append(json.loads(live.recv(PATIENCE)))
            state = doors.wait(id, "completed")
            told = [each for each in told if each["type"] in ("snapshot", "reply", "error")]
            return alike([live.subprotocol, told[0]["type"], told[-1], state], known)
        said = {"messages": [{"content": "look twice"}]}
        assert doors.clients["right"].post(f"{path}/invoke", json=said).status_code == 202
        while not told or told[-1]["type"] != "agent.completed" or len(told) < 6:
            told.append(json.loads(live.recv(PATIENCE)))
            if told[-1]["type"] == "agent.completed" and situation != "completed":
                break
    return alike([live.subprotocol, [e for e in told if e["type"] != "model.delta"]], known)


@pytest.mark.parametrize("rest", ["/ws", "/stream"])
@pytest.mark.parametrize("situation", ["new", "completed"])
def test_each_socket_tells_the_same_at_the_wrong_door(
    doors: Doors, rest: str, situation: str
) -> None:
    right, wrong = (frames(doors, door, rest, situation) for door in ("right", "wrong"))
    assert wrong == right


def test_a_socket_that_is_refused_is_refused_the_same_at_the_wrong_door(doors: Doors) -> None:
    def refusal(door: str, rest: str) -> Any:
        path = f"/agency/{doors.agency}/agent/{doors.thread('new')}"
        with pytest.raises(InvalidStatus) as refused:
            doors.hubs[door].socket(f"{path}{rest}").__enter__()
        response = refused.value.response
        return response.status_code, json.loads(response.body or b"")

    assert refusal("wrong", "/ws?since=x") == refusal("right", "/ws?since=x")


def stream_of(doors: Doors, door: str) -> Any:
    """What an event stream tells of a thread that has completed."""
    id = doors.thread("completed")
    path = f"/agency/{doors.agency}/agent/{id}/events?since=1"
    accept = {"Accept": "text/event-stream", "Last-Event-ID": "2"}
    told = []
    with doors.clients[door].stream("GET", path, headers=accept) as live:
        for line in live.iter_lines():
            told.append(line)
            if line.startswith("data: ") and "agent.completed" in line:
                break
        kind = live.headers["content-type"], live.status_code
    known = {"thread": id, "agency": doors.agency}
    return kind, [
        alike(json.loads(line[6:]), known) if line.startswith("data: ") else line for line in told
    ]


def test_an_event_stream_tells_the_same_at_the_wrong_door(doors: Doors) -> None:
    assert stream_of(doors, "wrong") == stream_of(doors, "right")


def agui(doors: Doors, door: str, name: str) -> Any:
    """What a client of AG-UI hears whose thread the right hub has open."""
    path = f"/agency/{doors.agency}/agui/clerk"

    def ask(door: str, **more: Any) -> httpx2.Response:
        asked = {"threadId": name, "runId": "run", "messages": [], **more}
        return doors.clients[door].post(path, json=asked)

    def events(answer: httpx2.Response) -> list[Any]:
        assert answer.status_code == 200, answer.text
        parts = answer.text.split("\n\n")
        return [json.loads(part[6:]) for part in parts if part.startswith("data: ")]

    user = {"id": "u0", "role": "user", "content": "pay it"}
    waits = events(ask("right", messages=[user]))[-1]["outcome"]["interrupts"]
    again = ask(door, messages=[user])
    refused = ask(door, messages=[user, {**user, "id": "u1"}])
    yes = {"interruptId": waits[0]["id"], "status": "resolved", "payload": {"approved": True}}
    done = ask(door, messages=[user], resume=[yes])
    said = [refused.status_code, refused.json(), events(again), events(done)]
    return alike(said, {"name": name})


def test_a_client_of_agui_hears_the_same_at_the_wrong_door(doors: Doors) -> None:
    assert agui(doors, "wrong", "tab-w") == agui(doors, "right", "tab-r")


OF_AN_AGENCY: list[tuple[str, str, Any]] = [
    ("GET", "/agencies", None),
    ("GET", "/approvals", None),
    ("GET", "/usage", None),
    ("GET", "/plugins", None),
    ("GET", "/v1/models", None),
    ("GET", "/openapi.json", None),
    ("GET", "{A}/agents", None),
    ("GET", "{A}/blueprints", None),
    ("GET", "{A}/blueprints/clerk/versions", None),
    ("GET", "{A}/schedules", None),
    ("GET", "{A}/vars", None),
]


def test_what_is_asked_of_no_thread_is_answered_the_same_by_both(doors: Doors) -> None:
    for situation in SITUATIONS:
        doors.thread(situation)
    for method, path, body in OF_AN_AGENCY:
        target = path.replace("{A}", f"/agency/{doors.agency}")
        right, wrong = (
            doors.clients[door].request(method, target, json=body) for door in ("right", "wrong")
        )
        assert (wrong.status_code, wrong.json()) == (right.status_code, right.json()), path


@pytest.mark.parametrize("door", ["right", "wrong"])
def test_an_agency_whose_threads_both_have_open_is_deleted_at_either_door(
    doors: Doors, door: str
) -> None:
    agency = doors.clients["right"].post("/agencies").json()["id"]
    for client in doors.clients.values():
        for text in ("look here", "pay it"):
            said = {"agentType": "clerk", "input": text}
            assert client.post(f"/agency/{agency}/agents", json=said).status_code == 201
    answer = doors.clients[door].delete(f"/agency/{agency}")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    for client in doors.clients.values():
        assert client.get(f"/agency/{agency}/agents").status_code == 404
        assert agency not in client.get("/agencies").text
