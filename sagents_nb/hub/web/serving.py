"""A hub as a process of its own: its address, its token and its end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from ... import kinds
from ...errors import ConfigurationError
from ..agencies import digest_of
from ..hub import Hub
from ..system import AgentSystem
from .app import App, Codes
from .call import Limits
from .guard import Guard, Settings

PORT = 8765
DRAIN_SECONDS = 5.0
"""That runs have to end when the hub is told to."""

_PORT = kinds.Kind(
    "a port from 0 to 65535", lambda value: kinds.whole(0).fits(value) and value < 65536
)


@kinds.checked(port=_PORT, store=kinds.PATH, say=kinds.Kind("a function", callable))
def serve(
    system: AgentSystem,
    store: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    host_names: Sequence[str] = (),
    origins: Sequence[str] = (),
    insecure: bool = False,
    limits: Limits | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Serve agents of ``system`` over HTTP until the process is told to end (SIGINT, SIGTERM).

    ``store`` is the path of a SQLite file, or a database's URL. ``host`` and ``port`` are where it
    listens; port 0 is a free one. ``token`` opens it, by default a new one, which is said once, by
    ``say``. ``host_names`` are further names by which it is called, and ``origins`` pages elsewhere
    that may use it. Beyond this machine it is served without TLS only if that is asked for, with
    ``insecure``: put a proxy before it. ``limits`` are how much it takes at once.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a host that would need ``insecure``,
    a token that can be guessed, and a port that is taken.
    """
    if not insecure and not _is_loopback(host):
        raise ConfigurationError(
            f"On {host} others could read the token on its way; let a proxy with TLS stand before "
            "the hub, and say --insecure, or listen on 127.0.0.1."
        )
    if token is not None and len(token) < 32:
        raise ConfigurationError("A token has 32 characters at least; leave it out for a new one.")
    token = token or secrets.token_urlsafe(32)
    listening = _listening(host, port)
    settings = Settings(
        token=digest_of(token),
        hosts=tuple(name.lower() for name in host_names),
        origins=tuple(origins),
        limits=limits or Limits(),
    )
    hub = Hub(system, store)
    try:
        codes = Codes(token)
        app = App(hub, settings, codes)
        hub.recover()
        asyncio.run(_serve(app, listening, lambda: _say(listening, token, codes, say)))
    finally:
        hub.close()
        listening.close()


def _say(listening: socket.socket, token: str, codes: Codes, say: Callable[[str], object]) -> None:
    name, port = listening.getsockname()[:2]
    address = f"http://{f'[{name}]' if ':' in name else name}:{port}"
    say(f"The hub is at {address}")
    say(f"Its token, which is shown this once: {token}")
    say(f"Its page, opened within a minute, needs no token: {address}/#code={codes.new()}")


async def _serve(app: App, listening: socket.socket, begun: Callable[[], None]) -> None:
    config = uvicorn.Config(
        Guard(app, app.hub, app.settings),
        ws="websockets-sansio",
        ws_max_size=app.settings.limits.body_bytes,
        lifespan="on",
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        begun()
    await _drained(app, server, serving)
    await serving


async def _drained(app: App, server: uvicorn.Server, serving: asyncio.Future[None]) -> None:
    """Once it is told to end: take no new work, and let runs end for a moment."""
    while not server.should_exit and not serving.done():
        await asyncio.sleep(0.05)
    app.draining = True


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise ConfigurationError(
            f"The hub cannot listen on {host}, port {port} ({error.strerror}); choose another "
            "with --port."
        ) from None
    return made


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
