"""What a hub's operator says of who may ask it, and of how much."""

from __future__ import annotations

import msgspec

from ..limits import Limits


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use a hub: ``token`` is the digest of its token.

    ``hosts`` are names by which it may be called besides those of this machine, with the port where
    it is not that of the protocol. ``origins`` are those of pages elsewhere that may use it, such
    as "https://example.org"; by default only its own may. One ``behind_jupyter`` listens in a
    folder of the person who runs Jupyter: that has looked at who asks, and at its own name, and
    may have TLS where the hub has none.
    """

    token: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    behind_jupyter: bool = False
    limits: Limits = Limits()
