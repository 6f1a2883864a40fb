"""Nothing in a kernel under test may connect; what needs no network goes on."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sagents_nb.notebook.testing.guard import host_of

ROOT = Path(__file__).parents[3]


def guarded(code: str) -> str:
    """What the code prints in a process with the guard."""
    start = "from sagents_nb.notebook.testing import guard\nguard.install(); guard.install()\n"
    done = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_way_out_is_refused_and_thehost_of_is_named() -> None:
    printed = guarded(
        """
        import asyncio, http.client, socket, _socket, ssl, urllib.request

        def udp():
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))

        async def stream():
            await asyncio.open_connection("192.0.2.2", 80)

        ways = {
            "tcp": lambda: socket.socket().connect(("192.0.2.3", 80)),
            "quiet tcp": lambda: socket.socket().connect_ex(("192.0.2.4", 80)),
            "the C module": lambda: _socket.socket().connect(("192.0.2.5", 80)),
            "a kept method": lambda: socket.create_connection(("192.0.2.6", 80)),
            "udp": udp,
            "a name": lambda: socket.getaddrinfo("example.com", 80),
            "an old name": lambda: socket.gethostbyname("example.org"),
            "http": lambda: http.client.HTTPConnection("192.0.2.7").request("GET", "/"),
            "a url": lambda: urllib.request.urlopen("https://example.net/x"),
            "asyncio": lambda: asyncio.run(stream()),
            "version 6": lambda: socket.socket(socket.AF_INET6).connect(("::1", 80)),
            "loopback": lambda: socket.socket().connect(("127.0.0.1", 80)),
        }
        for name, way in ways.items():
            try:
                way()
            except Exception as error:
                while not isinstance(error, guard.NetworkRefused):
                    error = error.__cause__ or error.__context__ or error.reason
                print(name, error.host)
            else:
                print(name, "went out")
        """
    )
    assert printed.splitlines() == [
        "tcp 192.0.2.3:80",
        "quiet tcp 192.0.2.4:80",
        "the C module 192.0.2.5:80",
        "a kept method 192.0.2.6",
        "udp 192.0.2.1:53",
        "a name example.com",
        "an old name example.org",
        "http 192.0.2.7",
        "a url example.net",
        "asyncio 192.0.2.2:80",
        "version 6 ::1:80",
        "loopback 127.0.0.1:80",
    ]


def test_what_stays_in_the_machine_goes_on() -> None:
    printed = guarded(
        """
        import asyncio, multiprocessing, os, socket, tempfile, threading

        one, other = socket.socketpair()
        one.sendall(b"pair")
        print(other.recv(4))
        asyncio.run(asyncio.sleep(0))

        path = tempfile.mktemp()
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        print("unix")

        import sagents_nb as sa
        print(sa.Agent(sa.ScriptedModel(["hello"])).run("hi").text)
        """
    )
    assert printed.splitlines() == ["b'pair'", "unix", "hello"]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (("example.com", 443), "example.com:443"),
        (("::1", 8080, 0, 0), "::1:8080"),
        ("example.com", "example.com"),
        (b"example.com", "example.com"),
        ("/tmp/socket", None),
        (b"\0abstract", None),
        (None, None),
        ("", None),
        (7, None),
    ],
)
def test_whom_an_address_names(address: object, host: str | None) -> None:
    assert host_of(address) == host


def test_the_refusal_says_what_to_do() -> None:
    from sagents_nb.notebook.testing.guard import NetworkRefused

    said = str(NetworkRefused("example.com:443"))
    assert "reach example.com:443" in said
    assert "nbval-skip" in said
