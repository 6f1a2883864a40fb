"""A hub as a process of its own: its address, its token and its end."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import logging
import math
import os
import secrets
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import FrameType

import uvicorn

from ... import kinds
from ...errors import ConfigurationError
from ..agencies import digest_of
from ..event_log import EVENTS_KEPT
from ..hub import Hub
from ..limits import Limits
from ..operations import LineFormat, line
from ..system import AgentSystem
from .app import App, guarded
from .codes import Codes
from .settings import Settings

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
    events_kept: int = EVENTS_KEPT,
    say: Callable[[str], object] = _print,
) -> None:
    """Serve agents of ``system`` over HTTP until the process is told to end (SIGINT, SIGTERM).

    ``store`` is the path of a SQLite file, or a database's URL. ``host`` and ``port`` are where it
    listens; port 0 is a free one. ``token`` opens it, by default a new one, which is said once, by
    ``say``, with an address that opens its page; one that is given is not said. ``host_names`` are
    further names by which it is called, and ``origins`` pages elsewhere that may use it. Beyond
    this machine it is served without TLS only if that is asked for, with ``insecure``: put a proxy
    before it. ``limits`` are how much it takes at once, and ``events_kept`` how many events of each
    thread stay.

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
    with (
        listening_socket(host, port) as listening,
        contextlib.closing(Hub(system, store, events_kept=events_kept)) as hub,
    ):

        def begun() -> None:
            say(f"The hub is at {_address(listening)}")
            if given is None:
                say(f"Its token, which is shown this once: {token}")
                page = f"{_address(listening)}/#code={codes.new()}"
                say(f"Its page, opened within a minute, needs no token: {page}")

        hub.doors.open(_address(listening, socket.gethostname()))
        line(
            "hub.began", address=_address(listening), pid=os.getpid(), version=version("sagents-nb")
        )
        hub.recover()
        hub.scheduler.start()
        Server(App(hub, settings, codes), begun).run([listening])
    line("hub.ended", pid=os.getpid())


@contextlib.contextmanager
def logged(level: int) -> Iterator[None]:
    """Have what happens to a hub meanwhile logged to stderr, a line each; of all else warnings."""
    handler, ours = logging.StreamHandler(), logging.getLogger(line.__module__)
    handler.setFormatter(LineFormat())
    logging.getLogger().addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        ours.setLevel(logging.NOTSET)


@kinds.checked(store=kinds.PATH, place=kinds.PATH)
def serve_jupyter(system: AgentSystem, store: str | Path, place: str | Path) -> None:
    """Serve agents of ``system`` to the Jupyter server that began this process, while that lives.

    ``place`` is that of the socket, in a folder that nobody else may enter: who comes by it needs
    no token, since Jupyter asked for its own. Raises
    :class:`~sagents_nb.errors.ConfigurationError` where others may enter that folder.
    """
    jupyter = os.getppid()
    with contextlib.suppress(PermissionError):
        os.setsid()  # a Ctrl+C in the terminal is Jupyter's to understand: it may go on
    settings = Settings(token=digest_of(secrets.token_urlsafe(32)), behind_jupyter=True)
    with socket_file(Path(place)) as listening, contextlib.closing(Hub(system, store)) as hub:
        hub.doors.open(f"unix:{place}")
        hub.recover()
        hub.scheduler.start()
        Server(App(hub, settings), lasts=lambda: os.getppid() == jupyter).run([listening])


@contextlib.contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Have Python look for garbage less often.

    Threads and sockets that are open are many objects, and few of them garbage: with 5,000
    sockets a third of the processor's time went into looking, and seconds at once.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Server(uvicorn.Server):
    """Serves ``app`` behind its guard, while it ``lasts``; ``begun`` is called once it does.

    A signal has it take no new work, let runs end for a moment and return; a second one does not
    wait. uvicorn's own raises the signal again, which would end the process before the hub is
    closed.
    """

    def __init__(
        self,
        app: App,
        begun: Callable[[], object] = lambda: None,
        lasts: Callable[[], bool] = lambda: True,
    ) -> None:
        config = uvicorn.Config(
            guarded(app),
            access_log=False,
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
        self._lasts = lasts
        self._until = math.inf
        self._told = False

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it ends."""
        with _collecting_seldom():
            super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._begun()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what clients still listen to: uvicorn would wait, and call that an error."""
        self._app.end()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, or end now."""
        seconds = 0.0 if self._app.draining else DRAIN_SECONDS
        self._app.draining = True
        self._until = time.monotonic() + seconds

    async def on_tick(self, counter: int) -> bool:
        """Whether it is time to go."""
        if not self._app.draining and not self._lasts():
            self.handle_exit(signal.SIGTERM, None)
        if self._app.draining:
            active = self._app.hub.active_runs()
            if not self._told:  # not in a handler of a signal, which may have cut a line off
                self._told = True
                line("hub.ends", active=active)
            self.should_exit = time.monotonic() >= self._until or not active
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


@contextlib.contextmanager
def socket_file(place: Path) -> Iterator[socket.socket]:
    """A socket at ``place``, for this user only; it is removed at the end.

    Raises :class:`~sagents_nb.errors.ConfigurationError` where others may enter its folder: of a
    socket itself not each system asks who may.
    """
    folder = place.parent
    found = folder.stat()
    if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.getuid():
        raise ConfigurationError(f"Others may enter {folder}; chmod 700 it first.")
    place.unlink(missing_ok=True)  # of a process that was killed
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(place))
        place.chmod(0o600)
        try:
            yield made
        finally:
            place.unlink(missing_ok=True)


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
