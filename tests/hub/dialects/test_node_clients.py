"""Clients of Node talk with a hub: OpenAI's, MCP's, and MCP's conformance tests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.web.guard import Guard
from tests.hub.web.served import Served, serving
from tests.talking import PATIENCE, call

HERE = Path(__file__).parent / "clients"
MODULES = HERE / "node_modules"
LEAST = 22
"""The Node that these clients want: the machine's, or else one that npm brought."""


def node() -> str | None:
    """A Node that is new enough."""
    found = shutil.which("node")
    if found is not None:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        if int(said.stdout.strip().lstrip("v").partition(".")[0]) >= LEAST:
            return found
    brought = sorted(MODULES.glob("node-*/bin/node"))
    return str(brought[0]) if brought else None


NODE = node() if MODULES.is_dir() else None

pytestmark = pytest.mark.skipif(
    NODE is None, reason=f"it needs Node {LEAST}, and npm ci in {HERE.name}/"
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
    if last.text == "Fail":
        return sa.ModelError("It is down.")
    said = sum(message.role == "user" for message in request.messages)
    return f"Message {said} was: {last.text}"


def system_of() -> AgentSystem:
    """A clerk, who asks before a letter is sent, and a guide."""
    model = sa.ScriptedModel(iter(lambda: spoken, None), chunk=4)
    system = AgentSystem(model).add_tool(send).add_agent(Blueprint("guide", "Be brief."))
    config = {"hitl": {"tools": ["send"]}}
    return system.add_agent(Blueprint("clerk", "Write.", config=config))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "hub.db", system_of()) as here:
        yield here


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    """What became of that command of Node."""
    return subprocess.run(
        [str(NODE), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=HERE,
    )


def came_of(client: str, **asked: Any) -> list[Any]:
    """What came of the steps of a client."""
    done = ran(str(HERE / client), json.dumps(asked))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def openai(hub: Served, *steps: dict[str, Any], key: str | None = None) -> list[Any]:
    return came_of(
        "openai_client.mjs", baseURL=f"{hub.url}/v1", apiKey=key or hub.secret, steps=steps
    )


def test_openais_client_has_an_answer_at_once_and_as_a_stream(hub: Served) -> None:
    listed, whole, streamed, denied = openai(
        hub,
        {"models": True},
        {"model": "clerk", "say": "Hello"},
        {"model": "clerk", "say": "Hello", "stream": True},
        {"model": "clerk", "say": "Write to Ada", "stream": True},
    )
    assert listed == {"models": ["clerk", "guide"]}
    assert (whole["text"], whole["reason"]) == ("Message 1 was: Hello", "stop")
    assert set(whole["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert (streamed["text"], streamed["reason"]) == (whole["text"], "stop")
    assert streamed["pieces"] > 0
    assert streamed["usage"] == whole["usage"]
    assert "Nobody can approve it here" in denied["text"]


def test_openais_client_reads_why_it_is_refused(hub: Served) -> None:
    missing, tools, failed, cut = openai(
        hub,
        {"model": "nobody", "say": "Hello"},
        {"model": "clerk", "say": "Hello", "more": {"tools": [{"type": "function"}]}},
        {"model": "clerk", "say": "Fail"},
        {"model": "clerk", "say": "Fail", "stream": True},
    )
    assert (missing["failed"], missing["status"]) == ("NotFoundError", 404)
    assert "no blueprint 'nobody'" in missing["message"]
    assert missing["type"] == "invalid_request_error"
    assert (tools["failed"], tools["status"]) == ("BadRequestError", 400)
    assert "leave out tools" in tools["message"]
    assert (failed["failed"], failed["status"]) == ("UnprocessableEntityError", 422)
    assert "It is down." in failed["message"]
    assert cut["failed"] == "APIError"
    assert "It is down." in cut["message"]
    (stranger,) = openai(hub, {"models": True}, key="x" * 43)
    assert (stranger["failed"], stranger["status"]) == ("AuthenticationError", 401)


def mcp(hub: Served, *steps: dict[str, Any], **more: Any) -> list[Any]:
    return came_of("mcp_client.mjs", url=f"{hub.url}/mcp", token=hub.secret, steps=steps, **more)


def test_mcps_client_goes_on_with_a_thread_and_answers_what_is_asked(hub: Served) -> None:
    answers = [
        {"action": "accept", "content": {"approved": True, "arguments": '{"to": "Grace"}'}},
        {"action": "decline"},
    ]
    listed, hello, edited, declined = mcp(
        hub,
        {"tools": True},
        {"name": "clerk", "say": "Hello"},
        {"name": "clerk", "say": "Write to Ada"},
        {"name": "clerk", "say": "Write to Ada"},
        answers=answers,
    )
    assert listed == {"tools": ["clerk", "guide"]}
    assert hello["result"]["structuredContent"]["answer"] == "Message 1 was: Hello"
    (asked,) = edited["asked"]
    assert asked["message"].startswith('Run send?\n{\n  "to": "Ada"\n}')
    assert edited["progress"][1:] == ["Waits for people.", "Runs send."]
    assert edited["result"]["structuredContent"]["answer"] == "It says: Sent to Grace."
    assert "Declined." in declined["result"]["structuredContent"]["answer"]
    assert len(hub.hub.threads(hub.agency)) == 1


def test_mcps_client_that_cannot_be_asked_is_told_where(hub: Served) -> None:
    (paused,) = mcp(hub, {"name": "clerk", "say": "Write to Ada"})
    said = paused["result"]["structuredContent"]
    assert said["status"] == "paused"
    assert f"POST /agency/{hub.agency.id}/agent/{said['thread_id']}/approve" in said["answer"]


CONFORMANCE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

PASSES = {
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
}
OTHERS = {
    "it is not declared: agents have no logs, and no arguments to complete": {
        "logging-set-level",
        "completion-complete",
    },
    "it calls a tool of its own, and agents have other tools": {
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-with-logging",
        "tools-call-error",
        "tools-call-with-progress",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "json-schema-2020-12",
        "server-sse-polling",
    },
    "it is not declared: agents are tools, and no resources or prompts": {
        "resources-list",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
    },
}


def _with_secret(app: Any, *known: Any) -> Any:
    """The guard, as for a client that shows a secret: these tests can show none."""
    guard = Guard(app, *known)

    async def shown(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            secret = app.secret.encode()
            scope["headers"] = [*scope["headers"], (b"x-secret", secret)]
        await guard(scope, receive, send)

    return shown


@pytest.fixture
def open_hub(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "hub.db", system_of(), guard=_with_secret) as here:
        here.app.secret = here.secret  # type: ignore[attr-defined]
        yield here


def test_mcps_conformance_tests_pass_but_for_those_that_are_not_about_agents(
    open_hub: Served, tmp_path: Path
) -> None:
    others = tmp_path / "others.yml"
    others.write_text(
        "server:\n" + "".join(f"  - {name}\n" for name in set().union(*OTHERS.values()))
    )
    url = f"{open_hub.url}/mcp"
    command = (str(CONFORMANCE), "server", "--url", url, "--suite", "all")
    done = ran(*command, "--expected-failures", str(others))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall("✓ ([a-z0-9-]+): [1-9][0-9]* passed, 0 failed", done.stdout)) == PASSES
