"""How much one hub takes at once."""

from __future__ import annotations

import msgspec

from ..errors import SagentsError


class TooMany(SagentsError):
    """A limit of the hub is reached."""


class Limits(msgspec.Struct, frozen=True):
    """How much one hub takes at once.

    ``runs`` may be active, and of one agency ``approvals`` threads wait for people before a further
    run is refused. ``sockets`` may be open, of one agency ``sockets_of_agency``; a body or a
    message of a socket has ``body_bytes``.
    """

    runs: int = 32
    approvals: int = 8
    sockets: int = 1_024
    sockets_of_agency: int = 64
    body_bytes: int = 1_048_576
