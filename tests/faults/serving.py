"""A provider of its own for tests: it answers, or refuses and quotes all that it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STREAM = b"".join(
    b"data: " + json.dumps(data).encode() + b"\n\n"
    for data in (
        {"choices": [{"index": 0, "delta": {"content": "ok"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )
)


class Echoing(BaseHTTPRequestHandler):
    """Answers, or refuses and quotes all that it was sent."""

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["content-length"])).decode()
        status = self.server.status  # type: ignore[attr-defined]
        kind, body = "text/event-stream", STREAM
        if status != 200:
            kind = "application/json"
            quoted = f"{self.path} {dict(self.headers)} {sent[-400:]}"[:2000]
            body = json.dumps({"error": {"message": quoted}}).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def serving() -> Iterator[Any]:
    """The server while it runs; ``status`` is that of its answers, ``stopping`` set at its end."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echoing)
    made.status = 200  # type: ignore[attr-defined]
    made.daemon_threads = True
    made.stopping = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.stopping.set()  # type: ignore[attr-defined]
    made.shutdown()
    made.server_close()
    thread.join()
