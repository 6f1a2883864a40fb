"""The panel's own words about a thread: over a socket, and as a stream for who only hears."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sagents_nb.hub.limits import Limits
from tests.hub.web.served import Served, serving


def invoke(served: Served, thread: str, text: str) -> None:
    said = {"messages": [{"content": text}]}
    assert served.client.post(served.path(thread, "/invoke"), json=said).status_code == 202


def told(lines: Iterator[str], ends: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The messages of a stream, with the ids of their frames, up to the one that ends it."""
    found: list[dict[str, Any]] = []
    id = None
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            id = int(value)
        elif name == "data":
            found.append({**json.loads(value), "id": id})
            if ends(found[-1]):
                return found
    raise AssertionError(f"It ended after {found}")


def has(status: str) -> Callable[[dict[str, Any]], bool]:
    def ends(message: dict[str, Any]) -> bool:
        state = message.get("state", {})
        changes = (event.get("status") for event in message.get("events", ()))
        return state.get("status") == status or status in changes

    return ends


def test_an_event_stream_tells_what_a_panel_is_told_and_goes_on_where_it_was_cut_off(
    served: Served,
) -> None:
    thread = served.thread()
    invoke(served, thread, "hello")
    served.wait(thread)
    path = served.path(thread, "/stream")
    with served.stream(path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        [snapshot] = told(lines, has("idle"))
        assert snapshot["type"] == "snapshot"
        assert snapshot["id"] == snapshot["seq"]
        assert [entry["message"]["role"] for entry in snapshot["state"]["entries"]] == [
            "user",
            "assistant",
        ]
        invoke(served, thread, "more")
        later = told(lines, has("idle"))
        assert {message["type"] for message in later} == {"events"}
        assert later[0]["after"] == snapshot["seq"]
    with served.stream(path, **{"Last-Event-ID": str(snapshot["id"])}) as stream:
        again = told(stream.iter_lines(), has("idle"))
    assert again[0]["after"] == snapshot["seq"]
    assert again[-1]["seq"] == later[-1]["seq"]


def test_who_accepts_no_event_stream_is_given_one_look_and_a_thread_that_is_not_there_none(
    served: Served,
) -> None:
    look = served.client.get(served.path(served.thread(), "/stream"))
    assert look.headers["content-type"] == "application/json"
    assert look.json()["type"] == "snapshot"
    with served.stream(served.path("0" * 32, "/stream")) as stream:
        assert stream.status_code == 404


def test_a_page_begins_no_run_where_there_is_no_room_and_may_answer_what_waits(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "hub.db", limits=Limits(approvals=1)) as served:
        waits, other = served.thread("clerk"), served.thread()
        invoke(served, waits, "note")
        served.wait(waits, "paused")
        with served.socket(served.path(other, "/stream")) as page:
            page.send(json.dumps({"type": "send", "id": "s1", "text": "hello"}))
            refused = json.loads(page.recv())
        assert (refused["type"], refused["id"], refused["kind"]) == ("error", "s1", "TooMany")
        assert "wait for people" in refused["message"]
        with served.socket(served.path(waits, "/stream")) as page:
            page.send(json.dumps({"type": "hello", "have": 0}))
            interrupt = json.loads(page.recv())["state"]["interrupt"]
            decisions = {
                request["tool_call_id"]: {"type": "approve", "digest": request["digest"]}
                for request in interrupt["action_requests"]
            }
            said = {"type": "decide", "id": "d1", "interrupt_id": interrupt["id"]}
            page.send(json.dumps({**said, "decisions": decisions}))
            served.wait(waits)
        invoke(served, other, "hello")
        served.wait(other)


def test_an_agency_with_as_many_as_may_wait_begins_no_run_until_one_is_answered(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "hub.db", limits=Limits(approvals=2)) as served:
        waiting = [served.thread("clerk") for _ in range(2)]
        for thread in waiting:
            invoke(served, thread, "note")
            served.wait(thread, "paused")
        other, further = served.thread(), served.path(rest="/agents")
        refused = served.client.post(served.path(other, "/invoke"), json={})
        assert refused.status_code == 429
        assert "2 threads of this agency wait for people" in refused.json()["error"]
        said = {"agentType": "guide", "input": "go"}
        assert served.client.post(further, json=said).status_code == 429
        path = served.path(rest=f"/schedules/{served.schedule}/trigger")
        assert served.client.post(path).status_code == 429
        asked = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user"}]}
        asked["messages"][0]["content"] = "hello"  # type: ignore[index]
        assert served.client.post(served.path(rest="/agui/guide"), json=asked).status_code == 429
        invoke(served, waiting[0], "what waits may be told more")
        elsewhere, _ = served.hub.create_agency()
        path = served.path(rest="/agents", agency=elsewhere)
        assert served.client.post(path, json=said).status_code == 201
        answer = served.client.post(served.path(waiting[0], "/approve"), json={"approved": False})
        assert answer.status_code == 200
        served.wait(waiting[0])
        invoke(served, other, "hello")
        served.wait(other)
