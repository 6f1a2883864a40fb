"""Real kernels whose notebooks are served, and what can be asked of them."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, connect

from sagents_nb.hub.web.guard import SUBPROTOCOL
from tests.hub.web.served import protocol_of
from tests.notebook.kernel import Cell, Kernel
from tests.talking import PATIENCE, until

SETUP = textwrap.dedent(
    '''
    %load_ext sagents_nb
    import asyncio, pathlib
    import sagents_nb as sa

    class Speaker(sa.ChatModel):
        """Computes, or says a piece and, once the file "go" is there, the other."""
        name = "speaker"
        async def stream(self, request):
            last = request.messages[-1]
            if last.role == "tool":
                yield sa.Message.assistant(f"It gave {last.tool_results[0].text}")
            elif last.text.startswith("compute "):
                code = {"code": last.text.removeprefix("compute ")}
                id = f"call-{len(request.messages)}"
                yield sa.Message.assistant(tool_calls=[sa.ToolCall(id, "run_python", code)])
            elif "slowly" in last.text:
                go = pathlib.Path("go")
                yield "It begins, "
                pathlib.Path("begun").touch()
                while not go.exists():
                    await asyncio.sleep(0.01)
                go.unlink()
                yield "and ends."
                yield sa.Message.assistant("It begins, and ends.")
            else:
                yield sa.Message.assistant(f"You said: {last.text}")

    agent = sa.Agent(Speaker(), middleware=[sa.NotebookTools()])
    '''
)


class ServingKernel:
    """A kernel of a notebook in ``folder``; ``client`` has what its page has, once it serves."""

    def __init__(self, folder: Path) -> None:
        self.kernel = Kernel(folder)
        self.kernel.ok(SETUP)
        self.cell("%agent use agent")
        self.client = httpx2.Client()
        self.token = self.url = ""

    @property
    def store(self) -> Path:
        """Where its conversations are."""
        return self.kernel.folder / ".sagents" / "agents.db"

    def say(self, line: str) -> str:
        """What a magic answers, as text."""
        return str(self.cell(line).value["text/plain"])

    def cell(self, code: str) -> Cell:
        """A cell that must not fail, in a front end."""
        return self.kernel.ok(code, front_end=True)

    def begin(self, code: str) -> str:
        """A cell that is not waited for: its request."""
        return self.kernel.start(code, front_end=True)

    def serve(self) -> str:
        """Serve, and come in by the address that is said; gives all that was said."""
        said = self.say("%agent serve")
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#code=(\w+)", said)
        assert found is not None, said
        self.url, code = found.groups()
        reply = httpx2.post(f"{self.url}/auth/exchange", json={"code": code}, timeout=PATIENCE)
        self.token = reply.json()["token"]
        self.client.close()
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE)
        return said

    @property
    def agency(self) -> dict[str, Any]:
        """The one of its notebook, the only one that its page has."""
        (found,) = self.client.get("/agencies").json()["agencies"]
        return dict(found)

    def path(self, thread: str, rest: str = "") -> str:
        """The address of a conversation."""
        return f"/agency/{self.agency['id']}/agent/{thread}{rest}"

    def threads(self) -> dict[str, dict[str, Any]]:
        """By their ids, those that its page lists."""
        listed = self.client.get(f"/agency/{self.agency['id']}/agents").json()
        return {thread["id"]: thread for thread in listed["agents"]}

    def told(self, thread: str) -> list[dict[str, Any]]:
        """What is kept of what was told of it."""
        events = self.client.get(self.path(thread, "/events")).json()["events"]
        return list(events)

    def wait(self, thread: str, status: str) -> None:
        """Until it is so."""
        state = self.path(thread, "/state")
        until(lambda: self.client.get(state).json()["run"]["status"] == status)

    def socket(self, path: str) -> ClientConnection:
        """A socket of its page."""
        return socket_at(self.url, path, self.token)

    def kill(self) -> None:
        """End it as nothing that it could see coming."""
        self.kernel.manager.signal_kernel(9)
        until(lambda: not self.kernel.manager.is_alive())

    def stop(self) -> None:
        """End it."""
        self.client.close()
        self.kernel.stop()


def socket_at(url: str, path: str, token: str) -> ClientConnection:
    """A socket of a hub, with the token as a page shows it."""
    return connect(
        f"{url.replace('http', 'ws', 1)}{path}",
        subprotocols=[SUBPROTOCOL, protocol_of(token)],  # type: ignore[list-item]
        open_timeout=PATIENCE,
        max_size=None,
        max_queue=None,
    )


def heard(socket: ClientConnection, *until_type: str) -> list[dict[str, Any]]:
    """What a socket tells up to the first of one of these types."""
    told = [json.loads(socket.recv(PATIENCE))]
    while told[-1]["type"] not in until_type:
        told.append(json.loads(socket.recv(PATIENCE)))
    return told


@contextmanager
def a_kernel(folder: Path) -> Iterator[ServingKernel]:
    """One that ends with what it is for."""
    made = ServingKernel(folder)
    try:
        yield made
    finally:
        made.stop()
