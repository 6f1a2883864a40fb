"""Two hubs over one store: what is asked through the wrong door is as through the right one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from tests.hub.web.served import TOKEN, Served, serving


class Doors(NamedTuple):
    """``right`` is the hub that has the thread open, ``wrong`` another one."""

    right: Served
    wrong: Served
    path: str

    def ask(self, method: str, rest: str, **said: Any) -> Any:
        """What is answered through the wrong door."""
        return self.wrong.client.request(method, f"{self.path}{rest}", **said)


@pytest.fixture
def doors(path: Path | str) -> Iterator[Doors]:
    with serving(path) as right, serving(path) as wrong:
        for served in (right, wrong):
            served.hub.doors.open(served.url)
        made = right.client.post(right.path(rest="/agents"), json={"agentType": "clerk"})
        yield Doors(right, wrong, right.path(made.json()["id"]))


def asked(doors: Doors) -> str:
    """The id of a thread where somebody is asked."""
    thread = doors.path.rpartition("/")[2]
    said = {"messages": [{"content": "note this"}]}
    assert doors.ask("POST", "/invoke", json=said).status_code == 202
    doors.right.wait(thread, "paused")
    return thread


def test_each_request_is_answered_as_by_who_has_the_thread(doors: Doors) -> None:
    thread = asked(doors)
    for rest in ("/state", "/events"):
        there = doors.right.client.get(f"{doors.path}{rest}")
        here = doors.ask("GET", rest)
        assert (here.status_code, here.json()) == (200, there.json())
    assert doors.ask("POST", "/approve", json={"approved": True}).json() == {"ok": True}
    doors.right.wait(thread)
    refused = doors.ask("POST", "/approve", json={"approved": True})
    assert refused.status_code == 400
    assert (
        refused.json()
        == doors.right.client.post(f"{doors.path}/approve", json={"approved": True}).json()
    )
    assert doors.ask("POST", "/cancel").json() == {"ok": True}
    assert doors.ask("DELETE", "").json() == {"ok": True}
    assert doors.right.client.get(f"{doors.path}/state").status_code == 404


def test_what_is_told_live_comes_through_it_as_it_happens(doors: Doors) -> None:
    with doors.wrong.socket(f"{doors.path}/ws") as told:
        thread = asked(doors)
        events = [json.loads(told.recv(40))]
        while events[-1]["type"] != "run.paused":
            events.append(json.loads(told.recv(40)))
        kept = [event for event in events if event["type"] != "model.delta"]
        assert [event["seq"] for event in kept] == list(range(1, len(kept) + 1))
    with doors.wrong.stream(f"{doors.path}/events?since=0") as stream:
        lines = iter(stream.iter_lines())
        assert next(lines) == "id: 1"
    with doors.wrong.socket(f"{doors.path}/stream") as page:
        page.send(json.dumps({"type": "hello", "have": 0}))
        snapshot = json.loads(page.recv(40))
        assert (snapshot["type"], snapshot["state"]["session_id"]) == ("snapshot", thread)


def test_a_page_approves_only_what_it_showed_through_it_too(doors: Doors) -> None:
    asked(doors)
    page = {"Origin": doors.wrong.url}
    refused = doors.ask("POST", "/approve", json={"approved": True}, headers=page)
    assert refused.status_code == 409
    waiting = doors.ask("GET", "/state").json()["state"]["interrupt"]
    answer = {
        "approved": True,
        "interruptId": waiting["id"],
        "digests": {r["tool_call_id"]: r["digest"] for r in waiting["action_requests"]},
    }
    assert doors.ask("POST", "/approve", json=answer, headers=page).json() == {"ok": True}


def test_what_a_process_left_open_that_has_no_door_is_said_to_be_elsewhere(doors: Doors) -> None:
    doors.right.hub.doors.close()
    answer = doors.ask("GET", "/state")
    assert answer.status_code == 409
    assert "has this thread open and serves nobody" in answer.json()["error"]


def test_a_door_that_nobody_answers_at_is_no_answer(doors: Doors) -> None:
    doors.right.hub.doors.open("http://127.0.0.1:9")
    answer = doors.ask("GET", "/state")
    assert answer.status_code == 503
    assert answer.json()["error"].endswith("try again in a moment.")


def test_the_token_of_a_door_is_told_to_nobody_and_opens_that_door_only(doors: Doors) -> None:
    own = doors.right.hub.doors.own
    assert own is not None
    for served, status in ((doors.right, 200), (doors.wrong, 401)):
        with served.client_of(own.token) as client:
            assert client.get("/agencies").status_code == status
    asked(doors)
    shown = [doors.ask("GET", rest).text for rest in ("/state", "/events")]
    assert own.token not in "".join(shown)
    assert TOKEN not in "".join(shown)


def test_who_cannot_make_the_agent_of_a_thread_asks_who_has_it_open(path: Path | str) -> None:
    lacking = AgentSystem(sa.ScriptedModel(["Hello."])).add_agent(Blueprint("guide", "Be brief."))
    with serving(path) as right, serving(path, lacking) as wrong:
        for served in (right, wrong):
            served.hub.doors.open(served.url)
        thread = right.thread("clerk")
        there, here = (each.client.get(right.path(thread, "/state")) for each in (right, wrong))
        assert (here.status_code, here.json()) == (200, there.json())
