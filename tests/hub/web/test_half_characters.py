"""Half a character, as in the name of a file that is not UTF-8, ends no answer of any route."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from tests.hub.web.served import Served, serving

HALF = "half \ud83d"
SAID = [{"id": "u", "role": "user", "content": "look"}]


def look(at: str = "") -> str:
    """Look."""
    return f"seen {HALF}"


def spoken(request: Any) -> Any:
    """The model: it calls with half a character, and answers with one."""
    if request.messages[-1].role == "tool":
        return f"found {HALF}"
    return sa.ToolCall(f"c{len(request.messages)}", "look", {"at": HALF})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).defaults().add_tool(look)
    system.add_agent(Blueprint("guide", f"Be {HALF}."))
    gated = {"hitl": {"tools": ["look"]}}
    system.add_agent(Blueprint("clerk", "Be brief.", description=HALF, config=gated))
    with serving(tmp_path / "hub.db", system) as made:
        yield made


@pytest.mark.parametrize("kind", ["guide", "clerk"])
def test_each_route_that_only_reads_answers_json(served: Served, kind: str) -> None:
    thread = served.hub.create_thread(
        served.agency, kind, request={"referrer": HALF}, variables={"name": HALF}
    )
    thread.invoke([sa.Message.user(f"look at {HALF}")], {"/a.md": "a"})
    served.wait(thread.record.id, "completed" if kind == "guide" else "paused")
    thread.log.wait()
    paths = ["/state", "/events", "/stream"]
    for path in (
        *(served.path(thread.record.id, rest) for rest in paths),
        *(served.path(rest=rest) for rest in ("/agents", "/blueprints", "/vars", "/schedules")),
        *("/plugins", "/approvals", "/usage", "/agencies"),
    ):
        answer = served.client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        json.loads(answer.content)
    for rest in ("/events", "/stream"):
        with served.stream(served.path(thread.record.id, rest)) as stream:
            line = next(line for line in stream.iter_lines() if line.startswith("data: "))
            json.loads(line.removeprefix("data: "))
    for rest in ("/ws", "/stream"):
        with served.socket(served.path(thread.record.id, rest)) as socket:
            if rest == "/stream":
                socket.send(json.dumps({"type": "hello", "have": 0}))
            json.loads(socket.recv(10))


def test_each_dialect_answers(served: Served) -> None:
    body = {"model": f"{served.agency.id}/guide", "messages": SAID}
    answer = served.client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, "found half" in answer.text) == (200, True), answer.text
    answer = served.client.post("/v1/chat/completions", json={**body, "stream": True})
    assert "[DONE]" in answer.text
    body = {"threadId": "t", "runId": "r", "messages": SAID}
    answer = served.client.post(served.path(rest="/agui/guide"), json=body)
    assert (answer.status_code, "RUN_FINISHED" in answer.text) == (200, True), answer.text


def test_what_half_a_character_is_sent_in_is_refused_or_taken(served: Served) -> None:
    thread = served.thread()
    raw = json.dumps({"messages": [{"role": "user", "content": HALF}], "idempotencyKey": HALF})
    for method, path in (
        ("POST", served.path(thread, "/invoke")),
        ("POST", served.path(rest="/agents")),
        ("POST", served.path(rest="/blueprints")),
        ("POST", served.path(rest="/agui/guide")),
        ("POST", served.path(rest="/vars")),
        ("POST", "/v1/chat/completions"),
        ("POST", "/agencies"),
        ("POST", "/auth/exchange"),
        ("POST", served.path(rest="/mcp")),
    ):
        body = raw.replace('"messages"', f'"{HALF!s}"'.encode("ascii", "backslashreplace").decode())
        for content in (raw, body, json.dumps({"name": HALF, "code": HALF, "vars": {HALF: HALF}})):
            answer = served.client.request(
                method, path, content=content, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, (path, content, answer.text)
            assert answer.content == b"" or json.loads(answer.content)
