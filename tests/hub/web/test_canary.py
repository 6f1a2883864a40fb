"""Tokens of a hub that is used from its first to its last moment: where they are to be found."""

from __future__ import annotations

import base64
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from sagents_nb.hub.web.route import Route
from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.served import protocol_of
from tests.hub.web.test_serving import Process
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

TOKEN = "the-canary-that-opens-this-hub-and-is-told-to-nobody"
OWN = {"Authorization": f"Bearer {TOKEN}"}

BODIES: dict[str, Any] = {
    "/agency/{agency}/blueprints": {"name": "made", "prompt": "Be kind."},
    "/agency/{agency}/agents": {"agentType": "guide", "input": "Hello"},
    "/agency/{agency}/vars": {"vars": {"city": "Oslo"}},
    "/agency/{agency}/schedules": {
        "name": "Seldom",
        "agentType": "guide",
        "type": "interval",
        "intervalMs": 1e9,
    },
    "/agency/{agency}/agui/{name}": {
        "threadId": "tab",
        "runId": "run",
        "messages": [{"id": "u0", "role": "user", "content": "Hello"}],
    },
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hello"}]},
    "/agency/{agency}/agent/{thread}/invoke": {"messages": [{"content": "Hello"}]},
    "/agency/{agency}/agent/{thread}/approve": {"approved": True},
}


class Canaries:
    """What nobody is to find, in any of the ways in which it could be written."""

    def __init__(self, *tokens: str) -> None:
        self.forms = {
            form.encode(): token
            for token in tokens
            for form in (
                token,
                quote(token, safe=""),
                protocol_of(token).rpartition(".")[2],
                base64.b64encode(token.encode()).decode(),
                token.encode().hex(),
            )
        }

    def found_in(self, said: bytes) -> list[str]:
        """Those that are there."""
        return [token for form, token in self.forms.items() if form in said]


class Walk:
    """Asks all that there is of a hub, well and badly, and keeps what is answered."""

    def __init__(self, process: Process) -> None:
        self.client = httpx2.Client(base_url=process.url, timeout=PATIENCE)
        made = self.client.post("/agencies", json={"name": "Lab"}, headers=OWN).json()
        self.agency, self.secret = made["id"], made["secret"]
        self.answers: list[tuple[str, bytes]] = []

    def ask(
        self, route: Route, places: dict[str, str], headers: dict[str, str], **more: Any
    ) -> Any:
        """One request; what is answered is kept, with its head."""
        sent: dict[str, Any] = {"headers": headers}
        if route.body is not None:
            sent["json"] = {**BODIES.get(route.path, {}), **more}
        answer = self.client.request(route.method, route.path.format(**places), **sent)
        head = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
        self.answers.append((f"{route.method} {route.path}", head.encode() + answer.content))
        return answer

    def everything(self) -> None:
        """Each route as its owner asks, with a body that is none, and with no right to it."""
        places = {"agency": self.agency, "name": "guide", "thread": "t", "schedule": "s"}
        for route in sorted(ROUTES, key=lambda each: each.method == "DELETE"):
            if route.kind == "websocket" or route.path.endswith("/secret"):
                continue
            for headers in (
                {"X-SECRET": self.secret},
                OWN,
                {"Authorization": TOKEN},
                {"Authorization": f"Basic {TOKEN}"},
                {**OWN, "Origin": f"https://{TOKEN}.example"},
                {**OWN, "Host": f"{TOKEN}.example"},
                {"Cookie": f"token={TOKEN}"},
                {"Accept": "application/json", "Authorization": f"Bearer {self.secret[:-1]}"},
                {**OWN, "Referer": f"http://localhost/?key={self.secret}#code={TOKEN}"},
            ):
                extra = {}
                if route.path == "/v1/chat/completions":
                    extra["model"] = f"{self.agency}/guide"
                if route.path == "/auth/exchange":
                    extra["code"] = TOKEN
                if route.path == "/agency/{agency}" and "Bearer" in str(headers):
                    continue  # it is needed
                answer = self.ask(route, places, headers, **extra)
                if answer.status_code == 201 and "id" in answer.json():
                    kind = "schedule" if "intervalMs" in answer.text else "thread"
                    if route.path.count("{") == 1:
                        places[kind] = answer.json()["id"]
            if route.body is not None:
                self.ask(route, places, {}, canary=f"{TOKEN} {self.secret}")


def test_a_token_is_nowhere_but_where_it_was_said(tmp_path: Path) -> None:
    """Not in answers, logs, the process list, the environment, or a file but the one it was in."""
    folder, home, temporary = (tmp_path / name for name in ("hub", "home", "tmp"))
    for each in (folder, home, temporary):
        each.mkdir()
    file = folder / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    process = Process(
        folder,
        SAGENTS_HUB_TOKEN_FILE=str(file),
        HOME=str(home),
        TMPDIR=str(temporary),
        PYTHONDEVMODE="1",
    ).begun(lines=1)
    try:
        walk = Walk(process)
        canaries = Canaries(TOKEN, walk.secret)
        walk.everything()
        shown = walk.client.post(f"/agency/{walk.agency}/secret", headers=OWN).json()["secret"]
        canaries.forms |= Canaries(shown).forms
        proc = Path(f"/proc/{process.process.pid}")
        told = {name: (proc / name).read_bytes() for name in ("cmdline", "environ")}
        told |= {
            f"thread {each.name}": (each / "comm").read_bytes()
            for each in (proc / "task").iterdir()
        }
        addresses = {path for path, _ in walk.answers}
        walk.client.close()
        assert process.end(signal.SIGTERM) == 0
    finally:
        process.kill()
    told["said"] = "\n".join(process.lines).encode()
    for each in tmp_path.rglob("*"):
        if each.is_file():
            told[str(each.relative_to(tmp_path))] = each.read_bytes()
    told |= {f"{number} {what}": said for number, (what, said) in enumerate(walk.answers)}
    assert len(addresses) >= len([route for route in ROUTES if route.kind != "websocket"]) - 2
    assert "hub/log.txt" in told
    assert "hub/hub.db" in told
    assert {
        place: found for place, said in told.items() if (found := canaries.found_in(said))
    } == {}
    print(f"{len(walk.answers)} answers and {len(told) - len(walk.answers)} other places")
