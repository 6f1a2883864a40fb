"""No connection of Python's sockets leaves the process of a kernel under test.

An audit hook sees every connection that Python's sockets make, whoever makes it, and cannot be
taken away again. The kernel's own channels are libzmq's and are not seen, nor are other
processes that a cell starts, and libraries with a network of their own in C.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# The address is the argument of that number.
_EVENTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
_LOOPBACK = ("localhost", "127.", "::1")
_installed = False

GUARD = f"__import__({__name__!r}, fromlist=['install']).install()"
"""What a kernel is told to run before the first cell."""


class NetworkRefused(RuntimeError):
    """A notebook under test wanted to connect to somewhere; ``host`` is where."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This notebook is being tested, and nothing may connect, but something wanted to "
            f"reach {host}. Name models as 'anthropic:…' or 'openai:…' so that they replay from "
            "the cassette, keep other data beside the notebook, or tag the cell 'nbval-skip'."
        )
        self.host = host


def install() -> None:
    """Refuse connections from now on, in this process, for good."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    place = _EVENTS.get(event)
    if place is None or not event.startswith("socket."):
        return
    host = host_of(arguments[place])
    if host is not None:
        raise NetworkRefused(host)


def host_of(address: Any) -> str | None:
    """Whom an address names, or None for one inside this machine's own processes."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = str(address[0]), f":{address[1]}"
    elif isinstance(address, str | bytes) and address:
        host, port = os.fsdecode(address), ""
        if host.startswith(("/", "\0")):  # a Unix socket: multiprocessing, say
            return None
    else:  # nothing, so the peer it is connected to already; or a kind with no host
        return None
    if os.name == "nt" and host.startswith(_LOOPBACK):  # how event loops wake up there
        return None
    return f"{host}{port}"
