"""A hub as a process of its own: its address, its token and its end."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import math
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

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

_THRESHOLDS = 20_000, 20, 20
"""Of the collector, where a process serves and does nothing else; Python's are 700, 10 and 10."""

_PORT = kinds.Kind(
    "a port from 0 to 65535", lambda value: kinds.whole(0).fits(value) and value < 65536
)


def _print(line: str) -> None:
    print(line, flush=True)  # who reads a pipe waits for the address


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
    say: Callable[[str], object] = _print,
) -> None:
    """Serve agents of ``system`` over HTTP until the process is told to end (SIGINT, SIGTERM).

    ``store`` is the path of a SQLite file, or a database's URL. ``host`` and ``port`` are where it
    listens; port 0 is a free one. ``token`` opens it, by default a new one, which is said once, by
    ``say``, with an address that opens its page; one that is given is not said. ``host_names`` are
    further names by which it is called, and ``origins`` pages elsewhere that may use it. Beyond
    this machine it is served without TLS only if that is asked for, with ``insecure``: put a proxy
    before it. ``limits`` are how much it takes at once.

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
    given, token = token, token or secrets.token_urlsafe(32)
    settings = Settings(
        token=digest_of(token),
        hosts=tuple(name.lower() for name in host_names),
        origins=tuple(origins),
        limits=limits or Limits(),
    )
    codes = Codes(token)
    with listening_socket(host, port) as listening, contextlib.closing(Hub(system, store)) as hub:

        def begun() -> None:
            say(f"The hub is at {_address(listening)}")
            if given is None:
                say(f"Its token, which is shown this once: {token}")
                page = f"{_address(listening)}/#code={codes.new()}"
                say(f"Its page, opened within a minute, needs no token: {page}")

        hub.doors.open(_address(listening, socket.gethostname()))
        hub.recover()
        hub.scheduler.start()
        with _collecting_seldom():
            Server(App(hub, settings, codes), begun).run([listening])


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Have Python look for garbage less often.

    Threads and sockets that are open are many objects, and few of them are garbage: with 5,000
    sockets a third of the processor's time went into looking, and seconds at once.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Server(uvicorn.Server):
    """Serves ``app`` behind its guard; ``begun`` is called once it does.

    A signal has it take no new work, let runs end for a moment and return; a second one does not
    wait. uvicorn's own raises the signal again, which would end the process before the hub is
    closed.
    """

    def __init__(self, app: App, begun: Callable[[], object] = lambda: None) -> None:
        config = uvicorn.Config(
            Guard(app, app.hub, app.settings),
            ws="websockets-sansio",
            ws_max_size=app.settings.limits.body_bytes,
            ws_per_message_deflate=False,  # it would take 30 kB of each socket
            lifespan="on",
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        self._app = app
        self._begun = begun
        self._until = math.inf

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._begun()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, or end now."""
        seconds = 0.0 if self._app.draining else DRAIN_SECONDS
        self._app.draining = True
        self._until = time.monotonic() + seconds

    async def on_tick(self, counter: int) -> bool:
        """Whether it is time to go."""
        if self._app.draining and (
            time.monotonic() >= self._until or not self._app.hub.active_runs()
        ):
            self.should_exit = True
        return await super().on_tick(counter)


def _address(listening: socket.socket, everywhere: str = "localhost") -> str:
    """Where it listens; ``everywhere`` stands for all addresses of this machine."""
    name, port = listening.getsockname()[:2]
    name = everywhere if name in ("0.0.0.0", "::") else name
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket there; raises :class:`~sagents_nb.errors.ConfigurationError` where it cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Of TCP by name: of others asyncio does not know that answers are to be sent without delay,
    # and each takes 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
