"""A real Jupyter server with a hub in it, and what can be said to it, byte by byte."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from http.cookies import SimpleCookie
from pathlib import Path

import httpx2

from tests.browser.servers import Server
from tests.hub.web.served import Answer, answer_from, request_of
from tests.talking import PATIENCE

BASE = "/user/ada/"
"""Where JupyterHub has a server of one of its users."""

AGENTS = """
from tests.hub.web.served import system_of
system = system_of()
"""


_SAID = b'{"type": "hello", "have": 0}'
HELLO = bytes([0x81, 0x80 | len(_SAID), 0, 0, 0, 0]) + _SAID
"""A frame of a page that asks a thread's socket for all that there is."""


class JupyterServer(Server):
    """A Jupyter server, of which nobody has asked for the hub yet."""

    name = "Jupyter"
    health = "api/status"

    def __init__(self, folder: Path, system: str = "agents:system") -> None:
        self._system = system
        super().__init__(folder)
        self.url += BASE.rstrip("/")

    def command(self, folder: Path) -> Sequence[str]:
        (self.root / "agents.py").write_text(AGENTS)
        return [
            *("jupyter_server", "--no-browser", "--allow-root", "--debug"),
            f"--ServerApp.root_dir={self.root}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            f"--ServerApp.base_url={BASE}",
        ]

    def environment(self, folder: Path) -> dict[str, str]:
        return {
            **super().environment(folder),
            "JUPYTER_TOKEN": self.token,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "SAGENTS_HUB_SYSTEM": self._system,
        }

    @property
    def hub_store(self) -> Path:
        """Where its hub keeps everything."""
        return self.root / ".sagents" / "agents.db"

    def client(self, **headers: str) -> httpx2.Client:
        """A script's, with Jupyter's token, at the hub."""
        given = {"Authorization": f"token {self.token}", **headers}
        return httpx2.Client(base_url=f"{self.url}/sagents", headers=given, timeout=PATIENCE)

    def cookie(self, host: str) -> str:
        """What a browser has for that host, once somebody has logged in there."""
        headers = (("Host", host), ("Authorization", f"token {self.token}"))
        answer = self.ask("GET", "api/status", *headers)
        found = SimpleCookie(answer.headers["set-cookie"])
        return "; ".join(f"{name}={each.value}" for name, each in found.items())

    def ask(
        self, method: str, place: str, *headers: tuple[str, str], body: bytes | None = None
    ) -> Answer:
        """What is answered to a request with just these headers; ``place`` is below its address."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(request_of(method, f"{BASE}{place}", *headers, body=body))
            answer = answer_from(connection)
            if answer.status == 101:
                # Jupyter opens a socket before it has asked the hub: what counts is what follows.
                with contextlib.suppress(ConnectionError):
                    connection.sendall(HELLO)
                    answer = answer._replace(body=answer.body or connection.recv(65536))
            return answer


def processes() -> list[int]:
    """All that there are."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def hub_processes(jupyter: Server) -> list[int]:
    """Those that it has begun for the hub."""
    begun = [pid for pid in processes() if _parent(pid) == jupyter.pid]
    return [pid for pid in begun if b"--jupyter" in command_of(pid)]


def command_of(pid: int) -> bytes:
    """What anybody sees of a process in ``ps``."""
    return _read(pid, "cmdline")


def environment_of(pid: int) -> bytes:
    """What it was given as variables."""
    return _read(pid, "environ")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    after = _read(pid, "stat").rpartition(b")")[2].split()
    return int(after[1]) if after else 0
