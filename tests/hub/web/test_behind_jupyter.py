"""A hub on a socket that Jupyter alone reaches: whom that lets in may, and no page of elsewhere."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from sagents_nb.errors import ConfigurationError
from sagents_nb.hub import AgentSystem, Hub
from sagents_nb.hub.agencies import digest_of
from sagents_nb.hub.web.app import App
from sagents_nb.hub.web.guard import Guard
from sagents_nb.hub.web.serving import Server, serve_jupyter, socket_file
from sagents_nb.hub.web.settings import Settings
from tests.hub.web.served import (
    TOKEN,
    Answer,
    answer_from,
    protocol_of,
    request_of,
    serving,
    system_of,
)
from tests.talking import PATIENCE, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")

HOST = ("Host", "lab.example.org")
OWN = ("Origin", "https://lab.example.org")
EVIL = ("Origin", "https://evil.example")
COOKIE = ("Cookie", "username-lab=signed")


class Inside:
    """``hub`` behind the socket at ``place``."""

    def __init__(self, hub: Hub, place: Path) -> None:
        self.hub = hub
        self.place = place
        self.agency, _ = hub.create_agency()

    def ask(self, method: str, path: str, *headers: tuple[str, str]) -> Answer:
        """With these headers and no others."""
        body = None
        if method == "POST":
            body, headers = b"{}", (*headers, ("Content-Type", "application/json"))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.place))
            connection.sendall(request_of(method, path, *headers, body=body))
            return answer_from(connection)


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    folder = tmp_path_factory.mktemp("hub")
    folder.chmod(0o700)
    hub, begun = Hub(system_of(), folder / "hub.db"), threading.Event()
    settings = Settings(token=digest_of(TOKEN), behind_jupyter=True)
    server = Server(App(hub, settings), begun.set)
    with socket_file(folder / "socket") as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert begun.wait(PATIENCE)
            hub.doors.open(f"unix:{folder / 'socket'}")
            yield Inside(hub, folder / "socket")
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            hub.close()
    assert not (folder / "socket").exists()


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", [], 200),
        ("GET", [COOKIE], 200),
        ("GET", [COOKIE, OWN], 200),
        ("GET", [COOKIE, ("Sec-Fetch-Site", "same-origin")], 200),
        ("GET", [COOKIE, ("Sec-Fetch-Site", "none")], 200),
        ("GET", [COOKIE, ("Sec-Fetch-Site", "same-site")], 403),
        ("GET", [COOKIE, ("Sec-Fetch-Site", "cross-site")], 403),
        ("GET", [COOKIE, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")], 403),
        ("GET", [COOKIE, EVIL], 403),
        ("POST", [], 201),
        ("POST", [COOKIE], 403),
        ("POST", [COOKIE, OWN], 201),
        ("POST", [COOKIE, ("Origin", "http://lab.example.org")], 201),
        ("POST", [COOKIE, ("Origin", "https://lab.example.org:444")], 403),
        ("POST", [COOKIE, ("Origin", "https://lab.example.org.evil.example")], 403),
        ("POST", [COOKIE, ("Origin", "https://other.example.org")], 403),
        ("POST", [COOKIE, ("Origin", "ftp://lab.example.org")], 403),
        ("POST", [COOKIE, ("Origin", "null")], 403),
        ("POST", [COOKIE, ("Origin", "")], 403),
        ("POST", [COOKIE, OWN, EVIL], 403),
        ("POST", [COOKIE, EVIL], 403),
        ("POST", [EVIL], 403),
        ("POST", [EVIL, ("X-Forwarded-Host", "evil.example")], 403),
        ("POST", [EVIL, ("Forwarded", "host=evil.example")], 403),
        ("POST", [COOKIE, OWN, ("Sec-Fetch-Site", "same-origin")], 201),
        ("POST", [COOKIE, OWN, ("Sec-Fetch-Site", "same-site")], 403),
        ("POST", [COOKIE, OWN, ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", [("Authorization", "token of-jupyter")], 201),
        ("POST", [("Authorization", "Bearer of-jupyter")], 201),
        ("POST", [COOKIE, ("Authorization", "token of-jupyter")], 201),
        ("POST", [COOKIE, ("Authorization", "token of-jupyter"), EVIL], 403),
        ("POST", [COOKIE, ("Authorization", "Basic b2Y6YnJvd3Nlcg==")], 403),
        ("POST", [COOKIE, ("X-SECRET", "of-nobody")], 403),
        ("POST", [("X-SECRET", "of-nobody"), EVIL], 403),
    ],
)
def test_whom_jupyter_lets_in_may_all_and_no_page_of_elsewhere_may(
    inside: Inside, method: str, headers: list[tuple[str, str]], status: int
) -> None:
    before = len(inside.hub.agencies())
    assert inside.ask(method, "/agencies", HOST, *headers).status == status
    assert len(inside.hub.agencies()) == before + (status == 201)


def test_a_request_has_one_host_and_any_will_do(inside: Inside) -> None:
    for host in ("localhost", "lab.example.org", "127.0.0.1:8888", "[::1]:8888"):
        assert inside.ask("GET", "/agencies", ("Host", host)).status == 200
    for hosts in ([], [HOST, HOST]):
        assert inside.ask("GET", "/agencies", *hosts).status == 400


def test_people_come_to_the_page_from_anywhere_and_it_may_be_shown_in_jupyter_alone(
    inside: Inside,
) -> None:
    visit = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    page = inside.ask("GET", "/", HOST, COOKIE, *visit)
    assert page.status == 200
    assert b'data-door="jupyter"' in page.body
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert inside.ask("GET", "/", HOST, COOKIE, EVIL, *visit).status == 403
    assert inside.ask("POST", "/", HOST, COOKIE, *visit).status == 403
    with serving(inside.place.with_name("other.db")) as served:
        policy = served.client.get("/").headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        host = ("Host", f"localhost:{served.port}")
        assert served.raw(request_of("GET", "/", host, *visit)).status == 403


def test_a_socket_of_a_page_says_its_origin(inside: Inside) -> None:
    thread = inside.hub.create_thread(inside.agency, "guide").record.id
    path = f"/agency/{inside.agency.id}/agent/{thread}/ws"
    upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    for headers, status in (
        ([COOKIE, OWN], 101),
        ([("Authorization", "token of-jupyter")], 101),
        ([COOKIE], 403),
        ([COOKIE, EVIL], 403),
        ([COOKIE, EVIL, ("Sec-WebSocket-Protocol", protocol_of(TOKEN))], 403),
    ):
        assert inside.ask("GET", path, HOST, *upgrade, *headers).status == status, headers


def test_it_trusts_nobody_who_comes_by_a_port(tmp_path: Path) -> None:
    """Should such a hub ever listen elsewhere, too, there it asks for the token."""

    def trusting(app: App, hub: Hub, settings: Settings) -> Guard:
        return Guard(app, hub, replace(settings, behind_jupyter=True))

    with serving(tmp_path / "hub.db", guard=trusting) as served, served.client_of(None) as client:
        assert client.get("/agencies").status_code == 401
        assert client.get("/agencies", headers={"Host": "lab.example.org"}).status_code == 403
        assert served.client.get("/agencies").status_code == 200


def test_another_hub_comes_by_the_socket_as_by_a_port(inside: Inside, tmp_path: Path) -> None:
    thread = inside.hub.create_thread(inside.agency, "clerk").record.id
    path = f"/agency/{inside.agency.id}/agent/{thread}"
    said = {"messages": [{"content": "note this"}]}
    with serving(inside.place.with_name("hub.db")) as other:
        assert other.client.post(f"{path}/invoke", json=said).status_code == 202
        live = inside.hub.thread(inside.agency, thread)
        until(lambda: live.status == "paused")
        with other.socket(f"{path}/stream") as page:
            page.send(json.dumps({"type": "hello", "have": 0}))
            assert json.loads(page.recv(PATIENCE))["type"] == "snapshot"
        with other.stream(f"{path}/events?since=0") as stream:
            assert next(stream.iter_lines()) == "id: 1"
        assert other.client.post(f"{path}/approve", json={"approved": True}).json() == {"ok": True}
        until(lambda: live.status == "completed")
        inside.hub.doors.open("unix:/nowhere/socket")
        assert other.client.get(f"{path}/state").status_code == 503


def test_why_there_is_no_hub_is_told_to_the_first_who_comes_for_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    place = tmp_path / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "sagents_nb.cli", "hub", "--jupyter", str(place)],
        cwd=tmp_path,
        env={**os.environ, "SAGENTS_HUB_SYSTEM": "shop:system"},
        stderr=subprocess.DEVNULL,
    )
    try:
        way = httpx2.HTTPTransport(uds=str(place))
        with httpx2.Client(base_url="http://localhost", transport=way, timeout=PATIENCE) as client:
            until(lambda: is_answered(client))
            assert process.poll() is None  # Jupyter alone has looked whether it is there
            answer = client.get("/", headers={"X-Forwarded-Context": "/user/ada/sagents"})
        assert answer.status_code == 503
        assert answer.text.startswith("The hub could not begin: There is no shop:system: ")
        assert process.wait(PATIENCE) == 1
    finally:
        process.kill()


def is_answered(client: httpx2.Client) -> bool:
    """Whether somebody listens."""
    try:
        return client.get("/").status_code > 0
    except httpx2.TransportError:
        return False


def test_a_folder_that_others_may_enter_is_no_place_for_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(ConfigurationError, match=r"Others may enter .*; chmod 700 it first\."):
        serve_jupyter(AgentSystem("demo"), "sqlite://", tmp_path / "socket")


def test_a_socket_that_a_killed_process_left_is_taken_over_and_for_this_user_only(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "socket"))
    left.close()
    with socket_file(tmp_path / "socket"):
        assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "socket").exists()


def test_a_client_of_it_needs_no_token(inside: Inside) -> None:
    way = httpx2.HTTPTransport(uds=str(inside.place))
    with httpx2.Client(base_url="http://localhost", transport=way) as client:
        assert client.get("/usage").status_code == 200
        assert client.post("/auth/exchange", json={"code": "x"}).status_code == 401
