"""AG-UI's own client, in Node, talks with a hub: its check of the order of events is on."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import Agency, AgentSystem, Blueprint
from tests.hub.web.served import TOKEN, Served, serving
from tests.talking import PATIENCE, call

HERE = Path(__file__).parent
CLIENT = HERE.parents[2] / "widgets" / "node_modules" / "@ag-ui" / "client"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not CLIENT.is_dir(),
    reason="it needs Node, and widgets/node_modules",
)


def send(to: str) -> str:
    """Send a letter."""
    return f"Sent to {to}."


def spoken(request: Any) -> Any:
    """Sends a letter where it is told to, and else says what it heard, and how much before it."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"It says: {last.tool_results[0].text}"
    if last.text.startswith("Write to "):
        return call("send", "c1", to=last.text.removeprefix("Write to "))
    said = sum(message.role == "user" for message in request.messages)
    return f"Message {said} was: {last.text}"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    """A hub with a clerk, who asks before a letter is sent."""
    model = sa.ScriptedModel(iter(lambda: spoken, None), chunk=4)
    system = AgentSystem(model).defaults().add_tool(send, tags=["mail"])
    config = {"hitl": {"tools": ["send"]}}
    system.add_agent(Blueprint("clerk", "Write.", tags=["default", "mail"], config=config))
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system) as here:
        yield here


def ran(hub: Served, agency: Agency, *steps: dict[str, Any], thread: str = "tab") -> list[Any]:
    """What came of these steps of one client."""
    url = f"{hub.url}/agency/{agency.id}/agui/clerk"
    asked = {"url": url, "token": TOKEN, "threadId": thread, "steps": steps}
    done = subprocess.run(
        ["node", str(HERE / "agui_client.mjs"), json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_type(step: Any, type: str) -> list[Any]:
    """The events of that type."""
    return [event for event in step["events"] if event["type"] == type]


def outcome(step: Any) -> str:
    """How a run ended."""
    assert step["error"] is None, step["error"]
    return str(step["events"][-1]["outcome"]["type"])


def roles(step: Any) -> list[str]:
    """Whose messages the client has."""
    return [message["role"] for message in step["messages"]]


def test_an_answer_comes_in_pieces_and_is_a_message_of_the_client(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    (step,) = ran(hub, agency, {"say": "Hello"})
    assert outcome(step) == "success"
    pieces = [event["delta"] for event in of_type(step, "TEXT_MESSAGE_CONTENT")]
    assert len(pieces) > 3
    assert step["messages"][-1]["content"] == "".join(pieces) == "Message 1 was: Hello"


def test_a_call_waits_and_runs_with_the_arguments_that_were_edited(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    asked, done = ran(
        hub,
        agency,
        {"say": "Write to Ada"},
        {"answer": {"approved": True, "editedArgs": {"to": "Grace"}}},
    )
    assert outcome(asked) == "interrupt"
    (waiting,) = asked["waiting"]
    assert (waiting["reason"], waiting["toolCallId"]) == ("tool_call", "c1")
    assert waiting["metadata"]["sagents_nb"]["arguments"] == {"to": "Ada"}
    assert outcome(done) == "success"
    assert done["waiting"] == []
    assert [e["content"] for e in of_type(done, "TOOL_CALL_RESULT")] == ["Sent to Grace."]
    assert not of_type(done, "TOOL_CALL_START")
    assert roles(done) == ["user", "assistant", "tool", "assistant"]


def test_a_call_that_is_rejected_is_not_run_and_the_agent_hears_why(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    answer = {"approved": False, "reason": "She has moved."}
    _, done = ran(hub, agency, {"say": "Write to Ada"}, {"answer": answer})
    assert outcome(done) == "success"
    assert "She has moved." in done["messages"][-1]["content"]
    assert "Sent to" not in json.dumps(done["messages"])


def test_each_message_of_several_turns_is_said_once(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    steps = ran(hub, agency, *({"say": text} for text in ("One", "Two", "Three")))
    assert [outcome(step) for step in steps] == ["success"] * 3
    said = [message["content"] for message in steps[-1]["messages"]]
    expected = [("One", 1), ("Two", 2), ("Three", 3)]
    assert said == [each for text, n in expected for each in (text, f"Message {n} was: {text}")]
    (record,) = hub.hub.threads(agency)
    kept = hub.hub.thread(agency, record.id).session.messages
    assert [message.text for message in kept] == said


def test_a_client_that_begins_anew_is_told_what_there_is_and_what_waits(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    ran(hub, agency, {"say": "Hello"}, {"say": "Write to Ada"})
    seen, done = ran(hub, agency, {}, {"answer": {"approved": True}})
    assert outcome(seen) == "interrupt"
    assert roles(seen) == ["user", "assistant", "user", "assistant"]
    assert outcome(done) == "success"
    assert done["messages"][-1]["content"] == "It says: Sent to Ada."


def test_one_name_of_a_thread_means_two_threads_in_two_agencies(hub: Served) -> None:
    one, two = (hub.hub.create_agency(name)[0] for name in ("One", "Two"))
    ran(hub, one, {"say": "Hello"})
    (step,) = ran(hub, two, {"say": "Good day"})
    assert step["messages"][-1]["content"] == "Message 1 was: Good day"
    (mine,), (theirs,) = hub.hub.threads(one), hub.hub.threads(two)
    assert mine.id != theirs.id


def test_an_answer_to_what_was_answered_elsewhere_runs_nothing(hub: Served) -> None:
    agency, _ = hub.hub.create_agency("One")
    (asked,) = ran(hub, agency, {"say": "Write to Ada"})
    (record,) = hub.hub.threads(agency)
    thread = hub.hub.thread(agency, record.id)
    thread.approve(False, by="test")
    thread.wait()
    said = len(thread.session.messages)
    # The client has to believe that it waits: it looks before the other one answers.
    url = f"/agency/{agency.id}/agui/clerk"
    resume = [
        {"interruptId": asked["waiting"][0]["id"], "status": "resolved"}
        | {"payload": {"approved": True}}
    ]
    answer = hub.client.post(
        url, json={"threadId": "tab", "runId": "r", "messages": [], "resume": resume}
    )
    assert answer.status_code == 409
    assert "was answered" in answer.json()["error"]
    assert len(thread.session.messages) == said
