"""The hub inside Jupyter, as jupyter-server-proxy begins it, which finds it as an entry point.

The Jupyter server itself imports this, so nothing of a hub is loaded here.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

ICON = Path(__file__).with_name("launcher.svg")


def server_process() -> dict[str, Any]:
    """How a hub is begun, once somebody asks for ``/sagents/``, and its tile of the Launcher.

    >>> server_process()["launcher_entry"]["title"]
    'Agents'
    """
    # Without -P the folder that Jupyter was started in could have another "queue" or "statistics".
    program = [sys.executable, "-P", "-m", "sagents_nb.cli"]
    return {
        "command": [*program, "hub", "--jupyter", "{unix_socket}"],
        "unix_socket": True,  # in a new folder that only this user may enter
        "timeout": 60,
        "new_browser_tab": False,
        "launcher_entry": {  # among those of kernels: Lab shows icons there alone
            "enabled": os.name == "posix" and importlib.util.find_spec("uvicorn") is not None,
            "title": "Agents",
            "icon_path": str(ICON),
        },
    }


def tell_why_not(sentence: str, place: Path) -> None:
    """Answer who comes to ``place`` for a hub, once, with why there is none.

    Whoever began this process and finds it ended begins another one: each visit tries anew.
    """
    import socketserver
    from http.server import BaseHTTPRequestHandler

    visits: list[str] = []

    class Telling(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65536)
            if self.parse_request():
                self.send_response(503)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(sentence.encode())
                # The proxy looks first whether anybody is there, without this header.
                visits.extend(self.headers.get_all("X-Forwarded-Context", []))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: its client has no address."""

    jupyter = os.getppid()
    place.unlink(missing_ok=True)
    with socketserver.UnixStreamServer(str(place), Telling) as server:
        server.timeout = 1.0
        while not visits and os.getppid() == jupyter:
            server.handle_request()
