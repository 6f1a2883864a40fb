"""The built front end: a loader that every model carries, and what a page asks for once."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"


@cache
def loader() -> str:
    """The ``_esm`` of all models, a few kB."""
    return _read("loader.js").decode()


@cache
def bundle() -> tuple[str, list[bytes]]:
    """The bundle's version, and its JavaScript and style sheet."""
    buffers = [_read("panel.js"), _read("panel.css")]
    return hashlib.sha256(b"".join(buffers)).hexdigest()[:16], buffers


@cache
def math() -> bytes:
    """The JavaScript that sets formulas, for pages that have any."""
    return _read("math.js")


def _read(name: str) -> bytes:
    try:
        return (STATIC / name).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"The widget's {name} is missing; run 'npm ci && npm run build' in widgets/, or "
            "install sagents-nb from a wheel."
        ) from None
