"""A hub as a process of its own, ready in a moment, which ends and begins again at one address."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, connect

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub
from sagents_nb.hub.web.app import App
from sagents_nb.hub.web.guard import SUBPROTOCOL
from sagents_nb.hub.web.serving import serve
from sagents_nb.models.base import ModelRequest
from tests.hub.web.served import TOKEN, protocol_of
from tests.talking import PATIENCE

# All that such a process needs is loaded once, before it is forked.
LOADED = (sa.ScriptedModel, Hub, App, serve)


def answer(request: ModelRequest) -> Any:
    """The model: each message of a person has a call, and an answer in pieces."""
    last = request.messages[-1]
    if last.role != "user":
        return f"It is done: {last.tool_results[-1].text}."
    kind, _, what = last.text.partition(" ")
    return sa.ToolCall(f"{kind}-{what}", kind, {"what": what})


def system_of(effects: Path) -> AgentSystem:
    """A system whose tools add a line to the file ``effects``; people are asked before it pays."""

    def note(what: str) -> str:
        line = f"{what}\n".encode()
        file = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.close(file)
        return what

    def work(what: str) -> str:
        "Work."
        return note(what)

    def look(what: str) -> str:
        "Look, as often as you like."
        return what

    def pay(what: str) -> str:
        "Pay."
        return note(what)

    model = sa.ScriptedModel(iter(lambda: answer, None), chunk=8)
    system = AgentSystem(model).add_tool(work).add_tool(pay)
    system.add_tool(sa.tool(look, idempotent=True))
    return system.add_agent(Blueprint("clerk", "Work.", config={"hitl": {"tools": ["pay"]}}))


def _serve(pipe: Connection, url: str, port: int, effects: Path) -> None:
    serve(system_of(effects), url, port=port, token=TOKEN, say=pipe.send)


class HubProcess:
    """A hub over the store at ``url``, on the same ``port`` in all its ``lives``."""

    def __init__(self, url: str, effects: Path) -> None:
        self.store = url
        self.effects = effects
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.lives = 0
        self.begin()

    def begin(self) -> None:
        """Start it, and wait until it listens."""
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        here, there = context.Pipe()
        arguments = (there, self.store, self.port, self.effects)
        self.process = context.Process(target=_serve, args=arguments)
        self.process.start()
        there.close()
        assert here.poll(PATIENCE), "it does not begin"
        assert self.url in here.recv()
        here.close()
        self.lives += 1

    def end(self) -> float:
        """Tell it to end, and wait until it has; the seconds that took."""
        begun = time.monotonic()
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0, self.process.exitcode
        return time.monotonic() - begun

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.join(PATIENCE)

    def client(self) -> httpx2.Client:
        """One that may do anything."""
        shown = {"Authorization": f"Bearer {TOKEN}"}
        return httpx2.Client(base_url=self.url, headers=shown, timeout=PATIENCE)

    def socket(self, path: str) -> ClientConnection:
        """A socket, as a page opens it."""
        return connect(
            f"ws://127.0.0.1:{self.port}{path}",
            subprotocols=[SUBPROTOCOL, protocol_of(TOKEN)],  # type: ignore[list-item]
            origin=self.url,  # type: ignore[arg-type]
            open_timeout=PATIENCE,
            max_size=None,
            max_queue=None,
        )

    def done(self) -> list[str]:
        """What its tools did, in order."""
        return self.effects.read_text().split() if self.effects.exists() else []


@contextmanager
def a_hub_process(url: str, folder: Path) -> Iterator[HubProcess]:
    """One that is killed at the end."""
    hub = HubProcess(url, folder / "effects")
    try:
        yield hub
    finally:
        hub.kill()


def patiently(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
    """What is answered once the hub is there, and takes new work."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answer = ask()
            if answer.status_code != 503:
                return answer
        except httpx2.TransportError:
            pass
        assert time.monotonic() < deadline, "the hub is away for ever"
        time.sleep(0.03)
