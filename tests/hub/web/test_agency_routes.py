"""What can be asked of agencies, each cell of the table in the specification."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from tests.hub.web.served import Served, serving
from tests.talking import call

pytestmark = pytest.mark.spec("H3.5.1")


def test_an_agency_is_made_with_a_secret_that_is_shown_this_once(served: Served) -> None:
    answer = served.client.post("/agencies", json={"name": "Sales"})
    assert answer.status_code == 201
    made = answer.json()
    assert list(made) == ["id", "name", "createdAt", "secret"]
    with served.client_of(made["secret"]) as client:
        assert client.get(f"/agency/{made['id']}/agents").json() == {"agents": []}
    listed = served.client.get("/agencies")
    assert listed.status_code == 200
    secret = made.pop("secret")
    assert listed.json()["agencies"][0] == made
    assert secret not in listed.text


def test_an_agency_without_a_name_has_one_of_its_own(served: Served) -> None:
    for body in ({}, {"name": None}):
        made = served.client.post("/agencies", json=body)
        assert made.status_code == 201
        assert made.json()["name"] == f"agency-{made.json()['id']}"
    assert served.client.post("/agencies").status_code == 201  # nothing is an object without fields


def test_a_name_that_another_agency_has_is_refused(served: Served) -> None:
    assert served.client.post("/agencies", json={"name": "Twice"}).status_code == 201
    answer = served.client.post("/agencies", json={"name": "Twice"})
    assert answer.status_code == 409
    assert "Twice" in answer.json()["error"]


def test_an_agency_is_deleted_with_all_that_it_has(served: Served) -> None:
    made = served.client.post("/agencies", json={}).json()
    at = f"/agency/{made['id']}"
    thread = served.client.post(f"{at}/agents", json={"agentType": "guide"}).json()["id"]
    assert served.client.delete(at).json() == {"ok": True}
    for path in (f"{at}/agents", f"{at}/blueprints", f"{at}/agent/{thread}/state"):
        assert served.client.get(path).status_code == 404
    assert served.client.delete(at).status_code == 404
    with served.client_of(made["secret"]) as client:
        assert client.get(f"{at}/agents").status_code == 401


def test_another_secret_takes_the_place_of_the_one_before(served: Served) -> None:
    made = served.client.post("/agencies", json={}).json()
    at = f"/agency/{made['id']}"
    fresh = served.client.post(f"{at}/secret").json()["secret"]
    for secret, status in ((made["secret"], 401), (fresh, 200)):
        with served.client_of(secret) as client:
            assert client.get(f"{at}/agents").status_code == status


def test_blueprints_are_those_of_the_code_and_of_the_agency_which_come_first(
    served: Served,
) -> None:
    path = served.path(rest="/blueprints")
    before = {each["name"]: each for each in served.client.get(path).json()["blueprints"]}
    assert before["guide"]["version"] == 0
    assert before["guide"]["createdAt"] is None
    first = served.client.post(path, json={"name": "guide", "description": "For guests."})
    assert first.status_code == 200
    assert first.json()["prompt"] == "Be brief."
    second = served.client.post(path, json={"name": "guide", "prompt": "Be kind."}).json()
    assert second["description"] == "For guests."
    assert second["version"] == 2
    assert second["createdAt"] == first.json()["createdAt"]
    assert second["updatedAt"] > first.json()["updatedAt"]
    listed = {each["name"]: each for each in served.client.get(path).json()["blueprints"]}
    assert listed["guide"] == second
    versions = served.client.get(f"{path}/guide/versions").json()["blueprints"]
    assert [each["version"] for each in versions] == [2, 1, 0]
    assert served.client.delete(f"{path}/guide").json() == {"ok": True}
    assert served.client.get(path).json()["blueprints"] == list(before.values())


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "Be brief."},
        {"name": "new"},
        {"name": "", "prompt": "Be brief."},
        {"name": "a b", "prompt": "Be brief."},
        {"name": "ä", "prompt": "Be brief."},
        {"name": "a/b", "prompt": "Be brief."},
        {"name": "new\n", "prompt": "Be brief."},
        {"name": "x" * 101, "prompt": "Be brief."},
        {"name": "new", "prompt": "  "},
        {"name": "new", "prompt": "Be brief.", "tags": [""]},
        {"name": "new", "prompt": "Be brief.", "tags": "default"},
        {"name": "new", "prompt": "Be brief.", "config": {"hitl": {"tools": "note"}}},
        {"name": "new", "prompt": "Be brief.", "config": {"hitl": {"tools": ["notes"]}}},
        {"name": "new", "prompt": "Be brief.", "config": []},
        {"name": "new", "prompt": "Be brief.", "version": 7},
    ],
)
def test_a_blueprint_that_cannot_be_is_refused(served: Served, body: dict[str, object]) -> None:
    path = served.path(rest="/blueprints")
    before = served.client.get(path).json()
    answer = served.client.post(path, json=body)
    assert answer.status_code == 400
    assert _is_a_sentence(answer.json()["error"])
    assert served.client.get(path).json() == before


def test_what_is_not_there_cannot_be_deleted_or_looked_at(served: Served) -> None:
    path = served.path(rest="/blueprints")
    assert served.client.get(f"{path}/nothing/versions").status_code == 404
    assert served.client.delete(f"{path}/nothing").status_code == 404
    assert served.client.delete(f"{path}/clerk").status_code == 404  # the code's stays
    assert served.client.delete(served.path("nothing")).status_code == 404


def test_threads_are_listed_the_newest_first(served: Served) -> None:
    agency, secret = served.hub.create_agency()
    path = f"/agency/{agency.id}/agents"
    with served.client_of(secret, **{"User-Agent": "test", "Referer": "http://a/b"}) as client:
        made = [client.post(path, json={"agentType": type}) for type in ("guide", "clerk")]
        assert [answer.status_code for answer in made] == [201, 201]
        listed = client.get(path)
    assert listed.status_code == 200
    assert listed.json()["agents"] == [made[1].json(), made[0].json()]
    seen = made[0].json()
    assert seen["agentType"] == "guide"
    assert seen["agencyId"] == agency.id
    assert seen["request"] == {"userAgent": "test", "ip": "127.0.0.1", "referrer": "http://a/b"}
    assert "parent" not in seen


def test_the_list_says_whose_child_a_thread_is_and_its_token_is_for_itself(tmp_path: Path) -> None:
    asks = call("task", description="Look.", subagentType="guide")
    system = AgentSystem(sa.ScriptedModel([asks, "It is so.", "Fine."])).defaults()
    with serving(tmp_path / "hub.db", system.add_agent(Blueprint("guide", "Be brief."))) as served:
        parent = served.thread()
        served.client.post(served.path(parent, "/invoke"), json={})
        served.wait(parent)
        answer = served.client.get(served.path(rest="/agents"))
        [child] = [each for each in answer.json()["agents"] if "parent" in each]
        assert child["parent"] == {"threadId": parent}
        state = served.client.get(served.path(child["id"], "/state")).json()["state"]
        assert state["parent"].keys() == {"threadId", "token"}
        assert state["parent"]["token"] not in answer.text


@pytest.mark.parametrize("input", ["hello", {"messages": [{"content": "hello"}]}])
def test_a_thread_that_is_made_with_an_input_is_invoked_at_once(
    served: Served, input: object
) -> None:
    made = served.client.post(
        served.path(rest="/agents"), json={"agentType": "guide", "input": input}
    )
    assert made.status_code == 201
    thread = made.json()["id"]
    served.wait(thread)
    state = served.client.get(served.path(thread, "/state")).json()["state"]
    assert [message["content"] for message in state["messages"]] == ["hello", "You said: hello"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"agentType": "nothing"}, 404),
        ({"agentType": "nothing", "input": "hello"}, 404),
        ({}, 400),
        ({"agentType": 7}, 400),
        ({"agentType": "guide", "vars": {"MAX_ITERATIONS": -1}}, 400),
        ({"agentType": "guide", "input": {"files": {"../up": "x"}}}, 400),
        ({"agentType": "guide", "input": {"files": {"a": "x", "~b": "x"}}}, 400),
        ({"agentType": "guide", "input": {"messages": [{"role": "tool", "content": "x"}]}}, 400),
        ({"agentType": "guide", "input": {"vars": {"MAX_ITERATIONS": "many"}}}, 400),
    ],
)
def test_a_thread_that_cannot_be_is_not_made(
    served: Served, body: dict[str, object], status: int
) -> None:
    path = served.path(rest="/agents")
    before = served.client.get(path).json()
    answer = served.client.post(path, json=body)
    assert answer.status_code == status
    assert _is_a_sentence(answer.json()["error"])
    assert served.client.get(path).json() == before


def test_to_an_agency_what_is_anothers_is_as_what_is_not_there(served: Served) -> None:
    other, secret = served.hub.create_agency()
    foreign = served.thread()
    with served.client_of(secret) as client:
        for rest in ("/agents", "/blueprints"):
            there = client.get(served.path(rest=rest))
            nowhere = client.get(f"/agency/{'0' * 16}{rest}")
            assert there.status_code == nowhere.status_code == 404
            assert _of(there.text, served.agency.id) == _of(nowhere.text, "0" * 16)
        for method, rest in (
            *[("GET", "/state"), ("GET", "/events"), ("POST", "/cancel"), ("DELETE", "")],
            *[("POST", "/invoke"), ("GET", "/events?since=3")],
        ):
            there = client.request(method, f"/agency/{other.id}/agent/{foreign}{rest}")
            nowhere = client.request(method, f"/agency/{other.id}/agent/{'0' * 32}{rest}")
            assert there.status_code == nowhere.status_code == 404
            assert _of(there.text, foreign) == _of(nowhere.text, "0" * 32)
            assert there.headers.keys() == nowhere.headers.keys()


def _of(text: str, id: str) -> str:
    return text.replace(id, "…")


def _is_a_sentence(text: str) -> bool:
    return re.fullmatch(r"\S.*[.)…]", text) is not None and len(text) < 400
