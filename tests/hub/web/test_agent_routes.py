"""What can be asked of one thread, each cell of the table in the specification."""

from __future__ import annotations

import concurrent.futures
import threading
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.limits import Limits
from tests.hub.web.served import Served, serving
from tests.talking import PATIENCE, call

NOTHING = "0" * 32


def state(served: Served, thread: str) -> dict[str, Any]:
    answer = served.client.get(served.path(thread, "/state"))
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    assert list(said) == ["state", "run"]
    return said


def texts(served: Served, thread: str) -> list[Any]:
    return [message.get("content") for message in state(served, thread)["state"]["messages"]]


def invoke(served: Served, thread: str, text: str = "hello", **more: Any) -> dict[str, Any]:
    body = {"messages": [{"content": text}], **more}
    answer = served.client.post(served.path(thread, "/invoke"), json=body)
    assert answer.status_code == 202
    said: dict[str, Any] = answer.json()
    assert list(said) == ["runId", "status"]
    return said


def waiting(served: Served) -> tuple[str, dict[str, Any]]:
    """A thread with a note that somebody is asked of, and what is asked."""
    thread = served.thread("clerk")
    invoke(served, thread, "note it")
    served.wait(thread, "paused")
    interrupt: dict[str, Any] = state(served, thread)["state"]["interrupt"]
    return thread, interrupt


def approve(served: Served, thread: str, origin: str | None = None, **body: Any) -> Any:
    headers = {} if origin is None else {"Origin": origin}
    return served.client.post(served.path(thread, "/approve"), json=body, headers=headers)


@pytest.mark.spec("H3.5.1")
def test_what_is_said_is_accepted_and_answered(served: Served) -> None:
    thread = served.thread()
    assert state(served, thread)["run"]["status"] == "registered"
    assert invoke(served, thread)["status"] == "running"
    served.wait(thread)
    assert texts(served, thread) == ["hello", "You said: hello"]
    told = served.client.get(served.path(thread, "/events"))
    assert told.status_code == 200
    assert [event["seq"] for event in told.json()["events"]] == [1, 2, 3, 4, 5]
    assert {event["threadId"] for event in told.json()["events"]} == {thread}


@pytest.mark.spec("H3.5.1")
@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("POST", "/invoke"),
        ("POST", "/approve"),
        ("POST", "/cancel"),
        ("GET", "/state"),
        ("GET", "/events"),
        ("DELETE", ""),
    ],
)
def test_a_thread_that_is_not_there_is_not_found(served: Served, method: str, rest: str) -> None:
    body = {"json": {"approved": True} if rest == "/approve" else {}} if method == "POST" else {}
    for path in (served.path(NOTHING, rest), f"/agency/nobody/agent/{served.thread()}{rest}"):
        answer = served.client.request(method, path, **body)
        assert answer.status_code == 404
        assert list(answer.json()) == ["error"]


@pytest.mark.spec("H3.1.2")
def test_nothing_said_has_the_agent_go_on_with_the_files_that_were_given(served: Served) -> None:
    thread = served.thread()
    for files in ({"a.txt": "1", "b.txt": "2"}, {"/b.txt": "3"}):
        said = served.client.post(served.path(thread, "/invoke"), json={"files": files})
        assert said.status_code == 202
        served.wait(thread)
    files = served.hub.thread(served.agency, thread).session.files
    assert {entry.path: entry.text for entry in files.contents()} == {"/a.txt": "1", "/b.txt": "3"}


def test_a_request_that_is_repeated_with_its_key_is_done_once(served: Served) -> None:
    thread = served.thread()
    first = invoke(served, thread, idempotencyKey="k1")
    served.wait(thread)
    again = invoke(served, thread, idempotencyKey="k1", files={"a": "x"}, vars={"city": "Oslo"})
    assert again == {**first, "status": "completed"}
    live = served.hub.thread(served.agency, thread)
    assert live.session.files.list() == []
    assert live.record.variables == {}
    invoke(served, thread, "more", idempotencyKey="k2")
    served.wait(thread)
    assert texts(served, thread) == ["hello", "You said: hello", "more", "You said: more"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        same = [pool.submit(invoke, served, thread, "once", idempotencyKey="k3") for _ in range(8)]
    assert len({each.result()["runId"] for each in same}) == 1
    served.wait(thread)
    assert texts(served, thread).count("once") == 1


def test_variables_reach_the_tools_of_the_next_run(tmp_path: Path) -> None:
    def where(context: sa.ToolContext) -> str:
        """Say the city."""
        return str(context.values.get("city"))

    turns = [call("where", "c1"), "done", call("where", "c2"), "done"]
    system = AgentSystem(sa.ScriptedModel(turns)).add_tool(where)
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system) as served:
        body = {"agentType": "guide", "vars": {"city": "Oslo"}, "input": "go"}
        thread = served.client.post(served.path(rest="/agents"), json=body).json()["id"]
        served.wait(thread)
        invoke(served, thread, vars={"city": "Rome"})
        served.wait(thread)
        assert [text for text in texts(served, thread) if text in ("Oslo", "Rome")] == [
            "Oslo",
            "Rome",
        ]
        for path in (served.path(rest="/agents"), served.path(thread, "/events")):
            assert "Oslo" not in served.client.get(path).text.replace('"output":"Oslo"', "")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "assistant", "content": "I agree."}]},
        {"messages": [{"role": "tool", "content": "done"}]},
        {"messages": [{"content": 7}]},
        {"messages": "hello"},
        {"files": {"ok.txt": "x", "../up": "x"}},
        {"files": {"ok.txt": "x", "a\u0000": "x"}},
        {"files": {"ok.txt": 7}},
        {"messages": [{"content": "hello"}], "files": {"~/x": "x"}, "vars": {"a": 1}},
        {"messages": [{"content": "hello"}], "vars": {"MAX_ITERATIONS": -1}},
        {"idempotencyKey": ""},
        {"idempotencyKey": "x" * 201},
        {"vars": []},
    ],
)
def test_what_cannot_be_said_changes_nothing(served: Served, body: dict[str, Any]) -> None:
    thread = served.thread()
    live = served.hub.thread(served.agency, thread)
    answer = served.client.post(served.path(thread, "/invoke"), json=body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert state(served, thread)["run"]["status"] == "registered"
    assert texts(served, thread) == []
    assert live.session.files.list() == []
    assert live.record.variables == {}


# approvals


@pytest.mark.spec("H3.5.1", "H3.2.2")
def test_what_waits_is_approved(served: Served) -> None:
    thread, interrupt = waiting(served)
    assert [each["tool_name"] for each in interrupt["action_requests"]] == ["note"]
    answer = approve(served, thread, approved=True)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    served.wait(thread)
    assert texts(served, thread)[-2:] == ["noted note it", "done"]
    again = approve(served, thread, approved=True)
    assert again.status_code == 400
    assert again.json()["error"].startswith("Nothing waits for an approval")


@pytest.mark.spec("H3.2.2")
def test_what_waits_is_run_with_other_arguments(served: Served) -> None:
    thread, _ = waiting(served)
    edit = {"id": "call-1", "name": "note", "args": {"text": "else"}}
    assert approve(served, thread, approved=True, modifiedToolCalls=[edit]).status_code == 200
    served.wait(thread)
    assert texts(served, thread)[-2:] == ["noted else", "done"]


@pytest.mark.spec("H3.2.3")
def test_what_is_not_approved_does_not_run(served: Served) -> None:
    thread, _ = waiting(served)
    assert approve(served, thread, approved=False).status_code == 200
    served.wait(thread)
    assert not [text for text in texts(served, thread) if text and text.startswith("noted")]


def test_what_asks_is_answered(tmp_path: Path) -> None:
    question = call("ask_user", "q1", question="Where?", response_type="freeform")
    system = AgentSystem(sa.ScriptedModel([question, "done"])).use(sa.AskUser, "default")
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system) as served:
        thread = served.thread()
        invoke(served, thread)
        served.wait(thread, "paused")
        refused = approve(served, thread, approved=True)
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("The call 'q1' of ask_user needs an answer")
        assert approve(served, thread, approved=True, answers={"q1": "Oslo"}).status_code == 200
        served.wait(thread)
        assert any("Oslo" in (text or "") for text in texts(served, thread))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"approved": "yes"}, 400),
        ({"approved": 1}, 400),
        ({"approved": True, "modifiedToolCalls": [{"id": "x", "args": {}}]}, 400),
        ({"approved": True, "modifiedToolCalls": [{"id": "call-1", "args": {"wrong": 1}}]}, 400),
        (
            {"approved": True, "modifiedToolCalls": [{"id": "call-1", "args": {"text": "x"}}] * 2},
            400,
        ),
        (
            {
                "approved": True,
                "modifiedToolCalls": [{"id": "call-1", "name": "pay", "args": {"text": "x"}}],
            },
            400,
        ),
        ({"approved": True, "answers": {"call-1": "ran"}}, 400),
        ({"approved": True, "answers": {"x": "ran"}}, 400),
        ({"approved": True, "answers": "ran"}, 400),
        ({"approved": True, "interruptId": "another"}, 409),
        ({"approved": True, "digests": {"call-1": "another"}}, 409),
        ({"approved": True, "digests": {}}, 409),
        ({"approved": False, "interruptId": "another"}, 409),
    ],
)
def test_an_answer_that_does_not_fit_decides_nothing(
    served: Served, body: dict[str, Any], status: int
) -> None:
    thread, interrupt = waiting(served)
    answer = approve(served, thread, **body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert state(served, thread)["state"]["interrupt"] == interrupt


def test_a_page_approves_only_what_it_showed(served: Served) -> None:
    thread, interrupt = waiting(served)
    origin = served.url
    digests = {each["tool_call_id"]: each["digest"] for each in interrupt["action_requests"]}
    for body in ({}, {"interruptId": interrupt["id"]}, {"digests": digests}):
        assert approve(served, thread, origin, approved=True, **body).status_code == 409
    assert state(served, thread)["state"]["interrupt"] == interrupt
    shown = {"interruptId": interrupt["id"], "digests": digests}
    assert approve(served, thread, origin, approved=True, **shown).status_code == 200
    served.wait(thread)


def test_of_several_who_approve_at_once_one_does(served: Served) -> None:
    thread, _ = waiting(served)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(approve, served, thread, approved=True) for _ in range(8)]
    statuses = sorted(each.result().status_code for each in asked)
    assert statuses[0] == 200
    assert set(statuses[1:]) <= {400, 409}
    served.wait(thread)
    assert texts(served, thread).count("noted note it") == 1


# cancelling and deleting


@pytest.mark.spec("H3.5.1", "H3.3.1", "H3.2.5")
def test_cancelling_denies_what_waits_and_may_be_said_again(served: Served) -> None:
    thread, _ = waiting(served)
    for _ in range(2):
        answer = served.client.post(served.path(thread, "/cancel"))
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
        assert state(served, thread)["run"]["status"] == "canceled"
    assert approve(served, thread, approved=True).status_code == 400
    events = served.client.get(served.path(thread, "/events")).json()["events"]
    assert [event["type"] for event in events].count("run.canceled") == 1


@pytest.mark.spec("H3.5.1")
def test_a_thread_is_deleted_with_its_files_and_its_events(served: Served) -> None:
    thread = served.thread()
    invoke(served, thread, files={"a.txt": "x"})
    served.wait(thread)
    answer = served.client.delete(served.path(thread))
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert served.client.delete(served.path(thread)).status_code == 404
    listed = served.client.get(served.path(rest="/agents")).json()["agents"]
    assert thread not in [each["id"] for each in listed]


def test_no_more_runs_begin_than_there_is_room_for(tmp_path: Path) -> None:
    go = threading.Event()

    def note(text: str) -> str:
        """Keep a note."""
        go.wait(PATIENCE)
        return text

    def spoken(request: Any) -> Any:
        return "done" if request.messages[-1].role == "tool" else call("note", text="x")

    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).add_tool(note)
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system, Limits(runs=1)) as served:
        thread, other = served.thread(), served.thread()
        try:
            invoke(served, thread)
            refused = served.client.post(served.path(other, "/invoke"), json={})
            assert refused.status_code == 429
            body = {"agentType": "guide", "input": "go"}
            assert served.client.post(served.path(rest="/agents"), json=body).status_code == 429
            assert len(served.hub.threads(served.agency)) == 2
            invoke(served, thread, "what runs already may be told more")
        finally:
            go.set()
        served.wait(thread)
        invoke(served, other)
        served.wait(other)
