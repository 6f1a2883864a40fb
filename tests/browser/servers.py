"""The servers that the browser tests start: JupyterLab, Notebook 7, marimo, and our own hub.

Each is on a free port of this machine, with no settings but ours, and its kernels see no API keys.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from tests.conftest import PRIVATE_PREFIXES
from tests.talking import PATIENCE

# News, update checks and kernel dialogs would cover the notebook.
SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}


class Server:
    """A host of notebooks in a process of its own; notebooks lie below ``root``."""

    name: str
    health: str
    """What it answers on when it is ready."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir()
        self.token = secrets.token_hex(32)
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._log = folder / f"{self.name}.log"
        self._folder, self._python = folder, python
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._python, "-m", *self.command(self._folder)],
            env=self.environment(self._folder),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=self._log.open("w"),
            stderr=subprocess.STDOUT,
        )

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables that it sees."""
        return _environment(folder)

    def command(self, folder: Path) -> Sequence[str]:
        """The module that is run, and its arguments; what it writes is to be in ``folder``."""
        raise NotImplementedError

    def address(self, place: str) -> str:
        """The page that shows the notebook which lies there below ``root``."""
        raise NotImplementedError

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return urlparse(self.url).port or 0

    def wait_until_ready(self, timeout: float = PATIENCE) -> None:
        """Return when the server answers; if it died, raise what it said."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                self.request("GET", self.health)
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"{self.name} did not start:\n{self.log()}")

    def request(self, method: str, path: str) -> Any:
        """Ask the server's REST API."""
        request = urllib.request.Request(
            f"{self.url}/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or "null")

    def end_kernels(self) -> None:
        """End what the notebooks of one test have run."""

    def log(self) -> str:
        """What the server and its kernels wrote."""
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def kill(self) -> None:
        """End it as no program can hear of."""
        self._process.kill()
        self._process.wait(20)

    def stop(self) -> None:
        """End the server and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


class LabServer(Server):
    """A JupyterLab."""

    name = "JupyterLab"
    health = "api/status"
    module, application = "jupyterlab", "LabApp"

    def command(self, folder: Path) -> Sequence[str]:
        for name, values in SETTINGS.items():
            path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        return [
            *(self.module, "--no-browser", "--allow-root"),
            f"--ServerApp.root_dir={self.root}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--{self.application}.expose_app_in_browser=True",
            f"--{self.application}.user_settings_dir={folder / 'settings'}",
            f"--{self.application}.workspaces_dir={folder / 'workspaces'}",
        ]

    def address(self, place: str = "") -> str:
        """The page that shows the notebook which lies there, or none."""
        # A workspace of its own, or Lab would open what the last page had open.
        workspace = f"w{secrets.token_hex(4)}{place and '/tree/'}{place}"
        return f"{self.url}/lab/workspaces/{workspace}?token={self.token}"

    def end_kernels(self) -> None:
        for session in self.request("GET", "api/sessions"):
            self.request("DELETE", f"api/sessions/{session['id']}")


class LabWithHub(LabServer):
    """The JupyterLab of a user of JupyterHub, with a hub of ``agents``, the text of a module."""

    name = "JupyterLab with a hub"
    base = "/user/ada"

    def __init__(self, folder: Path, agents: str) -> None:
        self._agents = agents
        super().__init__(folder)
        self.url += self.base

    def command(self, folder: Path) -> Sequence[str]:
        (self.root / "agents.py").write_text(self._agents)
        return [*super().command(folder), f"--ServerApp.base_url={self.base}/"]

    def environment(self, folder: Path) -> dict[str, str]:
        return {**super().environment(folder), "SAGENTS_HUB_SYSTEM": "agents:system"}


class Notebook7Server(LabServer):
    """A Notebook 7, which is made of the parts of JupyterLab."""

    name = "Notebook 7"
    module, application = "notebook", "JupyterNotebookApp"

    def address(self, place: str = "") -> str:
        return f"{self.url}/notebooks/{place}?token={self.token}"


class MarimoServer(Server):
    """A marimo editor. It has one kernel for each page that is open, which ends with it."""

    name = "marimo"
    health = "health"

    def command(self, folder: Path) -> Sequence[str]:
        return [
            *("marimo", "edit", str(self.root), "--headless", "--skip-update-check"),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--token-password", self.token),
        ]

    def address(self, place: str) -> str:
        return f"{self.url}/?file={place}&access_token={self.token}"


class HubServer(Server):
    """A hub of the AgentSystem in ``agents``, the text of a module; started again it goes on."""

    name = "hub"
    health = "healthz"

    def __init__(self, folder: Path, agents: str) -> None:
        self._agents = agents
        self._is_known = False
        super().__init__(folder)

    def command(self, folder: Path) -> Sequence[str]:
        (self.root / "agents.py").write_text(self._agents)
        return ["sagents_nb.cli", "hub", "agents:system", "--port", str(self.port)]

    def environment(self, folder: Path) -> dict[str, str]:
        variables = super().environment(folder)
        if self._is_known:  # one that it made itself is another each time
            token = folder / "token"
            token.touch(0o600)
            token.write_text(self.token)
            variables["SAGENTS_HUB_TOKEN_FILE"] = str(token)
        return variables

    def wait_until_ready(self, timeout: float = PATIENCE) -> None:
        """Return when it answers, and its token is known."""
        super().wait_until_ready(timeout)
        if not self._is_known:
            (self.token,) = re.findall(r"Its token.*: (\S+)", self.log())
            self._is_known = True

    def address(self, place: str = "") -> str:
        """Its page; ``place`` is what stands behind "#"."""
        return f"{self.url}/{place and f'#{place}'}"

    @property
    def said_address(self) -> str:
        """The one that it said, which opens the page once."""
        (found,) = re.findall(r"http\S+#code=\S+", self.log())
        return str(found)

    def start(self) -> None:
        """Begin anew with the store and at the port that it had."""
        self._process = self._started()
        self.wait_until_ready()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    """The person's own settings, kernels' histories and keys stay out."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*PRIVATE_PREFIXES, "JUPYTER"))}
    return kept | {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        # Where marimo looks for its settings and keeps what it knows.
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
