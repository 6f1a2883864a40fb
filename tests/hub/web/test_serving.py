"""A hub as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from sagents_nb.cli import main
from sagents_nb.errors import ConfigurationError
from sagents_nb.hub import AgentSystem
from sagents_nb.hub.web.serving import listening_socket, serve
from tests.hub.web.served import frames_of, request_of
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, /proc and modes of files")

SYSTEM = '''
import pathlib, time
import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint

here = pathlib.Path(__file__).parent

def hold() -> str:
    """Wait for the file."""
    (here / "begun").touch()
    while not (here / "go").exists():
        time.sleep(0.02)
    return "held"

def spoken(request):
    last = request.messages[-1]
    if last.role != "user" or last.text != "hold":
        return "done"
    return sa.ToolCall("c1", "hold", {})

system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).add_tool(hold)
system.add_agent(Blueprint("guide", "Be brief."))
'''


class Process:
    """``sagents-nb hub`` in a folder; ``lines`` are what it said."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        (folder / "agents.py").write_text(SYSTEM)
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        self.log = (folder / "log.txt").open("ab")
        self.process = subprocess.Popen(
            [
                Path(sys.executable).with_name("sagents-nb"),
                "hub",
                "agents:system",
                "--port",
                "0",
                *options,
            ],
            cwd=folder,
            env={**inherited, **environment},
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.folder = folder
        self.lines: list[str] = []

    def begun(self, lines: int = 2) -> Process:
        assert self.process.stdout is not None
        for _ in range(lines):
            self.lines.append(self.process.stdout.readline().strip())
        assert all(self.lines), (self.folder / "log.txt").read_text()
        return self

    @property
    def url(self) -> str:
        return self.lines[0].rpartition(" ")[2]

    @property
    def token(self) -> str:
        return self.lines[1].rpartition(" ")[2]

    def client(self, token: str | None = None) -> httpx2.Client:
        shown = {"Authorization": f"Bearer {token or self.token}"}
        return httpx2.Client(base_url=self.url, headers=shown, timeout=PATIENCE)

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self.lines += [line.strip() for line in self.process.stdout or ()]
        self.log.close()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Any]:
    begun: list[Process] = []

    def begin(*options: str, **environment: str) -> Process:
        begun.append(Process(tmp_path, *options, **environment))
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()


def test_it_says_its_address_and_its_token_once_and_the_token_nowhere_else(
    begin: Any, tmp_path: Path
) -> None:
    process = begin().begun()
    assert process.lines[0].startswith("The hub is at http://127.0.0.1:")
    assert len(process.token) == 43
    with process.client() as client:
        assert client.get("/agencies").json() == {"agencies": []}
        answers = [client.get("/"), client.get("/nothing"), client.post("/agencies", content="?")]
        assert client.get("/agencies", headers={"Authorization": "Bearer wrong"}).status_code == 401
    proc = Path(f"/proc/{process.process.pid}")
    if proc.is_dir():
        for name in ("cmdline", "environ"):
            assert process.token.encode() not in (proc / name).read_bytes()
    assert process.end() == 0
    process.kill()
    assert len(process.lines) == 3
    assert f"{process.url}/#code=" in process.lines[2]
    assert process.token not in process.lines[2]
    assert "/tmp" not in "".join(answer.text for answer in answers)
    for file in tmp_path.iterdir():
        if file.is_file():
            assert process.token.encode() not in file.read_bytes(), file


def test_a_token_comes_from_a_file_that_is_removed_and_is_said_to_nobody(
    begin: Any, tmp_path: Path
) -> None:
    file, token = tmp_path / "token", "a-token-that-nobody-is-going-to-guess"
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    process = begin(SAGENTS_HUB_TOKEN_FILE=str(file)).begun(lines=1)
    with process.client(token) as client:
        assert client.get("/agencies").status_code == 200
    assert not file.exists()
    assert process.end() == 0
    process.kill()
    assert len(process.lines) == 1
    assert token not in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [
        (0o644, "x" * 32, "Others can read"),
        (0o600, "short", "32 characters at least"),
        (0o600, "", "32 characters at least"),
        (None, "", "cannot be read"),
    ],
)
def test_a_file_that_is_no_safe_token_is_refused_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: int | None,
    content: str,
    said: str,
) -> None:
    file = tmp_path / "token"
    if mode is not None:
        file.write_text(content)
        file.chmod(mode)
    monkeypatch.setenv("SAGENTS_HUB_TOKEN_FILE", str(file))
    assert said in _refused(capsys, tmp_path, "0")


def test_a_port_that_is_taken_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = _refused(capsys, tmp_path, str(port))
    assert f"cannot listen on 127.0.0.1, port {port}" in error
    assert "--port" in error


def _refused(capsys: pytest.CaptureFixture[str], folder: Path, port: str) -> str:
    assert main(["hub", "--store", str(folder / "hub.db"), "--port", port]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("sagents-nb: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_others_are_not_served_without_tls_unless_that_is_asked_for(
    tmp_path: Path, host: str
) -> None:
    with pytest.raises(ConfigurationError, match="--insecure"):
        serve(AgentSystem("demo"), tmp_path / "hub.db", host=host, port=0)
    assert not (tmp_path / "hub.db").exists()


def test_answers_are_sent_without_delay() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP  # of which asyncio sets TCP_NODELAY


def test_with_insecure_it_goes_by_the_names_that_are_listed(begin: Any) -> None:
    options = ("--host", "0.0.0.0", "--insecure", "--host-name", "Agents.example.org")
    process = begin(*options).begun()
    port = int(process.url.rpartition(":")[2])
    for host, status in [("agents.example.org", 401), ("0.0.0.0", 403), ("evil.example", 403)]:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(request_of("GET", "/agencies", ("Host", host)))
            assert connection.recv(100).startswith(f"HTTP/1.1 {status} ".encode()), host


def test_an_idle_hub_ends_at_once_when_it_is_told_to(begin: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        process = begin().begun()
        assert process.end(number) == 0
        assert_calm(process.folder)


def _holding(process: Process) -> tuple[str, str]:
    """The path of a thread whose run waits for the file."""
    with process.client() as client:
        agency = client.post("/agencies").json()["id"]
        said = {"agentType": "guide", "input": "hold"}
        thread = client.post(f"/agency/{agency}/agents", json=said).json()["id"]
    _until(lambda: {"there": (process.folder / "begun").exists()}, "there", True)
    return f"/agency/{agency}/agent/{thread}", agency


def test_an_end_with_clients_that_listen_is_no_error(begin: Any) -> None:
    process = begin().begun()
    with process.client() as client:
        agency = client.post("/agencies").json()["id"]
        made = client.post(f"/agency/{agency}/agents", json={"agentType": "guide", "input": "hi"})
        path = f"/agency/{agency}/agent/{made.json()['id']}/events"
        with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.process.send_signal(signal.SIGTERM)
            list(lines)  # it has an end, and is not cut off
    assert process.process.wait(PATIENCE) == 0
    assert "level=error" not in (process.folder / "log.txt").read_text()


def test_a_hub_that_ends_takes_no_new_work_and_lets_runs_end(begin: Any, tmp_path: Path) -> None:
    process = begin().begun()
    path, agency = _holding(process)
    with process.client() as client:
        process.process.send_signal(signal.SIGTERM)
        _until(lambda: {"status": client.get("/healthz").status_code}, "status", 503)
        refused = client.post(f"/agency/{agency}/agents", json={"agentType": "guide"})
        assert refused.status_code == 503
        assert list(refused.json()) == ["error"]
        assert client.get(f"{path}/state").json()["run"]["status"] == "running"
        (tmp_path / "go").touch()
    assert process.process.wait(PATIENCE) == 0
    again = begin(SAGENTS_HUB_TOKEN_FILE=_token_file(tmp_path)).begun(lines=1)
    with again.client("t" * 32) as client:
        assert client.get(f"{path}/state").json()["run"]["status"] == "completed"


def test_what_does_not_end_is_stopped_and_goes_on_after_the_next_start(
    begin: Any, tmp_path: Path
) -> None:
    process = begin().begun()
    path, _ = _holding(process)
    with connect(f"ws{process.url[4:]}{path}/ws", additional_headers=_secret(process)) as told:
        assert process.end() == 0
        seen = frames_of(told)
        assert told.close_code == 1012  # it restarts
    (tmp_path / "go").touch()
    again = begin(SAGENTS_HUB_TOKEN_FILE=_token_file(tmp_path)).begun(lines=1)
    with again.client("t" * 32) as client:
        run = client.get(f"{path}/state").json()["run"]
        assert (run["status"], run["reason"]) == ("paused", "hitl"), "it may have run"
        answer = {"approved": True, "answers": {"c1": "retry"}}
        assert client.post(f"{path}/approve", json=answer).status_code == 200
        run = _until(lambda: client.get(f"{path}/state").json()["run"], "status", "completed")
        events = client.get(f"{path}/events").json()["events"]
    assert run["step"] == 3
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len(seen) >= 5
    assert seen == events[: len(seen)]


def test_a_second_signal_does_not_wait(begin: Any, tmp_path: Path) -> None:
    process = begin().begun()
    _holding(process)
    process.process.send_signal(signal.SIGTERM)
    with process.client() as client:
        _until(lambda: {"status": client.get("/healthz").status_code}, "status", 503)
    assert process.end() == 0
    assert_calm(tmp_path)


def assert_calm(folder: Path) -> None:
    """It logged what happened, and nothing that is grave."""
    lines = (folder / "log.txt").read_text().splitlines()
    assert lines
    assert all(" level=info event=" in line for line in lines), lines
    assert "event=hub.ended" in lines[-1]


def _secret(process: Process) -> dict[str, str]:
    return {"X-SECRET": process.token}


def _until(ask: Callable[[], dict[str, Any]], name: str, value: object) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while (answer := ask())[name] != value:
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
    return answer


def _token_file(folder: Path) -> str:
    file = folder / "token"
    file.write_text("t" * 32)
    file.chmod(0o600)
    return str(file)
