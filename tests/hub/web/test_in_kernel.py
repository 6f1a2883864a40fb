"""A notebook's conversations on the page of its kernel, and of another hub over the same store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from sagents_nb.hub.web.route import Route
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.kernels import ServingKernel, a_kernel, heard, socket_at
from tests.hub.web.served import TOKEN, Served, kept, serving
from tests.talking import PATIENCE, until

COMPUTE = "compute answer = 6 * 7"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingKernel]:
    with a_kernel(tmp_path_factory.mktemp("kernel")) as made:
        made.serve()
        yield made


@pytest.fixture(scope="module")
def hub(kernel: ServingKernel) -> Iterator[Served]:
    """Another hub over the store of that kernel."""
    with serving(kernel.store) as served:
        served.hub.doors.open(served.url)
        yield served


class Way(NamedTuple):
    """How a conversation is come to: by the page of its kernel, or by that of another hub."""

    client: httpx2.Client
    url: str
    token: str

    def ask(self, method: str, path: str, **said: Any) -> Any:
        """What is answered."""
        return self.client.request(method, path, **said)

    def state(self, path: str) -> Any:
        """All that it is."""
        return self.client.get(f"{path}/state").json()

    def waits(self, path: str) -> dict[str, Any]:
        """An approval of what waits there, once something does."""
        until(lambda: self.state(path)["run"]["status"] == "paused")
        waiting = self.state(path)["state"]["interrupt"]
        digests = {r["tool_call_id"]: r["digest"] for r in waiting["action_requests"]}
        return {"approved": True, "interruptId": waiting["id"], "digests": digests}


@pytest.fixture(params=["its own door", "another hub's"])
def way(request: pytest.FixtureRequest, kernel: ServingKernel, hub: Served) -> Way:
    if request.param == "another hub's":
        return Way(hub.client, hub.url, TOKEN)
    return Way(kernel.client, kernel.url, kernel.token)


names = iter(f"trip-{number}" for number in range(1000))


@pytest.fixture
def name() -> str:
    """Of a conversation that no other test has."""
    return next(names)


def test_what_a_cell_says_is_listed_and_streams_in_both_vocabularies(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    cell = kernel.begin(f"%%agent --name {name}\nSay it slowly.")
    kernel.kernel.wait_for("begun")
    path = kernel.path(name)
    listed = way.ask("GET", f"/agency/{kernel.agency['id']}/agents").json()["agents"]
    (mine,) = [thread for thread in listed if thread["id"] == name]
    assert (mine["title"], mine["status"], mine["kernel"]) == (name, "running", "here")
    with (
        socket_at(way.url, f"{path}/ws", way.token) as events,
        socket_at(way.url, f"{path}/stream", way.token) as page,
    ):
        page.send(json.dumps({"type": "hello", "have": 0}))
        snapshot = heard(page, "snapshot")[-1]["state"]
        assert snapshot["session_id"] == name
        assert snapshot["partial"] is not None
        (kernel.kernel.folder / "go").touch()
        told = heard(events, "agent.completed")
        pieces = [event["data"]["delta"] for event in told if event["type"] == "model.delta"]
        assert "".join(pieces).endswith("and ends.")
        until(lambda: "and ends." in json.dumps(heard(page, "events")))
    kernel.kernel.finish(cell)
    kept = [event["seq"] for event in kernel.told(name)]
    assert kept == list(range(1, len(kept) + 1))


def test_its_page_says_that_it_has_the_notebooks_conversations_alone(
    kernel: ServingKernel, hub: Served
) -> None:
    ours, others = (each.client.get(each.url).text for each in (kernel, hub))
    assert 'data-agencies="notebooks"' in ours
    assert 'data-agencies="any"' in others


def test_an_approval_on_the_page_runs_in_the_kernel_which_shows_who_gave_it(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    cell = kernel.begin(f"%%agent --name {name}\n{COMPUTE}\n")
    path = kernel.path(name)
    until(lambda: way.ask("GET", f"{path}/state").status_code == 200)
    approval = way.waits(path)
    assert way.ask("POST", f"{path}/approve", json=approval).json() == {"ok": True}
    assert not kernel.kernel.finish(cell).error
    assert kernel.cell("print(answer)").text == "42\n"
    decided = kernel.cell(f"print(list(sa.sessions.get({name!r}).to_frame('decisions').by))")
    assert decided.text == "['http']\n"
    again = way.ask("POST", f"{path}/approve", json=approval)
    assert again.status_code in (400, 409)


def test_what_the_notebook_decides_is_decided_on_the_page(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    kernel.cell(f"%%agent --name {name} --no-wait\ncompute 1 + 1")
    path = kernel.path(name)
    way.waits(path)
    assert "Approved." in kernel.say("%agent approve")
    until(lambda: way.state(path)["run"]["status"] == "completed")
    types = [event["type"] for event in way.ask("GET", f"{path}/events").json()["events"]]
    assert types.index("hitl.interrupt") < types.index("hitl.resume") < len(types) - 1


def test_a_click_on_the_page_is_recorded_as_one_there(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    cell = kernel.begin(f"%%agent --name {name}\ncompute 2 + 2")
    path = kernel.path(name)
    until(lambda: way.ask("GET", f"{path}/state").status_code == 200)
    approval = way.waits(path)
    decisions = {id: {"type": "approve", "digest": d} for id, d in approval["digests"].items()}
    said = {"type": "decide", "id": "p-1", "interrupt_id": approval["interruptId"]}
    with socket_at(way.url, f"{path}/stream", way.token) as page:
        page.send(json.dumps({**said, "decisions": decisions}))
        assert heard(page, "reply", "error")[-1]["type"] == "reply"
    assert not kernel.kernel.finish(cell).error
    decided = kernel.cell(f"print(list(sa.sessions.get({name!r}).to_frame('decisions').by))")
    assert decided.text == "['hub']\n"


def test_stop_on_the_page_stops_the_run_and_the_cell_is_red(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    cell = kernel.begin(f"%%agent --name {name}\nSay it slowly.")
    kernel.kernel.wait_for("begun")
    assert way.ask("POST", f"{kernel.path(name)}/cancel").json() == {"ok": True}
    ended = kernel.kernel.finish(cell)
    assert (ended.error, ended.reply["evalue"]) == ("KeyboardInterrupt", "The run was stopped.")
    until(lambda: kernel.told(name)[-1]["type"] == "run.canceled")


def test_what_is_said_on_the_page_is_done_by_the_notebooks_agent_in_its_namespace(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    kernel.cell("numbers = [1, 2, 3]")
    path = kernel.path(name)
    say = {"messages": [{"content": "compute sum(numbers)"}], "idempotencyKey": name}
    for _ in range(2):  # the second does nothing
        assert way.ask("POST", f"{path}/invoke", json=say).status_code == 202
    assert way.ask("POST", f"{path}/approve", json=way.waits(path)).json() == {"ok": True}
    until(lambda: way.state(path)["run"]["status"] == "completed")
    messages = way.state(path)["state"]["messages"]
    assert messages[-1]["content"].startswith("It gave ")
    assert "6" in messages[-1]["content"]
    assert [m["content"] for m in messages if m["role"] == "user"] == [
        "hi",
        say["messages"][0]["content"],
    ]
    assert kernel.say("%agent status").startswith(f"{name}: idle, 6 messages")


BODIES: dict[str, Any] = {
    "invoke": {"messages": [], "vars": {"city": "Oslo"}},
    "approve": {"approved": True},
    "child_result": {"token": "none", "childThreadId": "none", "report": "Nothing."},
    "register": {"id": "notebook-1", "vars": {"city": "Oslo"}},
}


@pytest.mark.parametrize(
    "route",
    [r for r in ROUTES if "{thread}" in r.path and r.kind == "http"],
    ids=lambda route: f"{route.method} {route.path.rpartition('/')[2]}",
)
def test_each_route_of_a_thread_answers_through_either_door_alike(
    kernel: ServingKernel, hub: Served, route: Route, name: str
) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    body = {**BODIES.get(route.path.rpartition("/")[2], {})}
    body = {**body, "id": name} if "id" in body else body
    path = route.path.format(agency=kernel.agency["id"], thread=name)
    said = {} if route.method == "GET" else {"json": body} if route.body else {}
    answers = []
    for client in (hub.client, kernel.client):
        answer = client.request(route.method, path, **said)
        answers.append((answer.status_code, answer.json()))
        if route.method == "DELETE":  # it is gone for the second, until it is shown again
            assert answer.json() == {"ok": True}
            assert client.request(route.method, path).status_code == 404
            kernel.say("%agent serve")
    assert answers[0] == answers[1]
    assert answers[0][0] != 500
    assert kernel.say("%agent status").startswith(f"{name}: idle, 2 messages")


def test_its_agent_takes_nothing_from_a_hub(kernel: ServingKernel, way: Way, name: str) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    path, agency = kernel.path(name), f"/agency/{kernel.agency['id']}"
    for rest, body in (
        (f"{path}/invoke", BODIES["invoke"]),
        (f"{path}/register", {**BODIES["register"], "id": name}),
        (f"{agency}/agents", {"agentType": "guide"}),
        (f"{agency}/blueprints", {"name": "made", "prompt": "Be kind."}),
        (f"{agency}/vars", {"vars": {"city": "Oslo"}}),
        (f"{agency}/agui/guide", {"threadId": "t", "runId": "r", "messages": []}),
        (
            f"{agency}/schedules",
            {"name": "S", "agentType": "guide", "type": "interval", "intervalMs": 9e5},
        ),
    ):
        answer = way.ask("POST", rest, json=body)
        assert (answer.status_code, "notebook" in answer.json()["error"]) == (400, True), rest
    assert way.ask("GET", f"{agency}/blueprints").json() == {"blueprints": []}


def test_another_agency_sees_nothing_of_it(kernel: ServingKernel, hub: Served, name: str) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    mine = kernel.path(name)
    for client in (
        hub.client_of(hub.secret),
        httpx2.Client(base_url=kernel.url, headers={"X-SECRET": hub.secret}),
    ):
        with client:
            for path in (f"{mine}/state", hub.path(name, "/state"), hub.path(name, "/events")):
                assert client.get(path).status_code == 404
    assert hub.client.get(hub.path(name, "/state")).status_code == 404
    assert name not in hub.client.get(hub.path(rest="/agents")).text
    # Nor does the kernel's page have what others over that store have.
    assert [each["id"] for each in kernel.client.get("/agencies").json()["agencies"]] == [
        kernel.agency["id"]
    ]
    assert kernel.client.get(hub.path(rest="/agents")).status_code == 404
    assert kernel.client.post("/agencies", json={"name": "Lab"}).status_code == 400


def test_what_was_never_shown_is_on_no_page(kernel: ServingKernel, hub: Served, name: str) -> None:
    kernel.cell(
        f"import sagents_nb.store\ns = sa.Session(agent, id='{name}', store='.sagents/agents.db')\n"
        "_ = s.send('hi').result()"
    )
    for client in (hub.client, kernel.client):
        assert name not in client.get(f"/agency/{kernel.agency['id']}/agents").text
        assert client.get(kernel.path(name, "/state")).status_code == 404


def test_the_whole_notebook_is_taken_off_through_either_door_and_comes_back_when_it_is_served(
    kernel: ServingKernel, way: Way, name: str
) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    agency = f"/agency/{kernel.agency['id']}"
    assert way.ask("DELETE", agency).json() == {"ok": True}
    assert way.ask("GET", f"{agency}/agents").status_code == 404
    kernel.cell("%%agent\nand on\n")  # it is not there by itself
    assert way.ask("GET", agency + "/agents").status_code == 404
    kernel.say("%agent serve")
    assert kernel.threads()[name]["status"] == "completed"


@pytest.mark.soak
def test_two_kernels_over_one_store_have_each_their_own_and_one_that_ends_leaves_no_door(
    kernel: ServingKernel, hub: Served, name: str
) -> None:
    with a_kernel(kernel.kernel.folder) as other:
        other.serve()
        other.cell(f"%%agent --name {name}-other\nhi\n")
        kernel.cell(f"%%agent --name {name}\nhi\n")
        for client in (kernel.client, other.client, hub.client):
            for thread in (name, f"{name}-other"):
                said = {"messages": [{"content": "and more"}]}
                answer = client.post(kernel.path(thread, "/invoke"), json=said)
                assert answer.status_code == 202, answer.json()
        until(lambda: other.say("%agent status").startswith(f"{name}-other: idle, 8 messages"))
        until(lambda: kernel.say("%agent status").startswith(f"{name}: idle, 8 messages"))
        other.kernel.manager.shutdown_kernel()  # as Jupyter does it
        assert len(kept(kernel.store)["sagents_hub_doors"]) == 2
        assert kernel.threads()[f"{name}-other"]["kernel"] == "away"
        assert kernel.threads()[name]["kernel"] == "here"


def test_off_takes_all_of_it_from_every_page_and_the_notebook_goes_on(
    kernel: ServingKernel, hub: Served, name: str
) -> None:
    kernel.cell(f"%%agent --name {name}\nhi\n")
    path, agency = kernel.path(name), f"/agency/{kernel.agency['id']}"
    seqs = [event["seq"] for event in kernel.told(name)]
    with kernel.socket(f"{path}/stream") as page:
        page.send(json.dumps({"type": "hello", "have": 0}))
        heard(page, "snapshot")
        assert hub.client.get(f"{path}/state").status_code == 200
        assert "on no page any more" in kernel.say("%agent serve off")
        assert heard(page, "closed")
    with pytest.raises(httpx2.ConnectError):
        kernel.client.get("/healthz")
    for gone in (f"{path}/state", f"{agency}/agents"):
        assert hub.client.get(gone).status_code == 404
    kernel.cell("%%agent\nand on\n")
    assert kernel.say("%agent serve off") == "Nothing is served."
    said = kernel.serve()
    assert kernel.token not in said
    assert kernel.path(name) == path
    assert kernel.threads()[name]["status"] == "completed"
    told = [event["seq"] for event in kernel.told(name)]
    assert told[: len(seqs)] == seqs


def test_after_a_kill_it_can_be_read_and_goes_on_in_the_next_kernel_alone(
    tmp_path: Path, name: str
) -> None:
    with a_kernel(tmp_path) as kernel:
        kernel.serve()
        kernel.cell(f"%%agent --name asked --no-wait\n{COMPUTE}")
        kernel.begin(f"%%agent --name {name}\nSay it slowly.")
        kernel.kernel.wait_for("begun")
        seqs = [event["seq"] for event in kernel.told(name)]
        path, asked, listed = (
            kernel.path(name),
            kernel.path("asked"),
            f"/agency/{kernel.agency['id']}/agents",
        )
        with serving(kernel.store) as hub:
            approval = Way(hub.client, hub.url, TOKEN).waits(asked)
            with socket_at(hub.url, f"{path}/stream", TOKEN) as page:
                page.send(json.dumps({"type": "hello", "have": 0}))
                heard(page, "snapshot")
                kernel.kill()
                with pytest.raises(ConnectionClosed):  # a page comes again then
                    heard(page, "closed")
            assert hub.hub.recover() == 0  # nothing of it is anything that a hub goes on with
            threads = hub.client.get(listed).json()["agents"]
            assert {
                (t["status"], t["reason"], t["kernel"]) for t in threads if t["id"] != "notebook-1"
            } == {("paused", "kernel", "away")}
            assert hub.client.get("/approvals").json() == {"approvals": []}
            for method, rest, said in (
                ("POST", f"{path}/invoke", {"messages": [{"content": "more"}]}),
                ("POST", f"{asked}/approve", approval),
                ("POST", f"{path}/cancel", {}),
            ):
                refused = hub.client.request(method, rest, json=said)
                assert refused.status_code == 409
                assert "say %agent serve there" in refused.json()["error"]
            state = hub.client.get(f"{path}/state").json()
            assert state["state"]["messages"] == [{"role": "user", "content": "Say it slowly."}]
            assert (state["run"]["status"], state["run"]["reason"]) == ("paused", "kernel")
            before = [e["seq"] for e in hub.client.get(f"{path}/events").json()["events"]]
            # The kernel may have told one more between that look and its end.
            assert before[: len(seqs)] == seqs
            assert before == list(range(1, len(before) + 1))
            with socket_at(hub.url, f"{path}/stream", TOKEN) as page:
                snapshot, closed = heard(page, "closed")
                assert (snapshot["state"]["status"], closed["type"]) == ("closed", "closed")
                assert "Say it slowly." in json.dumps(snapshot["state"]["entries"])
        with a_kernel(tmp_path) as later, serving(kernel.store) as hub:
            later.serve()
            later.cell(f"%agent load {name}")
            assert later.path(name) == path
            thread = hub.client.get(listed).json()["agents"]
            assert {t["id"]: t["kernel"] for t in thread}[name] == "here"
            (tmp_path / "go").touch()
            said = {"messages": [{"content": "again"}]}
            assert hub.client.post(f"{path}/invoke", json=said).status_code == 202
            later.wait(name, "completed")
            told = [event["seq"] for event in later.told(name)]
            assert told == list(range(1, len(told) + 1))
            assert len(told) > len(before)


def test_nobody_who_guesses_comes_in(kernel: ServingKernel) -> None:
    for code in ("", "0" * 48):
        reply = httpx2.post(f"{kernel.url}/auth/exchange", json={"code": code}, timeout=PATIENCE)
        assert reply.status_code == 401
    evil = {"Origin": "https://evil.example", "Authorization": f"Bearer {kernel.token}"}
    assert httpx2.get(f"{kernel.url}/agencies", headers=evil).status_code == 403
    assert httpx2.get(f"{kernel.url}/agencies").status_code == 401
